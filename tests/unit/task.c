/* task: which ends of a session are a configuration error, that no repair and no second try can help. */
#include <setjmp.h>
#include <stdarg.h>

#include "work/launch.h"

#include <cmocka.h>

static const struct kr_policy_layer walls = { .has_sandbox = true,
	.sandbox = { .kind = KR_SANDBOX_DOCKER, .resources.memory_bytes = 512 << 20 } };

#define STARTED .started = true, .has_session = true

/* reason: a part of it; NULL: its result, or its exit status, tells. */
static const struct {
	const char *name;
	int status;
	struct kr_run_done done;
	const char *message;
	bool has_result;
	const char *reason;
} ends[] = {
	{ "the runtime does not answer", -1, { 0 }, "docker does not answer", false, "docker does not answer" },
	{ "a limit cannot be held", -1, { .has_session = true }, "'memory' cannot be enforced", false, "'memory' cannot be" },
	{ "the setup command was killed", -1, { STARTED }, "its memory limit of 512m", false, "its memory limit of 512m" },
	{ "the command is not in the image", 127, { .has_session = true }, "", false, "could not be started (127)" },
	{ "the command cannot be executed", 126, { .has_session = true }, "", false, "could not be started (126)" },
	{ "it ended with 127 itself", 127, { STARTED }, "", false, NULL },
	{ "it ended well", 0, { STARTED }, "", false, NULL },
	{ "it failed", 1, { STARTED }, "", false, NULL },
	{ "its memory limit killed it", 137, { STARTED, .signal = 9, .oom = true, .oom_confirmed = true }, "", false,
		"it was killed by its memory limit of 512m" },
	{ "its memory limit killed a part of it", 0, { STARTED, .oom = true, .oom_confirmed = true }, "", false,
		"it was killed by its memory limit of 512m" },
	{ "its memory limit killed it, as it seems", 137, { STARTED, .signal = 9, .oom = true }, "", false,
		"it was most likely killed by its memory limit of 512m" },
	{ "its memory limit killed it, and it left a result", 137, { STARTED, .signal = 9, .oom = true, .oom_confirmed = true },
		"", true, NULL },
	{ "something else killed it", 137, { STARTED, .signal = 9 }, "", false, NULL },
};

static void
what_no_repair_can_help_stops_as_a_configuration_error_LIM_02(void **state)
{
	(void)state;
	for (size_t i = 0; i < KR_COUNT(ends); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const struct kr_work_ran ran = { .status = ends[i].status,
			.done = &ends[i].done,
			.message = ends[i].message,
			.has_result = ends[i].has_result,
			.walls = &walls };
		struct kr_work_outcome out = { .kind = KR_MARK_DONE, .reason = "" };

		if (kr_work_judge_launch(&arena, &ran, &out) != (ends[i].reason != NULL))
			fail_msg("%s", ends[i].name);
		assert_int_equal(out.kind, ends[i].reason ? KR_MARK_CONFIG : KR_MARK_DONE);
		if (ends[i].reason && !strstr(out.reason, ends[i].reason))
			fail_msg("%s: %s", ends[i].name, out.reason);
	}
}

static void
a_memory_limit_is_told_as_it_is_written(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *words;
	} sizes[] = { { 512ull << 20, "512m" }, { 4ull << 30, "4g" }, { 6292480, "6145k" }, { 6291457, "6291457b" }, { 0, "0b" } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(sizes); i++) {
		char words[KR_MEMORY_WORDS];

		kr_memory_words(sizes[i].bytes, words);
		assert_string_equal(words, sizes[i].words);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_repair_can_help_stops_as_a_configuration_error_LIM_02),
		cmocka_unit_test(a_memory_limit_is_told_as_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
