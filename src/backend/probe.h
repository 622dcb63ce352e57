/* The parts of the bubblewrap probe that are pure, for tests; the rest of the world uses backend.h. */
#ifndef KR_BACKEND_PROBE_H
#define KR_BACKEND_PROBE_H

#include "backend/backend.h"

/* "bubblewrap 0.8.0" -> {0, 8, 0}; false leaves version alone. */
bool kr_bwrap_parse_version(const char *text, unsigned version[3]);

/* What the kernel says about user namespaces; numbers are -1 where there is no such file. */
struct kr_namespace_facts {
	bool has_user_namespaces;
	long userns_clone;        /* kernel.unprivileged_userns_clone (Debian, Arch) */
	long max_user_namespaces; /* user.max_user_namespaces */
	long apparmor_restricts;  /* kernel.apparmor_restrict_unprivileged_userns (Ubuntu 23.10 and later) */
	bool in_container, filtered, in_chroot;
};
void kr_namespace_facts_read(struct kr_namespace_facts *out);

/* Turns what bubblewrap printed into the one reason and its fix; always -1 (KR_E_WALL). */
int kr_bwrap_explain(const char *output, const struct kr_namespace_facts *facts, struct kr_error *err);

#endif
