#!/usr/bin/env python3
"""The HTTP API: who may ask, what a request must look like, every route, events as they come (CHN-12, ITM-03, HTTP-01)."""
# kraft-test: timeout 400
from servelive import *

DONE = node("work", task("do", "sh -c 'echo hello; echo made >>made; git add made; git -c user.name=w -c user.email=w@w.example commit -qm made'"))


def office():
    home = Office()
    home.chain("short", DONE, GATE)
    home.chain("fails", node("work", task("do", "sh -c 'exit 3'")))
    home.chain("slow", node("work", task("do", "sh -c 'echo begun; sleep 60'")))
    return home


def file_one(server, title="an item", chain="short", **more):
    made = server.post("/api/work-items", dict({"title": title, "repo": server.home.repo, "chain": chain}, **more))
    if made.status != 201:
        raise Failed("not filed: %r" % made)
    return made.json["id"]


def settle(server, item, want, seconds=30):
    if not wait_for(lambda: server.get("/api/work-items/" + item).json["display_status"] == want, seconds, 0.1):
        raise Failed("it is not '%s': %r" % (want, server.get("/api/work-items/" + item)))


# ---- who may ask ----

# Tries each route at each place where the server could be met; prints the places, statuses and the first bytes of what was answered.
INSIDE = r"""
import json, socket, sys
routes, port, hosts, token = json.loads(sys.argv[1])
def talk(where, target, method, host):
    body = b"{}" if method == "POST" else b""
    head = "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (method, target, host, token, len(body))
    try:
        with socket.create_connection(where, 5) as s:
            s.sendall(head.encode() + body)
            return s.recv(4096).decode("utf-8", "replace")
    except OSError as why:
        return "none: %s" % why
for method, path in routes:
    for host in hosts:
        here = "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)
        for name, where, target in (("direct", (host, port), path), ("proxy", ("127.0.0.1", 3128), "http://%s%s" % (here, path))):
            print(json.dumps([name, host, method, path, talk(where, target, method, here)]))
    print(json.dumps(["kraft", "kraft", method, path, talk(("127.0.0.1", 3128), "http://kraft" + path, method, "kraft")]))
"""


@wall("CHN-07 CHN-12 CHAN-02 NET-03", "a worker that knows address and token tries each route of the server, at each place: none answers, but its own verbs")
def _(t):
    home = office()
    home.configure(sandbox={"network": {"runtime": {"allow": ["127.0.0.1", "localhost", socket.gethostname(), "example.com"]}}})
    routes = re.findall(r"^## (GET|POST|PATCH|DELETE) (/api/\S+)$", home.kraft("help", "api").out, re.MULTILINE)
    with serve(home) as server:
        item = file_one(server, "a target")
        paths = [(method, path.replace("{id}", item).replace("{gate}", "review").replace("{thread}", "t1").replace("{session}", "s1")) for method, path in routes]
        t.works(len(paths) >= 25, "its routes", paths)
        write(home.repo + "/inside.py", INSIDE)
        hosts = ["127.0.0.1", "localhost", "::1", socket.gethostname()]
        run = home.run("python3", "-IS", "inside.py", json.dumps([paths, server.port, hosts, server.token]), options=["--with-changes"])
        found = [json.loads(line) for line in run.lines]
        t.works(run.code == 0 and len(found) == len(paths) * (2 * len(hosts) + 1), "all were tried", run)
        through = [f for f in found if f[4].startswith("HTTP/1.1 2") or "a target" in f[4] or "reattach_summary" in f[4]]
        t.attack(not through, "none answers", through[:5])
        refused = [f for f in found if f[0] != "direct" and not re.match(r"HTTP/1.1 40[0-9]", f[4])]
        t.attack(not refused, "the proxy refuses each", refused[:5])
        t.attack(server.get("/api/work-items").json["items"][0]["status"] == "paused", "the item is as it was")
        own = home.run("sh", "-c", "curl -sS -d '' http://kraft/w/events")
        t.works(own.code == 0, "its own verb answers", own)
        fine = [server.ask(method, path, {} if method == "POST" else None).status for method, path in paths if "stream" not in path]
        t.control(fine.count(200) >= 5 and 401 not in fine, "the same from the host, with the token", fine)


@wall("CHN-12 NET-11", "a page of another site, and a name that was rebound to this address, read nothing and change nothing")
def _(t):
    home = office()
    filing = {"title": "by a page", "repo": home.repo, "chain": "short"}
    with serve(home) as server:
        for host in ("evil.example", "evil.example:%d" % server.port, "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0",
                     "192.168.1.1", "127.0.0.2", "[::2]", "localhost@evil.example", "", "::1", "127.1", "2130706433"):
            for method, path, body in (("GET", "/api/work-items", None), ("GET", "/api/health", None), ("POST", "/api/work-items", filing)):
                no = server.ask(method, path, body, headers={"Host": host})
                t.attack(no.status == 403 and list(no.json) == ["detail"], "Host %r, %s %s" % (host, method, path), no)
        t.attack(server.get("/api/work-items", headers={"Host": None}).status == 400, "no Host at all")
        for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example", "https://localhost.evil.example:1", "localhost",
                       "file://", "http://", "http://localhost@evil.example", "http://evil.example/http://localhost"):
            no = server.post("/api/work-items", filing, headers={"Origin": origin})
            t.attack(no.status == 403, "Origin %r" % origin, no)
            t.attack(server.get("/api/work-items", headers={"Origin": origin}).status == 403, "and reading, %r" % origin)
        for value in ("cross-site", "Cross-Site"):
            t.attack(server.get("/api/work-items", headers={"Sec-Fetch-Site": value}).status == 403, "Sec-Fetch-Site " + value)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None, "application/jsonp",
                     "application/json; charset=utf-16", "text/json"):
            no = server.post("/api/work-items", filing, headers={"Content-Type": kind})
            t.attack(no.status == 415, "a body of type %r, as a form sends it" % kind, no)
        preflight = server.ask("OPTIONS", "/api/work-items", token=False)
        t.attack(preflight.status == 405 and not any("access-control" in h for h in preflight.headers), "a preflight is answered by nothing", preflight)
        t.works(server.get("/api/work-items").json == {"items": []}, "nothing was filed by any of them")
        for host in ("127.0.0.1", "localhost", "LOCALHOST:1", "localhost.", "127.0.0.1:65535", "[::1]", "[::1]:80", "[0:0:0:0:0:0:0:1]"):
            t.control(server.get("/api/work-items", headers={"Host": host}).status == 200, "Host %r" % host)
        for origin in ("http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080", "HTTP://LOCALHOST"):
            t.control(server.get("/api/work-items", headers={"Origin": origin}).status == 200, "Origin %r" % origin)
        for value in ("same-origin", "none", "same-site"):
            t.control(server.get("/api/work-items", headers={"Sec-Fetch-Site": value}).status == 200, "Sec-Fetch-Site " + value)
        for kind in ("application/json", "Application/JSON; charset=utf-8", 'application/json;charset="UTF-8"'):
            yes = server.post("/api/work-items", filing, headers={"Content-Type": kind})
            t.control(yes.status == 201, "the same with a type of %r" % kind, yes)


@wall("CHN-12 CHAN-02", "what changes something needs the token, whatever else a request carries")
def _(t):
    home = office()
    with serve(home) as server:
        item = file_one(server)
        other = ("A" if server.token[0] != "A" else "B") + server.token[1:]
        forged = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Forwarded-Host": "localhost",
                  "Cookie": "kraft_session=9999999999." + "0" * 64, "X-Kraft-Token": server.token, "X-Kraft-User": USER,
                  "X-HTTP-Method-Override": "GET", "Proxy-Authorization": "Bearer " + server.token}
        routes = [(m, p) for m, p in changes(server) if p != "/api/login"]
        t.works(len(routes) == 17, "every change of the reference", routes)
        for method, path in routes:
            path = path.replace("{id}", item).replace("{gate}", "review").replace("{thread}", "t0000000")
            for name, headers in (("none", {}), ("another", {"Authorization": "Bearer " + other}), ("a shorter one", {"Authorization": "Bearer " + server.token[:-1]}),
                                  ("a longer one", {"Authorization": "Bearer " + server.token + "A"}), ("an empty one", {"Authorization": "Bearer "}),
                                  ("a password", {"Authorization": "Basic " + server.token}), ("only the word", {"Authorization": server.token}),
                                  ("forged", forged)):
                no = server.ask(method, path, {}, token=False, headers=headers)
                t.attack(no.status == 401 and no.headers["www-authenticate"].startswith("Bearer"), "%s %s with %s" % (method, path, name), no)
        twice = b"POST /api/work-items/%s/cancel HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n"
        t.attack(b" 401 " in server.raw(twice % (item.encode(), server.token.encode())), "two of them")
        t.attack(server.get("/api/work-items/" + item).json["status"] == "paused", "none of it moved the item")
        yes = server.post("/api/work-items/%s/cancel" % item, headers=dict(forged, Authorization="bearer " + server.token))
        t.control(yes.status == 200 and yes.json["status"] == "cancelled", "the token does, the same headers beside it", yes)
        mode = os.stat(home.run_dir + "/token")
        t.works(stat.S_IMODE(mode.st_mode) == 0o600 and re.fullmatch(r"[A-Za-z0-9_-]{43}\n", read(home.run_dir + "/token")), "its file is ours alone")
        t.works(home.kraft("admin", "token").out == server.token + "\n", "and 'kraft admin token' prints it")
        inside = home.kraft("admin", "token", env={"KRAFT_SESSION_ID": "x"})
        t.attack(inside.code == 5 and server.token not in inside.out, "not to a session", inside)
    os.chmod(home.run_dir + "/token", 0o644)
    loose = home.kraft("admin", "token")
    t.attack(loose.code == 5 and "only you can read" in loose.err and not loose.out, "a token that others can read is none", loose)


def changes(server):
    """(method, path) of every route that is no GET, from the reference."""
    text = server.home.kraft("help", "api").out
    return [tuple(line.split()[1:3]) for line in text.splitlines() if re.match(r"## (POST|PATCH|DELETE) ", line)]


@wall("CHN-12 ITM-03", "a call that carries a session moves nothing that is a person's word, over the API either")
def _(t):
    home = office()
    with serve(home) as server:
        item = file_one(server, autostart=True)
        settle(server, item, "needs you")
        begun = server.post("/api/work-items/%s/threads" % item, {"body": "look"}).json["id"]
        bodies = {"reject": {"note": "no"}, "steer": {"text": "x"}, "comments": {"body": "x"}, "threads": {"body": "x"}, "review": {"outcome": "approve"}}
        person = [p for _, p in changes(server) if p not in ("/api/login", "/api/work-items")]
        t.works(len(person) == 16, "all that is a person's", person)
        before = server.get("/api/work-items/" + item).json
        for path in person:
            path = path.replace("{id}", item).replace("{gate}", "review").replace("{thread}", begun)
            body = bodies.get(path.rsplit("/", 1)[1])
            for value in ("0123456789abcdef", "", "x"):
                no = server.post(path, body, headers={"X-Kraft-Session-Id": value})
                t.attack(no.status == 403 and "for a person" in no.detail, "%s with %r" % (path, value), no)
        for headers in ({"X-Kraft-Session-Id": "0123456789abcdef"}, {"X-Kraft-Client": "mcp"}):
            no = server.post("/api/work-items", {"title": "x", "repo": home.repo, "chain": "short", "autostart": True}, headers=headers)
            t.attack(no.status == 403 and "only a person starts" in no.detail, "filed and started by %r" % headers, no)
            filed = server.post("/api/work-items", {"title": "x", "repo": home.repo, "chain": "short"}, headers=headers)
            t.works(filed.status == 201 and filed.json["status"] == "paused", "filing alone is allowed", filed)
        t.attack(server.get("/api/work-items/" + item).json == before, "the item is where it was")
        t.works(server.get("/api/work-items", headers={"X-Kraft-Session-Id": "x"}).status == 200, "reading is allowed")
        yes = server.post("/api/work-items/%s/gates/review/approve" % item)
        t.control(yes.status == 200, "a person's same call passes the gate", yes)
        settle(server, item, "done")


@wall("NET-03", "on loopback another user of this machine reads nothing without the token; we do")
def _(t):
    home = office()
    other = ["unshare", "--user", "--map-auto", "--setuid", "1", "--setgid", "1"]
    if subprocess.run(other + ["true"], capture_output=True).returncode:
        t.skip("no second user can be had here (newuidmap, subuid)")
    client = r"""import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n" % (sys.argv[3], sys.argv[4].replace("|", "\r\n"))).encode())
out = b""
while True:
    more = s.recv(65536)
    if not more: break
    out += more
sys.stdout.write(out.decode())"""
    with serve(home) as server:
        file_one(server, "a secret title")

        def ask(path, header="", before=other):
            return subprocess.run([*before, PYTHON, "-c", client, server.host, str(server.port), path, header], capture_output=True, text=True, cwd="/").stdout

        for path in ("/api/work-items", "/api/repos", "/api/chains", "/api/events/stream?after_seq=0"):
            no = ask(path)
            t.attack(no.startswith("HTTP/1.1 401 ") and "secret" not in no, path, no)
        health = ask("/api/health")
        t.works(health.startswith("HTTP/1.1 200 ") and home.run_dir not in health and home.home not in health, "health, without paths", health)
        t.works("a secret title" in ask("/api/work-items", "Authorization: Bearer %s|" % server.token), "with the token it reads")
        t.control("a secret title" in ask("/api/work-items", before=[]), "the same client as our user reads without it")
        t.works(server.get("/api/health", token=False).json["run_dir"] == home.run_dir, "and is told where")


@wall("HTTP-10", "off loopback everything but health needs the token or a login; a password is guessed slowly")
def _(t):
    home = office()
    write(home.config_dir + "/access.yaml", "bind: 0.0.0.0\nport: 0\n", 0o600)
    no_password = home.kraft("admin", "start")
    t.attack(no_password.code == 5 and "no password is set" in no_password.err and "admin password" in no_password.err,
             "without a password nothing but loopback is bound", no_password)
    set_password(t, home, "correct horse")
    hashed = re.search(r"^password_hash: '(\$y\$.*)'$", read(home.config_dir + "/access.yaml"), re.MULTILINE)
    t.works(hashed and "bind: 0.0.0.0\n" in read(home.config_dir + "/access.yaml"), "'kraft admin password' writes a hash, and keeps the rest")
    with serve(home, bind="0.0.0.0", password_hash=hashed.group(1), allowed_hosts=["kraft.example"]) as server:
        file_one(server, "a secret title")
        for path in ("/api/work-items", "/api/repos", "/api/events/stream"):
            t.attack(server.get(path, token=False).status == 401, path + ", though our own user asks")
        t.works(server.get("/api/health", token=False).status == 200, "health needs nothing")
        t.works("run_dir" not in server.get("/api/health", token=False).json, "and shows no path")
        begin = time.monotonic()
        wrong = server.post("/api/login", {"password": "wrong horse"}, token=False)
        t.attack(wrong.status == 401 and "set-cookie" not in wrong.headers and time.monotonic() - begin >= 1, "a wrong password, after a second", wrong)
        begin = time.monotonic()
        answers = at_once(12, lambda n: server.post("/api/login", {"password": "guess %d" % n}, token=False).status)
        t.attack(sorted(set(answers)) == [401, 429] and time.monotonic() - begin >= answers.count(401), "many at once are not looked at faster", answers)
        right = server.post("/api/login", {"password": "correct horse"}, token=False)
        cookie = right.headers.get("set-cookie", "")
        t.works(right.status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Max-Age=604800" in cookie, "the right one", right)
        value = cookie.split(";")[0]
        t.control("a secret title" in server.get("/api/work-items", token=False, headers={"Cookie": "a=b; " + value}).text, "the login reads")
        filing = {"title": "by login", "repo": home.repo, "chain": "short"}
        t.works(server.post("/api/work-items", filing, token=False, headers={"Cookie": value}).status == 201, "and changes")
        t.attack(server.post("/api/work-items", filing, token=False, headers={"Cookie": value, "Origin": "http://evil.example"}).status == 403,
                 "not from another site")
        name, _, text = value.partition("=")
        expires, _, mac = text.partition(".")
        for forged in ("%s=%d.%s" % (name, int(expires) + 1, mac), "%s=%s.%s" % (name, expires, mac[:-1]), "%s=%s.%s" % (name, expires, "0" * 64),
                       "%s=.%s" % (name, mac), name + "=", "x" + value):
            t.attack(server.get("/api/work-items", token=False, headers={"Cookie": forged}).status == 401, "a cookie %r" % forged)
        for host, status in (("kraft.example", 200), ("KRAFT.example.:80", 200), ("127.0.0.1", 200), ("other.example", 403)):
            t.attack(server.get("/api/work-items", headers={"Host": host}).status == status, "Host %s" % host)
    set_password(t, home, "another horse")
    hashed = re.search(r"^(?:\{.*)?\"?password_hash\"?: '(\$y\$[^']*)'", read(home.config_dir + "/access.yaml"), re.MULTILINE) or \
        re.search(r"'(\$y\$[^']*)'", read(home.config_dir + "/access.yaml"))
    with serve(home, bind="0.0.0.0", password_hash=hashed.group(1)) as server:
        t.attack(server.get("/api/work-items", token=False, headers={"Cookie": value}).status == 401, "a new password ends the logins of the old one")
    with serve(home) as server:
        t.attack(server.post("/api/login", {"password": "another horse"}, token=False).status == 403, "on loopback there is no login")
        t.attack(server.post("/api/work-items", filing, token=False, headers={"Cookie": value}).status == 401, "and no cookie")


def at_once(n, function):
    out = [None] * n

    def one(k):
        out[k] = function(k)
    threads = [threading.Thread(target=one, args=(k,)) for k in range(n)]
    [x.start() for x in threads]
    [x.join() for x in threads]
    return out


def set_password(t, home, word):
    """Types it twice at a terminal of its own, which must not show it."""
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(home.home)
        os.execve(KRAFT, [KRAFT, "admin", "password"], home.env())
    shown = b""
    for prompt in (b"Password: ", b"Again: "):
        while prompt not in shown:
            shown += os.read(fd, 1000)
        time.sleep(0.1)
        os.write(fd, word.encode() + b"\n")
        shown = shown.split(prompt)[-1]
    with contextlib.suppress(OSError):
        while True:
            more = os.read(fd, 1000)
            if not more:
                break
            shown += more
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    t.works(code == 0 and b"the password is set" in shown and word.encode() not in shown, "a password is typed, and not shown", shown)


# ---- what a request must look like ----

@wall("HTTP-01 HTTP-02 HTTP-05 HTTP-09", "what two readers could read in two ways is 400 and the end of the connection; nothing behind it is answered")
def _(t):
    home = office()
    with serve(home) as server:
        auth = "Host: localhost\r\nAuthorization: Bearer %s\r\n" % server.token
        typed = auth + "Content-Type: application/json\r\n"
        behind = "GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        body = json.dumps({"title": "smuggled", "repo": home.repo, "chain": "short"})
        post = "POST /api/work-items HTTP/1.1\r\n" + typed
        length = "Content-Length: %d\r\n" % len(body)
        cases = {
            "CL and TE": post + length + "Transfer-Encoding: chunked\r\n\r\n" + body,
            "two CLs": post + length + length + "\r\n" + body,
            "two different CLs": post + length + "Content-Length: 0\r\n\r\n" + body,
            "CL list": post + "Content-Length: %d, %d\r\n\r\n" % (len(body), len(body)) + body,
            "CL with a sign": post + "Content-Length: +%d\r\n\r\n" % len(body) + body,
            "CL hex": post + "Content-Length: 0x10\r\n\r\n" + body,
            "CL negative": post + "Content-Length: -1\r\n\r\n" + body,
            "CL too large": post + "Content-Length: 99999999999999999999\r\n\r\n" + body,
            "bare LF": (post + length + "\r\n" + body).replace("\r\n", "\n"),
            "bare LF at the end": post + length + "\n" + body,
            "bare CR": post + "X: a\rb\r\n" + length + "\r\n" + body,
            "NUL": post + "X: a\0b\r\n" + length + "\r\n" + body,
            "a folded line": post + "X: a\r\n b\r\n" + length + "\r\n" + body,
            "a blank before the colon": post + "Content-Length : %d\r\n\r\n" % len(body) + body,
            "no colon": post + "nonsense\r\n" + length + "\r\n" + body,
            "two Hosts": post + "Host: localhost\r\n" + length + "\r\n" + body,
            "TE of another kind": post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "TE twice": post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/2": "GET /api/health HTTP/2.0\r\nHost: localhost\r\n\r\n",
            "HTTP/0.9": "GET /api/health\r\n",
            "a blank too many": "GET  /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a method in small letters": "get /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "an absolute target": "GET http://localhost/api/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a fragment": "GET /api/health#x HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01",
            "a line first": "\r\nGET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a head of 100 KiB": "GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: " + "a" * 100000 + "\r\n\r\n",
            "300 fields": "GET /api/health HTTP/1.1\r\nHost: localhost\r\n" + "X: a\r\n" * 300 + "\r\n",
        }
        kept = ("an absolute target", "a fragment")  # read well, and refused: those connections go on
        for name, text in cases.items():
            out = server.raw((text + behind).encode("latin-1"))
            t.attack(out.startswith(b"HTTP/1.1 400 ") and out.count(b"HTTP/1.1 ") == 1 + (name in kept), name, out)
        chunked = server.raw((post + "Transfer-Encoding: chunked\r\n\r\n" + "%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) + behind).encode())
        t.attack(chunked.startswith(b"HTTP/1.1 411 ") and chunked.count(b"HTTP/1.1 ") == 1, "chunks need a length, and end it", chunked)
        expect = server.raw((post + length + "Expect: 200-ok\r\n\r\n" + body).encode())
        t.attack(expect.startswith(b"HTTP/1.1 417 "), "an expectation of another kind", expect)
        get = server.raw(("GET /api/health HTTP/1.1\r\n" + typed + "Content-Length: %d\r\n\r\n" % len(behind) + behind).encode())
        t.attack(get.startswith(b"HTTP/1.1 400 ") and get.count(b"HTTP/1.1 ") == 1, "a GET with a body that is a request", get)
        t.attack(server.get("/api/work-items").json == {"items": []}, "nothing was filed")
        whole = server.raw((post + length + "\r\n" + body + behind).encode())
        t.control(whole.startswith(b"HTTP/1.1 201 ") and whole.count(b"HTTP/1.1 ") == 2, "the same, well written: two answers in order", whole)
        request = (post + length + "\r\n" + body + behind).encode()
        for cut in range(0, len(request), full(17, 1)):
            with server.connect() as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.sendall(request[:cut])
                time.sleep(0.005)
                sock.sendall(request[cut:])
                out = read_all(sock)
            t.works(out.startswith(b"HTTP/1.1 201 ") and out.count(b"HTTP/1.1 ") == 2, "cut at %d" % cut, out)


@wall("HTTP-10", "a slow client, a large one and a deep one cost a known time and memory, and nobody else")
def _(t):
    home = office()
    with serve(home) as server:
        begin = time.monotonic()
        sock = server.connect(40)
        ends = []

        def drip():
            with contextlib.suppress(OSError):
                for byte in b"GET /api/health HTTP/1.1\r\nX: " + b"a" * 1000:
                    sock.sendall(bytes([byte]))
                    time.sleep(0.2)
                    if ends:
                        return
        dripping = threading.Thread(target=drip)
        dripping.start()
        t.works(server.get("/api/health").status == 200, "meanwhile another one is answered")
        out = read_all(sock)
        took = time.monotonic() - begin
        ends.append(True)
        dripping.join()
        sock.close()
        t.attack(out.startswith(b"HTTP/1.1 408 ") and 9 < took < 20, "a head that drips in is given up after 10 s", out, took)
        large = server.raw(server.request("POST", "/api/work-items", b"x" * (10 << 20)), timeout=40)
        t.attack(large.startswith(b"HTTP/1.1 413 ") and b"at most 1 MiB" in large, "a body of 10 MB is refused before it is read", large)
        for name, body in (("deep", b'{"title": ' + b"[" * 100000 + b"]" * 100000 + b"}"), ("17 deep", b'{"a":' * 17 + b"1" + b"}" * 17),
                           ("wide", b'{"depends_on": [' + b'"a",' * 5000 + b'"a"]}'), ("many keys", b"{" + b",".join(b'"k%d":1' % n for n in range(9000)) + b"}")):
            no = server.post("/api/work-items", body)
            t.attack(no.status == 400 and "too deep, or has too many" in no.detail, name, no)
        most = {"title": "the most", "repo": home.repo, "chain": "short", "description": "x" * 65536}
        t.control(server.post("/api/work-items", most).status == 201, "one that is as large as it may be is taken")
        rss = int(re.search(r"VmHWM:\s+(\d+)", read("/proc/%d/status" % server.pid)).group(1))
        t.works(rss < 65536, "and the server stayed small", rss)


@promise("HTTP-07", "a body is one JSON object of what the route takes, each value in its bounds; what is wrong is named")
def _(t):
    home = office()
    with serve(home) as server:
        good = {"title": "x", "repo": home.repo, "chain": "short"}
        for body, status, word in ((b"", 422, "'title' is missing"), (b"{}", 422, "'title' is missing"), (b"[]", 400, "no JSON object"), (b"1", 400, "no JSON"),
                                   (b"{", 400, "no JSON"), (b'{"title":"a","title":"b"}', 400, "no JSON"), (b'{"title":"\xff"}', 400, "no JSON"),
                                   (b'{"title":"a\\u0000b"}', 400, "no JSON"), (b'{} {}', 400, "no JSON"),
                                   (dict(good, titel="x"), 422, "'titel' is nothing that this route takes"), (dict(good, budget_usd=1), 422, "'budget_usd'"),
                                   (dict(good, title=1), 422, "'title' has to be a string"), (dict(good, title=""), 422, "'title' is empty"),
                                   (dict(good, title="x" * 501), 422, "'title' is too long"), (dict(good, title="a\nb"), 422, "one line"),
                                   (dict(good, title=None), 422, "'title' is missing"), (dict(good, autostart="yes"), 422, "true or false"),
                                   (dict(good, depends_on="x"), 422, "list of strings"), (dict(good, depends_on=[1]), 422, "no string"),
                                   (dict(good, depends_on=["x"] * 65), 422, "too many"), (dict(good, repo="sample"), 422, "no absolute path"),
                                   (dict(good, chain="no-such"), 404, "no-such"), (dict(good, repo="/"), 404, ""), (dict(good, description="x" * 65537), 422, "too long")):
            no = server.post("/api/work-items", body)
            t.works(no.status == status and word in no.detail and "src/" not in no.text, "%.60r" % body, no)
        for path, status in (("/api/work-items?all=maybe", 422), ("/api/work-items?every=1", 422), ("/api/work-items?all=1&all=1", 422), ("/api/work-items?%zz", 400),
                             ("/api/work-items?all=%00", 400), ("/api/work-items/%ff", 400), ("/api/work-items/%2", 400), ("/api/work-items/a%0ab", 400)):
            t.works(server.get(path).status == status, path, server.get(path))
        t.works(server.post("/api/work-items?dry_run=1", good).status == 422, "no query where there is a body")
        for path in ("/", "/api", "/api/", "/api/work-items/", "/api/work-items//events", "/api/work-items/bulk/x", "/api/nothing", "/API/health", "/api/health/",
                     "/api/../api/health", "/api/work-items/x/duplicate", "/api/work-items/x/budget/raise", "/" + "a/" * 50, "/api/ws/events", "/index.html"):
            no = server.get(path)
            t.works(no.status == 404 and list(no.json)[0] == "detail", path, no)
        for method, path, allow in (("DELETE", "/api/work-items", "GET, HEAD, POST"), ("POST", "/api/health", "GET, HEAD"), ("GET", "/api/login", "POST"),
                                    ("PATCH", "/api/work-items/x", "GET, HEAD"), ("PUT", "/api/work-items/x/pause", "POST")):
            no = server.ask(method, path)
            t.works(no.status == 405 and no.headers["allow"] == allow, "%s %s" % (method, path), no)
        head = server.ask("HEAD", "/api/work-items")
        t.works(head.status == 200 and not head.body and int(head.headers["content-length"]) > 10, "HEAD", head)
        with server.connect() as sock:
            for _ in range(3):
                sock.sendall(server.request("GET", "/api/health"))
                t.works(read_answer(sock).status == 200, "one connection, many requests")
            sock.sendall(server.request("GET", "/api/health") + server.request("POST", "/api/nothing", {}) + server.request("GET", "/api/health"))
            out = read_all(sock)
        t.works(re.findall(rb"HTTP/1.1 (\d+) ", out) == [b"200", b"404"], "in order, and it ends behind a body that was not read", out)
        old = server.raw(b"GET /api/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        t.works(old.startswith(b"HTTP/1.1 200 ") and b"Connection: close\r\n" in old, "HTTP/1.0", old)
        waits = server.connect()
        waits.sendall(server.request("POST", "/api/work-items", good, headers={"Expect": "100-continue"}).split(b"\r\n\r\n")[0] + b"\r\n\r\n")
        t.works(waits.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n", "a client that waits for a word before it sends the body")
        waits.sendall(json.dumps(good).encode())
        t.works(read_answer(waits).status == 201, "gets it")
        waits.close()


# ---- what it does ----

@promise("ITM-01 ITM-03", "every route once: an item is filed, started, shown, sent back, approved, and what is asked is what the command line prints")
def _(t):
    home = office()
    with serve(home) as server:
        def same(path, *words):
            api, cli = server.get(path), home.kraft(*words, cwd=home.home)
            t.works(api.status == 200 and api.json == json.loads(cli.out), path, api, cli)

        item = file_one(server, description="in full")
        at = "/api/work-items/" + item
        for path, words in ((at, ("view", "show", "--json", item)), ("/api/work-items", ("view", "list", "--json")), ("/api/repos", ("repo", "list", "--json")),
                            ("/api/chains", ("admin", "chains", "--json")), (at + "/threads", ("view", "threads", "--json", item))):
            same(path, *words)
        t.works(server.get(at + "/diff").text == "", "nothing ran, nothing changed")
        t.works(server.post(at + "/steer", {"text": "be brief"}).json["steer"] == "be brief", "a word for its agent")
        t.works(server.post(at + "/unblock").status == 409, "it waits for none")
        t.works(server.post(at + "/pause").status == 409, "nobody is at it")
        t.works(server.post(at + "/archive").status == 409, "it has not ended")
        t.works(server.post(at + "/retry").status == 409 and server.post(at + "/retry", {"path": "work", "restart": True}).status == 422, "nothing failed")
        t.works(server.post(at + "/gates/nothing/approve").status == 404 and server.post(at + "/gates/review/approve").status == 409, "not at its gate")
        began = server.post(at + "/resume", {"steer": "begin"})
        t.works(began.status == 200, "it goes on", began)
        settle(server, item, "needs you")
        shown = server.get(at).json
        t.works(shown["pending_gate"] == "review" and shown["sessions"][0]["status"] == "done", "at its gate", shown)
        same(at, "view", "show", "--json", item)
        diff = server.get(at + "/diff")
        t.works("+made\n" in diff.text and diff.headers["content-type"].startswith("text/plain") and diff.headers["x-content-type-options"] == "nosniff", "its diff", diff)
        t.works(diff.text == home.kraft("view", "diff", item).out, "as it is printed")
        session = shown["sessions"][0]["id"]
        log = server.get("/api/worker-sessions/%s/log" % session)
        t.works(log.text == home.kraft("view", "logs", session).out and "hello\n" in log.text, "its log", log)
        lines = server.get("/api/worker-sessions/%s/log?format=jsonl" % session).text
        t.works(lines == home.kraft("view", "logs", "--json", session).out, "in lines", lines)
        t.works(server.get("/api/worker-sessions/%s/log?format=xml" % session).status == 422 and
                server.get("/api/worker-sessions/..%2f..%2ftoken/log").status == 404, "what is no session")
        thread = server.post(at + "/threads", {"body": "say more", "file": "made", "line": 1, "must_fix": True})
        t.works(thread.status == 201 and server.post(at + "/threads", {"body": "x", "line": 1}).status == 422, "a thread", thread)
        under = "/api/threads/" + thread.json["id"]
        no = server.post(at + "/gates/review/approve")
        t.works(no.status == 409 and thread.json["id"] in no.detail and "hint" in no.json, "it stands in the way", no)
        t.works(server.post(under + "/comments", {"body": "please"}).status == 201 and server.post(under + "/resolve").json["state"] == "resolved" and
                server.post(under + "/reopen").json["state"] == "open" and server.post(under + "/resolve").status == 200, "said, settled, reopened, settled")
        t.works(server.post("/api/threads/t0000000/resolve").status == 404 and server.get(at + "/threads?open=1").json == [], "no such thread; none is open")
        same(at + "/threads", "view", "threads", "--json", item)
        t.works(server.post(at + "/review", {"outcome": "fine"}).status == 422 and server.post(at + "/review", {"outcome": "comment"}).status == 422,
                "a review needs an outcome, and a comment something to answer")
        commented = server.post(at + "/review", {"outcome": "comment", "summary": "why?"})
        t.works(commented.status == 200 and commented.json["reply_agent"] is False and "has no agent" in commented.json["reply_agent_reason"] and
                commented.json["pending_gate"] == "review", "a comment, and nobody to answer it", commented)
        asked = server.get(at + "/threads?open=1").json
        t.works([c["body"] for x in asked for c in x["comments"]] == ["why?"] and server.post("/api/threads/%s/resolve" % asked[0]["id"]).status == 200, "its thread", asked)
        t.works(server.post(at + "/gates/review/reject").status == 422, "a rejection says why")
        back = server.post(at + "/gates/review/reject", {"note": "again", "no_start": True})
        t.works(back.status == 200 and back.json["status"] == "paused" and back.json["steer"] == "again" and back.json["node"] == "work", "sent back", back)
        t.works(server.post(at + "/resume").status == 200, "it goes on")
        settle(server, item, "needs you")
        t.works(server.get(at).json["pending_gate"] == "review", "at its gate again", server.get(at), server.get(at + "/events"))
        approved = server.post(at + "/gates/review/approve", {"note": "good"})
        t.works(approved.status == 200, "approved", approved)
        settle(server, item, "done")
        for word in ("resume", "skip", "retry", "cancel", "complete", "steer"):
            late = server.post(at + "/" + word, {"text": "x"} if word == "steer" else None)
            t.works(late.status == 409, word + " of a finished one", late)
        events = server.get(at + "/events").json
        cli = [json.loads(line) for line in home.kraft("view", "events", "--json", "--item", item).out.splitlines()]
        t.works(events["events"] == cli and not events["more"], "its events", events)
        page = server.get(at + "/events?after_seq=%d&limit=2" % cli[1]["seq"]).json
        t.works(page["events"] == cli[2:4] and page["more"], "by pages", page)
        t.works([e["type"] for e in server.get(at + "/events?type=gate_approved").json["events"]] == ["gate_approved"], "by type")
        t.works(server.get("/api/work-items").json == {"items": []} and len(server.get("/api/work-items?all=1").json["items"]) == 1, "off the list")
        freed = server.post(at + "/archive")
        t.works(freed.status == 200 and freed.json["bytes"] > 0 and not os.path.exists(home.tree(item)), "what it left is gone", freed)
        t.works(server.post(at + "/archive").json["bytes"] == 0, "once")
        failing = file_one(server, chain="fails", autostart=True)
        settle(server, failing, "failed")
        t.works(server.post("/api/work-items/%s/retry" % failing, {"no_start": True}).json["status"] == "paused", "retried")
        t.works(server.post("/api/work-items/%s/skip" % failing, {"note": "no need"}).status == 200, "skipped")
        settle(server, failing, "done")
        slow = file_one(server, chain="slow", autostart=True)
        settle(server, slow, "running")
        busy = server.get("/api/work-items/%s/diff" % slow)
        t.works(busy.status == 409 and server.post("/api/work-items/%s/steer" % slow, {"text": "x"}).status == 409, "a process is at it", busy)
        t.works(server.post("/api/work-items/%s/pause" % slow).json["status"] == "paused", "paused")
        t.works(server.post("/api/work-items/%s/complete" % slow, {"reason": "enough"}).json["status"] == "completed", "ended by hand")
        gone = file_one(server)
        t.works(server.post("/api/work-items/%s/cancel" % gone[:-1], {"reason": "no"}).json["reason"] == "no", "given up, by a beginning of its id")
        t.works(server.get("/api/work-items/an-item").status == 422 and server.get("/api/work-items/none").status == 404, "an id of several, of none")
        health = server.get("/api/health", token=False).json
        t.works(health["status"] == "ok" and health["pid"] == server.pid and health["port"] == server.port and set(health["reattach_summary"]) == {"scanned", "adopted", "resumed", "unknown"}, "health", health)


@promise("ITM-01", "a configuration that does not load is 503 with its place")
def _(t):
    home = office()
    with serve(home) as server:
        write(home.config_dir + "/chains/broken.yaml", "id: broken\nnodes: 1\n")
        no = server.post("/api/work-items", {"title": "x", "repo": home.repo, "chain": "broken"})
        t.works(no.status == 503 and "broken.yaml:2" in no.detail, "a chain", no)
        listed = {c["id"]: c["loads"] for c in server.get("/api/chains").json["chains"]}
        t.works(listed["broken"] is False and listed["short"] is True, "it is listed all the same", listed)
        write(home.config_dir + "/repos.yaml", "repos: 1\n", 0o600)
        no = server.get("/api/repos")
        t.works(no.status == 503 and "repos.yaml:1" in no.detail, "repositories", no)


@promise("ITM-06", "200 items filed by 8 clients at once: each is there once, with an id of its own")
def _(t):
    home = office()
    with serve(home) as server:
        def client(n):
            out = []
            with server.connect() as sock:
                for k in range(25):
                    sock.sendall(server.request("POST", "/api/work-items", {"title": "client %d item %d" % (n, k), "repo": home.repo, "chain": "short"}))
                    answer = read_answer(sock)
                    out.append((answer.status, answer.json.get("id"), answer.json.get("title")))
            return out
        made = [row for rows in at_once(8, client) for row in rows]
        t.works(len(made) == 200 and {row[0] for row in made} == {201}, "all were filed", [r for r in made if r[0] != 201][:3])
        items = server.get("/api/work-items").json["items"]
        t.works(sorted((i["id"], i["title"]) for i in items) == sorted((r[1], r[2]) for r in made) and len({r[1] for r in made}) == 200, "each once")


# ---- events as they come ----

@promise("ITM-06", "events come as they happen, each once, and a client that was cut off goes on behind the last one that it saw")
def _(t):
    home = office()
    with serve(home) as server:
        stream = server.events("/api/events/stream")
        t.works(stream.status == 200, "open")
        first = file_one(server, "the first")
        event = stream.next()
        t.works(json.loads(event["data"])["type"] == "work_item_created" and json.loads(event["data"])["item"] == first, "it comes", event)
        t.works(event["id"] == str(json.loads(event["data"])["seq"]), "its id is its number")
        stream.close()
        more = [file_one(server, "while it was cut %d" % n) for n in range(5)]
        stream = server.events("/api/events/stream?after_seq=0", {"Last-Event-ID": event["id"]})
        seen = [stream.json() for _ in range(5)]
        t.works([e["item"] for e in seen] == more and seen[0]["seq"] == int(event["id"]) + 1, "what it missed, once and in order", seen)
        later = file_one(server, "after it")
        t.works(stream.json()["item"] == later, "and it goes on")
        quiet = stream.next(seconds=25)
        t.works("comment" in quiet and "data" not in quiet, "a comment when nothing happens", quiet)
        stream.close()
        one = server.events("/api/events/stream?item=%s&type=work_item_cancelled" % first)
        server.post("/api/work-items/%s/cancel" % later)
        server.post("/api/work-items/%s/cancel" % first)
        t.works(one.json()["item"] == first, "of one item and type only")
        before = len(children(server.pid))
        one.close()
        t.works(before and wait_for(lambda: len(children(server.pid)) < before, 5), "its process ends when the client goes", before)
        t.works(server.get("/api/events/stream", headers={"Accept": "application/json"}).status == 406, "who takes no stream gets none")
        t.works(server.get("/api/events/stream?after_seq=-1").status == 422, "a number from 0")
        text = server.raw(b"HEAD /api/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        t.works(text.startswith(b"HTTP/1.1 200 ") and text.endswith(b"\r\n\r\n"), "HEAD ends at once", text)


@promise("ITM-01", "a log is followed until its session ends, and then an event says so")
def _(t):
    home = office()
    home.chain("counts", node("work", task("do", "sh -c 'for n in 1 2 3; do echo line $n; sleep 0.3; done; printf \"\\033]0;pwned\\a\"'")))
    with serve(home) as server:
        item = file_one(server, chain="counts", autostart=True)
        wait_for(lambda: server.get("/api/work-items/" + item).json["sessions"], 20, 0.1)
        session = server.get("/api/work-items/" + item).json["sessions"][0]["id"]
        wait_for(lambda: server.get("/api/worker-sessions/%s/log" % session).status == 200, 20, 0.1)
        stream = server.events("/api/worker-sessions/%s/log?follow=1" % session)
        seen = []
        while not seen or seen[-1].get("event") != "end":
            seen.append(stream.next())
        lines = [json.loads(e["data"])["text"] for e in seen[:-1]]
        t.works(lines[:3] == ["line 1", "line 2", "line 3"] and "\033" not in "".join(lines) and "\\x1b]0;pwned" in "".join(lines), "line by line, made safe", lines)
        t.works(json.loads(seen[-1]["data"]) == {"state": "exited"}, "and its end", seen[-1])
        t.works(stream.answer.read() == b"", "nothing follows")
        stream.close()


if __name__ == "__main__":
    main()
