/* Writes the filter of this machine as bubblewrap wants it, for tests that start bubblewrap by hand. */
#include <unistd.h>

#include "backend/backend.h"

int
main(void)
{
	struct kr_bpf filter[KR_SECCOMP_MAX];
	size_t bytes;

	if (kr_arch_here() == KR_ARCH_UNKNOWN)
		return 1;
	bytes = kr_seccomp_build(kr_arch_here(), filter) * sizeof(*filter);
	return write(STDOUT_FILENO, filter, bytes) == (ssize_t)bytes ? 0 : 1;
}
