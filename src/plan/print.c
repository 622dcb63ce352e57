/*
 * A plan for a person and for a program. Shows names, places and reasons; never a value that came from the
 * repository's `env` or crossed from the host's environment. Paths and texts come from outside, so bytes that
 * could steer a terminal are escaped.
 */
#include "plan/plan.h"

#include <jansson.h>

#include "base/text.h"

enum {
	TEXT_MAX = 4 * 4096 + 1, /* one escaped path */
	KERNEL_COLUMNS = 90,
	COLUMN_MAX = 56, /* a longer cell pushes its own reason to the right, not everybody's */
};

/* ---- text ---- */

/* An escaped cell; returns its width in bytes. */
static size_t
put(struct kr_buf *out, const char *text)
{
	static const size_t size = TEXT_MAX;
	kr_auto_free char *safe = kr_xcalloc(1, size);
	size_t n = kr_text_escape(safe, size, text, strlen(text));

	kr_buf_add(out, safe, n);
	return n;
}

static void
pad(struct kr_buf *out, size_t have, size_t want)
{
	for (; have < want; have++)
		kr_buf_adds(out, " ");
	kr_buf_adds(out, "  ");
}

static void
section(struct kr_buf *out, const char *name)
{
	kr_buf_addf(out, "%s%s\n", out->len ? "\n" : "", name);
}

/* "  kind  what   because" */
static void
row(struct kr_buf *out, const char *kind, size_t kind_width, const char *what, size_t what_width,
	const char *because)
{
	kr_buf_adds(out, "  ");
	if (kind)
		pad(out, put(out, kind), kind_width);
	if (because && *because) {
		pad(out, put(out, what), what_width);
		(void)put(out, because);
	} else {
		(void)put(out, what);
	}
	kr_buf_adds(out, "\n");
}

static size_t
wider(size_t width, const char *text)
{
	size_t n = strlen(text);

	return n > width && n <= COLUMN_MAX ? n : width;
}

static const char *const shown_kind[KR_STEP_COUNT] = {
	[KR_STEP_BIND_RO] = "read-only",
	[KR_STEP_BIND_RW] = "read-write",
	[KR_STEP_LINK] = "link",
	[KR_STEP_PROC] = "fresh",
	[KR_STEP_DEV] = "fresh",
	[KR_STEP_TMPFS] = "fresh",
	[KR_STEP_MASK] = "empty file",
	[KR_STEP_READ_ONLY] = "sealed",
	[KR_STEP_ADD] = "add only",
};

static const char *
kind_shown(const struct kr_plan *plan, const struct kr_step *s)
{
	return plan->request->macos && s->kind == KR_STEP_MASK ? "denied" : shown_kind[s->kind];
}

/* What a step shows, where the path alone does not say it. */
static const char *
step_what(struct kr_arena *arena, const struct kr_step *s)
{
	switch (s->kind) {
	case KR_STEP_BIND_RO:
	case KR_STEP_BIND_RW:
		if (s->reach == KR_REACH_BESIDE)
			return kr_arena_printf(arena, "%s and %s.*", s->path, s->path);
		return strcmp(s->path, s->source) == 0 ? s->path
											   : kr_arena_printf(arena, "%s (%s)", s->path, s->source);
	case KR_STEP_LINK:
		return kr_arena_printf(arena, "%s -> %s", s->path, s->source);
	case KR_STEP_TMPFS:
		return kr_arena_printf(arena, "%s (%llu MiB, %llu files at most)", s->path,
			(unsigned long long)(s->size_bytes >> 20), (unsigned long long)s->inodes);
	default:
		return s->path;
	}
}

static void
print_command(const struct kr_plan *plan, struct kr_buf *out)
{
	section(out, "command");
	for (size_t i = 0; i < plan->lookup.n; i++)
		row(out, NULL, 0, plan->lookup.v[i], 0, NULL);
	row(out, "runs", 4, plan->exec_path, 0, NULL);
	for (size_t i = 0; plan->argv[i]; i++)
		row(out, i ? "" : "as", 4, plan->argv[i], 0, NULL);
	row(out, "in", 4, plan->cwd, 0, NULL);
}

static void
row_words(struct kr_buf *out, const char *kind, size_t width, const struct kr_strs *words)
{
	for (size_t i = 0; words && i < words->n; i++)
		row(out, i ? "" : kind, width, words->v[i], 0, NULL);
}

static void
print_container(const struct kr_plan *plan, struct kr_buf *out)
{
	const struct kr_plan_container *c = plan->request->container;
	const size_t width = strlen("variables");

	section(out, "container");
	row(out, "runtime", width, c->runtime, 0, NULL);
	row(out, "image", width, c->image, 0, NULL);
	row(out, "id", width, c->image_id ? c->image_id : "not known yet, nor its entry point", 0, NULL);
	if (c->image_id && !(c->entrypoint && c->entrypoint->n))
		row(out, "entry", width, "none: kraft's init starts the command itself", 0, NULL);
	row_words(out, "entry", width, c->entrypoint);
	row(out, "variables", width, "the image's, but for those of the same name below", 0, NULL);
	row_words(out, "walls", width, c->walls);
}

static void
print_files(const struct kr_plan *plan, struct kr_buf *out)
{
	struct kr_arena arena = { 0 };
	size_t width = 0;

	section(out, "files");
	for (size_t i = 0; i < plan->step_count; i++)
		width = wider(width, step_what(&arena, &plan->steps[i]));
	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *s = &plan->steps[i];

		row(out, kind_shown(plan, s), strlen("read-write"), step_what(&arena, s), width, s->because);
	}
	kr_arena_fini(&arena);
}

static const char *
env_shown(const struct kr_plan_env *e)
{
	switch (e->source) {
	case KR_ENV_KRAFT:
		return e->value;
	case KR_ENV_REPO:
		return "(from repos.yaml)";
	case KR_ENV_HARNESS:
		return "(from its file)";
	case KR_ENV_SESSION:
	case KR_ENV_SENTINEL:
		return "(made for the session)";
	case KR_ENV_HOST:
		break;
	}
	return "(crosses by name)";
}

static void
print_environment(const struct kr_plan *plan, struct kr_buf *out)
{
	struct kr_arena arena = { 0 };
	size_t width = 0, name_width = 0;

	section(out, "environment");
	for (size_t i = 0; i < plan->env_count; i++)
		name_width = wider(name_width, plan->env[i].name);
	for (size_t i = 0; i < plan->env_count; i++)
		width = wider(width, env_shown(&plan->env[i]));
	for (size_t i = 0; i < plan->env_count; i++) {
		const struct kr_plan_env *e = &plan->env[i];

		row(out, e->name, name_width, env_shown(e), width, e->because);
	}
	kr_arena_fini(&arena);
}

static void
print_hosts(const struct kr_strs *hosts, const char *kind, size_t needed, const char *because, struct kr_buf *out)
{
	size_t width = 0;

	for (size_t i = 0; i < hosts->n; i++)
		width = wider(width, hosts->v[i]);
	for (size_t i = 0; i < hosts->n; i++)
		row(out, kind, strlen("allow"), hosts->v[i], width, i + needed < hosts->n ? NULL : because);
}

/* "needed by claude" */
static const char *
needed_by(struct kr_arena *arena, const struct kr_plan *plan)
{
	return plan->needed_hosts ? kr_arena_printf(arena, "needed by %s", plan->request->agent->id) : NULL;
}

static void
print_network(const struct kr_plan *plan, struct kr_buf *out)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };

	section(out, "network");
	if (plan->request->is_short_run) {
		row(out, NULL, 0, plan->request->macos ? "none" : "loopback only, the sandbox's own", 0, NULL);
		return;
	}
	if (kr_plan_has_open_network(plan->request)) {
		row(out, NULL, 0, "the runtime's own, without a list: whatever that reaches", 0, NULL);
		return;
	}
	row(out, NULL, 0,
		plan->request->macos ? "nothing on loopback but kraft's proxy, which takes the session's token and lets out:"
							 : "its own loopback, and kraft's proxy on it at 127.0.0.1:3128, which lets out:",
		0, NULL);
	if (!plan->hosts->allow.n)
		row(out, NULL, 0, "nothing", 0, NULL);
	print_hosts(&plan->hosts->allow, "allow", plan->needed_hosts, needed_by(&arena, plan), out);
	print_hosts(&plan->hosts->deny, "deny", 0, NULL, out);
}

/* Which secret goes where; never a value. */
static void
print_secrets(const struct kr_plan *plan, struct kr_buf *out)
{
	const struct kr_plan_secrets *secrets = plan->request->secrets;
	struct kr_arena arena = { 0 };
	size_t width = 0;

	if (!secrets || !secrets->secret_count)
		return;
	section(out, "credentials");
	for (size_t i = 0; i < secrets->secret_count; i++)
		width = wider(width, secrets->secrets[i].variable);
	for (size_t i = 0; i < secrets->secret_count; i++) {
		const struct kr_plan_secret *secret = &secrets->secrets[i];
		size_t goes = 0;

		for (size_t k = 0; k < secrets->rule_count; k++) {
			const struct kr_plan_rule *rule = &secrets->rules[k];

			if (strcmp(rule->variable, secret->variable) != 0)
				continue;
			goes++;
			row(out, secret->variable, width,
				kr_arena_printf(&arena, "header %s of %s:%u, from kraft's %s; TLS to that host ends in kraft", rule->header,
					rule->host, rule->port, rule->source),
				0, NULL);
		}
		if (!goes)
			row(out, secret->variable, width, "goes nowhere in this phase", 0, NULL);
	}
	kr_arena_fini(&arena);
}

static void
print_list(const char *name, const struct kr_strs *list, struct kr_buf *out)
{
	if (!list->n)
		return;
	section(out, name);
	for (size_t i = 0; i < list->n; i++)
		row(out, NULL, 0, list->v[i], 0, NULL);
}

/* Rules are "ANSWER what": those with one answer stand in one paragraph. */
static void
print_kernel(const char *name, const struct kr_strs *rules, struct kr_buf *out)
{
	const char *answer = NULL;
	size_t column = 0, width = 0;

	for (size_t i = 0; i < rules->n; i++)
		width = strcspn(rules->v[i], " ") > width ? strcspn(rules->v[i], " ") : width;
	section(out, name);
	for (size_t i = 0; i < rules->n; i++) {
		const char *rule = rules->v[i], *what = rule + strcspn(rule, " ");
		size_t n = (size_t)(what - rule);
		bool same = answer && strncmp(answer, rule, n + 1) == 0;

		what += *what == ' ';
		if (!same || column + strlen(what) > KERNEL_COLUMNS) {
			kr_buf_addf(out, "%s  %-*.*s  %s", answer ? "\n" : "", (int)width, same ? 0 : (int)n, rule, what);
			column = 0;
		} else {
			kr_buf_addf(out, ", %s", what);
		}
		column += strlen(what) + 2;
		answer = rule;
	}
	kr_buf_adds(out, "\n");
}

void
kr_plan_print(const struct kr_plan *plan, const struct kr_strs *kernel_rules, struct kr_buf *out)
{
	print_command(plan, out);
	if (plan->request->container)
		print_container(plan, out);
	print_files(plan, out);
	print_environment(plan, out);
	print_network(plan, out);
	print_secrets(plan, out);
	if (kernel_rules && kernel_rules->n)
		print_kernel(plan->request->macos ? "allowed beside" : "kernel", kernel_rules, out);
	print_list("notes", &plan->notes, out);
}

/* ---- JSON ---- */

/* A string; bytes that are not UTF-8 are escaped as they are for a terminal. */
static json_t *
text(const char *s)
{
	kr_auto_free char *safe = NULL;
	json_t *value;

	if (!s)
		return json_null();
	value = json_string(s);
	if (value)
		return value;
	safe = kr_xcalloc(1, TEXT_MAX);
	(void)kr_text_escape(safe, TEXT_MAX, s, strlen(s));
	value = json_string(safe);
	return value ? value : json_null();
}

static json_t *
texts(const struct kr_strs *list)
{
	json_t *array = json_array();

	for (size_t i = 0; list && i < list->n; i++)
		json_array_append_new(array, text(list->v[i]));
	return array;
}

static json_t *
json_command(const struct kr_plan *plan)
{
	json_t *object = json_object(), *argv = json_array();

	for (size_t i = 0; plan->argv[i]; i++)
		json_array_append_new(argv, text(plan->argv[i]));
	json_object_set_new(object, "exec", text(plan->exec_path));
	json_object_set_new(object, "argv", argv);
	json_object_set_new(object, "cwd", text(plan->cwd));
	json_object_set_new(object, "lookup", texts(&plan->lookup));
	return object;
}

static json_t *
json_container(const struct kr_plan_container *c)
{
	json_t *object = json_object();

	json_object_set_new(object, "runtime", text(c->runtime));
	json_object_set_new(object, "image", text(c->image));
	json_object_set_new(object, "id", text(c->image_id));
	json_object_set_new(object, "entrypoint", texts(c->entrypoint));
	json_object_set_new(object, "walls", texts(c->walls));
	return object;
}

static json_t *
json_steps(const struct kr_plan *plan)
{
	json_t *array = json_array();

	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *s = &plan->steps[i];
		json_t *object = json_object();

		json_object_set_new(object, "kind", json_string(kr_step_name(s->kind)));
		json_object_set_new(object, "path", text(s->path));
		if (s->source)
			json_object_set_new(object, "source", text(s->source));
		if (s->kind == KR_STEP_TMPFS) {
			json_object_set_new(object, "size_bytes", json_integer((json_int_t)s->size_bytes));
			json_object_set_new(object, "inodes", json_integer((json_int_t)s->inodes));
		}
		if (s->reach != KR_REACH_TREE)
			json_object_set_new(object, "reach", json_string(s->reach == KR_REACH_ALONE ? "alone" : "beside"));
		json_object_set_new(object, "because", text(s->because));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *
json_environment(const struct kr_plan *plan)
{
	static const char *const names[] = {
		[KR_ENV_KRAFT] = "kraft", [KR_ENV_REPO] = "repo", [KR_ENV_HARNESS] = "harness", [KR_ENV_HOST] = "host",
		[KR_ENV_SESSION] = "session", [KR_ENV_SENTINEL] = "sentinel"
	};
	json_t *array = json_array();

	for (size_t i = 0; i < plan->env_count; i++) {
		const struct kr_plan_env *e = &plan->env[i];
		json_t *object = json_object();

		json_object_set_new(object, "name", text(e->name));
		json_object_set_new(object, "source", json_string(names[e->source]));
		if (e->source == KR_ENV_KRAFT)
			json_object_set_new(object, "value", text(e->value));
		json_object_set_new(object, "because", text(e->because));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *
json_needed(const struct kr_plan *plan)
{
	const struct kr_strs *allow = &plan->hosts->allow;
	json_t *object = json_object(), *hosts = json_array();

	for (size_t i = allow->n - plan->needed_hosts; i < allow->n; i++)
		json_array_append_new(hosts, text(allow->v[i]));
	json_object_set_new(object, "by", text(plan->request->agent->id));
	json_object_set_new(object, "hosts", hosts);
	return object;
}

static json_t *
json_rules(const struct kr_plan_secrets *secrets, const char *variable)
{
	json_t *array = json_array();

	for (size_t i = 0; i < secrets->rule_count; i++) {
		const struct kr_plan_rule *rule = &secrets->rules[i];

		if (strcmp(rule->variable, variable) == 0)
			json_array_append_new(array, json_pack("{s:s, s:i, s:s, s:s}", "host", rule->host, "port", (int)rule->port,
				"header", rule->header, "format", rule->format));
	}
	return array;
}

static json_t *
json_secrets(const struct kr_plan_secrets *secrets)
{
	json_t *array = json_array();

	for (size_t i = 0; i < secrets->secret_count; i++)
		json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "env", secrets->secrets[i].variable, "source",
			secrets->secrets[i].source, "inject", json_rules(secrets, secrets->secrets[i].variable)));
	return array;
}

static json_t *
json_network(const struct kr_plan *plan)
{
	json_t *object = json_object();

	json_object_set_new(object, "phase", json_string(kr_phase_name(plan->request->phase)));
	json_object_set_new(object, "reachable",
		json_string(kr_plan_has_open_network(plan->request) ? "everything" : plan->request->macos ? "proxy" : "loopback"));
	json_object_set_new(object, "allow", texts(&plan->hosts->allow));
	json_object_set_new(object, "deny", texts(&plan->hosts->deny));
	if (plan->needed_hosts)
		json_object_set_new(object, "needed", json_needed(plan));
	return object;
}

static int
dump_to_buf(const char *bytes, size_t n, void *buf)
{
	kr_buf_add(buf, bytes, n);
	return 0;
}

void
kr_plan_print_json(const struct kr_plan *plan, const struct kr_strs *kernel_rules, struct kr_buf *out)
{
	json_t *object = json_object();

	json_object_set_new(object, "command", json_command(plan));
	if (plan->request->container)
		json_object_set_new(object, "container", json_container(plan->request->container));
	json_object_set_new(object, "files", json_steps(plan));
	json_object_set_new(object, "environment", json_environment(plan));
	json_object_set_new(object, "network", json_network(plan));
	if (plan->request->secrets && plan->request->secrets->secret_count)
		json_object_set_new(object, "credentials", json_secrets(plan->request->secrets));
	if (kernel_rules)
		json_object_set_new(object, plan->request->macos ? "beside" : "kernel", texts(kernel_rules));
	json_object_set_new(object, "notes", texts(&plan->notes));
	(void)json_dump_callback(object, dump_to_buf, out, JSON_INDENT(2));
	kr_buf_adds(out, "\n");
	json_decref(object);
}
