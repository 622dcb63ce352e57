/*
 * The person's git configuration, read by git and written anew for a worker, by a list of keys that a worker
 * may know.
 *
 * git reads it, because only git knows includes, conditions and scopes. What is written holds no include and
 * is written by us, so nothing in a value can begin a key.
 *
 * A list of what may pass and not of what may not, because a key may
 *   be a secret            credential.*, http.*.extraHeader and cookieFile, sendemail.*, a token in an
 * address reach outside          include.path, core.excludesFile, commit.template: paths of the person's that
 * are not inside send things elsewhere  url.*.insteadOf, http.proxy: the way out is the session's, not the
 * person's run a program          core.hooksPath, core.fsmonitor, core.sshCommand, core.editor, gpg.*,
 * diff.*.textconv, alias.*: inside it would do no harm to the person, but it is theirs, and mostly not there
 * and because git gets new keys. Programs that pass are those without which files come out wrong: filters and
 * merge drivers. Signing stays out: the keys are not inside, and no commit could be made.
 *
 * Of remotes, submodules and large-file servers the address passes without user and password.
 */
#include "git/settings.h"

#include <errno.h>

#include "base/text.h"
#include "git/internal.h"

enum { SETTINGS_BYTES = 16 << 20 };

/* ---- asking ---- */

int
kr_git_settings_start(
	const struct kr_checkout *checkout, struct kr_git_settings *settings, struct kr_error *err)
{
	static const char *const argv[] = { "config", "--list", "-z", "--includes", "--show-scope", NULL };
	const struct kr_git_where where = { .git_dir = checkout->git_dir, .work_dir_fd = -1 };

	*settings = (struct kr_git_settings){ 0 };
	return kr_git_start(&where, argv, &settings->run, err);
}

int
kr_git_settings_wait(struct kr_arena *arena, struct kr_git_settings *settings, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(SETTINGS_BYTES);

	if (settings->text)
		return 0;
	if (kr_git_finish(&settings->run, &out, err) < 0)
		return kr_wrap(err, "cannot read git's configuration");
	settings->text = kr_arena_dup_n(arena, out.data ? out.data : "", out.len);
	settings->len = out.len;
	return 0;
}

void
kr_git_settings_fini(struct kr_git_settings *settings)
{
	kr_git_abandon(&settings->run);
}

struct entry {
	const char *scope;
	const char *key, *value; /* value NULL: a key alone, which means true */
	size_t key_len;
};

/* What kraft itself pinned for the run is passed over. */
static bool
next_entry(const struct kr_git_settings *s, size_t *at, struct entry *out)
{
	while (*at < s->len) {
		const char *scope = s->text + *at, *key = scope + strlen(scope) + 1;

		if (key >= s->text + s->len)
			return false;
		out->scope = scope;
		out->key = key;
		out->key_len = strcspn(key, "\n");
		out->value = key[out->key_len] ? key + out->key_len + 1 : NULL;
		*at = (size_t)(key - s->text) + strlen(key) + 1;
		if (strcmp(scope, "command") != 0)
			return true;
	}
	return false;
}

const char *
kr_git_settings_find(const struct kr_git_settings *settings, const char *key)
{
	size_t len = strlen(key), at = 0;
	const char *found = NULL;
	struct entry e;

	while (next_entry(settings, &at, &e))
		if (e.key_len == len && memcmp(e.key, key, len) == 0)
			found = e.value ? e.value : "";
	return found;
}

/* ---- addresses ---- */

/* "host" or "host:port", and not "user:password" in front of a '/' that belongs to the password. */
static bool
is_plain_authority(const char *s, size_t n)
{
	const char *colon = memchr(s, ':', n);

	if (s[0] == '[') /* IPv6 */
		return true;
	return !colon || strspn(colon + 1, "0123456789") >= n - (size_t)(colon + 1 - s);
}

static const char *
last_at(const char *s, size_t n)
{
	const char *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (s[i] == '@')
			found = s + i;
	return found;
}

static const char *
clean_scheme(struct kr_arena *arena, const char *url, const char *authority)
{
	size_t n = strcspn(authority, "/?#"), rest;
	const char *at = last_at(authority, n), *host = at ? at + 1 : authority;

	rest = strlen(host);
	if (!is_plain_authority(host, (size_t)(authority + n - host)))
		return NULL;
	if (kr_text_has_prefix(url, "http"))
		rest = strcspn(host, "?#");
	return kr_arena_printf(arena, "%.*s%.*s", (int)(authority - url), url, (int)rest, host);
}

const char *
kr_git_url_clean(struct kr_arena *arena, const char *url)
{
	const char *scheme = strstr(url, "://"), *colon = strchr(url, ':'), *at = strchr(url, '@');
	size_t slash = strcspn(url, "/");

	if (scheme && scheme == colon)
		return clean_scheme(arena, url, scheme + 3);
	if (!colon || (size_t)(colon - url) > slash)
		return kr_arena_dup(arena, url); /* a path, or the name of a remote */
	if (colon[1] == ':')
		return NULL; /* a program's own kind of address */
	if (!at)
		return kr_arena_dup(arena, url);
	return at < colon ? kr_arena_dup(arena, at + 1) : NULL; /* user@host:path; or user:password@... */
}

/* ---- what passes ---- */

enum { ANY = 1, ADDRESS = 2, LOCAL = 4, SPARSE = 8 };

/*
 * section, variable ("*": any), whether it stands below a name of the person's choice (filter.<name>.clean),
 * and: ADDRESS, to be cleaned; LOCAL, believed of the repository's own file only, as git does; SPARSE, only
 * with the patterns.
 */
static const struct key {
	const char *section, *variable;
	bool is_named;
	int kind;
} keys[] = {
	{ "core", "autocrlf", false, ANY },
	{ "core", "eol", false, ANY },
	{ "core", "safecrlf", false, ANY },
	{ "core", "symlinks", false, ANY },
	{ "core", "ignorecase", false, ANY },
	{ "core", "precomposeunicode", false, ANY },
	{ "core", "filemode", false, ANY },
	{ "core", "quotepath", false, ANY },
	{ "core", "trustctime", false, ANY },
	{ "core", "checkstat", false, ANY },
	{ "core", "abbrev", false, ANY },
	{ "core", "whitespace", false, ANY },
	{ "core", "commentchar", false, ANY },
	{ "core", "bigfilethreshold", false, ANY },
	{ "core", "sparsecheckout", false, SPARSE },
	{ "core", "sparsecheckoutcone", false, SPARSE },
	{ "i18n", "commitencoding", false, ANY },
	{ "i18n", "logoutputencoding", false, ANY },
	{ "filter", "clean", true, ANY },
	{ "filter", "smudge", true, ANY },
	{ "filter", "process", true, ANY },
	{ "filter", "required", true, ANY },
	{ "merge", "driver", true, ANY },
	{ "merge", "name", true, ANY },
	{ "merge", "recursive", true, ANY },
	{ "merge", "conflictstyle", false, ANY },
	{ "merge", "ff", false, ANY },
	{ "merge", "renames", false, ANY },
	{ "merge", "renamelimit", false, ANY },
	{ "merge", "directoryrenames", false, ANY },
	{ "merge", "renormalize", false, ANY },
	{ "merge", "log", false, ANY },
	{ "merge", "autostash", false, ANY },
	{ "diff", "xfuncname", true, ANY },
	{ "diff", "wordregex", true, ANY },
	{ "diff", "binary", true, ANY },
	{ "diff", "algorithm", true, ANY },
	{ "diff", "algorithm", false, ANY },
	{ "diff", "renames", false, ANY },
	{ "diff", "renamelimit", false, ANY },
	{ "diff", "context", false, ANY },
	{ "diff", "interhunkcontext", false, ANY },
	{ "diff", "indentheuristic", false, ANY },
	{ "diff", "mnemonicprefix", false, ANY },
	{ "diff", "noprefix", false, ANY },
	{ "diff", "colormoved", false, ANY },
	{ "diff", "wordregex", false, ANY },
	{ "pull", "rebase", false, ANY },
	{ "pull", "ff", false, ANY },
	{ "push", "default", false, ANY },
	{ "fetch", "prune", false, ANY },
	{ "rebase", "*", false, ANY },
	{ "rerere", "enabled", false, ANY },
	{ "rerere", "autoupdate", false, ANY },
	{ "commit", "cleanup", false, ANY },
	{ "commit", "verbose", false, ANY },
	{ "author", "name", false, ANY },
	{ "author", "email", false, ANY },
	{ "committer", "name", false, ANY },
	{ "committer", "email", false, ANY },
	{ "user", "name", false, ANY },
	{ "user", "email", false, ANY },
	{ "author", "name", false, ANY },
	{ "author", "email", false, ANY },
	{ "committer", "name", false, ANY },
	{ "committer", "email", false, ANY },
	{ "init", "defaultbranch", false, ANY },
	{ "remote", "url", true, ADDRESS },
	{ "remote", "pushurl", true, ADDRESS },
	{ "remote", "fetch", true, ANY },
	{ "remote", "promisor", true, ANY }, /* a partial clone: who has what is missing */
	{ "remote", "partialclonefilter", true, ANY },
	{ "branch", "remote", true, ADDRESS },
	{ "branch", "merge", true, ANY },
	{ "branch", "rebase", true, ANY },
	{ "submodule", "url", true, ADDRESS },
	{ "lfs", "url", false, ADDRESS },
	{ "lfs", "pushurl", false, ADDRESS },
	{ "lfs", "fetchinclude", false, ANY },
	{ "lfs", "fetchexclude", false, ANY },
	{ "lfs", "concurrenttransfers", false, ANY },
	{ "lfs", "basictransfersonly", false, ANY },
	{ "lfs", "allowincompletepush", false, ANY },
	{ "lfs", "skipdownloaderrors", false, ANY },
	{ "lfs", "setlockablereadonly", false, ANY },
	{ "lfs", "lockignoredfiles", false, ANY },
	{ "lfs", "locksverify", false, ANY },
	{ "lfs", "dialtimeout", false, ANY },
	{ "lfs", "tlstimeout", false, ANY },
	{ "lfs", "activitytimeout", false, ANY },
	{ "lfs", "repositoryformatversion", false, ANY },
	{ "extensions", "objectformat", false, LOCAL },
	{ "extensions", "partialclone", false, LOCAL },
};

/* "section.name.variable" taken apart; name NULL when there is none. */
struct parts {
	const char *section, *name, *variable;
};

static bool
take_apart(struct kr_arena *arena, const struct entry *e, struct parts *out)
{
	const char *key = kr_arena_dup_n(arena, e->key, e->key_len);
	const char *first = strchr(key, '.'), *last = strrchr(key, '.');

	if (!first)
		return false;
	out->section = kr_arena_dup_n(arena, key, (size_t)(first - key));
	out->variable = last + 1;
	out->name = first == last ? NULL : kr_arena_dup_n(arena, first + 1, (size_t)(last - first - 1));
	return true;
}

static const struct key *
look_up(const struct parts *p)
{
	for (size_t i = 0; i < KR_COUNT(keys); i++)
		if (keys[i].is_named == (p->name != NULL) && strcmp(keys[i].section, p->section) == 0 &&
			(keys[i].variable[0] == '*' || strcmp(keys[i].variable, p->variable) == 0))
			return &keys[i];
	return NULL;
}

/* An address can be a section's name too (remote.https://user:password@host.promisor). */
static bool
is_plain_name(const char *name)
{
	return !name || !strstr(name, "://");
}

/* ---- writing ---- */

/* In quotes; git takes any other byte for itself there. */
void
kr_git_quote(struct kr_buf *out, const char *s)
{
	kr_buf_add(out, "\"", 1);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			kr_buf_add(out, "\\", 1);
		if (*s == '\n')
			kr_buf_add(out, "\\n", 2);
		else
			kr_buf_add(out, s, 1);
	}
	kr_buf_add(out, "\"", 1);
}

static void
add_entry(struct kr_buf *out, const struct parts *p, const char *value)
{
	kr_buf_addf(out, "[%s", p->section);
	if (p->name) {
		kr_buf_add(out, " ", 1);
		kr_git_quote(out, p->name);
	}
	kr_buf_addf(out, "]\n\t%s", p->variable);
	if (value) {
		kr_buf_adds(out, " = ");
		kr_git_quote(out, value);
	}
	kr_buf_add(out, "\n", 1);
}

/* False: it stays out. */
static bool
passes(struct kr_arena *arena, const struct entry *e, const struct parts *p, bool sparse, const char **value)
{
	const struct key *key = look_up(p);
	bool is_own = strcmp(e->scope, "local") == 0;

	*value = e->value;
	if (!key || !is_plain_name(p->name))
		return false;
	if (key->kind == ADDRESS)
		*value = e->value ? kr_git_url_clean(arena, e->value) : NULL;
	return key->kind == ANY || (key->kind == LOCAL && is_own) || (key->kind == SPARSE && sparse) ||
		   (key->kind == ADDRESS && *value);
}

void
kr_git_settings_write(struct kr_arena *arena, const struct kr_git_settings *settings,
	bool has_sparse_patterns, struct kr_buf *out)
{
	bool is_extended = false;
	const char *value;
	struct entry e;
	struct parts p;

	for (size_t at = 0; next_entry(settings, &at, &e);) {
		if (!take_apart(arena, &e, &p) || !passes(arena, &e, &p, has_sparse_patterns, &value))
			continue;
		is_extended = is_extended || strcmp(p.section, "extensions") == 0;
		add_entry(out, &p, value);
	}
	/* Behind all else, where it wins. */
	kr_buf_addf(out, "[core]\n\trepositoryformatversion = %d\n\tbare = false\n\tlogallrefupdates = true\n",
		is_extended);
}
