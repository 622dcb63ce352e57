/*
 * From marker files to proposals. Each kind of project has one small function, asked in the order of the
 * table at the end: a language's own tools come before a Makefile, which often only wraps them. Setup
 * commands of several kinds are joined; of several test commands the first is proposed and the others are
 * told.
 *
 * What is read was written by the repository's authors. It only decides between commands that stand here as
 * literals: no text of a file reaches a proposal.
 */
#include "config/detect.h"

#include <jansson.h>

#include "base/path.h"
#include "base/text.h"

struct scan {
	struct kr_arena *arena;
	const struct kr_fs *fs;
	const char *root;
	struct kr_detected *out;
};

/* ---- questions ---- */

static const char *
path_of(const struct scan *s, const char *name)
{
	return kr_path_join(s->arena, s->root, name);
}

static enum kr_fs_type
type_of(const struct scan *s, const char *name)
{
	const char *path = path_of(s, name);
	struct kr_fs_entry entry = { 0 };

	return path && kr_fs_resolve(s->fs, s->arena, path, &entry, NULL) ? entry.type : KR_FS_NONE;
}

static bool
has_file(const struct scan *s, const char *name)
{
	return type_of(s, name) == KR_FS_FILE;
}

static bool
has_dir(const struct scan *s, const char *name)
{
	return type_of(s, name) == KR_FS_DIR;
}

/* The start of a file as text, "" when there is none. A NUL in it ends the text. */
static const char *
text_of(const struct scan *s, const char *name)
{
	struct kr_fs_entry entry = { 0 };
	const char *path = path_of(s, name);
	char *text;
	long n;

	path = path ? kr_fs_resolve(s->fs, s->arena, path, &entry, NULL) : NULL;
	if (!path || entry.type != KR_FS_FILE)
		return "";
	text = kr_arena_alloc(s->arena, KR_DETECT_FILE_BYTES + 1);
	n = s->fs->read_head(s->fs->context, path, text, KR_DETECT_FILE_BYTES);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static bool
mentions(const struct scan *s, const char *name, const char *word)
{
	return strcasestr(text_of(s, name), word) != NULL;
}

/* The first of the names that is a file; NULL when none is. */
static const char *
first_file(const struct scan *s, const char *const names[])
{
	for (; *names; names++)
		if (has_file(s, *names))
			return *names;
	return NULL;
}

/* ---- proposals ---- */

static void
add_setup(struct scan *s, const char *command)
{
	const char *before = s->out->setup_command;

	s->out->setup_command =
		before && *before ? kr_arena_printf(s->arena, "%s && %s", before, command) : command;
}

static void
add_test(struct scan *s, const char *command)
{
	if (!s->out->test_command)
		s->out->test_command = command;
	else if (strcmp(s->out->test_command, command) != 0 && !kr_strs_has(&s->out->other_tests, command))
		kr_strs_add(s->arena, &s->out->other_tests, command);
}

static void
add_hosts(struct scan *s, const char *const hosts[])
{
	for (; *hosts; hosts++)
		if (!kr_strs_has(&s->out->install_hosts, *hosts))
			kr_strs_add(s->arena, &s->out->install_hosts, *hosts);
}
#define HOSTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
add_found(struct scan *s, const char *what)
{
	kr_strs_add(s->arena, &s->out->found, what);
}

/* ---- projects that one marker file describes ---- */

static const struct {
	const char *markers[3];
	const char *setup, *test;
	const char *hosts[4];
} simple[] = {
	{ { "go.mod" }, "go mod download", "go test ./...", { "proxy.golang.org", "sum.golang.org" } },
	{ { "mix.exs" }, "mix deps.get", "mix test", { "hex.pm", "repo.hex.pm", "builds.hex.pm" } },
	{ { "deno.json", "deno.jsonc" }, "deno install", "deno test",
		{ "jsr.io", "registry.npmjs.org", "dl.deno.land" } },
	{ { "Package.swift" }, "swift package resolve", "swift test", { "github.com" } },
	{ { "meson.build" }, "meson setup build", "meson test -C build", { NULL } },
};

static void
detect_simple(struct scan *s)
{
	for (size_t i = 0; i < KR_COUNT(simple); i++) {
		const char *marker = first_file(s, simple[i].markers);

		if (!marker)
			continue;
		add_found(s, marker);
		add_setup(s, simple[i].setup);
		add_test(s, simple[i].test);
		add_hosts(s, simple[i].hosts);
	}
}

static void
detect_cargo(struct scan *s)
{
	bool locked = has_file(s, "Cargo.lock");

	if (!has_file(s, "Cargo.toml"))
		return;
	add_found(s, locked ? "Cargo.toml and Cargo.lock" : "Cargo.toml");
	add_setup(s, locked ? "cargo fetch --locked" : "cargo fetch");
	add_test(s, "cargo test");
	add_hosts(s, HOSTS("index.crates.io", "static.crates.io", "crates.io"));
}

/* ---- JavaScript ---- */

struct manager {
	const char *name; /* as `packageManager` of package.json names it */
	const char *locks[3];
	const char *setup, *test;
};

static const struct manager managers[] = {
	{ "pnpm", { "pnpm-lock.yaml" }, "pnpm install --frozen-lockfile", "pnpm test" },
	{ "bun", { "bun.lock", "bun.lockb" }, "bun install --frozen-lockfile", "bun run test" },
	{ "yarn", { "yarn.lock" }, "yarn install --frozen-lockfile", "yarn test" },
	{ "npm", { "package-lock.json", "npm-shrinkwrap.json" }, "npm ci", "npm test" },
};

/* By the lock file; without one, by what package.json names; else npm. */
static const struct manager *
find_manager(const struct scan *s, const json_t *package, const char **lock)
{
	const char *named = json_string_value(json_object_get(package, "packageManager"));

	for (size_t i = 0; i < KR_COUNT(managers); i++) {
		*lock = first_file(s, managers[i].locks);
		if (*lock)
			return &managers[i];
	}
	for (size_t i = 0; named && i < KR_COUNT(managers); i++)
		if (kr_text_has_prefix(named, managers[i].name) && named[strlen(managers[i].name)] == '@')
			return &managers[i];
	return &managers[KR_COUNT(managers) - 1];
}

/* "npm init" writes a test script that only says that there is none. */
static bool
has_test_script(const json_t *package)
{
	const char *script = json_string_value(json_object_get(json_object_get(package, "scripts"), "test"));

	return script && *script && !strstr(script, "no test specified");
}

static bool
has_dependencies(const json_t *package)
{
	static const char *const keys[] = { "dependencies", "devDependencies", "optionalDependencies",
		"workspaces" };

	for (size_t i = 0; i < KR_COUNT(keys); i++) {
		const json_t *value = json_object_get(package, keys[i]);

		if (json_object_size(value) || json_array_size(value))
			return true;
	}
	return false;
}

static const char *
setup_of(const struct scan *s, const struct manager *manager, const char *lock)
{
	if (!lock)
		return kr_arena_printf(s->arena, "%s install", manager->name);
	if (strcmp(manager->name, "yarn") == 0 && has_file(s, ".yarnrc.yml"))
		return "yarn install --immutable"; /* from its second release on */
	return manager->setup;
}

static void
detect_node(struct scan *s)
{
	const char *text = text_of(s, "package.json"), *lock = NULL;
	const struct manager *manager;
	json_t *package;

	if (!has_file(s, "package.json"))
		return;
	package =
		json_loadb(text, strlen(text), 0, NULL); /* NULL when it is not JSON: then there is nothing in it */
	manager = find_manager(s, package, &lock);
	add_found(s, lock ? kr_arena_printf(s->arena, "package.json and %s", lock) : "package.json");
	if (lock || has_dependencies(package)) {
		add_setup(s, setup_of(s, manager, lock));
		add_hosts(s, HOSTS("registry.npmjs.org"));
		if (strcmp(manager->name, "yarn") == 0)
			add_hosts(s, HOSTS("registry.yarnpkg.com"));
	}
	if (has_test_script(package))
		add_test(s, manager->test);
	json_decref(package);
}

/* ---- Python ---- */

static const char *const python_lists[] = { "requirements.txt", "requirements-dev.txt",
	"dev-requirements.txt", "requirements-test.txt", "test-requirements.txt" };

static bool
is_python(const struct scan *s)
{
	static const char *const markers[] = { "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt",
		"tox.ini", "uv.lock", "poetry.lock", NULL };

	return first_file(s, markers) != NULL;
}

static bool
uses_pytest(const struct scan *s)
{
	static const char *const own[] = { "pytest.ini", "conftest.py", "tests/conftest.py", NULL };
	static const char *const mentioned[] = { "pyproject.toml", "setup.cfg", "setup.py", "tox.ini" };

	for (size_t i = 0; i < KR_COUNT(mentioned); i++)
		if (mentions(s, mentioned[i], "pytest"))
			return true;
	for (size_t i = 0; i < KR_COUNT(python_lists); i++)
		if (mentions(s, python_lists[i], "pytest"))
			return true;
	return first_file(s, own) != NULL;
}

/* The extra of pyproject.toml that tests are likely to need, as "[test]"; "" for none. Reads line by line:
 * the table's header, then its keys up to the next header. */
static const char *
python_extra(const struct scan *s)
{
	static const char *const names[] = { "test", "tests", "testing", "dev" };
	bool inside = false;

	for (const char *line = text_of(s, "pyproject.toml"); *line;
		 line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = strcspn(line, " \t=\r\n");

		if (*line == '[')
			inside = kr_text_has_prefix(line, "[project.optional-dependencies]");
		for (size_t i = 0; inside && i < KR_COUNT(names); i++)
			if (strlen(names[i]) == n && memcmp(names[i], line, n) == 0)
				return kr_arena_printf(s->arena, "[%s]", names[i]);
	}
	return "";
}

static bool
is_installable(const struct scan *s)
{
	return has_file(s, "setup.py") || mentions(s, "pyproject.toml", "[project]") ||
		   mentions(s, "pyproject.toml", "[build-system]");
}

/* What pip is told to install into a virtual environment in the worktree; "" for nothing. */
static const char *
pip_arguments(const struct scan *s, bool pytest)
{
	const char *arguments = "";

	for (size_t i = 0; i < KR_COUNT(python_lists); i++)
		if (has_file(s, python_lists[i]))
			arguments = kr_arena_printf(s->arena, "%s -r %s", arguments, python_lists[i]);
	if (is_installable(s)) {
		const char *extra = python_extra(s);

		arguments = kr_arena_printf(s->arena, *extra ? "%s -e '.%s'" : "%s -e .%s", arguments, extra);
	}
	return pytest ? kr_arena_printf(s->arena, "%s pytest", arguments) : arguments;
}

static void
python_test(struct scan *s, const char *python, bool pytest)
{
	if (pytest)
		add_test(s, kr_arena_printf(s->arena, "%s -m pytest", python));
	else if (has_file(s, "manage.py"))
		add_test(s, kr_arena_printf(s->arena, "%s manage.py test", python));
	else if (has_dir(s, "tests"))
		add_test(s, kr_arena_printf(s->arena, "%s -m unittest discover -s tests", python));
}

static void
detect_pip(struct scan *s)
{
	bool pytest = uses_pytest(s);
	const char *arguments = pip_arguments(s, pytest);

	if (!*arguments) {
		python_test(s, "python3", false);
		return;
	}
	add_setup(s, kr_arena_printf(s->arena, "python3 -m venv .venv && .venv/bin/pip install%s", arguments));
	python_test(s, ".venv/bin/python", pytest);
}

static void
detect_python(struct scan *s)
{
	static const char *const markers[] = { "uv.lock", "poetry.lock", "pyproject.toml", "setup.py",
		"requirements.txt", "setup.cfg", "tox.ini", NULL };

	if (!is_python(s))
		return;
	add_found(s, first_file(s, markers));
	add_hosts(s, HOSTS("pypi.org", "files.pythonhosted.org"));
	if (has_file(s, "uv.lock")) {
		add_setup(s, "uv sync --locked");
		python_test(s, "uv run --no-sync python", uses_pytest(s));
	} else if (has_file(s, "poetry.lock")) {
		add_setup(s, "poetry install");
		python_test(s, "poetry run python", uses_pytest(s));
	} else {
		detect_pip(s);
	}
}

/* ---- Ruby, PHP, .NET, the JVM ---- */

static void
detect_ruby(struct scan *s)
{
	if (!has_file(s, "Gemfile"))
		return;
	add_found(s, "Gemfile");
	add_setup(s, "bundle install");
	add_hosts(s, HOSTS("rubygems.org", "index.rubygems.org"));
	if (has_file(s, ".rspec") || has_dir(s, "spec"))
		add_test(s, "bundle exec rspec");
	else if (has_file(s, "bin/rails"))
		add_test(s, "bin/rails test");
	else if (has_file(s, "Rakefile"))
		add_test(s, "bundle exec rake test");
}

static void
detect_php(struct scan *s)
{
	static const char *const phpunit[] = { "phpunit.xml", "phpunit.xml.dist", NULL };

	if (!has_file(s, "composer.json"))
		return;
	add_found(s, "composer.json");
	add_setup(s, "composer install");
	add_hosts(s, HOSTS("repo.packagist.org", "packagist.org", "api.github.com", "codeload.github.com"));
	if (first_file(s, phpunit))
		add_test(s, "vendor/bin/phpunit");
}

static bool
visit_dotnet(void *context, const char *name, enum kr_fs_type type)
{
	static const char *const endings[] = { ".sln", ".slnx", ".csproj", ".fsproj" };
	const char **found = context;
	size_t n = strlen(name);

	for (size_t i = 0; i < KR_COUNT(endings); i++) {
		size_t k = strlen(endings[i]);

		if (type == KR_FS_FILE && n > k && strcmp(name + n - k, endings[i]) == 0)
			*found = endings[i];
	}
	return !*found;
}

static void
detect_dotnet(struct scan *s)
{
	const char *ending = NULL;

	(void)s->fs->list(s->fs->context, s->root, visit_dotnet, &ending); /* unreadable: nothing found */
	if (!ending)
		return;
	add_found(s, kr_arena_printf(s->arena, "a %s file", ending));
	add_setup(s, "dotnet restore");
	add_test(s, "dotnet test --no-restore");
	add_hosts(s, HOSTS("api.nuget.org"));
}

static void
detect_jvm(struct scan *s)
{
	static const char *const gradle[] = { "build.gradle", "build.gradle.kts", "settings.gradle",
		"settings.gradle.kts", NULL };
	const char *marker = first_file(s, gradle);

	if (has_file(s, "pom.xml")) {
		bool wrapper = has_file(s, "mvnw");

		add_found(s, "pom.xml");
		add_setup(s, wrapper ? "./mvnw -B test-compile" : "mvn -B test-compile");
		add_test(s, wrapper ? "./mvnw -B -o test" : "mvn -B -o test");
		add_hosts(s, HOSTS("repo.maven.apache.org", "repo1.maven.org"));
	}
	if (marker) {
		bool wrapper = has_file(s, "gradlew");

		add_found(s, marker);
		add_setup(s, wrapper ? "./gradlew --no-daemon testClasses" : "gradle --no-daemon testClasses");
		add_test(s, wrapper ? "./gradlew --no-daemon --offline test" : "gradle --no-daemon --offline test");
		add_hosts(s, HOSTS("services.gradle.org", "downloads.gradle.org", "plugins.gradle.org",
						 "repo.maven.apache.org", "repo1.maven.org"));
	}
}

/* ---- make and its kin ---- */

/* Whether a makefile (or a justfile) has a rule for `target`: "a target b: deps", but no assignment and no
 * recipe. */
static bool
has_rule(const char *text, const char *target)
{
	size_t k = strlen(target);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t n = strcspn(line, ":=#\r\n\t");

		if (line[n] != ':' || line[n + 1] == '=' || (line[n + 1] == ':' && line[n + 2] == '='))
			continue;
		for (size_t from = 0, to; from < n; from = to + strspn(line + to, " ")) {
			to = from + strcspn(line + from, " :");
			if (to - from == k && memcmp(line + from, target, k) == 0)
				return true;
		}
	}
	return false;
}

static void
detect_make(struct scan *s)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile", NULL };
	const char *name = first_file(s, names), *text;

	if (!name)
		return;
	text = text_of(s, name);
	add_found(s, name);
	if (has_rule(text, "test"))
		add_test(s, "make test");
	else if (has_rule(text, "check"))
		add_test(s, "make check");
}

static void
detect_just(struct scan *s)
{
	static const char *const names[] = { "justfile", "Justfile", ".justfile", NULL };
	const char *name = first_file(s, names);

	if (!name)
		return;
	add_found(s, name);
	if (has_rule(text_of(s, name), "test"))
		add_test(s, "just test");
}

static void
detect_autotools(struct scan *s)
{
	bool made = has_file(s, "configure");

	if (!made && !has_file(s, "configure.ac"))
		return;
	add_found(s, made ? "configure" : "configure.ac");
	add_setup(s, made ? "./configure" : "autoreconf -i && ./configure");
	add_test(s, "make check");
}

static void
detect_cmake(struct scan *s)
{
	if (!has_file(s, "CMakeLists.txt"))
		return;
	add_found(s, "CMakeLists.txt");
	add_setup(s, "cmake -S . -B build");
	if (mentions(s, "CMakeLists.txt", "enable_testing") || mentions(s, "CMakeLists.txt", "include(CTest"))
		add_test(s, "sh -c 'cmake --build build && ctest --test-dir build --output-on-failure'");
}

static void (*const detectors[])(struct scan *s) = {
	detect_node,
	detect_cargo,
	detect_simple,
	detect_python,
	detect_ruby,
	detect_php,
	detect_dotnet,
	detect_jvm,
	detect_cmake,
	detect_autotools,
	detect_make,
	detect_just,
};

void
kr_detect(struct kr_arena *arena, const struct kr_fs *fs, const char *root, struct kr_detected *out)
{
	struct scan s = { .arena = arena, .fs = fs, .root = root, .out = out };

	*out = (struct kr_detected){ 0 };
	for (size_t i = 0; i < KR_COUNT(detectors); i++)
		detectors[i](&s);
	if (out->found.n && !out->setup_command)
		out->setup_command = "";
}
