/*
 * A command's words, split as a POSIX shell splits a simple command (section 2.2 of its language) and nothing
 * more: no shell reads it, so '$', '*', '~', '|' and '#' are ordinary letters. What a shell would go on
 * asking for, a quote that is not closed or a backslash with nothing behind it, is refused.
 */
#include "config/chain.h"

/* One word on its way; it may be empty and still be a word, as '' is. */
struct word {
	char *out;
	size_t n;
	bool is_open;
};

static void
add(struct word *word, char c)
{
	word->out[word->n++] = c;
	word->is_open = true;
}

static const char *
read_single(struct word *word, const char *p)
{
	word->is_open = true;
	for (; *p != '\''; p++) {
		if (!*p)
			return NULL;
		add(word, *p);
	}
	return p + 1;
}

/* A backslash only quotes what would otherwise mean something there. */
static const char *
read_double(struct word *word, const char *p)
{
	word->is_open = true;
	for (; *p != '"'; p++) {
		if (!*p)
			return NULL;
		if (*p == '\\' && p[1] && strchr("$`\"\\\n", p[1])) {
			if (*++p != '\n')
				add(word, *p);
		} else {
			add(word, *p);
		}
	}
	return p + 1;
}

static void
end_word(struct kr_arena *arena, struct word *word, struct kr_strs *out)
{
	if (word->is_open)
		kr_strs_add(arena, out, kr_arena_dup_n(arena, word->out, word->n));
	word->n = 0;
	word->is_open = false;
}

bool
kr_words_split(struct kr_arena *arena, const char *text, struct kr_strs *out, const char **why)
{
	struct word word = { .out = kr_arena_alloc(arena, strlen(text) + 1) };
	struct kr_strs words = { 0 };

	for (const char *p = text; p && *p;) {
		char c = *p++;

		if (strchr(" \t\n\r", c)) {
			end_word(arena, &word, &words);
		} else if (c == '\'' || c == '"') {
			p = c == '"' ? read_double(&word, p) : read_single(&word, p);
			*why = c == '"' ? "has a \" that is not closed" : "has a ' that is not closed";
			if (!p)
				return false;
		} else if (c != '\\') {
			add(&word, c);
		} else if (!*p) {
			*why = "ends in a backslash";
			return false;
		} else if (*p++ != '\n') {
			add(&word, p[-1]);
		}
	}
	end_word(arena, &word, &words);
	*out = words;
	return true;
}
