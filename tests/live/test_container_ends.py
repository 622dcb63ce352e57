#!/usr/bin/env python3
"""`kind: docker`: however a session's container ends, none is left; and the limits that end one."""
# kraft-test: timeout 900
import itertools
import random

from containerlive import *

def client_of(process):
    """The runtime's CLI below a kraft, while it runs."""
    return next((p for p in children(process.pid) if os.path.basename(command_of(p)[0]) in (b"docker", b"podman")), None)


@each(wall, "CTR-05 LIFE-02", "kraft, launcher, client and way out killed in every order: no container is left, and no other home's ends", on=EVERYWHERE)
def _(t, runtime):
    other = Box(runtime)
    theirs, _ = other.sleeping()
    stays = other.containers()
    home = Box(runtime)
    home.ok("true")
    try:
        orders = list(itertools.permutations(("kraft", "launcher", "egress")))
        for order in orders if ALL else orders[::2]:
            process, here = home.sleeping()
            launcher = launcher_of(process)
            pids = {"kraft": process.pid, "launcher": launcher, "egress": next((p for p in children(process.pid) if b"egress" in command_of(p)[0]), None)}
            for who in order:
                with contextlib.suppress(ProcessLookupError, TypeError):
                    os.kill(pids[who], signal.SIGKILL)
            process.communicate()
            t.attack(gone(here, 10), "%s: nothing of it runs" % (order,))
            t.attack(home.empty(), "%s: and no container is left" % (order,), home.containers())
        for delay in [random.uniform(0, 1.2) for _ in range(full(6, 40))]:
            here = mark()
            process = home.start("sleep", "300", here)
            time.sleep(delay)
            victim = client_of(process) if random.random() < 0.5 else None
            os.kill(victim or process.pid, signal.SIGKILL)
            process.kill()
            process.communicate()
            t.attack(gone(here, 20), "killed after %.2f s: nothing of it runs" % delay)
        t.works(home.run("true").code == 0, "the next one starts")
        t.attack(home.empty(), "and what was left is gone", home.containers())
        left = os.path.join(home.run_dir, "sandbox-client")
        t.attack(not os.path.isdir(left) or wait_for(lambda: not os.listdir(left), 5), "with its folders", os.path.isdir(left) and os.listdir(left))
        t.attack(other.containers() == stays and theirs.poll() is None, "the other home's goes on", other.containers())
    finally:
        end(theirs)
    t.works(other.empty(), "until it is ended itself", other.containers())
    # As a launch that was killed between the making of its container and its start leaves it.
    session = os.path.basename(home.session_folders()[-1])
    os.makedirs("%s/sandbox-client/kraft-%s" % (home.run_dir, session), 0o700)
    aside = mark()
    runtime.call("create", "--name", "kraft-" + session, "--label", "kraft.home=" + home.kraft_home, "--label", "kraft.session=" + session, "--network", "none", home.image, "true")
    runtime.call("create", "--name", aside, "--label", "kraft.home=" + home.kraft_home + "2", "--label", "kraft.session=" + session, "--network", "none", home.image, "true")
    try:
        t.control(len(home.containers()) == 1, "one that was left is seen")
        home.serve()
        t.attack(home.empty(20), "a server's start takes it away", home.containers())
        t.attack(runtime.containers(home.kraft_home + "2") == [aside], "and not one of a home with a longer name")
    finally:
        home.kill_server()
        runtime.call("rm", "-f", aside, ok=False)


@each(wall, "CTR-05 LIFE-02", "the server, the item's host and the launcher killed in every order: the item goes on, one container at a time, none is left")
def _(t, runtime):
    home = Box(runtime, test_command="true")
    home.chain("c", node("work", task("it", "sh -c 'test -e $HOME/second || { touch $HOME/second; echo up; exec sleep 300; }; echo done'")), GATE)
    orders = list(itertools.permutations(("server", "host", "launcher")))
    for order in orders if ALL else orders[1::3]:
        home.serve()
        item = home.create("Killed in order", "--chain", "c", "--autostart")
        t.works(wait_for(home.containers, 30, 0.1), "%s: it runs" % (order,), home.show(item))
        wait_for(lambda: os.path.exists("%s/sandbox-home/%s/second" % (home.run_dir, item)), 20)
        host = host_of(home, item)
        pids = {"server": home.server, "host": host, "launcher": next((p for p in children(host) if command_of(p)[1:2] == [b"launch"]), None)}
        for who in order:
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pids[who], signal.SIGKILL)
        home.kill_server()
        home.serve()
        t.attack(home.becomes(item, "needs you", seconds=60), "%s: it comes to its stop" % (order,), home.show(item))
        t.attack(home.empty(), "%s: nothing is left" % (order,), home.containers())
        home.kill_server()
    t.control(True, "as the first look says, there was one")


CPU = r"""
import os, time, multiprocessing
def burn():
    end = time.monotonic() + 2
    while time.monotonic() < end: pass
them = [multiprocessing.Process(target=burn) for _ in range(2)]
[p.start() for p in them]; [p.join() for p in them]
print(round(sum(os.times()[2:4]), 2))
"""
FORK = r"""
import os, signal
made = []
try:
    while len(made) < 200:
        pid = os.fork()
        if not pid: signal.pause()
        made.append(pid)
except OSError as e: print(e.strerror)
print(len(made))
[os.kill(p, 9) for p in made]
"""
HUNGRY = "b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('had it')"


def cgroup_files(pid):
    """What its control groups say, by file name: cgroup v1 beside v2."""
    found = {}
    for line in read("/proc/%d/cgroup" % pid).splitlines():
        _, controllers, path = line.split(":", 2)
        top = "/sys/fs/cgroup/" + controllers + path if controllers else "/sys/fs/cgroup" + path
        for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max", "memory.max", "memory.swap.max", "cpu.max"):
            with contextlib.suppress(OSError):
                found[name] = read(top + "/" + name).strip()
    return found


@each(wall, "CTR-06 LIM-01 LIM-02", "cpu, memory and processes end at their limits; the kill by memory is told by its name", on=(DOCKER, PODMAN))
def _(t, runtime):
    home = Box(runtime, sandbox={"resources": {"cpu": 0.5, "memory": "64m", "pids": 50}})
    process, here = home.sleeping()
    try:
        told = home.runtime.inspect(home.running())["HostConfig"]
        t.works((told["NanoCpus"] or told.get("CpuQuota", 0) * 10000, told["Memory"], told["PidsLimit"]) == (500000000, 64 << 20, 50), "the runtime was told", told)
        t.works(told["MemorySwap"] in (64 << 20, 0, -1) and (told["MemorySwap"] == 64 << 20 or not os.path.exists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")), "swap is held to the same", told["MemorySwap"])
        inforce = cgroup_files(max(marked(here)))
        t.attack(inforce.get("cpu.cfs_quota_us", "").isdigit() and int(inforce["cpu.cfs_quota_us"]) * 2 == int(inforce["cpu.cfs_period_us"]) or inforce.get("cpu.max", "").split()[:1] == ["50000"], "half of a processor", inforce)
        t.attack("50" == inforce.get("pids.max") and str(64 << 20) in (inforce.get("memory.limit_in_bytes"), inforce.get("memory.max")), "and it is in force", inforce)
    finally:
        end(process)
    burnt = home.py(CPU, timeout=60)
    t.attack(burnt.code == 0 and float(burnt.out) < 1.6, "two busy ones get half of one processor: about 1 s of 2", burnt)
    forked = home.py(FORK)
    t.attack(forked.code == 0 and int(forked.lines[-1]) < 50 and len(forked.lines) == 2, "processes end at the limit", forked)
    killed = home.py(HUNGRY)
    t.attack(killed.code == 137 and "had it" not in killed.out and "memory" in killed.err, "memory too, with a word", killed)
    events = home.session_events("sandbox_oom_killed")
    t.attack(len(events) == 1 and events[0]["data"].get("confirmed") is True, "and an event", events)
    t.works(home.py("print(len(bytearray(1 << 20)))").code == 0, "the next session is well")
    free = Box(runtime, sandbox={"resources": {}})
    t.control("had it" in free.py(HUNGRY).out, "without a limit it has it")
    t.control(free.py(FORK).out.strip() == "200", "and its processes")
    t.note("two busy ones without a limit had %s s of 2, beside what this machine did else" % free.py(CPU, timeout=60).out.strip())
    process, here = free.sleeping()
    try:
        inforce = cgroup_files(max(marked(here)))
        t.works(inforce.get("pids.max") == "4096", "4096 processes are the default", inforce)
        t.control(inforce.get("cpu.cfs_quota_us") == "-1" or inforce.get("cpu.max", "").startswith("max"), "and no processor's share is", inforce)
    finally:
        end(process)


@each(wall, "LIM-01 CTR-06", "a limit that rootless podman cannot enforce on cgroup v1 refuses the launch, by its name", on=(ROOTLESS,))
def _(t, runtime):
    enforced = not cgroup_v1()
    home = Box(runtime)
    for key, value in (("cpu", 0.5), ("memory", "64m"), ("pids", 50)):
        home.configure(sandbox={"resources": {key: value}})
        result = home.py("import os\n" + {"cpu": CPU, "memory": HUNGRY, "pids": FORK}[key])
        if enforced:
            t.attack({"cpu": result.code == 0 and float(result.lines[-1] if result.lines else 9) < 1.6, "memory": result.code == 137, "pids": result.lines[0:1] != ["200"]}[key], key, result)
        else:
            refused(t, result, key, what="'%s' is refused by name" % key)
            t.attack(home.empty(), "and nothing was started", home.containers())
    home.configure(sandbox={"resources": {}})
    t.works(home.run("echo", "x").code == 0, "without a limit it runs")
    home.configure()
    t.works(home.run("echo", "x").code == 0, "so it does without the key: the default of pids is only where it can be enforced")
    bare = home.bare_run("echo", "x", flags=["--memory", "64m"])
    t.control(enforced or bare.code == 0, "podman by itself only warns, and drops it", bare)


if __name__ == "__main__":
    main()
