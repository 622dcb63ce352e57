/* The launcher's command line (wire.h): a table. It is kraft's, so what is wrong in it is a mistake and ends
 * the launch. */
#include <errno.h>
#include <string.h>

#include "guest/launch.h"

KG_TAKE_FD(struct kg_launch, folder, control.folder)
KG_TAKE_FD(struct kg_launch, control, control.fd)
KG_TAKE_FD(struct kg_launch, lifeline, lifeline)
KG_TAKE_FD(struct kg_launch, args, args)
KG_TAKE_FD(struct kg_launch, verify, verify)
KG_TAKE_FD(struct kg_launch, seccomp, bwrap.seccomp)
KG_TAKE_FD(struct kg_launch, client_env, container.environment)
KG_TAKE_FD(struct kg_launch, client_dir, container.directory)
KG_TAKE_FD(struct kg_launch, filter, container.filter)
KG_TAKE_FD(struct kg_launch, listen, container.listener)
KG_TAKE_TEXT(struct kg_launch, channel, channel)
KG_TAKE_TEXT(struct kg_launch, cwd, cwd)
KG_TAKE_TEXT(struct kg_launch, exec, exec)
KG_TAKE_TEXT(struct kg_launch, terminal_size, terminal_size)
KG_TAKE_PATH(struct kg_launch, bwrap, bwrap.program)
KG_TAKE_PATH(struct kg_launch, tmp, bwrap.tmp.path)
KG_TAKE_PATH(struct kg_launch, shm, bwrap.shm.path)
KG_TAKE_PATH(struct kg_launch, client, container.program)
KG_TAKE_PATH(struct kg_launch, connect, container.connect)
KG_TAKE_FLAG(struct kg_launch, machine, container.is_machine)
KG_TAKE_FLAG(struct kg_launch, terminal, terminal)
KG_TAKE_FLAG(struct kg_launch, keep_stderr, keep_stderr)

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
	launch->bwrap.pass[launch->bwrap.pass_count] = kg_parse_fd(value);
	return launch->bwrap.pass[launch->bwrap.pass_count++] >= 0;
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
	{ "--machine", false, take_machine },
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
	return launch->command_count > 0 && launch->cwd && launch->exec && launch->control.folder >= 0 &&
		   launch->control.fd >= 0 && launch->args >= 0 &&
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
