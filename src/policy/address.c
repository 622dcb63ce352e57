/*
 * What an address is, from one table (POL-03, POL-04, facts of NET-10).
 *
 * Rows are the IANA special-purpose registries for IPv4 and IPv6, the prefixes that RFCs took back or
 * reserved, and the metadata services of the clouds. IPv4 is public unless a row says otherwise. IPv6 is the
 * other way round: only 2000::/3 is given out as global unicast, so what lies outside is not public even
 * where no row names it.
 *
 * The registries call a few small ranges globally reachable that no build needs (the AS112 and AMT anycast
 * addresses in 192.0.0.0/24 and 2001::/23, ORCHIDv2, which is no address that routers know). They get no
 * exception here: too strict costs an exact entry, too loose costs a wall.
 *
 * Some IPv6 addresses are an IPv4 address in other clothes, and something on the way (the kernel, a
 * translator, a tunnel) may take them off. Each such IPv4 is judged too, and the strictest wins. A translator
 * under a prefix of the network's own choosing cannot be known from an address.
 */
#include "policy/policy.h"

#include "base/text.h"

enum { V4_BITS = 32, V6_BITS = 128 };

struct range {
	uint8_t prefix[16];
	unsigned bits;
	enum kr_address_class class;
	const char *what, *source;
};

static const struct range v4_ranges[] = {
	{ { 0 }, 8, KR_ADDRESS_UNSPECIFIED, "this host on this network", "RFC 791" },
	{ { 10 }, 8, KR_ADDRESS_PRIVATE, "a private network", "RFC 1918" },
	{ { 100, 64 }, 10, KR_ADDRESS_PRIVATE, "a provider's shared network", "RFC 6598" },
	{ { 100, 100, 100, 200 }, 32, KR_ADDRESS_METADATA, "Alibaba Cloud's metadata service", "Alibaba Cloud" },
	{ { 127 }, 8, KR_ADDRESS_LOOPBACK, "the loopback network", "RFC 1122" },
	{ { 168, 63, 129, 16 }, 32, KR_ADDRESS_METADATA, "Azure's host service", "Microsoft Azure" },
	{ { 169, 254 }, 16, KR_ADDRESS_LINK_LOCAL, "the link-local network", "RFC 3927" },
	{ { 169, 254, 169, 254 }, 32, KR_ADDRESS_METADATA, "the clouds' metadata service",
		"AWS, Google Cloud, Azure" },
	{ { 169, 254, 170, 2 }, 32, KR_ADDRESS_METADATA, "the credentials service of ECS tasks", "AWS" },
	{ { 169, 254, 170, 23 }, 32, KR_ADDRESS_METADATA, "the credentials service of EKS pods", "AWS" },
	{ { 172, 16 }, 12, KR_ADDRESS_PRIVATE, "a private network", "RFC 1918" },
	{ { 192, 0, 0 }, 24, KR_ADDRESS_PRIVATE, "reserved for protocols", "RFC 6890" },
	{ { 192, 0, 0, 192 }, 32, KR_ADDRESS_METADATA, "Oracle Cloud's older metadata service", "Oracle Cloud" },
	{ { 192, 0, 2 }, 24, KR_ADDRESS_PRIVATE, "for documentation", "RFC 5737" },
	{ { 192, 88, 99 }, 24, KR_ADDRESS_PRIVATE, "the former 6to4 relays", "RFC 7526" },
	{ { 192, 168 }, 16, KR_ADDRESS_PRIVATE, "a private network", "RFC 1918" },
	{ { 198, 18 }, 15, KR_ADDRESS_PRIVATE, "for benchmarks", "RFC 2544" },
	{ { 198, 51, 100 }, 24, KR_ADDRESS_PRIVATE, "for documentation", "RFC 5737" },
	{ { 203, 0, 113 }, 24, KR_ADDRESS_PRIVATE, "for documentation", "RFC 5737" },
	{ { 224 }, 4, KR_ADDRESS_MULTICAST, "multicast", "RFC 1112" },
	{ { 240 }, 4, KR_ADDRESS_PRIVATE, "reserved", "RFC 1112" },
	{ { 255, 255, 255, 255 }, 32, KR_ADDRESS_BROADCAST, "the limited broadcast", "RFC 919" },
};

static const struct range v6_ranges[] = {
	{ { 0 }, 128, KR_ADDRESS_UNSPECIFIED, "the unspecified address", "RFC 4291" },
	{ { [15] = 1 }, 128, KR_ADDRESS_LOOPBACK, "the loopback address", "RFC 4291" },
	{ { 0 }, 96, KR_ADDRESS_PRIVATE, "the former IPv4-compatible addresses", "RFC 4291" },
	{ { [8] = 0xff, 0xff }, 96, KR_ADDRESS_PRIVATE, "IPv4-translated addresses", "RFC 2765" },
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, KR_ADDRESS_PRIVATE, "a network's own NAT64", "RFC 8215" },
	{ { 0x01 }, 64, KR_ADDRESS_PRIVATE, "to be discarded", "RFC 6666" },
	{ { 0x01, [7] = 0x01 }, 64, KR_ADDRESS_PRIVATE, "a dummy prefix", "RFC 9780" },
	{ { 0x20, 0x01 }, 32, KR_ADDRESS_PRIVATE, "Teredo tunnels", "RFC 4380" },
	{ { 0x20, 0x01, 0x00, 0x02 }, 48, KR_ADDRESS_PRIVATE, "for benchmarks", "RFC 5180" },
	{ { 0x20, 0x01, 0x00, 0x10 }, 28, KR_ADDRESS_PRIVATE, "ORCHID, names and no places", "RFC 4843" },
	{ { 0x20, 0x01, 0x00, 0x20 }, 28, KR_ADDRESS_PRIVATE, "ORCHIDv2, names and no places", "RFC 7343" },
	{ { 0x20, 0x01 }, 23, KR_ADDRESS_PRIVATE, "reserved for protocols", "RFC 2928" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, KR_ADDRESS_PRIVATE, "for documentation", "RFC 3849" },
	{ { 0x20, 0x02 }, 16, KR_ADDRESS_PRIVATE, "6to4 tunnels", "RFC 3056, RFC 7526" },
	{ { 0x3f, 0xfe }, 16, KR_ADDRESS_PRIVATE, "the former 6bone", "RFC 3701" },
	{ { 0x3f, 0xff }, 20, KR_ADDRESS_PRIVATE, "for documentation", "RFC 9637" },
	{ { 0x5f, 0x00 }, 16, KR_ADDRESS_PRIVATE, "segment identifiers, and once the 6bone",
		"RFC 9602, RFC 1897" },
	{ { 0xfc }, 7, KR_ADDRESS_PRIVATE, "a private network (ULA)", "RFC 4193" },
	{ { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54 }, 128, KR_ADDRESS_METADATA, "EC2's metadata service",
		"AWS" },
	{ { 0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23 }, 128, KR_ADDRESS_METADATA,
		"the credentials service of EKS pods", "AWS" },
	{ { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 }, 128, KR_ADDRESS_METADATA,
		"Google Cloud's metadata service", "Google Cloud" },
	{ { 0xfe, 0x80 }, 10, KR_ADDRESS_LINK_LOCAL, "the link-local network", "RFC 4291" },
	{ { 0xfe, 0xc0 }, 10, KR_ADDRESS_PRIVATE, "the former site-local networks", "RFC 3879" },
	{ { 0xff }, 8, KR_ADDRESS_MULTICAST, "multicast", "RFC 4291" },
};

/* Where an IPv4 lies in an IPv6 address. `inverted`: each bit of it is turned over there. */
static const struct form {
	uint8_t prefix[16];
	unsigned bits, at;
	bool inverted;
	const char *name;
} forms[] = {
	{ { [10] = 0xff, 0xff }, 96, 12, false, "IPv4-mapped" },                  /* RFC 4291 2.5.5.2 */
	{ { 0 }, 96, 12, false, "IPv4-compatible" },                              /* RFC 4291 2.5.5.1 */
	{ { [8] = 0xff, 0xff }, 96, 12, false, "IPv4-translated" },               /* RFC 2765 */
	{ { 0x20, 0x02 }, 16, 2, false, "6to4" },                                 /* RFC 3056 */
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, 12, false, "NAT64" },                   /* RFC 6052 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, 12, false, "local NAT64" }, /* RFC 8215, a /96 below it */
	{ { 0x20, 0x01 }, 32, 4, false, "Teredo server" },                        /* RFC 4380 4 */
	{ { 0x20, 0x01 }, 32, 12, true, "Teredo client" },
};

static bool
has_prefix(const uint8_t *b, const uint8_t *prefix, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(b, prefix, whole) != 0)
		return false;
	return rest == 0 || ((b[whole] ^ prefix[whole]) & (0xff00u >> rest) & 0xffu) == 0;
}

static bool
is_mapped(const struct kr_address *address)
{
	return address->is_v6 && has_prefix(address->b, forms[0].prefix, forms[0].bits);
}

bool
kr_address_same(const struct kr_address *a, const struct kr_address *b)
{
	return a->is_v6 == b->is_v6 && memcmp(a->b, b->b, a->is_v6 ? V6_BITS / 8 : V4_BITS / 8) == 0;
}

/* ---- reading ---- */

static bool
parse_v4(const char *s, size_t n, uint8_t out[4])
{
	size_t i = 0;

	for (int part = 0; part < 4; part++) {
		unsigned value = 0;
		size_t start;

		if (part && (i == n || s[i++] != '.'))
			return false;
		start = i;
		for (; i < n && i - start < 3 && s[i] >= '0' && s[i] <= '9'; i++)
			value = value * 10 + (unsigned)(s[i] - '0');
		/* A leading zero is octal to some readers and decimal to others. */
		if (i == start || value > 255 || (i - start > 1 && s[start] == '0'))
			return false;
		out[part] = (uint8_t)value;
	}
	return i == n;
}

/* Groups from s up to its end: how many bytes they are, or -1. A dotted IPv4 may stand for the last two. */
static int
parse_groups(const char *s, size_t n, uint8_t out[16])
{
	size_t i = 0;
	int bytes = 0;

	while (i < n) {
		size_t start = i, end = i;
		unsigned value = 0;

		for (; end < n && s[end] != ':'; end++)
			;
		if (memchr(s + start, '.', end - start)) {
			if (bytes > 12 || end != n || !parse_v4(s + start, end - start, out + bytes))
				return -1;
			return bytes + 4;
		}
		if (end == start || end - start > 4 || bytes == 16)
			return -1;
		for (; i < end; i++) {
			if (kr_hex_digit(s[i]) < 0)
				return -1;
			value = value << 4 | (unsigned)kr_hex_digit(s[i]);
		}
		out[bytes++] = (uint8_t)(value >> 8);
		out[bytes++] = (uint8_t)value;
		if (i < n && ++i == n)
			return -1; /* a colon at the end */
	}
	return bytes;
}

static bool
parse_v6(const char *s, size_t n, uint8_t out[16])
{
	const char *gap = memmem(s, n, "::", 2);
	uint8_t head[16] = { 0 }, tail[16] = { 0 };
	int before, after;
	size_t split;

	if (!gap)
		return parse_groups(s, n, out) == 16;
	split = (size_t)(gap - s);
	if (memchr(s, '.', split))
		return false; /* a dotted part stands at the end only */
	before = parse_groups(s, split, head);
	after = parse_groups(gap + 2, n - split - 2, tail);
	if (before < 0 || after < 0 || before + after > 14)
		return false; /* '::' stands for one group at least */
	memset(out, 0, 16);
	memcpy(out, head, (size_t)before);
	memcpy(out + 16 - after, tail, (size_t)after);
	return true;
}

bool
kr_address_parse(const char *text, size_t n, struct kr_address *out)
{
	struct kr_address address = { .is_v6 = n && memchr(text, ':', n) };

	if (address.is_v6 ? !parse_v6(text, n, address.b) : !parse_v4(text, n, address.b))
		return false;
	*out = address;
	return true;
}

/* ---- writing ---- */

/* The longest run of two or more zero groups, the first of equals: *length is 0 when there is none. */
static int
longest_gap(const unsigned group[8], int *length)
{
	int best = 0;

	*length = 0;
	for (int from = 0, to; from < 8; from = to + 1) {
		for (to = from; to < 8 && group[to] == 0; to++)
			;
		if (to - from > 1 && to - from > *length) {
			best = from;
			*length = to - from;
		}
	}
	return best;
}

void
kr_address_format(const struct kr_address *address, char out[KR_ADDRESS_TEXT])
{
	const uint8_t *b = address->b;
	unsigned group[8];
	int gap, length;
	size_t used = 0;

	if (!address->is_v6) {
		snprintf(out, KR_ADDRESS_TEXT, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
		return;
	}
	for (size_t i = 0; i < 8; i++)
		group[i] = (unsigned)b[i * 2] << 8 | b[i * 2 + 1];
	gap = longest_gap(group, &length);
	out[0] = '\0';
	for (int i = 0; i < 8; i++) {
		if (length && i == gap) {
			used += (size_t)snprintf(out + used, KR_ADDRESS_TEXT - used, "::");
			i += length - 1;
			continue;
		}
		used += (size_t)snprintf(
			out + used, KR_ADDRESS_TEXT - used, "%s%x", used && out[used - 1] != ':' ? ":" : "", group[i]);
	}
}

/* ---- judging ---- */

const char *kr_address_class_name(enum kr_address_class class)
{
	static const char *const names[] = {
#define X(class, name, words) [KR_ADDRESS_##class] = name,
		KR_ADDRESS_CLASSES(X)
#undef X
	};

	return names[class];
}

const char *kr_address_class_words(enum kr_address_class class)
{
	static const char *const all_words[] = {
#define X(class, name, words) [KR_ADDRESS_##class] = words,
		KR_ADDRESS_CLASSES(X)
#undef X
	};

	return all_words[class];
}

bool kr_address_is_always_denied(enum kr_address_class class)
{
	return class >= KR_ADDRESS_OWN;
}

static size_t
add_embedded(struct kr_embedded *out, const uint8_t *b, bool inverted, const char *form)
{
	*out = (struct kr_embedded){ .form = form };
	for (size_t i = 0; i < 4; i++)
		out->address.b[i] = inverted ? (uint8_t)~b[i] : b[i];
	return 1;
}

static bool
all_zero(const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b[i])
			return false;
	return true;
}

/*
 * The other layouts of RFC 6052 2.2, for prefixes of 48, 56 and 64 bits: byte 8 is skipped, what follows the
 * address is zero. Which one a network uses cannot be seen, so each that fits counts; 0.x.y.z means that it
 * does not fit.
 */
static size_t
add_local_nat64(const uint8_t *b, struct kr_embedded *out)
{
	static const uint8_t at[][4] = { { 6, 7, 9, 10 }, { 7, 9, 10, 11 }, { 9, 10, 11, 12 } };
	size_t n = 0;

	for (size_t i = 0; i < KR_COUNT(at); i++) {
		uint8_t v4[4];

		for (size_t k = 0; k < 4; k++)
			v4[k] = b[at[i][k]];
		if (v4[0] && b[8] == 0 && all_zero(b + at[i][3] + 1, 15u - at[i][3]))
			n += add_embedded(out + n, v4, false, "local NAT64");
	}
	return n;
}

size_t
kr_address_embedded(const struct kr_address *address, struct kr_embedded out[KR_EMBEDDED_MAX])
{
	const uint8_t *b = address->b;
	size_t n = 0;

	if (!address->is_v6)
		return 0;
	if (has_prefix(b, (const uint8_t[]){ 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48))
		n += add_local_nat64(b, out);
	for (size_t i = 0; i < KR_COUNT(forms); i++) {
		/* One local layout that fits is enough, unless the last bytes are an address as well. */
		if (forms[i].bits == 48 && n && b[12] == 0)
			continue;
		if (has_prefix(b, forms[i].prefix, forms[i].bits))
			n += add_embedded(out + n, b + forms[i].at, forms[i].inverted, forms[i].name);
	}
	/* ISATAP (RFC 5214 6.1): in the interface part, under any prefix; the two low bits of its first byte are
	 * flags. */
	if ((b[8] & 0xfc) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe)
		n += add_embedded(out + n, b + 12, false, "ISATAP");
	return n;
}

static bool
is_own(const struct kr_address *address, const struct kr_addresses *own)
{
	for (size_t i = 0; own && i < own->n; i++)
		if (kr_address_same(address, &own->v[i]))
			return true;
	return false;
}

static void
consider(struct kr_address_report *out, enum kr_address_class class, const char *what, const char *source)
{
	if (class > out->class || !out->what)
		*out = (struct kr_address_report){ .class = class, .what = what, .source = source };
}

/* The address for what it is, without what may be inside. */
static void
classify_plain(
	const struct kr_address *address, const struct kr_addresses *own, struct kr_address_report *out)
{
	const struct range *ranges = address->is_v6 ? v6_ranges : v4_ranges;
	size_t n = address->is_v6 ? KR_COUNT(v6_ranges) : KR_COUNT(v4_ranges);
	bool given_out = !address->is_v6 || (address->b[0] & 0xe0) == 0x20 ||
					 has_prefix(address->b, (const uint8_t[16]){ 0x00, 0x64, 0xff, 0x9b }, 96);

	*out = (struct kr_address_report){ 0 };
	for (size_t i = 0; i < n; i++)
		if (has_prefix(address->b, ranges[i].prefix, ranges[i].bits))
			consider(out, ranges[i].class, ranges[i].what, ranges[i].source);
	if (is_own(address, own))
		consider(out, KR_ADDRESS_OWN, "an address of this host", "its network interfaces");
	if (!given_out)
		consider(out, KR_ADDRESS_PRIVATE, "outside of what is given out as global unicast", "RFC 4291");
	consider(out, KR_ADDRESS_GLOBAL, "a public address", "IANA");
}

void
kr_address_classify(
	const struct kr_address *address, const struct kr_addresses *own, struct kr_address_report *out)
{
	struct kr_embedded inside[KR_EMBEDDED_MAX];
	size_t n = kr_address_embedded(address, inside);
	struct kr_address_report worst;

	classify_plain(address, own, &worst);
	if (is_mapped(address))
		worst =
			(struct kr_address_report){ .class = KR_ADDRESS_GLOBAL }; /* it is that IPv4 and nothing else */
	for (size_t i = 0; i < n; i++) {
		struct kr_address_report inner;

		classify_plain(&inside[i].address, own, &inner);
		if (inner.class > worst.class || !worst.what) {
			worst = inner;
			worst.form = inside[i].form;
			worst.inner = inside[i].address;
		}
	}
	*out = worst;
}
