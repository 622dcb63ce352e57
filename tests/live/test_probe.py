#!/usr/bin/env python3
"""kraft admin doctor --probe: what it says of good walls, and that it says so when one is missing."""
# kraft-test: timeout 240
from kraftlive import *

HOME = Home("person")


def probe_run(**more):
    return HOME.kraft("admin", "doctor", "--probe", "--json", timeout=300, **more)


def probe(**more):
    result = probe_run(**more)
    found = json.loads(result.out)
    return result, found, {r["probe"]: r for r in found["rows"]}


def left(home):
    return [name for name in os.listdir(home.home) if name.startswith(".kraft-probe")]


def bwrap(append=(), drop=()):
    return {"KRAFT_BWRAP": HOME.wrapper(append=append, drop=drop)}


# A wall that is not there, and the rows that say so: each of them, though others may as well.
MISSING = {
    "no network of its own": (bwrap([["--share-net"]]), ["connect to a port of the host's loopback"]),
    "no git": (bwrap([["--ro-bind", "/dev/null", "/usr/bin/git"]]), ["git status", "git commit"]),
    "the home directory": (bwrap([["--bind", HOME.home, HOME.home]]), ["read a file of the home directory", "write to a file of the home directory",
        "list a directory of the home directory", "make a file in the home directory", "read it through a link", "read it by another program",
        "list kraft's configuration", "read the person's checkout", "make a file in the person's checkout", "make a hook in the repository",
        "write to the repository's configuration", "connect to a unix socket of the host"]),
    "the home directory to read": (bwrap([["--ro-bind", HOME.home, HOME.home]]), ["read a file of the home directory", "list kraft's sessions"]),
    "capabilities": (bwrap([["--cap-add", "ALL"]]), ["no capability"]),
    "no filter": (bwrap(drop=[["--seccomp"]]), ["a filter for system calls"]),
    "a root that can be written": (bwrap(drop=[["--remount-ro", "/"]]), ["make a file in /"]),
    "a /tmp that cannot be written": (bwrap([["--remount-ro", "/tmp"]]), ["write in TMPDIR"]),
    "user namespaces": (bwrap(drop=[["--disable-userns"], ["--seccomp"]]), ["make a user namespace"]),
    "no devices": (bwrap([["--tmpfs", "/dev"]]), ["read /dev/urandom"]),
    "no programs": (bwrap([["--tmpfs", "/usr/share"], ["--ro-bind", "/dev/null", "/usr/bin/env"]]), ["run a program of the system's"]),
}


@wall("MAC-02 OS-MNT-11 OS-SEC-04 OS-LCH-06", "doctor --probe: good walls are right in each row")
def _(t):
    result, found, by_probe = probe()
    t.works(result.code == 0 and found["ok"] and all(r["right"] for r in found["rows"]), "all are right", [r for r in found["rows"] if not r["right"]])
    t.attack(len(by_probe) >= 50 and by_probe["read a file of the home directory"]["inside"] != "ok", "fifty rows and more, a secret of the home is out of reach", len(by_probe))
    t.control(all(r["outside"] == "ok" for r in found["rows"] if r["outside"]), "outside nothing is refused", found)
    ids = set(re.findall(r"^\| ([A-Z-]+-\d+) \|", read(os.path.join(os.path.dirname(__file__), "../../docs/promises.md")), re.M))
    t.works(not [r for r in found["rows"] if not set(r["id"].split()) <= ids], "each row's ids are promises", found)


@wall("OS-MNT-11 OS-SEC-04 OS-LCH-06", "doctor --probe: each missing wall is named by its rows")
def _(t):
    result, found, _by = probe()
    t.works(result.code == 0, "without a mutation all are right", result)
    t.attack(all(r["inside"] != "ok" for r in found["rows"] if r["expected"] == "deny"), "and every refusal holds", found)
    bad = []
    for what, (env, named) in MISSING.items():
        # On the host's own network the port of the way out may be held for a minute by connections that are over.
        result = wait_for(lambda env=env: (lambda r: r if "already in use" not in r.err else None)(probe_run(env=env)), 75)
        found = json.loads(result.out)
        wrong = {r["probe"] for r in found["rows"] if not r["right"]}
        if result.code != 1 or found["ok"] or not set(named) <= wrong:
            bad.append((what, sorted(set(named) - wrong), result.err))
    t.control(not bad and len(MISSING) >= 10, "each is", bad)


@promise("MAC-12", "doctor --probe: a table that can be sent in, and nothing is left")
def _(t):
    done = HOME.kraft("admin", "doctor", "--probe", timeout=300)
    lines = done.out.splitlines()
    t.works(done.code == 0 and lines[0].startswith("kraft ") and ", kind os" in lines[0] and " as they must be" in lines[-1], "system and versions first, the sum last", done)
    version = HOME.kraft("--version").out.strip()
    said = re.fullmatch(r"kraft [0-9.]+(?:, commit [0-9a-f]{7,})?", version)
    t.works(bool(said) and lines[0].startswith(version + "; ") and os.uname().release in lines[0], "of which kraft and which system it is", lines[0], version)
    t.works(HOME.home not in done.out and HOME.root not in done.out and USER not in done.out.replace("a unix socket", ""), "no path and no name", done)
    t.works(left(HOME) == [] and not os.path.exists(HOME.kraft_home + "/run"), "what it made is gone, and the person's own kraft was not touched", left(HOME))
    broken = HOME.kraft("admin", "doctor", "--probe", env={"KRAFT_BWRAP": "/nonexistent"}, timeout=300)
    t.works(broken.code != 0 and 'KRAFT_BWRAP' in broken.err and HOME.home not in broken.err and left(HOME) == [], "where no session starts it says why", broken)


if __name__ == "__main__":
    main()
