#!/usr/bin/env python3
"""The kernel surface (OS-SEC) and attempts on it (PROC): system calls, foreign ABIs, ioctls, sockets, keys, namespaces,
privileges. The verdicts of the filter are taken by the probe without making the calls (see probe.c); beside them the
real calls are tried."""
import platform
import struct

from kraftlive import *

LISTED = ("keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd kexec_load"
          " kexec_file_load init_module finit_module delete_module mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount"
          " fspick mount_setattr open_tree_attr setns").split()
FAMILIES = {1: "unix", 2: "inet", 10: "inet6", 16: "netlink"}
X86 = platform.machine() == "x86_64"
CLONE, UNSHARE, CLONE3 = (56, 272, 435) if X86 else (220, 97, 435)
NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
LAST_OWN = 336 if X86 else 294  # the last number before the gap that ends at 424; from there all machines have the same


def filter_of(home):
    """The filter kraft hands to bubblewrap, as (code, jt, jf, k) instructions."""
    log = os.path.join(home.root, "bpf-log")
    home.ok("true", env={"KRAFT_BWRAP": home.wrapper(log=log)})
    data = open(log + ".bpf", "rb").read()
    return [struct.unpack_from("<HBBI", data, i) for i in range(0, len(data), 8)]


def simulate(code, arch, nr, args=(0,) * 6):
    """Runs the classic BPF program on one call, as the kernel does. Returns the action."""
    args = tuple(args) + (0,) * (6 - len(args))
    data = struct.pack("<iIQ6Q", nr - (1 << 32) if nr >= 1 << 31 else nr, arch, 0, *[a & 0xffffffffffffffff for a in args])
    a, x, memory, pc = 0, 0, [0] * 16, 0
    while True:
        op, jt, jf, k = code[pc]
        pc += 1
        kind = op & 7
        source = x if op & 8 else k
        if op == 0x20:
            a = struct.unpack_from("<I", data, k)[0]
        elif op == 0x06:
            return k
        elif op == 0x16:
            return a
        elif kind == 5:
            test = {0x00: None, 0x10: a == source, 0x20: a > source, 0x30: a >= source, 0x40: bool(a & source)}[op & 0xf0]
            pc += k if test is None else jt if test else jf
        elif kind == 4:
            a = {0x00: a + source, 0x10: a - source, 0x40: a | source, 0x50: a & source, 0x60: a << source, 0x70: a >> source}[op & 0xf0] & 0xffffffff
        elif kind == 0:
            a = k if op & 0xe0 == 0 else memory[k]
        elif kind == 1:
            x = k if op & 0xe0 == 0 else memory[k]
        elif kind == 2:
            memory[k] = a
        elif kind == 7:
            x, a = (x, x) if op & 0xf8 == 0x80 else (a, a)
        else:
            raise Failed("the filter holds an instruction the test does not know: %r" % (code[pc - 1],))


ALLOW, EPERM, ENOSYS, EAFNOSUPPORT = 0x7fff0000, 0x50001, 0x50026, 0x50061
ARCH_X86_64, ARCH_I386, ARCH_AARCH64, ARCH_ARM = 0xc000003e, 0x40000003, 0xc00000b7, 0x40000028


@wall("OS-SEC-01 PROC-09 PROC-10 PROC-12", "every listed call is answered EPERM by the filter")
def _(t):
    home = shared()
    inside = home.probe("listed")
    verdicts = {line.split()[0]: line.split()[2] for line in inside.lines}
    t.attack(set(verdicts) == set(LISTED) or set(LISTED) - set(verdicts) <= {"kexec_file_load"}, "all of them asked", verdicts)
    t.attack(set(verdicts.values()) == {"EPERM"}, "EPERM exactly", inside)
    t.works(home.probe("flags").said("seccomp") == "2", "a filter is in place, and other calls work")
    open_run = home.weaker("./probe", "listed", drop=["--seccomp"])
    if open_run.code == 0:
        t.control(set(line.split()[2] for line in open_run.lines) == {"allowed"}, "without --seccomp all are allowed", open_run)
    else:
        t.control(set(line.split()[2] for line in home.bare("./probe", "listed").lines) == {"allowed"}, "in a bare sandbox all are allowed", open_run)


@wall("PROC-13 OS-SEC-01", "numbers 0 to 1,000 and the corners: exactly the listed ones differ from the host")
def _(t):
    home = shared()
    high = full(600, 1000)
    inside = {line.split()[0]: line.split()[1:] for line in home.probe("sweep", "0", str(high), timeout=240).lines}
    outside = {line.split()[0]: line.split()[1:] for line in home.host_probe("sweep", "0", str(high), timeout=240).lines}
    t.control(inside.pop("end") == outside.pop("end") == [str(high)] and len(outside) <= 4, "on the host (almost) nothing is refused", outside)
    listed = {line.split()[1] for line in home.probe("listed").lines}
    differ = {nr for nr in set(inside) | set(outside) if inside.get(nr) != outside.get(nr)}
    # socket and socketpair with family -1 and 0 are refused by their own rule; ioctl with request -1 is not; clone and unshare with
    # flags -1 are, and with 0 they are not.
    sockets = {"41", "53"} if X86 else {"198", "199"}
    flags = {str(CLONE), str(UNSHARE)}
    t.attack(listed - {n for n in listed if int(n) > high} <= differ, "every listed one", sorted(differ))
    # Numbers that the filter does not know are decided as well: ENOSYS, as a kernel without them would answer.
    unknown = {nr for nr in differ - listed - sockets - {str(CLONE3)} if inside[nr] == ["ENOSYS", "ENOSYS"]}
    t.works(differ - listed <= sockets | flags | unknown | {str(CLONE3)}, "nothing else", differ - listed - unknown)
    t.attack(inside.get(str(CLONE3)) == ["ENOSYS", "ENOSYS"] or CLONE3 > high, "clone3", inside)
    t.attack(all(inside.get(nr) == ["EPERM", "allowed"] for nr in flags), "clone and unshare by their flags", inside)
    t.works(not [nr for nr in unknown if not LAST_OWN < int(nr) < 424 and int(nr) < 467], "no call of today's kernels is unknown", sorted(unknown))
    t.attack(all(inside[nr] == ["EPERM", "EPERM"] for nr in listed if int(nr) <= high), "with EPERM", inside)
    corners = [2147483647, 4294967295, 4294967294, 0x3fffffff, 0x7ffffffe]
    for nr in corners:
        result = home.probe("sweep", str(nr), str(nr))
        t.works(result.code == 0 and "end" in result.out, "number %d is decided" % nr, result)


@wall("PROC-13 OS-SEC-01", "the filter itself, read back and interpreted: all numbers, both words of the arguments")
def _(t):
    home = shared()
    code = filter_of(home)
    here = ARCH_X86_64 if X86 else ARCH_AARCH64
    t.works(10 < len(code) <= 4096, "a filter was handed over", len(code))
    listed = {int(line.split()[1]) for line in home.host_probe("listed").lines}
    ioctl, sock, pair = (16, 41, 53) if X86 else (29, 198, 199)
    actions = {nr: simulate(code, here, nr, (1, 0, 0, 0, 0, 0)) for nr in range(0, 3000)}
    newest = max(nr for nr, action in actions.items() if action == ALLOW)
    t.works(466 <= newest < 600, "the newest number that is allowed", newest)
    for nr, action in actions.items():
        unknown = LAST_OWN < nr < 424 or nr > max(newest, 467)
        wanted = EPERM if nr in listed else ENOSYS if unknown or nr == CLONE3 else ALLOW
        t.attack(action == wanted or LAST_OWN - 1 <= nr <= LAST_OWN and action == ENOSYS, "number %d" % nr, hex(action))
    for nr in (1 << 20, 0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff):
        t.attack(simulate(code, here, nr) == ENOSYS, "number %#x" % nr)
    for request in (0x5412, 0x541c):
        for bits in (0, 1 << 32, 1 << 63, 0xffffffff << 32):
            t.attack(simulate(code, here, ioctl, (0, request | bits)) == EPERM, "ioctl %#x" % (request | bits))
    for request in (0x5413, 0x5414, 0x5401, 0x15412, 0x805412, 0):
        t.works(simulate(code, here, ioctl, (0, request)) == ALLOW, "ioctl %#x" % request)
    for family in range(0, 300):
        for call in (sock, pair):
            want = {ALLOW} if family in FAMILIES else {EAFNOSUPPORT, EPERM}
            got = simulate(code, here, call, (family, 1, 0))
            t.attack(got in want, "family %d" % family, hex(got))
            t.attack(simulate(code, here, call, (family | 1 << 32, 1, 0)) in want, "family %d with a high bit" % family)
    for flag in NAMESPACES:
        for bits in (0, 17, 0xff, 1 << 32, 0xffffffff << 32):
            for call in (CLONE, UNSHARE):
                t.attack(simulate(code, here, call, (flag | bits,)) == EPERM, "%d with %#x" % (call, flag | bits))
    t.attack(simulate(code, here, UNSHARE, (0x80,)) == EPERM, "unshare of the time namespace")
    for flags in (17, 0x3d0f00, 0x4111, 0x1200011, 17 | 1 << 32):
        t.works(simulate(code, here, CLONE, (flags,)) == ALLOW, "clone with %#x" % flags)
    for flags in (0x200, 0x400):
        t.works(simulate(code, here, UNSHARE, (flags,)) == ALLOW, "unshare with %#x" % flags)
    foreign = ARCH_I386 if X86 else ARCH_ARM
    for arch in (foreign, 0, 0xffffffff, ARCH_AARCH64 if X86 else ARCH_X86_64):
        for nr in list(range(0, 500)) + [0x40000000]:
            t.attack(simulate(code, arch, nr) in (ENOSYS, 0, 0x80000000), "arch %#x number %d" % (arch, nr))
    if X86:
        for nr in list(range(0, 600)):
            t.attack(simulate(code, here, nr | 0x40000000) == ENOSYS, "x32 number %d" % nr)
    t.control(simulate([(0x06, 0, 0, ALLOW)], here, 321) == ALLOW, "a filter that allows would be seen")


@wall("OS-SEC-02 PROC-08", "TIOCSTI and TIOCLINUX are refused on the low 32 bits, every other ioctl is allowed")
def _(t):
    home = shared()
    inside = home.probe("ioctls")
    for line in inside.lines:
        name, bits, verdict = line.split()
        if name in ("TIOCSTI", "TIOCLINUX"):
            t.attack(verdict == "EPERM", line)
        else:
            t.works(verdict == "allowed", line)
    real = home.probe("tiocsti")
    t.attack(real.said("tiocsti") == real.said("tiocsti-high") == real.said("tioclinux") == "EPERM", "the real calls", real)
    t.works(real.said("pty") == real.said("ctty") == real.said("tiocswinsz") == "ok", "terminals work", real)
    outside = home.host_probe("tiocsti")
    t.control(outside.said("tiocsti") in ("ok", "EIO"), "the host's kernel has the call", outside)


@wall("OS-SEC-03 PROC-14", "x32 and 32-bit calls are answered ENOSYS, or the process ends")
def _(t):
    home = shared()
    if not X86:
        t.skip("no 32-bit interface can be entered from an aarch64 process")
    inside = home.probe("sweep", "0", str(full(60, 547)), str(0x40000000))
    refused = [line for line in inside.lines if not line.startswith("end")]
    t.attack(len(refused) == full(61, 548) and all(line.endswith("ENOSYS ENOSYS") for line in refused), "x32", inside)
    t.control(home.host_probe("sweep", "0", "60", str(0x40000000)).out == "end 60\n", "no filter on the host answers them")
    legacy = home.probe("int80", "20", "4", "5", "11", "102").table()
    t.attack(set(legacy.values()) <= {"ENOSYS", "died"}, "int80", legacy)
    t.note("int 0x80 on this host, outside: %r" % home.host_probe("int80", "20").table())
    t.works(home.probe("flags").code == 0, "native calls work")


@wall("OS-SEC-05 NET-04", "sockets of families other than unix, inet, inet6, netlink are refused at socket()")
def _(t):
    home = shared()
    for line in home.probe("families").lines:
        call, family, verdict = line.split()
        if int(family) in FAMILIES:
            t.works(verdict == "allowed", line)
        else:
            t.attack(verdict in ("EAFNOSUPPORT", "EPERM"), line)
    vsock = home.probe("socket", "40", "1")
    t.attack(vsock.out == "socket EAFNOSUPPORT\n", "AF_VSOCK", vsock)
    for family, kind in ((17, 3), (17, 2), (38, 5), (31, 3), (21, 5), (44, 3), (29, 3), (30, 5)):
        t.attack(home.probe("socket", str(family), str(kind)).out == "socket EAFNOSUPPORT\n", "family %d" % family)
    for family in FAMILIES:
        t.works(home.probe("socket", str(family), "3" if family == 16 else "1").out == "socket ok\n", FAMILIES[family])
    t.control(home.bare("./probe", "socket", "40", "1").out == "socket ok\n" or home.host_probe("socket", "38", "5").out == "socket ok\n",
              "a bare sandbox makes AF_VSOCK (or the host AF_ALG) sockets")


@wall("PROC-09 OS-LCH-02", "no key of the host can be read, linked or asked for; a new session keyring is in place")
def _(t):
    home = shared()
    canary = home.probe("keys", before=[PROBE, "keyed"])
    t.attack(set(canary.table().values()) <= {"EPERM", "ok"} and canary.said("session-keyring") == "EPERM"
             and canary.said("add_key") == canary.said("request_key") == "EPERM", "EPERM each", canary)
    host = home.host_probe("keyed", PROBE, "keys")
    t.control(host.said("request_key") == "ok", "on the host the canary is found", host)
    rings = home.probe("keyring-id", before=[PROBE, "keyed"], env=home.without("--seccomp"))
    if rings.code == 0:
        outside = home.host_probe("keyed", PROBE, "keyring-id")
        t.attack(rings.lines[-1] != outside.lines[-1], "another session keyring", rings, outside)
        held = home.probe("keys", before=[PROBE, "keyed"], env=home.without("--seccomp"))
        t.attack(held.said("request_key") in ("ENOKEY", "EACCES"), "even without the filter the canary is not held", held)
    t.works(home.ok("true").code == 0, "sessions start")


@wall("PROC-11 OS-SEC-04", "no user namespace can be made inside, and nothing mounted")
def _(t):
    home = shared()
    users = ("unshare-user", "clone-user", "clone-user-high", "clone3-user")

    def made(result):
        if result.code != 0 or not all(result.said(u) for u in users):
            raise Failed("the probe does not tell: %r" % result)
        return [u for u in users if result.said(u) == "ok"]
    inside = home.probe("namespaces")
    t.attack("ok" not in inside.table().values(), "every way is refused", inside)
    t.attack([inside.said(u) for u in users] == ["EPERM", "EPERM", "EPERM", "ENOSYS"], "by the filter", inside)
    t.attack(home.run("unshare", "-rm", "true").code != 0 and home.run("bwrap", "--ro-bind", "/", "/", "true").code != 0, "nor by programs")
    t.works(home.sh("(true) && sh -c true").code == 0, "processes can be made")
    threads = home.py("import threading, subprocess; a = []; b = [threading.Thread(target=a.append, args=(i,)) for i in range(9)]\n"
                      "for thread in b: thread.start()\nfor thread in b: thread.join()\nprint(len(a), subprocess.call(['true']))")
    t.works(threads.out == "9 0\n", "threads too", threads)
    if RUNTIME:
        bare = home.bare("./probe", "namespaces") if RUNTIME.is_rootless else home.weaker("./probe", "namespaces", drop=[])
        t.control(made(bare) == list(users), "without kraft's filter it works", bare)
        return
    t.attack(not made(home.run("./probe", "namespaces", env=home.without("--disable-userns"))), "the filter alone holds")
    t.attack(not made(home.run("./probe", "namespaces", env=home.without("--seccomp"))), "bubblewrap alone holds")
    weaker = home.run("./probe", "namespaces", env=home.without("--disable-userns", "--seccomp"))
    t.control(made(weaker) == list(users), "without both it works", weaker)


@wall("OS-SEC-04 PROC-23", "every namespace is the sandbox's own, and its host name does not leak")
def _(t):
    home = shared()
    kinds = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
    if RUNTIME and not RUNTIME.is_rootless:  # the daemon's are the host's; which user ids there are is not the wall there
        kinds = [k for k in kinds if k != "user" and not (k == "cgroup" and RUNTIME.is_docker)]
    inside = home.sh("for n in %s; do readlink /proc/self/ns/$n; done" % " ".join(kinds)).lines
    outside = [os.readlink("/proc/self/ns/" + n) for n in kinds]
    t.attack(len(inside) == len(kinds) and not set(inside) & set(outside), "all differ from the host's", inside, outside)
    other = home.start("sh", "-c", "for n in %s; do readlink /proc/self/ns/$n; done; sleep 20" % " ".join(kinds), options=["--item", "other-ns"])
    first = [other.stdout.readline().decode().strip() for _ in kinds]
    second = home.sh("for n in %s; do readlink /proc/self/ns/$n; done" % " ".join(kinds)).lines
    other.kill()
    other.communicate()
    t.attack(len(first) == len(second) == len(kinds) and not set(first) & set(second), "and from another session's at the same time", first, second)
    t.works(home.sh("hostname >/dev/null || uname -n").code == 0, "there is a host name")
    t.control(home.host("readlink", "/proc/self/ns/net").out.strip() == outside[kinds.index("net")], "a child of the host shares them")


@wall("OS-SEC-04 PROC-19", "no capability, no_new_privs, and setuid programs change nothing")
def _(t):
    home = shared()
    status = home.ok("cat", "/proc/self/status")
    caps = {k: status.said(k + ":") or "" for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    values = {k: re.search(k + r":\s+(\S+)", status.out).group(1) for k in caps}
    t.attack(set(values.values()) == {"0" * 16}, "all capability sets are empty", values)
    t.attack("NoNewPrivs:\t1" in status.out and re.search(r"Seccomp:\s+2", status.out), "no_new_privs and the filter", status)
    every = home.sh("cat /proc/[0-9]*/status | grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd|CapPrm):' | sort | uniq -c")
    t.attack(not re.search(r"NoNewPrivs:\s+0|Seccomp:\s+0|Cap\w+:\s+0*[1-9a-f]", every.out), "in every process, the init too", every)
    suid = [p for p in ("/usr/bin/passwd", "/usr/bin/su", "/usr/bin/chsh", "/usr/bin/newgrp", "/usr/bin/mount") if os.path.exists(p) and os.stat(p).st_mode & 0o4000]
    look = """
import subprocess, sys, time, re
for p in sys.argv[1:]:
    c = subprocess.Popen([p], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    time.sleep(0.15)
    try:
        print(p, re.search('Uid:(.*)', open('/proc/%d/status' % c.pid).read()).group(1).split())
    except (OSError, AttributeError):
        print(p, 'gone')
    c.kill(); c.wait()
"""
    inside, outside = home.py(look, *suid), home.host(PYTHON, "-IS", "-c", look, *suid)
    t.attack("'0'" not in inside.out and inside.code == 0, "setuid programs of /usr", inside)
    if suid and os.getuid() != 0:
        t.control("'0'" in outside.out, "on the host one of them becomes root", outside)
    else:
        t.control(home.host_probe("flags").said("no_new_privs") == "0", "the host has no no_new_privs")
    t.works(home.ok("id", "-u").out.strip() == str(os.getuid()), "the user is the person's")
    own = home.sh("cp /usr/bin/env mine && chmod 6755 mine && ./mine id -u && ./probe flags | grep ids")
    t.attack(own.lines and own.lines[0] == str(os.getuid()), "a setuid copy of one's own", own)
    t.attack(home.probe("flags").said("setuid-0") in ("EPERM", "EINVAL"), "setuid(0)")


@wall("PROC-20", "sudo, su, pkexec, newuidmap, ping and file capabilities give nothing")
def _(t):
    home = shared()
    for words in (["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"], ["pkexec", "id", "-u"], ["newuidmap", "1", "0", "0", "1"], ["mount"],
                  ["chroot", "/", "id", "-u"]):
        if shutil.which(words[0]):
            result = home.run(*words, timeout=30)
            t.attack(result.out.strip() != "0" and (words == ["mount"] or result.code != 0), " ".join(words), result)
    attribute = home.py("""
import os
open('capable', 'wb').write(open('/usr/bin/env', 'rb').read()); os.chmod('capable', 0o755)
try:
    os.setxattr('capable', 'security.capability', bytes.fromhex('0100000200000020000000000000000000000000')); print('set')
except OSError as e:
    print(e.strerror)
""")
    t.attack("set" not in attribute.out.split(), "no file capability can be made", attribute)
    t.works(home.run("id", "-u").code == 0, "plain programs run")
    t.control(home.host("unshare", "-r", "id", "-u").out.strip() == "0", "on the host a namespace gives a root of sorts")


@wall("PROC-21", "a program from memory, from /tmp, /dev/shm and home has the same filter, no_new_privs and namespaces")
def _(t):
    home = shared()
    expected = home.probe("flags")
    for how in ("./probe memfd flags", "cp probe /tmp/p && /tmp/p flags", "cp probe /dev/shm/p && /dev/shm/p flags", "cp probe ~/p && ~/p flags",
                "/lib64/ld-linux-x86-64.so.2 ./probe flags" if X86 else "./probe flags"):
        result = home.sh(how)
        if "Permission denied" in result.err:
            t.note("not executable there: " + how)
            continue
        t.attack(result.out == expected.out, how, result)
        listed = home.sh(how.replace(" flags", " listed"))
        t.attack(set(line.split()[-1] for line in listed.lines) == {"EPERM"}, how + ": the calls", listed)
    t.works(expected.said("seccomp") == "2", "the usual flags", expected)
    t.control(home.host_probe("memfd", "flags").said("seccomp") == "0", "on the host a program from memory has none")


@wall("PROC-22", "/proc/sys, sysrq, cgroups, oom_score_adj and priorities cannot be changed for the better")
def _(t):
    home = shared()
    paths = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward",
             "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/user/max_user_namespaces",
             "/proc/1/oom_score_adj", "/proc/kcore", "/proc/kmsg", "/proc/irq/default_smp_affinity", "/proc/bus/pci/devices", "/proc/acpi/wakeup"]
    result = home.probe("open", "w", *paths).table()
    good = [p for p, v in result.items() if v == "ok" and p not in ("/proc/1/oom_score_adj", "/proc/sys/kernel/hostname")]
    t.attack(not good, "none opens for writing", result)
    t.attack(home.sh("ls /sys /sys/fs/cgroup").code != 0, "there is no /sys")
    lower = """
import os
lowest = int(open('/proc/self/oom_score_adj').read())
for value in range(lowest, -1001, -1):
    try:
        open('/proc/self/oom_score_adj', 'w').write(str(value)); lowest = value
    except OSError:
        break
print(lowest)
"""
    inside, outside = home.py(lower), home.host(PYTHON, "-IS", "-c", lower)
    t.attack(int(inside.out) >= int(outside.out), "the score cannot go below what the person's own processes reach", inside, outside)
    worse = home.py("""
import os
for name, call in (('nice', lambda: os.nice(-5)), ('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))),
                   ('other', lambda: os.setpriority(os.PRIO_PGRP, 0, -1))):
    try:
        call(); print('raised', name)
    except OSError:
        print('refused')
""")
    t.attack(worse.out == "refused\n" * 3, "no priority can be raised", worse)
    reads = home.probe("open", "r", "/proc/kcore", "/proc/kmsg", "/proc/sys/kernel/core_pattern").table()
    t.attack(reads["/proc/kcore"] != "ok" and reads["/proc/kmsg"] != "ok", "kernel memory", reads)
    t.works(reads["/proc/sys/kernel/core_pattern"] == "ok", "settings can be read", reads)
    t.control(home.host("sh", "-c", "echo 500 >/proc/self/oom_score_adj").code == 0, "raising one's own score works")


@wall("PROC-18 OS-SEC-06", "a crash leaves no core file; the limit is 0 and cannot be raised")
def _(t):
    home = shared()
    result = home.sh("ulimit -c unlimited; ulimit -Hc; ./probe crash; ls; ls ~", preexec=lambda: __import__("resource").setrlimit(4, (-1, -1)))
    t.attack(result.said("core-limit") == "0" and result.said("core-raise") == "EPERM", "the limit", result)
    left = [n for n in os.listdir(home.worktree) + os.listdir(home.sandbox_home) if n.startswith("core")]
    t.attack(not left, "no core file", left)
    pattern = read("/proc/sys/kernel/core_pattern").strip()
    t.note("core_pattern of this host: " + pattern)
    os.makedirs(home.root + "/crash", exist_ok=True)
    outside = home.host_probe("crash", cwd=home.root + "/crash", preexec=lambda: __import__("resource").setrlimit(4, (-1, -1)))
    if pattern.startswith(("|", "/")):
        t.control(outside.said("core-limit") != "0", "on the host the limit is not 0", outside)
    else:
        t.control(os.listdir(home.root + "/crash"), "on the host the same crash leaves one", outside)
    t.works(home.probe("die", "6").code == 128 + 6, "the death by signal is the exit code")


@wall("PROC-06 PROC-15", "pid 1: memory, environment, descriptors and executable are out of reach")
def _(t):
    home = shared()
    inside = home.probe("attack", "1").table()
    t.attack(not [k for k, v in inside.items() if v == "ok" and k != "pidfd_open"], "nothing succeeds", inside)
    code = """
import os
for p in ('/proc/1/root/etc/passwd', '/proc/1/cwd', '/proc/1/fd/0', '/proc/1/fd/3', '/proc/1/map_files', '/proc/1/task/1/mem', '/proc/1/auxv', '/proc/1/stack',
          '/proc/1/environ', '/proc/1/maps', '/proc/1/io', '/proc/1/ns/net'):
    try:
        os.close(os.open(p, os.O_RDONLY)); os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(1); print(p, 'ok')
    except OSError as e:
        print(p, e.errno)
"""
    result = home.py(code)
    good = [line for line in result.lines if line.endswith(" ok")]
    t.attack(result.code == 0 and not good, "nothing below /proc/1", result)
    sleeper = subprocess.Popen([PROBE, "sleep", "20", "x"], stdout=subprocess.DEVNULL)
    outside = home.host_probe("attack", str(sleeper.pid)).table()
    sleeper.kill()
    sleeper.wait()
    t.control(outside["seize"] == outside["mem-w"] == outside["environ"] == "ok", "an ordinary process of the user can be attached to", outside)
    own = home.sh("sleep 5 & ./probe attack $!")
    t.works(own.said("seize") == "ok", "debuggers work on the worker's own processes", own)


@wall("PROC-15 OS-SEC-06", "descriptors that kraft's caller left open are not inside, in any process")
def _(t):
    home = Home()
    secret = write(home.home + "/secret", "SECRET")
    leak = [PROBE, "leaky", secret, "/"]
    inside = home.probe("fds", before=leak)
    numbers = sorted(int(line.split()[1]) for line in inside.lines)
    t.attack(numbers == [0, 1, 2], "only 0, 1, 2 in the command", inside)
    every = home.probe("fds", "all", before=leak)
    t.attack("secret" not in every.out and not re.search(r" /$", every.out, re.M), "nor in any other process", every)
    number = home.sh("(cat <&7); cat /proc/self/fd/7; ls /proc/self/fd/9/ || cat /proc/1/fd/7 || (cat <&9)", before=leak)
    t.attack("SECRET" not in number.out and number.code != 0, "by number", number)
    outside = home.host(PROBE, "leaky", secret, "/", PROBE, "fds")
    t.control("secret" in outside.out, "without kraft they are inherited", outside)
    t.works(home.sh("echo out; echo err >&2", before=leak).out == "out\n", "the standard ones work")
    bare = home.host(PROBE, "leaky", secret, "/", BWRAP, "--ro-bind", "/", "/", "--unshare-all", PROBE, "fds")
    t.control("secret" in bare.out, "bubblewrap itself closes nothing", bare)


@wall("PROC-23 PROC-24 NET-03", "shared memory, message queues, abstract sockets and signals do not cross")
def _(t):
    home = shared()
    import socket
    name = "kraft-live-" + uuid.uuid4().hex
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0" + name)
    server.listen(8)
    try:
        inside = home.probe("unix", "@" + name)
        t.attack(inside.said("stream") == "ECONNREFUSED", "an abstract socket of the host", inside)
        t.control(home.host_probe("unix", "@" + name).said("stream") == "ok", "on the host it connects")
    finally:
        server.close()
    make = home.host("ipcmk", "-M", "4096")
    ident = re.search(r"(\d+)", make.out)
    if ident:
        try:
            listing = home.sh("ipcs -m | tail -n +4; ls /dev/mqueue /dev/shm")
            t.attack(ident.group(1) not in listing.out, "shared memory of the host", listing)
            t.control(ident.group(1) in home.host("ipcs", "-m").out, "the host lists it")
        finally:
            home.host("ipcrm", "-m", ident.group(1))
    for place in ("/run/user/%d/bus" % os.getuid(), "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0", "/run/docker.sock", "/var/run/docker.sock",
                  "/run/user/%d/wayland-0" % os.getuid(), "/run/systemd/private", "/run/user/%d/pulse/native" % os.getuid()):
        t.attack(home.probe("unix", place).said("stream") in ("ENOENT", "ENOTDIR"), place)
    pair = home.py("import socket; a, b = socket.socketpair(); s = socket.socket(socket.AF_UNIX); s.bind('\\0x'); s.listen(); print('fine')")
    t.works(pair.out == "fine\n", "unix sockets work inside", pair)
    here = mark()
    other = home.start("./probe", "stubborn", "20", here)
    try:
        wait_for(lambda: marked(here))
        result = home.sh("for p in $(seq 2 400); do kill -9 $p; done 2>/dev/null; kill -9 -1", timeout=30)
        t.attack(marked(here), "signals to another session", result)
    finally:
        other.kill()
        other.communicate()
    t.works(gone(here), "it ends with its kraft")


if __name__ == "__main__":
    main()
