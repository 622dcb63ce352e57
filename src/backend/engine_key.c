/*
 * What a runtime's answers are of, as one short text: as long as it is the same, nobody has to be asked
 * again.
 *
 * In it: the program files, the variables that choose a service, what the chosen service's socket and the
 * configuration of client and service look like from outside, the boot, and what the kernel hands a user of
 * control groups. A service that restarts makes its socket or its pid file anew. What none of these show (a
 * service elsewhere) is covered by the answer's age (engine.c).
 */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/sha256.h"
#include "base/text.h"
#include "os/sys.h"

enum { SMALL_FILE_BYTES = 64 << 10 };

struct keyed {
	struct kr_arena *arena;
	const struct kr_host *host;
	struct kr_sha256 sha;
};

static void
add(struct keyed *k, const char *text)
{
	kr_sha256_add(&k->sha, text, strlen(text) + 1); /* with its end: no two lists are one text */
}

/* Which file it is and when it was changed last; links are followed, as whoever reads it does. */
static void
add_file(struct keyed *k, const char *path)
{
	struct stat st;

	if (!path)
		return;
	add(k, path);
	if (stat(path, &st) < 0)
		add(k, "-");
	else
		add(k, kr_arena_printf(k->arena, "%llu %llu %lld %lld.%09ld", (unsigned long long)st.st_dev,
				   (unsigned long long)st.st_ino, (long long)st.st_size, (long long)kr_ctime(&st).tv_sec,
				   kr_ctime(&st).tv_nsec));
}

/* Files of the kernel, whose times say nothing. */
static void
add_content(struct keyed *k, const char *path)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(SMALL_FILE_BYTES);

	add(k, path);
	add(k, kr_file_read_at(AT_FDCWD, path, &bytes, NULL) == 0 && bytes.data ? bytes.data : "-");
}

static const char *
below(struct keyed *k, const char *variable, const char *fallback, const char *rest)
{
	const char *directory = kr_host_env(k->host, variable);

	if (!directory || directory[0] != '/')
		directory = fallback;
	return directory ? kr_arena_printf(k->arena, "%s/%s", directory, rest) : NULL;
}

static void
add_socket(struct keyed *k, const char *url)
{
	if (url && kr_text_has_prefix(url, "unix://"))
		add_file(k, url + strlen("unix://"));
}

/* ---- docker's service: a variable, or a context by its name ---- */

static json_t *
read_json(const char *path)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(SMALL_FILE_BYTES);

	if (kr_file_read_at(AT_FDCWD, path, &bytes, NULL) < 0 || !bytes.data)
		return NULL;
	return json_loadb(bytes.data, bytes.len, 0, NULL);
}

static const char *
copy_text(struct kr_arena *arena, const json_t *value)
{
	return json_is_string(value) ? kr_arena_dup(arena, json_string_value(value)) : NULL;
}

static const char *
docker_directory(struct kr_arena *arena, const struct kr_host *host)
{
	const char *named = kr_host_env(host, "DOCKER_CONFIG");

	return named && named[0] == '/' ? named : kr_arena_printf(arena, "%s/.docker", host->places.home);
}

/* What the chosen context is kept in; NULL: none is chosen, or DOCKER_HOST is stronger. */
static const char *
docker_context(struct kr_arena *arena, const struct kr_host *host)
{
	const char *directory = docker_directory(arena, host), *named = kr_host_env(host, "DOCKER_HOST");
	const char *context = kr_host_env(host, "DOCKER_CONTEXT");
	struct kr_sha256 sha;
	char hex[KR_SHA256_HEX + 1];

	if (named && *named)
		return NULL;
	if (!context || !*context) {
		json_t *config = read_json(kr_arena_printf(arena, "%s/config.json", directory));

		context = copy_text(arena, json_object_get(config, "currentContext"));
		json_decref(config);
	}
	if (!context || !*context || strcmp(context, "default") == 0)
		return NULL;
	kr_sha256_init(&sha);
	kr_sha256_add(&sha, context, strlen(context));
	kr_sha256_hex(&sha, hex);
	return kr_arena_printf(arena, "%s/contexts/meta/%s/meta.json", directory, hex);
}

const char *
kr_runtime_service(struct kr_arena *arena, const struct kr_host *host, enum kr_runtime_kind kind)
{
	const char *named = kr_host_env(host, kind == KR_RUNTIME_DOCKER ? "DOCKER_HOST" : "CONTAINER_HOST"),
			   *meta;
	json_t *root;

	if (named && *named)
		return named;
	meta = kind == KR_RUNTIME_DOCKER ? docker_context(arena, host) : NULL;
	if (!meta)
		return NULL;
	root = read_json(meta);
	named = copy_text(
		arena, json_object_get(json_object_get(json_object_get(root, "Endpoints"), "docker"), "Host"));
	json_decref(root);
	return named;
}

static void
add_docker(struct keyed *k)
{
	const char *home = k->host->places.home;

	add_file(k, kr_arena_printf(k->arena, "%s/config.json", docker_directory(k->arena, k->host)));
	add_file(k, docker_context(k->arena, k->host));
	add_socket(k, kr_runtime_service(k->arena, k->host, KR_RUNTIME_DOCKER));
	add_file(k, "/var/run/docker.sock");
	add_file(k, "/var/run/docker.pid");
	add_file(k, "/etc/docker/daemon.json");
	add_file(k, below(k, "XDG_RUNTIME_DIR", NULL, "docker.sock"));
	add_file(k, below(k, "XDG_RUNTIME_DIR", NULL, "docker.pid"));
	add_file(
		k, below(k, "XDG_CONFIG_HOME", kr_arena_printf(k->arena, "%s/.config", home), "docker/daemon.json"));
}

static void
add_podman(struct keyed *k)
{
	static const char *const named[] = { "CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE",
		"CONTAINERS_STORAGE_CONF" };
	static const char *const files[] = { "containers.conf", "containers.conf.d", "storage.conf",
		"podman-connections.json" };

	add_socket(k, kr_runtime_service(k->arena, k->host, KR_RUNTIME_PODMAN));
	for (size_t i = 0; i < KR_COUNT(named); i++)
		add_file(k, kr_host_env(k->host, named[i]));
	for (size_t i = 0; i < KR_COUNT(files); i++) {
		add_file(k, kr_arena_printf(k->arena, "/usr/share/containers/%s", files[i]));
		add_file(k, kr_arena_printf(k->arena, "/etc/containers/%s", files[i]));
		add_file(k, below(k, "XDG_CONFIG_HOME", kr_arena_printf(k->arena, "%s/.config", k->host->places.home),
						kr_arena_printf(k->arena, "containers/%s", files[i])));
	}
	add_file(k, "/etc/subuid");
	add_file(k, "/etc/subgid");
}

static void
add_kernel(struct keyed *k)
{
	unsigned uid = (unsigned)getuid();

	add(k, kr_boot_id(k->arena));
	add_content(k, "/sys/fs/selinux/enforce");
	add_content(k, "/sys/fs/cgroup/cgroup.controllers");
	add_content(
		k, kr_arena_printf(k->arena,
			   "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers", uid, uid));
}

const char *
kr_runtime_key(struct kr_arena *arena, const struct kr_host *host, const char *program,
	const struct kr_strs *programs, const char *const *environment)
{
	/* They are another in each login, and what they lead to changes no answer. */
	static const char *const passing[] = { "SSH_AUTH_SOCK=", "DBUS_SESSION_BUS_ADDRESS=", "TMPDIR=" };
	struct keyed k = { .arena = arena, .host = host };
	char hex[KR_SHA256_HEX + 1];

	kr_sha256_init(&k.sha);
	add(&k, program);
	for (size_t i = 0; i < programs->n; i++)
		add_file(&k, programs->v[i]);
	for (const char *const *e = environment; *e; e++) {
		bool counts = true;

		for (size_t i = 0; i < KR_COUNT(passing); i++)
			counts = counts && !kr_text_has_prefix(*e, passing[i]);
		if (counts)
			add(&k, *e);
	}
	add_docker(&k);
	add_podman(&k);
	add_kernel(&k);
	kr_sha256_hex(&k.sha, hex);
	return kr_arena_dup(arena, hex);
}
