/*
 * From a plan to bubblewrap's arguments. Pure.
 *
 * Does: say each step in bubblewrap's words, in the plan's order, which is mount order. Mounts are said by
 * descriptor where this bubblewrap can take one (what was checked is what is mounted), else by path, with a
 * list of what the init has to find there. Must not: decide anything, or leave a step out; a step it cannot
 * say is an error.
 *
 * Facts that force the form: 0.8.0 wants --unshare-user beside --unshare-all for --disable-userns; a tmpfs is
 * 0755 without --perms; what is mounted on "/" can only be sealed after everything else stands; 9,000
 * arguments are taken.
 */
#include "backend/backend.h"

#include "base/path.h"
#include "guest/wire.h"

enum { ARGS_BYTES = 8 << 20 };

/* Every wall that is not a file system. */
static const char *const walls[] = {
	"--unshare-all",     /* pid, net, ipc, uts, cgroup, mount */
	"--unshare-user",    /* asked for by name: --disable-userns wants it */
	"--disable-userns",  /* OS-SEC-04 */
	/* Not --die-with-parent: it opens a window in which a killed bubblewrap leaves process 1 waiting for ever. The init
	 * ends with its pipe to the launcher instead, from its first instruction on (OS-LCH-04, guest/wire.h). */
	"--as-pid-1",        /* the init reaps: OS-LCH-01 */
	"--cap-drop", "ALL", /* OS-SEC-04 */
};

struct render {
	const struct kr_plan *plan;
	const struct kr_bwrap *bwrap;
	const struct kr_opened *opened;
	const char *tmp_path, *shm_path, *empty_path;
	struct kr_bwrap_render out;
};

static void
arg(struct render *r, const char *text)
{
	kr_buf_add_arg(&r->out.args, text);
	r->out.arg_count++;
}

static void
arg_number(struct render *r, unsigned long long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", number);
	arg(r, text);
}

static void
bind_mount(struct render *r, size_t index, const char *source, bool read_only)
{
	const struct kr_opened *opened = r->opened ? &r->opened[index] : NULL;
	const char *path = r->plan->steps[index].path;

	if (opened && r->bwrap->bind_fd) {
		arg(r, read_only ? "--ro-bind-fd" : "--bind-fd");
		arg_number(r, (unsigned long long)opened->fd);
	} else {
		arg(r, read_only ? "--ro-bind" : "--bind");
		arg(r, source);
		if (opened)
			kr_verify_add(&r->out.verify, opened, read_only, path);
	}
	arg(r, path);
}

static void
tmpfs(struct render *r, const struct kr_step *step)
{
	const char *prepared = strcmp(step->path, "/tmp") == 0       ? r->tmp_path
						   : strcmp(step->path, "/dev/shm") == 0 ? r->shm_path
																 : NULL;

	if (prepared) {
		arg(r, "--bind");
		arg(r, prepared);
	} else {
		arg(r, "--perms");
		arg(r, "1777");
		arg(r, "--size");
		arg_number(r, step->size_bytes);
		arg(r, "--tmpfs");
	}
	arg(r, step->path);
}

static void
render_step(struct render *r, size_t index)
{
	const struct kr_step *step = &r->plan->steps[index];

	switch (step->kind) {
	case KR_STEP_BIND_RO:
	case KR_STEP_BIND_RW:
		bind_mount(r, index, step->source, step->kind == KR_STEP_BIND_RO);
		return;
	case KR_STEP_MASK:
		bind_mount(r, index, r->empty_path, true);
		return;
	case KR_STEP_LINK:
		arg(r, "--symlink");
		arg(r, step->source);
		arg(r, step->path);
		return;
	case KR_STEP_TMPFS:
		tmpfs(r, step);
		return;
	case KR_STEP_PROC:
		arg(r, "--proc");
		break;
	case KR_STEP_DEV:
		arg(r, "--dev");
		break;
	case KR_STEP_READ_ONLY:
		arg(r, "--remount-ro");
		break;
	case KR_STEP_ADD: /* macOS's */
	case KR_STEP_COUNT:
		KR_BUG_IF(true);
	}
	arg(r, step->path);
}

static int
check_limits(const struct render *r, struct kr_error *err)
{
	if (r->out.arg_count > KR_BWRAP_ARGS_MAX) {
		kr_fail(err, KR_E_LIMIT, "the sandbox needs %zu arguments of bubblewrap, which takes %d",
			r->out.arg_count, KR_BWRAP_ARGS_MAX);
		return kr_hint(err, "expose fewer places");
	}
	if (r->out.args.overflow || r->out.verify.overflow)
		return kr_fail(err, KR_E_LIMIT, "the paths that the sandbox shows are too long together");
	return 0;
}

int
kr_bwrap_args(const struct kr_plan *plan, const struct kr_bwrap *bwrap, const struct kr_opened *opened,
	const char *tmp_path, const char *shm_path, const char *empty_path, struct kr_bwrap_render *out,
	struct kr_error *err)
{
	struct render r = {
		.plan = plan,
		.bwrap = bwrap,
		.opened = opened,
		.tmp_path = tmp_path,
		.shm_path = shm_path,
		.empty_path = empty_path,
		.out = { .args = KR_BUF(ARGS_BYTES), .verify = KR_BUF(KG_VERIFY_BYTES) },
	};

	for (size_t i = 0; i < KR_COUNT(walls); i++)
		arg(&r, walls[i]);
	for (size_t i = 0; i < plan->step_count; i++)
		render_step(&r, i);
	if (check_limits(&r, err) < 0) {
		kr_buf_fini(&r.out.args);
		kr_buf_fini(&r.out.verify);
		return -1;
	}
	*out = r.out;
	return 0;
}
