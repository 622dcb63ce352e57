#!/usr/bin/env python3
"""The way out of a sandbox: what it lets through, by name, address and phase, and how it says no (NET, POL)."""
# kraft-test: timeout 240
from egresslive import *

DIRECT = r"""
found = {}
def attempt(name, make):
    try:
        make()
        found[name] = 'ok'
    except OSError as e:
        found[name] = str(e)
def tcp(family, address, port):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(2); s.connect((address, port))
def udp(family, address, port):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET: s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.sendto(b'leaving', (address, port))
def raw(family, kind, protocol, address):
    socket.socket(family, kind, protocol).sendto(b'\x08\0\xf7\xff\0\0\0\0', (address, 0))
I, J = socket.AF_INET, socket.AF_INET6
for a in ('93.184.216.34', '8.8.8.8', '10.0.0.1', '192.168.0.1', '172.16.0.1', '169.254.169.254', '100.100.100.200', '9.9.9.53', '203.5.0.1', '203.5.0.2'):
    attempt('tcp ' + a, lambda: tcp(I, a, 80))
    attempt('dns ' + a, lambda: udp(I, a, 53))
    attempt('quic ' + a, lambda: udp(I, a, 443))
for a, p in (('224.0.0.251', 5353), ('239.255.255.250', 1900), ('255.255.255.255', 67), ('203.5.0.255', 9)):
    attempt('udp ' + a, lambda: udp(I, a, p))
for a in ('2a00:1450:1::7', 'fd00::1', 'fd00:ec2::254', 'ff02::fb%lo', 'fe80::1%lo', '::ffff:93.184.216.34', '64:ff9b::5db8:d822'):
    attempt('tcp ' + a, lambda: tcp(J, a, 80))
    attempt('udp ' + a, lambda: udp(J, a, 5353))
for a in ('93.184.216.34', '169.254.169.254'):
    attempt('ping ' + a, lambda: raw(I, socket.SOCK_DGRAM, 1, a))
    attempt('icmp ' + a, lambda: raw(I, socket.SOCK_RAW, 1, a))
    attempt('raw ' + a, lambda: raw(I, socket.SOCK_RAW, 253, a))
for name in ('allowed.example', 'data-in-a-name.exfil.example'):
    attempt('name ' + name, lambda: socket.getaddrinfo(name, 80))
out = found
"""


@wall("NET-01 NET-02 NET-15 POL-08", "what ignores the proxy has no route at all: nothing is on the wire, no name is asked for")
def _(t):
    lab.serve("allowed.example")
    home = policy(["allowed.example"])
    with Worker(home) as worker:
        worker.do("for n in list(os.environ):\n    if 'PROXY' in n.upper(): del os.environ[n]")
        before = len(lab.conns)
        with lab.capture() as wire:
            found = worker.do(DIRECT)
        sent = {k for k, v in found.items() if v == "ok" and "%lo" not in k}
        t.attack(len(found) > 45 and not sent, "each attempt fails", sent)
        t.attack(wire.packets == [], "no packet on the wire", wire.packets[:5])
        t.attack(len(lab.conns) == before and lab.asked("exfil.example") == 0, "no connection, no look-up", lab.names.asked)
        with lab.capture() as wire:
            answer = worker.do("out = get('http://allowed.example/')")
        t.works(answer["status"] == 200 and wire.packets, "through the proxy it leaves", answer)
    with lab.capture() as wire:
        result = home.host(PYTHON, "-ISc", CLIENT + DIRECT + "\nprint(json.dumps(out))")
    open_ones = {k for k, v in json.loads(result.out).items() if v == "ok"}
    t.control(len(open_ones) > 30 and len(wire.packets) > 40, "on the host the same attempts leave", open_ones, len(wire.packets))
    t.control(lab.asked("exfil.example") > 0, "and the name is asked for")


@wall("NET-03 NET-10", "the host's own services and other sessions' ways out cannot be reached")
def _(t):
    lab.on_host("127.0.0.1", 8765, netlab.http())
    lab.on_host(netlab.HOST_V4, 8765, netlab.http())
    lab.serve("first.example")
    lab.serve("second.example")
    own = ["127.0.0.1", netlab.HOST_V4, "localhost", "labhost.example"]
    first, second = policy(["first.example"] + own), policy(["second.example"])
    bait = lambda: lab.reached("127.0.0.1", 8765) + lab.reached(netlab.HOST_V4, 8765)
    with Worker(first) as a, Worker(second) as b:
        found = a.ask(*["%s:8765" % h for h in own + ["[%s]" % netlab.HOST_V6]])
        t.attack(all(is_refusal(x) for x in found.values()) and not bait(), "the host's own addresses", found)
        direct = a.do("out = []\nfor p in (8765, 80, 53):\n    s = socket.socket(); s.settimeout(1); out.append(s.connect_ex(('127.0.0.1', p)))")
        t.attack(0 not in direct, "nor its loopback", direct)
        crossed = [a.ask("second.example:80"), b.ask("first.example:80")]
        t.attack(all(is_refusal(x) for y in crossed for x in y.values()), "each session has its own lists only", crossed)
        t.attack(lab.asked("second.example") + lab.asked("first.example") == 0, "no name was asked for")
        listening = a.do("out = open('/proc/net/tcp').read().count(' 0A ')")
        t.works(listening == 1, "one listener inside", listening)
        t.works([a.ask("first.example:80")["first.example:80"]["status"], b.ask("second.example:80")["second.example:80"]["status"]] == [200, 200], "its own")
    t.control(b"200 OK" in host_fetch("127.0.0.1", 8765, b"GET / HTTP/1.1\r\n\r\n") and bait(), "on the host they answer")


@wall("NET-05 POL-06", "a host that is not allowed: 403 with one line, an event, no byte, no look-up")
def _(t):
    address = lab.serve("closed.example")
    lab.serve("open.example")
    home = policy(["open.example"])
    with lab.capture() as wire, Worker(home) as worker:
        tunnel = worker.ask("closed.example:80")["closed.example:80"]
        plain = worker.do("out = get('http://closed.example/path?secret')")
        posted = worker.do("out = exchange(b'POST http://closed.example/ HTTP/1.1\\r\\nHost: closed.example\\r\\nContent-Length: 5\\r\\n\\r\\nhello')")
    for answer in (tunnel, plain, posted):
        t.attack(is_refusal(answer) and "closed.example" in (answer.get("why") or answer["body"]), "403 and why", answer)
    t.attack("content-type: text/plain" in plain["head"].lower() and "connection: close" in plain["head"].lower(), "as plain text, closed", plain["head"])
    t.attack(lab.reached(address) == [] and lab.asked("closed.example") == 0 and wire.packets == [], "nothing left", wire.packets[:5])
    told = refusals(home)
    t.attack([(e["host"], e["port"], e["phase"]) for e in told] == [("closed.example", 80, "runtime")], "one event of the host", told)
    t.attack("not on the allow list" in told[0]["reason"] and told[0].get("session_id", told[0].get("session")), "with the reason", told)
    t.attack("closed.example" in worker.err and "allow" in worker.err and "secret" not in worker.err, "kraft run tells it at its end", worker.err)
    out, err = inside(home, "out = get('http://open.example/')")
    t.works(out["status"] == 200 and "refused" not in err, "an allowed one", out, err)
    home = policy(["closed.example"])
    out, _ = inside(home, "out = get('http://closed.example/path?secret')")
    t.control(out["status"] == 200 and lab.reached(address) and lab.asked("closed.example"), "with the entry it is reached", out)


def yaml_of(err):
    """The entry that kraft run offers: what follows "network:" with its indentation."""
    found = re.search(r"^(\s*)network:\n((?:\1\s+.*\n?)+)|^\s*network: .*$", err, re.M)
    return found.group(0) if found else None


@wall("NET-05 POL-06", "the YAML that a refusal offers lets it through when it is added")
def _(t):
    lab.serve("wanted.example")
    home = policy(["open.example"])
    _, err = inside(home, "out = get('http://wanted.example/')")
    t.attack("wanted.example:80" in err, "the grant is named", err)
    offered = re.findall(r"(?:- |\[|, )[\"']?(wanted\.example(?::80)?)[\"']?", err)
    t.attack(len(offered) >= 1 and "network" in err and "runtime" in err, "as the YAML to add", err)
    home.configure(sandbox={"network": {"runtime": {"allow": ["open.example", offered[0]]}}})
    out, err = inside(home, "out = get('http://wanted.example/')")
    t.works(out["status"] == 200 and "wanted.example" not in err, "with it there is nothing to tell", out, err)
    home = policy(["open.example"], deny=["wanted.example"])
    out, err = inside(home, "out = [ask('wanted.example:80'), ask('169.254.169.254:80')]")
    t.control("deny list" in out[0]["why"] and not re.search(r"- [\"']?(wanted\.example|169\.254)", err), "none is offered for what an entry cannot open", out, err)


@wall("NET-06", "a relay of the worker's gets the same decision, and bytes in a tunnel are no new request")
def _(t):
    lab.serve("relay.example", netlab.echo, 7001)
    address = lab.serve("behind.example")
    home = policy(["relay.example:7001"])
    with Worker(home) as worker:
        relayed = worker.do("""
server = socket.create_server(('127.0.0.1', 9000))
def relay():
    a, _ = server.accept(); b = dial()
    def pump(x, y):
        while True:
            d = x.recv(65536)
            if not d: break
            y.sendall(d)
        y.shutdown(socket.SHUT_WR)
    threading.Thread(target=pump, args=(b, a), daemon=True).start(); pump(a, b)
threading.Thread(target=relay, daemon=True).start()
s = socket.create_connection(('127.0.0.1', 9000)); s.sendall(b'CONNECT behind.example:80 HTTP/1.1\\r\\nHost: behind.example:80\\r\\n\\r\\n')
out = status_of(s.recv(4096))
""")
        t.attack(relayed == 403, "over a relay of its own", relayed)
        request = "CONNECT behind.example:80 HTTP/1.1\r\nHost: behind.example:80\r\n\r\nGET http://behind.example/ HTTP/1.1\r\n\r\n"
        echoed = worker.do("out = [tunnel('relay.example:7001', request), tunnel('relay.example:7001', b'', early=request)]", request=request.encode())
    t.works([e["body"] for e in echoed] == [request] * 2, "in a tunnel they go to its far end as they are", echoed)
    t.attack(not lab.reached(address) and not lab.asked("behind.example"), "and to nowhere else")
    out, _ = inside(policy(["behind.example"]), "out = ask('behind.example:80')")
    t.control(out["status"] == 200 and lab.took(address), "with an entry it is reached", out)


@wall("NET-07 POL-02", "a phase that is missing or empty allows nothing")
def _(t):
    lab.serve("any.example")
    for network in ({"runtime": {"allow": []}}, {"install": {"allow": ["*"]}}, {"runtime": {"deny": ["other.example"]}}, {"install": {"allow": ["*"]}, "runtime": {}}):
        home = Home(sandbox={"network": network})
        out, _ = inside(home, "out = ask('any.example:80')")
        t.attack(is_refusal(out) and not lab.asked("any.example"), network, out)
    for network in ({}, None):
        home = Home(sandbox={"network": network})
        result = home.run("true")
        t.attack(result.code not in (0, None) and "network" in result.err, "no policy, no launch: %s" % network, result)
    out, _ = inside(policy(["*"]), "out = ask('any.example:80')")
    t.works(out["status"] == 200, "a star allows", out)
    t.control(lab.asked("any.example") > 0, "and then the name is asked for")


SETUP = r"""cat >"$HOME/client.py" <<'END'
%s
found = {h: ask(h)['status'] for h in ('setup.example:80', 'run.example:80', 'both.example:7001')}
status, kept, _, _ = connect('both.example:7001')
kept.sendall(b'kept open')
json.dump(found, open('found', 'w'))
if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(0.1); kept.sendall(b'more')
END
python3 -IS "$HOME/client.py"
"""


@wall("NET-08 POL-02", "phases: setup under install, the command under runtime, and no way back")
def _(t):
    for name in ("setup.example", "run.example"):
        lab.serve(name)
    lab.serve("both.example", netlab.sink, 7001)
    home = policy(["run.example", "both.example"], install=["setup.example", "both.example"], setup=SETUP % CLIENT)
    with Worker(home) as worker:
        at_setup = worker.do("out = json.load(open('found'))")
        t.works(at_setup == {"setup.example:80": 200, "run.example:80": 403, "both.example:7001": 200}, "setup has the install lists", at_setup)
        kept = next(c for c in lab.reached(lab.names.rules["both.example"][0]) if b"kept open" in c.got)
        t.attack(kept.ended, "its tunnel is closed at the switch, though both phases allow the host", kept.ended)
        size = kept.count
        found = worker.ask("setup.example:80", "run.example:80", "both.example:7001")
        t.attack(is_refusal(found["setup.example:80"]), "no way back", found)
        t.works(found["run.example:80"]["status"] == found["both.example:7001"]["status"] == 200, "the runtime lists", found)
        t.attack(kept.count == size, "nothing more came over it")
    told = {(e["host"], e["phase"]) for e in refusals(home)}
    t.attack(told == {("run.example", "install"), ("setup.example", "runtime")}, "events name the phase", told)
    home = policy(["setup.example"], install=[])
    out, _ = inside(home, "out = ask('setup.example:80')")
    t.control(out["status"] == 200, "with a runtime entry it is reached", out)


@wall("NET-09 POL-10", "a session keeps the lists that it was launched with; the next one has the new ones")
def _(t):
    lab.serve("pinned.example", netlab.echo, 7001)
    home = policy(["pinned.example"])
    with Worker(home) as worker:
        t.works(worker.do("status, kept, _, _ = connect('pinned.example:7001'); out = status") == 200, "open")
        home.configure(sandbox={"network": {"runtime": {"allow": ["other.example"]}}})
        same = worker.do("kept.sendall(b'on'); out = [kept.recv(10).decode(), ask('pinned.example:7001')['status'], ask('other.example:80')['status']]")
        t.attack(same == ["on", 200, 403], "its tunnel and its requests follow one rule", same)
    out, _ = inside(home, "out = ask('pinned.example:7001')")
    t.control(is_refusal(out), "the next session has the new lists", out)


SPELLINGS = """127.0.0.1 127.0.0.53 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 0177.0.0.1 017700000001 127.000.000.001 0127.0.0.1
127.0.0.1. 0.0.0.0 0 0.0 localhost LOCALHOST localhost. a.localhost [::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1]
[::127.0.0.1] [::ffff:0:127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1] [2002:7f00:1::] [2001:0:7f00:1::] [::1%lo] [::1%25lo] [fe80::1%k0]
169.254.169.254 2852039166 0xa9fea9fe [::ffff:169.254.169.254] [fd00:ec2::254] 100.100.100.200 metadata.google.internal metadata
224.0.0.1 255.255.255.255 [ff02::1] 203.5.0.2 [2a00:1450:5::2] [::ffff:203.5.0.2] 168.63.129.16""".split()


@wall("NET-10 POL-03", "always-denied addresses in every spelling, though the lists name them")
def _(t):
    for address in ("127.0.0.1", "::1", netlab.HOST_V4):
        lab.on_host(address, 80, netlab.http())
    for name in ("metadata.google.internal", "metadata"):
        lab.serve(name)
    home = policy(["*", "127.0.0.1", "169.254.169.254", "localhost", "203.5.0.2", "100.100.100.200", "metadata", "metadata.google.internal", "0.0.0.0"])
    lab.serve("open.example")
    before = len(lab.conns)
    with lab.capture() as wire, Worker(home) as worker:
        found = worker.ask(*[s + ":80" for s in SPELLINGS])
        plain = worker.do("out = {s: get('http://%s/' % s)['status'] for s in hosts}", hosts=SPELLINGS)
        open_ones = {k: v["status"] for k, v in found.items() if v["status"] not in (400, 403)}
        t.attack(len(found) >= 45 and not open_ones, "no tunnel", open_ones)
        t.attack(set(plain.values()) <= {400, 403}, "no request", plain)
        t.attack(len(lab.conns) == before and wire.packets == [], "nothing was dialled, nothing looked up", wire.packets[:5])
        valid = [s + ":80" for s in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "metadata", "localhost", "203.5.0.2")]
        t.attack(all(is_refusal(found[v]) for v in valid), "the well-formed ones are refused by name", {v: found[v] for v in valid})
        t.works(worker.ask("open.example:80")["open.example:80"]["status"] == 200, "the star allows the rest")
    code = """
import json, socket, sys
found = []
for s in sys.argv[1:]:
    try:
        socket.create_connection((s.strip('[]').replace('%25', '%'), 80), 1).close(); found.append(s)
    except (OSError, UnicodeError): pass
print(json.dumps(found))
"""
    direct = json.loads(home.host(PYTHON, "-ISc", code, *SPELLINGS, timeout=100).out)
    t.control(len(direct) >= 20, "on the host that many of them reach something", direct)


@wall("NET-11 NET-12 POL-05", "rebinding: one look-up a request, every address checked, a checked one dialled")
def _(t):
    public = lab.serve("public.example")
    for address in ("127.0.0.1", "::1"):
        lab.on_host(address, 7080, netlab.http())
    lab.listen(7080, netlab.http())
    bad = {"loopback": "127.0.0.1", "meta": "169.254.169.254", "own": netlab.HOST_V4, "six": "::1", "mapped": "::ffff:127.0.0.1", "nat64": "64:ff9b::7f00:1",
           "sixtofour": "2002:7f00:1::", "ec2": "fd00:ec2::254", "zero": "0.0.0.0"}
    turn = lambda kind, n: [public] if n == 0 else [bad["loopback"], bad["six"]]
    for name in ("turn", "turn2"):
        lab.name(name + ".example", turn)
    for label, address in bad.items():
        lab.name(label + "-last.example", [public, address])
        lab.name(label + "-first.example", [address, public])
    lab.name("by-type.example", lambda kind, n: [public] if kind == "A" else ["::1"])
    lab.name("retry.example", lambda kind, n: "fail" if n == 0 else ["127.0.0.1"])
    home = policy(["*"])
    seen = lambda: lab.reached("127.0.0.1", 7080) + lab.reached("::1", 7080) + lab.reached("169.254.169.254", 7080)
    with Worker(home) as worker:
        answers = [worker.ask("turn.example:7080")["turn.example:7080"]["status"] for _ in range(6)]
        t.works(answers[0] == 200 and lab.took(public, 1, 7080), "the public answer is dialled", answers)
        t.attack(set(answers) <= {200, 403} and not seen(), "later answers are judged anew or not used", answers)
        together = worker.do("""
found = []
threads = [threading.Thread(target=lambda: found.append(ask('turn2.example:7080')['status'])) for _ in range(40)]
[x.start() for x in threads]; [x.join() for x in threads]
out = found""")
        t.attack(set(together) <= {200, 403} and not seen(), "forty at once", together)
        mixed = worker.ask(*["%s-%s.example:7080" % (b, p) for b in bad for p in ("last", "first")], "by-type.example:7080", "retry.example:7080")
        open_ones = {k: v for k, v in mixed.items() if v["status"] != 403 and not (k.startswith("retry") and v["status"] in (502, 503, 504))}
        t.attack(not open_ones and not seen(), "one bad address refuses the name", open_ones)
        t.attack("127.0.0.1" in mixed["loopback-last.example:7080"]["why"], "the reason names it", mixed["loopback-last.example:7080"])
        per_name = {n: lab.asked(n + "-last.example") for n in bad}
        t.attack(set(per_name.values()) == {2}, "resolved once: one A, one AAAA", per_name)
    for _ in range(3):
        host_fetch("turn.example", 7080, b"GET / HTTP/1.1\r\n\r\n")
    t.control(seen(), "a program that resolves for each try is led astray")


@wall("POL-04", "addresses that are not public only by an entry that names the host itself")
def _(t):
    for name, address in (("db.lan.example", "10.9.8.7"), ("six.lan.example", "fd12::7"), ("cgn.lan.example", "100.64.1.1"), ("doc.lan.example", "192.0.2.7")):
        lab.serve(name, address=address)
    names = ["%s.lan.example:80" % n for n in ("db", "six", "cgn", "doc")]
    with Worker(policy(["*.lan.example", "*"])) as worker:
        found = worker.ask(*names, "10.9.8.7:80", "[fd12::7]:80", "192.168.1.1:80")
        t.attack(all(is_refusal(v) for v in found.values()), "not through a star", found)
        t.attack(not lab.reached("10.9.8.7") + lab.reached("fd12::7") + lab.reached("192.168.1.1"), "none was reached")
        t.attack("db.lan.example:80" in found[names[0]]["why"], "the entry that would help is named", found[names[0]])
    with Worker(policy(["db.lan.example", "six.lan.example:80", "cgn.lan.example", "doc.lan.example", "10.9.8.7"])) as worker:
        found = worker.ask(*names, "10.9.8.7:80", "10.9.8.8:80")
        t.works([found[n]["status"] for n in names + ["10.9.8.7:80"]] == [200] * 5, "named themselves they are open", found)
        t.control(lab.took("10.9.8.7", 2) and lab.took("fd12::7"), "and reached")
        t.attack(is_refusal(found["10.9.8.8:80"]), "their neighbour is not", found["10.9.8.8:80"])


@wall("NET-13", "spellings of a name: read once, judged and dialled as one")
def _(t):
    address = lab.serve("name.example")
    home = policy(["name.example", "xn--nme-qla.example"])
    good = ["name.example:80", "NAME.Example:80", "name.example.:80", "nAmE.eXaMpLe.:80"]
    unlisted = ["xname.example:80", "name.example.evil.example:80", "evil-name.example:80", "name.exampl:80", "name.examples:80", "sub.name.example:80", "example:80"]
    broken = ["user@name.example:80", "name.example#.evil.example:80", "name.example\\.evil.example:80", "name%2eexample:80", "%6eame.example:80", "name.example%00.evil.example:80",
              "name.example\x00.evil.example:80", "[name.example]:80", "name..example:80", ".name.example:80", "name.example..:80", "na_me.example:80", "name.example/:80", "name.example:80/",
              "n\xe4me.example:80", "name.example :80", " name.example:80", "name.example\t:80", "*.example:80", "-name.example:80x", "a" * 64 + ".:80", ("a" * 60 + ".") * 5 + "example:80", "", ":80", "http://name.example:80", "name.example:80:80"]
    asked_before = len(lab.names.asked)
    with Worker(home) as worker:
        found = worker.ask(*good, *unlisted, *broken)
        status = {k: v["status"] for k, v in found.items()}
        t.works([status[g] for g in good] == [200] * 4 and lab.took(address, 4), "one name", {g: found[g] for g in good})
        t.attack({status[u] for u in unlisted} == {403}, "look-alikes are other names", {u: status[u] for u in unlisted})
        wrong = {b: status[b] for b in broken if status[b] != 400 and not (b.startswith("a" * 60) and status[b] == 403)}
        t.attack(not wrong, "what is no host is 400", wrong)
        asked = {n for n, _, _ in lab.names.asked[asked_before:]} - {"name.example"}
        t.attack(not asked, "no other name is asked for", asked)
        plain = worker.do("out = [get(u)['status'] for u in urls]", urls=["http://NAME.example./", "http://name.example@evil.example/", "http://evil.example#@name.example/",
                          "http://evil.example\\@name.example/", "http://name.example%2f.evil.example/", "http://[name.example]/", "http:name.example/", "http:///name.example", "//name.example/"])
        t.attack(plain[0] == 200 and set(plain[1:]) <= {400, 403}, "in URLs as well", plain)
    t.control(host_fetch("NAME.example.", 80, b"GET / HTTP/1.1\r\n\r\n") != b"", "a resolver takes the odd ones as that name")


@wall("NET-14", "ports: the policy's only; what is no port is 400")
def _(t):
    lab.serve("port.example", netlab.echo, 8443)
    for port in (22, 25, 443, 8444):
        lab.serve("port.example", netlab.echo, port)
    home = policy(["port.example:8443"])
    with Worker(home) as worker:
        found = worker.ask(*["port.example:" + p for p in "8443 08443 22 25 443 8444 0 65536 99999 +8443 -1 008443 0x20fb 8443a 84-43 1e4 八".split() + ["", " 8443", "8443 ", "８４４３"] if p.isascii()], "port.example")
        status = {k[13:]: v["status"] for k, v in found.items()}
        t.works(status.pop("8443") == 200 and status.pop("08443") == 200, "the port of the entry", found)
        refused = {p: status.pop(p) for p in ("22", "25", "443", "8444")}
        t.attack(set(refused.values()) == {403}, "others", refused)
        t.attack(set(status.values()) == {400}, "no port", status)
        t.attack("8443" in found["port.example:443"]["why"], "the near miss is told", found["port.example:443"])
    address = lab.names.rules["port.example"][0]
    t.attack(lab.took(address, 2) and {c.port for c in lab.reached(address)} == {8443}, "no other port was dialled")
    out, _ = inside(policy(["port.example"]), "out = [ask('port.example:%d' % p)['status'] for p in (22, 443)]")
    t.control(out == [200, 200], "without a port in the entry they are open", out)


@wall("NET-15", "data in names: no look-up leaves for a name that is not allowed")
def _(t):
    lab.serve("open.example")
    names = [("%032x" % (n * 0x9e3779b97f4a7c15)) + ".%d.leak.example" % n for n in range(full(60, 1000))]
    home = policy(["open.example", "*.star.example"], deny=["denied.star.example"])
    with Worker(home) as worker:
        with lab.capture() as wire:
            found = worker.ask(*[n + ":443" for n in names], "a.b.star.example:80", "denied.star.example:80")
            plain = worker.do("out = {get('http://%s/' % n)['status'] for n in names[:20]} and [get('http://%s/' % n)['status'] for n in names[:20]]", names=names)
            looked = worker.do("""
found = []
for n in names[:5]:
    try: found.append(str(socket.getaddrinfo(n, 80)))
    except socket.gaierror as e: found.append('none')
out = found""", names=names)
        t.attack({v["status"] for v in found.values()} == {403} and set(plain) == {403} and set(looked) == {"none"}, "all refused", looked)
        t.attack(lab.asked("leak.example") == 0 and lab.asked("star.example") == 0 and wire.packets == [], "no query", wire.packets[:3])
        t.works(worker.ask("open.example:80")["open.example:80"]["status"] == 200 and lab.asked("open.example"), "an allowed name is asked for")
    with contextlib.suppress(OSError):
        socket.getaddrinfo(names[0], 80)
    t.control(lab.asked("leak.example") > 0, "on the host the same look-up leaves")


@wall("NET-16", "a name server that stalls, is late, answers 300 records or nonsense holds up only who asked")
def _(t):
    lab.serve("quick.example")
    lab.serve("fresh.example")
    address = lab.serve("late.example")
    lab.name("late.example", ("late", 1.0, [address]))
    lab.name("stall.example", "stall")
    lab.name("stall2.example", "stall")
    lab.name("many.example", ["93.185.%d.%d" % divmod(n, 250) for n in range(300)])
    lab.name("odd.example", ("raw", b"\x85\x80\xff\xff\xff\xff\0\0" + b"\xc0\x0c" * 200))
    lab.name("loop.example", ("raw", lambda q: q[:2] + b"\x85\x80\0\1\0\1\0\0\0\0" + q[12:] + b"\xc0\x0c\0\5\0\1\0\0\0\0\0\2\xc0\x0c"))
    lab.name("none.example", None)
    home = policy(["*"])
    with Worker(home) as worker, Worker(policy(["*"])) as other:
        t.works(worker.ask("quick.example:80")["quick.example:80"]["status"] == 200, "before")
        worker.do("""
stalled = {}
def wait(name):
    stalled[name] = ask(name)
threads = [threading.Thread(target=wait, args=(n,)) for n in ('stall.example:80', 'stall2.example:80')]
[x.start() for x in threads]; time.sleep(0.3)""")
        meanwhile = worker.ask("quick.example:80", "fresh.example:80", "late.example:80", "93.184.216.34:80")
        t.attack({v["status"] for v in meanwhile.values()} == {200}, "others of the session", meanwhile)
        t.attack(meanwhile["quick.example:80"]["seconds"] < 1 and meanwhile["fresh.example:80"]["seconds"] < 2, "at once", meanwhile)
        crowd = worker.do("""
crowd = [threading.Thread(target=wait, args=('%d.stall.example:80' % n,)) for n in range(100)]
[x.start() for x in crowd]; time.sleep(0.3); out = ask('quick.example:80')""")
        t.attack(crowd["status"] == 200 and crowd["seconds"] < 1, "a crowd of look-ups leaves what is known alone", crowd)
        elsewhere = other.ask("fresh.example:80", "many.example:80", "odd.example:80", "loop.example:80", "none.example:80")
        t.attack(elsewhere["fresh.example:80"]["status"] == 200 and elsewhere["fresh.example:80"]["seconds"] < 2, "another session is unaffected", elsewhere)
        rest = {k: v["status"] for k, v in elsewhere.items() if not k.startswith("fresh")}
        t.attack(set(rest.values()) <= {403, 502, 503, 504}, "300 records, nonsense and none are refused", elsewhere)
        threads = int(re.search(r"Threads:\s+(\d+)", read("/proc/%d/status" % worker.process.pid)).group(1))
        t.attack(threads <= 8, "few threads", threads)
        out = worker.do("[x.join(60) for x in threads]; out = [stalled.get(n) for n in ('stall.example:80', 'stall2.example:80')]")
        t.works(all(o and o["status"] in (403, 502, 503, 504) and o["seconds"] < 40 for o in out), "who asked gets an answer", out)
    start = time.monotonic()
    with contextlib.suppress(OSError):
        socket.getaddrinfo("stall.example", 80)
    t.control(time.monotonic() - start > 2, "on the host the same look-up takes its time", time.monotonic() - start)


@wall("NET-17 POL-01 POL-02", "wildcards and deny: a star is one label, deny wins")
def _(t):
    open_names = ["a.wild.example", "x-1.wild.example", "plain.example", "in.both.example"]
    closed_names = ["wild.example", "a.b.wild.example", "awild.example", "wild.example.evil.example", "a.wild.examples", "no.wild.example", "out.both.example", "x.plain.example", "denied.example"]
    for name in open_names + closed_names:
        lab.serve(name)
    home = policy(["*.wild.example", "plain.example", "*.both.example", "denied.example"], deny=["no.wild.example", "out.both.example", "*.example.evil.example", "denied.example:80"])
    with Worker(home) as worker:
        found = worker.ask(*[n + ":80" for n in open_names + closed_names], "denied.example:443")
        t.works([found[n + ":80"]["status"] for n in open_names] == [200] * len(open_names), "open", found)
        t.attack(all(is_refusal(found[n + ":80"]) for n in closed_names), "closed", {n: found[n + ":80"]["status"] for n in closed_names})
        t.attack("deny list" in found["no.wild.example:80"]["why"], "the deny is told", found["no.wild.example:80"])
        t.attack(not [n for n in closed_names if lab.reached(lab.names.rules[n][0], 80)], "none was reached")
    with Worker(policy(["**"], deny=["*.wild.example"])) as worker:
        found = worker.ask(*[n + ":80" for n in closed_names + ["a.wild.example"]])
        t.control([n for n in closed_names if found[n + ":80"]["status"] == 200] == [n for n in closed_names if n != "no.wild.example"], "two stars open them", found)
        t.attack(is_refusal(found["a.wild.example:80"]), "but for what is denied", found["a.wild.example:80"])


@wall("NET-18 POL-01 POL-02", "address entries: a deny holds in every spelling, ranges are no entries")
def _(t):
    address = lab.serve("literal.example")
    other = lab.serve("other-literal.example")
    octets = [int(n) for n in address.split(".")]
    spelled = [address, "[::ffff:%s]" % address, "[64:ff9b::%s]" % address, "[2002:%02x%02x:%02x%02x::]" % tuple(octets), "literal.example"]
    with Worker(policy(["*", address], deny=[address])) as worker:
        found = worker.ask(*[s + ":80" for s in spelled[:4]], other + ":80")
        t.attack(all(is_refusal(found[s + ":80"]) for s in spelled[:4]) and not lab.reached(address), "denied", found)
        t.works(found[other + ":80"]["status"] == 200, "its neighbour is not", found)
    with Worker(policy(["*"], deny=["literal.example"])) as worker:
        found = worker.ask("literal.example:80", address + ":80")
        t.attack(is_refusal(found["literal.example:80"]), "a denied name", found)
        t.control(found[address + ":80"]["status"] == 200, "a deny of the name is one of the name, as the documentation says", found)
    for entry in ("10.0.0.0/8", "93.184.0.1/32", "93.184.0.*", "[::1]", "::1", "fd00::/8"):
        result = policy([entry]).run("true")
        t.attack(result.code == 125 and entry in result.err, "no entry, no launch", entry, result)


@wall("POL-06", "one event a session and host, however often; after a hundred hosts one that says so")
def _(t):
    home = policy(["open.example"])
    with Worker(home) as worker:
        again = worker.do("out = [ask('same.example:%d' % p)['status'] for p in (80, 443, 80, 80)] + [get('http://SAME.example./')['status']]")
        found = worker.ask(*["h%03d.example:80" % n for n in range(150)])
        t.attack(set(again) | {v["status"] for v in found.values()} == {403}, "all are refused", again)
    told = refusals(home)
    same = [e for e in told if e["host"] == "same.example"]
    t.attack(len(same) == 1, "one of the same host", same)
    last = [e for e in told if e.get("suppressed")]
    t.attack(len(told) in (100, 101) and len(last) == 1 and told[-1] == last[0], "a hundred, then one last", len(told), last)
    with Worker(home) as worker:
        worker.ask("same.example:80")
    after = refusals(home)
    t.works(len(after) == len(told) + 1 and after[-1]["host"] == "same.example", "the next session begins anew", len(after))
    t.control(len({json.dumps(e.get("session_id", e.get("session"))) for e in after}) == 2, "each names its session", after[-1])
    t.works("same.example" in worker.err, "told at the end of the run", worker.err)


@promise("POL-06", "kraft view events: numbers rise, --after and --type choose")
def _(t):
    home = policy(["open.example"])
    inside(home, "out = [ask('one.example:80')['status'], ask('two.example:80')['status']]")
    told = refusals(home)
    t.works([e["host"] for e in told] == ["one.example", "two.example"] and told[0]["seq"] < told[1]["seq"], "in order", told)
    later = home.kraft("view", "events", "--json", "--after", str(told[0]["seq"]), "--type", "sandbox_egress_refused")
    t.works("two.example" in later.out and "one.example" not in later.out, "--after", later)
    plain = home.kraft("view", "events")
    t.works(plain.code == 0 and "one.example" in plain.out and "sandbox_egress_refused" in plain.out, "for people", plain)


@promise("OS-ENV-03 OS-LCH-06", "the proxy variables of the worker")
def _(t):
    out, _ = inside(policy(["open.example"]), "out = {k: v for k, v in os.environ.items() if 'PROXY' in k.upper()}", env={"HTTPS_PROXY": None, "no_proxy": "host-only.example"})
    names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
    t.works({out.get(f(n)) for n in names for f in (str.upper, str.lower)} == {"http://127.0.0.1:3128"}, "three names, both cases", out)
    t.works({out.get("NO_PROXY"), out.get("no_proxy")} == {"localhost,127.0.0.1,::1"}, "only the sandbox's own loopback", out)
    t.works(out.get("NODE_USE_ENV_PROXY") == "1", "node", out)


if __name__ == "__main__":
    main()
