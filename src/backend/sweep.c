/*
 * What containers of dead sessions left: the containers themselves, and the directories their CLIs stood in.
 *
 * A container ends with its session by itself (its init loses the connection), so there is something to do
 * only when a client was killed between making a container and starting it, or the runtime was. Whose a
 * container is, its labels say: kraft.home has to be ours to the byte, and the session must not live. Listed
 * first and asked second: a session that begins meanwhile is not in the list. Only a name of the form that
 * kraft makes is ever handed to `rm`: others are somebody's text. A runtime that does not answer removes
 * nothing, directories included.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

#define NAME_PREFIX "kraft-"

const char *
kr_container_name(struct kr_arena *arena, const char *session)
{
	return kr_arena_printf(arena, NAME_PREFIX "%s", session);
}

const char *
kr_container_client_dir(struct kr_arena *arena, const char *run_dir, const char *name)
{
	return kr_arena_printf(arena, "%s/" KR_CONTAINER_CLIENTS "/%s", run_dir, name);
}

const char *
kr_container_session(const char *name)
{
	const char *id = name + strlen(NAME_PREFIX);

	if (!kr_text_has_prefix(name, NAME_PREFIX) || !*id || id[strspn(id, "0123456789abcdef")])
		return NULL;
	return id;
}

/* One that is gone, or on its way, is fine. */
static bool
says_gone(const char *message)
{
	return strstr(message, "o such container") || strstr(message, "no container with") ||
		   strstr(message, "is already in progress");
}

/* With the volumes that the image's VOLUME lines made for it alone. */
int
kr_container_remove(
	struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, struct kr_error *err)
{
	const char *const docker[] = { "rm", "--force", "--volumes", name, NULL };
	const char *const podman[] = { "rm", "--force", "--volumes", "--ignore", "--time", "0", name, NULL };
	struct kr_error own = { 0 };
	int status;

	if (!kr_container_session(name))
		return kr_fail(err, KR_E_REFUSED, "'%s' is no container of kraft's", name);
	status = kr_runtime_call(
		arena, runtime, runtime->kind == KR_RUNTIME_PODMAN ? podman : docker, KR_RUNTIME_CALL_MS, NULL, &own);
	if (status == 0 || (status > 0 && says_gone(own.message)))
		return 0;
	kr_wrap(&own, "removing the container '%s'", name);
	if (err)
		*err = own;
	return -1;
}

static int
list(struct kr_arena *arena, const struct kr_runtime *runtime, struct kr_containers_seen *out,
	struct kr_error *err)
{
	static const char format[] = "{\"name\":{{json .Names}},\"home\":{{json (.Label \"kraft.home\")}},"
								 "\"session\":{{json (.Label \"kraft.session\")}}}";
	const char *const argv[] = { "ps", "--all", "--no-trunc", "--filter", "label=kraft.home", "--format",
		runtime->kind == KR_RUNTIME_PODMAN ? "json" : format, NULL };
	kr_auto_buf struct kr_buf text = KR_BUF(KR_RUNTIME_TEXT_BYTES);

	if (kr_runtime_call(arena, runtime, argv, KR_RUNTIME_CALL_MS, &text, err) != 0)
		return -1;
	return kr_containers_read(arena, runtime->kind, text.data ? text.data : "", text.len, out, err);
}

struct sweep {
	struct kr_arena *arena;
	const struct kr_runtime *runtime;
	bool (*is_alive)(void *context, const char *session);
	void *context;
	struct kr_strs left; /* names whose containers are still there */
	int removed;
};

/* The name says which session, and the label has to say the same: a container that was made by hand from ours
 * has another. */
static bool
is_left_behind(const struct sweep *s, const struct kr_container_seen *seen, const char *home)
{
	const char *session = kr_container_session(seen->name);

	return session && strcmp(seen->home, home) == 0 && strcmp(seen->session, session) == 0 &&
		   !s->is_alive(s->context, session);
}

static void
sweep_directories(struct sweep *s, const char *run_dir)
{
	int fd =
		kr_path_open(kr_arena_printf(s->arena, "%s/" KR_CONTAINER_CLIENTS, run_dir), O_RDONLY | O_DIRECTORY, NULL);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		kr_close_p(&fd);
		return;
	}
	for (const struct dirent *e; (e = readdir(dir));) {
		const char *session = kr_container_session(e->d_name);

		if (session && !s->is_alive(s->context, session) && !kr_strs_has(&s->left, e->d_name))
			(void)kr_tree_remove_at(dirfd(dir), e->d_name); /* the next sweep tries again */
	}
	closedir(dir);
}

int
kr_container_left(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_host *host,
	bool (*is_alive)(void *context, const char *session), void *context, struct kr_strs *names, struct kr_error *err)
{
	const struct sweep s = { .arena = arena, .runtime = runtime, .is_alive = is_alive, .context = context };
	struct kr_containers_seen seen = { 0 };

	if (list(arena, runtime, &seen, err) < 0)
		return kr_wrap(err, "looking for containers that dead sessions left");
	for (size_t i = 0; i < seen.n; i++)
		if (is_left_behind(&s, &seen.v[i], host->places.kraft_home))
			kr_strs_add(arena, names, seen.v[i].name);
	return 0;
}

int
kr_container_sweep(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_host *host,
	bool (*is_alive)(void *context, const char *session), void *context, struct kr_error *err)
{
	struct sweep s = { .arena = arena, .runtime = runtime, .is_alive = is_alive, .context = context };
	struct kr_containers_seen seen = { 0 };
	bool failed = false;

	if (list(arena, runtime, &seen, err) < 0)
		return kr_wrap(err, "looking for containers that dead sessions left");
	for (size_t i = 0; i < seen.n; i++) {
		if (!is_left_behind(&s, &seen.v[i], host->places.kraft_home))
			continue;
		if (kr_container_remove(arena, runtime, seen.v[i].name, failed ? NULL : err) < 0) {
			kr_strs_add(arena, &s.left, seen.v[i].name);
			failed = true;
		} else {
			s.removed++;
		}
	}
	sweep_directories(&s, host->places.run_dir);
	return failed ? -1 : s.removed;
}
