#include "run/container.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "egress/managed.h"
#include "git/private.h"
#include "run/internal.h"

/* ---- runtime and image ---- */

/* As the runtimes write it. */
static const char *
architecture_here(void)
{
	struct utsname here;

	if (uname(&here) < 0)
		return "";
	return strcmp(here.machine, "x86_64") == 0    ? "amd64"
		   : strcmp(here.machine, "aarch64") == 0 ? "arm64"
												  : "";
}

/* Under emulation kraft's filter would judge another machine's system calls. */
static int
check_architecture(const struct kr_image *image, struct kr_error *err)
{
	const char *here = architecture_here();

	if (!image->architecture || !*image->architecture || !*here || strcmp(image->architecture, here) == 0)
		return 0;
	kr_fail(err, KR_E_IMAGE_ARCHITECTURE, "the image '%s' is made for '%s', and this machine is '%s'", image->name,
		image->architecture, here);
	return kr_hint(err, "name an image of this machine's architecture");
}

/* What runs inside is a program of Linux, and of those a Mac has none. */
int
kr_run_container_check_host(const struct kr_host *host, struct kr_error *err)
{
	if (host->os != KR_SYSTEM_MACOS)
		return 0;
	kr_fail(err, KR_E_UNSUPPORTED, "kind: docker and kind: podman are not built into this kraft for macOS");
	return kr_hint(err, "use 'kind: os', whose walls are macOS's own");
}

static int
find_runtime(struct kr_arena *arena, const struct kr_host *host, const struct kr_repo *repo,
	struct kr_run_container *out, struct kr_error *err)
{
	if (kr_run_container_check_host(host, err) < 0 || kr_plan_check_network(repo, err) < 0 ||
		kr_sandbox_file_load(arena, &host->places, &out->file, err) < 0 ||
		kr_ca_extra(arena, host, &out->file, &out->ca, err) < 0 ||
		kr_runtime_find(arena, host, &out->file, &out->runtime, err) < 0)
		return -1;
	out->has_runtime = true;
	if (kr_runtime_check(&out->runtime, &repo->sandbox, out->file.selinux, err) < 0)
		return -1;
	out->is_enforced = true;
	return 0;
}

/* What is found of runtime and image, in the words of a plan; of what was not found, nothing is known. */
static void
describe(struct kr_run_container *c)
{
	c->plan = (struct kr_plan_container){
		.runtime = c->has_runtime ? c->runtime.name : "a runtime that does not answer",
		.image = c->image.name,
		.image_id = c->image.id,
		.entrypoint = &c->image.entrypoint,
		.image_env = &c->image.env,
		.volumes = &c->image.volumes,
	};
}

int
kr_run_container_look(struct kr_arena *arena, const struct kr_host *host, const struct kr_repo *repo,
	struct kr_run_container *out, struct kr_error *err)
{
	int result;

	out->is_used = true;
	out->image.name = repo->sandbox.image;
	result = find_runtime(arena, host, repo, out, err);
	if (result == 0)
		result = kr_image_look(arena, &out->runtime, repo->sandbox.image, &out->image, err);
	describe(out);
	return result;
}

/* A terminal that a person may see the progress on; -1: none. */
static int
shown_on(const struct kr_run_state *run)
{
	return !run->want->streams && isatty(STDERR_FILENO) ? STDERR_FILENO : -1;
}

/* CTR-13. Whoever set a time for this run ends it with a signal, which ends the fetching too. */
static int
fetch(struct kr_run_state *run, struct kr_run_container *c, struct kr_error *err)
{
	kr_run_say("fetching the image '%s'", c->image.name);
	if (kr_image_pull(run->arena, &c->runtime, c->image.name, shown_on(run), 0, err) < 0 ||
		kr_image_look(run->arena, &c->runtime, run->repo->sandbox.image, &c->image, err) < 0)
		return -1;
	if (!c->image.id)
		return kr_fail(err, KR_E_WALL, "'%s' fetched the image '%s' and does not have it", c->runtime.name,
			c->image.name);
	describe(c);
	return 0;
}

static struct kr_container
container_of(const struct kr_run_state *run, const char *session)
{
	const struct kr_run_container *c = &run->container;
	const char *name = kr_container_name(run->arena, session);

	return (struct kr_container){
		.runtime = &c->runtime,
		.image = &c->image,
		.selinux = c->file.selinux,
		.home = run->host.places.kraft_home,
		.name = name,
		.client_dir = kr_container_client_dir(run->arena, run->host.places.run_dir, name),
		.uid = (unsigned)geteuid(),
		.gid = (unsigned)getegid(),
	};
}

/* ---- the CA that it has to trust as well ---- */

/*
 * The image's own roots, kept by its id. `sh` of the image reads one file, without network, capabilities or a
 * mount of ours; what it prints is only looked through for certificates.
 */
static const char *const ask_roots =
	"for f in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt "
	"/etc/ssl/cert.pem; do [ -f \"$f\" ] && exec cat \"$f\"; done; exit 0";

static const char *
roots_file(struct kr_run_state *run)
{
	const char *id = run->container.image.id, *colon = strchr(id, ':');

	return kr_arena_printf(
		run->arena, "%s/cache/roots-%.64s.pem", run->host.places.run_dir, colon ? colon + 1 : id);
}

/*
 * What the sweep goes by when this process dies meanwhile: the client's directory, and a session's folder
 * without facts, which counts as alive for longer than a call takes (session/sweep.c).
 */
static int
leave_trace(const struct kr_container *container, const char *folder, struct kr_error *err)
{
	kr_auto_fd int session = kr_path_make_dirs(folder, err), client = -1;

	if (session >= 0)
		client = kr_path_make_dirs(container->client_dir, err);
	return client < 0 ? -1 : 0;
}

static void
clear_trace(const struct kr_container *container, const char *folder)
{
	(void)kr_tree_remove_at(AT_FDCWD, container->client_dir); /* the sweep does it else */
	(void)kr_tree_remove_at(AT_FDCWD, folder);
}

static int
ask_image(struct kr_run_state *run, const struct kr_container *container, const char *session,
	struct kr_buf *out, struct kr_error *err)
{
	struct kr_strs argv = { 0 };

	if (kr_container_script_args(
			run->arena, container, session, &run->repo->sandbox.resources, ask_roots, &argv, err) < 0)
		return -1;
	if (kr_runtime_call(run->arena, container->runtime, argv.v, KR_RUNTIME_CALL_MS, out, err) == 0)
		return 0;
	return kr_wrap(err, "reading the roots that '%s' trusts", container->image->name);
}

static int
read_roots(struct kr_run_state *run, struct kr_buf *pem, struct kr_error *err)
{
	const char *id = kr_session_new_id(run->arena, err), *folder;
	kr_auto_buf struct kr_buf bytes = KR_BUF(KR_CA_BYTES);
	struct kr_container container;
	int result;

	if (!id)
		return -1;
	folder = kr_arena_printf(run->arena, "%s/sessions/%s", run->host.places.run_dir, id);
	container = container_of(run, id);
	if (leave_trace(&container, folder, err) < 0)
		return -1;
	result = ask_image(run, &container, id, &bytes, err);
	if (result == 0 || kr_container_remove(run->arena, container.runtime, container.name, NULL) == 0)
		clear_trace(&container, folder);
	if (result == 0)
		(void)kr_ca_certificates(bytes.data ? bytes.data : "", bytes.len, pem);
	return result;
}

static int
find_roots(struct kr_run_state *run, struct kr_error *err)
{
	const char *path = roots_file(run);
	kr_auto_buf struct kr_buf pem = KR_BUF(KR_CA_BYTES);
	kr_auto_fd int dir = kr_path_make_dirs(kr_path_dirname(run->arena, path), err);

	if (dir < 0)
		return -1;
	if (kr_file_read_at(dir, kr_path_basename(path), &pem, NULL) < 0) {
		pem.len = 0;
		if (read_roots(run, &pem, err) < 0)
			return -1;
		(void)kr_file_write_at(dir, kr_path_basename(path), pem.data ? pem.data : "", pem.len, 0600, NULL);
	}
	run->container.roots = pem.len ? kr_arena_dup_n(run->arena, pem.data, pem.len) : "";
	return 0;
}

static int
find_ca(struct kr_run_state *run, struct kr_error *err)
{
	struct kr_run_container *c = &run->container;

	if (c->ca.ignored)
		kr_run_say("SSL_CERT_FILE is not used for containers: %s", c->ca.ignored);
	return c->ca.path || run->repo->sandbox.credential_count ? find_roots(run, err) : 0;
}

int
kr_run_container_find(struct kr_run_state *run, struct kr_error *err)
{
	struct kr_run_container *c = &run->container;

	if (kr_run_kit_find(run->arena, &run->host, true, shown_on(run), &run->repo, &run->kit, err) < 0)
		return -1;
	if (run->repo->sandbox.kind != KR_SANDBOX_DOCKER)
		return 0;
	if (kr_run_container_look(run->arena, &run->host, run->repo, c, err) < 0 ||
		(!c->image.id && fetch(run, c, err) < 0) || check_architecture(&c->image, err) < 0)
		return -1;
	return find_ca(run, err);
}

/* ---- whose the item's files are ---- */

static int
refuse_owner(const char *path, const struct stat *st, struct kr_error *err)
{
	kr_fail(err, KR_E_REFUSED, "'%s' belongs to user %u, so neither a container nor kraft can work with it",
		path, (unsigned)st->st_uid);
	return kr_hint(err, "another kind of runtime left it; as root: chown -R %u:%u '%s'", (unsigned)geteuid(),
		(unsigned)getegid(), path);
}

/* The directory and what is directly in it. */
static int
check_owner_of(struct kr_arena *arena, const char *path, struct kr_error *err)
{
	int fd = kr_path_open(path, O_RDONLY | O_DIRECTORY, NULL);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;
	int result = 0;

	if (!dir) {
		kr_close_p(&fd);
		if (lstat(path, &st) == 0 && st.st_uid != geteuid())
			return refuse_owner(path, &st, err);
		return 0; /* it is made, or refused, by who needs it */
	}
	if (fstat(fd, &st) == 0 && st.st_uid != geteuid())
		result = refuse_owner(path, &st, err);
	for (const struct dirent *e; result == 0 && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != geteuid())
			result = refuse_owner(kr_arena_printf(arena, "%s/%s", path, e->d_name), &st, err);
	closedir(dir);
	return result;
}

int
kr_run_container_check_owner(struct kr_run_state *run, struct kr_error *err)
{
	const struct kr_item *item = &run->item;

	if (!run->container.is_used)
		return 0;
	if (check_owner_of(run->arena, item->home, err) < 0 ||
		check_owner_of(run->arena, item->results_dir, err) < 0)
		return -1;
	for (size_t i = 0; i < run->tree_count; i++) {
		struct kr_private git;

		if (kr_private_name(run->arena, run->host.places.run_dir, item->id, (unsigned)i,
				&run->trees[i].checkout, &git, err) < 0 ||
			check_owner_of(run->arena, git.dir, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- one session ---- */

static const char bundle_name[] = "ca-bundle.pem";

const char *
kr_run_container_bundle(struct kr_arena *arena, const char *run_dir, const char *session)
{
	return kr_arena_printf(arena, "%s/sessions/%s/%s", run_dir, session, bundle_name);
}

/* In the session's folder, which is never shown: inside it is read-only, and no other session has this one
 * (FS-18). */
static int
write_bundle(struct kr_run_state *run, const char *folder, const char *authority, struct kr_error *err)
{
	const struct kr_run_container *c = &run->container;
	kr_auto_buf struct kr_buf text = KR_BUF(2 * KR_CA_BYTES);
	kr_auto_fd int fd = kr_path_open(folder, O_RDONLY | O_DIRECTORY, err);

	if (fd < 0)
		return -1;
	kr_buf_adds(&text, c->roots);
	kr_buf_add(&text, c->ca.pem ? c->ca.pem : "", c->ca.pem_len);
	kr_buf_adds(&text, authority ? authority : "");
	return kr_file_write_at(fd, bundle_name, text.data, text.len, 0600, err);
}

struct kr_run_container_launch *
kr_run_container_place(struct kr_run_state *run, const struct kr_session_paths *paths)
{
	const struct kr_run_container *c = &run->container;
	struct kr_run_container_launch *launch = kr_arena_new(run->arena, struct kr_run_container_launch);

	launch->plan = c->plan;
	launch->container = container_of(run, paths->id);
	return launch;
}

int
kr_run_container_trust(struct kr_run_state *run, const struct kr_session_paths *paths, const char *authority,
	struct kr_run_container_launch *launch, struct kr_error *err)
{
	if (!run->container.ca.path && !authority)
		return 0;
	if (write_bundle(run, paths->folder, authority, err) < 0)
		return -1;
	launch->plan.ca_bundle = kr_run_container_bundle(run->arena, run->host.places.run_dir, paths->id);
	return 0;
}

/* ---- what this host trusts ---- */

static const char *const host_roots[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/cert.pem",
};

/* The file that was asked for, and no other in its place. */
static int
read_host_roots(const struct kr_host *host, struct kr_buf *bytes, struct kr_error *err)
{
	const char *asked = kr_host_env(host, "SSL_CERT_FILE");

	if (asked && *asked) {
		if (kr_file_read_at(AT_FDCWD, asked, bytes, err) == 0)
			return 0;
		kr_wrap(err, "SSL_CERT_FILE, by which hosts that get a secret are verified");
		return kr_hint(err, "let it name a file of PEM certificates that kraft can read, or unset it");
	}
	for (size_t i = 0; i < KR_COUNT(host_roots); i++) {
		bytes->len = 0;
		if (kr_file_read_at(AT_FDCWD, host_roots[i], bytes, NULL) == 0)
			return 0;
	}
	kr_fail(err, KR_E_CONFIG, "this host has no file of root certificates, so no host that gets a secret could be verified");
	return kr_hint(err, "install the package ca-certificates, or set SSL_CERT_FILE");
}

int
kr_run_container_host_roots(struct kr_run_state *run, const char **pem, size_t *bytes, struct kr_error *err)
{
	const struct kr_run_container *c = &run->container;
	kr_auto_buf struct kr_buf file = KR_BUF(KR_CA_BYTES), text = KR_BUF(4 * KR_CA_BYTES);

	if (read_host_roots(&run->host, &file, err) < 0)
		return -1;
	(void)kr_ca_certificates(file.data ? file.data : "", file.len, &text);
	if (c->file.ca_bundle) {
		kr_buf_add(&text, c->ca.pem, c->ca.pem_len);
		kr_buf_add(&text, c->ca.revoked, c->ca.revoked_len);
	}
	if (!kr_ca_revocations(file.data ? file.data : "", file.len, &text)) {
		kr_fail(err, KR_E_CONFIG, "the root certificates of this host hold a list of revoked ones (X509 CRL) that is not whole");
		return kr_hint(err, "mend the file that SSL_CERT_FILE names, or unset it");
	}
	if (!text.len || text.len > KR_MANAGED_ROOTS_BYTES) {
		kr_fail(err, KR_E_CONFIG, "the root certificates of this host are %s, so no host that gets a secret could be verified",
			text.len ? "too large" : "none");
		return kr_hint(err, "set SSL_CERT_FILE to a file of PEM certificates, 4 MiB at most with sandbox.yaml's ca_bundle");
	}
	*bytes = text.len;
	*pem = kr_arena_dup_n(run->arena, text.data, text.len);
	return 0;
}

void
kr_run_container_clear(struct kr_run_state *run, const struct kr_job *job)
{
	const struct kr_run_container_launch *launch = job->container;

	if (!launch)
		return;
	/* One that was made and never spoke is nobody's; one that ran is removed by the runtime. One in a machine, which ends
	 * because its client does, may do so later. */
	if (job->is_launched && !job->end.exec_errno &&
		(!job->end.started || (run->container.runtime.is_machine && !job->end.is_told)))
		(void)kr_container_remove(
			run->arena, &run->container.runtime, launch->container.name, NULL); /* the sweep does it else */
	(void)kr_tree_remove_at(AT_FDCWD, launch->container.client_dir);
	if (launch->plan.ca_bundle)
		(void)unlink(launch->plan.ca_bundle); /* goes with the folder else */
}

/* ---- of sessions that died ---- */

static bool
is_alive(void *context, const char *session)
{
	const char *run_dir = context;

	return !kr_session_is_over(run_dir, session);
}

static void
sweep(struct kr_arena *arena, const struct kr_host *host, const struct kr_runtime *runtime)
{
	(void)kr_container_sweep(arena, runtime, host, is_alive, (void *)(uintptr_t)host->places.run_dir,
		NULL); /* the next one tries again */
}

void
kr_run_container_sweep(struct kr_run_state *run)
{
	if (run->container.is_used && kr_session_left_client(run->host.places.run_dir))
		sweep(run->arena, &run->host, &run->container.runtime);
}

void
kr_run_container_sweep_home(struct kr_arena *arena, const struct kr_host *host)
{
	struct kr_sandbox_file file;
	struct kr_runtime runtime;

	if (kr_sandbox_file_load(arena, &host->places, &file, NULL) == 0 &&
		kr_runtime_find(arena, host, &file, &runtime, NULL) == 0)
		sweep(arena, host, &runtime);
}

int
kr_run_container_left(struct kr_arena *arena, const struct kr_host *host, const struct kr_runtime *runtime, struct kr_strs *names,
	struct kr_error *err)
{
	return kr_container_left(arena, runtime, host, is_alive, (void *)(uintptr_t)host->places.run_dir, names, err);
}
