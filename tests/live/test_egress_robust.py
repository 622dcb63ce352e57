#!/usr/bin/env python3
"""kraft-egress under load, under attack and killed; what it may do; the person's own proxy (NET-19, HTTP-12, -14, POL-05 to -09)."""
# kraft-test: timeout 240
from egresslive import *

import random

SOURCE_BYTES = full(64, 512) << 20
lab.serve("quick.example")
lab.serve("source.example", netlab.source(SOURCE_BYTES), 7001)
lab.serve("endless.example", netlab.source(1 << 40), 7002)
lab.serve("sink.example", netlab.sink, 7003)
lab.serve("echo.example", netlab.echo, 7004)
OPEN = ["quick.example", "source.example", "endless.example", "sink.example", "echo.example", "plain.example"]


def field(pid, name):
    """A number of /proc/PID/status: in kB where it is a size."""
    found = re.search(name + r":\s+(\S+)", read("/proc/%d/status" % pid))
    return found.group(1) if found else None


def resident(pid):
    return int(field(pid, "VmRSS") or 0)


def plain_source(conn):
    if conn.until(b"\r\n\r\n") is not None:
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SOURCE_BYTES)
        netlab.source(SOURCE_BYTES)(conn)


lab.serve("plain.example", plain_source)

SLOW = r"""
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
slow, slow_ends = [], []
def trickle():
    s = dial(60); start = time.monotonic(); end = 'open'
    try:
        for byte in (b'GET http://quick.example/ HTTP/1.1\r\nX: ' + b'a' * 200):
            s.sendall(bytes([byte])); s.settimeout(1)
            try:
                data = s.recv(100); end = 'eof' if not data else 'answered'; break
            except socket.timeout: pass
    except OSError: end = 'reset'
    slow_ends.append((end, time.monotonic() - start)); s.close()
slow = [threading.Thread(target=trickle) for _ in range(count)]
[x.start() for x in slow]
"""


SLOW_COUNT = full(150, 1200)  # sampled; at full length more than a session may have at once
slow = []


@wall("HTTP-12", "connections that send a byte a second leave others alone")
def _(t):
    worker = Worker(policy(OPEN))
    with Worker(policy(OPEN)) as other:
        t.control(worker.do("out = get('http://quick.example/')['status']") == 200, "a request in one piece is answered")
        worker.do(SLOW, count=SLOW_COUNT)
        slow.append(worker)
        time.sleep(1)
        meanwhile = []
        for _ in range(4):
            answers = [other.do("out = get('http://quick.example/')")]
            if SLOW_COUNT < 1000:
                answers.append(worker.do("out = get('http://quick.example/')"))
            meanwhile += [(a["status"], a["seconds"]) for a in answers]
            time.sleep(0.3)
        t.works(all(s == 200 and seconds < 2 for s, seconds in meanwhile), "others", meanwhile)
        t.attack(small(resident(worker.egress()), 16 << 10), "in little memory", resident(worker.egress()))


@wall("HTTP-14 G7", "a slow client behind a fast server, and a slow server behind a fast client: bounded memory, whole bytes")
def _(t):
    home = policy(OPEN)
    with Worker(home) as worker:
        t.works(worker.do("out = get('http://quick.example/')['status']") == 200, "before")
        egress, peak = worker.egress(), 0
        base = resident(egress)
        worker.send("""
counts = {}
def slowly(label, first, target=None):
    if target: status, s, rest, _ = connect(target)
    else: s, rest = dial(60), b''; s.sendall(first)
    time.sleep(2); total = len(rest); s.settimeout(60)
    while True:
        data = s.recv(1 << 20)
        if not data: break
        total += len(data)
        if total < (20 << 20): time.sleep(0.02)
    counts[label] = total
jobs = [threading.Thread(target=slowly, args=('tunnel', b'', 'source.example:7001')), threading.Thread(target=slowly, args=('plain', b'GET http://plain.example/ HTTP/1.1\\r\\nHost: plain.example\\r\\n\\r\\n'))]
[x.start() for x in jobs]; [x.join() for x in jobs]
out = counts""")
        done = []
        reader = threading.Thread(target=lambda: done.append(worker.answer()))
        reader.start()

        while reader.is_alive():
            peak = max(peak, resident(egress))
            reader.join(0.05)
        counts = done[0]
        t.attack(small(peak, 16 << 10), "kraft-egress stays small", base, peak)
        t.works(counts["tunnel"] == SOURCE_BYTES and SOURCE_BYTES < counts["plain"] < SOURCE_BYTES + 1000, "every byte came", counts)
        gate = threading.Event()

        def late_sink(conn):
            gate.wait(60)
            netlab.sink(conn)
        lab.serve("late-sink.example", late_sink, 7005)
    with Worker(policy(OPEN + ["late-sink.example"])) as worker:
        status = worker.do("""
status, s, _, _ = connect('late-sink.example:7005'); s.settimeout(0.7); sent = 0
try:
    while sent < (256 << 20): sent += s.send(bytes(1 << 18))
except socket.timeout: pass
out = [status, sent]""")
        egress = worker.egress()
        t.attack(status[0] == 200 and status[1] < 64 << 20 and small(resident(egress), 16 << 10), "a server that does not read stops the client", status, resident(egress))
        gate.set()
        worker.do("s.settimeout(30); s.sendall(bytes(1 << 20)); s.shutdown(socket.SHUT_WR); out = read_to_end(s, 20)[1]")
        got = lab.reached(lab.names.rules["late-sink.example"][0])[0]
        t.works(wait_for(lambda: got.count >= status[1] + (1 << 20), 10), "and gets all of it in the end", got.count, status)
    t.control(peak > base or peak > 0, "its memory was looked at", base, peak)


@wall("OS-LCH-06 G7", "kraft-egress is confined: filter, no new privileges, no capability, few descriptors, no environment")
def _(t):
    with Worker(policy(OPEN)) as worker:
        t.works(worker.do("out = get('http://quick.example/')['status']") == 200, "it works")
        egress = worker.egress()
        t.attack([field(egress, n) for n in ("Seccomp", "NoNewPrivs")] == ["2", "1"], "filter and no new privileges", read("/proc/%d/status" % egress))
        caps = [field(egress, n) for n in ("CapInh", "CapPrm", "CapEff", "CapAmb")]
        t.attack(set(caps) == {"0" * 16}, "no capability", caps)
        t.attack(field(egress, "Threads") == "1", "one thread")
        held = lab.host.call(lambda: descriptors(egress))
        t.attack(3 <= len(held) <= 16, "few descriptors", held)
        peek = [os.access("/proc/%d/%s" % (egress, n), os.R_OK) and bool(_try_read("/proc/%d/%s" % (egress, n))) for n in ("mem", "environ", "maps")]
        t.attack(not any(peek), "not even this user can look into it, and its environment is empty", peek)
        limits = read("/proc/%d/limits" % egress)
        t.attack(re.search(r"Max core file size\s+0\s", limits), "no core file", limits)
        own = os.getpid()
        t.control(field(own, "Seccomp") != "2" or field(worker.process.pid, "Seccomp") != "2", "kraft itself has no such filter", field(worker.process.pid, "Seccomp"))


def _try_read(path):
    try:
        with open(path, "rb") as f:
            return f.read(100)
    except OSError:
        return b""


def descriptors(pid):
    """Which descriptors a process has, by taking each (pidfd_getfd): a thread with capabilities may."""
    pidfd, found = os.pidfd_open(pid), []
    for n in range(256):
        fd = netlab.libc.syscall(438, pidfd, n, 0)
        if fd >= 0:
            found.append((n, os.readlink("/proc/self/fd/%d" % fd)))
            os.close(fd)
    os.close(pidfd)
    return found


TRANSFER = """
status, s, _, _ = connect('endless.example:7002')
got = [0, None]
def pull():
    s.settimeout(30)
    try:
        while True:
            data = s.recv(1 << 16)
            if not data: got[1] = 'eof'; return
            got[0] += len(data)
    except OSError as e: got[1] = str(e)
puller = threading.Thread(target=pull, daemon=True); puller.start(); time.sleep(0.3); out = [status, got[0]]
"""


def last_connection(name):
    return lab.reached(lab.names.rules[name][0])[-1]


@wall("POL-09", "kill -9 of kraft-egress in the middle: the worker sees an error, the next request works, an event tells")
def _(t):
    home = policy(OPEN)
    with Worker(home) as worker:
        t.works(worker.do(TRANSFER)[0] == 200, "a transfer runs")
        first, far = worker.egress(), last_connection("endless.example")
        os.kill(first, signal.SIGKILL)
        ended = worker.do("puller.join(10); out = got")
        t.attack(ended[1] is not None and far and wait_for(lambda: far.ended, 5), "both ends see it", ended, far.ended)
        again = worker.do("out = [ask('quick.example:80', 15)['status'] for _ in range(3)]")
        t.works(again == [200] * 3, "the next requests work", again)
        second = worker.egress()
        t.attack(second and second != first and wait_for(lambda: not os.path.exists("/proc/%d" % first)), "another one, the dead one is reaped", first, second)
        t.attack(field(second, "Seccomp") == "2", "confined as well")
        t.works(is_refusal(worker.ask("closed.example:80")["closed.example:80"]), "with the same lists")
        t.works(worker.do("out = get('http://quick.example/')['status']") == 200, "and plain requests")
    lost = events(home, "sandbox_egress_lost")
    t.attack(len(lost) == 1, "one event", lost)
    inside(home, "out = get('http://quick.example/')['status']")
    t.control(len(events(home, "sandbox_egress_lost")) == 1, "none without a kill")


@wall("POL-09", "kill -9 of kraft-egress again and again: the session goes on or ends with a word, nothing is left")
def _(t):
    home = policy(OPEN)
    worker = Worker(home)
    killed, states = [], []
    for _ in range(5):
        pid = wait_for(lambda: next((p for p in children(worker.process.pid) if name_of(p) == "kraft-egress"), None), 2)
        if not pid or worker.process.poll() is not None:
            break
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)
        wait_for(lambda: not os.path.exists("/proc/%d" % pid), 5)
        with contextlib.suppress(Failed):
            states.append(worker.do("try: out = ask('quick.example:80', 10)['status']\nexcept OSError as e: out = str(e)"))
    t.works(states[:1] == [200], "the first is made good", states)
    t.note("after each of %d kills a request got %s" % (len(killed), states))
    t.attack(all(s == 200 or "timed out" not in str(s) for s in states), "a request that nobody will serve does not hang", states)
    worker.finish()
    t.attack(gone(worker.mark) and not [p for p in killed if os.path.exists("/proc/%d" % p)], "nothing is left", marked(worker.mark))
    told = events(home, "sandbox_egress_lost")
    t.attack(1 <= len(told) <= len(killed), "told", told)
    t.control(inside(home, "out = get('http://quick.example/')['status']")[0] == 200, "the next session has its way out")


@wall("POL-09 LIFE-02", "kill -9 of the init, the launcher or kraft in the middle: nothing is left")
def _(t):
    home = policy(OPEN)

    def victim_of(worker, who):
        if who == "kraft":
            return worker.process.pid
        launcher = launcher_of(worker.process)
        if who == "launcher":
            return launcher
        return next(p for p in children(launcher) if len(command_of(p)) > 1 and command_of(p)[1] == b"init" or command_of(p)[0].endswith(b"init"))
    for who in ("init", "launcher", "kraft"):
        worker = Worker(home)
        t.works(worker.do(TRANSFER)[0] == 200, "a transfer runs", who)
        egress, far = worker.egress(), last_connection("endless.example")
        os.kill(victim_of(worker, who), signal.SIGKILL)
        t.attack(wait_for(lambda: far.ended, 5), "%s: the far end sees it" % who, far.ended)
        t.attack(gone(worker.mark), "%s: no process is left" % who, marked(worker.mark))
        t.attack(wait_for(lambda: not os.path.exists("/proc/%d" % egress), 5), "%s: nor kraft-egress" % who, egress)
        worker.finish()
        if who != "kraft":
            t.attack(worker.code not in (0, None), "%s: kraft says so" % who, worker.code)
    left = [os.path.join(top, f) for top, _, files in os.walk(home.run_dir) for f in files if f == "s.sock"]
    out, _ = inside(home, "out = get('http://quick.example/')['status']")
    t.works(out == 200, "the next session works", out)
    t.control(len(left) <= 1, "sockets on the disk", left)


@wall("POL-09", "a session that cannot get its route runs nothing")
def _(t):
    home = policy(OPEN)
    copy = os.path.join(home.root, "programs")
    shutil.copytree(BUILD, copy, symlinks=True, ignore=lambda top, names: [n for n in names if n.endswith((".p", ".o", ".a")) or n in ("tests", "meson-logs", "meson-private", "meson-info", "man")])
    program = os.path.join(copy, "kraft")

    def run():
        done = subprocess.run([program, "run", "--", "sh", "-c", "echo ran"], cwd=home.repo, env=home.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
        return Result(done.returncode, done.stdout, done.stderr)
    t.works(run().out == "ran\n", "a copy of the programs works", run())
    egress = [os.path.join(top, "kraft-egress") for top, _, files in os.walk(copy) if "kraft-egress" in files]
    t.control(len(egress) == 1, "it has a kraft-egress", egress)
    os.rename(egress[0], egress[0] + ".away")
    result = run()
    t.attack(result.code == 125 and "ran" not in result.out and "kraft-egress" in result.err, "without it nothing runs", result)
    for text in ("#!/bin/false\n", "#!/bin/sh\nexit 0\n"):
        write(egress[0], text, 0o755)
        result = run()
        t.attack(result.code != 0 and "ran" not in result.out, "nor with one that ends at once", text, result)


UPSTREAM_NAMES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY")


@wall("POL-07", "the person's own proxy: the address is checked all the same, one request passes a connection")
def _(t):
    lab.on_host("127.0.0.1", 8118, netlab.proxy())
    closed = lab.serve("closed.example")
    lab.name("rebound.example", ["127.0.0.1"])
    direct = lab.serve("direct.example")
    site = lab.serve("site.example")
    home = policy(["site.example", "rebound.example", "direct.example", "echo.example"])
    secret = "hunter2-upstream"
    env = {"http_proxy": "http://me:%s@127.0.0.1:8118" % secret, "HTTPS_PROXY": "http://me:%s@127.0.0.1:8118/" % secret, "no_proxy": ".direct.example,direct.example"}
    both = b"GET http://site.example/one HTTP/1.1\r\nHost: site.example\r\nProxy-Authorization: Basic d29ya2Vy\r\n\r\nGET http://closed.example/two HTTP/1.1\r\nHost: closed.example\r\n\r\n"
    with Worker(home, env=env) as worker:
        refused = worker.ask("closed.example:80", "rebound.example:80")
        t.attack(all(is_refusal(v) for v in refused.values()) and not lab.proxied, "what is refused never reaches it", refused)
        through = worker.do("out = tunnel('echo.example:7004', b'through')")
        t.works(through["body"] == "through" and lab.proxied[-1].line.startswith("CONNECT echo.example:7004 "), "a tunnel through it", through, [r.head for r in lab.proxied])
        basic = "Basic " + netlab.base64.b64encode(("me:" + secret).encode()).decode()
        t.works(lab.proxied[-1].get("proxy-authorization") == basic, "with the person's name and password", lab.proxied[-1].head)
        piped = worker.do("out = exchange(both)", both=both)
        time.sleep(0.3)
        t.works(piped["status"] == 200 and lab.proxied[-1].target == "http://site.example/one" and lab.proxied[-1].all("proxy-authorization") == [basic], "a plain request through it", piped, lab.proxied[-1].head)
        t.attack(not lab.reached(closed) and not [c for c in lab.conns if b"/two" in c.got], "the second one does not ride along")
        chunked = worker.do("out = exchange(b'POST http://site.example/chunked HTTP/1.1\\r\\nHost: site.example\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n')")
        extra = worker.do("out = exchange(b'POST http://site.example/extra HTTP/1.1\\r\\nHost: site.example\\r\\nContent-Length: 5\\r\\n\\r\\nhelloGET http://closed.example/three HTTP/1.1\\r\\n\\r\\n')")
        time.sleep(0.2)
        t.attack(chunked["status"] == 400 and not [r for r in lab.proxied if "chunked" in r.target], "no chunked body", chunked)
        t.attack(extra["status"] == 200 and not [c for c in lab.conns if b"/three" in c.got], "nothing behind the length", extra)
        count = len(lab.proxied)
        t.works(worker.do("out = get('http://direct.example/')['status']") == 200 and len(lab.proxied) == count and lab.reached(direct)[-1].peer == netlab.HOST_V4, "no_proxy goes directly")
        env_inside = worker.do("out = json.dumps(dict(os.environ))")
        t.attack(secret not in env_inside, "the password is not inside")
    told = worker.err + json.dumps(events(home)) + "".join(read(os.path.join(top, f)) for top, _, files in os.walk(os.path.join(home.run_dir, "sessions")) for f in files)
    t.attack(secret not in told and "hunter2" not in told, "nor in what is written down")
    lab.on_host("127.0.0.1", 8119, netlab.proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nEVIL"))
    out, _ = inside(home, "out = [ask('echo.example:7004'), ask('echo.example:7004')]", env={"https_proxy": "127.0.0.1:8119"})
    t.attack([o["status"] for o in out] == [502, 502] and "EVIL" not in out[0]["all"], "any other answer than 200 is 502", out)
    out, _ = inside(home, "out = [get('http://site.example/')['status'], ask('echo.example:7004')['status']]", env={"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"})
    t.attack(out == [502, 502], "nor is there a way around one that is gone", out)
    result = home.run("echo", "ran", env={"https_proxy": "socks5://%s@127.0.0.1:1" % secret})
    t.attack(result.code != 0 and "https_proxy" in result.err and secret not in result.err + result.out, "one that cannot be read is named, without its value", result)
    naive = host_fetch("127.0.0.1", 8118, both)
    t.control(b"200 OK" in naive and [c for c in lab.conns if b"/two" in c.got], "without kraft the second one rides along", naive)


@wall("NET-19 G10", "ten thousand requests, 64 at a time: none fails; memory goes back")
def _(t):
    count = full(1500, 10000)
    with Worker(policy(OPEN)) as worker:
        t.works(worker.do("out = [get('http://quick.example/')['status'], tunnel('echo.example:7004', b'x')['status']]") == [200, 200], "before")
        egress = worker.egress()
        base, held = resident(egress), len(lab.host.call(lambda: descriptors(egress)))
        found = worker.do("""
import itertools
numbers, tally, lock = iter(range(count)), {}, threading.Lock()
def one():
    while True:
        with lock:
            n = next(numbers, None)
        if n is None: return
        try:
            if n % 2: answer = get('http://quick.example/%d' % n)['status']
            else: answer = 200 if tunnel('echo.example:7004', b'%d' % n)['body'] == str(n) else 'wrong'
        except OSError as e: answer = str(e)
        with lock: tally[str(answer)] = tally.get(str(answer), 0) + 1
threads = [threading.Thread(target=one) for _ in range(64)]
[x.start() for x in threads]; [x.join() for x in threads]
out = tally""", count=count)
        t.attack(found == {"200": count}, "each is answered", found)
        wait_for(lambda: len(lab.host.call(lambda: descriptors(egress))) <= held, 5)
        t.attack(worker.egress() == egress and small(resident(egress) - base, 8 << 10), "memory", base, resident(egress))
        t.attack(len(lab.host.call(lambda: descriptors(egress))) <= held + 1, "descriptors", held, lab.host.call(lambda: descriptors(egress)))
        t.control(worker.do("out = ask('closed.example:80')['status']") == 403, "another host is refused")


@wall("OS-LCH-06 NET-03", "the channel socket: what a worker sends there gives it nothing, and the init's listener stays")
def _(t):
    home = policy(OPEN)
    with Worker(home) as worker:
        path = worker.do("""
out = None
for line in open('/proc/self/mountinfo'):
    at = line.split()[4]
    if os.path.exists(at + '/s.sock'): out = at + '/s.sock'
""")
        t.works(path, "it is there", worker.do("out = open('/proc/self/mountinfo').read()"))
        answer = worker.do("""
import array
def talk(data, *fds):
    s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(path)
    try:
        s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])
        answer = s.recv(10)
    except OSError as e: answer = str(e).encode()
    return s, answer.decode('latin-1')
mine = socket.create_server(('127.0.0.1', 0))
kept, out = talk(b'L', mine.fileno())
""", path=path)
        t.works(answer == "A", "a listener of its own speaks for the same session", answer)
        own = worker.do("""
PROXY = mine.getsockname(); a = [ask('quick.example:80')['status'], ask('closed.example:80')['status']]
PROXY = ('127.0.0.1', 3128); out = a""")
        t.works(own == [200, 403], "with the same lists", own)
        refused = worker.do("""
file = os.open('/etc/hosts', os.O_RDONLY); udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); unix = socket.socketpair()
other = socket.create_server(('127.0.0.2', 0)); plain = socket.socket(); wide = socket.create_server(('0.0.0.0', 0))
try: six = socket.create_server(('::1', 0), family=socket.AF_INET6)
except OSError: six = socket.create_server(('::', 0), family=socket.AF_INET6)  # a container without network has no ::1
out = {'none': talk(b'L')[1], 'file': talk(b'L', file)[1], 'udp': talk(b'L', udp.fileno())[1], 'unix': talk(b'L', unix[0].fileno())[1], 'address': talk(b'L', other.fileno())[1], 'wide': talk(b'L', wide.fileno())[1], 'six': talk(b'L', six.fileno())[1],
       'not listening': talk(b'L', plain.fileno())[1], 'two': talk(b'L', mine.fileno(), other.fileno())[1], 'word': talk(b'X', mine.fileno())[1]}""")
        t.attack("A" not in refused.values(), "anything else is no listener", refused)
        flood = worker.do("""
held = []
for n in range(200):
    try: s = socket.socket(socket.AF_UNIX); s.settimeout(0.2); s.connect(path); held.append(s)
    except OSError: pass
out = [len(held), get('http://quick.example/')['status']]; [s.close() for s in held]""")
        t.attack(flood[1] == 200, "a crowd there leaves the way out alone", flood)
        egress = worker.egress()
        t.control(egress and worker.do("out = get('http://quick.example/')['status']") == 200 and len(lab.host.call(lambda: descriptors(egress))) < 40, "and nothing is held for them", lab.host.call(lambda: descriptors(egress)))


@wall("HTTP-12", "connections that send a byte a second are closed after 30 s")
def _(t):
    if not slow:
        slow.append(Worker(policy(OPEN)))
        slow[0].do(SLOW, count=SLOW_COUNT)
    with slow[0] as worker:
        ends = worker.do("[x.join(90) for x in slow]; out = slow_ends")
        late = [e for e in ends if e[0] not in ("eof", "reset") or e[1] > 75 or (e[1] > 36 and SLOW_COUNT < 1000)]
        t.attack(len(ends) == SLOW_COUNT and not late, "closed, without an answer", late[:5])
        t.control(min(e[1] for e in ends) > 25, "not before their time", min(ends, key=lambda e: e[1]))
        t.works(worker.do("out = get('http://quick.example/')['status']") == 200, "and it goes on")


if __name__ == "__main__":
    main()
