"""Drives the guest program directly: launcher, bubblewrap and init with hand-written arguments, as kraft would.

Used by test_guest.py and bench/start.py. KRAFT_BUILD names the build directory. Nothing of kraft's host side is used,
so what is tested here is the guest's own contract (guest/wire.h).
"""
import array
import ctypes
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD = os.path.abspath(os.environ.get("KRAFT_BUILD") or os.path.join(ROOT, "build"))
OPT = os.path.join(BUILD, "guest/opt")
INIT = os.path.join(OPT, "init")
BWRAP = shutil.which("bwrap") or "/usr/bin/bwrap"

(START, TERMINAL, STARTED, EXEC_FAILED, STOPPED, CONTINUED, EXIT, WALL, SIGNAL, KILL, CHILD,
 LAUNCH_FAILED, LEFT, LEFT_NAMES, STREAMS, GIVE_FILTER, OOM) = range(1, 18)
NAMES = dict(enumerate("- START TERMINAL STARTED EXEC_FAILED STOPPED CONTINUED EXIT WALL SIGNAL KILL CHILD "
                       "LAUNCH_FAILED LEFT LEFT_NAMES STREAMS FILTER OOM".split()))
NONE, KEYRING, NO_BWRAP, NAMESPACE, ROUTE, PTY, CWD, INTERNAL, CLIENT, RUNTIME, BAD_FILTER = range(11)
MESSAGE = struct.Struct("=IiiI")

ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)


def real_filter():
    """kraft's own filter, as the helper beside the unit tests writes it; without it, one that allows everything."""
    helper = os.path.join(BUILD, "tests/support/seccomp-dump")
    return subprocess.run([helper], stdout=subprocess.PIPE, check=True).stdout if os.path.exists(helper) else ALLOW_ALL


FILTER = real_filter()


def view(*extra, work=None, seal=True, capped=None):
    """Bubblewrap's arguments for the usual view. capped: host directories for /tmp and /dev/shm."""
    words = ["--unshare-all", "--unshare-user", "--disable-userns", "--as-pid-1", "--cap-drop", "ALL",
             "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + name):
            words += ["--symlink", os.readlink("/" + name), "/" + name]
    words += ["--proc", "/proc", "--dev", "/dev"]
    if capped:
        words += ["--bind", capped[0], "/tmp", "--bind", capped[1], "/dev/shm"]
    else:
        words += ["--perms", "1777", "--size", str(2 << 30), "--tmpfs", "/tmp",
                  "--perms", "1777", "--size", str(256 << 20), "--tmpfs", "/dev/shm"]
    words += ["--ro-bind", OPT, "/opt/kraft"]
    if work:
        words += ["--bind", work, work]
    words += list(extra)
    if seal:
        words += ["--remount-ro", "/", "--remount-ro", "/dev"]
    return words


# A runtime's CLI, as far as the launcher knows it: it makes a container, here of bubblewrap, and ends.
STAND_IN = """
import os, signal, sys, time
init = sys.argv[sys.argv.index("IMAGE") + 1:]
def apart(*words):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(words[0], words)
        os._exit(0)
    os.wait()
def start():
    apart(*%r, "--", "/opt/kraft/init", *init)
%s
"""


class Container:
    """What a session in a container has beside others: the client, its variables, and a folder with the init's socket.
    The folder's name is in the command line of all that belongs to it. body: what the client does; start() starts the
    container. image: its variables; mounts: bubblewrap's words."""

    def __init__(self, body="start()", environment=(), image=(), mounts=()):
        self.folder = tempfile.mkdtemp(prefix="guest-container-", dir=os.environ.get("TMPDIR"))
        self.path = os.path.join(self.folder, "i.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(4)
        self.environment = environment
        bwrap = [BWRAP] + view("--ro-bind", self.folder, self.folder, *mounts) + ["--clearenv"]
        for name, value in image:
            bwrap += ["--setenv", name, value]
        self.program = "/usr/bin/python3"
        self.words = ["client", "-ISc", STAND_IN % (bwrap, body), "run", "IMAGE"]


def memory_file(data):
    fd = os.memfd_create("guest-test", os.MFD_CLOEXEC)
    view_left = memoryview(data)
    while view_left:
        view_left = view_left[os.write(fd, view_left):]
    os.lseek(fd, 0, 0)
    return fd


class Session:
    """One launch. `messages` are (name, a, b) in order of arrival."""

    def __init__(self, argv, exec_path=None, args=None, env=None, keep=None, cwd="/", terminal=False, size=None,
                 verify=None, lifeline=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, extra=(), pass_fds=(), inherit=(), bwrap=BWRAP, capped=None,
                 caps=None, preexec=None, program=INIT, seccomp=None, container=None):
        self.folder = tempfile.mkdtemp(prefix="guest-", dir=os.environ.get("TMPDIR"))
        self.messages, self.master, self.rest = [], None, b""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        folder_fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        words = container.words if container else args if args is not None else view(capped=capped)
        files = [folder_fd, memory_file(b"".join(os.fsencode(w) + b"\0" for w in words)),
                 memory_file(FILTER if seccomp is None else seccomp)]
        line = [program, "launch", "--folder", str(folder_fd), "--control", str(theirs.fileno()), "--args", str(files[1])]
        if container:
            files += [memory_file(b"".join(os.fsencode(w) + b"\0" for w in container.environment)),
                      os.open(container.folder, os.O_RDONLY | os.O_DIRECTORY), container.listener.detach()]
            line += ["--client", container.program, "--filter", str(files[2]), "--client-env", str(files[3]),
                     "--client-dir", str(files[4]), "--listen", str(files[5]), "--connect", container.path]
        else:
            line += ["--bwrap", bwrap, "--seccomp", str(files[2])]
        self.lifeline = None
        if lifeline:
            reader, self.lifeline = os.pipe()
            files.append(reader)
            line += ["--lifeline", str(reader)]
        if verify is not None:
            files.append(memory_file(verify))
            line += ["--verify", str(files[-1])]
        if capped:
            line += ["--tmp", capped[0], "--shm", capped[1], "--caps", caps or "1048576,100,1048576,50"]
        env = {"PATH": "/usr/bin:/bin"} if env is None else env
        for name in env if keep is None else keep:
            line += ["--keep", name]
        for fd in pass_fds:
            line += ["--pass-fd", str(fd)]
        if terminal:
            line += ["--terminal"]
        if size:
            line += ["--terminal-size", "%d,%d" % size]
        line += list(extra)
        line += ["--cwd", cwd, "--exec", exec_path or argv[0], "--"] + list(argv)
        self.process = subprocess.Popen(line, stdin=stdin, stdout=stdout, stderr=stderr, env=env, preexec_fn=preexec,
                                        pass_fds=files + [theirs.fileno()] + list(pass_fds) + list(inherit))
        self.pid = self.process.pid
        theirs.close()
        for fd in files:
            os.close(fd)

    # -- talk --

    def tell(self, kind, a=0):
        self.control.send(MESSAGE.pack(kind, a, 0, 0))

    def signal(self, number):
        self.tell(SIGNAL, number)

    def read(self, timeout=10.0):
        """Reads what is there; False when nothing came in time or the launcher has gone."""
        if not select.select([self.control], [], [], timeout)[0]:
            return False
        try:
            data, ancillary, _flags, _address = self.control.recvmsg(4096, 4096)
        except ConnectionResetError:
            return False
        for level, kind, payload in ancillary:
            assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            fds = array.array("i")
            fds.frombytes(payload)
            assert len(fds) == 1 and self.master is None, "one descriptor, once"
            self.master = fds[0]
        if not data:
            return False
        self.rest += data
        while len(self.rest) >= MESSAGE.size:
            kind, a, b, zero = MESSAGE.unpack(self.rest[:MESSAGE.size])
            assert zero == 0
            self.rest = self.rest[MESSAGE.size:]
            self.messages.append((NAMES[kind], a, b))
        return True

    def wait_for(self, name, timeout=10.0):
        deadline = time.monotonic() + timeout
        while True:
            for message in self.messages:
                if message[0] == name:
                    return message
            left = deadline - time.monotonic()
            if left <= 0 or not self.read(left):
                raise AssertionError("no %s among %s" % (name, self.messages))

    def count(self, name):
        return sum(1 for m in self.messages if m[0] == name)

    def left(self):
        """What the command left running: how many, and the names of the first ones."""
        told = [m[1] for m in self.messages if m[0] == "LEFT"]
        names = b"".join(struct.pack("=ii", *m[1:]) for m in self.messages if m[0] == "LEFT_NAMES")
        return (told[0] if told else 0, [n for n in names.split(b"\0") if n])

    def child(self):
        return self.wait_for("CHILD")[1]

    # -- end --

    def finish(self, timeout=20.0):
        """Waits for the end; sets code, out, err, exit_file, started_mark."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError("the launcher did not end; heard %s" % self.messages)
        self.out = (out or b"").decode("utf-8", "replace")
        self.err = (err or b"").decode("utf-8", "replace")
        self.code = self.process.returncode
        while self.read(0):
            pass
        self.exit_file = self.file("exit")
        self.started_mark = os.path.exists(os.path.join(self.folder, "started"))
        self.close()
        return self

    def file(self, name):
        try:
            with open(os.path.join(self.folder, name)) as f:
                return f.read()
        except FileNotFoundError:
            return None

    def close(self):
        self.control.close()
        if self.lifeline is not None:
            os.close(self.lifeline)
            self.lifeline = None
        if self.master is not None:
            os.close(self.master)
            self.master = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __repr__(self):
        return "code %s file %r messages %s\n stdout %r\n stderr %r" % (
            getattr(self, "code", None), getattr(self, "exit_file", None), self.messages,
            getattr(self, "out", None), getattr(self, "err", None))


def run(*argv, timeout=20.0, **options):
    return Session(list(argv), **options).finish(timeout)


def shell(script, *arguments, **options):
    return run("/bin/sh", "-c", script, "sh", *arguments, **options)


# ---- processes of the host ----

def parents():
    """pid -> (ppid, state, command)."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as f:
                    text = f.read().decode("utf-8", "replace")
            except OSError:
                continue
            head, _, tail = text.rpartition(")")
            fields = tail.split()
            found[int(name)] = (int(fields[1]), fields[0], head.partition("(")[2])
    return found


def descendants(pid):
    table, result, todo = parents(), [], [pid]
    while todo:
        parent = todo.pop()
        for child, (ppid, _state, _command) in table.items():
            if ppid == parent:
                result.append(child)
                todo.append(child)
    return result


def marked(marker):
    """Processes of our user that have these bytes in their command line, and are no zombies."""
    found = []
    for pid, (_ppid, state, _command) in parents().items():
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                if marker.encode() in f.read() and state != "Z" and pid != os.getpid():
                    found.append(pid)
        except OSError:
            continue
    return found


def none_left(marker, timeout=5.0):
    deadline = time.monotonic() + timeout
    while True:
        left = marked(marker)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.01)


def wait_until(condition, timeout=5.0):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


libc = ctypes.CDLL(None, use_errno=True)
