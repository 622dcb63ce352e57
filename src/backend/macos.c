/*
 * Whether Seatbelt's walls can be raised on this Mac (MAC-11), from facts that others gather. Pure: nobody here has a Mac, so each
 * answer is tested where there is none. The first that is wrong is told; what comes first makes the rest pointless.
 */
#include "backend/backend.h"
#include "os/sys.h"

static int
check_program(const struct kr_macos_facts *facts, struct kr_error *err)
{
	if (facts->is_translated) {
		kr_fail(err, KR_E_WALL, "this kraft is built for Intel and runs under Rosetta, which does not run inside the sandbox");
		return kr_hint(err, "install the kraft for Apple silicon, and start it from a terminal that does not run under Rosetta itself");
	}
	if (facts->is_root) {
		kr_fail(err, KR_E_WALL, "this is root, and the sandbox does not run as root");
		return kr_hint(err, "run kraft as an ordinary user");
	}
	if (facts->is_sandboxed) {
		kr_fail(err, KR_E_WALL, "kraft runs inside a sandbox itself, and macOS puts no process into a second one");
		return kr_hint(err, "start kraft from a terminal that is in none: not from an agent's shell or an application's own one");
	}
	return 0;
}

int
kr_macos_check(const struct kr_macos_facts *facts, struct kr_error *err)
{
	if (strcmp(facts->machine, "arm64") != 0 && strcmp(facts->machine, "x86_64") != 0)
		return kr_fail(err, KR_E_UNSUPPORTED, "this is a Mac of '%s', and kraft knows arm64 and x86_64", facts->machine);
	if (check_program(facts, err) < 0)
		return -1;
	if (!facts->has_sandbox_exec) {
		kr_fail(err, KR_E_WALL, "'%s' is missing or cannot be run, and it raises the walls", facts->sandbox_exec);
		return kr_hint(err, "it is part of macOS: see whether the system is whole, or use kind: docker");
	}
	if (!facts->has_tools) {
		kr_fail(err, KR_E_UNSUPPORTED, "neither Command Line Tools nor Xcode is installed, and git is a part of them");
		return kr_hint(err, "run 'xcode-select --install'");
	}
	return 0;
}
