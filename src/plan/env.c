/*
 * The environment inside (OS-ENV-01 to -04) and the CA files that come with it (OS-MNT-13).
 *
 * Nothing crosses but by name. Four sources, the first wins: what kraft sets, the literals of the
 * repository's `env`, those of an agent's harness, and what crosses from kraft's own environment. A value of
 * the last three is never printed. HOME and kraft's own names cannot be changed by a repository or a harness;
 * a PATH of a repository's comes after kraft's own directory.
 *
 * On macOS the proxy is on the host's own loopback, behind a token that is in its address; nothing else of loopback can be reached,
 * so there is nothing for NO_PROXY to name. Java is told nothing: it prints what it is told so, and with it the token.
 *
 * In a container the image's own variables lie below all of these (the init puts ours over them), the host's CA files are not
 * there, and with an open network the host's proxies are what leads out.
 */
#include "plan/build.h"

#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"

static const char *const ca_variables[] = {
	"SSL_CERT_FILE",
	"REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE",
	"GIT_SSL_CAINFO",
	"NODE_EXTRA_CA_CERTS",
};
/* Beside those, for programs that read another one (kind: docker, where one file holds all). */
static const char *const more_ca_variables[] = {
	"CODEX_CA_CERTIFICATE",
	"PIP_CERT",
	"npm_config_cafile",
	"CARGO_HTTP_CAINFO",
	"AWS_CA_BUNDLE",
	"DENO_CERT",
	"NIX_SSL_CERT_FILE",
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
};
static const char ca_directory_variable[] = "SSL_CERT_DIR"; /* a list, like PATH */

/* ---- CA files ---- */

/* Shows one CA file or directory; false when it is left out, with the reason noted. */
static bool
show_ca(struct kr_build *b, const char *variable, const char *text)
{
	struct kr_strs links = { 0 };
	struct kr_fs_entry entry;
	struct kr_error err = { 0 };
	const char *clean = text[0] == '/' ? kr_path_clean(b->arena, text) : NULL, *real, *why;

	if (!clean) {
		kr_build_note(b, "%s names '%s', which is not an absolute path: left out", variable, text);
		return false;
	}
	real = kr_fs_resolve(b->host->fs, b->arena, clean, &entry, &links);
	if (!real || (entry.type != KR_FS_FILE && entry.type != KR_FS_DIR)) {
		kr_build_note(b, "%s names '%s', which %s: left out", variable, text,
			real ? "is neither a file nor a directory" : "does not exist or cannot be reached");
		return false;
	}
	why = kr_build_why_not(b, clean);
	if (!why)
		why = kr_build_why_not(b, real);
	if (why && !kr_build_is_shown(b, real)) {
		kr_build_note(b, "%s names '%s', which %s: left out", variable, text, why);
		return false;
	}
	if (!kr_build_is_shown(b, real) && entry.type == KR_FS_DIR &&
		kr_build_scan(b, real, "the CA directory", &err) < 0) {
		kr_build_note(b, "%s: %s: left out", variable, err.message);
		return false;
	}
	kr_build_links(b, &links, kr_arena_printf(b->arena, "leads to what %s names", variable));
	kr_build_show(b, (struct kr_show){ .path = real,
						 .source = real,
						 .check = KR_CHECK_PROTECT,
						 .because = kr_arena_printf(b->arena, "named by %s", variable) });
	return true;
}

void
kr_build_ca_files(struct kr_build *b)
{
	const char *list = kr_host_env(b->host, ca_directory_variable);

	for (size_t i = 0; i < KR_COUNT(ca_variables); i++) {
		const char *value = kr_host_env(b->host, ca_variables[i]);

		if (value && *value)
			(void)show_ca(b, ca_variables[i], value); /* the variable crosses all the same */
	}
	while (list && *list) {
		size_t n = strcspn(list, ":");

		if (n)
			(void)show_ca(b, ca_directory_variable, kr_arena_dup_n(b->arena, list, n));
		list += n + (list[n] == ':');
	}
}

/* ---- variables ---- */

struct env {
	struct kr_build *b;
	struct kr_plan_env *v;
	size_t n, cap;
};

static bool
has(const struct env *e, const char *name)
{
	for (size_t i = 0; i < e->n; i++)
		if (strcmp(e->v[i].name, name) == 0)
			return true;
	return false;
}

/* The first to name a variable wins. */
static void
set(struct env *e, const char *name, const char *value, enum kr_env_source source, const char *because)
{
	if (has(e, name))
		return;
	KR_BUG_IF(e->n == e->cap);
	e->v[e->n++] = (struct kr_plan_env){ name, value, source, because };
}

static void
cross(struct env *e, const char *name, const char *because)
{
	const char *value = kr_host_env(e->b->host, name);

	if (value && !kr_plan_is_managed(e->b->request->repo, name))
		set(e, name, value, KR_ENV_HOST, because);
}

static const char *const proxy_variables[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
	"ALL_PROXY", "all_proxy" };
static const char *const tokens[] = { "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY" };
static const char *const no_proxy_variables[] = { "NO_PROXY", "no_proxy" };
static const char *const places_of_macos[] = { "TMPDIR", "CLAUDE_CODE_TMPDIR" }; /* MAC-07 */
static const char node_proxy_variable[] = "NODE_USE_ENV_PROXY";
static const char java_variable[] = "JAVA_TOOL_OPTIONS"; /* Java reads no proxy variable */

static bool
is_in(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool
is_of_a_proxy(const char *name)
{
	return is_in(proxy_variables, KR_COUNT(proxy_variables), name) ||
		is_in(no_proxy_variables, KR_COUNT(no_proxy_variables), name) || strcmp(name, node_proxy_variable) == 0;
}

/* Names that only kraft sets. With an open network there is no proxy of kraft's. */
static bool
is_krafts(const struct kr_repo *repo, const char *name)
{
	return kr_text_has_prefix(name, "KRAFT_") || strcmp(name, "HOME") == 0 ||
		(!repo->sandbox.unrestricted_network && is_of_a_proxy(name));
}

bool
kr_plan_sets(const struct kr_repo *repo, const char *name)
{
	return is_krafts(repo, name) || strcmp(name, "PATH") == 0 || strcmp(name, java_variable) == 0 ||
		kr_text_has_prefix(name, "GIT_") || kr_text_has_prefix(name, "LD_") || is_in(ca_variables, KR_COUNT(ca_variables), name) ||
		is_in(more_ca_variables, KR_COUNT(more_ca_variables), name);
}

static bool
only_kraft_sets(const struct env *e, const char *name)
{
	return is_krafts(e->b->request->repo, name) || kr_plan_is_managed(e->b->request->repo, name) ||
		(e->b->request->macos && is_in(places_of_macos, KR_COUNT(places_of_macos), name));
}

static void
set_each(struct env *e, const char *const *names, size_t n, const char *value, const char *because)
{
	for (size_t i = 0; i < n; i++)
		set(e, names[i], value, KR_ENV_KRAFT, because);
}

/* MAC-06: the token is in its address. */
static void
set_macos_proxy(struct env *e)
{
	const char *proxy = e->b->request->macos->proxy;

	for (size_t i = 0; proxy && i < KR_COUNT(proxy_variables); i++)
		set(e, proxy_variables[i], proxy, KR_ENV_SESSION, "the way out, with this session's token");
	if (proxy)
		set(e, node_proxy_variable, "1", KR_ENV_KRAFT, "Node takes the proxy variables only then");
}

/* OS-ENV-03. ALL_PROXY is an http URL as well: there is no SOCKS, and some clients stumble over its scheme. */
static void
set_proxy(struct env *e)
{
	set_each(e, proxy_variables, KR_COUNT(proxy_variables), "http://127.0.0.1:3128", "the way out");
	set_each(e, no_proxy_variables, KR_COUNT(no_proxy_variables), "localhost,127.0.0.1,::1",
		"the sandbox's own loopback needs no way out");
	set(e, node_proxy_variable, "1", KR_ENV_KRAFT, "Node takes the proxy variables only then");
}

bool
kr_proxy_is_loopback(const char *proxy)
{
	const char *host = strstr(proxy, "://"), *end;

	host = host ? host + 3 : proxy;
	end = host + strcspn(host, "/?#");
	for (const char *c = host; c < end; c++)
		if (*c == '@')
			host = c + 1;
	return kr_text_has_prefix(host, "127.") || kr_text_has_prefix(host, "0.0.0.0") || kr_text_has_prefix(host, "[::1]") || kr_text_has_prefix(host, "[::ffff:127.") ||
		(strncasecmp(host, "localhost", 9) == 0 && strchr(":/?#.", host[9]) != NULL);
}

/* CHN-11: what leads out of the host leads out of a container too, unless it is the host's own. */
static void
cross_proxy(struct env *e)
{
	static const char because[] = "the host's proxy";
	size_t crossed = e->n;

	for (size_t i = 0; i < KR_COUNT(proxy_variables); i++) {
		const char *value = kr_host_env(e->b->host, proxy_variables[i]);

		if (value && kr_proxy_is_loopback(value))
			kr_build_note(e->b, "%s is a proxy on the host's own loopback, which a container cannot reach: left out", proxy_variables[i]);
		else
			cross(e, proxy_variables[i], because);
	}
	for (size_t i = 0; e->n > crossed && i < KR_COUNT(no_proxy_variables); i++)
		cross(e, no_proxy_variables[i], because);
}

static void
set_java_proxy(struct env *e)
{
	set(e, java_variable,
		"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 "
		"-Dhttp.nonProxyHosts=localhost|127.0.0.1|[::1]",
		KR_ENV_KRAFT, "Java reads no proxy variable");
}

/* Facts of every git of kraft's, and of git inside: no hook runs, nothing outside the worktree is looked after. */
static const char *const git_pins[][2] = {
	{ "core.hooksPath", "/dev/null" },
	{ "core.fsmonitor", "" },
	{ "submodule.recurse", "false" },
	{ "fetch.recurseSubmodules", "false" },
	{ "push.recurseSubmodules", "no" },
	{ "diff.ignoreSubmodules", "dirty" },
};
/* Beside those on macOS, where git works on the repository itself: what it may not do there, it does not try. */
static const char *const shared_git_pins[][2] = {
	{ "gc.auto", "0" },
	{ "maintenance.auto", "false" },
	{ "rerere.enabled", "false" },
	{ "core.createObject", "rename" }, /* no hard links */
};

static void
set_pin(struct env *e, size_t number, const char *key, const char *value, const char *because)
{
	set(e, kr_arena_printf(e->b->arena, "GIT_CONFIG_KEY_%zu", number), key, KR_ENV_KRAFT, because);
	set(e, kr_arena_printf(e->b->arena, "GIT_CONFIG_VALUE_%zu", number), value, KR_ENV_KRAFT, because);
}

/* A condition of git's takes the directory for a pattern: each of its letters is to stand for itself. */
static const char *
include_key(struct kr_arena *arena, const char *git_dir)
{
	const char *key = "includeIf.gitdir:";

	for (const char *p = git_dir; *p; p++)
		key = kr_arena_printf(arena, strchr("*?[\\", *p) ? "%s\\%c" : "%s%c", key, *p);
	return kr_arena_printf(arena, "%s.path", key);
}

/* KR_TREE_SETTINGS; `number` is that of the next pin. */
static size_t
set_tree_settings(struct env *e, const struct kr_plan_shared_git *git, size_t number)
{
	struct kr_arena *arena = e->b->arena;
	const char *because = "the root does not take members for its files, each has its own settings";

	for (size_t tree = 0; git; git = git->next, tree++)
		set_pin(e, number++, include_key(arena, git->worktree_git_dir),
			kr_arena_printf(arena, "%s/" KR_TREE_SETTINGS "-%zu", e->b->request->channel_dir, tree), because);
	return number;
}

/* shared: the root's of an item that works in the repository itself; NULL: it has a private git directory. */
static void
set_git(struct env *e, const struct kr_strs *identity, const struct kr_plan_shared_git *shared)
{
	struct kr_arena *arena = e->b->arena;
	size_t count = 0;

	for (size_t i = 0; i < KR_COUNT(git_pins); i++)
		set_pin(e, count++, git_pins[i][0], git_pins[i][1], "hooks do not run inside");
	for (size_t i = 0; shared && i < KR_COUNT(shared_git_pins); i++)
		set_pin(e, count++, shared_git_pins[i][0], shared_git_pins[i][1], "the repository is yours, too");
	if (shared && shared->next)
		count = set_tree_settings(e, shared, count);
	set(e, "GIT_CONFIG_COUNT", kr_arena_printf(arena, "%zu", count), KR_ENV_KRAFT, "settings of git inside");
	for (size_t i = 0; i < identity->n; i++) {
		const char *equals = strchr(identity->v[i], '=');

		if (equals)
			set(e, kr_arena_dup_n(arena, identity->v[i], (size_t)(equals - identity->v[i])), equals + 1, KR_ENV_KRAFT,
				"who commits");
	}
}

static void
set_krafts(struct env *e)
{
	const struct kr_request *r = e->b->request;

	set(e, "HOME", r->home, KR_ENV_KRAFT, "the item's sandbox home");
	set(e, "KRAFT_RESULT_PATH", kr_build_result_path(e->b), KR_ENV_KRAFT, "where this session writes its result");
	set(e, "KRAFT_WORK_ITEM_ID", r->item, KR_ENV_KRAFT, "the item");
	set(e, "KRAFT_SESSION_ID", r->session, KR_ENV_KRAFT, "this session");
	for (size_t i = 0; r->macos && i < KR_COUNT(places_of_macos); i++)
		set(e, places_of_macos[i], r->macos->tmpdir, KR_ENV_KRAFT, "temporary files, gone with the session");
}

/* What the sandbox would have without kraft. */
static const char *
path_below(const struct env *e)
{
	const struct kr_request *r = e->b->request;
	const char *path = r->container ? NULL : kr_host_env(e->b->host, "PATH");
	const struct kr_strs *image = r->container ? r->container->image_env : NULL;

	if (!r->container)
		return path ? path : KR_PATH_DEFAULT;
	for (size_t i = 0; image && i < image->n; i++)
		if (kr_text_has_prefix(image->v[i], "PATH="))
			return image->v[i] + strlen("PATH=");
	return KR_PATH_OF_IMAGES;
}

/* OS-ENV-04: kraft's own commands come first, whoever sets the rest; where there are none, nothing does. */
static void
set_path(struct env *e)
{
	const struct kr_repo *repo = e->b->request->repo;
	const bool has_commands = !(e->b->request->container && repo->sandbox.unrestricted_network);
	const char *first = has_commands ? kr_arena_printf(e->b->arena, "%s:", kr_build_bin(e->b)) : "";

	for (size_t i = 0; i < repo->env_count; i++)
		if (strcmp(repo->env[i].name, "PATH") == 0)
			set(e, "PATH", kr_arena_printf(e->b->arena, "%s%s", first, repo->env[i].value), KR_ENV_REPO,
				*first ? "kraft's commands, then the repository's env" : "the repository's env");
	set(e, "PATH", kr_arena_printf(e->b->arena, "%s%s", first, path_below(e)), KR_ENV_KRAFT,
		!e->b->request->container ? "kraft's commands, then the PATH of kraft"
		: *first				  ? "kraft's commands, then the PATH of the image"
								  : "the PATH of the image");
}

static void
set_repositorys(struct env *e)
{
	const struct kr_repo *repo = e->b->request->repo;

	for (size_t i = 0; i < repo->env_count; i++) {
		const struct kr_env_literal *literal = &repo->env[i];

		if (only_kraft_sets(e, literal->name))
			kr_build_note(
				e->b, "the repository's env sets %s, which only kraft sets: left out", literal->name);
		else
			set(e, literal->name, literal->value, KR_ENV_REPO, "the repository's env");
	}
}

/* Before the repository's: what is in another directory is not what kraft made. */
static void
set_config_dir(struct env *e)
{
	const struct kr_plan_agent *agent = e->b->request->is_short_run ? NULL : e->b->request->agent;

	if (agent && agent->config_dir)
		set(e, agent->config_env, agent->config_dir, KR_ENV_KRAFT, "the agent's own directory");
}

/* SEN-01. Before what a configuration sets: a sentinel is in a variable of its own. */
static void
set_sentinels(struct env *e)
{
	const struct kr_plan_secrets *secrets = e->b->request->secrets;

	for (size_t i = 0; secrets && i < secrets->secret_count; i++)
		set(e, secrets->secrets[i].variable, secrets->secrets[i].sentinel, KR_ENV_SENTINEL,
			kr_arena_printf(e->b->arena, "sentinel of %s, which stays outside", secrets->secrets[i].source));
}

static void
set_harness(struct env *e)
{
	const struct kr_plan_agent *agent = e->b->request->agent;
	const char *because = agent ? kr_arena_printf(e->b->arena, "the harness '%s'", agent->id) : NULL;

	for (size_t i = 0; agent && i < agent->env_count; i++) {
		const struct kr_env_literal *literal = &agent->env[i];

		if (only_kraft_sets(e, literal->name) || strcmp(literal->name, "PATH") == 0)
			kr_build_note(e->b, "the harness '%s' sets %s, which only kraft sets: left out", agent->id, literal->name);
		else
			set(e, literal->name, literal->value, KR_ENV_HARNESS, because);
	}
}

static void
cross_passthrough(struct env *e)
{
	const struct kr_strs *names = &e->b->request->repo->env_passthrough;

	for (size_t i = 0; i < names->n; i++) {
		if (only_kraft_sets(e, names->v[i]))
			kr_build_note(e->b, "env_passthrough names %s, which only kraft sets: left out", names->v[i]);
		else
			cross(e, names->v[i], "env_passthrough");
	}
}

/* CFG-09. One file holds the image's certificates and the extra one; the host's own files are not there. */
static void
set_ca_bundle(struct env *e)
{
	static const char because[] = "the image's certificates, and the extra one";

	if (!e->b->request->container->ca_bundle)
		return;
	set_each(e, ca_variables, KR_COUNT(ca_variables), KR_CA_BUNDLE, because);
	set_each(e, more_ca_variables, KR_COUNT(more_ca_variables), KR_CA_BUNDLE, because);
}

static void
cross_ca_files(struct env *e)
{
	for (size_t i = 0; i < KR_COUNT(ca_variables); i++)
		cross(e, ca_variables[i], "the host's CA files");
	cross(e, ca_directory_variable, "the host's CA files");
}

bool
kr_plan_crosses(const struct kr_repo *repo, const char *name)
{
	return kr_plan_is_managed(repo, name) || is_in(tokens, KR_COUNT(tokens), name) || (kr_strs_has(&repo->env_passthrough, name) && !is_krafts(repo, name));
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct kr_plan_env *)a)->name, ((const struct kr_plan_env *)b)->name);
}

static bool
has_kraft_proxy(const struct kr_request *request)
{
	return !request->is_short_run && !kr_plan_has_open_network(request);
}

void
kr_build_environment(struct kr_build *b)
{
	static const char *const locale[] = { "LANG", "LC_ALL", "LC_CTYPE", "TZ" };
	static const char *const terminal[] = { "TERM", "COLORTERM", "NO_COLOR" };
	const struct kr_repo *repo = b->request->repo;
	const struct kr_plan_agent *agent = b->request->agent;
	const struct kr_plan_macos *macos = b->request->macos;
	struct env e = { .b = b, .cap = 90 + repo->sandbox.credential_count + repo->env_count + repo->env_passthrough.n + (agent ? agent->env_count : 0) };

	for (const struct kr_plan_shared_git *git = macos ? macos->git : NULL; git; git = git->next)
		e.cap += 2;
	e.v = kr_arena_alloc(b->arena, e.cap * sizeof(*e.v));
	set_krafts(&e);
	if (has_kraft_proxy(b->request) && macos)
		set_macos_proxy(&e);
	else if (has_kraft_proxy(b->request))
		set_proxy(&e);
	if (b->request->git)
		set_git(&e, &b->request->git->identity, NULL);
	if (macos && macos->git)
		set_git(&e, &macos->git->identity, macos->git);
	set_path(&e);
	set_config_dir(&e);
	set_sentinels(&e);
	set_repositorys(&e);
	set_harness(&e);
	set(&e, "USER", b->host->user, KR_ENV_KRAFT, "the login name");
	set(&e, "LOGNAME", b->host->user, KR_ENV_KRAFT, "the login name");
	for (size_t i = 0; i < KR_COUNT(locale); i++)
		cross(&e, locale[i], "language and time zone");
	for (size_t i = 0; b->request->terminal && i < KR_COUNT(terminal); i++)
		cross(&e, terminal[i], "the terminal");
	for (size_t i = 0; i < KR_COUNT(tokens); i++)
		cross(&e, tokens[i], "the agent's login token");
	if (b->request->container)
		set_ca_bundle(&e);
	cross_passthrough(&e);
	if (kr_plan_has_open_network(b->request))
		cross_proxy(&e);
	if (has_kraft_proxy(b->request) && !macos)
		set_java_proxy(&e);
	if (!b->request->container)
		cross_ca_files(&e);
	qsort(e.v, e.n, sizeof(*e.v), by_name);
	b->plan->env = e.v;
	b->plan->env_count = e.n;
}
