#!/usr/bin/env python3
"""What kraft ends with: one status for each kind of error, the same in every command; where its colours and its JSON go."""
from screenlive import *
from worklive import *

RED = b"\x1b[31m"


def told():
    """The statuses that `kraft help exit-codes` lists."""
    out = subprocess.run([KRAFT, "help", "exit-codes"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {int(n) for n in re.findall(r"^  (\d+) ", out, re.MULTILINE)}


def as_a_shell_tells(code):
    return 128 - code if code < 0 else code


def ended_by(process, number):
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return Result(as_a_shell_tells(process.returncode), out, err)


class Cases:
    """Each kind with a real case of it; run with a table of what came."""

    def __init__(self, t, home):
        self.t, self.home, self.seen = t, home, set()

    def ends(self, code, *words, says="", **more):
        result = self.home.kraft(*words, **more)
        self.note(code, result, " ".join(words), says)
        self.t.works(code == 0 or code in (1, 130, 143) or result.err.startswith("kraft: "), "%s: says why" % (words,), result)

    def note(self, code, result, what, says="", is_krafts=True):
        self.seen |= {code} if is_krafts else set()
        self.t.works(result.code == code and says in result.out + result.err, "%s: %d" % (what, code), result)


@promise("OS-LCH-10 OS-LCH-11 OS-LCH-12", "exit codes: one of each kind")
def _(t):
    home = Office()
    home.commit("plain", "#!/bin/sh\n", 0o644)
    home.commit("nointerp", "#!/no/such/interpreter\n")
    c = Cases(t, home)
    for words in (["view", "list"], ["view", "list", "--json"], ["item", "list"], ["view", "events"], ["view", "sessions"], ["admin", "chains"], ["help"]):
        c.ends(0, *words)  # nothing is there yet, and that is no error
    for words in (["viwe"], ["view"], ["view", "list", "--jsn"], ["view", "events", "--newest", "x"], ["why", "host", "a b"], ["run", "--phase", "x", "--", "true"], ["run"],
                  ["shell"], ["--color=red", "view", "list"], ["help", "viwe"]):
        c.ends(2, *words)
    c.ends(7, "view", "show", "nobody")
    c.ends(7, "view", "diff", "nobody")
    c.ends(7, "view", "logs", says="no sessions yet")
    c.ends(7, "admin", "chains", "nobody")
    c.ends(7, "repo", "path", "/nonexistent")
    c.ends(7, "item", "start", "nobody")
    c.ends(5, "explain", "--", "no-such-command", says="no-such-command")
    c.ends(5, "admin", "prune", env={"KRAFT_SESSION_ID": "0123456789abcdef"})
    home.chain("gated", node("one", task("a", "true")), GATE)
    item = home.create("at a gate", "--chain", "gated")
    c.ends(0, "item", "start", item)
    c.ends(5, "item", "start", item, says="gate 'review'")
    home.chain("fails", node("one", task("a", "false")), GATE)
    c.ends(1, "item", "start", home.create("it fails", "--chain", "fails"))
    c.ends(1, "why", "host", "unlisted.example")

    c.ends(125, "run", "--", "no-such-command", says="no-such-command")
    last = json.loads(home.kraft("view", "sessions", "--json").out)[0]
    t.works((last["state"], last["code"]) == ("failed", 125), "the refused session is recorded as one", last)
    c.ends(125, "run", "--repo", "/nonexistent", "--", "true")
    c.ends(125, "run", "--workspace", "nobody", "--", "true")
    c.ends(126, "run", "--", "./plain", says="is not executable")
    c.ends(127, "run", "--", "./nointerp", says="was not found inside")
    for code in (1, 3, 5, 7, 8):
        c.note(code, home.sh("exit %d" % code), "a command's own", is_krafts=False)

    running = home.start("sh", "-c", "echo ready; exec sleep 60")
    t.works(running.stdout.readline() == b"ready\n", "it runs")
    c.ends(1, "view", "diff", says="when the session ends")
    c.note(143, ended_by(running, signal.SIGTERM), "a run that TERM ends")
    running = home.start("sh", "-c", "echo ready; exec sleep 60")
    t.works(running.stdout.readline() == b"ready\n", "it runs")
    c.note(130, ended_by(running, signal.SIGINT), "a run that INT ends")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        follows = home.kraft("view", "events", "-f", "--json", popen=True)
        t.works(follows.stdout.readline().startswith(b"{"), "it follows")
        c.note(code, ended_by(follows, number), "a command that waits")

    for text, place in (("repos: [", "repos.yaml:"), ("repos:\n  - pth: /x\n", "repos.yaml:2:5")):
        home.configure(text)
        for words in (["repo", "list"], ["repo", "list", "--json"], ["explain"], ["why", "host", "a.example"], ["item", "create", "x"]):
            c.ends(3, *words, says=place)
        c.ends(125, "run", "--", "true", says=place)
    home.configure("repos: []\n")
    c.ends(0, "repo", "list")
    c.ends(3, "why", "host", "a.example", says="is not connected")
    c.ends(125, "run", "--", "true", says="is not connected")
    t.works(c.seen == {0, 1, 2, 3, 5, 7, 125, 126, 127, 130, 143} and c.seen < told(), "each kind was there, and is in the table", c.seen, told())


@promise("GIT-15", "--json on every command that reads: one document on stdout also when there is nothing, and errors on stderr")
def _(t):
    home = Office()

    def document(*words):
        result = home.kraft(*words)
        try:
            return json.loads(result.out)
        except ValueError:
            raise Failed("%s: %r" % (words, result)) from None

    t.works(document("view", "list", "--json") == {"items": []} and document("item", "list", "--json") == [] and document("view", "sessions", "--json") == [], "nothing is an empty array")
    t.works(home.kraft("view", "events", "--json").out == "", "and no line, where each line is one")
    entry = document("repo", "path", "--json")
    t.works(entry["path"] == home.repo and entry in document("repo", "list", "--json")["repos"], "an entry", entry)
    home.item("x", "true")
    (empty,) = document("view", "diff", "--json", "x")
    t.works((empty["tip"], empty["base"], empty["changes"]) == (None, None, ""), "nothing was committed", empty)
    home.item("x", "printf '\\355\\240\\200caf\\303\\251\\t\\033[2J\\377 \"quoted\"\\n' >odd; git add odd; git commit -qm odd")
    (tree,) = document("view", "diff", "--json", "x")
    t.works((tree["item"], tree["member"], tree["branch"], tree["checkout"]) == ("x", None, "kraft/x", home.repo), "the tree", tree)
    t.works(tree["tip"] == home.rev("kraft/x") and tree["base"] == home.rev("HEAD"), "its commits", tree)
    t.works("+\\xed\\xa0\\x80caf\u00e9\t\\x1b[2J\\xff \"quoted\"\n" in tree["changes"] and tree["changes"] == home.kraft("view", "diff", "x").out, "the changes, as a person is shown them", tree)
    (names,) = document("view", "diff", "--json", "--name-only", "x")
    t.works(names["changes"] == "odd\n", "other forms of them", names)
    t.works("\x1b" not in home.kraft("view", "diff", "--json", "--color=always", "x").out, "no colours in them")
    for words in (["view", "show", "nobody"], ["view", "threads", "nobody"], ["view", "diff", "nobody"], ["view", "logs", "0123456789abcdef"], ["repo", "path", "/nonexistent"],
                  ["admin", "chains", "nobody"]):
        result = home.kraft(*words, "--json")
        t.works(result.code == 7 and result.out == "" and result.err.startswith("kraft: "), "%s: the error" % words, result)


@promise("GIT-15", "colours: --color, then NO_COLOR, then CLICOLOR_FORCE and FORCE_COLOR, then the terminal; empty is not set")
def _(t):
    home = Office()
    home.item("x", "printf 'new\\n\\033[31mevil\\n' >made; git add made; git commit -qm made")
    diff = ("view", "diff", "x")
    for words, env, is_coloured in (
            (diff, {}, False), (diff, {"FORCE_COLOR": "1"}, True), (diff, {"CLICOLOR_FORCE": "1"}, True), (diff, {"FORCE_COLOR": ""}, False),
            (diff, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), (diff, {"FORCE_COLOR": "1", "NO_COLOR": ""}, True), ((*diff, "--color=always"), {"NO_COLOR": "1"}, True),
            (("--color", "always", *diff), {"TERM": "dumb"}, True), ((*diff, "--color=never"), {"FORCE_COLOR": "1"}, False), (("--color=never", *diff), {"FORCE_COLOR": "1"}, False),
            (("--color=never", *diff, "--color=always"), {}, True), ((*diff, "--color=auto"), {"FORCE_COLOR": "1"}, True)):
        result = home.kraft(*words, env=env)
        t.works(result.code == 0 and (b"\x1b[32m+new" in result.raw_out) == is_coloured and b"+new" in result.raw_out, "%s %s" % (words, env), result.raw_out)
        t.works(b"\\x1b[31mevil" in result.raw_out and RED + b"evil" not in result.raw_out, "what a worker wrote is no colour of kraft's", result.raw_out)
    for words, env, is_coloured in (((), {}, True), ((), {"NO_COLOR": "1"}, False), ((), {"NO_COLOR": ""}, True), (("--color=never",), {}, False), (("--color=always",), {"NO_COLOR": "1"}, True)):
        with Screen(home, [KRAFT, *words, "viwe"], **env) as s:
            s.end()
            t.works(s.code == 2 and (RED + b"kraft:" in s.seen) == is_coloured and b"unknown command" in s.seen, "an error at a terminal %s %s" % (words, env), s.seen)
    own = home.run("sh", "-c", "printf '%s\\n' \"$@\"", "x", "--color=never", options=["--color=always"])
    t.works(own.out == "--color=never\n", "a command's own option is its own", own)


main()
