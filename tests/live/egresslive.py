"""What the tests of the egress share: the test network, and a worker inside a sandbox that does what it is told.

Import it first: the program starts again inside of the test network's namespaces. A Worker is one session of `kraft run`
that takes pieces of Python over its standard input, so that a test can look at the host, the wire and the servers between
two steps; the functions of CLIENT are there. What a step leaves in `out` comes back.
"""
import netlab

netlab.enter()

import contextlib
import socket

from kraftlive import *

lab = netlab.Lab()
lab.listen(80, netlab.http())

CLIENT = r'''
import base64, contextlib, json, os, re, socket, ssl, struct, subprocess, sys, threading, time
PROXY = ("127.0.0.1", 3128)

def dial(timeout=20):
    return socket.create_connection(PROXY, timeout)

def read_to_end(s, timeout=20, most=1 << 24):
    """What came, and how it ended: eof, reset, or still-open."""
    data, end = b"", time.monotonic() + timeout
    while len(data) < most:
        s.settimeout(max(0.01, end - time.monotonic()))
        try:
            more = s.recv(1 << 18)
        except socket.timeout:
            return data, "still-open"
        except OSError:
            return data, "reset"
        if not more:
            return data, "eof"
        data += more
    return data, "most"

def read_head(s):
    data = b""
    while b"\r\n\r\n" not in data:
        more = s.recv(65536)
        if not more:
            break
        data += more
    head, end, rest = data.partition(b"\r\n\r\n")
    return head + end, rest

def status_of(data):
    found = re.match(rb"HTTP/1\.[01] (\d{3})", data)
    return int(found.group(1)) if found else None

def exchange(data, timeout=20, shut=False, pause=0.0):
    """One connection: sends the bytes (or a list of pieces, with a pause between) and reads to the end."""
    start = time.monotonic()
    with dial(timeout) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            for piece in data if isinstance(data, list) else [data]:
                s.sendall(piece)
                if pause:
                    time.sleep(pause)
            if shut:
                s.shutdown(socket.SHUT_WR)
        answer, end = read_to_end(s, timeout)
    head, _, body = answer.partition(b"\r\n\r\n")
    return {"status": status_of(answer), "head": head.decode("latin-1"), "body": body.decode("latin-1"), "end": end,
            "all": answer.decode("latin-1"), "seconds": time.monotonic() - start}

def get(url, fields="", timeout=40):
    host = url.partition("://")[2].partition("/")[0]
    return exchange(("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (url, host, fields)).encode("latin-1"), timeout)

def connect(target, early=b"", timeout=60):
    """Asks for a tunnel: status, socket, what came behind the head, the whole answer where it is no tunnel."""
    s = dial(timeout)
    s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % ((target.encode("latin-1"),) * 2) + early)
    head, rest = read_head(s)
    status = status_of(head)
    if status != 200:
        more, _ = read_to_end(s, 5)
        return status, s, b"", (head + rest + more).decode("latin-1")
    return status, s, rest, head.decode("latin-1")

def ask(target, timeout=60):
    """Only whether a tunnel is to be had: the status and the line that says why not."""
    start = time.monotonic()
    status, s, _, answer = connect(target, timeout=timeout)
    s.close()
    return {"status": status, "why": answer.partition("\r\n\r\n")[2], "all": answer, "seconds": time.monotonic() - start}

def tunnel(target, data=b"", timeout=20, early=b""):
    """Sends the bytes through a tunnel, ends that side, reads the other to its end."""
    status, s, rest, answer = connect(target, early)
    if status != 200:
        s.close()
        return {"status": status, "body": "", "why": answer.partition("\r\n\r\n")[2], "end": "refused"}
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    body, end = read_to_end(s, timeout)
    s.close()
    return {"status": status, "body": (rest + body).decode("latin-1"), "end": end}
'''

WORKER = CLIENT + r'''
scope = dict(globals())
for line in sys.stdin:
    scope["out"] = None
    answer = {}
    try:
        exec(compile(json.loads(line), "step", "exec"), scope)
        answer["out"] = scope["out"]
    except BaseException as why:
        import traceback
        answer["error"] = traceback.format_exc()
    sys.stdout.write("=>" + json.dumps(answer) + "\n")
    sys.stdout.flush()
'''


def small(kilobytes, limit):
    """Whether a size is below the limit. A build with sanitizers keeps what was freed, and is not measured."""
    return kilobytes < limit or sanitized()


def policy(runtime=(), deny=(), install=None, install_deny=(), setup="", **more):
    """A home whose network policy this is."""
    network = {"runtime": {"allow": list(runtime), "deny": list(deny)}}
    if install is not None:
        network["install"] = {"allow": list(install), "deny": list(install_deny)}
    return Home(setup_command=setup, sandbox={"network": network}, **more)


class Worker:
    """A session that does what it is told. As a context manager it ends the session."""

    def __init__(self, home, env=None, **more):
        self.home, self.mark, self.code, self.err = home, mark(), None, ""
        self.process = home.start("python3", "-ISu", "-c", WORKER, self.mark, env=env, stdin_file=subprocess.PIPE, **more)
        self.errors = []
        threading.Thread(target=self._errors, daemon=True).start()

    def _errors(self):
        with contextlib.suppress(OSError, ValueError):
            for line in self.process.stderr:
                self.errors.append(line.decode("utf-8", "replace"))

    def send(self, code):
        self.process.stdin.write((json.dumps(code) + "\n").encode())
        self.process.stdin.flush()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith(b"=>"):
                answer = json.loads(line[2:])
                if "error" in answer:
                    raise Failed("inside: " + answer["error"])
                return answer["out"]
        self.finish()
        raise Failed("the session ended: exit %s\n%s" % (self.process.returncode, self.err))

    def do(self, code, **values):
        """Runs the step inside with these variables; returns its `out`."""
        try:
            self.send("".join("%s = %r\n" % item for item in values.items()) + code)
        except OSError:
            self.finish()
            raise Failed("the session has ended: exit %s\n%s" % (self.code, self.err))
        return self.answer()

    def ask(self, *targets):
        """CONNECT to each of them, at once: a dictionary of answers."""
        return self.do("found = {}\n"
                       "def one(t):\n"
                       "    try: found[t] = ask(t)\n"
                       "    except OSError as e: found[t] = {'status': str(e), 'why': '', 'all': ''}\n"
                       "threads = [threading.Thread(target=one, args=(t,)) for t in targets]\n"
                       "[t.start() for t in threads]; [t.join() for t in threads]\nout = found", targets=list(targets))

    def egress(self):
        """The pid of this session's kraft-egress."""
        return wait_for(lambda: next((p for p in children(self.process.pid) if name_of(p) == "kraft-egress"), None))

    def finish(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.code = self.process.wait()
            self.errors.append("[it had to be killed]\n")
        time.sleep(0.05)
        self.err = "".join(self.errors)
        return self.err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()


def name_of(pid):
    try:
        return read("/proc/%d/comm" % pid).strip()
    except OSError:
        return ""


def inside(home, code, env=None, **values):
    """One step in a session of its own: its `out`, and what kraft said on standard error."""
    with Worker(home, env=env) as worker:
        out = worker.do(code, **values)
    return out, worker.err


def events(home, kind=None):
    """The events of the store, each a dictionary with its data merged in."""
    result = home.kraft("view", "events", "--json", *(["--type", kind] if kind else []))
    if result.code != 0:
        raise Failed("kraft view events: %r" % result)
    found = []
    text = result.out.strip()
    for event in json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]:
        data = event.get("data")
        found.append(dict(json.loads(data) if isinstance(data, str) else data or {}, **event))
    return found


def refusals(home):
    return events(home, "sandbox_egress_refused")


def is_refusal(answer):
    """403 with one line that begins with kraft's name."""
    why = answer.get("why") or answer.get("body", "")
    return answer["status"] == 403 and why.startswith("kraft: ") and why.count("\n") <= 1


def host_fetch(address, port=80, data=b"", timeout=5):
    """The same attempt on the host, without kraft: what came back, b"" for none."""
    try:
        with socket.create_connection((address, port), timeout) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            found = b""
            while True:
                more = s.recv(65536)
                if not more:
                    return found
                found += more
    except OSError:
        return b""


__all__ = [n for n in dir() if not n.startswith("_")]
