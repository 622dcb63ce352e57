/*
 * libproc. What is asked here every user may ask of every process: its ids and the short record. Both are private to Apple in
 * name and old in fact: the kernel answers the flavours below with records of exactly these sizes, and an answer of another
 * size counts as none.
 */
#include "guest/processes.h"

#include <errno.h>
#include <libproc.h>
#include <string.h>
#include <sys/proc.h>
#include <sys/proc_info.h>
#include <unistd.h>

enum { UNIQUE_IDENTIFIERS = 17, SHORT_RECORD = 13, SANDBOX_PATH = 1, KG_PIDS_MOST = 32768 };

struct identifiers {
	uint8_t uuid[16];
	uint64_t id, parent_id;
	int32_t version, parent_version;
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct identifiers) == 56, "as the kernel writes it");

/* libSystem has these and no header declares them. 0: allowed, or, asked for no operation, not in a sandbox. */
extern const int SANDBOX_CHECK_NO_REPORT;
int sandbox_check(pid_t pid, const char *operation, int type, ...);

static bool
identify(pid_t pid, struct identifiers *out)
{
	return proc_pidinfo(pid, UNIQUE_IDENTIFIERS, 0, out, sizeof(*out)) == (int)sizeof(*out);
}

uint64_t
kg_process_id(pid_t pid)
{
	struct identifiers it;

	return identify(pid, &it) ? it.id : 0;
}

void
kg_processes_mark(struct kg_mark *mark, pid_t command)
{
	(void)mark, (void)command; /* its profile is known from the start */
}

static enum kg_inside
ask_sandbox(const struct kg_mark *mark, pid_t pid)
{
	const int quietly = SANDBOX_PATH | SANDBOX_CHECK_NO_REPORT;
	int own, other;

	switch (sandbox_check(pid, NULL, 0)) {
	case 0:
		return KG_INSIDE_NO;
	case 1:
		break;
	default:
		return KG_INSIDE_UNKNOWN;
	}
	own = sandbox_check(pid, "file-write-data", quietly, mark->own);
	other = sandbox_check(pid, "file-write-data", quietly, mark->other);
	if (own < 0 || other < 0)
		return KG_INSIDE_UNKNOWN;
	return own == 0 && other != 0 ? KG_INSIDE_YES : KG_INSIDE_NO;
}

/* False: it has gone meanwhile. */
static bool
describe(const struct kg_mark *mark, pid_t pid, struct kg_process *out)
{
	struct proc_bsdshortinfo record;
	struct identifiers it;

	if (!identify(pid, &it) || proc_pidinfo(pid, SHORT_RECORD, 0, &record, sizeof(record)) != (int)sizeof(record))
		return false;
	*out = (struct kg_process){
		.pid = pid,
		.uid = record.pbsi_uid,
		.id = it.id,
		.parent_id = it.parent_id,
		.has_ended = record.pbsi_status == SZOMB,
	};
	strlcpy(out->name, record.pbsi_comm, sizeof(out->name));
	if (out->uid == getuid() && !out->has_ended)
		out->inside = ask_sandbox(mark, pid);
	return out->inside != KG_INSIDE_UNKNOWN || identify(pid, &it);
}

/* The kernel lists the youngest first, so what runs away is asked about first. */
long
kg_processes_look(const struct kg_mark *mark, struct kg_look *look, struct kg_process *out, size_t room)
{
	static pid_t pids[KG_PIDS_MOST];
	int bytes = proc_listpids(PROC_ALL_PIDS, 0, pids, sizeof(pids));
	size_t n = 0;

	look->missed = 0;
	if (bytes <= 0)
		return errno ? -errno : -EIO;
	if ((size_t)bytes == sizeof(pids) || (size_t)bytes / sizeof(*pids) > room)
		return -ENOSPC;
	for (size_t i = 0; i < (size_t)bytes / sizeof(*pids); i++)
		if (pids[i] > 0 && describe(mark, pids[i], &out[n]))
			kg_strike(look, &out[n++]);
		else
			look->missed += pids[i] > 0;
	return (long)n;
}
