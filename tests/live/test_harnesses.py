#!/usr/bin/env python3
"""kraft admin harnesses as the person sees it: those that come with kraft, one's own, harnesses.yaml, and what is broken
(ledger CFG-11; what each of them starts is in tests/golden/agents)."""
from kraftlive import *

MINE = """id: mine
kind: cli
command: "my-agent\\x1b[31m"
capabilities:
  prompt: {via: stdin}
  context: {via: prompt}
  usage: {reader: none}
"""
SHIPPED = ["amp", "antigravity", "claude", "codex", "cursor", "gemini", "opencode"]


def harnesses(home, **files):
    directory = os.path.join(home.kraft_home, "config", "harnesses")
    os.makedirs(directory, exist_ok=True)
    for name, text in files.items():
        write(os.path.join(directory, name + ".yaml"), text)


def rows(listed):
    return {line.split()[0]: line.split()[1:] for line in listed.lines[1:]}


@promise("CFG-11", "the list tells what loads, what is switched off and where each program is; one broken file hides no other")
def _(t):
    home = Home()
    bare = home.kraft("admin", "harnesses")
    t.works(bare.code == 0 and sorted(rows(bare)) == SHIPPED and all(row[:2] == ["yes", "yes"] for row in rows(bare).values()),
            "without any file", bare)
    harnesses(home, mine=MINE, broken=MINE.replace("id: mine", "id: broken").replace("command:", "comand:"))
    write(os.path.join(home.kraft_home, "config", "harnesses.yaml"),
          "harnesses:\n  gemini: {enabled: false}\n  second: {provider: mine, executable: /bin/true, defaults: {model: m-1}}\n")
    listed = home.kraft("admin", "harnesses")
    seen = rows(listed)
    t.works(listed.code == 0 and sorted(seen) == sorted(SHIPPED + ["broken", "mine", "second"]), "all of them", listed)
    t.works(seen["broken"][0] == "no" and "line 3, column 1: unknown key 'comand' in the harness" in listed.out and
            "\x1b" not in listed.out, "what is wrong", listed)
    t.works(seen["gemini"][:2] == ["yes", "no"] and seen["mine"] == ["yes", "yes", "your", "file", "my-agent\\x1b[31m:", "not", "found"] and
            seen["second"] == ["yes", "yes", "mine", "/bin/true"], "what holds here", listed)
    told = {row["id"]: row for row in json.loads(home.kraft("admin", "harnesses", "--json").out)["harnesses"]}
    t.works(told["broken"]["error"]["line"] == 3 and told["second"]["program"] == "/bin/true" and told["mine"]["program"] is None and
            told["gemini"]["enabled"] is False and told["second"]["provider"] == "mine", "for programs", told)


@promise("CFG-11", "one is shown with its file, which loads as one's own; a mistake has its place")
def _(t):
    home = Home()
    harnesses(home, mine=MINE)
    shown = home.kraft("admin", "harnesses", "mine")
    t.works(shown.code == 0 and "my-agent" in shown.out and "\x1b" not in shown.out and shown.out.startswith("# mine: /"),
            "with its comments", shown)
    for name in SHIPPED:
        text = home.kraft("admin", "harnesses", name)
        harnesses(home, **{name: text.out})
        again = home.kraft("admin", "harnesses", "--json", name)
        t.works(text.code == 0 and again.code == 0 and json.loads(again.out)["file"].endswith("/harnesses/%s.yaml" % name),
                "what is printed can be written", again)
    codex = json.loads(home.kraft("admin", "harnesses", "--json", "codex").out)
    t.works(codex["login"] == ["CODEX_API_KEY"] and "api.openai.com" in codex["hosts"] and "permission_hook" in codex["capabilities"],
            "for programs", codex)
    harnesses(home, mine=MINE + "permission_hook: mine\n")
    wrong = home.kraft("admin", "harnesses", "mine")
    t.works(wrong.code == 3 and "harnesses/mine.yaml:8:18: " in wrong.err and not wrong.out, "by name", wrong)
    unknown = home.kraft("admin", "harnesses", "nope")
    t.works(unknown.code == 7 and "there is no harness 'nope'" in unknown.err and "claude, codex" in unknown.err, "what there is", unknown)
    write(os.path.join(home.kraft_home, "config", "harnesses.yaml"), "harnesses: {gemini: {enabled: never}}\n")
    closed = home.kraft("admin", "harnesses", "claude")
    t.works(closed.code == 3 and "harnesses.yaml:1:" in closed.err, "what harnesses.yaml says is never guessed at", closed)


main()
