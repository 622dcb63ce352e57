/*
 * A session's way out on the host's loopback, as macOS has it (MAC-06), with nothing else of a session around it: kraft's own
 * broker and the real kraft-egress, on Linux.
 *
 *     door PROGRAM PID HOST...    PROGRAM kraft-egress; PID: that process and its descendants are the session's, 0: it cannot be told
 *
 * Prints the proxy's URL, then what kraft is told, a line each: "strangers N", "refused HOST", "call ROUTE", "lost". Ends with its
 * standard input. The person's own proxies are in its environment.
 *
 * With DOOR_MANAGED, PROGRAM is kraft-egress-tls, and the file of that name is read at each of its starts: the roots' path, the path
 * where the session's authority is written to, then a rule on each line, between tabs: host, port, header, format, sentinel,
 * variable, source, value ("-": none). Then why something was refused is printed too, "reason TEXT", and "echoed HOST VARIABLE".
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "egress/egress.h"
#include "os/sys.h"

enum { HOLDERS = 64, DEPTH = 64, RULE_FIELDS = 8, RULES_BYTES = 1 << 20 };

static struct kr_egress *egress;
static pid_t session;

/* What the file of rules said last. */
static const char *rules_file, *authority_file;
static struct kr_buf rules_text = { .max = RULES_BYTES }, roots = { .max = KR_MANAGED_ROOTS_BYTES };
static struct kr_managed_rule rules[KR_MANAGED_RULES + 1];

/* 0: there is none. */
static pid_t
parent_of(pid_t pid)
{
	char name[64], line[512];
	const char *at;
	FILE *file;
	size_t n;

	snprintf(name, sizeof(name), "/proc/%ld/stat", (long)pid);
	file = fopen(name, "re");
	n = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
	line[n] = '\0';
	if (file)
		(void)fclose(file); /* only read */
	at = strrchr(line, ')');
	return at ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

static enum kr_peer
of(void *context, pid_t pid)
{
	(void)context;
	for (int i = 0; i < DEPTH && pid > 0; i++, pid = parent_of(pid))
		if (pid == session)
			return KR_PEER_SESSION;
	return KR_PEER_OTHER;
}

static enum kr_peer
whose(void *context, uint16_t client_port)
{
	pid_t holders[HOLDERS];

	return kr_peer_judge(
		holders, kr_socket_holders(client_port, kr_egress_door(egress)->port, holders, HOLDERS), of, context);
}

static void
on_strangers(void *context, unsigned n)
{
	(void)context;
	printf("strangers %u\n", n);
}

static void
on_refused(void *context, const struct kr_refusal *refusal)
{
	(void)context;
	printf("refused %s\n", refusal->verdict->target.host);
	if (rules_file)
		printf("reason %s\n", refusal->verdict->reason);
}

static void
on_echoed(void *context, const char *host, const char *variable)
{
	(void)context;
	printf("echoed %s %s\n", host, variable);
}

static void
on_call(void *context, const struct kr_call *call, struct kr_call_answer *answer)
{
	(void)context;
	printf("call %s\n", call->route);
	answer->status = 200;
	kr_buf_adds(&answer->body, "{}");
}

static char *
next_part(char **rest, const char *end)
{
	char *part = strsep(rest, end);

	return part ? part : rules_text.data + rules_text.len;
}

static struct kr_managed_rule
rule_of(char *line)
{
	const char *field[RULE_FIELDS];

	for (size_t i = 0; i < RULE_FIELDS; i++)
		field[i] = next_part(&line, "\t");
	return (struct kr_managed_rule){ field[0], (uint16_t)strtoul(field[1], NULL, 10), field[2], field[3], field[4], field[5], field[6],
		strcmp(field[7], "-") == 0 ? NULL : field[7] };
}

static bool
managed(void *context, struct kr_managed *out, struct kr_error *err)
{
	const char *roots_file;
	char *rest;

	(void)context;
	kr_buf_fini(&rules_text);
	kr_buf_fini(&roots);
	if (kr_file_read_at(AT_FDCWD, rules_file, &rules_text, err) < 0)
		return false;
	rest = rules_text.data;
	roots_file = next_part(&rest, "\n");
	authority_file = next_part(&rest, "\n");
	out->rules = rules;
	for (out->rule_count = 0; rest && *rest && out->rule_count <= KR_MANAGED_RULES; out->rule_count++)
		rules[out->rule_count] = rule_of(next_part(&rest, "\n"));
	if (kr_file_read_at(AT_FDCWD, roots_file, &roots, err) < 0)
		return false;
	out->roots = roots.data;
	out->roots_bytes = roots.len;
	return true;
}

static bool
write_authority(struct kr_error *err)
{
	const char *pem = kr_egress_authority(egress);

	return !pem || kr_file_write_at(AT_FDCWD, authority_file, pem, strlen(pem), 0644, err) == 0;
}

static void
on_lost(void *context, bool restarted)
{
	(void)context;
	printf("lost%s\n", restarted ? "" : " for good");
}

static void
serve(void)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = kr_egress_fd(egress), .events = POLLIN } };
	char bytes[64];

	while (poll(fds, 2, -1) >= 0) {
		if (fds[0].revents && read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0)
			return;
		if (fds[1].revents)
			kr_egress_step(egress);
	}
}

int
main(int argc, char **argv)
{
	struct kr_host_list hosts = { 0 };
	struct kr_error err = { 0 };
	struct kr_egress_want want = { .program = argc > 3 ? argv[1] : "", .broker = { .hosts = &hosts, .phase = KR_PHASE_RUNTIME,
			.environment = (const char *const *)environ, .on_refused = on_refused, .on_call = on_call, .on_strangers = on_strangers,
			.on_echoed = on_echoed }, .on_lost = on_lost, .is_on_loopback = true };
	struct kr_arena arena = { 0 };

	if (argc < 4)
		return 2;
	session = (pid_t)strtol(argv[2], NULL, 10);
	want.broker.whose = session ? whose : NULL;
	rules_file = getenv("DOOR_MANAGED");
	want.managed = rules_file ? managed : NULL;
	for (int i = 3; i < argc; i++)
		kr_strs_add(&arena, &hosts.allow, argv[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (kr_egress_open(&want, &egress, &err) < 0 || kr_egress_serve(egress, &err) < 0 || !write_authority(&err)) {
		fprintf(stderr, "door: %s\n", err.message);
		return 1;
	}
	printf("http://kraft:%s@127.0.0.1:%u\n", kr_egress_door(egress)->token, kr_egress_door(egress)->port);
	serve();
	kr_egress_end(egress);
	kr_arena_fini(&arena);
	return 0;
}
