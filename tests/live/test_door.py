#!/usr/bin/env python3
"""A session's way out where it listens on the host's own loopback, as on macOS (MAC-06): door.c serves one without a session,
and what it is told is looked at. What a proxy refuses and passes on is test_egress*.py's; this is who is answered at all."""
# kraft-test: timeout 240
from egresslive import *

import base64
import urllib.parse

FILES = {"/hello": b"hello from far away\n"}
URL = "https://web.tls.example/hello"


def serve_file(request):
    body = FILES.get(request.target.partition("?")[0])
    if body is None:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


lab.tls("web.tls.example", netlab.http(serve_file))
lab.serve("plain.example")

CA = {"SSL_CERT_FILE": lab.ca, "CURL_CA_BUNDLE": lab.ca, "GIT_SSL_CAINFO": lab.ca, "NODE_EXTRA_CA_CERTS": lab.ca, "npm_config_cafile": lab.ca}
HOSTS = ["web.tls.example", "plain.example"]


class Door:
    """One proxy on loopback; as a context manager it ends it. session: whose processes it is told are the session's."""

    def __init__(self, session=0, hosts=HOSTS):
        build = os.environ["KRAFT_BUILD"]
        self.process = subprocess.Popen([os.path.join(build, "tests/live/door"), os.path.join(build, "kraft-egress"), str(session), *hosts],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, start_new_session=True)
        self.url = self.process.stdout.readline().decode().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.token, self.port, self.said = parts.password, parts.port, []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.said.append(line.decode().strip())

    def strangers(self):
        return sum(int(line.split()[1]) for line in self.said if line.startswith("strangers "))

    def egress(self):
        return wait_for(lambda: next((p for p in children(self.process.pid) if name_of(p) == "kraft-egress"), None))

    def environment(self, url=None):
        url = self.url if url is None else url
        return dict(CA, PATH="/usr/bin:/bin", HOME=HOME.root, http_proxy=url, https_proxy=url, HTTP_PROXY=url, HTTPS_PROXY=url, NODE_USE_ENV_PROXY="1")

    def run(self, *words, url=None, **more):
        return HOME.host(*words, env=dict(self.environment(url), **more), cwd=HOME.root)

    def says(self, target, token, method="CONNECT"):
        """The status for one request with this token; None: without one."""
        fields = "" if token is None else "Proxy-Authorization: Basic %s\r\n" % base64.b64encode(b"kraft:" + token.encode()).decode()
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:
            s.sendall(("%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n%s\r\n" % (method, target, fields)).encode())
            found = s.recv(65536)
        return int(found.split()[1]) if found else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.process.wait(20) != 0:
            raise Failed("the door ended with %d" % self.process.returncode)


HOME = Home("door")
TARGETS = [("web.tls.example:443", "CONNECT"), ("http://plain.example/", "GET"), ("http://kraft/w/show", "POST"), ("http://kraft/mcp", "POST")]


@wall("MAC-03 MAC-06", "no token, a wrong one, another session's: 407 each time")
def _(t):
    with Door() as one, Door() as other:
        wrong = one.token[:-1] + ("0" if one.token[-1] != "0" else "1")
        t.attack(one.token != other.token and len(one.token) == 64, "each session has its own token")
        for token in (None, wrong, other.token, "", one.token.upper() + "x"):
            statuses = [one.says(target, token, method) for target, method in TARGETS]
            t.attack(statuses == [407] * 4, "each is 407", token, statuses)
        t.attack(not any(line.startswith(("refused", "call")) for line in one.said), "and no host or call was judged", one.said)
        t.works(wait_for(lambda: one.strangers() == 20), "they are counted", one.said)
        t.control([one.says(target, one.token, method) for target, method in TARGETS[:3]] == [200] * 3, "the right one is answered")
        t.control(one.says("closed.example:443", one.token) == 403 and wait_for(lambda: "refused closed.example" in one.said), "and then judged", one.said)
        t.control(other.says(*TARGETS[0][:1], other.token) == 200, "as is the other session's at its own")


@wall("MAC-03", "the token is in no argument list or environment of a process of kraft's, and in no word to a server")
def _(t):
    with Door() as door:
        for pid in (door.process.pid, door.egress()):
            for name in ("cmdline", "environ"):
                with contextlib.suppress(PermissionError):
                    t.attack(door.token not in read("/proc/%d/%s" % (pid, name)), "not in its %s" % name, pid)
        before = len(lab.conns)
        t.works(door.run("curl", "-sS", "-m", "20", "http://plain.example/").code == 0, "a plain request goes out")
        sent = b"".join(bytes(c.got) for c in lab.conns[before:])
        t.attack(b"roxy-" not in sent and door.token.encode() not in sent, "without it", sent)
        t.control(b"GET / HTTP/1.1" in sent, "the server's side is seen", sent)
        listening = [line.split() for line in read("/proc/net/tcp").splitlines()[1:]]
        t.attack([line[1] for line in listening if line[3] == "0A" and line[1].endswith(":%04X" % door.port)] == ["0100007F:%04X" % door.port], "it listens on 127.0.0.1 only", listening)


@promise("MAC-06", "curl, git, python, node and npm say the token of the proxy's URL")
def _(t):
    bare = os.path.join(HOME.root, "far.git")
    git(HOME.repo, "clone", "-q", "--bare", HOME.repo, bare)
    git(bare, "update-server-info")
    for top, _, files in os.walk(bare):
        for name in files:
            path = os.path.join(top, name)
            with open(path, "rb") as f:
                FILES["/far.git/" + os.path.relpath(path, bare)] = f.read()
    node = """const http = require('http'), tls = require('tls'), p = new URL(process.env.HTTPS_PROXY);
http.request({host: p.hostname, port: p.port, method: 'CONNECT', path: 'web.tls.example:443', auth: undefined,
  headers: {'Proxy-Authorization': 'Basic ' + Buffer.from(p.username + ':' + p.password).toString('base64')}}).on('connect', (r, s) => {
  if (r.statusCode !== 200) return console.log(r.statusCode), s.destroy();
  const t = tls.connect({socket: s, servername: 'web.tls.example'}, () => t.write('GET /hello HTTP/1.1\\r\\nHost: web.tls.example\\r\\nConnection: close\\r\\n\\r\\n'));
  t.pipe(process.stdout);
}).end()"""
    tools = {
        "curl": ["curl", "-sS", "-m", "20", URL],
        "curl that asks first": ["curl", "-sS", "-m", "20", "--proxy-anyauth", URL],
        "curl, plain": ["curl", "-sS", "-m", "20", "http://plain.example/"],
        "curl, plain, that asks first": ["curl", "-sS", "-m", "20", "--proxy-anyauth", "http://plain.example/"],
        "git": ["sh", "-c", "rm -rf cloned; git clone -q https://web.tls.example/far.git cloned && cat cloned/README"],
        "python": ["/usr/bin/python3", "-c", "import urllib.request as u; print(u.urlopen('%s', timeout=20).read().decode())" % URL],
        "python, plain": ["/usr/bin/python3", "-c", "import urllib.request as u; print(u.urlopen('http://plain.example/', timeout=20).read().decode())"],
        "node": ["node", "-e", node],
        "npm": ["npm", "view", "--registry", "https://web.tls.example/", "--fetch-retries=0", "far-package", "name"],
    }
    FILES["/far-package"] = json.dumps({"name": "far-package", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "far-package", "version": "1.0.0"}}}).encode()
    with Door() as door:
        bare_url = "http://127.0.0.1:%d" % door.port
        for name, words in tools.items():
            if not shutil.which(words[0], path="/usr/bin:/bin"):
                t.note("%s is not installed here" % name)
                continue
            good = door.run(*words)
            before = door.strangers()
            bad = door.run(*words, url=bare_url)
            gets = lambda r: any(word in r.out for word in ("hello from far away", "a sample", "from 93.184.", "far-package"))
            t.works(good.code == 0 and gets(good), "%s gets out with it" % name, good)
            t.control(not gets(bad) and wait_for(lambda: door.strangers() > before), "%s is answered 407 without, and counted" % name, bad)


@wall("MAC-06", "a process outside of the session that knows the token")
def _(t):
    holder = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        with Door(session=holder.pid) as door:
            answers = [door.says(target, door.token, method) for target, method in TARGETS[:3]]
            t.attack(answers == [403] * 3, "is refused, whatever it asks", answers)
            t.attack(not any(line.startswith(("refused", "call")) for line in door.said), "before anything is judged", door.said)
            t.works(wait_for(lambda: door.strangers() == 3), "and counted", door.said)
        with Door(session=os.getpid()) as door:
            t.control([door.says(target, door.token, method) for target, method in TARGETS[:3]] == [200] * 3, "the session's own is answered")
            child = door.run("curl", "-sS", "-m", "20", URL)
            t.control("hello" in child.out, "and a child of its own", child)
            t.attack(door.says(TARGETS[0][0], None) == 407, "which still needs the token")
    finally:
        holder.kill()
        holder.wait()


@wall("MAC-06", "a flood of connections that say nothing takes no place from the session")
def _(t):
    with Door() as door, contextlib.ExitStack() as stack:
        stop, opened = threading.Event(), [0]

        def flood():
            held = []
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    held.append(socket.create_connection(("127.0.0.1", door.port), 1))
                    opened[0] += 1
                if len(held) > 300:
                    held.pop(0).close()
            for s in held:
                s.close()

        threads = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
        stack.callback(stop.set)
        for thread in threads:
            thread.start()
        wait_for(lambda: opened[0] > 1000)
        good = [door.run("curl", "-sS", "-m", "20", URL) for _ in range(10)]
        t.attack(all("hello" in r.out for r in good), "each request gets out", good)
        t.control(opened[0] > 1000, "more were opened than a session has places", opened)
        stop.set()
        wait_for(lambda: door.says(TARGETS[0][0], door.token) == 200)
        t.works(door.says(TARGETS[0][0], None) == 407, "afterwards it is as before")
        t.note("%d connections that said nothing" % opened[0])


@promise("MAC-06 POL-09", "a kraft-egress that dies is started again with the same door and token, once")
def _(t):
    with Door() as door:
        t.works(door.says(TARGETS[0][0], door.token) == 200, "it serves")
        os.kill(door.egress(), signal.SIGKILL)
        t.works(wait_for(lambda: "lost" in door.said), "its end is told", door.said)
        t.works(door.says(TARGETS[0][0], door.token) == 200 and door.says(TARGETS[0][0], None) == 407, "the next one serves and asks as the first did")
        os.kill(door.egress(), signal.SIGKILL)
        wait_for(lambda: "lost for good" in door.said)
        try:
            door.says(TARGETS[0][0], door.token)
            t.works(False, "then nobody listens")
        except OSError:
            t.works(True, "then nobody listens")


if __name__ == "__main__":
    main()
