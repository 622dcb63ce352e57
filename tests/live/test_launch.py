#!/usr/bin/env python3
# kraft-test: timeout 900
"""Launcher and init (OS-LCH): the chain of processes, signals, exit codes, ends of every kind, and kills at random
moments (PROC, LIFE). Nothing may survive its session and nothing may hang."""
import pty
import random
import select
import termios

from kraftlive import *

HINT = "kraft: a command was not found inside the os sandbox; add its directory to the sandbox's expose list"


def kill_quietly(pid, number):
    try:
        os.kill(pid, number)
        return True
    except (ProcessLookupError, TypeError):
        return False


def started(home, *command, **more):
    """A running session and the mark its command carries."""
    here = mark()
    process = home.start(*[here if w == "MARK" else w for w in command], **more)
    if not wait_for(lambda: [p for p in marked(here) if command_of(p)[0].endswith(b"probe")], 20):
        process.kill()
        raise Failed("the command did not start: %r" % (Result(process.returncode, *process.communicate()),))
    return process, here


def finish(process, seconds=10):
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise Failed("kraft does not end: %r" % (Result(process.returncode, out, err),))
    return Result(process.returncode, out, err)


@promise("OS-LCH-01", "kraft, launcher, bubblewrap, init as pid 1, and the command as its child")
def _(t):
    home = shared()
    inside = home.ok("sh", "-c", "cat /proc/1/comm; cat /proc/self/stat | cut -d' ' -f4; echo $PPID; tr '\\0' ' ' </proc/1/cmdline")
    t.works(inside.lines[2] == "1", "the command's parent is pid 1", inside)
    t.works("init" in inside.lines[3], "pid 1 is the init", inside)
    process, here = started(home, "./probe", "sleep", "20", "MARK")
    try:
        chain = [command_of(p) for p in children(process.pid)]
        names = [os.path.basename(c[0]).decode() + (" " + c[1].decode() if len(c) > 1 and c[1] in (b"launch", b"init") else "") for c in chain if c]
        t.works(len(names) <= 5 and "launch" in names[0] and any("bwrap" in n for n in names) and any("init init" in n for n in names), "the chain on the host", names)
        launcher = launcher_of(process)
        t.works(os.getsid(launcher) == launcher and os.getpgid(launcher) == launcher, "the launcher leads a session of its own", launcher)
    finally:
        process.kill()
        finish(process)
    t.works(gone(here), "ends")


@wall("OS-LCH-02", "an architecture without keyctl number or filter, and a spent key quota: exit 125")
def _(t):
    home = shared()
    spent = home.run("true", before=[PROBE, "keyed", PYTHON, "-IS", "-c", """
import ctypes, os, sys
import platform
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
nr = 248 if platform.machine() == 'x86_64' else 217
names = iter(range(10 ** 9))
def fill():
    while libc.syscall(ctypes.c_long(nr), b'user', b'q%d' % next(names), b'x', ctypes.c_size_t(1), ctypes.c_long(-4)) >= 0:
        pass
fill()
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
done = 0
while not done:  # other sessions of this user may give keys back meanwhile
    fill()
    done, status = os.waitpid(pid, os.WNOHANG)
kctl = 250 if platform.machine() == 'x86_64' else 219
libc.syscall(ctypes.c_long(kctl), ctypes.c_long(7), ctypes.c_long(-4))
sys.exit(os.waitstatus_to_exitcode(status))
"""])
    t.attack(spent.code == 125 and ("key" in spent.err), "the user's key quota is spent", spent)
    again = wait_for(lambda: home.run("true").code == 0, 15, 0.5)
    t.works(again, "with room it starts again")
    t.control(home.host(PROBE, "keyed", "true").code == 0, "the host runs commands all the same")


@wall("OS-LCH-04 OS-LCH-07", "the launcher ignores INT, TERM, HUP; each reaches the command exactly once")
def _(t):
    home = shared()
    for number, place in ((signal.SIGINT, 0), (signal.SIGTERM, 1), (signal.SIGHUP, 2)):
        for group in ("", "setpgid", "setsid"):
            process = home.start("./probe", "count", "1.2", *([group] if group else []), start_new_session=True)
            try:
                line = process.stdout.readline()
                t.works(line.startswith(b"ready"), "the command runs", line)
                launcher = launcher_of(process)
                os.kill(launcher, number)
                time.sleep(0.2)
                t.works(os.path.exists("/proc/%d" % launcher), "the launcher lives")
                os.killpg(process.pid, number)
                result = finish(process)
                counts = result.out.split()[1:] if "count" in result.out else None
                want = ["0", "0", "0"]
                want[place] = "1"
                t.attack(counts == want, "signal %d, %s: once" % (number, group or "in its group"), result, process.returncode)
            finally:
                kill_quietly(process.pid, signal.SIGKILL)
    outside = subprocess.Popen([PROBE, "count", "0.6"], stdout=subprocess.PIPE, start_new_session=True)
    outside.stdout.readline()
    os.killpg(outside.pid, signal.SIGINT)
    t.control(outside.communicate()[0].split()[1:] == [b"1", b"0", b"0"], "on the host it is counted as well")


@promise("OS-LCH-08", "the init reaps what the command leaves and returns the command's exit code")
def _(t):
    home = shared()
    for code in (0, 1, 2, 3, 77, 124, 125, 126, 127, 128, 200, 255):
        result = home.probe("exit", str(code))
        t.works(result.code == code, "exit %d" % code, result)
    for number in (1, 2, 3, 6, 9, 11, 13, 15, 24, 31):
        result = home.probe("die", str(number))
        t.works(result.code == 128 + number, "death by signal %d" % number, result)
    zombies = home.sh("for i in $(seq 200); do (sh -c 'true &' ) ; done; sleep 0.2; cat /proc/[0-9]*/stat | grep -c ') Z'")
    t.works(int(zombies.out) <= 1, "no zombie is left", zombies)


@promise("OS-LCH-09 LIFE-17", "the started mark and the exit file tell a task's failure from a launch that failed")
def _(t):
    home = Home()
    home.ok("true")
    files = home.exit_files()
    t.works(len(files) >= 1 and read(files[-1]).split() == ["0", "0", "started"], "after a success", [read(f) for f in files])
    home.probe("exit", "3")
    t.works(read(home.exit_files()[-1]).split() == ["3", "0", "started"], "a task's failure", read(home.exit_files()[-1]))
    home.probe("die", "9")
    t.works(read(home.exit_files()[-1]).split() == ["137", "9", "started"], "a death by signal", read(home.exit_files()[-1]))
    home.probe("exit", "127")
    t.works(read(home.exit_files()[-1]).split() == ["127", "0", "started"], "an exit of 127 after the start is a task's result")
    home.commit("nointerp", "#!/no/such/interpreter\n")
    home.run("./nointerp")
    last = read(home.exit_files()[-1]).split()
    t.works(last[0] == "127" and last[2] == "not-started", "an exec failure is a failed launch", last)
    folder = home.session_folders()[-1]
    t.works(not os.path.exists(os.path.join(folder, "started")), "without the started mark", os.listdir(folder))


@promise("OS-LCH-11", "a command that started and exits 127 gets the same hint")
def _(t):
    home = shared()
    result = home.sh("no-such-command-at-all")
    t.works(result.code == 127 and HINT in result.err, "127 of a shell", result)
    result = home.probe("exit", "127")
    t.works(result.code == 127 and HINT in result.err, "a plain 127", result)
    t.works(HINT not in home.probe("exit", "126").err, "not for 126")


@promise("OS-LCH-12", "a launch that kraft refuses ends 125, says why, and starts nothing")
def _(t):
    home = Home()
    log = home.root + "/log"
    env = {"KRAFT_BWRAP": home.wrapper(log=log)}
    result = home.run("no-such-command", env=env)
    t.works(result.code == 125 and "no-such-command" in result.err and not os.path.exists(log), "refused", result)
    t.works(result.err.startswith("kraft: ") or "\nkraft: " in result.err, "in the form of an error", result)
    ends = [read(f) for f in home.exit_files()]
    t.works(all("not-started" in e for e in ends), "recorded, if at all, as not started", ends)


@promise("OS-LCH-14", "never as root, said plainly")
def _(t):
    home = shared()
    as_root = home.kraft("run", "--", "id", "-u", before=["unshare", "-r"])
    if home.host("unshare", "-r", "true").code != 0:
        t.skip("this host allows no user namespace in which to be root")
    t.works(as_root.code == 125 and "root" in as_root.err and as_root.out == "", "refused", as_root)


@wall("OS-LCH-05", "no environment variable and no current directory steers launcher or init")
def _(t):
    home = shared()
    strange = {"KRAFT_GUEST_DIR": None, "LD_LIBRARY_PATH": "/nonexistent", "LD_PRELOAD": "/nonexistent.so", "PATH": "/usr/bin:/bin", "TMPDIR": "/nonexistent",
               "MALLOC_OPTIONS": "x", "GLIBC_TUNABLES": "x", "LANG": "xx_XX", "LC_ALL": "\x1b[2J", "TERM": "../../etc", "SHELL": "/nonexistent", "PWD": "/evil",
               "TZ": ":/etc/passwd", "LOCPATH": "/evil", "NLSPATH": "/evil", "_": "/evil"}
    result = home.run("sh", "-c", "pwd; echo $HOME", env=strange)
    t.works(result.code == 0 and result.lines[0] == home.worktree, "runs as ever", result)
    t.attack("/evil" not in result.out, "PWD does not lead it astray", result)
    evil = home.root + "/cwd"
    for name in ("init", "kraft", "kraft-guest", "bwrap", "git", "sh", "true", "launch"):
        write(os.path.join(evil, name), "#!/bin/sh\ntouch %s/ran\n" % home.root, 0o755)
    there = home.kraft("run", "--repo", home.repo, "--", "true", cwd=evil, env={"PATH": "/usr/bin:/bin"})
    t.attack(there.code == 0 and not os.path.exists(home.root + "/ran"), "programs in the current directory are not run", there)
    t.control(home.host("sh", "-c", "cd %s && ./git; test -e %s/ran" % (evil, home.root)).code == 0, "run by hand they leave their mark")


@wall("OS-LCH-05 CFG-06", "no helper on the host comes from a PATH entry inside the checkout or a worktree")
def _(t):
    home = Home()
    worktree = home.worktree
    for name in ("git", "bwrap", "sh", "true", "init", "kraft-guest"):
        write(os.path.join(home.repo, "bin", name), "#!/bin/sh\ntouch %s/ran\n" % home.root, 0o755)
    home.ok("sh", "-c", "mkdir -p bin; for n in git bwrap sh true; do printf '#!/bin/sh\\ntouch %s/ran\\n' >bin/$n; chmod +x bin/$n; done" % home.root)
    os.symlink(home.repo + "/bin", home.root + "/alias")
    for number, entry in enumerate((home.repo + "/bin", worktree + "/bin", home.root + "/alias", "bin", "./bin", home.repo + "/sub/../bin")):
        env = {"PATH": entry + ":/usr/bin:/bin"}
        for options in ([], ["--item", "path-%d" % number], ["--with-changes", "--item", "with-%d" % number]):
            result = home.run("./probe", "exit", "0", env=env, options=options)
            t.attack(not os.path.exists(home.root + "/ran"), "PATH starts with %s, %r" % (entry, options), result)
            t.works(result.code == 0, "it runs", result)
    home.host("sh", "-c", "PATH=%s/bin:$PATH; git" % home.repo)
    t.control(os.path.exists(home.root + "/ran"), "a shell runs it")


@wall("PROC-01 OS-SEC-07", "kill(0), kill(-1) and killpg reach only the sandbox")
def _(t):
    home = shared()
    bystander_mark = mark()
    for target in ("0", "-1"):
        for number in ("9", "15", "2"):
            bystander = None
            process = home.start("sh", "-c", "sleep 0.3; exec ./probe signal %s %s" % (target, number), start_new_session=True,
                                 before=["sh", "-c", "%s sleep 30 %s >/dev/null 2>&1 & exec \"$@\"" % (PROBE, bystander_mark), "sh"])
            result = finish(process)
            bystander = marked(bystander_mark)
            t.attack(bystander, "kill(%s, %s): a bystander in kraft's own group lives" % (target, number), result)
            t.works(result.code in (0, 128 + int(number)) or target == "-1", "the session is recorded", result)
            for pid in bystander:
                kill_quietly(pid, signal.SIGKILL)
            wait_for(lambda: not marked(bystander_mark))
    last = read(home.exit_files()[-1]).split()
    t.works(last[2] == "started", "with its exit file", last)
    outside = subprocess.Popen(["sh", "-c", "%s sleep 30 %s & sleep 0.2; %s --unshare-all --ro-bind / / --proc /proc %s signal 0 9; exit 0" %
                                (PROBE, bystander_mark, BWRAP, PROBE)], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    outside.wait()
    t.control(wait_for(lambda: not marked(bystander_mark), 3), "from a bare bubblewrap without a session of its own it reaches the bystander")


@wall("PROC-02", "a worker that ignores signals, double-forks, leaves the session and closes all is gone after the stop")
def _(t):
    home = shared()
    for how in ("exit", "kill-kraft", "kill-launcher", "term"):
        here = mark()
        script = "./probe daemon 60 beat %s; ./probe stubborn %s %s" % (here, "0" if how == "exit" else "60", here)
        process = home.start("sh", "-c", script)
        if how != "exit":
            t.works(wait_for(lambda: len(marked(here)) >= 2, 10), "it runs")
            time.sleep(0.1)
            if how == "kill-kraft":
                process.kill()
            elif how == "kill-launcher":
                os.kill(launcher_of(process), signal.SIGKILL)
            else:
                process.terminate()
                time.sleep(1)
                process.terminate()
                time.sleep(1)
                process.kill()
        result = finish(process, 20)
        t.attack(gone(here, 5), how + ": 0 processes after 5 s", marked(here), result)
        beats = os.path.getsize(home.worktree + "/beat") if os.path.exists(home.worktree + "/beat") else 0
        time.sleep(0.2)
        after = os.path.getsize(home.worktree + "/beat") if os.path.exists(home.worktree + "/beat") else 0
        t.attack(beats == after, how + ": the heart no longer beats")
    here = mark()
    control = home.host_probe("daemon", "3", home.root + "/beat", here)
    t.control(wait_for(lambda: marked(here), 2), "on the host it survives its parent", control)


@wall("PROC-03", "a grandchild that keeps stdout open does not keep the session open")
def _(t):
    home = shared()
    here = mark()
    start = time.monotonic()
    result = home.sh("./probe daemon 60 beat %s keep; exit 5" % here, timeout=30)
    t.attack(result.code == 5 and time.monotonic() - start < 10, "ends with the command's code", result)
    t.attack(gone(here), "the grandchild is ended")
    t.works(home.probe("exit", "0").code == 0, "the next session runs")
    held = subprocess.Popen(["sh", "-c", "%s daemon 3 %s/beat %s keep; exit 5" % (PROBE, home.root, here)], stdout=subprocess.PIPE)
    try:
        held.communicate(timeout=1)
        hangs = False
    except subprocess.TimeoutExpired:
        hangs = True
    t.control(hangs, "on the host a reader waits for the grandchild")
    held.communicate()


@wall("PROC-04", "a storm of orphans: pid 1 reaps all, at most 100 zombies at any sample")
def _(t):
    home = shared()
    result = home.probe("orphans", str(full(4, 60)), "8", timeout=120)
    made, most, left = (int(n) for n in result.out.split()[1:])
    t.note("%d orphans, at most %d zombies, %d left" % (made, most, left))
    t.attack(most <= 100 and left <= 1, "zombies", result)
    t.works(made > full(200, 2000), "a storm indeed", result)
    lazy = home.bare("sh", "-c", "exec %s orphans 2 8" % "./probe", more=[] if RUNTIME else ["--as-pid-1"], without=["--die-with-parent"])
    t.control(int(lazy.out.split()[2]) > 100 or int(lazy.out.split()[3]) > 100, "without an init that reaps they pile up", lazy)


@wall("PROC-05", "a bomb of processes: other sessions go on, the stop succeeds")
def _(t):
    home = shared()
    here = mark()
    most = full(1000, 3000)
    process = home.start("./probe", "bomb", str(most), "60", here)
    try:
        t.works(wait_for(lambda: len(marked(here)) >= most, 60, 0.2), "%d processes" % most, len(marked(here)))
        other = home.run("true", options=["--item", "beside"], timeout=20)
        t.works(other.code == 0, "another session runs meanwhile, in %.1f s" % other.seconds, other)
    finally:
        start = time.monotonic()
        process.kill()
        finish(process, 20)
    t.attack(gone(here, 20), "all of it is gone", len(marked(here)))
    t.note("%d processes gone after %.2f s" % (most, time.monotonic() - start))
    outside = subprocess.Popen([PROBE, "bomb", "50", "3", here], stdout=subprocess.DEVNULL)
    wait_for(lambda: len(marked(here)) >= 50, 5)
    outside.kill()
    outside.wait()
    t.control(len(marked(here)) > 10, "on the host they outlive the first")


@wall("PROC-07", "the init stopped or overloaded by the worker: the session ends within its deadline all the same")
def _(t):
    home = shared()
    for signal_name in ("STOP", "TERM", "INT", "HUP", "KILL", "SEGV", "USR1", "PIPE", "CHLD", "RTMIN"):
        result = home.sh("kill -%s 1; sleep 0.1; exit 6" % signal_name, timeout=20)
        t.attack(result.code == 6, "kill -%s 1 does nothing" % signal_name, result)
    here = mark()
    process, here = started(home, "./probe", "stubborn", "60", "MARK")
    inits = [p for p in children(process.pid) if command_of(p)[1:2] == [b"init"]]
    for pid in inits:
        kill_quietly(pid, signal.SIGSTOP)
    process.kill()
    finish(process, 10)
    t.attack(gone(here, 10), "with the init stopped from outside a dead kraft still ends the sandbox", marked(here))
    t.works(home.ok("true").code == 0, "the next runs")
    outside = subprocess.Popen([PROBE, "sleep", "20", here])
    os.kill(outside.pid, signal.SIGTERM)
    t.control(outside.wait() == -15, "an ordinary process dies of TERM")


@wall("LIFE-02 OS-SEC-07", "the launcher killed at random moments: nothing survives, nothing hangs")
def _(t):
    home = shared()
    random.seed(7)
    late = 0
    for i in range(full(60, 200)):
        here = mark()
        process = home.start("./probe", "stubborn", "60", here)
        launcher = wait_for(lambda: launcher_of(process), 5, 0)
        time.sleep(random.random() * (0.02 if i % 2 else 0.2))
        kill_quietly(launcher, signal.SIGKILL)
        result = finish(process, 10)
        t.attack(gone(here, 3), "round %d" % i, [command_of(p) for p in marked(here)], result)
        t.attack(result.code != 0, "round %d: not a success" % i, result)
        late += "ready" in result.out
    t.note("in %d rounds the command had started" % late)
    t.works(home.ok("true").code == 0, "the next session runs")
    here = mark()
    left = subprocess.Popen(["sh", "-c", "%s stubborn 2 %s & exec sleep 30" % (PROBE, here)], stdout=subprocess.DEVNULL)
    wait_for(lambda: len([p for p in marked(here) if command_of(p)[0] == PROBE.encode()]) == 1)
    left.kill()
    left.wait()
    t.control(wait_for(lambda: marked(here), 1), "on the host a child outlives its killed parent")


@wall("LIFE-02", "kraft run killed at random moments: nothing survives, nothing hangs, the next run works")
def _(t):
    home = Home()
    home.ok("true")
    random.seed(8)
    for i in range(full(60, 300)):
        here = mark()
        process = home.start("./probe", "stubborn", "60", here)
        time.sleep(random.random() * (0.05 if i % 2 else 0.4))
        process.kill()
        finish(process, 10)
        t.attack(gone(here, 3), "round %d" % i, [command_of(p) for p in marked(here)])
        if i % 10 == 9:
            again = home.run("true", timeout=20)
            t.works(again.code == 0, "round %d: the next run works" % i, again)
    leftover = [p for p in os.listdir("/proc") if p.isdigit() and home.root.encode() in b"\0".join(command_of(int(p)))]
    t.attack(not leftover, "no process names this home", [command_of(int(p)) for p in leftover])
    t.control(home.start("./probe", "sleep", "0.1", "x").wait(timeout=20) == 0, "left alone it ends by itself")


@wall("LIFE-02", "every process of the chain killed, or stopped and then kraft killed: nothing survives")
def _(t):
    home = shared()
    for number in (signal.SIGKILL, signal.SIGSTOP):
        for victim in range(6):
            process, here = started(home, "./probe", "stubborn", "60", "MARK")
            chain = [process.pid] + children(process.pid)
            proxies = [p for p in chain if b"kraft-egress" in command_of(p)[0]]
            t.works(len(proxies) == 1, "one proxy", [command_of(p) for p in chain])
            if number == signal.SIGKILL:  # a proxy that dies ends no session: see test_egress_robust.py
                chain.remove(proxies[0])
            if victim >= len(chain):
                process.kill()
                finish(process)
                continue
            name = command_of(chain[victim])[:2]
            os.kill(chain[victim], number)
            if number == signal.SIGSTOP:
                time.sleep(0.1)
                t.works(marked(here), "stopping %r is not a death" % name)
                process.kill()
            try:
                result = finish(process, 15)
            except Failed as why:
                raise Failed("%s to %r (%d of %d): %s" % (number, name, victim, len(chain), why)) from None
            t.attack(wait_for(lambda: not os.path.exists("/proc/%d" % proxies[0]), 5), "the proxy is gone", name)
            if not gone(here, 5):
                left = [command_of(p)[:3] for p in marked(here)]
                for pid in chain:
                    kill_quietly(pid, signal.SIGCONT)
                    kill_quietly(pid, signal.SIGKILL)
                t.attack(False, "%s to %r leaves processes" % (number, name), left, result)
            t.attack(True, "%s to %r" % (number, name))
    t.control(home.ok("true").code == 0, "an unhurt session succeeds")


@wall("FS-04 LIFE-12", "100 runs, half killed: no placeholder, no process, no mount, no file is left; git status is clean")
def _(t):
    home = Home()
    home.ok("true")
    before_checkout = tree_hash(home.repo)
    random.seed(9)
    for i in range(full(60, 1000)):
        here = mark()
        process = home.start("./probe", "sleep", "0.01" if i % 2 else "30", here)
        if i % 2 == 0:
            time.sleep(random.random() * 0.04)
            victim = launcher_of(process) if i % 4 else process.pid
            kill_quietly(victim or process.pid, signal.SIGKILL)
        finish(process, 20)
        t.attack(gone(here, 3), "round %d" % i)
    t.attack(not changed(before_checkout, {k: v for k, v in tree_hash(home.repo).items()}) or
             all(k.startswith((".git/worktrees", ".git/refs/kraft")) for k in changed(before_checkout, tree_hash(home.repo))), "the checkout is as before",
             changed(before_checkout, tree_hash(home.repo)))
    t.works(git(home.repo, "status", "--porcelain") == "", "git status of the checkout")
    t.works(git(home.worktree, "status", "--porcelain") == "", "git status of the worktree", git(home.worktree, "status", "--porcelain"))
    mounts = [line for line in read("/proc/self/mountinfo").splitlines() if home.root in line]
    t.attack(not mounts, "no mount", mounts)
    stray = [p for p in os.listdir(home.run_dir) if p not in ("worktrees", "sandbox-home", "results", "sn", "sessions", "empty", "cache", "locks", "git")]
    t.note("in the run directory: " + " ".join(sorted(os.listdir(home.run_dir))))
    t.attack(not [s for s in stray if s.startswith(("tmp", ".tmp", "args"))], "no temporary file", stray)
    t.attack(len(os.listdir(home.run_dir + "/sn")) <= 3 if os.path.isdir(home.run_dir + "/sn") else True, "channel directories are removed",
             os.listdir(home.run_dir + "/sn")[:5] if os.path.isdir(home.run_dir + "/sn") else "")
    home.ok("sh", "-c", "echo new >made-by-command")
    t.control("made-by-command" in git(home.worktree, "status", "--porcelain"), "what the command made is seen")


@wall("LIFE-04 PROC-07", "kraft and launcher stopped for a while and continued: the session goes on")
def _(t):
    home = shared()
    process, here = started(home, "./probe", "sleep", "2", "MARK")
    chain = [process.pid] + children(process.pid)[:2]
    for pid in chain:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(full(1, 30))
    t.attack(marked(here) or ALL, "no false death")
    for pid in chain:
        os.kill(pid, signal.SIGCONT)
    result = finish(process, 20)
    t.works(result.code == 0, "it ends well", result)
    t.control(home.probe("sleep", "0", "x").code == 0, "as without the pause")


@wall("PROC-25", "the worker's OOM score is higher than the launcher's and kraft's")
def _(t):
    home = shared()
    process, here = started(home, "./probe", "sleep", "10", "MARK")
    try:
        launcher = launcher_of(process)
        worker = [p for p in marked(here) if b"sleep" in command_of(p) and command_of(p)[0].endswith(b"probe")]

        def score(pid):
            return int(read("/proc/%d/oom_score_adj" % pid))
        t.attack(worker and score(worker[-1]) > score(launcher) >= score(process.pid), "scores", score(worker[-1]), score(launcher), score(process.pid))
    finally:
        process.kill()
        finish(process)
    t.works(int(home.ok("cat", "/proc/self/oom_score_adj").out) > 0, "the command starts with it")
    t.control(int(home.host("cat", "/proc/self/oom_score_adj").out) < 500, "the host's shell has the ordinary score")
    eaten = home.run("sh", "-c", "ulimit -v %d; ./probe memory 4000000000" % (1 << 20))
    t.works(eaten.code != 0, "a memory bomb under a limit of its own is an ordinary failure", eaten)


# ---- terminals ----

def waited(pid):
    done, status = os.waitpid(pid, os.WNOHANG)
    return (done, status) if done else None



def on_terminal(home, *command, keys=(), seconds=15, options=(), words=None):
    """kraft run on a terminal of its own, in a job of a session, with keys typed when a text appears: [(text, keys)]."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(home.repo)
        argv = words or [KRAFT, "run", *options, "--", *command]
        os.execve(argv[0], argv, home.env(TERM="xterm"))
    seen, waiting, end = b"", list(keys), time.monotonic() + seconds
    mid = None
    while time.monotonic() < end:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        if waiting and waiting[0][0].encode() in seen:
            text, typed = waiting.pop(0)
            time.sleep(0.4)  # a key between a shell's fork and the exec of its child is lost on any terminal
            mid = termios.tcgetattr(master)
            if callable(typed):
                typed(master, pid)
            else:
                os.write(master, typed)
    after = termios.tcgetattr(master)
    ended = wait_for(lambda: waited(pid), 5)
    done, status = ended or (0, 0)
    if done == 0:
        for victim in children(pid) + [pid]:
            kill_quietly(victim, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise Failed("kraft on a terminal hangs; it showed %r" % seen)
    os.close(master)
    return Result(os.waitstatus_to_exitcode(status), seen, b""), mid, after


@promise("OS-LCH-07", "on a terminal: the command has one, Ctrl-C ends it, its modes are restored")
def _(t):
    home = shared()
    result, _, _ = on_terminal(home, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && stty size && echo x >/dev/tty")
    t.works(result.code == 0 and "/dev/pts/" in result.out, "a terminal inside", result)
    result, _, _ = on_terminal(home, "sh", "-c", "echo ready; sleep 20; echo not-reached", keys=[("ready", b"\x03")])
    t.works(result.code == 130 and "not-reached" not in result.out, "Ctrl-C", result)
    result, raw, after = on_terminal(home, "sh", "-c", "stty raw -echo; printf ready; head -c 1 | od -An -c", keys=[("ready", b"\x03")])
    t.works("003" in result.out, "a raw terminal inside gets the byte", result)
    t.works(after[3] & termios.ICANON and after[3] & termios.ECHO, "ours has its modes back", after)
    result, _, _ = on_terminal(home, "sh", "-c", "stty size; echo ready; read x; stty size",
                               keys=[("ready", lambda fd, pid: (termios.tcsetwinsize(fd, (41, 123)) if hasattr(termios, "tcsetwinsize") else
                                                                __import__("fcntl").ioctl(fd, termios.TIOCSWINSZ, b"\x29\0\x7b\0\0\0\0\0"), time.sleep(0.3),
                                                                os.write(fd, b"\n")))])
    t.works("41 123" in result.out, "a resize arrives", result)


@promise("OS-LCH-07", "Ctrl-Z stops the job, fg goes on, under a shell with job control")
def _(t):
    home = shared()
    script = "set -m; '%s' run -- sh -c 'echo re''ady; sleep 1; echo fini''shed'; echo \"stopped $?\"; jobs; fg; echo \"ended $?\"" % KRAFT
    result, _, _ = on_terminal(home, words=["/bin/bash", "--norc", "-c", script], keys=[("ready", b"\x1a")])
    t.works("stopped 148" in result.out and "finished" in result.out and "ended 0" in result.out, "stopped, resumed, ended", result)


@wall("PROC-08", "the worker never holds our terminal: nothing is typed into it")
def _(t):
    home = shared()
    result, _, _ = on_terminal(home, words=["/bin/sh", "-c", "'%s' run -- sh -c 'for f in 0 1 2; do ./probe push $f \"echo pwned\" ; done; "
                               "for d in /dev/pts/* /dev/tty /dev/console; do ./probe push 3 \"echo pwned\" 3<>$d; done'; echo end; read -t 1 x 2>/dev/null; echo \"got $x\"" % KRAFT])
    t.attack("got \r\n" in result.out and "push ok" not in result.out, "nothing was pushed", result)
    t.works("push EPERM" in result.out, "the attempt was made", result)
    outside, _, _ = on_terminal(home, words=["/bin/sh", "-c", "'%s' push 0 'pwned\n'; read x; echo \"got $x\"" % PROBE])
    t.control("got pwned" in outside.out or "push EIO" in outside.out, "on the host it works, or the kernel has it switched off", outside)


@promise("OS-LCH-09", "kill kraft on a terminal: the sandbox ends")
def _(t):
    home = shared()
    here = mark()
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(home.repo)
        os.execve(KRAFT, [KRAFT, "run", "--", "./probe", "stubborn", "60", here], home.env(TERM="xterm"))
    t.works(wait_for(lambda: [p for p in marked(here) if command_of(p)[0].endswith(b"probe")], 10), "runs")
    os.close(master)
    t.works(wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0], 10), "a hang-up of the terminal ends kraft")
    t.works(gone(here), "and the sandbox", marked(here))


if __name__ == "__main__":
    main()
