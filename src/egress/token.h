/*
 * The token of a session's proxy that listens on the host's own loopback (MAC-06), where every user of the machine can connect:
 * who does not say it is answered 407, whatever was asked. Pure.
 *
 *     Proxy-Authorization: Basic base64(NAME ":" TOKEN)
 *
 * once. The scheme is not case-sensitive, one or more blanks follow it. The name is at most KR_TOKEN_NAME bytes and means
 * nothing: some clients ask for one, others have their own. All else is as it was made: the alphabet of RFC 4648 section 4 with
 * its padding and no bit that is thrown away, the digits in lower case. Two such fields are none, even when both are right.
 */
#ifndef KR_EGRESS_TOKEN_H
#define KR_EGRESS_TOKEN_H

#include "egress/head.h"

enum {
	KR_EGRESS_TOKEN = 64, /* hexadecimal digits: 256 bits of the system's randomness */
	KR_TOKEN_NAME = 255,
};

/* Of a request whose fields were read, as far as they could be. The time that it takes does not depend on the token. */
bool kr_token_is_said(const struct kr_head *head, const char token[KR_EGRESS_TOKEN]);

#endif
