#!/usr/bin/env python3
"""Every option that kraft gives to bubblewrap matters: each is taken away in turn, and what a worker can tell of its
world must change, or the launch must be refused. An option whose removal nothing notices is either dead weight or a
wall without a test; those that are known to show only otherwise are named below with their reason."""
from kraftlive import *

# What cannot be seen from inside, and where it is tested.
UNSEEN = {
    "--die-with-parent": "seen only when bubblewrap's parent dies: test_launch LIFE-02",
    "--disable-userns": "the filter refuses the same: test_kernel PROC-11 takes away one, the other, and both",
    "--cap-drop": "an unprivileged caller has no capability to lose",
    "--unshare-user": "implied by --unshare-all, but --disable-userns wants it said",
    "--assert-userns-disabled": "an assertion",
    "--new-session": "the launcher leads a session already",
    "--chdir": "the init changes the directory itself",
    "--dir": "made by a mount below it as well",
}

FINGERPRINT = r"""
import ctypes, os, re, socket, stat
def first(path):
    try:
        return open(path).read()
    except OSError as e:
        return e.strerror
print('ids', os.getuid(), os.getgid())
for name in sorted(os.listdir('/proc/self/ns')):
    if name not in HOST or os.readlink('/proc/self/ns/' + name) != HOST[name]:
        print('own', name)
status = first('/proc/self/status')
for key in ('NoNewPrivs', 'Seccomp', 'CapEff', 'CapBnd', 'CapPrm'):
    print(key, re.search(key + r':\s+(\S+)', status).group(1))
for line in first('/proc/self/mountinfo').splitlines():
    left, right = line.split(' - ')
    w, r = left.split(), right.split()
    size = re.findall(r'(?:size|nr_inodes|mode)=\w+', line)
    print('mount', w[4], w[5], r[0], *size)
def tree(path):
    try:
        s = os.lstat(path)
        kind = stat.S_IFMT(s.st_mode)
        print('at', path, kind, oct(stat.S_IMODE(s.st_mode)), os.readlink(path) if stat.S_ISLNK(s.st_mode) else '')
        if stat.S_ISDIR(s.st_mode):
            for name in sorted(os.listdir(path))[:40]:
                t = os.lstat(os.path.join(path, name)); print(' ', name, stat.S_IFMT(t.st_mode))
    except OSError as e:
        print('at', path, e.strerror)
for path in ['/', '/bin', '/sbin', '/lib', '/lib64', '/dev', '/dev/shm', '/tmp', '/var', '/var/tmp', '/opt', '/opt/kraft', '/opt/kraft/bin', '/opt/kraft/init',
             '.git', os.environ['HOME'], os.path.dirname(os.path.dirname(os.getcwd()))] + SHOWN:
    tree(path)
print('net', [n for _, n in socket.if_nameindex()], first('/proc/net/route').count('\n'))
print('pid', len([p for p in os.listdir('/proc') if p.isdigit()]) if os.path.isdir('/proc/1') else 'none')
print('userns', ctypes.CDLL(None).unshare(0x10000000))
for path in ('/x', '/dev/x', '/tmp/x', '/dev/shm/x', os.environ['HOME'] + '/x', './x', '/usr/x', '/etc/x', '/opt/kraft/x'):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY)); os.unlink(path); print('writes', path)
    except OSError as e:
        print('no', path, e.strerror)
"""


@wall("G5", "each of bubblewrap's options taken away in turn: seen from inside, or refused")
def _(t):
    home = Home()
    write(home.home + "/shown/a/.npmrc", "secret")
    home.configure(expose=["~/shown"])
    host = {n: os.readlink("/proc/self/ns/" + n) for n in os.listdir("/proc/self/ns")}
    code = "HOST = %r\nSHOWN = %r\n" % (host, [home.home + "/shown", home.home + "/shown/a", home.home + "/shown/a/.npmrc"]) + FINGERPRINT
    log = home.root + "/log"

    def look(*drop):
        env = {"KRAFT_BWRAP": home.wrapper(drop=list(drop), log=log)}
        result = home.py(code, env=env, timeout=60)
        # Names that differ from session to session.
        return result, re.sub(r"[0-9a-f]{16}", "ID", result.out)
    whole, print_ = look()
    t.works(whole.code == 0 and "own net" in print_, "the fingerprint", whole)
    options = [o for o in json.loads(read(log))["options"] if o[0] not in ("--args", "--info-fd", "--perms", "--size", "--sync-fd", "--block-fd")]
    again, same = look()
    t.control(same == print_, "with all options it is the same again", changed(dict(enumerate(print_.splitlines())), dict(enumerate(same.splitlines()))), again)
    unnoticed, tried = [], 0
    for option in options:
        # A descriptor's number or a session's name is another next time: match what is stable.
        if re.search(r"[0-9a-f]{16}", option[-1]):
            continue
        drop = {"name": option[0], "last": option[-1]} if len(option) == 3 else [option[0]] if option[0] == "--seccomp" else option
        tried += 1
        result, got = look(drop)
        if result.code == 0 and got == print_ and option[0] not in UNSEEN:
            unnoticed.append(option)
    t.note("%d options taken away, one by one" % tried)
    t.attack(tried > 15 and not unnoticed, "each was noticed", unnoticed)


if __name__ == "__main__":
    main()
