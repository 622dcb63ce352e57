/*
 * What launcher, init and shim share: words on stderr, options, descriptors. No stdio, no heap. What the systems
 * do differently is in sys_linux.c or sys_darwin.c.
 */
#ifndef KG_SYS_H
#define KG_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/protocol.h"

#define KG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* For send(2). macOS learned of the flag late; who sends ignores the signal there. */
#ifdef __APPLE__
#define KG_NO_SIGNAL 0
#else
#define KG_NO_SIGNAL MSG_NOSIGNAL
#endif

int kg_launch_main(int argc, char **argv, char **environment);
int kg_init_main(int argc, char **argv, char **environment);
int kg_pump_main(int argc, char **argv, char **environment);
int kg_shim_main(int argc, char **argv);

/* One line on a descriptor in one write: the parts up to NULL, "kraft: " before them, a line feed behind. */
void kg_say(int fd, ...) __attribute__((sentinel));
/* The same for the command's stderr, which may not be read: it is not waited for for long. */
void kg_hint(int fd, const char *name, const char *text);
#define KG_HINT_NOT_FOUND \
	"a command was not found inside the os sandbox; add its directory to the sandbox's expose list"
const char *kg_errno_text(int sys_errno);

/* The command line while it is read. An option's value is the next argument. */
struct kg_options {
	char **argv;
	int argc, at;
};
/* An option with how it is taken; take returns false when the value is no good. */
struct kg_option {
	const char *name;
	bool has_value;
	bool (*take)(void *context, const char *value);
};
/* The usual ways to take one, into a field of the struct that context is. A path is absolute; a flag has no value. */
#define KG_TAKE(type, name, statement)                        \
	static bool take_##name(void *context, const char *value) \
	{                                                         \
		type *taken = context;                                \
		statement                                             \
	}
#define KG_TAKE_FD(type, name, field) \
	KG_TAKE(type, name, taken->field = kg_parse_fd(value); return taken->field >= 0;)
#define KG_TAKE_TEXT(type, name, field) KG_TAKE(type, name, taken->field = value; return true;)
#define KG_TAKE_PATH(type, name, field) KG_TAKE(type, name, taken->field = value; return value[0] == '/';)
#define KG_TAKE_FLAG(type, name, field) KG_TAKE(type, name, (void)value; taken->field = true; return true;)
/* Reads options up to "--" and leaves at behind it; on failure false, and *culprit is the argument. */
bool kg_options_read(
	struct kg_options *options, const struct kg_option *table, size_t n, void *context, const char **culprit);

/* A descriptor's number above 2, or -1. */
int kg_parse_fd(const char *text);

/* A connection to the unix stream socket at this path, or -errno; flags as for socket(2), beside SOCK_CLOEXEC. */
int kg_connect_unix(const char *path, int flags);

/* In place; false: one is there twice. */
bool kg_sort(int *v, size_t n);
/* Closes every descriptor above 2 that is not in keep (sorted in place, no duplicates, no negatives). */
bool kg_close_others(int *keep, size_t n);

/* All bytes, or false (end of file, error). */
bool kg_read_all(int fd, void *out, size_t n);
/* All bytes of a small text to a file that exists; 0 or errno. */
int kg_write_file(const char *path, const char *text, size_t n);

/* Monotonic. */
int64_t kg_now_ms(void);

/* Anonymous private memory, or NULL; whole pages are given back by kg_unmap. */
void *kg_map(size_t bytes);
void kg_unmap(void *memory, size_t bytes);

/* 0 to 2 exist in any case, so that no descriptor of ours ever becomes somebody's standard stream. */
void kg_fill_streams(void);
/* What a program is to be started with: no signal ignored, none blocked. Only between fork and exec. */
void kg_default_signals(void);

/* A pseudo-terminal, and one more opening of the command's side of it, beside O_RDWR | O_NOCTTY; -1 with errno. */
int kg_open_master(void);
int kg_open_slave(int master, int flags);

/*
 * As execvpe(3), for the same errors: a name without '/' is looked up along the PATH of the variables that it
 * gets, but in absolute directories only; a file without `#!` is a shell script. Takes the place before argv.
 * Returns errno.
 */
int kg_exec(const char *file, char **argv, char **variables);

/* Bytes, few enough to go in one piece, with descriptors. Flags as for sendmsg. 0 or errno. */
enum { KG_DESCRIPTORS = 3 }; /* at most */
int kg_send_bytes(int fd, const void *bytes, size_t n, const int *descriptors, size_t count, int flags);
/* As recvmsg(2), without waiting: a descriptor, close-on-exec, or -1 in each place of fds; what came beyond them is closed. (Linux.) */
ssize_t kg_receive(int fd, void *out, size_t most, int *fds, size_t count);
/* With a descriptor or -1. */
int kg_send(int fd, const struct kg_message *message, int descriptor, int flags);

#endif
