/*
 * The YAML tree, repos.yaml, and an edit's round trip. Beyond "no crash": a refusal has its place, the same
 * bytes give the same answer, marks lead back to where the text stands, and whatever is added can be taken
 * out again.
 */
#include "config/config.h"
#include "config/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

/* Every node's marks are in order and inside the file. */
static void
check_marks(const struct kr_yaml *doc, const struct kr_yaml_node *node)
{
	KR_BUG_IF(!node->start.line || !node->start.column || node->start.index > node->end.index);
	KR_BUG_IF(kr_yaml_offset(doc, &node->end) > doc->n);
	for (const struct kr_yaml_node *v = node->child; v; v = v->next) {
		KR_BUG_IF((node->type == KR_YAML_MAPPING) != (v->key != NULL));
		check_marks(doc, v);
	}
}

static void
check_tree(struct kr_arena *arena, const char *bytes, size_t n)
{
	struct kr_error err = { 0 };
	struct kr_yaml doc;

	if (kr_yaml_parse(arena, "f", bytes, n, &doc, &err) < 0) {
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.place.column);
		KR_BUG_IF(err.place.caret > strlen(err.place.excerpt));
	} else if (doc.root) {
		check_marks(&doc, doc.root);
		KR_BUG_IF(!kr_yaml_same(doc.root, doc.root));
	}
}

static void
check_edit(struct kr_arena *arena, const struct kr_repos *repos, const char *bytes, size_t n)
{
	struct kr_buf with KR_CLEANUP(kr_buf_fini) = KR_BUF(KR_CONFIG_FILE_BYTES);
	struct kr_buf without KR_CLEANUP(kr_buf_fini) = KR_BUF(KR_CONFIG_FILE_BYTES);
	struct kr_error err = { 0 };
	const struct kr_repos *more;

	if (kr_repos_edit_add("f", bytes, n, &places, "path: /new/one\nenv: {A: \"x\"}\n", &with, &err) < 0)
		return;
	more = kr_repos_parse(arena, "f", with.data, with.len, &places, &err);
	KR_BUG_IF(!more || more->repo_count != repos->repo_count + 1);
	if (kr_repos_edit_remove("f", with.data, with.len, &places, "/new/one", &without, &err) < 0)
		return;
	more = kr_repos_parse(arena, "f", without.data, without.len, &places, &err);
	KR_BUG_IF(!more || more->repo_count != repos->repo_count);
	for (size_t i = 0; i < repos->repo_count; i++)
		KR_BUG_IF(strcmp(more->repo[i].path, repos->repo[i].path) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	/* Exactly n bytes, so that reading one too many is seen. */
	kr_auto_free char *bytes = kr_xcalloc(1, n ? n : 1);
	const struct kr_repos *repos;

	if (n)
		memcpy(bytes, data, n);
	check_tree(&arena, bytes, n);
	repos = kr_repos_parse(&arena, "f", bytes, n, &places, &err);
	KR_BUG_IF(!repos && (err.code != KR_E_CONFIG || !err.place.line || !err.message[0]));
	if (repos)
		check_edit(&arena, repos, bytes, n);
	return 0;
}
