/*
 * kraft-guest: one static program, three roles.
 *   launch  on the host: parent of what makes the sandbox, between kraft and the init   launch.c
 *   init    process 1 inside: starts the command, reaps, reports                   init.c
 *   kraft   inside, as the worker's command: its way to reach kraft                shim.c, hook.c; prove.c is kraft's own
 * Launcher and init are steered by their arguments and descriptors alone: no variable and no current
 * directory is read (OS-LCH-05), and a program that links nothing has no loader that a variable could steer.
 */
#include <string.h>

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
	if (argc > 1 && strcmp(argv[1], "launch") == 0)
		return kg_launch_main(argc, argv, environment);
	if (argc > 1 && strcmp(argv[1], "init") == 0)
		return kg_init_main(argc, argv, environment);
	kg_say(2, "kraft-guest is started by kraft; its roles are 'launch' and 'init'", NULL);
	return 2;
}
