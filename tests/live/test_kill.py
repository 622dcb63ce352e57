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


if __name__ == "__main__":
    main()
