#!/usr/bin/env python3
"""`kind: docker` from inside: the walls of a container, on every runtime that is here."""
# kraft-test: timeout 900
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


MADE_BY_RUNC = {"ptmx", "fd", "stdin", "stdout", "stderr"}
HOSTILE = ("shm", "dev", "opt", "kraft", "init", "tmp", "var", "run", "etc-kraft", "proc", "sys")


@each(wall, "CTR-03", "an image with links in the places that kraft mounts over: they land inside of it, or the launch is refused", on=EVERYWHERE)
def _(t, runtime):
    ran = {}
    for name in HOSTILE:
        home = Box(runtime, image="hostile-" + name)
        before = host_state()
        result = home.sh("echo inside; ls -ld /opt/kraft/init /tmp /dev/shm; echo x >/tmp/x; echo x >/dev/shm/x; echo x >made; exec readlink /proc/1/exe")
        mounts, names = host_changes(before)
        known = MADE_BY_RUNC if names and (runtime.name, name) == (PODMAN, "dev") else set()
        t.attack(not mounts and set(names) <= known, "'%s': nothing of the host changes" % name, result, mounts, names)
        if known:  # runc 1.1 makes them through the image's link, whoever starts it: SECURITY.md. Those but ptmx stay for the next time
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


if __name__ == "__main__":
    main()
