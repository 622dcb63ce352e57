/* config, backend: what a kit's descriptor asks for, read by a process without power, and each thing that refuses it; and where its
 * manifest comes from. */
#include <setjmp.h>
#include <stdarg.h>

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/kit.h"
#include "base/text.h"
#include "os/powerless.h"

#include <cmocka.h>

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NAME "acme/kit:2@" DIGEST
#define TYPE(name) "\"type\":\"com.docker.sandbox/" name "\""
#define POLICY "{" TYPE("network-policy@1") ",\"config\":{\"runtime\":{\"allow\":[\"api.example.com:443\",\"*.example.org\"]}}}"
#define TOP "\"schemaVersion\":\"3\",\"kind\":\"workload\""
#define KIT(more) "{" TOP ",\"capabilities\":[" POLICY more "]}"
#define CREDENTIAL(key) "{" TYPE("credential@1") ",\"config\":{\"service\":\"acme\",\"phase\":\"runtime\"," key "}}"
#define RULE "{\"domain\":\"api.example.com\",\"header\":\"Authorization\",\"format\":\"Bearer %s\"}"
#define KEY "\"apiKey\":{\"name\":\"ACME_KEY\",\"proxyManaged\":true,\"inject\":[" RULE "]}"

static struct kr_arena arena;

static int
set_up(void **state)
{
	(void)state;
	arena = (struct kr_arena){ 0 };
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	kr_arena_fini(&arena);
	return 0;
}

static struct kr_kit
take(const char *text)
{
	struct kr_error err = { 0 };
	struct kr_kit kit = { 0 };

	if (kr_kit_parse(&arena, NAME, text, strlen(text), &kit, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return kit;
}

static void
expect_refusal(const char *text, size_t n, const char *words)
{
	struct kr_error err = { 0 };
	struct kr_kit kit = { 0 };

	if (kr_kit_parse(&arena, NAME, text, n, &kit, &err) == 0)
		fail_msg("taken: %.200s", text);
	assert_int_equal(err.code, KR_E_CONFIG);
	if (!strstr(err.message, words) || !strstr(err.message, "the kit '" NAME "'") || !err.hint[0])
		fail_msg("%.200s: '%s' (%s), and not '%s'", text, err.message, err.hint, words);
	assert_null(kit.name);
}

/* ---- what is taken ---- */

static void
a_kit_is_its_lists_limits_and_credentials_and_nothing_else(void **state)
{
	struct kr_kit kit = take(
		"{" TOP ",\"displayName\":\"It\",\"provides\":[\"it@1\"],\"licenses\":[\"MIT\"],\"build\":\"FROM x\",\"args\":{\"v\":"
		"{\"default\":\"1\",\"buildArg\":\"V\"}},\"capabilities\":["
		"{" TYPE("network-policy@1") ",\"name\":\"hosts\",\"config\":{\"install\":{\"allow\":[\"deb.example.com\"]},"
		"\"runtime\":{\"allow\":[\" api.example.com:443 \",\"*\"],\"deny\":[\"bad.example.com\"]}}},"
		"{" TYPE("resources@1") ",\"config\":{\"cpu\":1.5,\"memory\":\"2gib\"}},"
		"{" TYPE("credential@1") ",\"config\":{\"service\":\"acme\",\"phase\":[\"runtime\"]," KEY ",\"oauth\":{\"x\":1}}},"
		"{" TYPE("agent-sessions@1") ",\"config\":{\"prompt\":[\"-p\",\"{{.Prompt}}\"]}},"
		"{\"type\":\"com.example/own@7\",\"optional\":true,\"config\":{\"any\":[1]}}]}");
	const struct kr_host_list *runtime = &kit.network.phase[KR_PHASE_RUNTIME];

	(void)state;
	assert_true(kit.network.is_set && kit.network.phase_is_set[0] && kit.network.phase_is_set[1]);
	assert_int_equal(kit.network.phase[KR_PHASE_INSTALL].allow.n, 1);
	assert_int_equal(runtime->allow.n, 2);
	assert_string_equal(runtime->allow.v[0], "api.example.com:443");
	assert_string_equal(runtime->deny.v[0], "bad.example.com");
	assert_true(kit.resources.cpu == 1.5 && kit.resources.memory_bytes == 2ull << 30 && !kit.resources.pids);
	assert_int_equal(kit.credential_count, 1);
	assert_string_equal(kit.credentials[0].service, "acme");
	assert_string_equal(kit.credentials[0].env, "ACME_KEY");
	assert_true(!kit.credentials[0].phase[KR_PHASE_INSTALL] && kit.credentials[0].phase[KR_PHASE_RUNTIME]);
	assert_string_equal(kit.credentials[0].inject[0].header, "Authorization");
	assert_string_equal(kit.credentials[0].inject[0].format, "Bearer %s");
	assert_int_equal(kit.skipped.n, 1);
	assert_string_equal(kit.skipped.v[0], "com.example/own@7");
	assert_int_equal(kit.ignored.n, 2);
	assert_string_equal(kit.ignored.v[0], "the oauth of the credential 'acme'");
	assert_string_equal(kit.ignored.v[1], "com.docker.sandbox/agent-sessions@1");
}

static void
nothing_said_is_nothing_allowed_and_no_limit(void **state)
{
	struct kr_kit kit = take("{\"schemaVersion\":\"3\",\"kind\":\"sandbox\",\"capabilities\":[{" TYPE("network-policy@1")
		",\"config\":{}},{" TYPE("resources@1") ",\"config\":{\"cpu\":0,\"memory\":\"0\"}}]}");

	(void)state;
	assert_true(kit.network.is_set);
	assert_int_equal(kit.network.phase[0].allow.n + kit.network.phase[1].allow.n, 0);
	assert_true(kit.resources.cpu == 0 && !kit.resources.memory_bytes);
	kit = take(KIT(",{" TYPE("resources@1") ",\"optional\":true,\"config\":{\"gpu\":\"all\",\"memory\":\"512M\"}}"));
	assert_true(kit.resources.memory_bytes == 512u << 20);
	assert_string_equal(kit.ignored.v[0], "the gpu of resources@1");
}

static void
the_same_in_yaml_is_the_same(void **state)
{
	struct kr_kit kit = take("# syntax=docker/sandbox-kit:3\nschemaVersion: \"3\"\nkind: workload\ncapabilities:\n"
							 "  - type: com.docker.sandbox/network-policy@1\n    optional: false\n    config:\n"
							 "      runtime: {allow: [api.example.com]}\n"
							 "  - type: com.docker.sandbox/resources@1\n    config: {cpu: 2, memory: 1g}\n");

	(void)state;
	assert_string_equal(kit.network.phase[KR_PHASE_RUNTIME].allow.v[0], "api.example.com");
	assert_true(kit.resources.cpu == 2 && kit.resources.memory_bytes == 1u << 30);
}

static void
a_name_for_memory_is_read_in_powers_of_1024(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = { { "2gib", 2ull << 30 }, { "2g", 2ull << 30 }, { "64MiB", 64 << 20 }, { "6291456", 6 << 20 },
		{ "8388608b", 8 << 20 }, { "10240k", 10 << 20 }, { "1t", 1ull << 40 }, { "0gib", 0 } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(sizes); i++) {
		struct kr_kit kit = take(kr_arena_printf(&arena,
			KIT(",{" TYPE("resources@1") ",\"config\":{\"memory\":\"%s\"}}"), sizes[i].text));

		assert_true(kit.resources.memory_bytes == sizes[i].bytes);
	}
}

/* ---- what is refused ---- */

static void
each_thing_that_kraft_cannot_do_refuses_the_kit(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "{\"schemaVersion\":\"3\",\"kind\":\"mixin\",\"capabilities\":[" POLICY "]}", "is a mixin" },
		{ "{\"schemaVersion\":\"3\",\"kind\":\"set\"}", "is of the kind 'set'" },
		{ "{\"schemaVersion\":\"2\",\"kind\":\"workload\"}", "schema version '2'" },
		{ "{\"schemaVersion\":3,\"kind\":\"workload\"}", "'schemaVersion'" },
		{ "{\"kind\":\"workload\"}", "has no 'schemaVersion'" },
		{ "{\"schemaVersion\":\"3\"}", "has no 'kind'" },
		{ "{" TOP ",\"requires\":[\"node >= 20\"],\"capabilities\":[" POLICY "]}", "requires another kit ('node >= 20')" },
		{ "{" TOP ",\"requires\":\"node\"}", "no list in 'requires'" },
		{ KIT(",{\"group\":{\"capabilities\":[]}}"), "groups its capabilities" },
		{ "{" TOP ",\"description\":\"a ${{ kit.args.x }}\",\"capabilities\":[" POLICY "]}", "reference like '${{ kit.args.x }}'" },
		{ KIT(",{\"type\":\"com.example/own@1\",\"optional\":true,\"config\":{\"${{ kit.env.X }}\":1}}"), "reference like '${{" },
		{ "{" TOP ",\"args\":{\"model\":{\"env\":\"MODEL\"}},\"capabilities\":[" POLICY "]}",
			"exports its argument 'model' as the variable 'MODEL'" },
		{ "{" TOP ",\"args\":{\"team\":{\"required\":true}},\"capabilities\":[" POLICY "]}", "needs a value for its argument 'team'" },
		{ "{" TOP "}", "has no 'com.docker.sandbox/network-policy@1'" },
		{ "{" TOP ",\"capabilities\":[]}", "does not say which hosts it may reach" },
		{ KIT("," POLICY), "names 'com.docker.sandbox/network-policy@1' twice" },
		{ KIT(",{" TYPE("privileged@1") "}"), "needs the capability 'com.docker.sandbox/privileged@1'" },
		{ KIT(",{" TYPE("network-policy@2") ",\"config\":{}}"), "needs the capability 'com.docker.sandbox/network-policy@2'" },
		{ KIT(",{\"type\":\"nonsense\"}"), "'nonsense' for a capability" },
		{ KIT(",{" TYPE("resources@1") ",\"config\":{\"gpu\":\"all\"}}"), "needs a gpu" },
		{ KIT(",{" TYPE("resources@1") ",\"config\":{\"memory\":\"1m\"}}"), "below the smallest limit" },
		{ KIT(",{" TYPE("resources@1") ",\"config\":{\"memory\":\"much\"}}"), "'much' of memory" },
		{ KIT(",{" TYPE("resources@1") ",\"config\":{\"memory\":\"9999999999999g\"}}"), "is no size" },
		{ KIT(",{" TYPE("resources@1") ",\"config\":{\"cpu\":-1}}"), "'cpu' of -1" },
		{ KIT(",{" TYPE("resources@1") ",\"config\":{\"pids\":9}}"), "unknown key 'pids'" },
		{ KIT(",{" TYPE("resources@1") "}"), "no mapping in 'resources@1'" },
		{ KIT(",{" TYPE("agent-sessions@1") ",\"power\":1}"), "unknown key 'power'" },
		{ KIT(",{" TYPE("volume@1") ",\"optional\":\"yes\"}"), "neither true nor false" },
		{ "{" TOP ",\"privileged\":true,\"capabilities\":[" POLICY "]}", "unknown key 'privileged' in 'the descriptor'" },
		{ "{" TOP ",\"capabilities\":[{" TYPE("network-policy@1") ",\"config\":{\"runtime\":{\"allow\":[\"http://x\"]}}}]}",
			"names 'http://x'" },
		{ "{" TOP ",\"capabilities\":[{" TYPE("network-policy@1") ",\"config\":{\"setup\":{}}}]}", "unknown key 'setup'" },
		{ "{" TOP ",\"capabilities\":[{" TYPE("network-policy@1") ",\"config\":{\"runtime\":{\"allow\":\"*\"}}}]}", "no list" },
		{ "{\"schemaVersion\":\"3\",\"kind\":\"mixin\",\"kind\":\"workload\",\"capabilities\":[" POLICY "]}", "is no JSON" },
		{ "schemaVersion: \"3\"\nkind: &k workload\ndisplayName: *k\n", "neither JSON nor YAML" },
		{ "schemaVersion: \"3\"\nkind: mixin\nkind: workload\n", "neither JSON nor YAML" },
		{ "", "it is empty" },
		{ "[]", "no mapping in 'the descriptor'" },
		{ "words", "no mapping in 'the descriptor'" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		expect_refusal(cases[i].text, strlen(cases[i].text), cases[i].words);
}

static void
a_credential_that_is_no_proxy_managed_key_refuses_the_kit(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ KIT("," CREDENTIAL("\"oauth\":{}")), "is no API key" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"inject\":[" RULE "]}")), "would reach the worker" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"proxyManaged\":true,\"inject\":[" RULE "]}")), "has no name of a variable" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true}")), "goes into no header" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[{\"domain\":\"api.example.com\","
							  "\"scheme\":\"basic\",\"username\":\"u\"}]}")), "a scheme, a user name" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[{\"domain\":\"api.example.com\"}]}")),
			"which header" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"A B\",\"proxyManaged\":true,\"inject\":[" RULE "]}")), "'A B' for a variable" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[{\"domain\":\"*.example.com\","
							  "\"header\":\"A\",\"format\":\"%s\"}]}")), "a star" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[{\"domain\":\"api.example.com\","
							  "\"header\":\"A\\r\\nB\",\"format\":\"%s\"}]}")), "is not the name of a header" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[{\"domain\":\"api.example.com\","
							  "\"header\":\"A\",\"format\":\"%s%s\"}]}")), "exactly once" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[{\"domain\":\"sub.example.org\","
							  "\"header\":\"A\",\"format\":\"%s\"}]}")), "does not allow by name" },
		{ KIT("," CREDENTIAL(KEY) ",{" TYPE("credential@1") ",\"config\":{\"service\":\"other\",\"phase\":\"runtime\"," KEY "}}"),
			"two credentials for the variable 'ACME_KEY'" },
		{ KIT("," CREDENTIAL(KEY) "," CREDENTIAL(KEY)), "names 'acme in runtime' twice" },
		{ KIT("," CREDENTIAL("\"apiKey\":{\"name\":\"K\",\"proxyManaged\":true,\"inject\":[" RULE "," RULE "]}")),
			"writes the header 'Authorization'" },
		{ KIT(",{" TYPE("credential@1") ",\"config\":{\"service\":\"acme\",\"phase\":\"later\"," KEY "}}"), "neither install nor runtime" },
		{ KIT(",{" TYPE("credential@1") ",\"config\":{\"service\":\"acme\",\"phase\":[]," KEY "}}"), "of no phase" },
	};

	(void)state;
	take(KIT("," CREDENTIAL(KEY)));
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		expect_refusal(cases[i].text, strlen(cases[i].text), cases[i].words);
}

static void
a_descriptor_has_its_size_and_its_numbers(void **state)
{
	enum { HOSTS = KR_KIT_HOSTS + 1 };
	kr_auto_buf struct kr_buf text = KR_BUF(2 << 20);

	(void)state;
	kr_buf_adds(&text, "{" TOP ",\"description\":\"");
	while (text.len <= KR_KIT_DESCRIPTOR_BYTES)
		kr_buf_adds(&text, "0123456789");
	kr_buf_adds(&text, "\",\"capabilities\":[" POLICY "]}");
	expect_refusal(text.data, text.len, "more than 512 KiB");
	text.len = 0;
	kr_buf_adds(&text, "{" TOP ",\"capabilities\":[{" TYPE("network-policy@1") ",\"config\":{\"runtime\":{\"allow\":[\"a\"");
	for (int i = 1; i < HOSTS; i++)
		kr_buf_adds(&text, ",\"a\"");
	kr_buf_adds(&text, "]}}}]}");
	expect_refusal(text.data, text.len, "asks for more than kraft takes");
	/* Deep, or with a NUL: refused by a sentence, and by no crash. */
	text.len = 0;
	kr_buf_adds(&text, "{" TOP ",\"build\":");
	for (int i = 0; i < 100000; i++)
		kr_buf_adds(&text, "[");
	expect_refusal(text.data, text.len, "is no JSON");
	expect_refusal("{\0}", 3, "is no JSON");
}

/* What a decoder that somebody took over could leave: none of it is believed as it is. */
static void
what_the_decoder_leaves_is_checked_again(void **state)
{
	static const struct {
		const char *records;
		size_t n;
	} bad[] = { { "a1a b", 6 }, { "a7x", 4 }, { "vX", 3 }, { "sx", 3 }, { "sx\0rapi.example.com", 20 }, { "z", 2 }, { "", 1 },
		{ "a1x", 3 }, { "m-1", 4 }, { "c1e9", 5 }, { "sx\0p0\0vX\0rapi.example.com\0hA B", 31 } };
	struct kr_kit_answer *answer = kr_xcalloc(1, sizeof(*answer));
	struct kr_error err = { 0 };
	struct kr_kit kit;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		answer->is_whole = true;
		answer->len = bad[i].n;
		memcpy(answer->records, bad[i].records, bad[i].n);
		assert_int_equal(kr_kit_read(&arena, NAME, answer, &kit, &err), -1);
	}
	answer->len = sizeof(answer->records) + 1;
	assert_int_equal(kr_kit_read(&arena, NAME, answer, &kit, &err), -1);
	memset(answer->fault, '\x1b', sizeof(answer->fault));
	assert_int_equal(kr_kit_read(&arena, NAME, answer, &kit, &err), -1);
	memcpy(answer->fault, "is bad\x1b[31m", sizeof("is bad\x1b[31m"));
	assert_int_equal(kr_kit_read(&arena, NAME, answer, &kit, &err), -1);
	assert_null(strchr(err.message, '\x1b'));
	free(answer);
}

/* ---- onto kind: docker ---- */

static void
it_becomes_a_sandbox_of_kind_docker_by_digest(void **state)
{
	struct kr_kit kit = take(KIT("," CREDENTIAL(KEY)));
	struct kr_kit_binding binding = { "acme", "MY_ACME" };
	struct kr_sandbox_file file = { .file = "/home/you/.kraft/config/sandbox.yaml" };
	struct kr_sandbox from = { .kind = KR_SANDBOX_KIT, .kit = NAME, .mark = { 7, 3 } }, out = { 0 };
	struct kr_error err = { 0 };

	(void)state;
	assert_string_equal(kr_kit_unbound(&kit, &file), "acme");
	assert_int_equal(kr_kit_lower(&arena, &kit, &file, &from, &out, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_non_null(strstr(err.message, "service 'acme'"));
	assert_non_null(strstr(err.message, file.file));
	assert_non_null(strstr(err.hint, "'acme: VARIABLE'"));
	file.credentials = &binding;
	file.credential_count = 1;
	assert_null(kr_kit_unbound(&kit, &file));
	assert_int_equal(kr_kit_lower(&arena, &kit, &file, &from, &out, &err), 0);
	assert_int_equal(out.kind, KR_SANDBOX_DOCKER);
	assert_string_equal(out.image, "acme/kit@" DIGEST);
	assert_string_equal(out.kit, NAME);
	assert_true(out.network.is_set && !out.unrestricted_network && !out.has_resources && !out.expose_count);
	assert_string_equal(out.credentials[0].source, "MY_ACME");
	assert_string_equal(out.credentials[0].env, "ACME_KEY");
	assert_int_equal(out.mark.line, 7);
	assert_string_equal(kr_kit_digest(NAME), DIGEST);
	assert_string_equal(kr_kit_reference(&arena, "127.0.0.1:5000/kit@" DIGEST), "127.0.0.1:5000/kit@" DIGEST);
	assert_string_equal(kr_kit_reference(&arena, "127.0.0.1:5000/a/kit:1.2@" DIGEST), "127.0.0.1:5000/a/kit@" DIGEST);
	assert_string_equal(kr_kit_reference(&arena, "kit:1@" DIGEST), "kit@" DIGEST);
}

/* ---- where it comes from ---- */

static struct kr_kit_source *source;

static enum kr_kit_said
said_of(kr_parse_fn *fn, const char *text)
{
	struct kr_error err = { 0 };

	json_object_seed(0);
	if (kr_powerless_parse(fn, text, strlen(text), source, sizeof(*source), &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return source->said;
}

static bool
has_bytes(const char *bytes)
{
	return source->len == strlen(bytes) && memcmp(source->bytes, bytes, source->len) == 0;
}

#if defined(__x86_64__)
#define HERE "amd64"
#else
#define HERE "arm64"
#endif
#define PLATFORM(os, machine) "\"platform\":{\"os\":\"" os "\",\"architecture\":\"" machine "\"}"

static void
docker_gives_the_manifests_own_bytes(void **state)
{
	(void)state;
	source = kr_xcalloc(1, sizeof(*source));
	assert_int_equal(said_of(kr_kit_read_docker, "{\"Descriptor\":{\"digest\":\"" DIGEST "\"},\"Raw\":\"eyAiYSI6IDEgfQo=\"}"), KR_KIT_BYTES);
	assert_true(has_bytes("{ \"a\": 1 }\n"));
	assert_string_equal(source->digest, DIGEST);
	assert_int_equal(said_of(kr_kit_read_docker, "{\"Raw\":\"AP+/\",\"Descriptor\":{\"digest\":\"md5:1\"}}"), KR_KIT_BYTES);
	assert_true(source->len == 3 && memcmp(source->bytes, "\0\xff\xbf", 3) == 0 && !source->digest[0]);
	assert_int_equal(said_of(kr_kit_read_docker, "[{\"Descriptor\":{\"digest\":\"sha256:1\"," PLATFORM("linux", "other") "}},"
		"{\"Descriptor\":{\"digest\":\"" DIGEST "\"," PLATFORM("linux", HERE) "}}]"), KR_KIT_INDEX);
	assert_string_equal(source->digest, DIGEST);
	assert_int_equal(said_of(kr_kit_read_docker, "{\"Raw\":\"abc\"}"), KR_KIT_ODD);
	assert_int_equal(said_of(kr_kit_read_docker, "{\"Raw\":\"a*==\"}"), KR_KIT_ODD);
	assert_int_equal(said_of(kr_kit_read_docker, "{\"Raw\":7}"), KR_KIT_ODD);
	assert_int_equal(said_of(kr_kit_read_docker, "{}"), KR_KIT_ODD);
	assert_int_equal(said_of(kr_kit_read_docker, ""), KR_KIT_ODD);
	free(source);
}

static void
a_manifest_has_its_descriptor_in_one_annotation(void **state)
{
	(void)state;
	source = kr_xcalloc(1, sizeof(*source));
	assert_int_equal(said_of(kr_kit_read_manifest, "{\"annotations\":{\"" KR_KIT_ANNOTATION "\":\"{}\"}}"), KR_KIT_BYTES);
	assert_true(has_bytes("{}"));
	assert_int_equal(said_of(kr_kit_read_manifest, "{\"annotations\":{\"" KR_KIT_ANNOTATION "\":{}}}"), KR_KIT_NONE);
	assert_int_equal(said_of(kr_kit_read_manifest, "{\"layers\":[]}"), KR_KIT_NONE);
	assert_int_equal(said_of(kr_kit_read_manifest, "{\"annotations\":{\"" KR_KIT_ANNOTATION "\":\"{}\",\"" KR_KIT_ANNOTATION "\":\"{}\"}}"),
		KR_KIT_ODD);
	assert_int_equal(said_of(kr_kit_read_manifest, "{\"annotations\":{\"" KR_KIT_ANNOTATION "\":\"{}\"},\"manifests\":[{\"digest\":\"" DIGEST
		"\"," PLATFORM("linux", HERE) "}]}"), KR_KIT_INDEX);
	assert_string_equal(source->digest, DIGEST);
	assert_int_equal(said_of(kr_kit_read_manifest, "[]"), KR_KIT_ODD);
	free(source);
}

static void
what_is_kept_is_found_by_its_digest_and_no_other(void **state)
{
	char dir[] = "/tmp/kraft-kit-XXXXXX";
	struct kr_error err = { 0 };
	const char *file;

	(void)state;
	source = kr_xcalloc(1, sizeof(*source));
	assert_non_null(mkdtemp(dir));
	assert_int_equal(kr_kit_look(&arena, dir, NAME, source), 1);
	memcpy(source->digest, DIGEST, sizeof(source->digest));
	source->len = strlen(KIT(""));
	memcpy(source->bytes, KIT(""), source->len);
	assert_int_equal(kr_kit_keep(&arena, dir, NAME, source, &err), 0);
	memset(source, 0, sizeof(*source));
	assert_int_equal(kr_kit_look(&arena, dir, NAME, source), 0);
	assert_true(has_bytes(KIT("")));
	assert_string_equal(source->digest, DIGEST);
	/* One that says it is of another manifest, or nothing that we would have written. */
	source->digest[10] = source->digest[10] == '0' ? '1' : '0';
	assert_int_equal(kr_kit_keep(&arena, dir, NAME, source, &err), 0);
	assert_int_equal(kr_kit_look(&arena, dir, NAME, source), 1);
	file = kr_arena_printf(&arena, "%s/kit/%s.json", dir, kr_kit_digest(NAME) + 7);
	assert_int_equal(truncate(file, 20), 0);
	assert_int_equal(kr_kit_look(&arena, dir, NAME, source), 1);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(kr_arena_printf(&arena, "%s/kit", dir)), 0);
	assert_int_equal(rmdir(dir), 0);
	free(source);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kit_is_its_lists_limits_and_credentials_and_nothing_else),
		cmocka_unit_test(nothing_said_is_nothing_allowed_and_no_limit),
		cmocka_unit_test(the_same_in_yaml_is_the_same),
		cmocka_unit_test(a_name_for_memory_is_read_in_powers_of_1024),
		cmocka_unit_test(each_thing_that_kraft_cannot_do_refuses_the_kit),
		cmocka_unit_test(a_credential_that_is_no_proxy_managed_key_refuses_the_kit),
		cmocka_unit_test(a_descriptor_has_its_size_and_its_numbers),
		cmocka_unit_test(what_the_decoder_leaves_is_checked_again),
		cmocka_unit_test(it_becomes_a_sandbox_of_kind_docker_by_digest),
		cmocka_unit_test(docker_gives_the_manifests_own_bytes),
		cmocka_unit_test(a_manifest_has_its_descriptor_in_one_annotation),
		cmocka_unit_test(what_is_kept_is_found_by_its_digest_and_no_other),
	};

	return cmocka_run_group_tests_name("kit", tests, set_up, tear_down);
}
