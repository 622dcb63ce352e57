/*
 * Every route, once: what it takes, who may use it, what it gives. A request that fits none does not exist.
 * The reference (docs/api.md) is made of this table.
 */
#include "api/internal.h"

#define NOTE                                                      \
	{                                                             \
		"note", KR_API_STRING, false, 1, KR_API_TEXT_BYTES, "why" \
	}
#define REASON                                                      \
	{                                                               \
		"reason", KR_API_STRING, false, 1, KR_API_TEXT_BYTES, "why" \
	}
#define STEER                                                      \
	{                                                              \
		"steer", KR_API_STRING, false, 1, KR_API_TEXT_BYTES,       \
			"a word that leads the next agent's instruction, once" \
	}
#define STAY                                                    \
	{                                                           \
		"no_start", KR_API_BOOLEAN, false, 0, 0, "do not go on" \
	}
#define PATH(help)                                               \
	{                                                            \
		"path", KR_API_STRING, false, 1, KR_API_WORD_BYTES, help \
	}
#define END          \
	{                \
		.name = NULL \
	}
#define FIELDS(name, ...) static const struct kr_api_field name[] = { __VA_ARGS__, END }

FIELDS(list_fields, { "all", KR_API_BOOLEAN, false, 0, 0, "also those that are done or cancelled" });
FIELDS(file_fields, { "title", KR_API_STRING, true, 1, 500, "one line" },
	{ "repo", KR_API_STRING, true, 1, KR_API_WORD_BYTES, "the absolute path of a connected checkout" },
	{ "description", KR_API_STRING, false, 0, KR_API_TEXT_BYTES, "what is to be done, in full" },
	{ "chain", KR_API_STRING, false, 1, KR_API_WORD_BYTES,
		"how it is done; the repository's, else `default`" },
	{ "harness", KR_API_STRING, false, 1, KR_API_WORD_BYTES,
		"the agent that does it, in place of the one that its chain names" },
	{ "base_branch", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "begin at this branch" },
	{ "depends_on", KR_API_STRINGS, false, 0, 64, "items that have to be complete before" },
	{ "policy", KR_API_STRING, false, 1, 64 << 10, "its own layer of the policy, YAML" },
	{ "autostart", KR_API_BOOLEAN, false, 0, 0, "let it go on at once; not for a session or a tool server" });
FIELDS(approve_fields, NOTE, STAY);
FIELDS(reject_fields,
	{ "note", KR_API_STRING, true, 1, KR_API_TEXT_BYTES, "why; it leads the next agent's instruction" },
	STAY);
FIELDS(review_fields,
	{ "outcome", KR_API_STRING, true, 1, KR_API_WORD_BYTES, "`approve`, `request-changes` or `comment`" },
	{ "summary", KR_API_STRING, false, 1, KR_API_TEXT_BYTES,
		"what is said on the whole; of a comment it begins a thread" },
	STAY);
FIELDS(resume_fields, STEER);
FIELDS(steer_fields,
	{ "text", KR_API_STRING, true, 1, KR_API_TEXT_BYTES, "it leads the next agent's instruction, once" });
FIELDS(skip_fields, NOTE, PATH("NODE, NODE.STEP or NODE.STEP.TASK; the node where it stands"), STAY);
FIELDS(retry_fields, PATH("NODE, NODE.STEP or NODE.STEP.TASK; the node that stopped"),
	{ "restart", KR_API_BOOLEAN, false, 0, 0, "from the chain's beginning" }, STEER, STAY);
FIELDS(end_fields, REASON);
FIELDS(unblock_fields,
	{ "dependency", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "only this item; all of them" });
FIELDS(diff_fields, { "text", KR_API_BOOLEAN, false, 0, 0, "show what looks binary as text, too" },
	{ "member", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "only this member of its workspace" });
FIELDS(events_fields, { "after_seq", KR_API_NUMBER, false, 0, INT64_MAX, "only those with a higher number" },
	{ "limit", KR_API_NUMBER, false, 1, 500, "at most so many; 100" },
	{ "type", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "of this type only" });
FIELDS(stream_fields, { "after_seq", KR_API_NUMBER, false, 0, INT64_MAX, "only those with a higher number" },
	{ "item", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "of this item only" },
	{ "type", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "of this type only" });
FIELDS(threads_fields, { "open", KR_API_BOOLEAN, false, 0, 0, "only those that are not resolved" });
FIELDS(thread_fields, { "body", KR_API_STRING, true, 1, KR_API_TEXT_BYTES, "what is said" },
	{ "file", KR_API_STRING, false, 1, KR_API_WORD_BYTES, "the file that it is about" },
	{ "line", KR_API_NUMBER, false, 1, INT32_MAX, "and the line" },
	{ "must_fix", KR_API_BOOLEAN, false, 0, 0, "no gate is passed while it is open" });
FIELDS(comment_fields, { "body", KR_API_STRING, true, 1, KR_API_TEXT_BYTES, "what is said" });
FIELDS(log_fields, { "format", KR_API_STRING, false, 1, 8, "`text`, or `jsonl`: one object per line" },
	{ "follow", KR_API_BOOLEAN, false, 0, 0, "as server-sent events, until the session ends" });
FIELDS(login_fields, { "password", KR_API_STRING, true, 1, 512, "" });

#define ITEM "/api/work-items/{id}"
#define THREAD "/api/threads/{thread}"
#define SHOWN "the item, as `kraft view show --json` has it"

const struct kr_api_route kr_api_routes[] = {
	{ KR_METHOD_GET, "/api/health", KR_API_ANYBODY,
		"whether the server is well, and what it found when it began", NULL, 200,
		"status, version, pid, uptime_s, bind, port, reattach_summary; run_dir for who may read", "",
		kr_api_server_health },
	{ KR_METHOD_POST, "/api/login", KR_API_ANYBODY,
		"a cookie for the password, where the server is not on loopback", login_fields, 200,
		"expires_s; the cookie `" KR_API_COOKIE "`",
		"401 a wrong password; 403 on loopback; 429 another login is being looked at", kr_api_server_login },
	{ KR_METHOD_GET, "/api/work-items", KR_API_READER, "the work items", list_fields, 200,
		"items, as `kraft view list --json` has them", "", kr_api_items_list },
	{ KR_METHOD_POST, "/api/work-items", KR_API_WRITER, "file a work item", file_fields, 201, SHOWN,
		"403 `autostart` by a session or a tool server; 503 chain or policy does not load",
		kr_api_items_file },
	{ KR_METHOD_GET, ITEM, KR_API_READER, "one work item: where it stands, and what ran", NULL, 200, SHOWN,
		"404", kr_api_items_show },
	{ KR_METHOD_GET, ITEM "/events", KR_API_READER, "what happened to it, the oldest first", events_fields,
		200, "events; more: whether there are later ones", "404", kr_api_events_list },
	{ KR_METHOD_GET, ITEM "/diff", KR_API_READER, "what was committed in it", diff_fields, 200,
		"text: a patch", "404; 409 while a process is at it", kr_api_items_diff },
	{ KR_METHOD_POST, ITEM "/gates/{gate}/approve", KR_API_PERSON, "let it through the gate that it waits at",
		approve_fields, 200, SHOWN, "404; 409 it does not wait there, or a thread has to be fixed first",
		kr_api_gates_approve },
	{ KR_METHOD_POST, ITEM "/gates/{gate}/reject", KR_API_PERSON,
		"send it back from the gate that it waits at", reject_fields, 200, SHOWN,
		"404; 409 it does not wait there", kr_api_gates_reject },
	{ KR_METHOD_POST, ITEM "/review", KR_API_PERSON,
		"review it at its gate, with the threads that are open", review_fields, 200,
		SHOWN "; of a comment also reply_agent: whether an agent answers, else reply_agent_reason",
		"404; 409 it waits at no gate", kr_api_gates_review },
	{ KR_METHOD_POST, ITEM "/pause", KR_API_PERSON, "end what runs in it; waits until it has ended", NULL,
		200, SHOWN, "404; 409 nobody is at it", kr_api_gates_pause },
	{ KR_METHOD_POST, ITEM "/resume", KR_API_PERSON, "let it go on", resume_fields, 200, SHOWN,
		"404; 409 it is at work, or waits for a person", kr_api_gates_resume },
	{ KR_METHOD_POST, ITEM "/steer", KR_API_PERSON, "a word for its next agent", steer_fields, 200, SHOWN,
		"404; 409 a process is at it, or it has ended", kr_api_gates_steer },
	{ KR_METHOD_POST, ITEM "/skip", KR_API_PERSON, "go past where it stands", skip_fields, 200, SHOWN,
		"404; 409", kr_api_gates_skip },
	{ KR_METHOD_POST, ITEM "/retry", KR_API_PERSON, "try again what it stopped at", retry_fields, 200, SHOWN,
		"404; 409 nothing of it failed", kr_api_gates_retry },
	{ KR_METHOD_POST, ITEM "/unblock", KR_API_PERSON, "let it no longer wait for other items", unblock_fields,
		200, SHOWN, "404; 409 it does not wait", kr_api_gates_unblock },
	{ KR_METHOD_POST, ITEM "/complete", KR_API_PERSON, "say that it is done, wherever it stands", end_fields,
		200, SHOWN, "404; 409 a process is at it, or it has ended", kr_api_gates_complete },
	{ KR_METHOD_POST, ITEM "/cancel", KR_API_PERSON, "give it up", end_fields, 200, SHOWN,
		"404; 409 a process is at it, or it has ended", kr_api_gates_cancel },
	{ KR_METHOD_POST, ITEM "/archive", KR_API_PERSON, "remove what it left on the disk, after its end", NULL,
		200, "id, bytes: what that freed", "404; 409 it has not ended, or commits did not come out",
		kr_api_items_archive },
	{ KR_METHOD_GET, ITEM "/threads", KR_API_READER, "what was said about it", threads_fields, 200,
		"a list, as `kraft view threads --json` has it", "404", kr_api_threads_list },
	{ KR_METHOD_POST, ITEM "/threads", KR_API_PERSON, "begin a thread", thread_fields, 201, "id, state",
		"404", kr_api_threads_begin },
	{ KR_METHOD_POST, THREAD "/comments", KR_API_PERSON, "answer in a thread", comment_fields, 201,
		"id, state", "404", kr_api_threads_comment },
	{ KR_METHOD_POST, THREAD "/resolve", KR_API_PERSON, "say that it is settled", NULL, 200, "id, state",
		"404", kr_api_threads_resolve },
	{ KR_METHOD_POST, THREAD "/reopen", KR_API_PERSON, "say that it is not settled", NULL, 200, "id, state",
		"404", kr_api_threads_reopen },
	{ KR_METHOD_GET, "/api/events/stream", KR_API_READER, "events as they come, and those before them",
		stream_fields, 200, "server-sent events: `id` is the number, `data` the event",
		"406 an Accept without text/event-stream", kr_api_events_stream },
	{ KR_METHOD_GET, "/api/worker-sessions/{session}/log", KR_API_READER, "what a session said", log_fields,
		200, "text, as `kraft view logs` has it; with follow: server-sent events, the last one of type `end`",
		"404", kr_api_sessions_log },
	{ KR_METHOD_GET, "/api/repos", KR_API_READER, "the connected repositories", NULL, 200,
		"file, repos, warnings, as `kraft repo list --json` has them", "503 repos.yaml does not load",
		kr_api_repos_list },
	{ KR_METHOD_GET, "/api/chains", KR_API_READER, "the chains, and whether they load", NULL, 200,
		"chains, as `kraft admin chains --json` has them", "", kr_api_chains_list },
};
const size_t kr_api_route_count = KR_COUNT(kr_api_routes);

/* ---- the reference ---- */

static const char *const who_words[] = {
	[KR_API_ANYBODY] = "anybody",
	[KR_API_READER] = "your own user on loopback, else the token or a login",
	[KR_API_WRITER] = "the token; a session's call too",
	[KR_API_PERSON] = "the token; no session's call",
};

static void
add_type(struct kr_buf *out, const struct kr_api_field *f)
{
	if (f->type == KR_API_BOOLEAN)
		kr_buf_adds(out, "boolean");
	else if (f->type == KR_API_STRINGS)
		kr_buf_addf(out, "list of at most %lld strings", (long long)f->max);
	else if (f->type == KR_API_STRING)
		kr_buf_addf(out, "string of at most %lld bytes", (long long)f->max);
	else if (f->max == INT64_MAX)
		kr_buf_addf(out, "number from %lld", (long long)f->min);
	else
		kr_buf_addf(out, "number from %lld to %lld", (long long)f->min, (long long)f->max);
}

static void
add_route(struct kr_buf *out, const struct kr_api_route *r)
{
	kr_buf_addf(out, "\n## %s %s\n\n%s.\n\n- for: %s\n", kr_method_name(r->method), r->pattern, r->summary,
		who_words[r->who]);
	kr_buf_addf(out, "- gives: %u, %s\n", r->status, r->gives);
	if (*r->refusals)
		kr_buf_addf(out, "- refuses: %s\n", r->refusals);
	for (const struct kr_api_field *f = r->fields; f && f->name; f++) {
		kr_buf_addf(out, "- `%s`%s: ", f->name, f->is_required ? " (required)" : "");
		add_type(out, f);
		kr_buf_addf(out, "%s%s\n", *f->help ? "; " : "", f->help);
	}
}

void
kr_api_reference(struct kr_buf *out)
{
	kr_buf_adds(out, "# The HTTP API\n\n"
					 "Printed by `kraft help api`, from the table that the server itself uses. Who may call, "
					 "the token and the events\n"
					 "are explained in kraft-api(7).\n\n"
					 "Arguments stand in the query of a GET, else in a body: one JSON object, `Content-Type: "
					 "application/json`, at most\n"
					 "1 MiB. An argument that a route does not have is refused. GET answers HEAD too. An id "
					 "of an item is any beginning\n"
					 "of it that only one has.\n\n"
					 "An error is `{\"detail\": \"...\"}`, with a `hint` where there is a next step. Beside "
					 "what a route says: 400 what\n"
					 "is no request, 401 without a credential, 403 from another site or for a session, 404 "
					 "no such route or thing, 405\n"
					 "another method, 408 too slow, 411 a body without Content-Length, 413 too long, 415 no "
					 "JSON, 422 a wrong argument,\n"
					 "500 what failed here, 503 a configuration that does not load, 507 a full disk.\n");
	for (size_t i = 0; i < kr_api_route_count; i++)
		add_route(out, &kr_api_routes[i]);
}
