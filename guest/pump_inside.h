/*
 * The inside end of a pump: a thread of process 1 in a container that cannot connect to the host. It stands
 * where the launcher and kraft's proxy stand elsewhere, so the init does not know the difference.
 *
 * A thread and no process: the worker has our user's number, and could end a process; process 1 it cannot. It
 * lives as long as process 1 and ends it when its input ends: the container's client is gone then.
 */
#ifndef KG_PUMP_INSIDE_H
#define KG_PUMP_INSIDE_H

#include <stdbool.h>

struct kg_inside {
	int in, out;         /* our own stdin and stdout as they were */
	int pipe, pipe_far;  /* the init pipe: the init's end, the thread's */
	int route, route_far; /* -1: this session has no way out */
};

/* Takes our stdin and stdout away, which become /dev/null, and makes the sockets. 0 or errno. */
int kg_inside_open(struct kg_inside *inside, bool has_route);
/* Starts the thread, which has every signal blocked as we have. 0 or errno. */
int kg_inside_start(const struct kg_inside *inside, bool terminal);
/* Ends process 1 with this code when all that was said and written has arrived. What still runs is ended first. */
__attribute__((noreturn)) void kg_inside_leave(int pipe, int code);

#endif
