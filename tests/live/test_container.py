#!/usr/bin/env python3
"""`kind: docker` from inside and from outside: the group CTR of the security cases, on every runtime that is here."""
# kraft-test: timeout 1500
import itertools
import random

from containerlive import *

CONNECTED_SOCKETS = r"""
import os, stat, sys
for top, dirs, files in os.walk('/'):
    dirs[:] = [d for d in dirs if (top, d) != ('/', 'proc')]
    for name in files:
        path = os.path.join(top, name)
        try:
            if stat.S_ISSOCK(os.lstat(path).st_mode): print(path)
        except OSError: pass
"""
PLACES = ("/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock", "/run/crio/crio.sock")


@each(wall, "CTR-01", "the engine's socket and API are not inside")
def _(t, runtime):
    home = Box(runtime)
    socket = (runtime.env.get("DOCKER_HOST") or runtime.env.get("CONTAINER_HOST") or "unix://" + runtime.env.get("XDG_RUNTIME_DIR", "") + "/podman.sock")[len("unix://"):]
    for place in PLACES + (socket,):
        tried = home.probe("unix", place)
        t.attack(tried.said("stream") in ("ENOENT", "ENOTDIR"), place, tried)
    found = home.py(CONNECTED_SOCKETS)
    t.attack(all(line.endswith("/s.sock") and line.startswith(home.run_dir) for line in found.lines) and found.code == 0, "no socket but the channel's", found)
    names = home.sh("env | cut -d= -f1")
    t.attack(not {"DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "CONTAINERS_CONF"} & set(names.lines), "nor is it named", names)
    t.works(found.lines, "the channel's is there", found)
    bare = home.bare_run("./probe", "unix", socket, mounts=[home.repo, socket], cwd=home.repo)
    t.control(bare.said("stream") == "ok", "a container that is shown the socket connects", bare)


MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware", "/proc/acpi")
READ_ONLY = ("/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/bus", "/proc/fs", "/sys/kernel/mm/transparent_hugepage/enabled")
STATUS = "for p in /proc/[0-9]*; do grep -E '^(Cap|NoNewPrivs|Seccomp:)' $p/status; done | sort | uniq -c"
LOOK = r"""
import os
for p in %r:
    try: print('masked', p, len(os.listdir(p)) if os.path.isdir(p) else len(open(p, 'rb').read(64)))
    except OSError as e: print('masked', p, 0)
for p in %r:
    try:
        os.close(os.open(p if not os.path.isdir(p) else p + '/kraft', os.O_WRONLY | (os.O_CREAT if os.path.isdir(p) else 0)))
        print('written', p)
    except OSError: pass
""" % (MASKED, READ_ONLY)


@each(wall, "CTR-02 CTR-01", "no capability, no new privileges, a filter, default devices, masked paths; in every process", on=EVERYWHERE)
def _(t, runtime):
    home = Box(runtime)
    status = home.sh(STATUS)
    values = {line.split()[1]: set() for line in status.lines}
    for line in status.lines:
        values[line.split()[1]].add(line.split()[2])
    t.attack(all(values[k + ":"] == {"0" * 16} for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), "every set is empty", status)
    t.attack(values["NoNewPrivs:"] == {"1"} and values["Seccomp:"] == {"2"}, "no new privileges, a filter", status)
    devices = home.sh("find /dev -type b -o -type c | sort")
    t.attack(set(devices.lines) <= {"/dev/" + n for n in ("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts/ptmx", "pts/0")}, "the default devices", devices)
    made = home.py("import os\nfor n, d in (('mem', (1, 1)), ('disk', os.makedev(8, 0))):\n    try: os.mknod('/tmp/' + n, 0o60600, os.makedev(*d) if isinstance(d, tuple) else d); print('made', n)\n    except OSError as e: print(n, e.strerror)")
    t.attack("made" not in made.out and len(made.lines) == 2, "no device can be made", made)
    looked = home.py(LOOK)
    t.attack(looked.code == 0 and all(line.endswith(" 0") for line in looked.lines), "masked paths read as empty, and read-only ones stay", looked)
    roots = home.sh("touch /usr/x /etc/x /opt/x /x 2>&1; ls -d /usr/x /etc/x /opt/x /x 2>/dev/null")
    t.attack(roots.err == "" and roots.out.count("Read-only file system") == 4, "the image itself is read-only", roots)
    t.works(home.sh("(true) && echo x >/tmp/x && echo fine >/dev/null && cat /tmp/x").out == "x\n", "and work can be done")
    bare = home.bare_run("sh", "-c", STATUS)
    t.control("0" * 16 not in [line.split()[2] for line in bare.lines if "CapBnd" in line] and re.search(r"NoNewPrivs:\s+0", bare.out), "a bare run of the image has them", bare)
    t.control(home.bare_run("touch", "/tmp/x").code == 0, "and writes to the image")
    if not runtime.is_rootless:
        unmasked = "systempaths=unconfined" if runtime.is_docker else "unmask=ALL"
        open_one = home.bare_run("python3", "-c", LOOK, flags=["--security-opt", unmasked, "--user", "0:0"])
        t.control("written" in open_one.out and " 64" in open_one.out, "one that is shown them reads and writes", open_one)


@each(wall, "FS-19 FS-21 CTR-02", "/tmp, /var/tmp and /dev/shm are in memory, of their size, and nothing else takes data")
def _(t, runtime):
    home = Box(runtime)
    size = home.probe("statvfs", "/tmp", "/dev/shm")
    t.attack(size.said("/tmp").split()[0] == str(2 << 30) and size.said("/dev/shm").split()[0] == str(256 << 20), "their sizes", size)
    fill = home.probe("fill", "/dev/shm/x", str(300 << 20))
    t.attack(fill.out.split()[1:] == [str(256 << 20), "ENOSPC"], "/dev/shm ends at its size", fill)
    if runtime.is_docker:  # podman has no words for it
        t.attack(0 < int(size.said("/tmp").split()[1]) <= 1 << 20 and 0 < int(size.said("/dev/shm").split()[1]) <= 1 << 16, "and have so many files at most", size)
    found = home.py("""
import os
for line in open('/proc/self/mountinfo'):
    at = line.split()[4]
    try:
        p = os.path.join(at, 'kraft-made'); os.close(os.open(p, os.O_CREAT | os.O_WRONLY)); os.unlink(p); print(at, os.statvfs(at).f_blocks * os.statvfs(at).f_frsize)
    except OSError: pass
""")
    known = {home.worktree, home.sandbox_home, "/tmp", "/var/tmp", "/dev/shm"} | home.git_mounts
    more = [line for line in found.lines if line.rpartition(" ")[0] not in known]
    t.attack(found.code == 0 and all(int(line.rpartition(" ")[2]) <= 64 << 20 for line in more), "another place that takes a file is small, and in memory", more)
    programs = home.sh("cp /bin/true /tmp/t && /tmp/t && mkdir -p /tmp/a/b && echo fine")
    t.works(programs.out == "fine\n", "a build's programs run in /tmp", programs)
    bare = home.bare_run("./probe", "fill", "/tmp/x", str(300 << 20), mounts=[home.repo], cwd=home.repo)
    t.control(bare.out.split()[2:] == ["ok"], "a bare run's /tmp is the image's, on the disk", bare)


def host_state():
    """What a mount that lands on the host would change: mounts, and names and bytes of /etc."""
    etc = {}
    for name in sorted(os.listdir("/etc")):
        info = os.lstat("/etc/" + name)
        etc[name] = (info.st_mode, info.st_uid, info.st_size, info.st_mtime_ns)
    places = ("/etc", "/bin", "/usr", "/opt", "/dev", "/proc", "/sys")
    return sorted(m["at"] for m in mount_table(read("/proc/self/mountinfo")) if m["at"].startswith(places)), etc


def host_changes(before):
    """(mounts, names in /etc) that came, went or are others."""
    after = host_state()
    return sorted(set(before[0]) ^ set(after[0])), sorted(n for n in set(before[1]) | set(after[1]) if before[1].get(n) != after[1].get(n))


HOSTILE = ("shm", "dev", "opt", "kraft", "init", "tmp", "var", "run", "etc-kraft", "proc", "sys")


@each(wall, "CTR-03", "an image with links in the places that kraft mounts over: they land inside of it, or the launch is refused", on=EVERYWHERE)
def _(t, runtime):
    ran = {}
    for name in HOSTILE:
        home = Box(runtime, image="hostile-" + name)
        before = host_state()
        result = home.sh("echo inside; ls -ld /opt/kraft/init /tmp /dev/shm; echo x >/tmp/x; echo x >/dev/shm/x; echo x >made; exec readlink /proc/1/exe")
        mounts, names = host_changes(before)
        known = {"ptmx"} if names and (runtime.name, name) == (PODMAN, "dev") else set()
        t.attack(not mounts and set(names) <= known, "'%s': nothing of the host changes" % name, result, mounts, names)
        if known:  # runc 1.1 makes /dev/ptmx through the image's link, whoever starts it: SECURITY.md
            before = host_state()
            home.bare_run("true")
            t.control(host_changes(before) == ([], ["ptmx"]), "a bare run does it too", host_changes(before))
        clean = result.code == 125 and "kraft: " in result.err and result.out == ""
        t.attack(clean or result.out.startswith("inside\n"), "'%s': it runs, or is refused with a word" % name, result)
        if not clean:
            t.attack(read(home.tree(os.listdir(home.run_dir + "/sandbox-home")[0]) + "/made") == "x\n", "'%s': and then the worktree is ours" % name, result)
            t.attack(re.search(r"^tmpfs (/tmp|/etc) tmpfs", home.sh("cat /proc/mounts").out, re.M), "'%s': with its own /tmp" % name)
        ran[name] = "refused" if clean else "runs"
        t.attack(home.empty(), "'%s': no container is left" % name, home.containers())
        shown = home.bare_run("ls", "-ld", "/" + {"shm": "dev/shm", "etc-kraft": "etc/kraft", "kraft": "opt/kraft", "init": "opt/kraft/init"}.get(name, name))
        if name not in ("dev", "shm", "proc", "sys", "tmp", "run", "var"):  # over these a bare run mounts too
            t.control("->" in shown.out, "'%s': the image has the link" % name, shown)
    t.note("%s: %s" % (runtime.name, ", ".join("%s %s" % pair for pair in sorted(ran.items()))))
    t.works(Box(runtime, image="busybox").sh("echo fine").out == "fine\n", "the same image without links")


@each(wall, "CTR-04", "no configuration joins a network namespace of the host's or of another container's")
def _(t, runtime):
    home = Box(runtime)
    for sandbox in ({"network": "host"}, {"network": "container:other"}, {"network": ["host"]}, {"network_mode": "host"}, {"net": "host"},
                    {"resources": {"network": "host"}}, {"network": {"mode": "host"}}, {"pid": "host"}, {"privileged": True}, {"volumes": ["/:/host"]},
                    {"expose": ["/opt"]}, {"runtime": "docker"}, {"kit": "x"}):
        home.configure(sandbox=sandbox)
        result = home.run("true")
        t.attack(result.code != 0 and "kraft: " in result.err and list(sandbox)[0] in result.err, "%r does not load" % sandbox, result)
    for image in ("--network=host", "--privileged", "-v/:/host", ""):
        home.configure(sandbox={"image": image})
        result = home.run("true")
        t.attack(result.code == 125 or "image" in result.err and result.code != 0, "the image '%s'" % image, result)
    home.configure()
    if not runtime.is_docker and "CONTAINERS_CONF" in runtime.env:
        text = read(runtime.env["CONTAINERS_CONF"]).replace("[containers]", '[containers]\nnetns = "host"\nipcns = "host"\npidns = "host"', 1)
        home.extra_env = {"CONTAINERS_CONF": write(home.root + "/containers.conf", text)}
    kinds = ("net", "ipc", "pid", "mnt")
    inside = home.sh("for n in %s; do readlink /proc/self/ns/$n; done" % " ".join(kinds))
    own = [os.readlink("/proc/self/ns/" + n) for n in kinds]
    t.attack(len(inside.lines) == 4 and not set(own) & set(inside.lines), "each namespace is its own, whatever the runtime's configuration says", inside, own)
    t.works(inside.code == 0, "it runs", inside)
    bare = home.bare_run("readlink", "/proc/self/ns/net", network="host")
    t.control(bare.out.strip() == os.readlink("/proc/self/ns/net") or runtime.name == PODMAN, "a bare run can", bare)


def client_of(process):
    """The runtime's CLI below a kraft, while it runs."""
    return next((p for p in children(process.pid) if os.path.basename(command_of(p)[0]) in (b"docker", b"podman")), None)


@each(wall, "CTR-05 LIFE-02", "kraft, launcher, client and way out killed in every order: no container is left, and no other home's ends", on=EVERYWHERE)
def _(t, runtime):
    other = Box(runtime)
    theirs, _ = other.sleeping()
    stays = other.containers()
    home = Box(runtime)
    home.ok("true")
    try:
        orders = list(itertools.permutations(("kraft", "launcher", "egress")))
        for order in orders if ALL else orders[::2]:
            process, here = home.sleeping()
            launcher = launcher_of(process)
            pids = {"kraft": process.pid, "launcher": launcher, "egress": next((p for p in children(process.pid) if b"egress" in command_of(p)[0]), None)}
            for who in order:
                with contextlib.suppress(ProcessLookupError, TypeError):
                    os.kill(pids[who], signal.SIGKILL)
            process.communicate()
            t.attack(gone(here, 10), "%s: nothing of it runs" % (order,))
            t.attack(home.empty(), "%s: and no container is left" % (order,), home.containers())
        for delay in [random.uniform(0, 1.2) for _ in range(full(6, 40))]:
            here = mark()
            process = home.start("sleep", "300", here)
            time.sleep(delay)
            victim = client_of(process) if random.random() < 0.5 else None
            os.kill(victim or process.pid, signal.SIGKILL)
            process.kill()
            process.communicate()
            t.attack(gone(here, 20), "killed after %.2f s: nothing of it runs" % delay)
        t.works(home.run("true").code == 0, "the next one starts")
        t.attack(home.empty(), "and what was left is gone", home.containers())
        left = os.path.join(home.run_dir, "sandbox-client")
        t.attack(not os.path.isdir(left) or wait_for(lambda: not os.listdir(left), 5), "with its folders", os.path.isdir(left) and os.listdir(left))
        t.attack(other.containers() == stays and theirs.poll() is None, "the other home's goes on", other.containers())
    finally:
        end(theirs)
    t.works(other.empty(), "until it is ended itself", other.containers())
    # As a launch that was killed between the making of its container and its start leaves it.
    session = os.path.basename(home.session_folders()[-1])
    os.makedirs("%s/sandbox-client/kraft-%s" % (home.run_dir, session), 0o700)
    aside = mark()
    runtime.call("create", "--name", "kraft-" + session, "--label", "kraft.home=" + home.kraft_home, "--label", "kraft.session=" + session, "--network", "none", home.image, "true")
    runtime.call("create", "--name", aside, "--label", "kraft.home=" + home.kraft_home + "2", "--label", "kraft.session=" + session, "--network", "none", home.image, "true")
    try:
        t.control(len(home.containers()) == 1, "one that was left is seen")
        home.serve()
        t.attack(home.empty(20), "a server's start takes it away", home.containers())
        t.attack(runtime.containers(home.kraft_home + "2") == [aside], "and not one of a home with a longer name")
    finally:
        home.kill_server()
        runtime.call("rm", "-f", aside, ok=False)


@each(wall, "CTR-05 LIFE-02", "the server, the item's host and the launcher killed in every order: the item goes on, one container at a time, none is left")
def _(t, runtime):
    home = Box(runtime, test_command="true")
    home.chain("c", node("work", task("it", "sh -c 'test -e $HOME/second || { touch $HOME/second; echo up; exec sleep 300; }; echo done'")), GATE)
    orders = list(itertools.permutations(("server", "host", "launcher")))
    for order in orders if ALL else orders[1::3]:
        home.serve()
        item = home.create("Killed in order", "--chain", "c", "--autostart")
        t.works(wait_for(home.containers, 30, 0.1), "%s: it runs" % (order,), home.show(item))
        wait_for(lambda: os.path.exists("%s/sandbox-home/%s/second" % (home.run_dir, item)), 20)
        host = host_of(home, item)
        pids = {"server": home.server, "host": host, "launcher": next((p for p in children(host) if command_of(p)[1:2] == [b"launch"]), None)}
        for who in order:
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(pids[who], signal.SIGKILL)
        home.kill_server()
        home.serve()
        t.attack(home.becomes(item, "needs you", seconds=60), "%s: it comes to its stop" % (order,), home.show(item))
        t.attack(home.empty(), "%s: nothing is left" % (order,), home.containers())
        home.kill_server()
    t.control(True, "as the first look says, there was one")


CPU = r"""
import os, time, multiprocessing
def burn():
    end = time.monotonic() + 2
    while time.monotonic() < end: pass
them = [multiprocessing.Process(target=burn) for _ in range(2)]
[p.start() for p in them]; [p.join() for p in them]
print(round(sum(os.times()[2:4]), 2))
"""
FORK = r"""
import os, signal
made = []
try:
    while len(made) < 200:
        pid = os.fork()
        if not pid: signal.pause()
        made.append(pid)
except OSError as e: print(e.strerror)
print(len(made))
[os.kill(p, 9) for p in made]
"""
HUNGRY = "b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('had it')"


def cgroup_files(pid):
    """What its control groups say, by file name: cgroup v1 beside v2."""
    found = {}
    for line in read("/proc/%d/cgroup" % pid).splitlines():
        _, controllers, path = line.split(":", 2)
        top = "/sys/fs/cgroup/" + controllers + path if controllers else "/sys/fs/cgroup" + path
        for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max", "memory.max", "memory.swap.max", "cpu.max"):
            with contextlib.suppress(OSError):
                found[name] = read(top + "/" + name).strip()
    return found


@each(wall, "CTR-06 LIM-01 LIM-02", "cpu, memory and processes end at their limits; the kill by memory is told by its name", on=(DOCKER, PODMAN))
def _(t, runtime):
    home = Box(runtime, sandbox={"resources": {"cpu": 0.5, "memory": "64m", "pids": 50}})
    process, here = home.sleeping()
    try:
        told = home.runtime.inspect(home.running())["HostConfig"]
        t.works((told["NanoCpus"] or told.get("CpuQuota", 0) * 10000, told["Memory"], told["PidsLimit"]) == (500000000, 64 << 20, 50), "the runtime was told", told)
        t.works(told["MemorySwap"] in (64 << 20, 0, -1) and (told["MemorySwap"] == 64 << 20 or not os.path.exists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")), "swap is held to the same", told["MemorySwap"])
        inforce = cgroup_files(max(marked(here)))
        t.attack(inforce.get("cpu.cfs_quota_us", "").isdigit() and int(inforce["cpu.cfs_quota_us"]) * 2 == int(inforce["cpu.cfs_period_us"]) or inforce.get("cpu.max", "").split()[:1] == ["50000"], "half of a processor", inforce)
        t.attack("50" == inforce.get("pids.max") and str(64 << 20) in (inforce.get("memory.limit_in_bytes"), inforce.get("memory.max")), "and it is in force", inforce)
    finally:
        end(process)
    burnt = home.py(CPU, timeout=60)
    t.attack(burnt.code == 0 and float(burnt.out) < 1.6, "two busy ones get half of one processor: about 1 s of 2", burnt)
    forked = home.py(FORK)
    t.attack(forked.code == 0 and int(forked.lines[-1]) < 50 and len(forked.lines) == 2, "processes end at the limit", forked)
    killed = home.py(HUNGRY)
    t.attack(killed.code == 137 and "had it" not in killed.out and "memory" in killed.err, "memory too, with a word", killed)
    events = home.session_events("sandbox_oom_killed")
    t.attack(len(events) == 1 and events[0]["data"].get("confirmed") is True, "and an event", events)
    t.works(home.py("print(len(bytearray(1 << 20)))").code == 0, "the next session is well")
    free = Box(runtime, sandbox={"resources": {}})
    t.control("had it" in free.py(HUNGRY).out, "without a limit it has it")
    t.control(free.py(FORK).out.strip() == "200", "and its processes")
    t.note("two busy ones without a limit had %s s of 2, beside what this machine did else" % free.py(CPU, timeout=60).out.strip())
    process, here = free.sleeping()
    try:
        inforce = cgroup_files(max(marked(here)))
        t.works(inforce.get("pids.max") == "4096", "4096 processes are the default", inforce)
        t.control(inforce.get("cpu.cfs_quota_us") == "-1" or inforce.get("cpu.max", "").startswith("max"), "and no processor's share is", inforce)
    finally:
        end(process)


@each(wall, "LIM-01 CTR-06", "a limit that rootless podman cannot enforce on cgroup v1 refuses the launch, by its name", on=(ROOTLESS,))
def _(t, runtime):
    enforced = not cgroup_v1()
    home = Box(runtime)
    for key, value in (("cpu", 0.5), ("memory", "64m"), ("pids", 50)):
        home.configure(sandbox={"resources": {key: value}})
        result = home.py("import os\n" + {"cpu": CPU, "memory": HUNGRY, "pids": FORK}[key])
        if enforced:
            t.attack({"cpu": result.code == 0 and float(result.lines[-1] if result.lines else 9) < 1.6, "memory": result.code == 137, "pids": result.lines[0:1] != ["200"]}[key], key, result)
        else:
            refused(t, result, key, what="'%s' is refused by name" % key)
            t.attack(home.empty(), "and nothing was started", home.containers())
    home.configure(sandbox={"resources": {}})
    t.works(home.run("echo", "x").code == 0, "without a limit it runs")
    home.configure()
    t.works(home.run("echo", "x").code == 0, "so it does without the key: the default of pids is only where it can be enforced")
    bare = home.bare_run("echo", "x", flags=["--memory", "64m"])
    t.control(enforced or bare.code == 0, "podman by itself only warns, and drops it", bare)


@each(wall, "CTR-07 CTR-01", "what is written is the person's, setuid files have no other owner, and archive takes all of it", on=EVERYWHERE)
def _(t, runtime):
    home = Box(runtime, test_command="true")
    home.chain("c", node("work", task("it", "sh -c 'mkdir -p deep/er $HOME/own; echo x >deep/er/file; cp /usr/bin/env deep/suid; chmod 6755 deep/suid; echo x >$HOME/own/file; chmod 700 $HOME/own; chmod 000 deep/er/file; ./deep/suid id -u >who; git add who; git commit -qm who'")), GATE)
    item = home.create("Own it", "--chain", "c")
    started = home.kraft("item", "start", item)
    t.works(home.status(item)[0] == "needs you", "it ran", started, home.show(item))
    seen = {}
    for top in (home.tree(item), "%s/sandbox-home/%s" % (home.run_dir, item), home.private(item), home.run_dir + "/results"):
        for where, dirs, files in os.walk(top):
            for name in dirs + files + ["."]:
                info = os.lstat(os.path.join(where, name))
                seen[os.path.relpath(os.path.join(where, name), home.run_dir)] = (info.st_uid, info.st_gid, info.st_mode & 0o6000)
    t.attack(len(seen) > 20 and {v[:2] for v in seen.values()} == {(os.getuid(), os.getgid())}, "each file is ours", {k: v for k, v in seen.items() if v[:2] != (os.getuid(), os.getgid())})
    t.attack([k for k, v in seen.items() if v[2]] and read(home.tree(item) + "/who").strip() == str(os.getuid()), "the setuid one as well, and inside it gave nothing")
    bare_top = home.root + "/bare"
    os.makedirs(bare_top)
    bare = home.bare_run("sh", "-c", "cp /usr/bin/env %s/suid && chmod 4755 %s/suid; stat -c %%u %s/suid" % ((bare_top,) * 3), flags=["--user", "0:0", "--userns", "host"] if runtime.is_docker else ["--user", "0:0"], mounts=[bare_top])
    owner = os.lstat(bare_top + "/suid").st_uid
    t.control(owner != os.getuid() or runtime.is_rootless, "a bare run leaves what is root's", bare, owner)
    home.bare_run("rm", "-f", bare_top + "/suid", flags=["--user", "0:0"], mounts=[bare_top])
    t.works(home.kraft("item", "complete", item).code == 0 and home.kraft("item", "archive", item).code == 0, "archived")
    left = [k for k in seen if os.path.lexists(home.run_dir + "/" + k) and item in k]
    t.works(not left, "and all of it is gone", left)


@each(wall, "CTR-08 CFG-10", "names that look like options, templates and mount options are data")
def _(t, runtime):
    # Short, for the socket below it.
    home = Box(runtime, name="h,ro", repo="code/sam ple:z,readonly {{json .}}", kraft_home=".k --x {{.ID}}:ro$A'\"=é", test_command="true")
    process, here = home.sleeping("--item", "a-b-c")
    try:
        name = home.running()
        told = home.runtime.inspect(name)
        t.attack(told["Config"]["Labels"]["kraft.home"] == home.kraft_home and not told["HostConfig"]["Privileged"], "the label is the whole name", told["Config"]["Labels"])
        t.attack(re.fullmatch(r"/?kraft-[A-Za-z0-9_.-]+", told["Name"]), "the container's name is a plain one", told["Name"])
    finally:
        end(process)
    t.attack(home.empty(), "it is found again by that label", home.containers())
    result = home.run("printf", "%s|", "--privileged", "-v", "/:/host", "{{.ID}}", "a b", "$HOME", "\n", "é")
    t.attack(result.out == "--privileged|-v|/:/host|{{.ID}}|a b|$HOME|\n|é|", "words of the command", result)
    refused_ids = [home.run("true", options=["--item", i]) for i in ("--privileged", "{{.Id}}", "a/../b", "a b", "A;b", "x" * 300)]
    t.attack(all(r.code != 0 and "kraft: " in r.err for r in refused_ids), "an item's id that is none", refused_ids)
    item = home.create("{{.Config.Env}} --volume=/:/host $(id)", worker="echo ran >ran; git add ran; git commit -qm ran")
    home.kraft("item", "start", item)
    t.works(home.rev("kraft/%s:ran" % item) is not None, "an item whose title looks like an option runs", home.show(item))
    home.configure(env={"A,B": "x"})
    t.works(home.run("true").code != 0, "a variable that is no name does not load")
    home.configure(env={"VALUE": "--env X=1,{{.}}\n$Y"})
    t.works(home.py("import os; print(repr(os.environ['VALUE']))").out == repr("--env X=1,{{.}}\n$Y") + "\n", "a value of any kind comes whole")
    bare = home.runtime.call("version", "--format", "v{{.Client.Version}}")[1]
    t.control(re.match(r"v\d", bare), "templates are templates to the runtime", bare[:300])


@each(wall, "CTR-07 OS-LCH-03", "values cross by name: in no command line, no log and no answer of the runtime's while it runs")
def _(t, runtime):
    secrets = {n: "secret-" + uuid.uuid4().hex for n in ("ANTHROPIC_API_KEY", "PASSED", "REPO_VALUE")}
    home = Box(runtime, env={"REPO_VALUE": secrets["REPO_VALUE"]}, env_passthrough=["PASSED"])
    env = {n: secrets[n] for n in ("ANTHROPIC_API_KEY", "PASSED")}
    seen, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            for pid in os.listdir("/proc"):
                if pid.isdigit():
                    words = b"\0".join(command_of(int(pid)))
                    seen.extend(n for n, value in secrets.items() if value.encode() in words)
            time.sleep(0.005)
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    process, _ = home.sleeping(env=env)
    try:
        name = home.running()
        whole = json.dumps(home.runtime.inspect(name)) + home.runtime.call("logs", name, ok=False)[1]
        t.attack(not [n for n, value in secrets.items() if value in whole], "inspect and logs hold none", [n for n, value in secrets.items() if value in whole])
    finally:
        end(process)
        stop.set()
        watcher.join()
    t.attack(not seen, "no command line of the host's, from the first moment", seen)
    inside = home.sh("echo $ANTHROPIC_API_KEY; echo $PASSED; echo $REPO_VALUE", env=env)
    t.works(set(inside.lines) == set(secrets.values()), "inside they are there", inside)
    t.attack(not [n for n, v in secrets.items() if v in home.kraft("explain", "--json", "--", "true", env=env).out], "explain tells none")
    bare = mark()
    runtime.call("create", "--name", bare, "--env", "PASSED=" + secrets["PASSED"], "--network", "none", home.image, "true")
    t.control(secrets["PASSED"] in json.dumps(runtime.inspect(bare)), "a bare -e NAME=value is in inspect")
    runtime.call("rm", bare)


@each(wall, "CTR-01 CTR-09", "kraft's init is process 1, and the image's own entry point runs below it")
def _(t, runtime):
    home = Box(runtime, image="entry")
    home.commit("script", "#!/bin/sh\necho $KRAFT_ENTRY_RAN; echo $KRAFT_IMAGE_SAYS; tr '\\0' ' ' </proc/1/cmdline; echo; echo $PATH\n")
    result = home.run("./script")
    t.works(result.lines[:2] == ["yes, as %d" % os.getuid(), "two words"], "it ran, and its variables are there", result)
    t.attack(result.lines[2].startswith("/opt/kraft/init"), "process 1 is kraft's", result)
    t.works(result.lines[3].startswith("/opt/kraft/bin:"), "kraft's shim is first on PATH", result)
    told, as_json = home.explain("./script")
    t.works("kraft-check-entry" in told.out and as_json, "explain shows it", told)
    for image, words in (("bad-entry", ["true"]), ("no-entry", ["true"]), ("debian", ["no-such-program"]), ("bare", ["sh"])):
        other = Box(runtime, image=image)
        result = other.run(*words)
        # An entry point that ends without the command is a command that failed; the others are words of kraft's.
        told = result.code == 1 if image == "bad-entry" else result.code in (125, 127) and "kraft: " in result.err
        t.attack(told and result.out == "", "%s in '%s': nothing runs" % (words[0], image), result)
        t.attack(other.empty(), "and no container is left", other.containers())
    bare = home.bare_run("sh", "-c", "cat /proc/1/comm")
    t.control("init" not in bare.out, "a bare run's process 1 is the image's", bare)
    user = Box(runtime, image="user")
    mine = user.sh("id -u; pwd; ls -d /data")
    t.works(mine.lines[0] == str(os.getuid()) and mine.lines[1] == user.worktree, "a USER and WORKDIR of the image's are not ours", mine)
    written = user.sh("stat -f -c %T /data; head -c 100000000 /dev/zero >/data/x; stat -c %s /data/x")
    t.attack(written.lines[0] == "tmpfs" and "No space left" in written.err and int(written.lines[1]) < 100000000,
             "FS-20: its VOLUME is memory with a limit, and nothing of the host's disk", written)
    again = user.sh("ls /data")
    t.attack(again.out == "" and again.code == 0, "the next session finds it empty", again)
    t.works(user.empty(), "nothing is left")
    volumes = runtime.call("volume", "ls", "--format", "{{.Name}}")[1].split()
    user.ok("true")
    t.works(user.empty() and wait_for(lambda: runtime.call("volume", "ls", "--format", "{{.Name}}")[1].split() == volumes, 10, 0.5), "no volume either", volumes)
    t.control(user.bare_run("sh", "-c", "echo x >/data/x", flags=["--user", "0:0"]).code == 0, "a bare run writes there")


@each(wall, "CTR-02 CTR-10", "sandbox.yaml: the CLI by name and by path, a podman that is called docker, one that is absent or does not answer")
def _(t, runtime):
    home = Box(runtime)
    mine = home.root + "/bin"
    write(mine + "/docker", "#!/bin/sh\nexec %s \"$@\"\n" % runtime.cli, 0o755)

    def with_cli(**keys):
        write(home.config_dir + "/sandbox.yaml", json.dumps(keys), 0o600)
        return home
    by_path = with_cli(cli=mine + "/docker").run("cat", "/etc/debian_version", env={"PATH": mine + ":/usr/bin:/bin"})
    t.works(by_path.code == 0, "whatever its name is", by_path)
    doctor = home.kraft("admin", "doctor")
    t.works(("docker" if runtime.is_docker else "podman") in doctor.out, "doctor says what it is", doctor)
    by_name = with_cli(cli="docker", relay_image="x.example/y").run("true", env={"PATH": mine + ":/usr/bin:/bin"})
    t.works(by_name.code == 0, "by its name, along PATH; relay_image is accepted", by_name)
    refused(t, with_cli(cli="/nowhere/docker").run("true"), "/nowhere/docker", what="one that is not there")
    write(home.repo + "/" + os.path.basename(runtime.cli), "#!/bin/sh\ntouch %s/pwned\n" % home.root, 0o755)
    found = with_cli(cli=os.path.basename(runtime.cli)).run("true", env={"PATH": home.repo + ":/usr/bin:/bin"})
    t.attack(found.code == 0 and not os.path.exists(home.root + "/pwned"), "one on PATH in the checkout is passed over", found)
    write(mine + "/slow", "#!/bin/sh\nexec sleep 600\n", 0o755)
    start = time.monotonic()
    refused(t, with_cli(cli=mine + "/slow").run("true"), "answer", what="one that does not answer")
    t.attack(8 < time.monotonic() - start < 40, "after ten seconds", time.monotonic() - start)
    for keys in ({"cli": 7}, {"cli": "sh -c x"}, {"selinux": "off"}, {"unknown": 1}, {"ca_bundle": "relative"}, {"ca_bundle": "/nowhere/ca.pem"}):
        result = with_cli(**keys).run("true")
        t.attack(result.code != 0 and list(keys)[0] in result.err, "%r" % keys, result)
    t.control(with_cli(cli=runtime.cli).run("true").code == 0, "its own")


@each(promise, "CTR-13", "an image that is not here is pulled before the session, and one that nobody has is told", on=(DOCKER, ROOTLESS, PODMAN))
def _(t, runtime):
    address = runtimelive.told()["registry"]
    store = tempfile.mkdtemp(prefix="kraft-live-")
    config = write(store + "/config.yml", json.dumps({"version": 0.1, "storage": {"filesystem": {"rootdirectory": store + "/data"}}, "http": {"addr": address}, "log": {"level": "error"}}))
    registry = subprocess.Popen(["/usr/bin/docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        name = "%s/kraft-check/pulled:%s" % (address, uuid.uuid4().hex[:8])
        insecure = [] if runtime.is_docker or "CONTAINER_HOST" in runtime.env else ["--tls-verify=false"]
        runtime.call("tag", runtimelive.image("busybox"), name)
        pushed = wait_for(lambda: runtime.call("push", *insecure, name, ok=False)[0] == 0, 20, 0.5)
        t.works(pushed, "it is in a registry", runtime.call("push", *insecure, name, ok=False))
        runtime.call("rmi", name)
        home = Box(runtime, image="busybox")
        home.configure(sandbox={"image": name})
        doctor = home.kraft("admin", "doctor")
        t.works(name in doctor.out, "doctor says that it is not pulled", doctor)
        result = home.sh("echo pulled")
        t.works(result.code == 0 and result.out == "pulled\n", "it is pulled, and runs", result)
        t.works(home.sh("echo again").out == "again\n", "it is here now")
        runtime.call("rmi", name)
    finally:
        registry.kill()
        registry.wait()
        shutil.rmtree(store, ignore_errors=True)
    home.configure(sandbox={"image": "%s/kraft-check/nobody:has" % address})
    result = home.run("true")
    t.attack(result.code == 125 and "nobody:has" in result.err, "nobody has it", result)


@each(wall, "CTR-11 CHN-11", "without a network policy nothing is launched, but for unrestricted_network, which says what it costs")
def _(t, runtime):
    home = Box(runtime)
    home.configure(sandbox={"network": None})
    refused(t, home.run("true"), "network", what="no policy, no launch")
    home.configure(sandbox={"unrestricted_network": True})
    both = home.run("true")
    t.attack(both.code != 0 and "unrestricted_network" in both.err, "both together do not load", both)
    home.configure(sandbox={"network": None, "unrestricted_network": True})
    if not runtime.bridge:
        t.note("%s has no open network on this machine: only the refusals are tried" % runtime.name)
        t.works(Box(runtime).run("true").code == 0, "with a policy it runs")
        t.control(home.bare_run("true").code == 0, "a bare run needs none")
        return
    server = socket.create_server(("0.0.0.0", 0))
    port = server.getsockname()[1]
    dial = "import socket\ntry: socket.create_connection(('%s', %d), 5); print('open')\nexcept OSError as e: print('closed')" % (runtime.bridge, port)
    try:
        result = home.py(dial)
        t.works(result.out == "open\n", "the open network", result)
        looked = home.sh("ls /opt/kraft/bin/kraft; env | grep -i proxy; readlink /proc/1/exe; cat /proc/1/comm")
        t.works("No such file" in looked.err and "proxy" not in looked.out.lower(), "no command of kraft's inside and no proxy", looked)
        claude = home.kraft("run", "--harness", "claude", "do it")
        t.attack(claude.code != 0 and "unrestricted_network" in claude.err + claude.out or "network" in claude.err, "a Claude task is refused all the same", claude)
        closed = Box(runtime).py(dial)
        t.attack(closed.out == "closed\n", "under a policy there is no such way", closed)
        t.control(home.host(PYTHON, "-c", dial).out == "open\n", "the server answers")
    finally:
        server.close()


if __name__ == "__main__":
    main()
