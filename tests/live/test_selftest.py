#!/usr/bin/env python3
"""kraft admin selftest: what it says of good walls, and that it says so when one is missing."""
# kraft-test: timeout 240
from kraftlive import *

HOME = Home("person")


def rows(result):
    found = json.loads(result.out)
    return found, {r["probe"]: r for r in found["rows"]}


def left(home):
    return [name for name in os.listdir(home.home) if name.startswith(".kraft-selftest")]


@wall("MAC-02 OS-MNT-11", "admin selftest: good walls are right in each row, a missing one is named")
def _(t):
    good = HOME.kraft("admin", "selftest", "--json", timeout=300)
    whole, by_probe = rows(good)
    t.works(good.code == 0 and whole["ok"] and all(r["right"] for r in whole["rows"]), "all are right", [r for r in whole["rows"] if not r["right"]])
    t.attack(len(by_probe) >= 40 and by_probe["read a file of the home directory"]["inside"] != "ok", "forty rows and more, a secret of the home is out of reach", len(by_probe))
    t.works(by_probe["read a file of the home directory"]["outside"] == "ok", "outside it is not", by_probe)
    open_net = HOME.kraft("admin", "selftest", "--json", env={"KRAFT_BWRAP": HOME.wrapper(append=[["--share-net"]])}, timeout=300)
    found, by_probe = rows(open_net)
    t.control(open_net.code == 1 and not found["ok"] and by_probe["connect to a port of the host's loopback"]["inside"] == "ok"
              and not by_probe["connect to a port of the host's loopback"]["right"], "without a network of its own the row says so", open_net)
    t.works(by_probe["read a file of the home directory"]["right"], "and only that one", found)


@promise("MAC-12", "admin selftest: a table that can be sent in, and nothing is left")
def _(t):
    done = HOME.kraft("admin", "selftest", timeout=300)
    lines = done.out.splitlines()
    t.works(done.code == 0 and lines[0].startswith("kraft ") and ", kind os" in lines[0] and " as they must be" in lines[-1], "system and versions first, the sum last", done)
    version = HOME.kraft("--version").out.strip()
    said = re.fullmatch(r"kraft [0-9.]+(?:, commit [0-9a-f]{7,})?", version)
    t.works(bool(said) and lines[0].startswith(version + "; ") and os.uname().release in lines[0], "of which kraft and which system it is", lines[0], version)
    t.works(HOME.home not in done.out and HOME.root not in done.out and USER not in done.out.replace("a unix socket", ""), "no path and no name", done)
    t.works(left(HOME) == [] and not os.path.exists(HOME.kraft_home + "/run"), "what it made is gone, and the person's own kraft was not touched", left(HOME))
    broken = HOME.kraft("admin", "selftest", env={"KRAFT_BWRAP": "/nonexistent"}, timeout=300)
    t.works(broken.code != 0 and 'KRAFT_BWRAP' in broken.err and HOME.home not in broken.err and left(HOME) == [], "where no session starts it says why", broken)


if __name__ == "__main__":
    main()
