/*
 * The worker's `kraft`: speaks to kraft over the session's channel. The channel is not part of this kraft
 * yet, so every call but --version says so and fails; nothing is pretended.
 */
#include <string.h>
#include <unistd.h>

#include "guest/sys.h"

int
kg_shim_main(int argc, char **argv)
{
	static const char version[] = "kraft " KRAFT_VERSION "\n";

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return write(1, version, sizeof(version) - 1) == (ssize_t)(sizeof(version) - 1) ? 0 : 1;
	kg_say(2, "the worker's channel is not built into this kraft", NULL);
	return 1;
}
