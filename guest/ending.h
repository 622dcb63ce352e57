/* The end of a session on macOS: looks and signals, until nobody of it is left or the time is over. See family.h. */
#ifndef KG_ENDING_H
#define KG_ENDING_H

#include "guest/processes.h"

enum { KG_ENDING_MS = 2000, KG_TABLE_MOST = 32768 };

struct kg_end {
	struct kg_family family;
	struct kg_mark mark;
	struct kg_process *table[2]; /* of KG_TABLE_MOST */
	size_t turn, count;          /* table[turn]: the last look */
	struct kg_look look;
	bool (*reap)(void *context); /* takes children that ended; before each look */
	void *context;
};

/* Us, and who started us; false: errno. */
bool kg_end_init(struct kg_end *end);
/* How many of the session run; -errno. */
long kg_end_look(struct kg_end *end);
/* Ends all of it. Returns how many did not end, which stand in table[turn] as ours; -errno: it could not look. */
long kg_end_all(struct kg_end *end);

/* The role `end`. */
int kg_end_main(int argc, char **argv);

#endif
