/*
 * The manifest of a kit's image, by digest, from where the runtime gets its images, and the descriptor in it.
 *
 * Docker's client gives the manifest's own bytes (`manifest inspect --verbose`; one of 20.10 cannot read manifests of OCI's).
 * Podman pulls the image, and has them in its store, which is read where it is this user's own. Either way their SHA-256 has to
 * be the digest that is configured, and they are parsed by a process without power (os/powerless.h).
 */
#ifndef KR_BACKEND_KIT_H
#define KR_BACKEND_KIT_H

#include "backend/container.h"
#include "config/kit.h"

enum {
	KR_KIT_DIGEST_BYTES = 71, /* "sha256:" and 64 digits */
	KR_KIT_ANSWER_BYTES = 24 << 20, /* of a client: the manifest in base64, and once more as it reads it */
	KR_KIT_PULL_MS = 600000,
};

/* What was found in such an answer. */
enum kr_kit_said {
	KR_KIT_ODD,   /* it is not what a runtime says */
	KR_KIT_NONE,  /* no kit: there is no such annotation */
	KR_KIT_INDEX, /* images for several machines: `digest` is of this one's, "" when it has none */
	KR_KIT_BYTES, /* of a manifest, or a descriptor, as asked for */
};
/* Plain, zero at first. */
struct kr_kit_source {
	enum kr_kit_said said;
	char digest[KR_KIT_DIGEST_BYTES + 1]; /* of the manifest, as the runtime says; "": it does not, or in another form */
	size_t len;
	char bytes[KR_KIT_MANIFEST_BYTES];
};

/* Each a kr_parse_fn to struct kr_kit_source. `docker manifest inspect --verbose`: the manifest. */
void kr_kit_read_docker(const void *bytes, size_t n, void *source);
/* A manifest: the descriptor. */
void kr_kit_read_manifest(const void *bytes, size_t n, void *source);
/* A kept one (kr_kit_keep): the descriptor, and its manifest's digest. */
void kr_kit_read_kept(const void *bytes, size_t n, void *source);

/*
 * Fetches the descriptor of `name` into out (KR_KIT_BYTES, whose digest is the one in the name). Podman pulls the image for it,
 * and shows its progress where stderr_fd is a terminal. KR_E_WALL: the runtime or its registry; KR_E_CONFIG: it is no kit, or an
 * index; KR_E_REFUSED: the bytes are not those of the digest; KR_E_UNSUPPORTED: a podman whose store is not ours to read.
 */
int kr_kit_fetch(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, int stderr_fd,
	struct kr_kit_source *out, struct kr_error *err);

/* <run_dir>/kit/<digest>.json. 1: it is not there, or not usable. */
int kr_kit_look(struct kr_arena *arena, const char *run_dir, const char *name, struct kr_kit_source *out);
int kr_kit_keep(struct kr_arena *arena, const char *run_dir, const char *name, const struct kr_kit_source *source,
	struct kr_error *err);

#endif
