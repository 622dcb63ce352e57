/* backend/container.c: what is refused, the verify block, words about the walls. The words of `run` are in
 * the golden plans. */
#include <setjmp.h>
#include <stdarg.h>

#include "backend/container.h"
#include "plan_case.h"

#include <cmocka.h>

enum { STEPS_MAX = 64 };

struct docker_case {
	struct plan_case c;
	struct kr_strs entrypoint, env;
	struct kr_plan_container plan;
	struct kr_runtime runtime;
	struct kr_image image;
	struct kr_container container;
};

static void
docker_case_init(struct docker_case *d, const char *command)
{
	*d = (struct docker_case){ 0 };
	plan_case_init(&d->c, NULL, command);
	d->c.repo.sandbox =
		(struct kr_sandbox){ .kind = KR_SANDBOX_DOCKER, .image = "debian", .network.is_set = true };
	d->runtime = (struct kr_runtime){ .kind = KR_RUNTIME_DOCKER,
		.name = "docker 20.10.24",
		.program = "/usr/bin/docker",
		.version = { 20, 10, 24 },
		.limits = (1u << KR_LIMIT_COUNT) - 1 };
	d->image = (struct kr_image){ .name = "debian", .id = "sha256:5f5f" };
	d->plan = (struct kr_plan_container){ .runtime = d->runtime.name,
		.image = "debian",
		.image_id = d->image.id,
		.entrypoint = &d->entrypoint,
		.image_env = &d->env };
	d->container = (struct kr_container){ .runtime = &d->runtime,
		.image = &d->image,
		.home = "/home/ada/.kraft",
		.name = "kraft-s",
		.empty_path = "/e",
		.client_dir = "/home/ada/.kraft/run/sandbox-client/kraft-s",
		.uid = 1000,
		.gid = 1000 };
	d->c.request.container = &d->plan;
}

static void
refused(struct docker_case *d, enum kr_error_code code, const char *said)
{
	struct kr_container_render render = { 0 };
	const struct kr_plan *plan = plan_case_build(&d->c);

	assert_non_null(plan);
	d->c.err = (struct kr_error){ 0 };
	assert_int_equal(kr_container_args(plan, &d->container, NULL, &render, &d->c.err), -1);
	assert_int_equal(d->c.err.code, code);
	assert_non_null(strstr(d->c.err.message, said));
	assert_null(render.args.data);
}

static void
accepted(struct docker_case *d, const struct kr_opened *opened, struct kr_container_render *render)
{
	const struct kr_plan *plan = plan_case_build(&d->c);

	assert_non_null(plan);
	assert_int_equal(kr_container_args(plan, &d->container, opened, render, &d->c.err), 0);
}

static void
release(struct kr_container_render *render, struct docker_case *d)
{
	kr_buf_fini(&render->args);
	kr_buf_fini(&render->verify);
	plan_case_fini(&d->c);
}

/* CTR-01: the user inside is the person, never root by a mistake of ours. */
static void
nobody_runs_as_root(void **state)
{
	static const unsigned ids[][2] = { { 0, 1000 }, { 1000, 0 }, { 0, 0 } };
	struct kr_container_render render = { 0 };
	struct docker_case d;

	(void)state;
	docker_case_init(&d, "make");
	for (size_t i = 0; i < KR_COUNT(ids); i++) {
		d.container.uid = ids[i][0];
		d.container.gid = ids[i][1];
		refused(&d, KR_E_REFUSED, "as root");
	}
	d.container.uid = d.container.gid = 1000;
	accepted(&d, NULL, &render);
	release(&render, &d);
}

/* CTR-08: what stands last, where an option could, is an id and nothing else. */
static void
an_image_is_its_id(void **state)
{
	static const char *const bad[] = { "", "--privileged", "-v/:/x", "sha256:5f/../x", ":5f", "debian latest",
		"5f\n" };
	static const char *const good[] = { "sha256:5f5f", "5f5f5f" };
	struct docker_case d;

	(void)state;
	docker_case_init(&d, "make");
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		d.image.id = bad[i];
		refused(&d, KR_E_WALL, "id");
	}
	d.image.id = NULL;
	refused(&d, KR_E_NOT_FOUND, "'debian' is not here");
	for (size_t i = 0; i < KR_COUNT(good); i++) {
		struct kr_container_render render = { 0 };

		d.image.id = good[i];
		accepted(&d, NULL, &render);
		assert_string_equal(render.args.data + render.args.len - strlen(good[i]) - 1, good[i]);
		kr_buf_fini(&render.args);
		kr_buf_fini(&render.verify);
	}
	plan_case_fini(&d.c);
}

/* Words travel as JSON: a byte that is no character would become another one, and the path another path. */
static void
what_is_not_text_is_refused_by_name(void **state)
{
	static const char *const odd[] = { "make", NULL, NULL };
	struct docker_case d;

	(void)state;
	docker_case_init(&d, "ma\xffke");
	refused(&d, KR_E_UNSUPPORTED, "'ma\\xffke' cannot be said to docker 20.10.24: it is not UTF-8");
	plan_case_fini(&d.c);

	docker_case_init(&d, "make");
	d.c.request.argv = (const char *const[]){ odd[0], "a\xc3", NULL };
	refused(&d, KR_E_UNSUPPORTED, "the argument 'a\\xc3'");
	d.c.request.argv = odd;
	d.c.request.home = "/home/ada/.kraft/run/sandbox-home/\xe9";
	refused(&d, KR_E_UNSUPPORTED, "the path '/home/ada/.kraft/run/sandbox-home/\\xe9'");
	d.c.request.home = "/home/ada/.kraft/run/sandbox-home/a\rb";
	refused(&d, KR_E_UNSUPPORTED, "carriage return");
	d.c.request.home = "/home/ada/.kraft/run/sandbox-home/w";
	d.container.home = "/home/ada/\xe9";
	refused(&d, KR_E_UNSUPPORTED, "not UTF-8");
	plan_case_fini(&d.c);
}

/* FS-01: a runtime mounts by path, so the init compares what it finds; a virtual machine has other numbers.
 */
static void
each_mount_is_verified(void **state)
{
	struct kr_opened opened[STEPS_MAX];
	struct kr_container_render render = { 0 };
	struct docker_case d;
	const struct kr_plan *plan;
	size_t at = 0;

	(void)state;
	docker_case_init(&d, "make");
	plan = plan_case_build(&d.c);
	assert_true(plan && plan->step_count <= STEPS_MAX);
	for (size_t i = 0; i < plan->step_count; i++)
		opened[i] = (struct kr_opened){ .fd = -1, .device = 7, .inode = 1000 + i };
	accepted(&d, opened, &render);
	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *step = &plan->steps[i];
		const char *expected;

		if (step->kind != KR_STEP_BIND_RO && step->kind != KR_STEP_BIND_RW && step->kind != KR_STEP_MASK)
			continue;
		expected =
			kr_arena_printf(&d.c.arena, "7 %zu %d %s", 1000 + i, step->kind != KR_STEP_BIND_RW, step->path);
		assert_string_equal(render.verify.data + at, expected);
		at += strlen(expected) + 1;
	}
	assert_true(at > 0 && at == render.verify.len);
	release(&render, &d);
}

static bool
has_word(const struct kr_buf *words, const char *word)
{
	for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1)
		if (strcmp(words->data + at, word) == 0)
			return true;
	return false;
}

/* Numbers differ in a virtual machine; kinds do not. And there the client is what a session goes over. */
static void
a_machine_is_attached_to_and_its_mounts_compared_by_kind_CTR_14(void **state)
{
	struct kr_opened opened[STEPS_MAX];
	struct kr_container_render render = { 0 };
	struct docker_case d;
	const struct kr_plan *plan;
	const char *first = NULL;

	(void)state;
	docker_case_init(&d, "make");
	plan = plan_case_build(&d.c);
	assert_true(plan && plan->step_count <= STEPS_MAX);
	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *step = &plan->steps[i];

		opened[i] = (struct kr_opened){ .fd = -1, .device = 7, .inode = 1000 + i, .type = 16384, .has_entries = true };
		if (!first && (step->kind == KR_STEP_BIND_RO || step->kind == KR_STEP_BIND_RW))
			first = kr_arena_printf(&d.c.arena, "16384 1 %d %s", 2 + (step->kind == KR_STEP_BIND_RO), step->path);
	}
	accepted(&d, opened, &render);
	assert_true(has_word(&render.args, "--detach") && !has_word(&render.args, "--interactive"));
	kr_buf_fini(&render.args);
	kr_buf_fini(&render.verify);
	d.runtime.is_machine = true;
	accepted(&d, opened, &render);
	assert_string_equal(render.verify.data, first);
	assert_true(has_word(&render.args, "--interactive") && has_word(&render.args, "--sig-proxy=false"));
	assert_true(has_word(&render.args, "--network=none") && !has_word(&render.args, "--detach"));
	release(&render, &d);
}

/* LIM-01: what is asked for and cannot be held stops; what is ours by default goes without. */
static void
a_limit_that_would_be_dropped_is_refused(void **state)
{
	static const struct kr_resources asked[] = { { .cpu = 0.5 }, { .memory_bytes = 6 << 20 },
		{ .pids = 10 } };
	static const char *const keys[] = { "'cpu'", "'memory'", "'pids'" };
	static const unsigned bits[] = { 1u << KR_LIMIT_CPU, 1u << KR_LIMIT_MEMORY, 1u << KR_LIMIT_PIDS };
	struct docker_case d;

	(void)state;
	docker_case_init(&d, "make");
	for (size_t i = 0; i < KR_COUNT(asked); i++) {
		struct kr_error err = { 0 };

		d.c.repo.sandbox.resources = asked[i];
		d.runtime.limits = (1u << KR_LIMIT_COUNT) - 1;
		assert_int_equal(kr_runtime_check(&d.runtime, &d.c.repo.sandbox, KR_SELINUX_AUTO, &err), 0);
		d.runtime.limits &= ~bits[i];
		assert_int_equal(kr_runtime_check(&d.runtime, &d.c.repo.sandbox, KR_SELINUX_AUTO, &err), -1);
		assert_int_equal(err.code, KR_E_WALL);
		assert_non_null(strstr(err.message, keys[i]));
		assert_non_null(strstr(err.message, d.runtime.name));
	}
	d.runtime.limits = 0;
	d.c.repo.sandbox.resources = (struct kr_resources){ 0 };
	assert_int_equal(kr_runtime_check(&d.runtime, &d.c.repo.sandbox, KR_SELINUX_AUTO, NULL), 0);
	plan_case_fini(&d.c);
}

/* CTR-02 */
static void
an_enforcing_host_wants_an_answer(void **state)
{
	struct docker_case d;
	struct kr_error err = { 0 };

	(void)state;
	docker_case_init(&d, "make");
	d.runtime.enforces_selinux = true;
	assert_int_equal(kr_runtime_check(&d.runtime, &d.c.repo.sandbox, KR_SELINUX_AUTO, &err), -1);
	assert_non_null(strstr(err.hint, "relabel"));
	assert_non_null(strstr(err.hint, "disable"));
	assert_int_equal(kr_runtime_check(&d.runtime, &d.c.repo.sandbox, KR_SELINUX_RELABEL, NULL), 0);
	assert_int_equal(kr_runtime_check(&d.runtime, &d.c.repo.sandbox, KR_SELINUX_DISABLE, NULL), 0);
	plan_case_fini(&d.c);
}

/* CFG-09: asking an image for its roots is a container like a session's, but for the host's places. */
static void
a_script_has_the_same_walls(void **state)
{
	static const char *const bad[] = { "--detach", "--mount", "--volume" };
	static const struct {
		enum kr_runtime_kind kind;
		bool is_rootless;
		const char *words;
	} cases[] = {
		{ KR_RUNTIME_DOCKER, false,
			"run --rm --pull=never --name=kraft-ab --label=kraft.home=/home/ada/.kraft "
			"--label=kraft.session=ab --cidfile=/home/ada/.kraft/run/sandbox-client/kraft-s/cid "
			"--log-driver=none --cap-drop=ALL --security-opt=no-new-privileges --read-only --ipc=private "
			"--cgroupns=private --init=false --no-healthcheck --workdir=/ --stop-timeout=1 --user=1000:1000 "
			"--security-opt=label=disable --pids-limit=9 --network=none --env=HTTP_PROXY" },
		{ KR_RUNTIME_DOCKER, true, "--stop-timeout=1 --user=0:0 --security-opt=label=disable" },
		{ KR_RUNTIME_PODMAN, false, "--http-proxy=false --user=1000:1000 --security-opt=label=disable" },
		{ KR_RUNTIME_PODMAN, true, "--http-proxy=false --user=0:0 --security-opt=label=disable" },
	};
	const struct kr_resources asked = { .pids = 9 };
	struct docker_case d;

	(void)state;
	docker_case_init(&d, "make");
	d.container.selinux = KR_SELINUX_DISABLE;
	d.container.name = "kraft-ab";
	kr_strs_add(&d.c.arena, &d.image.volumes, "/data");
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		kr_auto_buf struct kr_buf text = KR_BUF(1 << 16);
		struct kr_strs argv = { 0 };

		d.runtime.kind = cases[i].kind;
		d.runtime.is_rootless = cases[i].is_rootless;
		assert_int_equal(
			kr_container_script_args(&d.c.arena, &d.container, "ab", &asked, "cat x; exit", &argv, &d.c.err),
			0);
		assert_null(argv.v[argv.n]);
		for (size_t w = 0; w < argv.n; w++)
			kr_buf_addf(&text, "%s%s", w ? " " : "", argv.v[w]);
		assert_non_null(strstr(text.data, cases[i].words));
		assert_non_null(strstr(text.data, " --tmpfs=/data:ro,"));
		assert_string_equal(
			strstr(text.data, " --entrypoint"), " --entrypoint=/bin/sh sha256:5f5f -c cat x; exit");
		for (size_t w = 0; w < KR_COUNT(bad); w++)
			assert_null(strstr(text.data, bad[w]));
	}
	d.container.uid = 0;
	assert_int_equal(
		kr_container_script_args(&d.c.arena, &d.container, "ab", &asked, "x", &(struct kr_strs){ 0 }, NULL),
		-1);
	plan_case_fini(&d.c);
}

/* What explain says, of an image about which nothing is known too. */
static void
an_unknown_image_is_explained(void **state)
{
	kr_auto_buf struct kr_buf text = KR_BUF(1 << 20), json = KR_BUF(1 << 20);
	struct kr_strs walls = { 0 };
	struct docker_case d;
	const struct kr_plan *plan;

	(void)state;
	docker_case_init(&d, "make");
	d.plan.image_id = NULL;
	d.plan.entrypoint = d.plan.image_env = NULL;
	kr_container_walls(&d.c.arena, &d.runtime, &d.c.repo.sandbox, KR_SELINUX_AUTO, 1000, 1000, &walls);
	d.plan.walls = &walls;
	plan = plan_case_build(&d.c);
	assert_non_null(plan);
	kr_plan_print(plan, NULL, &text);
	kr_plan_print_json(plan, NULL, &json);
	assert_non_null(strstr(text.data, "not known yet"));
	assert_non_null(strstr(text.data, "4096 processes at most"));
	assert_non_null(strstr(json.data, "\"id\": null"));
	plan_case_fini(&d.c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_runs_as_root),
		cmocka_unit_test(an_image_is_its_id),
		cmocka_unit_test(what_is_not_text_is_refused_by_name),
		cmocka_unit_test(each_mount_is_verified),
		cmocka_unit_test(a_machine_is_attached_to_and_its_mounts_compared_by_kind_CTR_14),
		cmocka_unit_test(a_limit_that_would_be_dropped_is_refused),
		cmocka_unit_test(an_enforcing_host_wants_an_answer),
		cmocka_unit_test(a_script_has_the_same_walls),
		cmocka_unit_test(an_unknown_image_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
