/* kraft admin doctor: does this host hold what kraft needs, row by row, with the fix for what it does not. */
#include <jansson.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/entry.h"
#include "os/host.h"
#include "run/where.h"

enum { JSON, FIX, YES, PROBE };

static const struct {
	const char *name, *shown;
} verdicts[] = {
#define X(verdict, text, print) [KR_VERDICT_##verdict] = { text, print },
	KR_VERDICTS(X)
#undef X
};

static const char *
colour_of(enum kr_verdict verdict)
{
	return verdict == KR_VERDICT_OK ? "\033[32m" : verdict == KR_VERDICT_FAIL ? "\033[31m" : "\033[33m";
}

/* ---- output ---- */

/* Paths may hold anything, so they are escaped; the lines of a fix are kept. */
static void
print_fix(const char *text)
{
	for (const char *line = text;; line++) {
		size_t n = strcspn(line, "\n");
		char safe[8192];

		kr_text_escape(safe, sizeof(safe), line, n);
		printf("%s\n", safe);
		line += n;
		if (!*line)
			return;
		printf("      ");
	}
}

static void
print_row(const struct kr_doctor_row *row, int width, bool colour)
{
	char name[512];
	char detail[8192];

	kr_text_escape(name, sizeof(name), row->name, strlen(row->name));
	kr_text_escape(detail, sizeof(detail), row->detail, strlen(row->detail));
	printf("%s%s%s  %-*s  %s\n", colour ? colour_of(row->verdict) : "", verdicts[row->verdict].shown,
		colour ? "\033[0m" : "", width, name, detail);
	if (*row->fix) {
		printf("      fix: ");
		print_fix(row->fix);
	}
}

static void
print(const struct kr_doctor *d)
{
	bool colour = kr_colour_on(STDOUT_FILENO);
	int width = 0;

	for (size_t i = 0; i < d->row_count; i++)
		if ((int)strlen(d->rows[i].name) > width && strlen(d->rows[i].name) <= 30)
			width = (int)strlen(d->rows[i].name);
	for (size_t i = 0; i < d->row_count; i++)
		print_row(&d->rows[i], width, colour);
}

/* JSON is UTF-8; a path that is not is shown as on a terminal. */
static json_t *
json_text(const char *text)
{
	char safe[8192];

	if (kr_text_is_utf8(text, strlen(text)))
		return json_string(text);
	kr_text_escape(safe, sizeof(safe), text, strlen(text));
	return json_string(safe);
}

static int
print_json(const struct kr_doctor *d, bool well, struct kr_error *err)
{
	json_t *root = json_object(), *rows = json_array();

	for (size_t i = 0; i < d->row_count; i++) {
		json_t *row = json_object();

		json_object_set_new(row, "id", json_text(d->rows[i].id));
		json_object_set_new(row, "name", json_text(d->rows[i].name));
		json_object_set_new(row, "repository", d->rows[i].repo ? json_text(d->rows[i].repo) : json_null());
		json_object_set_new(row, "verdict", json_string(verdicts[d->rows[i].verdict].name));
		json_object_set_new(row, "detail", json_text(d->rows[i].detail));
		json_object_set_new(row, "fix", json_text(d->rows[i].fix));
		json_array_append_new(rows, row);
	}
	json_object_set_new(root, "ok", json_boolean(well));
	json_object_set_new(root, "rows", rows);
	return kr_print_json(root, err);
}

/* -1: nothing can be asked, or not about this repository. */
static int
begin(struct kr_doctor *d, const char *word, struct kr_error *err)
{
	if (kr_host_gather_places(d->arena, &d->host, err) < 0)
		return -1;
	d->repos = kr_repos_load(d->arena, &d->host.places, &d->repos_why);
	if (!word)
		return 0;
	if (!d->repos) {
		*err = d->repos_why;
		return -1;
	}
	d->only = kr_entry_find(d->arena, d->repos, word, err);
	return d->only ? 0 : -1;
}

static int
ask(struct kr_doctor *d, const char *word, struct kr_error *err)
{
	struct kr_arena *arena = d->arena;

	*d = (struct kr_doctor){ .arena = arena };
	if (begin(d, word, err) < 0)
		return -1;
	kr_doctor_host(d);
	kr_doctor_walls(d);
	kr_doctor_repos(d);
	kr_doctor_running(d);
	return 0;
}

static bool
is_well(const struct kr_doctor *d)
{
	for (size_t i = 0; i < d->row_count; i++)
		if (d->rows[i].verdict == KR_VERDICT_FAIL)
			return false;
	return true;
}

/* One mend may show the next; a person who said no is not asked again. */
static int
fix(struct kr_doctor *d, const char *word, bool yes, struct kr_error *err)
{
	const int rounds = yes ? 4 : 1;
	int done = 1;

	for (int round = 0; round < rounds && done > 0 && kr_doctor_can_mend(d); round++) {
		done = kr_doctor_fix(d, yes, err);
		if (done < 0 || (done > 0 && ask(d, word, err) < 0))
			return -1;
		if (done > 0)
			print(d);
	}
	return 0;
}

/* os, unless what is connected needs other kinds only; and the first image that is named for a container. */
static size_t
choose_kinds(struct kr_doctor *d, struct kr_probe_kind kinds[2])
{
	const char *image = NULL;
	size_t n = 0;

	for (size_t i = 0; d->repos && i < d->repos->repo_count && !image; i++) {
		struct kr_where where = { .repo = &d->repos->repo[i], .repos = d->repos };

		if ((!d->only || d->only == where.repo) && kr_where_layers(d->arena, &d->host.places, NULL, &where, NULL) == 0 &&
			where.repo->sandbox.kind == KR_SANDBOX_DOCKER)
			image = where.repo->sandbox.image;
	}
	if (kr_doctor_needs_bubblewrap(d))
		kinds[n++] = (struct kr_probe_kind){ "os", NULL };
	if (image)
		kinds[n++] = (struct kr_probe_kind){ "docker", image };
	return n;
}

static int
probe(struct kr_doctor *d, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_probe_kind kinds[2];
	size_t n;

	if (parsed->value[FIX])
		return kr_fail(err, KR_E_USAGE, "'--probe' tries the walls and mends nothing: leave '--fix' out");
	if (begin(d, parsed->word_count ? parsed->words[0] : NULL, err) < 0 || kr_host_gather(d->arena, &d->host, err) < 0)
		return -1;
	n = choose_kinds(d, kinds);
	if (!n)
		return kr_fail(err, KR_E_UNSUPPORTED, "no sandbox of kind 'os' or 'docker' is asked for, so there is nothing to probe");
	return kr_doctor_probe(d->arena, &d->host, kinds, n, parsed->value[JSON] != NULL, err);
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const char *word = parsed->word_count ? parsed->words[0] : NULL;
	struct kr_doctor doctor = { .arena = arena };

	if (parsed->value[JSON] && parsed->value[FIX])
		return kr_fail(err, KR_E_USAGE, "'--fix' asks a person, so it does not go with '--json'");
	if (parsed->value[YES] && !parsed->value[FIX])
		return kr_fail(err, KR_E_USAGE, "'--yes' agrees to what '--fix' would do, and stands beside it only");
	if (parsed->value[PROBE])
		return probe(&doctor, parsed, err);
	if (ask(&doctor, word, err) < 0)
		return -1;
	if (!parsed->value[JSON])
		print(&doctor);
	else if (print_json(&doctor, is_well(&doctor), err) < 0)
		return -1;
	if (parsed->value[FIX] && fix(&doctor, word, parsed->value[YES] != NULL, err) < 0)
		return -1;
	return is_well(&doctor) ? 0 : 1;
}

static const struct kr_option options[] = {
	[JSON] = { "json", 0, NULL, "one JSON object: ok, and rows of id, name, repository, verdict, detail, fix" },
	[FIX] = { "fix", 0, NULL, "mend what kraft can mend: modes of your files, a profile for AppArmor; each is shown and asked first" },
	[YES] = { "yes", 'y', NULL, "with --fix: agree to all of it" },
	[PROBE] = { "probe", 0, NULL, "try the promises from inside of real sessions, in a home of their own, in place of the rows" },
	{ NULL },
};

const struct kr_command kr_cmd_admin_doctor = {
	.name = "admin doctor",
	.usage = "[OPTIONS] [REPOSITORY]",
	.summary = "check that this host and repos.yaml are fit for kraft",
	.help = "Asks what a launch would ask, and tries a sandbox. Each row is ok, skip, warn or FAIL, with the fix where there\n"
			"is one. REPOSITORY, a name, an id or a path, leaves the rows of the others out. Nothing is changed but by --fix.\n\n"
			"With --probe sessions are started in a repository and a home of kraft's own, one of each kind that is connected (os\n"
			"when none is). What must be possible there, and what must not be, is tried, and outside as well, where all of it must\n"
			"be possible, or a refusal proves nothing. The table has a row for each, with the promise that it is of, and names no\n"
			"path and no person, so that it can be sent in. What was made for it, in ~/.kraft-probe-*, is removed.\n\n"
			"Exit status: 0 no row fails, 1 one does.",
	.options = options,
	.words_max = 1,
	.run = run,
};
