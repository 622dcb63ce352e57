/*
 * struct kr_error: what failed, where, and what to do next.
 *
 * Shape: fixed size, no pointers, so that it crosses fork and pipes and can be stored. All zero means no error.
 * Ownership: the caller's memory; always the last parameter of a function that can fail. It may be NULL where the
 * caller only wants the return value. Functions return 0 or -1 (or a pointer or NULL) and leave outputs untouched
 * on failure.
 * Wording: lower case, what failed first, the subject in single quotes, no full stop. The hint is the next step.
 */
#ifndef KR_BASE_ERROR_H
#define KR_BASE_ERROR_H

#include "base/base.h"
#include "base/errors.h"

/*
 * The exit statuses of the program: name, number, what it means. `kraft help exit-codes` and kraft(1) say the
 * same. What a worker's command ended with is not among them: `kraft run` hands that on as it is.
 */
#define KR_EXITS(X)                                                                                    \
	X(DONE, 0, "done; a list with nothing in it is done too")                                          \
	X(FAILED, 1, "failed, or the answer to what was asked is no")                                      \
	X(USAGE, 2, "the command line is wrong: an unknown command, option or value")                      \
	X(CONFIG, 3, "a configuration file is refused, or lacks what is needed")                           \
	X(LOGIN, 4, "a login or a token is missing")                                                       \
	X(REFUSED, 5, "refused by a policy, a gate, or another rule of kraft's")                           \
	X(SERVER, 6, "the server does not run, or cannot be reached")                                      \
	X(NOT_FOUND, 7, "what was named does not exist")                                                   \
	X(TIMEOUT, 8, "timed out while it waited")                                                         \
	X(LAUNCH, 125, "only 'kraft run' and 'kraft shell': kraft refused or failed, whatever the reason") \
	X(NOT_EXECUTABLE, 126, "only 'kraft run' and 'kraft shell': the command is not executable")        \
	X(NO_COMMAND, 127, "only 'kraft run' and 'kraft shell': the command was not found inside")         \
	X(INTERRUPTED, 130, "ended by SIGINT, as Ctrl-C sends it")                                         \
	X(TERMINATED, 143, "ended by SIGTERM")

enum kr_exit {
#define X(name, status, meaning) KR_EXIT_##name = (status),
	KR_EXITS(X)
#undef X
};

/* A class: code, name in --json, exit status when it is reported (a command that launches: kr_error_launch_status) */
#define KR_ERROR_CODES(X)                                                                               \
	X(NONE, "none", DONE)                                                                               \
	X(USAGE, "usage", USAGE)              /* the command line is wrong */                               \
	X(CONFIG, "config", CONFIG)           /* a configuration file is wrong; has a place */              \
	X(LOGIN, "login", LOGIN)              /* a login or a token is missing */                           \
	X(REFUSED, "refused", REFUSED)        /* a rule refuses it: protected path, command lookup, gate */ \
	X(SERVER, "server", SERVER)           /* the server does not run, or cannot be reached */           \
	X(NOT_FOUND, "not_found", NOT_FOUND)  /* what the person named does not exist */                    \
	X(TIMEOUT, "timeout", TIMEOUT)        /* what was waited for did not come in time */                \
	X(WALL, "wall", FAILED)               /* a wall that was asked for cannot be raised */              \
	X(UNSUPPORTED, "unsupported", FAILED) /* not built into this kraft, or not on this system */        \
	X(BUSY, "busy", FAILED)               /* another session holds it */                                \
	X(LIMIT, "limit", FAILED)             /* a named limit was passed */                                \
	X(GIT, "git", FAILED)                 /* a git run failed */                                        \
	X(SYSTEM, "system", FAILED)           /* a system call failed; sys_errno is set */

enum kr_error_code {
#define X(code, name, status) KR_E_##code,
	KR_ERROR_CODES(X)
#undef X
	KR_E_COUNT,
	/* What kr_fail is given for one with a number of its own: its class, and above it the number. No error's code is one of these. */
#define X(name, number, class, title, text, example) KR_E_##name = KR_E_##class | (number) << 8,
	KR_ERRORS(X)
#undef X
};

/* Where in a configuration file: line and column count from 1; line 0 means no place. */
struct kr_place {
	char path[512];
	unsigned line, column;
	char excerpt[256]; /* the line itself, cut to fit, control bytes shown as '?'; "" when unknown */
	unsigned caret;    /* 0-based offset of the caret in excerpt */
};

struct kr_error {
	enum kr_error_code code; /* its class */
	unsigned number;         /* base/errors.h; 0: its message says all */
	int sys_errno;        /* 0 when no system call failed */
	const char *file;     /* our source file and line, for --debug */
	int line;
	char message[768];
	char hint[512];       /* "" when there is no next step */
	struct kr_place place;
};

/* All three fill *err (NULL is allowed) and return -1. kr_fail_errno appends strerror(sys_errno). */
#define kr_fail(err, code, ...) kr_failed(kr_fail_at((err), (code), 0, __FILE__, __LINE__, __VA_ARGS__))
#define kr_fail_errno(err, code, sys_errno, ...)                                                   \
	kr_failed(kr_fail_at((err), (code), (sys_errno), __FILE__, __LINE__, __VA_ARGS__))
int kr_fail_at(struct kr_error *err, enum kr_error_code code, int sys_errno, const char *file,
	int line, const char *fmt, ...) KR_PRINTF(6, 7);
/* Lets a compiler see, from any file, that a failure is never taken for a success. */
static inline int
kr_failed(int minus_one)
{
	(void)minus_one;
	return -1;
}

/* Sets the hint of an error that is already filled; returns -1, so `return kr_hint(err, ...)` reads well. */
int kr_hint(struct kr_error *err, const char *fmt, ...) KR_PRINTF(2, 3);

/* Puts "context: " in front of the message; returns -1. */
int kr_wrap(struct kr_error *err, const char *fmt, ...) KR_PRINTF(2, 3);
#define kr_hint(...) kr_failed(kr_hint(__VA_ARGS__))
#define kr_wrap(...) kr_failed(kr_wrap(__VA_ARGS__))

/* Gives an error that is already filled its number; returns -1. */
int kr_number(struct kr_error *err, enum kr_error_code code);

const char *kr_error_name(enum kr_error_code code);
enum { KR_ERROR_NUMBER_TEXT = 8 };
void kr_error_number_text(unsigned number, char out[KR_ERROR_NUMBER_TEXT]); /* "E0301" */
int kr_error_exit_status(enum kr_error_code code);
/* The same for a command that launches another: there every status but usage could be taken for the command's
 * own. */
int kr_error_launch_status(enum kr_error_code code);

/*
 * Prints the error for a person on a stream:
 *     kraft: /path/repos.yaml:3:7: unknown key 'exposee'
 *         exposee: [~/x]
 *         ^
 *     hint: did you mean 'expose'?
 *     see: kraft help E0101
 * Bytes that could steer a terminal are escaped. Colour when `colour` is true.
 */
void kr_error_print(const struct kr_error *err, FILE *stream, bool colour);

#endif
