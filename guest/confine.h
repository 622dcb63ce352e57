/* The walls around the outside end of a pump, which takes bytes that a worker may have written. */
#ifndef KG_CONFINE_H
#define KG_CONFINE_H

/*
 * No new privileges, closed to debuggers, no process and no core file of its own, and a filter of system calls that
 * leaves what its loop needs: descriptors that it has are read, written and closed, and pairs of sockets are made. No
 * file is opened, nothing is connected to, no memory is mapped. 0 or errno; then it is not to go on.
 */
int kg_confine(void);

#endif
