/*
 * An agent in place of a command; see agent.h.
 *
 * Trusts the harness's file and the policy, which are the person's. Of what earlier sessions of the item
 * left, only the id of a conversation is used, as one word of a few letters.
 */
#include "run/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "os/sys.h"
#include "run/internal.h"
#include "session/agent.h"

/* What the kernel takes as one word of a command line (MAX_ARG_STRLEN), with its end. */
enum { WORD_BYTES = 128 << 10 };
enum { LOOK_BACK = 32 }; /* sessions that are read for a conversation */

/* ---- from harness and policy to a launch ---- */

static int
check_words(const struct kr_run_launch *launch, struct kr_error *err)
{
	const struct kr_strs *argv = &launch->launch.argv;

	for (size_t i = 0; i < argv->n; i++)
		if (strlen(argv->v[i]) >= WORD_BYTES)
			return kr_fail(err, KR_E_LIMIT,
				"'%s' takes its instruction as a word of its command line, and %zu bytes are more than a "
				"word may have",
				launch->agent->harness->id, strlen(argv->v[i]));
	return 0;
}

/* They lie beside the channel's socket. */
static int
check_files(const struct kr_run_launch *launch, struct kr_error *err)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	for (size_t i = 0; i < launch->launch.file_count; i++) {
		const char *name = launch->launch.files[i].name;

		if (!*name || *name == '.' || name[strspn(name, good)] || strlen(name) > 64 ||
			strcmp(name, KG_CHANNEL_SOCKET) == 0)
			return kr_fail(err, KR_E_CONFIG, "'%s' of '%s' cannot be the name of a file of its settings",
				name, launch->agent->harness->id);
	}
	return 0;
}

/* In the session's folder, which no worker ever wrote to; what is kept lies in the item's home. */
static const char *
context_of(struct kr_arena *arena, const struct kr_run_agent *agent, const struct kr_run_at *at)
{
	if (!agent->context)
		return "";
	return at->result ? kr_arena_printf(arena, "%s\nThe file for your result is %s ($KRAFT_RESULT_PATH).\n", agent->context, at->result)
					  : agent->context;
}

static const char own_directory[] = "agent", kept_directory[] = ".kraft-agents";

static void
plan_own_directory(struct kr_arena *arena, const struct kr_run_at *at, struct kr_run_launch *launch)
{
	const struct kr_harness *harness = launch->agent->harness;

	if (!harness->config_env)
		return;
	launch->kept = kr_arena_alloc(arena, (harness->config_keep.n + 1) * sizeof(*launch->kept));
	for (size_t i = 0; i < harness->config_keep.n; i++)
		launch->kept[i].path = kr_arena_printf(
			arena, "%s/%s/%s/%s", at->home, kept_directory, harness->id, harness->config_keep.v[i]);
	launch->plan.config_env = harness->config_env;
	launch->plan.config_dir =
		kr_arena_printf(arena, "%s/sessions/%s/%s", at->host->places.run_dir, at->session, own_directory);
	launch->plan.kept = launch->kept;
	launch->plan.kept_count = harness->config_keep.n;
}

int
kr_run_launch_make(struct kr_arena *arena, const struct kr_run_agent *agent, const struct kr_policy *policy,
	const struct kr_run_at *at, const struct kr_gate *gate, struct kr_run_launch *out, struct kr_error *err)
{
	struct kr_run_launch launch = {
		.agent = agent,
		.want = { .harness = agent->harness,
			.model = agent->model,
			.effort = agent->effort,
			.permission_mode = agent->permission_mode,
			.policy = policy,
			.context = context_of(arena, agent, at),
			.prompt = agent->prompt,
			.resume = agent->resume,
			.settings_dir = kr_session_channel_dir(arena, at->host, at->session),
			.hook_key = gate ? gate->key : NULL,
			.hook_hash = gate ? gate->hash : NULL },
		.input_fd = -1,
		.render_fd = -1,
	};

	if (kr_agent_launch(arena, &launch.want, &launch.launch, err) < 0 || check_words(&launch, err) < 0 ||
		check_files(&launch, err) < 0)
		return -1;
	for (size_t i = 0; i < launch.launch.file_count; i++)
		kr_strs_add(arena, &launch.files, launch.launch.files[i].name);
	*out = launch;
	out->plan = (struct kr_plan_agent){ .id = agent->harness->id,
		.hosts = &agent->harness->hosts,
		.env = launch.launch.env,
		.env_count = launch.launch.env_count,
		.credentials = agent->harness->credentials,
		.credential_count = agent->harness->credential_count,
		.files = &out->files };
	plan_own_directory(arena, at, out);
	return 0;
}

/* ---- its login ---- */

static bool
is_there(const struct kr_plan_env *env, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(env[i].name, name) == 0)
			return env[i].value && *env[i].value;
	return false;
}

/* "A", "A or B", "A, B or C" */
static const char *
one_of(struct kr_arena *arena, const struct kr_strs *names)
{
	const char *text = names->n ? names->v[0] : "";

	for (size_t i = 1; i < names->n; i++)
		text = kr_arena_printf(arena, "%s%s%s", text, i + 1 == names->n ? " or " : ", ", names->v[i]);
	return text;
}

/* A service manager gives each of its services an id; a person's shell may have inherited one, and has a
 * terminal. */
static bool
is_service(const struct kr_host *host)
{
	return kr_host_env(host, "INVOCATION_ID") && !isatty(STDIN_FILENO) && !isatty(STDERR_FILENO);
}

static int
hint_login(struct kr_arena *arena, const struct kr_host *host, const struct kr_repo *repo,
	const struct kr_strs *names, struct kr_error *err)
{
	struct kr_strs others = { 0 };

	for (size_t i = 0; i < names->n; i++) {
		const char *here = kr_host_env(host, names->v[i]);

		if (kr_plan_crosses(repo, names->v[i]))
			continue;
		if (here && *here)
			return kr_hint(err,
				"%s is set here but does not cross: add it to env_passthrough of '%s' in '%s/repos.yaml'",
				names->v[i], repo->name, host->places.config_dir);
		kr_strs_add(arena, &others, names->v[i]);
	}
	return kr_hint(err, "a login in your home directory or keychain does not reach the sandbox; %s %s%s%s%s",
		is_service(host)
			? "kraft runs as a service here and has only its unit's variables: put it there with "
			  "'systemctl --user edit UNIT' ([Service], then Environment=NAME=VALUE) and restart it:"
			: "export",
		one_of(arena, names), others.n ? ", and list " : "", others.n ? one_of(arena, &others) : "",
		others.n ? " under env_passthrough in repos.yaml" : "");
}

int
kr_run_launch_login(struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request,
	const struct kr_harness *harness, struct kr_error *err)
{
	size_t count;
	struct kr_request shown = *request;
	const struct kr_plan_env *env;

	if (kr_plan_secrets(arena, request, NULL, &shown.secrets, err) < 0)
		return -1;
	env = kr_plan_environment(arena, host, &shown, &count);
	for (size_t i = 0; i < harness->login.n; i++)
		if (is_there(env, count, harness->login.v[i]))
			return 0;
	if (!harness->login.n)
		return 0;
	kr_fail(err, KR_E_NO_LOGIN, "'%s' has no login in the sandbox: %s is not set", harness->id,
		one_of(arena, &harness->login));
	return hint_login(arena, host, request->repo, &harness->login, err);
}

/* ---- a conversation that goes on ---- */

/* The newest that an agent of this harness named in a session of the item; NULL: none. */
static const char *
last_conversation(struct kr_run_state *run, const struct kr_harness *harness, struct kr_error *err)
{
	struct kr_session_list list;

	if (kr_session_list(run->arena, run->host.places.run_dir, run->item.id, &list, err) < 0)
		return NULL;
	for (size_t i = 0, looked = 0; i < list.n && looked < LOOK_BACK; i++) {
		const struct kr_session_facts *facts = &list.v[i].facts;
		struct kr_agent_seen *seen = kr_arena_new(run->arena, struct kr_agent_seen);

		if (strcmp(facts->harness, harness->id) != 0)
			continue;
		looked++;
		if (kr_agent_stream_read(run->host.places.run_dir, facts->id, harness->reader, seen, err) < 0)
			return NULL;
		if (*seen->conversation)
			return seen->conversation;
	}
	kr_fail(err, KR_E_NOT_FOUND, "item '%s' has no conversation of '%s' that could go on", run->item.id,
		harness->id);
	return NULL;
}

static int
find_conversation(struct kr_run_state *run, struct kr_run_agent *agent, struct kr_error *err)
{
	if (!agent->resume || *agent->resume)
		return 0;
	agent->resume = last_conversation(run, agent->harness, err);
	return agent->resume ? 0 : -1;
}

/* ---- all of it ---- */

/* What can be asked of a plan before there is one. */
static struct kr_request
early_request(const struct kr_run_state *run, const struct kr_job *job, const struct kr_run_launch *launch)
{
	return (struct kr_request){
		.repo = run->repo,
		.phase = job->phase,
		.item = run->item.id,
		.session = job->id,
		.worktree = run->item.worktree,
		.checkout = run->trees->checkout.root,
		.home = run->item.home,
		.cwd = job->cwd,
		.argv = job->argv,
		.agent = &launch->plan,
	};
}

int
kr_run_agent_prepare(struct kr_run_state *run, struct kr_job *job, struct kr_error *err)
{
	struct kr_run_agent *agent = kr_arena_new(run->arena, struct kr_run_agent);
	struct kr_run_launch *launch = kr_arena_new(run->arena, struct kr_run_launch);
	const char **argv = kr_arena_alloc(run->arena, 2 * sizeof(*argv));
	struct kr_run_at at = { .host = &run->host, .home = run->item.home };
	struct kr_gate *gate = kr_arena_new(run->arena, struct kr_gate);
	struct kr_request request;

	*agent = *run->want->agent;
	argv[0] = agent->harness->command;
	job->argv = argv; /* what a refusal is told of */
	job->harness = agent->harness->id;
	if (!job->id && !(job->id = kr_session_new_id(run->arena, err)))
		return -1;
	at.session = job->id;
	if (kr_run_is_macos(run))
		at.result = kr_item_result_file(run->arena, &run->item, job->id);
	if (find_conversation(run, agent, err) < 0 ||
		kr_run_launch_make(run->arena, agent, &run->where.policy, &at, NULL, launch, err) < 0)
		return -1;
	job->argv = launch->launch.argv.v;
	request = early_request(run, job, launch);
	if (kr_run_launch_login(run->arena, &run->host, &request, agent->harness, err) < 0 ||
		kr_run_agent_know(run, launch, &request, gate, err) < 0)
		return -1;
	if (*gate->key && kr_run_launch_make(run->arena, agent, &run->where.policy, &at, gate, launch, err) < 0)
		return -1;
	job->argv = launch->launch.argv.v;
	job->launch = launch;
	return 0;
}

/* ---- what it finds ---- */

/* A directory in a place that a worker can write: what else stands there goes. A descriptor, or -1. */
static int
make_own(int at, const char *name, struct kr_error *err)
{
	for (int tries = 0; tries < 3; tries++) {
		int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0)
			return fd;
		if (errno != ENOENT && kr_tree_remove_at(at, name) < 0)
			break;
		if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
			break;
	}
	return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s' in the item's home", name);
}

/* They are mounted as what they are now, so nobody can put another directory there in between. */
static int
make_kept(const char *home, struct kr_run_launch *launch, int own_fd, struct kr_error *err)
{
	const struct kr_harness *harness = launch->agent->harness;
	kr_auto_fd int home_fd = kr_path_open(home, O_RDONLY | O_DIRECTORY, err), top = -1, at = -1;

	if (home_fd < 0 || (top = make_own(home_fd, kept_directory, err)) < 0 ||
		(at = make_own(top, harness->id, err)) < 0)
		return -1;
	for (size_t i = 0; i < harness->config_keep.n; i++) {
		const char *name = harness->config_keep.v[i];
		kr_auto_fd int fd = make_own(at, name, err);
		struct stat st;

		if (fd < 0)
			return -1;
		if (fstat(fd, &st) < 0 || mkdirat(own_fd, name, 0700) < 0)
			return kr_fail_errno(
				err, KR_E_SYSTEM, errno, "cannot make a place for '%s' of '%s'", name, harness->id);
		launch->kept[i].device = (uint64_t)st.st_dev;
		launch->kept[i].inode = (uint64_t)st.st_ino;
	}
	return 0;
}

static int
make_own_directory(const char *home, struct kr_run_launch *launch, const char *folder, struct kr_error *err)
{
	kr_auto_fd int folder_fd = kr_path_open(folder, O_RDONLY | O_DIRECTORY, err), fd = -1;

	if (folder_fd < 0)
		return -1;
	if (mkdirat(folder_fd, own_directory, 0700) < 0 ||
		(fd = openat(folder_fd, own_directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s/%s'", folder, own_directory);
	return launch->plan.kept_count ? make_kept(home, launch, fd, err) : 0;
}

/* Inside the directory is read-only, and it goes with the session: nobody changes what it says, and nothing
 * stays. */
static int
write_settings(const struct kr_run_launch *launch, const char *channel_dir, struct kr_error *err)
{
	kr_auto_fd int fd = kr_path_open(channel_dir, O_RDONLY | O_DIRECTORY, err);

	if (fd < 0)
		return -1;
	for (size_t i = 0; i < launch->launch.file_count; i++) {
		const struct kr_agent_file *file = &launch->launch.files[i];

		if (kr_file_write_at(fd, file->name, file->text, strlen(file->text), 0400, err) < 0)
			return kr_wrap(err, "the settings of '%s'", launch->agent->harness->id);
	}
	return 0;
}

int
kr_run_agent_place(struct kr_run_state *run, struct kr_run_launch *launch,
	const struct kr_session_paths *paths, struct kr_error *err)
{
	if (launch->plan.config_dir && make_own_directory(run->item.home, launch, paths->folder, err) < 0)
		return -1;
	return write_settings(launch, paths->channel_dir, err);
}

void
kr_run_agent_clear(const struct kr_session_paths *paths)
{
	kr_auto_fd int fd = kr_path_open(paths->folder, O_RDONLY | O_DIRECTORY, NULL);

	if (fd >= 0)
		(void)kr_tree_remove_at(fd, own_directory); /* the folder's own end does it else */
}

/* ---- while it runs ---- */

int
kr_run_agent_begin(struct kr_run_launch *launch, struct kr_job *job, struct kr_error *err)
{
	const char *input = launch->launch.input;

	job->in = -1;
	if (input) {
		launch->input_fd = kr_memory_file("kraft-instruction", input, strlen(input), err);
		if (launch->input_fd < 0)
			return -1;
		job->in = launch->input_fd;
	}
	if (!launch->agent->is_rendered || job->out < 0 || launch->agent->harness->reader == KR_READER_NONE)
		return 0;
	if (kr_agent_render(launch->agent->harness->reader, job->out, launch->agent->is_coloured,
			&launch->render_fd, &launch->renderer, err) < 0)
		return -1;
	job->out = launch->render_fd;
	return 0;
}

void
kr_run_agent_end(struct kr_run_launch *launch)
{
	kr_close_p(&launch->input_fd);
	if (launch->render_fd < 0)
		return;
	kr_close_p(&launch->render_fd); /* then it writes what it still has, and ends */
	while (waitpid(launch->renderer, NULL, 0) < 0 && errno == EINTR)
		;
}
