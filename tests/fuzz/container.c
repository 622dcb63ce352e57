/*
 * A path in the words of `docker run` and `podman run`: read back as their own readers do it (comma-separated
 * values with quotes; colons), source and path are what they were, and nothing else has become an option.
 * What has no words is an error.
 */
#include <stddef.h>
#include <stdint.h>

#include "backend/container.h"
#include "base/path.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS_MAX = 16 };

/* One record, as Go's encoding/csv reads it; the fields in place. */
static size_t
read_fields(char *text, char *fields[FIELDS_MAX])
{
	size_t n = 0;
	char *from = text, *to;

	for (;; from++) {
		bool quoted = *from == '"';

		KR_BUG_IF(n == FIELDS_MAX);
		fields[n++] = to = from;
		for (from += quoted; *from && (quoted || *from != ','); from++) {
			KR_BUG_IF(*from == '\r' || (!quoted && (*from == '"' || *from == '\n')));
			if (quoted && *from == '"' && *++from != '"')
				break;
			*to++ = *from;
		}
		KR_BUG_IF(*from && *from != ',');
		quoted = !*from;
		*to = '\0';
		if (quoted)
			return n;
	}
}

static void
check_mount(const char *word, const struct kr_step *step)
{
	char *copy = kr_xcalloc(1, strlen(word) + 1), *fields[FIELDS_MAX];
	size_t n;

	memcpy(copy, word, strlen(word));
	n = read_fields(copy, fields);
	KR_BUG_IF(n < 5 || n > 6 || strcmp(fields[0], "type=bind") != 0);
	KR_BUG_IF(strncmp(fields[1], "src=", 4) != 0 || strcmp(fields[1] + 4, step->source) != 0);
	KR_BUG_IF(strncmp(fields[2], "dst=", 4) != 0 || strcmp(fields[2] + 4, step->path) != 0);
	KR_BUG_IF(strcmp(fields[3], "readonly") != 0 || strncmp(fields[4], "bind-", 5) != 0);
	KR_BUG_IF(n == 6 && strcmp(fields[5], "relabel=shared") != 0);
	free(copy);
}

static void
check_volume(const char *word, const struct kr_step *step)
{
	const size_t n = strlen(step->source), m = strlen(step->path);

	KR_BUG_IF(strncmp(word, step->source, n) != 0 || word[n] != ':' || strchr(step->source, ':'));
	KR_BUG_IF(strncmp(word + n + 1, step->path, m) != 0 || strchr(step->path, ':') ||
			  strcmp(word + n + 1 + m, ":ro,z") != 0);
}

/* Every word is an option but the CLI's name, `run` and, last, the image. */
static void
check_words(const struct kr_buf *args, const struct kr_plan *plan)
{
	unsigned binds = 0, fresh = 0;
	size_t count = 0;

	for (const char *word = args->data; word < args->data + args->len; word += strlen(word) + 1, count++) {
		const bool is_last = word + strlen(word) + 1 == args->data + args->len;

		KR_BUG_IF(count >= 2 && !is_last && strncmp(word, "--", 2) != 0);
		KR_BUG_IF(is_last && strcmp(word, "sha256:5f") != 0);
		if (kr_text_has_prefix(word, "--mount="))
			check_mount(word + strlen("--mount="), &plan->steps[0]), binds++;
		else if (kr_text_has_prefix(word, "--volume="))
			check_volume(word + strlen("--volume="), &plan->steps[0]), binds++;
		else if (kr_text_has_prefix(word, "--tmpfs=")) {
			const char *path = plan->steps[1].path;

			KR_BUG_IF(strncmp(word + strlen("--tmpfs="), path, strlen(path)) != 0 || strchr(path, ':'));
			KR_BUG_IF(word[strlen("--tmpfs=") + strlen(path)] != ':');
			fresh++;
		}
	}
	KR_BUG_IF(binds != 1 || fresh != 1);
}

/* "/" and the text up to the next NUL or the end. */
static const char *
take(struct kr_arena *arena, const uint8_t **data, size_t *size)
{
	const size_t n = *size ? strnlen((const char *)*data, *size) : 0;
	const char *path = kr_arena_printf(arena, "/%.*s", (int)n, (const char *)*data);

	*data += n < *size ? n + 1 : n;
	*size -= n < *size ? n + 1 : n;
	return path;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const argv[] = { "true", NULL };
	const unsigned kind = size ? data[0] : 0;
	struct kr_arena arena = { 0 };
	const struct kr_runtime runtime = { .kind = kind & 1 ? KR_RUNTIME_PODMAN : KR_RUNTIME_DOCKER,
		.name = "r",
		.program = "/r",
		.version = { kind & 4 ? 28 : 20 },
		.is_rootless = kind & 8,
		.enforces_selinux = true };
	const struct kr_image image = { .name = "i", .id = "sha256:5f" };
	struct kr_repo repo = { .sandbox.kind = KR_SANDBOX_DOCKER };
	const struct kr_request request = { .repo = &repo, .session = "s" };
	struct kr_step steps[2] = { { .kind = KR_STEP_BIND_RO }, { .kind = KR_STEP_TMPFS } };
	struct kr_plan plan = {
		.request = &request, .exec_path = "true", .argv = argv, .cwd = "/", .steps = steps, .step_count = 2
	};
	struct kr_container container = { .runtime = &runtime,
		.image = &image,
		.selinux = kind & 2 ? KR_SELINUX_RELABEL : KR_SELINUX_AUTO,
		.name = "kraft-s",
		.empty_path = "/e",
		.uid = 1,
		.gid = 1 };
	struct kr_container_render out;

	data += size != 0;
	size -= size != 0;
	steps[0].source = take(&arena, &data, &size);
	steps[0].path = take(&arena, &data, &size);
	steps[1].path = take(&arena, &data, &size);
	container.client_dir = container.home = take(&arena, &data, &size);
	if (kr_container_args(&plan, &container, NULL, &out, NULL) == 0) {
		check_words(&out.args, &plan);
		kr_buf_fini(&out.args);
		kr_buf_fini(&out.verify);
	}
	kr_arena_fini(&arena);
	return 0;
}
