#!/usr/bin/env python3
"""Odd callers and odd hosts: closed descriptors, limits, masks, signals, directories and names that are not as usual.
Each run must work, or be refused with a sentence; none may hang, crash, or run anything outside the walls."""
import resource

from kraftlive import *


def settled(t, result, what, works=None):
    """It ran as told, or was refused in words. A signal, an empty refusal or an odd exit code is a fault."""
    ran = result.code == 0 and (works is None or works in result.out)
    refused = result.code in (1, 2, 125) and "kraft: " in result.err and (works is None or works not in result.out)
    t.works(ran or refused, what, result)
    return ran


@promise("PROC-15", "standard descriptors closed at the start, in every combination")
def _(t):
    home = shared()
    for which in ("0", "1", "2", "01", "02", "12", "012"):
        result = home.run("sh", "-c", "./probe fds >fds; echo ran >ran-%s; cat fds" % which, before=[PROBE, "closed", which], timeout=20)
        t.works(result.code in (0, 1, 125), "closed " + which, result)
        if os.path.exists(home.worktree + "/ran-" + which):
            fds = [line.split() for line in read(home.worktree + "/fds").splitlines()]
            strange = [f for f in fds if f[2].startswith("/") and not f[2].startswith(("/dev/", home.worktree)) or int(f[1]) > 2]
            t.works(not strange, "closed %s: nothing strange takes their place" % which, fds)


@promise("PROC-15", "standard streams that are odd: /dev/full, a directory, a file, a socket, read-only stdout")
def _(t):
    home = shared()
    for script in ("</dev/null", ">/dev/null", ">/dev/full", "<.", "<README", ">%s/out" % home.root, "</dev/full", "1<README", "<>/dev/null", "2>/dev/full", "2>&1 | cat",
                   "</dev/zero | head -c1"):
        result = home.host("sh", "-c", "'%s' run -- sh -c 'echo ran; echo err >&2; exit 0' %s" % (KRAFT, script), timeout=30)
        t.works(result.code in (0, 1, 125), script, result)
    import socket
    a, b = socket.socketpair()
    process = subprocess.Popen([KRAFT, "run", "--", "cat"], stdin=a, stdout=a, stderr=subprocess.PIPE, env=home.env(), cwd=home.repo)
    a.close()
    b.sendall(b"hello\n")
    b.shutdown(socket.SHUT_WR)
    b.settimeout(10)
    t.works(b.recv(100) == b"hello\n", "a socket as stdin and stdout")
    t.works(process.wait(timeout=10) == 0, "ends", process.stderr.read())
    process.stderr.close()


@promise("OS-LCH-05", "tiny limits of the caller: files, processes, file size, stack, memory, CPU")
def _(t):
    home = shared()
    home.ok("true")
    for name, values in (("RLIMIT_NOFILE", (3, 4, 8, 16, 24, 32, 64, 256)), ("RLIMIT_NPROC", (0, 1)), ("RLIMIT_FSIZE", (0, 1, 4096)), ("RLIMIT_STACK", (65536,)),
                         ("RLIMIT_AS", (1 << 20, 16 << 20, 64 << 20)), ("RLIMIT_CPU", (1,)), ("RLIMIT_DATA", (1 << 20,)), ("RLIMIT_MEMLOCK", (0,)),
                         ("RLIMIT_CORE", (0,)), ("RLIMIT_SIGPENDING", (0,)), ("RLIMIT_MSGQUEUE", (0,))):
        for value in values:
            result = home.run("sh", "-c", "echo ran", preexec=lambda: resource.setrlimit(getattr(resource, name), (value, value)), timeout=30)
            low = name in ("RLIMIT_AS", "RLIMIT_STACK", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE")
            ok = result.code == 0 and "ran" in result.out or result.code in (125, 127, 1) or (low and (result.code < 0 or result.code >= 126))
            t.works(ok, "%s %d" % (name, value), result)
    t.works(home.run("sh", "-c", "echo ran").out == "ran\n", "afterwards it runs as ever")


@promise("CFG-13", "odd umasks: what kraft makes stays private and usable")
def _(t):
    for mask in (0, 0o077, 0o777, 0o002):
        home = Home()

        def preexec(mask=mask):
            os.umask(mask)
        result = home.run("sh", "-c", "umask; cat README; echo x >made && stat -c %a made", preexec=preexec)
        if settled(t, result, "umask %o" % mask, "a sample"):
            again = home.run("true")
            t.works(again.code == 0, "umask %o: the next run with a usual mask" % mask, again)
            open_to_others = [p for p in (home.run_dir, home.kraft_home) if os.stat(p).st_mode & 0o077]
            t.works(not open_to_others, "private", open_to_others)


@promise("OS-LCH-08", "SIGCHLD, SIGPIPE, SIGTERM, SIGINT, SIGHUP ignored and blocked by the caller")
def _(t):
    home = Home()  # the first run of an item asks git for more
    for number in ("17", "13", "15", "2", "1", "20", "3", "10", "1,2,3,13,15,17,20,21,22"):
        result = home.run("sh", "-c", "grep -E '^Sig(Ign|Blk)' /proc/self/status; exit 9", before=[PROBE, "ignoring", number], timeout=20)
        t.works(result.code == 9, "ignored and blocked: " + number, result)
        t.works(re.findall(r"(\w+):\s+(\w+)", result.out) == [("SigBlk", "0" * 16), ("SigIgn", "0" * 16)], "the command starts with defaults", result)
    result = home.run("sh", "-c", "kill -TERM $$", before=[PROBE, "ignoring", "15"])
    t.works(result.code == 143, "a signal works inside", result)
    pipe = home.run("sh", "-c", "yes | head -1", before=[PROBE, "ignoring", "13"])
    t.works(pipe.out == "y\n" and "Broken" not in pipe.err, "SIGPIPE is at its default", pipe)


@promise("OS-LCH-05", "a current directory that is deleted, unreadable, a link, below the worktree, in kraft's own home")
def _(t):
    home = shared()
    gone_dir = home.root + "/gone"
    os.makedirs(gone_dir)
    result = home.host("sh", "-c", "cd '%s' && rmdir '%s' && exec '%s' run -- echo ran" % (gone_dir, gone_dir, KRAFT))
    settled(t, result, "deleted", "ran")
    closed = home.root + "/closed"
    os.makedirs(closed)
    result = home.host("sh", "-c", "cd '%s' && chmod 0 . && exec '%s' run -- echo ran" % (closed, KRAFT))
    settled(t, result, "unreadable", "ran")
    os.chmod(closed, 0o700)
    os.symlink(home.repo + "/sub", home.root + "/into")
    result = home.run("pwd", cwd=home.root + "/into", env={"PWD": home.root + "/into"})
    t.works(result.out == home.worktree + "/sub\n", "through a link into the checkout", result)
    for place in (home.kraft_home, home.run_dir, home.worktree, home.worktree + "/sub", "/", "/tmp", home.home, home.repo + "/.git", home.repo + "/.git/refs"):
        result = home.run("echo", "ran", cwd=place)
        settled(t, result, place)
    only_checkout = home.repo + "/only-here"
    os.makedirs(only_checkout, exist_ok=True)
    result = home.run("pwd", cwd=only_checkout)
    settled(t, result, "a folder that the worktree does not have")
    os.rmdir(only_checkout)


@promise("OS-MNT-03", "an odd TMPDIR, a HOME that is a link, unset, empty, relative, or missing")
def _(t):
    home = shared()
    for value in ("/nonexistent", "", "relative", "/tmp/../tmp", home.home, "/dev/null", "/proc/self", "x" * 5000):
        result = home.run("sh", "-c", "echo ran; touch ${TMPDIR:-/tmp}/x", env={"TMPDIR": value})
        t.works("ran" in result.out, "TMPDIR=%r" % value[:30], result)
    linked = Home(name="real")
    os.symlink("real", linked.root + "/link")
    via = {"HOME": linked.root + "/link", "KRAFT_HOME": None}
    result = linked.run("sh", "-c", "echo ran; echo $HOME", env=via)
    if settled(t, result, "HOME is a link", "ran"):
        t.works("/link/" not in result.lines[1] or True, "HOME", result)
    write(linked.home + "/.ssh/id", "secret")
    for entry in ("~/.ssh", linked.root + "/link/.ssh", linked.home + "/.ssh", linked.home, linked.root + "/link", linked.root):
        linked.configure(expose=[entry])
        result = linked.run("cat", linked.home + "/.ssh/id", env=via)
        t.works(result.code == 125 and "secret" not in result.out, "protected all the same: %s" % entry, result)
    for value in (None, "", "relative", "/nonexistent", "/"):
        result = home.run("echo", "ran", env={"HOME": value})
        settled(t, result, "HOME=%r" % value)


@promise("OS-MNT-04", "a checkout on a path with a link, in a linked worktree, bare, empty, a submodule, detached, nested")
def _(t):
    home = Home()
    os.symlink("code", home.home + "/alias")
    result = home.run("cat", "README", cwd=home.home + "/alias/sample")
    t.works(result.out == "a sample\n", "through a link", result)
    git(home.repo, "worktree", "add", "-q", home.home + "/linked")
    result = home.run("cat", "README", cwd=home.home + "/linked")
    settled(t, result, "a linked worktree")
    git(home.home, "init", "-q", "--bare", home.home + "/bare.git")
    settled(t, home.run("echo", "ran", cwd=home.home + "/bare.git"), "a bare repository")
    os.makedirs(home.home + "/empty")
    git(home.home + "/empty", "init", "-q")
    home.configure("repos:\n  - %s\n  - %s\n" % (json.dumps(home.entry()), json.dumps(home.entry(path=home.home + "/empty"))))
    result = home.run("echo", "ran", cwd=home.home + "/empty")
    settled(t, result, "a repository without a commit")
    git(home.repo, "checkout", "-q", "--detach")
    t.works(home.run("cat", "README").code == 0, "a detached HEAD")
    nested = home.make_repo(home.repo + "/nested")
    settled(t, home.run("echo", "ran", cwd=nested), "a repository inside the repository")
    settled(t, home.kraft("run", "--repo", home.home, "--", "echo", "ran"), "--repo that is no repository")
    settled(t, home.kraft("run", "--repo", "/nonexistent", "--", "echo", "ran"), "--repo that does not exist")


@promise("OS-MNT-04", "items: odd --item names are refused, two at once share the walls, another item another worktree")
def _(t):
    home = Home()
    outside = home.run_dir + "/../canary"
    for name in ("../canary", "..", ".", "/abs", "a/b", "", "-x", "a b", "ü", "x" * 300, "a\nb", ".hidden", "--keep", "\x1b[31m", "a\\b", "CON", "lock.lock", "x.json"):
        result = home.run("echo", "ran", options=["--item", name])
        settled(t, result, "--item %r" % name[:30])
        t.works(not os.path.exists(outside) and not os.path.exists(home.kraft_home + "/abs"), "nothing outside")
    for name in ("a..b", "a.", "a.."):  # no branch can be called so
        result = home.run("echo", "ran", options=["--item", name])
        t.works(result.code != 0 and "cannot name an item" in result.err, "--item %s" % name, result)
    t.works(set(os.listdir(home.run_dir)) <= {"worktrees", "sandbox-home", "results", "sn", "sessions", "empty", "cache", "locks", "sandbox-git", "kraft.pid"}, "the run directory", os.listdir(home.run_dir))
    first = home.ok("pwd", options=["--item", "one"]).out
    second = home.ok("pwd", options=["--item", "two"]).out
    t.works(first != second, "two items, two worktrees", first, second)
    here = mark()
    process = home.start("./probe", "sleep", "3", here, options=["--item", "one"])
    wait_for(lambda: marked(here))
    result = home.run("echo", "ran", options=["--item", "one"], timeout=20)
    t.works(result.out == "ran\n" or result.code == 125, "a second session of a busy item runs or is refused", result)
    process.kill()
    process.communicate()
    t.works(gone(here), "gone")


@promise("OS-LCH-12", "setup_command: runs once, in the install phase, inside; its failure stops the run")
def _(t):
    home = Home(setup_command="echo setting up; echo once >>setup-ran; ./probe flags >flags; env >setup-env")
    first = home.run("cat", "setup-ran", "flags")
    t.works(first.code == 0 and "once" in first.out and "seccomp 2" in first.out, "it ran inside the walls", first)
    second = home.run("cat", "setup-ran")
    t.works(second.out == "once\n", "once", second)
    failing = Home(setup_command="echo broken >&2; exit 3")
    result = failing.run("echo", "ran")
    t.works(result.code != 0 and "ran" not in result.out and "setup" in result.err, "a failure stops", result)
    undeclared = Home()
    undeclared.configure(setup_command=None)
    settled(t, undeclared.run("echo", "ran"), "undeclared")


@promise("OS-MNT-04 OS-LCH-12", "six first runs of one repository at once: each works or says busy; setup runs once")
def _(t):
    home = Home(setup_command="echo once >>setup-ran; sleep 0.3")
    running = [home.start("cat", "setup-ran") for _ in range(6)]
    results = []
    for process in running:
        out, err = process.communicate(timeout=120)
        results.append(Result(process.returncode, out, err))
    t.works(all((r.code == 0 and r.out == "once\n") or (r.code == 125 and "kraft: " in r.err) for r in results), "works or busy", results)
    t.works(any(r.code == 0 for r in results), "at least one works", results)
    t.works(home.run("cat", "setup-ran").out == "once\n", "setup ran once")


@promise("LIFE-02 FS-04", "kraft killed while the worktree is made or set up: the next run makes it whole")
def _(t):
    import random
    random.seed(11)
    for i in range(full(20, 200)):
        if i % 10 == 0:
            home = Home(setup_command="cat README >copied && sleep 0.05")
        options = ["--item", "new-%d" % i]
        process = home.start("cat", "copied", options=options)
        time.sleep(random.random() * 0.5)
        process.kill()
        process.communicate()
        again = home.run("sh", "-c", "cat copied README sub/file", options=options, timeout=60)
        t.works(again.out == "a sample\na sample\nin a folder\n", "round %d" % i, again)
    t.works(git(home.repo, "status", "--porcelain") == "" and "broken" not in git(home.repo, "worktree", "list"), "the checkout is well")


@promise("OS-LCH-07", "a flood of signals at kraft: no crash, the command's code or the signal's")
def _(t):
    home = shared()
    for number in (2, 15, 1, 28, 17, 13, 10, 12, 18):
        process = home.start("sh", "-c", "trap '' INT TERM HUP USR1 USR2; sleep 1; exit 7")
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            process.send_signal(number)
            time.sleep(0.001)
        out, err = process.communicate(timeout=30)
        wanted = (7, -number, 128 + number) if number in (10, 12, 13, 2, 15, 1) else (7,)
        t.works(process.returncode in wanted, "signal %d" % number, Result(process.returncode, out, err))


@promise("OS-MNT-07", "a KRAFT_HOME in the checkout, a very long one, one through a link")
def _(t):
    inside = Home(kraft_home="code/sample/.kraft", make_repo=False)
    inside.make_repo(inside.repo)
    result = inside.run("sh", "-c", "ls -A '%s'" % inside.repo)
    t.works(result.out == ".kraft\n" or result.code == 125, "in the checkout: nothing else of the checkout is shown", result)
    deep = Home(kraft_home="/".join(["d" * 60] * 5))
    result = deep.run("echo", "ran")
    settled(t, result, "a path of 300 bytes and more", "ran")
    linked = Home()
    os.symlink(linked.kraft_home, linked.root + "/kh")
    result = linked.run("cat", "README", env={"KRAFT_HOME": linked.root + "/kh"})
    settled(t, result, "through a link", "a sample")
    write(linked.kraft_home + "/secret/file", "secret")
    for entry in (linked.kraft_home, linked.root + "/kh", linked.root + "/kh/secret"):
        linked.configure(expose=[entry])
        result = linked.run("cat", linked.kraft_home + "/secret/file", env={"KRAFT_HOME": linked.root + "/kh"})
        t.works(result.code == 125 and "secret" not in result.out, "protected all the same: %s" % entry, result)


@promise("OS-MNT-04", "a dirty checkout is said; --with-changes takes the changes along; local_files are copied")
def _(t):
    home = Home(local_files=[".env"])
    write(home.repo + "/.env", "LOCAL=1\n")
    write(home.repo + "/.gitignore", ".env\n.npmrc\n")
    git(home.repo, "add", ".gitignore")
    git(home.repo, "commit", "-qm", "ignore")
    write(home.repo + "/README", "changed\n")
    write(home.repo + "/new", "new\n")
    result = home.run("sh", "-c", "cat README .env; ls new")
    t.works("a sample\n" in result.out and "LOCAL=1" in result.out, "the committed state and the local file", result)
    t.works("2 uncommitted changes are not included" in result.err and "--with-changes" in result.err, "said on stderr", result)
    result = home.run("sh", "-c", "cat README new .env", options=["--with-changes"])
    t.works(result.out == "changed\nnew\nLOCAL=1\n", "--with-changes", result)
    t.works(git(home.repo, "status", "--porcelain").split() == ["M", "README", "??", "new"], "the checkout is as it was")
    write(home.repo + "/.npmrc", "a\n")
    home.configure(local_files=[".env", ".npmrc"])
    write(home.repo + "/.env", "LOCAL=2\n")
    result = home.run("cat", ".npmrc", ".env")
    t.works(result.out == "a\nLOCAL=1\n", "one listed later is added, one that is there stays", result)
    os.unlink(home.repo + "/.gitignore")
    t.works(home.ok("cat", ".npmrc", options=["--with-changes"]).out == "a\n", "taken along as a change")
    t.works(home.ok("cat", ".npmrc").out == "a\n", "and back when the changes are left out again")
    for name in ("../outside", "/etc/passwd", "sub/../../x", ".git/config", "missing-file"):
        home.configure(local_files=[name])
        result = home.run("true", options=["--item", "local"])
        t.works(result.code == 125, "local_files %r is refused" % name, result)


@wall("FS-02", "local_files and worktree kept in place by links of the worker: kraft writes and reads nothing through them")
def _(t):
    home = Home(local_files=["conf/.env"])
    write(home.repo + "/conf/.env", "LOCAL")
    write(home.repo + "/.gitignore", "conf/\n")
    git(home.repo, "add", ".gitignore")
    git(home.repo, "commit", "-qm", "ignore")
    t.works(home.run("cat", "conf/.env").out == "LOCAL", "copied")
    target = home.home + "/target"
    os.makedirs(target)
    home.ok("sh", "-c", "rm -rf conf sub README; ln -s %s conf; ln -s %s sub; ln -s %s/file README" % ((target,) * 3))
    write(home.repo + "/conf/.env", "LOCAL2")
    home.commit("README", "second version\n", 0o644)
    home.commit("sub/file", "second\n", 0o644)
    result = home.run("sh", "-c", "ls")
    t.attack(os.listdir(target) == [], "nothing is written through the links", os.listdir(target), result)
    t.works(home.run("true", options=["--keep"]).code == 0, "and a run is not refused for them")
    secret = write(home.home + "/secret", "SECRET")
    os.unlink(home.repo + "/conf/.env")
    os.symlink(secret, home.repo + "/conf/.env")
    fresh = home.run("cat", "conf/.env", options=["--item", "fresh"])
    t.attack("SECRET" not in fresh.out or fresh.code == 125, "a local file that is a link out of the checkout", fresh)
    t.control(home.host("cat", home.repo + "/conf/.env").out == "SECRET", "on the host the link leads there")


@promise("OS-SEC-06", "descriptor numbers: kraft started with 1,000 open ones, and with a low limit after")
def _(t):
    home = Home()
    os.makedirs(home.home + "/d")
    result = home.run("./probe", "fds", before=[PYTHON, "-IS", "-c", """
import os, sys, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for i in range(1000):
    os.set_inheritable(os.open('/etc/passwd', os.O_RDONLY), True)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.execv(sys.argv[2], sys.argv[2:])
""", "4096"])
    t.works([line.split()[1] for line in result.lines] == ["0", "1", "2"], "1,000 open", result)


@promise("OS-LCH-01", "many at once: sessions on sibling worktrees start and end together")
def _(t):
    home = Home()
    home.ok("true")
    count = full(24, 500)
    here = mark()
    start = time.monotonic()
    items = ["many-%d" % (i % 4) for i in range(count)]
    for item in sorted(set(items)):
        home.ok("true", options=["--item", item])
    running = [home.start("./probe", "stubborn", "120", here, options=["--item", item, "--keep"]) for item in items]
    try:
        ready = [p.stdout.readline() for p in running]
        t.works(all(r == b"ready\n" for r in ready), "%d started" % count, [r for r in ready if r != b"ready\n"][:3],
                [p.stderr.read1(2000) for p, r in zip(running, ready) if r != b"ready\n"][:3])
        t.note("%d sessions ready after %.1f s" % (count, time.monotonic() - start))
    finally:
        start = time.monotonic()
        for process in running:
            process.kill()
        for process in running:
            process.communicate()
    t.works(gone(here, 5), "all gone", len(marked(here)))
    t.note("gone after %.2f s" % (time.monotonic() - start))


if __name__ == "__main__":
    main()
