/*
 * Rules as pure functions: each decides and explains in one step; nobody re-derives either.
 */
#ifndef KR_POLICY_POLICY_H
#define KR_POLICY_POLICY_H

#include "base/arena.h"
#include "config/config.h"

/* ---- hosts (POL-01): the grammar of a network list entry ---- */

enum { KR_HOST_MAX = 253 };

struct kr_host_pattern {
	bool any;        /* "*" or "**" */
	bool star;       /* "*." in front: exactly one label */
	char host[KR_HOST_MAX + 1]; /* lower case, without "*." and port */
	unsigned port;   /* 0: any port */
};
/* Trims blanks, then parses. False when it is not an entry; `why` then names what is wrong with it. */
bool kr_host_pattern_parse(const char *text, struct kr_host_pattern *out, const char **why);

/* ---- addresses (POL-03, POL-04; NET-10) ---- */

struct kr_address {
	bool is_v6;
	uint8_t b[16]; /* network order; IPv4 in the first four, the rest zero */
};
struct kr_addresses {
	const struct kr_address *v;
	size_t n;
};

enum { KR_ADDRESS_TEXT = 46 };

/*
 * A literal: four decimal numbers without leading zeros, or IPv6 without brackets and zone. Nothing shorter, octal or
 * hexadecimal, which a resolver would read as an address: those are refused, never guessed at.
 */
bool kr_address_parse(const char *text, size_t n, struct kr_address *out);
/* Fills out with the one spelling of this address (RFC 5952). */
void kr_address_format(const struct kr_address *address, char out[KR_ADDRESS_TEXT]);
bool kr_address_same(const struct kr_address *a, const struct kr_address *b);

/* What an address is. From OWN on it is refused whatever the lists say; PRIVATE needs an entry that names the host
 * exactly. A later one is stricter than an earlier one, or names the same refusal better. */
#define KR_ADDRESS_CLASSES(X)                                                                      \
	X(GLOBAL, "public", "public")                                                                  \
	X(PRIVATE, "private", "not globally routable")                                                 \
	X(OWN, "own", "this host's own")                                                               \
	X(UNSPECIFIED, "unspecified", "unspecified")                                                   \
	X(LOOPBACK, "loopback", "loopback")                                                            \
	X(LINK_LOCAL, "link_local", "link-local")                                                      \
	X(MULTICAST, "multicast", "multicast")                                                         \
	X(BROADCAST, "broadcast", "broadcast")                                                         \
	X(METADATA, "metadata", "cloud metadata")
enum kr_address_class {
#define X(class, name, words) KR_ADDRESS_##class,
	KR_ADDRESS_CLASSES(X)
#undef X
};
const char *kr_address_class_name(enum kr_address_class class);  /* for programs */
const char *kr_address_class_words(enum kr_address_class class); /* after "is" */
bool kr_address_is_always_denied(enum kr_address_class class);

enum { KR_EMBEDDED_MAX = 6 };
struct kr_embedded {
	struct kr_address address; /* IPv4 */
	const char *form;          /* "6to4", "NAT64", ... */
};
/* Every IPv4 address that an IPv6 one may stand for; returns how many. */
size_t kr_address_embedded(const struct kr_address *address, struct kr_embedded out[KR_EMBEDDED_MAX]);

struct kr_address_report {
	enum kr_address_class class;
	const char *what, *source; /* of the range: "private network", "RFC 1918" */
	const char *form;          /* the IPv4 inside decided: the form it has there; NULL: the address itself did */
	struct kr_address inner;   /* when form is set */
};
/* The strictest of what the address is and of what each IPv4 in it is. own: the addresses of this host's interfaces. */
void kr_address_classify(
	const struct kr_address *address, const struct kr_addresses *own, struct kr_address_report *out);

/* ---- what is asked for (NET-13, NET-14) ---- */

struct kr_target {
	char host[KR_HOST_MAX + 1]; /* canonical: lower case, no trailing dot; a literal as kr_address_format has it */
	bool is_address;            /* host is a literal; IPv4-mapped IPv6 is the IPv4 that it is */
	struct kr_address address;
	unsigned port;              /* 0: none was written */
};
enum { KR_TARGET_TEXT = KR_HOST_MAX + 9 };

/* "HOST", "HOST:PORT", "[IPV6]", "[IPV6]:PORT" of n bytes, any bytes. False when it is none; `why` then says what is
 * wrong with it, after "it". A zone in brackets is read and dropped. */
bool kr_target_parse(const char *text, size_t n, struct kr_target *out, const char **why);
/* A host by itself, terminated, an IPv6 address without brackets. False when it is none, or not written as it would be in `host`. */
bool kr_target_of_host(const char *host, struct kr_target *out);
/* The canonical spelling, with brackets and port where they belong; parsing it again gives the same target. */
void kr_target_format(const struct kr_target *target, char out[KR_TARGET_TEXT]);

/* ---- the decision (POL-02 to POL-05) ---- */

#define KR_DECISIONS(X)                                                                            \
	X(ALLOWED, "allowed")                                                                          \
	X(UNRESOLVED, "unresolved") /* allowed by the lists, but no address was found: the caller's word */ \
	X(UNLISTED, "unlisted") /* on neither list */                                                  \
	X(DENIED, "denied")     /* by an entry of the deny list */                                     \
	X(INEXACT, "inexact")   /* not a public address, and no entry names the host exactly */        \
	X(ALWAYS, "always")     /* whatever the lists say */
enum kr_decision {
#define X(decision, name) KR_HOST_##decision,
	KR_DECISIONS(X)
#undef X
};
const char *kr_decision_name(enum kr_decision decision);

enum { KR_REASON_MAX = 1024 };
struct kr_verdict {
	enum kr_decision decision;
	enum kr_phase phase;
	struct kr_target target;
	const char *entry;   /* that decided; borrowed from the list; NULL when none did */
	struct kr_mark mark; /* its place in the file; line 0 when it is not from one */
	bool exact;          /* an allow entry names the host itself */
	char reason[KR_REASON_MAX];        /* one sentence, lower case, no full stop */
	char grant[KR_TARGET_TEXT];        /* the smallest allow entry that would help; "" when none would */
};

/*
 * The one place that decides about a host. target.port is set. For a literal the answer is final; for an allowed
 * name each address it resolves to goes through kr_address_decide, and one refusal refuses the name. A name that is
 * refused here must not be asked for.
 */
void kr_host_decide(const struct kr_host_list *list, enum kr_phase phase, const struct kr_target *target,
	const struct kr_addresses *own, struct kr_verdict *out);
/* The verdict on one address of the host that `host` decided about; a host that is refused stays so. */
void kr_address_decide(const struct kr_verdict *host, const struct kr_address *address,
	const struct kr_addresses *own, struct kr_verdict *out);

/* ---- protected paths (OS-EXP-01 to -04) ---- */

/* The six names whose contents read as empty inside (OS-MNT-12). */
extern const char *const kr_credential_names[];
extern const size_t kr_credential_name_count;
bool kr_is_credential_name(const struct kr_places *places, const char *basename);

/* Fills `out` with the protected paths of this person: clean, absolute, in a fixed order; `home` itself is not in it. */
void kr_protected_paths(struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out);

/*
 * Why `path` (clean; call it for the path as written and again as resolved) may not be shown to a worker; NULL when
 * it may. The text continues a sentence: "is the home directory", "holds '/home/you/.ssh', which is protected",
 * "is inside '/home/you/.ssh', which is protected", "is named 'credentials', ...".
 */
const char *kr_protect_why(struct kr_arena *arena, const struct kr_places *places, const char *path);

/* The same for other protected paths: those of kr_protected_paths as they resolve, where a link leads elsewhere. */
const char *kr_protect_why_among(
	struct kr_arena *arena, const struct kr_places *places, const struct kr_strs *protected, const char *path);

/*
 * Why a host directory cannot be shown at `path` (clean): the sandbox has something of its own there (/proc, /sys, /dev,
 * /run and what is below; /tmp; /var/tmp, which is /tmp; /opt/kraft). On macOS: what everybody writes, and other names of the
 * same files. Continues a sentence; NULL when it can.
 */
const char *kr_place_why(struct kr_arena *arena, const struct kr_places *places, const char *path);

#endif
