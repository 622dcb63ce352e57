"""A server of a home's items, and a client that sends exactly what a test says."""
import contextlib
import http.client
import json
import socket
import time

from worklive import *


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.text = body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def detail(self):
        return self.json["detail"]

    def __repr__(self):
        return "%d %r %s" % (self.status, self.headers, self.text[:1500])


def read_answer(sock, method="GET"):
    """The next answer of a connection."""
    answer = http.client.HTTPResponse(sock, method=method)
    answer.begin()
    headers = {}
    for name, value in answer.getheaders():
        headers[name.lower()] = value
    return Answer(answer.status, headers, answer.read())


class Server:
    def __init__(self, home, host, port, token, pid):
        self.home, self.host, self.port, self.token, self.pid = home, host, port, token, pid
        self.name = "[%s]" % host if ":" in host else host

    def connect(self, timeout=30):
        return socket.create_connection((self.host, self.port), timeout)

    def request(self, method, path, body=None, token=True, headers=None):
        """The bytes of one. token: ours, another one, or False; a header of None is left out."""
        own = {"Host": "%s:%d" % (self.name, self.port)}
        if token:
            own["Authorization"] = "Bearer " + (self.token if token is True else token)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            own["Content-Type"] = "application/json"
            own["Content-Length"] = str(len(body))
        own.update(headers or {})
        lines = ["%s %s HTTP/1.1" % (method, path)]
        lines += ["%s: %s" % (name, value) for name, value in own.items() if value is not None]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")

    def ask(self, method, path, body=None, token=True, headers=None, timeout=90):
        with self.connect(timeout) as sock:
            sock.sendall(self.request(method, path, body, token, headers))
            return read_answer(sock, method)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, body, **more)

    def raw(self, data, timeout=15):
        """Everything that comes back for these bytes, until the server closes."""
        with self.connect(timeout) as sock:
            with contextlib.suppress(OSError):
                sock.sendall(data)
            return read_all(sock)

    def events(self, path, headers=None, token=True):
        return Events(self, path, headers, token)


def read_all(sock):
    out = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while True:
            more = sock.recv(65536)
            if not more:
                break
            out += more
    return out


class Events:
    """Server-sent events, as they come: {"id", "event", "data"}."""

    def __init__(self, server, path, headers, token):
        self.sock = server.connect()
        self.sock.sendall(server.request("GET", path, token=token, headers=dict({"Accept": "text/event-stream"}, **(headers or {}))))
        self.answer = http.client.HTTPResponse(self.sock)
        self.answer.begin()
        self.status = self.answer.status

    def next(self, seconds=20):
        self.sock.settimeout(seconds)
        event = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and event:
                return event
            if line.startswith(":"):
                event.setdefault("comment", line)
            elif line:
                name, _, value = line.partition(": ")
                event[name] = value

    def json(self, **more):
        return json.loads(self.next(**more)["data"])

    def close(self):
        self.answer.close()
        self.sock.close()


@contextlib.contextmanager
def serve(home, **access):
    """access: keys of access.yaml; the port is a free one."""
    write(home.config_dir + "/access.yaml", json.dumps(dict({"port": 0}, **access)), 0o600)
    started = home.kraft("admin", "start", "--detach")
    told = re.fullmatch(r"process (\d+) listens on http://(.*):(\d+)\n", started.out)
    if not told:
        raise Failed("nothing listens: %r" % started)
    host = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(told.group(2), told.group(2).strip("[]"))
    try:
        yield Server(home, host, int(told.group(3)), home.kraft("admin", "token").out.strip(), int(told.group(1)))
    finally:
        home.kraft("admin", "stop", "--sessions")


PORT_0 = ("--port", "0")


class Served(Office):
    """An office with a server."""

    def __init__(self, *options, **more):
        super().__init__(**more)
        self.server = None

    def serve(self, *options, **more):
        result = self.kraft("admin", "start", "--detach", *PORT_0, *options, **more)
        found = re.fullmatch(r"process (\d+) listens on (http://127\.0\.0\.1:\d+)\n", result.out)
        if result.code != 0 or not found:
            raise Failed("no server: %r" % result)
        self.server, self.url = int(found.group(1)), found.group(2)
        atexit.register(self.kill_server)
        return self

    def kill_server(self, how=signal.SIGKILL):
        if self.server:
            try:
                os.kill(self.server, how)
            except ProcessLookupError:
                pass
            wait_for(lambda: not os.path.exists("/proc/%d" % self.server), 5)
            self.server = None

    def words(self, item):
        return self.show(item)["display_status"]

    def becomes(self, item, *words, seconds=30):
        return wait_for(lambda: self.words(item) in words, seconds, 0.05)

    def types(self, item):
        return [e["type"] for e in self.events_of(item)]

    def health(self):
        return json.loads(self.kraft("admin", "health", "--json").out)


def host_of(home, item):
    return int(read("%s/worktrees/%s.host" % (home.run_dir, item)).split()[0])


__all__ = [n for n in dir() if not n.startswith("_")]
