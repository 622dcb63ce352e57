/*
 * From a plan to the words of `CLI run`, up to the image. Pure.
 *
 * Does: say each step in the CLI's words, and every wall that is not a file system, also where it is the
 * default: a daemon's or a person's settings can make another one the default. Must not: decide anything,
 * leave a step out, or write a value of a variable; what a CLI has no words for is an error.
 *
 * Each option and its value are one word, so whatever a value begins with, it stays a value. Docker and
 * podman carry words as JSON, where bytes that are no character become another one: such a path would be
 * another path, so it is refused. Order does not matter here: both sort mounts by their depth.
 *
 * A runtime puts mounts in their places as it likes to, through the image's links and by path; so the init
 * looks at each of them before it starts anything (the verify block).
 */
#include <ctype.h>
#include <string.h>

#include "backend/family.h"

#include "base/path.h"
#include "base/text.h"
#include "guest/wire.h"

enum { ARGS_BYTES = 8 << 20, HIDDEN_BYTES = 4096 };
static const char init_path[] = "/opt/kraft/init";

/* Every wall that is neither a file system nor a matter of who, how much and which network. */
static const char *const walls[] = {
	"--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", /* the image */
	"--ipc=private",      /* a daemon's default can be one that others join */
	"--cgroupns=private", /* of 20.10 on; on a cgroup v1 it is not the default */
	"--init=false",       /* ours is process 1, whatever the daemon's default */
	"--no-healthcheck",   /* of the image's: it runs beside the init */
	"--workdir=/",        /* of process 1: the image's own may be closed to this user */
	"--stop-timeout=1",   /* the daemon's own end does not wait for an init that heeds no signal */
};

struct render {
	const struct kr_plan *plan; /* NULL: nothing of the host's is shown */
	const struct kr_container *container;
	const struct kr_family *family;
	const struct kr_opened *opened;
	const char *session;
	const struct kr_resources *resources;
	bool has_open_network;
	struct kr_container_render out;
};

/* ---- words ---- */

void
kr_family_end_word(struct kr_buf *args)
{
	kr_buf_add(args, "", 1);
}

static void
word(struct render *r, const char *text)
{
	kr_buf_add_arg(&r->out.args, text);
}

static void
words(struct render *r, const char *const *list)
{
	for (; *list; list++)
		word(r, *list);
}

static void
option(struct render *r, const char *name, const char *value)
{
	kr_buf_adds(&r->out.args, name);
	kr_buf_adds(&r->out.args, "=");
	kr_buf_add_arg(&r->out.args, value);
}

/* One field of comma-separated values: in quotes where it has to be, with each quote in it doubled. */
static void
field(struct kr_buf *args, const char *key, const char *value)
{
	if (!strpbrk(value, ",\"\n")) {
		kr_buf_addf(args, ",%s=%s", key, value);
		return;
	}
	kr_buf_addf(args, ",\"%s=", key);
	for (; *value; value++)
		kr_buf_add(args, *value == '"' ? "\"\"" : value, *value == '"' ? 2 : 1);
	kr_buf_adds(args, "\"");
}

void
kr_family_add_mount(const struct kr_family_bind *bind, struct kr_buf *args)
{
	kr_buf_adds(args, "--mount=type=bind");
	field(args, "src", bind->source);
	field(args, "dst", bind->path);
	if (bind->read_only)
		kr_buf_adds(args, ",readonly");
}

/* ---- what cannot be said ---- */

static int
no_words(const struct render *r, const char *what, const char *text, const char *why, struct kr_error *err)
{
	char shown[256];

	(void)kr_text_escape(shown, sizeof(shown), text, strlen(text));
	return kr_fail(err, KR_E_UNSUPPORTED, "%s '%s' cannot be said to %s: it %s", what, shown,
		r->container->runtime->name, why);
}

static int
no_words_for_path(const struct render *r, const char *path, const char *why, struct kr_error *err)
{
	no_words(r, "the path", path, why, err);
	return kr_hint(err, "KRAFT_HOME and the repository have to lie at paths without such characters");
}

static bool
is_text(const char *text)
{
	return kr_text_is_utf8(text, strlen(text));
}

static const char no_text[] = "is not UTF-8";

static int
check_path(const struct render *r, const char *path, struct kr_error *err)
{
	return is_text(path) ? 0 : no_words_for_path(r, path, no_text, err);
}

/* The separator of a word that has no quotes; what a reader of comma-separated values takes away. */
static int
check_character(const struct render *r, const char *path, char bad, struct kr_error *err)
{
	if (!strchr(path, bad))
		return 0;
	return no_words_for_path(r, path, bad == ':' ? "has a colon" : "has a carriage return", err);
}

/* They ride behind the image. */
static int
check_command(const struct render *r, struct kr_error *err)
{
	for (size_t i = 0; r->plan->argv[i]; i++)
		if (!is_text(r->plan->argv[i]))
			return no_words(r, "the argument", r->plan->argv[i], no_text, err);
	if (!is_text(r->plan->exec_path))
		return no_words(r, "the command", r->plan->exec_path, no_text, err);
	return check_path(r, r->plan->cwd, err);
}

/* What is run is data of the runtime's, and stands where an option could. */
static int
check_image(const struct kr_image *image, struct kr_error *err)
{
	if (!image->id)
		return kr_fail(err, KR_E_NOT_FOUND, "the image '%s' is not here", image->name);
	for (const char *c = image->id; *c; c++)
		if (!isalnum((unsigned char)*c) && (*c != ':' || c == image->id))
			return kr_fail(err, KR_E_WALL, "the image '%s' has an id that is none", image->name);
	return *image->id ? 0 : kr_fail(err, KR_E_WALL, "the image '%s' has no id", image->name);
}

static int
check_user(const struct kr_container *container, struct kr_error *err)
{
	if (container->uid && container->gid)
		return 0;
	return kr_fail(
		err, KR_E_REFUSED, "a container would run as root (%u:%u)", container->uid, container->gid);
}

/* ---- steps ---- */

static int
bind_mount(struct render *r, size_t index, const char *source, bool read_only, struct kr_error *err)
{
	const struct kr_family_bind bind = {
		.source = source,
		.path = r->plan->steps[index].path,
		.read_only = read_only,
		/* What lies in /usr is the system's, not ours to label, and every container may read it as it is. */
		.relabel = r->container->selinux == KR_SELINUX_RELABEL && r->container->runtime->enforces_selinux &&
				   !kr_path_is_within(source, "/usr"),
	};
	const char bad = bind.relabel ? r->family->cannot_relabel : '\r';

	if (check_path(r, bind.source, err) < 0 || check_path(r, bind.path, err) < 0 ||
		check_character(r, bind.source, bad, err) < 0 || check_character(r, bind.path, bad, err) < 0)
		return -1;
	r->family->bind(r->container, &bind, &r->out.args);
	if (r->opened)
		(r->container->runtime->is_machine ? kr_verify_add_elsewhere : kr_verify_add)(
			&r->out.verify, &r->opened[index], read_only, bind.path);
	return 0;
}

static bool
is_sealed(const struct kr_plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->step_count; i++)
		if (plan->steps[i].kind == KR_STEP_READ_ONLY && strcmp(plan->steps[i].path, path) == 0)
			return true;
	return false;
}

/*
 * The mode is the one of the image's directory where it has one, whatever is said here; so the user owns what
 * the user is to write to. A sealed one is read-only from the start: the runtime makes the places in it
 * before.
 */
static int
tmpfs(struct render *r, const struct kr_step *step, bool sealed, struct kr_error *err)
{
	struct kr_buf *args = &r->out.args;

	if (check_path(r, step->path, err) < 0 || check_character(r, step->path, ':', err) < 0)
		return -1;
	kr_buf_addf(args, "--tmpfs=%s:%s,exec,nosuid,nodev,size=%llu", step->path, sealed ? "ro" : "rw",
		(unsigned long long)step->size_bytes);
	if (sealed) {
		kr_buf_adds(args, ",mode=0755");
	} else {
		kr_buf_adds(args, ",mode=1777");
		r->family->tmpfs_owner(r->container, step, args);
	}
	kr_family_end_word(args);
	return 0;
}

static int
render_step(struct render *r, size_t index, struct kr_error *err)
{
	const struct kr_step *step = &r->plan->steps[index];

	switch (step->kind) {
	case KR_STEP_BIND_RO:
	case KR_STEP_BIND_RW:
		return bind_mount(r, index, step->source, step->kind == KR_STEP_BIND_RO, err);
	case KR_STEP_MASK:
		return bind_mount(r, index, r->container->empty_path, true, err);
	case KR_STEP_TMPFS:
		return tmpfs(r, step, is_sealed(r->plan, step->path), err);
	case KR_STEP_READ_ONLY:
		return 0; /* said with its file system */
	case KR_STEP_LINK:
	case KR_STEP_PROC:
	case KR_STEP_DEV:
	case KR_STEP_ADD: /* macOS's */
	case KR_STEP_COUNT:
		break;
	}
	KR_BUG_IF(true); /* the image has its own */
}

/* ---- everything else ---- */

static void
limits(struct render *r)
{
	const struct kr_resources *asked = r->resources;
	const unsigned can = r->container->runtime->limits;
	struct kr_buf *args = &r->out.args;

	if (asked->cpu > 0) {
		kr_buf_addf(args, "--cpus=%.9f", asked->cpu);
		kr_family_end_word(args);
	}
	if (asked->memory_bytes) {
		kr_buf_addf(args, "--memory=%llu", (unsigned long long)asked->memory_bytes);
		kr_family_end_word(args);
	}
	if (asked->memory_bytes && (can & 1u << KR_LIMIT_SWAP)) {
		kr_buf_addf(args, "--memory-swap=%llu", (unsigned long long)asked->memory_bytes);
		kr_family_end_word(args);
	}
	if (asked->pids || (can & 1u << KR_LIMIT_PIDS)) {
		kr_buf_addf(
			args, "--pids-limit=%llu", (unsigned long long)(asked->pids ? asked->pids : KR_PIDS_DEFAULT));
		kr_family_end_word(args);
	}
}

static void
network(struct render *r)
{
	if (!r->has_open_network) {
		word(r, "--network=none");
		words(r, r->family->without_proxy);
	} else if (r->family->open_network) {
		word(r, r->family->open_network);
	}
}

/* Who it is, for the sweep and for a person; how it ends. */
static void
identity(struct render *r)
{
	const struct kr_container *c = r->container;

	word(r, "--rm");
	word(r, "--pull=never");
	option(r, "--name", c->name);
	kr_buf_adds(&r->out.args, "--label=");
	option(r, "kraft.home", c->home);
	kr_buf_adds(&r->out.args, "--label=");
	option(r, "kraft.session", r->session);
	kr_buf_addf(&r->out.args, "--cidfile=%s/cid", c->client_dir);
	kr_family_end_word(&r->out.args);
	word(r, "--log-driver=none");
}

/* Of one that sees nothing of the host's. A rootless runtime has the person as its root; to give them their
 * number would have podman copy the whole image first. */
static void
user_alone(struct render *r)
{
	if (r->container->runtime->is_rootless)
		word(r, "--user=0:0");
	else
		r->family->user(r->container, &r->out.args);
}

static void
render_walls(struct render *r)
{
	for (size_t i = 0; i < KR_COUNT(walls); i++)
		word(r, walls[i]);
	words(r, r->family->walls);
	if (r->plan)
		r->family->user(r->container, &r->out.args);
	else
		user_alone(r);
	if (r->container->selinux == KR_SELINUX_DISABLE)
		word(r, "--security-opt=label=disable");
	limits(r);
	network(r);
}

static int
render_all(struct render *r, struct kr_error *err)
{
	word(r, kr_path_basename(r->container->runtime->program));
	word(r, "run");
	if (r->container->runtime->is_machine) {
		/* All of the session goes through the client, which stays; its signals are its own. */
		word(r, "--interactive");
		word(r, "--sig-proxy=false");
	} else {
		word(r, "--detach");
	}
	identity(r);
	render_walls(r);
	for (size_t i = 0; i < r->plan->step_count; i++)
		if (render_step(r, i, err) < 0)
			return -1;
	option(r, "--entrypoint", init_path);
	word(r, r->container->image->id);
	if (r->out.args.overflow || r->out.verify.overflow)
		return kr_fail(err, KR_E_LIMIT, "the paths that the container shows are too long together");
	return 0;
}

static const struct kr_family *const families[] = {
	[KR_RUNTIME_DOCKER] = &kr_family_docker,
	[KR_RUNTIME_PODMAN] = &kr_family_podman,
};
_Static_assert(KR_COUNT(families) == KR_RUNTIME_COUNT, "one for each kind");

int
kr_container_args(const struct kr_plan *plan, const struct kr_container *container,
	const struct kr_opened *opened, struct kr_container_render *out, struct kr_error *err)
{
	struct render r = {
		.plan = plan,
		.container = container,
		.family = families[container->runtime->kind],
		.opened = opened,
		.session = plan->request->session,
		.resources = &plan->request->repo->sandbox.resources,
		.has_open_network = kr_plan_has_open_network(plan->request),
		.out = { .args = KR_BUF(ARGS_BYTES), .verify = KR_BUF(KG_VERIFY_BYTES) },
	};

	if (check_image(container->image, err) < 0 || check_user(container, err) < 0 ||
		check_command(&r, err) < 0 || check_path(&r, container->home, err) < 0 || render_all(&r, err) < 0) {
		kr_buf_fini(&r.out.args);
		kr_buf_fini(&r.out.verify);
		return -1;
	}
	*out = r.out;
	return 0;
}

/* Empty and read-only, in place of a directory of the host's that the runtime would make for it. */
static int
hide_volumes(struct render *r, struct kr_error *err)
{
	const struct kr_strs *volumes = &r->container->image->volumes;

	for (size_t i = 0; i < volumes->n; i++) {
		const struct kr_step step = { KR_STEP_TMPFS, .path = volumes->v[i], .size_bytes = HIDDEN_BYTES };

		if (tmpfs(r, &step, true, err) < 0)
			return -1;
	}
	return 0;
}

static int
render_script(struct render *r, const char *script, struct kr_error *err)
{
	word(r, "run");
	identity(r);
	render_walls(r);
	if (hide_volumes(r, err) < 0)
		return -1;
	option(r, "--entrypoint", "/bin/sh");
	word(r, r->container->image->id);
	word(r, "-c");
	word(r, script);
	return r->out.args.overflow ? kr_fail(err, KR_E_LIMIT, "the image's volumes are too long together") : 0;
}

/* The words lie one behind the other in the buffer. */
static void
split(struct kr_arena *arena, const struct kr_buf *args, struct kr_strs *out)
{
	for (size_t at = 0; at < args->len; at += strlen(args->data + at) + 1)
		kr_strs_add(arena, out, kr_arena_dup(arena, args->data + at));
}

int
kr_container_script_args(struct kr_arena *arena, const struct kr_container *container, const char *session,
	const struct kr_resources *resources, const char *script, struct kr_strs *out, struct kr_error *err)
{
	struct render r = {
		.container = container,
		.family = families[container->runtime->kind],
		.session = session,
		.resources = resources,
		.out.args = KR_BUF(ARGS_BYTES),
	};
	int result = -1;

	if (check_image(container->image, err) == 0 && check_user(container, err) == 0 &&
		check_path(&r, container->home, err) == 0)
		result = render_script(&r, script, err);
	if (result == 0)
		split(arena, &r.out.args, out);
	kr_buf_fini(&r.out.args);
	return result;
}

/* ---- for a person ---- */

static const char *
tell_user(struct kr_arena *arena, const struct kr_runtime *runtime, unsigned uid, unsigned gid)
{
	if (runtime->kind == KR_RUNTIME_DOCKER && runtime->is_rootless)
		return kr_arena_printf(arena, "root inside is your own user outside (%u:%u)", uid, gid);
	return kr_arena_printf(arena, "your own user (%u:%u), inside as outside", uid, gid);
}

static const char *
tell_bytes(struct kr_arena *arena, uint64_t bytes)
{
	const uint64_t mib = 1u << 20;

	return bytes % mib ? kr_arena_printf(arena, "%llu bytes", (unsigned long long)bytes)
					   : kr_arena_printf(arena, "%llu MiB", (unsigned long long)(bytes / mib));
}

static void
tell_limits(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_resources *asked,
	struct kr_strs *out)
{
	const uint64_t pids = asked->pids ? asked->pids : KR_PIDS_DEFAULT;

	if (asked->cpu > 0)
		kr_strs_add(arena, out, kr_arena_printf(arena, "%g CPUs at most", asked->cpu));
	if (asked->memory_bytes)
		kr_strs_add(arena, out,
			kr_arena_printf(arena, "%s of memory at most, %s", tell_bytes(arena, asked->memory_bytes),
				runtime->limits & 1u << KR_LIMIT_SWAP ? "and no swap"
													  : "beside swap, which is not counted on this host"));
	if (asked->pids || (runtime->limits & 1u << KR_LIMIT_PIDS))
		kr_strs_add(arena, out, kr_arena_printf(arena, "%llu processes at most", (unsigned long long)pids));
}

void
kr_container_walls(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_sandbox *sandbox,
	enum kr_selinux selinux, unsigned uid, unsigned gid, struct kr_strs *out)
{
	kr_strs_add(arena, out, tell_user(arena, runtime, uid, gid));
	if (runtime->is_machine)
		kr_strs_add(arena, out, "in the runtime's virtual machine, which has to share the directories below with this host");
	kr_strs_add(arena, out, "no capability, no new privileges, no core file");
	kr_strs_add(arena, out, "the image is read-only");
	if (selinux == KR_SELINUX_DISABLE)
		kr_strs_add(arena, out, "not confined by SELinux (sandbox.yaml)");
	if (runtime->enforces_selinux && selinux == KR_SELINUX_RELABEL)
		kr_strs_add(
			arena, out, "confined by SELinux: what is shown gets the label of containers (sandbox.yaml)");
	tell_limits(arena, runtime, &sandbox->resources, out);
}

/* ---- before a launch ---- */

static int
refuse_limit(const struct kr_runtime *runtime, const char *key, struct kr_error *err)
{
	kr_fail(err, KR_E_NO_LIMIT,
		"%s cannot enforce the limit '%s' of 'resources' on this host, and would leave it out without a word",
		runtime->name, key);
	return kr_hint(err, "take '%s' out of 'resources', or give the runtime a control group that has it", key);
}

/* LIM-01. Swap is held where it is counted at all. */
static int
check_limits(const struct kr_runtime *runtime, const struct kr_resources *asked, struct kr_error *err)
{
	const bool is_asked[KR_LIMIT_COUNT] = {
		[KR_LIMIT_CPU] = asked->cpu > 0,
		[KR_LIMIT_MEMORY] = asked->memory_bytes != 0,
		[KR_LIMIT_PIDS] = asked->pids != 0,
	};
	static const char *const keys[] = {
#define X(limit, name) [KR_LIMIT_##limit] = (name),
		KR_LIMITS(X)
#undef X
	};

	for (size_t i = 0; i < KR_LIMIT_COUNT; i++)
		if (is_asked[i] && !(runtime->limits & 1u << i))
			return refuse_limit(runtime, keys[i], err);
	return 0;
}

int
kr_runtime_check(const struct kr_runtime *runtime, const struct kr_sandbox *sandbox, enum kr_selinux selinux,
	struct kr_error *err)
{
	if (runtime->enforces_selinux && selinux == KR_SELINUX_AUTO) {
		kr_fail(err, KR_E_SELINUX,
			"SELinux keeps containers of %s from everything of kraft's, and nothing says what to do about it",
			runtime->name);
		return kr_hint(err,
			"write 'selinux: relabel' (kraft's places and the repository's objects get the label of "
			"containers) or "
			"'selinux: disable' (SELinux does not confine kraft's containers) into sandbox.yaml");
	}
	return check_limits(runtime, &sandbox->resources, err);
}
