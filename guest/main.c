/*
 * kraft-guest: one program, a few roles. On Linux it is static:
 *   launch  on the host: parent of what makes the sandbox, between kraft and the init   launch.c
 *   init    process 1 inside: starts the command, reaps, reports                   init.c
 *   pump    on the host: between the client of a container in a virtual machine and the launcher   pump_main.c
 *   kraft   inside, as the worker's command: its way to reach kraft                shim.c, hook.c; prove.c is kraft's own
 * On macOS:
 *   launch-seatbelt  on the host: parent of sandbox-exec                          seatbelt.c, ending.c, family.c
 *   start   inside: becomes the command                                           start.c
 *   end     on the host: ends what a session left whose launcher was killed       ending.c
 *   kraft   as above
 * A test's build on Linux has both (KG_SEATBELT), which is how macOS's way is tested without a Mac.
 * Launcher and init are steered by their arguments and descriptors alone: no variable and no current
 * directory is read (OS-LCH-05), and a program that links nothing has no loader that a variable could steer.
 */
#include <string.h>

#ifdef KG_SEATBELT
#include "guest/ending.h"
#include "guest/start.h"
#endif
#include "guest/sys.h"

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int
main(int argc, char **argv, char **environment)
{
	if (argc > 0 && strcmp(base_name(argv[0]), "kraft") == 0)
		return kg_shim_main(argc, argv);
#ifdef KG_SEATBELT
	if (argc > 1 && strcmp(argv[1], "launch-seatbelt") == 0)
		return kg_seatbelt_main(argc, argv, environment);
	if (argc > 1 && strcmp(argv[1], "start") == 0)
		return kg_start_main(argc, argv);
	if (argc > 1 && strcmp(argv[1], "end") == 0)
		return kg_end_main(argc, argv);
#endif
#ifndef __APPLE__
	if (argc > 1 && strcmp(argv[1], "launch") == 0)
		return kg_launch_main(argc, argv, environment);
	if (argc > 1 && strcmp(argv[1], "init") == 0)
		return kg_init_main(argc, argv, environment);
	if (argc > 1 && strcmp(argv[1], "pump") == 0)
		return kg_pump_main(argc, argv, environment);
#endif
	kg_say(2, "kraft-guest is started by kraft; it has nothing to say to a person", NULL);
	return 2;
}
