/*
 * What the layers of a policy come to: policy.yaml, repository, chain, node, step, task, item, in this order.
 * Pure, and the only place that knows how a field combines: allowed_tools and allowed_harnesses narrow,
 * deny_tools, ask_tools and grants add up (an item's override only drops grants), the sandbox is the first
 * layer's that sets one and no later one may set another, bounds are the last one said and never above the
 * maxima. policy/permit.h says what the tools' lists mean for one call.
 */
#ifndef KR_POLICY_LAYERS_H
#define KR_POLICY_LAYERS_H

#include "config/policy_file.h"

/* layer, how messages name it */
#define KR_LAYERS(X)          \
	X(HOST, "policy.yaml")    \
	X(REPO, "the repository") \
	X(CHAIN, "the chain")     \
	X(NODE, "the node")       \
	X(STEP, "the step")       \
	X(TASK, "the task")       \
	X(ITEM, "the item")
enum kr_layer {
#define X(layer, name) KR_LAYER_##layer,
	KR_LAYERS(X)
#undef X
		KR_LAYER_COUNT
};

struct kr_policy {
	bool has_allowed_tools;
	struct kr_strs allowed_tools, deny_tools, ask_tools;
	unsigned grants;
	const struct kr_policy_layer *sandbox; /* the layer whose sandbox holds; NULL: none set one */
	enum kr_layer sandbox_from;
	bool has_allowed_harnesses;
	struct kr_strs allowed_harnesses;
	double bounds[KR_BOUND_COUNT]; /* 0: none */
	enum kr_layer bound_from[KR_BOUND_COUNT];
	const char *escalation_harness;
};

const char *kr_layer_words(enum kr_layer layer); /* "the repository" */

/* CHN-11: a sandbox with an open network has no way to kraft, so nothing in it can call kraft or be asked by it. */
bool kr_policy_has_channel(const struct kr_policy *policy);

/* The maxima for what ends at this layer: the work item's, and from a node, step or task on those of its kind
 * too. */
void kr_policy_maxima(const struct kr_policy_file *file, enum kr_layer layer, double out[KR_BOUND_COUNT]);

/* Layers may be NULL, and maxima. KR_E_CONFIG naming both layers when a later one sets another sandbox. */
int kr_policy_combine(struct kr_arena *arena, const struct kr_policy_layer *const layers[KR_LAYER_COUNT],
	const double maxima[KR_BOUND_COUNT], struct kr_policy *out, struct kr_error *err);

#endif
