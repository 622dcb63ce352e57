/* kraft admin notify: sends a test message as notify.yaml says, and tells what came of it. */
#include "cli/work.h"

static int
print_told(const struct kr_work_told *told, size_t n, bool is_well, struct kr_error *err)
{
	json_t *ways = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(ways,
			json_pack("{s:s, s:b, s:s?}", "by", told[i].by, "ok", !told[i].reason, "reason", told[i].reason));
	return kr_print_json(json_pack("{s:b, s:o}", "ok", is_well, "ways", ways), err);
}

enum { JSON };
static const struct kr_option options[] = {
	[JSON] = { "json", 0, NULL, "one JSON object: ok, and ways of by, ok, reason" },
	{ NULL },
};

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_work work = { .arena = arena };
	struct kr_work_told told[KR_WORK_TOLD_MAX];
	bool is_well = true;
	size_t n;

	if (kr_host_gather_places(arena, &work.host, err) < 0 || kr_work_notify_test(&work, told, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		is_well = is_well && !told[i].reason;
	if (parsed->value[JSON] && print_told(told, n, is_well, err) < 0)
		return -1;
	for (size_t i = 0; i < n && !parsed->value[JSON]; i++)
		printf("%-7s  %s%s\n", told[i].by, told[i].reason ? "failed: " : "sent",
			told[i].reason ? told[i].reason : "");
	return is_well ? 0 : 1;
}

const struct kr_command kr_cmd_admin_notify = {
	.name = "admin notify",
	.usage = "[--json]",
	.summary = "send a test message to whom notify.yaml names",
	.help = "By every way that it names, whatever its 'on' says, and tells what came of it. The exit status "
			"is 1 when\n"
			"one of them failed, or when there is none. See kraft-notify(5).",
	.options = options,
	.words_max = 0,
	.run = run,
};
