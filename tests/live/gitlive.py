"""What the tests of git share: a repository worth losing, what must not change in it, and traces of git on the host."""
import re

from kraftlive import *

ZERO = "0" * 40


class Project(Home):
    """A home whose repository has history, branches, tags, packed and loose refs and objects, hooks and a configuration.

    payload: a program of the worker's, in the repository; it makes `pwned`, which no session can reach.
    """

    def __init__(self, init=(), **entry):
        super().__init__(make_repo=False, **entry)
        self.pwned = self.root + "/pwned"
        self._fill(init)
        for hook in ("post-update", "pre-commit", "post-commit"):
            write("%s/hooks/%s" % (self.common, hook), "#!/bin/sh\ntouch %s\n" % self.pwned, 0o755)

    _made = {}  # made once in a program, then copied

    def _fill(self, init):
        if tuple(init) not in self._made:
            self._made[tuple(init)] = self._make(tempfile.mkdtemp(prefix="kraft-live-"), init)
        shutil.copytree(self._made[tuple(init)], self.repo, symlinks=True)

    def _make(self, where, init):
        atexit.register(shutil.rmtree, where, ignore_errors=True)
        git(where, "init", "-q", *init)
        self.identify(where)
        for n in range(3):
            write("%s/file%d" % (where, n), "line\n" * 20 + "%d\n" % n)
            git(where, "add", "-A")
            git(where, "commit", "-qm", "commit %d" % n)
        git(where, "branch", "packed", "HEAD~1")
        git(where, "tag", "-a", "-m", "a tag", "v1", "HEAD~1")
        git(where, "pack-refs", "--all")
        git(where, "repack", "-adq")
        write(where + "/sub/file", "in a folder\n")
        git(where, "add", "-A")
        git(where, "commit", "-qm", "loose")
        git(where, "branch", "loose")
        git(where, "tag", "v2")
        return where

    @staticmethod
    def identify(where):
        git(where, "config", "user.name", "Per Son")
        git(where, "config", "user.email", "person@site.example")

    @property
    def common(self):
        return os.path.realpath(os.path.join(self.repo, git(self.repo, "rev-parse", "--git-common-dir").strip()))

    def own(self, *words):
        """The person's own git, whose hooks are not of interest."""
        return git(self.repo, "-c", "core.hooksPath=/dev/null", *words)

    def rev(self, name):
        """What a name stands for in the repository; None when there is no such thing."""
        try:
            return git(self.repo, "rev-parse", "--verify", "--quiet", name).strip()
        except Failed:
            return None

    def item(self, name, script, options=(), **more):
        """A shell script in the sandbox of that item."""
        return self.run("sh", "-c", script, options=["--item", name, *options], **more)

    def private(self, name):
        return "%s/sandbox-git/%s-0" % (self.run_dir, name)

    def tree(self, name):
        return "%s/worktrees/%s" % (self.run_dir, name)

    def branches(self, pattern="refs/heads/kraft"):
        lines = git(self.repo, "for-each-ref", "--format=%(refname) %(objectname)", pattern).splitlines()
        return dict(line.split(" ") for line in lines)

    def events(self, kind):
        lines = self.kraft("view", "events", "--json", "--type", kind).out.splitlines()
        return [json.loads(line) for line in lines]

    def frozen(self):
        """Every file of the repository's git directory and of the checkout, by name: its bytes."""
        found = {}
        for start in (self.common, self.repo):
            for top, dirs, files in os.walk(start):
                if start == self.repo and ".git" in dirs:
                    dirs.remove(".git")
                for name in files:
                    path = os.path.join(top, name)
                    if not os.path.islink(path) and os.path.isfile(path):
                        with open(path, "rb") as f:
                            found[path] = f.read()
        return found

    def only_branch_moved(self, t, before, what=""):
        """Nothing that was there is gone or different, and what came is objects, the item's branch, or kraft's own refs."""
        after, common = self.frozen(), self.common
        own = re.compile("(worktrees|objects|(logs/)?refs/heads/kraft|(logs/)?refs/kraft)/")
        for path in sorted(set(before) | set(after)):
            name = os.path.relpath(path, common)
            is_own = own.match(name) and not (name.startswith("objects/") and path in before)
            if before.get(path) != after.get(path) and not is_own:
                t.works(False, "%s: '%s' of the repository was %s" % (what, name, "changed" if path in after and path in before
                                                                      else "removed" if path in before else "made"))
        t.works(any(p.startswith(common + "/objects/") for p in before), "there were objects to look at")
        said = git(self.repo, "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
        t.works(said == "", what + ": git fsck --strict is clean", said)
        t.works(not os.path.exists(self.pwned), what + ": no hook and no program of the worker's ran on the host")

    def same_tip(self, t, name, result, what):
        """The worker's last line was its HEAD; the branch is there."""
        t.works(result.code == 0 and result.lines, what + " works inside", result)
        tip = result.lines[-1].strip()
        t.works(len(tip) in (40, 64) and self.rev("refs/heads/kraft/" + name) == tip, what + " comes out", result,
                self.branches())


class Workspace(Project):
    """A workspace `site`: the root, the member `lib` at libs/deep/lib, the member `tool` at tool."""

    def __init__(self, places=None, **entry):
        super().__init__(id="root", **(places or {}), **entry)
        self.lib, self.tool = self.member("lib"), self.member("tool")
        self.set_workspace(**entry)

    def member(self, name):
        path = "%s/code-%s" % (self.home, name)
        git(self.home, "init", "-q", path)
        self.identify(path)
        write(path + "/" + name, name + "\n" * 3)
        git(path, "add", "-A")
        git(path, "commit", "-qm", "first of " + name)
        git(path, "branch", "other")
        return path

    def set_workspace(self, lib="libs/deep/lib", tool="tool", root="root", pointer=None, local=(), **entry):
        members = {"lib": {"repository": "lib", "path": lib}, "tool": {"repository": "tool", "path": tool}}
        space = {"root": root, "members": {k: v for k, v in members.items() if v["path"]}}
        if pointer:
            space["root_pointer_default"] = pointer
        repos = [self.entry(id="root", **entry), {"path": self.lib, "id": "lib", "local_files": list(local)},
                 {"path": self.tool, "id": "tool"}]
        self.configure(json.dumps({"repos": repos, "workspaces": {"site": space}}))

    def site(self, script, item="s", options=(), **more):
        return self.item(item, script, options=["--workspace", "site", *options], **more)

    def inside(self, below="libs/deep/lib", item="s"):
        return self.tree(item) + "/" + below


def tip_of(repo, ref="refs/heads/kraft/s"):
    return git(repo, "for-each-ref", "--format=%(objectname)", ref).strip()


def refs_of(repo):
    return git(repo, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()


COMMIT = "set -e; for d in . libs/deep/lib tool; do (cd $d; echo new >new; git add new; git commit -qm new; git rev-parse HEAD); done"


# ---- which git the host starts, and what it opens ----

_CALL = re.compile(r"^(\d+) +(.*)$")
_BORN = re.compile(r"^(?:<\.\.\. )?(?:clone3?|v?fork)\b.*= (\d+)(?: /\* (\d+) in strace's PID NS \*/)?$")
_AT = re.compile(r'(?:AT_FDCWD|\d+)<([^>]*)>, "((?:[^"\\]|\\.)*)"')  # a directory and a name below it
_PLAIN = re.compile(r'^\w+\("(/(?:[^"\\]|\\.)*)"')
_OPENED = re.compile(r"= \d+<(/[^>]*)>$")
_LAUNCHER = re.compile(r'execve\("[^"]*", \["[^"]*", "launch"')
TRACE = ("trace=execve,clone,clone3,fork,vfork,openat,openat2,open,chdir,fchdir,rename,renameat,renameat2,unlink,unlinkat,"
         "readlink,readlinkat,mkdir,mkdirat,rmdir")


def _used(call):
    """The paths of a system call, as far as it names them in full: -y makes strace write every directory's own."""
    found = [os.path.normpath(os.path.join(*pair)) for pair in _AT.findall(call)]
    for pattern in (_PLAIN, _OPENED):
        match = pattern.search(call)
        if match:
            found.append(os.path.normpath(match.group(1)))
    return found


class Traced:
    """strace's record of a kraft: the gits that it started on the host, each with the paths that it and what it started used.

    What runs below the guest program is inside the walls and left out.
    """

    def __init__(self, path):
        with open(path, errors="surrogateescape") as f:
            calls = [_CALL.match(line).groups() for line in f.read().splitlines()]
        parent, inside, gits = {}, set(), {}
        for pid, call in calls:
            born = _BORN.match(call)
            if born:
                parent[born.group(2) or born.group(1)] = pid
            if _LAUNCHER.match(call):
                inside.add(pid)
            if re.match(r'execve\("[^"]*/git",', call) and "ENOENT" not in call:
                gits.setdefault(pid, [])

        def line_of(pid):
            while pid:
                yield pid
                pid = parent.get(pid)
        for pid, call in calls:
            line = list(line_of(pid))
            if not any(p in inside for p in line):
                for p in line:
                    if p in gits:
                        gits[p] += [(name, call) for name in _used(call)]
        self.gits = {pid: used for pid, used in gits.items() if used}

    def below(self, *places):
        """What any of these gits used in the places."""
        return [call for used in self.gits.values() for path, call in used
                if any(path == p or path.startswith(p + "/") for p in places)]


def traced(home, *argv, **more):
    """Runs it on the host under strace; (Result, Traced)."""
    path = "%s/trace-%s" % (home.root, uuid.uuid4().hex[:8])
    result = home.host("strace", "-f", "-y", "--pidns-translation", "-qq", "-s", "4096", "-e", TRACE, "-e", "signal=none", "-o", path, *argv,
                       env=TRACED, **more)
    return result, Traced(path)


__all__ = [n for n in dir() if not n.startswith("_")]
