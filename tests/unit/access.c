/* access.yaml: what may stand in it, what may be bound, and a hash put into a person's file. */
#include "repo.h"

#include "config/access.h"

#define HASH "$y$j9T$abcdefghijklmnop$ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop0"

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

static int
parse(struct kr_arena *arena, const char *text, struct kr_access *out, struct kr_error *err)
{
	return kr_access_parse(arena, &places, "access.yaml", text, strlen(text), out, err);
}

static void
an_empty_file_is_the_defaults(void **state)
{
	static const char *const texts[] = { "", "null\n", "# nothing\n" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(texts); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_access got;

		assert_int_equal(parse(&arena, texts[i], &got, NULL), 0);
		assert_string_equal(got.bind, "127.0.0.1");
		assert_int_equal(got.port, 8765);
		assert_int_equal(got.session_expiry_days, 7);
		assert_null(got.password_hash);
		assert_int_equal(got.allowed_hosts.n, 0);
	}
}

static void
a_whole_file_is_read(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_access got;

	(void)state;
	assert_int_equal(parse(&arena,
						 "bind: '::'\nport: 0\npassword_hash: " HASH "\nsession_expiry_days: 30\n"
						 "allowed_hosts: [kraft.example, 192.0.2.7]\n",
						 &got, NULL),
		0);
	assert_string_equal(got.bind, "::");
	assert_int_equal(got.port, 0);
	assert_string_equal(got.password_hash, HASH);
	assert_int_equal(got.session_expiry_days, 30);
	assert_int_equal(got.allowed_hosts.n, 2);
	assert_string_equal(got.allowed_hosts.v[0], "kraft.example");
}

static void
a_mistake_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *message;
		unsigned line;
	} cases[] = {
		{ "bind: localhost\n", "no IPv4 or IPv6 address", 1 },
		{ "bind: 0177.0.0.1\n", "no IPv4 or IPv6 address", 1 },
		{ "port: 65536\n", "from 0 to 65535", 1 },
		{ "port: '80'\n", "whole number", 1 },
		{ "port: -1\n", "from 0 to 65535", 1 },
		{ "session_expiry_days: 0\n", "from 1 to 365", 1 },
		{ "\npassword_hash: secret\n", "no yescrypt or scrypt hash", 2 },
		{ "password_hash: $1$abc$def\n", "no yescrypt or scrypt hash", 1 },
		{ "password_hash: '$y$a b'\n", "what no hash does", 1 },
		{ "allowed_hosts: ['a b']\n", "no host's name", 1 },
		{ "allowed_hosts: ['kraft.example:80']\n", "has a port", 1 },
		{ "pasword_hash: x\n", "unknown key 'pasword_hash'", 1 },
		{ "[]\n", "must be a mapping", 1 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_error err = { 0 };
		struct kr_access got;

		if (parse(&arena, cases[i].text, &got, &err) == 0)
			fail_msg("%s was taken", cases[i].text);
		if (!strstr(err.message, cases[i].message) || err.place.line != cases[i].line)
			fail_msg("%s: %u: %s", cases[i].text, err.place.line, err.message);
		assert_int_equal(err.code, KR_E_CONFIG);
	}
}

static void
without_a_password_only_loopback_may_be_bound(void **state)
{
	static const struct {
		const char *bind;
		bool is_loopback;
	} cases[] = {
		{ "127.0.0.1", true },
		{ "127.9.9.9", true },
		{ "::1", true },
		{ "0.0.0.0", false },
		{ "::", false },
		{ "192.168.1.5", false },
		{ "8.8.8.8", false },
		{ "fe80::1", false },
		{ "::ffff:127.0.0.1", false }, /* is one, and needs the password all the same */
		{ "2002:7f00:1::", false },
		{ "64:ff9b::7f00:1", false },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_access access = { .bind = cases[i].bind };
		struct kr_error err = { 0 };

		assert_int_equal(kr_access_is_loopback(&access), cases[i].is_loopback);
		assert_int_equal(kr_access_may_bind(&access, &err), cases[i].is_loopback ? 0 : -1);
		assert_int_equal(err.code, cases[i].is_loopback ? KR_E_NONE : KR_E_REFUSED);
		access.password_hash = HASH;
		assert_int_equal(kr_access_may_bind(&access, NULL), 0);
	}
}

static void
a_hash_is_put_in_and_the_rest_stays(void **state)
{
	static const struct {
		const char *before, *after; /* after NULL: refused */
	} cases[] = {
		{ "", "password_hash: '" HASH "'\n" },
		{ "# mine\nport: 1 # one", "# mine\nport: 1 # one\npassword_hash: '" HASH "'\n" },
		{ "password_hash: null\nport: 1\n", "password_hash: '" HASH "'\nport: 1\n" },
		{ "password_hash:\nport: 1\n", "password_hash: '" HASH "'\nport: 1\n" },
		{ "port: 1\npassword_hash: \"$7$old\" # it\nbind: 127.0.0.1\n",
			"port: 1\npassword_hash: '" HASH "' # it\nbind: 127.0.0.1\n" },
		{ "{password_hash: null, port: 1}\n", "{password_hash: '" HASH "', port: 1}\n" },
		{ "{port: 1}\n", NULL },
		{ "port: x\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		kr_auto_buf struct kr_buf out = KR_BUF(4096);
		struct kr_error err = { 0 };
		int result = kr_access_edit_hash(
			&places, "access.yaml", cases[i].before, strlen(cases[i].before), HASH, &out, &err);

		if ((result == 0) != (cases[i].after != NULL) ||
			(cases[i].after && strcmp(out.data, cases[i].after) != 0))
			fail_msg("%s: %s %s", cases[i].before, out.data ? out.data : "-", err.message);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_is_the_defaults),
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(a_mistake_is_refused_with_its_place),
		cmocka_unit_test(without_a_password_only_loopback_may_be_bound),
		cmocka_unit_test(a_hash_is_put_in_and_the_rest_stays),
	};

	return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
