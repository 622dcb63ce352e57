/* What sys.h says of descriptors, signals and terminals, on macOS. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/sys.h"

static bool
is_kept(const int *keep, size_t n, int fd)
{
	for (size_t i = 0; i < n; i++)
		if (keep[i] == fd)
			return true;
	return false;
}

/* By the list of those that are open: there is no call for a range, and the limit may be none. */
bool
kg_close_others(int *keep, size_t n)
{
	DIR *list = kg_sort(keep, n) ? opendir("/dev/fd") : NULL;

	if (!list)
		return false;
	for (const struct dirent *entry; (entry = readdir(list));) {
		const int fd = kg_parse_fd(entry->d_name);

		if (fd > 2 && fd != dirfd(list) && !is_kept(keep, n, fd))
			close(fd);
	}
	closedir(list);
	return true;
}

void
kg_default_signals(void)
{
	struct sigaction normal = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int signal = 1; signal < NSIG; signal++)
		(void)sigaction(signal, &normal, NULL); /* KILL and STOP refuse, rightly */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int
kg_open_master(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);

	if (master < 0)
		return -1;
	if (fcntl(master, F_SETFD, FD_CLOEXEC) == 0 && grantpt(master) == 0 && unlockpt(master) == 0)
		return master;
	close(master);
	return -1;
}

int
kg_open_slave(int master, int flags)
{
	const char *name = ptsname(master);

	return name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC | flags) : -1;
}
