#include "cli/doctor.h"

#include <stdarg.h>

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

/* "run directory" of "a b" is "run-directory:a b": a repository's name is the person's, and stays as it is. */
static const char *
id_of(struct kr_arena *arena, const char *check, const char *repo)
{
	char *id = kr_arena_dup(arena, check);

	for (char *c = id; *c; c++)
		if (*c == ' ' || *c == '_')
			*c = '-';
	return repo ? kr_arena_printf(arena, "%s:%s", id, repo) : id;
}

void
kr_doctor_add(struct kr_doctor *d, const char *check, enum kr_verdict verdict, const char *fix, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add(d, (struct kr_doctor_row){ .check = check,
			   .repo = d->repo,
			   .name = d->repo ? kr_arena_printf(d->arena, "%s %s", check, d->repo) : check,
			   .id = id_of(d->arena, check, d->repo),
			   .verdict = verdict,
			   .detail = kr_arena_dup(d->arena, text),
			   .fix = kr_arena_dup(d->arena, fix) });
}

void
kr_doctor_add_error(struct kr_doctor *d, const char *check, const struct kr_error *err)
{
	if (err->place.line)
		kr_doctor_add(d, check, KR_VERDICT_FAIL, err->hint, "%s:%u:%u: %s", err->place.path, err->place.line,
			err->place.column, err->message);
	else
		kr_doctor_add(d, check, KR_VERDICT_FAIL, err->hint, "%s", err->message);
}
