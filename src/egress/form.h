/*
 * The form of a worker's call: application/x-www-form-urlencoded into a struct kr_call. Pure. It is the only
 * reader of these bytes; what it makes passes kr_call_check.
 */
#ifndef KR_EGRESS_FORM_H
#define KR_EGRESS_FORM_H

#include "egress/call.h"
#include "egress/head.h"

/* A call without fields, for a refusal. NULL: no memory. route: any n bytes; cut to KR_CALL_ROUTE_MAX and
 * made printable. */
struct kr_call *kr_call_new(enum kr_verb verb, const char *route, size_t n);

/*
 * form[0, n) (NULL for none, else at most KR_CALL_FORM_BYTES) is used up. NULL: *why is the reason, one line,
 * or NULL when memory is out. An unknown field, one that is there twice, a verb's field that is missing, a
 * value that is not what the field takes, a bent escape, a NUL and what is no UTF-8 are each refused.
 */
struct kr_call *kr_form_decode(enum kr_verb verb, char *form, size_t n, const char **why);

/* The values of exactly these two fields, in this order, in place. False: the form is another. */
bool kr_form_pair(char *form, size_t n, const char *const names[2], struct kr_bytes out[2]);

#endif
