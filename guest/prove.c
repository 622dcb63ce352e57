/*
 * kraft admin prove-hook codex list|call -- PROGRAM WORD...: kraft's own questions to an agent's program
 * before its first launch, in a short run inside (CHN-08). It is no worker's command and tells a worker
 * nothing; the judge of what comes out is kraft (src/run/gate.c).
 *
 *   list   passes our stdin on, then what the program prints, up to the line that answers the last question:
 *          codex's app server leaves when its input ends, also before it has answered
 *   call   plays the model, on 127.0.0.1:KG_PROOF_PORT: it asks for one command that makes a file. Nobody
 *          answers the program's hook in a short run, so a hook that works denies
 *
 * Exit status of list: 0 it answered, 1 it did not. Of call:
 *   0  denied: there is no file, and the program told its model so in the hook's own words
 *   1  the command ran
 *   2  neither can be told: the program ended too soon, hung, told something else, or did not start
 *
 * The program is the host's own and honest, but of any version: every wait has its deadline, every text its
 * bound, and what is not understood counts as 2.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest/shim.h"

enum {
	PROVE_MS = 45000, /* for one of the two, on a machine that is busy; kraft gives it a minute */
	LOOK_MS = 20,     /* between looks at whether the program has ended */
	QUESTION_BYTES = 8 << 10,
	ANSWER_BYTES = 256 << 10,
	REQUEST_BYTES = 8 << 20, /* what an agent tells its model: its instructions and all of its tools */
};
enum { ANSWERED = 0, NOT_ANSWERED = 1 };
enum { DENIED = 0, RAN = 1, UNKNOWN = 2 };

#define PROOF_FILE "/tmp/kraft-proof"
#define CALL_ID "kraft_proof"

static int64_t
now_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* As read(2), but 0 also when the time is over or nothing can be read any more. */
static ssize_t
read_until(int fd, char *to, size_t n, int64_t until)
{
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = until - now_ms();
		int count = left > 0 ? poll(&ready, 1, (int)left) : 0;
		ssize_t got = count > 0 ? read(fd, to, n) : count;

		if (got >= 0)
			return got;
		if (errno != EINTR)
			return 0;
	}
}

/* In a group of its own, so that what it starts ends with it. -1: no process. */
static pid_t
start(char **argv, int in, int out)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)setpgid(0, 0);
	if (dup2(in, 0) == 0 && dup2(out, 1) == 1)
		errno = kg_exec(argv[0], argv, environ); /* in a container it is a name; before argv stands "--" */
	kg_say(2, "cannot start '", argv[0], "': ", kg_errno_text(errno), NULL);
	_exit(127);
}

static void
end(pid_t pid)
{
	(void)kill(-pid, SIGKILL);
	(void)kill(pid, SIGKILL); /* it may not have come to its group yet */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- list ---- */

/* Whether a line answers the question with the id 2, the last that kraft asks: a member `id` somewhere, which
 * is enough to stop at. What the answer is, kraft judges. */
static bool
is_answer(const char *at, size_t n)
{
	static const char name[] = "\"id\"";
	const char *end = at + n;

	while ((at = memmem(at, (size_t)(end - at), name, sizeof(name) - 1))) {
		at += sizeof(name) - 1;
		while (at < end && (*at == ' ' || *at == ':'))
			at++;
		if (end - at >= 2 && at[0] == '2' && (at[1] < '0' || at[1] > '9'))
			return true;
	}
	return false;
}

static bool
has_answer(const char *text, size_t n)
{
	const char *stop;

	for (; (stop = memchr(text, '\n', n)); n -= (size_t)(stop + 1 - text), text = stop + 1)
		if (is_answer(text, (size_t)(stop - text)))
			return true;
	return false;
}

static int
copy_answers(int from, char *text)
{
	const int64_t until = now_ms() + PROVE_MS;
	size_t used = 0;
	ssize_t got;

	while (used < ANSWER_BYTES && (got = read_until(from, text + used, ANSWER_BYTES - used, until)) > 0) {
		used += (size_t)got;
		if (has_answer(text, used))
			return kg_shim_write(1, text, used) ? ANSWERED : NOT_ANSWERED;
	}
	(void)kg_shim_write(1, text, used); /* what it said instead is worth showing */
	return NOT_ANSWERED;
}

static int
list(char **argv)
{
	char question[QUESTION_BYTES], *text = kg_map(ANSWER_BYTES);
	size_t n = 0;
	int in[2], out[2], status;
	ssize_t got;
	pid_t pid;

	while (n < sizeof(question) && (got = read(0, question + n, sizeof(question) - n)) > 0)
		n += (size_t)got;
	if (!text || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return NOT_ANSWERED;
	pid = start(argv, in[0], out[1]);
	(void)close(in[0]);
	(void)close(out[1]);
	if (pid < 0)
		return NOT_ANSWERED;
	(void)kg_shim_write(
		in[1], question, n); /* less than a pipe holds; who does not read it does not answer */
	status = copy_answers(out[0], text);
	end(pid);
	return status;
}

/* ---- call: the model ---- */

/* One answer of the model, streamed. */
static const char call_answer[] =
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
	"event: response.created\n"
	"data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_kraft\"}}\n\n"
	"event: response.output_item.done\n"
	"data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\","
	"\"id\":\"fc_kraft\",\"call_id\":\"" CALL_ID "\",\"name\":\"exec_command\","
	"\"arguments\":\"{\\\"cmd\\\":\\\": >" PROOF_FILE "\\\"}\"}}\n\n"
	"event: response.completed\n"
	"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_kraft\","
	"\"usage\":{\"input_tokens\":1,\"output_tokens\":1,\"total_tokens\":2}}}\n\n";
/* An attempt at a WebSocket is answered with what makes codex go on without one. */
static const char other_answer[] =
	"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/* The length of the body; 0 without one. */
static uint64_t
body_length(const char *head, size_t n)
{
	static const char name[] = "\r\ncontent-length:";
	uint64_t length = 0;

	for (const char *at = head; (at = memchr(at, '\r', n - (size_t)(at - head))); at++) {
		if ((size_t)(head + n - at) <= sizeof(name) || strncasecmp(at, name, sizeof(name) - 1) != 0)
			continue;
		at += sizeof(name) - 1;
		at += *at == ' ';
		if (kg_number(&at, head + n, REQUEST_BYTES, &length))
			return length;
		return 0;
	}
	return 0;
}

/* A whole request, or as much as came and fits. *head: what lies before its body; 0: not even that is there.
 */
static size_t
read_request(int fd, char *to, size_t *head, int64_t until)
{
	size_t used = 0, whole = REQUEST_BYTES;
	ssize_t got;

	*head = 0;
	while (used < whole && (got = read_until(fd, to + used, whole - used, until)) > 0) {
		const char *stop;

		used += (size_t)got;
		stop = *head ? NULL : memmem(to, used, "\r\n\r\n", 4);
		if (stop) {
			*head = (size_t)(stop - to) + 4;
			whole = *head + body_length(to, *head);
			whole = whole < REQUEST_BYTES ? whole : REQUEST_BYTES;
		}
	}
	return used;
}

/* What a request of the program's says of the call. */
enum told { NOTHING, DENIAL, OTHER };

static enum told
read_told(const char *body, size_t n)
{
	static const char output[] = "function_call_output";

	if (!memmem(body, n, output, sizeof(output) - 1) || !memmem(body, n, CALL_ID, sizeof(CALL_ID) - 1))
		return NOTHING;
	return memmem(body, n, KG_DENIAL_REASON, sizeof(KG_DENIAL_REASON) - 1) ? DENIAL : OTHER;
}

static enum told
serve(int listener, char *request, int64_t until)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	const char *answer = other_answer;
	enum told told = NOTHING;
	size_t head, n;

	if (fd < 0)
		return NOTHING;
	n = read_request(fd, request, &head, until);
	if (head && n > head && memcmp(request, "POST ", 5) == 0) {
		told = read_told(request + head, n - head);
		answer = call_answer;
	}
	if (told == NOTHING)
		(void)kg_shim_write(fd, answer, strlen(answer));
	(void)close(fd);
	return told;
}

/* Bound, and listening before the program starts; -1 with errno. */
static int
listen_here(void)
{
	const struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_port = htons(KG_PROOF_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, (const struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, 8) < 0)
		return -1;
	return fd;
}

/* ---- call: the judgement ---- */

/* Until the program has told how the call came out, or has ended, or is late. What it would do behind that
 * (it reports to its makers, and waits for them) is not waited for. */
static enum told
play(int listener, pid_t pid, char *request)
{
	const int64_t until = now_ms() + PROVE_MS;
	enum told told = NOTHING;

	while (told == NOTHING && now_ms() < until) {
		struct pollfd ready = { .fd = listener, .events = POLLIN };

		if (poll(&ready, 1, LOOK_MS) == 1)
			told = serve(listener, request, until);
		else if (waitpid(pid, NULL, WNOHANG) == pid)
			return NOTHING;
	}
	end(pid);
	return told;
}

static int
call(char **argv)
{
	char *request = kg_map(REQUEST_BYTES);
	int listener = listen_here();
	enum told told;
	pid_t pid;

	if (!request || listener < 0) {
		kg_say(2, "cannot play the model: ", kg_errno_text(errno), NULL);
		return UNKNOWN;
	}
	(void)unlink(PROOF_FILE);
	if (access(PROOF_FILE, F_OK) == 0)
		return UNKNOWN;
	pid = start(argv, 0, 2); /* what it prints is for the log */
	if (pid < 0)
		return UNKNOWN;
	told = play(listener, pid, request);
	if (access(PROOF_FILE, F_OK) == 0)
		return RAN;
	return told == DENIAL ? DENIED : UNKNOWN;
}

int
kg_prove_main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc > 6 && strcmp(argv[3], "codex") == 0 && strcmp(argv[5], "--") == 0) {
		if (strcmp(argv[4], "list") == 0)
			return list(argv + 6);
		if (strcmp(argv[4], "call") == 0)
			return call(argv + 6);
	}
	kg_say(2, "prove-hook is kraft's own", NULL);
	return UNKNOWN;
}
