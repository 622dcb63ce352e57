#!/usr/bin/env python3
"""The egress proxy as a reader of HTTP, end to end: what a worker writes is read once and written anew (HTTP-01 to -17)."""
# kraft-test: timeout 240
from egresslive import *

import random

HOME = policy(["site.example", "star.example", "*.up.example"])
SITE = lab.serve("site.example")
lab.on_host("127.0.0.1", 8118, netlab.naive)
_worker = []


def worker():
    """One session for the tests of this file, started again when one of them ended it."""
    if not _worker or _worker[-1].process.poll() is not None:
        _worker.append(Worker(HOME))
    return _worker[-1]


def head(line, *fields, body=b"", host=b"site.example"):
    """A request; field lines as they are given."""
    as_bytes = lambda s: s if isinstance(s, bytes) else s.encode("latin-1")
    lines = [as_bytes(line)] + ([b"Host: " + host] if host is not None else []) + [as_bytes(f) for f in fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def post(path, *fields, body=b""):
    return head("POST http://site.example%s HTTP/1.1" % path, *fields, body=body)


def exchange_all(payloads, timeout=8, shut=False):
    """Each of them over a connection of its own, sixteen at a time."""
    return worker().do("""
import queue
found, work = {}, queue.Queue()
for item in payloads.items(): work.put(item)
def one():
    while True:
        try: label, data = work.get_nowait()
        except queue.Empty: return
        try: found[label] = exchange(data, timeout, shut)
        except OSError as e: found[label] = {'status': str(e), 'head': '', 'body': '', 'end': 'none', 'all': '', 'seconds': 0}
threads = [threading.Thread(target=one) for _ in range(16)]
[x.start() for x in threads]; [x.join() for x in threads]
out = found""", payloads=payloads, timeout=timeout, shut=shut)


def requests_for(path):
    return [r for r in lab.requests if path in r.target]


def naive_reaches(payload):
    """What a proxy that passes bytes on makes of it: the bytes that reach a server."""
    before = len(lab.conns)
    host_fetch("127.0.0.1", 8118, payload, 2)
    return b"".join(bytes(c.got) for c in lab.conns[before:] if c.address != "127.0.0.1")


def refuse_all(t, payloads, statuses=(400,), shut=False, most=8):
    """None of them leads to a connection; each is answered so, and closed."""
    before, asked = len(lab.conns), len(lab.names.asked)
    found = exchange_all(payloads, shut=shut)
    wrong = {k: (v["status"], v["end"]) for k, v in found.items() if v["status"] not in statuses or v["end"] == "still-open"}
    t.attack(len(found) == len(payloads) and not wrong, "answered and closed", wrong)
    t.attack(len(lab.conns) == before and len(lab.names.asked) == asked, "nothing was dialled or looked up", [bytes(c.got[:80]) for c in lab.conns[before:]])
    through = [k for k, v in list(payloads.items())[:most] if naive_reaches(v if isinstance(v, bytes) else b"".join(v))]
    t.control(through, "a proxy that passes bytes on lets them through", through)
    works(t)


def works(t):
    answer = worker().do("out = exchange(b'POST http://site.example/fine?q HTTP/1.1\\r\\nHost: site.example\\r\\nContent-Length: 5\\r\\n\\r\\nhello')")
    got = lab.requests[-1]
    t.works(answer["status"] == 200 and answer["end"] == "eof" and (got.target, got.body) == ("/fine?q", b"hello"), "a good request passes", answer)


@wall("HTTP-01", "Content-Length and Transfer-Encoding in one request")
def _(t):
    refuse_all(t, {
        "length first": post("/", "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\nX"),
        "coding first": post("/", "Transfer-Encoding: chunked", "Content-Length: 5", body=b"0\r\n\r\nX"),
        "two lengths": post("/", "Content-Length: 5", "Content-Length: 6", body=b"helloX"),
        "two equal lengths": post("/", "Content-Length: 5", "Content-Length: 5", body=b"hello"),
        "a list": post("/", "Content-Length: 5, 5", body=b"hello"),
        "signed": post("/", "Content-Length: +5", body=b"hello"),
        "negative": post("/", "Content-Length: -5", body=b"hello"),
        "hexadecimal": post("/", "Content-Length: 0x5", body=b"hello"),
        "too large": post("/", "Content-Length: 99999999999999999999999", body=b"hello"),
        "empty": post("/", "Content-Length:", body=b"hello"),
        "blank inside": post("/", "Content-Length: 5 5", body=b"hello"),
    })


@wall("HTTP-02", "Transfer-Encoding: chunked and only that, written anew")
def _(t):
    body = b"5\r\nhello\r\n0\r\n\r\n"
    odd = {"doubled": ["chunked", "chunked"], "list": ["chunked, chunked"], "unknown": ["xchunked"], "gzip": ["gzip, chunked"], "after": ["chunked, identity"], "comma": [", chunked"],
           "identity": ["identity"], "tab": ["\tchunked"], "case": ["CHUNKED"], "quoted": ["\"chunked\""], "vertical": ["\x0bchunked"], "semicolon": ["chunked;q=1"], "empty": [""], "nul": ["chunked\0"]}
    payloads = {k: post("/te/" + k, *["Transfer-Encoding: " + v for v in values], body=body) for k, values in odd.items()}
    payloads["name space"] = post("/te/name-space", "Transfer-Encoding : chunked", body=body)
    payloads["1.0"] = payloads["case"].replace(b"/te/case HTTP/1.1", b"/te/old HTTP/1.0")
    payloads["folded"] = post("/te/folded", "Transfer-Encoding:\r\n chunked", body=body)
    found = exchange_all(payloads)
    wrong = {k: v["status"] for k, v in found.items() if v["status"] not in (400, 501) and not (v["status"] == 200 and k in ("tab", "case"))}
    t.attack(not wrong, "refused, or chunked when it is that", wrong)
    passed = requests_for("/te/")
    t.attack(all(r.all("transfer-encoding") in ([], ["chunked"]) and r.body == b"hello" and not r.bad for r in passed), "never as it came", [r.head for r in passed])
    t.attack(len(passed) == sum(v["status"] == 200 for v in found.values()), "the refused ones never reach it", passed)
    t.control([k for k, v in payloads.items() if naive_reaches(v)], "a proxy that passes bytes on lets them through")
    t.works(exchange_all({"good": post("/te/good", "Transfer-Encoding: chunked", body=body)})["good"]["status"] == 200 and requests_for("/te/good")[0].body == b"hello", "chunked passes")


@wall("HTTP-03 HTTP-04", "chunks that are none, trailers, extensions, bodies that end early")
def _(t):
    bad = {"prefix": b"0x5\r\nhello\r\n0\r\n\r\n", "sign": b"+5\r\nhello\r\n0\r\n\r\n", "underscore": b"0_5\r\nhello\r\n0\r\n\r\n", "blank": b" 5\r\nhello\r\n0\r\n\r\n",
           "digits": b"FFFFFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", "no end": b"5\r\nhelloX0\r\n\r\n", "bare cr": b"5;a\rb\r\nhello\r\n0\r\n\r\n", "bare lf": b"5\nhello\n0\n\n", "none": b"\r\nhello\r\n0\r\n\r\n",
           "letters": b"five\r\nhello\r\n0\r\n\r\n", "minus": b"-1\r\nhello\r\n0\r\n\r\n", "nul": b"5\0\r\nhello\r\n0\r\n\r\n", "lf in extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n"}
    payloads = {k: post("/chunk/%s/" % k.replace(" ", "-"), "Transfer-Encoding: chunked", body=v + b"SMUGGLED") for k, v in bad.items()}
    payloads["second"] = post("/chunk/second/", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\nzz\r\nSMUGGLED\r\n0\r\n\r\n")
    found = exchange_all(payloads)
    wrong = {k: (v["status"], v["end"]) for k, v in found.items() if v["status"] not in (400, 502, None) or v["end"] == "still-open"}
    t.attack(not wrong, "400 or closed", wrong)
    time.sleep(0.2)
    whole = [r.target for r in requests_for("/chunk/") if r.whole and "bare-cr" not in r.target]
    t.attack(not whole and not [c for c in lab.reached(SITE) if b"SMUGGLED" in c.got], "nothing behind the bad chunk, no whole message", whole)
    early = {"chunked": post("/early/chunked", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n5\r\nhe"), "length": post("/early/length", "Content-Length: 50", body=b"hello"),
             "no last chunk": post("/early/last", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n")}
    found = exchange_all(early, shut=True)
    t.attack(not [k for k, v in found.items() if v["status"] == 200 or v["end"] == "still-open"], "a body that ends early", found)
    time.sleep(0.2)
    t.attack(not [r for r in requests_for("/early/") if r.whole], "is not a whole message upstream")
    trailers = post("/trailer/", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\nContent-Length: 7\r\nHost: evil.example\r\nAuthorization: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    answer = exchange_all({"trailers": trailers})["trailers"]
    t.attack(answer["status"] == 400 or all(r.trailers == b"" and r.body == b"hello" for r in requests_for("/trailer/")), "trailers are dropped or refused", answer)
    t.attack(not [c for c in lab.reached(SITE) if b"evil.example" in c.got], "none is passed on")
    long = exchange_all({"one": post("/extension/", "Transfer-Encoding: chunked", body=b"5;" + b"a" * (1 << 20) + b"\r\nhello\r\n0\r\n\r\n"),
                         "many": post("/extension/", "Transfer-Encoding: chunked", body=b"1;" + b"a" * 64 + b"\r\nx\r\n" + (b"1;" + b"a" * 1000 + b"\r\nx\r\n") * 1100 + b"0\r\n\r\n")})
    t.attack(all(v["status"] in (400, 200, None) and v["end"] != "still-open" for v in long.values()), "extensions", long)
    t.attack(not [c for c in lab.reached(SITE) if b"aaaaaaaa" in c.got], "never reach upstream")
    t.control([k for k, v in payloads.items() if b"SMUGGLED" in naive_reaches(v)], "a proxy that passes bytes on lets them through")
    works(t)
    good = post("/chunks/", "Transfer-Encoding: chunked", body=b"5;name=\"value\"\r\nhello\r\n00000a\r\n0123456789\r\n0\r\n\r\n")
    t.works(exchange_all({"good": good})["good"]["status"] == 200 and requests_for("/chunks/")[0].body == b"hello0123456789", "good chunks pass")


@wall("HTTP-05 HTTP-07", "bare LF, bare CR, NUL and other control bytes in the head")
def _(t):
    get = "GET http://site.example/ HTTP/1.1"
    payloads = {"lf line": b"GET http://site.example/ HTTP/1.1\nHost: site.example\n\n", "lf field": b"GET http://site.example/ HTTP/1.1\r\nHost: site.example\nX: y\r\n\r\n",
                "cr cr lf": b"GET http://site.example/ HTTP/1.1\r\r\nHost: site.example\r\n\r\n", "lf end": head(get, "X: y")[:-2] + b"\n",
                "colon": head(get, "Xnone"), "blank name": head(get, "X : y"), "empty name": head(get, ": y"), "folded": head(get, "X: y", " z"), "folded tab": head(get, "X: y", "\tz"),
                "first blank": head(get, " X: y", host=None), "name bytes": head(get, "X\xe9: y"), "name at": head(get, "X@: y")}
    for byte in (0, 1, 8, 11, 12, 13, 27, 127):
        label = "%02x" % byte
        payloads["value " + label] = head(get, b"X: a" + bytes([byte]) + b"b")
        payloads["name " + label] = head(get, b"X" + bytes([byte]) + b"Y: b")
        payloads["path " + label] = head(b"GET http://site.example/a" + bytes([byte]) + b"b HTTP/1.1")
        payloads["host " + label] = head(b"GET http://site.example" + bytes([byte]) + b"/ HTTP/1.1")
    payloads["injected"] = head("GET http://site.example/\r\nX-Injected: 1 HTTP/1.1")
    refuse_all(t, payloads, shut=True, most=4)
    found = exchange_all({"encoded": head("GET http://site.example/in%0d%0aX-Injected:%201?a%0d%0ab HTTP/1.1", "X: a\tb\x80\xff %0d%0aX-Injected: 1")})
    got = requests_for("/in%")[0]
    t.works(found["encoded"]["status"] == 200 and got.get("x") == "a\tb\x80\xff %0d%0aX-Injected: 1" and not got.get("x-injected"), "encoded they stay what they are", got.head)


@wall("HTTP-06", "target and Host that disagree: the target's authority decides")
def _(t):
    closed = lab.serve("closed.example")
    found = exchange_all({"closed host": head("GET http://site.example/host-1 HTTP/1.1", host=b"closed.example"), "no host": head("GET http://site.example/host-2 HTTP/1.1", host=None),
                          "port": head("GET http://site.example:80/host-3 HTTP/1.1"), "case": head("GET http://SITE.example./host-4 HTTP/1.1", host=b"other"), "two": head("GET http://site.example/host-5 HTTP/1.1", "Host: closed.example"),
                          "none path": head("GET http://site.example?host-6 HTTP/1.1"), "HTTP": head("GET HTTP://site.example/host-7 HTTP/1.1")})
    t.attack(found["two"]["status"] == 400 and {v["status"] for v in found.values()} <= {200, 400}, "answers", found)
    hosts = {r.target: r.all("host") for r in requests_for("host-")}
    t.attack(all(len(h) == 1 and h[0].partition(":")[0].rstrip(".").lower() == "site.example" for h in hosts.values()), "Host is the target's", hosts)
    t.works(hosts.get("/host-3") and found["port"]["status"] == 200, "an agreeing one", hosts)
    target = head("GET http://closed.example/ HTTP/1.1", host=b"site.example")
    answer = exchange_all({"target": target})["target"]
    t.attack(is_refusal(answer) and not lab.reached(closed), "the allowed name in Host opens nothing", answer)
    t.control(b"closed.example" in naive_reaches(head("GET http://site.example/ HTTP/1.1", host=b"closed.example")), "a proxy that passes bytes on sends the wrong Host")


@wall("HTTP-08", "answers that are none: 502 or closed, and nothing behind the end")
def _(t):
    answers = {"both": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nEVIL", "lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 6\r\n\r\nokEVIL",
               "lf": b"HTTP/1.1 200 OK\nContent-Length: 4\n\nEVIL", "nul": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 4\r\n\r\nEVIL", "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\n\r\nEVIL",
               "status": b"HTTP/1.1 2000 OK\r\n\r\nEVIL", "version": b"HTTP/3.1 200 OK\r\n\r\nEVIL", "nothing": b"", "half": b"HTTP/1.1 200 OK\r\nContent-", "noise": bytes(range(256)) * 4 + b"EVIL\r\n\r\n",
               "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nEVIL",
               "large": b"HTTP/1.1 200 OK\r\nX: " + b"a" * (100 << 10) + b"\r\n\r\nEVIL"}
    for label, data in answers.items():
        lab.serve(label + ".up.example", netlab.says(data))
    lab.serve("behind.up.example", netlab.says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", hold=0.5))
    lab.serve("short.up.example", netlab.says(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok"))
    lab.serve("chunks.up.example", netlab.says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\nEVIL\r\n0\r\n\r\n"))
    lab.serve("to-end.up.example", netlab.says(b"HTTP/1.0 200 OK\r\n\r\nuntil the end"))
    lab.serve("informed.up.example", netlab.says(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    labels = list(answers) + ["behind", "short", "chunks", "to-end", "informed"]
    found = exchange_all({k: head("GET http://%s.up.example/ HTTP/1.1" % k, host=None) for k in labels}, timeout=12)
    some, ended = found.pop("interim"), answers.pop("interim")
    wrong = {k: (found[k]["status"], found[k]["end"]) for k in answers if found[k]["status"] not in (502, None) or found[k]["end"] == "still-open"}
    t.attack(not wrong, "502 or closed", wrong)
    t.attack(some["end"] != "still-open" and len(ended) > 100000 and some["all"].count("100 Continue") < 100, "interim answers without end are cut", len(some["all"]), some["end"])
    evil = [k for k, v in found.items() if "EVIL" in v["all"]]
    t.attack(not evil, "nothing of theirs, nor behind the end, comes through", evil)
    t.attack(found["behind"]["status"] == 200 and found["behind"]["body"] == "ok" and found["behind"]["end"] == "eof", "the answer ends where it says", found["behind"])
    t.attack(found["short"]["all"].endswith("ok") and "ontent-" in found["short"]["head"], "a short one stays one that the client can tell", found["short"])
    t.works(found["to-end"]["body"].endswith("until the end") or "until the end" in found["to-end"]["all"], "a body up to the end of the connection", found["to-end"])
    t.works("200" in found["informed"]["all"] and found["informed"]["all"].endswith("ok"), "an interim answer before the real one", found["informed"])
    t.control(b"EVIL" in host_fetch("both.up.example", 80, b"GET / HTTP/1.1\r\n\r\n"), "the server says it")


@wall("HTTP-09", "an allowed request and a denied one in one connection, split at every byte")
def _(t):
    closed = lab.serve("piped.example")
    both = head("GET http://site.example/pipe-first HTTP/1.1") + head("GET http://piped.example/denied HTTP/1.1", host=b"piped.example")
    cuts = range(1, len(both), full(5, 1))
    payloads = {str(cut): [both[:cut], both[cut:]] for cut in cuts}
    payloads["whole"] = both
    before = len(requests_for("/pipe-first"))
    found = worker().do("""
found, threads = {}, []
def one(label, data): found[label] = exchange(data, 8, pause=0.02)
for item in payloads.items():
    threads.append(threading.Thread(target=one, args=item)); threads[-1].start()
    if len(threads) % 16 == 0: [x.join() for x in threads]
[x.join() for x in threads]
out = found""", payloads=payloads)
    first = {k: v["status"] for k, v in found.items() if v["status"] != 200 or v["end"] != "eof" or v["all"].count("HTTP/1.1 ") > 2}
    t.works(not first and len(requests_for("/pipe-first")) == before + len(payloads), "the first is answered", first)
    t.attack(not lab.reached(closed) and not lab.asked("piped.example"), "the denied one goes nowhere")
    t.attack(not [c for c in lab.reached(SITE) if b"piped.example" in c.got or b"/denied" in c.got], "nor to the first one's server")
    t.control(b"/denied" in naive_reaches(both), "a proxy that passes bytes on sends it along")


@wall("HTTP-10 HTTP-11", "Expect: 100-continue")
def _(t):
    def polite(conn):
        first = conn.until(b"\r\n\r\n")
        if first is None:
            return
        request = netlab.Request(conn, first)
        if request.get("expect"):
            conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.whole = request.read_body()
        lab.requests.append(request)
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    lab.serve("polite.up.example", polite)
    expect = lambda host, length=5, value="100-continue": head("POST http://%s/expect HTTP/1.1" % host, "Expect: " + value, "Content-Length: %d" % length, host=host.encode())
    denied = exchange_all({"denied": expect("denied.example")})["denied"]
    t.attack(is_refusal(denied) and "100" not in denied["head"].partition("\r\n")[0], "denied: 403 and no 100", denied)
    early = exchange_all({"early": expect("polite.up.example") + b"hello"})["early"]
    t.works("200 OK" in early["all"] and early["all"].endswith("ok"), "with the body at once", early)
    late = worker().do("""
s = dial(); s.sendall(data); s.settimeout(8)
start = time.monotonic()
first = s.recv(4096) if wait else time.sleep(1)
s.sendall(b'hello'); rest, end = read_to_end(s, 8)
out = [(first or b'').decode('latin-1'), rest.decode('latin-1'), end]""", data=expect("polite.up.example"), wait=True)
    t.works("100" in late[0].partition("\r\n")[0] and "200 OK" in late[0] + late[1], "with the body once it is asked for", late)
    never = worker().do("s = dial(); s.sendall(data); time.sleep(0.3); s.close(); out = get('http://site.example/')['status']", data=expect("polite.up.example"))
    t.works(never == 200, "never: others go on", never)
    odd = exchange_all({"unknown": expect("polite.up.example", value="200-ok") + b"hello", "doubled": head("POST http://polite.up.example/expect HTTP/1.1", "Expect: 100-continue", "Expect: 100-continue", "Content-Length: 5", body=b"hello", host=None),
                        "no body": expect("polite.up.example", 0), "connect": head("CONNECT site.example:80 HTTP/1.1", "Expect: 100-continue", host=None)}, timeout=4, shut=True)
    t.attack(all(v["status"] in (200, 100, 400, 417, 502) for v in odd.values()), "odd ones", odd)
    time.sleep(0.1)
    t.attack(all(r.body in (b"hello", b"") for r in requests_for("/expect")), "framing stays intact", [r.body for r in requests_for("/expect")])
    t.control(b"denied.example" in expect("denied.example") and lab.asked("denied.example") == 0, "the denied name was never asked for")


@wall("HTTP-13", "a field line of 1 MiB, 10,000 fields, a URL of 1 MiB: refused, in bounded memory")
def _(t):
    get = "GET http://site.example/ HTTP/1.1"
    egress = worker().egress()
    memory = lambda: int(re.search(r"VmRSS:\s+(\d+)", read("/proc/%d/status" % egress)).group(1))
    before = memory()
    large = {"field": head(get, "X: " + "a" * (1 << 20)), "fields": head(get, *["X%d: y" % n for n in range(10000)]), "url": head("GET http://site.example/" + "a" * (1 << 20) + " HTTP/1.1"),
             "over": head(get, "X: " + "a" * (64 << 10)), "three hundred": head(get, *["X: y"] * 300), "name": head(get, "X" * (1 << 16) + ": y"), "no end": b"a" * (1 << 20)}
    connections = len(lab.reached(SITE))
    payloads = {"%s %d" % (k, n): v for k, v in large.items() for n in range(4)}
    found = worker().do("""
found = {}
def one(label, data): found[label] = exchange(data, 10)
for n in range(4):
    threads = [threading.Thread(target=one, args=('%s %d' % (k, n), v)) for k, v in large.items()]
    [x.start() for x in threads]; [x.join() for x in threads]
out = found""", large=large)
    wrong = {k: (v["status"], v["end"]) for k, v in found.items() if v["status"] not in (400, 414, 431, None) or v["end"] == "still-open"}
    t.attack(len(found) == len(payloads) and not wrong, "refused", wrong)
    t.attack(len(lab.reached(SITE)) == connections, "nothing was dialled")
    t.attack(small(memory() - before, 4096), "memory", before, memory())
    t.works(exchange_all({"fits": head(get, "X: " + "a" * (60 << 10), *["Y: z"] * 200)})["fits"]["status"] == 200, "a large one that fits passes")
    t.control(len(naive_reaches(large["over"])) > 60000, "a proxy that passes bytes on sends them")


@wall("HTTP-15", "what is no HTTP/1: other versions and protocols, random bytes")
def _(t):
    rng = random.Random(15)
    hello = bytes.fromhex("160301008d0100008903035a" + "00" * 130)
    payloads = {"0.9": b"GET http://site.example/\r\n", "0.9 bare": b"GET /\n", "1": b"GET http://site.example/ HTTP/1\r\n\r\n", "2.0": head("GET http://site.example/ HTTP/2.0"), "0.1": head("GET http://site.example/ HTTP/0.1"),
                "11": head("GET http://site.example/ HTTP/1.11"), "lower": head("GET http://site.example/ http/1.1"), "none": head("GET http://site.example/ "), "blank": head("GET  http://site.example/ HTTP/1.1"),
                "tab": head("GET\thttp://site.example/\tHTTP/1.1"), "trail": head("GET http://site.example/ HTTP/1.1 "), "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", "tls": hello, "socks5": b"\5\1\0", "socks4": b"\4\1\0\x50\x5d\xb8\xd8\x22\0",
                "origin": head("GET / HTTP/1.1"), "star": head("OPTIONS * HTTP/1.1"), "https": head("GET https://site.example/ HTTP/1.1"), "ftp": head("GET ftp://site.example/ HTTP/1.1"), "trace": head("TRACE http://site.example/ HTTP/1.1"),
                "unknown": head("BREW http://site.example/ HTTP/1.1"), "get lower": head("get http://site.example/ HTTP/1.1"), "connect url": head("CONNECT http://site.example:80/ HTTP/1.1"), "connect no port": head("CONNECT site.example HTTP/1.1"), "empty": b"\r\n\r\n"}
    for n in range(full(200, 20000)):
        payloads["random %d" % n] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300)))
    for n in range(0, len(payloads), 5000):
        refuse_all(t, dict(list(payloads.items())[n:n + 5000]), (400, 403, None), shut=True, most=15 if n == 0 else 0) if n == 0 else exchange_all(dict(list(payloads.items())[n:n + 5000]), shut=True)
    t.attack(worker().egress(), "kraft-egress lives")


@wall("HTTP-16", "hop-by-hop fields go; what a Connection field names cannot take others away")
def _(t):
    found = exchange_all({"hop": post("/hop-short", "Connection: Host, Authorization, Content-Length, Connection, X-Keep, close", "Connection: keep-alive, Transfer-Encoding", "Keep-Alive: timeout=5", "Proxy-Authorization: Basic c2VjcmV0",
                                      "Proxy-Connection: keep-alive", "Authorization: Bearer mine", "X-Keep: kept", "Content-Length: 5", body=b"hello"),
                          "long": post("/hop-long", "Connection: " + "a," * (30 << 10), "Content-Length: 5", body=b"hello")})
    t.works({v["status"] for v in found.values()} <= {200, 400} and found["hop"]["status"] == 200, "passes", found)
    got = requests_for("/hop-short")[0]
    t.attack(got.body == b"hello" and got.all("host") == ["site.example"] and got.get("authorization") == "Bearer mine" and got.all("content-length") == ["5"], "framing and credentials stay", got.head)
    gone = [n for n in ("proxy-authorization", "proxy-connection", "keep-alive") if got.get(n) is not None]
    t.attack(not gone and got.all("connection") == ["close"], "hop-by-hop fields go, one Connection is ours", got.head)
    t.attack(not [c for c in lab.reached(SITE) if b"c2VjcmV0" in c.got], "proxy credentials never leave")
    t.control(b"c2VjcmV0" in naive_reaches(head("GET http://site.example/ HTTP/1.1", "Proxy-Authorization: Basic c2VjcmV0")), "a proxy that passes bytes on sends them")


@wall("HTTP-17", "upgrades on plain requests, and a 101 that nobody asked for")
def _(t):
    def switching(conn):
        first = conn.until(b"\r\n\r\n")
        conn.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        netlab.echo(conn)
    lab.serve("switch101.up.example", switching)
    lab.serve("h2c.up.example")
    found = exchange_all({"websocket": head("GET http://switch101.up.example/ HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", host=None, body=b"SMUGGLED"),
                          "unasked": head("GET http://switch101.up.example/ HTTP/1.1", host=None, body=b"SMUGGLED"),
                          "h2c": head("GET http://h2c.up.example/up HTTP/1.1", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__", host=None)}, timeout=6)
    t.attack(all(v["end"] != "still-open" and "SMUGGLED" not in v["all"] and v["status"] != 101 for v in found.values()), "no way through", found)
    t.attack(all(r.get("upgrade") is None for r in requests_for("/up")), "the offer is not passed on", [r.head for r in requests_for("/up")])
    through = worker().do("out = tunnel('switch101.up.example:80', b'GET / HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\nframes')")
    t.works(through["body"].endswith("frames") and " 101 " in through["body"], "through a tunnel it works", through)
    t.control(b"SMUGGLED" in host_fetch("switch101.up.example", 80, b"GET / HTTP/1.1\r\n\r\nSMUGGLED"), "the server takes what comes behind")


def malformed(rng):
    """A request that is surely none: a good one to an allowed host with one thing broken, and noise around."""
    method = rng.choice([b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT"])
    target = b"site.example:80" if method == b"CONNECT" else b"http://site.example/" + bytes(rng.choice(b"abc/%?=&") for _ in range(rng.randrange(30)))
    fields = [b"Host: site.example"] + [bytes(rng.choice(b"abcXYZ-") for _ in range(rng.randrange(1, 12))) + b": " + bytes(rng.choice(b"abc 123,;=\"") for _ in range(rng.randrange(40))) for _ in range(rng.randrange(6))]
    line, end, body = [method, target, b"HTTP/1.1"], b"\r\n", b""
    control = bytes([rng.choice([0, 1, 2, 7, 8, 11, 12, 14, 27, 31, 127])])
    kind = rng.randrange(16)
    if kind == 0: line[2] = rng.choice([b"HTTP/2.0", b"HTTP/1", b"HTTP/1.", b"HTP/1.1", b"http/1.1", b"", b"HTTP/1.1x", b"HTTP/ 1.1", b"ICY"])
    elif kind == 1: line[0] = rng.choice([b"BREW", b"get", b"", b"G\x00T", b"GET\t", b"TRACE", b"\xff\xfe", b"PRI", b"M-SEARCH", b"@"])
    elif kind == 2: line[1] = rng.choice([b"/", b"*", b"", b"https://site.example/", b"//site.example/", b"http:/site.example", b"http://", b"http:///", b"http://site.example:/x y", b"http://@/", b"http://[::1", b"http://site.example:99999/", b"site.example:0", b"site.example:", b"site.example:x"])
    elif kind == 3: fields.insert(rng.randrange(len(fields) + 1), rng.choice([b"no colon here", b": none", b"Bad Name: x", b"X : y", b"\xe9: x", b"(X): y", b"X\x00: y"]))
    elif kind == 4: end = rng.choice([b"\n", b"\r", b"\r\r\n", b"\n\r"])
    elif kind == 5: fields.append(b"X: a" + control + b"b")
    elif kind == 6: line[1] += control
    elif kind == 7: fields += [b"Content-Length: 5", b"Transfer-Encoding: chunked"]; line[:2] = b"POST", b"http://site.example/"
    elif kind == 8: fields += [b"Content-Length: " + rng.choice([b"-1", b"+1", b"1 1", b"0x1", b"1,2", b"", b"99999999999999999999", b"1.0", b"\x001"])]; line[:2] = b"POST", b"http://site.example/"
    elif kind == 9: fields += [b"Transfer-Encoding: " + rng.choice([b"gzip", b"identity", b"chunked, chunked", b"chunked, gzip", b"xchunked", b",chunked", b"\x0bchunked"])]; line[:2] = b"POST", b"http://site.example/"
    elif kind == 10: fields += [b"Host: other.example"]
    elif kind == 11: fields[rng.randrange(len(fields)):0] = [b" folded" if rng.randrange(2) else b"\tfolded"]
    elif kind == 12: fields += [b"X: " + b"a" * (66 << 10)]
    elif kind == 13: fields += [b"Y: z"] * 400
    elif kind == 14: line = [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))) + b"\x00"]
    else:
        whole = b" ".join(line) + b"\r\n" + b"\r\n".join(fields) + b"\r\n\r\n"
        return whole[:rng.randrange(1, len(whole) - 3)]  # cut before its end
    data = b" ".join(line) + end + end.join(fields) + end + end + body
    return data + bytes(rng.randrange(256) for _ in range(rng.choice([0, 0, 5, 50])))


@wall("HTTP-15 G7", "malformed requests from a generator: each answered or closed within 2 s, no byte upstream")
def _(t):
    rng, count = random.Random(20240707), full(2000, 100000)
    before, asked = len(lab.conns), len(lab.names.asked)
    egress = worker().egress()
    memory = lambda: int(re.search(r"VmRSS:\s+(\d+)", read("/proc/%d/status" % egress)).group(1))
    size, slow, odd, statuses = memory(), [], [], {}
    sample = []
    for start in range(0, count, 500):
        batch = [malformed(rng) for _ in range(min(500, count - start))]
        sample = sample or batch[:60]
        encoded = worker().do("""
import queue
work, found = queue.Queue(), []
for n, data in enumerate(batch): work.put((n, base64.b64decode(data)))
def one():
    while True:
        try: n, data = work.get_nowait()
        except queue.Empty: return
        try:
            r = exchange(data, 10, True); found.append((n, r['status'], r['end'], r['seconds']))
        except OSError as e: found.append((n, None, 'reset', 0))
threads = [threading.Thread(target=one) for _ in range(8)]
[x.start() for x in threads]; [x.join() for x in threads]
out = found""", batch=[netlab.base64.b64encode(b).decode() for b in batch])
        for n, status, end, seconds in encoded:
            statuses[status] = statuses.get(status, 0) + 1
            if seconds > 2 or end == "still-open":
                slow.append((batch[n], seconds, end))
            if status not in (400, 403, None):
                odd.append((status, batch[n]))
    t.note("%d malformed requests: %s" % (count, statuses))
    t.attack(sum(statuses.values()) == count and not slow, "in time", slow[:3])
    t.attack(not odd and len(lab.conns) == before and len(lab.names.asked) == asked, "nothing upstream", odd[:3], [bytes(c.got[:200]) for c in lab.conns[before:before + 3]])
    t.attack(worker().egress() == egress and small(memory() - size, 16 << 10), "the same kraft-egress, no larger", size, memory())
    t.control(sum(bool(naive_reaches(b)) for b in sample) > 10, "a proxy that passes bytes on lets many through")
    works(t)


NODE = r"""
const http = require('http');
const server = http.createServer((req, res) => {
  const parts = [];
  req.on('data', d => parts.push(d));
  req.on('end', () => {
    const body = Buffer.concat(parts);
    const text = JSON.stringify({method: req.method, url: req.url, version: req.httpVersion, raw: req.rawHeaders, body: body.toString('latin1')});
    res.setHeader('Connection', 'close'); res.end(text);
  });
});
server.on('clientError', (e, s) => s.end('HTTP/1.1 400 Bad Request\r\n\r\n' + e.code));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


def near_valid(rng, n):
    """A legal request, oddly written; and what it means."""
    method = rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
    path = "/near-%d/" % n + "".join(rng.choice("abc~!$&'()*+,;=:@%/?-._") for _ in range(rng.randrange(20)))
    token = "!#$%&'*+-.^_`|~abcXYZ019"
    fields = []
    for _ in range(rng.randrange(8)):
        name = "".join(rng.choice(token) for _ in range(rng.randrange(1, 10))) + "q"
        value = "".join(rng.choice("abc \t\"\\,;:=()[]{}<>@?/\x80\xa0\xff%") for _ in range(rng.randrange(30)))
        fields.append((name, value))
    fields += [(rng.choice(["Accept", "COOKIE", "x-forwarded-for", "Set-Cookie", "Via", "Content-Type"]), "v%d" % rng.randrange(9)) for _ in range(rng.randrange(3))]
    body, wire = b"", b""
    if method != "GET" and rng.randrange(3):
        body = bytes(rng.randrange(256) for _ in range(rng.randrange(0, 200)))
        if rng.randrange(2):
            fields.append((rng.choice(["Content-Length", "content-length", "CONTENT-LENGTH"]), "%d" % len(body)))
            wire = body
        else:
            fields.append((rng.choice(["Transfer-Encoding", "transfer-encoding"]), rng.choice(["chunked", "Chunked"])))
            at = 0
            while at < len(body):
                size = rng.randrange(1, 60)
                piece = body[at:at + size]
                wire += (b"%x" if rng.randrange(2) else b"%04X") % len(piece) + rng.choice([b"", b";a=b", b";a=\"b c\""]) + b"\r\n" + piece + b"\r\n"
                at += size
            wire += b"0\r\n\r\n"
    rng.shuffle(fields)
    lines = ["%s http://site.example%s HTTP/1.1" % (method, path), "Host: site.example"] + ["%s:%s%s%s" % (k, rng.choice(["", " ", "\t ", "  "]), v, rng.choice(["", " ", "\t"])) for k, v in fields]
    return method, path, body, fields, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + wire


@wall("HTTP-02 HTTP-06 G8", "what is passed on is read alike by node's own HTTP server")
def _(t):
    rng, count = random.Random(8), full(400, 10000)
    node = subprocess.Popen(["node", "-e", NODE], stdout=subprocess.PIPE, env=HOME.env())
    try:
        port = int(node.stdout.readline())
        sent = [near_valid(rng, n) for n in range(count)]
        found = {}
        for at in range(0, count, 500):
            found.update(exchange_all({str(n): sent[n][4] for n in range(at, min(at + 500, count))}))
        passed = {r.target.split("/")[1]: r for r in requests_for("/near-")}
        t.works(len(passed) > count * 0.9, "nearly all are passed on", len(passed), [(v["status"], sent[int(n)][4]) for n, v in found.items() if v["status"] != 200][:2])
        differ = []
        for n, (method, path, body, fields, wire) in enumerate(sent):
            got = passed.get("near-%d" % n)
            if got is None:
                continue
            raw = bytes(got.conn.got)
            answer = host_fetch("127.0.0.1", port, raw)
            read_by_node = json.loads(answer.partition(b"\r\n\r\n")[2]) if answer.startswith(b"HTTP/1.1 200") and answer.count(b"HTTP/1.1 ") == 1 else {}
            hosts = [v for k, v in zip(*[iter(read_by_node.get("raw", []))] * 2) if k.lower() == "host"]
            if (read_by_node.get("method"), read_by_node.get("url"), read_by_node.get("body", "").encode("latin-1"), hosts) != (method, path, body, ["site.example"]) or got.bad or got.body != body:
                differ.append((wire, raw, answer[:200]))
        t.attack(not differ, "method, target, host and body", len(differ), differ[:2])
        bent = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"
        t.control(not host_fetch("127.0.0.1", port, bent).startswith(b"HTTP/1.1 200"), "node refuses what is bent")
    finally:
        node.kill()
        node.wait()


if __name__ == "__main__":
    main()
