#!/usr/bin/env python3
"""kraft why host: the decision on a host, its rule and place, the addresses, and what would help."""
from kraftlive import *

LISTS = {"install": {"allow": ["setup.example"]},
         "runtime": {"allow": ["*.example", "exact.test", "closed.test", "mixed.test"], "deny": ["bad.example"]}}
HOSTS = """127.0.0.1 localhost
93.184.216.34 public.example exact.test
10.1.2.3 private.example
10.1.2.4 exact.test
127.0.0.1 closed.test
169.254.169.254 mixed.test
2606:4700::1111 mixed.test
93.184.216.34 bad.example
"""


def why(home, *words):
    """With a hosts file of ours and no network, so that no name server is asked."""
    hosts = write(home.root + "/hosts", HOSTS)
    switch = write(home.root + "/nsswitch.conf", "hosts: files\n")
    inside = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", hosts, "/etc/hosts", "--ro-bind", switch, "/etc/nsswitch.conf",
              "--unshare-net", "--"]
    result = home.kraft("why", "host", "--json", *words, before=inside)
    return result, json.loads(result.out) if result.out.startswith("{") else {}


@promise("POL-02", "the lists decide, and the rule is told with its place")
def _(t):
    home = Home(sandbox={"network": LISTS})
    file = home.config_dir + "/repos.yaml"
    result, said = why(home, "public.example")
    t.works(result.code == 0 and said["allowed"] and said["entry"]["text"] == "*.example" and said["port"] == 443, "allowed", result)
    t.works(said["entry"]["file"] == file and said["entry"]["line"] == 2, "its place", said)
    place = read(file).splitlines()[said["entry"]["line"] - 1][said["entry"]["column"] - 1:]
    t.works(place.startswith('"*.example"'), "the place is the entry's", place[:40])
    result, said = why(home, "BAD.example.:80")
    t.attack(result.code == 1 and said["decision"] == "denied" and said["entry"]["list"] == "deny" and not said.get("grant"), "deny wins", result)
    result, said = why(home, "setup.example", "--phase", "install")
    t.works(said["decision"] == "unresolved" and result.code == 1, "the lists of the other phase; the name is nowhere", result)
    result, said = why(home, "exact.test", "--phase", "install")
    t.attack(result.code == 1 and said["decision"] == "unlisted" and said["grant"] == "exact.test:443", "install has its own list", result)
    for wrong in ("127.1", "a@public.example", "public.example:0", "public.example:", "a_b.example", "::1"):
        result, said = why(home, wrong)
        t.attack(result.code == 2 and not said and "is no host" in result.err, "no host: " + wrong, result)


@promise("POL-03, POL-04, POL-05", "each address of a name is judged, and one bad one refuses it")
def _(t):
    home = Home(sandbox={"network": LISTS})
    result, said = why(home, "private.example")
    t.attack(result.code == 1 and said["decision"] == "inexact" and said["grant"] == "private.example:443", "a star opens no private address", result)
    result, said = why(home, "exact.test")
    t.works(result.code == 0 and "10.1.2.4" in [a["address"] for a in said["addresses"]], "an exact entry does", result)
    result, said = why(home, "closed.test")
    t.attack(result.code == 1 and said["decision"] == "always" and not said.get("grant"), "loopback by no entry", result)
    result, said = why(home, "mixed.test")
    t.attack(result.code == 1 and said["decision"] == "always" and len(said["addresses"]) == 2, "one bad address refuses the name", result)
    t.works(sorted(a["allowed"] for a in said["addresses"]) == [False, True], "each with its own verdict", said)
    for literal in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[fe80::1%lo]"):
        result, said = why(home, literal)
        t.attack(result.code == 1 and said["decision"] == "always", "never: " + literal, result)


@wall("NET-15, POL-05", "a refused name is not looked up")
def _(t):
    home = Home(sandbox={"network": LISTS})

    def looked_up(name):
        trace = home.root + "/trace"
        result = home.host("strace", "-f", "-e", "trace=openat,socket,connect", "-o", trace, KRAFT, "why", "host", name, cwd=home.repo)
        text = read(trace)
        return "/etc/hosts" in text or "/etc/resolv.conf" in text or "/nscd/" in text, text, result

    for name in ("bad.example", "other.test", "localhost", "metadata.goog", "x.y.example"):
        asked, text, result = looked_up(name)
        t.attack(not asked and result.code == 1, "nobody is asked for " + name, result, text[-800:])
    asked, text, result = looked_up("localhost.example")
    t.works("localhost.example" in result.out, "the answer is given all the same", result)
    t.control(asked, "an allowed name is looked up", result, text[-800:])


@promise("POL-04", "adding the line that is offered allows the host")
def _(t):
    home = Home(sandbox={"network": LISTS})
    _, said = why(home, "private.example:5432")
    lists = {"runtime": {"allow": LISTS["runtime"]["allow"] + [said["grant"]]}}
    home.configure(sandbox={"network": lists})
    result, said = why(home, "private.example:5432")
    t.works(result.code == 0 and said["exact"], "allowed", result)
    text = home.kraft("why", "host", "10.9.9.9:1").out
    t.works("- \"10.9.9.9:1\"\n" in text or "- 10.9.9.9:1\n" in text, "the line is printed as YAML", text)


if __name__ == "__main__":
    main()
