#!/usr/bin/env python3
"""The server: items in its queue, and what becomes of them when it or their hosts are killed."""
# kraft-test: timeout 400
import random

from servelive import *

def sleeper(home, name, here, seconds=2):
    shutil.copy2(PROBE, home.repo + "/probe")
    home.own("add", "-A")
    home.own("commit", "-q", "--allow-empty", "-m", "probe")
    return home.chain(name, node("one", task("a", "sh -c 'echo a >>ran; ./probe sleep %s %s; git add -A; git commit -qm a'"
                                             % (seconds, here))), GATE)


@promise("OS-LIM-01 ITM-06 LIFE-01 LIFE-07", "the server killed in the middle: what runs goes on, the next server finds it, and the items complete")
def _(t):
    home = Served()
    home.policy(max_concurrent=8)
    here = mark()
    sleeper(home, "k", here, 3)
    home.serve()
    items = [home.create("item %d" % n, "--chain", "k", "--autostart") for n in range(full(3, 50))]
    t.works(all(home.becomes(i, "running") for i in items[:8]), "they run", [home.status(i) for i in items])
    t.works(wait_for(lambda: marked(here), 20), "and their commands")
    sessions = {i: [s["id"] for s in home.show(i)["sessions"]] for i in items[:8]}
    home.kill_server()
    t.works(home.kraft("admin", "health").code == 6, "no server is there")
    t.works(marked(here), "what runs goes on")
    home.serve()
    told = wait_for(lambda: home.health()["reattach_summary"]["scanned"] and home.health(), 10)
    t.works(told and told["reattach_summary"]["adopted"] == told["reattach_summary"]["scanned"] == min(len(items), 8) and
            told["reattach_summary"]["resumed"] == 0, "the next one finds their hosts", told)
    for i in items:
        t.works(home.becomes(i, "needs you", seconds=120), "it comes to its gate", home.show(i))
        t.works(git(home.repo, "log", "--format=%s", "main..kraft/" + i).split() == ["a"], "its commit is there once")
        t.attack(len(home.show(i)["sessions"]) == 1 and home.show(i)["sessions"][0]["id"] in sessions.get(i, home.show(i)["sessions"][0]["id"]), "nothing was started twice", home.show(i))
        t.works(home.kraft("item", "approve", i).code == 0 and home.becomes(i, "done"), "approved")
    # The control: a host that is killed is not adopted; its task runs again.
    item = home.create("lost", "--chain", "k", "--autostart")
    t.works(wait_for(lambda: marked(here), 20), "another runs")
    home.kill_server()
    os.kill(host_of(home, item), signal.SIGKILL)
    t.works(gone(here, 8), "its host takes it along")
    home.serve()
    told = wait_for(lambda: home.health()["reattach_summary"]["scanned"] and home.health(), 10)
    t.control(told["reattach_summary"]["resumed"] == 1 and told["reattach_summary"]["adopted"] == 0, "it is given a new host", told)
    t.control(home.becomes(item, "needs you") and len(home.show(item)["sessions"]) == 2, "and its task a second session", home.show(item))


@promise("ITM-06 LIFE-01 LIFE-03", "the host of an item killed beside a server, again and again: it goes on by itself")
def _(t):
    home = Served()
    here = mark()
    sleeper(home, "k", here, 1)
    home.serve()
    item = home.create("killed", "--chain", "k", "--autostart")
    for n in range(3):
        t.works(wait_for(lambda: marked(here), 20), "run %d: it runs" % n, home.show(item))
        os.kill(host_of(home, item), signal.SIGKILL)
        t.works(gone(here, 8), "run %d: nothing is left running" % n)
    t.works(home.becomes(item, "needs you"), "it comes to its gate", home.show(item))
    log = git(home.repo, "log", "--format=%s", "main..kraft/" + item).split()
    t.attack(log == ["a"], "its commit is there once", log)
    t.works([s["status"] for s in home.show(item)["sessions"]] == ["unknown"] * 3 + ["done"], "each session is accounted for", home.show(item))
    t.control(home.types(item).count("session_unknown") == 3, "and told", home.types(item))


@promise("ITM-06", "an item that no host stays at stops with the reason, and goes on when a person starts it again")
def _(t):
    home = Served()
    home.chain("k", node("one", task("a", "true")), GATE)
    home.serve()
    item = home.create("cannot", "--chain", "k")
    log = "%s/worktrees/%s.host.log" % (home.run_dir, item)
    os.mkdir(log)
    t.works(home.kraft("item", "start", "-d", item).out.startswith(item), "it is in the queue")
    t.works(home.becomes(item, "failed", seconds=60), "it stops", home.show(item))
    told = home.show(item)
    t.attack(told["stop"] == "infra" and "no host stayed at it" in told["reason"] and "kraft item start" in told["reason"], "with its reason", told)
    other = home.create("can", "--chain", "k", "--autostart")
    t.works(home.becomes(other, "needs you"), "others go on meanwhile")
    os.rmdir(log)
    home.kraft("item", "start", "-d", item)
    t.control(home.becomes(item, "needs you"), "it goes on without what stood in its way", home.show(item))


@promise("ITM-01", "slots: as many items at a time as max_concurrent says, in the order in which they were started")
def _(t):
    home = Served()
    home.policy(max_concurrent=1)
    home.chain("k", node("one", task("a", "sleep 0.7")), GATE)
    home.serve()
    items = [home.create("slot %d" % n, "--chain", "k") for n in range(3)]
    for i in reversed(items):
        told = home.kraft("item", "start", "--detach", i)
        t.works(told.code == 0 and re.match(re.escape(i) + " (queued|running)", told.out), "it is in the queue", told)
    most = 0
    while any(home.words(i) != "needs you" for i in items):
        most = max(most, len([i for i in items if home.words(i) == "running"]))
        time.sleep(0.05)
    t.attack(most <= 1, "never two", most)
    begun = sorted(items, key=lambda i: home.show(i)["sessions"][0]["created_ms"])
    t.works(begun == list(reversed(items)), "in their order", begun, items)
    t.works(all("work_item_queued" in home.types(i) for i in items), "told")
    home.policy(max_concurrent=3)
    t.works(home.kraft("admin", "reload").code == 0, "configuration read again")
    home.chain("l", node("one", task("a", "sleep 3")), GATE)
    more = [home.create("more %d" % n, "--chain", "l", "--autostart") for n in range(3)]
    t.control(wait_for(lambda: all(home.words(i) == "running" for i in more), 20), "three at a time now", [home.status(i) for i in more])


@promise("ITM-01", "an item that depends on others begins when they are done; a person can let it begin without")
def _(t):
    home = Served()
    home.chain("k", node("one", task("a", "true")), GATE)
    first = home.create("first", "--chain", "k")
    second = home.create("second", "--chain", "k", "--depends-on", first[:-1])
    t.attack(home.kraft("item", "start", second).code != 0, "not without a server either")
    told = home.kraft("item", "start", "--detach", second)
    t.attack("waits for item '%s', which is paused" % first in told.err and "unblock" in told.err, "told", told)
    home.serve()
    third = home.create("third", "--chain", "k", "--depends-on", "%s,%s" % (first, second), "--autostart")
    t.attack(home.kraft("item", "start", "-d", second).out.split()[1] == "blocked" and home.words(third) == "blocked", "blocked", home.show(second))
    t.works([d["id"] for d in home.show(third)["depends_on"]] == [first, second], "shown", home.show(third))
    t.works("depends on" in home.kraft("view", "show", third).out, "also to a person")
    time.sleep(1)
    t.attack(not home.show(second)["sessions"] and not home.show(third)["sessions"], "nothing began")
    home.kraft("item", "start", "-d", first)
    t.works(home.becomes(first, "needs you") and home.words(second) == "blocked", "a gate is no end")
    home.kraft("item", "approve", first)
    t.works(home.becomes(second, "needs you"), "it begins when the other is done", home.show(second))
    t.works("work_item_unblocked" in home.types(second) and home.words(third) == "blocked", "told; the next still waits")
    told = home.kraft("item", "unblock", third)
    t.control(told.code == 0 and home.becomes(third, "needs you"), "a person lets it begin without", told, home.show(third))
    t.works("work_item_dependencies_dropped" in home.types(third), "told")
    t.attack(home.kraft("item", "create", "x", "--depends-on", "nothing-here").code != 0, "what is not there is refused")
    home.kraft("item", "cancel", second)
    told = home.kraft("item", "create", "x", "--depends-on", second)
    t.attack(told.code != 0 and "is cancelled" in told.err, "nor waited for when it was given up", told)


@promise("ITM-01", "start, stop, restart, health, reload: one server for a store, told by exit codes; what is wrong in a file changes nothing")
def _(t):
    home = Served()
    t.attack(home.kraft("admin", "health").code == 6 and home.kraft("admin", "stop").code == 6, "none runs: 6")
    home.serve()
    told = home.kraft("admin", "start", *PORT_0)
    t.attack(told.code == 1 and "a server is running already: process %d, %s" % (home.server, home.url) in told.err, "a second one is refused", told)
    taken = home.url.rsplit(":", 1)[1]
    other = Served()
    told = other.kraft("admin", "start", "--port", taken)
    t.attack(told.code == 1 and "another program listens on port " + taken in told.err, "a port that is taken", told)
    t.control(other.serve().health()["pid"] == other.server, "another home has a server of its own")
    told = home.health()
    t.works(told["status"] == "ok" and told["pid"] == home.server, "it answers", told)
    os.kill(home.server, signal.SIGSTOP)
    told = home.kraft("admin", "health")
    os.kill(home.server, signal.SIGCONT)
    t.attack(told.code == 8, "one that does not answer: 8", told)
    t.control(home.kraft("admin", "health").code == 0, "it goes on")
    write(home.config_dir + "/policy.yaml", "default: {attempts: 3, wall_clock_s: 60}\nmax_concurrent: many\n")
    told = home.kraft("admin", "reload")
    t.attack(told.code == 3 and "policy.yaml:2" in told.err, "what does not load is told with its place", told)
    told = home.kraft("admin", "restart", *PORT_0)
    t.attack(told.code == 3 and home.kraft("admin", "health").code == 6, "nor does a server start with it", told)
    os.remove(home.config_dir + "/policy.yaml")
    told = home.kraft("admin", "restart", *PORT_0)
    t.works(told.code == 0 and home.kraft("admin", "health").code == 0, "restarted", told)
    told = home.kraft("admin", "stop")
    t.works(told.code == 0 and home.kraft("admin", "health").code == 6, "stopped", told)
    worker = home.kraft("admin", "stop", env={"KRAFT_SESSION_ID": "x"})
    t.attack(worker.code == 5, "not by a session", worker)
    front = home.kraft(popen=True, env={"KRAFT_PORT": "0"})
    t.works(wait_for(lambda: home.kraft("admin", "health").code == 0, 10), "kraft alone starts one in front")
    front.send_signal(signal.SIGINT)
    out, err = front.communicate(timeout=10)
    t.works(front.returncode in (0, 130) and b"listening on http://127.0.0.1:" in err, "until Ctrl-C", front.returncode, err)


@promise("LIFE-12 LIFE-13 ITM-06", "many items started, paused and killed at random: nothing is left of them, and the server is as it was")
def _(t):
    home = Served()
    home.policy(max_concurrent=6)
    here = mark()
    sleeper(home, "k", here, 0.2)
    home.serve()
    seed = int.from_bytes(os.urandom(4), "big")
    print("# seed %d" % seed)
    dice = random.Random(seed)
    first = home.create("first", "--chain", "k", "--autostart")
    t.works(home.becomes(first, "needs you"), "one to begin with", home.show(first))
    before = size_of(home.server)
    items = [home.create("many %d" % n, "--chain", "k") for n in range(full(16, 100))]
    for n in range(full(60, 600)):
        item = dice.choice(items)
        what = dice.random()
        if what < 0.6:
            home.kraft("item", "start", "--detach", item)
        elif what < 0.8:
            home.kraft("item", "pause", item)
        else:
            try:
                os.kill(host_of(home, item), signal.SIGKILL)
            except (OSError, ValueError, IndexError):
                pass
    for item in items:
        home.kraft("item", "start", "--detach", item)
    for item in items:
        if not home.becomes(item, "needs you", "failed", seconds=60):
            t.works(False, "it comes to its gate, or is given up", home.show(item))
        if home.words(item) == "failed":  # its hosts were killed again and again
            home.kraft("item", "start", "--detach", item)
            t.works(home.becomes(item, "needs you", seconds=60), "it comes to its gate", home.show(item))
    t.works(gone(here, 5), "nothing is left running", marked(here))
    t.works(wait_for(lambda: not [p for p in children(home.server)], 5), "the server has no child", children(home.server))
    after = size_of(home.server)
    t.works(after[0] == before[0], "its descriptors are as many as before", before, after)
    t.works(after[1] <= before[1] * 1.05 + 256, "its memory too", before, after)
    mounts = [l for l in read("/proc/self/mountinfo").splitlines() if home.root in l]
    t.works(not mounts and not os.listdir(home.run_dir + "/sn"), "no mount and no socket is left", mounts)


def size_of(pid):
    """Descriptors, and KiB of memory."""
    return len(os.listdir("/proc/%d/fd" % pid)), int(re.search(r"VmRSS:\s+(\d+)", read("/proc/%d/status" % pid)).group(1))


@promise("OS-LIM-01 LIFE-04 LIFE-10", "stop leaves what runs alone, stop --sessions pauses it; a server that is held for a while loses nothing")
def _(t):
    home = Served()
    here = mark()
    sleeper(home, "k", here, 4)
    home.serve()
    item = home.create("held", "--chain", "k", "--autostart")
    t.works(wait_for(lambda: marked(here), 20), "it runs")
    os.kill(home.server, signal.SIGSTOP)
    later = home.create("later", "--chain", "k", "--autostart")
    t.works(home.words(later) == "queued" and marked(here), "what runs goes on, the next waits")
    os.kill(home.server, signal.SIGCONT)
    t.works(home.becomes(later, "running"), "and begins")
    t.works(home.kraft("admin", "stop").code == 0 and marked(here), "stop leaves what runs alone")
    t.control(home.becomes(item, "needs you"), "it comes to its gate", home.show(item))
    home.serve()
    home.kraft("item", "retry", item, "--path", "one")
    again = home.create("again", "--chain", "k", "--autostart")
    t.works(home.becomes(again, "running") and wait_for(lambda: marked(here), 20), "another")
    told = home.kraft("admin", "stop", "--sessions")
    t.attack(told.code == 0 and again + " paused" in told.out and gone(here, 5) and home.words(again) == "paused", "with --sessions it is paused", told)


@promise("ITM-01", "logs -f ITEM shows one session after the other until nobody is at it; the item may be left out of it and shortened")
def _(t):
    home = Served()
    home.chain("k", node("one", task("a", "sh -c 'echo first; sleep 1'"), task("b", "sh -c 'sleep 0.5; echo second'")), GATE)
    home.serve()
    item = home.create("told", "--chain", "k", "--autostart")
    t.works(home.becomes(item, "running"), "it runs")
    told = home.kraft("view", "logs", "-f", item[:-1], timeout=30)
    t.works(told.code == 0 and [l for l in told.lines if not l.startswith("[kraft]")] == ["first", "second"], "both, in order", told)
    t.works(len([l for l in told.lines if l.startswith("[kraft] session ")]) == 2, "each with its session", told)
    told = home.kraft("view", "logs", item)
    t.control(told.lines == ["second"], "without -f the newest", told)
    t.attack(home.kraft("view", "logs", "no-such").code == 7, "what is not there: 7")


def doctor(home):
    return [r for r in json.loads(home.kraft("admin", "doctor", "--json").out)["rows"] if r["name"] == "server"][0]


@promise("OS-LIM-01 LIFE-10", "as part of a service each host is put into a scope of its own, or the log says that it cannot be")
def _(t):
    home = Served()
    home.chain("k", node("one", task("a", "true")), GATE)
    bin_dir = home.root + "/bin"
    os.makedirs(bin_dir)
    write(bin_dir + "/systemd-run", '#!/bin/sh\necho "$@" >>%s/scopes\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n' % home.root, 0o755)
    path = bin_dir + ":" + os.environ["PATH"]
    home.serve(env={"INVOCATION_ID": "0123", "PATH": path})
    item = home.create("scoped", "--chain", "k", "--autostart")
    t.works(home.becomes(item, "needs you"), "it runs", home.show(item))
    told = read(home.root + "/scopes")
    t.works("--user --scope" in told and "item start --hosted " + item in told, "its host was started within a scope", told)
    home.kill_server()
    write(bin_dir + "/systemd-run", "#!/bin/sh\necho 'no bus' >&2; exit 1\n", 0o755)
    home.serve(env={"INVOCATION_ID": "0123", "PATH": path})
    item = home.create("not", "--chain", "k", "--autostart")
    t.works(home.becomes(item, "needs you"), "it runs all the same", home.show(item))
    t.attack("a restart of this service will end what runs" in read(home.run_dir + "/server.log") and "no bus" in read(home.run_dir + "/server.log"), "and the log says so")
    t.attack(doctor(home)["verdict"] == "warn" and "ends what runs" in doctor(home)["detail"], "and the doctor", doctor(home))
    home.kill_server()
    os.remove(home.root + "/scopes")
    home.serve(env={"PATH": path})
    t.works(home.becomes(home.create("shell", "--chain", "k", "--autostart"), "needs you"), "it runs")
    t.control(doctor(home)["verdict"] == "ok" and not os.path.exists(home.root + "/scopes"), "started from a shell it needs none")


if __name__ == "__main__":
    main()
