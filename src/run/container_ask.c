/*
 * What an image is asked before something is launched in it: whether it has a command (CTR-09).
 *
 * A short run of kraft's own, through the image's entry point, with the variables of a launch and without a
 * way out. What comes out is the image's and its entry point's word, which are the person's choice; only its
 * last line counts, since an entry point may print something first. Yes is kept, as long as image, entry
 * point, variables and command are the same ones; so what is asked costs a container once. Whatever else
 * comes (no shell, a time that ran out) refuses nothing: the launch then says what is wrong with it.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "run/container.h"
#include "run/internal.h"

enum { ANSWER_BYTES = 64 << 10, LIMIT_MS = 300000, KEPT = 256 };
enum { KEPT_BYTES = KEPT * (KR_SHA256_HEX + 1) };

#define YES "kraft: the command is there"
#define NO "kraft: the command is not there"
static const char *const script =
	"if command -v -- \"$1\" >/dev/null 2>&1; then echo '" YES "'; else echo '" NO "'; fi";

/* ---- what was asked ---- */

static void
add_text(struct kr_sha256 *sha, const char *text)
{
	kr_sha256_add(sha, text, strlen(text) + 1);
}

static void
add_variables(struct kr_sha256 *sha, const struct kr_env_literal *env, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add_text(sha, env[i].name);
		add_text(sha, env[i].value);
	}
	add_text(sha, "");
}

const char *
kr_run_container_identity(struct kr_run_state *run, const char *command, const struct kr_plan_agent *agent)
{
	const struct kr_image *image = &run->container.image;
	char *hex = kr_arena_alloc(run->arena, KR_SHA256_HEX + 1);
	struct kr_sha256 sha;

	kr_sha256_init(&sha);
	add_text(&sha, image->id);
	for (size_t i = 0; i < image->entrypoint.n; i++)
		add_text(&sha, image->entrypoint.v[i]);
	add_text(&sha, "");
	add_variables(&sha, run->repo->env, run->repo->env_count);
	if (agent)
		add_variables(&sha, agent->env, agent->env_count);
	add_text(&sha, command);
	kr_sha256_hex(&sha, hex);
	return hex;
}

/* ---- what is kept: a line for each yes, the newest last ---- */

static const char *
kept_file(struct kr_run_state *run)
{
	return kr_arena_printf(run->arena, "%s/cache/commands", run->host.places.run_dir);
}

static bool
is_known(struct kr_run_state *run, const char *identity)
{
	kr_auto_buf struct kr_buf lines = KR_BUF(KEPT_BYTES);

	return kr_file_read_at(AT_FDCWD, kept_file(run), &lines, NULL) == 0 && lines.data &&
		   strstr(lines.data, identity);
}

/* Without it the next launch asks again. */
static void
keep(struct kr_run_state *run, const char *identity)
{
	const char *path = kept_file(run);
	kr_auto_fd int dir = kr_path_make_dirs(kr_path_dirname(run->arena, path), NULL);
	kr_auto_buf struct kr_buf old = KR_BUF(KEPT_BYTES), lines = KR_BUF(KEPT_BYTES);
	size_t skip = 0;

	if (dir < 0)
		return;
	if (kr_file_read_at(dir, kr_path_basename(path), &old, NULL) < 0)
		old.len = 0;
	if (old.len + KR_SHA256_HEX + 1 > KEPT_BYTES)
		skip = KR_SHA256_HEX + 1;
	if (old.len > skip)
		kr_buf_add(&lines, old.data + skip, old.len - skip);
	kr_buf_addf(&lines, "%s\n", identity);
	(void)kr_file_write_at(dir, kr_path_basename(path), lines.data, lines.len, 0600, NULL);
}

/* ---- asking ---- */

static bool
ends_with_line(const struct kr_buf *answer, const char *line)
{
	size_t n = strlen(line) + 1;

	return answer->len >= n && memcmp(answer->data + answer->len - n, line, n - 1) == 0 &&
		   answer->data[answer->len - 1] == '\n' &&
		   (answer->len == n || answer->data[answer->len - n - 1] == '\n');
}

static int
refuse(const struct kr_run_state *run, const char *command, struct kr_error *err)
{
	kr_fail(err, KR_E_CONFIG, "the image '%s' has no '%s'", run->container.image.name, command);
	return kr_hint(
		err, "build it into the image, on its PATH; 'kraft explain' shows how the image is entered");
}

/* A path below the worktree is none of the image's. */
static bool
is_of_the_image(const struct kr_run_state *run, const char *command)
{
	return *command == '/' ? !kr_path_is_within(command, run->item.worktree) : !strchr(command, '/');
}

int
kr_run_container_ask(
	struct kr_run_state *run, const char *command, const struct kr_plan_agent *agent, struct kr_error *err)
{
	const char *const argv[] = { "/bin/sh", "-c", script, "sh", command, NULL };
	const struct kr_run_question question = {
		.argv = argv, .cwd = "/", .limit_ms = LIMIT_MS, .agent = agent
	};
	kr_auto_buf struct kr_buf answer = KR_BUF(ANSWER_BYTES);
	struct kr_error unasked = { 0 };
	const char *identity;
	struct kr_job job;

	if (!run->container.is_used || !is_of_the_image(run, command))
		return 0;
	identity = kr_run_container_identity(run, command, agent);
	if (is_known(run, identity))
		return 0;
	if (kr_run_ask_inside(run, "command", &question, &answer, &job, &unasked) < 0) {
		kr_run_say("whether the image has '%s' could not be asked: %s", command, unasked.message);
		return 0;
	}
	if (ends_with_line(&answer, NO))
		return refuse(run, command, err);
	if (ends_with_line(&answer, YES))
		keep(run, identity);
	return 0;
}
