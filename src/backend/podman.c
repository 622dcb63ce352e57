/*
 * Podman's words. Facts that force the form:
 *
 * containers.conf can make anything the default, the host's namespaces and variables included, so each is
 * said. Rootless, `keep-id` maps the person to the same number inside.
 *
 * `--read-only` adds writable file systems without a limit on /run, /tmp and /var/tmp where nothing forbids
 * it. A tmpfs is filled from the image where nothing forbids it, has no option for a number of inodes, and
 * `U` in place of an owner.
 */
#include "backend/family.h"

static const char *const walls[] = { "--privileged=false", "--pid=private", "--uts=private",
	"--read-only-tmpfs=false", "--http-proxy=false", NULL };
static const char *const without_proxy[] = { NULL };

static void
user(const struct kr_container *container, struct kr_buf *args)
{
	if (container->runtime->is_rootless)
		kr_buf_add_arg(args, "--userns=keep-id");
	kr_buf_addf(args, "--user=%u:%u", container->uid, container->gid);
	kr_family_end_word(args);
}

static void
bind_mount(const struct kr_container *container, const struct kr_family_bind *bind, struct kr_buf *args)
{
	(void)container;
	kr_family_add_mount(bind, args);
	kr_buf_adds(args, bind->relabel ? ",bind-nonrecursive,relabel=shared" : ",bind-nonrecursive");
	kr_family_end_word(args);
}

static void
tmpfs_owner(const struct kr_container *container, const struct kr_step *step, struct kr_buf *args)
{
	(void)container, (void)step;
	kr_buf_adds(args, ",notmpcopyup,U");
}

const struct kr_family kr_family_podman = {
	.walls = walls,
	.without_proxy = without_proxy,
	.open_network = "--network=private",
	.user = user,
	.cannot_relabel = '\r',
	.bind = bind_mount,
	.tmpfs_owner = tmpfs_owner,
};
