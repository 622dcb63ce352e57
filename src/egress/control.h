/*
 * What kraft-egress and kraft say to each other: the process that parses what a worker writes and has no power, and the
 * one that decides and dials. A stream socket pair; frames of fixed size in host byte order (both ends are the same
 * machine and the same build), each way its own. A connected socket rides on the first byte of its answer.
 *
 *     kraft-egress -> kraft   struct kr_ask       may this session reach host:port; and if so, give me the socket
 *                                                 or, with KR_ASK_CALL: the worker calls kraft; a struct kr_call follows
 *                                                 or, with KR_ASK_STRANGERS: so many did not know the token, no answer
 *                                                 or, with KR_ASK_TOLD: what became of a host whose secrets are managed, no answer
 *     kraft -> kraft-egress   struct kr_answer    one for each ask, in any order; with KR_ANSWER_CALL a body follows
 *
 * Before all of that, to one that listens on loopback (egress/token.h): the KR_EGRESS_TOKEN digits of the token.
 *
 * What follows a frame is so many bytes as the frame's `bytes` says, bounded before anything is allocated, and no descriptor
 * may ride on it. Long things go this way and not in a sealed memfd, because kraft-egress can then do with recvmsg and
 * sendmsg alone: no call to map, read or unseal a file has to be in its filter.
 *
 * kraft believes nothing that it is asked: kr_ask_check, then the policy; kr_call_check, then whose call it is. A frame that
 * fails the check, more than KR_ASKS_MAX asks without an answer, or more than KR_CALLS_MAX calls among them, ends that
 * kraft-egress.
 */
#ifndef KR_EGRESS_CONTROL_H
#define KR_EGRESS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "egress/call.h"
#include "egress/limits.h"
#include "egress/secret.h"
#include "policy/policy.h"

enum kr_ask_type {
	KR_ASK_CONNECT = 1, /* a tunnel */
	KR_ASK_HTTP,        /* one plain request in absolute form */
	KR_ASK_CALL,        /* to kraft itself: port 0, host "" */
	KR_ASK_STRANGERS,   /* no ask: `id` connections were refused for want of the token since the last such frame; all else 0 */
	KR_ASK_TOLD,        /* no ask: rule `id` (its place in what kraft handed over) and `bytes`, an enum kr_told; host: the name that
	                     * a client's hello gave, else ""; all else 0 */
	KR_ASK_TYPE_END
};

struct kr_ask {
	uint32_t type;
	uint32_t id;   /* the asker's; comes back in the answer */
	uint32_t port; /* 1 to 65535 */
	uint32_t client_port; /* on loopback: of who asks, at its end, 1 to 65535; else 0 */
	char host[KR_HOST_MAX + 3]; /* as kr_target_parse has it in `host`: canonical, no brackets; rest of the field 0 */
	uint32_t bytes; /* with KR_ASK_CALL: of the struct kr_call that follows; with KR_ASK_TOLD: an enum kr_told; else 0 */
};

/*
 * Why a connection to a host whose secrets are managed (egress/managed.h) came to nothing, in words about the rule's host.
 */
#define KR_TOLDS(X)                                                                                                          \
	X(EARLY, "the client sent something before the tunnel was there, so its TLS cannot end here")                              \
	X(NO_NAME, "the client's TLS hello names no host (SNI); it must name the host of its CONNECT")                             \
	X(BAD_NAME, "the client's TLS hello names (SNI) what is no host; it must name the host of its CONNECT")                    \
	X(OTHER_NAME, "the client's TLS hello names another host (SNI); it must name the host of its CONNECT")                     \
	X(PROTOCOL, "the client's TLS hello offers no 'http/1.1' (ALPN): HTTP/2, and gRPC with it, is not spoken to a host whose "   \
				"credentials are managed")                                                                                       \
	X(CLIENT, "TLS with the client failed: it must speak TLS 1.2 or newer and trust the session's certificate authority, "       \
			  "which is in the files that SSL_CERT_FILE and its like name")                                                      \
	X(PLAIN, "credentials are injected only over TLS: ask for 'https://'")                                                     \
	X(CERTIFICATE, "the host's certificate cannot be verified, so it was sent nothing")                                        \
	X(SERVER, "TLS with the host failed, so it was sent nothing")
enum kr_told {
	KR_TOLD_ECHO = 1, /* the host answered with the rule's secret, and was cut off before it */
#define X(told, words) KR_TOLD_##told,
	KR_TOLDS(X)
#undef X
	KR_TOLD_HEAD = 64, /* from here on: + enum kr_secret_reason (egress/secret.h) */
	KR_TOLD_END = KR_TOLD_HEAD + KR_SECRET_END
};

enum kr_answer_type {
	KR_ANSWER_DIRECT = 1, /* the socket is connected to the host itself, and never blocks */
	KR_ANSWER_UPSTREAM,   /* the socket is connected to the person's own proxy, likewise; text: the value of
	                       * Proxy-Authorization for it, "" for none */
	KR_ANSWER_REFUSED,    /* by the policy: 403; text: the reason, one line, printable ASCII, no "kraft: " */
	KR_ANSWER_FAILED,     /* allowed, but no connection: text as above; status 502, 503 or 504 */
	KR_ANSWER_CALL,       /* to a call that is not refused: status 200 to 599, text "" */
	KR_ANSWER_TYPE_END
};

enum { KR_ANSWER_TEXT = 2040 };

struct kr_answer {
	uint32_t type;
	uint32_t id;
	uint32_t status; /* of the refusal or failure; 0 with a socket */
	uint32_t zero;   /* must be 0 */
	char text[KR_ANSWER_TEXT]; /* NUL-terminated */
	int64_t next;   /* with KR_ANSWER_CALL: as in struct kr_call_answer; else 0 */
	uint32_t bytes; /* with KR_ANSWER_CALL: of the body that follows, at most KR_CALL_ANSWER_BYTES; else 0 */
	uint32_t zero2; /* must be 0 */
};

/* NULL: it is none that is told of in words; those of a head are kr_secret_words'. */
const char *kr_told_words(unsigned told);

/* Pure; every field as described above. For an ask the target is filled in, ready for kr_host_decide; for all else it is left. */
bool kr_ask_check(const struct kr_ask *ask, struct kr_target *out);
bool kr_answer_check(const struct kr_answer *answer, bool has_fd);

/* A frame on its way in, byte by byte; `fd` is what rode on it, -1 for none, the reader's to close or take. */
struct kr_frame {
	void *bytes;    /* of size `size` */
	uint32_t size, used;
	int fd;
};
enum kr_frame_state {
	KR_FRAME_MORE, /* nothing more to read now */
	KR_FRAME_DONE, /* whole; set used to 0 (and take fd) before the next */
	KR_FRAME_END,  /* the other side is gone, or it sent what it must not: more than one descriptor in a frame, one
	                * behind the first byte, none of them left open */
};
/* From a socket that never blocks. takes_fd: a descriptor may ride along; else it ends the conversation. */
enum kr_frame_state kr_frame_read(int socket_fd, struct kr_frame *frame, bool takes_fd);
/* Sends as much as the socket takes from bytes[*used] on; fd (-1: none) rides on the first byte. 1: all of it is sent,
 * 0: not yet, -1 with errno: the other side is gone. Never blocks, raises no SIGPIPE. */
int kr_frame_write(int socket_fd, const void *bytes, uint32_t size, uint32_t *used, int fd);

#endif
