/*
 * Which runtime there is: what real ones answer is read, what is odd is refused, and a CLI that hangs, floods
 * or fails is ended and named. The CLIs are scripts of ours that count their calls.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/path.h"
#include "os/fs.h"
#include "os/host.h"
#include "os/sys.h"
#include "os/timer.h"

#include <cmocka.h>

#define DOCKER_VERSION                                                                                 \
	"{\"Client\":{\"Version\":\"28.2.2\",\"ApiVersion\":\"1.41\"},\"Server\":{\"Version\":\"20.10.24+" \
	"dfsg1\","                                                                                         \
	"\"Components\":[{\"Name\":\"Engine\"},{\"Name\":\"runc\"}]}}\n"
#define DOCKER_LIMITS \
	"\"MemoryLimit\":true,\"SwapLimit\":true,\"CpuCfsPeriod\":true,\"CpuCfsQuota\":true,\"PidsLimit\":true"
#define DOCKER_INFO(kernel, more)  \
	"{\"KernelVersion\":\"" kernel \
	"\",\"OSType\":\"linux\",\"OperatingSystem\":\"Debian GNU/Linux 12\"," more "}\n"
#define PODMAN_VERSION "{\"Client\":{\"APIVersion\":\"4.3.1\",\"Version\":\"4.3.1\"}}\n"
#define PODMAN_INFO(rootless, controllers)                                                      \
	"{\"host\":{\"kernel\":\"6.1\",\"cgroupVersion\":\"v2\",\"cgroupControllers\":" controllers \
	",\"serviceIsRemote\":true,\"security\":{\"rootless\":" rootless ",\"selinuxEnabled\":true}}}\n"
#define REMOTE(remote, name)                                                               \
	"{\"host\":{\"kernel\":\"6.1\",\"serviceIsRemote\":" remote ",\"hostname\":\"" name \
	"\",\"security\":{\"rootless\":true}}}"

enum { ALL_LIMITS = (1 << KR_LIMIT_COUNT) - 1 };

/* ---- readers ---- */

static void
versions_say_which_runtime_it_is(void **state)
{
	static const struct {
		const char *json, *name;
		enum kr_runtime_kind kind;
		unsigned version[3];
	} cases[] = {
		{ DOCKER_VERSION, "docker 20.10.24", KR_RUNTIME_DOCKER, { 20, 10, 24 } },
		{ "{\"Client\":{\"Version\":\"20.10.5\",\"ApiVersion\":\"1\"},\"Server\":{\"Version\":\"28.0.1\"}}",
			"docker 28.0.1", KR_RUNTIME_DOCKER, { 20, 10, 5 } },
		{ PODMAN_VERSION, "podman 4.3.1", KR_RUNTIME_PODMAN, { 4, 3, 1 } },
		{ "{\"Client\":{\"APIVersion\":\"5.0.0\",\"Version\":\"5.0.0-dev\"},\"Server\":{\"APIVersion\":\"4.4."
		  "0\","
		  "\"Version\":\"4.4.0\"}}",
			"podman 4.4.0", KR_RUNTIME_PODMAN, { 4, 4, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_runtime got = { 0 };
		struct kr_error err = { 0 };

		if (kr_runtime_read_version(&arena, cases[i].json, strlen(cases[i].json), &got, &err) < 0)
			fail_msg("%s: %s", cases[i].json, err.message);
		assert_string_equal(got.name, cases[i].name);
		assert_int_equal(got.kind, cases[i].kind);
		assert_memory_equal(got.version, cases[i].version, sizeof(got.version));
	}
}

static void
what_is_no_version_is_refused(void **state)
{
	static const struct {
		const char *json, *message;
	} cases[] = {
		{ "", "is not what a container runtime says" },
		{ "docker version 20", "is not what a container runtime says" },
		{ "[]", "no usable 'Client.Version'" },
		{ "{\"Client\":{}}", "no usable 'Client.Version'" },
		{ "{\"Client\":{\"Version\":\"x\"}}", "no usable 'Client.Version'" },
		{ "{\"Client\":{\"Version\":3}}", "no usable 'Client.Version'" },
		{ "{\"Client\":{\"Version\":\"28.2.2\"},\"Server\":null}", "no usable 'Server.Version'" },
		{ "{\"Client\":{\"Version\":\"28.2.2\"},\"Client\":{\"Version\":\"1.2\"}}", "is not what" },
		{ "{\"Client\":{\"Version\":\"19.3.8\"},\"Server\":{\"Version\":\"28.2.2\"}}", "too old" },
		{ "{\"Client\":{\"Version\":\"28.2.2\"},\"Server\":{\"Version\":\"20.9.9\"}}",
			"docker 20.9.9 is too old" },
		{ "{\"Client\":{\"Version\":\"3.4.4\",\"APIVersion\":\"3.4.4\"}}", "podman 3.4.4 is too old" },
		{ "{\"Client\":{\"Version\":\"24.0.0\"},\"Server\":{\"Version\":\"4.3.1\",\"Components\":[{\"Name\":"
		  "\"Podman "
		  "Engine\"}]}}",
			"the service that this docker CLI talks to is podman's" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_runtime got = { 0 };
		struct kr_error err = { 0 };

		assert_int_equal(
			kr_runtime_read_version(&arena, cases[i].json, strlen(cases[i].json), &got, &err), -1);
		assert_int_equal(err.code, KR_E_WALL);
		if (!strstr(err.message, cases[i].message))
			fail_msg("%s: %s", cases[i].json, err.message);
		assert_null(got.name);
	}
}

static struct kr_runtime
settled(struct kr_arena *arena, enum kr_runtime_kind kind, const char *json, struct kr_runtime_host host)
{
	struct kr_runtime runtime = { .kind = kind, .name = "it 1.2.3" };
	struct kr_runtime_info info;
	struct kr_error err = { 0 };

	if (kr_runtime_read_info(arena, kind, json, strlen(json), &info, &err) < 0)
		fail_msg("%s: %s", json, err.message);
	kr_runtime_settle(arena, &info, &host, &runtime);
	return runtime;
}

static void
info_says_what_a_runtime_enforces_LIM_01(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct kr_runtime_host host = { .kernel = "6.1", .accounts_swap = true },
								 no_swap = { .kernel = "6.1" };
	struct kr_runtime r;

	(void)state;
	r = settled(&arena, KR_RUNTIME_DOCKER, DOCKER_INFO("6.1", DOCKER_LIMITS), no_swap);
	assert_int_equal(r.limits, ALL_LIMITS);
	assert_false(r.is_rootless || r.is_remapped || r.is_machine || r.enforces_selinux);
	assert_string_equal(r.name, "it 1.2.3");
	r = settled(&arena, KR_RUNTIME_DOCKER,
		DOCKER_INFO("6.1",
			"\"SecurityOptions\":[\"name=seccomp,profile=default\",\"name=rootless\",\"name=userns\"],"
			"\"MemoryLimit\":true,\"SwapLimit\":false,\"CpuCfsPeriod\":true,\"PidsLimit\":null"),
		host);
	assert_int_equal(
		r.limits, 1 << KR_LIMIT_MEMORY); /* a quota without a period, null, and what is missing are none */
	assert_true(r.is_rootless && r.is_remapped);
	assert_string_equal(r.name, "rootless it 1.2.3");
	r = settled(&arena, KR_RUNTIME_PODMAN, PODMAN_INFO("true", "[]"), host);
	assert_int_equal(r.limits, 0);               /* cgroup v1 without root */
	assert_true(r.is_rootless && !r.is_machine); /* its service is remote, and of this host */
	r = settled(&arena, KR_RUNTIME_PODMAN, PODMAN_INFO("false", "[\"cpu\",\"memory\",\"pids\"]"), host);
	assert_int_equal(r.limits, ALL_LIMITS);
	r = settled(&arena, KR_RUNTIME_PODMAN, PODMAN_INFO("false", "[\"cpu\",\"memory\",\"pids\"]"), no_swap);
	assert_int_equal(r.limits, ALL_LIMITS & ~(1 << KR_LIMIT_SWAP));
	r = settled(&arena, KR_RUNTIME_PODMAN, PODMAN_INFO("false", "[\"memory\",\"cpuset\"]"), host);
	assert_int_equal(r.limits, 1 << KR_LIMIT_MEMORY | 1 << KR_LIMIT_SWAP);
}

/* CTR-03: what runc does through an image's link, and podman's own bound. What is not told is no flaw. */
static void
known_flaws_of_a_runtime_are_seen(void **state)
{
#define RUNC(version) \
	"\"host\":{\"ociRuntime\":{\"name\":\"runc\",\"version\":\"runc version " version "\\ncommit: 1\"},"
#define RUNROOT(path) "\"store\":{\"runRoot\":\"" path "\"},\"host\":{"
#define FIFTY "/run/012345678901234567890123456789012345678901234"
	static const struct {
		const char *json, *rootless;
		unsigned flaws;
	} cases[] = {
		{ RUNC("1.1.5+ds1"), "false", 1 << KR_FLAW_DEV_LINK },
		{ RUNC("1.0.0-rc95"), "false", 1 << KR_FLAW_DEV_LINK },
		{ RUNC("1.1.5+ds1"), "true", 0 },
		{ RUNC("1.2.0"), "false", 0 },
		{ RUNC("1.10.1"), "false", 0 },
		{ "\"host\":{\"ociRuntime\":{\"name\":\"crun\",\"version\":\"crun version 1.1.5\"},", "false", 0 },
		{ "\"host\":{\"ociRuntime\":{\"version\":7},", "false", 0 },
		{ "\"store\":[],\"host\":{\"ociRuntime\":null,", "false", 0 },
		{ RUNROOT(FIFTY "x"), "true", 1 << KR_FLAW_LONG_RUNROOT },
		{ RUNROOT(FIFTY "x"), "false", 1 << KR_FLAW_LONG_RUNROOT },
		{ RUNROOT(FIFTY), "true", 0 },
	};
	const struct kr_runtime_host host = { .kernel = "6.1" };

	(void)state;
	assert_int_equal(strlen(FIFTY), 50);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const char *json = kr_arena_printf(&arena, "{%s\"kernel\":\"6.1\",\"security\":{\"rootless\":%s}}}",
			cases[i].json, cases[i].rootless);
		unsigned flaws = settled(&arena, KR_RUNTIME_PODMAN, json, host).flaws;

		if (flaws != cases[i].flaws)
			fail_msg("%s: %u", json, flaws);
	}
}

static void
another_kernel_is_a_machine_and_labels_count_where_selinux_enforces_CTR_02(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct kr_runtime_host host = { .kernel = "6.1" },
								 named = { .kernel = "6.1", .hostname = "here.example" },
								 enforcing = { .kernel = "6.1", .enforces_selinux = true };
	static const char labels[] = DOCKER_INFO("6.1", "\"SecurityOptions\":[\"name=selinux\"]");
	static const char desktop[] =
		"{\"KernelVersion\":\"6.1\",\"OSType\":\"linux\",\"OperatingSystem\":\"Docker Desktop\"}";

	(void)state;
	assert_true(
		settled(&arena, KR_RUNTIME_DOCKER, DOCKER_INFO("6.1.0-linuxkit", DOCKER_LIMITS), host).is_machine);
	assert_true(settled(&arena, KR_RUNTIME_DOCKER, desktop, host).is_machine);
	/* A service that podman calls remote is one of this host as long as it has this host's name. */
	assert_true(settled(&arena, KR_RUNTIME_PODMAN, REMOTE("true", "core.example"), named).is_machine);
	assert_false(settled(&arena, KR_RUNTIME_PODMAN, REMOTE("true", "here.example"), named).is_machine);
	assert_false(settled(&arena, KR_RUNTIME_PODMAN, REMOTE("false", "core.example"), named).is_machine);
	assert_false(settled(&arena, KR_RUNTIME_PODMAN, REMOTE("true", "core.example"), host).is_machine);
	assert_false(settled(&arena, KR_RUNTIME_DOCKER, labels, host).enforces_selinux);
	assert_true(settled(&arena, KR_RUNTIME_DOCKER, labels, enforcing).enforces_selinux);
	assert_false(
		settled(&arena, KR_RUNTIME_DOCKER, DOCKER_INFO("6.1", DOCKER_LIMITS), enforcing).enforces_selinux);
	assert_true(settled(&arena, KR_RUNTIME_PODMAN, PODMAN_INFO("true", "null"), enforcing).enforces_selinux);
}

static void
an_odd_info_is_refused(void **state)
{
	static const struct {
		enum kr_runtime_kind kind;
		const char *json, *message;
	} cases[] = {
		{ KR_RUNTIME_DOCKER, "{}", "'KernelVersion'" },
		{ KR_RUNTIME_DOCKER, "{\"KernelVersion\":\"\",\"OperatingSystem\":\"x\"}",
			"'KernelVersion'" }, /* no service */
		{ KR_RUNTIME_DOCKER, "{\"KernelVersion\":\"6\",\"OSType\":\"linux\"}", "'OperatingSystem'" },
		{ KR_RUNTIME_DOCKER, "{\"KernelVersion\":\"6\",\"OSType\":\"windows\",\"OperatingSystem\":\"w\"}",
			"'windows'" },
		{ KR_RUNTIME_DOCKER, DOCKER_INFO("6", "\"SecurityOptions\":{}"), "'SecurityOptions'" },
		{ KR_RUNTIME_DOCKER, DOCKER_INFO("6", "\"MemoryLimit\":\"true\""), "'MemoryLimit" },
		{ KR_RUNTIME_PODMAN, "{\"host\":[]}", "'host.kernel'" },
		{ KR_RUNTIME_PODMAN, "{\"host\":{\"kernel\":\"6\",\"security\":{}}}", "'host.security.rootless'" },
		{ KR_RUNTIME_PODMAN, PODMAN_INFO("true", "\"cpu\""), "'host.cgroupControllers'" },
		{ KR_RUNTIME_PODMAN, PODMAN_INFO("1", "[]"), "'host.security.rootless'" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_runtime_info got;
		struct kr_error err = { 0 };

		assert_int_equal(
			kr_runtime_read_info(&arena, cases[i].kind, cases[i].json, strlen(cases[i].json), &got, &err),
			-1);
		assert_int_equal(err.code, KR_E_WALL);
		if (!strstr(err.message, cases[i].message))
			fail_msg("%s: %s", cases[i].json, err.message);
	}
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
an_image_is_read_from_both_and_bounded(void **state)
{
	static const struct {
		const char *json, *words, *error;
	} cases[] = {
		{ "{\"Id\":\"sha256:" HEX64
		  "\",\"Architecture\":\"amd64\",\"Config\":{\"Entrypoint\":[\"/e\",\"a b\",\"\"],"
		  "\"Env\":[\"A=1\",\"B=\",\"C\",\"=x\",\"A=a=b\"]}}",
			"/e|a b||A=1 B= A=a=b ", NULL },
		{ "[{\"Id\":\"" HEX64 "\",\"Architecture\":\"arm64\",\"Config\":{\"Entrypoint\":\"/one word\"}}]\n",
			"/one word|", NULL },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"\",\"Config\":{\"Entrypoint\":null,\"Env\":null}}", "",
			NULL },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\"}", "", NULL },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Volumes\":{\"/z\":{},\"/a//b/\":{},\"/a/b\":{}}}}",
			"</a/b></z>", NULL },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Volumes\":{\"data\":{}}}}", NULL,
			"'Config.Volumes'" },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Volumes\":{\"/..\":{}}}}", NULL,
			"'Config.Volumes'" },
		{ "[]", NULL, "'Id'" },
		{ "[{},{}]", NULL, "'Id'" },
		{ "{\"Id\":\"" HEX64 "0\",\"Architecture\":\"x\"}", NULL, "'Id'" },
		{ "{\"Id\":\"--privileged\",\"Architecture\":\"x\"}", NULL, "'Id'" },
		{ "{\"Id\":\"" HEX64 "\"}", NULL, "'Architecture'" },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":[]}", NULL, "'Config'" },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Entrypoint\":[1]}}", NULL,
			"'Config.Entrypoint'" },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Env\":{}}}", NULL, "'Config.Env'" },
		{ "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Env\":[\"A=\\u0000\"]}}", NULL,
			"is not what" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		kr_auto_buf struct kr_buf words = KR_BUF(1000);
		struct kr_image got = { .name = "it" };
		struct kr_error err = { 0 };

		if (kr_image_read(&arena, cases[i].json, strlen(cases[i].json), &got, &err) < 0) {
			if (!cases[i].error || !strstr(err.message, cases[i].error))
				fail_msg("%s: %s", cases[i].json, err.message);
			assert_null(got.id);
			continue;
		}
		assert_non_null(cases[i].words);
		for (size_t k = 0; k < got.entrypoint.n; k++)
			kr_buf_addf(&words, "%s|", got.entrypoint.v[k]);
		for (size_t k = 0; k < got.env.n; k++)
			kr_buf_addf(&words, "%s ", got.env.v[k]);
		for (size_t k = 0; k < got.volumes.n; k++)
			kr_buf_addf(&words, "<%s>", got.volumes.v[k]);
		assert_string_equal(words.data ? words.data : "", cases[i].words);
		assert_string_equal(got.name, "it");
	}
}

static void
too_much_of_an_image_is_a_limit(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_buf struct kr_buf json = KR_BUF(1 << 20);
	struct kr_image got = { .name = "it" };
	struct kr_error err = { 0 };

	(void)state;
	kr_buf_adds(&json, "{\"Id\":\"" HEX64 "\",\"Architecture\":\"x\",\"Config\":{\"Env\":[\"A=1\"");
	for (int i = 0; i < KR_IMAGE_VARIABLES; i++)
		kr_buf_adds(&json, ",\"A=1\"");
	kr_buf_adds(&json, "]}}");
	assert_int_equal(kr_image_read(&arena, json.data, json.len, &got, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
}

static void
containers_are_read_as_texts_of_anybody_CTR_08(void **state)
{
	static const char docker[] = "{\"name\":\"kraft-1\",\"home\":\"/a b,c=\\\"d\\n\",\"session\":\"1\"}\n"
								 "{\"name\":\"--all\",\"home\":\"\",\"session\":null}\n";
	static const char podman[] = "[{\"Names\":[\"kraft-1\"],\"Labels\":{\"kraft.home\":\"/a b,c=\\\"d\\n\","
								 "\"kraft.session\":\"1\"}},{\"Names\":[\"--all\"],\"Labels\":null}]\n";
	const char *const texts[] = { [KR_RUNTIME_DOCKER] = docker, [KR_RUNTIME_PODMAN] = podman };

	(void)state;
	for (int kind = 0; kind < KR_RUNTIME_COUNT; kind++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		enum kr_runtime_kind k = (enum kr_runtime_kind)kind;
		struct kr_containers_seen seen;
		struct kr_error err = { 0 };

		if (kr_containers_read(&arena, k, texts[kind], strlen(texts[kind]), &seen, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(seen.n, 2);
		assert_string_equal(seen.v[0].name, "kraft-1");
		assert_string_equal(seen.v[0].home, "/a b,c=\"d\n");
		assert_string_equal(seen.v[0].session, "1");
		assert_string_equal(seen.v[1].name, "--all");
		assert_string_equal(seen.v[1].home, "");
		assert_string_equal(seen.v[1].session, "");
		assert_int_equal(kr_containers_read(&arena, k, "{\"x\":1}", 7, &seen, &err), -1);
		assert_int_equal(kr_containers_read(&arena, k, "CONTAINER ID", 12, &seen, &err), -1);
	}
}

/* ---- patience ---- */

static void
patience_is_ten_seconds_then_thirty_then_a_pause(void **state)
{
	static const struct {
		unsigned failures;
		int64_t at_ms, now_ms, limit_ms;
	} cases[] = {
		{ 0, 0, 5, 10000 },
		{ 1, 1000, 1001, 30000 },
		{ 2, 1000, 1001, 0 },
		{ 2, 1000, 30999, 0 },
		{ 2, 1000, 31000, 30000 },
		{ 9, 1000, 1000, 0 },
		{ 9, 1000, 999, 30000 }, /* the clock was set back */
		{ 9, 1000, INT64_MAX, 30000 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		assert_int_equal(
			kr_runtime_patience(
				&(const struct kr_runtime_wait){ cases[i].failures, cases[i].at_ms }, cases[i].now_ms),
			cases[i].limit_ms);
}

/* ---- what a CLI says when it fails ---- */

static void
a_failure_has_its_reason_and_its_next_step(void **state)
{
	static const struct {
		const char *said, *words, *step;
	} cases[] = {
		{ "Got permission denied while trying to connect to the Docker daemon socket at "
		  "unix:///var/run/docker.sock: Get "
		  "\"http://x/v1.41/version\": dial unix /var/run/docker.sock: connect: permission denied\n",
			"permission denied while", "usermod -aG docker" },
		{ "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock\n",
			"docker API", "usermod -aG docker" },
		{ "Cannot connect to the Docker daemon at unix:///tmp/nope.sock. Is the docker daemon running?\n\n",
			"Cannot connect", "systemctl start docker" },
		{ "Error response from daemon: client version 1.50 is too new. Maximum supported API version is "
		  "1.41\n",
			"too new", "DOCKER_API_VERSION" },
		{ "Cannot connect to Podman. Please verify your connection\nError: unable to connect to Podman "
		  "socket: Get "
		  "\"http://d/v4.3.1/libpod/_ping\": dial unix /x: connect: connection refused\n",
			"; Error: unable to connect", "podman.socket" },
		{ "time=\"x\" level=warning msg=\"noise\"\nWARN[0000] noise\nError: \x1b[31mred\n",
			"Error: \\x1b[31mred", "info' by hand" },
		{ "WARN[0000] only noise\n", "WARN[0000] only noise", "info' by hand" },
		{ "", "it gave no reason", "info' by hand" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const char *words = kr_runtime_words(&arena, cases[i].said, strlen(cases[i].said));
		const char *step = kr_runtime_next_step(&arena, "docker", words);

		if (!strstr(words, cases[i].words) || strchr(words, '\n') || strchr(words, '\x1b') ||
			!strstr(step, cases[i].step))
			fail_msg("%s: %s / %s", cases[i].said, words, step);
		assert_true(strlen(step) < sizeof(((struct kr_error *)0)->hint));
	}
}

/* ---- CLIs of ours ---- */

struct desk {
	struct kr_arena arena;
	char top[64];
	struct kr_host host;
	struct kr_sandbox_file file;
	const char *environment[8];
};

static const char *
at(struct desk *desk, const char *name)
{
	return kr_arena_printf(&desk->arena, "%s/%s", desk->top, name);
}

static void
put(struct desk *desk, const char *name, const char *text, mode_t mode)
{
	int fd = open(at(desk, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(close(fd), 0);
}

/* A program that notes each call and then does what `body` says. */
static void
put_cli(struct desk *desk, const char *name, const char *body)
{
	put(desk, name,
		kr_arena_printf(&desk->arena, "#!/bin/sh\necho \"${0##*/} $*\" >>'%s/calls'\ncd '%s'\n%s\n",
			desk->top, desk->top, body),
		0755);
}

static unsigned
calls(struct desk *desk)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(1 << 16);
	unsigned n = 0;

	if (kr_file_read_at(AT_FDCWD, at(desk, "calls"), &bytes, NULL) < 0)
		return 0;
	for (size_t i = 0; i < bytes.len; i++)
		n += bytes.data[i] == '\n';
	return n;
}

#define ANSWERS "case $1 in version) cat version.json;; info) cat info.json;; *) echo odd >&2; exit 1;; esac"

static int
set_up(void **state)
{
	struct desk *desk = kr_xcalloc(1, sizeof(*desk));
	struct utsname here;

	snprintf(desk->top, sizeof(desk->top), "/tmp/kraft-unit-XXXXXX");
	assert_non_null(mkdtemp(desk->top));
	assert_int_equal(mkdir(at(desk, "bin"), 0755), 0);
	assert_int_equal(mkdir(at(desk, "run"), 0700), 0);
	assert_int_equal(uname(&here), 0);
	put(desk, "version.json", DOCKER_VERSION, 0644);
	put(desk, "info.json", kr_arena_printf(&desk->arena, DOCKER_INFO("%s", DOCKER_LIMITS), here.release),
		0644);
	desk->environment[0] =
		kr_arena_printf(&desk->arena, "PATH=relative:%s/absent:%s/bin", desk->top, desk->top);
	desk->environment[1] = "SECRET=word";
	desk->host = (struct kr_host){ .fs = &kr_fs_live,
		.environment = desk->environment,
		.places = { .home = at(desk, "home"),
			.kraft_home = desk->top,
			.run_dir = at(desk, "run"),
			.config_dir = at(desk, "config") } };
	*state = desk;
	return 0;
}

static int
tear_down(void **state)
{
	struct desk *desk = *state;

	assert_int_equal(kr_tree_remove_at(AT_FDCWD, desk->top), 0);
	kr_arena_fini(&desk->arena);
	free(desk);
	return 0;
}

static struct kr_runtime
found(struct desk *desk)
{
	struct kr_runtime runtime = { 0 };
	struct kr_error err = { 0 };

	if (kr_runtime_find(&desk->arena, &desk->host, &desk->file, &runtime, &err) < 0)
		fail_msg("%s", err.message);
	return runtime;
}

static struct kr_error
not_found(struct desk *desk)
{
	struct kr_runtime runtime = { 0 };
	struct kr_error err = { 0 };

	assert_int_equal(kr_runtime_find(&desk->arena, &desk->host, &desk->file, &runtime, &err), -1);
	assert_null(runtime.program);
	assert_true(err.message[0] && err.hint[0]);
	return err;
}

#define assert_says(err, text)                             \
	do {                                                   \
		if (!strstr((err).message, (text)))                \
			fail_msg("not '%s': %s", text, (err).message); \
	} while (0)

static void
without_a_cli_the_error_names_both(void **state)
{
	struct desk *desk = *state;
	struct kr_error err = not_found(desk);

	assert_int_equal(err.code, KR_E_WALL);
	assert_says(err, "neither docker nor podman is on PATH");
	desk->file.cli = "podman";
	assert_says(not_found(desk), "'podman', the container CLI of sandbox.yaml, is not on PATH");
	desk->file.cli = at(desk, "version.json");
	assert_says(not_found(desk), "is no program outside of checkouts");
}

static void
docker_is_found_before_podman_and_sandbox_yaml_decides(void **state)
{
	struct desk *desk = *state;

	put_cli(desk, "bin/podman",
		"case $1 in version) echo '" PODMAN_VERSION "';; info) echo '" PODMAN_INFO("true", "[]") "';; esac");
	assert_string_equal(found(desk).name, "rootless podman 4.3.1");
	put_cli(desk, "bin/docker", ANSWERS);
	assert_string_equal(found(desk).name, "docker 20.10.24");
	assert_string_equal(found(desk).program, at(desk, "bin/docker"));
	desk->file.cli = "podman";
	assert_int_equal(found(desk).kind, KR_RUNTIME_PODMAN);
	put_cli(desk, "elsewhere", ANSWERS);
	desk->file.cli = at(desk, "elsewhere");
	assert_int_equal(found(desk).kind, KR_RUNTIME_DOCKER);
	assert_string_equal(found(desk).program, at(desk, "elsewhere"));
}

static void
a_docker_that_is_podmans_is_podman(void **state)
{
	struct desk *desk = *state;

	put_cli(desk, "bin/docker",
		"echo 'Emulate Docker CLI using podman.' >&2; case $1 in version) echo '" PODMAN_VERSION
		"';; info) echo '" PODMAN_INFO("true", "[\"memory\"]") "';; esac");
	assert_int_equal(found(desk).kind, KR_RUNTIME_PODMAN);
	assert_true(found(desk).is_rootless);
}

static void
nothing_in_a_checkout_or_the_run_directory_is_run(void **state)
{
	struct desk *desk = *state;

	assert_int_equal(mkdir(at(desk, "repo"), 0755), 0);
	assert_int_equal(mkdir(at(desk, "repo/.git"), 0755), 0);
	assert_int_equal(mkdir(at(desk, "repo/bin"), 0755), 0);
	assert_int_equal(mkdir(at(desk, "run/bin"), 0755), 0);
	assert_int_equal(symlink(at(desk, "repo/bin"), at(desk, "link")), 0);
	put_cli(desk, "repo/bin/docker", ANSWERS);
	put_cli(desk, "run/bin/docker", ANSWERS);
	desk->environment[0] =
		kr_arena_printf(&desk->arena, "PATH=%s/repo/bin:%s/link:%s/run/bin", desk->top, desk->top, desk->top);
	assert_says(not_found(desk), "neither docker nor podman");
	desk->file.cli = at(desk, "repo/bin/docker"); /* nor by its path, or by a link */
	assert_says(not_found(desk), "is no program outside of checkouts");
	assert_int_equal(symlink(desk->file.cli, at(desk, "bin/docker")), 0);
	desk->file.cli = at(desk, "bin/docker");
	assert_says(not_found(desk), "is no program outside of checkouts");
	desk->file.cli = NULL;
	assert_int_equal(calls(desk), 0);
	assert_int_equal(rmdir(at(desk, "repo/.git")), 0);
	assert_string_equal(
		found(desk).program, at(desk, "repo/bin/docker")); /* the control: it is one that would run */
}

static void
a_second_look_starts_no_process_and_a_change_asks_again(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime first, second;
	unsigned asked;

	put_cli(desk, "bin/docker", ANSWERS);
	first = found(desk);
	asked = calls(desk);
	assert_int_equal(asked, 2);
	second = found(desk);
	assert_int_equal(calls(desk), asked);
	assert_string_equal(first.name, second.name);
	assert_string_equal(first.key, second.key);
	assert_memory_equal(first.version, second.version, sizeof(first.version));
	assert_int_equal(second.limits, ALL_LIMITS);
	desk->environment[2] = "DOCKER_HOST=unix:///absent.sock"; /* another service */
	assert_string_not_equal(found(desk).key, first.key);
	assert_int_equal(calls(desk), asked + 2);
	put_cli(desk, "bin/docker", ANSWERS "\n# another program"); /* in the same file */
	found(desk);
	assert_int_equal(calls(desk), asked + 4);
	found(desk);
	assert_int_equal(calls(desk), asked + 4);
}

static const char *
kept_file(struct desk *desk, bool of_failures)
{
	DIR *dir = opendir(at(desk, "run/cache"));
	const char *found_name = NULL;

	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		if (strncmp(e->d_name, "runtime-", 8) == 0 && (strstr(e->d_name, ".wait") != NULL) == of_failures)
			found_name = kr_arena_printf(&desk->arena, "run/cache/%s", e->d_name);
	closedir(dir);
	assert_non_null(found_name);
	return found_name;
}

static void
a_damaged_or_old_cache_asks_again(void **state)
{
	struct desk *desk = *state;
	const char *file, *key;
	unsigned asked;

	put_cli(desk, "bin/docker", ANSWERS);
	key = found(desk).key;
	file = kept_file(desk, false);
	{
		const char *const texts[] = {
			"",
			"1 \n",
			kr_arena_printf(&desk->arena, "1 %s\n", key),
			kr_arena_printf(&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 15 0 docker 20.10.24", key,
				(long long)time(NULL)),
			kr_arena_printf(
				&desk->arena, "1 %s\n%lld 7 20.10.24 0 0 0 0 15 0 x\n", key, (long long)time(NULL)),
			kr_arena_printf(
				&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 99 0 x\n", key, (long long)time(NULL)),
			kr_arena_printf(
				&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 15 4 x\n", key, (long long)time(NULL)),
			kr_arena_printf(&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 15 x\n", key, (long long)time(NULL)),
			kr_arena_printf(
				&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 15 0 x\n", key, (long long)time(NULL) - 4000),
			kr_arena_printf(
				&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 15 0 x\n", key, (long long)time(NULL) + 4000),
		};

		for (size_t i = 0; i < KR_COUNT(texts); i++) {
			asked = calls(desk);
			put(desk, file, texts[i], 0600);
			assert_string_equal(found(desk).name, "docker 20.10.24");
			assert_int_equal(calls(desk), asked + 2);
		}
	}
	asked = calls(desk);
	put(desk, file,
		kr_arena_printf(
			&desk->arena, "1 %s\n%lld 0 20.10.24 0 0 0 0 15 3 kept\n", key, (long long)time(NULL)),
		0600);
	assert_string_equal(found(desk).name, "kept"); /* the control: a whole one is believed */
	assert_int_equal(found(desk).flaws, 3);
	assert_int_equal(calls(desk), asked);
}

static void
what_is_no_runtime_is_named(void **state)
{
	struct desk *desk = *state;

	put_cli(desk, "bin/docker", "echo hello");
	assert_says(not_found(desk), "is not what a container runtime says");
	put_cli(desk, "bin/docker", "yes 0123456789012345678901234567890123456789");
	assert_says(not_found(desk), "printed more than");
	put_cli(desk, "bin/docker",
		"echo 'Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?' >&2; exit 1");
	assert_says(not_found(desk), "'docker version' failed (status 1): Cannot connect to the Docker daemon");
	put_cli(desk, "bin/docker", "kill -9 $$");
	assert_says(not_found(desk), "(status 137): it gave no reason");
	put(desk, "bin/docker",
		"\x7f"
		"ELF",
		0755);
	assert_says(not_found(desk), "cannot start");
}

static void
another_hosts_service_is_refused(void **state)
{
	struct desk *desk = *state;

	put_cli(desk, "bin/docker", ANSWERS);
	desk->environment[2] = "DOCKER_HOST=tcp://127.0.0.1:2375";
	assert_says(not_found(desk), "'tcp://127.0.0.1:2375' is another host's");
	desk->environment[2] = "DOCKER_HOST=ssh://me@far.example";
	assert_says(not_found(desk), "ssh://me@far.example");
	desk->environment[2] = "CONTAINER_HOST=tcp://127.0.0.1:2375"; /* podman's, which this is not */
	assert_int_equal(found(desk).kind, KR_RUNTIME_DOCKER);
}

#define FAR                                                                                               \
	"docker/contexts/meta/512eea46ceb3921dff4363c7069d89d4964d1d9fccaa0f411851a7aa60a5c868" /* SHA-256 of \
																							   its name */

static void
a_context_of_dockers_names_the_service(void **state)
{
	static const char *const folders[] = { "docker", "docker/contexts", "docker/contexts/meta", FAR };
	struct desk *desk = *state;

	put_cli(desk, "bin/docker", ANSWERS);
	for (size_t i = 0; i < KR_COUNT(folders); i++)
		assert_int_equal(mkdir(at(desk, folders[i]), 0755), 0);
	put(desk, FAR "/meta.json", "{\"Endpoints\":{\"docker\":{\"Host\":\"ssh://far.example\"}}}", 0644);
	desk->environment[2] = kr_arena_printf(&desk->arena, "DOCKER_CONFIG=%s", at(desk, "docker"));
	assert_null(kr_runtime_service(&desk->arena, &desk->host, KR_RUNTIME_DOCKER));
	put(desk, "docker/config.json", "{\"currentContext\":\"far\"}", 0644);
	assert_says(not_found(desk), "'ssh://far.example' is another host's");
	desk->environment[3] = "DOCKER_CONTEXT=default"; /* stronger */
	assert_string_equal(found(desk).name, "docker 20.10.24");
	desk->environment[3] = "DOCKER_HOST=unix:///x.sock"; /* stronger still */
	assert_string_equal(kr_runtime_service(&desk->arena, &desk->host, KR_RUNTIME_DOCKER), "unix:///x.sock");
}

static void
a_cli_gets_no_value_of_ours_but_what_leads_to_its_service(void **state)
{
	struct desk *desk = *state;
	kr_auto_buf struct kr_buf bytes = KR_BUF(1 << 16);
	struct kr_error err = { 0 };

	desk->environment[2] = "DOCKER_CONTEXT=default";
	desk->environment[3] = "HTTPS_PROXY=http://proxy.example";
	put_cli(desk, "bin/docker",
		"env >environment; pwd >>environment; readlink /proc/$$/fd/0 >>environment; " ANSWERS);
	found(desk);
	assert_int_equal(kr_file_read_at(AT_FDCWD, at(desk, "environment"), &bytes, &err), 0);
	assert_null(strstr(bytes.data, "SECRET"));
	assert_null(strstr(bytes.data, "proxy"));
	assert_non_null(strstr(bytes.data, "DOCKER_CONTEXT=default"));
	assert_non_null(strstr(bytes.data, "/dev/null"));
	assert_null(strstr(bytes.data, "PATH=relative"));
	assert_non_null(strstr(bytes.data, "/usr/sbin"));
}

/* ---- a service that hangs ---- */

static struct kr_runtime
docker_of(struct desk *desk)
{
	static const char *const environment[] = { "PATH=/usr/bin:/bin", NULL };

	return (struct kr_runtime){ .program = at(desk, "bin/docker"), .environment = environment };
}

static void
a_call_over_its_time_is_ended_with_all_that_it_started(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	const char *const argv[] = { "ps", NULL };
	struct kr_error err = { 0 };
	kr_auto_buf struct kr_buf out = KR_BUF(4096);
	int64_t before = kr_clock_ms();
	uint64_t pid = 0;
	int waited = 0;

	put_cli(desk, "bin/docker", "sleep 600 & echo $! >child; echo part; wait");
	assert_int_equal(kr_runtime_call(&desk->arena, &runtime, argv, 700, &out, &err), -1);
	assert_int_equal(err.code, KR_E_WALL);
	assert_says(err, "did not end within 1 s");
	assert_true(kr_clock_ms() - before < 20000);
	assert_string_equal(out.data, "part\n");
	kr_buf_fini(&out);
	out = KR_BUF(4096);
	assert_int_equal(kr_file_read_at(AT_FDCWD, at(desk, "child"), &out, &err), 0);
	pid = strtoul(out.data, NULL, 10);
	assert_true(pid > 1);
	while (kr_process_start((pid_t)pid) && kill((pid_t)pid, 0) == 0 &&
		   waited++ < 200) { /* whoever adopts it may be slow to reap it */
		kr_auto_buf struct kr_buf stat = KR_BUF(4096);

		if (kr_file_read_at(
				AT_FDCWD, kr_arena_printf(&desk->arena, "/proc/%u/stat", (unsigned)pid), &stat, NULL) < 0 ||
			strstr(stat.data, ") Z "))
			break;
		usleep(50000);
	}
	assert_true(waited < 200);
}

static void
a_helper_that_holds_the_pipes_does_not_keep_a_call(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	const char *const argv[] = { "ps", NULL };
	struct kr_error err = { 0 };
	kr_auto_buf struct kr_buf out = KR_BUF(4096);
	int64_t before = kr_clock_ms();

	put_cli(desk, "bin/docker", "setsid sleep 20 & echo whole; exit 3");
	assert_int_equal(kr_runtime_call(&desk->arena, &runtime, argv, 15000, &out, &err), 3);
	assert_true(kr_clock_ms() - before < 14000);
	assert_string_equal(out.data, "whole\n");
}

static void
a_signal_that_ends_kraft_ends_the_call_first(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	const char *const argv[] = { "pull", NULL };
	struct kr_error err = { 0 };
	sigset_t term, before;
	int64_t began = kr_clock_ms();
	int got = 0;

	put_cli(desk, "bin/docker", kr_arena_printf(&desk->arena, "kill -TERM %ld; sleep 30", (long)getpid()));
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &term, &before), 0);
	assert_int_equal(kr_runtime_call(&desk->arena, &runtime, argv, 25000, NULL, &err), -1);
	assert_says(err, "was ended with kraft");
	assert_true(kr_clock_ms() - began < 20000);
	assert_int_equal(sigwait(&term, &got), 0); /* still there for whoever waits for it */
	assert_int_equal(got, SIGTERM);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* The only one that waits: the ten seconds are the promise. */
static void
a_service_that_does_not_answer_stalls_nobody_for_long(void **state)
{
	struct desk *desk = *state;
	int64_t before = kr_clock_ms();
	struct kr_error err;
	const char *wait, *key;
	unsigned asked;
	kr_auto_buf struct kr_buf bytes = KR_BUF(4096);

	put_cli(desk, "bin/docker", "exec sleep 600");
	err = not_found(desk);
	assert_int_equal(err.code, KR_E_WALL);
	assert_says(err, "'docker' gives no answer within 10 s");
	assert_true(kr_clock_ms() - before >= 10000 && kr_clock_ms() - before < 25000);
	wait = kept_file(desk, true);
	assert_int_equal(kr_file_read_at(AT_FDCWD, at(desk, wait), &bytes, NULL), 0);
	assert_non_null(strstr(bytes.data, "\n1 "));
	key = kr_arena_dup_n(&desk->arena, bytes.data, strcspn(bytes.data, "\n"));
	put(desk, wait, kr_arena_printf(&desk->arena, "%s\n2 %lld\n", key, (long long)time(NULL) * 1000), 0600);
	asked = calls(desk);
	before = kr_clock_ms();
	assert_says(not_found(desk), "did not answer 2 times, and is not asked again for");
	assert_true(kr_clock_ms() - before < 5000);
	assert_int_equal(calls(desk), asked);
	put(desk, wait, kr_arena_printf(&desk->arena, "%s\n2 %lld\n", key, (long long)(time(NULL) - 31) * 1000),
		0600);
	put_cli(desk, "bin/docker", "exit 9"); /* another key, too: nothing is held against another program */
	assert_says(not_found(desk), "(status 9)");
	assert_true(calls(desk) > asked);
}

/* ---- images, containers ---- */

static void
an_image_that_is_not_here_is_no_failure(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	static const char *const missing[] = { "echo; echo 'Error: No such image: x' >&2; exit 1",
		"echo 'Error response from daemon: no such image: x: No such image: x:latest' >&2; exit 1",
		"echo '[]'; echo 'Error: inspecting object: x: image not known' >&2; exit 125" };
	struct kr_image image;
	struct kr_error err = { 0 };

	for (size_t i = 0; i < KR_COUNT(missing); i++) {
		put_cli(desk, "bin/docker", missing[i]);
		assert_int_equal(kr_image_look(&desk->arena, &runtime, "x", &image, &err), 0);
		assert_null(image.id);
		assert_string_equal(image.name, "x");
	}
	put_cli(desk, "bin/docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1");
	assert_int_equal(kr_image_look(&desk->arena, &runtime, "x", &image, &err), -1);
	assert_says(err, "looking at the image 'x': 'docker image' failed (status 1): Cannot connect");
	put_cli(desk, "bin/docker", "echo '{\"Id\":\"sha256:" HEX64 "\",\"Architecture\":\"amd64\"}'");
	assert_int_equal(kr_image_look(&desk->arena, &runtime, "-v", &image, &err), 0);
	assert_string_equal(image.id, "sha256:" HEX64);
}

static void
a_pull_says_why_it_failed(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	struct kr_error err = { 0 };

	put_cli(desk, "bin/docker",
		"test \"$1\" = pull || exit 9; echo layer; echo 'Error response from daemon: pull access denied' "
		">&2; exit 1");
	assert_int_equal(kr_image_pull(&desk->arena, &runtime, "far.example/x", -1, 20000, &err), -1);
	assert_says(err, "pulling the image 'far.example/x': 'docker pull' failed (status 1): Error response "
					 "from daemon: pull access");
	put_cli(desk, "bin/docker", "exec sleep 60");
	assert_int_equal(kr_image_pull(&desk->arena, &runtime, "x", -1, 500, &err), -1);
	assert_int_equal(err.code, KR_E_WALL);
	assert_says(err, "did not end within 1 s");
	put_cli(desk, "bin/docker", "exit 0");
	assert_int_equal(kr_image_pull(&desk->arena, &runtime, "x", -1, 20000, &err), 0);
}

static char living[] = "aaaa";

static bool
is_alive(void *context, const char *session)
{
	return strcmp(context, session) == 0;
}

static void
only_dead_sessions_of_this_home_are_swept_CTR_05(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	struct kr_error err = { 0 };
	kr_auto_buf struct kr_buf bytes = KR_BUF(1 << 16), ps = KR_BUF(1 << 16);
	static const struct {
		const char *name, *session;
		bool is_ours;
		const char *more;
	} there[] = {
		{ "kraft-dead", "dead", true, "" },
		{ "kraft-dea1", "dea1", true, "" },
		{ "kraft-aaaa", "aaaa", true, "" },  /* alive */
		{ "kraft-bbbb", "bbbb", true, "/" }, /* another home */
		{ "kraft-cccc", "cccc", false, "" },
		{ "kraft-eeee", "ffff", true, "" },
		{ "--all", "--all", true, "" },
		{ "kraft-x;y", "x;y", true, "" },
		{ "kraft-", "", true, "" },
	};
	static const char *const folders[] = { "run/sandbox-client", "run/sandbox-client/kraft-dead",
		"run/sandbox-client/kraft-aaaa", "run/sandbox-client/mine" };

	for (size_t i = 0; i < KR_COUNT(folders); i++)
		assert_int_equal(mkdir(at(desk, folders[i]), 0700), 0);
	for (size_t i = 0; i < KR_COUNT(there); i++)
		kr_buf_addf(&ps, "{\"name\":\"%s\",\"home\":\"%s%s\",\"session\":\"%s\"}\n", there[i].name,
			there[i].is_ours ? desk->top : "", there[i].more, there[i].session);
	put(desk, "ps.json", ps.data, 0644);
	put_cli(desk, "bin/docker",
		"case $1 in ps) cat ps.json;; rm) echo \"$*\" >>removed; test \"$4\" != kraft-dea1 || { echo 'Error: "
		"No such container: x' >&2; exit 1; };; esac");
	assert_int_equal(kr_container_sweep(&desk->arena, &runtime, &desk->host, is_alive, living, &err), 2);
	assert_int_equal(kr_file_read_at(AT_FDCWD, at(desk, "removed"), &bytes, NULL), 0);
	assert_string_equal(bytes.data, "rm --force --volumes kraft-dead\nrm --force --volumes kraft-dea1\n");
	assert_int_equal(access(at(desk, folders[1]), F_OK), -1);
	assert_int_equal(access(at(desk, folders[2]), F_OK), 0);
	assert_int_equal(access(at(desk, folders[3]), F_OK), 0);
}

static void
a_runtime_that_fails_removes_nothing(void **state)
{
	struct desk *desk = *state;
	struct kr_runtime runtime = docker_of(desk);
	struct kr_error err = { 0 };

	assert_int_equal(mkdir(at(desk, "run/sandbox-client"), 0700), 0);
	assert_int_equal(mkdir(at(desk, "run/sandbox-client/kraft-dead"), 0700), 0);
	put_cli(desk, "bin/docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1");
	assert_int_equal(kr_container_sweep(&desk->arena, &runtime, &desk->host, is_alive, living, &err), -1);
	assert_says(err, "looking for containers that dead sessions left: 'docker ps' failed");
	assert_int_equal(access(at(desk, "run/sandbox-client/kraft-dead"), F_OK), 0);
	put(desk, "ps.json",
		kr_arena_printf(
			&desk->arena, "{\"name\":\"kraft-dead\",\"home\":\"%s\",\"session\":\"dead\"}\n", desk->top),
		0644);
	put_cli(desk, "bin/docker",
		"case $1 in ps) cat ps.json;; rm) echo 'device or resource busy' >&2; exit 1;; esac");
	assert_int_equal(kr_container_sweep(&desk->arena, &runtime, &desk->host, is_alive, living, &err), -1);
	assert_says(err, "removing the container 'kraft-dead'");
	assert_int_equal(
		access(at(desk, "run/sandbox-client/kraft-dead"), F_OK), 0); /* its cid is still needed */
	assert_int_equal(kr_container_remove(&desk->arena, &runtime, "--all", &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
}

/* ---- the extra CA ---- */

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nMIIB+z==\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN PRIVATE KEY-----\nMIIEsecret\n-----END PRIVATE KEY-----\n"

static void
of_a_ca_only_certificates_are_taken(void **state)
{
	static const struct {
		const char *text, *taken;
	} cases[] = {
		{ CERTIFICATE, CERTIFICATE },
		{ "a comment\r\n-----BEGIN CERTIFICATE-----\r\nMIIB+z==\r\n-----END CERTIFICATE-----  \r\n" KEY
				CERTIFICATE,
			CERTIFICATE CERTIFICATE },
		{ "-----BEGIN CERTIFICATE-----\nMIIB+z==\n-----END CERTIFICATE-----", CERTIFICATE },
		{ KEY, "" },
		{ "", "" },
		{ "-----BEGIN CERTIFICATE-----\nMIIB\n", "" },
		{ "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "" },
		{ "-----BEGIN CERTIFICATE-----\nMII B\n-----END CERTIFICATE-----\n", "" },
		{ "-----BEGIN CERTIFICATE-----\n" KEY "-----END CERTIFICATE-----\n", "" },
		{ "-----BEGIN CERTIFICATE-----\nAA\n" CERTIFICATE, CERTIFICATE },
		{ " -----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n", "" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		kr_auto_buf struct kr_buf out = KR_BUF(4096);
		size_t n = kr_ca_certificates(cases[i].text, strlen(cases[i].text), &out);

		assert_string_equal(out.data ? out.data : "", cases[i].taken);
		assert_int_equal(n, strlen(cases[i].taken) / strlen(CERTIFICATE));
	}
}

#define REVOKED "-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----\n"

static void
CRED_12_of_lists_of_revoked_certificates_none_is_passed_by(void **state)
{
	static const struct {
		const char *text, *taken;
		bool good;
	} cases[] = {
		{ CERTIFICATE, "", true },
		{ CERTIFICATE REVOKED KEY "text\n" REVOKED, REVOKED REVOKED, true },
		{ REVOKED "-----BEGIN X509 CRL-----\nMIIB\n", REVOKED, false },
		{ "-----BEGIN X509 CRL-----\nMI IB\n-----END X509 CRL-----\n", "", false },
		{ " -----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----\n", "", false },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		kr_auto_buf struct kr_buf out = KR_BUF(4096);

		assert_int_equal(kr_ca_revocations(cases[i].text, strlen(cases[i].text), &out), cases[i].good);
		assert_string_equal(out.data ? out.data : "", cases[i].taken);
	}
}

static void
a_ca_that_cannot_be_used_stops_or_is_ignored(void **state)
{
	struct desk *desk = *state;
	struct kr_error err = { 0 };
	struct kr_ca ca;

	put(desk, "ca.pem", KEY CERTIFICATE REVOKED, 0644);
	put(desk, "key.pem", KEY, 0644);
	put(desk, "half.pem", CERTIFICATE "-----BEGIN X509 CRL-----\nMIIB\n", 0644);
	desk->file.file = "/c/sandbox.yaml";
	desk->file.ca_bundle_mark = (struct kr_mark){ 3, 12 };
	assert_int_equal(kr_ca_extra(&desk->arena, &desk->host, &desk->file, &ca, &err), 0);
	assert_true(!ca.path && !ca.pem && !ca.ignored);
	desk->environment[2] = kr_arena_printf(&desk->arena, "SSL_CERT_FILE=%s", at(desk, "ca.pem"));
	assert_int_equal(kr_ca_extra(&desk->arena, &desk->host, &desk->file, &ca, &err), 0);
	assert_string_equal(ca.path, at(desk, "ca.pem"));
	assert_string_equal(ca.pem, CERTIFICATE);
	assert_int_equal(ca.pem_len, strlen(CERTIFICATE));
	assert_string_equal(ca.revoked, REVOKED);
	{
		const char *const bad[] = { "relative.pem", at(desk, "absent"), at(desk, "run"), at(desk, "key.pem"),
			"/dev/null", at(desk, "half.pem") };

		for (size_t i = 0; i < KR_COUNT(bad); i++) {
			desk->file.ca_bundle = NULL;
			desk->environment[2] = kr_arena_printf(&desk->arena, "SSL_CERT_FILE=%s", bad[i]);
			assert_int_equal(kr_ca_extra(&desk->arena, &desk->host, &desk->file, &ca, &err), 0);
			assert_true(!ca.path && ca.ignored && strstr(ca.ignored, bad[i]));
			desk->file.ca_bundle = bad[i];
			assert_int_equal(kr_ca_extra(&desk->arena, &desk->host, &desk->file, &ca, &err), -1);
			assert_int_equal(err.code, KR_E_CONFIG);
			assert_says(err, "'ca_bundle' cannot be used: ");
			assert_string_equal(err.place.path, "/c/sandbox.yaml");
			assert_int_equal(err.place.line, 3);
		}
	}
	desk->file.ca_bundle = at(desk, "ca.pem"); /* the file's comes first */
	assert_int_equal(kr_ca_extra(&desk->arena, &desk->host, &desk->file, &ca, &err), 0);
	assert_string_equal(ca.path, at(desk, "ca.pem"));
	assert_null(ca.ignored);
}

#define DESK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_say_which_runtime_it_is),
		cmocka_unit_test(what_is_no_version_is_refused),
		cmocka_unit_test(info_says_what_a_runtime_enforces_LIM_01),
		cmocka_unit_test(known_flaws_of_a_runtime_are_seen),
		cmocka_unit_test(another_kernel_is_a_machine_and_labels_count_where_selinux_enforces_CTR_02),
		cmocka_unit_test(an_odd_info_is_refused),
		cmocka_unit_test(an_image_is_read_from_both_and_bounded),
		cmocka_unit_test(too_much_of_an_image_is_a_limit),
		cmocka_unit_test(containers_are_read_as_texts_of_anybody_CTR_08),
		cmocka_unit_test(patience_is_ten_seconds_then_thirty_then_a_pause),
		cmocka_unit_test(a_failure_has_its_reason_and_its_next_step),
		DESK(without_a_cli_the_error_names_both),
		DESK(docker_is_found_before_podman_and_sandbox_yaml_decides),
		DESK(a_docker_that_is_podmans_is_podman),
		DESK(nothing_in_a_checkout_or_the_run_directory_is_run),
		DESK(a_second_look_starts_no_process_and_a_change_asks_again),
		DESK(a_damaged_or_old_cache_asks_again),
		DESK(what_is_no_runtime_is_named),
		DESK(another_hosts_service_is_refused),
		DESK(a_context_of_dockers_names_the_service),
		DESK(a_cli_gets_no_value_of_ours_but_what_leads_to_its_service),
		DESK(a_call_over_its_time_is_ended_with_all_that_it_started),
		DESK(a_helper_that_holds_the_pipes_does_not_keep_a_call),
		DESK(a_signal_that_ends_kraft_ends_the_call_first),
		DESK(a_service_that_does_not_answer_stalls_nobody_for_long),
		DESK(an_image_that_is_not_here_is_no_failure),
		DESK(a_pull_says_why_it_failed),
		DESK(only_dead_sessions_of_this_home_are_swept_CTR_05),
		DESK(a_runtime_that_fails_removes_nothing),
		cmocka_unit_test(of_a_ca_only_certificates_are_taken),
		cmocka_unit_test(CRED_12_of_lists_of_revoked_certificates_none_is_passed_by),
		DESK(a_ca_that_cannot_be_used_stops_or_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
