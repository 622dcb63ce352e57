#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "guest/sys.h"
#include "guest/terminal.h"

bool
kg_terminal_parse_size(const char *text, struct winsize *out)
{
	const char *end = text + strlen(text);
	uint64_t rows, columns;

	if (!kg_number(&text, end, 65535, &rows) || text == end || *text++ != ',' ||
		!kg_number(&text, end, 65535, &columns) || text != end)
		return false;
	out->ws_row = (unsigned short)rows;
	out->ws_col = (unsigned short)columns;
	return true;
}

/* Text is UTF-8 on every system kraft runs on; without this an erased character leaves bytes behind. */
static void
set_up(const struct kg_terminal *terminal)
{
	struct termios modes;

	if (tcgetattr(terminal->tty, &modes) == 0) {
		modes.c_iflag |= IUTF8;
		(void)tcsetattr(terminal->tty, TCSANOW, &modes); /* a comfort; kraft sets all modes anyway */
	}
	if (terminal->size.ws_row)
		(void)ioctl(terminal->tty, TIOCSWINSZ, &terminal->size); /* as above */
}

static int
open_sides(struct kg_terminal *terminal, int master)
{
	terminal->tty = kg_open_slave(master, O_NONBLOCK);
	terminal->command_tty = kg_open_slave(master, 0);
	if (terminal->tty < 0 || terminal->command_tty < 0)
		return -1;
	return ioctl(terminal->tty, TIOCSCTTY, 0);
}

int
kg_terminal_open(struct kg_terminal *terminal)
{
	int master = kg_open_master();

	if (master < 0)
		return -errno;
	if (open_sides(terminal, master) < 0) {
		int failed = errno;

		close(master);
		return -failed;
	}
	set_up(terminal);
	return master;
}

void
kg_terminal_give(const struct kg_terminal *terminal)
{
	if (terminal->command_tty < 0)
		return;
	/* SIGTTOU is still blocked here, so a background group may do this. */
	kg_terminal_foreground(terminal, getpid());
	for (int fd = 0; fd < (terminal->keep_stderr ? 2 : 3); fd++)
		(void)dup2(terminal->command_tty, fd); /* small numbers that exist */
}

void
kg_terminal_given(struct kg_terminal *terminal)
{
	if (terminal->command_tty >= 0)
		close(terminal->command_tty);
	terminal->command_tty = -1;
}

void
kg_terminal_foreground(const struct kg_terminal *terminal, pid_t group)
{
	if (terminal->tty >= 0)
		(void)ioctl(
			terminal->tty, TIOCSPGRP, &group); /* the command may have closed the session's terminal */
}
