/* config: repos.yaml. Broken files and their errors, good files and what was read of them, finding, loading,
 * editing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/schema.h"
#include "golden.h"

#include <cmocka.h>

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/var/lib/kraft-run",
	.config_dir = "/srv/kraft/config",
};

static struct kr_buf
read_file(const char *directory, const char *name)
{
	struct kr_buf buf = KR_BUF(8u << 20);
	struct kr_error err = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/golden/config/%s/%s", KR_TEST_DIR, directory, name);
	assert_int_equal(kr_file_read_at(AT_FDCWD, path, &buf, &err), 0);
	return buf;
}

static void
add_error(struct kr_buf *out, const char *title, const struct kr_error *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *stream = open_memstream(&text, &n);

	kr_error_print(err, stream, false);
	fclose(stream);
	kr_buf_addf(out, "== %s\n%.*s\n", title, (int)n, text);
	free(text);
}

/* Every broken file is refused with its place, and nothing of it is read (CFG-06, CFG-11). */
static void
add_refusal(struct kr_buf *out, const char *name, const char *bytes, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };

	if (kr_repos_parse(&arena, name, bytes, n, &places, &err))
		fail_msg("%s loads", name);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_true(err.place.line > 0 && err.place.column > 0);
	assert_string_equal(err.place.path, name);
	assert_null(kr_repos_parse(&arena, name, bytes, n, &places, NULL)); /* nobody listens */
	add_error(out, name, &err);
}

static int
is_yaml(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);

	return n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

static int
by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void
for_each_file(const char *directory,
	void (*visit)(struct kr_buf *out, const char *name, const char *bytes, size_t n), struct kr_buf *out)
{
	struct dirent **names;
	char path[512];
	int count;

	snprintf(path, sizeof(path), "%s/golden/config/%s", KR_TEST_DIR, directory);
	count = scandir(path, &names, is_yaml, by_bytes);
	assert_true(count > 0);
	for (int i = 0; i < count; i++) {
		struct kr_buf buf = read_file(directory, names[i]->d_name);

		visit(out, names[i]->d_name, buf.data ? buf.data : "", buf.len);
		kr_buf_fini(&buf);
		free(names[i]);
	}
	free(names);
}

static void
add_generated_refusals(struct kr_buf *out)
{
	struct kr_buf buf = KR_BUF(4u << 20);

	while (buf.len < 2u << 20)
		kr_buf_adds(&buf, "# two MiB of nothing but comments\n");
	add_refusal(out, "(2 MiB)", buf.data, buf.len);
	kr_buf_fini(&buf);
	kr_buf_adds(&buf, "repos:\n  - path: /home/you/code/app\n    steering:\n");
	for (int i = 0; i < KR_CONFIG_NODES; i++)
		kr_buf_adds(&buf, "      - a\n");
	add_refusal(out, "(10,000 items)", buf.data, buf.len);
	kr_buf_fini(&buf);
}

static void
broken_files_are_refused_with_their_place_CFG_11(void **state)
{
	struct kr_buf out = KR_BUF(4u << 20);

	(void)state;
	for_each_file("bad", add_refusal, &out);
	add_generated_refusals(&out);
	assert_true(golden_agrees("golden/config/errors.golden", &out));
	kr_buf_fini(&out);
}

/* ---- good files ---- */

static void
dump_text(struct kr_buf *out, const char *name, const char *text)
{
	if (text)
		kr_buf_addf(out, "  %s: \"%s\"\n", name, text);
}

static void
dump_strings(struct kr_buf *out, const char *name, const struct kr_strs *list)
{
	for (size_t i = 0; i < list->n; i++)
		kr_buf_addf(out, "  %s[%zu]: \"%s\"\n", name, i, list->v[i]);
}

static void
dump_network(struct kr_buf *out, const struct kr_network *network)
{
	char name[32];

	kr_buf_addf(out, "  network: %s\n", network->is_set ? "set" : "unset");
	for (int p = 0; p < KR_PHASE_COUNT; p++) {
		if (network->phase_is_set[p])
			kr_buf_addf(out, "  %s: set\n", kr_phase_name(p));
		snprintf(name, sizeof(name), "%s.allow", kr_phase_name(p));
		dump_strings(out, name, &network->phase[p].allow);
		snprintf(name, sizeof(name), "%s.deny", kr_phase_name(p));
		dump_strings(out, name, &network->phase[p].deny);
	}
}

static void
dump_credential(struct kr_buf *out, const struct kr_credential *credential)
{
	kr_buf_addf(out, "  credential at %u: %s from %s%s%s\n", credential->mark.line, credential->env,
		credential->source, credential->phase[0] ? " install" : "", credential->phase[1] ? " runtime" : "");
	for (size_t k = 0; k < credential->inject_count; k++)
		kr_buf_addf(out, "    %s %s: %s\n", credential->inject[k].domain, credential->inject[k].header,
			credential->inject[k].format);
}

static void
dump_sandbox(struct kr_buf *out, const struct kr_sandbox *sandbox)
{
	kr_buf_addf(out, "  sandbox at %u:%u: %s\n", sandbox->mark.line, sandbox->mark.column,
		kr_sandbox_kind_name(sandbox->kind));
	if (sandbox->kind == KR_SANDBOX_NONE)
		return;
	dump_network(out, &sandbox->network);
	for (size_t i = 0; i < sandbox->expose_count; i++)
		kr_buf_addf(out, "  expose at %u:%u: %s = %s\n", sandbox->expose[i].mark.line,
			sandbox->expose[i].mark.column, sandbox->expose[i].text, sandbox->expose[i].path);
	dump_text(out, "image", sandbox->image);
	dump_text(out, "runtime", sandbox->runtime);
	dump_text(out, "kit", sandbox->kit);
	if (sandbox->has_resources)
		kr_buf_addf(out, "  resources: cpu %.2f, memory %llu, pids %llu\n", sandbox->resources.cpu,
			(unsigned long long)sandbox->resources.memory_bytes, (unsigned long long)sandbox->resources.pids);
	if (sandbox->unrestricted_network)
		kr_buf_adds(out, "  unrestricted network\n");
	for (size_t i = 0; i < sandbox->credential_count; i++)
		dump_credential(out, &sandbox->credentials[i]);
}

static void
dump_repo(struct kr_buf *out, const struct kr_repo *repo)
{
	kr_buf_addf(out, "repo at %u:%u: %s\n", repo->mark.line, repo->mark.column, repo->path);
	dump_text(out, "name", repo->name);
	dump_text(out, "id", repo->id);
	dump_text(out, "default_chain", repo->default_chain);
	dump_text(out, "forge", repo->forge);
	dump_text(out, "project", repo->project);
	dump_text(out, "intent_dir", repo->intent_dir);
	kr_buf_addf(
		out, "  enabled %d, managed %d, ci_checks %d\n", repo->enabled, repo->managed, repo->ci_checks);
	dump_text(out, "setup_command", repo->setup_command);
	dump_text(out, "test_command", repo->test_command);
	for (size_t i = 0; i < repo->test_scope_count; i++) {
		dump_strings(out, "scope.paths", &repo->test_scopes[i].paths);
		dump_text(out, "scope.command", repo->test_scopes[i].command);
	}
	dump_strings(out, "local_files", &repo->local_files);
	dump_strings(out, "env_passthrough", &repo->env_passthrough);
	dump_strings(out, "deny_tools", &repo->policy.deny_tools);
	dump_strings(out, "steering", &repo->steering);
	for (size_t i = 0; i < repo->env_count; i++)
		kr_buf_addf(
			out, "  env at %u: %s = \"%s\"\n", repo->env[i].mark.line, repo->env[i].name, repo->env[i].value);
	if (repo->sandbox_is_false)
		kr_buf_adds(out, "  sandbox is false\n");
	dump_sandbox(out, &repo->sandbox);
}

static void
dump_workspace(struct kr_buf *out, const struct kr_workspace *space)
{
	kr_buf_addf(out, "workspace at %u:%u: %s, root %s%s\n", space->mark.line, space->mark.column, space->name,
		space->root->path, space->bumps_root_pointer ? ", bumped" : "");
	for (size_t i = 0; i < space->member_count; i++)
		kr_buf_addf(out, "  member at %u:%u: %s is %s at '%s'\n", space->members[i].mark.line,
			space->members[i].mark.column, space->members[i].name, space->members[i].repo->path,
			space->members[i].path);
}

static void
add_dump(struct kr_buf *out, const char *name, const char *bytes, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	const struct kr_repos *repos = kr_repos_parse(&arena, name, bytes, n, &places, &err);

	if (!repos)
		fail_msg("%s:%u: %s", name, err.place.line, err.message);
	kr_buf_addf(out, "== %s\n", name);
	for (size_t i = 0; i < repos->warnings.n; i++)
		kr_buf_addf(out, "warning: %s\n", repos->warnings.v[i]);
	for (size_t i = 0; i < repos->repo_count; i++)
		dump_repo(out, &repos->repo[i]);
	for (size_t i = 0; i < repos->workspace_count; i++)
		dump_workspace(out, &repos->workspaces[i]);
}

static void
good_files_are_read_whole_CFG_01_02(void **state)
{
	struct kr_buf out = KR_BUF(4u << 20);

	(void)state;
	for_each_file("good", add_dump, &out);
	assert_true(golden_agrees("golden/config/good.golden", &out));
	kr_buf_fini(&out);
}

static void
limits_are_reached_but_not_passed(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_buf buf = KR_BUF(4u << 20);
	struct kr_error err = { 0 };
	const struct kr_repos *repos;

	(void)state;
	/* The file, "repos", its list, the entry, "path", its value, "steering", its list: eight nodes. */
	kr_buf_adds(&buf, "repos:\n  - path: /home/you/code/app\n    steering:\n");
	for (int i = 0; i < KR_CONFIG_NODES - 8; i++)
		kr_buf_adds(&buf, "      - a\n");
	repos = kr_repos_parse(&arena, "f", buf.data, buf.len, &places, &err);
	assert_non_null(repos);
	assert_int_equal(repos->repo[0].steering.n, KR_CONFIG_NODES - 8);
	while (buf.len < KR_CONFIG_FILE_BYTES)
		kr_buf_adds(&buf, "#");
	assert_non_null(kr_repos_parse(&arena, "f", buf.data, buf.len, &places, &err));
	kr_buf_adds(&buf, "#");
	assert_null(kr_repos_parse(&arena, "f", buf.data, buf.len, &places, &err));
	kr_buf_fini(&buf);
}

static void
every_key_of_the_table_is_found_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < kr_key_count; i++) {
		assert_ptr_equal(kr_key_find(kr_keys[i].section, kr_keys[i].name), &kr_keys[i]);
		assert_true(kr_keys[i].help[0] != '\0');
	}
}

static void
the_nearest_entry_is_found(void **state)
{
	static const char text[] = "repos:\n  - path: /a\n  - path: /a/b/c\n  - path: /a/b\n";
	static const struct {
		const char *path, *found;
	} cases[] = {
		{ "/a", "/a" },
		{ "/a/x", "/a" },
		{ "/a/b", "/a/b" },
		{ "/a/b/c/d", "/a/b/c" },
		{ "/a/bc", "/a" },
		{ "/ab", NULL },
		{ "/", NULL },
	};
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	const struct kr_repos *repos = kr_repos_parse(&arena, "f", text, strlen(text), &places, &err);

	(void)state;
	assert_non_null(repos);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		const struct kr_repo *repo = kr_repos_find(repos, cases[i].path);

		if (cases[i].found)
			assert_string_equal(repo->path, cases[i].found);
		else
			assert_null(repo);
	}
}

/* ---- loading ---- */

static void
an_unreadable_file_is_not_an_empty_one_CFG_06(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	char top[] = "/tmp/kraft-unit-XXXXXX";
	struct kr_places here = places;
	struct kr_error err = { 0 };
	const struct kr_repos *repos;
	kr_auto_fd int dir = -1;
	struct kr_buf large = KR_BUF(4u << 20);

	(void)state;
	assert_non_null(mkdtemp(top));
	here.config_dir = top;
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	repos = kr_repos_load(&arena, &here, &err);
	assert_non_null(repos); /* missing: nothing is connected yet */
	assert_int_equal(repos->repo_count, 0);
	assert_int_equal(err.code, KR_E_NONE);

	assert_int_equal(mkdirat(dir, "repos.yaml", 0700), 0);
	assert_null(kr_repos_load(&arena, &here, &err));
	assert_int_equal(err.code, KR_E_CONFIG);
	unlinkat(dir, "repos.yaml", AT_REMOVEDIR);
	assert_int_equal(mkfifoat(dir, "repos.yaml", 0600), 0);
	assert_null(kr_repos_load(&arena, &here, &err)); /* and does not wait for a writer */
	unlinkat(dir, "repos.yaml", 0);
	assert_int_equal(symlinkat("repos.yaml", dir, "repos.yaml"), 0);
	assert_null(kr_repos_load(&arena, &here, &err));
	assert_int_equal(err.sys_errno, ELOOP);
	unlinkat(dir, "repos.yaml", 0);

	for (size_t size = KR_CONFIG_FILE_BYTES - 1; size <= KR_CONFIG_FILE_BYTES + 40000; size += 13333) {
		kr_buf_fini(&large);
		while (large.len < size)
			kr_buf_adds(&large, "#");
		assert_int_equal(kr_file_write_at(dir, "repos.yaml", large.data, large.len, 0600, &err), 0);
		repos = kr_repos_load(&arena, &here, &err);
		assert_true((repos != NULL) == (size <= KR_CONFIG_FILE_BYTES));
		if (!repos) {
			assert_int_equal(err.code, KR_E_CONFIG);
			assert_true(err.place.line == 1);
		}
	}
	kr_buf_fini(&large);
	assert_int_equal(kr_file_write_at(dir, "repos.yaml", "repos:\n  - path: /x\n", 20, 0600, &err), 0);
	repos = kr_repos_load(&arena, &here, &err);
	assert_non_null(repos);
	assert_string_equal(repos->repo[0].path, "/x");
	unlinkat(dir, "repos.yaml", 0);
	rmdir(top);
}

/* ---- editing ---- */

#define ENTRY "path: /new\nenv: {A: \"1, 2\"}\nsandbox:\n  kind: os\n  network: {runtime: {allow: [\"*\"]}}\n"
#define ADDED(indent)                                                                    \
	indent "- path: /new\n" indent "  env: {A: \"1, 2\"}\n" indent "  sandbox:\n" indent \
		   "    kind: os\n" indent "    network: {runtime: {allow: [\"*\"]}}\n"
#define FLOW "{path: /new, env: {A: \"1, 2\"}, sandbox: {kind: os, network: {runtime: {allow: [\"*\"]}}}}"

static const struct edit_case {
	const char *before, *after;
} additions[] = {
	{ "", "repos:\n" ADDED("  ") },
	{ "# a comment\n\n", "# a comment\n\nrepos:\n" ADDED("  ") },
	{ "---\n", "---\nrepos:\n" ADDED("  ") },
	{ "--- # here\n# there\n", "--- # here\n# there\nrepos:\n" ADDED("  ") },
	{ "---\n...\n", "---\nrepos:\n" ADDED("  ") "...\n" },
	{ "~\n", "\nrepos:\n" ADDED("  ") },
	{ "{}\n", "\nrepos:\n" ADDED("  ") },
	{ "repos:\n", "repos:\n" ADDED("  ") },
	{ "repos: # mine\n\n# end\n", "repos: # mine\n" ADDED("  ") "\n# end\n" },
	{ "repos: null\nworkspaces: {}\n", "repos:\n" ADDED("  ") "workspaces: {}\n" },
	{ "repos: []\n", "repos:\n" ADDED("  ") },
	{ "repos: [] # none yet\n# end\n", "repos:  # none yet\n" ADDED("  ") "# end\n" },
	{ "repos: [\n  # none yet\n]\n", "repos: [" FLOW "\n  # none yet\n]\n" },
	{ "repos: [{path: /a}]\n", "repos: [{path: /a}, " FLOW "]\n" },
	{ "repos: [\n  {path: /a}, # a\n]\n", "repos: [\n  {path: /a}, " FLOW ", # a\n]\n" },
	{ "{repos: []}\n", "{repos: [" FLOW "]}\n" },
	{ "{repos: null, workspaces: {}}\n", "{repos:  [" FLOW "], workspaces: {}}\n" },
	{ "{workspaces: {}}\n", "{workspaces: {}, repos: [" FLOW "]}\n" },
	{ "# head\nworkspaces: {}\n", "# head\nrepos:\n" ADDED("  ") "workspaces: {}\n" },
	{ "repos:\n  - path: /a\n", "repos:\n  - path: /a\n" ADDED("  ") },
	{ "repos:\n- path: /a\n\n# end\n", "repos:\n- path: /a\n" ADDED("") "\n# end\n" },
	{ "repos:\n      -   path: /a # x\n          name: y   # z\nworkspaces: {}\n",
		"repos:\n      -   path: /a # x\n          name: y   # z\n" ADDED("      ") "workspaces: {}\n" },
	{ "repos:\n  - path: /a\n    # sandbox: later\n\n    # really\n\n  # b\n  #- path: /b\n",
		"repos:\n  - path: /a\n    # sandbox: later\n\n    # really\n" ADDED(
			"  ") "\n  # b\n  #- path: /b\n" },
	{ "repos:\n  - path: /a\n    setup_command: |\n      a\n      b\n\n# end\n",
		"repos:\n  - path: /a\n    setup_command: |\n      a\n      b\n\n" ADDED("  ") "# end\n" },
	{ "repos:\n  - path: /a\n    setup_command: |+\n      a\n\n\nworkspaces: {}\n",
		"repos:\n  - path: /a\n    setup_command: |+\n      a\n\n\n" ADDED("  ") "workspaces: {}\n" },
	{ "repos:\n  - path: /a\n    setup_command: >-\n      a\n      b\n",
		"repos:\n  - path: /a\n    setup_command: >-\n      a\n      b\n" ADDED("  ") },
	{ "repos:\n  - path: /a\n    setup_command: a\n      b\n",
		"repos:\n  - path: /a\n    setup_command: a\n      b\n" ADDED("  ") },
	{ "repos:\n  - path: /a\n    env:\n      A: \"1\"\n    sandbox: {kind: os,\n      network: {runtime: "
	  "{}}\n      }\n",
		"repos:\n  - path: /a\n    env:\n      A: \"1\"\n    sandbox: {kind: os,\n      network: {runtime: "
		"{}}\n      }\n" ADDED("  ") },
	{ "repos:\n  - path: /a\n    name:\n", "repos:\n  - path: /a\n    name:\n" ADDED("  ") },
	{ "repos:\n  -\n    # about a\n    path: /\xc5\xbc\xc3\xb3\xc5\x82\n    name: '\xc4\x85'\n# \xc4\x99\n",
		"repos:\n  -\n    # about a\n    path: /\xc5\xbc\xc3\xb3\xc5\x82\n    name: '\xc4\x85'\n" ADDED(
			"  ") "# \xc4\x99\n" },
	{ "\xef\xbb\xbfrepos:\n  - path: /a\n", "\xef\xbb\xbfrepos:\n  - path: /a\n" ADDED("  ") },
	{ "repos:\n  - path: /a\n...\n", "repos:\n  - path: /a\n" ADDED("  ") "...\n" },
};

static void
check_addition(const char *before, const char *entry, const char *after)
{
	struct kr_buf out = KR_BUF(KR_CONFIG_FILE_BYTES);
	struct kr_error err = { 0 };

	if (kr_repos_edit_add("f", before, strlen(before), &places, entry, &out, &err) < 0)
		fail_msg("%s\nin:\n%s", err.message, before);
	assert_string_equal(out.data, after);
	kr_buf_fini(&out);
}

/* The same file with another line break. */
static char *
with_newline(const char *text, const char *newline)
{
	struct kr_buf buf = KR_BUF(1u << 20);

	kr_buf_adds(&buf, "");
	for (; *text; text++)
		if (*text == '\n')
			kr_buf_adds(&buf, newline);
		else
			kr_buf_add(&buf, text, 1);
	if (!buf.data)
		kr_buf_add(&buf, "", 0);
	return buf.data;
}

static void
an_entry_is_added_at_the_mark(void **state)
{
	(void)state;
	for (size_t i = 0; i < KR_COUNT(additions); i++) {
		const struct edit_case *c = &additions[i];
		kr_auto_free char *crlf = NULL, *crlf_after = NULL;

		check_addition(c->before, ENTRY, c->after);
		if (!strchr(c->before, '\n'))
			continue;
		crlf = with_newline(c->before, "\r\n");
		crlf_after = with_newline(c->after, "\r\n");
		check_addition(crlf, ENTRY, crlf_after);
	}
}

static void
a_missing_final_line_break_stays_missing(void **state)
{
	(void)state;
	check_addition(
		"# a comment", "path: /new\nname: n\n", "# a comment\nrepos:\n  - path: /new\n    name: n");
	check_addition("repos:", "path: /new\n", "repos:\n  - path: /new");
	check_addition("repos: []", "path: /new\n", "repos:\n  - path: /new");
	check_addition("repos:\n  - path: /a", "path: /new\n", "repos:\n  - path: /a\n  - path: /new");
	check_addition("repos:\r\n  - path: /a", "path: /new\n", "repos:\r\n  - path: /a\r\n  - path: /new");
	check_addition("repos:\n  - path: /a # x", "path: /new\n", "repos:\n  - path: /a # x\n  - path: /new");
}

/* Its text ends without a line break only because the file does: any line below would change the value. */
static void
an_open_block_text_at_the_end_is_left_to_the_person(void **state)
{
	static const char before[] = "repos:\n- path: /a\n  setup_command: |\n    a";
	struct kr_buf out = KR_BUF(KR_CONFIG_FILE_BYTES);
	struct kr_error err = { 0 };

	(void)state;
	assert_int_equal(kr_repos_edit_add("f", before, strlen(before), &places, "path: /b\n", &out, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	assert_int_equal(out.len, 0);
}

static void
an_addition_that_would_not_load_changes_nothing(void **state)
{
	static const char *const entries[] = {
		"path: /a\n",
		"path: relative\n",
		"path: /n\nsandbox: {kind: os}\n",
		"nothing: at all\n",
		"a: b: c\n",
		"",
	};
	static const char before[] = "repos:\n  - path: /a\n", broken[] = "repos:\n  - pth: /a\n";
	struct kr_buf out = KR_BUF(KR_CONFIG_FILE_BYTES), small = KR_BUF(10);
	struct kr_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(entries); i++) {
		assert_int_equal(kr_repos_edit_add("f", before, strlen(before), &places, entries[i], &out, &err), -1);
		assert_int_equal(out.len, 0);
	}
	assert_int_equal(kr_repos_edit_add("f", broken, strlen(broken), &places, "path: /b\n", &out, &err), -1);
	assert_string_equal(err.hint, "did you mean 'path'?");
	assert_int_equal(kr_repos_edit_add("f", before, strlen(before), &places, "path: /b\n", &small, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
}

static const struct edit_case removals[] = {
	{ "repos:\n  - path: /x\n", "repos: []\n" },
	{ "repos: # mine\n  # about x\n  - path: /x\n    # within x\n  # behind\n",
		"repos: [] # mine\n  # about x\n  # behind\n" },
	{ "\"repos\" :\n- path: /x\nworkspaces: {}\n", "\"repos\" : []\nworkspaces: {}\n" },
	{ "repos:\n  - path: /a\n  - path: /x\n", "repos:\n  - path: /a\n" },
	{ "repos:\n  - path: /x\n  - path: /a\n", "repos:\n  - path: /a\n" },
	{ "repos:\n  - path: /a\n\n  # about x\n  -\n    # within\n    path: /x\n    setup_command: |\n      # "
	  "text\n"
	  "    sandbox: {kind: os,\n     network: {runtime: {}}}   # walls\n\n  # about b\n  - path: /b # b\n# "
	  "end\n",
		"repos:\n  - path: /a\n\n  # about x\n\n  # about b\n  - path: /b # b\n# end\n" },
	{ "repos:\r\n  - path: /a\r\n  - path: /x\r\n    name: y", "repos:\r\n  - path: /a\r\n" },
	{ "repos: [{path: /x}]\n", "repos: []\n" },
	{ "repos: [{path: /x}, {path: /a}]\n", "repos: [{path: /a}]\n" },
	{ "repos: [{path: /a}, {path: /x}]\n", "repos: [{path: /a} ]\n" },
	{ "repos: [{path: /a}, {path: /x}, ] # c\n", "repos: [{path: /a},  ] # c\n" },
	{ "repos: [\n  {path: /a}, # a\n  {path: /x}, # x\n  # b\n  {path: /b}, # b\n]\n",
		"repos: [\n  {path: /a}, # a\n  # b\n  {path: /b}, # b\n]\n" },
	{ "repos: [\n  {path: /a}, # a\n  {path: /x} # x\n]\n", "repos: [\n  {path: /a} # a\n]\n" },
	{ "{repos: [{path: /x}], workspaces: {}}\n", "{repos: [], workspaces: {}}\n" },
};

static void
an_entry_is_removed_and_the_rest_stays(void **state)
{
	(void)state;
	for (size_t i = 0; i < KR_COUNT(removals); i++) {
		struct kr_buf out = KR_BUF(KR_CONFIG_FILE_BYTES);
		struct kr_error err = { 0 };
		const char *before = removals[i].before;

		if (kr_repos_edit_remove("f", before, strlen(before), &places, "/x", &out, &err) < 0)
			fail_msg("%s\nin:\n%s", err.message, before);
		assert_string_equal(out.data, removals[i].after);
		kr_buf_fini(&out);
		assert_int_equal(kr_repos_edit_remove("f", before, strlen(before), &places, "/y", &out, &err), -1);
		assert_int_equal(err.code, KR_E_NOT_FOUND);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_files_are_refused_with_their_place_CFG_11),
		cmocka_unit_test(good_files_are_read_whole_CFG_01_02),
		cmocka_unit_test(limits_are_reached_but_not_passed),
		cmocka_unit_test(every_key_of_the_table_is_found_once),
		cmocka_unit_test(the_nearest_entry_is_found),
		cmocka_unit_test(an_unreadable_file_is_not_an_empty_one_CFG_06),
		cmocka_unit_test(an_entry_is_added_at_the_mark),
		cmocka_unit_test(a_missing_final_line_break_stays_missing),
		cmocka_unit_test(an_open_block_text_at_the_end_is_left_to_the_person),
		cmocka_unit_test(an_addition_that_would_not_load_changes_nothing),
		cmocka_unit_test(an_entry_is_removed_and_the_rest_stays),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
