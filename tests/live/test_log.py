#!/usr/bin/env python3
"""The log and the streams of a session (RES-05 to RES-07), under fast, long, late and hostile output."""
from kraftlive import *


def log_of(home):
    folder = home.session_folders()[-1]
    return os.path.join(folder, "log")


@wall("RES-05", "output as fast as possible: the log is capped, the cut is marked, the session is not wedged")
def _(t):
    home = shared()
    size = full(96 << 20, 4 << 30)
    start = time.monotonic()
    process = home.start("./probe", "write", str(size), "x", "80", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=full(120, 1200))
    t.works(process.returncode == 0, "it ends", err[-500:])
    log = log_of(home)
    stored = sum(os.path.getsize(os.path.join(os.path.dirname(log), n)) for n in os.listdir(os.path.dirname(log)))
    t.note("%d MiB in %.1f s, log of %.1f MiB" % (size >> 20, time.monotonic() - start, stored / (1 << 20)))
    t.attack(stored < 80 << 20, "the log is bounded", stored)
    shown = home.kraft("view", "logs")
    said = (shown.raw_out[:400] + shown.raw_err).replace(b"x", b"")
    ends = re.findall(rb"[^x\n]{12,}", shown.raw_out)
    t.attack(stored >= size or ends or b"kraft" in shown.raw_err, "the cut is marked", said, ends)
    t.note("the cut: %r" % (ends[:2] or said[:200]))
    outside = home.host("sh", "-c", "./probe write %d x 80 >%s/out; stat -c %%s %s/out" % (96 << 20, home.root, home.root))
    t.control(outside.out.strip() == str(96 << 20), "unbounded it fills the disk", outside)


@wall("RES-05", "one line without end, binary, and a reader that never reads")
def _(t):
    home = shared()
    line = home.run("./probe", "write", str(full(8, 512) << 20), "\x01", "0", timeout=full(60, 600))
    t.works(line.code == 0 and len(line.raw_out) == full(8, 512) << 20, "one long line passes whole", len(line.raw_out), line.err[-200:])
    binary = home.run("sh", "-c", "head -c 3000000 /dev/urandom | tee copy; sync")
    t.works(binary.raw_out == open(home.worktree + "/copy", "rb").read(), "binary passes as it is", len(binary.raw_out))
    here = mark()
    deaf = home.start("sh", "-c", "./probe sleep 0 %s; ./probe write 100000000 y 80" % here)
    time.sleep(1.5)
    deaf.kill()
    deaf.wait(timeout=10)
    t.attack(gone(here) and wait_for(lambda: not [p for p in children(os.getpid()) if b"write" in command_of(p)], 5), "a full pipe does not keep it alive")
    t.control(len(home.host("./probe", "write", "1000", "y", "80").raw_out) == 1000, "the writer works on the host")


@promise("RES-06", "a thousand writers at once; output after the end; closed streams")
def _(t):
    home = shared()
    many = home.sh("for i in $(seq %d); do (echo line $i; echo error $i >&2) & done; wait" % full(200, 1000), timeout=60)
    t.works(len(many.lines) == full(200, 1000) and set(many.lines) == {"line %d" % i for i in range(1, full(200, 1000) + 1)}, "every line, whole", len(many.lines))
    late = home.sh("(sleep 4; echo late) & echo early")
    t.works(late.out == "early\n", "nothing after the end", late)
    t.works("late" not in read(log_of(home)), "nor in the log")
    t.works("still running when the command had ended, and ended with it: sh, sleep" in late.err.replace("sleep, sh", "sh, sleep"), "that is told", late.err)
    closed = home.sh("exec >&- 2>&- <&-; ./probe exit 4")
    t.works(closed.code == 4, "a worker that closes its streams", closed)
    for which in ("1", "2", "12"):
        process = home.start("sh", "-c", "echo a; sleep 0.3; echo b; echo c >&2; exit 3", stdout=subprocess.PIPE)
        if "1" in which:
            process.stdout.close()
        if "2" in which:
            process.stderr.close()
        t.works(process.wait(timeout=20) in (3, -13, 141), "a reader that goes away (%s)" % which, process.returncode)


@promise("RES-06", "stdout and stderr stay apart, stdin arrives whole, an end of it is seen, and bytes are not changed")
def _(t):
    home = shared()
    apart = home.sh("echo out; echo err >&2")
    t.works(apart.out == "out\n" and "err\n" in apart.err and "err" not in apart.out, "apart", apart)
    data = bytes(range(256)) * 5000
    echo = home.run("cat", stdin=data)
    t.works(echo.raw_out == data, "1.3 MB through cat", len(echo.raw_out))
    t.works(home.run("wc", "-c", stdin=b"").out.strip() == "0", "an empty stdin")
    t.works(home.run("head", "-c", "1", stdin=data, timeout=20).raw_out == b"\0", "a command that does not read all")
    t.works(home.run("true", stdin=data * 10, timeout=20).code == 0, "a command that reads nothing")


@wall("RES-07", "escape sequences in output are stored as they are and shown neutral")
def _(t):
    home = shared()
    evil = "\\033]0;title\\007\\033[2J\\033]52;c;aGVsbG8=\\007\\033[6n\\302\\233 31m\\220\\033P+q\\033\\\\\\033]8;;http://x\\007link"
    result = home.sh("printf '%s\\n'" % evil)
    raw = result.raw_out
    t.works(b"\x1b]0;title\x07" in raw, "in a pipe bytes are unchanged", result)
    shown = home.kraft("view", "logs")
    t.works(shown.code == 0 and "title" in shown.out, "view logs shows the session", shown)
    t.attack(b"\x1b]" not in shown.raw_out and b"\x1b[2J" not in shown.raw_out and b"\x1b[6n" not in shown.raw_out and b"\xc2\x9b" not in shown.raw_out, "neutral", shown.raw_out)
    name = home.run("\x1b[31mno\x1b]0;x\x07such")
    t.attack(b"\x1b" not in name.raw_err and name.code == 125, "an error that quotes a name", name.raw_err)
    t.control(b"\x1b]0;title" in home.host("sh", "-c", "printf '%s\\n'" % evil).raw_out, "raw they would reach the terminal")


@promise("OS-LCH-12", "the log has the session's lines with time stamps, and its private mode")
def _(t):
    home = shared()
    home.sh("echo first; echo second >&2")
    log = log_of(home)
    text = read(log)
    t.works("first" in text and "second" in text, "the lines", text)
    t.works(os.stat(log).st_mode & 0o077 == 0, "mode", oct(os.stat(log).st_mode))
    shown = home.kraft("view", "logs", "--timestamps")
    t.works("first" in shown.out and re.search(r"\d\d:\d\d:\d\d", shown.out), "with time stamps", shown)


if __name__ == "__main__":
    main()
