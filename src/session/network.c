#include "session/network.h"

#include <limits.h>

#include <jansson.h>
#include <unistd.h>

#include "os/host.h"
#include "os/sys.h"
#include "session/facts.h"
#include "store/store.h"

struct kr_session_network {
	struct kr_arena *arena;
	struct kr_session_network_want want;
	struct kr_egress *egress;
	struct kr_store *store; /* opened by the first event: most sessions have none */
	struct kr_session_refused refused[KR_REFUSED_HOSTS_MAX];
	struct kr_session_network_notes notes;
	struct kr_calls calls;
	struct kr_managed_rule *rules; /* the values are borrowed from the host's environment */
	uint64_t started; /* this process: no process of the session is older */
};

/* ---- events ---- */

static struct kr_store *
open_store(void *context, struct kr_error *err)
{
	struct kr_session_network *n = context;

	if (!n->store && kr_store_open(n->want.host->places.run_dir, KR_STORE_WRITE, &n->store, err) < 0)
		return NULL;
	return n->store;
}

static int
record(struct kr_session_network *n, const char *type, const char *data, struct kr_error *err)
{
	struct kr_event event = { .ms = kr_now_ms(),
		.type = type,
		.item = n->want.item,
		.session = n->want.session,
		.data = data };
	struct kr_store *store = open_store(n, err);

	return store ? kr_store_add_event(store, &event, err) : -1;
}

/* Takes data over. An event that cannot be recorded opens no host: it is told at the end. */
static void
note_event(struct kr_session_network *n, const char *type, char *data)
{
	struct kr_error err = { 0 };

	if (record(n, type, data, &err) < 0 && n->notes.record.code == KR_E_NONE)
		n->notes.record = err;
	free(data);
}

static void
on_refused(void *context, const struct kr_refusal *refusal)
{
	struct kr_session_network *n = context;
	const struct kr_verdict *v = refusal->verdict;

	note_event(n, "sandbox_egress_refused", kr_refusal_json(refusal, n->want.session));
	if (refusal->route && !refusal->suppressed) {
		n->notes.calls_refused++;
		return;
	}
	if (refusal->suppressed || n->notes.refused_count == KR_COUNT(n->refused)) {
		n->notes.more = true;
		return;
	}
	n->refused[n->notes.refused_count++] = (struct kr_session_refused){
		.reason = kr_arena_dup(n->arena, v->reason),
		.grant = v->grant[0] ? kr_arena_dup(n->arena, v->grant) : NULL,
	};
}

static void
on_lost(void *context, bool restarted)
{
	struct kr_session_network *n = context;
	json_t *data = json_pack("{s:s, s:s, s:b}", "session_id", n->want.session, "reason",
		"the session's proxy ended before its time", "restarted", restarted);

	n->notes.lost++;
	n->notes.is_out = !restarted;
	note_event(n, "sandbox_egress_lost", json_dumps(data, JSON_COMPACT));
	json_decref(data);
}

static void
on_echoed(void *context, const char *host, const char *variable)
{
	struct kr_session_network *n = context;
	json_t *data = json_pack("{s:s, s:s, s:s}", "session_id", n->want.session, "host", host, "variable", variable);

	n->notes.echoed++;
	note_event(n, "sandbox_credential_echoed", json_dumps(data, JSON_COMPACT));
	json_decref(data);
}

/* ---- secrets ---- */

_Static_assert((int)KR_PLAN_SECRET_BYTES == (int)KR_MANAGED_VALUE_BYTES && (int)KR_PLAN_RULES == (int)KR_MANAGED_RULES, "one bound");

/* At each start of a kraft-egress. A value that is gone meanwhile costs its requests, not the session. */
static bool
managed(void *context, struct kr_managed *out, struct kr_error *err)
{
	struct kr_session_network *n = context;
	const struct kr_plan_secrets *secrets = n->want.secrets;

	(void)err;
	for (size_t i = 0; i < secrets->rule_count; i++) {
		const struct kr_plan_rule *rule = &secrets->rules[i];
		const char *value = kr_host_env(n->want.host, rule->source);

		n->rules[i] = (struct kr_managed_rule){ .host = rule->host,
			.port = rule->port,
			.header = rule->header,
			.format = rule->format,
			.sentinel = rule->sentinel,
			.variable = rule->variable,
			.source = rule->source,
			.value = kr_plan_secret_fault(value) ? NULL : value };
	}
	*out = (struct kr_managed){ .rules = n->rules,
		.rule_count = secrets->rule_count,
		.roots = n->want.roots,
		.roots_bytes = n->want.roots_bytes };
	return true;
}

static int
check_values(const struct kr_session_network_want *want, struct kr_error *err)
{
	for (size_t i = 0; want->secrets && i < want->secrets->rule_count; i++) {
		const struct kr_plan_rule *rule = &want->secrets->rules[i];
		const char *fault = kr_plan_secret_fault(kr_host_env(want->host, rule->source));

		if (!fault)
			continue;
		if (strcmp(rule->source, rule->variable) == 0)
			kr_fail(err, KR_E_NO_SECRET, "the credential '%s' %s in kraft's environment", rule->variable, fault);
		else
			kr_fail(err, KR_E_NO_SECRET, "the credential '%s' has no value: its source '%s' %s in kraft's environment", rule->variable,
				rule->source, fault);
		return kr_hint(err, "set %s in kraft's environment, or in its service's, to the secret itself", rule->source);
	}
	return 0;
}

/* ---- on loopback ---- */

enum { HOLDERS_MAX = 64 }; /* of one socket; more are as good as not told */

/* A process that was there before this one is not the session's, whatever it knows; of a younger one nothing is known, since one
 * that has lost its parent is no longer seen to be a descendant. */
static enum kr_peer
is_older(void *context, pid_t pid)
{
	const struct kr_session_network *n = context;
	const uint64_t started = kr_process_start(pid);

	return started && started < n->started ? KR_PEER_OTHER : KR_PEER_UNKNOWN;
}

/* Can be told as long as the connection is open, and only of processes of this user. */
static enum kr_peer
whose(void *context, uint16_t client_port)
{
	struct kr_session_network *n = context;
	pid_t holders[HOLDERS_MAX];
	int found;

	found = kr_socket_holders(client_port, kr_egress_door(n->egress)->port, holders, HOLDERS_MAX);
	return kr_peer_judge(holders, found, is_older, n);
}

/* Who knocks without the token may be anybody on this machine: it is a number, and no host was refused. */
static void
on_strangers(void *context, unsigned more)
{
	struct kr_session_network *n = context;

	n->notes.strangers = more < UINT_MAX - n->notes.strangers ? n->notes.strangers + more : UINT_MAX;
}

/* ---- calls ---- */

static void
on_call(void *context, const struct kr_call *call, struct kr_call_answer *answer)
{
	struct kr_session_network *n = context;

	if (n->want.on_call)
		n->want.on_call(n->want.context, &n->calls, call, answer);
	else
		kr_calls_answer(&n->calls, call, answer);
}

/* ---- its life ---- */

int
kr_session_network_open(struct kr_arena *arena, const struct kr_session_network_want *want,
	struct kr_session_network **out, struct kr_error *err)
{
	struct kr_session_network *n = kr_arena_new(arena, struct kr_session_network);
	const struct kr_egress_want egress = {
		.program = want->secrets ? kr_host_egress_tls_program(arena, want->host, err) : kr_host_egress_program(arena, want->host, err),
		.channel_dir = want->channel_dir,
		.broker = { .hosts = want->hosts,
			.phase = want->phase,
			.environment = want->host->environment,
			.on_refused = on_refused,
			.on_call = on_call,
			.whose = want->is_on_loopback ? whose : NULL,
			.on_strangers = on_strangers,
			.on_echoed = on_echoed,
			.context = n },
		.on_lost = on_lost,
		.managed = want->secrets ? managed : NULL,
		.is_on_loopback = want->is_on_loopback,
	};

	*n = (struct kr_session_network){ .arena = arena, .want = *want, .started = kr_process_start(getpid()) };
	if (want->secrets)
		n->rules = kr_arena_alloc(arena, want->secrets->rule_count * sizeof(*n->rules));
	n->notes.refused = n->refused;
	n->calls = (struct kr_calls){ .item = want->item,
		.session = want->session,
		.repo = want->repo,
		.worktree = want->worktree,
		.branch = want->branch,
		.policy = want->policy,
		.harness = want->harness,
		.store = open_store,
		.context = n };
	if (!egress.program || check_values(want, err) < 0 || kr_egress_open(&egress, &n->egress, err) < 0)
		return -1;
	*out = n;
	return 0;
}

int
kr_session_network_serve(struct kr_session_network *n, struct kr_error *err)
{
	return kr_egress_serve(n->egress, err);
}

void
kr_session_network_close(struct kr_session_network *n)
{
	if (!n)
		return;
	kr_egress_end(n->egress);
	n->egress = NULL;
	kr_store_close(n->store);
	n->store = NULL;
}

const char *
kr_session_network_socket(const struct kr_session_network *n)
{
	return kr_egress_socket(n->egress);
}

const char *
kr_session_network_authority(const struct kr_session_network *n)
{
	return kr_egress_authority(n->egress);
}

const struct kr_egress_door *
kr_session_network_door(const struct kr_session_network *n)
{
	return kr_egress_door(n->egress);
}

int
kr_session_network_fd(const struct kr_session_network *n)
{
	return kr_egress_fd(n->egress);
}

bool
kr_session_network_ready(void *network)
{
	struct kr_session_network *n = network;

	kr_egress_step(n->egress);
	return true;
}

const struct kr_session_network_notes *
kr_session_network_notes(const struct kr_session_network *n)
{
	return &n->notes;
}
