/*
 * The commands that a shell line names, as far as that can be seen without a shell: for the repository's
 * setup and test commands, so that the sandbox shows what they need. A guess in good faith, never a rule: a
 * word that a shell would expand is left out, and what is missed is found missing inside.
 *
 * Words are cut as a shell cuts them. A word is a command when it is the first of a simple command, after
 * assignments, reserved words and commands that run another one. Reading stops at a here-document or a
 * `case`.
 */
#include "lookup/lookup.h"

#include "base/text.h"

enum {
	WORD_MAX = 256,
	COMMANDS_MAX = 64,
};

enum token {
	T_END,
	T_WORD,      /* plain: nothing in it is expanded */
	T_OPAQUE,    /* a word that a shell would expand, or a too long one */
	T_SEPARATOR, /* a simple command ends here */
	T_REDIRECT,  /* the next word is a file */
	T_STOP,      /* what follows is not commands */
};

struct reader {
	const char *p;
	char word[WORD_MAX];
};

static bool
is_in(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(s, list[i]) == 0)
			return true;
	return false;
}

/* After these another command starts. */
static bool
is_reserved(const char *s)
{
	static const char *const words[] = { "if", "then", "elif", "else", "while", "until", "do", "!", "{",
		"time" };

	return is_in(s, words, KR_COUNT(words));
}

/* What sh does itself; looking such a name up would show a directory for nothing. */
static bool
is_builtin(const char *s)
{
	static const char *const names[] = { ".", ":", "[", "alias", "bg", "break", "cd", "continue", "done",
		"echo", "esac", "eval", "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash",
		"in", "jobs", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source",
		"test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "wait", "}" };

	return is_in(s, names, KR_COUNT(names));
}

/* These run the command that follows them. */
static bool
is_runner(const char *s)
{
	static const char *const names[] = { "exec", "command", "env", "nohup" };

	return is_in(s, names, KR_COUNT(names));
}

static bool
is_assignment(const char *s)
{
	char name[WORD_MAX];
	size_t n = strcspn(s, "=");

	if (s[n] != '=')
		return false;
	memcpy(name, s, n);
	name[n] = '\0';
	return kr_text_is_env_name(name);
}

static void
skip_blanks(struct reader *r)
{
	for (;;) {
		r->p += strspn(r->p, " \t\r");
		if (r->p[0] == '\\' && r->p[1] == '\n')
			r->p += 2;
		else
			break;
	}
	if (*r->p == '#')
		r->p += strcspn(r->p, "\n");
}

/* A quoted part; the bytes go to out as they are. Leaves p behind the closing quote, or at the end. */
static void
read_quoted(struct reader *r, size_t *used, bool *plain)
{
	char quote = *r->p++;

	for (; *r->p && *r->p != quote; r->p++) {
		if (quote == '"' && strchr("$`\\", *r->p))
			*plain = false;
		if (quote == '"' && *r->p == '\\' && r->p[1])
			r->p++;
		if (*used + 1 < WORD_MAX)
			r->word[(*used)++] = *r->p;
		else
			*plain = false;
	}
	r->p += *r->p == quote;
}

static enum token
read_word(struct reader *r)
{
	size_t used = 0;
	bool plain = true;

	while (*r->p && !strchr(" \t\r\n;&|()<>", *r->p)) {
		if (*r->p == '\'' || *r->p == '"') {
			read_quoted(r, &used, &plain);
			continue;
		}
		if (strchr("$`*?[~\\", *r->p) && !(*r->p == '[' && used == 0 && strchr(" \t", r->p[1])))
			plain = false;
		if (*r->p == '\\' && r->p[1])
			r->p++;
		if (used + 1 < WORD_MAX)
			r->word[used++] = *r->p;
		else
			plain = false;
		r->p++;
	}
	r->word[used] = '\0';
	if ((*r->p == '<' || *r->p == '>') && used && strspn(r->word, "0123456789") == used)
		return T_OPAQUE; /* the descriptor of a redirection */
	return plain ? T_WORD : T_OPAQUE;
}

static enum token
next(struct reader *r)
{
	skip_blanks(r);
	switch (*r->p) {
	case '\0':
		return T_END;
	case '\n':
	case ';':
	case '|':
	case '(':
	case ')':
		r->p++;
		return T_SEPARATOR;
	case '&':
		r->p++;
		if (*r->p != '>')
			return T_SEPARATOR;
		r->p += 1 + (r->p[1] == '>');
		return T_REDIRECT;
	case '<':
	case '>':
		if (r->p[0] == '<' && r->p[1] == '<')
			return T_STOP;
		r->p++;
		r->p += strspn(r->p, ">&|");
		return T_REDIRECT;
	default:
		return read_word(r);
	}
}

/* What a word in command position means. Returns true when the command of this simple command is now known.
 */
static bool
take(struct kr_arena *arena, const char *word, bool runner, struct kr_strs *out)
{
	if (is_reserved(word) || is_runner(word) || is_assignment(word))
		return false;
	if (runner && word[0] == '-')
		return false;
	if (word[0] && !is_builtin(word) && !kr_strs_has(out, word) && out->n < COMMANDS_MAX)
		kr_strs_add(arena, out, kr_arena_dup(arena, word));
	return true;
}

void
kr_shell_commands(struct kr_arena *arena, const char *line, struct kr_strs *out)
{
	struct reader r = { .p = line };
	bool known = false, runner = false, file = false;

	for (enum token t; (t = next(&r)) != T_END && t != T_STOP;) {
		if (t == T_SEPARATOR) {
			known = runner = file = false;
		} else if (t == T_REDIRECT) {
			file = true;
		} else if (file) {
			file = false;
		} else if (!known && t == T_WORD && *r.p == '(') {
			known = true; /* a function's definition */
		} else if (!known && t == T_WORD) {
			if (strcmp(r.word, "case") == 0)
				return;
			known = take(arena, r.word, runner, out);
			runner = runner || is_runner(r.word);
		} else if (!known) {
			/* "$TOOL test" and "X=$Y make": only an assignment leaves the place of the command open */
			known = !is_assignment(r.word) && !(*r.p == '<' || *r.p == '>');
		}
	}
}

bool
kr_shell_split(struct kr_arena *arena, const char *line, struct kr_strs *out)
{
	struct reader r = { .p = line };
	enum token t;

	while ((t = next(&r)) == T_WORD)
		kr_strs_add(arena, out, kr_arena_dup(arena, r.word));
	return t == T_END && out->n > 0;
}
