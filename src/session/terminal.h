/*
 * Our own terminal while a session uses it: raw, so that every key reaches the line discipline inside, and as
 * it was before on every way out. Exists once per process, because the handler for our own crash must find
 * it.
 */
#ifndef KR_SESSION_TERMINAL_H
#define KR_SESSION_TERMINAL_H

#include <sys/ioctl.h>
#include <termios.h>

#include "base/error.h"

struct kr_terminal {
	int fd; /* borrowed; -1: no terminal */
	bool raw;
	struct termios saved, modes; /* modes: the raw ones */
};

/* Remembers the modes. KR_E_SYSTEM when fd is no terminal. */
int kr_terminal_init(struct kr_terminal *terminal, int fd, struct kr_error *err);
/* True when we may read it and change its modes: our process group is the one in front. */
bool kr_terminal_is_ours(const struct kr_terminal *terminal);
/* Raw, if it is ours. The modes are read again first: a shell may have changed them while we were stopped. */
void kr_terminal_enter(struct kr_terminal *terminal);
/* Sets the raw modes once more, if we are raw: somebody may have changed them while we were stopped from
 * outside. */
void kr_terminal_again(struct kr_terminal *terminal);
/* Back to the saved modes; with flush, what was typed or answered and not read yet is thrown away. */
void kr_terminal_leave(struct kr_terminal *terminal, bool flush);
/* Reads and throws away what the terminal answers, until it is silent for a moment; a fifth of a second at
 * most. */
void kr_terminal_drain(const struct kr_terminal *terminal);
/* The window's size; 24 by 80 when it has none. */
void kr_terminal_size(const struct kr_terminal *terminal, struct winsize *out);

#endif
