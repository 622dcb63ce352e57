/*
 * kraft admin doctor --fix. Done is only what was shown: a mode of a file of the person's loses rights, or a script runs by sudo,
 * word for word as it stands there. A row that was mended is asked again by the caller.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/cli.h"

static const char sudo_program[] = "/usr/bin/sudo"; /* and no other that a PATH may name */

static bool
is_mend(const struct kr_doctor_row *row)
{
	return (row->mend.path || row->mend.script) && row->verdict != KR_VERDICT_OK;
}

bool
kr_doctor_can_mend(const struct kr_doctor *d)
{
	for (size_t i = 0; i < d->row_count; i++)
		if (is_mend(&d->rows[i]))
			return true;
	return false;
}

void
kr_doctor_mend(struct kr_doctor *d, struct kr_mend mend)
{
	d->rows[d->row_count - 1].mend = mend;
}

void
kr_doctor_mend_mode(struct kr_doctor *d, const char *path, unsigned mode)
{
	struct stat st;

	if (lstat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && st.st_uid == geteuid() && st.st_mode & 07777 & ~mode)
		kr_doctor_mend(d, (struct kr_mend){ .path = path, .mode = mode });
}

/* ---- doing it ---- */

/* Rights are only taken away, whatever lies there by now. */
static int
take_rights(const struct kr_mend *mend, struct kr_error *err)
{
	kr_auto_fd int fd = open(mend->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", mend->path);
	if (st.st_uid != geteuid() || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return kr_fail(err, KR_E_REFUSED, "'%s' is no file or directory of yours any more", mend->path);
	if (fchmod(fd, st.st_mode & mend->mode) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot change the mode of '%s'", mend->path);
	return 0;
}

/* For nobody else to read, from its first byte. */
static int
add_line(const struct kr_mend *mend, struct kr_error *err)
{
	kr_auto_fd int fd = open(mend->path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mend->mode);
	kr_auto_buf struct kr_buf line = KR_BUF(1 << 16);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", mend->path);
	if (st.st_uid != geteuid() || !S_ISREG(st.st_mode) || st.st_mode & 07777 & ~mend->mode)
		return kr_fail(err, KR_E_REFUSED, "'%s' is no file that is yours alone", mend->path);
	kr_buf_addf(&line, "%s=%s\n", mend->name, mend->value);
	return line.overflow ? kr_fail(err, KR_E_LIMIT, "%s is too long", mend->name) : kr_write_all(fd, line.data, line.len, err);
}

static int
run_script(const char *script, const char *sudo, struct kr_error *err)
{
	const char *const argv[] = { sudo, "/bin/sh", "-ec", script, NULL };
	int status = -1;
	pid_t child;

	if (!sudo || access(sudo, X_OK) < 0) {
		kr_fail(err, KR_E_UNSUPPORTED, "there is no '%s' to become root by", sudo_program);
		return kr_hint(err, "run it yourself as root");
	}
	fflush(NULL);
	child = fork();
	if (child == 0) {
		(void)execv(sudo, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start '%s'", sudo);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return kr_fail(err, KR_E_SYSTEM, "'%s' did not do it", sudo);
	return 0;
}

int
kr_mend_apply(const struct kr_mend *mend, const char *sudo, struct kr_error *err)
{
	if (mend->name)
		return add_line(mend, err);
	return mend->path ? take_rights(mend, err) : run_script(mend->script, sudo, err);
}

/* ---- asking ---- */

static void
show(struct kr_arena *arena, const struct kr_doctor_row *row)
{
	const char *line = row->mend.script;

	printf("%s: ", kr_shown(arena, row->name));
	if (row->mend.name) {
		printf("add the line %s=... with its value here to '%s', which only you can read\n", row->mend.name, kr_shown(arena, row->mend.path));
		return;
	}
	if (row->mend.path) {
		printf("take rights away, so that the mode is at most %03o: '%s'\n", row->mend.mode, kr_shown(arena, row->mend.path));
		return;
	}
	printf("as root, by sudo:\n");
	for (size_t n; *line; line += n + (line[n] == '\n')) {
		n = strcspn(line, "\n");
		printf("    %s\n", kr_shown(arena, kr_arena_dup_n(arena, line, n)));
	}
}

static bool
is_wanted(bool yes)
{
	char answer[64];

	if (yes)
		return true;
	printf("do it? [y/N] ");
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	return answer[0] == 'y' || answer[0] == 'Y';
}

int
kr_doctor_fix(const struct kr_doctor *d, bool yes, struct kr_error *err)
{
	int done = 0;

	if (!yes && !isatty(STDIN_FILENO)) {
		kr_fail(err, KR_E_USAGE, "there is no terminal to ask on, so nothing was changed");
		return kr_hint(err, "'--yes' agrees to everything that is shown");
	}
	for (size_t i = 0; i < d->row_count; i++) {
		const struct kr_doctor_row *row = &d->rows[i];

		if (!is_mend(row))
			continue;
		show(d->arena, row);
		if (!is_wanted(yes))
			continue;
		if (kr_mend_apply(&row->mend, sudo_program, err) < 0)
			return -1;
		done++;
	}
	return done;
}
