#!/usr/bin/env python3
"""Odd ends of sessions: results that are no results, clocks that jump, pids of others, files that go, links to the host (RES, LIFE)."""
# kraft-test: timeout 300
from faultlive import *

TEN_YEARS_MS = 10 * 365 * 86400 * 1000


def one_task(home, title, command, **keys):
    """An item whose one task is this command of a shell."""
    chain = home.chain("c" + uuid.uuid4().hex[:6], node("work", task("it", "sh -c '%s'" % command.replace("'", "'\\''"), **keys)), GATE)
    return home.create(title, "--chain", chain)


def session_of(home, item):
    """What the session's folder says: how the command ended."""
    return [s for s in json.loads(home.kraft("view", "sessions", "--json").out) if s["item"] == item and s["purpose"] == "work.main.it"][-1]


# ---- results ----

@wall("RES-01 RES-02", "a result file that is a link to a secret, a pipe, or a directory: no result, no byte of it anywhere, no wait")
def _(t):
    home = Office()
    secret = write(home.root + "/secret", '{"status":"done","concerns":"SECRET-%s"}' % uuid.uuid4().hex)
    word = read(secret).split('"')[-2]
    inside = one_task(home, "inside", 'for f in "ln -sf %s" "mkfifo" "mkdir"; do rm -f $KRAFT_RESULT_PATH; $f $KRAFT_RESULT_PATH && echo yes >>crossed; done 2>said; true' % secret)
    home.kraft("item", "start", inside)
    t.attack(not os.path.exists(home.tree(inside) + "/crossed") and home.status(inside)[2] == "gate", "the worker cannot put another file there", home.show(inside))
    for name, make in (("link", lambda p: os.symlink(secret, p)), ("pipe", os.mkfifo), ("directory", os.mkdir), ("none", lambda p: None),
                       ("good", lambda p: write(p, read(secret)))):
        item = one_task(home, name, "touch here; while ! test -e go; do sleep 0.05; done")
        process = home.kraft("item", "start", item, popen=True)
        t.works(wait_for(lambda: os.path.exists(home.tree(item) + "/here")), name + ": it runs")
        path = "%s/results/%s/%s.json" % (home.run_dir, item, home.show(item)["sessions"][0]["id"])
        os.unlink(path)
        make(path)
        write(home.tree(item) + "/go")
        process.communicate(timeout=20)
        everything = json.dumps(home.show(item)) + home.kraft("view", "events", "--json", "--item", item).out
        if name == "good":
            t.control(word in everything and home.show(item)["sessions"][0]["status"] == "done", "the same as a file is read", everything)
        elif name == "none":
            t.works(home.status(item)[2] == "gate", "no file: the exit code counts", home.show(item))
        else:
            t.attack(word not in everything and home.status(item)[2] == "failed", name + ": no result", everything)
            t.works("result file is of no use" in home.show(item)["reason"], name + ": told", home.show(item)["reason"])


@wall("RES-04", "a result of 20 GB, sparse, and one that is really large: refused, and kraft's memory stays small")
def _(t):
    home = Office()
    sizes = {"sparse": "truncate -s 20G $KRAFT_RESULT_PATH", "real": "head -c %d /dev/zero >$KRAFT_RESULT_PATH" % full(64 << 20, 2 << 30),
             "small": "head -c 1000000 /dev/zero | tr \"\\0\" \" \" >$KRAFT_RESULT_PATH; echo \"{\\\"status\\\":\\\"done\\\"}\" >>$KRAFT_RESULT_PATH"}
    for name, script in sizes.items():
        item = one_task(home, name, script)
        code = ("import os, resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        used = home.host("python3", "-IS", "-c", code, KRAFT, "item", "start", item, timeout=100)
        shown = home.show(item)["sessions"][0]
        if name == "small":
            t.control(shown["status"] == "done", "one of 1 MB counts", shown)
        else:
            t.attack(shown["status"] == "failed" and "larger than 1 MiB" in shown["reason"], name, shown)
        t.works(int(used.out) < (200 << 10) * (20 if b"asan" in BUILD.encode() else 1), name + ": memory", used.out)


@wall("RES-05", "output without end on a small disk: the log stops where the reserve begins, and says so; the session goes on")
def _(t):
    def small(_):
        small_disk(150)
        home = Office()
        result = home.run("sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x; echo; exit 3")
        fs = os.statvfs(home.run_dir)
        stored = sum(os.path.getsize(home.session_folders()[-1] + "/" + n) for n in os.listdir(home.session_folders()[-1]) if n.startswith("log"))
        return [result.code, len(result.raw_out), fs.f_bavail * fs.f_frsize, stored, result.err[-300:]]
    (_, why, told), = each(small, [0])
    t.works(not why, "it ran", why)
    code, passed, left, stored, err = told
    t.works(code == 3 and passed == 50000001, "all of it passes, and its exit code", told)
    t.attack(left >= 100 << 20 and "log" in err, "the log stopped early enough, and that is told", told)
    t.control(0 < stored < 50000000, "what was written before is there", told)


@promise("RES-06", "nothing comes into the log of an item's task after its end, whatever its processes still print")
def _(t):
    home = Office()
    item = one_task(home, "late", "for i in $(seq 50); do (while :; do echo line; sleep 0.01; done) & done; sleep 0.5; echo last")
    home.kraft("item", "start", item)
    t.works(home.status(item)[2] == "gate", "it ends", home.show(item))
    folder = [f for f in home.session_folders() if f.endswith(home.show(item)["sessions"][0]["id"])][0]
    before = read_bytes(folder + "/log")
    time.sleep(0.5)
    t.works(b"line" in before and b"last" in before and read_bytes(folder + "/log") == before, "bounded by its end")


@wall("RES-08", "names with slashes, dots or 300 bytes where kraft makes a path: refused, and nothing is written elsewhere")
def _(t):
    home = Office()
    item = one_task(home, "names", "true")
    home.kraft("item", "start", item)
    names = ["../../out", "/etc/passwd", "a/b", "..", ".", "x" * 300, "a\nb", "../" + item, item + "/../" + item, ".git", "-x"]
    before = {n for n in os.listdir(home.root)} | {n for n in os.listdir(home.home)}
    kept = tree_hash(home.run_dir + "/worktrees")
    for name in names:
        for words in (("run", "--item", name, "--", "true"), ("view", "logs", "--", name), ("view", "show", "--", name), ("item", "start", "--", name),
                      ("item", "remove", "--force", "--", name), ("item", "create", "t", "--chain", name), ("item", "reply", "--body", "b", "--", item, name)):
            done = home.kraft(*words)
            t.attack(done.code != 0, "%r as a name in %s" % (name[:20], " ".join(words[:2])), done)
    t.attack({n for n in os.listdir(home.root)} | {n for n in os.listdir(home.home)} == before, "nothing is written elsewhere")
    t.attack(not changed(kept, tree_hash(home.run_dir + "/worktrees")), "nor here", changed(kept, tree_hash(home.run_dir + "/worktrees")))
    t.works(home.kraft("run", "--item", "a.b-c_1", "--", "true").code == 0, "an ordinary name")
    t.control(os.path.exists(home.host("sh", "-c", "d=%s/worktrees/../../out; mkdir $d && echo $d" % home.run_dir).out.strip()), "such a name would lead out")


@promise("RES-09", "a result and an exit are recorded apart: claims success and fails, writes and is killed, two write at once")
def _(t):
    home = Office()
    good = "echo \"{\\\"status\\\":\\\"done\\\"}\" >$KRAFT_RESULT_PATH; "
    for name, script, status, code, sig in (("claims", good + "exit 7", "done", 7, 0), ("killed", good + "kill -9 $$", "done", 0, 9), ("fails", "exit 7", "failed", 7, 0),
                                            ("half", "printf \"{\\\"status\\\":\\\"do\" >$KRAFT_RESULT_PATH", "failed", 0, 0)):
        item = one_task(home, name, script)
        home.kraft("item", "start", item)
        shown, ended = home.show(item)["sessions"][0], session_of(home, item)
        t.works(shown["status"] == status, name + ": the result", shown)
        t.works((ended["code"] == code or sig) and (ended["signal"] or 0) == sig, name + ": the exit, apart", ended)
    item = one_task(home, "two", "for s in done failed; do (for i in $(seq 300); do echo \"{\\\"status\\\":\\\"$s\\\"}\" >$KRAFT_RESULT_PATH; done) & done; wait")
    home.kraft("item", "start", item)
    t.works(home.show(item)["sessions"][0]["status"] in ("done", "failed"), "two writers: one of them, or none", home.show(item))


# ---- ends ----

@promise("LIFE-17", "a task that is missing or no program is a wrong configuration; one that ran and ended with 125 to 127 or 255 failed")
def _(t):
    home = Office()
    for name, command, status, stop in (("missing", "no-such-program", "config_error", "config"), ("no program", "./README", "config_error", "config"),
                                        ("125", "sh -c 'exit 125'", "failed", "failed"), ("126", "sh -c 'exit 126'", "failed", "failed"),
                                        ("127", "sh -c 'exit 127'", "failed", "failed"), ("255", "sh -c 'exit 255'", "failed", "failed"),
                                        ("signal", "sh -c 'kill -TERM $$'", "failed", "failed"), ("at once", "true", "done", "gate")):
        item = home.create(name, "--chain", home.chain("l" + uuid.uuid4().hex[:6], node("work", task("it", command)), GATE))
        started = home.kraft("item", "start", item)
        shown = home.show(item)
        t.works(shown["sessions"][0]["status"] == status and shown["stop"] == stop, name, shown)
        t.works(len(shown["sessions"]) == 1, name + ": no retry by itself", shown)
        t.works(started.code == (0 if stop == "gate" else 1), name + ": the exit status", started)


@wall("LIFE-08 ITM-06", "a recorded pid that is another process by now gets no signal")
def _(t):
    home = Office()
    item = one_task(home, "pids", "touch here; while ! test -e go; do sleep 0.05; done")
    process = home.kraft("item", "start", item, popen=True)
    t.works(wait_for(lambda: os.path.exists(home.tree(item) + "/here")), "it runs")
    lock = home.run_dir + "/worktrees/%s.host" % item
    pid, start, boot = read(lock).split()
    t.works(int(pid) == process.pid, "the lock names its host", read(lock))
    victim = subprocess.Popen(["sleep", "1000"])
    own = read("/proc/%d/stat" % victim.pid).rsplit(")", 1)[1].split()[19]
    for text in ("%d %s %s\n" % (victim.pid, start, boot), "%d %s %s\n" % (victim.pid, own, "0" * len(boot)), "%d\n" % victim.pid, "-1 0 %s\n" % boot,
                 "1 0 %s\n" % boot, ""):
        with open(lock, "r+") as f:
            f.truncate(0)
            f.write(text)
        paused = home.kraft("item", "pause", item)
        t.attack(paused.code == 5 and victim.poll() is None and process.poll() is None, "%r" % text, paused)
    with open(lock, "r+") as f:
        f.truncate(0)
        f.write("%d %s %s\n" % (victim.pid, own, boot))
    asked = home.kraft("item", "pause", item, popen=True)
    t.control(wait_for(lambda: victim.poll() is not None, 5), "with its own start and this boot it would be the one")
    asked.kill()
    asked.communicate()
    with open(lock, "r+") as f:
        f.truncate(0)
        f.write("%s %s %s\n" % (pid, start, boot))
    t.works(home.kraft("item", "pause", item).code == 0 and process.wait(timeout=20) == 0, "the host is asked by its own")


@promise("LIFE-11", "a cleaner takes files of the run directory in mid-session: it is noticed or does no harm, one host stays one, and it goes on")
def _(t):
    home = Office()
    home.configure(sandbox={"network": {"runtime": {"allow": ["example.com"]}}})
    wait = "touch here; while ! test -e go; do sleep 0.05; done; kraft view show >shown 2>&1; rm here go; git add -A; git commit -qm it"
    for name, take in (("the socket", lambda p: shutil.rmtree(p["sn"])), ("the session's folder", lambda p: shutil.rmtree(p["folder"])),
                       ("the host's lock", lambda p: os.unlink(p["host"])), ("the result", lambda p: os.unlink(p["result"])),
                       ("the session's facts", lambda p: os.unlink(p["folder"] + "/session.json")), ("the item's lock", lambda p: os.unlink(p["lock"]))):
        item = one_task(home, name, wait)
        process = home.kraft("item", "start", item, popen=True)
        t.works(wait_for(lambda: os.path.exists(home.tree(item) + "/here")), name + ": it runs")
        id = home.show(item)["sessions"][0]["id"]
        take({"sn": home.run_dir + "/sn/" + id, "folder": home.run_dir + "/sessions/" + id, "host": home.run_dir + "/worktrees/%s.host" % item,
              "lock": home.run_dir + "/worktrees/%s.lock" % item, "result": home.run_dir + "/results/%s/%s.json" % (item, id)})
        second = home.kraft("item", "start", item) if name != "the session's folder" and name != "the session's facts" else None
        t.works(second is None or (second.code == 1 and process.poll() is None), name + ": no second host", second)
        write(home.tree(item) + "/go")
        out, err = process.communicate(timeout=60)
        status = home.status(item)
        t.works(status[2] == "gate" or (status[0] == "failed" and home.show(item)["reason"]), name + ": through, or it says why", status, out, err)
        if status[2] != "gate":
            write(home.tree(item) + "/go")
            home.kraft("item", "retry", item, "--no-start")
            home.kraft("item", "start", item)
        t.works(home.status(item)[2] == "gate" and home.rev("kraft/" + item), name + ": and on", home.show(item))
        t.note("%s: %s" % (name, status))
    t.works(not os.listdir(home.run_dir + "/sn"), "no channel is left", os.listdir(home.run_dir + "/sn"))


@wall("LIFE-18 CTR-06", "a link in an item's home, worktree or results to a directory of the host: the archive takes the link and leaves what it leads to")
def _(t):
    home = Office()
    victim = home.root + "/victim"
    write(victim + "/sub/file", "kept\n")
    before = tree_hash(victim)
    script = ("ln -s %s $HOME/link; mkdir -p $HOME/deep/er; ln -s %s/sub $HOME/deep/er/link; ln -s %s link; ln -s / root; ln -s .. up; mkdir shut; ln -s %s shut/l; chmod 0 shut"
              % (victim, victim, victim, victim))
    for how in ("prune", "remove"):
        item = one_task(home, how, script)
        home.kraft("item", "start", item)
        place = home.run_dir + "/sandbox-home/" + item
        t.control(os.path.exists(place + "/link/sub/file") and os.path.exists(home.tree(item) + "/link/sub/file"), how + ": the links lead there from the host")
        home.kraft("item", "cancel", item, "--reason", "no")
        done = home.kraft("admin", "prune", "--older-than", "0") if how == "prune" else home.kraft("item", "remove", "--force", item)
        t.works(done.code == 0 and not os.path.lexists(place) and not os.path.lexists(home.tree(item)), how + ": what was the item's is gone", done)
        t.attack(not changed(before, tree_hash(victim)) and os.path.exists(home.repo + "/file0"), how + ": what the links led to is there", changed(before, tree_hash(victim)))


# ---- clocks ----

def jump(offset):
    """In mid-session the time of day moves; a task that is in its time comes out, one that is not is ended in time."""
    home = Ward()
    clock = write(home.root + "/clock", "0")
    env = {"KRAFT_FAULT_CLOCK": clock}
    home.policy(default={"attempts": 3, "wall_clock_s": 3})
    hits = []
    for name, command, end in (("in time", "touch here; sleep 1.2", "gate"), ("for ever", "touch here; sleep 60", "cap")):
        item = one_task(home, name, command)
        write(clock, "0")
        start = time.monotonic()
        process = home.kraft("item", "start", item, popen=True, env=env)
        wait_for(lambda: os.path.exists(home.tree(item) + "/here"))
        os.rename(write(clock + ".new", str(offset)), clock)
        process.communicate(timeout=60)
        took = time.monotonic() - start
        if home.status(item)[2] != end or (end == "cap" and not 2.5 < took < 20):
            raise Failed("%s after %d ms: %r, %.1f s" % (name, offset, home.show(item), took))
        home.nobody(name)
        events = home.events_of(item)
        seqs = [e["seq"] for e in events]
        by_seq = [e["type"] for e in events]
        if seqs != sorted(set(seqs)) or by_seq[-1] not in ("gate_requested", "work_item_needs_human", "node_started", "notify_sent") or by_seq[0] != "work_item_created":
            raise Failed("%s after %d ms: the order: %r" % (name, offset, by_seq))
        moved = events[-1]["ms"] - events[0]["ms"]
        if abs(moved - offset) > 60000:
            raise Failed("the control: the time of day did not jump: %d, %d" % (moved, offset))
        shown = [home.kraft("view", "show", item), home.kraft("view", "list"), home.kraft("view", "events"), home.kraft("view", "sessions")]
        if [s for s in shown if s.code != 0]:
            raise Failed("it cannot be shown: %r" % shown)
        hits.append(name)
    return hits


@promise("LIFE-09", "the time of day jumps by a day and by ten years, both ways, in mid-session: deadlines hold, events stay in order")
def _(t):
    need_points(t)
    jumps = [s * ms for ms in (86400000, TEN_YEARS_MS) for s in (1, -1)]
    done = each(jump, jumps)
    t.works(not [d for d in done if d[1]], "the jumps", *["%s: %s" % (a, why) for a, why, _ in done if why])
    t.works(all(found == ["in time", "for ever"] for _, _, found in done), "each was made", done)


if __name__ == "__main__":
    main()
