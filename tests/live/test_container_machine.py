#!/usr/bin/env python3
"""`kind: docker` where the containers live in a virtual machine (CTR-14): all of a session goes over the standard streams of the
runtime's attached client. The machine is a wrapper before the real CLI (runtimelive.py): `info` tells of one, and the session's
channel directory has no sockets inside. What a real Docker Desktop or podman machine does beside that is not tried here."""
# kraft-test: timeout 900
from egresslive import *

import hashlib

import containerlive
from containerlive import GATE, ROOTLESS, Box, end, node, task
from screenlive import Screen

IN_DOCKER, IN_PODMAN = "docker" + runtimelive.MACHINE, ROOTLESS + runtimelive.MACHINE
BOTH = (IN_DOCKER, IN_PODMAN)


def each(register, ids, name, on=(IN_DOCKER,)):
    return containerlive.each(register, ids, name, on)


def spotless(home):
    try:
        clients = os.listdir(home.run_dir + "/sandbox-client")
    except OSError:
        clients = []
    return home.empty() and not clients and not os.listdir(home.run_dir + "/sn")


def pumps(home):
    """(parent, confined, client) of the home's session: the pump, its child between the container and the session, the CLI."""
    mine = [p for p in os.listdir("/proc") if p.isdigit() and command_line(p)[1:2] == ["pump"] and home.run_dir in " ".join(command_line(p))]
    parent = [p for p in mine if status_of_process(p)["PPid"] not in mine]
    confined = [p for p in mine if status_of_process(p)["PPid"] in parent]
    client = [p for p in os.listdir("/proc") if p.isdigit() and status_of_process(p).get("PPid") in parent and p not in mine]
    return (int(parent[0]), int(confined[0]), int(client[0])) if parent and confined and client else None


def command_line(pid):
    try:
        return read("/proc/%s/cmdline" % pid).split("\0")
    except OSError:
        return []


def status_of_process(pid):
    try:
        return dict(line.split(":\t", 1) for line in read("/proc/%s/status" % pid).splitlines() if ":\t" in line)
    except OSError:
        return {}


@each(promise, "CTR-14 OS-LCH-09", "exit codes, signals, and streams with every byte in its place, both ways", on=BOTH)
def _(t, runtime):
    home = Box(runtime)
    for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        result = home.sh(script)
        t.works(result.code == code, script, result)
    t.works(home.run("no-such-command").code == 127, "a command that is not there")
    t.works(home.run("/etc/passwd").code == 126, "one that is none")
    data = os.urandom(full(8, 100) << 20)
    result = home.run("tee", "/dev/stderr", stdin=data)
    t.works(result.code == 0 and result.raw_out == data, "stdin and stdout", result.code, len(result.raw_out))
    t.works(hashlib.sha256(data).digest() == hashlib.sha256(result.raw_err[:len(data)]).digest(), "stderr beside it", len(result.raw_err))
    result = home.sh("exec <&-; sleep 0.3; echo on", stdin=data)
    t.works(result.code == 0 and result.out == "on\n", "a stdin that is not read", result.code)
    result = home.sh("yes | head -1")
    t.works(result.out == "y\n", "a pipe that breaks inside")
    t.works(spotless(home), "nothing stays", home.containers())
    t.control(Box(runtimelive.find(runtime.name.replace(runtimelive.MACHINE, "")).in_machine(says=False)).run("true").code == 125,
              "such a container cannot be reached in the ordinary way")


@each(promise, "CTR-14", "a reader of one stream that stands still stops no other, and holds up the command only as a full pipe does")
def _(t, runtime):
    home = Box(runtime)
    r, w = os.pipe()
    process = home.start("sh", "-c", "(head -c 1000000 /dev/zero; echo end >&2) & wait; echo done >&2", stdout=w)
    os.close(w)
    time.sleep(3)
    t.works(process.poll() is None, "it waits for its reader")
    got = 0
    while True:
        data = os.read(r, 65536)
        if not data:
            break
        got += len(data)
    err = process.communicate(timeout=60)[1]
    t.works(got == 1000000 and process.returncode == 0 and b"done" in err, "all of it comes", got, process.returncode, err)
    process = home.start("sh", "-c", "head -c 100000 /dev/zero & echo told >&2; exec sleep 300", stdout=subprocess.PIPE)
    t.works(process.stderr.readline() == b"told\n", "stderr goes on while nobody reads stdout")
    end(process)
    t.works(home.empty(), "nothing stays", home.containers())


@each(promise, "CTR-14 OS-LCH-07", "a terminal inside is as outside: its size and its changes, its keys, Ctrl-C, a shell", on=BOTH)
def _(t, runtime):
    home = Box(runtime)
    t.works(home.run("true").code == 0, "a session")
    look = "stty size; test -t 0 && test -t 1 && test -t 2 && tty; read x; echo \"<$x>\""
    with Screen(home, [KRAFT, "run", "--", "sh", "-c", look]) as s:
        s.until("/dev/pts/").type("hi\n").until("<hi>").end()
        t.works(s.code == 0 and b"33 101" in s.seen and s.seen.count(b"hi\r\n") == 1 and s.modes() == s.modes_before, "size and keys", repr(s.seen))
    with Screen(home, [KRAFT, "run", "--", "bash", "-c", "trap 'stty size' WINCH; echo re''ady; while :; do sleep 0.1; done"]) as s:
        s.until("ready").resize(40, 120).until("40 120").type("\x03").end()
        t.works(s.code == 130 and s.modes() == s.modes_before, "a change of size, and Ctrl-C", s.code)
    with Screen(home, [KRAFT, "shell"]) as s:
        s.line("echo in''side; exit 3")
        s.until("inside").end()
        t.works(s.code == 3, "a shell", s.code)
    with Screen(home, [KRAFT, "run", "--", "sh", "-c", "trap 'echo hung up >%s/hung; exit 1' HUP; echo re''ady; while :; do sleep 0.1; done" % home.worktree]) as s:
        s.until("ready")
        os.close(s.master)
        t.works(wait_for(lambda: os.path.exists(home.worktree + "/hung"), 20), "a terminal that is gone hangs up the one inside")
        s.master = os.open("/dev/null", os.O_RDWR)
    t.works(home.empty(), "nothing stays", home.containers())


@each(promise, "CTR-14 OS-LCH-07", "TERM and INT reach the command once; a second INT ends a container whose command heeds none")
def _(t, runtime):
    home = Box(runtime)
    process, _ = home.sleeping(script="trap 'echo got' TERM; echo up; n=0; while [ $n -lt 20 ]; do sleep 0.1; n=$((n+1)); done; exit 9")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    t.works(process.returncode == 9 and out == b"got\n", "TERM", process.returncode, repr(out), repr(err))
    process, here = home.sleeping(script="trap '' INT TERM; echo up; while :; do sleep 0.1; done")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    t.works(process.poll() is None and marked(here), "one INT is the command's to ignore")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    t.works(process.returncode == 137 and gone(here), "the second one ends it", process.returncode)
    t.works(spotless(home), "nothing stays", home.containers())


@each(wall, "CTR-14 CTR-05", "whoever of a session is killed, its container goes", on=BOTH)
def _(t, runtime):
    home = Box(runtime)
    t.works(home.run("true").code == 0, "a session")
    for who in ("client", "confined", "parent", "launcher", "kraft"):
        process, here = home.sleeping()
        parent, confined, client = wait_for(lambda: pumps(home), 20, 0.1)
        t.control(len(home.containers()) == 1, who + ": it runs", home.containers())
        victim = {"client": client, "confined": confined, "parent": parent, "launcher": int(status_of_process(parent)["PPid"]), "kraft": process.pid}[who]
        os.kill(victim, signal.SIGKILL)
        t.attack(gone(here, 30) and home.empty(30), who + ": nothing of it runs", home.containers())
        out = process.communicate(timeout=60)
        t.works(who == "kraft" or process.returncode == 137, who + ": told as killed", process.returncode, out)
    t.works(home.run("true").code == 0 and home.empty(), "and the next one is as ever", home.containers())


@each(wall, "CTR-14", "the process that takes the container's bytes has no power: no privileges, no files, a filter, and limits")
def _(t, runtime):
    home = Box(runtime)
    process, _ = home.sleeping()
    parent, confined, client = wait_for(lambda: pumps(home), 20, 0.1)
    status, other = status_of_process(confined), status_of_process(client)
    t.attack(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", "a filter, and no new privileges", status)
    t.control(other["Seccomp"] == "0", "the client, which is started beside it, has none", other)
    limits = subprocess.run(["prlimit", "--pid", str(parent), "--nofile", "--raw", "--noheadings"], stdout=subprocess.PIPE).stdout
    t.works(limits, "the parent is an ordinary process of ours", limits)
    try:
        seen = os.listdir("/proc/%d/fd" % confined)
    except PermissionError:
        seen = None
    t.attack(seen is None, "it is closed to debuggers", seen)
    t.control(os.listdir("/proc/%d/fd" % parent), "its parent is not")
    end(process)
    t.works(home.empty(), "nothing stays", home.containers())


@each(promise, "CTR-14 CTR-01 GIT-01", "commits and results land, a worker's calls reach kraft, and an item comes to its gate")
def _(t, runtime):
    home = Box(runtime)
    home.policy(auto_escalate_stuck=False)
    home.chain("c", node("work", task("it", "sh -c 'echo a >mine; git add mine; git commit -qm mine; kraft item progress 3; echo $? >told; git add told; git commit -qm told'")), GATE)
    item = home.create("An item", "--chain", "c")
    started = home.kraft("item", "start", item)
    t.works(home.status(item) == ("needs you", "review", "gate"), "it comes to its gate", started, home.show(item))
    t.works(git(home.repo, "log", "-2", "--format=%s", "kraft/" + item) == "told\nmine\n", "its commits land")
    t.works("plan_progress" in [e["type"] for e in home.events_of(item)], "its call came", home.events_of(item))
    t.works(spotless(home), "nothing stays", home.containers())


def boxed(runtime):
    home = Home(runtime=runtime, image=runtimelive.image("debian"), sandbox={"network": {"runtime": {"allow": ["site.example"]}}})
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli}), 0o600)
    return home


@each(wall, "CTR-14 NET-01", "the way out: what is allowed, what is refused, no packet beside it, and many at once", on=BOTH)
def _(t, runtime):
    lab.serve("site.example")
    home = boxed(runtime)
    with Worker(home) as w:
        t.works(w.do("out = get('http://site.example/')['status']") == 200, "a host that is allowed")
        t.attack(w.do("out = get('http://other.example/')['status']") == 403, "one that is not")
        with lab.capture() as wire:
            direct = w.do("try:\n    socket.create_connection(('93.184.216.34', 80), 2); out = 'ok'\nexcept OSError as e: out = e.errno")
        t.attack(direct != "ok" and wire.packets == [], "no packet goes another way", direct, wire.packets[:3])
        t.control(b"200 OK" in host_fetch(lab.serve("site.example"), 80, b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\n"), "on the host there is a way")
        many = w.do("""
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(100) as pool:
    out = sorted(set(a['status'] for a in pool.map(lambda i: get('http://site.example/'), range(300))))
""")
        t.works(many == [200], "three hundred, a hundred at once", many)
    t.works(wait_for(lambda: not home.runtime.containers(home.kraft_home), 30), "nothing stays")


@each(promise, "CTR-14 NET-15", "tunnels: half-closed either way, with a slow reader beside them, and more than a window of bytes")
def _(t, runtime):
    def echo(conn):
        for data in iter(conn.recv, b""):
            conn.send(data)
        conn.send(b"end")

    lab.serve("site.example")
    lab.serve("site.example", echo, 443)
    home = boxed(runtime)
    with Worker(home) as w:
        got = w.do("out = tunnel('site.example:443', b'x' * 3)")
        t.works(got["body"] == "xxxend" and got["end"] == "eof", "it ends its side and reads on", got)
        got = w.do("""
slow = connect('site.example:443')[1]
slow.settimeout(None)
def fill():
    with contextlib.suppress(OSError):
        for i in range(1024): slow.sendall(b'y' * 65536)
filler = threading.Thread(target=fill, daemon=True); filler.start()
time.sleep(1)
import hashlib
data = os.urandom(4 << 20)
status, s, rest, _ = connect('site.example:443')
def send():
    s.sendall(data); s.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send); sender.start()
body, how = read_to_end(s, 60)
sender.join()
out = [rest + body == data + b'end', how, filler.is_alive()]
""")
        t.works(got == [True, "eof", True], "four megabytes both ways, past one that reads nothing", got)
        t.works(w.do("slow.close(); out = get('http://site.example/')['status']") in (200, 502), "and it goes on")


@each(promise, "CTR-14", "a directory that the machine does not share is told, before anything runs")
def _(t, runtime):
    home = Box(runtime)
    t.control(home.run("true").code == 0, "it works as it is")
    path = runtime.cli
    text = read(path)
    for what, edit in (("kraft's own directory", "/opt/kraft"), ("the worktree", home.worktree)):
        empty = tempfile.mkdtemp(prefix="kraft-machine-empty-")
        write(path, text.replace("for word; do\n\t\tshift\n", "for word; do\n\t\tshift\n\t\tcase $word in *,dst=%s,*|*,dst=%s) word=--mount=type=bind,src=%s,dst=%s;; esac\n" % (edit, edit, empty, edit)), 0o755)
        result = home.run("touch", "ran")
        t.attack(result.code == 125 and "shares" in result.err and not os.path.exists(empty + "/ran"), what + ": and says what to share", result)
        shutil.rmtree(empty, True)
    write(path, text, 0o755)
    t.works(home.run("true").code == 0 and home.empty(), "and works again")


if __name__ == "__main__":
    main()
