/*
 * A plan for macOS as a profile of Seatbelt's, which /usr/bin/sandbox-exec reads: everything is denied, then operations are allowed
 * at places, and of the rules about one operation the last that fits decides (MAC-02 to -10). Pure.
 *
 * Order: what is the same for every session (processes, services, devices); the network; the steps in their order; last what holds
 * whatever the steps said: directories on the way to a place stay where they are, no file becomes setuid, stat works anywhere.
 *
 * Nobody has said whether a rule about `file-write-unlink` and one about `file-write*` are one list or two, of which the narrower
 * comes first. So no answer depends on it: a step's rules are about the groups `file-read*` and `file-write*` alone, what is denied
 * by a narrower name comes last and is allowed nowhere by that name, and the one thing allowed by a narrower name (new git objects)
 * is denied by none. tests/seatbelt asks every question both ways.
 *
 * Operations and filters are only such as profiles use that run on every Mac: those of Chromium (sandbox/policy/mac), Codex
 * (codex-rs/sandboxing) and sandbox-runtime. One that the system does not know makes sandbox-exec refuse the whole profile.
 *
 * A path is text in a program here. It stands in a string, where only `"` and `\` mean something and get a `\` in front. What has
 * control characters or is no UTF-8 has no sure spelling and is refused. Seatbelt compares the path that a file has, after links;
 * the plan's are resolved.
 */
#include "backend/backend.h"

#include "base/path.h"
#include "base/text.h"

/* A tree has programs and libraries in it; a single file is looked at. */
#define READ_TREE "file-read* file-map-executable process-exec"
#define READ_FILE "file-read*"

enum { PATH_LONGEST = 1000 }; /* the reader of such strings is only known to take 1023 bytes; a Mac's paths are no longer */

struct profile {
	const struct kr_plan *plan;
	struct kr_buf *out;
	struct kr_arena arena;
};

/* ---- what is the same for every session ---- */

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct fixed_rule {
	const char *word;             /* for explain, in front of each value */
	const char *operations, *filter;
	const char *const *values;    /* of the filter; with no filter what explain says */
	bool is_terminals;            /* only where the worker has a terminal */
};

static const struct fixed_rule fixed_rules[] = {
	{ "process", "process-fork", NULL, LIST("fork") },
	/* MAC-10. `same-sandbox`: processes that this profile was put on by the same call. */
	{ "process", "signal (target same-sandbox)", NULL, LIST("signals within the sandbox") },
	{ "process", "process-info* (target same-sandbox)", NULL, LIST("facts of processes within the sandbox") },
	/* MAC-09. Not here: LaunchServices, Apple Events, the pasteboard, SecurityServer and securityd (the keychain), FSEvents (tells
	   of everybody's files), mDNSResponder (names are looked up by kraft's proxy). */
	{ "service", "mach-lookup", "global-name",
		LIST("com.apple.SystemConfiguration.configd",  /* whether there is a network, and which proxy */
			"com.apple.cfprefsd.agent",                /* defaults; which, user-preference-read says */
			"com.apple.cfprefsd.daemon", "com.apple.logd", "com.apple.system.logger",
			"com.apple.system.notification_center",    /* that a setting has changed */
			"com.apple.system.opendirectoryd.libinfo", /* who a user is */
			"com.apple.system.opendirectoryd.membership",
			"com.apple.trustd", "com.apple.trustd.agent") }, /* whether a certificate is trusted */
	{ "service", "mach-lookup", "local-name", LIST("com.apple.cfprefsd.agent") },
	{ "defaults", "user-preference-read", "preference-domain", LIST("com.apple.dt.Xcode", "kCFPreferencesAnyApplication") },
	/* MAC-12: these names are one for all processes of the user. */
	{ "shared", "ipc-posix-shm", "ipc-posix-name-prefix", LIST("/psm_") },
	{ "shared", "ipc-posix-sem", "ipc-posix-name-prefix", LIST("/mp-") },
	{ "shared", "ipc-posix-shm-read*", "ipc-posix-name-prefix", LIST("apple.cfprefs.") },
	{ "shared", "ipc-posix-shm-read*", "ipc-posix-name", LIST("apple.shm.notification_center") },
	{ "socket", "system-socket", "socket-domain", LIST("AF_UNIX") },
	{ "socket", "system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2))", NULL, LIST("of the system's controls") },
	{ "sysctl", "sysctl-read", "sysctl-name",
		LIST("hw.activecpu", "hw.busfrequency_compat", "hw.byteorder", "hw.cacheconfig", "hw.cachelinesize_compat", "hw.cpufamily",
			"hw.cpufrequency", "hw.cpufrequency_compat", "hw.cputype", "hw.l1dcachesize_compat", "hw.l1icachesize_compat",
			"hw.l2cachesize_compat", "hw.l3cachesize_compat", "hw.logicalcpu", "hw.logicalcpu_max", "hw.machine", "hw.memsize",
			"hw.model", "hw.ncpu", "hw.nperflevels", "hw.packages", "hw.pagesize", "hw.pagesize_compat", "hw.physicalcpu",
			"hw.physicalcpu_max", "hw.tbfrequency_compat", "hw.vectorunit", "kern.argmax", "kern.hostname", "kern.maxfiles",
			"kern.maxfilesperproc", "kern.maxproc", "kern.ngroups", "kern.osproductversion", "kern.osrelease", "kern.ostype",
			"kern.osvariant_status", "kern.osversion", "kern.secure_kernel", "kern.tcsm_available", "kern.tcsm_enable",
			"kern.usrstack64", "kern.version", "kern.willshutdown", "machdep.ptrauth_enabled",
			"security.mac.lockdown_mode_state", "sysctl.proc_cputype", "vm.loadavg") },
	{ "sysctl", "sysctl-read", "sysctl-name-prefix",
		LIST("hw.optional.arm", "hw.perflevel", "kern.proc.pgrp.", "kern.proc.pid.", "machdep.cpu.", "net.routetable.") },
	{ "set", "sysctl-write", "sysctl-name", LIST("kern.grade_cputype", "kern.tcsm_enable") }, /* Java, V8: of themselves alone */
	{ "device", "file-read* file-write-data file-ioctl", "literal", LIST("/dev/null", "/dev/zero", "/dev/dtracehelper") },
	{ "device", "file-read* file-ioctl", "literal", LIST("/dev/random", "/dev/urandom") },
	{ "device", "file-read* file-write-data", "subpath", LIST("/dev/fd") },
	{ "device", "file-read* file-write-data file-ioctl", "literal", LIST("/dev/tty"), true },
	/* The worker's own came open to it; another one cannot be opened, so it cannot be asked anything. */
	{ "device", "file-ioctl (regex \"^/dev/ttys[0-9]+$\")", NULL, LIST("its own terminal's modes"), true },
};

static bool
holds(const struct fixed_rule *rule, bool has_terminal)
{
	return has_terminal || !rule->is_terminals;
}

void
kr_seatbelt_beside(struct kr_arena *arena, bool has_terminal, struct kr_strs *out)
{
	for (size_t i = 0; i < KR_COUNT(fixed_rules); i++) {
		const struct fixed_rule *fixed = &fixed_rules[i];
		const char *more = fixed->filter && strstr(fixed->filter, "-prefix") ? "*" : "";

		for (const char *const *value = fixed->values; holds(fixed, has_terminal) && *value; value++)
			kr_strs_add(arena, out, kr_arena_printf(arena, "%s %s%s", fixed->word, *value, more));
	}
	kr_strs_add(arena, out, "file stat of any path");
}

/* ---- words ---- */

static void
put_string(struct kr_buf *out, const char *text)
{
	kr_buf_adds(out, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			kr_buf_adds(out, "\\");
		kr_buf_add(out, text, 1);
	}
	kr_buf_adds(out, "\"");
}

static void
put_filter(struct kr_buf *out, const char *filter, const char *value)
{
	kr_buf_addf(out, " (%s ", filter);
	if (strcmp(filter, "socket-domain") == 0)
		kr_buf_adds(out, value); /* a name, no string */
	else
		put_string(out, value);
	kr_buf_adds(out, ")");
}

static void
add_char(struct kr_buf *pattern, char c)
{
	if (strchr(".[]{}()*+?^$|\\", c))
		kr_buf_adds(pattern, "\\");
	kr_buf_add(pattern, &c, 1);
}

/* A pattern that fits this path alone; every character that means something in one has a `\` in front. */
static void
add_escaped(struct kr_buf *pattern, const char *path)
{
	for (; *path; path++)
		add_char(pattern, *path);
}

/*
 * A pattern that fits every spelling of this path that may be the same file: from `from` on letters in both cases, and where
 * other characters fold (k and s have such, and whatever is not ASCII) anything short. It denies; what it denies too much is of no
 * account.
 */
static void
add_folded(struct kr_buf *pattern, const char *path, size_t from)
{
	for (size_t i = 0; path[i]; i++) {
		const unsigned char c = (unsigned char)path[i], next = (unsigned char)path[i + 1];

		if (c >= 0x80)
			kr_buf_adds(pattern, next < 0x80 ? "[^/]+" : "");
		else if (i >= from && strchr("kKsS", c))
			kr_buf_adds(pattern, "[^/][^/]?[^/]?");
		else if (i >= from && (c | 0x20) >= 'a' && (c | 0x20) <= 'z')
			kr_buf_addf(pattern, "[%c%c]", c | 0x20, c & ~0x20);
		else
			add_char(pattern, (char)c);
	}
}

static void
put_beside(struct kr_buf *out, const char *path)
{
	kr_auto_buf struct kr_buf pattern = KR_BUF(4 * KR_PATH_MAX);

	kr_buf_adds(&pattern, "^");
	add_escaped(&pattern, path);
	kr_buf_adds(&pattern, "\\.[^/]+$");
	put_filter(out, "regex", pattern.data);
}

static void
put_place(struct kr_buf *out, const char *path, enum kr_reach reach)
{
	put_filter(out, reach == KR_REACH_TREE ? "subpath" : "literal", path);
	if (reach == KR_REACH_BESIDE)
		put_beside(out, path);
}

static void
put_spellings(struct kr_buf *out, const char *path, const char *writable)
{
	kr_auto_buf struct kr_buf pattern = KR_BUF(16 * KR_PATH_MAX);

	kr_buf_adds(&pattern, "^");
	add_folded(&pattern, path, strlen(writable));
	kr_buf_adds(&pattern, "(/|$)");
	put_filter(out, "regex", pattern.data);
}

static void
rule(struct profile *p, const char *answer_and_operations)
{
	kr_buf_addf(p->out, "(%s", answer_and_operations);
}

static void
end_rule(struct profile *p)
{
	kr_buf_adds(p->out, ")\n");
}

static void
rule_at(struct profile *p, const char *answer_and_operations, const struct kr_step *step)
{
	rule(p, answer_and_operations);
	put_place(p->out, step->path, step->reach);
	end_rule(p);
}

/* ---- steps ---- */

/* Whether a writable tree holds this path: what is in one, the worker can move. */
static bool
is_in_writable(const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->plan->step_count; i++) {
		const struct kr_step *s = &p->plan->steps[i];

		if (s->kind == KR_STEP_BIND_RW && s->reach == KR_REACH_TREE && kr_path_is_within(path, s->path))
			return true;
	}
	return false;
}

/* What the steps before this one say about its place; NULL: nothing, so it is denied. */
static const struct kr_step *
said_before(const struct profile *p, size_t index)
{
	for (size_t i = index; i-- > 0;) {
		const struct kr_step *s = &p->plan->steps[i];

		if (s->reach == KR_REACH_TREE && kr_path_is_within(p->plan->steps[index].path, s->path))
			return s;
	}
	return NULL;
}

static bool
is_readable_before(const struct profile *p, size_t index)
{
	const struct kr_step *before = said_before(p, index);

	return before && before->kind != KR_STEP_MASK;
}

static bool
is_writable_before(const struct profile *p, size_t index)
{
	const struct kr_step *before = said_before(p, index);

	return before && before->kind == KR_STEP_BIND_RW;
}

/* With what is below it: in a place that is not there yet, the worker could make a directory. In a writable tree it has to be denied
 * under every name that it can have there. */
static void
deny_at(struct profile *p, const char *operations, size_t index)
{
	const struct kr_step *s = &p->plan->steps[index];

	rule(p, operations);
	put_place(p->out, s->path, KR_REACH_TREE);
	if (is_writable_before(p, index))
		put_spellings(p->out, s->path, said_before(p, index)->path);
	end_rule(p);
}

/*
 * MAC-08. git writes an object as objects/xx/tmp_obj_*, and renames it; a name that is taken is not taken again. Links and
 * directories of other names are not made, so that nobody else's git is led to another place.
 */
static void
rules_objects(struct profile *p, const struct kr_step *step)
{
	static const struct {
		const char *operations, *type, *below;
	} made[] = {
		{ "allow file-write-create", "DIRECTORY", "/[0-9a-f][0-9a-f]$" },
		{ "allow file-write*", "REGULAR-FILE", "/([0-9a-f][0-9a-f]/)?tmp_obj_[^/]+$" },
		{ "allow file-write-create", "REGULAR-FILE", "/[0-9a-f][0-9a-f]/[0-9a-f]+$" },
	};

	rule_at(p, "allow " READ_FILE, step);
	for (size_t i = 0; i < KR_COUNT(made); i++) {
		kr_auto_buf struct kr_buf pattern = KR_BUF(4 * KR_PATH_MAX);

		kr_buf_adds(&pattern, "^");
		add_escaped(&pattern, step->path);
		kr_buf_adds(&pattern, made[i].below);
		rule(p, made[i].operations);
		kr_buf_addf(p->out, " (require-all (vnode-type %s)", made[i].type);
		put_filter(p->out, "regex", pattern.data);
		kr_buf_adds(p->out, ")");
		end_rule(p);
	}
}

static void
rules_read_only(struct profile *p, size_t index)
{
	const struct kr_step *s = &p->plan->steps[index];

	if (!is_readable_before(p, index))
		rule_at(p, s->reach == KR_REACH_TREE ? "allow " READ_TREE : "allow " READ_FILE, s);
	if (is_writable_before(p, index))
		deny_at(p, "deny file-write*", index);
}

/* A single file stays one: whoever reads it on the host, git above all, would follow a link or look into a directory there. */
static void
rules_file(struct profile *p, size_t index)
{
	const struct kr_step *s = &p->plan->steps[index];

	if (!is_readable_before(p, index))
		rule_at(p, "allow " READ_FILE, s);
	rule(p, "allow file-write* (require-all (vnode-type REGULAR-FILE) (require-any");
	put_place(p->out, s->path, s->reach);
	kr_buf_adds(p->out, "))");
	end_rule(p);
}

static void
rules_step(struct profile *p, size_t index)
{
	const struct kr_step *s = &p->plan->steps[index];

	switch (s->kind) {
	case KR_STEP_BIND_RO:
		rules_read_only(p, index);
		return;
	case KR_STEP_BIND_RW:
		if (s->reach != KR_REACH_TREE)
			rules_file(p, index);
		else if (!is_writable_before(p, index))
			rule_at(p, "allow " READ_TREE " file-write*", s);
		return;
	case KR_STEP_ADD:
		rules_objects(p, s);
		return;
	case KR_STEP_MASK:
		deny_at(p, is_writable_before(p, index) ? "deny " READ_TREE " file-write*" : "deny " READ_TREE, index);
		return;
	case KR_STEP_LINK:
	case KR_STEP_PROC:
	case KR_STEP_DEV:
	case KR_STEP_TMPFS:
	case KR_STEP_READ_ONLY:
	case KR_STEP_COUNT:
		KR_BUG_IF(true); /* Linux's */
	}
}

/*
 * A rule is about a path. Who renames a directory on the way to a place takes what is in it out of the rules about that place, or
 * puts something else there (MAC-05 of the security cases). A rename is to Seatbelt that the old name goes. What is
 * denied is so by its own rule; and git replaces single files by renaming others over them, so those may go.
 */
static void
rules_stay(struct profile *p)
{
	struct kr_strs stay = { 0 };

	for (size_t i = 0; i < p->plan->step_count; i++) {
		const struct kr_step *s = &p->plan->steps[i];
		const bool is_tree = s->kind == KR_STEP_BIND_RW && s->reach == KR_REACH_TREE;
		const char *path = is_tree ? s->path : kr_path_dirname(&p->arena, s->path);

		if (s->kind == KR_STEP_BIND_RW && s->reach == KR_REACH_BESIDE)
			kr_strs_add(&p->arena, &stay, s->path);
		for (; path[1] && is_in_writable(p, path); path = kr_path_dirname(&p->arena, path))
			if (!kr_strs_has(&stay, path))
				kr_strs_add(&p->arena, &stay, path);
	}
	rule(p, "deny file-write-unlink");
	for (size_t i = 0; i < stay.n; i++)
		put_filter(p->out, "literal", stay.v[i]);
	end_rule(p);
}

/* ---- all of it ---- */

/* MAC-05. A port on loopback has one listener, and that is kraft's; unix sockets are the worker's own. */
static void
rules_network(struct profile *p)
{
	const struct kr_plan_macos *macos = p->plan->request->macos;

	if (macos->proxy_port)
		kr_buf_addf(p->out, "(allow network-outbound (remote ip \"localhost:%u\"))\n", macos->proxy_port);
	kr_buf_adds(p->out, "(allow network-bind network-inbound (local unix-socket");
	put_filter(p->out, "subpath", macos->tmpdir);
	kr_buf_adds(p->out, "))\n(allow network-outbound (remote unix-socket");
	put_filter(p->out, "subpath", macos->tmpdir);
	kr_buf_adds(p->out, "))\n");
}

static void
rules_fixed(struct profile *p)
{
	for (size_t i = 0; i < KR_COUNT(fixed_rules); i++) {
		const struct fixed_rule *fixed = &fixed_rules[i];

		if (!holds(fixed, p->plan->request->terminal))
			continue;
		kr_buf_addf(p->out, "(allow %s", fixed->operations);
		for (const char *const *value = fixed->values; fixed->filter && *value; value++)
			put_filter(p->out, fixed->filter, *value);
		end_rule(p);
	}
}

static int
check_path(const char *path, struct kr_error *err)
{
	size_t n = strlen(path);
	bool is_plain = kr_text_is_utf8(path, n);

	for (size_t i = 0; i < n; i++)
		is_plain = is_plain && (unsigned char)path[i] >= 0x20 && path[i] != 0x7f;
	if (is_plain && n <= PATH_LONGEST && kr_path_is_clean(path))
		return 0;
	kr_fail(err, KR_E_REFUSED, "no rule of Seatbelt's can be written for '%s', which %s", path,
		is_plain ? "is too long" : "has a control character or is not UTF-8");
	return kr_hint(err, "give it another name, or take it out of the sandbox's expose list");
}

static int
check_paths(const struct kr_plan *plan, struct kr_error *err)
{
	for (size_t i = 0; i < plan->step_count; i++)
		if (check_path(plan->steps[i].path, err) < 0)
			return -1;
	return check_path(plan->request->macos->tmpdir, err);
}

int
kr_seatbelt_profile(const struct kr_plan *plan, struct kr_buf *out, struct kr_error *err)
{
	struct profile p = { .plan = plan, .out = out };

	KR_BUG_IF(!plan->request->macos);
	if (check_paths(plan, err) < 0)
		return -1;
	kr_buf_adds(out, "(version 1)\n(deny default)\n");
	rules_fixed(&p);
	rules_network(&p);
	for (size_t i = 0; i < plan->step_count; i++)
		rules_step(&p, i);
	rules_stay(&p);
	kr_buf_adds(out, "(deny file-write-setugid)\n(allow file-read-metadata file-test-existence)\n");
	kr_arena_fini(&p.arena);
	if (out->overflow)
		return kr_fail(err, KR_E_LIMIT, "the profile of this session is longer than %zu bytes", out->max);
	return 0;
}
