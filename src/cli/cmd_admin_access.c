/*
 * kraft admin token, kraft admin password: what a client of the HTTP API has to show. Both are for a person:
 * a session that had the token could say what only a person may.
 */
#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include "api/api.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "cli/cli.h"
#include "config/access.h"

enum { PASSWORD_LEAST = 8, PASSWORD_BYTES = 512, COST = 0 };

static int
refuse_session(struct kr_error *err)
{
	if (!getenv("KRAFT_SESSION_ID"))
		return 0;
	kr_fail(err, KR_E_REFUSED, "this is for a person, and KRAFT_SESSION_ID says that a session asks");
	return kr_hint(err, "type it in a terminal of your own");
}

static int
prepare(struct kr_arena *arena, struct kr_host *host, struct kr_error *err)
{
	if (refuse_session(err) < 0 || kr_host_gather_places(arena, host, err) < 0)
		return -1;
	return kr_host_prepare_dirs(host, err);
}

/* ---- token ---- */

static int
token(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_host host;
	const char *text;

	(void)parsed;
	if (prepare(arena, &host, err) < 0 || kr_api_token(arena, &host.places, &text, err) < 0)
		return -1;
	puts(text);
	return 0;
}

const struct kr_command kr_cmd_admin_token = {
	.name = "admin token",
	.usage = "",
	.summary = "print the token that changes through the HTTP API need",
	.help = "It is in the file 'token' of the run directory, which only you can read. Remove that file and "
			"start the\n"
			"server anew for another one. kraft-api(7) tells how it is used.",
	.words_max = 0,
	.run = token,
};

/* ---- password ---- */

static volatile sig_atomic_t interrupted;

static void
note_signal(int signal_number)
{
	interrupted = signal_number;
}

/* The terminal is as it was on every way out; Ctrl-C in the midst of it too. */
static int
read_hidden(int tty, const char *prompt, char out[PASSWORD_BYTES], struct kr_error *err)
{
	const struct sigaction note = { .sa_handler = note_signal };
	struct sigaction before_int, before_term;
	struct termios shown, hidden;
	ssize_t n;

	if (tcgetattr(tty, &shown) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot ask the terminal");
	hidden = shown;
	hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK);
	hidden.c_lflag |= ICANON | ECHONL;
	(void)sigaction(SIGINT, &note, &before_int);
	(void)sigaction(SIGTERM, &note, &before_term);
	if (kr_write_all(tty, prompt, strlen(prompt), err) < 0 || tcsetattr(tty, TCSAFLUSH, &hidden) < 0)
		n = -1;
	else
		n = read(tty, out, PASSWORD_BYTES - 1);
	(void)tcsetattr(tty, TCSAFLUSH, &shown);
	(void)sigaction(SIGINT, &before_int, NULL);
	(void)sigaction(SIGTERM, &before_term, NULL);
	if (interrupted)
		(void)raise(interrupted);
	if (n <= 0 || out[n - 1] != '\n')
		return kr_fail(err, KR_E_USAGE, n > 0 ? "the password is too long" : "no password was typed");
	out[n - 1] = '\0';
	return 0;
}

static int
ask(char out[PASSWORD_BYTES], struct kr_error *err)
{
	kr_auto_fd int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
	char again[PASSWORD_BYTES] = "";
	int result;

	if (tty < 0) {
		kr_fail_errno(err, KR_E_USAGE, errno, "a password is typed at a terminal");
		return kr_hint(err, "there is no way to give it on the command line, where others could read it");
	}
	result = read_hidden(tty, "Password: ", out, err);
	if (result == 0 && strlen(out) < PASSWORD_LEAST)
		result = kr_fail(err, KR_E_USAGE, "a password has at least %d characters", PASSWORD_LEAST);
	if (result == 0 && !kr_text_is_utf8(out, strlen(out)))
		result = kr_fail(err, KR_E_USAGE, "a password is UTF-8, as a browser sends it");
	if (result == 0)
		result = read_hidden(tty, "Again: ", again, err);
	if (result == 0 && strcmp(out, again) != 0)
		result = kr_fail(err, KR_E_USAGE, "the two are not the same");
	kr_wipe(again, sizeof(again));
	return result;
}

/* yescrypt at the library's own cost. */
static const char *
make_hash(struct kr_arena *arena, const char *password, struct kr_error *err)
{
	struct crypt_data *data = kr_xcalloc(1, sizeof(*data));
	char salt[CRYPT_GENSALT_OUTPUT_SIZE];
	const char *made = NULL, *out = NULL;

	if (crypt_gensalt_rn("$y$", COST, NULL, 0, salt, sizeof(salt)))
		made = crypt_rn(password, salt, data, sizeof(*data));
	if (made && made[0] == '$')
		out = kr_arena_dup(arena, made);
	kr_wipe(data, sizeof(*data));
	free(data);
	if (!out)
		kr_fail(err, KR_E_UNSUPPORTED, "this system's crypt(3) makes no yescrypt hash");
	return out;
}

/* Where access.yaml is a link, the file that it leads to is replaced. */
static int
write_hash(struct kr_arena *arena, const struct kr_places *places, const char *hash, struct kr_error *err)
{
	const char *path = kr_path_join(arena, places->config_dir, "access.yaml");
	kr_auto_free char *real = path ? realpath(path, NULL) : NULL;
	kr_auto_buf struct kr_buf old = KR_BUF(KR_CONFIG_FILE_BYTES), new = KR_BUF(KR_CONFIG_FILE_BYTES);
	kr_auto_fd int dir_fd = -1;
	const char *slash;

	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
	if (real && kr_file_read_at(AT_FDCWD, real, &old, err) < 0)
		return -1;
	if (kr_access_edit_hash(places, path, old.data ? old.data : "", old.len, hash, &new, err) < 0)
		return -1;
	slash = strrchr(real ? real : path, '/');
	dir_fd = kr_path_make_dirs(
		kr_arena_dup_n(arena, real ? real : path, (size_t)(slash - (real ? real : path))), err);
	if (dir_fd < 0)
		return -1;
	return kr_file_write_at(dir_fd, slash + 1, new.data, new.len, 0600, err);
}

static int
password(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	char typed[PASSWORD_BYTES] = "";
	const char *hash = NULL;
	struct kr_host host;

	(void)parsed;
	if (prepare(arena, &host, err) < 0)
		return -1;
	if (ask(typed, err) == 0)
		hash = make_hash(arena, typed, err);
	kr_wipe(typed, sizeof(typed));
	if (!hash || write_hash(arena, &host.places, hash, err) < 0)
		return -1;
	puts("the password is set; a running server takes it at its next start, and older logins end");
	return 0;
}

const struct kr_command kr_cmd_admin_password = {
	.name = "admin password",
	.usage = "",
	.summary = "set the password for a server that other machines reach",
	.help = "Asks for it twice, without showing it, and writes its hash into access.yaml, where every other "
			"line stays as\n"
			"it is. On 127.0.0.1 none is needed.",
	.words_max = 0,
	.run = password,
};
