/*
 * How the layers of a policy combine (facts of the policy's layers). One function for each field; each can
 * only make what came before it narrower, except grants, which add up until the item's layer, and bounds,
 * where the last word counts below the maxima. The item's layer comes from whoever files the item, so it may
 * take away and lower, never give.
 */
#include "policy/layers.h"

static const char *const layer_words[] = {
#define X(layer, name) [KR_LAYER_##layer] = name,
	KR_LAYERS(X)
#undef X
};

const char *
kr_layer_words(enum kr_layer layer)
{
	return (unsigned)layer < KR_LAYER_COUNT ? layer_words[layer] : "unknown";
}

bool
kr_policy_has_channel(const struct kr_policy *policy)
{
	return !policy->sandbox || !policy->sandbox->sandbox.unrestricted_network;
}

/* ---- whether two sandboxes are the same ---- */

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool
same_strs(const struct kr_strs *a, const struct kr_strs *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0)
			return false;
	return a->n == b->n;
}

static bool
same_network(const struct kr_network *a, const struct kr_network *b)
{
	for (int p = 0; p < KR_PHASE_COUNT; p++)
		if (a->phase_is_set[p] != b->phase_is_set[p] || !same_strs(&a->phase[p].allow, &b->phase[p].allow) ||
			!same_strs(&a->phase[p].deny, &b->phase[p].deny))
			return false;
	return a->is_set == b->is_set;
}

static bool
same_expose(const struct kr_sandbox *a, const struct kr_sandbox *b)
{
	for (size_t i = 0; i < a->expose_count && i < b->expose_count; i++)
		if (strcmp(a->expose[i].path, b->expose[i].path) != 0)
			return false;
	return a->expose_count == b->expose_count;
}

static bool
same_credential(const struct kr_credential *a, const struct kr_credential *b)
{
	if (!same_text(a->env, b->env) || !same_text(a->service, b->service) ||
		!same_text(a->sentinel, b->sentinel) || !same_text(a->source, b->source) ||
		memcmp(a->phase, b->phase, sizeof(a->phase)) != 0 || a->inject_count != b->inject_count)
		return false;
	for (size_t i = 0; i < a->inject_count; i++)
		if (!same_text(a->inject[i].domain, b->inject[i].domain) ||
			!same_text(a->inject[i].header, b->inject[i].header) ||
			!same_text(a->inject[i].format, b->inject[i].format))
			return false;
	return true;
}

static bool
same_credentials(const struct kr_sandbox *a, const struct kr_sandbox *b)
{
	for (size_t i = 0; i < a->credential_count && i < b->credential_count; i++)
		if (!same_credential(&a->credentials[i], &b->credentials[i]))
			return false;
	return a->credential_count == b->credential_count;
}

static bool
same_resources(const struct kr_sandbox *a, const struct kr_sandbox *b)
{
	const struct kr_resources *x = &a->resources, *y = &b->resources;

	return a->has_resources == b->has_resources && !(x->cpu < y->cpu) && !(x->cpu > y->cpu) &&
		   x->memory_bytes == y->memory_bytes && x->pids == y->pids;
}

static bool
same_sandbox(const struct kr_policy_layer *a, const struct kr_policy_layer *b)
{
	const struct kr_sandbox *x = &a->sandbox, *y = &b->sandbox;

	return a->sandbox_is_false == b->sandbox_is_false && x->kind == y->kind &&
		   same_network(&x->network, &y->network) && same_expose(x, y) && same_text(x->image, y->image) &&
		   same_text(x->runtime, y->runtime) && same_text(x->kit, y->kit) && same_resources(x, y) &&
		   x->unrestricted_network == y->unrestricted_network && same_credentials(x, y);
}

/* ---- one field each ---- */

struct combining {
	struct kr_arena *arena;
	const double *maxima;
	struct kr_policy *out;
	struct kr_error *err;
};

static void
add_new(struct kr_arena *arena, struct kr_strs *list, const struct kr_strs *more)
{
	for (size_t i = 0; i < more->n; i++)
		if (!kr_strs_has(list, more->v[i]))
			kr_strs_add(arena, list, more->v[i]);
}

/* The first list holds as it is; each later one takes out what it does not have. */
static void
narrow(struct kr_arena *arena, bool *has, struct kr_strs *list, const struct kr_strs *by)
{
	struct kr_strs kept = { 0 };

	if (!*has)
		add_new(arena, &kept, by);
	for (size_t i = 0; *has && i < list->n; i++)
		if (kr_strs_has(by, list->v[i]))
			kr_strs_add(arena, &kept, list->v[i]);
	*has = true;
	*list = kept;
}

static int
set_sandbox(struct combining *c, enum kr_layer from, const struct kr_policy_layer *layer)
{
	const struct kr_policy_layer *set = c->out->sandbox;
	const char *first = kr_layer_words(c->out->sandbox_from), *later = kr_layer_words(from);

	if (!set) {
		c->out->sandbox = layer;
		c->out->sandbox_from = from;
		return 0;
	}
	if (same_sandbox(set, layer))
		return 0;
	if (layer->sandbox_is_false)
		kr_fail(c->err, KR_E_CONFIG, "%s (line %u) turns off the sandbox that %s (line %u) set", later,
			layer->sandbox.mark.line, first, set->sandbox.mark.line);
	else
		kr_fail(c->err, KR_E_CONFIG, "%s (line %u) sets another sandbox than %s (line %u)", later,
			layer->sandbox.mark.line, first, set->sandbox.mark.line);
	return kr_hint(c->err, "the first layer that sets it holds; take 'sandbox' out of %s", later);
}

static void
set_bounds(struct combining *c, enum kr_layer from, const struct kr_policy_layer *layer)
{
	for (int i = 0; i < KR_BOUND_COUNT; i++) {
		double now = c->out->bounds[i], said = layer->bounds[i];

		if (!(said > 0) || (from == KR_LAYER_ITEM && now > 0 && said >= now))
			continue;
		c->out->bounds[i] = said;
		c->out->bound_from[i] = from;
	}
}

/* Also before the item's layer has its word: it lowers what holds, not what was said. */
static void
hold_to_maxima(struct combining *c)
{
	for (int i = 0; c->maxima && i < KR_BOUND_COUNT; i++) {
		double *bound = &c->out->bounds[i], most = c->maxima[i];

		if (!(most > 0) || (*bound > 0 && *bound <= most))
			continue;
		*bound = most;
		c->out->bound_from[i] = KR_LAYER_HOST;
	}
}

static int
add_layer(struct combining *c, enum kr_layer from, const struct kr_policy_layer *layer)
{
	struct kr_policy *out = c->out;

	if (layer->has_allowed_tools)
		narrow(c->arena, &out->has_allowed_tools, &out->allowed_tools, &layer->allowed_tools);
	if (layer->has_allowed_harnesses)
		narrow(c->arena, &out->has_allowed_harnesses, &out->allowed_harnesses, &layer->allowed_harnesses);
	add_new(c->arena, &out->deny_tools, &layer->deny_tools);
	add_new(c->arena, &out->ask_tools, &layer->ask_tools);
	if (layer->has_grants)
		out->grants = from == KR_LAYER_ITEM ? out->grants & layer->grants : out->grants | layer->grants;
	set_bounds(c, from, layer);
	if (layer->escalation_harness)
		out->escalation_harness = layer->escalation_harness;
	return layer->has_sandbox ? set_sandbox(c, from, layer) : 0;
}

int
kr_policy_combine(struct kr_arena *arena, const struct kr_policy_layer *const layers[KR_LAYER_COUNT],
	const double maxima[KR_BOUND_COUNT], struct kr_policy *out, struct kr_error *err)
{
	struct kr_policy policy = { 0 };
	struct combining c = { .arena = arena, .maxima = maxima, .out = &policy, .err = err };

	for (int i = 0; i < KR_LAYER_COUNT; i++) {
		if (i == KR_LAYER_ITEM)
			hold_to_maxima(&c);
		if (layers[i] && add_layer(&c, (enum kr_layer)i, layers[i]) < 0)
			return -1;
	}
	*out = policy;
	return 0;
}

/* ---- maxima ---- */

static void
take_least(double out[KR_BOUND_COUNT], const double by[KR_BOUND_COUNT])
{
	for (int i = 0; i < KR_BOUND_COUNT; i++)
		if (by[i] > 0 && (!(out[i] > 0) || by[i] < out[i]))
			out[i] = by[i];
}

void
kr_policy_maxima(const struct kr_policy_file *file, enum kr_layer layer, double out[KR_BOUND_COUNT])
{
	memcpy(out, file->maxima, sizeof(file->maxima));
	if (layer >= KR_LAYER_NODE)
		take_least(out, file->node_maxima);
	if (layer >= KR_LAYER_STEP)
		take_least(out, file->step_maxima);
	if (layer >= KR_LAYER_TASK)
		take_least(out, file->task_maxima);
}
