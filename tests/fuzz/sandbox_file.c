/* sandbox.yaml. Beyond "no crash": a refusal has its place; a CLI is a name of two or a clean path outside of
 * the run directory, a CA likewise, and each variable is one. */
#include "base/path.h"
#include "base/text.h"
#include "config/sandbox_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

static void
check_path(const char *path)
{
	KR_BUG_IF(!kr_path_is_clean(path) || kr_path_is_within(path, places.run_dir));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_sandbox_file file;
	struct kr_error err = { 0 };
	/* Exactly n bytes, so that reading one too many is seen. */
	kr_auto_free char *bytes = kr_xcalloc(1, n ? n : 1);

	if (n)
		memcpy(bytes, data, n);
	if (kr_sandbox_file_parse(&arena, &places, "f", bytes, n, &file, &err) < 0) {
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
		return 0;
	}
	if (file.cli && strcmp(file.cli, "docker") != 0 && strcmp(file.cli, "podman") != 0)
		check_path(file.cli);
	if (file.ca_bundle)
		check_path(file.ca_bundle);
	KR_BUG_IF((unsigned)file.selinux >= KR_SELINUX_COUNT || (file.ca_bundle && !file.ca_bundle_mark.line));
	for (size_t i = 0; i < file.credential_count; i++)
		KR_BUG_IF(!*file.credentials[i].service || !kr_text_is_env_name(file.credentials[i].variable));
	return 0;
}
