#!/usr/bin/env python3
"""A full disk at every write: nothing is corrupt, the item says why it waits, and goes on when there is room (LIFE-06, G15)."""
# kraft-test: timeout 600
from faultlive import *

SEED = int(os.environ.get("KRAFT_SEED") or random.SystemRandom().randrange(1 << 32))
CHANCE = random.Random(SEED)
STEPS = points()[points().index("host_locked"):points().index("approved")]
RESERVE = 4 << 20


def fill(home, left_kib):
    """Takes all room but so much."""
    with open(home.root + "/ballast", "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(1 << 16))
        except OSError:
            pass
        f.truncate(max(0, os.fstat(f.fileno()).st_size - (left_kib << 10)))


def ready():
    small_disk(64)
    home = Ward()
    home.file()
    reserve = os.stat(home.run_dir + "/orchestrator.reserve")
    if reserve.st_blocks * 512 < RESERVE:
        raise Failed("the reserve has no blocks: %r" % (reserve,))
    return home, home.the_item()


def goes_on(home, item, started, what, may_be_cut_off=False):
    """As a person finds it: it tells why, nothing is damaged, and with room it goes on."""
    home.nobody(what)
    status, shown = home.status(item), home.show(item)
    waits = status[2] == "gate"
    refused = started.code == 1 and re.search("disk is full|No space left", started.err)
    if status[0] == "cut off" and not may_be_cut_off:
        raise Failed("%s: there was no room to say it: %r" % (what, started))
    if not waits and not refused and not (status[0] == "paused" and "disk" in (shown["reason"] or "") and started.code == 1):
        raise Failed("%s: %r %r" % (what, started, shown))
    told = [e for e in home.events_of(item) if e["type"] == "work_item_paused" and "disk" in e["data"].get("reason", "")]
    if not waits and not refused and len(told) != 1:
        raise Failed("%s: no event tells of it: %r" % (what, told))
    whole = home.host("python3", "-IS", "-c", "import sqlite3, sys; print(sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True)"
                      ".execute('PRAGMA integrity_check').fetchone()[0])", home.run_dir + "/orchestrator.db")
    before = home.known(item)
    for name in os.listdir(home.root):
        if name == "ballast" or name.endswith(".fill"):
            os.unlink(home.root + "/" + name)
    home.finish(item, what)
    home.keeps(item, before, what)
    home.check(item, what)
    if os.stat(home.run_dir + "/orchestrator.reserve").st_blocks * 512 < RESERVE:
        raise Failed("%s: the reserve is not made again" % what)
    if whole.out.strip() not in ("ok", ""):
        raise Failed("%s: the store: %r" % (what, whole))
    return "waits" if waits else "refused" if refused else "paused"


def at_step(step):
    """All room is taken when somebody comes to this step."""
    home, item = ready()
    started = home.kraft("item", "start", item, env=home.fault(step, "full"))
    home.was_hit(step)
    return [step, goes_on(home, item, started, "full at " + step)]


def with_left(kib):
    """All but so much is taken before it starts."""
    home, item = ready()
    fill(home, kib)
    started = home.kraft("item", "start", item)
    return ["%d KiB" % kib, goes_on(home, item, started, "%d KiB left" % kib)]


def hungry(how):
    """A worker that takes all room itself, or a neighbour that takes whatever is given back, at once."""
    home, item = ready()
    if how == "worker":
        home.chain("h", node("work", task("it", "sh -c 'test -e calm || cat /dev/zero >big; echo a >>ran; git add -A; git commit -qm it'")), GATE)
        item = home.create("hungry", "--chain", "h")
        started = home.kraft("item", "start", item)
        shown = home.show(item)
        if started.code != 1 or home.status(item)[0] != "paused" or "disk" not in shown["reason"] or shown["sessions"][0]["status"] != "paused":
            raise Failed("it does not say so: %r %r" % (started, shown))
        home.nobody(how)
        os.unlink(home.tree(item) + "/big")
        write(home.tree(item) + "/calm")
        again = home.kraft("item", "start", item)
        if home.status(item)[2] != "gate" or not home.rev("kraft/" + item) or again.code != 0:
            raise Failed("it does not go on: %r %r" % (again, home.show(item)))
        return [how, "paused"]
    fill(home, 300)
    code = ("import sys, time\nf = open(sys.argv[1], 'ab', buffering=0)\nwhile True:\n try:\n  f.write(bytes(4096))\n except OSError:\n  time.sleep(0.001)\n")
    neighbour = subprocess.Popen([PYTHON, "-IS", "-c", code, home.root + "/ballast.fill"])
    started = home.kraft("item", "start", item)
    neighbour.kill()
    neighbour.wait()
    os.unlink(home.root + "/ballast.fill")  # so that it can be looked at
    return [how, goes_on(home, item, started, how, may_be_cut_off=True)]


def failures(done):
    return ["%s: %s" % (argument, why) for argument, why, _ in done if why]


@promise("LIFE-06", "the disk is full when somebody comes to a step: the item is paused and says so, nothing is damaged, and it goes on")
def _(t):
    need_points(t)
    t.note("seed %d" % SEED)
    done = each(at_step, STEPS if ALL else CHANCE.sample(STEPS, 8))
    t.works(not failures(done), "the steps", *failures(done))
    ends = collections.Counter(end for _, _, (_, end) in done)
    t.note("%r" % dict(ends))
    t.works(ends["paused"] > 0, "some were in time to be paused", ends)


@promise("LIFE-06", "so many KiB are left when an item starts: refused, paused or through, in each case whole, and it goes on")
def _(t):
    need_points(t)
    t.note("seed %d" % SEED)
    sizes = list(range(0, 2000, 4)) if ALL else [0] + CHANCE.sample(range(4, 2000, 4), 5)
    done = each(with_left, sizes)
    t.works(not failures(done), "the sizes", *failures(done))
    t.note("%r" % dict(collections.Counter(end for _, _, (_, end) in done)))


@promise("LIFE-06", "a worker that fills the disk, and a neighbour that takes whatever the reserve gives back: whole, and it goes on")
def _(t):
    need_points(t)
    done = each(hungry, ["worker"] + ["neighbour %d" % n for n in range(full(1, 20))])
    t.works(not failures(done), "the cases", *failures(done))
    t.note("%r" % [found for _, _, found in done])


if __name__ == "__main__":
    main()
