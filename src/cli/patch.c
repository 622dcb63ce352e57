#include "cli/patch.h"

#include "base/text.h"

static const char *const colours[] = {
	[KR_PATCH_HEADER] = "\033[1m",
	[KR_PATCH_HUNK] = "\033[36m",
	[KR_PATCH_OLD] = "\033[31m",
	[KR_PATCH_NEW] = "\033[32m",
	[KR_PATCH_SAME] = "",
};

/* ",COUNT" or nothing, which is 1; false where neither stands. */
static bool
read_count(const char **at, uint64_t *count)
{
	uint64_t n = 0;

	*at += strspn(*at, "0123456789");
	*count = 1;
	if (**at != ',')
		return true;
	for (++*at; **at >= '0' && **at <= '9' && n < UINT64_MAX / 16; ++*at)
		n = n * 10 + (uint64_t)(**at - '0');
	*count = n;
	return true;
}

/* "@@ -LINE[,COUNT] +LINE[,COUNT] @@" */
static bool
read_hunk(struct kr_patch *p)
{
	const char *at = p->line;
	uint64_t old, new;

	if (!kr_text_has_prefix(at, "@@ -"))
		return false;
	at += 4;
	if (!read_count(&at, &old) || !kr_text_has_prefix(at, " +"))
		return false;
	at += 2;
	if (!read_count(&at, &new) || !kr_text_has_prefix(at, " @@"))
		return false;
	p->old_left = old;
	p->new_left = new;
	return true;
}

static enum kr_patch_part
read_header(struct kr_patch *p)
{
	if (read_hunk(p))
		return KR_PATCH_HUNK;
	if (p->line[0] == '\\')
		return KR_PATCH_SAME; /* "\ No newline at end of file" */
	p->binary += kr_text_has_prefix(p->line, "Binary files ");
	return KR_PATCH_HEADER;
}

/* Which part of a patch the line belongs to, from its beginning (terminated). */
static enum kr_patch_part
read_part(struct kr_patch *p)
{
	bool in_hunk = p->old_left || p->new_left;

	if (!in_hunk)
		return read_header(p);
	if (p->line[0] == '\\')
		return KR_PATCH_SAME;
	if (p->line[0] != '+' && p->old_left)
		p->old_left--;
	if (p->line[0] != '-' && p->new_left)
		p->new_left--;
	return p->line[0] == '+' ? KR_PATCH_NEW : p->line[0] == '-' ? KR_PATCH_OLD : KR_PATCH_SAME;
}

/* How much of the line can be shown now: not the first bytes of a character whose rest is to come. */
static size_t
whole_characters(const struct kr_patch *p)
{
	for (size_t back = 1; back <= 3 && back < p->n; back++) {
		unsigned char c = (unsigned char)p->line[p->n - back];

		if (c >= 0xc0)
			return (size_t)(c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2) > back ? p->n - back : p->n;
		if (c < 0x80)
			break;
	}
	return p->n;
}

static void
show(struct kr_patch *p, bool has_end)
{
	char safe[4 * KR_PATCH_LINE + 1];
	size_t n = has_end ? p->n : whole_characters(p);

	p->line[p->n] = '\0';
	if (!p->is_open) {
		p->part = read_part(p);
		fputs(p->colour ? colours[p->part] : "", p->out);
	}
	kr_text_escape(safe, sizeof(safe), p->line, n);
	fputs(safe, p->out);
	if (has_end)
		fputs(p->colour && *colours[p->part] ? "\033[m\n" : "\n", p->out);
	p->is_open = !has_end;
	memmove(p->line, p->line + n, p->n - n);
	p->n -= n;
}

int
kr_patch_add(void *context, const char *bytes, size_t n)
{
	struct kr_patch *p = context;

	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			show(p, true);
			continue;
		}
		p->line[p->n++] = bytes[i];
		if (p->n == sizeof(p->line) - 1)
			show(p, false);
	}
	return ferror(p->out) ? -1 : 0;
}

void
kr_patch_end(struct kr_patch *p)
{
	if (p->n || p->is_open)
		show(p, true);
}
