/*
 * What a container runtime says: version, info, an image, its containers, and its stderr. The first byte
 * chooses. Beyond "no crash": what is refused is said, what is taken is inside its bounds, and a message
 * steers no terminal.
 */
#include "backend/engine.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check_refusal(const struct kr_error *err)
{
	KR_BUG_IF((err->code != KR_E_WALL && err->code != KR_E_LIMIT) || !err->message[0]);
}

static void
check_version(struct kr_arena *arena, const char *text, size_t n)
{
	struct kr_runtime runtime = { 0 };
	struct kr_error err = { 0 };

	if (kr_runtime_read_version(arena, text, n, &runtime, &err) < 0)
		check_refusal(&err);
	else
		KR_BUG_IF(!runtime.name || (unsigned)runtime.kind >= KR_RUNTIME_COUNT || runtime.version[0] < 4);
}

static void
check_info(struct kr_arena *arena, enum kr_runtime_kind kind, const char *text, size_t n)
{
	const struct kr_runtime_host host = { .kernel = "6.1" };
	struct kr_runtime runtime = { .name = "it" };
	struct kr_runtime_info info;
	struct kr_error err = { 0 };

	if (kr_runtime_read_info(arena, kind, text, n, &info, &err) < 0) {
		check_refusal(&err);
		return;
	}
	KR_BUG_IF(!*info.kernel || info.limits >= 1u << KR_LIMIT_COUNT || info.flaws >= 1u << KR_FLAW_COUNT);
	kr_runtime_settle(arena, &info, &host, &runtime);
	KR_BUG_IF(runtime.enforces_selinux || (kind == KR_RUNTIME_PODMAN && runtime.limits >> KR_LIMIT_SWAP & 1));
}

static void
check_image(struct kr_arena *arena, const char *text, size_t n)
{
	struct kr_image image = { .name = "it" };
	struct kr_error err = { 0 };

	if (kr_image_read(arena, text, n, &image, &err) < 0) {
		check_refusal(&err);
		KR_BUG_IF(image.id || image.env.n);
		return;
	}
	KR_BUG_IF(strlen(image.id) < 64 || strlen(image.id) > 71 || image.id[0] == '-');
	KR_BUG_IF(image.entrypoint.n > KR_IMAGE_WORDS || image.env.n > KR_IMAGE_VARIABLES);
	for (size_t i = 0; i < image.env.n; i++)
		KR_BUG_IF(!strchr(image.env.v[i], '=') || image.env.v[i][0] == '=');
}

static void
check_containers(struct kr_arena *arena, enum kr_runtime_kind kind, const char *text, size_t n)
{
	struct kr_containers_seen seen;
	struct kr_error err = { 0 };

	if (kr_containers_read(arena, kind, text, n, &seen, &err) < 0) {
		check_refusal(&err);
		return;
	}
	for (size_t i = 0; i < seen.n; i++)
		KR_BUG_IF(!seen.v[i].name || !seen.v[i].home || !seen.v[i].session);
}

static void
check_words(struct kr_arena *arena, const char *text, size_t n)
{
	const char *words = kr_runtime_words(arena, text, n);

	KR_BUG_IF(!*words || strlen(words) > 512 || strchr(words, '\n') || strchr(words, '\x1b'));
	KR_BUG_IF(!*kr_runtime_next_step(arena, "docker", words));
}

static void
check_ca(const char *text, size_t n)
{
	kr_auto_buf struct kr_buf once = KR_BUF(KR_CA_BYTES), twice = KR_BUF(KR_CA_BYTES);
	kr_auto_buf struct kr_buf revoked = KR_BUF(KR_CA_BYTES);
	size_t count = kr_ca_certificates(text, n, &once);
	bool good = kr_ca_revocations(text, n, &revoked);

	KR_BUG_IF(
		once.len && memmem(once.data, once.len, "N PRIVATE", 9)); /* with its blank no certificate's line */
	KR_BUG_IF(kr_ca_certificates(once.data ? once.data : "", once.len, &twice) != count);
	KR_BUG_IF(!good && !memmem(text, n, "BEGIN X509 CRL", 14));
	KR_BUG_IF(revoked.len && (memmem(revoked.data, revoked.len, "BEGIN CERT", 10) || memmem(revoked.data, revoked.len, "N PRIVATE", 9)));
	KR_BUG_IF(twice.len != once.len || (once.len && memcmp(once.data, twice.data, once.len) != 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	size_t size = n ? n - 1 : 0;
	/* Exactly so many bytes, so that reading one too many is seen. */
	kr_auto_free char *bytes = kr_xcalloc(1, size ? size : 1);

	if (!n)
		return 0;
	memcpy(bytes, data + 1, size);
	switch (data[0] % 8) {
	case 0:
		check_version(&arena, bytes, size);
		break;
	case 1:
	case 2:
		check_info(&arena, data[0] % 8 == 1 ? KR_RUNTIME_DOCKER : KR_RUNTIME_PODMAN, bytes, size);
		break;
	case 3:
		check_image(&arena, bytes, size);
		break;
	case 4:
	case 5:
		check_containers(&arena, data[0] % 8 == 4 ? KR_RUNTIME_DOCKER : KR_RUNTIME_PODMAN, bytes, size);
		break;
	case 6:
		check_words(&arena, bytes, size);
		break;
	default:
		check_ca(bytes, size);
	}
	return 0;
}
