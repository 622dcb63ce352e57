/* sandbox.yaml: what holds for every container of this host (CTR-02, CFG-09). Errors are KR_E_CONFIG with place. */
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
	const char *file;      /* its path, for errors that are found later */
	const char *cli;       /* "docker", "podman" or an absolute path; NULL: docker, else podman */
	enum kr_selinux selinux;
	const char *ca_bundle; /* absolute; NULL: the environment's SSL_CERT_FILE, if any */
	const char *relay_image; /* accepted, without effect: there is no relay; NULL: unset */
	struct kr_kit_binding *credentials; /* for kits */
	size_t credential_count;
	struct kr_mark ca_bundle_mark, relay_image_mark;
};

/* Pure. An empty document is all defaults. */
int kr_sandbox_file_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *bytes,
	size_t n, struct kr_sandbox_file *out, struct kr_error *err);
/* Reads <config_dir>/sandbox.yaml. A file that is not there is all defaults; an unreadable one is an error. */
int kr_sandbox_file_load(struct kr_arena *arena, const struct kr_places *places, struct kr_sandbox_file *out,
	struct kr_error *err);

#endif
