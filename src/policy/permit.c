/*
 * The lists are compared by name and nothing else. A grant needs more: the command is a text that some shell
 * will read, and it is an instance of a grant only when every shell reads it in the one way that is read
 * here. So it is split by the few rules that all have in common, and any character that one of them could
 * give a meaning is the end of it: what is not understood is no instance, and falls back to the lists.
 *
 * git's options are judged by what they can do: run another program, or write another ref. Of a push, which
 * writes where others read, only options that are known to do neither are taken.
 */
#include "policy/permit.h"

static const char *const permit_names[] = {
#define X(permit, name) [KR_PERMIT_##permit] = name,
	KR_PERMITS(X)
#undef X
};

const char *
kr_permit_name(enum kr_permit permit)
{
	return permit_names[permit];
}

/* ---- words ---- */

enum { COMMAND_MAX = 4096, WORDS_MAX = 128 };

struct words {
	char text[COMMAND_MAX + 1];
	const char *v[WORDS_MAX];
	size_t n;
};

static bool
is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Outside of quotes. A '~' or '^' that follows a letter or digit is a revision's (HEAD~2), for every shell.
 */
static bool
is_plain(char c, const char *word, size_t at)
{
	if (is_letter_or_digit(c) || strchr("_./:@%+,-", c))
		return true;
	return at > 0 && (c == '=' || ((c == '~' || c == '^') && is_letter_or_digit(word[at - 1])));
}

/* The bytes up to `end`'s quote; no byte of them may mean something there. NULL: one does, or there is no
 * end. */
static const char *
find_quote(const char *at, const char *end, char quote)
{
	for (; at < end && *at != quote; at++)
		if (quote == '"' && strchr("$`\\!", *at))
			return NULL;
	return at < end ? at : NULL;
}

/* One word from `at` on, into `to`. Where it ends, or NULL. */
static const char *
take_word(const char *at, const char *end, char **to)
{
	char *word = *to;

	while (at < end && *at != ' ') {
		const char *close = at;

		if (*at == '\'' || *at == '"') {
			close = find_quote(at + 1, end, *at);
			if (!close)
				return NULL;
			memcpy(*to, at + 1, (size_t)(close - at - 1));
			*to += close - at - 1;
		} else if (is_plain(*at, word, (size_t)(*to - word)))
			*(*to)++ = *at;
		else
			return NULL;
		at = close + 1;
	}
	*(*to)++ = '\0';
	return at;
}

static bool
split(const char *command, size_t n, struct words *out)
{
	const char *at = command, *end = command + n;
	char *to = out->text;

	out->n = 0;
	if (n > COMMAND_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)command[i] < 0x20 || command[i] == 0x7f)
			return false;
	while (at < end) {
		if (*at == ' ') {
			at++;
			continue;
		}
		if (out->n == WORDS_MAX)
			return false;
		out->v[out->n++] = to;
		at = take_word(at, end, &to);
		if (!at)
			return false;
	}
	return true;
}

/* ---- options ---- */

static bool
begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "--ex" and "--exec=x" are the option "exec": git takes any beginning of a name. */
static bool
is_long(const char *word, const char *option)
{
	size_t n = strcspn(word, "=");

	return begins(word, "--") && n > 2 && n - 2 <= strlen(option) && strncmp(word + 2, option, n - 2) == 0;
}

/* Also among others in one word, where it could stand in the value of another one: then it is refused in
 * vain. */
static bool
has_letter(const char *word, const char *letters)
{
	return word[0] == '-' && word[1] != '-' && strpbrk(word, letters) != NULL;
}

static bool
commits(const struct words *words, size_t at)
{
	for (; at < words->n; at++)
		if (begins(words->v[at], "-C"))
			return false;
	return true;
}

static bool
rebases(const struct words *words, size_t at)
{
	for (; at < words->n; at++)
		if (is_long(words->v[at], "exec") || is_long(words->v[at], "strategy") ||
			has_letter(words->v[at], "xsC"))
			return false;
	return true;
}

/* ---- push ---- */

static bool
is_remote(const char *word)
{
	size_t n = 0;

	while (is_letter_or_digit(word[n]) || (n && word[n] && strchr("_.-", word[n])))
		n++;
	return n > 0 && !word[n];
}

/* It updates `branch` and nothing else. */
static bool
is_refspec(const char *word, const char *branch)
{
	const char *colon = strchr(word, ':'), *to = colon ? colon + 1 : word;

	if (colon == word || strchr("+-", word[0]))
		return false;
	if (begins(to, "refs/heads/"))
		to += strlen("refs/heads/");
	return strcmp(to, branch) == 0;
}

static bool
is_push_option(const char *word)
{
	static const char *const known[] = { "-u", "--set-upstream", "-q", "--quiet", "-v", "--verbose",
		"--progress", "--no-progress", "--porcelain", "-n", "--dry-run", "--atomic", "--force-with-lease",
		"--force-if-includes" };

	for (size_t i = 0; i < KR_COUNT(known); i++)
		if (strcmp(word, known[i]) == 0)
			return true;
	return begins(word, "--force-with-lease=");
}

static bool
pushes(const struct words *words, size_t at, const char *branch)
{
	size_t places = 0;

	for (; at < words->n; at++) {
		const char *word = words->v[at];

		if (word[0] == '-' ? !is_push_option(word) : places ? !is_refspec(word, branch) : !is_remote(word))
			return false;
		places += word[0] != '-';
	}
	return places >= 2;
}

/* ---- grants ---- */

/* Behind git's own options; words->n when one is not known. */
static size_t
find_subcommand(const struct words *words)
{
	size_t at = 1;

	for (; at < words->n && words->v[at][0] == '-'; at++) {
		const char *word = words->v[at], *value = at + 1 < words->n ? words->v[at + 1] : "";

		if (strcmp(word, "-c") == 0 && (begins(value, "user.name=") || begins(value, "user.email=")))
			at++;
		else if (strcmp(word, "--no-pager") != 0 && strcmp(word, "-P") != 0)
			return words->n;
	}
	return at;
}

enum kr_grant
kr_permit_grant(const char *command, size_t n, const char *branch)
{
	struct words words;
	const char *what;
	size_t at;

	if (!split(command, n, &words) || words.n < 2 || strcmp(words.v[0], "git") != 0)
		return KR_GRANT_COUNT;
	at = find_subcommand(&words);
	what = at < words.n ? words.v[at++] : "";
	if (strcmp(what, "commit") == 0 && commits(&words, at))
		return KR_GRANT_INDEX_COMMIT;
	if (strcmp(what, "rebase") == 0 && rebases(&words, at))
		return KR_GRANT_INDEX_REBASE;
	if (strcmp(what, "push") == 0 && branch && pushes(&words, at, branch))
		return KR_GRANT_INDEX_PUSH;
	return KR_GRANT_COUNT;
}

/* ---- names ---- */

const char *
kr_permit_name_of_tool(const char *harness, const char *tool, const char **also)
{
	static const struct {
		const char *harness, *tool, *name, *also;
	} known[] = { { "codex", "shell", "Bash", NULL }, { "codex", "apply_patch", "Write", "Edit" },
		{ "cursor", "Shell", "Bash", NULL }, { "cursor", "Write", "Write", "Edit" } };

	*also = NULL;
	for (size_t i = 0; i < KR_COUNT(known); i++)
		if (strcmp(known[i].harness, harness) == 0 && strcmp(known[i].tool, tool) == 0) {
			*also = known[i].also;
			return known[i].name;
		}
	return tool;
}

/* ---- the verdict ---- */

static bool
any_in(const struct kr_strs *list, const struct kr_permit_call *call)
{
	for (size_t i = 0; call->also && i < call->also->n; i++)
		if (kr_strs_has(list, call->also->v[i]))
			return true;
	return kr_strs_has(list, call->tool);
}

static bool
all_in(const struct kr_strs *list, const struct kr_permit_call *call)
{
	for (size_t i = 0; call->also && i < call->also->n; i++)
		if (!kr_strs_has(list, call->also->v[i]))
			return false;
	return kr_strs_has(list, call->tool);
}

static const char *
held_grant(const struct kr_policy *policy, const struct kr_permit_call *call)
{
	enum kr_grant grant = KR_GRANT_COUNT;

	if (policy->grants && call->command && strcmp(call->tool, "Bash") == 0)
		grant = kr_permit_grant(call->command, call->command_n, call->branch);
	return grant != KR_GRANT_COUNT && policy->grants >> grant & 1 ? kr_grant_name(grant) : NULL;
}

void
kr_permit_decide(const struct kr_policy *policy, enum kr_permit_mode mode, bool fails_closed,
	const struct kr_permit_call *call, struct kr_permit_verdict *out)
{
	const bool is_hook = mode == KR_PERMIT_ENFORCE;
	const char *grant = policy ? held_grant(policy, call) : NULL;
	struct kr_permit_verdict v = { KR_PERMIT_ALLOW, "the policy lists no allowed_tools", NULL };

	if (!policy)
		v = (struct kr_permit_verdict){ is_hook && !fails_closed ? KR_PERMIT_SILENT : KR_PERMIT_DENY,
			"the policy of this task cannot be resolved", NULL };
	else if (any_in(&policy->deny_tools, call))
		v = (struct kr_permit_verdict){ KR_PERMIT_DENY, "the policy has the tool in deny_tools", NULL };
	else if (grant)
		v = (struct kr_permit_verdict){ KR_PERMIT_ALLOW, "the policy grants this command", grant };
	else if (policy->has_allowed_tools && !all_in(&policy->allowed_tools, call))
		v = (struct kr_permit_verdict){ KR_PERMIT_DENY, "the policy has the tool not in allowed_tools",
			NULL };
	else if (any_in(&policy->ask_tools, call))
		v = (struct kr_permit_verdict){ KR_PERMIT_ASK, "the policy has the tool in ask_tools", NULL };
	else if (policy->has_allowed_tools)
		v.reason = "the policy has the tool in allowed_tools";
	else if (is_hook)
		v.permit = KR_PERMIT_SILENT;
	*out = v;
}
