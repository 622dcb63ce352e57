/* See fault.h. Compiled with -Dfault_points=true only. */
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"

enum { WAIT_MS = 60000, STEP_MS = 10, CHUNK = 1 << 16 };

static const char *const names[] = {
#define X(name) #name,
	KR_FAULT_POINTS(X)
#undef X
};

/* ---- what may be asked ---- */

static void
hold(const char *file)
{
	char go[4096];

	snprintf(go, sizeof(go), "%s.go", file);
	for (int waited = 0; waited < WAIT_MS && access(go, F_OK) < 0; waited += STEP_MS)
		(void)poll(NULL, 0, STEP_MS); /* a signal ends a nap early */
}

/* To the last byte: in large steps, then in small ones. */
static void
fill_disk(const char *file)
{
	static const char zeros[CHUNK];
	char path[4096];
	kr_auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s.fill", file);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	for (size_t n = CHUNK; fd >= 0 && n; n /= 16)
		while (write(fd, zeros, n) > 0)
			;
}

static void
act(const char *action, const char *file)
{
	if (strcmp(action, "kill") == 0)
		(void)kill(getpid(), SIGKILL);
	else if (strcmp(action, "stop") == 0)
		(void)kill(getpid(), SIGSTOP);
	else if (strcmp(action, "wait") == 0)
		hold(file);
	else if (strcmp(action, "full") == 0)
		fill_disk(file);
	else
		kr_bug(__FILE__, __LINE__, "an unknown action in KRAFT_FAULT");
}

/* ---- whether this is the place ---- */

/* Whoever makes the file is the first. */
static bool
is_first(const char *file, const char *name)
{
	kr_auto_fd int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	char text[128];
	int n = snprintf(text, sizeof(text), "%s %d\n", name, (int)getpid());

	return fd >= 0 && write(fd, text, (size_t)n) == n;
}

void
kr_fault_reach(enum kr_fault_point point)
{
	const int saved = errno;
	const char *wanted = getenv("KRAFT_FAULT"), *name = names[point];
	char action[8];
	int at = 0;
	size_t n = strlen(name);

	if (wanted && strncmp(wanted, name, n) == 0 && sscanf(wanted + n, ":%7[a-z]:%n", action, &at) == 1 &&
		at && is_first(wanted + n + at, name))
		act(action, wanted + n + at);
	errno = saved;
}

const char *
kr_fault_macos(void)
{
	const char *program = getenv("KRAFT_PRETEND_MACOS");

	return program && program[0] == '/' ? program : NULL;
}

bool
kr_fault_macos_is(const char *word)
{
	const char *said = getenv("KRAFT_PRETEND_MACOS_IS");

	return said && strcmp(said, word) == 0;
}

int64_t
kr_fault_clock_ms(void)
{
	const char *path = getenv("KRAFT_FAULT_CLOCK");
	kr_auto_fd int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return strtoll(text, NULL, 10);
}
