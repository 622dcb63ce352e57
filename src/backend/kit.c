#include "backend/kit.h"

#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/text.h"
#include "os/powerless.h"

/* As manifests name this machine. */
#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "there is no filter for this machine"
#endif

static void
free_json_p(json_t **json)
{
	json_decref(*json);
}
#define auto_json KR_CLEANUP(free_json_p)

/* ---- what is read, in the process without power ---- */

static bool
is_digest(const char *text)
{
	return text && strlen(text) == KR_KIT_DIGEST_BYTES && kr_text_has_prefix(text, "sha256:") &&
		   strspn(text + 7, "0123456789abcdef") == KR_SHA256_HEX;
}

static void
take_digest(struct kr_kit_source *out, const json_t *value)
{
	const char *text = json_string_value(value);

	if (is_digest(text))
		memcpy(out->digest, text, sizeof(out->digest));
}

/* A descriptor; not there: it is no kit. One that is too long is for the decoder to refuse, so it is cut no shorter. */
static void
take_descriptor(struct kr_kit_source *out, const json_t *annotations)
{
	const json_t *value = json_object_get(annotations, KR_KIT_ANNOTATION);
	const size_t n = json_string_length(value);

	out->said = json_is_string(value) ? KR_KIT_BYTES : KR_KIT_NONE;
	out->len = n < sizeof(out->bytes) ? n : sizeof(out->bytes);
	if (out->said == KR_KIT_BYTES)
		memcpy(out->bytes, json_string_value(value), out->len);
}

/* Go's, with padding. False when it is no base64, or more than max bytes. */
static bool
decode_base64(const char *text, size_t n, char *out, size_t max, size_t *len)
{
	size_t used = 0;

	if (n % 4)
		return false;
	while (n && text[n - 1] == '=')
		n--;
	for (size_t i = 0, bits = 0, value = 0; i < n; i++) {
		const int digit = kr_base64_digit(text[i]);

		if (digit < 0)
			return false;
		value = (value << 6 | (size_t)digit) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		if (used == max)
			return false;
		bits -= 8;
		out[used++] = (char)(unsigned char)(value >> bits);
	}
	*len = used;
	return true;
}

static bool
is_for_this_machine(const json_t *one)
{
	const json_t *platform = json_object_get(one, "platform");
	const char *os = json_string_value(json_object_get(platform, "os"));
	const char *architecture = json_string_value(json_object_get(platform, "architecture"));

	return os && architecture && strcmp(os, "linux") == 0 && strcmp(architecture, ARCHITECTURE) == 0;
}

void
kr_kit_read_docker(const void *bytes, size_t n, void *source)
{
	auto_json json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *raw = json_object_get(root, "Raw"), *one;
	struct kr_kit_source *out = source;
	size_t i;

	if (json_is_array(root)) {
		out->said = KR_KIT_INDEX;
		json_array_foreach(root, i, one) {
			const json_t *descriptor = json_object_get(one, "Descriptor");

			if (!out->digest[0] && is_for_this_machine(descriptor))
				take_digest(out, json_object_get(descriptor, "digest"));
		}
		return;
	}
	if (!json_is_string(raw) ||
		!decode_base64(json_string_value(raw), json_string_length(raw), out->bytes, sizeof(out->bytes), &out->len))
		return;
	take_digest(out, json_object_get(json_object_get(root, "Descriptor"), "digest"));
	out->said = KR_KIT_BYTES;
}

void
kr_kit_read_manifest(const void *bytes, size_t n, void *source)
{
	auto_json json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *list = json_object_get(root, "manifests"), *one;
	struct kr_kit_source *out = source;
	size_t i;

	if (!json_is_object(root))
		return;
	if (!list) {
		take_descriptor(out, json_object_get(root, "annotations"));
		return;
	}
	out->said = KR_KIT_INDEX;
	json_array_foreach(list, i, one)
		if (!out->digest[0] && is_for_this_machine(one))
			take_digest(out, json_object_get(one, "digest"));
}

void
kr_kit_read_kept(const void *bytes, size_t n, void *source)
{
	auto_json json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *descriptor = json_object_get(root, "descriptor");
	struct kr_kit_source *out = source;

	take_digest(out, json_object_get(root, "manifest"));
	if (!json_is_string(descriptor) || json_string_length(descriptor) > sizeof(out->bytes))
		return;
	out->len = json_string_length(descriptor);
	memcpy(out->bytes, json_string_value(descriptor), out->len);
	out->said = KR_KIT_BYTES;
}

/* ---- and checked again ---- */

static int
parse(kr_parse_fn *fn, const char *bytes, size_t n, struct kr_kit_source *out, struct kr_error *err)
{
	json_object_seed(0); /* it would open a file for that */
	if (kr_powerless_parse(fn, bytes, n, out, sizeof(*out), err) < 0)
		return -1;
	out->digest[KR_KIT_DIGEST_BYTES] = '\0';
	if (!is_digest(out->digest))
		out->digest[0] = '\0';
	if ((unsigned)out->said > KR_KIT_BYTES || out->len > sizeof(out->bytes))
		out->said = KR_KIT_ODD;
	return 0;
}

static int
odd(const struct kr_runtime *runtime, const char *name, struct kr_error *err)
{
	return kr_fail(err, KR_E_WALL, "'%s' does not say what the manifest of the kit '%s' is", runtime->name, name);
}

static int
no_kit(const char *name, struct kr_error *err)
{
	kr_fail(err, KR_E_CONFIG, "the image '%s' is no kit: its manifest has no '%s'", name, KR_KIT_ANNOTATION);
	return kr_hint(err, "name an image that was published as a kit, or write 'kind: docker' with its 'image'");
}

static int
is_index(struct kr_arena *arena, const char *name, const char *digest, struct kr_error *err)
{
	const char *bare = kr_arena_dup_n(arena, name, (size_t)(strrchr(name, '@') - name));

	kr_fail(err, KR_E_CONFIG, "the digest of the kit '%s' is of a list of images for several machines", name);
	if (!digest[0])
		return kr_hint(err, "name the digest of the image for this machine, linux/" ARCHITECTURE);
	return kr_hint(err, "name the image for this machine: '%s@%s'", bare, digest);
}

/* ---- docker ---- */

/* Where docker itself takes a registry without TLS, unless it is told otherwise. What comes is held to its digest. */
static bool
is_loopback(const char *name)
{
	return kr_text_has_prefix(name, "127.") || kr_text_has_prefix(name, "[::1]:") || kr_text_has_prefix(name, "localhost:") ||
		   kr_text_has_prefix(name, "localhost/");
}

static int
ask_docker(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, struct kr_buf *out,
	struct kr_error *err)
{
	const char *reference = kr_kit_reference(arena, name);
	const char *argv[] = { "manifest", "inspect", "--verbose", "--", reference, NULL, NULL };
	const struct kr_runtime_ask ask = { .argv = argv, .environment = kr_image_environment(arena, runtime),
		.limit_ms = 2 * KR_RUNTIME_CALL_MS };
	int status;

	if (is_loopback(name)) {
		argv[3] = "--insecure";
		argv[4] = "--";
		argv[5] = reference;
	}
	status = kr_runtime_ask(arena, runtime, &ask, out, err);
	if (status == 0)
		return 0;
	if (status < 0 && err && err->code == KR_E_TIMEOUT)
		err->code = KR_E_WALL;
	kr_wrap(err, "fetching the manifest of the kit '%s'", name);
	return kr_hint(err,
		"'%s manifest inspect %s' by hand has to work: is the name right, are you logged in there, and is the client a newer one "
		"than 20.10, which cannot read manifests of this kind? podman can be named in sandbox.yaml: 'cli'",
		runtime->program, reference);
}

static int
check_digest(const char *name, const struct kr_kit_source *manifest, struct kr_error *err)
{
	const char *wanted = kr_kit_digest(name) + 7;
	char hex[KR_SHA256_HEX + 1];
	struct kr_sha256 sha;

	kr_sha256_init(&sha);
	kr_sha256_add(&sha, manifest->bytes, manifest->len);
	kr_sha256_hex(&sha, hex);
	if (strcmp(hex, wanted) == 0)
		return 0;
	kr_fail(err, KR_E_KIT_DIGEST, "what the registry gives as the manifest of the kit '%s' has another digest, sha256:%s", name, hex);
	return kr_hint(err, "somebody changed it there or on the way: ask who published the kit");
}

static int
fetch_docker(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, struct kr_kit_source *manifest,
	struct kr_error *err)
{
	kr_auto_buf struct kr_buf text = KR_BUF(KR_KIT_ANSWER_BYTES);

	if (ask_docker(arena, runtime, name, &text, err) < 0 ||
		parse(kr_kit_read_docker, text.data ? text.data : "", text.len, manifest, err) < 0)
		return -1;
	if (manifest->said == KR_KIT_INDEX)
		return is_index(arena, name, manifest->digest, err);
	if (manifest->said == KR_KIT_BYTES)
		return 0;
	odd(runtime, name, err);
	return kr_hint(err,
		"docker's client has to be one that gives a manifest's own bytes, as 28 does; podman can be named in sandbox.yaml: 'cli'");
}

/* ---- podman ---- */

/*
 * Where podman keeps the manifests that it pulled, each by its own digest: GRAPHROOT/DRIVER-images/ID/=BASE64, of the
 * words "manifest-sha256:...". What it says by `image inspect` is no help: of an image with two manifests it tells the
 * digest of the one and the annotations of the other.
 */
static const char *
path_of_manifest(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, const char *id,
	struct kr_error *err)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *const argv[] = { "info", "--format", "{{.Store.GraphRoot}}/{{.Store.GraphDriverName}}-images", NULL };
	const char *key = kr_arena_printf(arena, "manifest-%s", kr_kit_digest(name));
	kr_auto_buf struct kr_buf root = KR_BUF(4096), file = KR_BUF(256);
	const size_t n = strlen(key);

	if (kr_runtime_call(arena, runtime, argv, KR_RUNTIME_CALL_MS, &root, err) != 0 || !root.data)
		return NULL;
	for (size_t i = 0; i < n; i += 3) {
		const unsigned char *at = (const unsigned char *)key + i;
		const unsigned bits = (unsigned)at[0] << 16 | (i + 1 < n ? (unsigned)at[1] << 8 : 0) | (i + 2 < n ? at[2] : 0u);
		const char four[] = { digits[bits >> 18], digits[bits >> 12 & 63], i + 1 < n ? digits[bits >> 6 & 63] : '=',
			i + 2 < n ? digits[bits & 63] : '=' };

		kr_buf_add(&file, four, sizeof(four));
	}
	return kr_arena_printf(arena, "%.*s/%s/=%s", (int)strcspn(root.data, "\n"), root.data, id, file.data);
}

/* 1: this digest of the image is not in the store, or the store is not ours to read. */
static int
look_podman(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, struct kr_kit_source *manifest,
	struct kr_error *err)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(KR_KIT_MANIFEST_BYTES);
	struct kr_image image;
	const char *path;

	if (kr_image_look(arena, runtime, kr_kit_reference(arena, name), &image, err) < 0)
		return -1;
	if (!image.id)
		return 1;
	path = path_of_manifest(arena, runtime, name, kr_text_has_prefix(image.id, "sha256:") ? image.id + 7 : image.id, err);
	if (!path)
		return -1;
	if (kr_file_read_at(AT_FDCWD, path, &bytes, NULL) < 0)
		return 1;
	manifest->len = bytes.len;
	memcpy(manifest->bytes, bytes.data ? bytes.data : "", bytes.len);
	return 0;
}

static int
fetch_podman(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, int stderr_fd,
	struct kr_kit_source *manifest, struct kr_error *err)
{
	int status = look_podman(arena, runtime, name, manifest, err);

	if (status <= 0)
		return status;
	if (kr_image_pull(arena, runtime, kr_kit_reference(arena, name), stderr_fd, KR_KIT_PULL_MS, err) < 0)
		return -1;
	status = look_podman(arena, runtime, name, manifest, err);
	if (status <= 0)
		return status;
	kr_fail(err, KR_E_UNSUPPORTED, "the manifest of the kit '%s' is kept by '%s' where kraft cannot read it", name, runtime->name);
	return kr_hint(err, "kits need docker, or a podman that runs as you, on this host: 'cli' in sandbox.yaml");
}

int
kr_kit_fetch(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, int stderr_fd,
	struct kr_kit_source *out, struct kr_error *err)
{
	kr_auto_free struct kr_kit_source *manifest = kr_xcalloc(1, sizeof(*manifest));
	const int result = runtime->kind == KR_RUNTIME_PODMAN ? fetch_podman(arena, runtime, name, stderr_fd, manifest, err)
														  : fetch_docker(arena, runtime, name, manifest, err);

	if (result < 0 || check_digest(name, manifest, err) < 0 ||
		parse(kr_kit_read_manifest, manifest->bytes, manifest->len, out, err) < 0)
		return -1;
	switch (out->said) {
	case KR_KIT_BYTES:
		memcpy(out->digest, kr_kit_digest(name), sizeof(out->digest));
		return 0;
	case KR_KIT_NONE:
		return no_kit(name, err);
	case KR_KIT_INDEX:
		return is_index(arena, name, out->digest, err);
	default:
		return kr_fail(err, KR_E_CONFIG, "the manifest of the kit '%s' is no JSON that can be read", name);
	}
}

/* ---- what is kept ---- */

static const char *
kept_name(struct kr_arena *arena, const char *name)
{
	return kr_arena_printf(arena, "%s.json", kr_kit_digest(name) + 7);
}

int
kr_kit_look(struct kr_arena *arena, const char *run_dir, const char *name, struct kr_kit_source *out)
{
	const char *path = kr_arena_printf(arena, "%s/kit/%s", run_dir, kept_name(arena, name));
	kr_auto_buf struct kr_buf text = KR_BUF(KR_KIT_ANSWER_BYTES);

	if (kr_file_read_at(AT_FDCWD, path, &text, NULL) < 0 ||
		parse(kr_kit_read_kept, text.data ? text.data : "", text.len, out, NULL) < 0)
		return 1;
	return out->said != KR_KIT_BYTES || strcmp(out->digest, kr_kit_digest(name)) != 0;
}

int
kr_kit_keep(struct kr_arena *arena, const char *run_dir, const char *name, const struct kr_kit_source *source,
	struct kr_error *err)
{
	auto_json json_t *object =
		json_pack("{s:s, s:s%}", "manifest", source->digest, "descriptor", source->bytes, source->len);
	kr_auto_free char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	kr_auto_fd int dir = kr_path_make_dirs(kr_path_join(arena, run_dir, "kit"), err);

	if (dir < 0)
		return -1;
	if (!text)
		return kr_fail(err, KR_E_CONFIG, "the descriptor of the kit '%s' is no text", name);
	return kr_file_write_at(dir, kept_name(arena, name), text, strlen(text), 0600, err);
}
