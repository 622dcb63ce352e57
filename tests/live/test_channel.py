#!/usr/bin/env python3
"""The worker's calls to kraft: its own item, by its own channel, and nothing else (CHN, CHAN).

What a worker is answered here is what `kraft run` has for it: events, progress, show. The defences are the same for work
items: the route, the form, the bounds, whose call it is.
"""
# kraft-test: timeout 400
from egresslive import *

import random
import urllib.parse

VERBS = ("progress", "reply", "retry", "show", "threads", "events")
SHIM = "/opt/kraft/bin/kraft"

CALLS = r'''
import urllib.parse
def post(path, form="", fields="", timeout=40, method="POST", host="kraft"):
    """A call as anybody could write it: status, body."""
    body = form.encode("utf-8", "surrogateescape") if isinstance(form, str) else form
    head = "%s http://%s%s HTTP/1.1\r\nHost: kraft\r\nContent-Length: %d\r\n%s\r\n" % (method, host, path, len(body), fields)
    return exchange(head.encode("latin-1") + body, timeout)
def shim(*words, env=None, path="/opt/kraft/bin/kraft", stdin=b""):
    p = subprocess.run([path] + list(words), input=stdin, capture_output=True, env=env)
    return {"code": p.returncode, "out": p.stdout.decode(), "err": p.stderr.decode()}
def each(function, items, threads=16):
    """The function for each item, several at a time."""
    import queue
    work, found = queue.Queue(), {}
    for item in items: work.put(item)
    def one():
        while True:
            try: item = work.get_nowait()
            except queue.Empty: return
            try: found[str(item)] = function(item)
            except Exception as e: found[str(item)] = {"status": repr(e), "body": "", "all": "", "code": -1}
    pool = [threading.Thread(target=one) for _ in range(threads)]
    [t.start() for t in pool]; [t.join() for t in pool]
    return found
'''


class Caller(Worker):
    """A worker that knows how to call."""

    def __init__(self, home, **more):
        super().__init__(home, **more)
        self.do(CALLS)

    def shim(self, *words, **options):
        return self.do("out = shim(*words, **options)", words=list(words), options=options)

    def post(self, path, form="", **options):
        return self.do("out = post(path, form, **options)", path=path, form=form, options=options)


def site_home():
    lab.serve("site.example")
    return policy(["site.example"])


def store_size(home):
    return sum(os.path.getsize(os.path.join(home.run_dir, n)) for n in os.listdir(home.run_dir) if n.startswith("orchestrator.db"))


def rss(pid):
    """Resident KiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", read("/proc/%d/status" % pid)).group(1))


def routes(home):
    return [e["route"] for e in refusals(home) if e["host"] == "kraft"]


@promise("CHN-01 CHN-02 CHN-04", "the worker's kraft: first on PATH; events, progress, show, and the sentences for what an item of kraft run has not")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        t.works(worker.do("import shutil\nout = shutil.which('kraft')") == SHIM, "first on PATH")
        shown = worker.shim("view", "show")
        item = json.loads(shown["out"])
        t.works(shown["code"] == 0 and item["repo"] == home.repo and item["worktree"].startswith(home.run_dir) and item["branch"].startswith("kraft/"), "show", shown)
        t.works(worker.shim("view", "show", item["id"])["out"] == shown["out"], "by its id")
        told = [worker.shim("item", "progress", str(k)) for k in (1, 2, 3)]
        t.works([x["code"] for x in told] == [0, 0, 0] and json.loads(told[2]["out"]) == {"id": item["id"], "task": 3}, "progress", told)
        worker.do("out = get('http://closed.example/')")
        inside = [worker.shim("view", "events", *words)["out"] for words in ((), ("--json",), ("--type", "plan_progress"), ("--after", "2"), ("--after", "1", "--type", "plan_progress", item["id"]))]
        outside = [home.kraft("view", "events", "--json", "--item", item["id"], *words).out for words in ((), (), ("--type", "plan_progress"), ("--after", "2"), ("--after", "1", "--type", "plan_progress"))]
        t.works(inside == outside and [x.count("\n") for x in inside] == [4, 4, 3, 2, 2], "events are the JSON that the host prints", inside, outside)
        events_of = [e for e in events(home, "plan_progress")]
        t.works([(e["task"], e["session_id"], e["item"]) for e in events_of] == [(k, item["session"], item["id"]) for k in (1, 2, 3)], "events plan_progress", events_of)
        none = [worker.shim("view", "threads"), worker.shim("view", "threads", "--open"), worker.shim("item", "retry", "--steer", "x")]
        t.works([x["code"] for x in none] == [1, 1, 1] and "no review threads" in none[0]["err"] and "cannot act on its own work item" in none[2]["err"], "what there is not", none)
        absent = [worker.shim(*words) for words in (("view", "diff"), ("view", "compare"), ("view", "events", "-f"), ("item", "approve"), ("item", "allow", "a1"))]
        t.works(all(x["code"] == 2 and x["out"] == "" for x in absent), "is not available", absent)
    t.works(routes(home) == [], "and nothing of that was refused")
    other = site_home()
    with Caller(other) as worker:
        t.works(worker.shim("view", "events")["out"] == "", "another home has none")


@promise("CHN-01 CHN-05", "a call from setup is the setup session's own")
def _(t):
    home = policy(["site.example"], install=["site.example"], setup="kraft view show >shown && kraft item progress 1 && kraft view show other; test $? = 1")
    result = home.run("cat", "shown")
    t.works(result.code == 0 and json.loads(result.out)["repo"] == home.repo, "it is answered", result)
    told = refusals(home)
    t.works([(e["route"], e["phase"]) for e in told] == [("POST /w/show", "install")], "and refused in its phase", told)


@promise("CHN-04", "a long history comes whole")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        worker.shim("item", "progress", "1")
        item = json.loads(worker.shim("view", "show")["out"])["id"]
        outside = home.host(PYTHON, "-ISc", r"""
import sqlite3, sys, json
db = sqlite3.connect(sys.argv[1], timeout=20)
db.executemany("INSERT INTO events (ms, type, item, session, data) VALUES (1, 'filler', ?, NULL, ?)", [(sys.argv[2], json.dumps({"n": i, "text": "\x7f" * 1000})) for i in range(500)])
db.executemany("INSERT INTO events (ms, type, item, session, data) VALUES (1, 'filler', 'other', NULL, ?)", [(json.dumps({"secret": i}),) for i in range(500)])
db.commit()""", os.path.join(home.run_dir, "orchestrator.db"), item)
        t.works(outside.code == 0, "filled", outside)
        inside = worker.shim("view", "events")
        whole = home.kraft("view", "events", "--json", "--item", item).out
        t.works(inside["code"] == 0 and inside["out"] == whole and whole.count("\n") == 501 and len(whole) > 2000000, "all of it, to the last byte", len(inside["out"]), len(whole))
        t.works("secret" not in whole, "and no other item's")
        one = worker.post("/w/events")
        t.works(one["status"] == 200 and "kraft-next: " in one["head"].lower() and len(one["body"]) < 600000, "each answer is bounded, and says where it goes on", one["head"])


@wall("CHAN-01 CHN-06 CHN-07", "every verb with another item's id, thread or session: 403, and an event each")
def _(t):
    home = site_home()
    with Caller(home) as other:
        theirs = json.loads(other.shim("view", "show")["out"])
        other.shim("item", "progress", "770077")
        with Caller(home, options=("--item", "mine")) as worker:
            own = json.loads(worker.shim("view", "show")["out"])
            t.works(own["id"] == "mine" and theirs["id"] != "mine", "two items", own, theirs)
            before = len(lab.conns)
            for foreign in (theirs["id"], "min", "mine2", "MINE", "../mine", "*", "%", "1", theirs["session"], own["session"]):
                forms = {"progress": {"task": 1, "id": foreign}, "reply": {"thread": foreign, "body": "x"}, "retry": {"id": foreign}, "show": {"id": foreign}, "threads": {"id": foreign}, "events": {"id": foreign}}
                answers = {v: worker.post("/w/" + v, urllib.parse.urlencode(f)) for v, f in forms.items()}
                t.attack(all(is_refusal(a) for a in answers.values()), "item, thread or session '%s'" % foreign, answers)
                t.attack(not any("770077" in a["all"] or theirs["worktree"] in a["all"] for a in answers.values()), "nothing of it is told", answers)
            sessions = [worker.post("/w/%s" % v, "session=%s&%s" % (theirs["session"], "task=1")) for v in VERBS]
            t.attack(all(a["status"] == 400 for a in sessions), "no field names a session", sessions)
            by_shim = [worker.shim(*w) for w in (("item", "progress", "5", theirs["id"]), ("item", "reply", "1", "--body", "x"), ("item", "retry", theirs["id"]), ("view", "show", theirs["id"]), ("view", "threads", theirs["id"]), ("view", "events", theirs["id"]))]
            t.attack(all(a["code"] == 1 and a["out"] == "" and a["err"].startswith("kraft: ") for a in by_shim), "by the shim", by_shim)
            t.attack(len(lab.conns) == before, "nobody was connected to")
            told = [e for e in refusals(home) if e["session_id"] == own["session"]]
            t.attack(sorted(e["route"] for e in told) == sorted("POST /w/" + v for v in VERBS) and all((e["host"], e["port"], e["phase"], e["item"]) == ("kraft", 80, "runtime", "mine") for e in told), "one event for each", told)
            t.works(worker.post("/w/progress", "task=4&id=mine")["status"] == 200, "its own")
        t.attack([e["task"] for e in events(home, "plan_progress") if e["item"] == theirs["id"]] == [770077], "the other item is as it was")
        t.control("770077" in other.shim("view", "events", theirs["id"])["out"], "whose it is gets it by the same words")
    t.attack("refused" in worker.err and "view events" in worker.err, "and the person is told", worker.err)


@wall("CHAN-02 CHN-06", "forged sessions, tokens, cookies and origins are ignored: the channel alone decides")
def _(t):
    home = site_home()
    with Caller(home) as other:
        theirs = json.loads(other.shim("view", "show")["out"])
        with Caller(home, options=("--item", "mine")) as worker:
            own = json.loads(worker.shim("view", "show")["out"])
            fields = ["X-Kraft-Session-Id: " + theirs["session"], "X-Kraft-Client: mcp", "Authorization: Bearer token", "Proxy-Authorization: Basic a3JhZnQ6eA==", "Cookie: session=" + theirs["session"], "Origin: http://127.0.0.1:8765",
                      "Host: 127.0.0.1", "Forwarded: for=127.0.0.1;host=kraft", "X-Forwarded-For: 127.0.0.1", "X-HTTP-Method-Override: DELETE", "Content-Type: application/json", "X-Original-URL: /api/work-items"]
            plain = worker.post("/w/show")
            forged = {f: worker.do("out = exchange(data.encode())", data="POST http://kraft/w/show HTTP/1.1\r\n%s\r\nContent-Length: 0\r\n\r\n" % f) for f in fields}
            t.attack(all(a["status"] == 200 and json.loads(a["body"]) == own for a in forged.values()), "the answer is its own session's", forged)
            both = worker.do("out = exchange(data.encode())", data="POST http://kraft/w/progress HTTP/1.1\r\nX-Kraft-Session-Id: %s\r\nAuthorization: Bearer x\r\nContent-Length: 6\r\n\r\ntask=9" % theirs["session"])
            t.attack(both["status"] == 200 and [(e["session"], e["item"]) for e in events(home, "plan_progress") if e["task"] == 9] == [(own["session"], "mine")], "and so is what is recorded", both)
            env = {"KRAFT_SESSION_ID": theirs["session"], "KRAFT_ITEM_ID": theirs["id"], "KRAFT_TOKEN": "x"}
            t.attack(json.loads(worker.shim("view", "show", env=env)["out"]) == own, "no variable of the shim's either")
            t.works(plain["status"] == 200, "without any", plain)
            t.works(json.loads(other.shim("view", "show")["out"]) == theirs, "the other one by its channel")
            t.control(json.loads(other.post("/w/show", fields="X-Kraft-Session-Id: %s\r\n" % own["session"])["body"]) == theirs, "the same head in the other session is that session's")


@wall("CHAN-03 CHN-03", "a worker's retry of its own item: 403 and no event")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        answers = [worker.post("/w/retry"), worker.post("/w/retry", "steer=again"), worker.post("/w/retry", "id=" + json.loads(worker.shim("view", "show")["out"])["id"])]
        t.attack(all(a["status"] == 403 and json.loads(a["body"]) == {"detail": "a worker session cannot act on its own work item"} for a in answers), "refused in the words of the ledger", answers)
        t.attack(events(home) == [], "no event", events(home))
        t.works(worker.shim("item", "progress", "1")["code"] == 0 and len(events(home)) == 1, "another verb")
        t.control(is_refusal(worker.post("/w/retry", "id=another")) and routes(home) == ["POST /w/retry"], "with another item's id it is one that is told")


@wall("CHN-07 CHN-12 CHAN-08", "nothing else of the host kraft is served, reached or looked up, and no call approves anything")
def _(t):
    home = policy(["*", "kraft", "kraft:80", "kraft:443"])
    with Caller(home) as worker:
        before, asked = len(lab.conns), len(lab.names.asked)
        api = ["/", "/w", "/w/", "/w/approve", "/w/reject", "/w/skip", "/w/answer", "/w/permission-hook/", "/w/show/", "/w/show/x", "/w//show", "//w/show", "/W/show", "/w/SHOW", "/w/%73how", "/w/show%00", "/w/./show", "/w/x/../show",
               "/w/show;x", "/mcp/", "/MCP", "/api/health", "/api/work-items", "/api/work-items/1/approve", "/api/work-items/1/progress", "/api/gates/1/approve", "/api/worker-sessions/1/permission-hook", "/api/server/stop"]
        answers = worker.do("out = each(lambda p: post(p, 'task=1'), paths, 4)", paths=api)
        t.attack(all(is_refusal(answers[p]) for p in api), "403 for each path", {p: a for p, a in answers.items() if not is_refusal(a)})
        methods = worker.do("out = each(lambda m: post('/w/show', method=m), methods, 4)", methods=["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
        t.attack(all(is_refusal(a) for a in methods.values()), "and for each method but POST", methods)
        head = worker.post("/w/show", method="HEAD")
        t.attack(head["status"] == 403 and head["body"] == "", "HEAD", head)
        queries = worker.post("/w/show?token=hidden-secret")
        t.attack(is_refusal(queries), "a query", queries)
        tunnels = worker.ask("kraft:80", "kraft:443", "KRAFT:80", "kraft.:80", "kraft:3128")
        t.attack(all(is_refusal(a) for a in tunnels.values()), "CONNECT", tunnels)
        ports = worker.do("out = each(lambda h: post('/w/show', host=h), hosts, 4)", hosts=["kraft:81", "kraft:443", "kraft:3128"])
        t.attack(all(is_refusal(a) for a in ports.values()), "another port", ports)
        bent = worker.do("out = each(lambda h: post('/w/show', host=h), hosts, 4)", hosts=["u:p@kraft", "kraft@127.0.0.1", "kraft#x", "kraft..", "kraft%00", "kraft%2e", "kraft:0", "kraft:080000", "\u212araft".encode().decode("latin-1")])
        t.attack(all(a["status"] == 400 for a in bent.values()), "user information and other spellings", bent)
        others = worker.do("out = each(lambda h: post('/w/show', host=h), hosts, 4)", hosts=["x.kraft", "kraft.example", "kraft.localhost", "localhost"])
        t.attack(all(a["status"] in (403, 502) and "worktree" not in a["body"] for a in others.values()), "names that only look like it are other hosts", others)
        t.attack(lab.conns[before:] == [] and "kraft" not in [n[0].rstrip(".").lower() for n in lab.names.asked[asked:]], "nothing was dialled, the name never looked up", lab.names.asked[asked:])
        origin = worker.do("out = exchange(b'POST /w/show HTTP/1.1\\r\\nHost: kraft\\r\\nContent-Length: 0\\r\\n\\r\\n')")
        t.attack(origin["status"] == 400, "the origin form is none", origin)
        told = routes(home)
        want = {"POST " + p for p in api} | {"%s /w/show" % m for m in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "POST")} | {"CONNECT kraft:80", "CONNECT kraft:443", "CONNECT kraft:3128", "POST kraft:81/w/show", "POST kraft:443/w/show", "POST kraft:3128/w/show"}
        t.attack(set(told) == want and len(told) == len(want), "one event for each route", set(told) ^ want)
        t.attack("hidden-secret" not in json.dumps(refusals(home)), "none of which holds a query")
        good = {h: worker.post("/w/show", host=h) for h in ("kraft", "kraft:80", "KRAFT", "kraft.")}
        t.works(all(a["status"] == 200 and "worktree" in a["body"] for a in good.values()), "the documented form, in the spellings of that host", good)
        lab.serve("site.example")
        crossed = worker.do("out = exchange(b'POST http://site.example/w/show HTTP/1.1\\r\\nHost: kraft\\r\\nContent-Length: 0\\r\\n\\r\\n')")
        host = dict((k.lower(), v) for k, v in lab.requests[-1].fields) if hasattr(lab.requests[-1], "fields") else {}
        t.control(crossed["status"] == 200 and "worktree" not in crossed["body"] and host.get("host", "site.example") == "site.example", "a Host of kraft with another target goes to that target, which this policy allows", crossed, host)


@wall("CHN-05 CHN-07", "calls need no allow entry, and cross no network")
def _(t):
    home = policy([])
    with lab.capture() as wire, Caller(home) as worker:
        asked = len(lab.names.asked)
        answers = [worker.shim("view", "show"), worker.shim("item", "progress", "1"), worker.shim("view", "events")]
        t.works([a["code"] for a in answers] == [0, 0, 0], "answered with an empty policy", answers)
        t.attack(wire.packets == [] and len(lab.names.asked) == asked, "no packet, no look-up", wire.packets[:3])
        refused = worker.ask("site.example:80")
        t.attack(is_refusal(refused["site.example:80"]), "a host is refused", refused)
    home = site_home()
    with lab.capture() as wire, Caller(home) as worker:
        answer = worker.do("out = get('http://site.example/')")
        t.control(answer["status"] == 200 and wire.packets, "what is allowed is on the wire", answer)


@wall("CHAN-05", "a flood: large bodies, very many calls, idle connections; memory, store and other sessions hold")
def _(t):
    home, quiet = site_home(), site_home()
    with Caller(home) as worker, Caller(quiet) as other:
        kraft, egress = worker.process.pid, worker.egress()
        worker.shim("item", "progress", "1")
        size, memory = store_size(home), rss(kraft)
        large = worker.do(r"""
def send_large(what):
    s = dial(60)
    if what == 'length': head = b'Content-Length: 104857600\r\n\r\n'
    elif what == 'chunked': head = b'Transfer-Encoding: chunked\r\n\r\n7ffffff\r\n'
    else: head = b'Content-Length: 16777216\r\n\r\nthread=1&body='
    try:
        s.sendall(b'POST http://kraft/w/reply HTTP/1.1\r\nHost: kraft\r\n' + head)
        for _ in range(1600 if what != 'most' else 255): s.sendall(b'a' * 65536)
        if what == 'most': s.sendall(b'a' * (16777216 - 255 * 65536 - 14))
    except OSError: pass
    return {'status': status_of(read_to_end(s, 20)[0])}
out = each(send_large, ['length', 'chunked', 'most'], 3)""")
        t.attack({k: v["status"] for k, v in large.items()} in ({"length": 413, "chunked": 413, "most": 400}, {"length": 413, "chunked": None, "most": 400}), "100 MB: 413; the largest that is read is no form: 400", large)
        start = time.monotonic()
        flood = worker.do(r"""
counts, end = {}, time.monotonic() + 8
def one(i):
    n = 0
    while time.monotonic() < end:
        try: status = post('/w/progress', 'task=%d' % i)['status']
        except OSError as e: status = 'error'
        counts[status] = counts.get(status, 0) + 1
        n += 1
    return n
each(one, range(16))
out = {str(k): v for k, v in counts.items()}""")
        other_seconds = []
        good = flood.get("200", 0)
        t.attack(sum(flood.values()) > 500 and set(flood) <= {"200", "429"} and 100 <= good <= 100 + 20 * (time.monotonic() - start + 2), "a burst, then twenty a second; the rest 429", flood)
        worker.send(r"""
idle = []
for i in range(3000):
    try:
        s = socket.create_connection(PROXY, 2); idle.append(s)
        if i % 3 == 0: s.sendall(b'POST http://kraft/w/progress HTTP/1.1\r\nContent-Length: 6\r\n\r\nta')
    except OSError: break
out = len(idle)""")
        for _ in range(10):
            began = time.monotonic()
            answer = other.shim("view", "show")
            other_seconds.append(time.monotonic() - began)
            t.works(answer["code"] == 0, "another session is answered", answer)
        opened = worker.answer()
        t.attack(max(other_seconds) < 2, "in less than two seconds", other_seconds)
        t.attack(small(rss(egress), 64 << 10) and small(rss(kraft) - memory, 32 << 10), "memory", rss(egress), rss(kraft), memory, opened)
        t.attack(store_size(home) - size < 4 << 20 and len(events(home, "plan_progress")) <= good + 1, "the store grows by what was taken", store_size(home), size)
        worker.do("[s.close() for s in idle]\nout = 1")
        time.sleep(1.5)
        t.works(worker.shim("view", "show")["code"] == 0, "and afterwards it goes on")
        t.control(good > 50, "calls below the limits are taken", flood)


@wall("CHAN-05", "refused calls fill the store no more than refused hosts do")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        worker.do("out = each(lambda i: [post('/x%d' % i), time.sleep(0.2)][0], range(130), 4)")
        told = refusals(home)
        t.attack(len(told) == 101 and [e.get("suppressed") for e in told[-2:]] == [None, True], "a hundred, and one that says that no more are told", len(told))
        t.attack(is_refusal(worker.post("/x999")) and len(refusals(home)) == 101, "refused all the same")
        t.works(worker.shim("view", "show")["code"] == 0, "a good one")
    t.control(len(set(routes(home))) >= 100, "each told one is another route")


@wall("CHAN-06", "texts that are nested, cut, no UTF-8 or huge: 400, nothing stored")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        pid = worker.egress()
        bad = {"nested": ("progress", b"task=" + b"[" * 100000), "nested json": ("progress", b"task=" + b'{"a":' * 20000), "nul": ("progress", b"task=1%00"), "raw nul": ("progress", b"task=1\0"), "no utf-8": ("show", b"id=%FF%FE"),
               "raw no utf-8": ("show", b"id=\xff\xfe"), "cut utf-8": ("reply", b"thread=1&body=%E2%82"), "surrogate": ("reply", b"thread=1&body=%ED%A0%80"), "overlong": ("reply", b"thread=1&body=%C0%AF"), "escape": ("reply", b"thread=1&body=%1B%5D0;x%07"),
               "nul in a text": ("reply", b"thread=1&body=a%00b"), "range": ("progress", b"task=1000001"), "64 bits": ("progress", b"task=18446744073709551617"), "minus": ("progress", b"task=-1"), "real": ("progress", b"task=1.5"), "exponent": ("progress", b"task=1e3"),
               "nan": ("progress", b"task=NaN"), "empty": ("progress", b""), "json": ("progress", b'{"task":1}'), "twice": ("progress", b"task=1&task=2"), "10 MB": ("reply", b"thread=1&body=" + b"x" * 10000000), "10 MB steer": ("retry", b"steer=" + b"x" * 10000000),
               "65 KiB": ("reply", b"thread=1&body=" + b"x" * 65537), "many fields": ("show", b"&".join(b"f%d=1" % i for i in range(20000))), "ampersands": ("show", b"&" * 200000), "percent": ("show", b"id=%"), "long id": ("show", b"id=" + b"x" * 65)}
        found = worker.do("out = each(lambda k: post('/w/' + bad[k][0], bad[k][1]), list(bad), 4)", bad=bad)
        t.attack(all(a["status"] == 400 and a["body"].startswith("kraft: ") and a["body"].count("\n") == 1 for a in found.values()) and len(found) == len(bad), "each is 400 in one line", {k: (a["status"], a["body"]) for k, a in found.items() if a["status"] != 400})
        t.attack(events(home) == [], "nothing stored", events(home))
        t.attack(worker.egress() == pid, "and nobody had to be started again")
        good = worker.do("out = [post('/w/progress', 'task=1000000')['status'], post('/w/retry', 'steer=' + '%C3%A4%0A' * 1000)['status'], post('/w/retry', 'steer=' + '[' * 65536)['status']]")
        t.works(good == [200, 403, 403], "what is within the limits is read", good)
        t.control([e["task"] for e in events(home)] == [1000000], "and stored", events(home))


@wall("CHAN-07", "positions and types of any kind: own events only, no detail of an error, nothing injected")
def _(t):
    home = site_home()
    with Caller(home) as other:
        other.shim("item", "progress", "77")
        with Caller(home, options=("--item", "mine")) as worker:
            worker.shim("item", "progress", "1")
            positions = worker.do("out = each(lambda a: post('/w/events', 'after=' + a), p, 2)", p=["-1", "-9223372036854775808", "9223372036854775808", "99999999999999999999999", "1e9", "0x10", "", "abc", "1;DROP TABLE events", "1 OR 1=1", "NaN", "+1", "1%00"])
            t.attack(all(a["status"] == 400 and "after" in a["body"] for a in positions.values()), "bent positions", {k: a["body"] for k, a in positions.items() if a["status"] != 400})
            words = ["'", "''", '"', "';DROP/**/TABLE/**/events;--", "x'OR'1'='1", "%", "*", "_", "plan_progress'--", "plan%5Fprogres%", "\\", "PLAN_PROGRESS", "plan_progress\\"]
            types = worker.do("out = each(lambda w: post('/w/events', 'type=' + urllib.parse.quote(w)), w, 2)", w=words)
            t.attack(all(a["status"] == 200 and a["body"] == "" for a in types.values()), "types with quotes match nothing", types)
            long_types = worker.do("out = [post('/w/events', 'type=' + w)['status'] for w in ('x' * 65, 'a%20b', 'a%0ab', '%F0%9F%98%80')]")
            t.attack(long_types == [400] * 4, "what is no word is none", long_types)
            everything = " ".join(a["all"] for a in list(positions.values()) + list(types.values())).lower()
            t.attack(not any(w in everything for w in ("sqlite", "syntax", "select", home.run_dir.lower(), ".c:")), "no detail of an error")
            own = worker.do("out = [post('/w/events', 'after=0')['body'], post('/w/events', 'after=9223372036854775807')['body'], post('/w/events', 'type=plan_progress')['body']]")
            t.attack("77" not in [str(json.loads(line)["data"].get("task")) for line in own[0].splitlines()], "no other item's", own)
            t.works(own[0].count("\n") == 1 and own[1] == "" and own[2] == own[0], "its own", own)
        t.control("77" in other.shim("view", "events")["out"] and len(events(home, "plan_progress")) == 2, "the other's is there for the other, and the table stands")


@wall("CHAN-10", "a hostile environment: the shim looks at no variable, no file, no other program")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        plain = worker.shim("view", "show")
        worker.do(r"""
os.makedirs(os.environ['HOME'] + '/bin', exist_ok=True)
for name in ('.curlrc', '.netrc', '.wgetrc', '.profile', '.bashrc', '.kraftrc'):
    open(os.environ['HOME'] + '/' + name, 'w').write('url = http://evil.example/\nproxy = http://127.0.0.1:9\nmachine kraft login x password y\necho HIJACKED\n')
for name in ('curl', 'sh', 'wget', 'python3', 'env'):
    path = os.environ['HOME'] + '/bin/' + name
    open(path, 'w').write('#!/bin/sh\necho HIJACKED\n'); os.chmod(path, 0o755)
h = os.environ['HOME']
hostile = {'PATH': h + '/bin', 'HOME': h, 'IFS': '/', 'ENV': h + '/.profile', 'BASH_ENV': h + '/.bashrc', 'BASH_FUNC_curl%%': '() { echo HIJACKED; }', 'CURL_HOME': h, 'LD_PRELOAD': h + '/x.so', 'LD_LIBRARY_PATH': h, 'GCONV_PATH': h, 'LC_ALL': '../../x',
           'http_proxy': 'http://127.0.0.1:9', 'HTTP_PROXY': 'http://127.0.0.1:9', 'ALL_PROXY': 'http://127.0.0.1:9', 'no_proxy': '*', 'NO_PROXY': 'kraft', 'KRAFT_HOME': h, 'KRAFT_URL': 'http://evil.example', 'RES_OPTIONS': 'x', 'HOSTALIASES': h + '/.netrc', 'TMPDIR': '/nowhere'}
out = 1""")
        found = worker.do("out = [shim('view', 'show', env=hostile), shim('view', 'show', env={}), shim('item', 'reply', '1', '--body', '$(touch /tmp/ran); `touch /tmp/ran`', env=hostile), os.path.exists('/tmp/ran')]")
        t.attack(found[0] == plain and found[1] == plain, "the same answer as without", found[:2])
        t.attack(found[2]["code"] == 1 and "HIJACKED" not in found[2]["out"] + found[2]["err"] and not found[3], "arguments are bytes", found[2:])
        t.attack(worker.do("import glob\nout = [b'ld-linux' in open('/opt/kraft/bin/kraft', 'rb').read(), os.access('/opt/kraft/bin/kraft', os.W_OK)]") == [False, False], "static, and not to be changed")
        t.works(plain["code"] == 0, "it answers", plain)
        t.control(worker.do("out = subprocess.run('curl', env=hostile, shell=False, capture_output=True, executable=hostile['PATH'] + '/curl').stdout.decode()").strip() == "HIJACKED", "what looks at PATH is steered by it")


@wall("CHN-05", "a call has thirty seconds: 504 for a body that does not come, and for a kraft that does not answer")
def _(t):
    home, other = site_home(), site_home()
    with Caller(home) as worker, Caller(other) as stopped:
        worker.send(r"""
def slow(i):
    with dial(60) as s:
        start = time.monotonic()
        s.sendall(b'POST http://kraft/w/progress HTTP/1.1\r\nContent-Length: 6\r\n\r\n')
        try:
            for byte in b'task=':
                time.sleep(7 if i % 2 else 0.1); s.sendall(bytes([byte]))
        except OSError: pass
        data, _ = read_to_end(s, 50)
        return {'status': status_of(data), 'body': data.decode('latin-1'), 'seconds': time.monotonic() - start}
out = each(slow, range(4), 4)""")
        t.works(stopped.shim("view", "show")["code"] == 0, "another session's places are free")
        stopped.send("time.sleep(1)\nout = shim('view', 'show')")
        time.sleep(0.5)
        os.kill(stopped.process.pid, signal.SIGSTOP)
        try:
            slow = worker.answer()
            time.sleep(3)
        finally:
            os.kill(stopped.process.pid, signal.SIGCONT)
        t.attack(all(a["status"] == 504 and 29 < a["seconds"] < 36 and "30 seconds" in a["body"] for a in slow.values()), "504", slow)
        t.attack(events(home) == [], "and nothing was recorded")
        t.works(worker.shim("view", "show")["code"] == 0, "their places are free again")
        answer = stopped.answer()
        t.attack(answer["code"] == 1 and "did not answer within 30 seconds" in answer["err"], "kraft stopped: 504, told by the shim", answer)
        t.control(stopped.shim("view", "show")["code"] == 0, "when it goes on, it answers")
        quick = worker.do(r"""
with dial() as s:
    s.sendall(b'POST http://kraft/w/progress HTTP/1.1\r\nContent-Length: 6\r\n\r\ntask=')
    time.sleep(2); s.sendall(b'3')
    out = status_of(read_to_end(s)[0])""")
        t.control(quick == 200, "a body that comes in time is taken", quick)


@wall("CHAN-12 CHAN-13", "the channel's socket: for its owner alone, in a directory of the session's own; a path that is too long is refused")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        own = json.loads(worker.shim("view", "show")["out"])
        place = os.path.join(home.run_dir, "sn", own["session"])
        modes = [stat.S_IMODE(os.stat(p).st_mode) for p in (place, os.path.join(place, "s.sock"))]
        t.attack(modes == [0o700, 0o600], "for its owner only", [oct(m) for m in modes])
        second = worker.do("out = os.listdir(%r)" % os.path.dirname(place))
        t.attack(second == [own["session"]], "no other session's is to be seen", second)
        t.works(worker.shim("view", "show")["code"] == 0, "it answers")
    deep = Home(kraft_home="/".join(["deep" * 5] * 6), sandbox={"network": {"runtime": {"allow": []}}})
    result = deep.run("true")
    t.attack(result.code == 125 and "longer than" in result.err and "KRAFT_HOME" in result.err, "a path that is too long is refused and says so", result)
    t.control(site_home().run("true").code == 0, "a shorter one is taken")


@wall("CHN-06", "kraft-egress killed in the middle: the next one's calls are the same session's")
def _(t):
    home = site_home()
    with Caller(home) as worker:
        own = worker.shim("view", "show")["out"]
        first = worker.egress()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: worker.egress() not in (None, first))
        again = worker.do("for _ in range(100):\n    out = shim('view', 'show')\n    if out['code'] == 0: break\n    time.sleep(0.1)")
        t.attack(again["out"] == own, "the same session, the same item", again)
        t.works(worker.shim("item", "progress", "2")["code"] == 0, "and it records")
        os.kill(worker.egress(), signal.SIGKILL)
        time.sleep(1)
        gone = worker.shim("view", "show")
        t.control(gone["code"] == 1 and gone["out"] == "" and "kraft" in gone["err"], "without one a call fails and says so", gone)


if __name__ == "__main__":
    main()
