/* Inside the room config/ only: what the two halves of a kit's reading say to each other (kit_decode.c, kit.c). */
#ifndef KR_CONFIG_KIT_RECORDS_H
#define KR_CONFIG_KIT_RECORDS_H

#include "config/kit.h"

/*
 * The letters of the records. A phase is one digit of enum kr_phase. RULE is followed by its HEADER and FORMAT, and
 * belongs, like VARIABLE and PHASE, to the SERVICE before it.
 */
enum {
	KR_REC_ALLOW = 'a', /* phase, host */
	KR_REC_DENY = 'd',
	KR_REC_CPU = 'c',
	KR_REC_MEMORY = 'm', /* bytes */
	KR_REC_SERVICE = 's',
	KR_REC_VARIABLE = 'v',
	KR_REC_PHASE = 'p',
	KR_REC_RULE = 'r', /* domain */
	KR_REC_HEADER = 'h',
	KR_REC_FORMAT = 'f',
	KR_REC_SKIPPED = 'k',
	KR_REC_IGNORED = 'g',
};

#define KR_KIT_NO_WAY "name a kit that kraft can run, or write the sandbox yourself with 'kind: docker'"

#endif
