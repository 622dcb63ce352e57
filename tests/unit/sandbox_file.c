/* sandbox.yaml: what may stand in it, every mistake with its place, and where it is read. */
#include "repo.h"

#include "config/sandbox_file.h"

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

static void
good_files_are_read_whole(void **state)
{
	static const struct {
		const char *text, *cli, *ca_bundle, *relay_image, *credentials;
		enum kr_selinux selinux;
	} cases[] = {
		{ "", "-", "-", "-", "", KR_SELINUX_AUTO },
		{ "null\n", "-", "-", "-", "", KR_SELINUX_AUTO },
		{ "cli: null\nca_bundle: null\nrelay_image: null\ncredentials: {}\n", "-", "-", "-", "",
			KR_SELINUX_AUTO },
		{ "cli: podman\nselinux: relabel\n", "podman", "-", "-", "", KR_SELINUX_RELABEL },
		{ "cli: /opt//x/./docker\nselinux: disable\n", "/opt/x/docker", "-", "-", "", KR_SELINUX_DISABLE },
		{ "cli: docker\nselinux: auto\nca_bundle: /etc/./ca.pem\nrelay_image: far.example/relay@sha256:0\n",
			"docker", "/etc/ca.pem", "far.example/relay@sha256:0", "", KR_SELINUX_AUTO },
		{ "credentials:\n  github: GH_TOKEN\n  \"an other\": _x1\n", "-", "-", "-",
			"github=GH_TOKEN an other=_x1 ", KR_SELINUX_AUTO },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_buf words KR_CLEANUP(kr_buf_fini) = KR_BUF(1000);
		struct kr_error err = { 0 };
		struct kr_sandbox_file got;

		if (kr_sandbox_file_parse(
				&arena, &places, "s.yaml", cases[i].text, strlen(cases[i].text), &got, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.message);
		for (size_t k = 0; k < got.credential_count; k++)
			kr_buf_addf(&words, "%s=%s ", got.credentials[k].service, got.credentials[k].variable);
		assert_string_equal(words.data ? words.data : "", cases[i].credentials);
		assert_string_equal(got.cli ? got.cli : "-", cases[i].cli);
		assert_string_equal(got.ca_bundle ? got.ca_bundle : "-", cases[i].ca_bundle);
		assert_string_equal(got.relay_image ? got.relay_image : "-", cases[i].relay_image);
		assert_int_equal(got.selinux, cases[i].selinux);
		assert_string_equal(got.file, "s.yaml");
		assert_int_equal(got.ca_bundle_mark.line != 0, got.ca_bundle != NULL);
		assert_int_equal(got.relay_image_mark.line != 0, got.relay_image != NULL);
	}
}

static void
a_mistake_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *message, *hint; /* parts of them */
		unsigned line, column;
	} cases[] = {
		{ "clii: docker\n", "unknown key 'clii' in the file", "did you mean 'cli'?", 1, 1 },
		{ "cli: nerdctl\n", "'nerdctl' of 'cli' is neither docker nor podman nor an absolute path",
			"docker, podman or", 1, 6 },
		{ "cli: bin/docker\n", "is neither docker nor podman", "", 1, 6 },
		{ "cli: ~/bin/docker\n", "is neither docker nor podman", "", 1, 6 },
		{ "cli: ''\n", "is neither docker nor podman", "", 1, 6 },
		{ "cli: [docker]\n", "'cli' must be a string", "", 1, 6 },
		{ "cli: /home/you/.kraft/run/worktrees/i/docker\n", "lies where workers write",
			"outside of any sandbox", 1, 6 },
		{ "selinux: off\n", "'off' of 'selinux' is none of auto, relabel and disable", "relabel or disable",
			1, 10 },
		{ "selinux: null\n", "'selinux' must be a string", "", 1, 10 },
		{ "ca_bundle: ca.pem\n", "'ca.pem' of 'ca_bundle' is not an absolute path", "", 1, 12 },
		{ "ca_bundle: /home/you/.kraft/config/../run/x.pem\n", "lies where workers write",
			"every worker would trust it", 1, 12 },
		{ "relay_image: ''\n", "'' of 'relay_image' is empty", "no relay container", 1, 14 },
		{ "credentials: [x]\n", "'credentials' must be a mapping", "", 1, 14 },
		{ "credentials:\n  github: 3\n", "'github' must be a string", "", 2, 11 },
		{ "credentials:\n  github: ghp-secret\n", "is not the name of a variable", "never the secret", 2,
			11 },
		{ "credentials:\n  '': X\n", "a key must be text", "", 2, 3 },
		{ "- x\n", "the file must be a mapping", "'cli: docker'", 1, 1 },
		{ "cli: docker\ncli: podman\n", "'cli'", "", 2, 1 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_sandbox_file got = { .credential_count = 77 };
		struct kr_error err = { 0 };

		assert_int_equal(kr_sandbox_file_parse(
							 &arena, &places, "s.yaml", cases[i].text, strlen(cases[i].text), &got, &err),
			-1);
		if (!strstr(err.message, cases[i].message) || !strstr(err.hint, cases[i].hint))
			fail_msg("%s: %s (%s)", cases[i].text, err.message, err.hint);
		assert_int_equal(err.code, KR_E_CONFIG);
		if (err.place.line != cases[i].line || err.place.column != cases[i].column)
			fail_msg("%s: %u:%u", cases[i].text, err.place.line, err.place.column);
		assert_int_equal(got.credential_count, 77);
	}
}

static void
it_is_read_in_the_configuration_and_may_be_missing(void **state)
{
	struct place *p = *state;
	const struct kr_places here = { .home = below(p, "home"),
		.kraft_home = below(p, "k"),
		.run_dir = below(p, "k/run"),
		.config_dir = below(p, "k/config") };
	struct kr_error err = { 0 };
	struct kr_sandbox_file got;

	assert_int_equal(kr_sandbox_file_load(&p->arena, &here, &got, &err), 0);
	assert_true(!got.cli && !got.ca_bundle && !got.credential_count);
	sh(p, "mkdir -p k/config && echo 'cli: podman' >k/config/sandbox.yaml");
	assert_int_equal(kr_sandbox_file_load(&p->arena, &here, &got, &err), 0);
	assert_string_equal(got.cli, "podman");
	sh(p, "rm k/config/sandbox.yaml && mkdir k/config/sandbox.yaml");
	assert_int_equal(kr_sandbox_file_load(&p->arena, &here, &got, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_files_are_read_whole),
		cmocka_unit_test(a_mistake_is_refused_with_its_place),
		place_test(it_is_read_in_the_configuration_and_may_be_missing),
	};

	return cmocka_run_group_tests_name("sandbox_file", tests, NULL, NULL);
}
