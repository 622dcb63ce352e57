/*
 * Calls that this tree does not make: each has a bounded or error-reporting counterpart.
 * Included by every host source through base/base.h; a use fails to compile.
 */
#ifndef KR_BASE_BANNED_H
#define KR_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h> /* it declares mktemp on macOS */

/* GCC warns of a poisoned name only when it is used after this line, so the headers above come first. */
/* With _FORTIFY_SOURCE and clang glibc and macOS make these macros, and a macro cannot be poisoned. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gets system popen tmpnam mktemp

#endif
