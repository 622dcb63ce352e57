/*
 * The system-call filter, run by an interpreter of our own: its answers for every number, with arguments that
 * try to hide in the high bits, for both machines; against a golden table, against the kernel's headers, and
 * on this machine against the filter that libseccomp makes of the same rules.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "backend/backend.h"

#ifdef KR_HAVE_LIBSECCOMP
#include <seccomp.h>
#endif

enum { LAST_NUMBER = 1000, PIPE_BYTES = 4096, FAMILIES = 64 };

static const uint32_t audit[] = {
	[KR_ARCH_X86_64] = AUDIT_ARCH_X86_64,
	[KR_ARCH_AARCH64] = AUDIT_ARCH_AARCH64,
};

struct filter {
	struct kr_bpf code[4096];
	size_t n;
};

static struct filter
ours(enum kr_arch arch)
{
	struct filter filter = { .n = 0 };

	filter.n = kr_seccomp_build(arch, filter.code);
	return filter;
}

/* ---- the interpreter ---- */

static bool
jumps(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGT:
		return a > k;
	case BPF_JGE:
		return a >= k;
	case BPF_JSET:
		return a & k;
	default:
		fail_msg("jump 0x%x", code);
		return false;
	}
}

/* What the kernel would answer. Fails the test on an instruction that seccomp does not allow or a jump out of
 * bounds. */
static uint32_t
answer(const struct filter *filter, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < filter->n; pc++) {
		const struct kr_bpf *i = &filter->code[pc];

		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			assert_int_equal(i->code, BPF_LD | BPF_W | BPF_ABS);
			assert_true(i->k % 4 == 0 && i->k + 4 <= sizeof(*data));
			memcpy(&a, (const char *)data + i->k, 4);
			break;
		case BPF_ALU:
			assert_int_equal(i->code, BPF_ALU | BPF_AND | BPF_K); /* libseccomp masks arguments */
			a &= i->k;
			break;
		case BPF_JMP:
			if (BPF_OP(i->code) == BPF_JA)
				pc += i->k;
			else
				pc += jumps(i->code, a, i->k) ? i->jt : i->jf;
			break;
		case BPF_RET:
			return i->k;
		default:
			fail_msg("instruction 0x%x", i->code);
		}
	}
	fail_msg("the filter runs past its end");
	return 0;
}

static uint32_t
ask(const struct filter *filter, uint32_t arch, uint32_t number, uint64_t first, uint64_t second)
{
	struct seccomp_data data = { .nr = (int)number, .arch = arch, .args = { first, second } };

	return answer(filter, &data);
}

static uint32_t
deny(int error)
{
	return SECCOMP_RET_ERRNO | (uint32_t)error;
}

/* ---- what kraft promises, said again without the code's table ---- */

struct numbers {
	uint32_t ioctl, socket, socketpair, getpid, clone, unshare;
};
static const struct numbers numbers[] = {
	[KR_ARCH_X86_64] = { 16, 41, 53, 39, 56, 272 },
	[KR_ARCH_AARCH64] = { 29, 198, 199, 172, 220, 97 },
};

#define FOR_EACH_ARCH(arch) for (enum kr_arch arch = KR_ARCH_X86_64; arch < KR_ARCH_UNKNOWN; arch++)

static void
fits_and_only_jumps_forward(void **state)
{
	(void)state;
	FOR_EACH_ARCH(arch)
	{
		struct filter filter = ours(arch);

		assert_true(filter.n <= KR_SECCOMP_MAX);
		assert_true(filter.n * sizeof(struct kr_bpf) <= PIPE_BYTES);
		for (size_t i = 0; i < filter.n; i++)
			if (BPF_CLASS(filter.code[i].code) == BPF_JMP)
				assert_true(i + 1 + filter.code[i].jt < filter.n && i + 1 + filter.code[i].jf < filter.n);
	}
}

/* OS-SEC-03, PROC-14: i386 and its 64-bit sibling x32, arm, and the other machine of ours. */
static void
other_abis_are_enosys(void **state)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_ARMEB, AUDIT_ARCH_MIPS,
		AUDIT_ARCH_PPC64, AUDIT_ARCH_S390X, AUDIT_ARCH_RISCV64, 0, UINT32_MAX };

	(void)state;
	FOR_EACH_ARCH(arch)
	{
		struct filter filter = ours(arch);

		for (uint32_t number = 0; number <= LAST_NUMBER; number++) {
			for (size_t i = 0; i < KR_COUNT(foreign); i++)
				assert_int_equal(ask(&filter, foreign[i], number, 2, 0), deny(ENOSYS));
			assert_int_equal(ask(&filter, audit[!arch], number, 2, 0), deny(ENOSYS));
			assert_int_equal(ask(&filter, audit[arch], 0x40000000u | number, 2, 0), deny(ENOSYS));
			assert_int_equal(ask(&filter, audit[arch], 0x80000000u | number, 2, 0), deny(ENOSYS));
		}
		assert_int_equal(ask(&filter, audit[arch], UINT32_MAX, 0, 0), deny(ENOSYS));
		assert_int_equal(ask(&filter, audit[arch], numbers[arch].getpid, 0, 0), SECCOMP_RET_ALLOW);
	}
}

/* OS-SEC-01, -02, PROC-08: bits above 31 of the request change nothing; every other request passes. */
static void
ioctl_refuses_two_requests_on_their_low_bits(void **state)
{
	static const uint64_t high[] = { 0, 1ull << 32, 0xffffffff00000000ull, 1ull << 63 };

	(void)state;
	FOR_EACH_ARCH(arch)
	{
		struct filter filter = ours(arch);
		uint32_t call = numbers[arch].ioctl;

		for (uint32_t request = 0; request <= 0xffff; request++) {
			uint32_t expected = request == 0x5412 || request == 0x541c ? deny(EPERM) : SECCOMP_RET_ALLOW;

			for (size_t i = 0; i < KR_COUNT(high); i++)
				assert_int_equal(ask(&filter, audit[arch], call, 0, high[i] | request), expected);
		}
		assert_int_equal(ask(&filter, audit[arch], call, 0x5412, 0x5401), SECCOMP_RET_ALLOW);
		assert_int_equal(ask(&filter, audit[arch], call, 0, 0x15412), SECCOMP_RET_ALLOW);
	}
}

/* OS-SEC-05: the kernel takes the family as an int. */
static void
socket_families(void **state)
{
	(void)state;
	FOR_EACH_ARCH(arch)
	{
		struct filter filter = ours(arch);

		for (uint64_t family = 0; family <= 0x1ffff; family++) {
			bool good = family == 1 || family == 2 || family == 10 || family == 16;
			uint32_t expected = good ? SECCOMP_RET_ALLOW : deny(EAFNOSUPPORT);

			assert_int_equal(ask(&filter, audit[arch], numbers[arch].socket, family, 1), expected);
			assert_int_equal(ask(&filter, audit[arch], numbers[arch].socketpair, family, 1), expected);
			assert_int_equal(
				ask(&filter, audit[arch], numbers[arch].socket, family | 1ull << 32, 1), expected);
		}
		assert_int_equal(ask(&filter, audit[arch], numbers[arch].socket, UINT64_MAX, 1), deny(EAFNOSUPPORT));
		assert_int_equal(
			ask(&filter, audit[arch], numbers[arch].socket, 40 /* vsock */, 1), deny(EAFNOSUPPORT));
	}
}

/* PROC-11, OS-SEC-04: each namespace's flag, alone, beside others and below high bits; what starts threads
 * and processes passes. */
enum { CLONE3 = 435, NEW_TIME = 0x80, NEW_USER = 0x10000000 };

static const uint64_t new_namespaces[] = { 0x20000 /* mnt */, 0x2000000 /* cgroup */, 0x4000000 /* uts */,
	0x8000000 /* ipc */, NEW_USER, 0x20000000 /* pid */, 0x40000000 /* net */ };

static void
new_namespaces_are_refused(void **state)
{
	/* SIGCHLD, all that a thread has, its signal's bits, and the bits that only a 64-bit comparison sees. */
	static const uint64_t beside[] = { 0, 17, 0x3d0f00, 0xff, 0x200, 1ull << 32, 0xffffffff00000000ull };

	(void)state;
	FOR_EACH_ARCH(arch)
	{
		struct filter filter = ours(arch);
		const struct numbers *call = &numbers[arch];

		for (size_t i = 0; i < KR_COUNT(beside); i++) {
			for (size_t n = 0; n < KR_COUNT(new_namespaces); n++) {
				uint64_t flags = new_namespaces[n] | beside[i];

				assert_int_equal(ask(&filter, audit[arch], call->clone, flags, 0), deny(EPERM));
				assert_int_equal(ask(&filter, audit[arch], call->unshare, flags, 0), deny(EPERM));
				assert_int_equal(ask(&filter, audit[arch], call->clone, beside[i], flags), SECCOMP_RET_ALLOW);
			}
			assert_int_equal(ask(&filter, audit[arch], call->unshare, beside[i] | NEW_TIME, 0), deny(EPERM));
			assert_int_equal(ask(&filter, audit[arch], CLONE3, beside[i], 88), deny(ENOSYS));
		}
	}
}

static void
threads_and_processes_are_made(void **state)
{
	static const uint64_t flags[] = { 17, 0x3d0f00 /* a thread */, 0x4111 /* vfork */, 0x1200011 /* fork */,
		0x1011 /* with a pidfd */, 0x80000011 /* io */, 0x1ull << 32 | 17 };

	(void)state;
	FOR_EACH_ARCH(arch)
	{
		struct filter filter = ours(arch);

		for (size_t i = 0; i < KR_COUNT(flags); i++)
			assert_int_equal(ask(&filter, audit[arch], numbers[arch].clone, flags[i], 0), SECCOMP_RET_ALLOW);
		for (uint64_t i = 0x200 /* fs */; i <= 0x400 /* files */; i <<= 1)
			assert_int_equal(ask(&filter, audit[arch], numbers[arch].unshare, i, 0), SECCOMP_RET_ALLOW);
	}
}

/* The list, by name. */
static const char *const refused[] = { "keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter",
	"io_uring_register", "bpf", "perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load",
	"init_module", "finit_module", "delete_module", "mount", "umount2", "pivot_root", "open_tree",
	"move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr", "setns" };

static bool
has_rule(enum kr_arch arch, const char *text)
{
	for (size_t i = 0; kr_seccomp_rule(arch, i); i++)
		if (strcmp(kr_seccomp_rule(arch, i), text) == 0)
			return true;
	return false;
}

static void
explain_names_every_rule(void **state)
{
	char text[64];

	(void)state;
	FOR_EACH_ARCH(arch)
	{
		size_t n = 0;

		for (size_t i = 0; i < KR_COUNT(refused); i++) {
			snprintf(text, sizeof(text), "EPERM %s", refused[i]);
			assert_true(has_rule(arch, text));
		}
		assert_true(has_rule(arch, "EPERM ioctl TIOCSTI") && has_rule(arch, "EPERM ioctl TIOCLINUX"));
		assert_true(has_rule(arch, "EPERM clone into a new namespace"));
		assert_true(has_rule(arch, "EPERM unshare of a namespace"));
		assert_true(has_rule(arch, "ENOSYS clone3, for which every libc uses clone"));
		while (kr_seccomp_rule(arch, n))
			n++;
		assert_int_equal(n, KR_COUNT(refused) + 9);
	}
}

/* ---- numbers in the kernel's headers ---- */

static char *
read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &room, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

/* The value of `#define __NR_name N`, or -1. */
static long
header_number(const char *header, const char *name)
{
	char define[64];
	const char *at;

	snprintf(define, sizeof(define), "#define __NR_%s ", name);
	at = strstr(header, define);
	return at ? strtol(at + strlen(define), NULL, 10) : -1;
}

/* Newer than some headers; the number is the same on every machine. */
static long
number_of(const char *header, const char *name)
{
	long number = header_number(header, name);

	return number < 0 && strcmp(name, "open_tree_attr") == 0 ? 467 : number;
}

/* OS-SEC-01, PROC-12: exactly the named calls are EPERM. */
static void
check_header(enum kr_arch arch, const char *path)
{
	char *header = read_text(path);
	struct filter filter = ours(arch);
	size_t found = 0;

	if (!header) {
		print_message("# skip: no %s on this machine\n", path);
		skip();
	}
	for (size_t i = 0; i < KR_COUNT(refused); i++) {
		long number = number_of(header, refused[i]);

		assert_true(number >= 0);
		assert_int_equal(ask(&filter, audit[arch], (uint32_t)number, 2, 0), deny(EPERM));
	}
	for (uint32_t number = 0; number <= LAST_NUMBER; number++)
		found += ask(&filter, audit[arch], number, 2, 0) == deny(EPERM);
	assert_int_equal(found, KR_COUNT(refused));
	assert_int_equal(header_number(header, "ioctl"), numbers[arch].ioctl);
	assert_int_equal(header_number(header, "socket"), numbers[arch].socket);
	assert_int_equal(header_number(header, "socketpair"), numbers[arch].socketpair);
	assert_int_equal(header_number(header, "clone"), numbers[arch].clone);
	assert_int_equal(header_number(header, "unshare"), numbers[arch].unshare);
	assert_int_equal(header_number(header, "clone3"), CLONE3);
	free(header);
}

static void
numbers_of_x86_64(void **state)
{
	(void)state;
	check_header(KR_ARCH_X86_64, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
}

static void
numbers_of_aarch64(void **state)
{
	(void)state;
	check_header(KR_ARCH_AARCH64, "/usr/include/asm-generic/unistd.h");
}

/* ---- golden tables (PROC-13) ---- */

static const char *
verdict(uint32_t action)
{
	switch (action) {
	case SECCOMP_RET_ALLOW:
		return "allow";
	case SECCOMP_RET_ERRNO | EPERM:
		return "EPERM";
	case SECCOMP_RET_ERRNO | ENOSYS:
		return "ENOSYS";
	case SECCOMP_RET_ERRNO | EAFNOSUPPORT:
		return "EAFNOSUPPORT";
	default:
		return "?";
	}
}

/* One line for each run of numbers with the same answer; the first argument is 0, no socket family that
 * passes. */
static void
write_table(enum kr_arch arch, FILE *out)
{
	struct filter filter = ours(arch);
	uint32_t first = 0;

	for (uint32_t number = 1; number <= LAST_NUMBER + 1; number++) {
		uint32_t before = ask(&filter, audit[arch], number - 1, 0, 0);

		if (number <= LAST_NUMBER && ask(&filter, audit[arch], number, 0, 0) == before)
			continue;
		if (first == number - 1)
			fprintf(out, "%u %s\n", first, verdict(before));
		else
			fprintf(out, "%u-%u %s\n", first, number - 1, verdict(before));
		first = number;
	}
}

static void
compare_golden(enum kr_arch arch)
{
	char path[512], *expected, *text = NULL;
	size_t size;
	FILE *out;

	snprintf(path, sizeof(path), "%s/golden/seccomp.%s", KR_TEST_DIR, kr_arch_name(arch));
	out = open_memstream(&text, &size);
	write_table(arch, out);
	fclose(out);
	if (getenv("KRAFT_GOLDEN")) {
		out = fopen(path, "w");
		assert_non_null(out);
		fputs(text, out);
		fclose(out);
	}
	expected = read_text(path);
	assert_non_null(expected);
	assert_string_equal(text, expected);
	free(expected);
	free(text);
}

static void
golden_tables(void **state)
{
	(void)state;
	FOR_EACH_ARCH(arch)
	compare_golden(arch);
}

/* ---- libseccomp as the oracle ---- */

#ifdef KR_HAVE_LIBSECCOMP
static void
oracle_families(scmp_filter_ctx context, const char *call)
{
	int number = seccomp_syscall_resolve_name(call);

	for (uint64_t family = 0; family < FAMILIES; family++)
		if (family != 1 && family != 2 && family != 10 && family != 16)
			assert_int_equal(seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), number, 1,
								 SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, family)),
				0);
}

static void
oracle_flag(scmp_filter_ctx context, uint64_t flag)
{
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(
			seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), i ? SCMP_SYS(unshare) : SCMP_SYS(clone), 1,
				SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)),
			0);
}

static struct filter
oracle(void)
{
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
	struct filter filter = { .n = 0 };
	int fd = memfd_create("oracle", MFD_CLOEXEC);
	ssize_t bytes;

	assert_non_null(context);
	assert_int_equal(seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), 0);
	for (size_t i = 0; i < KR_COUNT(refused); i++) {
		int number = seccomp_syscall_resolve_name(refused[i]);

		if (number == __NR_SCMP_ERROR)
			number = 467; /* open_tree_attr: newer than libseccomp 2.5 */
		assert_int_equal(seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), number, 0), 0);
	}
	for (uint64_t request = 0x5412; request <= 0x541c; request += 0x541c - 0x5412)
		assert_int_equal(seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
							 SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, request)),
			0);
	for (size_t i = 0; i < KR_COUNT(new_namespaces); i++)
		oracle_flag(context, new_namespaces[i]);
	assert_int_equal(seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
						 SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_TIME, NEW_TIME)),
		0);
	assert_int_equal(seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), 0);
	oracle_families(context, "socket");
	oracle_families(context, "socketpair");
	assert_int_equal(seccomp_export_bpf(context, fd), 0);
	bytes = pread(fd, filter.code, sizeof(filter.code), 0);
	assert_true(bytes > 0 && bytes % 8 == 0);
	filter.n = (size_t)bytes / 8;
	close(fd);
	seccomp_release(context);
	return filter;
}

/* Numbers without a call in any kernel we know: the oracle allows them, we decide. */
static bool
unknown(uint32_t number)
{
	uint32_t own_end = kr_arch_here() == KR_ARCH_X86_64 ? 337 : 295;

	return number > 469 || (number >= own_end && number < 424);
}

static bool
is_socket(uint32_t number)
{
	return number == numbers[kr_arch_here()].socket || number == numbers[kr_arch_here()].socketpair;
}

static void
agrees_with_libseccomp(void **state)
{
	static const uint64_t values[] = { 0, 1, 2, 10, 16, 17, 40, 63, 0x5401, 0x5412, 0x541c, 0x100005412,
		0x100000001, 0x10000541c, 0x100000028, 0x20011, 0x80, 0x10000011, 0x110000000, 0x7e020080, 0x3d0f00 };
	static const uint32_t arches[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_I386,
		AUDIT_ARCH_ARM };
	struct filter mine = ours(kr_arch_here()), theirs = oracle();

	(void)state;
	for (size_t a = 0; a < KR_COUNT(arches); a++)
		for (uint32_t number = 0; number <= LAST_NUMBER; number++)
			for (size_t i = 0; i < KR_COUNT(values); i++) {
				uint32_t expected = ask(&theirs, arches[a], number, values[i], values[i]);

				if (unknown(number) && arches[a] == audit[kr_arch_here()])
					expected = deny(ENOSYS);
				else if (expected == SECCOMP_RET_ALLOW && is_socket(number) &&
						 (uint32_t)values[i] >= FAMILIES)
					expected =
						deny(EAFNOSUPPORT); /* the oracle has a rule for each family, so it ends somewhere */
				assert_int_equal(ask(&mine, arches[a], number, values[i], values[i]), expected);
			}
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_and_only_jumps_forward),
		cmocka_unit_test(other_abis_are_enosys),
		cmocka_unit_test(ioctl_refuses_two_requests_on_their_low_bits),
		cmocka_unit_test(socket_families),
		cmocka_unit_test(new_namespaces_are_refused),
		cmocka_unit_test(threads_and_processes_are_made),
		cmocka_unit_test(explain_names_every_rule),
		cmocka_unit_test(numbers_of_x86_64),
		cmocka_unit_test(numbers_of_aarch64),
		cmocka_unit_test(golden_tables),
#ifdef KR_HAVE_LIBSECCOMP
		cmocka_unit_test(agrees_with_libseccomp),
#endif
	};

	return cmocka_run_group_tests_name("seccomp", tests, NULL, NULL);
}
