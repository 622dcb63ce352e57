"""The harness of the live tests: black-box tests of the walls, through the command line of kraft.

KRAFT_BUILD names the build directory (with `kraft` and the probe). The tests run as an unprivileged user; each file
prints TAP. A test of a wall has three parts, and the harness counts a test without all three as failed:

  attack   the attempt to cross the wall, from inside; it must fail, in the way the ledger says
  works    something next to it that must still work, so that a wall of "nothing works" does not pass
  control  the same attempt where just that defence is off; it must succeed, so that the attempt itself is known good

The defence is taken away in one of three ways: the same probe on the host, the same probe in a bare bubblewrap with
the same view (Home.bare), or kraft itself with one bubblewrap option removed: kraft runs the program that KRAFT_BWRAP
names, and Home.wrapper writes one that edits the arguments on their way (it reads the --args descriptor, drops or
replaces options, and hands bubblewrap a new one).

What the tests want of kraft is what it promises: exit codes, the sentences of the ledger, and what the worker can see.
"""
import atexit
import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

import again as _again
import runtimelive

BUILD = os.environ.get("KRAFT_BUILD") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build")
BUILD = os.path.abspath(BUILD)
KRAFT = os.path.join(BUILD, "kraft")
PROBE = os.path.join(BUILD, "tests/live/probe")
BWRAP = os.environ.get("KRAFT_LIVE_BWRAP") or shutil.which("bwrap") or "/usr/bin/bwrap"
PYTHON = "/usr/bin/python3"  # of the system: the sandbox shows /usr
ALL = os.environ.get("KRAFT_ALL") == "1"
MUST_WORK = os.environ.get("KRAFT_MUST_WORK") == "1"
USER = pwd.getpwuid(os.getuid()).pw_name

# A kraft built with sanitizers runs these tests as well; under strace or with a preloaded library it needs telling.
TRACED = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}

try:
    RUNTIME, ABSENT = runtimelive.find(runtimelive.WANTED) if runtimelive.WANTED else None, None
except runtimelive.Absent as why:
    RUNTIME, ABSENT = None, str(why)

CREDENTIAL_NAMES = ["credentials.toml", "credentials", ".npmrc", ".netrc", ".pypirc", ".git-credentials"]


def full(small, large):
    """A sampled size, or the full one with KRAFT_ALL=1."""
    return large if ALL else small


# ---- results ----

class Result:
    """How a program ended. `code` is negative for a signal, as in subprocess."""

    def __init__(self, code, out, err, seconds=0.0):
        self.code, self.seconds = code, seconds
        self.raw_out, self.raw_err = out, err
        self.out = out.decode("utf-8", "replace")
        self.err = err.decode("utf-8", "replace")

    @property
    def lines(self):
        return self.out.splitlines()

    def said(self, label):
        """The rest of the first line of stdout that starts with this word, as the probe reports; None without one."""
        for line in self.lines:
            if line == label or line.startswith(label + " "):
                return line[len(label) + 1:]
        return None

    def table(self):
        """Lines of "label answer" as a dictionary."""
        return dict(line.rsplit(" ", 1) for line in self.lines if " " in line)

    def __repr__(self):
        def cut(text):
            return text if len(text) < 1500 else text[:900] + " [...] " + text[-500:]
        return "exit %s\n  stdout: %r\n  stderr: %s" % (self.code, cut(self.out), cut(self.err))


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


# ---- bubblewrap's options ----

ARITY = {}
for _count, _names in {
    0: "--help --version --unshare-all --share-net --unshare-user --unshare-user-try --unshare-ipc --unshare-pid"
       " --unshare-net --unshare-uts --unshare-cgroup --unshare-cgroup-try --disable-userns --assert-userns-disabled"
       " --clearenv --new-session --die-with-parent --as-pid-1",
    1: "--args --userns --userns2 --pidns --uid --gid --hostname --chdir --unsetenv --lock-file --sync-fd --remount-ro"
       " --exec-label --file-label --proc --dev --tmpfs --mqueue --dir --seccomp --add-seccomp-fd --block-fd"
       " --userns-block-fd --info-fd --json-status-fd --cap-add --cap-drop --perms --size",
    2: "--setenv --bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try --bind-fd --ro-bind-fd --file"
       " --bind-data --ro-bind-data --symlink --chmod",
}.items():
    for _name in _names.split():
        ARITY[_name] = _count

WRAPPER = r'''#!%(python)s -IS
# Stands in for bubblewrap: edits its options on their way, so that a test can take one defence away.
import json, os, sys
REAL, ARITY = %(bwrap)r, %(arity)r
PLAN = json.loads(%(plan)r)
MODIFIERS = ("--perms", "--size")

def parse(words):
    options, i = [], 0
    while i < len(words) and words[i].startswith(b"--") and words[i] != b"--":
        name = words[i].decode()
        take = ARITY[name]
        option = words[i:i + 1 + take]
        i += 1 + take
        if name == "--args":
            data = b""
            with os.fdopen(int(option[1]), "rb") as f:
                data = f.read()
            inner, rest = parse(data.split(b"\0")[:-1])
            assert not rest, rest
            options += inner
        else:
            options.append(option)
    return options, words[i:]

def matches(option, pattern):
    if isinstance(pattern, dict):  # by the last word, where descriptors' numbers come before
        return option[0] == os.fsencode(pattern["name"]) and option[-1] == os.fsencode(pattern["last"])
    return all(os.fsencode(p) == o for p, o in zip(pattern, option)) and len(pattern) <= len(option)

def edit(options):
    out = []
    for option in options:
        if any(matches(option, p) for p in PLAN.get("drop", [])):
            while out and out[-1][0].decode() in MODIFIERS:
                out.pop()
            continue
        for old, new in PLAN.get("replace", []):
            if matches(option, old):
                option = [os.fsencode(w) for w in new] + option[len(old):]
        out.append(option)
    return out + [[os.fsencode(w) for w in o] for o in PLAN.get("append", [])]

words = [os.fsencode(w) for w in sys.argv[1:]]
if PLAN.get("version") and words == [b"--version"]:
    print(PLAN["version"])
    sys.exit(0)
if words in ([b"--version"], [b"--help"]):
    os.execv(REAL, [REAL] + [os.fsdecode(w) for w in words])
options, rest = parse(words)
log = PLAN.get("log")
if log and not os.path.exists(log):  # the launch itself; a diagnosis that follows it is not of interest
    with open(log + ".tmp", "w") as f:
        json.dump({"options": [[w.decode("utf-8", "surrogateescape") for w in o] for o in options],
                   "argv": [w.decode("utf-8", "surrogateescape") for w in words],
                   "environment": dict(os.environ), "fds": {n: os.readlink("/proc/self/fd/" + n)
                       for n in os.listdir("/proc/self/fd") if os.path.islink("/proc/self/fd/" + n)}}, f)
    for option in options:
        if option[0] == b"--seccomp":
            fd = int(option[1])
            with open(log + ".bpf", "wb") as f:
                f.write(os.pread(fd, 1 << 16, 0) if os.fstat(fd).st_size else b"")
    os.rename(log + ".tmp", log)
options = edit(options)
if PLAN.get("exit") is not None:
    sys.stderr.write(PLAN.get("stderr", ""))
    sys.exit(PLAN["exit"])
data = b"".join(w + b"\0" for o in options for w in o)
fd = os.memfd_create("args", 0)
os.write(fd, data) if len(data) < 1 << 16 else [os.write(fd, data[i:i + 65536]) for i in range(0, len(data), 65536)]
os.lseek(fd, 0, 0)
os.set_inheritable(fd, True)
os.execv(REAL, [REAL, "--args", str(fd)] + [os.fsdecode(w) for w in rest])
'''


# ---- a person's machine, in a temporary directory ----

_homes = []


def _force_remove(path):
    """Removes a tree also where the tests or the worker closed directories."""
    for top, dirs, _files in os.walk(path):
        for name in dirs:
            if not os.path.islink(os.path.join(top, name)):
                os.chmod(os.path.join(top, name), 0o700)
    shutil.rmtree(path, ignore_errors=True)


def _end_hosts(homes):
    """A server and hosts that a test left in the background, by the locks that name them; what they ran goes with them."""
    for home in homes:
        locks = os.path.join(home.run_dir, "worktrees")
        names = [os.path.join(locks, n) for n in (os.listdir(locks) if os.path.isdir(locks) else []) if n.endswith(".host")]
        for path in [os.path.join(home.run_dir, "server")] + names:
            try:
                pid, start = read(path).split()[:2]
                with open("/proc/%s/stat" % pid) as f:
                    if f.read().rsplit(")", 1)[1].split()[19] == start:
                        os.kill(int(pid), signal.SIGKILL)
            except (OSError, ValueError):
                continue


@atexit.register
def _clean():
    _end_hosts(_homes)
    for home in _homes:
        if os.environ.get("KRAFT_LIVE_KEEP"):
            print("# kept %s" % home.root)
        else:
            _force_remove(home.root)


def write(path, text="", mode=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    if mode is not None:
        os.chmod(path, mode)
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read().decode("utf-8", "replace")


def git(where, *words, **options):
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com",
           "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com"}
    done = subprocess.run(["git", "-C", where, "-c", "init.defaultBranch=main"] + list(words), env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise Failed("git %s: %s" % (" ".join(words), done.stdout.decode("utf-8", "replace")))
    return done.stdout.decode("utf-8", "replace")


class Home:
    """A home with a repository in it, a KRAFT_HOME and its configuration.

    name: of the directory below the temporary one; odd names test quoting. repo: its path below the home. runtime: one of
    runtimelive's, for a sandbox of `kind: docker`; without it, what KRAFT_TEST_RUNTIME says, which is mostly the OS sandbox.
    """

    def __init__(self, name="home", repo="code/sample", kraft_home=".kraft", make_repo=True, runtime=None, image=None, **entry):
        self.runtime, self.image = runtime or RUNTIME, image or runtimelive.IMAGE
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="kraft-live-"))
        _homes.append(self)
        self.home = os.path.join(self.root, name)
        self.kraft_home = os.path.join(self.home, kraft_home)
        self.run_dir = os.path.join(self.kraft_home, "run")
        self.config_dir = os.path.join(self.kraft_home, "config")
        self.repo = os.path.join(self.home, repo)
        self.extra_env = {}
        os.makedirs(self.home, 0o700)
        os.makedirs(self.kraft_home, 0o700)
        os.makedirs(self.config_dir, 0o700)
        if make_repo:
            self.make_repo(self.repo)
        self.configure(**entry)
        self._worktree = None
        self._is_asked = not self.runtime

    def _ask_first(self):
        """kraft waits ten seconds for a runtime's first answer, which a machine full of tests can take; then thirty."""
        self._is_asked = True
        for _ in range(3):
            if "gives no answer" not in self.kraft("explain", "--", "true").err:
                return

    def make_repo(self, path, files=None):
        os.makedirs(path, exist_ok=True)
        git(path, "init", "-q")
        write(os.path.join(path, "README"), "a sample\n")
        write(os.path.join(path, "sub/file"), "in a folder\n")
        shutil.copy2(PROBE, os.path.join(path, "probe"))
        for name, text in (files or {}).items():
            write(os.path.join(path, name), text, 0o755)
        git(path, "add", "-A")
        git(path, "commit", "-qm", "sample")
        return path

    def commit(self, name, text, mode=0o755):
        write(os.path.join(self.repo, name), text, mode)
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-qm", "add " + name)

    # -- configuration --

    def entry(self, **keys):
        """An entry of repos.yaml as JSON, which is YAML: every key is quoted, every string escaped."""
        sandbox = {"kind": "os", "network": {"runtime": {"allow": ["example.com"]}}}
        exposed = keys.pop("expose", None)
        if self.runtime:
            sandbox.update(kind="docker", image=self.image)
        elif exposed:
            sandbox["expose"] = exposed
        sandbox.update(keys.pop("sandbox", {}))
        sandbox = {k: v for k, v in sandbox.items() if v is not None}
        entry = {"path": self.repo, "setup_command": "", "test_command": "true", "sandbox": sandbox}
        entry.update(keys)
        return {k: v for k, v in entry.items() if v is not None}

    def configure(self, text=None, **keys):
        if text is None:
            text = "repos:\n  - " + json.dumps(self.entry(**keys)) + "\n"
        write(os.path.join(self.config_dir, "repos.yaml"), text, 0o600)
        if self.runtime and not os.path.exists(self.config_dir + "/sandbox.yaml"):
            write(self.config_dir + "/sandbox.yaml", json.dumps({"cli": self.runtime.cli}), 0o600)
        return self

    # -- running --

    def env(self, **more):
        env = {"HOME": self.home, "KRAFT_HOME": self.kraft_home, "PATH": "/usr/bin:/bin", "USER": USER,
               "LOGNAME": USER, "LANG": "C.UTF-8"}
        for source in (self.runtime.env if self.runtime else {}, self.extra_env, more):
            for key, value in source.items():
                if value is None:
                    env.pop(key, None)
                else:
                    env[key] = value
        return env

    def kraft(self, *words, env=None, cwd=None, stdin=b"", timeout=120, before=(), preexec=None, popen=False,
              raw_env=None, **more):
        """Runs kraft. `before`: words in front of it, a program that changes something and executes the rest."""
        if not self._is_asked and os.path.isdir(self.repo):
            self._ask_first()
        argv = list(before) + [KRAFT] + list(words)
        options = dict(env=raw_env if raw_env is not None else self.env(**(env or {})), cwd=cwd or self.repo,
                       preexec_fn=preexec, **more)
        if popen:
            return subprocess.Popen(argv, stdin=options.pop("stdin_file", subprocess.DEVNULL),
                                    stdout=options.pop("stdout", subprocess.PIPE),
                                    stderr=options.pop("stderr", subprocess.PIPE), **options)
        start = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   **options)
        try:
            out, err = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise Failed("kraft %s hangs (%d s): %r" % (words, timeout, Result(process.returncode, out, err)))
        return Result(process.returncode, out, err, time.monotonic() - start)

    def run(self, *command, options=(), **more):
        """kraft run OPTIONS -- COMMAND, standing in the repository."""
        return self.kraft("run", *options, "--", *command, **more)

    def start(self, *command, options=(), **more):
        return self.kraft("run", *options, "--", *command, popen=True, **more)

    def sh(self, script, **more):
        return self.run("sh", "-c", script, **more)

    def probe(self, *words, **more):
        return self.run("./probe", *words, **more)

    def py(self, code, *words, **more):
        return self.run("python3", "-IS", "-c", code, *words, **more)

    def ok(self, *command, **more):
        result = self.run(*command, **more)
        if result.code != 0:
            raise Failed("%r should run: %r" % (command, result))
        return result

    def host(self, *argv, env=None, cwd=None, timeout=60, stdin=b"", preexec=None):
        """The same attempt on the host, outside of every wall."""
        done = subprocess.run(list(argv), env=self.env(**(env or {})), cwd=cwd or self.repo, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, preexec_fn=preexec,
                              check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def host_probe(self, *words, **more):
        return self.host(PROBE, *words, **more)

    def bare(self, *command, without=(), more=(), bind=(), ro=(), **options):
        """A bare bubblewrap with a view like kraft's. `without`: options to leave out; `more`: words to add.

        In a container: the runtime's own run of the same image, with none of kraft's options."""
        if self.runtime:
            code, out, err = self.runtime.call(*self.runtime.bare(*command, image=self.image, flags=more, mounts=[self.repo, *bind, *ro], cwd=self.repo), ok=False)
            return Result(code, out.encode(), err.encode())
        parts = [["--unshare-all"], ["--unshare-user"], ["--disable-userns"], ["--die-with-parent"],
                 ["--new-session"], ["--ro-bind", "/usr", "/usr"], ["--ro-bind", "/etc", "/etc"],
                 ["--symlink", "usr/bin", "/bin"], ["--symlink", "usr/lib", "/lib"],
                 ["--symlink", "usr/lib64", "/lib64"], ["--proc", "/proc"], ["--dev", "/dev"],
                 ["--size", str(2 << 30), "--tmpfs", "/tmp"], ["--size", str(256 << 20), "--tmpfs", "/dev/shm"],
                 ["--bind", self.repo, self.repo], ["--chdir", self.repo]]
        parts += [["--bind", p, p] for p in bind] + [["--ro-bind", p, p] for p in ro]
        parts += [["--remount-ro", "/"], ["--remount-ro", "/dev"]]
        words = [w for p in parts if p[0] not in without and " ".join(p) not in without for w in p]
        return self.host(BWRAP, *words, *more, "--", *command, **options)

    def weaker(self, *command, drop, more=(), **options):
        """The same where a defence is off: under kraft's bubblewrap without these options; in a container the runtime's own run
        without any filter, with `more` of its words."""
        if self.runtime:
            return self.bare(*command, more=["--security-opt", "seccomp=unconfined", *more], **options)
        return self.run(*command, env=self.without(*drop), **options)

    def on_the_hosts_network(self, *command):
        """The same with the host's network: of a control."""
        if self.runtime:
            code, out, err = self.runtime.call(*self.runtime.bare(*command, image=self.image, network="host"), ok=False)
            return Result(code, out.encode(), err.encode())
        return self.run(*command, env={"KRAFT_BWRAP": self.wrapper(append=[["--share-net"]])})

    def wrapper(self, drop=(), replace=(), append=(), **plan):
        """A bubblewrap with options taken away, for KRAFT_BWRAP. Patterns are lists of leading words."""
        plan.update(drop=[[p] if isinstance(p, str) else p if isinstance(p, dict) else list(p) for p in drop],
                    replace=[[list(a), list(b)] for a, b in replace], append=[list(o) for o in append])
        path = os.path.join(self.root, "bwrap-" + uuid.uuid4().hex[:8])
        return write(path, WRAPPER % {"python": PYTHON, "bwrap": BWRAP, "arity": ARITY, "plan": json.dumps(plan)}, 0o755)

    def without(self, *drop, **plan):
        """The environment for a kraft whose bubblewrap lacks these options."""
        return {"KRAFT_BWRAP": self.wrapper(drop=drop, **plan)}

    # -- looking at what kraft made --

    @property
    def worktree(self):
        if not self._worktree:
            self._worktree = self.ok("pwd").out.rstrip("\n")
        return self._worktree

    @property
    def sandbox_home(self):
        return self.ok("sh", "-c", "printf %s \"$HOME\"").out

    @property
    def private_git(self):
        """The item's private git directory, as git inside names it."""
        return self.ok("git", "rev-parse", "--absolute-git-dir").out.rstrip("\n")

    @property
    def git_mounts(self):
        """What git inside needs: the private git directory with its own mount points, and the repository's objects."""
        own = self.private_git
        return {own, own + "/objects", own + "/objects/info", own + "/objects/info/alternates", self.repo + "/.git/objects"}

    @property
    def git_read_only(self):
        return {m for m in self.git_mounts if m.endswith(("/alternates", "/.git/objects"))}

    def session_folders(self):
        top = os.path.join(self.run_dir, "sessions")
        return sorted((os.path.join(top, n) for n in os.listdir(top)), key=os.path.getmtime) if os.path.isdir(top) else []

    def exit_files(self):
        return [os.path.join(f, "exit") for f in self.session_folders() if os.path.exists(os.path.join(f, "exit"))]

    def explain(self, *command, options=(), **more):
        """kraft explain --json as (Result, dictionary or None)."""
        words = ["--"] + list(command) if command else []
        result = self.kraft("explain", "--json", *options, *words, **more)
        try:
            return result, json.loads(result.out)
        except ValueError:
            return result, None


_shared = {}


def shared(**entry):
    """One home for the tests of a file that need nothing of their own."""
    key = json.dumps(entry, sort_keys=True)
    if key not in _shared:
        _shared[key] = Home(**entry)
    return _shared[key]


# ---- looking at the host ----

def marked(mark):
    """Pids of every process whose command line holds the mark: also those inside a sandbox, seen from the host."""
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read()
                with open("/proc/%s/stat" % pid, "rb") as f:
                    state = f.read().rsplit(b")", 1)[1].split()[0]
            except OSError:
                continue
            if mark.encode() in words and state != b"Z":
                found.append(int(pid))
    return found


def mark():
    return "mark-" + uuid.uuid4().hex


def wait_for(condition, seconds=10, step=0.02):
    """Waits until it holds; returns whether it did."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(step)


def gone(mark_text, seconds=5):
    return wait_for(lambda: not marked(mark_text), seconds)


def sanitized():
    """Whether the programs are a build with sanitizers, which keeps what was freed."""
    try:
        options = json.loads(read(os.path.join(BUILD, "meson-info/intro-buildoptions.json")))
        return any(o["name"] == "b_sanitize" and o["value"] not in ("none", [], "") for o in options)
    except (OSError, ValueError):
        return False


def children(pid):
    """Pids below a process, nearest first."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as f:
                    parents[int(name)] = int(f.read().rsplit(b")", 1)[1].split()[1])
            except OSError:
                continue
    found, level = [], [pid]
    while level:
        level = [p for p, parent in parents.items() if parent in level]
        found += level
    return found


def command_of(pid):
    """The words of a process's command line; one empty word when it is gone."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().split(b"\0")[:-1] or [b""]
    except OSError:
        return [b""]


def launcher_of(process):
    """The launcher below a running kraft: the guest program called with `launch`."""
    for pid in children(process.pid):
        words = command_of(pid)
        if len(words) > 1 and words[1] == b"launch":
            return pid
    return None


def tree_hash(path):
    """What a tree holds: names, types, modes, sizes, times of change of content, link texts, bytes."""
    found = {}
    for top, dirs, files in os.walk(path):
        for name in dirs + files:
            whole = os.path.join(top, name)
            info = os.lstat(whole)
            body = b""
            if stat.S_ISLNK(info.st_mode):
                body = os.readlink(whole).encode("utf-8", "surrogateescape")
            elif stat.S_ISREG(info.st_mode) and os.access(whole, os.R_OK):
                with open(whole, "rb") as f:
                    body = f.read()
            found[os.path.relpath(whole, path)] = (info.st_mode, info.st_mtime_ns, body)
    return found


def changed(before, after):
    return sorted(k for k in set(before) | set(after) if before.get(k) != after.get(k))


def mount_table(text):
    """mountinfo as a list of dictionaries: at, options, type, source, super."""
    table = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, tail = left.split(), right.split()
        if len(words) >= 6 and len(tail) >= 2:
            table.append({"root": words[3], "at": re.sub(r"\\(\d{3})", lambda m: chr(int(m.group(1), 8)), words[4]),
                          "options": words[5].split(","), "type": tail[0], "source": tail[1],
                          "super": tail[2].split(",") if len(tail) > 2 else []})
    return table


# ---- tests ----

_tests = []


class Test:
    def __init__(self, ids, name, function, is_wall):
        self.ids, self.name, self.function, self.is_wall = ids, name, function, is_wall
        self.parts, self.notes = set(), []

    def _part(self, part, holds, text, *shown):
        self.parts.add(part)
        if not holds:
            raise Failed("%s: %s%s" % (part, text, "".join("\n" + (s if isinstance(s, str) else repr(s)) for s in shown)))

    def attack(self, holds, text, *shown):
        self._part("attack", holds, text, *shown)

    def works(self, holds, text, *shown):
        self._part("works", holds, text, *shown)

    def control(self, holds, text, *shown):
        self._part("control", holds, text, *shown)

    def note(self, text):
        self.notes.append(text)

    def skip(self, why):
        raise Skipped(why)


def wall(ids, name):
    """A test of a wall: must make an attack, see something work, and have a control."""
    def register(function):
        _tests.append(Test(ids, name, function, True))
        return function
    return register


def promise(ids, name):
    """A test of a promise that is no wall: something works, or is refused with a sentence."""
    def register(function):
        _tests.append(Test(ids, name, function, False))
        return function
    return register


def _run_one(test):
    try:
        test.function(test)
        missing = {"attack", "works", "control"} - test.parts if test.is_wall else set()
        if missing:
            return "not ok", "the test lacks: " + ", ".join(sorted(missing))
        return "ok", None
    except (Skipped, runtimelive.Absent) as why:
        return ("not ok", "skipped: %s" % why) if MUST_WORK else ("skip", str(why))
    except Failed as why:
        return "not ok", str(why)
    except Exception:  # a fault of the test itself is a failure as well
        return "not ok", traceback.format_exc()


def main():
    """Runs the tests of the file. Words on the command line choose those whose id or name holds one of them."""
    if os.geteuid() == 0:
        print("Bail out! the live tests run as an unprivileged user")
        sys.exit(1)
    for needed in (KRAFT, PROBE):
        if not os.access(needed, os.X_OK):
            print("Bail out! KRAFT_BUILD lacks " + needed)
            sys.exit(1)
    if ABSENT:
        print("1..0 # skip " + ABSENT)
        return
    os.umask(0o022)
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # by nohup, or a shell's "&": it would be inherited
        if signal.getsignal(ignored) == signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the temporary homes are removed
    chosen = [t for t in _tests if not sys.argv[1:] or any(w in t.ids + " " + t.name for w in sys.argv[1:])]
    if RUNTIME and not sys.argv[1:]:
        file = os.path.basename(sys.argv[0])[len("test_"):-len(".py")]
        chosen = [t for t in chosen if _again.runs_here(file, RUNTIME.name, t.ids, t.name)]
    print("1..%d" % len(chosen), flush=True)
    failed = 0
    for i, test in enumerate(chosen, 1):
        start = time.monotonic()
        before = len(_homes)
        verdict, why = _run_one(test)
        _end_hosts(_homes[before:])
        for note in test.notes:
            print("# " + note)
        line = "%s %d - %s %s" % ("ok" if verdict == "skip" else verdict, i, test.ids, test.name)
        print(line + (" # SKIP " + why if verdict == "skip" else ""), flush=True)
        if verdict == "not ok":
            failed += 1
            for text in why.splitlines():
                print("#   " + text, flush=True)
        if os.environ.get("KRAFT_LIVE_TIMES"):
            print("#   %.2f s" % (time.monotonic() - start))
    sys.exit(1 if failed else 0)


__all__ = [n for n in dir() if not n.startswith("_")]
