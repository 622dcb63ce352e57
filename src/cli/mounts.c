/*
 * Which file system a directory is on, asked of the mount table: statfs of a network file system can name
 * another one.
 */
#include "cli/doctor.h"

#include "base/path.h"
#include "base/text.h"

/* A field of mountinfo: blanks, newlines and backslashes are written as \ooo. */
static const char *
unescape(struct kr_arena *arena, const char *field, size_t n)
{
	char *out = kr_arena_alloc(arena, n + 1);
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const char *p = field + i;

		if (*p == '\\' && i + 3 < n && strspn(p + 1, "01234567") >= 3) {
			out[used++] = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
			i += 3;
		} else {
			out[used++] = *p;
		}
	}
	return out;
}

/* The n-th field (from 0) of a line; NULL when it has fewer. */
static const char *
field(const char *line, const char *end, unsigned n, size_t *len)
{
	for (const char *p = line; p < end;) {
		const char *blank = memchr(p, ' ', (size_t)(end - p)), *stop = blank ? blank : end;

		if (n-- == 0) {
			*len = (size_t)(stop - p);
			return p;
		}
		p = stop + 1;
	}
	return NULL;
}

/* "ID PARENT DEVICE ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS" */
static bool
parse_line(struct kr_arena *arena, const char *line, const char *end, const char **point, const char **type)
{
	size_t len;
	const char *p = field(line, end, 4, &len);

	if (!p)
		return false;
	*point = unescape(arena, p, len);
	for (unsigned n = 6; (p = field(line, end, n, &len)); n++) {
		if (len != 1 || *p != '-')
			continue;
		p = field(line, end, n + 1, &len);
		if (!p)
			return false;
		*type = unescape(arena, p, len);
		return true;
	}
	return false;
}

const char *
kr_mount_type(struct kr_arena *arena, const char *mountinfo, const char *path)
{
	const char *best_type = NULL;
	size_t best = 0;

	for (const char *line = mountinfo; *line;) {
		const char *end = line + strcspn(line, "\n"), *point, *type;

		/* Of two on one point the later one is seen. */
		if (parse_line(arena, line, end, &point, &type) && point[0] == '/' &&
			kr_path_is_within(path, point) && strlen(point) >= best) {
			best = strlen(point);
			best_type = type;
		}
		line = end + (*end == '\n');
	}
	return best_type;
}

enum kr_verdict
kr_mount_verdict(const char *type)
{
	static const char *const network[] = { "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph",
		"coda", "ncpfs", "lustre", "gpfs", "beegfs", "orangefs", "ocfs2", "gfs2", "fuse.sshfs",
		"fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "davfs" };

	for (size_t i = 0; i < KR_COUNT(network); i++)
		if (strcmp(type, network[i]) == 0)
			return KR_VERDICT_FAIL;
	return kr_text_has_prefix(type, "fuse") || strcmp(type, "virtiofs") == 0 ? KR_VERDICT_WARN
																			 : KR_VERDICT_OK;
}
