/*
 * The pseudo-terminal inside. Made from the sandbox's own /dev/ptmx; the master leaves by the pipe and is
 * closed here, so the command never holds the person's terminal nor a master. The init has an opening of its
 * own of the command's side, non-blocking, because the command can stop its output.
 */
#ifndef KG_TERMINAL_H
#define KG_TERMINAL_H

#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/types.h>

struct kg_terminal {
	int tty, command_tty; /* -1: the command has no terminal */
	struct winsize size;  /* zero: left as the kernel makes it */
	bool keep_stderr;     /* the command's stderr stays what it is: the person sent it elsewhere */
};

/* ROWS,COLUMNS */
bool kg_terminal_parse_size(const char *text, struct winsize *out);
/* Makes it the controlling terminal of our session. Returns the master, or -errno. */
int kg_terminal_open(struct kg_terminal *terminal);
/* In the command's process, a group of its own: puts it in the foreground and on 0, 1 and 2. */
void kg_terminal_give(const struct kg_terminal *terminal);
/* In the init, after the command's process was made. */
void kg_terminal_given(struct kg_terminal *terminal);
/* Makes a group the foreground again. */
void kg_terminal_foreground(const struct kg_terminal *terminal, pid_t group);

#endif
