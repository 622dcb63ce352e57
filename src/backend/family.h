/* Inside the room backend/ only: in which words docker and podman differ (docker.c, podman.c). Pure. */
#ifndef KR_BACKEND_FAMILY_H
#define KR_BACKEND_FAMILY_H

#include "backend/container.h"

/* A directory or file of the host's, to be seen at path. */
struct kr_family_bind {
	const char *source, *path;
	bool read_only;
	bool relabel; /* SELinux: with the label that all containers share */
};

struct kr_family {
	const char *const *walls; /* words that only this CLI needs; NULL-terminated */
	const char *const
		*without_proxy;       /* words for a container that has no network of its own; NULL-terminated */
	const char *open_network; /* the word for a network of the runtime's; NULL: it is what no word means */
	char cannot_relabel;      /* a path with this character has no words that also relabel it */
	void (*user)(const struct kr_container *container, struct kr_buf *args);
	void (*bind)(
		const struct kr_container *container, const struct kr_family_bind *bind, struct kr_buf *args);
	/* What follows "rw,exec,nosuid,nodev,size=BYTES,mode=1777". */
	void (*tmpfs_owner)(
		const struct kr_container *container, const struct kr_step *step, struct kr_buf *args);
};
extern const struct kr_family kr_family_docker, kr_family_podman;

/* `--mount=type=bind,src=..,dst=..[,readonly]`, not yet ended. */
void kr_family_add_mount(const struct kr_family_bind *bind, struct kr_buf *args);
void kr_family_end_word(struct kr_buf *args);

#endif
