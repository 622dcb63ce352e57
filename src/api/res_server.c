/*
 * The server itself, and the login by password. A wrong password costs a second, and one login is looked at
 * at a time, in all processes together: so guesses come one a second at most, whatever a client does, and a
 * hash that needs much memory is made once at a time.
 */
#include "api/internal.h"

#include <crypt.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/version.h"
#include "os/host.h"
#include "os/timer.h"
#include "session/facts.h"

enum { WRONG_MS = 1000, DAY_S = 86400 };

int
kr_api_server_health(struct kr_api_call *call, struct kr_error *err)
{
	const struct kr_api_health *h = &call->api->health;
	const struct kr_access *access = call->api->access;
	const uint64_t now = kr_now_ms();
	struct kr_host host;

	call->json = json_pack("{s:s, s:s, s:i, s:I, s:s, s:i, s:{s:i, s:i, s:i, s:i}}", "status", "ok",
		"version", KR_VERSION, "pid", h->pid, "uptime_s",
		(json_int_t)(now > h->started_ms ? (now - h->started_ms) / 1000 : 0), "bind", access->bind, "port",
		(int)access->port, "reattach_summary", "scanned", (int)h->scanned, "adopted", (int)h->adopted,
		"resumed", (int)h->resumed, "unknown", (int)h->unknown);
	if (!call->is_known)
		return 0;
	if (kr_host_gather_places(call->arena, &host, err) < 0)
		return -1;
	json_object_set_new(call->json, "run_dir", json_string(host.places.run_dir));
	return 0;
}

/* ---- login ---- */

static int
refuse(struct kr_api_call *call, unsigned status, const char *detail)
{
	call->status = status;
	call->json = json_pack("{s:s}", "detail", detail);
	return 0;
}

/* -1 without err: another login is being looked at. */
static int
lock_logins(struct kr_api_call *call, struct kr_error *err)
{
	kr_auto_fd int fd = -1;
	struct kr_host host;
	const char *path;

	if (kr_host_gather_places(call->arena, &host, err) < 0)
		return -1;
	path = kr_path_join(call->arena, host.places.run_dir, "login.lock");
	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", host.places.run_dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path);
	return kr_try_lock(fd, F_WRLCK) ? kr_steal_fd(fd) : -1;
}

/* crypt(3) takes the method and the salt from the hash. On failure it gives a text that begins with '*'. */
static bool
is_password(const char *password, const char *hash)
{
	struct crypt_data *data = kr_xcalloc(1, sizeof(*data));
	const char *made = crypt_rn(password, hash, data, sizeof(*data));
	const bool same = made && made[0] != '*' && kr_api_same_secret(made, hash);

	kr_wipe(data, sizeof(*data));
	free(data);
	return same;
}

static void
give_cookie(struct kr_api_call *call)
{
	const uint64_t holds_s = (uint64_t)call->api->access->session_expiry_days * DAY_S,
				   expires_s = call->client->now_s + holds_s;

	call->cookie =
		kr_arena_printf(call->arena, KR_API_COOKIE "=%s; Path=/api; Max-Age=%llu; HttpOnly; SameSite=Strict",
			kr_api_cookie_make(call->arena, call->api, expires_s), (unsigned long long)holds_s);
	call->json = json_pack("{s:I}", "expires_s", (json_int_t)expires_s);
}

int
kr_api_server_login(struct kr_api_call *call, struct kr_error *err)
{
	const struct kr_access *access = call->api->access;
	kr_auto_fd int lock = -1;

	if (kr_access_is_loopback(access) || !access->password_hash)
		return refuse(call, 403, "there is no login here; 'kraft admin token' prints the token");
	lock = lock_logins(call, err);
	if (lock < 0)
		return err->code ? -1 : refuse(call, 429, "another login is being looked at; try again in a second");
	if (is_password(kr_api_text(call, "password"), access->password_hash)) {
		give_cookie(call);
		return 0;
	}
	(void)nanosleep(&(struct timespec){ .tv_sec = WRONG_MS / 1000 }, NULL); /* with the lock */
	return refuse(call, 401, "this is not the password");
}
