"""What a worker on a Mac may do and what not, asked of the profiles of tests/golden/plan/macos-*.

A question is what a program inside tries, as the operations that the kernel asks the profile about: it is allowed when all of them
are. The answers come from the ledger and from the table of places below, written by hand for each golden host, and not from the plan.
"""
import os.path

HOME = "/Users/ada"
RUN = f"{HOME}/.kraft/run"
W = f"{RUN}/worktrees/run-app"                       # the worktree
H = f"{RUN}/sandbox-home/run-app"                    # HOME inside
T = f"{RUN}/t/0a1b2c"                                # TMPDIR
RESULTS = f"{RUN}/results/run-app"
RESULT = f"{RESULTS}/00112233aabbccdd.json"
CHANNEL = f"{RUN}/sn/00112233aabbccdd"
GUEST = "/opt/homebrew/Cellar/kraft/0.1.0/libexec/kraft/guest"
APP = f"{HOME}/code/app/.git"
PORT = 49321

# (path, how far it goes, what may be done): r read, x run and load, w write; "a" new git objects. The longest that fits decides.
SYSTEM = [
    ("/", "alone", "r"), ("/usr", "tree", "rx"), ("/usr/local", "tree", ""), ("/bin", "tree", "rx"), ("/sbin", "tree", "rx"),
    ("/System", "tree", "rx"), ("/System/Volumes", "tree", ""), ("/System/Volumes/Preboot/Cryptexes", "tree", "rx"),
    ("/private/etc", "tree", "rx"), ("/private/var/db/timezone", "tree", "rx"), ("/private/var/db/dyld", "tree", "rx"),
    ("/Library/Developer/CommandLineTools", "tree", "rx"), ("/Library/Preferences/com.apple.dt.Xcode.plist", "alone", "r"),
    ("/Library/Apple/System/Library/PrivateFrameworks/MobileDevice.framework", "tree", "rx"),
]
OWN = [
    (GUEST, "tree", "rx"), (RESULTS, "tree", "rx"), (RESULT, "beside", "rxw"), (CHANNEL, "tree", "rx"), (H, "tree", "rxw"),
    (W, "tree", "rxw"), (T, "tree", "rxw"),
]
NODE = "/opt/homebrew/Cellar/node/22.1.0"
CASES = {
    "minimal": {},
    "expose": {"places": [(f"{HOME}/tools", "tree", "rx"), (f"{HOME}/tools/.npmrc", "tree", ""), (f"{HOME}/tools/etc/Credentials", "tree", ""),
                          (f"{HOME}/tools/secret", "tree", ""), (f"{HOME}/notes.txt", "tree", "rx"), ("/private/tmp/shared", "tree", "rx")]},
    "xcode": {"places": [("/Applications/Xcode-16.app/Contents", "tree", "rx")]},
    "xcode-usual": {"places": [("/Applications/Xcode.app/Contents", "tree", "rx")]},
    "xcode-odd": {},
    "homebrew": {"places": [("/opt/homebrew", "tree", "rx")], "terminal": True, "hides": [GUEST]},
    "homebrew-intel": {"places": [("/usr/local/Cellar/jq/1.7", "tree", "rx")]},
    "agent": {"places": [(NODE, "tree", "rx"), ("/opt/homebrew/lib/node_modules/@anthropic-ai/claude-code", "tree", "rx"),
                         (f"{RUN}/sessions/00112233aabbccdd/agent", "tree", "rxw"),
                         (f"{H}/.kraft-agents/sample/projects", "tree", "rxw")], "terminal": True},
    "workspace": {"members": {f"{W}/libs/lib": f"{HOME}/code/lib/.git"}},
    "no-git": {"git": False},
    "no-network": {"port": None},
    "odd-names": {"places": [(f'{HOME}/a "b" (c) \\d', "tree", "rx"), (f"{HOME}/ключи", "tree", "rx")], "branch": "kraft/a.b+c"},
}


# ---- the places of a golden host ----

def git_places(worktree, common, branch, has):
    own = f"{common}/worktrees/run-app"
    ref, log = f"{common}/refs/heads/{branch}", f"{common}/logs/refs/heads/{branch}"
    yield from ((common, "alone", "r"), (f"{common}/HEAD", "alone", "r"), (f"{common}/refs", "tree", "rx"),
                (f"{common}/objects", "tree", "ra"), (ref, "alone", "rxw"), (f"{ref}.lock", "alone", "rxw"), (log, "alone", "rw"),
                (own, "tree", "rxw"), (f"{worktree}/.git", "kept", "rx"))
    for name in ("commondir", "gitdir", "config.worktree", "locked"):
        yield f"{own}/{name}", "kept", "rx"
    for name, reach, rights in (("config", "alone", "r"), ("packed-refs", "alone", "r"), ("info", "tree", "rx"), ("lfs", "tree", "rx")):
        if name in has:
            yield f"{common}/{name}", reach, rights


def places_of(name):
    case = CASES[name]
    places = SYSTEM + OWN + case.get("places", [])
    if case.get("git", True):
        places += git_places(W, APP, case.get("branch", "kraft/run-app"), {"config", "packed-refs", "info"})
        places.append(("/srv/mirror/objects", "tree", "rx"))
        for worktree, common in case.get("members", {}).items():
            places += git_places(worktree, common, case.get("branch", "kraft/run-app"), {"lfs"})
    else:
        places.append((f"{W}/.git", "masked", ""))
    return places


def is_within(path, top):
    return path == top or path.startswith(top.rstrip("/") + "/")


def covers(place, path):
    top, reach, _ = place
    if reach == "alone":
        return path == top
    if reach == "beside":
        return path == top or path.startswith(top + ".") and "/" not in path[len(top) + 1:] and len(path) > len(top) + 1
    return is_within(path, top)


class Oracle:
    def __init__(self, places):
        self.places = places
        trees = [top for top, reach, rights in places if reach == "tree" and "w" in rights]
        self.stays = {RESULT}
        for top, reach, rights in places:
            path = top if reach == "tree" and "w" in rights else os.path.dirname(top)
            while any(is_within(path, tree) for tree in trees):
                self.stays.add(path)
                path = os.path.dirname(path)

    def place(self, path):
        found = [place for place in self.places if covers(place, path)]
        return max(found, key=lambda place: len(place[0])) if found else ("", "alone", "")

    def may(self, right, path):
        return right in self.place(path)[2]

    def may_write(self, path, vnode):
        top, reach, rights = self.place(path)
        return "w" in rights and (reach == "tree" or vnode == "REGULAR-FILE")


# ---- what programs try ----

def at(operation, path, vnode="REGULAR-FILE"):
    return {"op": operation, "path": path, "vnode": vnode}


def rename(old, new, vnode="REGULAR-FILE", over=False):
    return [at("file-write-unlink", old, vnode), at("file-write-create", new, vnode)] + ([at("file-write-unlink", new)] if over else [])


def link(old, new):
    return [at("file-link", old), at("file-write-create", new)]


def read(path):
    return [at("file-read-data", path)]


def write(path):
    return [at("file-write-data", path)]


def make(path, vnode="REGULAR-FILE"):
    return [at("file-write-create", path, vnode)]


def remove(path, vnode="REGULAR-FILE"):
    return [at("file-write-unlink", path, vnode)]


def connect(host, port, end="remote"):
    return [{"op": "network-outbound", "host": host, "port": port, "end": end}]


def listen(port):
    return [{"op": "network-bind", "host": "localhost", "port": port, "end": "local"},
            {"op": "network-inbound", "host": "localhost", "port": port, "end": "local"}]


def lookup(name):
    return [{"op": "mach-lookup", "name": name}]


class Asked:
    """One question: the promise or case it is about, what is tried, whether it must be allowed; is_spelling: only a pattern denies it."""

    def __init__(self, about, text, tries, expect, is_spelling=False):
        self.about, self.text, self.tries, self.expect, self.is_spelling = about, text, tries, expect, is_spelling


# ---- the questions of places, from the table ----

WRITES = ("file-write-data", "file-write-mode", "file-write-xattr")


def about_path(oracle, path, about):
    right = oracle.may
    yield Asked(about, f"read {path}", read(path), right("r", path))
    yield Asked(about, f"attributes of {path}", [at("file-read-xattr", path)], right("r", path))
    yield Asked(about, f"run {path}", [at("process-exec", path)], right("x", path))
    yield Asked(about, f"load {path}", [at("file-map-executable", path)], right("x", path))
    yield Asked("MAC-04", f"stat {path}", [at("file-read-metadata", path), at("file-test-existence", path)], True)
    yield Asked("MAC-03", f"ask the device {path}", [at("file-ioctl", path)], False)
    if "a" in oracle.place(path)[2]:
        return  # git_objects() asks
    for operation in WRITES:
        yield Asked(about, f"{operation} {path}", [at(operation, path)], oracle.may_write(path, "REGULAR-FILE"))
    for vnode in ("REGULAR-FILE", "SYMLINK"):
        yield Asked(about, f"make {vnode} {path}", make(path, vnode), oracle.may_write(path, vnode))
    yield Asked("MAC-05 move", f"remove {path}", remove(path), oracle.may_write(path, "REGULAR-FILE") and path not in oracle.stays)
    yield Asked("MAC-10", f"setuid {path}", [at("file-write-setugid", path)], False)


def about_places(name):
    oracle = Oracle(places_of(name))
    seen = set()
    for top, reach, rights in oracle.places:
        about = "MAC-04" if "w" in rights else "MAC-03"
        parent = os.path.dirname(top)
        paths = [top, f"{top.rstrip('/')}/zz", f"{top}x", os.path.join(parent, "zz-beside"), parent]
        if reach != "tree":
            paths += [f"{top}.zz", f"{top}.zz/yy", f"{top}xzz", f"/Volumes/disk{top}", f"/Volumes/disk{top}.zz"]
            paths += [f"{top[:dot]}x{top[dot + 1:]}.zz" for dot in range(len(top)) if top[dot] == "."]
        for path in paths:
            if path not in seen:
                seen.add(path)
                yield from about_path(oracle, path, about)
    for path in sorted(oracle.stays - seen):
        yield from about_path(oracle, path, "MAC-05 move")


# ---- the questions of the ledger and of the security cases, each by its name ----

SERVICES = ["com.apple.SystemConfiguration.configd", "com.apple.cfprefsd.agent", "com.apple.cfprefsd.daemon", "com.apple.logd",
            "com.apple.system.logger", "com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo",
            "com.apple.system.opendirectoryd.membership", "com.apple.trustd", "com.apple.trustd.agent"]
NO_SERVICES = ["com.apple.coreservices.launchservicesd", "com.apple.lsd.mapdb", "com.apple.lsd.open", "com.apple.coreservices.appleevents",
               "com.apple.CoreServices.coreservicesd", "com.apple.pasteboard.1", "com.apple.pboard", "com.apple.SecurityServer",
               "com.apple.securityd.xpc", "com.apple.securityd.general", "com.apple.ctkd.token-client", "com.apple.FSEvents",
               "com.apple.fseventsd", "com.apple.windowserver.active", "com.apple.dock.server", "com.apple.mDNSResponder",
               "com.apple.dnssd.service", "com.apple.dnssd.helper", "com.apple.tccd", "com.apple.xpc.launchd.domain.user",
               "com.apple.bsd.launchd", "com.apple.runningboard", "com.apple.nsurlsessiond", "com.apple.networkd",
               "com.apple.metadata.mds", "com.apple.spotlight.IndexAgent", "com.apple.audio.coreaudiod", "com.apple.cmio.registerassistantservice",
               "com.apple.screencapture.interactive", "com.apple.logd.events", "com.apple.system.opendirectoryd.api"]
SYSCTLS = """hw.activecpu hw.busfrequency_compat hw.byteorder hw.cacheconfig hw.cachelinesize_compat hw.cpufamily hw.cpufrequency
    hw.cpufrequency_compat hw.cputype hw.l1dcachesize_compat hw.l1icachesize_compat hw.l2cachesize_compat hw.l3cachesize_compat
    hw.logicalcpu hw.logicalcpu_max hw.machine hw.memsize hw.model hw.ncpu hw.nperflevels hw.packages hw.pagesize hw.pagesize_compat
    hw.physicalcpu hw.physicalcpu_max hw.tbfrequency_compat hw.vectorunit kern.argmax kern.hostname kern.maxfiles
    kern.maxfilesperproc kern.maxproc kern.ngroups kern.osproductversion kern.osrelease kern.ostype kern.osvariant_status
    kern.osversion kern.secure_kernel kern.tcsm_available kern.tcsm_enable kern.usrstack64 kern.version kern.willshutdown
    machdep.cpu.brand_string machdep.ptrauth_enabled security.mac.lockdown_mode_state sysctl.proc_cputype vm.loadavg
    hw.optional.arm.FEAT_AES hw.optional.armv8_crc32 hw.perflevel0.physicalcpu kern.proc.pgrp.1 kern.proc.pid.1 machdep.cpu.vendor
    net.routetable.0.0.3.0""".split()
NO_SYSCTLS = ["kern.proc.all", "kern.proc.uid.501", "kern.procargs2.1", "kern.bootsessionuuid", "kern.uuid", "net.inet.tcp.pcblist",
              "hw.serialnumber", "hw.optionalarm", "hw.optional.arx", "hw.perflevex", "kern.proc.pgrp", "kern.proc.pid", "machdep.cpux", "machdep.cpu",
              "net.routetable", "vm.swapusage"]


def processes():
    inside, outside = ["same-sandbox"], ["others"]
    yield Asked("MAC-02", "fork", [{"op": "process-fork"}], True)
    yield Asked("MAC-10", "end a process of the session", [{"op": "signal", "targets": inside}], True)
    yield Asked("MAC-10", "end itself", [{"op": "signal", "targets": inside + ["self"]}], True)
    yield Asked("MAC-10", "end a process of the person's", [{"op": "signal", "targets": outside}], False)
    yield Asked("MAC-06 end", "end kraft's launcher", [{"op": "signal", "targets": outside}], False)
    for operation in ("process-info-pidinfo", "process-info-rusage"):
        yield Asked("MAC-10", f"{operation} of a process inside", [{"op": operation, "targets": inside}], True)
        yield Asked("MAC-10", f"{operation} of one outside", [{"op": operation, "targets": outside}], False)
    yield Asked("MAC-10", "take over a process by its task port", [{"op": "mach-priv-task-port", "targets": outside}], False)


def services():
    for name in SERVICES:
        yield Asked("MAC-09", f"the service {name}", lookup(name), True)
    for name in NO_SERVICES:
        yield Asked("MAC-09", f"the service {name}", lookup(name), False)
    yield Asked("MAC-09", "TLS: trust and the settings it asks", lookup("com.apple.trustd.agent") + lookup("com.apple.cfprefsd.daemon"), True)
    yield Asked("MAC-09", "defaults by the agent's other name", [{"op": "mach-lookup", "local": "com.apple.cfprefsd.agent"}], True)
    yield Asked("MAC-09", "another service by such a name", [{"op": "mach-lookup", "local": "com.apple.pboard"}], False)
    yield Asked("MAC-09", "a service of its own", [{"op": "mach-register", "name": "example.own"}], False)
    for text, tries in {
            "open a program by LaunchServices": [{"op": "lsopen"}] + lookup("com.apple.coreservices.launchservicesd"),
            "have launchd start one": [{"op": "job-creation"}],
            "tell another program by an Apple Event": [{"op": "appleevent-send"}],
            "run osascript, which does": [at("process-exec", "/usr/bin/osascript"), {"op": "appleevent-send"}],
            "run open, which asks LaunchServices": [at("process-exec", "/usr/bin/open")] + lookup("com.apple.coreservices.launchservicesd"),
    }.items():
        yield Asked("MAC-01 launch", text, tries, False)
    yield Asked("MAC-01 launch", "a control: run a program of the system", [at("process-exec", "/usr/bin/true")], True)
    yield Asked("MAC-09", "a device's driver", [{"op": "iokit-open"}], False)
    for domain, answer in {"com.apple.dt.Xcode": True, "kCFPreferencesAnyApplication": True, "com.apple.Safari": False,
                           "com.apple.security": False}.items():
        yield Asked("MAC-03", f"the settings of {domain}", [{"op": "user-preference-read", "domain": domain}], answer)
    yield Asked("MAC-04", "change a setting", [{"op": "user-preference-write", "domain": "com.apple.dt.Xcode"}], False)


def shared_names():
    for operation in ("ipc-posix-shm-read-data", "ipc-posix-shm-write-create", "ipc-posix-shm-write-data"):
        yield Asked("MAC-12", f"{operation} of Python's", [{"op": operation, "ipc": "/psm_1"}], True)
        yield Asked("MAC-12", f"{operation} of another's", [{"op": operation, "ipc": "/psm"}], False)
        yield Asked("MAC-12", f"{operation} by a semaphore's name", [{"op": operation, "ipc": "/mp-1"}], False)
    yield Asked("MAC-12", "a semaphore of Python's", [{"op": "ipc-posix-sem", "ipc": "/mp-1"}], True)
    yield Asked("MAC-12", "a semaphore of another's", [{"op": "ipc-posix-sem", "ipc": "/mp"}], False)
    yield Asked("MAC-12", "a semaphore by a memory's name", [{"op": "ipc-posix-sem", "ipc": "/psm_1"}], False)
    for name, answer in {"apple.cfprefs.501v1": True, "apple.cfprefs": False, "apple.shm.notification_center": True,
                         "apple.shm.notification_centre": False}.items():
        yield Asked("MAC-09", f"read {name}", [{"op": "ipc-posix-shm-read-data", "ipc": name}], answer)
        yield Asked("MAC-09", f"write {name}", [{"op": "ipc-posix-shm-write-data", "ipc": name}], False)


def numbers():
    for name in SYSCTLS:
        yield Asked("MAC-02", f"sysctl {name}", [{"op": "sysctl-read", "sysctl": name}], True)
    for name in NO_SYSCTLS:
        yield Asked("MAC-02", f"sysctl {name}", [{"op": "sysctl-read", "sysctl": name}], False)
    for name, answer in {"kern.tcsm_enable": True, "kern.grade_cputype": True, "kern.hostname": False, "net.inet.ip.forwarding": False}.items():
        yield Asked("MAC-02", f"set {name}", [{"op": "sysctl-write", "sysctl": name}], answer)


def network(port):
    for ports, answer in (({PORT}, port == PORT), ({1, 22, 80, 3128, 8080, PORT - 1, PORT + 1}, False)):
        for number in sorted(ports):
            yield Asked("MAC-05", f"connect to {number} on loopback", connect("localhost", number), answer)
            yield Asked("MAC-02 port", f"connect to {number} on loopback", connect("localhost", number), answer)
            yield Asked("MAC-02 port", f"connect to {number} elsewhere", connect("192.0.2.1", number), False)
            yield Asked("MAC-02 port", f"from {number} to elsewhere", connect("localhost", number, "local"), False)
            yield Asked("MAC-05", f"listen on {number}", listen(number), False)
            yield Asked("MAC-05", f"take the port {number}", listen(number)[:1], False)
            yield Asked("MAC-05", f"answer on {number}", listen(number)[1:], False)
    for path, answer in ((f"{T}/s", True), (f"{T}/a/s", True), (f"{T}x/s", False), (f"{W}/s", False), (f"{H}/s", False), (f"{CHANNEL}/s", False),
                         ("/private/var/run/syslog", False), ("/private/var/run/mDNSResponder", False), (f"{HOME}/.ssh/agent", False),
                         ("/private/tmp/com.apple.launchd.x/Listeners", False), (f"{RUN}/t/other/s", False)):
        yield Asked("MAC-05", f"connect to the socket {path}", [{"op": "network-outbound", "socket": path}], answer)
        yield Asked("MAC-05", f"listen at {path}", [{"op": "network-bind", "socket": path}], answer)
        yield Asked("MAC-05", f"answer at {path}", [{"op": "network-inbound", "socket": path}], answer)
    for family, protocol, answer in (("AF_UNIX", "0", True), ("AF_SYSTEM", "2", True), ("AF_SYSTEM", "1", False), ("AF_ROUTE", "2", False),
                                     ("AF_INET", "2", False)):
        yield Asked("MAC-05", f"a socket of {family} {protocol}", [{"op": "system-socket", "family": family, "protocol": protocol}], answer)


def devices(has_terminal):
    table = {"/dev/null": "rwi", "/dev/zero": "rwi", "/dev/dtracehelper": "rwi", "/dev/random": "ri", "/dev/urandom": "ri", "/dev/fd/1": "rw",
             "/dev/fd": "rw", "/dev/tty": "rwi" if has_terminal else "", "/dev/ttys003": "i" if has_terminal else "", "/dev/ptmx": "",
             "/dev/ttys003x": "", "/dev/x/dev/ttys003": "", "/dev/console": "", "/dev/disk0": "", "/dev/rdisk0": "", "/dev/bpf0": "",
             "/dev/auditpipe": "", "/dev/nullx": "", "/dev/fdx": "", "/dev/null/x": "", "/dev/tty/x": "", "/dev/random/x": "", "/dev/zero/x": "",
             "/dev/dtracehelper/x": "", "/dev/urandom/x": "", "/dev": "", "/dev/x": ""}
    for path, rights in table.items():
        for operation, right in (("file-read-data", "r"), ("file-read-xattr", "r"), ("file-write-data", "w"), ("file-ioctl", "i")):
            yield Asked("MAC-03", f"{operation} {path}", [at(operation, path, "CHARACTER-DEVICE")], right in rights)
        for operation in ("file-write-create", "file-write-unlink", "file-write-mode", "process-exec", "file-map-executable"):
            yield Asked("MAC-03", f"{operation} {path}", [at(operation, path, "CHARACTER-DEVICE")], False)
    yield Asked("MAC-12", "another terminal", [{"op": "pseudo-tty"}], False)


def closed():
    """MAC-04: what is nowhere shown."""
    for path in (f"{HOME}/.ssh/id_ed25519", f"{HOME}/.gnupg/x", f"{HOME}/.config/gh/hosts.yml", f"{HOME}/.aws/credentials", f"{HOME}/.kube/config",
                 f"{HOME}/.docker/config.json", f"{HOME}/.claude/x", f"{HOME}/.codex/auth.json", f"{HOME}/Library/Keychains/login.keychain-db",
                 f"{HOME}/Library/Cookies/Cookies.binarycookies", f"{HOME}/Library/Application Support/x", f"{HOME}/Documents/x", HOME, "/Users",
                 "/Users/bob/x", "/Volumes/disk/x", "/Applications/Mail.app/x", "/Library/Keychains/System.keychain", "/Library/Preferences/x.plist",
                 "/Library/LaunchAgents/x", "/private/var/db/x", "/private/var/log/system.log", "/private/var/root/x", "/opt/x", "/usr/local/bin/x",
                 "/usr/local/etc/x", "/System/Volumes/Data/Users/ada/.ssh/id_ed25519", "/System/Volumes/Data/private/tmp/x",
                 f"{HOME}/.kraft/config/repos.yaml", f"{HOME}/.kraft/kraft.db", f"{RUN}/sessions/00112233aabbccdd/profile.sb",
                 f"{RUN}/sessions/00112233aabbccdd/log", f"{RUN}/worktrees/run-other/x", f"{RUN}/sandbox-home/run-other/x",
                 f"{RUN}/results/run-other/x.json", f"{HOME}/code/app/Makefile", f"{HOME}/code/app/.env"):
        for verb, tries in (("read", read(path)), ("write", write(path)), ("make", make(path)), ("remove", remove(path)),
                            ("run", [at("process-exec", path)])):
            yield Asked("MAC-04 path", f"{verb} {path}", tries, False)
    for path in ("/private/tmp/x", "/private/tmp", "/private/var/folders/zz/ada/T/x", "/private/var/tmp/x"):
        yield Asked("MAC-07", f"read {path}", read(path), False)
        yield Asked("MAC-07", f"make {path}", make(path), False)
    yield Asked("MAC-07", "a file in TMPDIR", make(f"{T}/x") + write(f"{T}/x") + read(f"{T}/x") + remove(f"{T}/x"), True)
    yield Asked("MAC-04 path", "a control: its own file", make(f"{W}/x") + write(f"{W}/x") + read(f"{W}/x") + remove(f"{W}/x"), True)
    yield Asked("MAC-13", "the host's certificates", read("/private/etc/ssl/cert.pem"), True)


def moves():
    """MAC-05 of the security cases: what is on the way to a place stays."""
    for top in (W, H, T):
        yield Asked("MAC-05 move", f"move {top} away", rename(top, f"{T}/moved" if top != T else f"{W}/moved", "DIRECTORY"), False)
        yield Asked("MAC-05 move", f"remove {top}", remove(top, "DIRECTORY"), False)
        yield Asked("MAC-05 move", f"move a directory in {top}", rename(f"{top}/a", f"{top}/b", "DIRECTORY"), True)
        yield Asked("MAC-05 move", f"move what is above {top}", rename(os.path.dirname(top), f"{W}/moved", "DIRECTORY"), False)
    for path in (f"{HOME}/.ssh", HOME, f"{HOME}/.kraft", RUN, "/usr/local", "/Users"):
        yield Asked("MAC-05 move", f"move {path}, read, move back", rename(path, f"{W}/moved", "DIRECTORY") + read(f"{W}/moved/x"), False)
    yield Asked("MAC-05 move", "the result by a link", make(RESULT, "SYMLINK"), False)
    yield Asked("MAC-05 move", "the result moved away", rename(RESULT, f"{W}/r"), False)
    yield Asked("MAC-05 move", "another file over the result", rename(f"{RESULT}.tmp", RESULT, over=True), False)
    yield Asked("MAC-04", "the result written", write(RESULT), True)
    yield Asked("MAC-04", "a file beside the result, and away again", make(f"{RESULT}.tmp") + write(f"{RESULT}.tmp") + remove(f"{RESULT}.tmp"), True)
    yield Asked("MAC-04", "a result of another session", write(f"{RESULTS}/ffffffffffffffff.json"), False)
    for old in (f"{HOME}/.ssh/id_ed25519", f"{APP}/config", f"{HOME}/.zshrc", f"{W}/x"):
        yield Asked("MAC-04", f"{old} by a hard link", link(old, f"{W}/linked"), False)
        yield Asked("MAC-04", f"{old} as a clone", [at("file-clone", old)] + make(f"{W}/cloned"), False)


def git(name, worktree, common, branch):
    own, ref, log = f"{common}/worktrees/run-app", f"{common}/refs/heads/{branch}", f"{common}/logs/refs/heads/{branch}"
    yes = {
        "git status: the index anew": make(f"{own}/index.lock") + write(f"{own}/index.lock") + rename(f"{own}/index.lock", f"{own}/index", over=True),
        "git commit: the branch": make(f"{ref}.lock") + write(f"{ref}.lock") + rename(f"{ref}.lock", ref, over=True),
        "git commit: the branch's log": make(log) + write(log),
        "git commit: HEAD's log, and the message": write(f"{own}/logs/HEAD") + make(f"{own}/COMMIT_EDITMSG"),
        "git rebase: its directory": make(f"{own}/rebase-merge", "DIRECTORY") + make(f"{own}/rebase-merge/onto") + remove(f"{own}/rebase-merge", "DIRECTORY"),
        "git checkout --detach": make(f"{own}/HEAD.lock") + rename(f"{own}/HEAD.lock", f"{own}/HEAD", over=True),
        "git checkout -- file": make(f"{worktree}/f") + write(f"{worktree}/f"),
        "git log --all": read(f"{common}/refs/heads/main"),
        "git tag: its list": read(f"{common}/refs/tags/v1"),
        "git log: a pack": read(f"{common}/objects/pack/pack-1.pack"),
        "git finds the repository": read(f"{worktree}/.git") + read(f"{own}/commondir") + read(f"{own}/gitdir") + read(f"{common}/HEAD"),
        "the list of the repository's directory": read(common),
    }
    no = {
        "another branch": make(f"{common}/refs/heads/main.lock"), "another branch, over it": write(f"{common}/refs/heads/main"),
        "another branch, moved away": rename(f"{common}/refs/heads/main", f"{own}/main"),
        "a branch of a longer name": make(f"{ref}2"), "a branch below the name": make(f"{ref}/x"),
        "a branch of the name and more": make(f"{ref}.x"), "a new branch": make(f"{common}/refs/heads/new.lock"),
        "a tag": make(f"{common}/refs/tags/v2.lock"), "the stash": make(f"{common}/refs/stash.lock"),
        "a remote's branch": make(f"{common}/refs/remotes/origin/main.lock"), "git fetch: its list": make(f"{common}/FETCH_HEAD"),
        "packed refs": make(f"{common}/packed-refs.lock"), "packed refs, over them": write(f"{common}/packed-refs"),
        "HEAD of the repository": write(f"{common}/HEAD"), "HEAD of the repository, by its lock": make(f"{common}/HEAD.lock"),
        "the settings": write(f"{common}/config"), "the settings, by their lock": make(f"{common}/config.lock"),
        "settings of worktrees": make(f"{common}/config.worktree"), "a hook": make(f"{common}/hooks/post-merge"),
        "a hook, read": read(f"{common}/hooks/pre-commit"), "attributes": make(f"{common}/info/attributes"),
        "what is ignored": write(f"{common}/info/exclude"), "grafts": make(f"{common}/info/grafts"),
        "alternates": write(f"{common}/objects/info/alternates"), "alternates, made": make(f"{common}/objects/info/alternates"),
        "alternates in capitals": make(f"{common}/objects/info/ALTERNATES"), "a commit graph": make(f"{common}/objects/info/commit-graph"),
        "a pack": make(f"{common}/objects/pack/pack-2.pack"), "a pack, changed": write(f"{common}/objects/pack/pack-1.pack"),
        "a pack, removed": remove(f"{common}/objects/pack/pack-1.pack"),
        "another worktree's index": read(f"{common}/worktrees/run-other/index"), "another worktree's index, written": write(f"{common}/worktrees/run-other/index"),
        "a worktree of its own": make(f"{common}/worktrees/mine", "DIRECTORY"), "submodules": read(f"{common}/modules/x/config"),
        "rerere": make(f"{common}/rr-cache/x", "DIRECTORY"), "large files": make(f"{common}/lfs/objects/x"),
        "the checkout's index": read(f"{common}/index"), "the checkout's message": read(f"{common}/COMMIT_EDITMSG"),
        "the worktree's .git": write(f"{worktree}/.git"), "the worktree's .git, replaced": rename(f"{worktree}/g", f"{worktree}/.git", over=True),
        "the worktree's .git, moved away": rename(f"{worktree}/.git", f"{worktree}/g"), "commondir": write(f"{own}/commondir"),
        "commondir, replaced": rename(f"{own}/c", f"{own}/commondir", over=True), "gitdir": write(f"{own}/gitdir"),
        "gitdir, moved away": rename(f"{own}/gitdir", f"{own}/g"), "a link for commondir": make(f"{own}/commondir", "SYMLINK"),
        "settings of the worktree": make(f"{own}/config.worktree"), "a lock against pruning": make(f"{own}/locked"),
        "the branch as a link": make(ref, "SYMLINK"), "the branch as a directory": make(ref, "DIRECTORY"), "the lock as a link": make(f"{ref}.lock", "SYMLINK"),
        "the log as a link": make(log, "SYMLINK"), "the worktree's directory moved": rename(own, f"{worktree}/o", "DIRECTORY"),
        "the branch's settings by a link": link(f"{common}/config", f"{own}/x"),
    }
    for text, tries in yes.items():
        yield Asked("MAC-08", f"{name}: {text}", tries, True)
    for text, tries in no.items():
        yield Asked("MAC-08", f"{name}: {text}", tries, False)
    yield from git_objects(name, f"{common}/objects")
    yield from spellings(own, ("commondir", "gitdir", "config.worktree", "locked"))
    yield from spellings(worktree, (".git",))
    yield Asked("MAC-08", f"{name}: .git by the directories' other names", make(f"{W}{worktree[len(W):].upper()}/.git"), False, True)
    yield Asked("MAC-07 ref", f"{name}: a branch that is no commit is written; kraft puts it back", write(ref), True)
    yield Asked("MAC-07 ref", f"{name}: no other ref holds one", write(f"{common}/refs/heads/main"), False)
    yield Asked("MAC-13", f"{name}: refs are listed", read(f"{common}/refs/heads"), True)
    yield Asked("MAC-13", f"{name}: no commit needs packed-refs.lock", make(f"{common}/packed-refs.lock"), False)


def git_objects(name, objects):
    digits = "0123456789abcdef0123456789abcdef012345"
    temporary, final = f"{objects}/ab/tmp_obj_x1", f"{objects}/ab/{digits}"
    yes = {
        "its directory": make(f"{objects}/ab", "DIRECTORY"),
        "written": make(temporary) + write(temporary) + [at("file-write-mode", temporary)] + rename(temporary, final),
        "given up": make(temporary) + remove(temporary), "written at the top": make(f"{objects}/tmp_obj_x1") + write(f"{objects}/tmp_obj_x1"),
        "read": read(final),
    }
    no = {
        "changed": write(final), "removed": remove(final), "written over": rename(temporary, final, over=True), "its mode": [at("file-write-mode", final)],
        "its time": [at("file-write-times", final)], "as a link": make(final, "SYMLINK"), "its directory as a link": make(f"{objects}/ab", "SYMLINK"),
        "its directory removed": remove(f"{objects}/ab", "DIRECTORY"), "its directory moved": rename(f"{objects}/ab", f"{objects}/cd", "DIRECTORY"),
        "a directory of another name": make(f"{objects}/abc", "DIRECTORY"), "a directory of another letter": make(f"{objects}/ag", "DIRECTORY"),
        "a directory deeper": make(f"{objects}/ab/cd", "DIRECTORY"), "a file of another name": make(f"{objects}/ab/{digits}.x"),
        "a file of other letters": make(f"{objects}/ab/xyz"), "a file where a directory is": make(f"{objects}/ab"),
        "a name of objects elsewhere": make(f"{objects}/ab/cd/{digits}"), "a temporary name elsewhere": make(f"{objects}/info/tmp_obj_x"),
        "a temporary name in packs": make(f"{objects}/pack/tmp_obj_x"), "a temporary directory": make(f"{objects}/ab/tmp_obj_d", "DIRECTORY"),
        "below a temporary name": make(f"{objects}/ab/tmp_obj_x/y"), "a temporary link": make(temporary, "SYMLINK"),
        "a temporary name and none": make(f"{objects}/ab/tmp_obj_"), "the list of objects itself": remove(objects, "DIRECTORY"),
        "a name in front": make(f"{objects}/ab/x_tmp_obj_x"), "run": [at("process-exec", final)], "loaded": [at("file-map-executable", final)],
        "a directory of capitals": make(f"{objects}/AB", "DIRECTORY"), "a setuid one": [at("file-write-setugid", temporary)],
        "another disk's": make(f"/Volumes/x{objects}/ab/{digits}"), "another disk's temporary": make(f"/Volumes/x{temporary}"),
        "another disk's directory": make(f"/Volumes/x{objects}/ab", "DIRECTORY"),
        "a dot that is none": make(f"{objects.replace('.git', 'xgit')}/ab/{digits}"),
        "a dot that is none, temporary": make(f"{temporary.replace('.git', 'xgit')}"),
        "a dot that is none, a directory": make(f"{objects.replace('.git', 'xgit')}/ab", "DIRECTORY"),
        "a file in a directory of one letter": make(f"{objects}/a/{digits}"), "a directory of one letter": make(f"{objects}/a", "DIRECTORY"),
        "a file in a directory of another letter": make(f"{objects}/ga/{digits}"),
        "a file in a directory of another second letter": make(f"{objects}/ag/{digits}"),
        "a directory of another first letter": make(f"{objects}/ga", "DIRECTORY"),
        "a temporary name in a directory of another letter": make(f"{objects}/ga/tmp_obj_x"),
        "a temporary name in a directory of another second letter": make(f"{objects}/ag/tmp_obj_x"),
    }
    for text, tries in yes.items():
        yield Asked("MAC-08", f"{name}: an object, {text}", tries, True)
    for text, tries in no.items():
        yield Asked("MAC-08", f"{name}: an object, {text}", tries, False)


def spellings(directory, names):
    """On a Mac another spelling is the same file; what only looks alike is another."""
    for name in names:
        for other in (name.upper(), name.replace("k", "\u212a").replace("s", "\u017f"), name.replace("k", "K").replace("s", "S")):
            if other != name:
                yield Asked("MAC-08", f"{directory}/{other}", make(f"{directory}/{other}"), False, True)
                yield Asked("MAC-08", f"below {directory}/{other}", make(f"{directory}/{other}/x"), False, True)
        for other in (f"{name}x", f"{name}.x", f"x{name}", f"x/{name}", f"{name}ignore", f"{directory}/{name}"[1:]):
            yield Asked("MAC-08", f"{directory}/{other}", make(f"{directory}/{other}"), True)
    yield Asked("MAC-08", "a file that has not the dot", make(f"{directory}/xgit"), True)
    if "config.worktree" in names:
        yield Asked("MAC-08", "a file that has another dot", make(f"{directory}/configxworktree"), True)


def no_git():
    for path in (f"{W}/.git", f"{W}/.git/x"):
        for verb, tries in (("read", read(path)), ("write", write(path)), ("make", make(path)), ("remove", remove(path)), ("move", rename(path, f"{W}/g"))):
            yield Asked("MAC-08", f"{verb} {path} without a git", tries, False)
    yield Asked("MAC-08", "the repository without a git", read(f"{APP}/HEAD"), False)
    yield Asked("MAC-08", "objects without a git", make(f"{APP}/objects/ab/0123"), False)
    yield from (asked for asked in spellings(W, (".git",)))
    yield Asked("MAC-08", "run .GIT without a git", [at("process-exec", f"{W}/.GIT")], False, True)
    yield Asked("MAC-08", "load .GIT without a git", [at("file-map-executable", f"{W}/.GIT")], False, True)
    yield Asked("MAC-08", "read .GIT without a git", read(f"{W}/.GIT"), False, True)


def questions(name):
    case = CASES[name]
    branch = case.get("branch", "kraft/run-app")
    yield from about_places(name)
    for part in (processes(), services(), shared_names(), numbers(), network(case.get("port", PORT)), devices(case.get("terminal", False)), moves()):
        yield from part
    oracle = Oracle(places_of(name))
    for asked in closed():  # unless this host exposes it
        if not any(oracle.place(t.get("path", ""))[2] for t in asked.tries) or asked.expect:
            yield asked
    if case.get("git", True):
        yield from git("root", W, APP, branch)
        for worktree, common in case.get("members", {}).items():
            yield from git(os.path.basename(worktree), worktree, common, branch)
    else:
        yield from no_git()
