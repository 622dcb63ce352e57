/*
 * kraft repo connect|list|disconnect|path: the entries of repos.yaml, seen and changed.
 *
 * connect and disconnect hold a lock beside the file, read it, patch it (config/edit.c) and rename the new
 * bytes over it. The lock only keeps two krafts apart: a person's editor is not asked, so the window between
 * reading and renaming is kept short. Where repos.yaml is a link, the file that it leads to is replaced and
 * the link stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/shapes.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/entry.h"
#include "run/where.h"
#include "config/config.h"
#include "config/detect.h"
#include "config/yaml.h"
#include "git/git.h"
#include "os/host.h"

/* ---- what all four begin with ---- */

struct context {
	struct kr_arena *arena;
	struct kr_host host;
	const struct kr_repos *repos;
	struct kr_error *err;
};

static void
print_warnings(const struct context *c)
{
	for (size_t i = 0; i < c->repos->warnings.n; i++)
		fprintf(stderr, "kraft: warning: %s\n", kr_shown(c->arena, c->repos->warnings.v[i]));
}

static int
load(struct context *c, struct kr_arena *arena, struct kr_error *err)
{
	*c = (struct context){ .arena = arena, .err = err };
	if (kr_host_gather(arena, &c->host, err) < 0)
		return -1;
	c->repos = kr_repos_load(arena, &c->host.places, err);
	return c->repos ? 0 : -1;
}

/* The top of the checkout that holds a path (or the current directory). */
static int
find_checkout(struct context *c, const char *word, struct kr_checkout *out)
{
	const char *path = kr_entry_resolve(c->arena, word ? word : ".");

	if (!path)
		return kr_fail(c->err, KR_E_LIMIT, "the path '%s' is too long", word ? word : ".");
	if (word && access(path, F_OK) < 0)
		return kr_fail_errno(c->err, KR_E_NOT_FOUND, errno, "cannot find '%s'", path);
	return kr_checkout_find(c->arena, path, out, c->err);
}

/* ---- writing repos.yaml ---- */

struct target {
	const char *path, *name; /* the file behind every link; its name in dir_fd */
	int dir_fd, lock_fd;
	unsigned mode;
	struct kr_buf bytes;
};

static void
target_fini(struct target *target)
{
	kr_close_p(&target->lock_fd);
	kr_close_p(&target->dir_fd);
	kr_buf_fini(&target->bytes);
}

static int
take_lock(const struct kr_places *places, struct kr_arena *arena, int *out, struct kr_error *err)
{
	const char *path = kr_path_join(arena, places->config_dir, "repos.lock");
	kr_auto_fd int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path ? path : "repos.lock");
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot lock '%s'", path);
	*out = kr_steal_fd(fd);
	return 0;
}

/* Takes the lock and reads the file; a missing one has no bytes. */
static int
open_target(const struct kr_host *host, struct kr_arena *arena, struct target *out, struct kr_error *err)
{
	const char *path = kr_path_join(arena, host->places.config_dir, "repos.yaml");
	struct stat st;

	*out =
		(struct target){ .dir_fd = -1, .lock_fd = -1, .mode = 0600, .bytes = KR_BUF(KR_CONFIG_FILE_BYTES) };
	if (kr_host_prepare_dirs(host, err) < 0 || take_lock(&host->places, arena, &out->lock_fd, err) < 0)
		return -1;
	if (lstat(path, &st) == 0)
		path = kr_entry_resolve(arena, path);
	out->path = path;
	out->name = kr_path_basename(path);
	out->dir_fd = open(kr_path_dirname(arena, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dir_fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open the directory of '%s'", path);
	if (fstatat(out->dir_fd, out->name, &st, 0) < 0)
		return errno == ENOENT ? 0 : kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	out->mode = st.st_mode & 0777;
	return kr_file_read_at(out->dir_fd, out->name, &out->bytes, err);
}

static const char *
bytes_of(const struct target *target)
{
	return target->bytes.data ? target->bytes.data : "";
}

static int
replace(const struct target *target, const struct kr_buf *new, struct kr_error *err)
{
	return kr_file_write_at(
		target->dir_fd, target->name, new->data ? new->data : "", new->len, target->mode, err);
}

/* ---- connect ---- */

enum { CONNECT_SETUP, CONNECT_TEST, CONNECT_IMAGE, CONNECT_DRY_RUN };
static const struct kr_option connect_options[] = {
	[CONNECT_SETUP] = { "setup", 0, "CMD", "the setup command, in place of what is found; '' for none" },
	[CONNECT_TEST] = { "test", 0, "CMD", "the test command, in place of what is found; '' for none" },
	[CONNECT_IMAGE] = { "image", 0, "IMAGE", "workers run in containers of this image, by docker or podman" },
	[CONNECT_DRY_RUN] = { "dry-run", 'n', NULL, "show the entry, write nothing" },
	{ 0 },
};

static void
add_line(struct kr_buf *buf, const char *key, const char *value)
{
	if (!value)
		return;
	kr_buf_addf(buf, "%s: ", key);
	kr_yaml_add_string(buf, value);
	kr_buf_adds(buf, "\n");
}

static void
add_hosts(struct kr_buf *buf, const struct kr_strs *hosts)
{
	for (size_t i = 0; i < hosts->n; i++) {
		kr_buf_adds(buf, i ? ", " : "");
		kr_yaml_add_string(buf, hosts->v[i]);
	}
}

/* The walls are written out, so that a person sees what to change: hosts that the setup needs, none at run
 * time. */
static const char *
entry_text(struct kr_arena *arena, const char *root, const struct kr_detected *detected, const char *image)
{
	struct kr_buf buf = KR_BUF(64 << 10);
	const char *text;

	add_line(&buf, "path", root);
	add_line(&buf, "setup_command", detected->setup_command);
	add_line(&buf, "test_command", detected->test_command);
	kr_buf_addf(&buf, "sandbox:\n  kind: %s\n", image ? "docker" : "os");
	if (image)
		kr_buf_adds(&buf, "  ");
	add_line(&buf, "image", image);
	kr_buf_adds(&buf, "  network:\n    install: {allow: [");
	add_hosts(&buf, &detected->install_hosts);
	kr_buf_adds(&buf, "]}\n    runtime: {allow: []}\n");
	text = buf.overflow ? NULL : kr_arena_dup(arena, buf.data);
	kr_buf_fini(&buf);
	return text;
}

static void
print_entry(struct kr_arena *arena, const char *entry)
{
	const char *lead = "  - ";

	for (const char *line = entry; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		printf("%s%s\n", lead, kr_shown(arena, kr_arena_dup_n(arena, line, strcspn(line, "\n"))));
		lead = "    ";
	}
}

static void
print_list(struct kr_arena *arena, const char *label, const struct kr_strs *list)
{
	for (size_t i = 0; i < list->n; i++)
		printf("%s%s", i ? ", " : label, kr_shown(arena, list->v[i]));
	if (list->n)
		printf("\n");
}

static void
print_proposal(struct kr_arena *arena, const struct kr_detected *detected)
{
	print_list(arena, "found: ", &detected->found);
	print_list(arena, "other test commands: ", &detected->other_tests);
	if (!detected->found.n)
		printf("found no build files that kraft knows\n");
	if (!detected->setup_command)
		printf(
			"no setup command: write setup_command in the entry, or \"\" when there is nothing to set up\n");
	if (!detected->test_command)
		printf("no test command: write test_command in the entry, or \"\" when there are no tests\n");
}

static void
print_next(struct kr_arena *arena, const struct kr_detected *detected, const char *image)
{
	const char *test = detected->test_command;

	if (image)
		printf("the image has to hold sh, git, CA certificates and the programs of the agents; 'kraft admin doctor' looks at the runtime\n");
	printf("next: kraft run -- %s\n", test && *test ? kr_shown(arena, test) : "COMMAND");
}

static int
check_connectable(struct context *c, const char *root)
{
	const struct kr_places *places = &c->host.places;

	if (!kr_text_is_utf8(root, strlen(root)))
		return kr_fail(c->err, KR_E_USAGE, "the path '%s' is not UTF-8, so repos.yaml cannot hold it", root);
	if (kr_path_is_within(root, places->kraft_home) || kr_path_is_within(root, places->run_dir)) {
		kr_fail(c->err, KR_E_USAGE, "'%s' is inside kraft's own directory", root);
		return kr_hint(c->err, "connect the checkout that it was made from");
	}
	return kr_where_check_apart(places, root, c->err);
}

static int
print_connected_already(struct context *c, const struct kr_repo *repo)
{
	printf("'%s' is already connected (%s:%u); nothing was changed\n", kr_shown(c->arena, repo->path),
		kr_shown(c->arena, c->repos->file), repo->mark.line);
	return 0;
}

/* Under the lock: the file may have got the entry since it was loaded; then the patch is refused as a
 * duplicate. */
static int
write_entry(struct context *c, const char *entry)
{
	KR_CLEANUP(target_fini) struct target target = { .dir_fd = -1, .lock_fd = -1 };
	kr_auto_buf struct kr_buf new = KR_BUF(KR_CONFIG_FILE_BYTES);

	if (open_target(&c->host, c->arena, &target, c->err) < 0)
		return -1;
	if (kr_repos_edit_add(
			target.path, bytes_of(&target), target.bytes.len, &c->host.places, entry, &new, c->err) < 0)
		return -1;
	return replace(&target, &new, c->err);
}

static int
dry_run_entry(struct context *c, const char *entry)
{
	kr_auto_buf struct kr_buf old = KR_BUF(KR_CONFIG_FILE_BYTES), new = KR_BUF(KR_CONFIG_FILE_BYTES);

	if (kr_file_read_at(AT_FDCWD, c->repos->file, &old, c->err) < 0) {
		if (c->err->sys_errno != ENOENT)
			return -1;
		*c->err = (struct kr_error){ 0 };
	}
	return kr_repos_edit_add(
		c->repos->file, old.data ? old.data : "", old.len, &c->host.places, entry, &new, c->err);
}

static int
connect_run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	bool dry = parsed->value[CONNECT_DRY_RUN];
	struct context c;
	struct kr_checkout checkout;
	struct kr_detected detected;
	const struct kr_repo *old;
	const char *entry;

	if (load(&c, arena, err) < 0 ||
		find_checkout(&c, parsed->word_count ? parsed->words[0] : NULL, &checkout) < 0)
		return 1;
	print_warnings(&c);
	old = kr_entry_of(arena, c.repos, checkout.root);
	if (old)
		return print_connected_already(&c, old);
	if (check_connectable(&c, checkout.root) < 0)
		return 1;
	kr_detect(arena, c.host.fs, checkout.root, &detected);
	if (parsed->value[CONNECT_SETUP])
		detected.setup_command = parsed->value[CONNECT_SETUP];
	if (parsed->value[CONNECT_TEST])
		detected.test_command = parsed->value[CONNECT_TEST];
	entry = entry_text(arena, checkout.root, &detected, parsed->value[CONNECT_IMAGE]);
	if (!entry)
		return kr_fail(err, KR_E_LIMIT, "the commands are too long for an entry");
	if ((dry ? dry_run_entry(&c, entry) : write_entry(&c, entry)) < 0)
		return 1;
	printf("%s '%s' in %s:\n", dry ? "would connect" : "connected", kr_shown(arena, checkout.root),
		kr_shown(arena, c.repos->file));
	print_entry(arena, entry);
	print_proposal(arena, &detected);
	if (!dry)
		print_next(arena, &detected, parsed->value[CONNECT_IMAGE]);
	return 0;
}

const struct kr_command kr_cmd_repo_connect = {
	.name = "repo connect",
	.usage = "[OPTIONS] [PATH]",
	.summary = "connect a checkout: write its entry in repos.yaml",
	.help = "Writes an entry for the checkout that holds PATH (the current directory) to repos.yaml, with "
			"the setup and\n"
			"test commands that its files suggest and the walls around its workers: kind os, the hosts that "
			"the setup\n"
			"needs, and no host at run time; with --image kind docker. Comments and layout of the file stay as they are. A checkout "
			"that is\n"
			"connected already is left alone.\n",
	.options = connect_options,
	.words_max = 1,
	.run = connect_run,
};

/* ---- list ---- */

enum { LIST_JSON };
static const struct kr_option list_options[] = {
	[LIST_JSON] = { "json", 0, NULL, "print one JSON object" },
	{ 0 },
};

/* "os", "docker debian:12" */
static const char *
sandbox_words(struct kr_arena *arena, const struct kr_repo *repo)
{
	const struct kr_sandbox *sandbox = &repo->sandbox;
	const char *image = sandbox->kit ? sandbox->kit : sandbox->image;

	if (sandbox->kind == KR_SANDBOX_NONE)
		return "-";
	return image ? kr_arena_printf(arena, "%s %s", kr_sandbox_kind_name(sandbox->kind), kr_shown(arena, image))
				 : kr_sandbox_kind_name(sandbox->kind);
}

static const char *
command_words(struct kr_arena *arena, const char *command)
{
	return !command ? "(undeclared)" : *command ? kr_shown(arena, command) : "(none)";
}

static void
print_table(struct context *c)
{
	int width[3] = { 4, 7, 4 };

	for (size_t i = 0; i < c->repos->repo_count; i++) {
		const struct kr_repo *repo = &c->repos->repo[i];
		const char *cell[3] = { kr_shown(c->arena, repo->name), sandbox_words(c->arena, repo),
			command_words(c->arena, repo->test_command) };

		for (int k = 0; k < 3; k++)
			if ((int)strlen(cell[k]) > width[k] && strlen(cell[k]) <= 40)
				width[k] = (int)strlen(cell[k]);
	}
	printf("%-*s  %-*s  %-*s  PATH\n", width[0], "NAME", width[1], "SANDBOX", width[2], "TEST");
	for (size_t i = 0; i < c->repos->repo_count; i++) {
		const struct kr_repo *repo = &c->repos->repo[i];

		printf("%-*s  %-*s  %-*s  %s%s\n", width[0], kr_shown(c->arena, repo->name), width[1],
			sandbox_words(c->arena, repo), width[2], command_words(c->arena, repo->test_command),
			kr_shown(c->arena, repo->path), access(repo->path, F_OK) == 0 ? "" : " (missing)");
	}
}

static int
list_run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct context c;

	if (load(&c, arena, err) < 0)
		return 1;
	if (parsed->value[LIST_JSON])
		return kr_print_json(kr_repos_json(c.repos), err);
	print_warnings(&c);
	if (c.repos->repo_count)
		print_table(&c);
	else
		printf("no repository is connected; 'kraft repo connect PATH' connects one\n");
	return 0;
}

const struct kr_command kr_cmd_repo_list = {
	.name = "repo list",
	.usage = "[--json]",
	.summary = "list the connected repositories",
	.help = "",
	.options = list_options,
	.run = list_run,
};

/* ---- disconnect ---- */

static const struct kr_option no_options[] = { { 0 } };

static int
remove_entry(struct context *c, const char *path)
{
	KR_CLEANUP(target_fini) struct target target = { .dir_fd = -1, .lock_fd = -1 };
	kr_auto_buf struct kr_buf new = KR_BUF(KR_CONFIG_FILE_BYTES);

	if (open_target(&c->host, c->arena, &target, c->err) < 0)
		return -1;
	if (kr_repos_edit_remove(
			target.path, bytes_of(&target), target.bytes.len, &c->host.places, path, &new, c->err) < 0)
		return -1;
	return replace(&target, &new, c->err);
}

static int
disconnect_run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct context c;
	const struct kr_repo *repo;

	if (load(&c, arena, err) < 0)
		return 1;
	print_warnings(&c);
	repo = kr_entry_find(arena, c.repos, parsed->word_count ? parsed->words[0] : NULL, err);
	if (!repo || remove_entry(&c, repo->path) < 0)
		return 1;
	printf("disconnected '%s': its entry is gone from %s; the checkout is untouched\n",
		kr_shown(arena, repo->path), kr_shown(arena, c.repos->file));
	printf("the worktrees that its runs made stay in '%s/worktrees'\n", kr_shown(arena, c.host.places.run_dir));
	return 0;
}

const struct kr_command kr_cmd_repo_disconnect = {
	.name = "repo disconnect",
	.usage = "[NAME|PATH]",
	.summary = "take a repository's entry out of repos.yaml",
	.help = "Takes the entry of the repository that NAME or PATH (the current directory) means out of "
			"repos.yaml. The\n"
			"checkout is not touched, and may be gone.\n",
	.options = no_options,
	.words_max = 1,
	.run = disconnect_run,
};

/* ---- path ---- */

enum { PATH_JSON };
static const struct kr_option path_options[] = {
	[PATH_JSON] = { "json", 0, NULL, "its entry as one object, for programs" },
	{ NULL },
};

static int
path_run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct context c;
	const struct kr_repo *repo;

	if (load(&c, arena, err) < 0)
		return 1;
	repo = kr_entry_find(arena, c.repos, parsed->word_count ? parsed->words[0] : NULL, err);
	if (!repo)
		return 1;
	if (parsed->value[PATH_JSON])
		return kr_print_json(kr_repo_json(repo), err);
	printf("%s\n", repo->path); /* as it is: scripts read it */
	return 0;
}

const struct kr_command kr_cmd_repo_path = {
	.name = "repo path",
	.usage = "[--json] [NAME|PATH]",
	.summary = "print the checkout of a connected repository",
	.help = "",
	.options = path_options,
	.words_max = 1,
	.run = path_run,
};
