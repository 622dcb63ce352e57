#!/usr/bin/env python3
"""kraft admin prune: what ended items left goes, what is still needed stays."""
# kraft-test: timeout 200
import sqlite3

from worklive import *

DAY_MS = 86400000


class Attic(Office):
    """An office whose items can have ended long ago."""

    def work(self, title, script="echo $0 >done", status=None):
        """An item whose one task ran; ended as `status` says ("complete", "cancel"), else at its gate."""
        self.chain("c", node("work", task("it", "sh -c '%s; git add -A; git commit -qm done' %s" % (script.replace("'", "'\\''"), title.replace(" ", "-")))), GATE)
        item = self.create(title, "--chain", "c")
        started = self.kraft("item", "start", item)
        if self.status(item)[0] != "needs you":
            raise Failed("it does not come to its gate: %r" % started)
        if status and self.kraft("item", status, item).code != 0:
            raise Failed("it does not end")
        return item

    def age(self, item, days):
        with sqlite3.connect(self.run_dir + "/orchestrator.db", timeout=10) as db:
            db.execute("UPDATE items SET changed_ms = changed_ms - ? WHERE id = ?", (int(days * DAY_MS), item))

    def left(self, item):
        """Everything below the run directory that is of the item, sessions by what they say of themselves."""
        found = []
        for kind in ("worktrees", "sandbox-git", "sandbox-home", "results"):
            if os.path.isdir("%s/%s" % (self.run_dir, kind)):
                found += ["%s/%s" % (kind, n) for n in os.listdir("%s/%s" % (self.run_dir, kind)) if n.startswith(item)]
        return sorted(found) + self.sessions(item)

    def sessions(self, item):
        return sorted("sessions/" + s["id"] for s in json.loads(self.kraft("view", "sessions", "--json").out) if s["item"] == item)

    def prune(self, *options, code=0):
        done = self.kraft("admin", "prune", "--json", *options)
        if done.code != code:
            raise Failed("prune: %r" % done)
        return json.loads(done.out)


def named(told, removed=True):
    return [i["id"] for i in told["items"] if i["kept"] != removed]


@promise("CTR-06 LIFE-18", "archive removes what one ended item left, abandon ends one and does the same; a link in its home leads nowhere, branches stay")
def _(t):
    home = Attic()
    host = home.root + "/host"
    os.makedirs(host)
    write(host + "/kept", "kept")
    done = home.work("done", status="complete")
    waits = home.work("waits")
    other = home.work("other")
    os.symlink(host, "%s/sandbox-home/%s/link" % (home.run_dir, waits))
    told = home.kraft("item", "archive", waits)
    t.attack(told.code != 0 and "only what has ended" in told.err and home.left(waits), "not what goes on", told)
    t.works(home.kraft("item", "archive", done).code == 0 and not home.left(done), "archived", home.left(done))
    told = home.kraft("item", "abandon", "--reason", "no longer wanted", waits)
    t.works(told.code == 0 and not home.left(waits) and home.show(waits)["status"] == "abandoned", "abandoned", told)
    t.attack(read(host + "/kept") == "kept", "where the link led nothing is touched")
    t.works({"refs/heads/kraft/" + done, "refs/heads/kraft/" + waits} <= set(home.branches()), "branches stay", home.branches())
    t.works([e["type"] for e in home.events_of(waits)][-2:] == ["work_item_abandoned", "work_item_archived"], "told")
    t.works(waits not in home.kraft("view", "list").out and waits in home.kraft("view", "list", "--all").out, "as one that has ended")
    t.control(home.left(other) and home.status(other)[0] == "needs you", "another is as it was")


@promise("CTR-06", "what ended items left is freed: worktree, git directory, home, results and logs; branches stay")
def _(t):
    home = Attic()
    done = home.work("done one", "dd if=/dev/zero of=$HOME/big bs=1M count=3 2>/dev/null; echo x >done", "complete")
    given_up = home.work("given up", status="cancel")
    waits = home.work("waits")
    plain = home.run("sh", "-c", "echo plain >plain; git add -A; git commit -qm plain")
    own = json.loads(home.kraft("item", "list", "--json").out)
    t.works(plain.code == 0 and len(own) == 4, "four items, one of them of kraft run", own)
    before = {item: home.left(item) for item in (done, given_up, waits)}
    ours = [i["item"] for i in own if i["item"] not in before][0]
    plain_sessions = home.sessions(ours)
    t.works(plain_sessions and home.left(ours), "it has sessions as well", home.left(ours))
    t.works({p.split("/")[0] for p in before[done]} == {"worktrees", "sandbox-git", "sandbox-home", "results", "sessions"}, "each left all kinds", before)
    tips = {item: home.rev("kraft/" + item) for item in before}
    refs = git(home.repo, "for-each-ref", "refs/heads")
    nothing = home.kraft("admin", "prune")
    t.works(nothing.code == 0 and "nothing is left of items that ended 30 days ago" in nothing.out, "none is old enough", nothing)
    home.age(done, 31)
    t.works(named(home.prune("--dry-run")) == [done] and named(home.prune("--dry-run", "--older-than", "32")) == [], "old enough for 30 days")
    told = home.prune("--dry-run", "--older-than", "0")
    t.works(sorted(named(told)) == sorted([done, given_up]) and told["dry_run"] and told["bytes"] == sum(i["bytes"] for i in told["items"]), "what would go", told)
    t.works({item: home.left(item) for item in before} == before, "and nothing went")
    t.works(not home.events("work_item_archived"), "nor is it written down")
    size = [i for i in told["items"] if i["id"] == done][0]["bytes"]
    blocks = sum(int(home.host("du", "-s", "--block-size=1", home.run_dir + "/" + p).out.split()[0]) for p in before[done] if not re.search(r"\.(host|lock|json|publish|log)$", p))
    t.works(3 << 20 < size and abs(size - blocks) < 200000, "the space, as du counts it", size, blocks)
    for text, days in (("archive: {after_days: 40}\n", 40), ("archive: {after_days: 20}\n", 20), ("archive: {after_days: 0}\n", 30)):
        write(home.config_dir + "/policy.yaml", "default: {attempts: 3, wall_clock_s: 3600}\n" + text)
        told = home.prune("--dry-run")
        t.works(told["older_than_days"] == days and named(told) == ([done] if days < 31 else []), "policy.yaml: " + text, told)
    said = home.kraft("admin", "prune", "--older-than", "0")
    t.works(said.code == 0 and re.search(r"MiB +%s: worktree, home, \d sessions?\n" % done, said.out) and given_up in said.out and
            re.fullmatch(r"\d+\.\d MiB +freed of 2 items", said.lines[-1]), "what went", said)
    t.works(home.left(done) == [] and home.left(given_up) == [], "all of it", home.left(done), home.left(given_up))
    t.works(home.left(waits) == before[waits], "what goes on has all of its own")
    t.works({item: home.rev("kraft/" + item) for item in before} == tips and git(home.repo, "for-each-ref", "refs/heads") == refs, "every branch is there")
    left = json.loads(home.kraft("item", "list", "--json").out)
    t.works(len(left) == 2 and home.sessions(ours) == plain_sessions and read(home.tree(ours) + "/plain") == "plain\n", "and the item of kraft run", left)
    t.works(not [line for line in git(home.repo, "worktree", "list", "--porcelain").splitlines() if done in line], "git has no worktree of it")
    archived = home.events("work_item_archived")
    t.works(sorted(e["item"] for e in archived) == sorted([done, given_up]) and all(e["data"] == {"by": "human", "reason": "prune"} for e in archived), "written down", archived)
    t.works(home.show(done)["display_status"] == "done" and home.kraft("view", "list", "--all").code == 0, "its record is there")
    again = home.prune("--older-than", "0")
    t.works(again["items"] == [] and len(home.events("work_item_archived")) == 2, "once", again)
    t.works(home.kraft("item", "approve", waits).code == 0 and home.settled(waits)[0] == "done", "what goes on goes on")
    for words in (("--older-than", "x"), ("--older-than", "-1"), ("extra",)):
        t.works(home.kraft("admin", "prune", *words).code == 2, "usage: %s" % (words,))
    carried = home.kraft("admin", "prune", env={"KRAFT_SESSION_ID": "0123456789abcdef"})
    t.works(carried.code == 5 and "for a person" in carried.err, "not for a session", carried)


@wall("CTR-06 LIFE-02", "commits that did not come out, and what a live process holds, stay and are named")
def _(t):
    home = Attic()
    pending, busy, hosted, free = (home.work(name, status="complete") for name in ("pending", "busy", "hosted", "free"))
    before = {}
    # A commit that kraft was killed over: in the private git directory, and nowhere else.
    here = mark()
    write(home.tree(pending) + "/late", "late\n")
    shutil.copy2(PROBE, home.tree(pending) + "/probe")
    process = home.kraft("run", "--item", pending, "--keep", "--", "sh", "-c", "git add late; git commit -qm late; ./probe sleep 60 " + here, popen=True)
    t.works(wait_for(lambda: marked(here)), "it has committed")
    time.sleep(0.5)
    process.kill()
    process.communicate()
    t.works(gone(here), "and is gone")
    there = mark()
    shutil.copy2(PROBE, home.tree(busy) + "/probe")
    running = home.kraft("run", "--item", busy, "--keep", "--", "./probe", "sleep", "60", there, popen=True)
    t.works(wait_for(lambda: len(marked(there)) > 1), "a session runs")
    lock = subprocess.Popen(["/usr/bin/python3", "-c", "import fcntl, struct, sys, time\nf = open(sys.argv[1], 'r+')\n"
                             "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\nprint('held', flush=True)\ntime.sleep(60)",
                             home.run_dir + "/worktrees/%s.host" % hosted], stdout=subprocess.PIPE)
    t.works(lock.stdout.readline() == b"held\n", "a host holds its lock")
    try:
        before = {item: home.left(item) for item in (pending, busy, hosted)}
        told = home.prune("--dry-run", "--older-than", "0")
        t.works(named(told) == [free] and sorted(named(told, False)) == sorted(before), "told before", told)
        told = home.prune("--older-than", "0")
        t.attack(sorted(named(told, False)) == sorted(before) and {item: home.left(item) for item in before} == before, "they stay", told)
        reasons = {i["id"]: i["reason"] for i in told["items"]}
        t.works("commits" in reasons[pending] and "--item " + pending in reasons[pending] and "a process" in reasons[busy] and "a process" in reasons[hosted] and
                reasons[free] is None, "and it says why", reasons)
        t.works(home.left(free) == [] and named(told) == [free], "the one that may go goes", told)
        t.works([e["item"] for e in home.events("work_item_archived")] == [free], "only that is written down")
        said = home.kraft("admin", "prune", "--older-than", "0")
        t.works(said.code == 0 and said.lines[-1].endswith("of 0 items, 3 kept") and all("kept        %s: " % i in said.out for i in before), "for a person", said)
    finally:
        for process in (running, lock):
            process.kill()
            process.communicate()
    t.works(gone(there), "the session has ended")
    brought = home.kraft("run", "--item", pending, "--keep", "--", "true")
    t.works(brought.code == 0 and "late" in git(home.repo, "log", "--format=%s", "kraft/" + pending), "the commit comes out", brought)
    told = home.prune("--older-than", "0")
    t.control(sorted(named(told)) == sorted(before) and not any(home.left(i) for i in before), "then nothing holds them", told)


@promise("CTR-06", "logs that are left alone, a worktree that is left alone, an item that never ran, and hostile trees")
def _(t):
    home = Attic()
    logs = home.work("logs only", status="complete")
    t.works(home.kraft("item", "remove", logs).code == 0 and [p.split("/")[0] for p in home.left(logs)] == ["sessions"] * len(home.left(logs)), "removed by hand", home.left(logs))
    never = home.create("never ran")
    home.kraft("item", "cancel", never)
    outside = home.root + "/outside"
    write(outside + "/precious", "x" * (4 << 20))
    deep = "d=$HOME; for i in $(seq 30); do mkdir -p $d/deeper; d=$d/deeper; done; mkdir $HOME/shut; echo x >$HOME/shut/in; chmod 0 $HOME/shut;" \
           " ln -s %s $HOME/link; ln -s / root; mkfifo $HOME/pipe; echo y >$HOME/one; ln $HOME/one $HOME/two; echo x >done" % outside
    nasty = home.work("nasty", deep, "complete")
    told = home.prune("--dry-run", "--older-than", "0")
    sizes = {i["id"]: i["bytes"] for i in told["items"]}
    t.works(sorted(named(told)) == sorted([logs, nasty]) and sizes[nasty] < 2 << 20, "what is behind a link does not count", told)
    told = home.prune("--older-than", "0")
    t.works(sorted(named(told)) == sorted([logs, nasty]) and not home.left(logs) and not home.left(nasty), "all of it goes", told, home.left(nasty))
    t.works(os.path.getsize(outside + "/precious") == 4 << 20, "and nothing else")
    t.works(home.kraft("view", "show", logs).code == 0 and home.kraft("view", "watch", "--once").out == "(nothing)\n", "they can still be looked at")


@promise("CTR-06", "killed at any moment, the next one finishes; two at once do no harm")
def _(t):
    home = Attic()
    for n in range(full(3, 12)):
        item = home.work("again %d" % n, status="complete")
        tip = home.rev("kraft/" + item)
        process = home.kraft("admin", "prune", "--older-than", "0", popen=True)
        time.sleep(0.002 + 0.004 * n)
        process.kill()
        process.communicate()
        pair = [home.kraft("admin", "prune", "--older-than", "0", popen=True) for _ in range(2)]
        said = [p.communicate(timeout=60) for p in pair]
        t.works(all(p.returncode == 0 for p in pair), "run %d: both end well" % n, said)
        t.works(home.prune("--older-than", "0")["items"] == [] and home.left(item) == [] and home.rev("kraft/" + item) == tip, "run %d: all is gone" % n, home.left(item))


if __name__ == "__main__":
    main()
