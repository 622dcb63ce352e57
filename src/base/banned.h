/*
 * Calls that this tree does not make: each has a bounded or error-reporting counterpart.
 * Included by every host source through base/base.h; a use fails to compile.
 */
#ifndef KR_BASE_BANNED_H
#define KR_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GCC warns of a poisoned name only when it is used after this line, so the headers above come first. */
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gets system popen tmpnam mktemp

#endif
