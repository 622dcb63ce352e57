/* plan/secrets.c: what `credentials` and a harness come to together, and what a sentinel is. */
#include <setjmp.h>
#include <stdarg.h>

#include "base/portable.h"
#include "plan/plan.h"

#include <cmocka.h>

struct fixture {
	struct kr_arena arena;
	struct kr_repo repo;
	struct kr_credential credentials[3];
	struct kr_strs hosts;
	struct kr_plan_agent agent;
	struct kr_request request;
	struct kr_error err;
};

static struct kr_inject rule_of_harness[] = { { "api.model.example", "X-Api-Key", "%s" } };
static struct kr_credential of_harness[] = { { .env = "MODEL_KEY", .sentinel = "sk-model-", .inject = rule_of_harness, .inject_count = 1 } };

static void
init(struct fixture *f)
{
	*f = (struct fixture){ .repo = { .name = "app", .path = "/app" } };
	f->repo.sandbox = (struct kr_sandbox){ .kind = KR_SANDBOX_DOCKER, .credentials = f->credentials };
	f->agent = (struct kr_plan_agent){ .id = "sample", .hosts = &f->hosts, .credentials = of_harness, .credential_count = 1 };
	f->request = (struct kr_request){ .repo = &f->repo, .phase = KR_PHASE_RUNTIME };
}

static void
allow(struct fixture *f, const char *entry)
{
	kr_strs_add(&f->arena, &f->repo.sandbox.network.phase[KR_PHASE_RUNTIME].allow, entry);
}

static struct kr_credential *
add(struct fixture *f, const char *env, struct kr_inject *inject)
{
	struct kr_credential *c = &f->credentials[f->repo.sandbox.credential_count++];

	*c = (struct kr_credential){ .env = env, .source = env, .phase = { true, true }, .inject = inject, .inject_count = inject ? 1 : 0 };
	return c;
}

static const struct kr_plan_secrets *
resolve(struct fixture *f)
{
	const struct kr_plan_secrets *secrets = NULL;

	if (kr_plan_secrets(&f->arena, &f->request, kr_random, &secrets, &f->err) < 0)
		return NULL;
	return secrets;
}

static const struct kr_plan_secrets *
resolved(struct fixture *f)
{
	const struct kr_plan_secrets *secrets = resolve(f);

	KR_BUG_IF(!secrets);
	return secrets;
}

static void
a_sentinel_is_another_one_each_time_CRED_15(void **state)
{
	const char *seen[64];
	struct fixture f;

	(void)state;
	init(&f);
	add(&f, "KEY", NULL)->sentinel = "sk-";
	for (size_t i = 0; i < KR_COUNT(seen); i++) {
		const struct kr_plan_secrets *secrets = resolved(&f);

			seen[i] = secrets->secrets[0].sentinel;
		assert_int_equal(strlen(seen[i]), 3 + 40); /* 40 digits of 5 bits */
		assert_memory_equal(seen[i], "sk-", 3);
		assert_int_equal(strspn(seen[i] + 3, "abcdefghijklmnopqrstuvwxyz234567"), 40);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(seen[i], seen[k]);
	}
	kr_arena_fini(&f.arena);
}

static bool
no_random(void *out, size_t n)
{
	(void)out, (void)n;
	return false;
}

static void
without_random_bytes_there_is_no_sentinel(void **state)
{
	const struct kr_plan_secrets *secrets = NULL;
	struct fixture f;

	(void)state;
	init(&f);
	add(&f, "KEY", NULL);
	assert_int_equal(kr_plan_secrets(&f.arena, &f.request, no_random, &secrets, &f.err), -1);
	assert_null(secrets);
	kr_arena_fini(&f.arena);
}

static void
a_rule_is_bound_by_exact_entries_and_their_ports_SEN_01(void **state)
{
	static struct kr_inject rule = { "API.example.com", "Authorization", "Bearer %s" };
	const struct kr_plan_secrets *secrets;
	struct fixture f;

	(void)state;
	init(&f);
	add(&f, "KEY", &rule);
	allow(&f, "*.example.com");
	allow(&f, "*");
	secrets = resolved(&f);
	assert_int_equal(secrets->rule_count, 0);
	allow(&f, "api.example.com:8443");
	allow(&f, "api.example.com");
	allow(&f, "API.example.com");
	secrets = resolved(&f);
	assert_int_equal(secrets->rule_count, 2);
	assert_int_equal(secrets->rules[0].port, 8443);
	assert_int_equal(secrets->rules[1].port, 443);
	assert_string_equal(secrets->rules[0].host, "api.example.com");
	assert_string_equal(secrets->rules[0].header, "authorization");
	assert_string_equal(secrets->rules[0].sentinel, secrets->secrets[0].sentinel);
	f.credentials[0].phase[KR_PHASE_RUNTIME] = false;
	secrets = resolved(&f);
	assert_int_equal(secrets->secret_count + secrets->rule_count, 0);
	kr_arena_fini(&f.arena);
}

static void
a_harness_completes_what_is_listed_and_nothing_else_SEN_01(void **state)
{
	const struct kr_plan_secrets *secrets;
	struct fixture f;

	(void)state;
	init(&f);
	f.request.agent = &f.agent;
	secrets = resolved(&f);
	assert_int_equal(secrets->secret_count + secrets->rule_count, 0);
	add(&f, "MODEL_KEY", NULL);
	assert_null(resolve(&f));
	assert_non_null(strstr(f.err.message, "'MODEL_KEY' goes to 'api.model.example'"));
	assert_non_null(strstr(f.err.hint, "network.runtime.allow"));
	kr_strs_add(&f.arena, &f.hosts, "api.model.example");
	secrets = resolved(&f);
	assert_int_equal(secrets->rule_count, 1);
	assert_memory_equal(secrets->secrets[0].sentinel, "sk-model-", 9);
	f.request.agent = NULL;
	secrets = resolved(&f);
	assert_int_equal(secrets->rule_count, 0);
	assert_int_equal(secrets->secret_count, 1);
	kr_arena_fini(&f.arena);
}

static void
two_secrets_in_one_header_are_refused(void **state)
{
	static struct kr_inject rule = { "api.model.example", "x-API-key", "%s" };
	struct fixture f;

	(void)state;
	init(&f);
	allow(&f, "api.model.example");
	f.request.agent = &f.agent;
	add(&f, "OTHER_KEY", &rule);
	assert_non_null(resolve(&f));
	add(&f, "MODEL_KEY", NULL);
	assert_null(resolve(&f));
	assert_non_null(strstr(f.err.message, "'x-api-key' of 'api.model.example' is written by two credentials"));
	kr_arena_fini(&f.arena);
}

static void
what_kraft_sets_holds_no_sentinel(void **state)
{
	static const char *const names[] = { "HOME", "PATH", "KRAFT_SESSION_ID", "HTTPS_PROXY", "GIT_CONFIG_COUNT", "SSL_CERT_FILE", "LD_PRELOAD" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(names); i++) {
		struct fixture f;

		init(&f);
		add(&f, names[i], NULL);
		assert_null(resolve(&f));
		assert_int_equal(f.err.code, KR_E_CONFIG);
		f.credentials[0].env = "A_KEY";
		assert_non_null(resolve(&f));
		kr_arena_fini(&f.arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentinel_is_another_one_each_time_CRED_15),
		cmocka_unit_test(without_random_bytes_there_is_no_sentinel),
		cmocka_unit_test(a_rule_is_bound_by_exact_entries_and_their_ports_SEN_01),
		cmocka_unit_test(a_harness_completes_what_is_listed_and_nothing_else_SEN_01),
		cmocka_unit_test(two_secrets_in_one_header_are_refused),
		cmocka_unit_test(what_kraft_sets_holds_no_sentinel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
