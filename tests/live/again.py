"""Which tests of the other files run again inside of a container, and on which runtimes: data, and one question.

A file is run by `tests/run containers` once for each runtime with KRAFT_TEST_RUNTIME set; by hand
`KRAFT_TEST_RUNTIME=docker tests/live/test_git.py words...`. What is left out has its reason here: the defence is the OS
sandbox's own (bubblewrap, the host's /usr, expose, looking a command up on the host), or it is on the host and the same code
whatever the kind, so that a second run says nothing. Where a container is meant to answer otherwise, the tests ask
`differs`, and the answers stand below, too.

Every test of a file runs on docker. On rootless podman it is those of `sample` (ids), and on podman, which shares its code
with the one and its rights with the other, none; KRAFT_ALL=1 runs every test on all of them.
"""
import os

ALL = os.environ.get("KRAFT_ALL") == "1"

# file: {"leave": {words of a test's name: why}, "sample": ids}; or {"only": words}, which run on each
FILES = {
    "network": {"leave": {}, "sample": ["NET-01", "NET-03"]},
    "egress": {"leave": {"always-denied addresses in every spelling": "kraft-egress on the host decides, as under kind: os",
                         "spellings of a name": "the same", "ports: the policy's only": "the same", "wildcards and deny": "the same",
                         "address entries": "the same", "a name server that stalls": "the same", "kraft view events": "the same"},
               "sample": ["NET-01 NET-02", "NET-03 NET-10", "NET-08"]},
    "egress_robust": {"leave": {"connections that send a byte a second": "kraft-egress's own time limits", "a slow client": "the same",
                                "kraft-egress is confined": "the same process", "the person's own proxy": "the same",
                                "ten thousand requests": "the same"}, "sample": ["POL-09 LIFE-02"]},
    "git": {"leave": {}, "sample": ["REF-01 REF-02", "GIT-20", "GIT-12"]},
    "git_walls": {"leave": {}, "sample": ["GIT-01 GIT-02", "GIT-04", "GIT-08", "GIT-22"]},
    "git_leftovers": {"leave": {}, "sample": ["run --commit: what a command leaves"]},
    "channel": {"leave": {"a long history": "the server's answer", "a flood": "kraft-egress's bounds", "a call has thirty seconds": "the same",
                          "refused calls fill": "the same"},
                "sample": ["CHN-01 CHN-02", "CHAN-01", "CHAN-10", "CHAN-12"]},
    "kernel": {"leave": {}, "sample": ["OS-SEC-01 PROC-09", "PROC-11", "PROC-19", "PROC-06"]},
    "view": {"leave": {}, "sample": ["FS-17", "FS-16", "FS-09"]},
    "launch": {"leave": {}, "sample": ["PROC-02", "PROC-03", "OS-LCH-04"]},
    "environment": {"leave": {}, "sample": ["PROC-16"]},
    "story": {"only": ["as a new user"]},
    "codex": {"only": ["an item from its filing to the approved gate", "what reaches the model's host"]},
    "claude": {"only": ["claude 2.1.332: an item from its creation"]},
}


def runs_here(file, runtime, test):
    """Whether a test (its ids and name) runs again on that runtime."""
    told = FILES.get(file)
    if told is None:
        return False
    if "only" in told:
        return any(words in test for words in told["only"])
    if any(words in test for words in told["leave"]):
        return False
    return ALL or runtime == "docker" or runtime == "podman-rootless" and any(words in test for words in told["sample"])


def runs():
    """(file, runtime) of each run."""
    return [(file, runtime) for file in FILES for runtime in (("docker", "podman", "podman-rootless") if ALL else ("docker", "podman-rootless"))]
