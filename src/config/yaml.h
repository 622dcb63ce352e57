/*
 * A YAML document as a small tree with marks, for the configuration files.
 *
 * What is read: YAML 1.2's core of scalars, lists and mappings, in one UTF-8 document. What is refused by
 * name, with its place: anchors, aliases, tags, merge keys, directives, a second document, duplicate keys
 * (both lines are told), keys that are not text, and more than the limits of config.h. Nobody needs those in
 * these files, and they are where surprises live.
 *
 * Ownership: nodes live in the arena. A struct kr_yaml borrows file and bytes, which must outlive it.
 */
#ifndef KR_CONFIG_YAML_H
#define KR_CONFIG_YAML_H

#include "config/config.h"

struct kr_yaml_mark {
	unsigned line, column; /* from 1; the column counts characters */
	size_t index;          /* characters from the start of the document's text */
};

enum kr_yaml_type { KR_YAML_SCALAR, KR_YAML_LIST, KR_YAML_MAPPING };

struct kr_yaml_node {
	enum kr_yaml_type type;
	bool plain;       /* a scalar without quotes, which may be a number, a boolean or null */
	bool flow;        /* a list or mapping in brackets or braces */
	const char *text; /* a scalar's value; "" for an empty one; never holds a NUL */
	struct kr_yaml_mark start, end;
	struct kr_yaml_node *child; /* the first item, or the first value of a mapping */
	struct kr_yaml_node *last;
	struct kr_yaml_node *next; /* the next item or value */
	struct kr_yaml_node *key;  /* of a mapping's value: the scalar that names it */
	size_t count;              /* of children */
};

struct kr_yaml {
	const char *file, *bytes;
	size_t n;
	size_t bom;                /* bytes of a byte order mark at the start: 0 or 3 */
	struct kr_yaml_node *root; /* NULL: the document is empty */
};

/* What a node is in YAML 1.2's core schema. */
enum kr_yaml_value {
	KR_VALUE_STRING,
	KR_VALUE_NULL,
	KR_VALUE_BOOL,
	KR_VALUE_INTEGER,
	KR_VALUE_FLOAT,
	KR_VALUE_LIST,
	KR_VALUE_MAPPING,
};
enum kr_yaml_value kr_yaml_value(const struct kr_yaml_node *node);
const char *kr_yaml_value_words(enum kr_yaml_value value); /* "a string", "null", "a list" ... */

int kr_yaml_parse(struct kr_arena *arena, const char *file, const char *bytes, size_t n, struct kr_yaml *out,
	struct kr_error *err);

/* The value of `name` in a mapping; NULL when it has none or is no mapping. */
struct kr_yaml_node *kr_yaml_get(const struct kr_yaml_node *mapping, const char *name);

/* Adds a text as a scalar that reads as exactly this string anywhere in a file: plain where that is safe,
 * else in double quotes. The text must be UTF-8. */
void kr_yaml_add_string(struct kr_buf *out, const char *text);

/* True when both trees say the same, whatever their layout and quotes. */
bool kr_yaml_same(const struct kr_yaml_node *a, const struct kr_yaml_node *b);

/* The byte in doc->bytes that a mark stands at. */
size_t kr_yaml_offset(const struct kr_yaml *doc, const struct kr_yaml_mark *mark);

/* Fills err->place with the mark, the line and the caret. */
void kr_yaml_place(const struct kr_yaml *doc, const struct kr_yaml_mark *mark, struct kr_error *err);

#endif
