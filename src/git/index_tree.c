/*
 * Does an index that a worker left name only objects that the repository has? It may name staged ones that
 * were in a private object directory which is gone, and then no commit could be made from it any more.
 *
 * git notes at the end of an index, in the extension TREE, the tree that the whole index stands for, and
 * takes the note away when anything is staged. If an index that no worker wrote stands for the same tree, the
 * repository has all that is in it. The note is a worker's word: a false one breaks the worker's own index,
 * which no git outside reads.
 *
 *     entries... (signature[4] size[4] bytes[size])... hash of it all
 *     TREE's bytes begin: name of the root ("") NUL, entries or -1, ' ', subtrees, '\n', object id unless -1
 *
 * The file may be large, so only its end is given, and the extensions are found from a "TREE" whose chain of
 * sizes leads exactly to the hash. Source: git's index-format(5).
 */
#include "git/internal.h"

enum {
	EXTENSIONS_MAX = 16
}; /* git knows eight; keeps a file made of nothing but beginnings from costing time */

static size_t
be32(const unsigned char *p)
{
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* Whether extensions follow each other from p to the end. */
static bool
leads_to_end(const unsigned char *p, size_t n)
{
	for (int count = 0; n; count++) {
		size_t size;

		if (n < 8 || count == EXTENSIONS_MAX)
			return false;
		for (int i = 0; i < 4; i++)
			if ((p[i] < 'A' || p[i] > 'Z') && (p[i] < 'a' || p[i] > 'z'))
				return false;
		size = be32(p + 4);
		if (size > n - 8)
			return false;
		p += 8 + size;
		n -= 8 + size;
	}
	return true;
}

static size_t
digits(const unsigned char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] >= '0' && p[i] <= '9')
		i++;
	return i;
}

/* What stands at the beginning of TREE's n bytes. */
static bool
parse_root(const unsigned char *p, size_t n, size_t raw, char oid[KR_OID_HEX_MAX + 1])
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 1, len;

	if (!n || p[0])
		return false;
	len = digits(p + at, n - at);
	at += len;
	if (!len || at == n || p[at++] != ' ')
		return false;
	len = digits(p + at, n - at);
	at += len;
	if (!len || at == n || p[at++] != '\n' || n - at < raw)
		return false;
	for (size_t i = 0; i < raw; i++) {
		oid[2 * i] = hex[p[at + i] >> 4];
		oid[2 * i + 1] = hex[p[at + i] & 15];
	}
	oid[2 * raw] = '\0';
	return true;
}

bool
kr_index_tree(const char *end, size_t n, size_t raw, char oid[KR_OID_HEX_MAX + 1])
{
	const unsigned char *bytes = (const unsigned char *)end, *p = bytes;

	if (n < raw + 8 || (raw != 20 && raw != 32))
		return false;
	n -= raw;
	while ((p = memmem(p, n - (size_t)(p - bytes), "TREE", 4))) {
		size_t left = n - (size_t)(p - bytes);

		if (left >= 8 && leads_to_end(p, left))
			return parse_root(p + 8, be32(p + 4), raw, oid);
		p += 4;
	}
	return false;
}
