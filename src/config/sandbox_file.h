/* sandbox.yaml: what holds for every container of this host. Facts 1.4, CTR-02, CFG-09. */
#ifndef KR_CONFIG_SANDBOX_FILE_H
#define KR_CONFIG_SANDBOX_FILE_H

#include "config/config.h"

#define KR_SELINUX(X) X(AUTO, "auto") X(RELABEL, "relabel") X(DISABLE, "disable")
enum kr_selinux {
#define X(choice, name) KR_SELINUX_##choice,
	KR_SELINUX(X)
#undef X
		KR_SELINUX_COUNT
};

struct kr_kit_binding {
	const char *service, *variable;
};

struct kr_sandbox_file {
	const char *cli;       /* "docker", "podman" or an absolute path; NULL: docker, else podman */
	enum kr_selinux selinux;
	const char *ca_bundle; /* absolute; NULL: the environment's SSL_CERT_FILE, if any */
	const char *relay_image; /* accepted, without effect: there is no relay; NULL: unset */
	struct kr_kit_binding *credentials; /* for kits */
	size_t credential_count;
	struct kr_mark ca_bundle_mark, relay_image_mark;
};

/* A file that is not there is all defaults. */
int kr_sandbox_file_load(struct kr_arena *arena, const struct kr_places *places, struct kr_sandbox_file *out,
	struct kr_error *err);

#endif
