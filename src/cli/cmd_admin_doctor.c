/* kraft admin doctor: does this host hold what kraft needs, row by row, with the fix for what it does not. */
#include <jansson.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/doctor.h"

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

static void
add(struct kr_doctor *d, struct kr_doctor_row row)
{
	if (d->row_count == d->row_cap) {
		size_t cap = d->row_cap ? d->row_cap * 2 : 32;
		struct kr_doctor_row *rows = kr_arena_alloc(d->arena, cap * sizeof(*rows));

		if (d->row_count)
			memcpy(rows, d->rows, d->row_count * sizeof(*rows));
		d->rows = rows;
		d->row_cap = cap;
	}
	d->rows[d->row_count++] = row;
}

void
kr_doctor_add(
	struct kr_doctor *d, const char *name, enum kr_verdict verdict, const char *fix, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add(d, (struct kr_doctor_row){ name, verdict, kr_arena_dup(d->arena, text), kr_arena_dup(d->arena, fix) });
}

void
kr_doctor_add_error(struct kr_doctor *d, const char *name, const struct kr_error *err)
{
	if (err->place.line)
		kr_doctor_add(d, name, KR_VERDICT_FAIL, err->hint, "%s:%u:%u: %s", err->place.path, err->place.line,
			err->place.column, err->message);
	else
		kr_doctor_add(d, name, KR_VERDICT_FAIL, err->hint, "%s", err->message);
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

		json_object_set_new(row, "name", json_text(d->rows[i].name));
		json_object_set_new(row, "verdict", json_string(verdicts[d->rows[i].verdict].name));
		json_object_set_new(row, "detail", json_text(d->rows[i].detail));
		json_object_set_new(row, "fix", json_text(d->rows[i].fix));
		json_array_append_new(rows, row);
	}
	json_object_set_new(root, "ok", json_boolean(well));
	json_object_set_new(root, "rows", rows);
	return kr_print_json(root, err);
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_doctor doctor = { .arena = arena };
	bool well = true;

	if (kr_doctor_host(&doctor))
		kr_doctor_repos(&doctor);
	for (size_t i = 0; i < doctor.row_count; i++)
		well = well && doctor.rows[i].verdict != KR_VERDICT_FAIL;
	if (!parsed->value[0])
		print(&doctor);
	else if (print_json(&doctor, well, err) < 0)
		return -1;
	return well ? 0 : 1;
}

static const struct kr_option options[] = {
	{ "json", 0, NULL, "one JSON object: ok, and rows of name, verdict, detail, fix" },
	{ NULL },
};

const struct kr_command kr_cmd_admin_doctor = {
	.name = "admin doctor",
	.usage = "[--json]",
	.summary = "check that this host and repos.yaml are fit for kraft",
	.help = "Asks what a launch would ask, and tries a sandbox. Each row is ok, skip, warn or FAIL, with the "
			"fix where there\n"
			"is one. The exit status is 1 when a row fails. Nothing is changed but kraft's own directories, "
			"which are made\n"
			"where they are missing.",
	.options = options,
	.run = run,
};
