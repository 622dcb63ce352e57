/*
 * policy: what an address is (POL-03, POL-04). libc's inet_pton and inet_ntop are the oracles for reading and
 * writing; for judging, the ranges are written here once more as text, with what lies on both sides of each.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>

#include "policy/policy.h"

#include <cmocka.h>

static struct kr_address
address(const char *text)
{
	struct kr_address out;

	if (!kr_address_parse(text, strlen(text), &out))
		fail_msg("'%s' is not read", text);
	return out;
}

static enum kr_address_class
class_of(const struct kr_address *a)
{
	struct kr_address_report report;

	kr_address_classify(a, NULL, &report);
	assert_non_null(report.what);
	assert_non_null(report.source);
	return report.class;
}

static void
expect(const struct kr_address *a, enum kr_address_class want, const char *because)
{
	char text[KR_ADDRESS_TEXT];
	enum kr_address_class got = class_of(a);

	kr_address_format(a, text);
	if (got != want)
		fail_msg(
			"%s (%s) is %s, not %s", text, because, kr_address_class_name(got), kr_address_class_name(want));
}

/* ---- ranges ---- */

enum {
	G = KR_ADDRESS_GLOBAL,
	P = KR_ADDRESS_PRIVATE,
	U = KR_ADDRESS_UNSPECIFIED,
	L = KR_ADDRESS_LOOPBACK,
	K = KR_ADDRESS_LINK_LOCAL,
	M = KR_ADDRESS_MULTICAST,
	B = KR_ADDRESS_BROADCAST,
	C = KR_ADDRESS_METADATA,
};

/* -1 before and after: there is no such address. */
static const struct {
	const char *first, *last;
	int class, before, after;
} ranges[] = {
	{ "0.0.0.0", "0.255.255.255", U, -1, G },
	{ "10.0.0.0", "10.255.255.255", P, G, G },
	{ "100.64.0.0", "100.127.255.255", P, G, G },
	{ "100.100.100.200", "100.100.100.200", C, P, P },
	{ "127.0.0.0", "127.255.255.255", L, G, G },
	{ "168.63.129.16", "168.63.129.16", C, G, G },
	{ "169.254.0.0", "169.254.255.255", K, G, G },
	{ "169.254.169.254", "169.254.169.254", C, K, K },
	{ "169.254.170.2", "169.254.170.2", C, K, K },
	{ "169.254.170.23", "169.254.170.23", C, K, K },
	{ "172.16.0.0", "172.31.255.255", P, G, G },
	{ "192.0.0.0", "192.0.0.255", P, G, G },
	{ "192.0.0.192", "192.0.0.192", C, P, P },
	{ "192.0.2.0", "192.0.2.255", P, G, G },
	{ "192.88.99.0", "192.88.99.255", P, G, G },
	{ "192.168.0.0", "192.168.255.255", P, G, G },
	{ "198.18.0.0", "198.19.255.255", P, G, G },
	{ "198.51.100.0", "198.51.100.255", P, G, G },
	{ "203.0.113.0", "203.0.113.255", P, G, G },
	{ "224.0.0.0", "239.255.255.255", M, G, P },
	{ "240.0.0.0", "255.255.255.254", P, M, B },
	{ "255.255.255.255", "255.255.255.255", B, P, -1 },
	{ "::", "::", U, -1, L },
	{ "::1", "::1", L, U, U },
	{ "64:ff9b:1::", "64:ff9b:1::ff:ffff", U, P, P },
	{ "100::", "100::ffff:ffff:ffff:ffff", P, P, P },
	{ "2001::", "2001::", B, G, U }, /* Teredo: the server 0.0.0.0, the client 255.255.255.255 turned over */
	{ "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", P, P, P },
	{ "2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", P, P, P },
	{ "2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", P, P, P },
	{ "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", P, -1, G },
	{ "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", P, G, G },
	{ "2002:a00::", "2002:aff:ffff:ffff:ffff:ffff:ffff:ffff", P, P, P },
	{ "3ffe::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", P, G, P },
	{ "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", P, P, G },
	{ "2003::", "3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff", G, -1, P },
	{ "4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", P, G, P },
	{ "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", P, P, P },
	{ "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", P, P, P },
	{ "fd00:ec2::254", "fd00:ec2::254", C, P, P },
	{ "fd00:ec2::23", "fd00:ec2::23", C, P, P },
	{ "fd20:ce::254", "fd20:ce::254", C, P, P },
	{ "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", K, P, P },
	{ "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", P, K, M },
	{ "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", M, P, -1 },
};

static struct kr_address
step(struct kr_address a, int by)
{
	for (int i = a.is_v6 ? 15 : 3; i >= 0; i--) {
		a.b[i] = (uint8_t)(a.b[i] + by);
		if (a.b[i] != (by > 0 ? 0 : 0xff))
			break;
	}
	return a;
}

static void
ranges_hold_from_end_to_end_POL_03_04(void **state)
{
	(void)state;
	for (size_t i = 0; i < KR_COUNT(ranges); i++) {
		struct kr_address first = address(ranges[i].first), last = address(ranges[i].last);
		struct kr_address before = step(first, -1), after = step(last, 1);

		expect(&first, (enum kr_address_class)ranges[i].class, "the first");
		expect(&last, (enum kr_address_class)ranges[i].class, "the last");
		if (ranges[i].before >= 0)
			expect(&before, (enum kr_address_class)ranges[i].before, "before the first");
		if (ranges[i].after >= 0)
			expect(&after, (enum kr_address_class)ranges[i].after, "after the last");
	}
}

static void
public_addresses_are_public(void **state)
{
	static const char *const all[] = { "1.1.1.1", "8.8.8.8", "9.9.9.9", "93.184.216.34", "100.63.255.255",
		"100.128.0.0", "126.255.255.255", "128.0.0.0", "151.101.1.69", "169.253.255.255", "172.15.255.255",
		"172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.167.1.1", "192.169.0.0", "198.17.1.1",
		"198.20.0.0", "199.0.0.1", "223.255.255.255", "2001:200::1", "2001:4860:4860::8888",
		"2606:4700:4700::1111", "2620:fe::fe", "2a00:1450:4001::200e", "2400:cb00::1", "2c0f::1",
		"64:ff9b::8.8.8.8", "64:ff9b::151.101.1.69", "::ffff:8.8.8.8", "2a00::5efe:8.8.8.8" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(all); i++) {
		struct kr_address a = address(all[i]);

		expect(&a, KR_ADDRESS_GLOBAL, "public");
	}
}

/* ---- IPv4 inside IPv6 ---- */

/* Writes v4 into a pattern: 'a', 'b', 'c', 'd' are its bytes and 'A' to 'D' those turned over; the rest is
 * hex. */
static struct kr_address
put(const char *pattern, const uint8_t v4[4])
{
	struct kr_address out = { .is_v6 = true };
	char *end;

	for (size_t i = 0; i < 16; i++, pattern += 3) {
		if (pattern[1] == '<')
			out.b[i] = v4[pattern[0] - 'a'];
		else if (pattern[1] == '>')
			out.b[i] = (uint8_t)~v4[pattern[0] - 'a'];
		else
			out.b[i] = (uint8_t)strtoul(pattern, &end, 16);
	}
	return out;
}

/* floor: what the outer address is for itself. The other IPv4 of a Teredo address is 8.8.8.8. */
static const struct {
	const char *name, *pattern;
	int floor;
} forms[] = {
	{ "IPv4-mapped", "00 00 00 00 00 00 00 00 00 00 ff ff a< b< c< d<", G },
	{ "IPv4-compatible", "00 00 00 00 00 00 00 00 00 00 00 00 a< b< c< d<", P },
	{ "IPv4-translated", "00 00 00 00 00 00 00 00 ff ff 00 00 a< b< c< d<", P },
	{ "6to4", "20 02 a< b< c< d< 00 00 00 00 00 00 00 00 00 01", P },
	{ "6to4", "20 02 a< b< c< d< ff ff 12 34 56 78 9a bc de f0", P },
	{ "NAT64", "00 64 ff 9b 00 00 00 00 00 00 00 00 a< b< c< d<", G },
	{ "local NAT64", "00 64 ff 9b 00 01 00 00 00 00 00 00 a< b< c< d<", P },
	{ "local NAT64", "00 64 ff 9b 00 01 ab cd ef 01 23 45 a< b< c< d<", P },
	{ "local NAT64", "00 64 ff 9b 00 01 a< b< 00 c< d< 00 00 00 00 00", P },
	{ "local NAT64", "00 64 ff 9b 00 01 11 a< 00 b< c< d< 00 00 00 00", P },
	{ "local NAT64", "00 64 ff 9b 00 01 11 22 00 a< b< c< d< 00 00 00", P },
	{ "Teredo server", "20 01 00 00 a< b< c< d< 80 00 12 34 f7 f7 f7 f7", P },
	{ "Teredo client", "20 01 00 00 08 08 08 08 80 00 12 34 a> b> c> d>", P },
	{ "ISATAP", "2a 00 12 34 56 78 9a bc 00 00 5e fe a< b< c< d<", G },
	{ "ISATAP", "2a 00 12 34 56 78 9a bc 02 00 5e fe a< b< c< d<", G },
	{ "ISATAP", "fd 00 12 34 56 78 9a bc 02 00 5e fe a< b< c< d<", P },
	{ "ISATAP", "2a 00 00 00 00 00 00 00 01 00 5e fe a< b< c< d<", G },
};

static const char *const inner[] = { "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.31.1.1", "192.168.1.1",
	"169.254.169.254", "169.254.1.1", "100.100.100.200", "100.64.3.2", "224.0.0.251", "239.255.255.250",
	"255.255.255.255", "240.1.2.3", "198.18.0.1", "203.0.113.7", "168.63.129.16", "8.8.8.8", "151.101.1.69" };

static void
an_ipv4_inside_is_judged_in_every_form_POL_05(void **state)
{
	(void)state;
	for (size_t f = 0; f < KR_COUNT(forms); f++)
		for (size_t i = 0; i < KR_COUNT(inner); i++) {
			struct kr_address v4 = address(inner[i]), a = put(forms[f].pattern, v4.b);
			int want = (int)class_of(&v4) > forms[f].floor ? (int)class_of(&v4) : forms[f].floor;
			struct kr_address_report report;

			expect(&a, (enum kr_address_class)want, inner[i]);
			kr_address_classify(&a, NULL, &report);
			if (want > forms[f].floor) {
				assert_string_equal(report.form, forms[f].name);
				assert_true(kr_address_same(&report.inner, &v4));
			}
		}
}

static void
an_unspecified_ipv4_inside_is_no_way_round(void **state)
{
	static const char *const all[] = { "::ffff:0.0.0.0", "::ffff:0:0", "::ffff:0:0.0.0.0",
		"2002::", "2002::1", "64:ff9b::", "64:ff9b::0.0.0.1", "::2", "::0.0.0.9", "2a00::5efe:0:0" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(all); i++) {
		struct kr_address a = address(all[i]);

		assert_true(kr_address_is_always_denied(class_of(&a)));
	}
}

static void
the_hosts_own_addresses_are_never_reached_POL_03(void **state)
{
	struct kr_address mine[] = { address("93.184.216.34"), address("10.1.2.3"), address("2a00::77"),
		address("127.0.0.1") };
	const struct kr_addresses own = { mine, KR_COUNT(mine) };
	static const struct {
		const char *text;
		enum kr_address_class class;
	} cases[] = {
		{ "93.184.216.34", KR_ADDRESS_OWN },
		{ "::ffff:93.184.216.34", KR_ADDRESS_OWN },
		{ "64:ff9b::93.184.216.34", KR_ADDRESS_OWN },
		{ "2002:5db8:d822::1", KR_ADDRESS_OWN },
		{ "10.1.2.3", KR_ADDRESS_OWN },
		{ "2a00::77", KR_ADDRESS_OWN },
		{ "127.0.0.1", KR_ADDRESS_LOOPBACK },
		{ "93.184.216.35", KR_ADDRESS_GLOBAL },
		{ "10.1.2.4", KR_ADDRESS_PRIVATE },
		{ "2a00::78", KR_ADDRESS_GLOBAL },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_address a = address(cases[i].text);
		struct kr_address_report report;

		kr_address_classify(&a, &own, &report);
		if (report.class != cases[i].class)
			fail_msg("%s is %s", cases[i].text, kr_address_class_name(report.class));
	}
	assert_true(kr_address_is_always_denied(KR_ADDRESS_OWN));
	assert_false(kr_address_is_always_denied(KR_ADDRESS_PRIVATE));
}

/* ---- reading and writing ---- */

static void
agree_with_libc(const char *text)
{
	struct kr_address got = { 0 };
	uint8_t want[16] = { 0 };
	char ours[KR_ADDRESS_TEXT], theirs[KR_ADDRESS_TEXT];
	bool is_v6 = strchr(text, ':') != NULL;
	bool expected = inet_pton(is_v6 ? AF_INET6 : AF_INET, text, want) == 1;

	if (kr_address_parse(text, strlen(text), &got) != expected)
		fail_msg("'%s': libc says %d", text, expected);
	if (!expected)
		return;
	assert_int_equal(got.is_v6, is_v6);
	assert_memory_equal(got.b, want, is_v6 ? 16 : 4);
	kr_address_format(&got, ours);
	assert_non_null(inet_ntop(is_v6 ? AF_INET6 : AF_INET, want, theirs, sizeof(theirs)));
	if (is_v6 &&
		strchr(theirs, '.')) /* libc writes some with the IPv4 dotted; reading ours back is the test then */
		assert_int_equal(inet_pton(AF_INET6, ours, want), 1);
	else
		assert_string_equal(ours, theirs);
	assert_memory_equal(got.b, want, is_v6 ? 16 : 4);
}

static void
literals_are_read_as_libc_reads_them(void **state)
{
	static const char *const all[] = { "", ".", "1", "1.2", "1.2.3", "1.2.3.4", "1.2.3.4.", ".1.2.3.4",
		"1.2.3.4.5", "1..3.4", "256.1.1.1", "1.1.1.256", "01.2.3.4", "1.2.3.04", "00.0.0.0", "0.0.0.0",
		"255.255.255.255", "1.2.3.4 ", " 1.2.3.4", "+1.2.3.4", "-1.2.3.4", "0x7f.0.0.1", "1.2.3.1000",
		"a.b.c.d", ":", "::", ":::", "::::", "1::", "::1", "1:", ":1", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8",
		"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1::2::3",
		"12345::", "0001::", "00001::", "g::", "::1.2.3.4", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4",
		"1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4::", "::1.2.3.4:5", "1:1.2.3.4::", "::1.2.3", "::1.2.3.04",
		"::256.1.1.1", "ABCD::EF01", "abcd:ef01::", "0:0:1::", "1:0:0:2:0:0:0:3", "1:0:2:0:3:0:4:0",
		"0:0:0:0:0:0:0:0", "::1%eth0", "[::1]", "::1 ", "1:2:3:4:5:6:1.2.3.4:", "::ffff:127.1", "::0x1" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(all); i++)
		agree_with_libc(all[i]);
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Texts of the characters that literals are made of: short ones, so that many are valid. */
static void
literals_made_at_random_are_read_as_libc_reads_them(void **state)
{
	static const char *const pieces[] = { ":", ":", "::", ".", ".", "0", "1", "255", "ffff", "a", "00", "256",
		"7f" };
	uint32_t seed = 20261129;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		char text[64] = "";
		size_t used = 0;

		for (uint32_t n = next_random(&seed) % 16; n; n--)
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s", pieces[next_random(&seed) % KR_COUNT(pieces)]);
		agree_with_libc(text);
	}
	for (int i = 0; i < 20000; i++) {
		uint8_t b[16];
		char text[KR_ADDRESS_TEXT];

		for (size_t k = 0; k < 16; k++)
			b[k] = next_random(&seed) % 3 ? 0 : (uint8_t)next_random(&seed);
		agree_with_libc(inet_ntop(AF_INET6, b, text, sizeof(text)));
		agree_with_libc(inet_ntop(AF_INET, b, text, sizeof(text)));
	}
}

static void
a_nul_or_a_tail_is_no_literal(void **state)
{
	struct kr_address out;

	(void)state;
	assert_false(kr_address_parse("1.2.3.4\0", 8, &out));
	assert_false(kr_address_parse("::1\0", 4, &out));
	assert_false(kr_address_parse("1.2.3.4", 0, &out));
	assert_true(kr_address_parse("1.2.3.45", 7, &out));
	assert_int_equal(out.b[3], 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_hold_from_end_to_end_POL_03_04),
		cmocka_unit_test(public_addresses_are_public),
		cmocka_unit_test(an_ipv4_inside_is_judged_in_every_form_POL_05),
		cmocka_unit_test(an_unspecified_ipv4_inside_is_no_way_round),
		cmocka_unit_test(the_hosts_own_addresses_are_never_reached_POL_03),
		cmocka_unit_test(literals_are_read_as_libc_reads_them),
		cmocka_unit_test(literals_made_at_random_are_read_as_libc_reads_them),
		cmocka_unit_test(a_nul_or_a_tail_is_no_literal),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
