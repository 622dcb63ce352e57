/*
 * sandbox.yaml. What it names runs on the host, as the person (the CLI), or is trusted by every worker (the
 * CA), so neither may lie where workers write. Whether the CA can be used is looked at anew for each launch
 * (backend/ca_bundle.c): a file that was fine when kraft started can be gone.
 */
#include "config/sandbox_file.h"

#include "base/path.h"
#include "config/schema.h"

#define BEGIN "'cli: docker'"

static const char *const selinux_names[] = {
#define X(choice, name) [KR_SELINUX_##choice] = name,
	KR_SELINUX(X)
#undef X
};

static int
find_selinux(const char *name)
{
	for (int i = 0; i < KR_SELINUX_COUNT; i++)
		if (strcmp(selinux_names[i], name) == 0)
			return i;
	return -1;
}

const char *
kr_fault_selinux(const char *text)
{
	return find_selinux(text) >= 0 ? NULL : "is none of auto, relabel and disable";
}

const char *
kr_fault_container_cli(const char *text)
{
	if (strcmp(text, "docker") == 0 || strcmp(text, "podman") == 0 || text[0] == '/')
		return NULL;
	return "is neither docker nor podman nor an absolute path";
}

const char *
kr_fault_absolute(const char *text)
{
	return text[0] == '/' ? NULL : "is not an absolute path";
}

int
kr_container_cli_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_sandbox_file *file = target;

	if (kr_config_check(c, key, node) < 0)
		return -1;
	file->cli = kr_program_read(c, node, key->name, "it would run on this host, outside of any sandbox");
	return file->cli ? 0 : -1;
}

int
kr_selinux_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	if (kr_config_check(c, key, node) < 0)
		return -1;
	((struct kr_sandbox_file *)target)->selinux = (enum kr_selinux)find_selinux(node->text);
	return 0;
}

int
kr_ca_bundle_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_sandbox_file *file = target;
	const char *path;

	if (kr_config_check(c, key, node) < 0)
		return -1;
	path = kr_path_clean(c->arena, node->text);
	if (!path)
		return kr_config_fail(
			c, node, "'%s' of '%s' is too long for a path", kr_config_quote(c, node->text), key->name);
	if (kr_path_is_within(path, c->places->run_dir)) {
		kr_config_fail(
			c, node, "'%s' of '%s' lies where workers write", kr_config_quote(c, node->text), key->name);
		return kr_hint(c->err, "every worker would trust it; keep it in another place");
	}
	file->ca_bundle = path;
	file->ca_bundle_mark = kr_config_mark(node);
	return 0;
}

int
kr_relay_image_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_sandbox_file *file = target;

	if (kr_config_check(c, key, node) < 0)
		return -1;
	file->relay_image = node->text;
	file->relay_image_mark = kr_config_mark(node);
	return 0;
}

int
kr_kit_bindings_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_sandbox_file *file = target;

	file->credentials = kr_arena_alloc(c->arena, node->count * sizeof(*file->credentials));
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const char *fault;

		if (kr_config_want(c, value, value->key->text, KR_KEY_STRING) < 0)
			return -1;
		fault = kr_fault_env_name(value->text);
		if (fault) {
			kr_config_fail(c, value, "'%s' in '%s' %s", kr_config_quote(c, value->text), key->name, fault);
			return kr_hint(c->err, "write the name of the variable that holds the secret, never the secret");
		}
		file->credentials[file->credential_count++] =
			(struct kr_kit_binding){ .service = value->key->text, .variable = value->text };
	}
	return 0;
}

int
kr_sandbox_file_parse(struct kr_arena *arena, const struct kr_places *places, const char *file,
	const char *bytes, size_t n, struct kr_sandbox_file *out, struct kr_error *err)
{
	struct kr_sandbox_file read = { .file = kr_arena_dup(arena, file) };
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = arena, .doc = &doc, .files = KR_IN_SANDBOX_FILE, .places = places, .err = err
	};

	if (kr_config_parse(&c, read.file, bytes, n, &doc, BEGIN) < 0 ||
		(doc.root && kr_section_read(&c, KR_IN_CONTAINERS, doc.root, &read) < 0))
		return -1;
	*out = read;
	return 0;
}

int
kr_sandbox_file_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_sandbox_file *out, struct kr_error *err)
{
	const char *file = kr_path_join(arena, places->config_dir, "sandbox.yaml"), *bytes;
	bool is_missing;
	size_t n;

	if (!file)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
	if (kr_config_load(
			arena, file, "no container is started until it can be read", &bytes, &n, &is_missing, err) < 0)
		return -1;
	return kr_sandbox_file_parse(arena, places, file, bytes, n, out, err);
}
