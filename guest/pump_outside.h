/* The outside end of a pump: `kraft-guest pump`, see wire.h and pump_outside.c. */
#ifndef KG_PUMP_OUTSIDE_H
#define KG_PUMP_OUTSIDE_H

#include <stdbool.h>
#include <sys/ioctl.h>

#include "guest/wire.h"

/* What the confined process asks its parent for, since it can connect to nothing: one byte, and the answer is a message
 * of this type with a = errno, or a = 0 and the connected socket. */
enum kg_wish { KG_WISH_LAUNCHER = 'i', KG_WISH_CHANNEL = 's' };

struct kg_outside {
	int in, out;  /* of the container's client: its stdout, its stdin */
	int helper;   /* to the parent */
	int errors;   /* our own opening of stderr, for the command's */
	bool terminal;
	struct winsize size;
};

/* The confined process; never returns. */
__attribute__((noreturn)) void kg_outside_serve(const struct kg_outside *outside);

#endif
