#!/usr/bin/env python3
"""What a Linux OS sandbox sees: the mounts (OS-MNT), and attempts to see or to change more (FS)."""
from kraftlive import *


def mounts(home, **more):
    return {m["at"]: m for m in mount_table(home.ok("cat", "/proc/self/mountinfo", **more).out)}


def try_write(home, *paths):
    """What opening for writing answers, path by path."""
    return home.probe("open", "w", *paths).table()


# ---- OS-MNT ----

@wall("OS-MNT-01", "/usr and /etc are there and cannot be written; the links /bin, /lib are as on the host")
def _(t):
    home = shared()
    table = mounts(home)
    t.works("/usr" in table and "/etc" in table, "/usr and /etc are mounts", table.keys())
    t.attack("ro" in table["/usr"]["options"] and "ro" in table["/etc"]["options"], "both are read-only", table)
    links = home.sh("for l in /bin /sbin /lib /lib64; do readlink $l || stat -c %F $l; done 2>/dev/null")
    there = home.host("sh", "-c", "for l in /bin /sbin /lib /lib64; do readlink $l || stat -c %F $l; done 2>/dev/null")
    t.works(links.out == there.out, "as the host has them", links, there)
    made = home.sh("touch /usr/kraft /etc/kraft; mkdir /usr/lib/kraft; touch /bin/kraft")
    t.attack(made.code != 0 and made.err.count("Read-only file system") == 4, "EROFS for each", made)
    bare = home.bare("sh", "-c", "touch sub/kraft-control && rm sub/kraft-control")
    t.control(bare.code == 0, "the same touch works on a writable mount", bare)


@wall("OS-MNT-02", "/proc and /dev are fresh: no process and no device of the host")
def _(t):
    home = shared()
    here = mark()
    process = subprocess.Popen([PROBE, "sleep", "30", here], stdout=subprocess.DEVNULL)
    try:
        look = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c -e %s" % here
        # The look itself holds the mark: as many as grep and sh show of themselves.
        own = home.sh("set -- '%s'; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '^%s$'" % ("x", here))
        t.attack(own.out.strip() == "0", "the host's process is not in /proc", own)
        t.control(home.host("sh", "-c", "tr '\\0' '\\n' </proc/%d/cmdline | grep -c '^%s$'" % (process.pid, here)).out.strip() == "1",
                  "the host sees it", look)
    finally:
        process.kill()
        process.wait()
    devices = set(home.ok("ls", "/dev").out.split())
    t.attack(not devices & {"vda", "sda", "mem", "kmsg", "kvm", "fuse", "vsock", "vhost-vsock", "net", "input"},
             "only the minimal devices", devices)
    t.works({"null", "zero", "full", "random", "urandom", "tty", "ptmx", "shm", "fd"} <= devices, "the usual ones", devices)
    t.works(home.sh("echo x >/dev/null && head -c4 /dev/urandom >/dev/null && [ $(head -c3 /dev/zero | wc -c) = 3 ]").code == 0,
            "they work")


@wall("OS-MNT-03 FS-19", "/tmp is empty, its own, and capped at 2 GiB; /dev/shm at 256 MiB; /var/tmp is /tmp")
def _(t):
    home = shared()
    size = home.ok("./probe", "statvfs", "/tmp", "/dev/shm", "/var/tmp")
    t.works(size.said("/tmp").split()[0] == str(2 << 30), "2 GiB", size)
    t.works(size.said("/dev/shm").split()[0] == str(256 << 20), "256 MiB", size)
    same = home.sh("echo x >/tmp/one && cat /var/tmp/one && touch /var/tmp/two && ls /tmp && stat -c %a /tmp")
    below = os.path.relpath(home.root, "/tmp").split("/")[0]  # TMPDIR may be /tmp: then the way to the worktree is there
    t.works([line for line in same.lines if line != below] == ["x", "one", "two", "1777"], "/var/tmp is /tmp, empty at the start, mode 1777", same)
    fill = home.probe("fill", "/dev/shm/x", str(300 << 20))
    t.attack(fill.out.split()[1:] == [str(256 << 20), "ENOSPC"], "/dev/shm ends at its cap", fill)
    outside = home.bare("./probe", "fill", "/dev/shm/x", str(300 << 20), without=["--size %d --tmpfs /dev/shm" % (256 << 20)])
    control = home.host(BWRAP, "--unshare-all", "--ro-bind", "/", "/", "--tmpfs", "/dev/shm", "--", PROBE, "fill", "/dev/shm/x",
                        str(300 << 20))
    t.control(control.out.split()[2:] == ["ok"], "without the cap there is room", control, outside)
    write(os.path.join("/tmp", "kraft-live-canary-" + USER), "canary")
    try:
        seen = set(home.sh("ls /tmp /var/tmp").out.split())
        t.attack(seen <= {"/tmp:", "/var/tmp:", below}, "the host's /tmp is not seen", seen)
    finally:
        os.unlink("/tmp/kraft-live-canary-" + USER)


@wall("OS-MNT-03 FS-19", "/tmp is full at 2 GiB, and the memory is back after the end")
def _(t):
    home = shared()
    if not ALL and int(re.search(r"MemAvailable:\s+(\d+)", read("/proc/meminfo")).group(1)) < 6 << 20:
        t.skip("less than 6 GiB of memory free; KRAFT_ALL=1 tries anyway")

    def shmem():
        return int(re.search(r"Shmem:\s+(\d+)", read("/proc/meminfo")).group(1))
    before = shmem()
    fill = home.probe("fill", "/tmp/x", str(3 << 30), timeout=180)
    t.attack(fill.out.split()[1:] == [str(2 << 30), "ENOSPC"], "ENOSPC at 2 GiB", fill)
    t.works(wait_for(lambda: shmem() < before + (256 << 10), 5), "memory is back within 5 s", before, shmem())
    t.works(home.probe("fill", "/tmp/x", str(64 << 20)).out.split()[2:] == ["ok"], "the next session has room")
    control = home.host_probe("fill", os.path.join(home.root, "big"), str(1 << 20))
    t.control(control.out.split()[2:] == ["ok"], "the same filling works elsewhere", control)


@wall("FS-21 OS-SEC-08", "the inodes of /tmp and /dev/shm are capped where the launcher can")
def _(t):
    home = shared()
    size = home.ok("./probe", "statvfs", "/tmp", "/dev/shm")
    tmp, shm = (int(size.said(p).split()[1]) for p in ("/tmp", "/dev/shm"))
    if tmp > 1 << 20 and home.host("unshare", "-rm", "true").code != 0:
        t.skip("this host lets no launcher make a namespace of its own, so inodes cannot be capped here")
    t.attack(0 < tmp <= 1 << 20 and 0 < shm <= 1 << 16, "the caps of the file systems", size)
    fill = home.probe("files", "/dev/shm", "70000", timeout=120)
    t.attack(int(fill.out.split()[1]) < 1 << 16 and fill.out.split()[2] == "ENOSPC", "/dev/shm stops at its inode cap", fill)
    count = full(20000, 5000000)
    fill = home.probe("files", "/tmp", str(count), timeout=900)
    t.works(int(fill.out.split()[1]) >= 20000, "as many as a build needs are fine", fill)
    if ALL:
        t.attack(int(fill.out.split()[1]) <= 1 << 20 and fill.out.split()[2] == "ENOSPC", "5 million files stop at the cap", fill)
    control = home.host(BWRAP, "--unshare-all", "--ro-bind", "/", "/", "--size", "1048576", "--tmpfs", "/tmp", "--", PROBE, "files",
                        "/tmp", "70000", timeout=120)
    t.control(control.out.split()[1:] == ["70000", "ok"], "a size cap alone does not stop files", control)


@wall("OS-MNT-04", "the worktree is read-write at its resolved path; the checkout is not in the view")
def _(t):
    home = shared()
    worktree = home.worktree
    t.works(worktree == os.path.realpath(worktree) and worktree.startswith(os.path.join(home.run_dir, "worktrees") + "/"),
            "below run/worktrees", worktree)
    t.works(home.sh("echo change >made-inside && mkdir d && mv made-inside d/ && cat d/made-inside").out == "change\n", "written")
    t.works(read(os.path.join(worktree, "d/made-inside")) == "change\n", "and seen on the host")
    look = home.run("./probe", "open", "r", os.path.join(home.repo, "README"), home.repo + "/.git/HEAD", home.repo + "/.git/config",
                    home.repo + "/.git/refs")
    t.attack(set(look.table().values()) == {"ENOENT"}, "the checkout is not there", look)
    way = home.sh("cd '%s' && find . -maxdepth 2; touch x .git/x" % home.repo)
    t.attack(way.lines == [".", "./.git", "./.git/objects"] and way.err.count("Read-only") == 2,
             "but the way to the objects that its commits stand on", way)
    t.control(set(home.host_probe("open", "r", os.path.join(home.repo, "README"), home.repo).table().values()) == {"ok"},
              "the host has it")
    t.works(not os.path.exists(os.path.join(home.repo, "d")), "the checkout is untouched")


@wall("OS-MNT-04 GIT-02", "the worktree's .git is kraft's own gitfile, read-only, whatever the worker tries")
def _(t):
    home = shared()
    own, there = home.private_git, read(os.path.join(home.worktree, ".git"))
    look = home.sh("stat -c %F .git; cat .git")
    t.attack(look.out == "regular file\ngitdir: %s\n" % own and own.startswith(home.run_dir + "/sandbox-git/"),
             ".git names the item's private git directory", look)
    change = home.sh("echo gitdir: /tmp >.git; rm -f .git; mv .git x; ln -sf /tmp .git; mount -t tmpfs x .git; umount .git")
    again = home.sh("cat .git; test -L .git || echo no link")
    t.attack(again.out == "gitdir: %s\nno link\n" % own and change.code != 0, "it cannot be replaced", change, again)
    t.works(read(os.path.join(home.worktree, ".git")) == there and there.startswith("gitdir: " + home.repo), "the host's own is as it was", there)
    t.control(home.bare("cat", home.worktree + "/.git", bind=[home.worktree]).out == there, "uncovered it shows where git lives on the host")


@wall("OS-MNT-05 FS-09 RES-01", "the session's own result file can be written; other items' results are not there")
def _(t):
    home = shared()
    a = home.ok("sh", "-c", "echo \"$KRAFT_RESULT_PATH\"; echo '{}' >\"$KRAFT_RESULT_PATH\" && echo written", options=["--item", "res-a"])
    path = a.lines[0]
    t.works(a.lines[1:] == ["written"] and path, "the result file is writable", a)
    t.works(read(path) == "{}\n", "and the host sees it", path)
    other = home.sh("cat '%s'; echo x >'%s'; ls \"$(dirname '%s')\"; ls \"$(dirname \"$(dirname '%s')\")\"" % ((path,) * 4),
                    options=["--item", "res-b"])
    t.attack("res-a" not in other.out and read(path) == "{}\n", "another item sees nothing of it", other)
    own = home.sh("cat '%s'" % path, options=["--item", "res-a"])
    t.works(own.out == "{}\n", "a later session of the same item reads it", own)
    change = home.sh("echo x >>'%s'; rm -f '%s'" % (path, path), options=["--item", "res-a"])
    t.attack(change.code != 0 and read(path) == "{}\n", "but cannot change it", change)
    t.control(home.host("sh", "-c", "cat '%s'" % path).out == "{}\n", "the host reads it")


@wall("OS-MNT-06 FS-10", "the session's own folder (log, exit file) is not mounted and cannot be found")
def _(t):
    home = shared()
    code = """
import os, sys
hits = []
for line in open('/proc/self/mountinfo'):
    at = line.split()[4]
    for top in (at, os.path.dirname(at)):
        for name in ('exit', 'log', 'started', 'session.json'):
            if top != '/' and not top.startswith(('/usr', '/etc', '/proc', '/dev', '/opt')) and os.path.lexists(os.path.join(top, name)):
                hits.append(os.path.join(top, name))
for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
    try:
        for fd in os.listdir('/proc/%s/fd' % pid):
            try:
                t = os.readlink('/proc/%s/fd/%s' % (pid, fd))
            except OSError:
                continue
            if '/sessions/' in t or t.endswith(('/log', '/exit')):
                hits.append('pid %s fd %s %s' % (pid, fd, t))
    except OSError:
        pass
run = sys.argv[1]
for top, dirs, files in os.walk(run):
    hits += [os.path.join(top, n) for n in dirs + files if n in ('sessions', 'logs', 'exit', 'log', 'session.json', 'started')]
print('\\n'.join(hits))
"""
    inside = home.py(code, home.run_dir)
    t.attack(inside.code == 0 and inside.out.strip() == "", "nothing of the folder is reachable", inside)
    folder = home.session_folders()
    t.works(folder and os.path.exists(os.path.join(folder[-1], "exit")), "the folder exists on the host", folder)
    t.control("exit" in home.host(PYTHON, "-IS", "-c", code, home.run_dir).out, "the same search finds it on the host")


@wall("OS-MNT-07", "HOME is the item's sandbox home, read-write, kept from session to session, and not the person's")
def _(t):
    home = shared()
    write(os.path.join(home.home, "canary"), "secret")
    first = home.ok("sh", "-c", "echo $HOME; cd && pwd && echo kept >kept && ls -A")
    path = first.lines[0]
    t.works(path.startswith(os.path.join(home.run_dir, "sandbox-home") + "/") and first.lines[1] == path, "its place", first)
    t.works(home.ok("sh", "-c", "cat ~/kept").out == "kept\n", "kept for the next session")
    t.attack("canary" not in first.out and home.sh("cat '%s/canary'" % home.home).code != 0, "not the person's", first)
    other = home.sh("ls -A ~", options=["--item", "other-home"])
    t.attack("kept" not in other.out, "another item has another", other)
    t.control(home.host("cat", home.home + "/canary").out == "secret", "the host reads the canary")


@wall("OS-MNT-08", "/opt/kraft/bin/kraft is there, runs, and is read-only; the channel's directory as well")
def _(t):
    home = shared()
    shim = home.sh("ls -l /opt/kraft/bin/kraft && command -v kraft && echo x >/opt/kraft/bin/kraft")
    t.works("/opt/kraft/bin/kraft" in shim.lines[-1], "first on PATH", shim)
    t.attack("Read-only file system" in shim.err, "it cannot be changed", shim)
    changed_dir = home.sh("touch /opt/kraft/bin/x; mv /opt/kraft/bin /opt/kraft/y; mv /opt/kraft /opt/z; rm -rf /opt/kraft")
    t.attack(changed_dir.code != 0 and home.sh("test -x /opt/kraft/bin/kraft").code == 0, "nor its directory", changed_dir)
    t.control(home.host("sh", "-c", "touch sub/x && mv sub/x sub/y && rm sub/y").code == 0, "the same commands work elsewhere")


@wall("OS-MNT-09 FS-17", "the init is there, static, read-only, also through its running executable")
def _(t):
    home = shared()
    seen = home.sh("head -c 4 /opt/kraft/init | od -An -c; readlink /proc/1/exe; cat /proc/1/comm")
    t.works("E   L   F" in seen.out, "an ELF program", seen)
    t.attack(home.probe("open", "w", "/opt/kraft/init").said("/opt/kraft/init") in ("EROFS", "ETXTBSY", "EACCES"), "not for writing")
    through = home.probe("open", "w", "/proc/1/exe").said("/proc/1/exe")
    t.attack(through in ("EROFS", "ETXTBSY", "EACCES", "EPERM"), "nor through /proc/1/exe", through)
    needed = home.host("sh", "-c", "readelf -d '%s' 2>/dev/null | grep -c NEEDED" % os.path.join(BUILD, "guest/opt/init"))
    t.works(needed.out.strip() in ("0", ""), "no library is needed", needed)
    t.control(home.host_probe("open", "w", home.repo + "/README").said(home.repo + "/README") == "ok", "open for writing works elsewhere")


@wall("OS-MNT-10", "a command's directory and the expose paths are mounted, read-only, at their own paths")
def _(t):
    home = Home()
    tool = write(os.path.join(home.home, "tools/one/tool"), "#!/bin/sh\necho tool runs; cat \"$(dirname \"$0\")/data\"\n", 0o755)
    write(os.path.join(home.home, "tools/one/data"), "data\n")
    write(os.path.join(home.home, "shown/file"), "shown\n")
    write(os.path.join(home.home, "hidden/file"), "hidden\n")
    home.configure(expose=["~/shown"])
    path = {"PATH": os.path.dirname(tool) + ":/usr/bin:/bin"}
    ran = home.run("tool", env=path)
    t.works(ran.out == "tool runs\ndata\n", "the command and what lies beside it", ran)
    t.works(home.ok("cat", home.home + "/shown/file").out == "shown\n", "the exposed path")
    look = home.probe("open", "r", home.home + "/hidden/file", home.home + "/tools/one/tool")
    t.attack(set(look.table().values()) == {"ENOENT"}, "a neighbour is not there, nor the tool when it is not asked for", look)
    t.attack(try_write(home, home.home + "/shown/file").popitem()[1] == "EROFS", "read-only")
    tamper = home.probe("tamper", home.home + "/shown/file")
    t.attack(tamper.lines and "ok" not in tamper.table().values(), "nothing changes it", tamper)
    t.control(home.host_probe("open", "w", home.home + "/shown/file").out.endswith(" ok\n"), "the host may write it")
    names = home.ok("find", home.home, "-maxdepth", "2", "-not", "-path", home.home + "/.kraft/*").lines
    ways = {os.path.join(home.home, n) for n in ("", "shown", "shown/file", ".kraft", "code", "code/" + os.path.basename(home.repo))}
    t.attack({os.path.join(n, "") if n == home.home else n for n in names} <= ways, "the home holds only the way to what is shown", names)


@wall("OS-MNT-11 FS-08", "nothing else of the host: each protected path is absent, by plain name, dot-dot and link")
def _(t):
    home = Home()
    protected = [".ssh", ".gnupg", ".config/gh", ".config/glab-cli", ".aws", ".kube", ".docker", ".claude", ".codex",
                 ".local/share/keyrings"]
    for name in protected:
        write(os.path.join(home.home, name, "secret"), "canary")
    places = [os.path.join(home.home, n, "secret") for n in protected]
    places += [os.path.join(home.config_dir, "repos.yaml"), home.config_dir, os.path.join(home.run_dir, "sessions"),
               home.home + "/code/sample/README", "/root", "/var/lib/dpkg", "/run/user", "/run/dbus", "/var/run/docker.sock",
               "/sys/kernel", "/boot", "/srv", "/mnt", "/media", "/opt/other", "/var/log", "/lost+found"]
    plain = home.probe("open", "r", *places).table()
    t.attack(set(plain.values()) == {"ENOENT"}, "ENOENT by name", {p: v for p, v in plain.items() if v != "ENOENT"})
    dotted = home.probe("open", "r", *("/usr/.." + p for p in places)).table()
    t.attack(set(dotted.values()) == {"ENOENT"}, "ENOENT through ..", {p: v for p, v in dotted.items() if v != "ENOENT"})
    script = "i=0; for p; do i=$((i+1)); ln -sf \"$p\" sub/l$i; cat sub/l$i; done 2>&1 | sort | uniq -c"
    linked = home.run("sh", "-c", script, "sh", *places)
    t.attack("canary" not in linked.out and linked.out.count("No such file") == len(places), "ENOENT through a link", linked)
    roots = home.py("""
import os
seen = set()
for line in open('/proc/self/mountinfo'):
    w = line.split()
    for top in (w[3], w[4]):
        for p in (top, os.path.dirname(top), top + '/..', top + '/../..', '/proc/1/root' + top, '/proc/self/root' + top):
            seen.add(p)
for p in sorted(seen):
    for name in ('.ssh', '.aws', '.gnupg', 'canary', 'config/repos.yaml'):
        if os.path.lexists(os.path.join(p, name)):
            print(os.path.join(p, name))
""")
    t.attack(roots.code == 0 and roots.out == "", "nor through any root of mountinfo", roots)
    t.control(home.host_probe("open", "r", *places[:len(protected)]).out.count(" ok\n") == len(protected), "the host opens each")
    t.works(home.ok("cat", "README").out == "a sample\n", "the worktree is there")


@wall("OS-MNT-11", "the mount table holds only what the ledger lists")
def _(t):
    home = shared()
    worktree = home.worktree
    sandbox_home = home.sandbox_home
    allowed = [r"/", r"/usr", r"/etc", r"/bin", r"/sbin", r"/lib", r"/lib64", r"/lib32", r"/libx32", r"/proc", r"/dev(/.*)?", r"/tmp",
               r"/var/tmp", re.escape(worktree) + r"(/.*)?", re.escape(sandbox_home), re.escape(home.run_dir) + r"/results/.*",
               re.escape(home.run_dir) + r"/sn/.*", r"/opt/kraft(/.*)?", r"/proc/.*"] + [re.escape(m) for m in home.git_mounts]
    if home.root.startswith("/tmp/"):  # what the host has below /tmp is shown below a sealed directory (FS-17)
        allowed.append(re.escape("/".join(home.root.split("/")[:3])))
    table = mount_table(home.ok("cat", "/proc/self/mountinfo").out)
    strange = [m for m in table if not any(re.fullmatch(p, m["at"]) for p in allowed)]
    t.attack(not strange, "no other mount", strange)
    writable = [m["at"] for m in table if "rw" in m["options"] and m["type"] not in ("proc", "devpts", "devtmpfs")]
    expected = {worktree, sandbox_home, "/tmp", "/dev/shm", "/var/tmp"} | home.git_mounts - home.git_read_only
    strange = [w for w in writable if w not in expected and "/results/" not in w and not re.fullmatch(r"/dev/(null|zero|full|random|urandom|tty|console|pts.*)", w)]
    t.attack(not strange, "only these are writable", strange)
    t.works(expected - {"/var/tmp"} <= set(writable), "and they are", writable)
    top = set(home.ok("ls", "-A", "/").out.split())
    t.attack(top <= {"bin", "sbin", "lib", "lib64", "lib32", "libx32", "usr", "etc", "proc", "dev", "tmp", "var", "opt"} | {worktree.split("/")[1]},
             "the top level", top)
    t.control(len(mount_table(home.host("cat", "/proc/self/mountinfo").out)) > 0 and "root" in os.listdir("/"), "the host has more")


@wall("OS-MNT-12 FS-12", "each credential name reads as empty at depth 0 to 3 of an exposed tree, and the host's stays")
def _(t):
    home = Home()
    places = []
    for depth in ("", "a/", "a/b/", "a/b/c/"):
        for name in CREDENTIAL_NAMES:
            places.append(write(os.path.join(home.home, "tree", depth + name), "secret of " + name))
    write(os.path.join(home.home, "tree/a/b/ordinary"), "ordinary\n")
    home.configure(expose=[home.home + "/tree"])
    before = tree_hash(home.home + "/tree")
    result = home.run("sh", "-c", "for p; do stat -c '%F %s' \"$p\"; cat \"$p\"; done", "sh", *places)
    t.attack(result.out.splitlines() == ["regular empty file 0"] * len(places) and result.code == 0, "an empty regular file each", result)
    t.works(home.ok("cat", home.home + "/tree/a/b/ordinary").out == "ordinary\n", "other files read as they are")
    over = home.run("sh", "-c", "for p; do echo x >\"$p\"; rm -f \"$p\"; mv \"$p\" \"$p.x\"; done", "sh", *places)
    t.attack(over.code != 0 and not changed(before, tree_hash(home.home + "/tree")), "host files are byte-identical afterwards", over)
    bare = home.bare("cat", *places, ro=[home.home + "/tree"])
    t.control(bare.out.count("secret of") == len(places), "without the masks they can be read", bare)


@wall("OS-MNT-12 FS-12", "the same in a command's directory and in the prefix above its bin/")
def _(t):
    home = Home()
    prefix = os.path.join(home.home, "opt/pack")
    write(prefix + "/bin/tool", "#!/bin/sh\nfor p; do stat -c '%F %s' \"$p\"; cat \"$p\"; done\n", 0o755)
    places = [write(os.path.join(prefix, d + n), "secret") for d in ("", "bin/", "lib/x/") for n in CREDENTIAL_NAMES]
    path = {"PATH": prefix + "/bin:/usr/bin:/bin"}
    result = home.run("tool", *places, env=path)
    t.attack(result.out.splitlines() == ["regular empty file 0"] * len(places), "empty", result)
    write(prefix + "/lib/x/other", "other")
    t.works(home.run("tool", prefix + "/lib/x/other", env=path).out.endswith("other"), "the rest reads as it is")
    t.control(home.bare("cat", *places, ro=[prefix]).out == "secret" * len(places), "without the masks they can be read")


@wall("FS-13", "a credential file behind a link, a mode 0000 one, one in a directory of the same name")
def _(t):
    home = Home()
    tree = home.home + "/tree"
    write(tree + "/deep/credentials", "secret")
    os.symlink("deep/credentials", tree + "/alias")
    os.symlink("credentials", tree + "/deep/other")
    write(tree + "/.npmrc/inside", "a directory of that name")
    write(home.home + "/elsewhere/real", "secret")
    os.symlink(home.home + "/elsewhere/real", tree + "/.netrc")
    home.configure(expose=[tree])
    result = home.sh("cat %s/alias %s/deep/other %s/deep/credentials; cat %s/.netrc" % (tree, tree, tree, tree))
    t.attack("secret" not in result.out, "reads empty through links", result)
    t.works(home.run("ls", tree + "/deep").out.split() == ["credentials", "other"], "the names are there")
    t.control(home.bare("cat", tree + "/alias", ro=[tree]).out == "secret", "without the mask the link shows it")
    for name, target in ((".pypirc", "plain-secret"), ("a/credentials.toml", "../plain-secret"), (".git-credentials", "deep/credentials")):
        os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
        os.symlink(target, os.path.join(tree, name))
    write(tree + "/plain-secret", "secret")
    named = home.sh("cd %s; cat .pypirc a/credentials.toml .git-credentials" % tree)
    t.attack(named.code == 0 and named.out == "", "a credential name that is a link to another name in the tree", named)
    os.link(tree + "/deep/credentials", tree + "/hard")
    hard = home.run("cat", tree + "/hard")
    t.note("a hard link under another name %s (documented limit)" % ("shows the content" if "secret" in hard.out else "reads empty"))


@wall("FS-05 FS-04", "a mask creates nothing on the host where the file is missing")
def _(t):
    home = Home()
    tree = home.home + "/tree"
    write(tree + "/a/b/file", "x")
    home.configure(expose=[tree])
    before = tree_hash(home.home + "/tree")
    seen = home.run("sh", "-c", "find %s; sleep 0.1" % tree)
    t.works(tree + "/a/b/file" in seen.out, "the tree is shown", seen)
    t.attack(not changed(before, tree_hash(tree)), "nothing was made", changed(before, tree_hash(tree)))
    t.attack(not any(n in seen.out for n in CREDENTIAL_NAMES), "nor does the worker see a placeholder", seen)
    made = home.host("sh", "-c", "touch %s/new" % tree)
    t.control(made.code == 0 and changed(before, tree_hash(tree)), "a new file would be noticed")


@wall("OS-MNT-13", "the CA files that the caller's CA variables name are shown read-only; one only in the repository's env is not")
def _(t):
    home = Home(env={"REQUESTS_CA_BUNDLE": "/nonexistent"})
    bundle = write(os.path.join(home.home, "ca/bundle.pem"), "-----BEGIN CERTIFICATE-----\n")
    write(os.path.join(home.home, "ca/neighbour"), "private")
    only = write(os.path.join(home.home, "own/ca.pem"), "own")
    os.makedirs(home.home + "/cadir")
    write(home.home + "/cadir/one.pem", "one")
    home.configure(env={"REQUESTS_CA_BUNDLE": only})
    env = {"SSL_CERT_FILE": bundle, "NODE_EXTRA_CA_CERTS": bundle, "CURL_CA_BUNDLE": home.home + "/missing.pem",
           "SSL_CERT_DIR": home.home + "/cadir", "GIT_SSL_CAINFO": home.home + "/.ssh/id"}
    write(home.home + "/.ssh/id", "key")
    result = home.sh("cat \"$SSL_CERT_FILE\"; cat \"$NODE_EXTRA_CA_CERTS\"; ls \"$SSL_CERT_DIR\"", env=env)
    t.works(result.out == "-----BEGIN CERTIFICATE-----\n" * 2 + "one.pem\n", "shown at their paths", result)
    look = home.probe("open", "r", home.home + "/ca/neighbour", only, home.home + "/.ssh/id", env=env).table()
    t.attack(set(look.values()) == {"ENOENT"}, "nothing beside them, not the repository's, not a protected one", look)
    t.attack(try_write(home, bundle).get(bundle) == "ENOENT", "not there when no variable names it")
    ro = home.probe("open", "w", bundle, env=env).table()
    t.attack(ro[bundle] == "EROFS", "read-only", ro)
    t.control(home.host_probe("open", "r", home.home + "/ca/neighbour", only).out.count(" ok") == 2, "the host reads them")


# ---- FS ----

@wall("FS-09", "another item's worktree, home, results and channel are not there while it runs")
def _(t):
    home = shared()
    here = mark()
    other = home.start("./probe", "sleep", "20", here, options=["--item", "secret-item"])
    try:
        t.works(wait_for(lambda: marked(here)), "the other item runs")
        find = home.sh("find / -name '*secret-item*' -not -path '/proc/*' 2>/dev/null; grep -c secret-item /proc/self/mountinfo")
        t.attack(find.out.strip() == "0", "no listing shows the other item's id", find)
        control = home.host("find", home.run_dir, "-name", "*secret-item*")
        t.control("secret-item" in control.out, "the same search on the host finds it", control)
    finally:
        other.kill()
        other.communicate()
    t.works(gone(here), "the other item ends with its kraft")


def planted(t, home):
    """A runtime's binds are neither nosuid nor nodev (docker has no words for it). What stands for that is shown by files that no
    worker could make: a root of the runtime's own, without kraft, puts them into the worktree."""
    def bare(*words, more=()):
        code, out, err = RUNTIME.call(*RUNTIME.bare(*words, image=home.image, mounts=[home.worktree], cwd=home.worktree, flags=more), ok=False)
        return Result(code, out.encode(), err.encode())

    def as_root(script):
        mount = "type=bind,src=%s,dst=/w" % home.worktree
        RUNTIME.call("run", "--rm", "--pull", "never", "--network", "none", "--user", "0:0", "--cap-add", "MKNOD", "--mount", mount, home.image,
                     "sh", "-c", "cd /w/sub && " + script)
    as_root("cp ../probe theirs && chown 5:5 theirs && chmod 6755 theirs")
    inside, outside = home.run("sub/theirs", "flags"), bare("sub/theirs", "flags")
    mine = "%d %d %d %d" % (os.getuid(), os.getuid(), os.getgid(), os.getgid())
    t.attack(inside.said("ids") == mine, "another user's setuid program gives nothing", inside)
    t.control(outside.said("ids") not in (None, mine), "without no_new_privs it does", outside)
    if RUNTIME.is_rootless:
        return  # its root makes no device node either, and the devices that a worker may open are those of its user
    device = next((d for d in ("/dev/loop-control", "/dev/fuse", "/dev/cpu_dma_latency", "/dev/vhost-net", "/dev/hwrng") if os.path.exists(d)), None)
    if not device:
        raise Failed("this machine has no device that a container does not get")
    number = os.stat(device).st_rdev
    as_root("mknod node c %d %d && chmod 0666 node" % (os.major(number), os.minor(number)))
    inside = home.probe("open", "rn", "sub/node")
    allowed = bare("./probe", "open", "rn", "sub/node", more=["--device-cgroup-rule", "c %d:%d rwm" % (os.major(number), os.minor(number))])
    t.attack(inside.out == "sub/node EPERM\n", "a device node that lies there opens for nobody: " + device, inside)
    t.control(allowed.out == "sub/node ok\n", "where the runtime is told to allow the device it opens", allowed)


@wall("FS-16 OS-SEC-06", "device nodes cannot be made anywhere; every writable mount is nodev and nosuid")
def _(t):
    home = shared()
    for place in ("node", "$HOME/node", "/tmp/node", "/dev/shm/node", "/dev/node"):
        for kind in ("c 1 3", "b 8 0"):
            made = home.sh("./probe mknod %s %s" % (place, kind))
            t.attack(made.out in ("mknod EPERM\n", "mknod EROFS\n", "mknod EACCES\n"), "mknod at " + place, made)
    flags = home.sh("./probe statvfs . $HOME /tmp /var/tmp /dev/shm \"$KRAFT_RESULT_PATH\"")
    for line in flags.lines:
        if not RUNTIME or line.split()[0] in ("/tmp", "/var/tmp", "/dev/shm"):
            t.attack(line.endswith(" rw nodev nosuid"), "flags", line)
    t.attack(len(flags.lines) == 6, "all six", flags)
    t.works(home.probe("mknod", "fifo", "p").out == "mknod ok\n" and home.sh("rm fifo").code == 0, "a FIFO is fine")
    extracted = home.py("""
import tarfile, io, os
t = tarfile.TarInfo('evil'); t.type = tarfile.CHRTYPE; t.devmajor = 1; t.devminor = 1; t.mode = 0o666
b = io.BytesIO(); f = tarfile.open(fileobj=b, mode='w'); f.addfile(t); f.close(); b.seek(0)
try:
    tarfile.open(fileobj=b).extractall('.')
except OSError as e:
    print('refused', e)
print(os.path.exists('evil') and __import__('stat').S_ISCHR(os.lstat('evil').st_mode))
""")
    t.attack("True" not in extracted.out, "nor by tar", extracted)
    linked = home.sh("ln /dev/null sub/null; ln /dev/zero /tmp/z; mv /dev/null /tmp/")
    t.attack(linked.code != 0, "nor by a hard link", linked)
    if RUNTIME:
        planted(t, home)
        return
    bare = home.bare("./probe", "statvfs", "/dev", "/tmp")
    t.control("nodev" in bare.out, "bubblewrap itself sets nodev, nosuid: the flags are read from the mount", bare)


@wall("FS-17", "no file outside worktree, home and /tmp changes, however it is tried; host files stay byte-identical")
def _(t):
    home = Home()
    tree = home.home + "/tools"
    write(tree + "/bin/tool", "#!/bin/sh\nexec \"$@\"\n", 0o755)
    write(tree + "/lib/data", "data")
    home.configure(expose=[tree])
    guest = os.path.join(BUILD, "guest/opt")
    before, guest_before = tree_hash(tree), tree_hash(guest)
    targets = [tree + "/bin/tool", tree + "/lib/data", "/opt/kraft/bin/kraft", "/opt/kraft/init", "/usr/bin/env", "/etc/passwd",
               "/usr/lib/os-release", "/etc/ld.so.cache"]
    for target in targets:
        result = home.probe("tamper", target)
        good = [k for k, v in result.table().items() if v == "ok"]
        t.attack(result.lines and not good, "tampering with " + target, good, result)
    moved = home.py("""
import os, sys
for a in sys.argv[1:]:
    for b in ('/tmp/moved', a + '.moved', os.path.basename(a)):
        try:
            os.rename(a, b); print('moved', a, b)
        except OSError: pass
    try:
        os.rmdir(a); print('removed', a)
    except OSError: pass
""", *([] if home.root.startswith("/tmp/") else [home.home, os.path.dirname(home.home)]), tree, tree + "/lib", "/opt", "/opt/kraft", "/usr", "/etc", "/home", home.worktree, "/var", "/tmp")
    t.attack(moved.code == 0 and moved.out == "" and home.run("cat", tree + "/lib/data").out == "data", "renaming a parent", moved)
    t.attack(not changed(before, tree_hash(tree)) and not changed(guest_before, tree_hash(guest)), "the host's files are as before")
    t.works(home.sh("echo x >f && mv f g && chmod 700 g && rm g").code == 0, "the worktree can be changed")
    write(home.repo + "/victim/file", "x")
    control = home.host_probe("tamper", home.repo + "/victim/file")
    t.control(control.said("open-write") == "ok" and control.said("rename") == "ok", "the same attempts succeed on a file of one's own", control)


@wall("FS-17", "no remount makes a read-only mount writable")
def _(t):
    home = shared()
    result = home.probe("mounts", "/tmp")
    t.attack(set(result.table().values()) == {"EPERM"}, "mount, bind, remount, umount, chroot: EPERM", result)
    again = home.sh("mount -o remount,rw / ; mount -o remount,rw,bind /usr; umount /etc; unshare -rm mount -t tmpfs x /tmp")
    t.attack(again.code != 0 and "Read-only" in home.sh("touch /usr/x").err, "nor the programs for it", again)
    t.works(home.sh("mount | head -1").out != "", "the table can be read")
    control = home.host("unshare", "-rm", PROBE, "mounts", "/mnt")
    t.control(control.said("mount-tmpfs") == "ok", "in a namespace of one's own they work", control)


@wall("FS-17", "O_TMPFILE with linkat, and open of a running executable, change nothing read-only")
def _(t):
    home = Home()
    tree = home.home + "/tools"
    write(tree + "/file", "x")
    home.configure(expose=[tree])
    for where in (tree, "/usr/lib", "/etc", "/opt/kraft/bin", "/", "/dev"):
        result = home.probe("otmpfile", where, where + "/made")
        t.attack(result.said("otmpfile") in ("EROFS", "EACCES", "EOPNOTSUPP"), "O_TMPFILE in " + where, result)
    from_worktree = home.probe("otmpfile", ".", tree + "/made")
    t.attack(from_worktree.said("linkat") in ("EROFS", "EXDEV"), "linked from the worktree", from_worktree)
    t.works(home.probe("otmpfile", ".", "made-here").said("linkat") == "ok", "in the worktree it works")
    t.attack(home.probe("open", "w", "/usr/bin/env", "/proc/self/exe").out.count(" ok") == 0, "running executables")
    t.control(home.host_probe("otmpfile", home.repo, home.repo + "/made").said("linkat") == "ok", "on the host it works")


@wall("FS-20 OS-SEC-06", "/ and /dev are read-only, and no undocumented file system takes data")
def _(t):
    home = shared()
    where = ["/x", "/dev/x", "/run/x", "/opt/x", "/opt/kraft/x", "/var/x", "/home/x", "/dev/pts/x", "/dev/mqueue/x", "/proc/x", "/sys/x", "/mnt/x"]
    if not home.root.startswith("/tmp/"):
        where.append(os.path.dirname(home.run_dir) + "/x")
    result = home.probe("open", "cw", *where).table()
    # In a container /run is small and in memory, and the message queues are its own, with the kernel's limit of bytes.
    small = ("/run/x", "/dev/mqueue/x") if RUNTIME else ()
    t.attack(not [p for p, v in result.items() if v == "ok" and p not in small] and result["/x"] == "EROFS" and result["/dev/x"] in ("EROFS", "EACCES" if RUNTIME else "EROFS"), "refused", result)
    code = """
import os
for line in open('/proc/self/mountinfo'):
    at = line.split()[4]
    try:
        p = os.path.join(at, 'kraft-made'); os.close(os.open(p, os.O_CREAT | os.O_WRONLY)); os.unlink(p); print(at)
    except OSError: pass
"""
    found = set(home.py(code).out.split())
    worktree, own = home.worktree, home.sandbox_home
    git = home.git_mounts - home.git_read_only
    if RUNTIME:
        found -= {os.path.dirname(p) for p in small}
    t.attack(found <= {worktree, own, "/tmp", "/var/tmp", "/dev/shm"} | git, "no other mount takes a file", found)
    t.works({worktree, own, "/tmp", "/dev/shm"} <= found, "these do", found)
    open_root = home.weaker("./probe", "open", "cw", "/x", drop=[["--remount-ro", "/"]], more=["--user", "0:0"])
    if open_root.code == 0 and open_root.said("/x") == "ok":
        t.control(True, "without the remount / takes files")
    else:
        bare = home.bare("./probe", "open", "cw", "/x", without=["--remount-ro /"])
        t.control(bare.said("/x") == "ok", "without the remount / of a bare sandbox takes files", bare, open_root)


@wall("FS-18", "what kraft uses at a later launch lies where no worker can write")
def _(t):
    home = shared()
    log = os.path.join(home.root, "options.json")
    home.ok("true", env={"KRAFT_BWRAP": home.wrapper(log=log)})
    options = json.loads(read(log))["options"]
    worktree, own = home.worktree, home.sandbox_home
    named = [o for o in options if o[0] in ("--file", "--bind-data", "--ro-bind-data", "--seccomp", "--args")]
    t.works(any(o[0] == "--seccomp" for o in named), "the filter is handed over by descriptor", named)
    writable = home.py("""
import os, stat
for top in ('.', os.environ['HOME'], '/tmp', '/dev/shm'):
    for d, ds, fs in os.walk(top):
        for n in fs:  # the channel's socket is there to be connected to
            if os.access(os.path.join(d, n), os.W_OK) and not stat.S_ISSOCK(os.lstat(os.path.join(d, n)).st_mode):
                print(os.path.realpath(os.path.join(d, n)))
""").out.split("\n")
    private = home.private_git
    kraft_own = [w for w in writable if w and not w.startswith((worktree + "/", own + "/", private + "/", home.run_dir + "/results/"))]
    t.attack(kraft_own == [], "no file of kraft's in a place the worker writes", kraft_own)
    git_of = {n: read(os.path.join(private, n)) for n in ("config", "HEAD", "packed-refs", "info/exclude", "objects/info/alternates")}
    home.ok("sh", "-c", "find . $HOME /tmp '%s' -type f -writable -not -name probe -not -name .git -not -name HEAD "
                        "-exec sh -c 'echo junk >\"$1\"' sh {} \\;" % private)
    t.works(read(os.path.join(private, "config")) == "junk\n", "the private git directory is the worker's")
    t.works(home.ok("git", "rev-parse", "HEAD").out == home.ok("git", "rev-parse", "HEAD").out, "git works again")
    t.attack({n: read(os.path.join(private, n)) for n in git_of} == git_of, "and kraft made each of its files anew", git_of)
    t.works(home.ok("./probe", "flags").said("seccomp") == "2", "after a hostile session the next has its filter")
    t.control(home.host_probe("flags").said("seccomp") == "0", "the host has none")


@wall("FS-22", "hostile names in the worktree are data")
def _(t):
    home = Home()
    names = [b"new\nline", b"\x1b[31mred", b"\xff\xfe", b"-rf", b"--help", b":(top)x", b"n" * 255, b" lead", b"trail ", b"$(touch pwned)", b"'", b'"']
    code = "import os,sys\nfor n in %r: os.close(os.open(b'sub/'+n, os.O_CREAT|os.O_WRONLY)); os.mkdir(b'sub/d'+n[:200])" % names
    made = home.py(code)
    t.works(made.code == 0, "they can be made", made)
    again = home.run("ls", "-A", "sub")
    t.works(again.code == 0, "the next session starts", again)
    t.attack(not os.path.exists(home.worktree + "/pwned") and b"\x1b[31m" not in again.raw_err, "nothing was run, nothing reaches our terminal raw", again)
    expose = home.home + "/x\ny --bind / /"
    write(expose + "/--ro-bind", "data\n")
    home.configure(expose=[expose])
    shown = home.run("cat", expose + "/--ro-bind")
    t.works(shown.out == "data\n" or "control" in shown.err or "newline" in shown.err, "an exposed path with a newline is data or refused", shown)
    t.attack(home.probe("open", "r", "/root", home.home + "/.ssh").out.count(" ok") == 0, "and opens nothing more")
    t.control(os.path.exists(expose + "/--ro-bind"), "the file exists on the host")


@wall("FS-02 LIFE-18", "a link planted in the sandbox home or worktree leads nowhere in the next session")
def _(t):
    home = Home()
    target = home.home + "/target"
    write(target + "/file", "host")
    before = tree_hash(target)
    home.ok("sh", "-c", "cd; rm -rf .config .cache; ln -s %s .config; ln -s %s .cache; ln -s %s .local; ln -s %s/new .npm; cd -; ln -s %s link"
            % ((target,) * 5))
    after = home.run("sh", "-c", "ls ~/.config/ link/; echo x >~/.cache/made; echo y >link/made; true")
    t.attack("file" not in after.out and not changed(before, tree_hash(target)), "no link is followed out", after)
    t.works(home.sh("readlink ~/.config").out.strip() == target, "the link itself is the worker's to make")
    t.control(home.host("cat", os.path.join(home.worktree, "link/file")).out == "host", "on the host the link leads there")


if __name__ == "__main__":
    main()
