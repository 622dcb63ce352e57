/* One line of the verify block (guest/wire.h): what the init has to find at a place before it starts the
 * command. */
#include "backend/backend.h"

void
kr_verify_add(struct kr_buf *verify, const struct kr_opened *opened, bool read_only, const char *path)
{
	kr_buf_addf(verify, "%llu %llu %d ", (unsigned long long)opened->device,
		(unsigned long long)opened->inode, read_only);
	kr_buf_add_arg(verify, path);
}

void
kr_verify_add_elsewhere(
	struct kr_buf *verify, const struct kr_opened *opened, bool read_only, const char *path)
{
	enum { NUMBERS_DIFFER = 2 };

	kr_buf_addf(verify, "%u %d %d ", opened->type, opened->has_entries, read_only + NUMBERS_DIFFER);
	kr_buf_add_arg(verify, path);
}
