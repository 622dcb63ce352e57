/*
 * The judging parts of launcher and init, free of system calls, so that the same code is in the guest, in its
 * unit test and under the fuzzer: which message may come when, what a wait status means, whom a signal goes
 * to, how the blocks are read. Everything here takes bytes that another program wrote; nothing here trusts a
 * length or a number.
 */
#ifndef KG_PROTOCOL_H
#define KG_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/wire.h"

/* What has been heard from the init. All zero at the start. */
struct kg_talk {
	bool terminal, started, left, oom;
	int pieces;         /* of KG_LEFT_NAMES */
	uint32_t last_word; /* KG_EXIT, KG_EXEC_FAILED, KG_WALL or KG_LAUNCH_FAILED, which end the talk; or 0 */
	int32_t a, b;       /* of the last word */
};

/*
 * Takes one message of the init with the number of descriptors that came along. False: it may not come now or
 * has a value out of range; the talk is unchanged and the sandbox is to be ended. A descriptor is only ever
 * taken with KG_TERMINAL, once, before the command started.
 */
bool kg_talk_take(struct kg_talk *talk, const struct kg_message *message, size_t descriptors);

/* What kraft may say to the launcher: KG_SIGNAL with a signal of 1 to 64, KG_KILL. */
bool kg_order_valid(const struct kg_message *message);

/* How a session ended. */
struct kg_result {
	int code, signal;
	bool started;
};
/* killed: we ended the sandbox before it said how it ended. */
struct kg_result kg_result_of(const struct kg_talk *talk, bool killed);
enum { KG_RESULT_BYTES = 40 };
/* The text of the exit file, without a final NUL; returns its length. */
size_t kg_result_text(const struct kg_result *result, char out[KG_RESULT_BYTES]);

/*
 * The name and the state's letter in the text of a process's /proc file `stat`; the name is cut at its room
 * and terminated. False: it is none.
 */
bool kg_stat_name(const char *stat, size_t n, char name[KG_LEFT_NAME], char *state);

/* A wait status of an ended command as exit code (128 + signal) and signal. */
struct kg_message kg_exit_message(int wait_status);

/* The exit code for an exec that failed (OS-LCH-10, -11). */
int kg_exec_exit(int exec_errno);

/* Whom a signal goes to, so that the command gets it once (OS-LCH-07). group is the command's group now. */
enum { KG_TO_GROUP = 1, KG_TO_COMMAND = 2 };
unsigned kg_signal_targets(pid_t command, pid_t group);

/* Decimal, up to max, to `end` or the first other byte; *at moves behind it. False: no digit or too large. */
bool kg_number(const char **at, const char *end, uint64_t max, uint64_t *out);
/* Writes a decimal number without a NUL; returns its length, 20 at most. */
size_t kg_decimal(uint64_t value, char *out);

/* The verify block. */
struct kg_verify {
	uint64_t device, inode; /* is_elsewhere: type and whether it holds something, see wire.h */
	bool read_only, is_elsewhere;
	const char *path;
};
/* Reads the entry at *at: 1 entry, 0 end, -1 malformed. */
int kg_verify_next(const char **at, const char *end, struct kg_verify *out);

/* The environment block: how many variables, or -1 when it is malformed. */
long kg_env_count(const char *block, size_t bytes);

/* The first variable of that name, as "NAME=value", or NULL. */
const char *kg_env_find(char *const *variables, const char *name);

/*
 * The variables of `under` and over them those of a block that kg_env_count has counted; what has no name is
 * dropped. Returns how many; out has room for both and the NULL behind them.
 */
size_t kg_env_merge(char *const *under, const char *block, size_t bytes, const char **out);

/*
 * The next place where `name` may be along a PATH: *at is where to go on, NULL behind the last one. False:
 * there is none. Elements that are no absolute paths, or too long, are passed over.
 */
enum { KG_PATH_ROOM = 4096 };
bool kg_path_next(const char **at, const char *name, char out[KG_PATH_ROOM]);

/*
 * A session's proxy on macOS, from the URL in its variables: "http://NAME:SECRET@127.0.0.1:PORT". False: it is none of this
 * form. basic is what goes behind "Proxy-Authorization: Basic ".
 */
enum { KG_PROXY_NAME = 96, KG_BASIC_ROOM = KG_PROXY_NAME / 3 * 4 + 1 };
struct kg_proxy {
	uint16_t port;
	char basic[KG_BASIC_ROOM];
};
bool kg_proxy_parse(const char *url, struct kg_proxy *out);

/* The count of `oom_kill` in the text of a cgroup's memory.events or memory.oom_control; 0: it says none. */
uint64_t kg_oom_kills(const char *text, size_t n);

/* The container's CLI, as long as the init has not connected. Times: CLOCK_MONOTONIC in ms. */
struct kg_client {
	bool ended;
	int code; /* 128 + signal when one ended it */
	int64_t started_at, ended_at;
};
enum {
	KG_CLIENT_MS = 900000, /* a first start copies the whole image where users are mapped (rootless podman) */
	KG_CONNECT_MS = 15000, /* it said that the container runs: process 1 has nothing to do but connect */
};
/* How long the init may still take, in ms; 0: no container comes any more. */
int kg_client_patience(const struct kg_client *client, int64_t now);

/*
 * Copies bubblewrap's arguments with `--bind HOST DEST` written as `--perms 1777 --size SIZE --tmpfs DEST`.
 * Returns the new length; 0 when the three arguments are not there exactly once. out has room for bytes +
 * KG_UNCAP_ROOM.
 */
enum { KG_UNCAP_ROOM = 64 };
size_t kg_args_uncap(
	const char *args, size_t bytes, const char *host, const char *dest, uint64_t size, char *out);

#endif
