#!/usr/bin/env python3
"""Every named step of an item's life as the last one of some process: the item goes on, nothing is lost or doubled (LIFE, ITM-06)."""
# kraft-test: timeout 600
from faultlive import *

SEED = int(os.environ.get("KRAFT_SEED") or random.SystemRandom().randrange(1 << 32))
CHANCE = random.Random(SEED)

# Who comes to a step, when it is not the host: the words of that command.
BY = {"item_filed": "create", "approved": "approve", "completed": "approve"}
BY.update({name: "prune" for name in ("private_removed", "tree_removed", "tree_forgotten", "item_removed", "sessions_removed", "archived")})
STEPS = points()
PHASES = ("create", "start", "approve", "prune")
WORDS = {"start": ("item", "start"), "approve": ("item", "approve"), "prune": ("admin", "prune", "--older-than", "0")}


def phase(step):
    return BY.get(step, "start")


def run_killed(home, item, step):
    """The command that comes to this step; then its process is dead, and nobody else is there."""
    kind = phase(step)
    if kind == "create":
        home.file(env=home.fault(step))
    else:
        home.again(item)
        home.kraft(*WORDS[kind], *([item] if kind != "prune" else []), env=home.fault(step))
    home.was_hit(step)
    home.nobody("killed at " + step)


def live(steps):
    """One item's life in which a process is killed at each of these steps, in their order."""
    home = Ward()
    what = "killed at " + ", ".join(steps)
    of = {p: [s for s in steps if phase(s) == p] for p in PHASES}
    for step in of["create"]:
        run_killed(home, None, step)
    if not of["create"]:
        home.file()
    item = home.the_item()
    for step in of["start"]:
        before = home.known(item)
        run_killed(home, item, step)
        home.keeps(item, before, "killed at " + step)
    home.finish(item, what)
    home.check(item, what)
    for step in of["approve"]:
        before = home.known(item)
        run_killed(home, item, step)
        home.keeps(item, before, "killed at " + step)
    if home.status(item)[2] == "gate":
        home.kraft("item", "approve", item)
    elif home.status(item)[0] != "done":
        home.kraft("item", "start", item)
    home.nobody(what)
    if home.status(item)[0] != "done":
        raise Failed("%s: it is not complete: %r" % (what, home.show(item)))
    home.check(item, what)
    tip = home.rev("kraft/" + item)
    for step in of["prune"]:
        run_killed(home, item, step)
    pruned = home.kraft("admin", "prune", "--older-than", "0")
    names = [n for kind in ("worktrees", "sandbox-git", "sandbox-home", "results", "sessions") for n in os.listdir("%s/%s" % (home.run_dir, kind))]
    archived = [e for e in home.events_of(item) if e["type"] == "work_item_archived"]
    if names or len(archived) != 1 or home.rev("kraft/" + item) != tip:
        raise Failed("%s: the archive: %r %r %r" % (what, pruned, names, archived))
    if git(home.repo, "worktree", "list", "--porcelain").count("worktree ") != 1 or home.branches("refs/kraft/base"):
        raise Failed("%s: the repository still knows the worktree" % what)
    return home.hits


def failures(done):
    return ["%s: %s" % (argument, why) for argument, why, _ in done if why]


@promise("ITM-06 LIFE-01", "killed at each step from filing to the archive: started again, nothing is lost, doubled or left, and it completes")
def _(t):
    need_points(t)
    t.works(len(STEPS) >= 25 and len(set(STEPS)) == len(STEPS), "the steps", STEPS)
    t.note("seed %d" % SEED)
    lives, ways = full(14, 14), [STEPS[n::14] for n in range(14)]
    CHANCE.shuffle(ways)
    ways += full([], [[s] for s in STEPS])
    done = each(live, ways[:lives] if not ALL else ways)
    hits = collections.Counter(h for _, _, found in done for h in found)
    t.works(not failures(done), "the lives", *failures(done))
    t.works(set(hits) == set(STEPS), "each step was hit", sorted(set(STEPS) - set(hits)))


# ---- the other processes of a session ----

# Steps at which kraft is held, and who is there meanwhile.
HELD = {"launcher_spawned": ("launcher", "bubblewrap", "init"), "egress_started": ("launcher", "bubblewrap", "init", "command", "kraft-egress"),
        "started_seen": ("launcher", "bubblewrap", "init", "command", "kraft-egress"), "exit_seen": ("kraft-egress",)}
OF_SANDBOX = ("launcher", "bubblewrap", "init", "command")


def parts_of(pid, text):
    """The processes of the session that this kraft runs, by what they are."""
    found = {}
    for child in children(pid):
        words = command_of(child)
        name = os.path.basename(words[0]).decode()
        what = ("launcher" if len(words) > 1 and words[1] == b"launch" else "bubblewrap" if name == "bwrap" else
                "init" if words[0].startswith(b"/opt/kraft/") else "kraft-egress" if name == "kraft-egress" else
                "command" if words[0] == b"./probe" and text.encode() in words else None)
        if what:
            found.setdefault(what, child)
    return found


def is_alive(pid):
    try:
        return read("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def meet(case):
    """While kraft is held at a step, one process of its session is killed, or stopped and let go on."""
    step, target, how = case
    home = Ward(nap=1.5)
    what = "%s of %s at %s" % (how, target, step)
    home.file()
    item = home.the_item()
    process = home.kraft("item", "start", item, popen=True, env=home.fault(step, "wait"))
    held = home.was_hit(step)
    if not wait_for(lambda: target in parts_of(held, home.mark), 5):
        raise Failed("%s: it is not there: %r" % (what, [command_of(p) for p in children(held)]))
    parts = parts_of(held, home.mark)
    before = home.known(item)
    if how == "SIGKILL":
        os.kill(parts[target], signal.SIGKILL)
        rest = [parts[name] for name in OF_SANDBOX if name in parts and target in OF_SANDBOX]
        if target == "command":
            rest = [parts[target]]
        if not wait_for(lambda: not [p for p in rest if is_alive(p)], 1 + 2 * (step == "launcher_spawned")):
            raise Failed("%s: what goes with it is still there" % what)
        home.go()
    else:
        os.kill(parts[target], signal.SIGSTOP)
        home.go()
        time.sleep(full(1.5, 5))
        if is_alive(parts[target]):  # kraft ends its proxy also when it is stopped
            os.kill(parts[target], signal.SIGCONT)
    process.communicate(timeout=60)
    home.nobody(what)
    home.keeps(item, before, what)
    came_out = home.status(item)[2] == "gate"
    if (how == "SIGSTOP" or target == "kraft-egress") != came_out:
        raise Failed("%s: %r" % (what, home.show(item)))
    if not came_out and home.show(item)["stop"] not in ("failed", "config", "infra"):
        raise Failed("%s: it does not tell: %r" % (what, home.show(item)))
    home.finish(item, what)
    home.check(item, what)
    return home.hits


@promise("ITM-06 LIFE-02 LIFE-04", "launcher, bubblewrap, init, command and kraft-egress killed or stopped at a step: what goes with them goes, and it completes")
def _(t):
    need_points(t)
    t.note("seed %d" % SEED)
    cases = [(step, target, how) for step, targets in HELD.items() for target in targets for how in ("SIGKILL", "SIGSTOP")]
    done = each(meet, cases if ALL else CHANCE.sample(cases, 6))
    t.works(not failures(done), "the cases", *failures(done))


# ---- host and task apart ----

TASKS_OWN = STEPS[STEPS.index("task_begun"):STEPS.index("task_reported")]


def orphan(step):
    """The host is killed while its task's process is held at a step; the task goes with it."""
    home = Ward()
    home.file()
    item = home.the_item()
    process = home.kraft("item", "start", item, popen=True, env=home.fault(step, "wait"))
    held = home.was_hit(step)
    before = home.known(item)
    process.kill()
    process.communicate()
    what = "the host killed while its task is at " + step
    home.nobody(what)
    if is_alive(held):
        raise Failed(what + ": the task lives on")
    home.keeps(item, before, what)
    home.finish(item, what)
    home.check(item, what)
    return home.hits


def nap(step):
    """Whoever reaches a step is stopped for a while: nobody takes it for dead."""
    home = Ward()
    home.file()
    item = home.the_item()
    process = home.kraft("item", "start", item, popen=True, env=home.fault(step, "stop"))
    held = home.was_hit(step)
    time.sleep(full(1, 60 if step == "started_seen" else 5))
    os.kill(held, signal.SIGCONT)
    process.communicate(timeout=60)
    what = "stopped at " + step
    if home.status(item)[2] != "gate":
        raise Failed("%s: %r" % (what, home.show(item)))
    home.nobody(what)
    home.check(item, what)
    return home.hits


@promise("ITM-06 LIFE-01", "the host killed while its task is at each step of its own: the task goes with it, and the item goes on")
def _(t):
    need_points(t)
    t.note("seed %d" % SEED)
    steps = TASKS_OWN if ALL else CHANCE.sample(TASKS_OWN, 4)
    done = each(orphan, steps)
    t.works(not failures(done), "the cases", *failures(done))
    t.works(sorted(h for _, _, found in done for h in found) == sorted(steps), "each was hit", done)


@promise("LIFE-04", "host and task stopped for a while at a step, then let go on: nobody takes them for dead")
def _(t):
    need_points(t)
    t.note("seed %d" % SEED)
    steps = [s for s in STEPS if phase(s) == "start"]
    done = each(nap, steps if ALL else CHANCE.sample(steps, 4))
    t.works(not failures(done), "the cases", *failures(done))


# ---- again and again ----

def once(name):
    return ONCE % ((name,) * 6)


def settled_ward():
    """Its workers do what is not done yet, also when they were ended in the middle of it: every way to the end has the same."""
    home = Ward(agent=once("a") + "; test -s left || echo left >left", plain=once("b"))
    home.file()
    return home, home.the_item()


def again_and_again(steps):
    """Killed at five steps, each time in the recovery from the one before; the sixth start goes through."""
    home, item = settled_ward()
    for step in steps:
        home.again(item)
        home.kraft("item", "start", item, env=home.fault(step))
        if not os.path.exists(home.file_of):
            raise Failed("nothing came to '%s' after %r" % (step, home.hits))
        home.was_hit(step)
        home.nobody("killed at " + step)
        home.age_nameless()
    home.finish(item, "killed at %r" % (steps,))
    clean, other = settled_ward()
    clean.kraft("item", "start", other)
    clean.nobody("a clean start")
    one, two = home.state(item), clean.state(other)
    for key in two:
        if one[key] != two[key]:
            raise Failed("after %r: %s: %r, and a clean start: %r" % (steps, key, one[key], two[key]))
    return home.hits


@promise("ITM-06 LIFE-03", "killed five times in a row, each time while it recovers: the sixth start gives what one clean start gives")
def _(t):
    need_points(t)
    t.note("seed %d" % SEED)
    early = STEPS[STEPS.index("host_locked"):STEPS.index("item_making")]
    of_all = early + [s for s in STEPS[STEPS.index("private_built"):STEPS.index("leftovers_committed")]]
    ways = [[s] * 5 for s in ("host_locked", "session_row", "worktree_added", "private_aside", "started_seen")]
    ways += [[CHANCE.choice(of_all) for _ in range(5)] for _ in range(full(2, 40))]
    ways += [[s] * 5 for s in ("pack_out", "quarantine_made", "pack_indexed", "pack_taken", "index_made", "ref_moved", "head_placed")]
    done = each(again_and_again, ways if ALL else CHANCE.sample(ways, 4))
    t.works(not failures(done), "the lives", *failures(done))


def untold(step):
    """The host killed at this step of a task that fails; then another one."""
    home = Ward(agent="exit 3")
    home.file()
    item = home.the_item()
    home.kraft("item", "start", item, env=home.fault(step))
    home.was_hit(step)
    home.nobody("killed at " + step)
    before = home.status(item)
    if before[2]:
        raise Failed("somebody was told before: %r" % (before,))
    started = home.kraft("item", "start", item)
    if started.code != 1 or home.status(item)[0] != "failed" or "exit code 3" not in home.show(item)["reason"]:
        raise Failed("killed at %s: nobody is told: %r %r" % (step, started, home.show(item)))
    again = home.kraft("item", "start", item)
    if again.code == 0 or "stopped at" not in again.err:
        raise Failed("and once told it waits for a person: %r" % again)
    return home.hits


@promise("ITM-06 LIFE-01", "the host killed when its task's failure is recorded and nobody was told: the next one tells it")
def _(t):
    need_points(t)
    done = each(untold, ["mark_written"])
    t.works(not failures(done), "the failure is told", *failures(done))


if __name__ == "__main__":
    main()
