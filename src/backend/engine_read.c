/*
 * What docker and podman say, as JSON, turned into our structs. Pure.
 *
 * Trust: the CLI and its service are the person's, but an image's variables and labels are whoever's who made
 * it, and a CLI can be any program of that name. So texts are bounded and typed before anything is made of
 * them; what is missing where both runtimes have always had it refuses the whole answer; and a limit that is
 * not said to be there is not there.
 */
#include <jansson.h>

#include "backend/engine.h"
#include "base/path.h"
#include "base/text.h"

enum { RUNROOT_MOST = 50 }; /* "the specified runroot is longer than 50 characters" */

static void
free_json_p(json_t **json)
{
	json_decref(*json);
}
#define auto_json KR_CLEANUP(free_json_p)

static json_t *
parse(const char *text, size_t n, const char *what, struct kr_error *err)
{
	json_error_t why;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);

	if (!root)
		kr_fail(err, KR_E_WALL, "%s is not what a container runtime says (%.80s)", what,
			*why.text ? why.text : "no JSON");
	return root;
}

static int
odd(struct kr_error *err, const char *what, const char *key)
{
	return kr_fail(err, KR_E_WALL, "%s has no usable '%s'", what, key);
}

/* A string of the object, short and printable enough for a message or a cache; NULL when it is none. */
static const char *
text_of(struct kr_arena *arena, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	char *copy;

	if (!json_is_string(value) || json_string_length(value) > 256)
		return NULL;
	copy = kr_arena_dup(arena, json_string_value(value));
	kr_text_plain(copy, copy, strlen(copy), false);
	return copy;
}

/* Missing or null: false. True in *bad when it is something else than a boolean. */
static bool
flag_of(const json_t *object, const char *key, bool *bad)
{
	const json_t *value = json_object_get(object, key);

	*bad = *bad || (value && !json_is_null(value) && !json_is_boolean(value));
	return json_is_true(value);
}

/* ---- version ---- */

static bool
parse_version(const char *text, unsigned version[3])
{
	unsigned v[3] = { 0 };

	if (!text || sscanf(text, "%5u.%5u.%5u", &v[0], &v[1], &v[2]) < 2)
		return false;
	memcpy(version, v, sizeof(v));
	return true;
}

static int
compare(const unsigned a[3], const unsigned b[3])
{
	for (int i = 0; i < 3; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* The service behind a docker CLI may be podman's, which takes docker's words for other things. */
static bool
is_podman_service(const json_t *server)
{
	const json_t *components = json_object_get(server, "Components"), *component;
	size_t i;

	json_array_foreach(components, i, component)
	{
		const char *name = json_string_value(json_object_get(component, "Name"));

		if (name && strstr(name, "Podman"))
			return true;
	}
	return false;
}

static int
too_old(const struct kr_runtime *runtime, struct kr_error *err)
{
	static const unsigned least[KR_RUNTIME_COUNT][3] = {
		[KR_RUNTIME_DOCKER] = { 20, 10, 0 }, [KR_RUNTIME_PODMAN] = { 4, 0, 0 }
	};
	const unsigned *v = least[runtime->kind];

	if (compare(runtime->version, v) >= 0)
		return 0;
	kr_fail(err, KR_E_WALL, "%s is too old", runtime->name);
	return kr_hint(err, "kraft needs Docker 20.10 or Podman 4.0, or a later one, of both client and service");
}

int
kr_runtime_read_version(
	struct kr_arena *arena, const char *json, size_t n, struct kr_runtime *out, struct kr_error *err)
{
	static const char what[] = "the answer to 'version'";
	auto_json json_t *root = parse(json, n, what, err);
	const json_t *client = json_object_get(root, "Client"), *server = json_object_get(root, "Server");
	struct kr_runtime read = *out;
	unsigned own[3], service[3];

	if (!root)
		return -1;
	/* Podman writes APIVersion where docker has always written ApiVersion; what the program is called says
	 * nothing. */
	read.kind = json_object_get(client, "APIVersion") ? KR_RUNTIME_PODMAN : KR_RUNTIME_DOCKER;
	if (!parse_version(text_of(arena, client, "Version"), own))
		return odd(err, what, "Client.Version");
	memcpy(service, own, sizeof(service)); /* podman without a service is its own */
	if ((read.kind == KR_RUNTIME_DOCKER || json_is_object(server)) &&
		!parse_version(text_of(arena, server, "Version"), service))
		return odd(err, what, "Server.Version");
	if (read.kind == KR_RUNTIME_DOCKER && is_podman_service(server)) {
		kr_fail(err, KR_E_WALL, "the service that this docker CLI talks to is podman's");
		return kr_hint(err, "install the podman CLI and write 'cli: podman' into sandbox.yaml");
	}
	memcpy(read.version, compare(own, service) < 0 ? own : service, sizeof(own));
	read.name = kr_arena_printf(arena, "%s %u.%u.%u", read.kind == KR_RUNTIME_DOCKER ? "docker" : "podman",
		service[0], service[1], service[2]);
	if (too_old(&read, err) < 0)
		return -1;
	*out = read;
	return 0;
}

/* ---- info ---- */

static bool
has_option(const json_t *options, const char *name)
{
	const json_t *option;
	size_t i, n = strlen(name);

	json_array_foreach(options, i, option)
	{
		const char *text = json_string_value(option);

		if (text && strncmp(text, name, n) == 0 && (text[n] == '\0' || text[n] == ','))
			return true;
	}
	return false;
}

static int
read_docker(struct kr_arena *arena, const json_t *root, struct kr_runtime_info *out, struct kr_error *err)
{
	static const char what[] = "the answer to 'info'";
	const json_t *options = json_object_get(root, "SecurityOptions");
	const char *os = text_of(arena, root, "OperatingSystem"), *type = text_of(arena, root, "OSType");
	bool bad = false;

	out->kernel = text_of(arena, root, "KernelVersion");
	if (!out->kernel || !*out->kernel)
		return odd(err, what, "KernelVersion");
	if (!os)
		return odd(err, what, "OperatingSystem");
	if (!type || strcmp(type, "linux") != 0)
		return kr_fail(
			err, KR_E_WALL, "docker runs '%s' containers here, not Linux ones", type ? type : "unknown");
	if (options && !json_is_null(options) && !json_is_array(options))
		return odd(err, what, "SecurityOptions");
	out->is_desktop = kr_text_has_prefix(os, "Docker Desktop");
	out->is_rootless = has_option(options, "name=rootless");
	out->is_remapped = has_option(options, "name=userns");
	out->has_labels = has_option(options, "name=selinux");
	if (flag_of(root, "CpuCfsPeriod", &bad) && flag_of(root, "CpuCfsQuota", &bad))
		out->limits |= 1u << KR_LIMIT_CPU;
	if (flag_of(root, "MemoryLimit", &bad))
		out->limits |= 1u << KR_LIMIT_MEMORY;
	if (flag_of(root, "SwapLimit", &bad))
		out->limits |= 1u << KR_LIMIT_SWAP;
	if (flag_of(root, "PidsLimit", &bad))
		out->limits |= 1u << KR_LIMIT_PIDS;
	return bad ? odd(err, what, "MemoryLimit, SwapLimit, CpuCfsPeriod, CpuCfsQuota or PidsLimit") : 0;
}

static bool
has_text(const json_t *list, const char *wanted)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);

		if (text && strcmp(text, wanted) == 0)
			return true;
	}
	return false;
}

/* A version that is not told is no flaw. "runc version 1.1.5+ds1", and more lines. */
static bool
is_old_runc(struct kr_arena *arena, const json_t *runtime)
{
	static const unsigned mended[3] = { 1, 2, 0 };
	static const char begin[] = "runc version ";
	const char *text = text_of(arena, runtime, "version");
	unsigned version[3];

	return text && kr_text_has_prefix(text, begin) && parse_version(text + strlen(begin), version) &&
		   compare(version, mended) < 0;
}

static unsigned
flaws_of_podman(struct kr_arena *arena, const json_t *root, bool is_rootless)
{
	const json_t *runroot = json_object_get(json_object_get(root, "store"), "runRoot");
	unsigned flaws = 0;

	if (!is_rootless && is_old_runc(arena, json_object_get(json_object_get(root, "host"), "ociRuntime")))
		flaws |= 1u << KR_FLAW_DEV_LINK;
	if (json_string_length(runroot) > RUNROOT_MOST)
		flaws |= 1u << KR_FLAW_LONG_RUNROOT;
	return flaws;
}

/* Podman names the controllers that it may use: without root on cgroup v1 none. */
static int
read_podman(struct kr_arena *arena, const json_t *root, struct kr_runtime_info *out, struct kr_error *err)
{
	static const char what[] = "the answer to 'info'";
	const json_t *host = json_object_get(root, "host"), *security = json_object_get(host, "security");
	const json_t *controllers = json_object_get(host, "cgroupControllers");
	bool bad = false;

	out->kernel = text_of(arena, host, "kernel");
	if (!out->kernel || !*out->kernel)
		return odd(err, what, "host.kernel");
	if (!json_is_boolean(json_object_get(security, "rootless")))
		return odd(err, what, "host.security.rootless");
	if (controllers && !json_is_null(controllers) && !json_is_array(controllers))
		return odd(err, what, "host.cgroupControllers");
	out->hostname = text_of(arena, host, "hostname");
	out->is_remote = flag_of(host, "serviceIsRemote", &bad);
	out->is_rootless = flag_of(security, "rootless", &bad);
	out->has_labels = flag_of(security, "selinuxEnabled", &bad);
	out->swap_is_unknown = true;
	if (has_text(controllers, "cpu"))
		out->limits |= 1u << KR_LIMIT_CPU;
	if (has_text(controllers, "memory"))
		out->limits |= 1u << KR_LIMIT_MEMORY | 1u << KR_LIMIT_SWAP;
	if (has_text(controllers, "pids"))
		out->limits |= 1u << KR_LIMIT_PIDS;
	out->flaws = flaws_of_podman(arena, root, out->is_rootless);
	return bad ? odd(err, what, "host.security.selinuxEnabled or host.serviceIsRemote") : 0;
}

int
kr_runtime_read_info(struct kr_arena *arena, enum kr_runtime_kind kind, const char *json, size_t n,
	struct kr_runtime_info *out, struct kr_error *err)
{
	auto_json json_t *root = parse(json, n, "the answer to 'info'", err);
	struct kr_runtime_info read = { 0 };

	if (!root || (kind == KR_RUNTIME_PODMAN ? read_podman(arena, root, &read, err)
											: read_docker(arena, root, &read, err)) < 0)
		return -1;
	*out = read;
	return 0;
}

/*
 * Another kernel than ours is another machine, whatever the service calls itself: Docker Desktop, podman's
 * machine, or any other. That podman's client calls its service remote says nothing alone: it may be behind a
 * socket of this very host, which then has this host's name.
 */
static bool
is_elsewhere(const struct kr_runtime_info *info, const struct kr_runtime_host *host)
{
	if (info->is_desktop || strcmp(info->kernel, host->kernel) != 0)
		return true;
	return info->is_remote && info->hostname && host->hostname && strcmp(info->hostname, host->hostname) != 0;
}

void
kr_runtime_settle(struct kr_arena *arena, const struct kr_runtime_info *info,
	const struct kr_runtime_host *host, struct kr_runtime *out)
{
	out->is_rootless = info->is_rootless;
	out->is_remapped = info->is_remapped;
	out->enforces_selinux = info->has_labels && host->enforces_selinux;
	out->is_machine = is_elsewhere(info, host);
	out->limits = info->limits;
	out->flaws = info->flaws;
	if (info->swap_is_unknown && !host->accounts_swap)
		out->limits &= ~(1u << KR_LIMIT_SWAP);
	if (info->is_rootless)
		out->name = kr_arena_printf(arena, "rootless %s", out->name);
}

/* ---- an image ---- */

/* "sha256:" and 64 digits, or the digits alone, as podman has it. */
static bool
is_image_id(const char *text)
{
	const char *digits = kr_text_has_prefix(text, "sha256:") ? text + 7 : text;

	return strlen(digits) == 64 && strspn(digits, "0123456789abcdef") == 64;
}

static int
too_large(struct kr_error *err, const struct kr_image *image, const char *what)
{
	return kr_fail(
		err, KR_E_LIMIT, "the image '%s' has more of '%s' than can be handed on", image->name, what);
}

/* A list of words; a text alone is one word, as docker takes it. */
static int
read_words(struct kr_arena *arena, const json_t *list, const char *what, size_t max, size_t *bytes,
	const struct kr_image *image, struct kr_strs *out, struct kr_error *err)
{
	const char *alone = json_string_value(list);
	const json_t *item;
	size_t i;

	if (alone && *alone)
		kr_strs_add(arena, out, kr_arena_dup(arena, alone));
	if (!list || json_is_null(list) || alone)
		return alone && strlen(alone) > KR_IMAGE_BYTES ? too_large(err, image, what) : 0;
	if (!json_is_array(list))
		return odd(err, "the answer to 'image inspect'", what);
	json_array_foreach(list, i, item)
	{
		if (!json_is_string(item))
			return odd(err, "the answer to 'image inspect'", what);
		*bytes += json_string_length(item) + 1;
		if (out->n == max || *bytes > KR_IMAGE_BYTES)
			return too_large(err, image, what);
		kr_strs_add(arena, out, kr_arena_dup(arena, json_string_value(item)));
	}
	return 0;
}

/* Those that name a variable; docker writes no others, and one without '=' sets nothing. */
static void
keep_variables(struct kr_arena *arena, struct kr_strs *list)
{
	struct kr_strs kept = { 0 };

	for (size_t i = 0; i < list->n; i++)
		if (strchr(list->v[i], '=') && list->v[i][0] != '=')
			kr_strs_add(arena, &kept, list->v[i]);
	*list = kept;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of an object. */
static int
read_volumes(struct kr_arena *arena, json_t *volumes, struct kr_strs *out, struct kr_error *err)
{
	static const char what[] = "the answer to 'image inspect'";
	const char *name;
	json_t *value;

	if (json_object_size(volumes) > KR_IMAGE_VOLUMES || (volumes && !json_is_null(volumes) && !json_is_object(volumes)))
		return odd(err, what, "Config.Volumes");
	json_object_foreach(volumes, name, value) {
		const char *path = name[0] == '/' ? kr_path_clean(arena, name) : NULL;

		if (!path || !path[1])
			return odd(err, what, "Config.Volumes");
		if (!kr_strs_has(out, path))
			kr_strs_add(arena, out, path);
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_text);
	return 0;
}

int
kr_image_read(struct kr_arena *arena, const char *json, size_t n, struct kr_image *out, struct kr_error *err)
{
	static const char what[] = "the answer to 'image inspect'";
	auto_json json_t *root = parse(json, n, what, err);
	const json_t *one = json_is_array(root) && json_array_size(root) == 1 ? json_array_get(root, 0) : root,
				 *config;
	struct kr_image read = { .name = out->name };
	size_t bytes = 0;

	if (!root)
		return -1;
	config = json_object_get(one, "Config");
	read.id = text_of(arena, one, "Id");
	read.architecture = text_of(arena, one, "Architecture");
	if (!read.id || !is_image_id(read.id))
		return odd(err, what, "Id");
	if (!read.architecture)
		return odd(err, what, "Architecture");
	if (config && !json_is_null(config) && !json_is_object(config))
		return odd(err, what, "Config");
	if (read_words(arena, json_object_get(config, "Entrypoint"), "Config.Entrypoint", KR_IMAGE_WORDS, &bytes,
			&read, &read.entrypoint, err) < 0 ||
		read_words(arena, json_object_get(config, "Env"), "Config.Env", KR_IMAGE_VARIABLES, &bytes, &read,
			&read.env, err) < 0 ||
		read_volumes(arena, json_object_get(config, "Volumes"), &read.volumes, err) < 0)
		return -1;
	keep_variables(arena, &read.env);
	*out = read;
	return 0;
}

/* ---- containers ---- */

static const char *
any_text(struct kr_arena *arena, const json_t *value)
{
	return json_is_string(value) ? kr_arena_dup(arena, json_string_value(value)) : "";
}

static void
add_seen(struct kr_arena *arena, struct kr_containers_seen *list, size_t *cap, struct kr_container_seen seen)
{
	if (list->n == *cap) {
		size_t grown = *cap ? *cap * 2 : 16;
		struct kr_container_seen *v = kr_arena_alloc(arena, grown * sizeof(*v));

		if (list->n)
			memcpy(v, list->v, list->n * sizeof(*v));
		list->v = v;
		*cap = grown;
	}
	list->v[list->n++] = seen;
}

/* Docker: one object in each line, as sweep.c asks for it. */
static int
read_docker_ps(
	struct kr_arena *arena, const char *text, size_t n, struct kr_containers_seen *out, struct kr_error *err)
{
	size_t cap = 0;

	for (const char *at = text, *end = text + n; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
		auto_json json_t *one = len ? parse(at, len, "the answer to 'ps'", err) : NULL;

		if (len && !one)
			return -1;
		if (len && !json_is_string(json_object_get(one, "name")))
			return odd(err, "the answer to 'ps'", "name");
		if (len)
			add_seen(arena, out, &cap,
				(struct kr_container_seen){ any_text(arena, json_object_get(one, "name")),
					any_text(arena, json_object_get(one, "home")),
					any_text(arena, json_object_get(one, "session")) });
		at += len + (stop != NULL);
	}
	return 0;
}

/* Podman: one array of all. */
static int
read_podman_ps(
	struct kr_arena *arena, const char *text, size_t n, struct kr_containers_seen *out, struct kr_error *err)
{
	auto_json json_t *root = parse(text, n, "the answer to 'ps'", err);
	const json_t *one;
	size_t i, cap = 0;

	if (!root)
		return -1;
	if (!json_is_array(root))
		return odd(err, "the answer to 'ps'", "list");
	json_array_foreach(root, i, one)
	{
		const json_t *name = json_array_get(json_object_get(one, "Names"), 0),
					 *labels = json_object_get(one, "Labels");

		if (!json_is_string(name))
			return odd(err, "the answer to 'ps'", "Names");
		add_seen(arena, out, &cap,
			(struct kr_container_seen){ any_text(arena, name),
				any_text(arena, json_object_get(labels, "kraft.home")),
				any_text(arena, json_object_get(labels, "kraft.session")) });
	}
	return 0;
}

int
kr_containers_read(struct kr_arena *arena, enum kr_runtime_kind kind, const char *text, size_t n,
	struct kr_containers_seen *out, struct kr_error *err)
{
	struct kr_containers_seen read = { 0 };

	if ((kind == KR_RUNTIME_PODMAN ? read_podman_ps(arena, text, n, &read, err)
								   : read_docker_ps(arena, text, n, &read, err)) < 0)
		return -1;
	*out = read;
	return 0;
}
