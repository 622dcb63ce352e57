"""Which tests of the other files run again inside of a container, and on which runtimes: data, and one question.

A file is run by `tests/run containers` once for each runtime with KRAFT_TEST_RUNTIME set; by hand
`KRAFT_TEST_RUNTIME=docker tests/live/test_git.py words...`. What is not named here is left out: its defence is the OS
sandbox's own (bubblewrap's options, the host's /usr, expose, how a command is looked up on the host), or it stands on the
host and is the same code whatever the kind (what kraft-egress says to a name or to a malformed request), so that a second run says
nothing. Where a container answers otherwise on purpose the test asks RUNTIME, and says why.

A start of a container costs a second or two, so in an ordinary check `sample` (where there is one; words of docker's) runs on docker
and `rootless` on rootless podman, and none on podman, which shares its code with the one and its rights with the other.
KRAFT_ALL=1 runs each test of `docker` on all three.
"""
import os

ALL = os.environ.get("KRAFT_ALL") == "1"

# file: words of its tests' ids and names; None: all of them
FILES = {
    "network": {"docker": None, "rootless": ["NET-01 NET-02", "NET-03"]},
    "egress": {"docker": ["NET-01 NET-02 NET-15", "NET-03 NET-10", "NET-05 POL-06", "NET-06", "NET-07", "NET-08", "NET-09", "NET-15", "OS-ENV-03"],
               "sample": ["NET-01 NET-02 NET-15", "NET-05 POL-06", "NET-08", "OS-ENV-03"], "rootless": ["NET-01 NET-02 NET-15", "NET-08"]},
    "egress_robust": {"docker": ["kraft-egress in the middle", "cannot get its route", "the channel socket: what a worker sends"], "rootless": ["cannot get its route"]},
    "git": {"docker": None, "sample": ["REF-01 REF-02", "CTR-05", "GIT-20", "GIT-12", "REF-05"], "rootless": ["REF-01 REF-02", "GIT-20", "GIT-12"]},
    "git_walls": {"docker": None, "sample": ["GIT-01 GIT-02", "GIT-04\"", "GIT-08", "GIT-11", "GIT-01 GIT-04"], "rootless": ["GIT-01 GIT-02", "GIT-04\"", "GIT-08"]},
    "git_leftovers": {"docker": None, "sample": ["run --commit: what a command leaves", "run --commit: hooks", "GIT-06"], "rootless": ["run --commit: what a command leaves"]},
    "channel": {"docker": ["CHN-01 CHN-02", "CHN-01 CHN-05", "CHAN-01", "CHAN-02", "CHAN-03", "CHAN-08", "CHN-05 CHN-07", "CHAN-06", "CHAN-07", "CHAN-10", "CHAN-12", "CHN-06"],
                "sample": ["CHN-01 CHN-02", "CHAN-01", "CHAN-02", "CHAN-06", "CHAN-10", "CHAN-12"], "rootless": ["CHN-01 CHN-02", "CHAN-01", "CHAN-10"]},
    "kernel": {"docker": ["every listed call", "PROC-08", "PROC-14", "NET-04", "PROC-11", "OS-SEC-04 PROC-23", "PROC-19", "PROC-20", "PROC-21", "PROC-18", "PROC-06", "PROC-15 OS-SEC-06", "PROC-24"],
               "sample": ["every listed call", "PROC-08", "NET-04", "PROC-11", "OS-SEC-04 PROC-23", "PROC-19", "PROC-06", "PROC-18"], "rootless": ["every listed call", "PROC-11", "PROC-19", "PROC-06"]},
    "view": {"docker": ["FS-09\"", "FS-16", "no remount", "FS-20", "FS-02"], "rootless": ["FS-16", "FS-20"]},
    "launch": {"docker": ["OS-LCH-04 OS-LCH-07", "OS-LCH-08", "OS-LCH-09", "PROC-01", "PROC-02", "PROC-03", "PROC-04", "PROC-05", "LIFE-02 OS-SEC-07", "kraft run killed at random"],
               "sample": ["OS-LCH-08", "OS-LCH-09", "PROC-01", "PROC-02", "PROC-03", "PROC-04"], "rootless": ["OS-LCH-08", "PROC-02", "PROC-03"]},
    "environment": {"docker": ["OS-ENV-01 OS-LCH-03", "OS-ENV-02", "PROC-16"], "rootless": ["PROC-16"]},
    "story": {"docker": ["as a new user"], "rootless": ["as a new user"]},
    "codex": {"docker": ["an item from its filing to the approved gate", "what reaches the model's host"], "rootless": ["an item from its filing to the approved gate"]},
    "claude": {"docker": ["claude 2.1.332: an item from its creation"], "rootless": ["claude 2.1.332: an item from its creation"]},
}


def runs_here(file, runtime, ids, name):
    """Whether that test runs again on that runtime. A word with a quotation mark is the end of the ids."""
    told = FILES.get(file)
    if told is None:
        return False
    words = told["docker"] if ALL else told["rootless"] if runtime == "podman-rootless" else told.get("sample", told["docker"])
    return words is None or any(w in '%s" %s' % (ids, name) or w in "%s %s" % (ids, name) for w in words)


def runs():
    """(file, runtime) of each run."""
    return [(file, runtime) for file in FILES for runtime in (("docker", "podman", "podman-rootless") if ALL else ("docker", "podman-rootless"))]
