#!/usr/bin/python3
"""Agents on macOS, as far as Linux can show it (maclive.py): the real claude with the model of the tests, through the session's
proxy on loopback and kraft's gate, to the approved gate of an item. KRAFT_BUILD=build tests/live/test_macos_agent.py [words]"""
# kraft-test: timeout 300
import egresslive  # first: it starts this program again in the tests' network
from claudelive import *
from maclive import *


class MacDesk(Mac, Desk):
    """A desk on a Mac."""

    def __init__(self, *steps, **more):
        if not FAULT_BUILD:
            raise Skipped("no build with fault points: ./dev build clang makes one")
        Desk.__init__(self, "claude", *steps, **more)
        self.stand_in = self.root + "/sandbox-exec"
        self.extra_env["KRAFT_PRETEND_MACOS"] = self.stand_in
        self.stand()


@promise("MAC-01 MAC-03 ITM-01 CHN-09", "claude on a Mac: an item from its creation to its approved gate, through the proxy on loopback and kraft's own gate")
def _(t):
    desk = MacDesk(layer={"ask_tools": ["Bash"], "grants": ["git-commit"]})
    desk.agents_chain(prompt="Write the last word.")
    item = desk.create("Say goodbye", "--chain", "agents")
    file0 = desk.tree(item) + "/file0"
    desk.plays(Step(tool("Read", {"file_path": file0}), asked("Say goodbye")),
               Step(tool("Edit", {"file_path": file0, "old_string": "\n0\n", "new_string": "\n0\ngoodbye\n"}), result(ok=True)),
               Step(bash("touch denied"), result(ok=True)),
               Step(bash("git commit -am 'say goodbye'"), result(ok=False, holds="not that")),
               Step(desk.on_result("Read"), result(ok=True)),
               Step(desk.on_result("Write", {"status": "done_with_concerns", "concerns": "look at it"}), result(ok=True)),
               Step(text("it is done"), result(ok=True)))
    started = desk.kraft("item", "start", "--detach", item)
    desk.kraft("item", "deny", desk.open_ask("touch denied")["id"], "--note", "not that")
    t.works(started.code == 0 and desk.settled(item, 120) == ("needs you", "review", "gate"), "it comes to its gate", started, desk.show(item))
    desk.by_the_script(t)
    t.works("-f" in desk.calls("words")[-1].splitlines(), "through sandbox-exec", desk.calls("words"))
    t.attack(not os.path.exists(desk.tree(item) + "/denied"), "what was denied is not done", os.listdir(desk.tree(item)))
    t.control("goodbye" in read(file0) and "say goodbye" in git(desk.repo, "log", "--format=%s", "kraft/" + item), "what was not is", read(file0))
    session = desk.show(item)["sessions"][0]
    t.works(session["status"] == "done_with_concerns" and "look at it" in session["reason"], "with its result, by its own tool for writing", session)
    t.works(desk.kraft("item", "approve", item).code == 0 and desk.settled(item) == ("done", None, None), "approved, it is done", desk.status(item))


@promise("MAC-01 CHN-08", "codex on a Mac is refused by name, since its hook cannot be asked there: nothing but its version is")
def _(t):
    home = Mac(env_passthrough=["CODEX_API_KEY"])
    write(home.root + "/tool/bin/codex", "#!/bin/sh\necho \"$*\" >>%s/ran\necho codex-cli 0.171.0\n" % home.root, 0o755)
    done = home.kraft("run", "--harness", "codex", "do it", env={"PATH": home.root + "/tool/bin:/usr/bin:/bin", "CODEX_API_KEY": "sk-of-the-tests"})
    t.works(done.code == 125 and "cannot be asked on macOS" in done.err and "kind: docker" in done.err, "refused", done)
    t.attack(read(home.root + "/ran") == "--version\n", "its version was asked", read(home.root + "/ran"))


main()
