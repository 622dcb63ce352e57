/*
 * A backend turns a plan into a running sandbox. Chosen at run time by the sandbox's kind: a table of functions.
 *   probe   what this host can do; a wall that cannot be raised is an error with the fix (KR_E_WALL), never a warning
 *   render  pure: plan -> text; every backend compiles and is golden-tested on every system
 * Spawning lives in session/: it opens the sources, gives their descriptors to render, and starts the launcher.
 */
#ifndef KR_BACKEND_BACKEND_H
#define KR_BACKEND_BACKEND_H

#include "plan/plan.h"

/* What was found of bubblewrap. */
struct kr_bwrap {
	const char *path;   /* absolute */
	unsigned version[3];
	bool bind_fd;       /* --bind-fd and --ro-bind-fd are there */
};

enum { KR_BWRAP_ARGS_MAX = 9000 }; /* bubblewrap refuses more */

/*
 * Finds bubblewrap (KRAFT_BWRAP, an absolute path, wins over /usr/bin, /usr/local/bin, /bin and the profile of
 * NixOS) and checks age, setuid bit, options. Knowledge of one program file is cached in <run_dir>/cache by device,
 * inode, size and change time, so that a run starts no extra process.
 */
int kr_bwrap_probe(struct kr_arena *arena, const struct kr_host *host, struct kr_bwrap *out,
	struct kr_error *err);
/*
 * Tries to make a sandbox of `true` and, when it fails, says which of the known reasons it is (namespaces switched off,
 * a security module, the limits, a nested container ...), each with its fix. Called by doctor and after a failed launch.
 */
int kr_bwrap_diagnose(const struct kr_bwrap *bwrap, struct kr_error *err);

/* One thing the launch opened for a step: fd -1 where the step has no source. Index as plan->steps. */
struct kr_opened {
	int fd;
	uint64_t device, inode;
	unsigned type;    /* S_IFMT of its mode */
	bool has_entries; /* a directory in which something is; filled where the init is to compare it */
};
/* "device inode flags path", ended by NUL: what the init compares after mounting (guest/wire.h). */
void kr_verify_add(struct kr_buf *verify, const struct kr_opened *opened, bool read_only, const char *path);
/* The same for a mount in a virtual machine, where device and inode are other ones. */
void kr_verify_add_elsewhere(
	struct kr_buf *verify, const struct kr_opened *opened, bool read_only, const char *path);

struct kr_bwrap_render {
	struct kr_buf args;   /* NUL-separated, for --args */
	struct kr_buf verify; /* what the init compares after mounting: see guest/wire.h; "" with bind_fd */
	size_t arg_count;
};
/*
 * Pure. `opened` may be NULL (golden tests): mounts are then written by path. tmp_path and shm_path, when not NULL, are
 * host paths of file systems that the launcher prepares with an inode cap; else the size cap alone is written.
 * empty_path is an empty regular file for masks.
 */
int kr_bwrap_args(const struct kr_plan *plan, const struct kr_bwrap *bwrap,
	const struct kr_opened *opened, const char *tmp_path, const char *shm_path,
	const char *empty_path, struct kr_bwrap_render *out, struct kr_error *err);

/*
 * Pure. The Seatbelt profile of a plan for macOS (MAC-02 to -10), as `sandbox-exec -f` reads it: everything is denied, then what
 * the steps and a session's programs need is allowed, the last rule that fits wins. Every path of the plan is resolved and is
 * quoted here; KR_E_REFUSED for one that has no safe quotation. Only operations and filters of Apple's own profiles.
 */
int kr_seatbelt_profile(const struct kr_plan *plan, struct kr_buf *out, struct kr_error *err);
/* For explain: what every profile allows beside a plan's steps and its network, "service com.apple.logd", one line each. */
void kr_seatbelt_beside(struct kr_arena *arena, bool has_terminal, struct kr_strs *out);

struct kr_macos_facts; /* os/sys.h */
/* Pure. Whether Seatbelt's walls can be raised here (MAC-11): KR_E_WALL or KR_E_UNSUPPORTED with the next step for the first that is not so. */
int kr_macos_check(const struct kr_macos_facts *facts, struct kr_error *err);

/* ---- seccomp (OS-SEC-01 to -03, -05) ---- */
enum kr_arch { KR_ARCH_X86_64, KR_ARCH_AARCH64, KR_ARCH_UNKNOWN };
enum kr_arch kr_arch_here(void);
const char *kr_arch_name(enum kr_arch arch);

/* One classic BPF instruction, as the kernel's struct sock_filter. */
struct kr_bpf {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};
enum { KR_SECCOMP_MAX = 160 };
/* Writes the filter; returns the number of instructions. The architecture must be a known one. */
size_t kr_seccomp_build(enum kr_arch arch, struct kr_bpf out[KR_SECCOMP_MAX]);
/* The rules for explain: "EPERM keyctl", ... in table order; index until it returns NULL. */
const char *kr_seccomp_rule(enum kr_arch arch, size_t index);

#endif
