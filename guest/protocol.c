#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "guest/protocol.h"

enum { ERRNO_MAX = 4095, SIGNAL_MAX = 64, PROCESSES_MAX = 1 << 22 };

static bool
in_range(int32_t value, int32_t low, int32_t high)
{
	return value >= low && value <= high;
}

static bool
no_values(const struct kg_message *message)
{
	return message->a == 0 && message->b == 0;
}

/* The faults that the init finds; the launcher's own are none of its business. */
static bool
init_fault(const struct kg_message *message)
{
	switch (message->a) {
	case KG_FAULT_PTY:
	case KG_FAULT_ROUTE:
	case KG_FAULT_CWD:
	case KG_FAULT_FILTER:
	case KG_FAULT_INTERNAL:
		return in_range(message->b, 0, ERRNO_MAX);
	default:
		return false;
	}
}

static bool
exit_values(const struct kg_message *message)
{
	if (message->b == 0)
		return in_range(message->a, 0, 255);
	return in_range(message->b, 1, SIGNAL_MAX) && message->a == 128 + message->b;
}

/* Whether the message fits what was said before. */
static bool
may_come(const struct kg_talk *talk, const struct kg_message *message)
{
	switch (message->type) {
	case KG_TERMINAL:
		return !talk->terminal && !talk->started && no_values(message);
	case KG_STARTED:
		return !talk->started && no_values(message);
	case KG_EXEC_FAILED:
		return !talk->started && in_range(message->a, 1, ERRNO_MAX) && message->b == 0;
	case KG_WALL:
		return !talk->started && message->a >= 0 && in_range(message->b, 0, ERRNO_MAX);
	case KG_LAUNCH_FAILED:
		return !talk->started && init_fault(message);
	case KG_STOPPED:
		return talk->started && in_range(message->a, 1, SIGNAL_MAX) && message->b == 0;
	case KG_CONTINUED:
		return talk->started && no_values(message);
	case KG_LEFT:
		return talk->started && !talk->left && in_range(message->a, 1, PROCESSES_MAX) && message->b == 0;
	case KG_LEFT_NAMES:
		return talk->left && talk->pieces < KG_LEFT_PIECES;
	case KG_OOM:
		return talk->started && !talk->oom && message->a >= 1 && message->b == 0;
	case KG_EXIT:
		return talk->started && exit_values(message);
	default:
		return false;
	}
}

bool
kg_talk_take(struct kg_talk *talk, const struct kg_message *message, size_t descriptors)
{
	if (talk->last_word || message->zero != 0 || !may_come(talk, message))
		return false;
	if (descriptors != (message->type == KG_TERMINAL ? 1u : 0u))
		return false;
	switch (message->type) {
	case KG_TERMINAL:
		talk->terminal = true;
		break;
	case KG_STARTED:
		talk->started = true;
		break;
	case KG_LEFT:
		talk->left = true;
		break;
	case KG_LEFT_NAMES:
		talk->pieces++;
		break;
	case KG_OOM:
		talk->oom = true;
		break;
	case KG_STOPPED:
	case KG_CONTINUED:
		break;
	default:
		talk->last_word = message->type;
		talk->a = message->a;
		talk->b = message->b;
	}
	return true;
}

bool
kg_order_valid(const struct kg_message *message)
{
	if (message->zero != 0 || message->b != 0)
		return false;
	if (message->type == KG_KILL)
		return message->a == 0;
	return message->type == KG_SIGNAL && in_range(message->a, 1, SIGNAL_MAX);
}

struct kg_result
kg_result_of(const struct kg_talk *talk, bool killed)
{
	struct kg_result result = { .code = KG_EXIT_REFUSED, .started = talk->started };

	if (talk->last_word == KG_EXIT) {
		result.code = talk->a;
		result.signal = talk->b;
	} else if (talk->last_word == KG_EXEC_FAILED) {
		result.code = kg_exec_exit(talk->a);
	} else if (!talk->last_word && (killed || talk->started)) {
		result.code = 128 + 9;
		result.signal = 9;
	}
	return result;
}

static size_t
put(char *out, size_t at, const char *text)
{
	size_t n = strlen(text);

	memcpy(out + at, text, n);
	return at + n;
}

size_t
kg_result_text(const struct kg_result *result, char out[KG_RESULT_BYTES])
{
	size_t n = kg_decimal((uint64_t)result->code, out);

	out[n++] = ' ';
	n += kg_decimal((uint64_t)result->signal, out + n);
	return put(out, n, result->started ? " started\n" : " not-started\n");
}

struct kg_message
kg_exit_message(int wait_status)
{
	struct kg_message message = { .type = KG_EXIT };

	if (WIFSIGNALED(wait_status)) {
		message.b = WTERMSIG(wait_status);
		message.a = 128 + message.b;
	} else {
		message.a = WEXITSTATUS(wait_status);
	}
	return message;
}

int
kg_exec_exit(int exec_errno)
{
	return exec_errno == EACCES || exec_errno == EPERM ? KG_EXIT_NOT_EXECUTABLE : KG_EXIT_NOT_FOUND;
}

bool
kg_stat_name(const char *stat, size_t n, char name[KG_LEFT_NAME], char *state)
{
	/* "12 (a) b) S ...": a name may hold anything, so the last parenthesis ends it. */
	const char *from = memchr(stat, '(', n), *to = stat + n;
	size_t len;

	while (to > stat && *--to != ')')
		;
	if (!from || to <= from || to + 2 >= stat + n || to[1] != ' ')
		return false;
	len = (size_t)(to - from) - 1;
	if (len >= KG_LEFT_NAME)
		len = KG_LEFT_NAME - 1;
	memcpy(name, from + 1, len);
	name[len] = '\0';
	*state = to[2];
	return true;
}

unsigned
kg_signal_targets(pid_t command, pid_t group)
{
	return group == command ? KG_TO_GROUP : KG_TO_GROUP | KG_TO_COMMAND;
}

bool
kg_number(const char **at, const char *end, uint64_t max, uint64_t *out)
{
	const char *p = *at;
	uint64_t value = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (digit > max || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (p == *at)
		return false;
	*at = p;
	*out = value;
	return true;
}

size_t
kg_decimal(uint64_t value, char *out)
{
	char reversed[20];
	size_t n = 0;

	do {
		reversed[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < n; i++)
		out[i] = reversed[n - 1 - i];
	return n;
}

/* A decimal and the blank behind it. */
static bool
field(const char **at, const char *end, uint64_t max, uint64_t *out)
{
	if (!kg_number(at, end, max, out) || *at == end || **at != ' ')
		return false;
	(*at)++;
	return true;
}

int
kg_verify_next(const char **at, const char *end, struct kg_verify *out)
{
	const char *p = *at, *nul;
	uint64_t flags;

	if (p == end)
		return 0;
	if (!field(&p, end, UINT64_MAX, &out->device) || !field(&p, end, UINT64_MAX, &out->inode) ||
		!field(&p, end, 3, &flags))
		return -1;
	nul = memchr(p, '\0', (size_t)(end - p));
	if (!nul || *p != '/')
		return -1;
	out->read_only = flags & 1;
	out->is_elsewhere = flags & 2;
	out->path = p;
	*at = nul + 1;
	return 1;
}

long
kg_env_count(const char *block, size_t bytes)
{
	const char *end = block + bytes;
	long count = 0;

	while (block < end) {
		const char *nul = memchr(block, '\0', (size_t)(end - block));
		const char *equals = nul ? memchr(block, '=', (size_t)(nul - block)) : NULL;

		if (!equals || equals == block)
			return -1;
		block = nul + 1;
		count++;
	}
	return count;
}

const char *
kg_env_find(char *const *variables, const char *name)
{
	size_t n = strlen(name);

	for (; *variables; variables++)
		if (strncmp(*variables, name, n) == 0 && (*variables)[n] == '=')
			return *variables;
	return NULL;
}

/* Whether the block has a variable whose name is the first n bytes of `variable`. */
static bool
block_has(const char *block, const char *end, const char *variable, size_t n)
{
	for (; block < end; block += strlen(block) + 1)
		if (strncmp(block, variable, n) == 0 && block[n] == '=')
			return true;
	return false;
}

size_t
kg_env_merge(char *const *under, const char *block, size_t bytes, const char **out)
{
	const char *end = block + bytes;
	size_t n = 0;

	for (; *under; under++) {
		const char *equals = strchr(*under, '=');

		if (equals && equals != *under && !block_has(block, end, *under, (size_t)(equals - *under)))
			out[n++] = *under;
	}
	for (; block < end; block += strlen(block) + 1)
		out[n++] = block;
	out[n] = NULL;
	return n;
}

bool
kg_path_next(const char **at, const char *name, char out[KG_PATH_ROOM])
{
	size_t name_bytes = strlen(name) + 1;

	while (*at && name_bytes > 1) {
		const char *from = *at;
		size_t n = strcspn(from, ":");

		*at = from[n] ? from + n + 1 : NULL;
		if (*from != '/' || n + 1 + name_bytes > KG_PATH_ROOM)
			continue;
		memcpy(out, from, n);
		out[n] = '/';
		memcpy(out + n + 1, name, name_bytes);
		return true;
	}
	return false;
}

static void
base64(const char *bytes, size_t n, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t three = 0;

		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < n ? (unsigned char)bytes[i + k] : 0);
		for (int k = 0; k < 4; k++)
			*out++ = i + (size_t)k > n ? '=' : digits[three >> (18 - 6 * k) & 63];
	}
	*out = '\0';
}

bool
kg_proxy_parse(const char *url, struct kg_proxy *out)
{
	static const char scheme[] = "http://", address[] = "@127.0.0.1:";
	const char *name = url + sizeof(scheme) - 1, *at, *end;
	uint64_t port;
	size_t n;

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return false;
	n = strcspn(name, "@/%");
	at = name + n;
	if (n == 0 || n > KG_PROXY_NAME || strncmp(at, address, sizeof(address) - 1) != 0 || !memchr(name, ':', n))
		return false;
	at += sizeof(address) - 1;
	end = at + strlen(at);
	if (!kg_number(&at, end, 65535, &port) || port == 0 || (at != end && strcmp(at, "/") != 0))
		return false;
	base64(name, n, out->basic);
	out->port = (uint16_t)port;
	return true;
}

uint64_t
kg_oom_kills(const char *text, size_t n)
{
	static const char key[] = "oom_kill ";
	const char *end = text + n;

	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		const char *at = text + sizeof(key) - 1;
		uint64_t count;

		if (!line_end)
			break; /* cut off: it could be a part of the number */
		if (at < line_end && memcmp(text, key, sizeof(key) - 1) == 0 &&
			kg_number(&at, line_end, INT64_MAX, &count) && at == line_end)
			return count;
		text = line_end + 1;
	}
	return 0;
}

int
kg_client_patience(const struct kg_client *client, int64_t now)
{
	int64_t left = client->started_at + KG_CLIENT_MS - now;

	if (client->ended)
		left = client->code ? 0 : client->ended_at + KG_CONNECT_MS - now;
	return left > 0 ? (int)left : 0;
}

/* Whether the argument at p is `text`; *next is what follows it. */
static bool
argument_is(const char *p, const char *end, const char *text, const char **next)
{
	size_t n = strlen(text) + 1;

	if ((size_t)(end - p) < n || memcmp(p, text, n) != 0)
		return false;
	*next = p + n;
	return true;
}

static bool
capped_bind(const char *p, const char *end, const char *host, const char *dest, const char **next)
{
	return argument_is(p, end, "--bind", &p) && argument_is(p, end, host, &p) &&
		   argument_is(p, end, dest, next);
}

static size_t
put_tmpfs(char *out, size_t at, const char *dest, uint64_t size)
{
	static const char head[] = "--perms\0"
							   "1777\0"
							   "--size"; /* its final NUL belongs to it */

	memcpy(out + at, head, sizeof(head));
	at += sizeof(head);
	at += kg_decimal(size, out + at);
	out[at++] = '\0';
	at = put(out, at, "--tmpfs") + 1;
	out[at - 1] = '\0';
	at = put(out, at, dest) + 1;
	out[at - 1] = '\0';
	return at;
}

size_t
kg_args_uncap(const char *args, size_t bytes, const char *host, const char *dest, uint64_t size, char *out)
{
	const char *p = args, *end = args + bytes, *next;
	size_t at = 0, found = 0;

	while (p < end) {
		if (capped_bind(p, end, host, dest, &next)) {
			if (found++)
				return 0;
			at = put_tmpfs(out, at, dest, size);
		} else {
			next = memchr(p, '\0', (size_t)(end - p));
			next = next ? next + 1 : end;
			memcpy(out + at, p, (size_t)(next - p));
			at += (size_t)(next - p);
		}
		p = next;
	}
	return found == 1 ? at : 0;
}
