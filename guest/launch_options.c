/* The launcher's command line (wire.h): a table. It is kraft's, so what is wrong in it is a mistake and ends
 * the launch. */
#include <errno.h>
#include <string.h>

#include "guest/launch.h"

static bool
fd_option(int *out, const char *value)
{
	*out = kg_parse_fd(value);
	return *out >= 0;
}

#define FD_OPTION(name, field)                                          \
	static bool take_##name(void *context, const char *value)           \
	{                                                                   \
		return fd_option(&((struct kg_launch *)context)->field, value); \
	}
FD_OPTION(folder, folder)
FD_OPTION(control, control)
FD_OPTION(lifeline, lifeline)
FD_OPTION(args, args)
FD_OPTION(verify, verify)
FD_OPTION(seccomp, bwrap.seccomp)
FD_OPTION(client_env, container.environment)
FD_OPTION(client_dir, container.directory)
FD_OPTION(filter, container.filter)
FD_OPTION(listen, container.listener)

#define TEXT_OPTION(name, field)                              \
	static bool take_##name(void *context, const char *value) \
	{                                                         \
		((struct kg_launch *)context)->field = value;         \
		return true;                                          \
	}
TEXT_OPTION(channel, channel)
TEXT_OPTION(cwd, cwd)
TEXT_OPTION(exec, exec)
TEXT_OPTION(terminal_size, terminal_size)

#define PATH_OPTION(name, field)                              \
	static bool take_##name(void *context, const char *value) \
	{                                                         \
		((struct kg_launch *)context)->field = value;         \
		return value[0] == '/';                               \
	}
PATH_OPTION(bwrap, bwrap.program)
PATH_OPTION(tmp, bwrap.tmp.path)
PATH_OPTION(shm, bwrap.shm.path)
PATH_OPTION(client, container.program)
PATH_OPTION(connect, container.connect)

static bool
take_terminal(void *context, const char *value)
{
	struct kg_launch *launch = context;

	(void)value; /* a flag */
	launch->terminal = true;
	return true;
}

static bool
take_keep_stderr(void *context, const char *value)
{
	struct kg_launch *launch = context;

	(void)value; /* a flag */
	launch->keep_stderr = true;
	return true;
}

static bool
take_keep(void *context, const char *value)
{
	struct kg_launch *launch = context;

	if (launch->keep_count == KG_KEEP_MAX || !*value || strchr(value, '='))
		return false;
	launch->keep[launch->keep_count++] = value;
	return true;
}

static bool
take_pass_fd(void *context, const char *value)
{
	struct kg_launch *launch = context;

	if (launch->bwrap.pass_count == KG_PASS_MAX)
		return false;
	return fd_option(&launch->bwrap.pass[launch->bwrap.pass_count++], value);
}

static bool
take_caps(void *context, const char *value)
{
	struct kg_launch *launch = context;
	struct kg_capped *tmp = &launch->bwrap.tmp, *shm = &launch->bwrap.shm;
	uint64_t *caps[] = { &tmp->bytes, &tmp->inodes, &shm->bytes, &shm->inodes };
	const char *end = value + strlen(value);

	for (size_t i = 0; i < KG_COUNT(caps); i++) {
		if (i && (value == end || *value++ != ','))
			return false;
		if (!kg_number(&value, end, INT64_MAX, caps[i]) || *caps[i] == 0)
			return false;
	}
	launch->bwrap.has_caps = value == end;
	return launch->bwrap.has_caps;
}

static const struct kg_option launch_options[] = {
	{ "--bwrap", true, take_bwrap },
	{ "--folder", true, take_folder },
	{ "--control", true, take_control },
	{ "--lifeline", true, take_lifeline },
	{ "--args", true, take_args },
	{ "--seccomp", true, take_seccomp },
	{ "--verify", true, take_verify },
	{ "--tmp", true, take_tmp },
	{ "--shm", true, take_shm },
	{ "--caps", true, take_caps },
	{ "--keep", true, take_keep },
	{ "--pass-fd", true, take_pass_fd },
	{ "--terminal", false, take_terminal },
	{ "--terminal-size", true, take_terminal_size },
	{ "--terminal-keep-stderr", false, take_keep_stderr },
	{ "--channel", true, take_channel },
	{ "--cwd", true, take_cwd },
	{ "--exec", true, take_exec },
	{ "--client", true, take_client },
	{ "--client-env", true, take_client_env },
	{ "--client-dir", true, take_client_dir },
	{ "--filter", true, take_filter },
	{ "--listen", true, take_listen },
	{ "--connect", true, take_connect },
};

static bool
bwrap_complete(const struct kg_launch *launch)
{
	return launch->bwrap.program && launch->bwrap.seccomp >= 0 &&
		   (launch->bwrap.has_caps || (!launch->bwrap.tmp.path && !launch->bwrap.shm.path));
}

static bool
container_complete(const struct kg_launch *launch)
{
	return launch->container.connect && launch->container.environment >= 0 &&
		   launch->container.directory >= 0 && launch->container.filter >= 0 &&
		   launch->container.listener >= 0;
}

static bool
complete(const struct kg_launch *launch)
{
	return launch->command_count > 0 && launch->cwd && launch->exec && launch->folder >= 0 &&
		   launch->control >= 0 && launch->args >= 0 &&
		   (launch->container.program ? !launch->bwrap.program && container_complete(launch)
									  : bwrap_complete(launch));
}

static void
list_capped(struct kg_launch *launch)
{
	launch->bwrap.tmp.dest = "/tmp";
	launch->bwrap.shm.dest = "/dev/shm";
	if (launch->bwrap.tmp.path)
		launch->bwrap.capped[launch->bwrap.capped_count++] = launch->bwrap.tmp;
	if (launch->bwrap.shm.path)
		launch->bwrap.capped[launch->bwrap.capped_count++] = launch->bwrap.shm;
}

void
kg_launch_options(struct kg_launch *launch, int argc, char **argv)
{
	struct kg_options options = { argv, argc, 2 };
	const char *culprit = "";

	if (!kg_options_read(&options, launch_options, KG_COUNT(launch_options), launch, &culprit)) {
		kg_say(2, "launch: wrong argument '", culprit, "'", NULL);
		kg_launch_refuse(launch, KG_FAULT_INTERNAL, EINVAL);
	}
	launch->command = argv + options.at;
	launch->command_count = argc - options.at;
	if (!complete(launch)) {
		kg_say(2, "launch: arguments are missing", NULL);
		kg_launch_refuse(launch, KG_FAULT_INTERNAL, EINVAL);
	}
	launch->kind = launch->container.program ? &kg_kind_container : &kg_kind_bwrap;
	list_capped(launch);
}
