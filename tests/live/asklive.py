"""What the tests of asks share: an item whose worker does what it is told, and speaks MCP by plain HTTP."""
from worklive import *

# Does each piece of Python that is put beside it as do-N, each in a thread, and leaves its `out` as out-N.
AGENT = r'''
import contextlib, json, os, re, socket, subprocess, sys, threading, time, traceback

def exchange(data, timeout=100, after=None):
    """One connection through the proxy: sends the bytes, reads to the end; when it came, by line."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", 3128), 20) as s:
        s.settimeout(timeout)
        with contextlib.suppress(OSError):
            for i in range(0, len(data), 1 << 16):
                s.sendall(data[i:i + (1 << 16)])
        got, times = b"", []
        try:
            while True:
                if after is not None and time.monotonic() - start > after:
                    break
                if after is not None:
                    s.settimeout(0.1)
                try:
                    more = s.recv(1 << 16)
                except socket.timeout:
                    if after is None:
                        raise
                    continue
                if not more:
                    break
                got += more
                times.append(round(time.monotonic() - start, 1))
        except OSError:
            pass
    head, _, body = got.partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/1\.1 (\d{3})", head)
    return {"status": int(found.group(1)) if found else None, "head": head.decode("latin-1"), "body": body.decode("utf-8", "replace"),
            "times": times, "seconds": time.monotonic() - start}

def post(body, fields="Accept: application/json, text/event-stream\r\n", path="/mcp", method="POST", **more):
    if not isinstance(body, (bytes, str)):
        body = json.dumps(body)
    body = body.encode("utf-8", "surrogateescape") if isinstance(body, str) else body
    return exchange(("%s http://kraft%s HTTP/1.1\r\nHost: kraft\r\nContent-Length: %d\r\n%s\r\n" % (method, path, len(body), fields)).encode() + body, **more)

def rpc(method, params=None, id=1, fields="", **more):
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    answer = post(message, "Accept: application/json, text/event-stream\r\n" + fields, **more)
    events = [json.loads(l[6:]) for l in answer["body"].splitlines() if l.startswith("data: ")]
    answer["progress"] = [e for e in events if "method" in e]
    last = [e for e in events if "method" not in e]
    if answer["body"].startswith("{"):
        last = [json.loads(answer["body"])]
    answer["message"] = last[0] if last else None
    return answer

def ask(tool="Bash", input=None, token=None, id=1, **more):
    """What is answered to a call of permission_request: the JSON in its text."""
    params = {"name": "permission_request", "arguments": {"tool_name": tool, "input": {"command": "ls"} if input is None else input, "tool_use_id": "toolu_1"}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    answer = rpc("tools/call", params, id=id, **more)
    if answer["message"] and "result" in answer["message"]:
        answer["answer"] = json.loads(answer["message"]["result"]["content"][0]["text"])
    return answer

def run(name):
    scope = dict(globals(), out=None)
    try:
        exec(compile(open(name).read(), name, "exec"), scope)
        said = {"out": scope["out"]}
    except BaseException:
        said = {"error": traceback.format_exc()}
    with open(name + ".new", "w") as f:
        json.dump(said, f)
    os.rename(name + ".new", name.replace("do-", "out-"))

if __name__ == "__main__":
    done = set(os.listdir("."))  # what was done in an earlier session
    open("ready", "w").close()
    while not os.path.exists("enough"):
        for name in sorted(os.listdir(".")):
            if re.fullmatch(r"do-\d+", name) and name not in done:
                done.add(name)
                threading.Thread(target=run, args=(name,), daemon=True).start()
        time.sleep(0.02)
    os._exit(0)
'''

OPEN = {"network": {"runtime": {"allow": []}}}


class Desk(Office):
    """An item with such a worker, at work. layer: of its policy."""

    def __init__(self, layer=None, item="an item that asks", agent=AGENT, chain_policy=None, **entry):
        super().__init__(sandbox=OPEN, **entry)
        write(self.repo + "/agent.py", agent)
        self.own("add", "-A")
        self.own("commit", "-qm", "agent")
        if layer is not None:
            self.policy(defaults=layer)
        first = node("work", dict({"id": "agent", "kind": "agent", "harness": "claude", "prompt": "ask"}))
        if chain_policy is not None:
            first["policy"] = chain_policy
        self.chain("asks", first, GATE)
        self.n = 0
        self.item = self.create(item, "--chain", "asks", worker="exec python3 -ISu agent.py")
        self.begin()

    def begin(self):
        started = self.kraft("item", "start", "--detach", self.item)
        if started.code != 0 or not wait_for(lambda: os.path.exists(self.tree(self.item) + "/ready"), 30):
            raise Failed("it does not work: %r %r" % (started, self.show(self.item)))

    def tell(self, code, **values):
        """Begins a piece; returns its number."""
        self.n += 1
        path = "%s/do-%d" % (self.tree(self.item), self.n)
        write(path + ".tmp", "".join("%s = %r\n" % v for v in values.items()) + code)
        os.rename(path + ".tmp", path)
        return self.n

    def answer(self, n, seconds=60):
        path = "%s/out-%d" % (self.tree(self.item), n)
        if not wait_for(lambda: os.path.exists(path), seconds):
            raise Failed("no answer: %r" % self.show(self.item))
        said = json.loads(read(path))
        if "error" in said:
            raise Failed("inside: " + said["error"])
        return said["out"]

    def do(self, code, seconds=60, **values):
        return self.answer(self.tell(code, **values), seconds)

    def asks(self, item=None):
        return json.loads(self.kraft("view", "asks", "--json", *([item] if item else [])).out)

    def open_asks(self, n=1, seconds=10):
        """Waits until so many are open."""
        if not wait_for(lambda: len(self.asks()) == n, seconds, 0.1):
            raise Failed("not %d asks, but %r" % (n, self.asks()))
        return self.asks()

    def egress(self):
        """The pid of its session's kraft-egress."""
        pids = [int(read("%s/worktrees/%s.host" % (self.run_dir, self.item)).split()[0])]
        for pid in pids:
            pids += children(pid)
        return next(p for p in pids if read("/proc/%d/comm" % p).strip() == "kraft-egress")

    def decisions(self):
        return [e["data"] for e in self.events_of(self.item) if e["type"] == "permission_decision"]

    def enough(self):
        write(self.tree(self.item) + "/enough", "")
        return self.settled(self.item)


__all__ = [n for n in dir() if not n.startswith("_")]
