#include "base/portable.h"

#include <sys/attr.h>
#include <unistd.h>

int
kr_unlock_at(int dir_fd, const char *name)
{
	struct attrlist which = { .bitmapcount = ATTR_BIT_MAP_COUNT, .commonattr = ATTR_CMN_FLAGS };
	struct stat st;
	uint32_t flags;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !(st.st_flags & (UF_IMMUTABLE | UF_APPEND)))
		return -1;
	flags = st.st_flags & (uint32_t)~(UF_IMMUTABLE | UF_APPEND);
	return setattrlistat(dir_fd, name, &which, &flags, sizeof(flags), FSOPT_NOFOLLOW);
}
