/*
 * The worker's `kraft`: a few verbs, each one call to kraft over the session's channel (CHN-01, CHN-02,
 * CHN-05). Which session that is, the channel says; there is nothing to log in with and nothing that could
 * name another session.
 *
 * It speaks HTTP to the loopback port of the session's way out and nowhere else: no variable, no file and no
 * other program is looked at, so nothing that a worker's environment holds can steer it (CHAN-10). Memory is
 * one mapping for the form. On macOS, where that port is the host's and wants a token, one variable says both; who
 * changes it reaches nobody.
 *
 * Exit status: 0 done; 1 kraft could not be reached, refused or failed, and says so on standard error; 2 a
 * call that is written wrong, or none that there is inside a sandbox.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/shim.h"

enum { USAGE = 2, FAILED = 1 };
enum {
	ANSWER_MS = 40000,   /* without a byte; kraft takes 30 seconds at most */
	CHUNK_BYTES = 16384, /* of its body */
	WORDS_MAX = 2,
	OPTIONS_MAX = 2,
	FIELDS_MAX = 8,
};

/* ---- what there is ---- */

struct option {
	const char *name, *field;
	const char *fixed; /* the value of one that takes none; NULL: the next argument is its value */
	bool needed;
};

struct command {
	const char *group, *name, *verb, *usage;
	const char *words[WORDS_MAX]; /* fields, in order */
	int words_needed;
	struct option options[OPTIONS_MAX];
};

static const struct command commands[] = {
	{ "item", "progress", "progress", "kraft item progress K [ID]", { "task", "id" }, 1, { { 0 } } },
	{ "item", "reply", "reply", "kraft item reply THREAD --body TEXT [--claim fixed|answered|should_fix]",
		{ "thread" }, 1, { { "--body", "body", NULL, true }, { "--claim", "claim", NULL, false } } },
	{ "item", "retry", "retry", "kraft item retry [ID] [--steer TEXT]", { "id" }, 0,
		{ { "--steer", "steer", NULL, false } } },
	{ "view", "show", "show", "kraft view show [ID]", { "id" }, 0, { { 0 } } },
	{ "view", "threads", "threads", "kraft view threads [ID] [--open]", { "id" }, 0,
		{ { "--open", "open", "1", false } } },
	{ "view", "events", "events", "kraft view events [ID] [--after N] [--type TYPE]", { "id" }, 0,
		{ { "--after", "after", NULL, false }, { "--type", "type", NULL, false } } },
};

/* One call as the command line says it: names and values of the form. */
struct call {
	const struct command *command;
	struct {
		const char *name, *value;
	} fields[FIELDS_MAX];
	size_t n;
	int words;
};

static const char *
value_of(const struct call *call, const char *name)
{
	for (size_t i = 0; i < call->n; i++)
		if (strcmp(call->fields[i].name, name) == 0)
			return call->fields[i].value;
	return NULL;
}

static void
set(struct call *call, const char *name, const char *value)
{
	for (size_t i = 0; i < call->n; i++)
		if (strcmp(call->fields[i].name, name) == 0) {
			call->fields[i].value = value;
			return;
		}
	call->fields[call->n].name = name;
	call->fields[call->n++].value = value;
}

/* ---- the command line ---- */

bool
kg_shim_write(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

static const char hook_usage[] = "       kraft admin permission-hook codex|cursor\n";

static int
print_usage(int fd, int status)
{
	bool good = true;

	for (size_t i = 0; i < KG_COUNT(commands); i++) {
		good = good && kg_shim_write(fd, i ? "       " : "usage: ", 7) &&
			   kg_shim_write(fd, commands[i].usage, strlen(commands[i].usage)) && kg_shim_write(fd, "\n", 1);
	}
	good = good && kg_shim_write(fd, hook_usage, sizeof(hook_usage) - 1);
	return good ? status : FAILED;
}

static int
say_usage(const struct command *command, const char *what, const char *which)
{
	kg_say(
		2, which ? "'" : "", which ? which : "", which ? "' " : "", what, "; usage: ", command->usage, NULL);
	return USAGE;
}

static int
not_here(const char *group, const char *name)
{
	kg_say(2, "'", group, name ? " " : "", name ? name : "", "' is not available in a sandbox", NULL);
	return USAGE;
}

static const struct command *
find_command(const char *group, const char *name)
{
	for (size_t i = 0; i < KG_COUNT(commands); i++)
		if (strcmp(commands[i].group, group) == 0 && strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* argv[*at] begins with '-'. 0, or the exit status. */
static int
take_option(struct call *call, char **argv, int argc, int *at)
{
	const char *word = argv[*at];
	size_t name_n = strcspn(word, "=");
	bool attached = word[name_n] == '=';

	if (strcmp(word, "--json") == 0)
		return 0; /* what is printed is JSON anyway */
	for (int i = 0; i < OPTIONS_MAX && call->command->options[i].name; i++) {
		const struct option *option = &call->command->options[i];

		if (strlen(option->name) != name_n || memcmp(option->name, word, name_n) != 0)
			continue;
		if (option->fixed && attached)
			return say_usage(call->command, "takes no value", option->name);
		if (!option->fixed && !attached && *at + 1 == argc)
			return say_usage(call->command, "needs a value", option->name);
		if (value_of(call, option->field))
			return say_usage(call->command, "is there twice", option->name);
		set(call, option->field, option->fixed ? option->fixed : attached ? word + name_n + 1 : argv[++*at]);
		return 0;
	}
	return not_here(word, NULL);
}

static int
take_word(struct call *call, const char *word)
{
	if (call->words == WORDS_MAX || !call->command->words[call->words])
		return say_usage(call->command, "is one word too many", word);
	set(call, call->command->words[call->words++], word);
	return 0;
}

static bool
is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* What can be seen without asking kraft. */
static int
check(const struct call *call)
{
	const char *claim = value_of(call, "claim"), *after = value_of(call, "after"),
			   *task = value_of(call, "task");
	const struct option *options = call->command->options;

	if (call->words < call->command->words_needed)
		return say_usage(call->command, "something is missing", NULL);
	for (int i = 0; i < OPTIONS_MAX && options[i].name; i++)
		if (options[i].needed && !value_of(call, options[i].field))
			return say_usage(call->command, "is missing", options[i].name);
	if (task && !is_number(task))
		return say_usage(call->command, "is not a whole number", task);
	if (after && !is_number(after))
		return say_usage(call->command, "is not the number of an event", after);
	if (claim && strcmp(claim, "fixed") != 0 && strcmp(claim, "answered") != 0 &&
		strcmp(claim, "should_fix") != 0)
		return say_usage(call->command, "is no claim", claim);
	return 0;
}

/* 0 with the call filled in, or the exit status. */
static int
parse(struct call *call, int argc, char **argv)
{
	bool options = true;
	int status = 0;

	if (argc < 3)
		return argc < 2 ? print_usage(2, USAGE) : not_here(argv[1], NULL);
	call->command = find_command(argv[1], argv[2]);
	if (!call->command)
		return not_here(argv[1], argv[2]);
	for (int at = 3; at < argc && !status; at++) {
		if (options && strcmp(argv[at], "--") == 0)
			options = false;
		else if (options && argv[at][0] == '-' && argv[at][1])
			status = take_option(call, argv, argc, &at);
		else
			status = take_word(call, argv[at]);
	}
	return status ? status : check(call);
}

/* ---- the request ---- */

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		   (c && strchr("-._~", c));
}

char *
kg_shim_escape(char *to, const char *bytes, size_t n)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < n; i++) {
		unsigned char byte = (unsigned char)bytes[i];

		if (is_plain(bytes[i])) {
			*to++ = bytes[i];
			continue;
		}
		*to++ = '%';
		*to++ = digits[byte >> 4];
		*to++ = digits[byte & 15];
	}
	return to;
}

/* Room for a form of these fields, three bytes for each at the worst. */
static size_t
form_room(const struct call *call)
{
	size_t room = 64; /* for an `after` that comes in later */

	for (size_t i = 0; i < call->n; i++)
		room += strlen(call->fields[i].name) + 3 * strlen(call->fields[i].value) + 2;
	return room;
}

static size_t
write_form(const struct call *call, char *form)
{
	char *to = form;

	for (size_t i = 0; i < call->n; i++) {
		size_t n = strlen(call->fields[i].name);

		if (i)
			*to++ = '&';
		memcpy(to, call->fields[i].name, n);
		to += n;
		*to++ = '=';
		to = kg_shim_escape(to, call->fields[i].value, strlen(call->fields[i].value));
	}
	return (size_t)(to - form);
}

static char *
add(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

#ifdef MSG_MORE
#define MORE MSG_MORE
#else
#define MORE 0
#endif

/* port 0: the way out is where it always is. Not by name from elsewhere, and of this call alone. */
static struct kg_proxy proxy;

int
kg_shim_post(int fd, const char *verb, const char *form, size_t n)
{
	char head[512], *to = head;

	to = add(to, "POST http://kraft/w/");
	to = add(to, verb);
	to = add(to,
		" HTTP/1.1\r\nHost: kraft\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ");
	to += kg_decimal(n, to);
	if (proxy.port) {
		to = add(to, "\r\nProxy-Authorization: Basic ");
		to = add(to, proxy.basic);
	}
	to = add(to, "\r\nConnection: close\r\n\r\n");
	/* What kraft says to a part of it is worth reading: a refused body is not an error here. */
	if (send(fd, head, (size_t)(to - head), KG_NO_SIGNAL | (n ? MORE : 0)) < 0)
		return errno;
	while (n) {
		ssize_t sent = send(fd, form, n, KG_NO_SIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EPIPE || errno == ECONNRESET ? 0 : errno;
		form += sent;
		n -= (size_t)sent;
	}
	return 0;
}

int
kg_shim_dial(void)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(proxy.port ? proxy.port : KG_PROXY_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0); /* we execute nothing */

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		int failed = errno;

		close(fd);
		errno = failed;
		return -1;
	}
	return fd;
}

/* ---- the answer ---- */

/* As read; a time-out is an error. */
static ssize_t
read_some(int fd, int wait_ms, char *to, size_t n)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	ssize_t got;
	int count;

	do
		count = poll(&ready, 1, wait_ms);
	while (count < 0 && errno == EINTR);
	if (count == 0)
		errno = ETIMEDOUT;
	if (count <= 0)
		return -1;
	do
		got = recv(fd, to, n, 0);
	while (got < 0 && errno == EINTR);
	return got;
}

/* "Name: DIGITS" of a line that begins at `at`. */
static bool
read_field(const char *at, const char *end, const char *name, uint64_t *out)
{
	size_t n = strlen(name);

	if ((size_t)(end - at) <= n || strncasecmp(at, name, n) != 0)
		return false;
	for (at += n; at < end && *at == ' '; at++)
		;
	return kg_number(&at, end, INT64_MAX, out) && at == end;
}

static bool
read_fields(struct kg_answer *answer)
{
	const char *at = answer->head, *end = at + answer->head_n - 2, *line_end;
	const char *number = at + 9;

	if (answer->head_n < 16 || memcmp(at, "HTTP/1.", 7) != 0 ||
		!kg_number(&number, at + 12, 599, &answer->status))
		return false;
	for (; at < end; at = line_end + 2) {
		line_end = memmem(at, (size_t)(end + 2 - at), "\r\n", 2);
		if (!line_end)
			return false;
		answer->has_length |= read_field(at, line_end, "content-length:", &answer->length);
		(void)read_field(at, line_end, "kraft-next:", &answer->next);
	}
	return answer->has_length && answer->status >= 200;
}

bool
kg_shim_read_head(int fd, struct kg_answer *answer)
{
	while (answer->used < sizeof(answer->head)) {
		ssize_t got =
			read_some(fd, answer->wait_ms, answer->head + answer->used, sizeof(answer->head) - answer->used);
		const char *end;

		if (got < 0)
			return false;
		errno = ECONNRESET;
		if (got == 0)
			return false;
		answer->used += (size_t)got;
		end = memmem(answer->head, answer->used, "\r\n\r\n", 4);
		if (end) {
			answer->head_n = (size_t)(end - answer->head) + 4;
			errno = EBADMSG;
			return read_fields(answer);
		}
	}
	errno = EBADMSG;
	return false;
}

bool
kg_shim_copy_body(int fd, const struct kg_answer *answer, int to)
{
	size_t here = answer->used - answer->head_n;
	uint64_t left = answer->length;
	char chunk[CHUNK_BYTES];

	here = here < left ? here : (size_t)left;
	if (!kg_shim_write(to, answer->head + answer->head_n, here))
		return false;
	for (left -= here; left;) {
		ssize_t got =
			read_some(fd, answer->wait_ms, chunk, left < sizeof(chunk) ? (size_t)left : sizeof(chunk));

		if (got == 0)
			errno = ECONNRESET;
		if (got <= 0 || !kg_shim_write(to, chunk, (size_t)got))
			return false;
		left -= (uint64_t)got;
	}
	return true;
}

/* ---- a call ---- */

static int
fail(int fd, const char *what)
{
	int failed = errno;

	if (fd >= 0)
		close(fd);
	kg_say(2, what, ": ", kg_errno_text(failed), NULL);
	return FAILED;
}

/* *next: where more of it begins; 0: that was all. */
static int
call_once(const struct call *call, char *form, uint64_t *next)
{
	struct kg_answer answer = { .wait_ms = ANSWER_MS };
	int fd = kg_shim_dial();
	int failed;

	*next = 0;
	if (fd < 0)
		return fail(fd, "kraft cannot be reached");
	failed = kg_shim_post(fd, call->command->verb, form, write_form(call, form));
	errno = failed;
	if (failed || !kg_shim_read_head(fd, &answer))
		return fail(fd, "kraft did not answer");
	if (!kg_shim_copy_body(fd, &answer, answer.status < 300 ? 1 : 2))
		return fail(fd, "kraft's answer broke off");
	close(fd);
	if (answer.status >= 300)
		return FAILED;
	*next = answer.next;
	return 0;
}

/* An answer that is long comes in parts: the next one begins behind the last event of this one. */
static int
call_all(struct call *call)
{
	size_t room = form_room(call);
	char *form = kg_map(room), after[24];
	uint64_t next = 0, last;
	int status = FAILED;

	if (!form) {
		kg_say(2, "out of memory", NULL);
		return FAILED;
	}
	do {
		last = next;
		status = call_once(call, form, &next);
		after[kg_decimal(next, after)] = '\0';
		set(call, "after", after);
	} while (status == 0 && next > last);
	kg_unmap(form, room);
	return status;
}

#ifdef KG_SEATBELT
static void
find_proxy(void)
{
	const char *url = getenv("HTTP_PROXY");

	(void)signal(SIGPIPE, SIG_IGN); /* see KG_NO_SIGNAL */
	if (url && !kg_proxy_parse(url, &proxy))
		proxy.port = 0;
}
#endif

int
kg_shim_main(int argc, char **argv)
{
	static const char version[] = "kraft " KRAFT_VERSION "\n";
	struct call call = { 0 };
	int status;

#ifdef KG_SEATBELT
	find_proxy();
#endif
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return kg_shim_write(1, version, sizeof(version) - 1) ? 0 : FAILED;
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
		return print_usage(1, 0);
	if (argc >= 3 && strcmp(argv[1], "admin") == 0 && strcmp(argv[2], "permission-hook") == 0)
		return kg_hook_main(argc, argv);
	if (argc >= 3 && strcmp(argv[1], "admin") == 0 && strcmp(argv[2], "probe-walls") == 0)
		return kg_probe_main(argc, argv);
#ifndef __APPLE__ /* its proof listens on a port inside, and there nothing may */
	if (argc >= 3 && strcmp(argv[1], "admin") == 0 && strcmp(argv[2], "prove-hook") == 0)
		return kg_prove_main(argc, argv);
#endif
	status = parse(&call, argc, argv);
	return status ? status : call_all(&call);
}
