/*
 * What is known of an agent's program, so that a launch asks it nothing that it was asked before.
 *
 * The program is the file that the launch's own lookup finds, by path, device, inode, size and times: an
 * update is another file; in a container, the name in this image. It is asked inside the walls that it will run in, without a way out, with a home
 * that is thrown away, and away from the worktree, so nothing that a worker left can answer for it. The cache
 * is ours alone (run_dir is 0700, and never shown); a damaged one is only a reason to ask again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/sha256.h"
#include "base/text.h"
#include "run/agent.h"
#include "run/internal.h"

enum { ANSWER_BYTES = 64 << 10, CACHE_BYTES = 64 << 10, LIMIT_MS = 60000, SHOWN = 80 };

struct known {
	const char *file;    /* where it is kept */
	const char *program; /* which one it is known of */
	const char *version; /* NULL: not known */
	const char *hook;    /* what was proven of it, by whom; NULL: nothing was */
	struct kr_gate gate; /* with hook */
};

/* ---- which program ---- */

static long long
ns(struct timespec at)
{
	return (long long)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* The words that ask it are a part: a harness that asks another way is not answered from the cache. */
static const char *
with_words(struct kr_arena *arena, const char *text, const struct kr_strs *words)
{
	for (size_t i = 0; i < words->n; i++)
		text = kr_arena_printf(arena, "%s %s", text, words->v[i]);
	return text;
}

static const char *
identity(struct kr_arena *arena, const char *path, const struct kr_strs *words, struct kr_error *err)
{
	char real[KR_PATH_MAX];
	const char *text;
	struct stat st;

	if (!realpath(path, real) || stat(real, &st) < 0) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
		return NULL;
	}
	text = kr_arena_printf(arena, "%llu %llu %lld %lld %lld %s", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino, (long long)st.st_size, ns(kr_mtime(&st)), ns(kr_ctime(&st)), real);
	return with_words(arena, text, words);
}

static const char *
cache_file(struct kr_arena *arena, const struct kr_host *host, const struct kr_harness *harness, const char *in_image)
{
	return kr_arena_printf(arena, "%s/cache/agents/%s%s.json", host->places.run_dir, harness->id, in_image);
}

/* In a container it is what its image makes of the name, and what is known has a file for each. */
static int
find_program(struct kr_run_state *run, const struct kr_run_launch *launch, const struct kr_request *request,
	struct known *known, struct kr_error *err)
{
	const struct kr_harness *harness = launch->agent->harness;
	const char *path, *in_image = "";

	if (run->container.is_used) {
		const char *hex = kr_run_container_identity(run, launch->launch.argv.v[0], &launch->plan);

		in_image = kr_arena_printf(run->arena, "-%.16s", hex);
		known->program = with_words(run->arena, kr_arena_printf(run->arena, "image %s", hex), &harness->version);
	} else if (kr_plan_find(run->arena, &run->host, request, &path, err) < 0 ||
			   !(known->program = identity(run->arena, path, &harness->version, err)))
		return -1;
	known->file = cache_file(run->arena, &run->host, harness, in_image);
	return 0;
}

/* ---- the cache ---- */

static const char *
text_of(struct kr_arena *arena, const json_t *root, const char *key)
{
	const char *text = json_string_value(json_object_get(root, key));

	return text ? kr_arena_dup(arena, text) : NULL;
}

/* They become a part of a word, between double quotes (gate.h). */
static bool
is_quotable(const char *text, size_t size)
{
	if (!text || !*text || strlen(text) >= size)
		return false;
	for (; *text; text++)
		if (*text < ' ' || *text == '"' || *text == '\\' || *text == 0x7f)
			return false;
	return true;
}

/* Of another program nothing is taken over. */
static void
read_cache(struct kr_arena *arena, struct known *known)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(CACHE_BYTES);
	const char *program, *version, *hook, *key, *hash;
	json_t *root;

	if (kr_file_read_at(AT_FDCWD, known->file, &bytes, NULL) < 0 || !bytes.len)
		return;
	root = json_loadb(bytes.data, bytes.len, JSON_REJECT_DUPLICATES, NULL);
	program = text_of(arena, root, "program");
	version = text_of(arena, root, "version");
	hook = text_of(arena, root, "hook");
	key = text_of(arena, root, "key");
	hash = text_of(arena, root, "hash");
	json_decref(root);
	if (!program || strcmp(program, known->program) != 0)
		return;
	/* As it was written: one dotted number. */
	if (version && kr_agent_version(arena, version, strlen(version)) &&
		!version[strspn(version, "0123456789.")])
		known->version = version;
	if (hook && is_quotable(key, sizeof(known->gate.key)) && is_quotable(hash, sizeof(known->gate.hash))) {
		known->hook = hook;
		snprintf(known->gate.key, sizeof(known->gate.key), "%s", key);
		snprintf(known->gate.hash, sizeof(known->gate.hash), "%s", hash);
	}
}

/* Without it the next launch asks again. */
static void
write_cache(struct kr_run_state *run, const struct known *known)
{
	kr_auto_fd int fd = kr_path_make_dirs(kr_path_dirname(run->arena, known->file), NULL);
	json_t *root = json_pack(
		"{s:s, s:s*, s:s*}", "program", known->program, "version", known->version, "hook", known->hook);
	kr_auto_free char *text = NULL;

	if (root && known->hook) {
		json_object_set_new(root, "key", json_string(known->gate.key));
		json_object_set_new(root, "hash", json_string(known->gate.hash));
	}
	text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	if (fd >= 0 && text)
		(void)kr_file_write_at(fd, kr_path_basename(known->file), text, strlen(text), 0600, NULL);
	json_decref(root);
}

/* ---- its version ---- */

/* "claude --version" */
static const char *
words_of(struct kr_arena *arena, const char *const *argv)
{
	const char *text = argv[0];

	for (size_t i = 1; argv[i]; i++)
		text = kr_arena_printf(arena, "%s %s", text, argv[i]);
	return text;
}

static int
refuse(const struct kr_job *job, const char *harness, struct kr_error *err)
{
	return kr_hint(err,
		"'kraft view logs %s' has what it said, 'kraft explain --harness %s' what it would see",
		job->paths.id, harness);
}

static int
read_version(struct kr_run_state *run, const struct kr_harness *harness, const struct kr_job *job,
	const struct kr_buf *answer, const char **version, struct kr_error *err)
{
	const char *asked = words_of(run->arena, job->argv);
	const int status = kr_session_exit_status(&job->end);
	char shown[4 * SHOWN + 1];

	if (job->end.is_over_time)
		kr_fail(err, KR_E_REFUSED, "'%s' did not end within %d s", asked, LIMIT_MS / 1000);
	else if (status != 0)
		kr_fail(err, KR_E_REFUSED, "'%s' ended with %d, so its version is not known", asked, status);
	else if ((*version = kr_agent_version(run->arena, answer->data ? answer->data : "", answer->len)) != NULL)
		return 0;
	else {
		(void)kr_text_escape(shown, sizeof(shown), answer->data ? answer->data : "",
			answer->len < SHOWN ? answer->len : SHOWN);
		kr_fail(err, KR_E_REFUSED, "'%s' told no version, but '%s'", asked, shown);
	}
	for (size_t i = 0; job->plan && i < job->plan->notes.n; i++)
		kr_run_say("%s", job->plan->notes.v[i]);
	return refuse(job, harness->id, err);
}

static int
ask_version(
	struct kr_run_state *run, const struct kr_run_launch *launch, const char **version, struct kr_error *err)
{
	const struct kr_harness *harness = launch->agent->harness;
	kr_auto_buf struct kr_buf answer = KR_BUF(ANSWER_BYTES);
	struct kr_run_question question = { .cwd = "/", .limit_ms = LIMIT_MS, .agent = &launch->plan };
	struct kr_strs argv = { 0 };
	struct kr_job job;

	kr_strs_add(run->arena, &argv, launch->launch.argv.v[0]);
	for (size_t i = 0; i < harness->version.n; i++)
		kr_strs_add(run->arena, &argv, harness->version.v[i]);
	question.argv = argv.v;
	if (kr_run_ask_inside(run, "version", &question, &answer, &job, err) < 0)
		return kr_wrap(err, "asking '%s' its version", harness->id);
	return read_version(run, harness, &job, &answer, version, err);
}

static int
check_version(const struct kr_harness *harness, const struct known *known, struct kr_error *err)
{
	if (kr_agent_version_compare(known->version, harness->min_version) >= 0)
		return 0;
	kr_fail(err, KR_E_AGENT_OLD, "'%s' is version %s, and its harness needs %s or newer", harness->id,
		known->version, harness->min_version);
	return kr_hint(err, "update it, or name another program as its 'executable' in harnesses.yaml");
}

static int
know_version(
	struct kr_run_state *run, const struct kr_run_launch *launch, struct known *known, struct kr_error *err)
{
	const struct kr_harness *harness = launch->agent->harness;

	if (!harness->min_version)
		return 0;
	if (!known->version) {
		if (ask_version(run, launch, &known->version, err) < 0)
			return -1;
		write_cache(run, known);
	}
	return check_version(harness, known, err);
}

/* ---- its hook ---- */

/* Where nothing inside reaches kraft there is no hook either (CHN-11). */
static bool
has_trusted_hook(const struct kr_run_launch *launch)
{
	const struct kr_cap *hook = kr_harness_cap(launch->agent->harness, KR_CAP_PERMISSION_HOOK);

	return hook && hook->trust.n && kr_policy_has_channel(launch->want.policy);
}

/* What stands there now, or that nothing does. */
static void
add_file(struct kr_sha256 *sha, struct kr_arena *arena, const char *path)
{
	struct stat st;
	const char *text = stat(path, &st) < 0 ? "none"
										   : kr_arena_printf(arena, "%llu %llu %lld %lld %lld",
												 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
												 (long long)st.st_size, ns(kr_mtime(&st)), ns(kr_ctime(&st)));

	kr_sha256_add(sha, text, strlen(text) + 1);
}

/*
 * A proof holds for the words of this harness, for what the hook runs, for the kraft that answers it inside,
 * and for what the host says of the program for all of its users: with that Codex can pass over every hook
 * that is not the host's own. In a container that is in the image, which is a part of what the program is.
 */
static const char *
proven_of(struct kr_run_state *run, const struct kr_harness *harness, struct kr_error *err)
{
	static const struct kr_strs no_words;
	const char *kraft =
		identity(run->arena, kr_path_join(run->arena, run->host.guest_dir, "bin/kraft"), &no_words, err);
	static const char *const of_the_host[] = { "/etc/codex", "/etc/codex/requirements.toml",
		"/etc/codex/managed_config.toml", "/etc/codex/config.toml", "/etc/codex/hooks.json" };
	char *hex = kr_arena_alloc(run->arena, KR_SHA256_HEX + 1);
	struct kr_sha256 sha;

	if (!kraft)
		return NULL;
	kr_sha256_init(&sha);
	for (size_t i = 0; i < KR_COUNT(of_the_host) && !run->container.is_used; i++)
		add_file(&sha, run->arena, of_the_host[i]);
	kr_sha256_add(&sha, kraft, strlen(kraft) + 1);
	kr_sha256_add(&sha, KR_AGENT_HOOK_COMMAND, sizeof(KR_AGENT_HOOK_COMMAND));
	kr_sha256_add(&sha, harness->text, harness->text_len);
	kr_sha256_hex(&sha, hex);
	return hex;
}

/* CHN-08: without a proof the launch is refused, never weaker. */
static int
know_hook(
	struct kr_run_state *run, const struct kr_run_launch *launch, struct known *known, struct kr_error *err)
{
	const struct kr_harness *harness = launch->agent->harness;
	const char *hook;

	if (!has_trusted_hook(launch)) {
		known->gate = (struct kr_gate){ 0 };
		return 0;
	}
	if (kr_run_is_macos(run)) {
		kr_fail(err, KR_E_UNSUPPORTED, "whether '%s' heeds its hook cannot be asked on macOS yet: kraft's own question listens on a port inside, "
			"which nothing may there", harness->id);
		return kr_hint(err, "use a harness whose gate needs no hook (claude), or kind: docker");
	}
	hook = proven_of(run, harness, err);
	if (!hook)
		return -1;
	if (known->hook && strcmp(known->hook, hook) == 0)
		return 0;
	kr_run_say("asking '%s' whether it heeds kraft's hook (once, until its program changes)", harness->id);
	if (kr_gate_prove(run, &launch->want, &known->gate, err) < 0)
		return -1;
	known->hook = hook;
	write_cache(run, known);
	return 0;
}

int
kr_run_agent_know(struct kr_run_state *run, const struct kr_run_launch *launch,
	const struct kr_request *request, struct kr_gate *gate, struct kr_error *err)
{
	const struct kr_harness *harness = launch->agent->harness;
	struct known known = { 0 };

	if (kr_run_container_ask(run, launch->launch.argv.v[0], &launch->plan, err) < 0)
		return -1;
	if (!harness->min_version && !has_trusted_hook(launch))
		return 0;
	if (find_program(run, launch, request, &known, err) < 0)
		return -1;
	read_cache(run->arena, &known);
	if (know_version(run, launch, &known, err) < 0 || know_hook(run, launch, &known, err) < 0)
		return -1;
	*gate = known.gate;
	return 0;
}

void
kr_run_agent_recall(struct kr_arena *arena, const struct kr_host *host, const struct kr_harness *harness, const char *program, struct kr_run_agent_recalled *out)
{
	struct known known = { .file = cache_file(arena, host, harness, ""), .program = identity(arena, program, &harness->version, NULL) };

	*out = (struct kr_run_agent_recalled){ NULL };
	if (!known.program)
		return;
	read_cache(arena, &known);
	*out = (struct kr_run_agent_recalled){ known.version, known.hook != NULL };
}
