/*
 * A launcher's side of kraft: the control socket, with what kraft has not read yet, and the files in the
 * session's folder, by which a kraft that comes later knows how it ended. The same on every system.
 */
#ifndef KG_CONTROL_H
#define KG_CONTROL_H

#include "guest/sys.h"

enum { KG_CONTROL_QUEUE = 8 }; /* messages that kraft has not read yet */

struct kg_control {
	int fd;     /* -1: kraft is gone, or does not read; what is told is dropped */
	int folder; /* of the session */
	struct kg_message order;
	size_t order_bytes;
	struct kg_message queue[KG_CONTROL_QUEUE];
	int queue_fd[KG_CONTROL_QUEUE];
	size_t queued;
};

/* A session without a lifeline goes on; the next kraft reads the files. */
void kg_control_drop(struct kg_control *control);
/* As many as the socket takes now. */
void kg_control_flush(struct kg_control *control);
/* Takes the descriptor (-1: none) over. Never waits: what finds no room is dropped. */
void kg_control_tell(struct kg_control *control, const struct kg_message *message, int fd);
/* Room for a message and for one that is said before it. */
bool kg_control_has_room(const struct kg_control *control);
/* Waits until kraft has read some of it; a kraft that does not is given up. */
void kg_control_wait(struct kg_control *control);
/* Reads a part of an order; true: it is whole, and one that kraft may give. What is not understood is not done. */
bool kg_control_hear(struct kg_control *control, struct kg_message *order);

void kg_control_mark_started(const struct kg_control *control);
void kg_control_write_exit(const struct kg_control *control, const struct kg_result *result);

#endif
