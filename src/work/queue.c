/*
 * An item that goes on in the background. With a server its row says that it is to (QUEUED, or BLOCKED by what it
 * depends on), and the server, which looks at the rows, gives it a host when there is a slot. So the store is all
 * that a client and the server share. Without one its host is started at once.
 *
 * A host in the background is this program again, `kraft item start --hosted ID`, so nothing of who started it is
 * left in it: no lock, no listener, no connection.
 */
#include "work/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/portable.h"
#include "base/text.h"
#include "os/owner.h"
#include "os/sys.h"

extern char **environ;

enum { WORD_FD = 3 };

const char *
kr_work_server_path(struct kr_arena *arena, const struct kr_places *places)
{
	return kr_arena_printf(arena, "%s/server", places->run_dir);
}

bool
kr_work_has_server(const struct kr_work *work)
{
	return kr_owner_is_held(kr_work_server_path(work->arena, &work->host.places));
}

/* ---- its place in the queue ---- */

static void
set_waiting(struct kr_item_row *row, enum kr_status status)
{
	row->status = kr_status_name(status);
	row->stop = row->reason = "";
}

static int
enqueue(struct kr_work *work, const char *id, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	const struct kr_dependency_row *on;
	struct kr_work_view v;
	const char *from;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0 || kr_work_may_go_on(&v, err) < 0)
		return -1;
	if (kr_work_is(&v.row, KR_STATUS_QUEUED) || kr_work_is(&v.row, KR_STATUS_BLOCKED) ||
		kr_work_is(&v.row, KR_STATUS_RATE_LIMITED)) /* the server gives it a host as it is */
		return 0;
	from = v.row.status;
	on = kr_work_waits_for(&v);
	set_waiting(&v.row, on ? KR_STATUS_BLOCKED : KR_STATUS_QUEUED);
	return kr_work_say(work, &v.row, NULL, on ? "work_item_blocked" : "work_item_queued",
		json_pack("{s:s, s:s, s:s*}", "verb", "start", "from", from, "on", on ? on->id : NULL), err);
}

int
kr_work_requeue(struct kr_work *work, const char *id, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0)
		return -1;
	if (!kr_work_is(&v.row, KR_STATUS_BLOCKED) || kr_work_waits_for(&v))
		return 0;
	set_waiting(&v.row, KR_STATUS_QUEUED);
	return kr_work_say(work, &v.row, NULL, "work_item_unblocked", json_pack("{s:s}", "verb", "start"), err);
}

struct dropping {
	struct kr_work *work;
	const struct kr_work_view *v;
	const char *dependency; /* NULL: all */
	json_t *dropped;
};

static int
drop(void *context, struct kr_error *err)
{
	struct dropping *d = context;
	const struct kr_dependency_rows *rows = &d->v->dependencies;

	json_array_clear(d->dropped); /* it may be done again */
	for (size_t i = 0; i < rows->n; i++) {
		if (d->dependency && !kr_text_has_prefix(rows->v[i].id, d->dependency))
			continue;
		if (kr_store_dependency_remove(d->work->store, d->v->row.id, rows->v[i].id, err) < 0)
			return -1;
		json_array_append_new(d->dropped, json_string(rows->v[i].id));
	}
	if (!json_array_size(d->dropped))
		return kr_fail(err, KR_E_REFUSED, "item '%s' does not wait for %s%s%s", d->v->row.id,
			d->dependency ? "item '" : "any", d->dependency ? d->dependency : "", d->dependency ? "'" : "");
	return kr_work_event(d->work, d->v->row.id, "work_item_dependencies_dropped",
		json_pack("{s:O, s:s}", "dropped", d->dropped, "by", "human"), err);
}

int
kr_work_unblock(struct kr_work *work, const char *id, const char *dependency, struct kr_error *err)
{
	struct dropping d = { .work = work, .dependency = dependency, .dropped = json_array() };
	struct kr_work_view v;
	int result;

	d.v = &v;
	result = kr_work_look(work, id, &v, err) < 0 ? -1 : kr_store_transact(work->store, drop, &d, err);
	json_decref(d.dropped);
	return result < 0 || !kr_work_is(&v.row, KR_STATUS_BLOCKED) ? result : kr_work_requeue(work, id, err);
}

int
kr_work_give_up(struct kr_work *work, const char *id, const char *reason, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0 || kr_turn_settle(work, &v, err) < 0 ||
		(v.row.turn && kr_turn_drop(work, &v, reason, err) < 0))
		return -1;
	if (!kr_work_has_host(&v.row) && !kr_work_is(&v.row, KR_STATUS_QUEUED))
		return 0; /* it was to have a session beside its chain, and stays as it is */
	v.row.status = kr_status_name(KR_STATUS_NEEDS_HUMAN);
	v.row.stop = kr_stop_name(KR_STOP_INFRA);
	v.row.retry_ms = 0;
	v.row.reason = reason;
	return kr_work_say(work, &v.row, NULL, "work_item_needs_human",
		json_pack("{s:s, s:s}", "kind", v.row.stop, "reason", reason), err);
}

/* ---- a host in a process of its own ---- */

struct word {
	bool has_begun;
	struct kr_error err; /* its pointer to a source file means nothing here */
};

void
kr_work_tell_word(const struct kr_error *err)
{
	struct word word = { .has_begun = !err };
	struct stat st;

	if (err)
		word.err = *err;
	if (fstat(WORD_FD, &st) < 0 || !S_ISSOCK(st.st_mode))
		return; /* somebody typed --hosted, or it was told */
	(void)send(WORD_FD, &word, sizeof(word), MSG_NOSIGNAL); /* nobody waits any more when it fails */
	(void)close(WORD_FD);
}

bool
kr_work_child_word(int word_fd, struct kr_error *err)
{
	struct word word = { 0 };
	ssize_t got;

	do
		got = recv(word_fd, &word, sizeof(word), MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(word)) {
		kr_fail(err, KR_E_SYSTEM, "the item's host ended before it began");
		return false;
	}
	word.err.file = NULL;
	if (!word.has_begun && err)
		*err = word.err;
	return word.has_begun;
}

/* The program that is installed now, or this one where that is gone. */
static const char *
program(struct kr_arena *arena)
{
	const char *path = kr_self_path(arena);

	return path && access(path, X_OK) == 0 ? path : "/proc/self/exe";
}

static const char *const *
host_argv(struct kr_work *work, const char *id, bool turn_only, const char *const *within)
{
	const char *const own[] = { program(work->arena), "item", "start", turn_only ? "--hosted=turn" : "--hosted", id,
		NULL };
	struct kr_strs words = { 0 };

	for (; within && *within; within++)
		kr_strs_add(work->arena, &words, *within);
	for (size_t i = 0; own[i]; i++)
		kr_strs_add(work->arena, &words, own[i]);
	kr_strs_add(work->arena, &words, NULL);
	return words.v;
}

int
kr_work_spawn(struct kr_work *work, const char *id, bool turn_only, const char *const *within,
	struct kr_work_child *out, struct kr_error *err)
{
	const char *const *argv = host_argv(work, id, turn_only, within);
	const char *log = kr_work_path(work, id, ".host.log");
	posix_spawn_file_actions_t actions;
	int ends[2], result;

	if (kr_socket_pair(SOCK_STREAM, ends) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pair of sockets");
	result = posix_spawn_file_actions_init(&actions);
	if (!result)
		result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	if (!result)
		result = posix_spawn_file_actions_addopen(
			&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600);
	if (!result)
		result = posix_spawn_file_actions_adddup2(&actions, 1, 2);
	if (!result)
		result = posix_spawn_file_actions_adddup2(&actions, ends[1], WORD_FD);
	if (!result)
		result = kr_spawn(argv[0], &actions, argv, (const char *const *)environ, &out->pid);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(ends[1]);
	if (result) {
		(void)close(ends[0]);
		return kr_fail_errno(err, KR_E_SYSTEM, result, "cannot start a host for item '%s'", id);
	}
	out->word_fd = ends[0];
	return 0;
}

static int
detach(struct kr_work *work, const char *id, bool turn_only, struct kr_error *err)
{
	struct kr_work_child child;
	struct kr_item_row row;
	bool has_begun;

	if (kr_store_item_get(work->arena, work->store, id, &row, err) < 0 ||
		kr_work_spawn(work, row.id, turn_only, NULL, &child, err) < 0)
		return -1;
	has_begun = kr_work_child_word(child.word_fd, err);
	(void)close(child.word_fd);
	return has_begun ? 0 : -1;
}

int
kr_work_go_on(struct kr_work *work, const char *id, struct kr_error *err)
{
	return kr_work_has_server(work) ? enqueue(work, id, err) : detach(work, id, false, err);
}

int
kr_work_go_turn(struct kr_work *work, const char *id, struct kr_error *err)
{
	return kr_work_has_server(work) ? 0 : detach(work, id, true, err); /* the server looks at the row */
}
