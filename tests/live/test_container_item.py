#!/usr/bin/env python3
"""Work items of `kind: docker`: an open network, kills by the memory limit, and what stops an item before anything runs."""
# kraft-test: timeout 600
from containerlive import *

# It tells what it was told and what it finds of kraft.
LOOK = r"""cat >"$HOME/told-$(ls "$HOME" | grep -c ^told-)"; { command -v kraft || echo no kraft; ls /opt/kraft/bin 2>/dev/null; env | grep -i _proxy; } >found
git add found; git commit -qm '[1] what is there'; """


class Desk(Box):
    def __init__(self, runtime, **more):
        super().__init__(runtime, **more)
        self.policy(auto_escalate_stuck=False)
        # A busy machine's runtime may answer later than an item waits: asked once, kraft knows it.
        wait_for(lambda: self.run("true").code == 0, 100, 1)

    def data(self, item, kind):
        return [e["data"] for e in self.events_of(item) if e["type"] == kind]

    def told(self, item, number):
        return read("%s/sandbox-home/%s/told-%d" % (self.run_dir, item, number))

    def stopped(self, t, item, name, *words):
        """It stopped as a configuration error that says this, and nothing but its one session was tried."""
        shown = self.show(item)
        t.attack(self.status(item)[0] == "failed" and self.status(item)[2] == "config", name + ": the item stops as a configuration error", shown)
        t.attack(all(w in shown["reason"] for w in words), name + ": and says why", shown["reason"])
        t.attack([s["status"] for s in shown["sessions"]] == ["config_error"], name + ": nothing is tried again, and nothing is mended", shown["sessions"])
        t.works(shown["reason"] in self.kraft("view", "show", item).out.replace("\n", " ") or words[0] in self.kraft("view", "show", item).out, name + ": view show has it")


def mending(command):
    """A chain's node whose failures are mended up to three times."""
    return node("work", task("it", command), fix_loop={"max_attempts": 3, "tasks": [task("mend", "true")]})


@each(promise, "CHN-11", "an open network: the worker is told of no kraft and finds none, reviews are not answered, a turn has no retry", on=(DOCKER,))
def _(t, runtime):
    if not runtime.bridge:
        raise runtimelive.Absent("%s has no open network on this machine" % runtime.name)
    home = Desk(runtime)
    agent = {"id": "do", "kind": "agent", "harness": "codex", "prompt": "Do it."}
    home.chain("c", {"id": "work", "kind": "exec", "tasks": [agent]}, GATE)
    control = home.create("Closed", "--chain", "c", worker=LOOK)
    home.kraft("item", "start", control)
    t.control("kraft item reply" in home.told(control, 0) and "/opt/kraft/bin/kraft" in read(home.tree(control) + "/found") and "127.0.0.1:3128" in read(home.tree(control) + "/found"),
              "under a network policy it is told of kraft, and kraft is there", home.told(control, 0), read(home.tree(control) + "/found"))
    home.configure(sandbox={"network": None, "unrestricted_network": True})
    item = home.create("Open", "--chain", "c", worker=LOOK)
    started = home.kraft("item", "start", item)
    t.works(home.status(item) == ("needs you", "review", "gate"), "it comes to its gate", started, home.show(item))
    told, found = home.told(item, 0), read(home.tree(item) + "/found")
    t.attack("kraft item" not in told and "kraft view" not in told and "an open network" in told and '"[3] ..."' in told and "each review thread" in told, "it is told to say it in commits and result", told)
    t.attack(found == "no kraft\n", "no command of kraft's is inside, and no proxy", found)
    t.works(git(home.repo, "log", "-1", "--format=%s", "kraft/" + item).strip() == "[1] what is there", "its commits come out")
    sessions = len(home.show(item)["sessions"])
    said = json.loads(home.kraft("item", "review", "--json", item, "--outcome", "comment", "--summary", "why?").out)
    t.attack(said["reply_agent"] is False and "unrestricted_network" in said["reply_agent_reason"] and len(home.show(item)["sessions"]) == sessions, "no reply agent", said)
    t.works(["unrestricted_network" in e["reason"] for e in home.data(item, "reply_agent_skipped")] == [True], "the event says why", home.data(item, "reply_agent_skipped"))
    home.chain("f", node("checks", task("it", "false")), {"id": "work", "kind": "exec", "tasks": [agent]}, GATE)
    stuck = home.create("Help", "--chain", "f", worker=LOOK + "kraft item retry >answer 2>&1; echo $? >>answer")
    home.kraft("item", "start", stuck)
    t.works(home.status(stuck)[2] == "failed" and home.kraft("item", "escalate", stuck, "why?").code == 0, "it stopped, and a turn is asked for", home.show(stuck))
    wait_for(lambda: home.show(stuck)["escalation_session_id"] is None and home.show(stuck)["display_status"] != "escalated", 30, 0.1)
    t.attack("You are asked to help" in home.told(stuck, 0) and "retry" not in home.told(stuck, 0), "the turn is told of no retry", home.told(stuck, 0))
    t.attack(read(home.tree(stuck) + "/answer").split()[-1] == "127" and home.status(stuck)[2] == "failed", "and has none", home.show(stuck))


@each(promise, "CHN-11", "an open network: an agent that would have to ask kraft is refused before anything runs, and says what to do")
def _(t, runtime):
    home = Desk(runtime)
    home.configure(sandbox={"network": None, "unrestricted_network": True})
    cases = [("claude", {}, ("it asks kraft", "unrestricted_network", "set 'network' in place of")), ("claude", {"deny_tools": ["Bash"]}, ("it asks kraft",)),
             ("codex", {"deny_tools": ["Bash"]}, ("deny_tools", "unrestricted_network")), ("codex", {"allowed_tools": ["Read"]}, ("allowed_tools",)),
             ("codex", {"grants": ["git-push"]}, ("git-push", "unrestricted_network")), ("cursor", {"deny_tools": ["Bash"]}, ("denies 'Bash'",))]
    for number, (harness, policy, words) in enumerate(cases):
        home.chain("c", {"id": "work", "kind": "exec", "policy": policy, "tasks": [{"id": "do", "kind": "agent", "harness": harness, "prompt": "Do it."}]}, GATE)
        item = home.create("Refused %d" % number, "--chain", "c")
        home.kraft("item", "start", item)
        home.stopped(t, item, "%s with %r" % (harness, policy), *words)
    home.chain("c", {"id": "work", "kind": "exec", "tasks": [{"id": "do", "kind": "agent", "harness": "codex", "prompt": "Do it."}]}, GATE)
    item = home.create("Not refused", "--chain", "c")
    home.kraft("item", "start", item)
    t.control("has no login" in home.show(item)["reason"], "codex without a policy of tools comes as far as its login", home.show(item)["reason"])
    home.configure(sandbox={"network": None})
    closed = home.create("Neither", "--chain", home.chain("t", node("work", task("it", "true")), GATE))
    home.kraft("item", "start", closed)
    home.stopped(t, closed, "neither network nor unrestricted_network", "sets no 'network'", "unrestricted_network: true")


@each(promise, "LIM-02", "a kill by the memory limit stops the item as a configuration error that names it, unless the task left a result", on=(DOCKER, PODMAN))
def _(t, runtime):
    home = Desk(runtime)
    write(home.repo + "/hungry.py", "x = [bytearray(1 << 20) for _ in range(300)]\n")
    write(home.repo + "/result.sh", "echo '{\"status\": \"done\"}' >$KRAFT_RESULT_PATH; python3 hungry.py\n")
    home.own("add", "-A")
    home.own("commit", "-qm", "hungry")
    home.configure(sandbox={"resources": {"memory": "64m"}})
    home.chain("c", mending("python3 hungry.py"), GATE)
    item = home.create("Hungry", "--chain", "c")
    home.kraft("item", "start", item)
    home.stopped(t, item, "a task", "killed by its memory limit of 64m", "'kraft item retry'")
    events = home.data(item, "sandbox_oom_killed")
    session = home.show(item)["sessions"][0]["id"]
    t.works([(e["session_id"], e["memory"], e["confirmed"]) for e in events] == [(session, 64 << 20, True)], "the event", events)
    home.chain("r", node("work", task("it", "sh result.sh")), GATE)
    left = home.create("Result", "--chain", "r")
    home.kraft("item", "start", left)
    t.works(home.status(left) == ("needs you", "review", "gate"), "a result of its own wins", home.show(left))
    t.works(len(home.data(left, "sandbox_oom_killed")) == 1, "and the event is there", home.events_of(left))
    home.configure(sandbox={"resources": {"memory": "64m"}}, setup_command="python3 hungry.py")
    setup = home.create("Setup", "--chain", "c")
    home.kraft("item", "start", setup)
    home.stopped(t, setup, "the setup command", "the setup command of", "memory limit of 64m")
    home.configure(sandbox={"resources": {"memory": "1g"}}, setup_command="python3 hungry.py")
    again = home.kraft("item", "retry", item)
    t.control(wait_for(lambda: home.status(item) == ("needs you", "review", "gate"), 60, 0.2), "with more memory the same item goes on", again, home.show(item))


@each(promise, "CTR-09 CTR-13 LIM-01", "what no second try can help stops an item once: a command that the image lacks, an image that nobody has, a runtime that does not answer, a limit that it cannot hold")
def _(t, runtime):
    home = Desk(runtime)
    home.chain("c", mending("true"), GATE)
    home.chain("absent", mending("no-such-program --now"), GATE)
    missing = home.create("Absent", "--chain", "absent")
    home.kraft("item", "start", missing)
    home.stopped(t, missing, "a command that the image lacks", "no-such-program")
    items = [missing]

    def stops(name, *words):
        item = home.create(name, "--chain", "c")
        home.kraft("item", "start", item)
        home.stopped(t, item, name, *words)
        items.append(item)

    home.configure(sandbox={"image": "127.0.0.1:1/nobody/has:it"})
    stops("an image that nobody has", "127.0.0.1:1/nobody/has:it")
    home.configure()
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": "/nowhere/docker"}), 0o600)
    stops("a runtime that is not there", "/nowhere/docker")
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli}), 0o600)
    if runtime.is_rootless and cgroup_v1():
        home.configure(sandbox={"resources": {"memory": "64m"}})
        stops("a limit that cannot be held", "memory")
    home.configure()
    with serve(home):
        time.sleep(3)
        t.attack([len(home.show(item)["sessions"]) for item in items] == [1] * len(items), "a server tries none of them again by itself", [home.paths(i) for i in items])
        for item in items[1:]:
            home.kraft("item", "retry", item)
            t.control(wait_for(lambda: home.status(item) == ("needs you", "review", "gate"), 60, 0.2), "when it is mended, a person's retry goes on", home.show(item))
    t.works(home.empty(), "no container is left", home.containers())


if __name__ == "__main__":
    main()
