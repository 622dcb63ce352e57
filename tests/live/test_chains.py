#!/usr/bin/env python3
"""kraft admin chains as the person sees it (ledger CFG-11): the shipped chain, one's own, and one that is broken."""
from kraftlive import *

MINE = """id: mine
description: "my own \\x1b[31m"
nodes:
  - id: build
    kind: exec
    policy: {timeout_minutes: 5}
    tasks: [{id: make, kind: subprocess, command: "make 'all of it'"}]
    fix_loop: {max_attempts: 2, tasks: [{id: mend, kind: agent, harness: claude, prompt: mend}]}
  - {id: look, kind: gate}
"""


def chains(home, **files):
    directory = os.path.join(home.kraft_home, "config", "chains")
    os.makedirs(directory, exist_ok=True)
    for name, text in files.items():
        write(os.path.join(directory, name + ".yaml"), text)


@promise("CFG-11", "the list tells what loads and what is wrong; one broken chain hides no other")
def _(t):
    home = Home()
    bare = home.kraft("admin", "chains")
    t.works(bare.code == 0 and re.search(r"^default +yes ", bare.out, re.M), "without any file", bare)
    chains(home, mine=MINE, broken=MINE.replace("id: mine", "id: broken").replace("kind: gate", "kind: gate, tiemout: 1"))
    listed = home.kraft("admin", "chains")
    t.works(listed.code == 0 and [line.split()[:2] for line in listed.lines[1:]] ==
            [["broken", "no"], ["default", "yes"], ["mine", "yes"]], "three rows", listed)
    t.works("line 9, column 28: unknown key 'tiemout' in a node" in listed.out and "\x1b" not in listed.out, "and why", listed)
    told = json.loads(home.kraft("admin", "chains", "--json").out)["chains"]
    t.works([c["loads"] for c in told] == [False, True, True] and told[0]["error"]["line"] == 9, "for programs", told)
    named = home.kraft("admin", "chains", "broken")
    t.works(named.code == 3 and "chains/broken.yaml:9:28: unknown key 'tiemout'" in named.err and not named.out, "by name", named)
    unknown = home.kraft("admin", "chains", "nope")
    t.works(unknown.code == 7 and "broken, default, mine" in unknown.err, "what there is", unknown)
    outside = home.kraft("admin", "chains", "../chains/mine")
    t.works(outside.code == 7 and "there is no chain" in outside.err, "an id is no path", outside)


@promise("CFG-11", "one chain is shown by its paths, kinds and bounds")
def _(t):
    home = Home()
    chains(home, mine=MINE)
    shown = home.kraft("admin", "chains", "mine")
    for words in ("build.main.make ", "subprocess  make 'all of it'", "build.fix_loop.main.mend ", "at most 2 attempts",
                  "timeout_minutes 5", "a rejection goes to build"):
        t.works(shown.code == 0 and words in shown.out, words, shown)
    nodes = json.loads(home.kraft("admin", "chains", "--json", "mine").out)["nodes"]
    t.works(nodes[0]["steps"][0]["tasks"][0]["argv"] == ["make", "all of it"] and nodes[0]["fix_attempts"] == 2 and
            nodes[0]["policy"] == {"timeout_minutes": 5.0} and nodes[1]["reject_to"] == "build", "for programs", nodes)


main()
