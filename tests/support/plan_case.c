#include "plan_case.h"

static const struct fake_entry system_entries[] = {
	{ "/usr/bin/make", "exec" },
	{ "/usr/bin/sh", "exec" },
	{ "/etc/hosts", "file" },
	{ "/bin", "-> usr/bin" },
	{ "/lib64", "-> usr/lib64" },
	{ "/usr/lib64", "dir" },
	{ CASE_WORKTREE "/.git", "file" },
};

static const char *const environment[] = { "PATH=/opt/t/bin:/usr/bin", "ANTHROPIC_API_KEY=sk-host-secret",
	"HOME=/home/ada", NULL };

void
plan_case_init(struct plan_case *c, const struct fake_entry *entries, const char *command)
{
	size_t n = 0;
	struct fake_entry *all;
	const char **argv;

	*c = (struct plan_case){ 0 };
	while (entries && entries[n].path)
		n++;
	all = kr_arena_alloc(&c->arena, (n + KR_COUNT(system_entries) + 1) * sizeof(*all));
	memcpy(all, system_entries, sizeof(system_entries));
	if (n)
		memcpy(all + KR_COUNT(system_entries), entries, n * sizeof(*all));
	argv = kr_arena_alloc(&c->arena, 2 * sizeof(*argv));
	argv[0] = command;
	c->fake = (struct fake_fs){ .entries = all };
	c->fs = fake_fs_view(&c->fake);
	c->host = (struct kr_host){
		.fs = &c->fs,
		.places = { "/home/ada", "/home/ada/.kraft", "/home/ada/.kraft/run", "/home/ada/.kraft/config" },
		.user = "ada",
		.environment = environment,
		.guest_dir = "/usr/libexec/kraft/guest",
	};
	c->repo =
		(struct kr_repo){ .path = "/home/ada/code/w", .name = "w", .sandbox = { .kind = KR_SANDBOX_OS } };
	c->request = (struct kr_request){
		.repo = &c->repo,
		.phase = KR_PHASE_RUNTIME,
		.item = "w",
		.session = "s",
		.worktree = CASE_WORKTREE,
		.checkout = "/home/ada/code/w",
		.home = "/home/ada/.kraft/run/sandbox-home/w",
		.results_dir = "/home/ada/.kraft/run/results/w",
		.result_file = "/home/ada/.kraft/run/results/w/s.json",
		.channel_dir = "/home/ada/.kraft/run/sn/s",
		.cwd = CASE_WORKTREE,
		.argv = argv,
	};
}

void
plan_case_expose(struct plan_case *c, const char *path)
{
	struct kr_sandbox *sandbox = &c->repo.sandbox;
	struct kr_expose *more = kr_arena_alloc(&c->arena, (sandbox->expose_count + 1) * sizeof(*more));

	if (sandbox->expose_count)
		memcpy(more, sandbox->expose, sandbox->expose_count * sizeof(*more));
	more[sandbox->expose_count++] = (struct kr_expose){ .text = path, .path = path };
	sandbox->expose = more;
}

const struct kr_plan *
plan_case_build(struct plan_case *c)
{
	return kr_plan_build(&c->arena, &c->host, &c->request, &c->lookup, &c->err);
}

void
plan_case_fini(struct plan_case *c)
{
	kr_arena_fini(&c->arena);
}
