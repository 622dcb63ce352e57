"""What the tests of macOS's way share: a kraft that takes itself to be on a Mac, on Linux.

A build with fault points honours KRAFT_PRETEND_MACOS (src/base/fault.h): plan, profile, launcher, proxy on loopback and the
end of a session are macOS's own then, with a stand-in for sandbox-exec that notes how it was called and executes. It raises
no wall; what a profile allows is asked of the evaluator in tests/seatbelt. With `space` it gives the session a user
namespace, the one thing on Linux that nothing leaves, in the place of Seatbelt's sandbox.
"""
import kraftlive
import screenlive
from faultlive import *
from screenlive import *

STAND_IN = """#!/bin/sh
# sandbox-exec -f PROFILE PROGRAM ARGS...
log=%(root)s/calls/$$
mkdir -p "$log"
tr '\\0' '\\n' </proc/$$/environ >"$log/environment"
ls /proc/$$/fd >"$log/descriptors"
for word; do printf '%%s\\n' "$word"; done >"$log/words"
[ "$1" = -f ] && cp "$2" "$log/profile" || { echo "sandbox-exec: wrong words" >&2; exit 64; }
shift 2
%(more)s
exec %(before)s "$@"
"""
SPACE = "/usr/bin/unshare --user --map-current-user"

if FAULT_BUILD:
    kraftlive.KRAFT = screenlive.KRAFT = FAULT_BUILD + "/kraft"


class Mac(Home):
    """A Mac with a repository. more: lines of the stand-in's before it executes."""

    def __init__(self, space=True, more="", **entry):
        if not FAULT_BUILD:
            raise kraftlive.Skipped("no build with fault points: ./dev build clang makes one")
        super().__init__(**entry)
        self.stand_in = self.root + "/sandbox-exec"
        self.extra_env["KRAFT_PRETEND_MACOS"] = self.stand_in
        self.stand(space, more)

    def stand(self, space=True, more=""):
        text = STAND_IN % {"root": self.root, "before": SPACE if space else "", "more": more}
        write(self.stand_in, text, 0o755)

    def calls(self, part):
        """That part of each call of sandbox-exec, the oldest first."""
        top = self.root + "/calls"
        found = sorted((os.path.join(top, n) for n in (os.listdir(top) if os.path.isdir(top) else [])), key=os.path.getmtime)
        return [read(os.path.join(f, part)) for f in found]

    def tmpdirs(self):
        top = self.run_dir + "/t"
        return os.listdir(top) if os.path.isdir(top) else []

    def events(self, kind):
        out = self.kraft("view", "events", "--type", kind, "--json").out
        return [json.loads(line) for line in out.splitlines()]

    def launcher_of(self, process):
        """Below a running kraft."""
        return next((p for p in children(process.pid) if command_of(p)[1:2] == [b"launch-seatbelt"]), None)


__all__ = [n for n in dir() if not n.startswith("_")]
