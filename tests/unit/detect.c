/* config: what a checkout seems to be, and that every proposal makes an entry that loads. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/config.h"
#include "config/detect.h"
#include "config/yaml.h"

#include <cmocka.h>

struct file {
	const char *name, *text; /* a name that ends in '/' is a directory */
};

static const struct detect_case {
	struct file files[7];
	const char *setup, *test; /* NULL as in struct kr_detected */
	const char *hosts;        /* separated by blanks */
	const char *others;
} cases[] = {
	{ { { "README", "" } }, NULL, NULL, "", "" },
	{ { { "package.json", "{\"scripts\":{\"test\":\"node --test\"},\"dependencies\":{\"a\":\"1\"}}" },
		  { "package-lock.json", "{}" } },
		"npm ci", "npm test", "registry.npmjs.org", "" },
	{ { { "package.json", "{\"scripts\":{\"test\":\"echo \\\"Error: no test specified\\\" && exit 1\"}}" } },
		"", NULL, "", "" },
	{ { { "package.json", "{\"scripts\":{\"test\":\"\"},\"devDependencies\":{\"a\":\"1\"}}" } },
		"npm install", NULL, "registry.npmjs.org", "" },
	{ { { "package.json", "{\"scripts\":{\"test\":\"vitest\"}}" }, { "pnpm-lock.yaml", "" } },
		"pnpm install --frozen-lockfile", "pnpm test", "registry.npmjs.org", "" },
	{ { { "package.json", "{\"packageManager\":\"pnpm@9.1.0\",\"workspaces\":[\"a\"]}" } }, "pnpm install",
		NULL, "registry.npmjs.org", "" },
	{ { { "package.json", "{\"packageManager\":\"pnpmish@9\",\"dependencies\":{\"a\":\"1\"}}" } },
		"npm install", NULL, "registry.npmjs.org", "" },
	{ { { "package.json", "{\"scripts\":{\"test\":\"jest\"}}" }, { "yarn.lock", "" } },
		"yarn install --frozen-lockfile", "yarn test", "registry.npmjs.org registry.yarnpkg.com", "" },
	{ { { "package.json", "{}" }, { "yarn.lock", "" }, { ".yarnrc.yml", "" } }, "yarn install --immutable",
		NULL, "registry.npmjs.org registry.yarnpkg.com", "" },
	{ { { "package.json", "{\"scripts\":{\"test\":\"x\"}}" }, { "bun.lock", "" } },
		"bun install --frozen-lockfile", "bun run test", "registry.npmjs.org", "" },
	{ { { "package.json", "not json" } }, "", NULL, "", "" },
	{ { { "package.json", "[]" }, { "package-lock.json", "" } }, "npm ci", NULL, "registry.npmjs.org", "" },
	{ { { "package.json", "{\"scripts\":[1],\"dependencies\":\"x\",\"packageManager\":3}" } }, "", NULL, "",
		"" },
	{ { { "Cargo.toml", "" } }, "cargo fetch", "cargo test", "index.crates.io static.crates.io crates.io",
		"" },
	{ { { "Cargo.toml", "" }, { "Cargo.lock", "" } }, "cargo fetch --locked", "cargo test",
		"index.crates.io static.crates.io crates.io", "" },
	{ { { "go.mod", "module x\n" } }, "go mod download", "go test ./...", "proxy.golang.org sum.golang.org",
		"" },
	{ { { "meson.build", "" } }, "meson setup build", "meson test -C build", "", "" },
	{ { { "CMakeLists.txt", "project(x)\nInclude(CTest)\n" } }, "cmake -S . -B build",
		"sh -c 'cmake --build build && ctest --test-dir build --output-on-failure'", "", "" },
	{ { { "CMakeLists.txt", "project(x)\n" } }, "cmake -S . -B build", NULL, "", "" },
	{ { { "mix.exs", "" } }, "mix deps.get", "mix test", "hex.pm repo.hex.pm builds.hex.pm", "" },
	{ { { "uv.lock", "" }, { "pyproject.toml", "[dependency-groups]\ndev = [\"pytest\"]\n" } },
		"uv sync --locked", "uv run --no-sync python -m pytest", "pypi.org files.pythonhosted.org", "" },
	{ { { "pyproject.toml",
		  "[project]\nname = \"x\"\n[project.optional-dependencies]\ndocs = []\ntest = [\"pytest\"]\n" } },
		"python3 -m venv .venv && .venv/bin/pip install -e '.[test]' pytest", ".venv/bin/python -m pytest",
		"pypi.org files.pythonhosted.org", "" },
	{ { { "pyproject.toml", "[project.optional-dependencies]\ndocs = []\n[tool.x]\ntest = 1\n" },
		  { "setup.py", "" }, { "tests/", NULL } },
		"python3 -m venv .venv && .venv/bin/pip install -e .",
		".venv/bin/python -m unittest discover -s tests", "pypi.org files.pythonhosted.org", "" },
	{ { { "requirements.txt", "flask\n" }, { "requirements-dev.txt", "pytest==8\n" } },
		"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt -r requirements-dev.txt pytest",
		".venv/bin/python -m pytest", "pypi.org files.pythonhosted.org", "" },
	{ { { "requirements.txt", "django\n" }, { "manage.py", "" } },
		"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
		".venv/bin/python manage.py test", "pypi.org files.pythonhosted.org", "" },
	{ { { "pyproject.toml", "[tool.black]\n" }, { "tests/", NULL } }, "",
		"python3 -m unittest discover -s tests", "pypi.org files.pythonhosted.org", "" },
	{ { { "Gemfile", "" }, { "spec/", NULL } }, "bundle install", "bundle exec rspec",
		"rubygems.org index.rubygems.org", "" },
	{ { { "Gemfile", "" }, { "Rakefile", "" } }, "bundle install", "bundle exec rake test",
		"rubygems.org index.rubygems.org", "" },
	{ { { "pom.xml", "" }, { "mvnw", "" } }, "./mvnw -B test-compile", "./mvnw -B -o test",
		"repo.maven.apache.org repo1.maven.org", "" },
	{ { { "build.gradle.kts", "" } }, "gradle --no-daemon testClasses", "gradle --no-daemon --offline test",
		"services.gradle.org downloads.gradle.org plugins.gradle.org repo.maven.apache.org repo1.maven.org",
		"" },
	{ { { "App.Tests.csproj", "" } }, "dotnet restore", "dotnet test --no-restore", "api.nuget.org", "" },
	{ { { "composer.json", "{}" }, { "phpunit.xml.dist", "" } }, "composer install", "vendor/bin/phpunit",
		"repo.packagist.org packagist.org api.github.com codeload.github.com", "" },
	{ { { "configure.ac", "" } }, "autoreconf -i && ./configure", "make check", "", "" },
	{ { { "Makefile", "all: x\n\ncheck test : all\n\t./x\n" } }, "", "make test", "", "" },
	{ { { "Makefile", "check:: all\n\t./x\n" } }, "", "make check", "", "" },
	{ { { "GNUmakefile", "all:\n" }, { "Makefile", "test:\n" } }, "", NULL, "", "" },
	{ { { "Makefile", "test := 1\ntest = 2\ntest ::= 3\n# test: no\nx: test\n\ttest: no\ntests:\n.PHONY: "
					  "test\nx = a: test\n"
					  "export check:=1" } },
		"", NULL, "", "" },
	{ { { "justfile", "test *args:\n  x\n" } }, "", "just test", "", "" },
	/* Several kinds at once: setups are joined, the first test is proposed. */
	{ { { "package.json", "{\"scripts\":{\"test\":\"x\"}}" }, { "package-lock.json", "" }, { "go.mod", "" },
		  { "Makefile", "test:\n" } },
		"npm ci && go mod download", "npm test", "registry.npmjs.org proxy.golang.org sum.golang.org",
		"go test ./... make test" },
	/* A marker that is no regular file is no marker. */
	{ { { "package.json/", NULL }, { "Makefile/", NULL } }, NULL, NULL, "", "" },
};

static void
make_files(int dir, const struct file *files, bool make)
{
	struct kr_error err = { 0 };

	for (; files->name; files++) {
		char name[64];
		size_t n = strlen(files->name);
		bool is_dir = files->name[n - 1] == '/';

		snprintf(name, sizeof(name), "%.*s", (int)(n - is_dir), files->name);
		if (!make)
			assert_int_equal(unlinkat(dir, name, is_dir ? AT_REMOVEDIR : 0), 0);
		else if (is_dir)
			assert_int_equal(mkdirat(dir, name, 0700), 0);
		else
			assert_int_equal(kr_file_write_at(dir, name, files->text, strlen(files->text), 0600, &err), 0);
	}
}

static const char *
joined(struct kr_arena *arena, const struct kr_strs *list)
{
	const char *text = "";

	for (size_t i = 0; i < list->n; i++)
		text = kr_arena_printf(arena, "%s%s%s", text, i ? " " : "", list->v[i]);
	return text;
}

static void
assert_text(const char *got, const char *want, const char *first_file)
{
	if (!got != !want || (got && strcmp(got, want) != 0))
		fail_msg("%s: got '%s', want '%s'", first_file, got ? got : "(null)", want ? want : "(null)");
}

static void
projects_are_known_by_their_files(void **state)
{
	char top[] = "/tmp/kraft-unit-XXXXXX";
	kr_auto_fd int dir = -1;

	(void)state;
	assert_non_null(mkdtemp(top));
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const struct detect_case *c = &cases[i];
		struct kr_detected got;

		make_files(dir, c->files, true);
		kr_detect(&arena, &kr_fs_live, top, &got);
		make_files(dir, c->files, false);
		assert_text(got.setup_command, c->setup, c->files[0].name);
		assert_text(got.test_command, c->test, c->files[0].name);
		assert_text(joined(&arena, &got.install_hosts), c->hosts, c->files[0].name);
		assert_text(joined(&arena, &got.other_tests), c->others, c->files[0].name);
		assert_true((got.found.n > 0) == (got.setup_command != NULL));
	}
	rmdir(top);
}

static void
no_more_than_the_limit_is_read(void **state)
{
	static const struct file files[] = { { "Makefile", "" }, { NULL, NULL } };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	char top[] = "/tmp/kraft-unit-XXXXXX";
	struct kr_buf buf = KR_BUF(1u << 20);
	struct kr_error err = { 0 };
	struct kr_detected got;
	kr_auto_fd int dir = -1;

	(void)state;
	assert_non_null(mkdtemp(top));
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (buf.len < KR_DETECT_FILE_BYTES)
		kr_buf_adds(&buf, "#\n");
	kr_buf_adds(&buf, "test:\n");
	assert_int_equal(kr_file_write_at(dir, "Makefile", buf.data, buf.len, 0600, &err), 0);
	kr_detect(&arena, &kr_fs_live, top, &got);
	assert_null(got.test_command);
	make_files(dir, files, false);
	assert_int_equal(symlinkat("/dev/zero", dir, "Makefile"), 0); /* and no device, and no FIFO, is opened */
	assert_int_equal(mkfifoat(dir, "package.json", 0600), 0);
	kr_detect(&arena, &kr_fs_live, top, &got);
	assert_int_equal(got.found.n, 0);
	unlinkat(dir, "Makefile", 0);
	unlinkat(dir, "package.json", 0);
	rmdir(top);
	kr_buf_fini(&buf);
}

/* What connect writes reads back as the same string, whatever it holds. */
static void
any_string_survives_being_written(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"a",
		"a b",
		"a  b",
		" a",
		"a ",
		"~",
		"~/x",
		"null",
		"true",
		"False",
		"yes",
		"1",
		"1.5",
		".5",
		"1e3",
		"0x1f",
		".inf",
		"...",
		"---",
		"- a",
		"-a",
		"a: b",
		"a:",
		":a",
		"a #b",
		"#a",
		"*",
		"*.example.org",
		"&a",
		"!a",
		"[a]",
		"{a}",
		"a, b",
		"a]",
		"'a'",
		"\"a\"",
		"a\"b\\c",
		"a\tb",
		"a\nb",
		"a\r\nb",
		"\x01\x1b[2J\x7f",
		"%a",
		"@a",
		"`a`",
		"|",
		">",
		"?",
		"? a",
		"=",
		"<<",
		"caf\xc3\xa9",
		"\xc2\x85",
		"\xe2\x80\xa8",
		"\xef\xbb\xbf",
		"\xef\xbf\xbe",
		"\xf0\x9f\x98\x80",
		"\xe2\x80\xae",
		"sh -c 'a && b'",
		"a=b@c+d",
		"2024-01-01",
		".venv/bin/python",
		"\\",
		"\\n",
		"a\\",
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(texts); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_buf buf = KR_BUF(4096);
		struct kr_error err = { 0 };
		struct kr_yaml doc;
		const struct kr_yaml_node *block, *flow;

		kr_buf_adds(&buf, "block: ");
		kr_yaml_add_string(&buf, texts[i]);
		kr_buf_adds(&buf, " # c\nflow: {a: [");
		kr_yaml_add_string(&buf, texts[i]);
		kr_buf_adds(&buf, ", b]}\n");
		if (kr_yaml_parse(&arena, "f", buf.data, buf.len, &doc, &err) < 0)
			fail_msg("%s in: %s", err.message, buf.data);
		block = kr_yaml_get(doc.root, "block");
		flow = kr_yaml_get(kr_yaml_get(doc.root, "flow"), "a")->child;
		assert_int_equal(kr_yaml_value(block), KR_VALUE_STRING);
		assert_int_equal(kr_yaml_value(flow), KR_VALUE_STRING);
		assert_string_equal(block->text, texts[i]);
		assert_string_equal(flow->text, texts[i]);
		kr_buf_fini(&buf);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(projects_are_known_by_their_files),
		cmocka_unit_test(no_more_than_the_limit_is_read),
		cmocka_unit_test(any_string_survives_being_written),
	};

	return cmocka_run_group_tests_name("detect", tests, NULL, NULL);
}
