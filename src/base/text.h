/* Text from outside, made safe for a terminal; and small string questions. Pure. */
#ifndef KR_BASE_TEXT_H
#define KR_BASE_TEXT_H

#include "base/base.h"

/*
 * Copies n bytes to out (always terminated, cut at out_size - 1) with every byte that could steer a terminal shown
 * as \xNN: C0 but tab, DEL, C1 (also as U+0080..U+009F), bidirectional and zero-width characters, invalid UTF-8.
 * A newline becomes \n. Valid printable UTF-8 passes. Returns the number of bytes written without the end.
 */
size_t kr_text_escape(char *out, size_t out_size, const char *in, size_t n);

/*
 * Copies n bytes to out (n + 1 bytes of room, terminated; may be `in`) as valid UTF-8 without the characters that
 * kr_text_escape shows as \xNN: those are left out, and a byte that is no character becomes '?'. lines: newline and tab stay,
 * else they are left out too. Returns the number of bytes without the end, at most n.
 */
size_t kr_text_plain(char *out, const char *in, size_t n, bool lines);

bool kr_text_has_prefix(const char *s, const char *prefix);
bool kr_text_is_utf8(const char *s, size_t n);
/* An environment variable's name: [A-Za-z_][A-Za-z0-9_]* */
bool kr_text_is_env_name(const char *s);

/* Edit distance, capped: returns limit + 1 when it is larger. Names over 64 bytes count as far. */
unsigned kr_text_distance(const char *a, const char *b, unsigned limit);

/* Decimal digits only, no sign, at most max; false leaves *out alone. */
bool kr_text_to_u64(const char *s, uint64_t max, uint64_t *out);

/* The value of a hexadecimal digit; -1: it is none. */
int kr_hex_digit(char c);
/* The same of a base64 digit (RFC 4648 section 4). */
int kr_base64_digit(char c);

#endif
