/*
 * Docker's words. Facts that force the form:
 *
 * A daemon with userns-remap maps every user but where `--userns=host` is said; a rootless one maps its root
 * to the person, so there root is who files belong to.
 *
 * `--mount` makes nothing on the host, `-v` makes a missing source as root; but only `-v` can relabel, and it
 * has no way to say a colon. Mounts below a read-only one stay writable before 25.0, so none comes along.
 *
 * A client writes the `proxies` of its config.json into every container, with their passwords, but not those
 * that are named without a value.
 */
#include "backend/family.h"

/* Named, and unset in the client's environment (kr_runtime): taken out of the container. */
static const char *const without_proxy[] = { "--env=HTTP_PROXY", "--env=http_proxy", "--env=HTTPS_PROXY",
	"--env=https_proxy", "--env=FTP_PROXY", "--env=ftp_proxy", "--env=ALL_PROXY", "--env=all_proxy",
	"--env=NO_PROXY", "--env=no_proxy", NULL };
static const char *const walls[] = { NULL };

enum { RECURSIVE_IS_A_WORD = 25 }; /* from this version on `bind-recursive` is the key */

static void
user(const struct kr_container *container, struct kr_buf *args)
{
	if (container->runtime->is_rootless) {
		kr_buf_add_arg(args, "--user=0:0");
		return;
	}
	if (container->runtime->is_remapped)
		kr_buf_add_arg(args, "--userns=host");
	kr_buf_addf(args, "--user=%u:%u", container->uid, container->gid);
	kr_family_end_word(args);
}

static void
bind_mount(const struct kr_container *container, const struct kr_family_bind *bind, struct kr_buf *args)
{
	if (bind->relabel) {
		kr_buf_addf(args, "--volume=%s:%s:%s,z", bind->source, bind->path, bind->read_only ? "ro" : "rw");
	} else {
		kr_family_add_mount(bind, args);
		kr_buf_adds(args, container->runtime->version[0] < RECURSIVE_IS_A_WORD ? ",bind-nonrecursive"
																			   : ",bind-recursive=disabled");
	}
	kr_family_end_word(args);
}

static void
tmpfs_owner(const struct kr_container *container, const struct kr_step *step, struct kr_buf *args)
{
	const bool is_root = container->runtime->is_rootless;

	kr_buf_addf(args, ",nr_inodes=%llu,uid=%u,gid=%u", (unsigned long long)step->inodes,
		is_root ? 0 : container->uid, is_root ? 0 : container->gid);
}

const struct kr_family kr_family_docker = {
	.walls = walls,
	.without_proxy = without_proxy,
	.user = user,
	.cannot_relabel = ':',
	.bind = bind_mount,
	.tmpfs_owner = tmpfs_owner,
};
