/* The part of powerless.c that each system does in its own way. */
#ifndef KR_OS_POWER_H
#define KR_OS_POWER_H

#include "base/base.h"

/* What a kind of child keeps beside its memory and its end: nothing, or what its descriptors 0 and 1 are open on. */
enum kr_power { KR_POWER_PARSE, KR_POWER_PASS };

/* Takes the rest away from the calling process, for good. Its descriptors and limits are what they are to be already. */
bool kr_power_drop(enum kr_power left);

#endif
