/*
 * From a command's name to what the sandbox must show for it to run (OS-CMD-01 to OS-CMD-09), with reasons. Pure:
 * the host is seen through struct kr_fs.
 */
#ifndef KR_LOOKUP_LOOKUP_H
#define KR_LOOKUP_LOOKUP_H

#include "base/arena.h"
#include "base/error.h"
#include "config/config.h"
#include "os/fs.h"

struct kr_lookup_input {
	const struct kr_fs *fs;
	const struct kr_places *places;
	const char *path;         /* the value of PATH, without /opt/kraft/bin */
	const struct kr_strs *protected_real; /* protected paths that links lead elsewhere, resolved; NULL: none */
	const char *worktree;     /* resolved */
	const char *home;         /* the sandbox home, shown like the worktree; NULL: none */
	const char *checkout;     /* resolved path of the person's checkout; nothing in it is used either */
	const char *cwd;          /* inside the worktree; path-named commands start here */
	const char *guest_bin;    /* host directory of kraft's own commands; /opt/kraft/bin inside, on macOS where it is */
	const struct kr_strs *system_dirs; /* resolved directories shown anyway: /usr, /etc, /bin ... */
	const struct kr_strs *not_system;  /* directories in those that are not; NULL: none */
	const struct kr_strs *expose;      /* resolved expose paths */
};

struct kr_lookup {
	const char *exec_path;     /* absolute path the init executes: the name it has on PATH */
	struct kr_strs mounts;     /* resolved directories to show read-only */
	struct kr_strs mount_why;  /* one per mount */
	struct kr_strs links;      /* pairs: path of a link outside every mount, its text; to be made again inside, but on macOS */
	struct kr_strs notes;      /* what works in part only, each with the fix: a virtual environment that is not shown */
	struct kr_strs steps;      /* the lookup told step by step, one sentence each */
};

/*
 * Looks up one command word. Refusals (KR_E_REFUSED) use the ledger's sentences; KR_E_LIMIT for chains of links.
 * The steps are filled also when it fails, so that explain can show how far it came.
 */
int kr_lookup_command(struct kr_arena *arena, const struct kr_lookup_input *in, const char *command,
	struct kr_lookup *out, struct kr_error *err);

/*
 * The interpreter of a script's first bytes: false when it has no #! line that the kernel would take (it reads 256 bytes
 * at most). `env NAME` gives name with is_env; name is "" when env's line is not plain enough to tell.
 */
enum { KR_INTERPRETER_HEAD = 256 };
struct kr_interpreter {
	char path[256];
	char name[256]; /* with is_env: the NAME looked up on PATH */
	bool is_env;
};
bool kr_interpreter_parse(const char *head, size_t n, struct kr_interpreter *out);

/* The command words of a shell line, as far as they are plain (for the repository's setup and test commands). */
void kr_shell_commands(struct kr_arena *arena, const char *line, struct kr_strs *out);

/* The words of a line that needs no shell; false when it is empty or a shell would do more with it than split it. */
bool kr_shell_split(struct kr_arena *arena, const char *line, struct kr_strs *out);

#endif
