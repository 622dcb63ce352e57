#!/usr/bin/env python3
"""expose and protected paths (OS-EXP), sockets and FIFOs in them, and races between the check and the mount (FS)."""
import random
import socket

from kraftlive import *

PROTECTED = [".ssh", ".gnupg", ".config/gh", ".config/glab-cli", ".aws", ".kube", ".docker", ".claude", ".codex",
             ".local/share/keyrings", "Library/Keychains", "Library/Cookies"]


def refused(t, home, entry, *words):
    """An expose entry that must not load: exit 125, the file's place, and the entry named."""
    home.configure(expose=[entry])
    result = home.run("./probe", "sleep", "0", mark())
    t.attack(result.code == 125 and result.out == "", "expose %r is refused" % entry, result)
    t.attack(re.search(r"repos\.yaml:\d+:\d+: ", result.err), "with its place", result)
    for word in words:
        t.attack(word in result.err, "the message says %r" % word, result)
    return result


def allowed(home, path, entry=None):
    home.configure(expose=[entry or path])
    return home.run("cat", path + "/file")


@wall("OS-EXP-01 FS-11 CFG-10", "expose refuses the home directory, what holds it, and every spelling of both")
def _(t):
    home = Home()
    up = home.home
    for entry in (home.home, home.home + "/", home.home + "//", home.home + "/.", home.home + "/code/..", "~/", "~/.", "~/code/..",
                  "/", "//", "/.", "/..", os.path.dirname(up), os.path.dirname(up) + "/", "/usr/../" + up.lstrip("/"),
                  up.replace("/home", "//home"), up + "/code/../../home"):
        refused(t, home, entry)
    os.makedirs(home.home + "/fine")
    write(home.home + "/fine/file", "shown")
    result = allowed(home, home.home + "/fine")
    t.works(result.out == "shown", "a directory below the home is fine", result)
    bare = home.bare("cat", home.home + "/code/sample/README", ro=[home.home])
    t.control(bare.out == "a sample\n", "mounted by hand the home would show everything", bare)


@wall("OS-EXP-02 FS-11", "expose refuses each protected path, what holds it and what is inside it, existing or not")
def _(t):
    home = Home()
    for existing in (False, True):
        for name in PROTECTED:
            if existing:
                write(os.path.join(home.home, name, "file"), "secret")
            refused(t, home, "~/" + name, name)
            refused(t, home, "~/" + name + "/inside", name)
        for name in (".config", ".local", ".local/share", "Library"):
            refused(t, home, "~/" + name)
    for place in (home.kraft_home, home.run_dir, home.config_dir, home.run_dir + "/worktrees", home.config_dir + "/repos.yaml"):
        refused(t, home, place)
    write(home.home + "/.config/other/file", "shown")
    t.works(allowed(home, home.home + "/.config/other").out == "shown", "a neighbour of a protected one is fine")
    write(home.home + "/.sshx/file", "shown")
    t.works(allowed(home, home.home + "/.sshx").out == "shown", "a name that only begins like one is fine")
    t.control(home.bare("cat", home.home + "/.ssh/file", ro=[home.home + "/.ssh"]).out == "secret", "by hand it would show")


@wall("OS-EXP-02", "run and config directories are protected wherever the variables put them")
def _(t):
    home = Home()
    run, config = home.root + "/var/run", home.root + "/var/config"
    os.makedirs(run, 0o700)
    os.makedirs(config, 0o700)
    write(run + "/file", "secret")
    home.extra_env = {"KRAFT_RUN_DIR": run, "KRAFT_CONFIG_DIR": config}
    home.config_dir = config
    for entry in (run, config, home.root + "/var", run + "/x", home.kraft_home):
        refused(t, home, entry)
    write(home.root + "/other/file", "shown")
    t.works(allowed(home, home.root + "/other").out == "shown", "other paths are fine")
    t.control(home.bare("cat", run + "/file", ro=[run]).out == "secret", "by hand it would show")


@wall("OS-EXP-03", "a path named like a credential file is refused, whatever it is")
def _(t):
    home = Home()
    for name in CREDENTIAL_NAMES:
        refused(t, home, "~/" + name)
        refused(t, home, home.root + "/x/" + name, name)
        refused(t, home, home.root + "/x/" + name + "/")
        refused(t, home, home.root + "/x//" + name + "/.")
    write(home.root + "/x/.npmrc.d/file", "shown")
    t.works(allowed(home, home.root + "/x/.npmrc.d").out == "shown", "a longer name is fine")
    write(home.root + "/x/.npmrc", "secret")
    t.control(home.bare("cat", home.root + "/x/.npmrc", ro=[home.root + "/x"]).out == "secret", "by hand it would show")


@wall("OS-EXP-04 CFG-09", "the rule holds for the directory a command would bring")
def _(t):
    home = Home()
    script = "#!/bin/sh\necho ran\n"
    cases = {home.home + "/bin/tool": "home/bin widens to the home", home.home + "/.ssh/tool": "inside .ssh",
             home.home + "/.docker/bin/tool": "widens to .docker", home.home + "/.claude/local/tool": "inside .claude",
             home.kraft_home + "/bin/tool": "widens to KRAFT_HOME", home.home + "/tool": "the home itself",
             os.path.dirname(home.home) + "/bin/tool": "widens to what holds the home"}
    for path, why in cases.items():
        write(path, script, 0o755)
        result = home.run("tool", env={"PATH": os.path.dirname(path) + ":/usr/bin:/bin"})
        t.attack(result.code == 125 and "ran" not in result.out and "tool" in result.err, why, path, result)
    fine = write(home.home + "/tools/bin/tool", script, 0o755)
    result = home.run("tool", env={"PATH": os.path.dirname(fine) + ":/usr/bin:/bin"})
    t.works(result.out == "ran\n", "a prefix of its own is fine", result)
    t.control(home.host("tool", env={"PATH": home.home + "/bin:/usr/bin:/bin"}).out == "ran\n", "the host runs it")


@wall("OS-EXP-05 FS-11", "a link to a protected path is refused at launch, through any number of links")
def _(t):
    home = Home()
    write(home.home + "/.ssh/id", "secret")
    links = home.root + "/links"
    os.makedirs(links)
    os.symlink(home.home + "/.ssh", links + "/direct")
    os.symlink("direct", links + "/twice")
    os.symlink(home.home, links + "/home")
    os.symlink(home.root, links + "/up")
    os.symlink("../home/.ssh", links + "/relative")
    os.symlink(home.kraft_home, links + "/kraft")
    os.symlink(home.home + "/.ssh/id", links + "/file")
    for entry in ("direct", "direct/", "twice", "home", "home/", "home/.ssh", "home/.ssh/id", "up", "up/home", "up/home/.ssh/id",
                  "relative", "relative/../.ssh", "kraft", "kraft/config", "file", "home/code/.."):
        home.configure(expose=[links + "/" + entry])
        result = home.run("cat", links + "/" + entry, home.home + "/.ssh/id")
        t.attack(result.code == 125 and "secret" not in result.out, "expose of links/%s" % entry, result)
    os.makedirs(home.root + "/real")
    write(home.root + "/real/file", "shown")
    os.symlink("../real", links + "/fine")
    home.configure(expose=[links + "/fine"])
    result = home.run("cat", links + "/fine/file")
    t.works(result.out == "shown", "a link to a harmless directory works under the name written", result)
    t.control(home.bare("cat", links + "/direct/id", ro=[links + "/direct"]).out == "secret", "by hand the link shows it")


@wall("OS-EXP-05 FS-01", "an exposed directory swapped for a link to a protected one, in a loop, during launches")
def _(t):
    home = Home()
    place, other, secret = home.home + "/swap", home.home + "/swap-dir", home.home + "/.ssh"
    write(place + "/file", "harmless")
    write(secret + "/file", "SECRET")
    home.configure(expose=[place])
    race(t, home, place, other, secret, lambda: home.run("cat", place + "/file", timeout=30))
    bare_hits = race_hits(place, other, secret, lambda: home.bare("cat", place + "/file", ro=[place]), 1000, until_hit=True)
    t.control(bare_hits["SECRET"] > 0, "a bare bubblewrap that is given the path loses the race", bare_hits)


@wall("OS-EXP-05 FS-01", "the same with a parent of the exposed directory")
def _(t):
    home = Home()
    place, other, secret = home.home + "/parent", home.home + "/parent-dir", home.home + "/evil"
    write(place + "/.config/gh2/file", "harmless")
    os.makedirs(secret)
    write(home.home + "/.config/gh/file", "SECRET")
    os.symlink(home.home + "/.config", secret + "/.config")
    os.symlink("gh", home.home + "/.config/gh2")
    path = place + "/.config/gh2/file"
    home.configure(expose=[place + "/.config/gh2"])
    race(t, home, place, other, secret, lambda: home.run("cat", path, timeout=30))
    hits = race_hits(place, other, secret, lambda: home.bare("cat", path, ro=[place + "/.config/gh2"]), 1000, until_hit=True)
    t.control(hits["SECRET"] > 0, "a bare bubblewrap loses the race", hits)


def race_hits(place, other, secret, launch, rounds, until_hit=False):
    """Launches while PLACE flips between a directory and a link to SECRET, by atomic renames. Counts what was seen."""
    link = place + "-link"
    stop = threading.Event()

    def dwell():
        # Mostly as fast as can be; now and then long enough for a check to see one thing and the mount the other.
        if random.random() < 0.1:
            time.sleep(random.random() * 0.0005)

    def swap():
        while not stop.is_set():
            try:
                if not os.path.islink(link):
                    os.symlink(secret, link)
                os.rename(place, other)
                os.rename(link, place)
                dwell()
                os.rename(place, link)
                os.rename(other, place)
                dwell()
            except OSError:
                # The launch repaired or removed something under us: start over with a directory in place.
                if os.path.isdir(other) and not os.path.isdir(place):
                    if os.path.islink(place):
                        os.unlink(place)
                    os.rename(other, place)
                elif os.path.isdir(other) and not os.path.islink(other):
                    shutil.rmtree(other, ignore_errors=True)
                if os.path.islink(place):
                    os.unlink(place)
    thread = threading.Thread(target=swap)
    thread.start()
    hits = {"SECRET": 0, "harmless": 0, "refused": 0}
    try:
        for _ in range(rounds):
            result = launch()
            word = result.out.strip()
            hits[word if word in hits else "refused"] += 1
            if until_hit and hits["SECRET"]:
                break
    finally:
        stop.set()
        thread.join()
    return hits


def race(t, home, place, other, secret, launch, rounds=full(150, 1000)):
    quiet = launch()
    t.works(quiet.out.strip() == "harmless", "without the race it shows the harmless file", quiet)
    hits = race_hits(place, other, secret, launch, rounds)
    t.note("%r" % hits)
    t.attack(hits["SECRET"] == 0, "0 launches show the protected directory", hits)


@wall("FS-01", "the worktree swapped for a link to a directory of the person during launches")
def _(t):
    home = Home()
    worktree = home.worktree
    secret = home.home + "/secret"
    write(secret + "/canary", "SECRET")
    write(secret + "/deep/file", "precious")

    def launch():
        return home.run("sh", "-c", "cat canary || echo harmless; echo x >kraft-was-here", options=["--keep"], timeout=60)
    race(t, home, worktree, worktree + "-dir", secret, launch, full(60, 1000))
    # Not judged here: what git itself removes of a worktree that it could not make. Only the person can rename there.
    written = [name for name in os.listdir(secret) if name == "kraft-was-here"]
    t.attack(not written, "no command wrote behind the link", written)
    write(secret + "/canary", "SECRET")
    plain = home.home + "/plain"
    write(plain + "/canary", "harmless")

    def bare():
        return home.host(BWRAP, "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink",
                         "usr/bin", "/bin", "--bind", plain, "/w", "--", "cat", "/w/canary")
    hits = race_hits(plain, plain + "-dir", secret, bare, 1000, until_hit=True)
    t.control(hits["SECRET"] > 0, "a bare bubblewrap loses the race", hits)


@wall("FS-01 OS-EXP-05", "a worktree that is a link, or below one, at launch: refused or made anew, never followed")
def _(t):
    home = Home()
    worktree = home.worktree
    target = home.home + "/precious"
    write(target + "/README", "precious")
    write(target + "/.git", read(worktree + "/.git"))
    before = tree_hash(target)
    for place in (worktree, os.path.dirname(worktree), home.sandbox_home, os.path.dirname(home.sandbox_home), home.run_dir + "/results", home.run_dir + "/sn",
                  home.run_dir + "/sessions", home.run_dir + "/empty"):
        os.rename(place, place + "-away")
        os.symlink(target, place)
        result = home.run("sh", "-c", "cat README; ls ~ /; echo x >made; echo x >~/made; echo x >$KRAFT_RESULT_PATH")
        t.attack("precious" not in result.out and not changed(before, tree_hash(target)), "%s is a link" % place, result, changed(before, tree_hash(target)))
        if os.path.islink(place):
            t.attack(result.code == 125, "refused where the link stays: %s" % place, result)
            os.unlink(place)
        elif os.path.isdir(place):
            _rename_away(place)
        else:
            os.unlink(place)
        os.rename(place + "-away", place)
    back = home.run("cat", "README")
    t.works(back.out == "a sample\n", "with everything back it runs", back)
    t.control(home.bare("cat", "README", bind=[target], more=["--chdir", target]).out == "precious", "by hand it would show")


def _rename_away(place):
    os.rename(place, place + "-made-" + uuid.uuid4().hex)


@promise("CFG-04 OS-EXP-05", "an exposed path that does not exist is refused at launch, naming the entry")
def _(t):
    home = Home()
    for entry in ("/nonexistent/kraft", "~/missing", home.home + "/code/sample/README/x"):
        home.configure(expose=[entry])
        result = home.run("true")
        t.works(result.code == 125 and os.path.basename(entry) in result.err, "refused: %s" % entry, result)
        t.works(re.search(r"repos\.yaml:\d+:\d+", result.err), "with its place", result)
    os.symlink("/nonexistent/x", home.home + "/dangling")
    home.configure(expose=["~/dangling"])
    result = home.run("true")
    t.works(result.code == 125 and "dangling" in result.err, "a dangling link", result)


@promise("OS-MNT-10", "exposed: a single file, nested paths, the same path twice, a path below /usr, one in the worktree's parent")
def _(t):
    home = Home()
    write(home.home + "/a/b/c/file", "inner")
    write(home.home + "/single", "one file")
    for expose in (["~/single"], ["~/a", "~/a/b"], ["~/a/b", "~/a"], ["~/a", "~/a"], ["~/a/"], ["~/a/./b/.."], ["/usr/lib", "~/a"],
                   ["/etc", "~/a", "~/single"]):
        home.configure(expose=expose)
        want = home.home + ("/single" if expose == ["~/single"] else "/a/b/c/file")
        result = home.run("cat", want)
        t.works(result.out in ("one file", "inner"), "expose %r" % expose, result)


@promise("OS-MNT-10", "names with spaces, unicode, quotes, a leading dash, colons, a newline, invalid UTF-8")
def _(t):
    home = Home()
    for name in ("with space", "ünï", "it's", '"quoted"', "-dash", "co:lon", "--ro-bind", "a\\b", "$HOME", "*"):
        path = os.path.join(home.home, "names", name)
        write(path + "/file", "shown")
        result = allowed(home, path)
        t.works(result.out == "shown", "expose %r" % name, result)


@wall("FS-14 OS-SEC-08", "a socket or FIFO within three levels of an exposed directory is refused at launch, with its path")
def _(t):
    home = Home()
    tree = home.home + "/tree"
    write(tree + "/a/b/c/d/file", "x")
    for depth in ("", "a", "a/b", "a/b/c"):
        path = os.path.join(tree, depth, "s.sock")
        server = socket.socket(socket.AF_UNIX)
        # Bound by a short name: 108 bytes at most.
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        server.bind("s.sock")
        os.chdir(here)
        server.listen(8)
        home.configure(expose=[tree])
        result = home.run("./probe", "unix", path)
        t.attack(result.code == 125 and "s.sock" in result.err, "a socket at depth %r" % depth, result)
        os.unlink(path)
        server.close()
    for depth in ("", "a/b"):
        path = os.path.join(tree, depth, "pipe")
        os.mkfifo(path)
        result = home.run("true")
        t.attack(result.code == 125 and "pipe" in result.err, "a FIFO at depth %r" % depth, result)
        os.unlink(path)
    t.works(home.run("cat", tree + "/a/b/c/d/file").out == "x", "without them it is shown")
    os.chdir(tree)
    server = socket.socket(socket.AF_UNIX)
    server.bind("s.sock")
    server.listen(8)
    os.chdir("/")
    bare = home.bare("sh", "-c", "cd %s && %s/probe unix s.sock" % (tree, home.repo), ro=[tree])
    t.control(bare.said("stream") == "ok", "a bare read-only bind lets connect through", bare)
    home.configure(expose=[tree + "/s.sock"])
    single = home.run("true")
    t.attack(single.code == 125, "a socket exposed by itself", single)
    server.close()


@wall("FS-14 OS-SEC-08", "the same beside a command, in its prefix, and under links")
def _(t):
    home = Home()
    prefix = home.home + "/pack"
    write(prefix + "/bin/tool", "#!/bin/sh\necho ran\n", 0o755)
    path = {"PATH": prefix + "/bin:/usr/bin:/bin"}
    t.works(home.run("tool", env=path).out == "ran\n", "the command runs")
    os.makedirs(prefix + "/var/run")
    os.mkfifo(prefix + "/var/run/ctl")
    result = home.run("tool", env=path)
    t.attack(result.code == 125 and "ctl" in result.err, "a FIFO in the prefix", result)
    t.control(home.host("tool", env=path).out == "ran\n", "the host runs it")


@wall("FS-15 OS-SEC-06", "no device opens in a shown tree: every mount but /dev's own nodes is nodev and nosuid")
def _(t):
    home = Home()
    write(home.home + "/shown/file", "x")
    home.configure(expose=["~/shown"])
    table = mount_table(home.ok("cat", "/proc/self/mountinfo").out)
    nodes = re.compile(r"/dev/(null|zero|full|random|urandom|tty|console|ptmx|pts.*)")
    loose = [m["at"] for m in table if not {"nodev", "nosuid"} <= set(m["options"]) and not nodes.fullmatch(m["at"])]
    t.attack(not loose, "nodev and nosuid", loose)
    t.works([m for m in table if m["at"] == home.home + "/shown"], "the exposed one is among them")
    t.works(home.sh("cat /dev/null && head -c1 /dev/zero | wc -c").out == "1\n", "the nodes of /dev open")
    outside = [m["at"] for m in mount_table(read("/proc/self/mountinfo")) if "nodev" not in m["options"]]
    t.control(outside, "the host has mounts on which devices open", outside)


@promise("FS-15", "a socket that a host process makes in the worktree can be reached: a documented limit")
def _(t):
    home = shared()
    worktree = home.worktree
    os.makedirs(worktree + "/rt", exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    os.chdir(worktree + "/rt")
    server.bind("s")
    os.chdir("/")
    server.listen(8)
    try:
        result = home.probe("unix", "rt/s", options=["--keep"])
        t.note("a socket of the host in the worktree: " + (result.said("stream") or "refused at launch: " + result.err))
        t.works(result.code == 125 or result.said("stream") in ("ok", "ECONNREFUSED"), "reached or refused at launch, never half", result)
    finally:
        server.close()
        shutil.rmtree(worktree + "/rt")
    worker = home.sh("./probe mknod rt-fifo p; python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"rt-sock\")'; echo done")
    t.works(worker.out.endswith("done\n") and home.sh("ls rt-*; rm rt-*").code == 0, "what an earlier session left does not stop the next", worker)


@promise("OS-MNT-12", "300 exposed paths and masks work, the 301st is refused with the count")
def _(t):
    home = Home()
    for i in range(301):
        write(home.home + "/many/%d/file" % i, str(i))
    home.configure(expose=["~/many/%d" % i for i in range(300)])
    result = home.run("cat", home.home + "/many/0/file", home.home + "/many/299/file")
    t.works(result.out == "0299", "300", result)
    home.configure(expose=["~/many/%d" % i for i in range(301)])
    result = home.run("true")
    t.works(result.code == 125 and "301" in result.err, "301 is refused with the count", result)
    for i in range(100):
        for name in CREDENTIAL_NAMES[:3]:
            write(home.home + "/masks/%d/%s" % (i, name), "secret")
    home.configure(expose=["~/masks"])
    result = home.run("true")
    t.works(result.code == 125 and "301" in result.err, "one path and 300 masks", result)
    shutil.rmtree(home.home + "/masks/99")
    result = home.run("cat", home.home + "/masks/98/credentials")
    t.works(result.code == 0 and result.out == "", "one path and 297 masks", result)


@wall("OS-EXP-02", "a protected directory reached as a bind alias, another case of a name, and by /proc")
def _(t):
    home = Home()
    write(home.home + "/.ssh/file", "secret")
    for entry in ("/proc/self/cwd", "/proc/%d/root" % os.getpid(), "/proc/self/root" + home.home + "/.ssh", "/proc", "/sys", "/dev", "/dev/shm",
                  "/run", "/run/user/%d" % os.getuid(), "/var/run", "/dev/fd/0", "/proc/thread-self/root", "//proc", "/usr/../proc/self"):
        home.configure(expose=[entry])
        result = home.run("cat", entry + home.home + "/.ssh/file")
        t.attack(result.code == 125 and "secret" not in result.out, "expose %s" % entry, result)
    write(home.home + "/.SSH/file", "other")
    t.works(allowed(home, home.home + "/.SSH").out == "other", "another case is another directory on Linux")
    # A bind alias of the protected directory, in a namespace of this user's own: same device and inode.
    os.makedirs(home.home + "/alias")
    script = ("mount --bind %s/.ssh %s/alias && exec setpriv --no-new-privs \"$@\"" % (home.home, home.home))
    home.configure(expose=["~/alias"])
    if home.host("unshare", "-Urm", "true").code == 0:
        aliased = home.kraft("run", "--", "cat", home.home + "/alias/file",
                             before=["unshare", "-m", "--user", "--map-root-user", "sh", "-c", script.replace("setpriv --no-new-privs", "unshare -U --map-user=%d --map-group=%d" % (os.getuid(), os.getgid())), "sh"])
        t.attack(aliased.code == 125 and "protected" in aliased.err and "secret" not in aliased.out, "a bind alias is refused on the opened descriptor", aliased)
        control = home.host("unshare", "-Urm", "sh", "-c", "mount --bind %s/.ssh %s/alias && cat %s/alias/file" % ((home.home,) * 3))
        t.control(control.out == "secret", "the alias shows the file", control)
    else:
        t.control(home.host("cat", "/proc/self/root" + home.home + "/.ssh/file").out == "secret", "the spelling leads there")


@wall("FS-07", "mounts that come and go below an exposed directory: the whole view read-only, or refused")
def _(t):
    home = Home()
    os.makedirs(home.home + "/shown/sub")
    write(home.home + "/shown/file", "shown\n")
    home.configure(expose=["~/shown"])
    if home.host("unshare", "-Urm", "true").code != 0:
        t.skip("this host allows no mount namespace in which mounts could come and go")
    # In a namespace of the test's own something mounts and unmounts while sessions start, as an automounter does.
    script = """
me="unshare -U --map-user=%d --map-group=%d"
( while [ ! -e "$1/stop" ]; do mount -t tmpfs none "$1/home/shown/sub" && echo x >"$1/home/shown/sub/f"; umount "$1/home/shown/sub"; done ) >/dev/null 2>&1 &
i=0
while [ $i -lt %d ]; do
    i=$((i+1))
    $me "$2" run -- sh -c 'cat $0/file; cat /proc/self/mountinfo; touch $0/sub/made && echo WRITABLE; echo end' "$1/home/shown"
    echo "code $?"
done
touch "$1/stop"; wait
""" % (os.getuid(), os.getgid(), full(40, 200))
    result = home.host("unshare", "-Urm", "sh", "-c", script, "sh", home.root, KRAFT, timeout=600)
    codes = re.findall(r"^code (\d+)", result.out, re.M)
    # Two at one place, of which the launch saw the second come: only the upper one can be reached.
    mounted = [m for launch in result.out.split("\nend\n")
               for m in {m["at"]: m for m in mount_table(launch)}.values() if m["at"].startswith(home.home + "/shown")]
    subs = [m for m in mounted if m["at"].endswith("/sub")]
    t.note("%d launches, %d with the mount in view, %d refused" % (len(codes), len(subs), len(codes) - codes.count("0") - codes.count("1")))
    t.attack("WRITABLE" not in result.out and not [m for m in mounted if "ro" not in m["options"]], "no submount is writable", result)
    t.works(result.out.count("shown\n") >= len(codes) // 2 and set(codes) <= {"0", "125"}, "sessions start", codes, result)
    control = home.host("unshare", "-Urm", "sh", "-c", "mount -t tmpfs none %s/shown/sub && touch %s/shown/sub/x" % (home.home, home.home))
    t.control(control.code == 0, "the mount itself is writable", control)


@wall("FS-06", "sessions start while other processes make and remove lock files in the shared git directory")
def _(t):
    home = Home()
    home.ok("true")
    stop = threading.Event()
    made = [0]

    def churn():
        places = [os.path.join(home.repo, ".git", p) for p in ("index.lock", "HEAD.lock", "refs/heads/x.lock", "packed-refs.lock", "config.lock",
                                                              "objects/tmp_obj", "worktrees/x.lock", "logs/refs/heads/y")]
        while not stop.is_set():
            for place in places:
                try:
                    os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
                    os.unlink(place)
                    made[0] += 1
                except OSError:
                    pass
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        failed = []
        for i in range(full(40, 500)):
            result = home.run("cat", "README", options=["--item", "item-%d" % (i % 8)])
            if result.out != "a sample\n":
                failed.append(result)
    finally:
        stop.set()
        thread.join()
    t.note("%d lock files came and went" % made[0])
    vanished = [r for r in failed if "No such file" in r.err or "vanished" in r.err]
    t.attack(not vanished, "no launch fails because an entry vanished", vanished[:2])
    t.works(len(failed) <= full(40, 500) // 4, "launches work, but for a worktree that cannot be made while git's own lock is held", failed[:2])
    t.control(made[0] > 100, "the churn was real")


@wall("FS-03", "the place of an overlay turned into a link or file by the worker in an earlier session")
def _(t):
    home = Home()
    home.ok("sh", "-c", "echo x >~/x")
    own, private = home.sandbox_home, home.private_git
    results = os.path.join(home.run_dir, "results")
    t.works(os.path.isdir(results), "results are kept")
    result = home.sh("rm -rf .git; ln -s /etc .git; mkdir -p .git/hooks; mv sub sub2; ln -s / sub; cd / && rm -rf '%s'; ln -s /etc '%s'" % (own, own))
    again = home.run("sh", "-c", "cat .git; echo $HOME; ls -A ~ | head -3; ls sub/ | head -40", options=["--keep"])
    t.attack(again.lines[:2] == ["gitdir: " + private, own] and not os.path.islink(own), ".git is still kraft's, HOME is a directory", result, again)
    t.attack("root" not in again.lines[2:], "the link in the worktree leads nowhere new", again)
    t.control("root" in os.listdir("/"), "on the host the link would show more")


if __name__ == "__main__":
    main()
