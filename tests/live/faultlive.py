"""What the tests of crashes and full disks share: the build that has fault points, items that leave a trace of each step,
and what must be true of an item after whatever happened to it.

Each case runs in a process of its own that is a subreaper: what a killed kraft leaves running becomes its child, so that
"nothing is left running" is a look at its children and no guess at names.
"""
import collections
import ctypes
import random

import kraftlive
from worklive import *

SOURCE = os.environ.get("KRAFT_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
VARIABLE = b"KRAFT_FAULT_CLOCK"
PR_SET_CHILD_SUBREAPER, CLONE_NEWNS, CLONE_NEWUSER = 36, 0x20000, 0x10000000


def _has_points(build):
    try:
        with open(build + "/kraft", "rb") as f:
            return VARIABLE in f.read()
    except OSError:
        return False


# The build under test has them, or the one that ./check makes beside it has.
FAULT_BUILD = next((b for b in (BUILD, os.path.abspath(SOURCE + "/build-clang")) if _has_points(b)), None)


def points():
    """The names in the table, in order."""
    with open(SOURCE + "/src/base/fault.h") as f:
        return re.findall(r"^\tX\((\w+)\)", f.read(), re.M)


def need_points(t):
    if not FAULT_BUILD:
        t.skip("no build with fault points: ./dev build clang makes one")


# ---- items that leave a trace ----

# Each run of a task adds a line that no other run has, and commits it; the agent leaves a file for kraft to commit.
LINE = "n=%s-$(od -An -N6 -tx1 /dev/urandom | tr -d ' ')"
AGENT = LINE % "a" + "; echo $n >>ran; git add ran; git commit -qm $n; echo $n >>left; ./probe sleep %s %s"
PLAIN = LINE % "b" + "; echo $n >>ran; git add -A; git commit -qm $n"
# The same, but done once: whoever runs it again finds it done.
ONCE = "test \"$(git show HEAD:%s 2>&1)\" = %s || { echo %s >%s; git add %s; git commit -qm %s; }"


class Ward(Office):
    """An office whose kraft has fault points, in which items are killed and go on."""

    def __init__(self, agent=None, plain=PLAIN, nap=0.15, **entry):
        super().__init__(**entry)
        kraftlive.KRAFT = FAULT_BUILD + "/kraft"  # of this process, which is the case's own
        self.mark, self.hits = mark(), []
        self.commit("probe", read_bytes(PROBE))
        write(self.config_dir + "/notify.yaml", json.dumps({"command": ["true"]}))
        make = {"id": "make", "kind": "agent", "harness": "claude", "prompt": "Make it."}
        self.chain("k", node("one", make), node("two", task("b", "sh -c '%s'" % plain.replace("'", "'\\''"))), GATE)
        self.agent = agent or AGENT % (nap, self.mark)

    def file(self, title="kill me", **more):
        return self.kraft("item", "create", title, "--chain", "k", "--", "sh", "-c", self.agent, **more)

    def the_item(self):
        items = json.loads(self.kraft("view", "list", "--all", "--json").out)["items"]
        if len(items) != 1:
            raise Failed("one item was filed: %r" % items)
        return items[0]["id"]

    # -- faults --

    def fault(self, point, action="kill"):
        """The environment of a kraft in which this happens."""
        self.file_of = "%s/fault-%d" % (self.root, len(self.hits))
        return {"KRAFT_FAULT": "%s:%s:%s" % (point, action, self.file_of)}

    def was_hit(self, point, seconds=20):
        if not wait_for(lambda: os.path.exists(self.file_of) and read(self.file_of).endswith("\n"), seconds):
            raise Failed("nothing came to '%s'" % point)
        name, pid = read(self.file_of).split()
        self.hits.append(name)
        if name != point:
            raise Failed("'%s' was reached, not '%s'" % (name, point))
        return int(pid)

    def go(self):
        write(self.file_of + ".go")

    # -- what is there --

    def lines(self, item, where):
        """Lines that the tasks' runs left: of the worktree's file, or of the branch's."""
        if where == "tree":
            return read(self.tree(item) + "/ran").split() if os.path.exists(self.tree(item) + "/ran") else []
        shown = self.host("git", "show", "kraft/%s:ran" % item)
        return shown.out.split() if shown.code == 0 else []

    def subjects(self, item):
        shown = self.host("git", "log", "--format=%s", "main..kraft/" + item)
        return shown.out.splitlines() if shown.code == 0 else []

    def known(self, item):
        """What was acknowledged: events as they are, the branch, the lines in the worktree, paths that came out."""
        return {"events": self.events_of(item), "tip": self.rev("kraft/" + item), "tree": self.lines(item, "tree")}

    def leftovers(self):
        """Names below the run directory and the repository's git directory that only something unfinished has."""
        found = []
        for top in (self.run_dir, self.common):
            for at, dirs, files in os.walk(top):
                for name in dirs + files:
                    if re.search(r"\.(new|old|part|lock)$|tmp_objdir|kraft-index|^tmp_", name) and not re.search(r"/worktrees/[^/]*\.lock$|/sandbox-git/[^/]*\.lock$", at + "/" + name):
                        found.append(at + "/" + name)
        sn = self.run_dir + "/sn"
        found += [sn + "/" + n for n in (os.listdir(sn) if os.path.isdir(sn) else [])]
        with open("/proc/net/unix") as f:
            found += [line for line in f.read().splitlines() if self.root in line]
        with open("/proc/self/mounts") as f:
            found += [line for line in f.read().splitlines() if self.root in line]
        return found

    def nobody(self, what, seconds=5):
        """Nothing runs any more; our children are whatever a killed kraft left."""
        if not wait_for(lambda: not reap(), seconds, 0.05):
            raise Failed("%s: still running: %r" % (what, [(p, command_of(p)) for p in children(os.getpid())]))

    def again(self, item):
        """A task whose process died under its host is not tried again without a person's word."""
        if self.status(item)[0] == "failed":
            self.kraft("item", "retry", item, "--no-start")

    def age_nameless(self):
        """A session that died before it said what it is, a minute later."""
        for folder in self.session_folders():
            if not os.path.exists(folder + "/session.json"):
                os.utime(folder, (0, 0))

    def finish(self, item, what, tries=4):
        """Goes on until the gate, as a person would; what was acknowledged before stays."""
        before = self.known(item)
        self.age_nameless()
        for _ in range(tries):
            started = self.kraft("item", "start", item)
            status = self.status(item)
            if status[2] == "gate" or status[0] == "done":
                break
            self.again(item)
        else:
            raise Failed("%s: it does not come to its gate: %r %r" % (what, started, self.show(item)))
        self.nobody(what)
        self.keeps(item, before, what)

    def keeps(self, item, before, what):
        after = self.known(item)
        if after["events"][:len(before["events"])] != before["events"]:
            raise Failed("%s: an event is lost or changed" % what)
        if before["tip"] and self.host("git", "merge-base", "--is-ancestor", before["tip"], "kraft/" + item).code != 0:
            raise Failed("%s: a published commit is lost" % what)
        if not set(before["tree"]) <= set(after["tree"]):
            raise Failed("%s: a file in the worktree is lost" % what)

    def check(self, item, what):
        """At its gate or beyond: what must be true whatever happened."""
        events = self.events_of(item)
        seqs = [e["seq"] for e in events]
        if seqs != sorted(set(seqs)):
            raise Failed("%s: seqs do not rise: %r" % (what, seqs))
        once = [(e["type"], e["data"].get("session_id")) for e in events if e["type"].startswith("worker_session_")]
        once += [(e["type"], "") for e in events if e["type"] in ("work_item_created", "gate_requested", "gate_approved", "work_item_completed",
                                                                  "work_item_archived")]
        twice = [k for k, n in collections.Counter(once).items() if n > 1]
        done = collections.Counter(s["path"] for s in self.show(item)["sessions"] if s["status"] == "done")
        if twice or sorted(done.items()) != [("one.main.make", 1), ("two.main.b", 1)]:
            raise Failed("%s: acknowledged more or less than once: %r %r" % (what, twice, done))
        if [s for s in self.show(item)["sessions"] if s["status"] == "running"]:
            raise Failed("%s: a session is said to run" % what)
        subjects, lines = self.subjects(item), self.lines(item, "branch")
        own = [s for s in subjects if re.match("[ab]-[0-9a-f]{12}$", s)]
        if len(set(own)) != len(own) or len(set(lines)) != len(lines) or not set(own) <= set(lines):
            raise Failed("%s: a commit or a line is doubled: %r %r" % (what, subjects, lines))
        if not lines or lines[0][0] != "a" or lines[-1][0] != "b" or lines[-1] not in own:
            raise Failed("%s: the tasks' commits are not all there: %r %r" % (what, subjects, lines))
        left = self.host("git", "show", "kraft/%s:left" % item).out.split()
        if not left or not set(left) <= set(lines):
            raise Failed("%s: what the agent left uncommitted: %r %r" % (what, left, lines))
        said = git(self.repo, "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
        if said:
            raise Failed("%s: git fsck: %r" % (what, said))
        if self.leftovers():
            raise Failed("%s: left behind: %r" % (what, self.leftovers()))

    def state(self, item):
        """What two lives that came to the same end have in common."""
        def plain(name):
            return re.sub(r"\b[0-9a-f]{16}\b", "ID", name).replace(item, "ITEM")
        names = set()
        for at, dirs, files in os.walk(self.run_dir):
            dirs[:] = [d for d in dirs if d not in ("objects", "logs", "cache")]
            names |= {plain(os.path.relpath(at + "/" + n, self.run_dir)) for n in files if not n.startswith("orchestrator.db")}
        shown = self.show(item)
        done = sorted((s["path"], s["status"]) for s in shown["sessions"] if s["status"] == "done")
        refs = sorted(line.replace(item, "ITEM") for line in git(self.repo, "for-each-ref", "--format=%(refname)").splitlines())
        return {"item": [shown[k] for k in ("status", "stop", "node", "reason")], "sessions": done, "refs": refs, "files": sorted(names),
                "tree": git(self.repo, "rev-parse", "kraft/%s^{tree}" % item).strip()}


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def reap():
    """Takes what has ended; our children that have not. Not while a Popen of ours is waited for."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    return children(os.getpid())


# ---- cases, each in a process of its own ----

def _case(function, argument, place, end):
    tempfile.tempdir = place
    Project._made.clear()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    told = {"error": None, "hits": []}
    kraftlive._homes.clear()
    try:
        told["hits"] = function(argument)
    except (Failed, Exception) as why:
        told["error"] = str(why) if isinstance(why, Failed) else traceback.format_exc()
    for pid in children(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    with os.fdopen(end, "w") as f:
        f.write(json.dumps(told))
    os._exit(0)


def small_disk(mib):
    """A file system of so many MiB for this case's process alone, in its place; for what it makes from here on."""
    place = tempfile.tempdir
    libc, uid, gid = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        raise Failed("no namespace: " + os.strerror(ctypes.get_errno()))
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)), ("gid_map", "%d %d 1" % (gid, gid))):
        write("/proc/self/" + name, text)
    if libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"size=%dm,mode=755" % mib) != 0:
        raise Failed("no small disk: " + os.strerror(ctypes.get_errno()))


def each(function, arguments, jobs=None):
    """function(argument) for each, some at once; a list of (argument, error or None, hits)."""
    jobs = jobs or max(2, os.cpu_count() or 1)
    waiting, running, done = list(arguments), {}, []
    while waiting or running:
        while waiting and len(running) < jobs:
            argument = waiting.pop(0)
            ours, theirs = os.pipe()
            place = tempfile.mkdtemp(prefix="kraft-")
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                _case(function, argument, place, theirs)
            os.close(theirs)
            running[pid] = (argument, ours, place)
        pid, _ = os.waitpid(-1, 0)
        if pid not in running:
            continue
        argument, ours, place = running.pop(pid)
        if not os.environ.get("KRAFT_LIVE_KEEP"):
            kraftlive._force_remove(place)
        with os.fdopen(ours) as f:
            text = f.read()
        told = json.loads(text) if text else {"error": "the case's process died", "hits": []}
        done.append((argument, told["error"], told["hits"]))
    return done


__all__ = [n for n in dir() if not n.startswith("_")]
