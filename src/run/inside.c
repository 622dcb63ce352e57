/*
 * Short runs inside the walls, at kraft's word: git on the private directory and the worktree, or an agent's CLI that is
 * asked something; without a way out, with a home that is thrown away. What git prints is a worker's word: programs that
 * the worker's configuration names run beside it.
 */
#include "run/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/sys.h"

enum { TAIL_BYTES = 4096 };

int
kr_run_inside(struct kr_run_state *run, struct kr_job *job, const char *const *argv, struct kr_error *err)
{
	job->phase = KR_PHASE_INSTALL;
	job->argv = argv;
	job->cwd = job->cwd ? job->cwd : run->item.worktree;
	job->is_short_run = true;
	job->err = -1;
	return kr_job_run(run, job, err);
}

const char *const *
kr_run_bounded(const struct kr_run_state *run, const char *const *argv, unsigned seconds, int64_t *limit_ms)
{
	struct kr_strs words = { 0 };

	if (kr_run_is_macos(run)) {
		*limit_ms = (int64_t)seconds * 1000;
		return argv;
	}
	for (const char *const *word = (const char *const[]){ "timeout", "-k", "5", NULL }; *word; word++)
		kr_strs_add(run->arena, &words, *word);
	kr_strs_add(run->arena, &words, kr_arena_printf(run->arena, "%u", seconds));
	for (; *argv; argv++)
		kr_strs_add(run->arena, &words, *argv);
	return words.v;
}

const char *
kr_run_inside_reason(struct kr_run_state *run, const struct kr_job *job)
{
	kr_auto_fd int folder = open(job->paths.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char tail[TAIL_BYTES + 1];
	size_t n = folder < 0 ? 0 : kr_log_tail(folder, tail, TAIL_BYTES);
	const char *reason = NULL;
	int files = 0;

	tail[n] = '\0';
	for (char *line = tail, *next; *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		line[len] = '\0';
		if (!reason && (kr_text_has_prefix(line, "error: ") || kr_text_has_prefix(line, "fatal: ")))
			reason = kr_arena_dup(run->arena, line + strlen("error: "));
		else if (reason && line[0] == '\t' && files < 3)
			reason = kr_arena_printf(run->arena, "%s%s'%s'", reason, files++ ? ", " : " ", line + 1);
	}
	return reason ? reason : "git failed";
}

int
kr_run_data_file(const struct kr_run_state *run, struct kr_error *err)
{
	int fd = kr_nameless_file(run->host.places.run_dir);

	return fd < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a file in '%s'", run->host.places.run_dir) : fd;
}

int
kr_run_ask_inside(struct kr_run_state *run, const char *purpose, const struct kr_run_question *question, struct kr_buf *out,
	struct kr_job *job, struct kr_error *err)
{
	kr_auto_fd int answer = kr_run_data_file(run, err), in = -1;
	const char *const *argv = question->argv;
	int64_t limit_ms = question->limit_ms;

	if (answer < 0)
		return -1;
	if (question->bound_s)
		argv = kr_run_bounded(run, argv, question->bound_s, &limit_ms);
	if (question->in)
		in = kr_memory_file("kraft-question", question->in, question->in_len, err);
	if (question->in && in < 0)
		return -1;
	*job = (struct kr_job){ .purpose = purpose,
		.starter = question->starter,
		.cwd = question->cwd,
		.agent = question->agent,
		.in = in,
		.out = answer,
		.limit_ms = limit_ms,
		.limit_bytes = out->max };
	if (kr_run_inside(run, job, argv, err) < 0)
		return -1;
	if (job->end.write_errno)
		return kr_fail_errno(err, KR_E_SYSTEM, job->end.write_errno, "cannot keep what was printed inside");
	if (lseek(answer, 0, SEEK_SET) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read what was printed inside");
	return kr_read_all(answer, out, "what was printed inside", err);
}
