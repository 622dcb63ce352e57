/* What still runs in the sandbox when its command has ended. */
#ifndef KG_LEFT_H
#define KG_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/wire.h"

struct kg_left {
	int32_t count;
	char names[KG_LEFT_BYTES]; /* as they are told (wire.h) */
	size_t bytes;              /* of names */
};

/* For process 1: whether any other process is there, also one that is no child of ours and one that nobody has reaped. */
bool kg_left_any(void);
/* Which they are, without those that have ended. `left` is all zero at first. */
void kg_left_look(struct kg_left *left);

#endif
