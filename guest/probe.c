/*
 * kraft admin probe-walls VERB:ARGUMENT...: the questions of `kraft admin doctor --probe` (src/cli/cmd_admin_selftest.c), asked inside
 * of a session, and once more outside of it, where each of them must come out. Prints a line for each: its number, and "ok" or
 * why not.
 * Every attempt is harmless when it succeeds, and what it makes it takes away.
 *
 * It knows nothing of what is expected: the judge is kraft.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/shim.h"

enum { FAR_MS = 3000, SHELL_SECONDS = 20, OTHER = 4096 }; /* OTHER: above every errno; what is added says more */

static int
result_of(int outcome)
{
	return outcome < 0 ? errno : 0;
}

static int
probe_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), failed;
	char byte;

	if (fd < 0)
		return errno;
	failed = result_of((int)read(fd, &byte, 1));
	(void)close(fd);
	return failed;
}

static int
probe_list(const char *path)
{
	DIR *dir = opendir(path);
	int failed = 0;

	if (!dir)
		return errno;
	errno = 0;
	for (int i = 0; i < 3 && !failed; i++) /* "." and ".." say nothing */
		failed = readdir(dir) ? 0 : errno ? errno : ENOENT;
	(void)closedir(dir);
	return failed;
}

static int
probe_stat(const char *path)
{
	struct stat st;

	return result_of(stat(path, &st));
}

/* A file of a new name. */
static int
probe_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	(void)close(fd);
	(void)unlink(path);
	return 0;
}

static int
probe_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

/* Waits for the connection, or for that it fails. */
static int
connect_in(const char *address, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), failed;
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t n = sizeof(failed);
	unsigned b[4] = { 0 };

	if (fd < 0)
		return errno;
	(void)sscanf(address, "%u.%u.%u.%u", &b[0], &b[1], &b[2], &b[3]);
	at.sin_addr.s_addr = htonl(b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	failed = connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? errno : 0;
	if (failed == EINPROGRESS && poll(&ready, 1, FAR_MS) != 1)
		failed = ETIMEDOUT;
	else if (failed == EINPROGRESS && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) < 0)
		failed = errno;
	(void)close(fd);
	return failed;
}

static int
probe_connect(const char *port)
{
	return connect_in("127.0.0.1", (uint16_t)strtoul(port, NULL, 10));
}

static int
probe_far(const char *address)
{
	return connect_in(address, 80);
}

static int
probe_listen(const char *address)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), failed;

	(void)address;
	if (fd < 0)
		return errno;
	failed = bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0 ? errno : 0;
	(void)close(fd);
	return failed;
}

static int
unix_name(const char *path, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(out->sun_path))
		return ENAMETOOLONG;
	memcpy(out->sun_path, path, strlen(path));
	return 0;
}

static int
probe_unix(const char *path)
{
	struct sockaddr_un name;
	int failed = unix_name(path, &name), fd = failed ? -1 : socket(AF_UNIX, SOCK_STREAM, 0);

	if (failed)
		return failed;
	if (fd < 0)
		return errno;
	failed = result_of(connect(fd, (struct sockaddr *)&name, sizeof(name)));
	(void)close(fd);
	return failed;
}

/* A unix socket of one's own in TMPDIR, and a connection to it. */
static int
probe_serve_unix(const char *file)
{
	const char *directory = getenv("TMPDIR");
	struct sockaddr_un name;
	char path[512];
	int fd, failed;

	(void)snprintf(path, sizeof(path), "%s/%s", directory ? directory : "/tmp", file);
	failed = unix_name(path, &name);
	fd = failed ? -1 : socket(AF_UNIX, SOCK_STREAM, 0);
	if (failed)
		return failed;
	if (fd < 0)
		return errno;
	failed = bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 || listen(fd, 1) < 0 ? errno : probe_unix(path);
	(void)close(fd);
	(void)unlink(path);
	return failed;
}

/* Signal 0 is delivered to nobody. */
static int
probe_signal(const char *pid)
{
	return result_of(kill((pid_t)strtol(pid, NULL, 10), 0));
}

static int
probe_variable(const char *name)
{
	return getenv(name) ? 0 : ENOENT;
}

static int
probe_link(const char *path)
{
	int failed = result_of(link(path, "kraft-probe-link"));

	(void)unlink("kraft-probe-link");
	return failed;
}

static int
wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (WIFSIGNALED(status))
		return OTHER + 128 + WTERMSIG(status);
	return WEXITSTATUS(status) ? OTHER + WEXITSTATUS(status) : 0;
}

/* Quietly, and not for ever. */
static int
probe_shell(const char *script)
{
	char *argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL };
	pid_t pid = fork();
	int nothing;

	if (pid < 0)
		return errno;
	if (pid > 0)
		return wait_for(pid);
	nothing = open("/dev/null", O_RDWR);
	for (int fd = 0; nothing >= 0 && fd <= 2; fd++)
		(void)dup2(nothing, fd);
	(void)alarm(SHELL_SECONDS);
	(void)execv("/bin/sh", argv);
	_exit(127);
}

static int
status_of(int fd)
{
	char bytes[64] = "";
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	unsigned status = 0;

	if (poll(&ready, 1, FAR_MS) == 1 && recv(fd, bytes, sizeof(bytes) - 1, 0) > 0)
		(void)sscanf(bytes, "HTTP/1.%*u %u", &status);
	return status == 200 ? 0 : OTHER + (int)status;
}

/* The way out, asked for a host without the token that some have. */
static int
probe_host(const char *host)
{
	const char *proxy = getenv("HTTP_PROXY"), *port = proxy ? strrchr(proxy, ':') : NULL;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char request[512];
	int fd = port ? socket(AF_INET, SOCK_STREAM, 0) : -1, failed;

	if (fd < 0)
		return port ? errno : ENOENT;
	at.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
	(void)snprintf(request, sizeof(request), "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", host, host);
	failed = result_of(connect(fd, (struct sockaddr *)&at, sizeof(at)));
	if (!failed)
		failed = kg_shim_write(fd, request, strlen(request)) ? status_of(fd) : errno;
	(void)close(fd);
	return failed;
}

/* kraft itself, as the worker's command calls it. */
static int
probe_call(const char *verb)
{
	struct kg_answer answer = { .wait_ms = FAR_MS };
	int fd = kg_shim_dial(), failed;

	if (fd < 0)
		return errno;
	failed = kg_shim_post(fd, verb, "", 0);
	if (!failed)
		failed = !kg_shim_read_head(fd, &answer) ? errno : answer.status == 200 ? 0 : OTHER + (int)answer.status;
	(void)close(fd);
	return failed;
}

static const struct {
	const char *verb;
	int (*probe)(const char *argument);
} probes[] = {
	{ "read", probe_read },
	{ "list", probe_list },
	{ "stat", probe_stat },
	{ "make", probe_make },
	{ "open", probe_open },
	{ "connect", probe_connect },
	{ "far", probe_far },
	{ "listen", probe_listen },
	{ "unix", probe_unix },
	{ "serve-unix", probe_serve_unix },
	{ "signal", probe_signal },
	{ "variable", probe_variable },
	{ "link", probe_link },
	{ "shell", probe_shell },
	{ "host", probe_host },
	{ "call", probe_call },
};

static int
run(const char *question)
{
	const char *colon = strchr(question, ':');

	for (size_t i = 0; colon && i < KG_COUNT(probes); i++)
		if (strncmp(question, probes[i].verb, (size_t)(colon - question)) == 0 &&
			probes[i].verb[colon - question] == '\0')
			return probes[i].probe(colon + 1);
	return ENOSYS;
}

int
kg_probe_main(int argc, char **argv)
{
	char line[160];

	(void)signal(SIGPIPE, SIG_IGN);
	for (int i = 3; i < argc; i++) {
		int failed = run(argv[i]);
		int n = failed == 0       ? snprintf(line, sizeof(line), "%d ok\n", i - 3)
			  : failed >= OTHER ? snprintf(line, sizeof(line), "%d status %d\n", i - 3, failed - OTHER)
								: snprintf(line, sizeof(line), "%d %s\n", i - 3, strerror(failed));

		if (!kg_shim_write(1, line, (size_t)n))
			return 1;
	}
	return 0;
}
