/*
 * The system-call filter of every sandbox (OS-SEC-01 to -03, -05): our own table turned into classic BPF.
 * Pure: the same table gives the instructions, the rules that `kraft explain` prints, and what the tests
 * compare with libseccomp.
 *
 * Order of the program: another ABI than the machine's own, x32 and numbers that no kernel we know has are
 * ENOSYS, so that a call which is newer than this table is decided and not forgotten; the refused calls one
 * after the other; the calls that depend on an argument; everything else is allowed. A list, because at this
 * size a tree is no faster, and the kernel remembers which numbers are always allowed.
 *
 * Arguments are compared on their low 32 bits: the kernel takes an ioctl's request and a socket's family as
 * 32-bit values, drops what is above them in clone's flags and refuses it in unshare's; so bits up there must
 * not hide what is below. Both machines are little-endian.
 *
 * Namespaces (PROC-11): bubblewrap leaves none to be made, a container's runtime may (podman's own filter
 * lets a worker make user namespaces). One filter says it for both: a second wall costs nothing where there
 * is a first, and whoever reads the rules has one list. The flags of clone3 lie in memory, where no filter
 * looks; ENOSYS is the answer of an older kernel, on which every libc turns to clone.
 */
#include "backend/backend.h"

/* As Linux has them, written out because a renderer compiles on every system; the test holds them against the headers. */
enum { BPF_LD = 0x00, BPF_W = 0x00, BPF_ABS = 0x20, BPF_JMP = 0x05, BPF_RET = 0x06, BPF_K = 0x00 };
enum { BPF_JEQ = 0x10, BPF_JGT = 0x20, BPF_JGE = 0x30, BPF_JSET = 0x40 };
enum { SECCOMP_RET_ERRNO = 0x00050000, SECCOMP_RET_ALLOW = 0x7fff0000 };
enum { LINUX_EPERM = 1, LINUX_ENOSYS = 38, LINUX_EAFNOSUPPORT = 97 };
enum { CLONE_NEWNS = 0x00020000, CLONE_NEWCGROUP = 0x02000000, CLONE_NEWUTS = 0x04000000, CLONE_NEWIPC = 0x08000000 };
enum { CLONE_NEWUSER = 0x10000000, CLONE_NEWPID = 0x20000000, CLONE_NEWNET = 0x40000000 };
#define AUDIT_ARCH_X86_64 0xc000003eu
#define AUDIT_ARCH_AARCH64 0xc00000b7u

/* name, number on x86_64, number on aarch64; all EPERM */
#define REFUSED_CALLS(X)           \
	X(keyctl, 250, 219)            \
	X(add_key, 248, 217)           \
	X(request_key, 249, 218)       \
	X(io_uring_setup, 425, 425)    \
	X(io_uring_enter, 426, 426)    \
	X(io_uring_register, 427, 427) \
	X(bpf, 321, 280)               \
	X(perf_event_open, 298, 241)   \
	X(userfaultfd, 323, 282)       \
	X(kexec_load, 246, 104)        \
	X(kexec_file_load, 320, 294)   \
	X(init_module, 175, 105)       \
	X(finit_module, 313, 273)      \
	X(delete_module, 176, 106)     \
	X(mount, 165, 40)              \
	X(umount2, 166, 39)            \
	X(pivot_root, 155, 41)         \
	X(open_tree, 428, 428)         \
	X(move_mount, 429, 429)        \
	X(fsopen, 430, 430)            \
	X(fsconfig, 431, 431)          \
	X(fsmount, 432, 432)           \
	X(fspick, 433, 433)            \
	X(mount_setattr, 442, 442)     \
	X(open_tree_attr, 467, 467)    \
	X(setns, 308, 268)

enum {
	REFUSED = 0
#define X(name, x86_64, aarch64) +1
	REFUSED_CALLS(X)
#undef X
};

/* What differs between machines. */
struct machine {
	const char *name;
	uint32_t audit_arch;
	uint32_t ioctl, socket, socketpair, clone, unshare;
	uint32_t own_end; /* the first number after the machine's own list */
	uint32_t refused[REFUSED];
};

/*
 * From 424 on every machine has the same numbers; the gap before is empty for good. The own list of x86_64
 * ends with uretprobe and uprobe, which the kernel puts into a traced program without its knowledge: they
 * must pass.
 */
enum { COMMON_FIRST = 424, CLONE3 = 435, COMMON_LAST = 469 /* file_setattr, Linux 6.17 */ };

static const struct machine machines[] = {
	[KR_ARCH_X86_64] = {
		.name = "x86_64", .audit_arch = AUDIT_ARCH_X86_64,
		.ioctl = 16, .socket = 41, .socketpair = 53, .clone = 56, .unshare = 272, .own_end = 337,
		.refused = {
#define X(name, x86_64, aarch64) x86_64,
			REFUSED_CALLS(X)
#undef X
		},
	},
	[KR_ARCH_AARCH64] = {
		.name = "aarch64", .audit_arch = AUDIT_ARCH_AARCH64,
		.ioctl = 29, .socket = 198, .socketpair = 199, .clone = 220, .unshare = 97, .own_end = 295,
		.refused = {
#define X(name, x86_64, aarch64) aarch64,
			REFUSED_CALLS(X)
#undef X
		},
	},
};

static const uint32_t refused_requests[] = { 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */ };
static const uint32_t allowed_families[] = { 1 /* unix */, 2 /* inet */, 10 /* inet6 */, 16 /* netlink */ };
/* The first argument of clone on both machines, and of unshare. */
enum {
	NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
				 CLONE_NEWNET,
	UNSHARE_TIME = 0x80, /* CLONE_NEWTIME; in clone these bits are the signal at the child's end */
};

static const char *const rules[] = {
	"ENOSYS every call of another system-call ABI (32-bit, x32)",
	"ENOSYS every call number that this kraft does not know",
#define X(name, x86_64, aarch64) "EPERM " #name,
	REFUSED_CALLS(X)
#undef X
		"EPERM ioctl TIOCSTI",
	"EPERM ioctl TIOCLINUX",
	"EPERM clone into a new namespace",
	"EPERM unshare of a namespace",
	"ENOSYS clone3, for which every libc uses clone",
	"EAFNOSUPPORT socket of a family other than unix, inet, inet6, netlink",
	"EAFNOSUPPORT socketpair of a family other than unix, inet, inet6, netlink",
};

/* Offsets in struct seccomp_data. */
enum { AT_NUMBER = 0, AT_ARCH = 4, AT_FIRST_ARGUMENT = 16, AT_SECOND_ARGUMENT = 24 };

/* Where a jump goes; resolved when every place is known. All jumps go forward, as the kernel demands. */
enum target { NEXT, TO_IOCTL, TO_SOCKET, TO_CLONE, TO_UNSHARE, TO_ALLOW, TO_EPERM, TO_ENOSYS, TARGETS };

struct program {
	struct kr_bpf *out;
	size_t n;
	size_t place[TARGETS];
	uint8_t then[KR_SECCOMP_MAX]; /* enum target, for each jump */
};

static void
emit(struct program *program, uint16_t code, uint32_t k, enum target then)
{
	KR_BUG_IF(program->n == KR_SECCOMP_MAX);
	program->then[program->n] = (uint8_t)then;
	program->out[program->n++] = (struct kr_bpf){ .code = code, .k = k };
}

static void
load(struct program *program, uint32_t offset)
{
	emit(program, BPF_LD | BPF_W | BPF_ABS, offset, NEXT);
}

static void
if_equal(struct program *program, uint32_t value, enum target then)
{
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, value, then);
}

static void
if_any(struct program *program, uint32_t bits, enum target then)
{
	emit(program, BPF_JMP | BPF_JSET | BPF_K, bits, then);
}

static void
answer(struct program *program, uint32_t action)
{
	emit(program, BPF_RET | BPF_K, action, NEXT);
}

static void
here(struct program *program, enum target target)
{
	program->place[target] = program->n;
}

static void
resolve(struct program *program)
{
	for (size_t i = 0; i < program->n; i++) {
		size_t distance;

		if (program->then[i] == NEXT)
			continue;
		distance = program->place[program->then[i]] - i - 1;
		KR_BUG_IF(distance > UINT8_MAX);
		program->out[i].jt = (uint8_t)distance;
	}
}

/* Only calls of this machine's own ABI with a number we know go on. */
static void
emit_known(struct program *program, const struct machine *machine)
{
	load(program, AT_ARCH);
	if_equal(program, machine->audit_arch, NEXT);
	program->out[program->n - 1].jt = 1;
	answer(program, SECCOMP_RET_ERRNO | LINUX_ENOSYS);
	load(program, AT_NUMBER);
	emit(program, BPF_JMP | BPF_JGT | BPF_K, COMMON_LAST, TO_ENOSYS); /* x32 has bit 30 set */
	emit(program, BPF_JMP | BPF_JGE | BPF_K, COMMON_FIRST, NEXT);
	program->out[program->n - 1].jt = 1;
	emit(program, BPF_JMP | BPF_JGE | BPF_K, machine->own_end, TO_ENOSYS);
}

static void
emit_answers(struct program *program)
{
	here(program, TO_ALLOW);
	answer(program, SECCOMP_RET_ALLOW);
	here(program, TO_EPERM);
	answer(program, SECCOMP_RET_ERRNO | LINUX_EPERM);
	here(program, TO_ENOSYS);
	answer(program, SECCOMP_RET_ERRNO | LINUX_ENOSYS);
}

static void
emit_calls(struct program *program, const struct machine *machine)
{
	for (size_t i = 0; i < REFUSED; i++)
		if_equal(program, machine->refused[i], TO_EPERM);
	if_equal(program, machine->ioctl, TO_IOCTL);
	if_equal(program, machine->socket, TO_SOCKET);
	if_equal(program, machine->socketpair, TO_SOCKET);
	if_equal(program, machine->clone, TO_CLONE);
	if_equal(program, machine->unshare, TO_UNSHARE);
	if_equal(program, CLONE3, TO_ENOSYS);
	answer(program, SECCOMP_RET_ALLOW);
}

static void
emit_arguments(struct program *program)
{
	here(program, TO_SOCKET);
	load(program, AT_FIRST_ARGUMENT);
	for (size_t i = 0; i < KR_COUNT(allowed_families); i++)
		if_equal(program, allowed_families[i], TO_ALLOW);
	answer(program, SECCOMP_RET_ERRNO | LINUX_EAFNOSUPPORT);
	here(program, TO_UNSHARE);
	load(program, AT_FIRST_ARGUMENT);
	if_any(program, UNSHARE_TIME, TO_EPERM);
	here(program, TO_CLONE);
	load(program, AT_FIRST_ARGUMENT);
	if_any(program, NAMESPACES, TO_EPERM);
	answer(program, SECCOMP_RET_ALLOW);
	here(program, TO_IOCTL);
	load(program, AT_SECOND_ARGUMENT);
	for (size_t i = 0; i < KR_COUNT(refused_requests); i++)
		if_equal(program, refused_requests[i], TO_EPERM);
}

size_t
kr_seccomp_build(enum kr_arch arch, struct kr_bpf out[KR_SECCOMP_MAX])
{
	struct program program = { .out = out };

	KR_BUG_IF(arch >= KR_ARCH_UNKNOWN);
	emit_known(&program, &machines[arch]);
	emit_calls(&program, &machines[arch]);
	emit_arguments(&program);
	emit_answers(&program);
	resolve(&program);
	return program.n;
}

const char *
kr_seccomp_rule(enum kr_arch arch, size_t index)
{
	KR_BUG_IF(arch >= KR_ARCH_UNKNOWN);
	return index < KR_COUNT(rules) ? rules[index] : NULL;
}

enum kr_arch
kr_arch_here(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	return KR_ARCH_X86_64;
#elif defined(__aarch64__)
	return KR_ARCH_AARCH64;
#else
	return KR_ARCH_UNKNOWN;
#endif
}

const char *
kr_arch_name(enum kr_arch arch)
{
	return arch < KR_ARCH_UNKNOWN ? machines[arch].name : "unknown";
}
