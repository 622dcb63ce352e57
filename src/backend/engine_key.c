/*
 * What a runtime's answers are of, as one short text: as long as it is the same, nobody has to be asked again.
 *
 * In it: the program files, the variables that choose a service, what the chosen service's socket and the configuration of client
 * and service look like from outside, the boot, and what the kernel hands a user of control groups. A service that restarts
 * makes its socket or its pid file anew. What none of these show (a service elsewhere) is covered by the answer's age (engine.c).
 */
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/path.h"
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
				   (unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_ctim.tv_sec,
				   st.st_ctim.tv_nsec));
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

/* ---- docker's contexts: the service by its name ---- */

static json_t *
read_json(const char *path)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(SMALL_FILE_BYTES);

	if (!path || kr_file_read_at(AT_FDCWD, path, &bytes, NULL) < 0 || !bytes.data)
		return NULL;
	return json_loadb(bytes.data, bytes.len, 0, NULL);
}

static void
add_context(struct keyed *k, const char *config_dir, const char *name)
{
	struct kr_sha256 sha;
	char hex[KR_SHA256_HEX + 1];
	const char *meta, *url;
	json_t *root;

	kr_sha256_init(&sha);
	kr_sha256_add(&sha, name, strlen(name));
	kr_sha256_hex(&sha, hex);
	meta = kr_arena_printf(k->arena, "%s/contexts/meta/%s/meta.json", config_dir, hex);
	add_file(k, meta);
	root = read_json(meta);
	url = json_string_value(
		json_object_get(json_object_get(json_object_get(root, "Endpoints"), "docker"), "Host"));
	add_socket(k, url);
	json_decref(root);
}

static void
add_docker(struct keyed *k)
{
	const char *home = k->host->places.home, *named = kr_host_env(k->host, "DOCKER_HOST"), *context;
	const char *config_dir = kr_host_env(k->host, "DOCKER_CONFIG");
	json_t *config;

	if (!config_dir || config_dir[0] != '/')
		config_dir = kr_arena_printf(k->arena, "%s/.docker", home);
	add_file(k, kr_arena_printf(k->arena, "%s/config.json", config_dir));
	config = read_json(kr_arena_printf(k->arena, "%s/config.json", config_dir));
	context = kr_host_env(k->host, "DOCKER_CONTEXT");
	if (!context || !*context)
		context = json_string_value(json_object_get(config, "currentContext"));
	if (named && *named)
		add_socket(k, named);
	else if (context && *context && strcmp(context, "default") != 0)
		add_context(k, config_dir, context);
	json_decref(config);
	add_file(k, "/var/run/docker.sock");
	add_file(k, "/var/run/docker.pid");
	add_file(k, "/etc/docker/daemon.json");
	add_file(k, below(k, "XDG_RUNTIME_DIR", NULL, "docker.sock"));
	add_file(k, below(k, "XDG_RUNTIME_DIR", NULL, "docker.pid"));
	add_file(k, below(k, "XDG_CONFIG_HOME", kr_arena_printf(k->arena, "%s/.config", home), "docker/daemon.json"));
}

static void
add_podman(struct keyed *k)
{
	static const char *const named[] = { "CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE", "CONTAINERS_STORAGE_CONF" };
	static const char *const files[] = { "containers.conf", "containers.conf.d", "storage.conf",
		"podman-connections.json" };

	add_socket(k, kr_host_env(k->host, "CONTAINER_HOST"));
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
	add_content(k, kr_arena_printf(k->arena,
					   "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/cgroup.controllers", uid, uid));
}

const char *
kr_runtime_key(struct kr_arena *arena, const struct kr_host *host, const char *program, const struct kr_strs *programs,
	const char *const *environment)
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
