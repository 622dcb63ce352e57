/*
 * policy: what is asked for, read into one spelling (NET-13, NET-14), and the decision on it (POL-02 to
 * POL-05, NET-10, NET-17).
 */
#include <setjmp.h>
#include <stdarg.h>

#include "policy/policy.h"

#include <cmocka.h>

static const char *
parse(const char *text, size_t n, struct kr_target *out)
{
	const char *why = NULL;

	if (kr_target_parse(text, n, out, &why))
		return NULL;
	assert_non_null(why);
	return why;
}

static struct kr_target
target(const char *text)
{
	struct kr_target out;
	const char *why = parse(text, strlen(text), &out);

	if (why)
		fail_msg("'%s' %s", text, why);
	if (!out.port)
		out.port = 443;
	return out;
}

/* ---- what is asked for ---- */

static void
a_host_has_one_spelling_NET_13(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{ "example.com", "example.com" },
		{ "EXAMPLE.Com", "example.com" },
		{ "example.com.", "example.com" },
		{ "EXAMPLE.COM.:443", "example.com:443" },
		{ "a", "a" },
		{ "a.", "a" },
		{ "localhost", "localhost" },
		{ "xn--w-0ga12b.example", "xn--w-0ga12b.example" },
		{ "r3---sn-x.example", "r3---sn-x.example" },
		{ "a-.example", "a-.example" },
		{ "1.2.3.4.example", "1.2.3.4.example" },
		{ "1.2.3.e4", "1.2.3.e4" },
		{ "9.x1", "9.x1" },
		{ "1.2.3.4", "1.2.3.4" },
		{ "1.2.3.4.", "1.2.3.4" },
		{ "1.2.3.4:80", "1.2.3.4:80" },
		{ "255.255.255.255:65535", "255.255.255.255:65535" },
		{ "[::1]", "[::1]" },
		{ "[::1]:443", "[::1]:443" },
		{ "[0:0:0:0:0:0:0:1]:443", "[::1]:443" },
		{ "[2001:DB8::00A]", "[2001:db8::a]" },
		{ "[::ffff:1.2.3.4]:80", "1.2.3.4:80" },
		{ "[::FFFF:0102:0304]", "1.2.3.4" },
		{ "[::1.2.3.4]", "[::102:304]" },
		{ "[fe80::1%eth0]", "[fe80::1]" },
		{ "[fe80::1%25eth0]:80", "[fe80::1]:80" },
		{ "[fe80::1%1]", "[fe80::1]" },
		{ "[fe80::1%25]", "[fe80::1]" },
		{ "[::ffff:1.2.3.4%lo]:1", "1.2.3.4:1" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_target out, again;
		char text[KR_TARGET_TEXT];
		const char *why = parse(cases[i].text, strlen(cases[i].text), &out);

		if (why)
			fail_msg("'%s' %s", cases[i].text, why);
		kr_target_format(&out, text);
		assert_string_equal(text, cases[i].canonical);
		assert_null(parse(text, strlen(text), &again));
		assert_memory_equal(&out, &again, sizeof(out));
	}
}

static void
what_is_no_host_is_refused_NET_13(void **state)
{
	static const char *const cases[] = { "", ".", "..", "a..", ".a", "a..b", "..a", " a", "a ", "a b", "a\tb",
		"a\nb", "a\r", "a\x7f", "a\x01", "you@a", "you:pw@a", "you:pw@a:443", "@a", "a@", "a#b", "a#", "#a",
		"a%2eb", "a%00", "%61", "a%", "a\\b", "\\a", "a\\.b", "a/b", "/a", "a/", "a?b", "http://a",
		"http://a:80/", "//a", "a_b", "_a.b", "a._b", "a,b", "a;b", "a=b", "a+b", "a!b", "a~b", "a(b", "a'b",
		"a\"b", "a<b", "a|b", "a^b", "a`b", "a{b", "a$b", "a&b", "*", "**", "*.a", "a*", "\xc5\xbc.pl",
		"a\xe3\x80\x82x", "\xef\xbd\x81", "a\x80", "\xff", "\xc0\xae", "0x7f.1", "127.1", "127.0.1", "127",
		"0", "1", "2130706433", "017700000001", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01",
		"127.0.0.1.1", "127.0.0.256", "1.2.3", "1.2.3.", "1.2.3.4..", "a.1", "a.0x1", "a.1b", "example.com.1",
		"-1", "a.-b", "a.-", "-", "[", "]", "[]", "[]:1", "[a]", "[a]:443", "[example.com]", "[1.2.3.4]",
		"[1.2.3.4]:80", "[::1", "::1]", "[::1]]", "[[::1]]", "[::1]a", "[::1]:", "[::1]443", "[::1] :443",
		"[ ::1]", "[::1 ]", "[::1%]", "[::1%25", "[::1%e/0]", "[::1%e%0]", "[::1%%]", "[::1%eth0",
		"[::1%a b]", "[%eth0]", "[fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]", "[::g]", "[:::]",
		"[1::2::3]", "[1:2:3:4:5:6:7:8:9]", "[12345::]", "[::127.1]", "[v1.a]", "::1", "::", "fe80::1%eth0",
		"1:2:3:4:5:6:7:8", "a:b:c", "a::1", "a.b:1:2", "1.2.3.4:1:2", "x[::1]", "a[b]", "a:[80]" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_target out = { .port = 7 };

		if (!parse(cases[i], strlen(cases[i]), &out))
			fail_msg("'%s' is read as '%s'", cases[i], out.host);
		assert_int_equal(out.port, 7);
		assert_false(kr_target_parse(cases[i], strlen(cases[i]), &out, NULL));
	}
	assert_non_null(parse("a\0b", 3, &(struct kr_target){ 0 }));
	assert_non_null(parse("a.com\0", 6, &(struct kr_target){ 0 }));
	assert_non_null(parse("1.2.3.4\0.example.com", 20, &(struct kr_target){ 0 }));
	assert_non_null(parse("[::1\0]", 6, &(struct kr_target){ 0 }));
}

/* Every byte that is not of a host, at the start, in the middle and at the end. */
static void
no_other_byte_is_in_a_host_NET_13(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++)
		for (size_t at = 0; at < 4; at++) {
			char text[] = "abc.d";
			struct kr_target out;
			bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
						c == '-' || (c == '.' && at == 1);

			text[at > 2 ? 4 : at] = (char)c;
			if (at == 3) /* the last label */
				fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
			if ((parse(text, 5, &out) == NULL) != fits)
				fail_msg("byte %d at %zu", c, at);
		}
}

static void
long_hosts_are_refused_NET_13(void **state)
{
	char name[320];
	struct kr_target out;

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	assert_null(parse(name, 253, &out));
	assert_non_null(parse(name, 254, &out));
	name[253] = '.';
	assert_null(parse(name, 254, &out)); /* the root's dot is not counted */
	assert_int_equal(strlen(out.host), 253);
	assert_non_null(parse(name, 255, &out));
	memset(name, 'a', sizeof(name));
	assert_null(parse(name, 63, &out));
	assert_non_null(parse(name, 64, &out));
}

static void
ports_are_one_to_five_digits_NET_14(void **state)
{
	static const struct {
		const char *text;
		unsigned port; /* 0: refused */
	} cases[] = { { "1", 1 }, { "22", 22 }, { "443", 443 }, { "65535", 65535 }, { "00443", 443 },
		{ "00001", 1 }, { "", 0 }, { "0", 0 }, { "00", 0 }, { "00000", 0 }, { "000443", 0 }, { "65536", 0 },
		{ "99999", 0 }, { "100000", 0 }, { "4294967739", 0 }, { "18446744073709552059", 0 }, { "+443", 0 },
		{ "-443", 0 }, { "-0", 0 }, { " 443", 0 }, { "443 ", 0 }, { "44 3", 0 }, { "0x1bb", 0 },
		{ "443.", 0 }, { "4e2", 0 }, { "https", 0 }, { "443/", 0 }, { "443#", 0 }, { "%34", 0 },
		{ "\xd9\xa4", 0 }, { "443\r", 0 } };
	static const char *const hosts[] = { "a.example", "1.2.3.4", "[2a00::1]" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		for (size_t h = 0; h < KR_COUNT(hosts); h++) {
			char text[80];
			struct kr_target out = { 0 };

			snprintf(text, sizeof(text), "%s:%s", hosts[h], cases[i].text);
			if ((parse(text, strlen(text), &out) == NULL) != (cases[i].port != 0) ||
				out.port != cases[i].port)
				fail_msg("'%s' gives %u", text, out.port);
		}
}

/* ---- the lists ---- */

/* Lists written as one text: entries of allow, then after "!" those of deny, with blanks between. */
static struct kr_host_list
lists(struct kr_arena *arena, const char *text)
{
	struct kr_host_list out = { 0 };
	struct kr_strs *list = &out.allow;

	while (*(text += strspn(text, " "))) {
		size_t n = strcspn(text, " ");
		const char *entry = kr_arena_dup_n(arena, text, n);

		if (strcmp(entry, "!") == 0)
			list = &out.deny;
		else
			kr_strs_add(arena, list, entry);
		text += n;
	}
	return out;
}

static void
check_sentence(const struct kr_verdict *v)
{
	size_t n = strlen(v->reason);

	assert_true(n > 10 && n < sizeof(v->reason) - 1);
	assert_int_not_equal(v->reason[n - 1], '.');
	for (size_t i = 0; i < n; i++)
		assert_true(v->reason[i] >= 0x20 && v->reason[i] < 0x7f);
}

static struct kr_verdict
decide(const char *text, const char *host)
{
	struct kr_arena arena = { 0 };
	struct kr_host_list list = lists(&arena, text);
	struct kr_target t = target(host);
	struct kr_verdict v;

	kr_host_decide(&list, KR_PHASE_RUNTIME, &t, NULL, &v);
	check_sentence(&v);
	assert_int_equal(v.entry != NULL,
		v.decision == KR_HOST_ALLOWED || v.decision == KR_HOST_DENIED || v.decision == KR_HOST_INEXACT);
	v.entry = NULL; /* dies with the arena */
	kr_arena_fini(&arena);
	return v;
}

static void
expect(const char *text, const char *host, enum kr_decision want)
{
	struct kr_verdict v = decide(text, host);

	if (v.decision != want)
		fail_msg("lists '%s', host '%s': %s", text, host, v.reason);
}

/* The tables below read by these. */
#define A KR_HOST_ALLOWED
#define N KR_HOST_UNLISTED
#define D KR_HOST_DENIED
#define I KR_HOST_INEXACT
#define X KR_HOST_ALWAYS

static void
the_table_of_entries_holds_NET_17(void **state)
{
	static const struct {
		const char *lists, *host;
		enum kr_decision want;
	} cases[] = {
		/* exact */
		{ "a.example", "a.example", A },
		{ "a.example", "A.Example.", A },
		{ "A.EXAMPLE", "a.example", A },
		{ "a.example", "b.a.example", N },
		{ "a.example", "example", N },
		{ "a.example", "xa.example", N },
		{ "a.example", "a.example.evil", N },
		{ "a.example", "a-example", N },
		{ "a.example", "axexample", N },
		{ "example", "a.example", N },
		/* one label */
		{ "*.a.example", "x.a.example", A },
		{ "*.a.example", "X.A.EXAMPLE.", A },
		{ "*.a.example", "a.example", N },
		{ "*.a.example", "y.x.a.example", N },
		{ "*.a.example", "xa.example", N },
		{ "*.a.example", "x-a.example", N },
		{ "*.a.example", "x.a.example.evil", N },
		{ "*.a.example", "a.example.a.example", N },
		{ "*.com", "a.com", A },
		{ "*.com", "com", N },
		{ "*.com", "b.a.com", N },
		{ "*.com", "a.xcom", N },
		{ "*.a.example *.x.a.example", "y.x.a.example", A },
		{ "*.2.3.4", "1.2.3.4", N },
		{ "*.4", "1.2.3.4", N },
		{ "*.3.4", "1.2.3.4", N },
		/* everything */
		{ "*", "a.example", A },
		{ "**", "a.example", A },
		{ "*", "x.y.z.example:1", A },
		{ "*", "8.8.8.8", A },
		{ "*", "[2606:4700::1111]", A },
		{ "**", "[2606:4700::1111]:80", A },
		/* ports */
		{ "a.example:443", "a.example:443", A },
		{ "a.example:443", "a.example:80", N },
		{ "a.example:443", "a.example:4430", N },
		{ "a.example:00443", "a.example:443", A },
		{ "a.example:443 a.example:80", "a.example:80", A },
		{ "a.example", "a.example:22", A },
		{ "*.example:443", "a.example:443", A },
		{ "*.example:443", "a.example:22", N },
		{ "8.8.8.8:53", "8.8.8.8:53", A },
		{ "8.8.8.8:53", "8.8.8.8:443", N },
		/* nothing */
		{ "", "a.example", N },
		{ "! b.example", "a.example", N },
		/* deny wins */
		{ "a.example ! a.example", "a.example", D },
		{ "* ! a.example", "a.example", D },
		{ "* ! a.example", "b.example", A },
		{ "a.example ! *", "a.example", D },
		{ "a.example:443 ! a.example", "a.example:443", D },
		{ "a.example ! a.example:443", "a.example:443", D },
		{ "a.example ! a.example:443", "a.example:80", A },
		{ "x.a.example ! *.a.example", "x.a.example", D },
		{ "* ! *.a.example", "a.example", A },
		{ "* ! *.a.example", "y.x.a.example", A },
		{ "* ! **", "a.example", D },
		{ "! a.example", "a.example", D },
		{ "* ! a.example", "A.EXAMPLE.", D },
		/* a denied address, in what else is sent to it */
		{ "* ! 8.8.8.8", "8.8.8.8", D },
		{ "* ! 8.8.8.8", "[::ffff:8.8.8.8]", D },
		{ "* ! 8.8.8.8", "[::ffff:808:808]", D },
		{ "* ! 8.8.8.8", "[64:ff9b::8.8.8.8]", D },
		{ "* ! 8.8.8.8", "[2002:808:808::1]", D },
		{ "* ! 8.8.8.8", "[2a00::5efe:8.8.8.8]", D },
		{ "* ! 8.8.8.8:443", "[64:ff9b::8.8.8.8]:443", D },
		{ "* ! 8.8.8.8:443", "[64:ff9b::8.8.8.8]:80", A },
		{ "8.8.8.8", "[::ffff:8.8.8.8]", A },
		{ "8.8.8.8", "[64:ff9b::8.8.8.8]", N },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		expect(cases[i].lists, cases[i].host, cases[i].want);
}

/* Names of up to four labels against each kind of entry, held against the rule said in another way. */
static void
a_star_is_one_label_of_every_name_NET_17(void **state)
{
	static const char *const labels[] = { "a", "b", "ab", "example" };
	char names[400][40];
	size_t n = 0;

	(void)state;
	for (size_t depth = 1; depth <= 4; depth++)
		for (size_t code = 0; code < (size_t)1 << (2 * depth); code++) {
			size_t used = 0;

			for (size_t i = 0; i < depth; i++)
				used += (size_t)snprintf(names[n] + used, sizeof(names[n]) - used, "%s%s", i ? "." : "",
					labels[code >> (2 * i) & 3]);
			n++;
		}
	for (size_t e = 0; e < 84; e++) /* up to three labels */
		for (size_t i = 0; i < n; i++) {
			char star[48];
			const char *dot = strchr(names[i], '.');

			snprintf(star, sizeof(star), "*.%.39s", names[e]);
			expect(star, names[i], dot && strcmp(dot + 1, names[e]) == 0 ? A : N);
			expect(names[e], names[i], strcmp(names[i], names[e]) == 0 ? A : N);
		}
}

static void
each_phase_has_its_own_lists_POL_02(void **state)
{
	struct kr_arena arena = { 0 };
	struct kr_host_list empty = { 0 }, open = lists(&arena, "*");
	struct kr_target t = target("a.example");
	struct kr_verdict v;

	(void)state;
	for (int phase = 0; phase < KR_PHASE_COUNT; phase++) {
		kr_host_decide(&empty, (enum kr_phase)phase, &t, NULL, &v);
		assert_int_equal(v.decision, KR_HOST_UNLISTED);
		assert_non_null(strstr(v.reason, kr_phase_name((enum kr_phase)phase)));
		kr_host_decide(&open, (enum kr_phase)phase, &t, NULL, &v);
		assert_int_equal(v.decision, KR_HOST_ALLOWED);
		assert_int_equal(v.phase, phase);
	}
	kr_arena_fini(&arena);
}

/* ---- what no list opens ---- */

static void
closed_names_are_refused_by_name_POL_03(void **state)
{
	static const char *const closed[] = { "metadata", "metadata.google.internal", "metadata.goog",
		"metadata.azure.com", "instance-data", "instance-data.ec2.internal", "localhost", "a.localhost",
		"a.b.localhost", "kraft", "METADATA.google.INTERNAL.", "Localhost.", "kraft:80" };
	static const char *const open[] = { "metadata.example", "x.metadata.goog", "xmetadata.goog",
		"localhost.example", "xlocalhost", "instance-data.example", "kraft.example", "metadatax" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(closed); i++) {
		char exact[KR_HOST_MAX + 1];

		expect("", closed[i], X);
		expect("* ** *.google.internal *.azure.com *.goog", closed[i], X);
		snprintf(exact, sizeof(exact), "%s", target(closed[i]).host);
		expect(exact, closed[i], X);
		assert_string_equal(decide(exact, closed[i]).grant, "");
	}
	for (size_t i = 0; i < KR_COUNT(open); i++)
		expect("*", open[i], A);
}

struct spellings {
	char text[120][80];
	size_t n;
};

static void KR_PRINTF(2, 3) spell(struct spellings *s, const char *fmt, ...)
{
	va_list args;

	assert_true(s->n < KR_COUNT(s->text));
	va_start(args, fmt);
	vsnprintf(s->text[s->n++], sizeof(s->text[0]), fmt, args);
	va_end(args);
}

/* As inet_aton reads them: one to four parts, each decimal, octal or hexadecimal. */
static void
spell_by_parts(struct spellings *s, const uint8_t b[4])
{
	uint32_t all = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];

	for (int radix = 0; radix < 6; radix++)
		for (unsigned parts = 1; parts <= 4; parts++) {
			char text[80] = "", part[24];
			size_t used = 0;

			for (unsigned i = 0; i < parts; i++) {
				uint32_t value = i + 1 < parts ? b[i] : all & (UINT32_MAX >> (8 * i));

				switch (radix) {
				case 0:
					snprintf(part, sizeof(part), "%u", value);
					break;
				case 1:
					snprintf(part, sizeof(part), "0%o", value);
					break;
				case 2:
					snprintf(part, sizeof(part), "0x%x", value);
					break;
				case 3:
					snprintf(part, sizeof(part), "0X%X", value);
					break;
				case 4:
					snprintf(part, sizeof(part), "00%o", value);
					break;
				default:
					snprintf(part, sizeof(part), "0x0%x", value);
				}
				used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "." : "", part);
			}
			spell(s, "%s", text);
			if (parts > 2)
				spell(s, "%s.:80", text);
		}
}

static void
spell_in_v6(struct spellings *s, const uint8_t b[4])
{
	unsigned h = (unsigned)b[0] << 8 | b[1], l = (unsigned)b[2] << 8 | b[3];
	const unsigned a = b[0], c = b[1], d = b[2], e = b[3];

	spell(s, "[::ffff:%u.%u.%u.%u]", a, c, d, e);
	spell(s, "[::FFFF:%u.%u.%u.%u]:80", a, c, d, e);
	spell(s, "[::ffff:%x:%x]", h, l);
	spell(s, "[0:0:0:0:0:ffff:%04x:%04x]", h, l);
	spell(s, "[0000:0000:0000:0000:0000:FFFF:%04X:%04X]", h, l);
	spell(s, "[::ffff:%u.%u.%u.%u%%eth0]", a, c, d, e);
	spell(s, "[::ffff:%u.%u.%u.%u%%25lo]:443", a, c, d, e);
	spell(s, "[::%u.%u.%u.%u]", a, c, d, e);
	spell(s, "[::%x:%x]", h, l);
	spell(s, "[0:0:0:0:0:0:%x:%x]", h, l);
	spell(s, "[::ffff:0:%u.%u.%u.%u]", a, c, d, e);
	spell(s, "[::ffff:0:%x:%x]", h, l);
	spell(s, "[64:ff9b::%u.%u.%u.%u]", a, c, d, e);
	spell(s, "[64:ff9b::%x:%x]", h, l);
	spell(s, "[0064:FF9B:0:0:0:0:%x:%x]", h, l);
	spell(s, "[64:ff9b:1::%u.%u.%u.%u]", a, c, d, e);
	spell(s, "[64:ff9b:1:%x:%x:%x::]", h, d, e << 8);
	spell(s, "[2002:%x:%x::]", h, l);
	spell(s, "[2002:%x:%x::1]", h, l);
	spell(s, "[2002:%x:%x:ffff:1:2:3:4]:80", h, l);
	spell(s, "[2001:0:%x:%x:8000:1234:f7f7:f7f7]", h, l);
	spell(s, "[2001:0:808:808:8000:1234:%x:%x]", h ^ 0xffff, l ^ 0xffff);
	spell(s, "[fe80::5efe:%x:%x]", h, l);
	spell(s, "[2a00::200:5efe:%u.%u.%u.%u]", a, c, d, e);
	spell(s, "[%u.%u.%u.%u]", a, c, d, e);
	spell(s, "::ffff:%u.%u.%u.%u", a, c, d, e);
	spell(s, "x@%u.%u.%u.%u", a, c, d, e);
	spell(s, "%u.%u.%u.%u#", a, c, d, e);
	spell(s, "%u.%u.%u.%u%%00", a, c, d, e);
	spell(s, "%u%%2e%u%%2e%u%%2e%u", a, c, d, e);
	spell(s, "%u\xe3\x80\x82%u\xe3\x80\x82%u\xe3\x80\x82%u", a, c, d, e);
	spell(s, "%u.%u.%u.%u..", a, c, d, e);
	spell(s, "%03u.%03u.%03u.0%u", a, c, d, e);
}

static void
no_spelling_opens_an_always_denied_address_NET_10(void **state)
{
	static const char *const closed[] = { "127.0.0.1", "127.1.2.3", "0.0.0.0", "169.254.169.254",
		"169.254.1.1", "100.100.100.200", "224.0.0.251", "255.255.255.255", "168.63.129.16" };
	size_t judged = 0, unread = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(closed); i++) {
		struct spellings s = { .n = 0 };
		char open[120];
		uint8_t b[4];

		memcpy(b, target(closed[i]).address.b, 4);
		spell_by_parts(&s, b);
		spell_in_v6(&s, b);
		assert_true(s.n >= 40);
		snprintf(open, sizeof(open), "%s * ** *.0.0.1 *.169.254", closed[i]);
		for (size_t k = 0; k < s.n; k++) {
			struct kr_target t;

			if (parse(s.text[k], strlen(s.text[k]), &t)) {
				unread++;
				continue;
			}
			assert_true(t.is_address);
			expect(open, s.text[k], X);
			assert_string_equal(decide("", s.text[k]).grant, "");
			judged++;
		}
	}
	assert_true(judged >= 200 && judged + unread >= 500);
}

/* The control: spelled in the ways that are read, a public address is allowed, so it is the address that
 * counts. */
static void
the_same_spellings_of_a_public_address_pass_NET_10(void **state)
{
	struct spellings s = { .n = 0 };
	size_t allowed = 0, inexact = 0;

	(void)state;
	spell_by_parts(&s, (const uint8_t[]){ 93, 184, 216, 34 });
	spell_in_v6(&s, (const uint8_t[]){ 93, 184, 216, 34 });
	for (size_t k = 0; k < s.n; k++) {
		struct kr_target t;

		if (parse(s.text[k], strlen(s.text[k]), &t))
			continue;
		switch (decide("*", s.text[k]).decision) {
		case KR_HOST_ALLOWED:
			allowed++;
			break;
		case KR_HOST_INEXACT: /* tunnels and former forms are not public for themselves */
			inexact++;
			break;
		default:
			/* fe80::5efe:... is link-local, whatever is in it */
			assert_true(strncmp(s.text[k], "[fe80", 5) == 0);
		}
	}
	assert_true(allowed >= 12);
	assert_true(inexact >= 8);
}

static void
ipv6_literals_are_judged_too_NET_10(void **state)
{
	static const char *const closed[] = { "[::]", "[::1]", "[0:0:0:0:0:0:0:0]:80", "[::1%lo]", "[fe80::1]",
		"[fe80::1%eth0]", "[fe80::1%25eth0]", "[febf::1]", "[ff02::fb]", "[ff02::1%2]", "[ff0e::1]",
		"[fd00:ec2::254]", "[FD00:0EC2:0:0:0:0:0:254]", "[fd00:ec2::23]", "[fd20:ce::254]" };
	static const char *const private[] = { "[fd00::1]", "[fc00::1]", "[fec0::1]", "[2001:db8::1]", "[100::1]",
		"[3fff::1]", "[4000::1]", "[2001:20::1]" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(closed); i++)
		expect("* **", closed[i], X);
	for (size_t i = 0; i < KR_COUNT(private); i++) {
		expect("* **", private[i], I);
		assert_string_equal(decide("*", private[i]).grant, ""); /* no entry can name it */
	}
}

/* ---- addresses that need an exact entry ---- */

static void
an_address_that_is_not_public_needs_an_exact_entry_POL_04(void **state)
{
	static const char *const private[] = { "10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1",
		"198.18.0.1", "192.0.2.1", "203.0.113.1", "198.51.100.1", "240.0.0.1", "192.0.0.1", "192.88.99.1" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(private); i++) {
		char entry[80], port[80];
		struct kr_verdict v;

		snprintf(entry, sizeof(entry), "%s", private[i]);
		snprintf(port, sizeof(port), "%s:443", private[i]);
		expect(entry, private[i], A);
		expect(port, private[i], A);
		expect("*", private[i], I);
		expect("**", private[i], I);
		v = decide("*", private[i]);
		assert_string_equal(v.grant, port);
		expect("", private[i], N);
		v = decide("", private[i]);
		assert_string_equal(v.grant, port);
		snprintf(entry, sizeof(entry), "* %s", private[i]);
		v = decide(entry, private[i]);
		assert_int_equal(v.decision, KR_HOST_ALLOWED);
		assert_true(v.exact);
		snprintf(entry, sizeof(entry), "* %s:80", private[i]); /* exact, but for another port */
		expect(entry, private[i], I);
	}
}

static struct kr_verdict
resolved(const char *text, const char *host, const char *to, const struct kr_addresses *own)
{
	struct kr_arena arena = { 0 };
	struct kr_host_list list = lists(&arena, text);
	struct kr_target t = target(host);
	struct kr_address address;
	struct kr_verdict v, out;

	assert_true(kr_address_parse(to, strlen(to), &address));
	kr_host_decide(&list, KR_PHASE_RUNTIME, &t, own, &v);
	kr_address_decide(&v, &address, own, &out);
	check_sentence(&out);
	out.entry = NULL;
	kr_arena_fini(&arena);
	return out;
}

static void
each_address_of_a_name_is_judged_POL_05(void **state)
{
	struct kr_address mine = target("8.8.4.4").address;
	const struct kr_addresses own = { &mine, 1 };
	static const struct {
		const char *lists, *host, *to;
		enum kr_decision want;
		const char *grant;
	} cases[] = {
		{ "a.example", "a.example", "93.184.216.34", A, "" },
		{ "*.example", "a.example", "93.184.216.34", A, "" },
		{ "*", "a.example", "2606:4700::1111", A, "" },
		{ "a.example", "a.example", "10.0.0.1", A, "" },
		{ "a.example:443", "a.example", "10.0.0.1", A, "" },
		{ "a.example", "a.example", "fd00::1", A, "" },
		{ "*.example", "a.example", "10.0.0.1", I, "a.example:443" },
		{ "*", "a.example", "10.0.0.1", I, "a.example:443" },
		{ "**", "a.example", "64:ff9b::10.0.0.1", I, "a.example:443" },
		{ "*", "a.example:80", "fd00::1", I, "a.example:80" },
		{ "* *.example", "a.example", "2001:db8::1", I, "a.example:443" },
		{ "a.example *", "a.example", "192.168.0.1", A, "" },
		{ "a.example", "a.example", "127.0.0.1", X, "" },
		{ "a.example", "a.example", "::1", X, "" },
		{ "a.example", "a.example", "0.0.0.0", X, "" },
		{ "a.example", "a.example", "::", X, "" },
		{ "a.example", "a.example", "169.254.169.254", X, "" },
		{ "a.example", "a.example", "fd00:ec2::254", X, "" },
		{ "a.example", "a.example", "::ffff:127.0.0.1", X, "" },
		{ "a.example", "a.example", "64:ff9b::127.0.0.1", X, "" },
		{ "a.example", "a.example", "2002:7f00:1::", X, "" },
		{ "a.example", "a.example", "fe80::1", X, "" },
		{ "a.example", "a.example", "ff02::1", X, "" },
		{ "a.example", "a.example", "8.8.4.4", X, "" },
		{ "a.example", "a.example", "64:ff9b::8.8.4.4", X, "" },
		{ "* ! a.example", "a.example", "93.184.216.34", D, "" },
		{ "", "a.example", "93.184.216.34", N, "a.example:443" },
		{ "*", "metadata.goog", "93.184.216.34", X, "" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_verdict v = resolved(cases[i].lists, cases[i].host, cases[i].to, &own);

		if (v.decision != cases[i].want)
			fail_msg("lists '%s', %s at %s: %s", cases[i].lists, cases[i].host, cases[i].to, v.reason);
		assert_string_equal(v.grant, cases[i].grant);
	}
}

/* ---- what is told ---- */

/* Adding the offered entry, and nothing else, turns the refusal round. */
static void
the_offered_grant_helps(void **state)
{
	static const char *const cases[][3] = { { "", "a.example", "10.0.0.1" }, { "*", "a.example", "10.0.0.1" },
		{ "*.b.example a.example:80", "a.example", "8.8.8.8" }, { "*.example", "y.x.example:22", "8.8.8.8" },
		{ "*", "10.1.1.1:5432", "10.1.1.1" }, { "", "8.8.8.8", "8.8.8.8" } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_verdict before = resolved(cases[i][0], cases[i][1], cases[i][2], NULL), after;
		char more[KR_TARGET_TEXT + 80];

		assert_int_not_equal(before.decision, KR_HOST_ALLOWED);
		assert_string_not_equal(before.grant, "");
		snprintf(more, sizeof(more), "%.60s %s", cases[i][0], before.grant);
		after = resolved(more, cases[i][1], cases[i][2], NULL);
		assert_int_equal(after.decision, KR_HOST_ALLOWED);
		assert_true(after.exact);
	}
}

static void
reasons_say_what_is_missing(void **state)
{
	static const struct {
		const char *lists, *host, *part;
	} cases[] = {
		{ "", "a.example", "'a.example' port 443 is not on the allow list of the runtime phase" },
		{ "a.example:80", "a.example", "'a.example:80' is for port 80" },
		{ "*.a.example", "a.example", "'*.a.example' stands for exactly one label in front of 'a.example'" },
		{ "*.a.example", "y.x.a.example", "stands for exactly one label" },
		{ "a.example", "x.a.example", "'a.example' names only itself" },
		{ "* ! *.example", "a.example", "on the deny list of the runtime phase, as '*.example'" },
		{ "*", "10.0.0.1", "'10.0.0.1' is not globally routable: a private network (RFC 1918)" },
		{ "*", "[64:ff9b::127.0.0.1]", "stands for 127.0.0.1 (NAT64) and so is loopback" },
		{ "", "[2606:4700::1111]", "no entry can name an IPv6 address" },
		{ "", "a-.example", "no entry can name such a name" },
		{ "*", "metadata.goog", "Google Cloud's metadata service" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_verdict v = decide(cases[i].lists, cases[i].host);

		if (!strstr(v.reason, cases[i].part))
			fail_msg("'%s' does not say '%s'", v.reason, cases[i].part);
	}
}

static void
the_rule_is_named_with_its_place(void **state)
{
	static const char text[] = "repos:\n"
							   "  - path: /r\n"
							   "    sandbox:\n"
							   "      kind: os\n"
							   "      network:\n"
							   "        install: {allow: [pypi.example]}\n"
							   "        runtime:\n"
							   "          deny:\n"
							   "            - x.bad.example\n"
							   "            - '*.bad.example'\n"
							   "          allow: ['*', a.example,\n"
							   "            b.example]\n";
	static const struct {
		const char *host, *entry;
		unsigned line, column;
		enum kr_phase phase;
	} cases[] = {
		{ "y.bad.example", "*.bad.example", 10, 15, KR_PHASE_RUNTIME },
		{ "x.bad.example", "x.bad.example", 9, 15, KR_PHASE_RUNTIME },
		{ "a.example", "a.example", 11, 24, KR_PHASE_RUNTIME },
		{ "b.example", "b.example", 12, 13, KR_PHASE_RUNTIME },
		{ "c.example", "*", 11, 19, KR_PHASE_RUNTIME },
		{ "pypi.example", "pypi.example", 6, 27, KR_PHASE_INSTALL },
	};
	static const struct kr_places places = { "/h", "/h/.kraft", "/h/.kraft/run", "/h/.kraft/config" };
	struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	const struct kr_repos *repos = kr_repos_parse(&arena, "f", text, strlen(text), &places, &err);

	(void)state;
	if (!repos)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_target t = target(cases[i].host);
		struct kr_host_list list = repos->repo[0].sandbox.network.phase[cases[i].phase];
		struct kr_verdict v;

		kr_strs_add(&arena, &list.allow, "added.example"); /* a later entry has no place */
		kr_host_decide(&list, cases[i].phase, &t, NULL, &v);
		assert_string_equal(v.entry, cases[i].entry);
		assert_int_equal(v.mark.line, cases[i].line);
		assert_int_equal(v.mark.column, cases[i].column);
		t = target("added.example");
		kr_host_decide(&list, cases[i].phase, &t, NULL, &v);
		assert_string_equal(v.entry, "added.example");
		assert_int_equal(v.mark.line, 0);
	}
	kr_arena_fini(&arena);
}

static void
the_longest_names_leave_the_reason_whole(void **state)
{
	char name[254], lists_text[2 * 254 + 16];

	(void)state;
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	name[253] = '\0';
	snprintf(lists_text, sizeof(lists_text), "*.%s", name + 2);
	expect(lists_text, name, N);
	snprintf(lists_text, sizeof(lists_text), "%s ! %s:443", name, name);
	expect(lists_text, name, D);
	assert_int_equal(
		resolved("*", name, "2001:0:808:808:8000:1234:80ff:fefe", NULL).decision, KR_HOST_ALWAYS);
	assert_int_equal(
		resolved("*", name, "2002:a01:101:ffff:ffff:ffff:ffff:ffff", NULL).decision, KR_HOST_INEXACT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_has_one_spelling_NET_13),
		cmocka_unit_test(what_is_no_host_is_refused_NET_13),
		cmocka_unit_test(no_other_byte_is_in_a_host_NET_13),
		cmocka_unit_test(long_hosts_are_refused_NET_13),
		cmocka_unit_test(ports_are_one_to_five_digits_NET_14),
		cmocka_unit_test(the_table_of_entries_holds_NET_17),
		cmocka_unit_test(a_star_is_one_label_of_every_name_NET_17),
		cmocka_unit_test(each_phase_has_its_own_lists_POL_02),
		cmocka_unit_test(closed_names_are_refused_by_name_POL_03),
		cmocka_unit_test(no_spelling_opens_an_always_denied_address_NET_10),
		cmocka_unit_test(the_same_spellings_of_a_public_address_pass_NET_10),
		cmocka_unit_test(ipv6_literals_are_judged_too_NET_10),
		cmocka_unit_test(an_address_that_is_not_public_needs_an_exact_entry_POL_04),
		cmocka_unit_test(each_address_of_a_name_is_judged_POL_05),
		cmocka_unit_test(the_offered_grant_helps),
		cmocka_unit_test(reasons_say_what_is_missing),
		cmocka_unit_test(the_rule_is_named_with_its_place),
		cmocka_unit_test(the_longest_names_leave_the_reason_whole),
	};

	return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
