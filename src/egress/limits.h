/* The limits of a session's way out, each in one place. Bytes, milliseconds, counts. */
#ifndef KR_EGRESS_LIMITS_H
#define KR_EGRESS_LIMITS_H

enum {
	/* in kraft-egress */
	KR_HEAD_BYTES = 64 << 10,        /* request or response head: 400, 502 */
	KR_HEAD_FIELDS = 256,            /* header lines of one head */
	KR_HEAD_MS = 30000,              /* for the head to be complete: closed without an answer */
	KR_UPSTREAM_REPLY_MS = 30000,    /* for the upstream proxy's answer to CONNECT: 502 */
	KR_INTERIM_MAX = 16,             /* 1xx responses before the real one */
	KR_TUNNEL_IDLE_MS = 4 * 3600 * 1000, /* without a byte either way */
	KR_NEXT_REQUEST_MS = 120000,     /* for the next request inside of TLS that ends here to begin */
	KR_BODY_IDLE_MS = 600000,        /* of a plain request or its response */
	KR_CONNECTIONS_MAX = 1024,       /* of one session at once; more wait in the listener's backlog */
	KR_STRANGERS_MAX = 512,          /* of a proxy on loopback: those that have not said the token; at most half of all places */
	KR_STRANGER_MS = 5000,           /* for their head to be complete */
	KR_STRANGER_GRACE_MS = 200,      /* then the oldest goes when another one waits for its place */
	KR_DOOR_BACKLOG = 1024,          /* that wait for a place */
	KR_CHANNELS_MAX = 16,            /* connections to the channel socket at once */
	/* a worker's call to kraft */
	KR_CALLS_MAX = 4,                /* of one session at once, from the end of its head to the end of its answer; more wait */
	KR_CALL_MS = 30000,              /* to be read and answered: 504; and for its answer to be taken */
	KR_CALL_BODY_BYTES = 16 << 20,   /* 413 */
	KR_CALL_FORM_BYTES = 256 << 10,  /* kept of a body; a longer one cannot be a form that is taken: 400 */
	KR_CALL_TEXT_BYTES = 64 << 10,   /* a reply, a steer */
	KR_CALL_ANSWER_BYTES = 512 << 10, /* one answer; what is more comes with the next call (struct kr_call_answer) */
	KR_CALL_REASON_MAX = 512,        /* why a call is refused, its NUL included */
	/* of a worker's call by MCP, and of an ask whether a tool may be used */
	KR_MCP_BODY_BYTES = 512 << 10,   /* 413 */
	KR_HOOK_BODY_BYTES = 1 << 20,    /* of a hook's form, where each byte may be three */
	KR_MCP_ANSWER_BYTES = 1 << 20,   /* the input again, each of its characters escaped, and what is around it */
	KR_MCP_WORD_BYTES = 128,         /* of an id, a token, a tool's name */
	KR_ASK_INPUT_BYTES = 256 << 10,  /* of a tool */
	KR_ASK_COMMAND_BYTES = 4 << 10,  /* of Bash; a longer one is an instance of no grant */
	KR_ASK_POLL_MS = 1000,           /* kraft is asked so often whether a person has answered */
	KR_ASK_SIGN_MS = 10000,          /* and the client is shown so often that it is still being waited */

	KR_HELD_HIGH = 256 << 10,        /* read for one side and not yet written: then reading stops */
	KR_HELD_LOW = 64 << 10,          /* and goes on */
	KR_EGRESS_DATA_BYTES = 256 << 20, /* RLIMIT_DATA */
	KR_EGRESS_FILES = 4096,          /* RLIMIT_NOFILE */

	/* in kraft */
	KR_ASKS_MAX = KR_CONNECTIONS_MAX, /* without an answer */
	KR_LOOKUPS_MAX = 4,              /* of one session at once; the rest wait */
	KR_LOOKUP_MS = 20000,            /* then the name does not resolve, for this request */
	KR_LOOKUP_KEPT_MS = 30000,       /* an answer is used again for so long; failures are not kept */
	KR_LOOKUPS_KEPT_MAX = 256,       /* names; the oldest goes first */
	KR_LOOKUP_ADDRESSES = 64,        /* of one name; more refuse it */
	KR_DIAL_MS = 30000,              /* each address, and the upstream proxy: 502 */
	KR_OWN_ADDRESSES_MS = 1000,      /* the list of this host's own addresses is made again after so long */
	KR_REFUSED_HOSTS_MAX = 100,      /* different hosts, and routes of calls, told of in events, then one last that says so (POL-06) */
	KR_CALL_EVERY_MS = 50,           /* calls are answered so often on average, else 429 */
	KR_CALLS_BURST = 100,            /* and so many at once after a rest */
	KR_REPLIES_MAX = 200,            /* replies of one session of a work item; then 429 */
	KR_ASKS_OPEN_MAX = 8,            /* that wait for a person, of one session; then each is denied */
	KR_ASKS_A_SESSION = 200,         /* that ever went to a person; likewise */
	KR_PERMITS_MAX = 10000,          /* decisions recorded for one session; then each is denied */
	KR_PROGRESS_MAX = 1000,          /* events plan_progress of one session of `kraft run`; then 429 */
};

#endif
