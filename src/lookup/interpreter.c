/*
 * The #! line of a script, read as the kernel reads it (fs/binfmt_script.c): the first 256 bytes count,
 * blanks in front of the path are skipped, everything after the path is one argument. And `env`, read as GNU
 * env reads that one argument: only with -S is it split into words.
 *
 * Trust: the bytes come from a file that anyone may have written. Nothing is expanded or executed, every copy
 * is bounded; a line that is not plain gives no name, and the command is then left to fail or work by itself.
 */
#include "lookup/lookup.h"

#include "base/path.h"
#include "base/text.h"

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t
blanks(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && is_blank(s[i]))
		i++;
	return i;
}

static size_t
word(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && !is_blank(s[i]))
		i++;
	return i;
}

/* One word of a split string, unquoted. Returns bytes used, 0 at the end; *plain is cleared by what env would
 * expand. */
static size_t
split_word(const char *s, size_t n, char *out, size_t out_size, bool *plain)
{
	size_t i = blanks(s, n), used = 0;
	char quote = '\0';

	if (i == n)
		return 0;
	for (; i < n && (quote || !is_blank(s[i])); i++) {
		if (s[i] == '\\' || s[i] == '$')
			*plain = false;
		if (quote ? s[i] == quote : s[i] == '\'' || s[i] == '"')
			quote = quote ? '\0' : s[i];
		else if (used + 1 < out_size)
			out[used++] = s[i];
	}
	out[used] = '\0';
	return i;
}

/* Options of env that take the next word with them. */
static bool
takes_a_word(const char *option)
{
	static const char *const names[] = { "-u", "--unset", "-C", "--chdir", "-a", "--argv0" };

	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (strcmp(option, names[i]) == 0)
			return true;
	return false;
}

/* The command in the words after -S: options and NAME=value in front of it are passed over. */
static void
name_from_words(const char *s, size_t n, char *name, size_t name_size)
{
	bool skip = false, plain = true;

	for (size_t used; (used = split_word(s, n, name, name_size, &plain)) != 0; s += used, n -= used) {
		if (skip) {
			skip = false;
			continue;
		}
		if (name[0] == '-') {
			skip = takes_a_word(name);
			continue;
		}
		if (strchr(name, '='))
			continue;
		if (!plain)
			name[0] = '\0';
		return;
	}
	name[0] = '\0';
}

/* The part of env's one argument that -S splits; NULL when it has none. "-vS" and "-iS" carry it too. */
static const char *
split_string(const char *arg)
{
	static const char long_form[] = "--split-string";
	const char *s;

	if (kr_text_has_prefix(arg, long_form)) {
		s = arg + sizeof(long_form) - 1;
		return *s == '=' || is_blank(*s) ? s + 1 : NULL;
	}
	if (arg[0] != '-' || arg[1] == '-')
		return NULL;
	s = arg + 1 + strspn(arg + 1, "iv0");
	return *s == 'S' ? s + 1 : NULL;
}

static void
parse_env(const char *arg, struct kr_interpreter *out)
{
	const char *split = split_string(arg);

	if (split)
		name_from_words(split, strlen(split), out->name, sizeof(out->name));
	else if (arg[0] != '-' && !strchr(arg, '='))
		snprintf(out->name, sizeof(out->name), "%s", arg); /* whole, blanks included: so would env take it */
}

bool
kr_interpreter_parse(const char *head, size_t n, struct kr_interpreter *out)
{
	struct kr_interpreter found = { 0 };
	char arg[KR_INTERPRETER_HEAD] = { 0 };
	const char *end, *p;
	size_t len;

	if (n > KR_INTERPRETER_HEAD)
		n = KR_INTERPRETER_HEAD;
	if (n < 2 || head[0] != '#' || head[1] != '!')
		return false;
	p = head + 2;
	end = memchr(p, '\n', n - 2);
	if (!end)
		end = head + n;
	if (memchr(p, '\0', (size_t)(end - p)))
		end = memchr(p, '\0', (size_t)(end - p));
	p += blanks(p, (size_t)(end - p));
	len = word(p, (size_t)(end - p));
	/* A path that runs to the end of the kernel's buffer may be cut: the kernel refuses it, and so do we. */
	if (len == 0 || p + len == head + KR_INTERPRETER_HEAD)
		return false;
	memcpy(found.path, p, len);
	p += len;
	p += blanks(p, (size_t)(end - p));
	while (end > p && is_blank(end[-1]))
		end--;
	memcpy(arg, p, (size_t)(end - p));
	arg[end - p] = '\0';
	found.is_env = strcmp(kr_path_basename(found.path), "env") == 0;
	if (found.is_env)
		parse_env(arg, &found);
	*out = found;
	return true;
}
