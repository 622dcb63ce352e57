/* Golden files: what a test produced against what a person has read and committed. KRAFT_GOLDEN=write renews
 * them. */
#ifndef KR_TEST_GOLDEN_H
#define KR_TEST_GOLDEN_H

#include <fcntl.h>

#include "base/buf.h"
#include "base/fd.h"

/* Compares got with the file at tests/<name>; prints the first line that differs. Returns true when they
 * agree. */
static inline bool
golden_agrees(const char *name, const struct kr_buf *got)
{
	const char *mode = getenv("KRAFT_GOLDEN");
	struct kr_buf want = KR_BUF(4u << 20);
	struct kr_error err = { 0 };
	unsigned line = 1;
	size_t i = 0, from = 0;
	bool same;

	if (mode && strcmp(mode, "write") == 0) {
		kr_auto_fd int dir = open(KR_TEST_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);

		return kr_file_write_at(dir, name, got->data, got->len, 0644, &err) == 0;
	}
	{
		kr_auto_fd int dir = open(KR_TEST_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (kr_file_read_at(dir, name, &want, &err) < 0) {
			fprintf(stderr, "# %s; KRAFT_GOLDEN=write makes it\n", err.message);
			return false;
		}
	}
	for (; i < got->len && i < want.len && got->data[i] == want.data[i]; i++)
		if (got->data[i] == '\n') {
			line++;
			from = i + 1;
		}
	same = i == got->len && i == want.len;
	if (!same)
		fprintf(stderr, "# %s:%u differs\n#  want: %.*s\n#  got:  %.*s\n", name, line,
			(int)(from < want.len ? strcspn(want.data + from, "\n") : 0), want.data ? want.data + from : "",
			(int)(from < got->len ? strcspn(got->data + from, "\n") : 0), got->data ? got->data + from : "");
	kr_buf_fini(&want);
	return same;
}

#endif
