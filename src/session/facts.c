#include "session/facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "guest/wire.h"
#include "os/sys.h"

enum { FACTS_BYTES = 4 << 20, EXIT_BYTES = 128, ID_DIGITS = 16 };
#define FACTS_FILE "session.json"

static const char *const state_names[] = {
	[KR_SESSION_RUNNING] = "running",
	[KR_SESSION_EXITED] = "exited",
	[KR_SESSION_FAILED] = "failed",
	[KR_SESSION_LOST] = "lost",
};

const char *
kr_session_state_name(enum kr_session_state state)
{
	return state_names[state];
}

uint64_t
kr_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + KR_FAULT_CLOCK_MS());
}

/* ---- writing ---- */

static json_t *
text(const char *s)
{
	json_t *value;
	size_t size;
	char *safe;

	s = s ? s : "";
	value = json_string(s);
	if (value)
		return value;
	size = 4 * strlen(s) + 1; /* bytes that are no UTF-8: \xNN each */
	safe = kr_xcalloc(size, 1);
	kr_text_escape(safe, size, s, strlen(s));
	value = json_string(safe);
	free(safe);
	return value;
}

static json_t *
facts_to_json(const struct kr_session_facts *f)
{
	json_t *root = json_object(), *argv = json_array();

	for (const char *const *a = f->argv; a && *a; a++)
		json_array_append_new(argv, text(*a));
	json_object_set_new(root, "id", text(f->id));
	json_object_set_new(root, "item", text(f->item));
	json_object_set_new(root, "repo", text(f->repo));
	json_object_set_new(root, "worktree", text(f->worktree));
	json_object_set_new(root, "phase", text(f->phase));
	json_object_set_new(root, "purpose", text(f->purpose));
	json_object_set_new(root, "harness", text(f->harness));
	if (f->container && *f->container)
		json_object_set_new(root, "container", text(f->container));
	json_object_set_new(root, "command", argv);
	json_object_set_new(root, "started_ms", json_integer((json_int_t)f->started_ms));
	json_object_set_new(root, "host_pid", json_integer(f->host_pid));
	json_object_set_new(root, "host_start", json_integer((json_int_t)f->host_start));
	json_object_set_new(root, "host_boot", text(f->host_boot));
	return root;
}

/*
 * No fsync: after a crash of the system the session is gone with its host, and a start must not wait for a
 * disk. The file is written under another name first, so that a reader sees it whole and locked.
 */
int
kr_session_facts_write(int folder_fd, struct kr_session_facts *facts, struct kr_error *err)
{
	struct kr_arena arena = { 0 };
	kr_auto_fd int fd = -1;
	json_t *root;
	char *bytes;
	int result;

	facts->host_pid = (long)getpid();
	facts->host_start = kr_process_start(getpid());
	facts->host_boot = kr_boot_id(&arena);
	root = facts_to_json(facts);
	bytes = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	kr_arena_fini(&arena);
	facts->host_boot = NULL;
	fd = openat(folder_fd, FACTS_FILE ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || !bytes) {
		free(bytes);
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot write '%s'", FACTS_FILE);
	}
	result = kr_write_all(fd, bytes, strlen(bytes), err);
	free(bytes);
	if (result < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || renameat(folder_fd, FACTS_FILE ".new", folder_fd, FACTS_FILE) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot put '%s' in place", FACTS_FILE);
	return kr_steal_fd(fd);
}

/* ---- reading ---- */

static const char *
get_text(struct kr_arena *arena, const json_t *root, const char *key)
{
	const char *s = json_string_value(json_object_get(root, key));

	return kr_arena_dup(arena, s ? s : "");
}

static void
facts_from_json(struct kr_arena *arena, const json_t *root, struct kr_session_facts *f)
{
	const json_t *argv = json_object_get(root, "command");
	struct kr_strs words = { 0 };

	for (size_t i = 0; i < json_array_size(argv); i++) {
		const char *word = json_string_value(json_array_get(argv, i));

		kr_strs_add(arena, &words, kr_arena_dup(arena, word ? word : ""));
	}
	f->id = get_text(arena, root, "id");
	f->item = get_text(arena, root, "item");
	f->repo = get_text(arena, root, "repo");
	f->worktree = get_text(arena, root, "worktree");
	f->phase = get_text(arena, root, "phase");
	f->purpose = get_text(arena, root, "purpose");
	f->harness = get_text(arena, root, "harness");
	f->container = get_text(arena, root, "container");
	f->argv = words.v;
	f->started_ms = (uint64_t)json_integer_value(json_object_get(root, "started_ms"));
	f->host_pid = (long)json_integer_value(json_object_get(root, "host_pid"));
	f->host_start = (uint64_t)json_integer_value(json_object_get(root, "host_start"));
	f->host_boot = get_text(arena, root, "host_boot");
}

/* "CODE SIGNAL STATE\n" of the launcher; false when there is none (yet). */
static bool
read_exit(int folder_fd, struct kr_session_seen *seen)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(EXIT_BYTES);
	struct stat st;
	char state[32] = "";

	if (kr_file_read_at(folder_fd, KG_EXIT_FILE, &bytes, NULL) < 0 || !bytes.data)
		return false;
	if (sscanf(bytes.data, "%d %d %31s", &seen->code, &seen->signal, state) != 3)
		return false;
	seen->state = strcmp(state, "started") == 0 ? KR_SESSION_EXITED : KR_SESSION_FAILED;
	if (fstatat(folder_fd, KG_EXIT_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		seen->ended_ms = (uint64_t)kr_mtime(&st).tv_sec * 1000 + (uint64_t)kr_mtime(&st).tv_nsec / 1000000;
	return true;
}

static bool
host_lives(int folder_fd)
{
	kr_auto_fd int fd = openat(folder_fd, FACTS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	/* Ours for a moment only; shared, so that two readers do not take each other for the host. */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int
kr_session_facts_read(
	struct kr_arena *arena, int folder_fd, struct kr_session_seen *out, struct kr_error *err)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(FACTS_BYTES);
	struct kr_session_seen seen = { 0 };
	json_error_t at;
	json_t *root;
	bool lives = host_lives(folder_fd); /* before the exit file: a host that ends in between has written it */

	if (kr_file_read_at(folder_fd, FACTS_FILE, &bytes, NULL) < 0)
		return kr_fail(err, KR_E_NOT_FOUND, "there is no session in this folder");
	root = json_loadb(bytes.data ? bytes.data : "", bytes.len, JSON_REJECT_DUPLICATES, &at);
	if (!root)
		return kr_fail(err, KR_E_SYSTEM, "cannot read '%s': %s", FACTS_FILE, at.text);
	facts_from_json(arena, root, &seen.facts);
	json_decref(root);
	if (!read_exit(folder_fd, &seen))
		seen.state = lives ? KR_SESSION_RUNNING : KR_SESSION_LOST;
	*out = seen;
	return 0;
}

/* ---- listing ---- */

static bool
is_id(const char *s)
{
	return strlen(s) == ID_DIGITS && strspn(s, "0123456789abcdef") == ID_DIGITS;
}

int
kr_session_folder_open(const char *run_dir, const char *id, struct kr_error *err)
{
	struct kr_arena arena = { 0 };
	int fd = -1;

	if (is_id(id))
		fd = kr_path_open(
			kr_arena_printf(&arena, "%s/sessions/%s", run_dir, id), O_RDONLY | O_DIRECTORY, NULL);
	kr_arena_fini(&arena);
	if (fd < 0) {
		kr_fail(err, KR_E_NOT_FOUND, "there is no session '%s'", id);
		return kr_hint(err, "'kraft view sessions' lists them");
	}
	return fd;
}

static int
newest_first(const void *a, const void *b)
{
	const struct kr_session_seen *x = a, *y = b;

	if (x->facts.started_ms != y->facts.started_ms)
		return x->facts.started_ms < y->facts.started_ms ? 1 : -1;
	return strcmp(x->facts.id, y->facts.id);
}

int
kr_session_list(struct kr_arena *arena, const char *run_dir, const char *item, struct kr_session_list *out,
	struct kr_error *err)
{
	int fd = kr_path_open(kr_arena_printf(arena, "%s/sessions", run_dir), O_RDONLY | O_DIRECTORY, err);
	struct kr_session_list list = { 0 };
	size_t cap = 0;
	DIR *dir;

	if (fd < 0 && err->sys_errno == ENOENT) {
		*err = (struct kr_error){ 0 };
		*out = list;
		return 0;
	}
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		kr_close_p(&fd);
		return err->code ? -1 : kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot list the sessions");
	}
	for (const struct dirent *e; (e = readdir(dir));) {
		struct kr_session_seen seen;
		kr_auto_fd int folder =
			is_id(e->d_name) ? openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;

		if (folder < 0 || kr_session_facts_read(arena, folder, &seen, NULL) < 0)
			continue;
		if (item && strcmp(seen.facts.item, item) != 0)
			continue;
		if (list.n == cap) {
			struct kr_session_seen *more = kr_arena_alloc(arena, (cap = cap ? 2 * cap : 64) * sizeof(*more));

			if (list.n)
				memcpy(more, list.v, list.n * sizeof(*more));
			list.v = more;
		}
		list.v[list.n++] = seen;
	}
	closedir(dir);
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), newest_first);
	if (list.n > KR_SESSION_LIST_MAX)
		list.n = KR_SESSION_LIST_MAX;
	*out = list;
	return 0;
}
