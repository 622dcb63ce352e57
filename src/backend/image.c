/* What a runtime knows of an image, and fetching one. Asked by name at each launch, since a name can come to
 * mean another image; what is asked, looked into and run after that is the id. */
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/text.h"

/* "No such image: x", "no such image: x", "x: image not known" */
static bool
says_missing(const char *message)
{
	return strstr(message, "o such image") || strstr(message, "image not known");
}

int
kr_image_look(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name,
	struct kr_image *out, struct kr_error *err)
{
	const char *const argv[] = { "image", "inspect", "--format",
		runtime->kind == KR_RUNTIME_PODMAN ? "json" : "{{json .}}", "--", name, NULL };
	kr_auto_buf struct kr_buf text = KR_BUF(KR_RUNTIME_TEXT_BYTES);
	struct kr_image image = { .name = kr_arena_dup(arena, name) };
	struct kr_error own = { 0 };
	int status = kr_runtime_call(arena, runtime, argv, KR_RUNTIME_CALL_MS, &text, &own);

	if (status > 0 && says_missing(own.message)) {
		*out = image;
		return 0;
	}
	if (status != 0 || kr_image_read(arena, text.data ? text.data : "", text.len, &image, &own) < 0) {
		kr_wrap(&own, "looking at the image '%s'", name);
		if (err)
			*err = own;
		return -1;
	}
	*out = image;
	return 0;
}

/* ---- pull ---- */

/* The CLI itself goes out (podman), so the way out of this network is its to know here, and only here. */
static const char *const for_pull[] = { "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY",
	"HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "DOCKER_CONTENT_TRUST",
	"DOCKER_CONTENT_TRUST_SERVER" };

const char *const *
kr_image_environment(struct kr_arena *arena, const struct kr_runtime *runtime)
{
	struct kr_strs env = { 0 };

	for (const char *const *e = runtime->environment; *e; e++)
		kr_strs_add(arena, &env, *e);
	for (size_t i = 0; i < KR_COUNT(for_pull); i++) {
		const char *value = getenv(for_pull[i]);

		if (value && *value)
			kr_strs_add(arena, &env, kr_arena_printf(arena, "%s=%s", for_pull[i], value));
	}
	return env.v;
}

/*
 * Docker writes its progress to stdout and its reasons to stderr; podman both to stderr, and the image's id
 * to stdout. So what a person sees is docker's stdout, and podman's stderr.
 */
int
kr_image_pull(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, int stderr_fd,
	int64_t limit_ms, struct kr_error *err)
{
	const char *const shown[] = { "pull", "--", name, NULL }, *const quiet[] = { "pull", "--quiet", "--",
		name, NULL };
	bool is_podman = runtime->kind == KR_RUNTIME_PODMAN, is_shown = stderr_fd > 0 && isatty(stderr_fd);
	kr_auto_buf struct kr_buf rest = KR_BUF(KR_RUNTIME_TEXT_BYTES);
	const struct kr_runtime_ask ask = { .argv = is_shown ? shown : quiet,
		.environment = kr_image_environment(arena, runtime),
		.stdout_fd = is_shown && !is_podman ? stderr_fd : 0,
		.stderr_fd = is_shown && is_podman ? stderr_fd : 0,
		.limit_ms = limit_ms };
	int status = kr_runtime_ask(arena, runtime, &ask, &rest, err);

	if (status == 0)
		return 0;
	if (status < 0 && err && err->code == KR_E_TIMEOUT)
		err->code = KR_E_WALL;
	kr_wrap(err, "pulling the image '%s'", name);
	return status > 0
			   ? kr_hint(err,
					 "'%s pull %s' by hand has to work; is the name right, and are you logged in there?",
					 runtime->program, name)
			   : -1;
}
