#!/usr/bin/env python3
"""kind: os on macOS, but for the walls themselves: launch, terminal, signals, TMPDIR, the way out's token, the session's end."""
from maclive import *

# Who gets away: from the group, from the session, from every parent, from the variables, from the name.
RUNAWAYS = r"""
import os, sys, time
mark = sys.argv[1]
def nap(*more):
    os.execve("/usr/bin/python3", ["python3", "-IS", "-c", "import time; time.sleep(%s)" % sys.argv[2], mark, *more], dict(os.environ))
def child(what):
    if os.fork() == 0:
        what()
        os._exit(0)
def grouped():
    os.setpgid(0, 0)
    nap("grouped")
def session():
    os.setsid()
    nap("session")
def double():
    os.setsid()
    if os.fork() == 0:
        nap("double")
def bare():
    os.setsid()
    if os.fork() == 0:
        os.execve("/usr/bin/python3", ["python3", "-IS", "-c", "import time; time.sleep(%s)" % sys.argv[2], mark, "bare"], {})
def deaf():
    import signal
    os.setsid()
    if os.fork() == 0:
        for n in (1, 2, 3, 13, 15, 20):
            signal.signal(n, signal.SIG_IGN)
        nap("deaf")
for what in (grouped, session, double, bare, deaf):
    child(what)
time.sleep(0.5)
print("made", flush=True)
if len(sys.argv) > 3:
    time.sleep(float(sys.argv[3]))
"""
COUNT = 5
NAPS = "25"


def kinds(mark_text):
    return sorted(command_of(p)[-1].decode() for p in marked(mark_text))


def end_all(mark_text):
    for pid in marked(mark_text):
        os.kill(pid, signal.SIGKILL)


@promise("MAC-01", "the same entry of repos.yaml runs through sandbox-exec: exit codes, streams, the started mark, the exit file")
def _(t):
    home = Mac()
    done = home.run("sh", "-c", "cat; echo out; echo err >&2; exit 7", stdin=b"given\n")
    t.works((done.code, done.out) == (7, "given\nout\n") and "err" in done.err, "streams and code", done)
    t.works(len(home.calls("words")) == 1, "through sandbox-exec, once", home.calls("words"))
    folder = home.session_folders()[-1]
    t.works(read(folder + "/exit") == "7 0 started\n" and os.path.exists(folder + "/started"), "files", os.listdir(folder))
    for script, code in (("exit 0", 0), ("kill -KILL $$", 137), ("kill -TERM $$", 143)):
        t.works(home.sh(script).code == code, script)
    plain = Home()
    t.control(plain.sh("exit 7").code == 7 and not os.path.exists(plain.root + "/calls"), "on Linux nothing calls it")


@promise("MAC-01", "what cannot be executed is told as everywhere, with 126 and 127, and the session has not started")
def _(t):
    home = Mac()
    home.commit("plain", "#!/bin/sh\n", 0o644)
    home.commit("nointerp", "#!/no/such/interpreter\n")
    for name, code, says in (("./plain", 126, "is not executable"), ("./nointerp", 127, "was not found inside")):
        done = home.run(name)
        t.works(done.code == code and says in done.err, name, done)
        t.works(read(home.session_folders()[-1] + "/exit") == "%d 0 not-started\n" % code, "exit file")
    done = home.sh("exit 127")
    t.works(done.code == 127 and "was not found inside" in done.err, "a shell's own 127", done)
    t.works(read(home.session_folders()[-1] + "/exit") == "127 0 started\n", "which had started")


@promise("MAC-01", "a sandbox-exec that is missing, refuses or dies is an error that names it, and runs nothing")
def _(t):
    home = Mac(more="echo 'sandbox-exec: no' >&2; exit 65")
    done = home.sh("echo ran")
    t.works(done.code == 125 and "ran" not in done.out and "sandbox-exec: no" in done.err and
            "ended before the command started" in done.err, "refuses", done)
    t.works(read(home.session_folders()[-1] + "/exit") == "125 0 not-started\n", "exit file")
    home.stand(more="kill -KILL $$")
    done = home.sh("echo ran")
    t.works(done.code == 125 and "ended before the command started" in done.err, "dies", done)
    os.unlink(home.stand_in)
    done = home.sh("echo ran")
    t.works(done.code == 125 and home.stand_in in done.err, "missing", done)
    t.works(not home.tmpdirs(), "nothing stays", home.tmpdirs())
    home.stand()
    t.control(home.sh("echo ran").out == "ran\n", "the same with one that works")


@promise("MAC-11", "each launch asks whether this Mac and this kraft can have walls, and says the next step; doctor says the same")
def _(t):
    home = Mac()
    for word, says, step in (("translated", "Rosetta", "Apple silicon"), ("sandboxed", "inside a sandbox itself", "a terminal that is in none"),
                             ("bare", "Command Line Tools", "xcode-select --install"), ("ppc", "a Mac of 'ppc'", "")):
        done = home.sh("echo ran", env={"KRAFT_PRETEND_MACOS_IS": word})
        t.attack(done.code == 125 and done.out == "" and says in done.err and step in done.err, word, done)
        doctor = home.kraft("admin", "doctor", env={"KRAFT_PRETEND_MACOS_IS": word}).out
        told = [line for line in doctor.splitlines() if "FAIL" in line and ("machine" in line or "developer tools" in line)]
        t.works(len(told) == 1, "doctor: " + word, doctor)
    t.attack(not home.calls("words")[4:], "nothing but doctor's own trial was started", home.calls("words"))
    t.control(home.sh("echo ran").out == "ran\n", "the same on one that is as it should be")


@promise("MAC-01 MAC-02 PROC-17", "the profile is a file that no worker sees; sandbox-exec gets no variable, no other descriptor and no secret word")
def _(t):
    home = Mac(env={"MallocLogFile": "/tmp/planted"})
    done = home.sh("echo $MallocLogFile; ls /proc/self/fd | tr '\\n' ' '")
    t.works(done.lines[0] == "/tmp/planted" and done.lines[1].strip() == "0 1 2 3", "the command has the variable, and its own descriptors", done)
    t.works(home.calls("environment") == [""], "sandbox-exec has none", home.calls("environment"))
    t.works(len([n for n in home.calls("descriptors")[0].split() if int(n) < 10]) == 3 + 2, "streams and two pipes; the shell's own are above", home.calls("descriptors"))
    words = home.calls("words")[0].splitlines()
    profile = home.session_folders()[-1] + "/profile.sb"
    t.works(words[:2] == ["-f", profile] and words[3] == "start", "by its path", words)
    t.works(stat.S_IMODE(os.stat(profile).st_mode) == 0o600, "its mode")
    text = read(profile)
    t.works(text == home.calls("profile")[0] and text.startswith("(version 1)") and "(deny default" in text, "what the plan came to", text[:300])
    t.works('"%s/t/' % home.run_dir in text and "/sessions/" not in text, "TMPDIR is in it and no session's folder", text)


@wall("MAC-06 MAC-03", "nothing of a session but its variables and its profile's port knows the way out; its token is in no file, log or argument list")
def _(t):
    home = Mac()
    busy = home.start("sh", "-c", "echo ready; exec sleep 20")  # no child, which would have no variables until it is sleep
    t.works(busy.stdout.readline() == b"ready\n", "it runs")
    with open("/proc/%d/environ" % children(busy.pid)[-1], "rb") as f:
        url = dict(v.split("=", 1) for v in f.read().decode().split("\0") if v)["HTTP_PROXY"]
    found = re.fullmatch(r"http://kraft:([0-9a-f]{64})@127\.0\.0\.1:(\d+)", url)
    t.works(bool(found), "the URL", url)
    token, port = found.group(1), found.group(2)
    lists = [(p, b" ".join(command_of(p))) for p in children(busy.pid) + [busy.pid]]
    t.attack(not [p for p, words in lists if token.encode() in words], "in no argument list", lists)
    held = subprocess.run(["grep", "-rl", token, home.run_dir, home.kraft_home], stdout=subprocess.PIPE, check=False).stdout
    t.attack(not held, "in no file", held)
    t.works('(remote ip "localhost:%s")' % port in home.calls("profile")[0], "the profile lets it out there")
    t.attack(token not in home.kraft("explain", "--", "true").out, "explain does not tell")
    write(home.root + "/control", token)
    held = subprocess.run(["grep", "-rl", token, home.root], stdout=subprocess.PIPE, check=False).stdout
    t.control(held.decode().split() == [home.root + "/control"], "the same look finds it", held)
    busy.terminate()
    busy.communicate(timeout=20)
    events = home.kraft("view", "events", "--json").out + home.kraft("view", "logs").out
    t.attack(token not in events, "nor in events and log", events)


ASK = r"""
import base64, os, socket, sys
url = os.environ["HTTP_PROXY"]
secret, _, port = url[len("http://"):].rpartition("@")[0], None, int(url.rpartition(":")[2])
for name, header in (("none", ""), ("wrong", "kraft:" + "0" * 64), ("right", secret)):
    s = socket.create_connection(("127.0.0.1", port), 10)
    line = "Proxy-Authorization: Basic %s\r\n" % base64.b64encode(header.encode()).decode() if header else ""
    s.sendall(("CONNECT unlisted.example:443 HTTP/1.1\r\nHost: unlisted.example:443\r\n%s\r\n" % line).encode())
    print(name, s.recv(200).decode("latin1").split()[1])
"""


@wall("MAC-06 MAC-03", "the proxy on loopback answers 407 without the token, and kraft's own commands inside know it")
def _(t):
    home = Mac()
    done = home.py(ASK)
    t.attack(done.said("none") == "407" and done.said("wrong") == "407", "without", done)
    t.control(done.said("right") == "403", "with it, what the policy says of the host", done)
    done = home.run("kraft", "view", "show")
    t.works(done.code == 0 and json.loads(done.out), "a call of the worker's", done)
    bad = home.sh("HTTP_PROXY=http://kraft:%s@127.0.0.1:${HTTP_PROXY##*:} kraft view show" % ("0" * 64))
    t.attack(bad.code == 1, "which is none without the token", bad)


@promise("MAC-07", "TMPDIR is the session's own, private, short enough for sockets, what CLAUDE_CODE_TMPDIR names, and gone with the session")
def _(t):
    home = Mac()
    done = home.sh('echo "$TMPDIR" "$CLAUDE_CODE_TMPDIR"; stat -c %a "$TMPDIR"; mkdir -p "$TMPDIR/a/b"; echo x >"$TMPDIR/a/b/c"; chmod 0 "$TMPDIR/a"')
    tmpdir, claude = done.lines[0].split()
    t.works(tmpdir == claude and tmpdir.startswith(home.run_dir + "/t/") and done.lines[1] == "700", "where it is", done)
    t.works(not os.path.exists(tmpdir) and not home.tmpdirs(), "gone", home.tmpdirs())
    t.works(len(tmpdir) - len(home.run_dir) < 20, "short", tmpdir)
    t.works(home.sh('echo "$TMPDIR"').out.strip() != tmpdir, "each has its own")
    socket = home.py("import os, socket; s = socket.socket(socket.AF_UNIX); s.bind(os.environ['TMPDIR'] + '/some-tool.sock'); print('bound')")
    t.works(socket.out == "bound\n", "a socket in it", socket)


@promise("MAC-01", "a terminal: its size, a change of it, a controlling terminal in the foreground, Ctrl-C once")
def _(t):
    home = Mac()
    with Screen(home, [kraftlive.KRAFT, "run", "--", "sh", "-c",
                       "stty size; trap 'echo got-int' INT; tty; echo ready; sleep 5; sleep 0.3; stty size; kill -0 $$ && echo end"]) as s:
        s.until("ready")
        t.works(b"33 101" in s.seen and b"/dev/pts/" in s.seen, "size and terminal", s.seen)
        s.resize(40, 90)
        s.type("\x03")
        s.until("end")
        s.end()
        t.works(s.seen.count(b"got-int") == 1 and b"40 90" in s.seen and s.code == 0, "once, and the new size", s.seen)


@promise("MAC-01", "Ctrl-Z stops the command and the person's job, and fg goes on with both")
def _(t):
    home = Mac()
    with Screen(home) as s:
        s.until("$> ").line('"$KRAFT" run -- sh -c "echo be""gin; read x; echo got-\\$x"')
        s.until("begin").type("\x1a")
        s.until("Stopped").line("fg")
        s.type("word\n")
        s.until("got-word").until("$> ", count=2)
        t.works(True, "went on")


@promise("MAC-01", "a signal for kraft reaches the command once")
def _(t):
    home = Mac()
    process = home.start("sh", "-c", "trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    t.works(process.stdout.readline() == b"ready\n", "runs")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    t.works(out == b"term\n" and process.returncode == 5, "once", out, err)


def runaways(t, home, how):
    """Starts them and ends the session in that way; all of them are gone then."""
    name = mark()
    process = home.start("python3", "-IS", "-c", RUNAWAYS, name, NAPS, *([] if how == "exit" else ["20"]))
    t.works(process.stdout.readline() == b"made\n", "made")
    if how != "exit":
        t.works(len(kinds(name)) >= COUNT, "they run", kinds(name))
    if how == "lifeline":
        process.kill()
    elif how == "launcher":
        os.kill(home.launcher_of(process), signal.SIGKILL)
    elif how == "order":
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)
    left = kinds(name) if how != "lifeline" else (gone(name, 10) or kinds(name))
    t.attack(left in ([], True), "%s: nobody is left" % how, repr(left), Result(process.returncode, out, err))
    if how != "lifeline":
        t.works(not home.tmpdirs(), "nor its TMPDIR", home.tmpdirs())
    return Result(process.returncode, out, err)


def on_the_host(home, *argv):
    """To its end, and not to that of those who hold its streams."""
    subprocess.run(argv, env=home.env(), cwd=home.repo, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def live_on(t, home):
    name = mark()
    on_the_host(home, "python3", "-IS", "-c", RUNAWAYS, name, NAPS)
    there = kinds(name)
    end_all(name)
    t.control(len(there) == COUNT, "without kraft they live on", there)


@wall("MAC-10 MAC-06", "what left its group, its session and its parents ends with the command, and a person is told")
def _(t):
    home = Mac()
    done = runaways(t, home, "exit")
    t.works(done.code == 0 and "python3" in home.kraft("view", "logs").out + done.err, "told", done, home.kraft("view", "logs"))
    live_on(t, home)


@wall("MAC-10", "the same at the end of the lifeline, at the order to stop, and where the launcher is killed")
def _(t):
    home = Mac()
    for how in ("order", "lifeline"):
        runaways(t, home, how)
    killed = Mac()
    name = mark()
    process = killed.start("python3", "-IS", "-c", RUNAWAYS, name, NAPS, "20")
    t.works(process.stdout.readline() == b"made\n", "made")
    os.kill(killed.launcher_of(process), signal.SIGKILL)
    out, err = process.communicate(timeout=40)
    # The one without variables is known by its namespace alone, which the launcher took with it: Linux's stand-in has no more.
    t.attack(set(kinds(name)) <= {"bare"}, "launcher: nobody is left", kinds(name), Result(process.returncode, out, err))
    end_all(name)
    live_on(t, home)


@wall("MAC-10 MAC-07", "where kraft and the launcher were killed the next kraft ends what was left and removes its TMPDIR")
def _(t):
    home = Mac()
    name = mark()
    process = home.start("python3", "-IS", "-c", RUNAWAYS, name, NAPS, "20")
    t.works(process.stdout.readline() == b"made\n", "made")
    launcher = home.launcher_of(process)
    os.kill(launcher, signal.SIGSTOP)  # or it would see the end of the lifeline
    process.kill()
    process.wait()
    os.kill(launcher, signal.SIGKILL)
    t.control(wait_for(lambda: len(kinds(name)) >= COUNT, 2) and home.tmpdirs(), "they are left", kinds(name), home.tmpdirs())
    t.works(home.sh("true").code == 0, "the next one")
    t.attack(wait_for(lambda: set(kinds(name)) <= {"bare"}, 5), "ended", kinds(name))
    t.attack(not home.tmpdirs(), "and its TMPDIR", home.tmpdirs())
    end_all(name)


RUNNER = r"""
import os, sys, time
until = time.time() + 6
beats = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
if os.fork():
    time.sleep(1)
    os._exit(0)
os.setsid()
while time.time() < until:
    os.write(beats, b".")
    if os.fork():
        os._exit(0)
"""


def runs(beats, seconds):
    """By what it writes: a look at the processes mostly misses it."""
    before = os.path.getsize(beats)
    return bool(wait_for(lambda: os.path.getsize(beats) > before, seconds))


@wall("MAC-10", "one that forks and ends, over and over, is ended; other processes of the same user are not touched")
def _(t):
    home = Mac()
    other, beats = mark(), home.root + "/beats"
    bystander = subprocess.Popen(["/usr/bin/python3", "-IS", "-c", "import time; time.sleep(60)", other])
    done = home.run("python3", "-IS", "-c", RUNNER, beats)
    t.works(done.code == 0 and os.path.exists(beats) and os.path.getsize(beats) > 20, "it ran", done)
    t.attack(not runs(beats, 1), "ended", done)
    t.works(marked(other) == [bystander.pid], "a bystander lives")
    bystander.kill()
    bystander.wait()
    on_the_host(home, "python3", "-IS", "-c", RUNNER, beats)
    t.control(runs(beats, 4), "without kraft it runs on")
    t.works(wait_for(lambda: not runs(beats, 0.5), 20), "until its time is over")


FAKE_LAUNCHER = r"""#!%s -IS
# A launcher that says that two processes of its session did not end.
import os, socket, struct, sys
words = sys.argv
value = lambda name: words[words.index(name) + 1]
control = socket.socket(fileno=int(value("--control")))
for kind, a in %r:
    control.sendall(struct.pack("=IiiI", kind, a, 0, 0))
fd = os.open("exit", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=int(value("--folder")))
os.write(fd, b"0 0 started\n")
"""


def type_of(name):
    text = read(SOURCE + "/guest/wire.h")
    names = re.findall(r"^\t(KG_[A-Z_]+)(?: = 1)?,", text[text.index("enum kg_type {"):text.index("KG_TYPE_END")], re.M)
    return names.index(name) + 1


@promise("MAC-10", "a process that does not end is told, logged and an event sandbox_session_outlived with its number")
def _(t):
    home = Mac()
    t.control(home.sh("true").code == 0 and not home.events("sandbox_session_outlived"), "none in an ordinary session")
    said = [(type_of("KG_STARTED"), 0), (type_of("KG_OUTLIVED"), 4711), (type_of("KG_OUTLIVED"), 4712), (type_of("KG_EXIT"), 0)]
    write(home.root + "/guest/init", FAKE_LAUNCHER % (PYTHON, said), 0o755)
    write(home.root + "/guest/bin/kraft", "", 0o755)
    done = home.sh("true", env={"KRAFT_GUEST_DIR": home.root + "/guest"})
    t.works(done.code == 0 and "process 4711 of the session could not be ended" in done.err, "told", done)
    t.works("process 4712 of the session could not be ended" in home.kraft("view", "logs").out, "logged", home.kraft("view", "logs"))
    events = home.events("sandbox_session_outlived")
    t.works([e["data"]["pid"] for e in events] == [4711, 4712], "events", events)


main()
