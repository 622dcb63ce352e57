/*
 * kraft admin install-service: the server kept by systemd's user manager, or by launchd on a Mac.
 *
 * The file names this program, and the PATH and places of kraft that hold here, since a service manager knows none of them. A
 * secret is never in it: logins belong into service.env beside the configuration, which systemd reads. Only a file that this
 * command wrote is ever replaced or removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/service.h"
#include "os/host.h"
#include "os/sys.h"

enum { FILE_BYTES = 64 << 10 };
static const char mark[] = "Made by 'kraft admin install-service', which replaces it"; /* without it a file is somebody's own */

enum { PRINT, REMOVE };
static const struct kr_option options[] = {
	[PRINT] = { "print", 0, NULL, "print the file and write nothing" },
	[REMOVE] = { "remove", 0, NULL, "take away the file that this command wrote" },
	{ NULL },
};

struct service {
	struct kr_arena *arena;
	struct kr_host host;
	const char *program, *path; /* path: of the file */
	struct kr_buf text;
};

/* ---- where they lie ---- */

const char *
kr_service_file(struct kr_arena *arena, const struct kr_host *host)
{
	const char *config = kr_host_env(host, "XDG_CONFIG_HOME");

	if (host->os == KR_SYSTEM_MACOS)
		return kr_path_join(arena, host->places.home, "Library/LaunchAgents/com.kraft.server.plist");
	config = config && config[0] == '/' ? config : kr_path_join(arena, host->places.home, ".config");
	return kr_path_join(arena, config, "systemd/user/kraft.service");
}

const char *
kr_service_environment(struct kr_arena *arena, const struct kr_host *host)
{
	return kr_path_join(arena, host->places.config_dir, "service.env");
}

/* ---- systemd ---- */

/* Between double quotes; what systemd would replace stands for itself (systemd.syntax(7), systemd.unit(5)). */
static void
add_quoted(struct kr_buf *out, const char *text, bool is_command)
{
	kr_buf_adds(out, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			kr_buf_adds(out, "\\");
		if (*text == '%' || (*text == '$' && is_command))
			kr_buf_add(out, text, 1);
		kr_buf_add(out, text, 1);
	}
	kr_buf_adds(out, "\"");
}

static const char *const kept[] = { "PATH", "KRAFT_HOME", "KRAFT_RUN_DIR", "KRAFT_CONFIG_DIR" };

static void
write_unit(struct service *s)
{
	struct kr_buf *out = &s->text;

	kr_buf_addf(out, "# %s.\n[Unit]\nDescription=kraft: keeps work items going\n\n[Service]\nType=notify\nExecStart=", mark);
	add_quoted(out, s->program, true);
	kr_buf_adds(out, " admin start\nRestart=on-failure\n");
	for (size_t i = 0; i < KR_COUNT(kept); i++) {
		const char *value = kr_host_env(&s->host, kept[i]);

		if (!value || !*value)
			continue;
		kr_buf_adds(out, "Environment=");
		add_quoted(out, kr_arena_printf(s->arena, "%s=%s", kept[i], value), false);
		kr_buf_adds(out, "\n");
	}
	kr_buf_adds(out, "# Logins of agents, a line NAME=value each; only you may read it (chmod 600).\nEnvironmentFile=-");
	for (const char *c = kr_service_environment(s->arena, &s->host); *c; c++)
		kr_buf_addf(out, "%s%c", *c == '%' ? "%" : "", *c);
	kr_buf_adds(out, "\n\n[Install]\nWantedBy=default.target\n");
}

/* ---- launchd ---- */

static void
add_xml(struct kr_buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '<')
			kr_buf_adds(out, "&lt;");
		else if (*text == '&')
			kr_buf_adds(out, "&amp;");
		else
			kr_buf_add(out, text, 1);
}

static void
write_plist(struct service *s)
{
	struct kr_buf *out = &s->text;

	kr_buf_addf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- %s. -->\n"
		"<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
		"<plist version=\"1.0\">\n<dict>\n\t<key>Label</key>\n\t<string>com.kraft.server</string>\n"
		"\t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>", mark);
	add_xml(out, s->program);
	kr_buf_adds(out, "</string>\n\t\t<string>admin</string>\n\t\t<string>start</string>\n\t</array>\n\t<key>EnvironmentVariables</key>\n\t<dict>\n");
	for (size_t i = 0; i < KR_COUNT(kept); i++) {
		const char *value = kr_host_env(&s->host, kept[i]);

		if (!value || !*value)
			continue;
		kr_buf_addf(out, "\t\t<key>%s</key>\n\t\t<string>", kept[i]);
		add_xml(out, value);
		kr_buf_adds(out, "</string>\n");
	}
	kr_buf_adds(out, "\t</dict>\n\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n"
		"\t<!-- What the server started goes on when it ends. -->\n\t<key>AbandonProcessGroup</key>\n\t<true/>\n\t<key>ProcessType</key>\n"
		"\t<string>Interactive</string>\n</dict>\n</plist>\n");
}

/* ---- the file ---- */

static bool
has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

static int
prepare(struct service *s, struct kr_error *err)
{
	if (kr_host_gather(s->arena, &s->host, err) < 0)
		return -1;
	s->program = kr_self_path(s->arena);
	if (!s->program)
		return kr_fail(err, KR_E_SYSTEM, "the system does not say which program this is");
	for (size_t i = 0; i < KR_COUNT(kept); i++)
		if (has_control(s->program) || has_control(kr_host_env(&s->host, kept[i]) ? kr_host_env(&s->host, kept[i]) : ""))
			return kr_fail(err, KR_E_UNSUPPORTED, "%s, or the path of kraft, has a control character, which a service cannot be told", kept[i]);
	s->path = kr_service_file(s->arena, &s->host);
	if (s->host.os == KR_SYSTEM_MACOS)
		write_plist(s);
	else
		write_unit(s);
	return 0;
}

/* 1: it is ours; 0: there is none; -1: it is somebody's own. */
static int
look(const struct service *s, struct kr_buf *old, struct kr_error *err)
{
	struct stat st;

	if (lstat(s->path, &st) < 0)
		return errno == ENOENT ? 0 : kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", s->path);
	if (S_ISREG(st.st_mode) && kr_file_read_at(AT_FDCWD, s->path, old, err) == 0 && old->data && memmem(old->data, old->len, mark, sizeof(mark) - 1))
		return 1;
	kr_fail(err, KR_E_REFUSED, "'%s' is not of this command's making, so it stays as it is", s->path);
	return kr_hint(err, "move it away, or compare: kraft admin install-service --print");
}

static void
tell_next(const struct service *s)
{
	if (s->host.os == KR_SYSTEM_MACOS)
		printf("next: launchctl bootstrap gui/$(id -u) %s\n", s->path);
	else
		printf("next: systemctl --user daemon-reload && systemctl --user enable --now kraft\n"
			   "      loginctl enable-linger      # so that it also runs while you are not logged in\n");
}

static int
install(struct service *s, struct kr_error *err)
{
	kr_auto_buf struct kr_buf old = KR_BUF(FILE_BYTES);
	const int found = look(s, &old, err);
	kr_auto_fd int folder = -1;

	if (found < 0)
		return -1;
	if (found && old.len == s->text.len && memcmp(old.data, s->text.data, old.len) == 0) {
		printf("'%s' is as it would be written\n", s->path);
		return 0;
	}
	folder = kr_path_make_dirs(kr_path_dirname(s->arena, s->path), err);
	if (folder < 0 || kr_file_write_at(folder, kr_path_basename(s->path), s->text.data, s->text.len, 0600, err) < 0)
		return -1;
	printf("%s '%s'\n", found ? "replaced" : "wrote", s->path);
	tell_next(s);
	return 0;
}

static int
take_away(struct service *s, struct kr_error *err)
{
	kr_auto_buf struct kr_buf old = KR_BUF(FILE_BYTES);
	const int found = look(s, &old, err);

	if (found < 0)
		return -1;
	if (found && unlink(s->path) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove '%s'", s->path);
	printf(found ? "removed '%s'\n" : "there is no '%s'\n", s->path);
	return 0;
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct service s = { .arena = arena, .text = KR_BUF(FILE_BYTES) };
	int result = -1;

	if (parsed->value[PRINT] && parsed->value[REMOVE])
		return kr_fail(err, KR_E_USAGE, "'--print' and '--remove' do not go together");
	if (prepare(&s, err) == 0) {
		result = parsed->value[REMOVE] ? take_away(&s, err) : parsed->value[PRINT] ? 0 : install(&s, err);
		if (parsed->value[PRINT])
			fwrite(s.text.data, 1, s.text.len, stdout);
	}
	kr_buf_fini(&s.text);
	return result;
}

const struct kr_command kr_cmd_admin_install_service = {
	.name = "admin install-service",
	.usage = "[--print | --remove]",
	.summary = "have systemd or launchd keep the server for you",
	.help = "Writes a unit of systemd's user manager, or a property list of launchd's on a Mac, for this very program, with the\n"
			"PATH and the places of kraft that hold here, and says how to start it. A file of somebody else's making is never\n"
			"replaced. Logins of agents go into service.env beside the configuration, a line NAME=value each; on a Mac into the\n"
			"property list.",
	.options = options,
	.run = run,
};
