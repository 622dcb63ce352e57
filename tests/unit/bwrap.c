/* backend/bwrap.c: descriptors, the verify block, limits. The arguments by path are in the golden plans. */
#include <setjmp.h>
#include <stdarg.h>

#include "backend/backend.h"
#include "plan_case.h"

#include <cmocka.h>

enum { PLAN_STEPS_MAX = 64 };

static const struct fake_entry entries[] = { { "/srv/t/.npmrc", "file" }, { "/srv/l", "-> t" },
	{ NULL, NULL } };
static const struct kr_bwrap with_fds = { .path = "/usr/bin/bwrap", .version = { 0, 8, 0 }, .bind_fd = true };
static const struct kr_bwrap by_path = { .path = "/usr/bin/bwrap", .version = { 0, 8, 0 } };

/* The arguments as one line, for searching. */
static char *
line(struct kr_bwrap_render *render)
{
	for (size_t i = 0; i < render->args.len; i++)
		if (render->args.data[i] == '\0')
			render->args.data[i] = ' ';
	return render->args.data;
}

static const struct kr_plan *
make(struct plan_case *c, struct kr_opened *opened)
{
	const struct kr_plan *plan;

	plan_case_init(c, entries, "make");
	plan_case_expose(c, "/srv/l");
	plan = plan_case_build(c);
	assert_non_null(plan);
	assert_true(plan->step_count <= PLAN_STEPS_MAX);
	for (size_t i = 0; i < plan->step_count; i++)
		opened[i] = (struct kr_opened){ .fd = 100 + (int)i, .device = 7, .inode = 1000 + i };
	return plan;
}

static void
release(struct kr_bwrap_render *render, struct plan_case *c)
{
	kr_buf_fini(&render->args);
	kr_buf_fini(&render->verify);
	plan_case_fini(c);
}

/* FS-01: what was checked is what is mounted. */
static void
mounts_are_said_by_descriptor(void **state)
{
	struct kr_opened opened[PLAN_STEPS_MAX];
	struct kr_bwrap_render render = { 0 };
	struct plan_case c;
	const struct kr_plan *plan = make(&c, opened);
	const char *text;

	(void)state;
	assert_int_equal(kr_bwrap_args(plan, &with_fds, opened, NULL, NULL, "/e", &render, NULL), 0);
	assert_int_equal(render.verify.len, 0);
	text = line(&render);
	assert_null(strstr(text, "--ro-bind "));
	assert_null(strstr(text, "--bind "));
	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *step = &plan->steps[i];

		if (step->kind == KR_STEP_BIND_RO || step->kind == KR_STEP_MASK)
			assert_non_null(
				strstr(text, kr_arena_printf(&c.arena, "--ro-bind-fd %zu %s ", 100 + i, step->path)));
		if (step->kind == KR_STEP_BIND_RW)
			assert_non_null(
				strstr(text, kr_arena_printf(&c.arena, "--bind-fd %zu %s ", 100 + i, step->path)));
	}
	release(&render, &c);
}

/* Without the options the init compares what it finds: "device inode flags path", NUL. */
static void
mounts_by_path_are_verified(void **state)
{
	struct kr_opened opened[PLAN_STEPS_MAX];
	struct kr_bwrap_render render = { 0 };
	struct plan_case c;
	const struct kr_plan *plan = make(&c, opened);
	size_t at = 0;

	(void)state;
	assert_int_equal(kr_bwrap_args(plan, &by_path, opened, NULL, NULL, "/e", &render, NULL), 0);
	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *step = &plan->steps[i];
		const char *expected;

		if (step->kind != KR_STEP_BIND_RO && step->kind != KR_STEP_BIND_RW && step->kind != KR_STEP_MASK)
			continue;
		expected =
			kr_arena_printf(&c.arena, "7 %zu %d %s", 1000 + i, step->kind != KR_STEP_BIND_RW, step->path);
		assert_string_equal(render.verify.data + at, expected);
		at += strlen(expected) + 1;
	}
	assert_int_equal(at, render.verify.len);
	assert_non_null(strstr(line(&render), "--ro-bind /srv/t /srv/t "));
	release(&render, &c);
}

static void
every_wall_is_asked_for(void **state)
{
	static const char *const walls[] = { "--unshare-all ", "--unshare-user ", "--disable-userns ",
		"--as-pid-1 ", "--cap-drop ALL ", "--proc /proc ", "--dev /dev ",
		"--perms 1777 --size 2147483648 --tmpfs /tmp ", "--perms 1777 --size 268435456 --tmpfs /dev/shm ",
		"--symlink /tmp /var/tmp ", "--symlink t /srv/l ", "--ro-bind /e /srv/t/.npmrc ",
		"--remount-ro / --remount-ro /dev " };
	struct kr_opened opened[PLAN_STEPS_MAX];
	struct kr_bwrap_render render = { 0 };
	struct plan_case c;
	const struct kr_plan *plan = make(&c, opened);
	const char *text;
	size_t n;

	(void)state;
	assert_int_equal(kr_bwrap_args(plan, &by_path, NULL, NULL, NULL, "/e", &render, NULL), 0);
	assert_int_equal(render.verify.len, 0);
	text = line(&render);
	for (size_t i = 0; i < KR_COUNT(walls); i++)
		assert_non_null(strstr(text, walls[i]));
	n = strlen("--remount-ro / --remount-ro /dev ");
	assert_string_equal(text + render.args.len - n, "--remount-ro / --remount-ro /dev ");
	/* Nothing that would make a wall lower. */
	assert_null(strstr(text, "--share-net"));
	assert_null(strstr(text, "-try"));
	assert_null(strstr(text, "--dev-bind"));
	release(&render, &c);
}

/* OS-SEC-08: file systems with an inode cap, made by the launcher. */
static void
prepared_file_systems_are_bound(void **state)
{
	struct kr_opened opened[PLAN_STEPS_MAX];
	struct kr_bwrap_render render = { 0 };
	struct plan_case c;
	const struct kr_plan *plan = make(&c, opened);
	const char *text;

	(void)state;
	assert_int_equal(kr_bwrap_args(plan, &with_fds, opened, "/p/tmp", "/p/shm", "/e", &render, NULL), 0);
	text = line(&render);
	assert_non_null(strstr(text, "--bind /p/tmp /tmp "));
	assert_non_null(strstr(text, "--bind /p/shm /dev/shm "));
	assert_null(strstr(text, "--tmpfs"));
	release(&render, &c);
}

/* CFG-10: a link's text that looks like an option stays the value it is. */
static void
texts_are_data(void **state)
{
	struct kr_step steps[] = { { KR_STEP_LINK, .path = "/x", .source = "--share-net" } };
	const struct kr_plan plan = { .steps = steps, .step_count = 1 };
	struct kr_bwrap_render render = { 0 };
	size_t args = 1;

	(void)state;
	assert_int_equal(kr_bwrap_args(&plan, &by_path, NULL, NULL, NULL, "/e", &render, NULL), 0);
	assert_non_null(memmem(render.args.data, render.args.len, "--symlink\0--share-net\0/x", 25));
	for (size_t i = 0; i + 1 < render.args.len; i++)
		args += render.args.data[i] == '\0';
	assert_int_equal(args, render.arg_count);
	kr_buf_fini(&render.args);
}

static void
too_many_arguments_are_refused(void **state)
{
	static struct kr_step steps[3001];
	struct kr_plan plan = { .steps = steps, .step_count = 2990 };
	struct kr_bwrap_render render = { 0 };
	struct kr_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(steps); i++)
		steps[i] = (struct kr_step){ KR_STEP_LINK, .path = "/x", .source = "y" };
	assert_int_equal(kr_bwrap_args(&plan, &by_path, NULL, NULL, NULL, "/e", &render, &err), 0);
	kr_buf_fini(&render.args);
	plan.step_count = KR_COUNT(steps);
	assert_int_equal(kr_bwrap_args(&plan, &by_path, NULL, NULL, NULL, "/e", &render, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_are_said_by_descriptor),
		cmocka_unit_test(mounts_by_path_are_verified),
		cmocka_unit_test(every_wall_is_asked_for),
		cmocka_unit_test(prepared_file_systems_are_bound),
		cmocka_unit_test(texts_are_data),
		cmocka_unit_test(too_many_arguments_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
