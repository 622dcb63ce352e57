/*
 * kind: kit, before anything else of a run is looked at: the kit's descriptor, as it is kept in <run_dir>/kit or from where the
 * runtime gets its images, and the repository as it is with the sandbox of kind docker that the descriptor asks for. All
 * that follows knows only kind: docker.
 */
#ifndef KR_RUN_KIT_H
#define KR_RUN_KIT_H

#include "config/kit.h"
#include "os/host.h"

struct kr_run_state;

struct kr_run_kit {
	bool is_used; /* the sandbox is kind: kit; all else is for it only */
	struct kr_kit kit;
	const char *manifest; /* its digest */
	struct kr_sandbox_file file;
};

/*
 * Of another kind: 0, and *repo stays. Else *repo becomes one with the kit's sandbox. may_fetch false: nothing is asked, and
 * KR_E_NOT_FOUND says that it is not here yet. After a failure out->is_used tells whether it was one.
 */
int kr_run_kit_find(struct kr_arena *arena, const struct kr_host *host, bool may_fetch, int stderr_fd,
	const struct kr_repo **repo, struct kr_run_kit *out, struct kr_error *err);

/* What the kit asks for that a plan does not show, a line each. */
void kr_run_kit_tell(struct kr_arena *arena, const struct kr_run_kit *kit, struct kr_strs *lines);
/* The event sandbox_kit_resolved, once for each item and kit. */
void kr_run_kit_note(const struct kr_run_state *run);

#endif
