/*
 * repos.yaml: the list of connected repositories, and what a person says of each.
 *
 * One error stops the whole file: a half-read list could leave a repository without the walls that were
 * written for it (CFG-06). A missing file is an empty list; a file that cannot be read is an error. Nothing
 * of the host is asked but the file's own bytes.
 */
#include "config/schema.h"

#include "base/path.h"
#include "base/text.h"

/* ---- what is wrong with a text ---- */

const char *
kr_fault_empty(const char *text)
{
	return *text ? NULL : "is empty";
}

const char *
kr_fault_env_name(const char *text)
{
	return kr_text_is_env_name(text) ? NULL
									 : "is not the name of a variable (letters, digits, _; no digit first)";
}

const char *
kr_fault_id(const char *text)
{
	static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

	return *text >= 'a' && *text <= 'z' && !text[strspn(text, rest)]
			   ? NULL
			   : "is not an id (small letters, digits, _ and -; a letter first)";
}

const char *
kr_fault_forge(const char *text)
{
	return strcmp(text, "github") == 0 || strcmp(text, "gitlab") == 0 ? NULL : "is not a known forge";
}

/* A relative path that stays where it begins. */
const char *
kr_fault_inside(const char *text)
{
	if (!*text)
		return "is empty";
	if (*text == '/' || kr_text_has_prefix(text, "~/"))
		return "is not a relative path";
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && memcmp(p, "..", 2) == 0)
			return "leads out with '..'";
		p += n + (p[n] == '/');
	}
	return NULL;
}

/* Where a member stands. Not the root itself, and nothing that git takes for its own; no byte that ends a
 * line. */
const char *
kr_fault_member(const char *text)
{
	const char *fault = kr_fault_inside(text);
	bool is_below = false;

	if (fault)
		return fault;
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 4 && strncasecmp(p, ".git", 4) == 0)
			return "leads into '.git'";
		is_below = is_below || (n > 0 && !(n == 1 && *p == '.'));
		p += n + (p[n] == '/');
	}
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			return "holds a control character";
	return is_below ? NULL : "is the root itself";
}

const char *
kr_fault_local_file(const char *text)
{
	const char *fault = kr_fault_inside(text);

	if (fault)
		return fault;
	if (strpbrk(text, "*?["))
		return "holds a glob; each file is named by itself";
	while (kr_text_has_prefix(text, "./"))
		text += 2;
	if (strcmp(text, ".git") == 0 || kr_text_has_prefix(text, ".git/"))
		return "is part of git's own directory";
	return NULL;
}

const char *
kr_fault_root_pointer(const char *text)
{
	return strcmp(text, "ignore") == 0 || strcmp(text, "bump") == 0 ? NULL : "is neither ignore nor bump";
}

/* ---- keys of an entry ---- */

int
kr_path_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	const char *shown = kr_config_quote(c, node->text), *path;

	(void)key;
	if (kr_text_has_prefix(node->text, "~/")) {
		kr_config_fail(c, node, "'%s' of 'path' is not an absolute path", shown);
		return kr_hint(c->err, "write the whole path: '%s/%s'", c->places->home, shown + 2);
	}
	if (node->text[0] != '/') {
		kr_config_fail(c, node, "'%s' of 'path' is not an absolute path", shown);
		return kr_hint(c->err, "write the path of the checkout from '/' on");
	}
	path = kr_path_clean(c->arena, node->text);
	if (!path)
		return kr_config_fail(c, node, "'%s' of 'path' is too long for a path", shown);
	*(const char **)target = path;
	return 0;
}

int
kr_old_chain_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	if (*(const char **)target) {
		kr_config_fail(
			c, node, "'default_chain' is written twice, once under its older name '%s'", key->name);
		return kr_hint(c->err, "keep default_chain");
	}
	*(const char **)target = node->text;
	return 0;
}

/* A mapping from names to strings (nullable: or null) that nothing here uses yet. */
static int
check_string_values(struct kr_config *c, const struct kr_yaml_node *node, bool nullable)
{
	for (const struct kr_yaml_node *value = node->child; value; value = value->next)
		if (!(nullable && kr_yaml_value(value) == KR_VALUE_NULL) &&
			kr_config_want(c, value, value->key->text, KR_KEY_STRING) < 0)
			return -1;
	return 0;
}

int
kr_models_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	(void)target;
	return check_string_values(c, node, false);
}

int
kr_areas_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	(void)target;
	for (const struct kr_yaml_node *area = node->child; area; area = area->next)
		if (kr_config_want(c, area, area->key->text, KR_KEY_MAPPING) < 0 ||
			check_string_values(c, area, true) < 0)
			return -1;
	return 0;
}

static int
read_scope(struct kr_config *c, const struct kr_yaml_node *item, struct kr_test_scope *out)
{
	if (kr_config_want(c, item, "test_scopes", KR_KEY_MAPPING) < 0 ||
		kr_section_read(c, KR_IN_SCOPE, item, out) < 0)
		return -1;
	if (out->paths.n)
		return 0;
	return kr_config_fail(c, kr_yaml_get(item, "paths"), "'paths' of a test scope is empty");
}

int
kr_scopes_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_repo *repo = target;

	(void)key;
	repo->test_scopes = kr_arena_alloc(c->arena, node->count * sizeof(*repo->test_scopes));
	for (const struct kr_yaml_node *item = node->child; item; item = item->next)
		if (read_scope(c, item, &repo->test_scopes[repo->test_scope_count++]) < 0)
			return -1;
	return 0;
}

int
kr_env_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_repo *repo = target;

	(void)key;
	repo->env = kr_arena_alloc(c->arena, node->count * sizeof(*repo->env));
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const char *fault = kr_fault_env_name(value->key->text);

		if (fault) {
			kr_config_fail(c, value->key, "'%s' in 'env' %s", kr_config_quote(c, value->key->text), fault);
			return kr_hint(c->err, "write NAME: \"value\"");
		}
		if (kr_config_want(c, value, value->key->text, KR_KEY_STRING) < 0)
			return -1;
		repo->env[repo->env_count++] = (struct kr_env_literal){
			.name = value->key->text, .value = value->text, .mark = kr_config_mark(value->key)
		};
	}
	return 0;
}

int
kr_review_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	(void)target;
	if (kr_section_read(c, KR_IN_REVIEW, node, NULL) < 0)
		return -1;
	return node->count == 1 ? 0 : kr_config_fail(c, node, "'automated_review' takes either bot or check");
}

/* ---- workspaces ---- */

int
kr_root_pointer_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_workspace *space = target;
	const char *fault = key->fault(node->text);

	if (fault) {
		kr_config_fail(c, node, "'%s' of '%s' %s", kr_config_quote(c, node->text), key->name, fault);
		return kr_hint(c->err, "%s: %s", key->name, key->help);
	}
	space->bumps_root_pointer = strcmp(node->text, "bump") == 0;
	return 0;
}

static int
check_apart(struct kr_config *c, const struct kr_workspace *space, const struct kr_yaml_node *last)
{
	const struct kr_member *b = &space->members[space->member_count - 1];
	const char *path = kr_path_join(c->arena, "/", b->path);

	for (const struct kr_member *a = space->members; a < b; a++) {
		const char *other = kr_path_join(c->arena, "/", a->path);

		if (!kr_path_is_within(path, other) && !kr_path_is_within(other, path))
			continue;
		kr_config_fail(c, kr_yaml_get(last, "path"), "the members '%s' and '%s' share a path",
			kr_config_quote(c, a->name), kr_config_quote(c, b->name));
		return kr_hint(c->err, "no member may lie in another");
	}
	return 0;
}

static int
read_member(struct kr_config *c, const struct kr_yaml_node *node, struct kr_workspace *space)
{
	struct kr_member *member = &space->members[space->member_count++];
	const char *clean;

	*member = (struct kr_member){ .name = node->key->text, .mark = kr_config_mark(node->key) };
	if (!*member->name)
		return kr_config_fail(c, node->key, "a workspace's member has an empty name");
	if (kr_config_want(c, node, member->name, KR_KEY_MAPPING) < 0 ||
		kr_section_read(c, KR_IN_MEMBER, node, member) < 0)
		return -1;
	clean = kr_path_join(c->arena, "/", member->path);
	if (!clean)
		return kr_config_fail(c, kr_yaml_get(node, "path"), "'path' of a member is too long for a path");
	member->path = clean + 1;
	return check_apart(c, space, node);
}

int
kr_members_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_workspace *space = target;

	(void)key;
	if (node->count > KR_WORKSPACE_MEMBERS)
		return kr_config_fail(c, node, "a workspace has more than %d members", KR_WORKSPACE_MEMBERS);
	space->members = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*space->members));
	for (const struct kr_yaml_node *member = node->child; member; member = member->next)
		if (read_member(c, member, space) < 0)
			return -1;
	return 0;
}

int
kr_workspaces_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_repos *repos = target;

	(void)key;
	repos->workspaces = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*repos->workspaces));
	for (const struct kr_yaml_node *space = node->child; space; space = space->next) {
		struct kr_workspace *out = &repos->workspaces[repos->workspace_count++];

		*out = (struct kr_workspace){ .name = space->key->text, .mark = kr_config_mark(space->key) };
		if (!*out->name)
			return kr_config_fail(c, space->key, "a workspace has an empty name");
		if (kr_config_want(c, space, out->name, KR_KEY_MAPPING) < 0 ||
			kr_section_read(c, KR_IN_WORKSPACE, space, out) < 0)
			return -1;
	}
	return 0;
}

static const struct kr_repo *
find_id(struct kr_config *c, const struct kr_repos *repos, const struct kr_yaml_node *id)
{
	for (size_t i = 0; i < repos->repo_count; i++)
		if (repos->repo[i].id && strcmp(repos->repo[i].id, id->text) == 0)
			return &repos->repo[i];
	kr_config_fail(c, id, "no repository has the id '%s'", kr_config_quote(c, id->text));
	kr_hint(c->err, "write 'id: %s' in the repository's entry in 'repos'", kr_config_quote(c, id->text));
	return NULL;
}

/* Once all of the file is read: a workspace may stand before the entries that it names. */
static int
resolve_workspaces(struct kr_config *c, struct kr_repos *repos)
{
	const struct kr_yaml_node *all = kr_yaml_get(c->doc->root, "workspaces");
	const struct kr_yaml_node *node = repos->workspace_count ? all->child : NULL;

	for (struct kr_workspace *space = repos->workspaces; node; space++, node = node->next) {
		const struct kr_yaml_node *members = kr_yaml_get(node, "members");
		struct kr_member *member = space->members;

		space->root = find_id(c, repos, kr_yaml_get(node, "root"));
		if (!space->root)
			return -1;
		for (const struct kr_yaml_node *m = members ? members->child : NULL; m; m = m->next, member++) {
			member->repo = find_id(c, repos, kr_yaml_get(m, "repository"));
			if (!member->repo)
				return -1;
		}
	}
	return 0;
}

const struct kr_workspace *
kr_workspace_find(const struct kr_repos *repos, const char *name)
{
	for (size_t i = 0; i < repos->workspace_count; i++)
		if (strcmp(repos->workspaces[i].name, name) == 0)
			return &repos->workspaces[i];
	return NULL;
}

/* ---- the list ---- */

static const char *
entry_words(struct kr_config *c, const struct kr_yaml_node *entry, size_t index)
{
	const struct kr_yaml_node *path = kr_yaml_get(entry, "path");

	if (path && kr_yaml_value(path) == KR_VALUE_STRING && *path->text)
		return kr_arena_printf(c->arena, "'%s'", kr_config_quote(c, path->text));
	return kr_arena_printf(c->arena, "%zu", index + 1);
}

static int
check_unique(struct kr_config *c, const struct kr_repos *repos, const struct kr_repo *repo,
	const struct kr_yaml_node *entry)
{
	for (size_t i = 0; i < repos->repo_count; i++) {
		const struct kr_repo *other = &repos->repo[i];

		if (strcmp(other->path, repo->path) == 0) {
			kr_config_fail(c, kr_yaml_get(entry, "path"), "the repository stands twice, on lines %u and %u",
				other->mark.line, repo->mark.line);
			return kr_hint(c->err, "keep one entry a path");
		}
		if (other->id && repo->id && strcmp(other->id, repo->id) == 0) {
			kr_config_fail(c, kr_yaml_get(entry, "id"), "the id '%s' stands twice, on lines %u and %u",
				kr_config_quote(c, repo->id), other->mark.line, repo->mark.line);
			return kr_hint(c->err, "an id names one repository");
		}
	}
	return 0;
}

static int
read_entry(struct kr_config *c, const struct kr_yaml_node *entry, struct kr_repos *repos)
{
	struct kr_repo *repo = &repos->repo[repos->repo_count];

	*repo = (struct kr_repo){
		.enabled = true, .managed = true, .ci_checks = true, .mark = kr_config_mark(entry)
	};
	if (kr_yaml_value(entry) != KR_VALUE_MAPPING) {
		kr_config_fail(c, entry, "an item of 'repos' must be a mapping, not %s",
			kr_yaml_value_words(kr_yaml_value(entry)));
		return kr_hint(c->err, "write '- path: /path/of/the/checkout'");
	}
	if (kr_section_read(c, KR_IN_REPO, entry, repo) < 0 || check_unique(c, repos, repo, entry) < 0)
		return -1;
	if (!repo->name)
		repo->name = kr_path_basename(repo->path);
	if (!repo->policy.mark.line && (repo->policy.has_sandbox || repo->policy.deny_tools.n))
		repo->policy.mark = repo->mark;
	repo->sandbox_is_false = repo->policy.sandbox_is_false;
	repo->sandbox = repo->policy.sandbox;
	repos->repo_count++;
	return 0;
}

int
kr_repo_list_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_repos *repos = target;

	(void)key;
	repos->repo = kr_arena_alloc(c->arena, node->count * sizeof(*repos->repo));
	for (const struct kr_yaml_node *entry = node->child; entry; entry = entry->next) {
		c->entry = entry_words(c, entry, repos->repo_count);
		if (read_entry(c, entry, repos) < 0)
			return -1;
	}
	c->entry = NULL;
	return 0;
}

const struct kr_repos *
kr_repos_parse(struct kr_arena *arena, const char *file, const char *bytes, size_t n,
	const struct kr_places *places, struct kr_error *err)
{
	struct kr_repos *repos = kr_arena_new(arena, struct kr_repos);
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = arena,
		.doc = &doc,
		.files = KR_IN_REPOS,
		.places = places,
		.err = err,
		.warnings = &repos->warnings,
	};

	repos->file = kr_arena_dup(arena, file);
	if (kr_config_parse(&c, file, bytes, n, &doc, "'repos:' and list the repositories below") < 0)
		return NULL;
	if (doc.root &&
		(kr_section_read(&c, KR_IN_TOP, doc.root, repos) < 0 || resolve_workspaces(&c, repos) < 0))
		return NULL;
	return repos;
}

const struct kr_repos *
kr_repos_load(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err)
{
	const char *file = kr_path_join(arena, places->config_dir, "repos.yaml"), *bytes;
	bool is_missing;
	size_t n;

	if (!file) {
		kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
		return NULL;
	}
	if (kr_config_load(arena, file, "nothing runs until the list of repositories can be read", &bytes, &n,
			&is_missing, err) < 0)
		return NULL;
	return kr_repos_parse(arena, file, bytes, n, places, err);
}

const struct kr_repo *
kr_repos_find(const struct kr_repos *repos, const char *path)
{
	const struct kr_repo *best = NULL;

	for (size_t i = 0; i < repos->repo_count; i++)
		if (kr_path_is_within(path, repos->repo[i].path) &&
			(!best || strlen(repos->repo[i].path) > strlen(best->path)))
			best = &repos->repo[i];
	return best;
}
