#!/usr/bin/env python3
"""Terminals: a person at a real pseudo-terminal, mostly through an interactive bash with job control.

The person's terminal is played by class Screen (screenlive.py).
"""
# kraft-test: timeout 300
from screenlive import *


def kraft_below(screen):
    """The kraft that runs under the shell of this screen."""
    return wait_for(lambda: [p for p in children(screen.pid) if command_of(p)[:2] == [KRAFT.encode(), b"run"]], 10)[0]


def state_of(pid):
    return read("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[0]


def run_words(*command):
    return [KRAFT, "run", "--"] + list(command)


@promise("OS-LCH-07", "the window's size is there from the first moment, and follows")
def _(t):
    home = shared()
    with Screen(home, run_words("sh", "-c", "stty size; trap 'stty size; exit' WINCH; echo re''ady; while :; do sleep 0.1; done")) as s:
        s.until("ready")
        t.works(b"%d %d" % (ROWS, COLUMNS) in s.seen, "at the start", repr(s.seen))
        s.resize(20, 60).until("20 60").end()
    for _ in range(full(5, 40)):
        with Screen(home, run_words("stty", "size")) as s:
            t.works(b"%d %d" % (ROWS, COLUMNS) in s.end().seen, "every time", repr(s.seen))


@promise("OS-LCH-07", "it is a terminal of its own, with all three streams, and keys arrive as typed")
def _(t):
    home = shared()
    with Screen(home, run_words("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty; read x; echo \"<$x>\"; cat -A")) as s:
        s.until("/dev/pts/0").type("wo\x7f\x7fh\u00e4\x7fi\n").until("<hi>")
        t.works(s.is_raw(), "ours is raw meanwhile")
        s.type("\x16\x01\t\n").until("^A^I$").type("\x04").end()
        t.works(s.code == 0 and s.modes() == s.modes_before, "our modes are as before", s.modes(), s.modes_before)


@promise("OS-LCH-07", "Ctrl-C reaches the command exactly once; Ctrl-\\ too; the exit code tells")
def _(t):
    home = shared()
    count = ("import signal,time\nn=[0]\ndef h(*a): n[0]+=1\nsignal.signal(2,h)\nprint('re'+'ady',flush=True)\n"
             "time.sleep(1.5)\nprint('got',n[0])")
    with Screen(home, run_words("python3", "-IS", "-c", count)) as s:
        s.until("ready").type("\x03").until("got 1").end()
        t.works(s.code == 0, "a command that handles it goes on", s.code)
    for key, code in (("\x03", 130), ("\x1c", 131)):
        with Screen(home, run_words("sh", "-c", "echo re''ady; sleep 30")) as s:
            s.until("ready").type(key).end()
            t.works(s.code == code and s.modes() == s.modes_before, "%r ends it" % key, s.code)


@promise("OS-LCH-07", "Ctrl-Z, jobs, bg and fg in an interactive bash")
def _(t):
    home = shared()
    here = mark()
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT run -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo tick''$i; ./probe sleep 0.5 %s; done; read x; echo \"<$x>\"; stty size'" % here)
        s.until("tick2").type("\x1a").until("Stopped").until("$> ", count=2)
        t.works(s.modes()[3] & termios.ECHO and not s.is_raw(), "the shell has its terminal back")
        kraft = kraft_below(s)
        t.works(state_of(kraft) == "T", "kraft is stopped", state_of(kraft))
        t.works(wait_for(lambda: all(state_of(p) == "T" for p in marked(here) if command_of(p)[0] == b"./probe"), 3), "and so is the command")
        s.forget().resize(22, 66).line("jobs").until("Stopped").line("bg").until("tick", count=2)
        t.works(not s.is_raw(), "in the background it leaves the terminal alone")
        s.line("echo still''here").until("stillhere").line("fg").until("tick8")
        t.works(wait_for(s.is_raw, 3), "in front it is raw again")
        s.until("tick9").type("answer\n", 1).until("<answer>").until("22 66").until("$> ")
        s.line("echo code $?").until("code 0")
        s.line("$KRAFT run -- sh -c 'echo fir''st; sleep 1; echo sec''ond'").until("first").type("\x1a").until("Stopped").line("fg").until("second")
        s.line("exit").end()


@promise("OS-LCH-07", "started in the background: it writes, is not stopped, and takes keys once it is in front")
def _(t):
    home = shared()
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT run -- sh -c 'echo beg''un; read x; echo \"<$x>\"' &").until("begun")
        s.line("echo mi''ne").until("mine")
        t.works(not s.is_raw(), "the shell keeps its terminal")
        s.line("fg")
        t.works(wait_for(s.is_raw, 3), "raw in front")
        s.type("now\n").until("<now>").until("$> ").line("exit").end()


@promise("OS-LCH-07", "a stopped job whose shell goes away, and one that nobody could continue, do not hang")
def _(t):
    home = shared()
    here = mark()
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT run -- ./probe sleep 60 %s" % here)
        wait_for(lambda: len(marked(here)) > 1, 10)
        s.type("\x1a", 0.6).until("Stopped")
        kraft = kraft_below(s)
        os.kill(s.pid, signal.SIGKILL)
        t.works(wait_for(lambda: not os.path.exists("/proc/%d" % kraft) or state_of(kraft) == "Z", 12), "kraft ends with its shell")
        t.works(gone(here), "and its sandbox")
    # kraft leads the session itself: its group is an orphan, and a stop would be for ever
    # One process: dash starts programs by vfork, and a child stopped before its exec holds its parent where nothing stops it.
    with Screen(home, run_words("python3", "-IS", "-c", "import time\nprint('re'+'ady', flush=True)\ntime.sleep(1.2)\nprint('do'+'ne')")) as s:
        s.until("ready").type("\x1a").until("done").end()
        t.works(s.code == 0, "it goes on", s.code)


@promise("OS-LCH-07", "on every way out the terminal has its modes back")
def _(t):
    home = shared()
    for name, number, code in (("TERM", signal.SIGTERM, 143), ("HUP", signal.SIGHUP, 129), ("QUIT", signal.SIGQUIT, 131),
                               ("SEGV", signal.SIGSEGV, 139), ("ABRT", signal.SIGABRT, 134)):
        with Screen(home) as s:
            s.until("$> ").line("$KRAFT run -- sh -c 'echo re''ady; sleep 30'").until("ready")
            wait_for(s.is_raw, 3)
            t.works(s.is_raw(), "raw")
            os.kill(kraft_below(s), number)
            s.until("$> ", count=2).line("echo code $?").until("code %d" % code)
            t.works(not s.is_raw(), name)
            s.line("stty -a | grep -c 'isig icanon.* echo '").until("\n1\r").line("exit").end()


@promise("OS-LCH-07", "what a killed program left switched on is switched off; a clean one is believed")
def _(t):
    home = shared()
    on = r"printf '\033[?1049h\033[?25l\033[?1000;1006h\033[?2004h\033[>1u'; echo re''ady; "
    with Screen(home, run_words("sh", "-c", on + "kill -9 $$")) as s:
        s.end()
        rest = s.seen.split(b"ready")[-1]
        for off in (b"\033[?1049l", b"\033[?25h", b"\033[?1000l", b"\033[?1006l", b"\033[?2004l", b"\033[<1u"):
            t.works(off in rest, "%r" % off, repr(rest))
        t.works(s.code == 137, "code", s.code)
    with Screen(home, run_words("sh", "-c", on + "exit 3")) as s:
        s.end()
        t.works(s.code == 3 and b"\033[?" not in s.seen.split(b"ready")[-1], "nothing is added to a clean end", repr(s.seen))
    with Screen(home, run_words("sh", "-c", "echo plain; kill -9 $$")) as s:
        s.end()
        t.works(b"\033" not in s.seen, "nor to plain output", repr(s.seen))


@promise("OS-LCH-07", "answers of the terminal that the program left behind do not reach the shell")
def _(t):
    home = shared()
    answers = [(b"\033[c", b"\033[?62;22c"), (b"\033[6n", b"\033[12;1R"), (b"]11;?", b"\033]11;rgb:0000/0000/0000\033\\")]
    for question in (r"\033[c", r"\033[6n", r"\033]11;?\007"):
        with Screen(home, answers=answers) as s:
            s.until("$> ").line("$KRAFT run -- sh -c \"printf '%s'\"; IFS= read -r -t 0.5 rest; echo \"left=${#rest}.\"" % question)
            s.until("left=")
            s.until("left=0.", 3)
            s.line("exit").end()
    # the same on the host: the answer is left for the shell, so the test can see one
    with Screen(home, answers=answers) as s:
        s.until("$> ").line("sh -c \"printf '\\033[6n'; sleep 0.1\"; stty -icanon; IFS= read -r -t 0.5 rest; echo \"left=${#rest}.\"; stty icanon")
        s.until("left=")
        t.works(b"left=0." not in s.until("\r\n", count=2).seen.split(b"echo")[-1] or b"12;1R" in s.seen, "an unflushed answer is seen", repr(s.seen))


@promise("OS-LCH-07", "type-ahead is the program's while it runs; without a question nothing is thrown away after it")
def _(t):
    home = shared()
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT run -- sh -c 'echo re''ady; sleep 1; read x; echo \"<$x>\"'").until("ready")
        s.type("early\n").until("<early>").until("$> ").line("exit").end()


@promise("OS-LCH-07", "stdin or stdout that is no terminal: pipes, and a key still reaches the command once")
def _(t):
    home = Home()
    count = ("import signal,time,os,sys\nn=[0]\ndef h(*a): n[0]+=1\nsignal.signal(2,h)\n"
             "print('re'+'ady',os.isatty(0),os.isatty(1),flush=True)\ntime.sleep(1.5)\nprint('got',n[0],flush=True)")
    write(os.path.join(home.repo, "count.py"), count)
    cat = "(trap '' INT; cat)"  # the key reaches the whole group
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT run -- python3 -IS -c \"$(cat count.py)\" | %s" % cat).until("ready False False")
        t.works(not s.is_raw(), "our modes are not touched")
        s.type("\x03").until("got 1")
        s.line("echo in''put | $KRAFT run -- cat").until("input")
        s.line("$KRAFT run -- sh -c 'echo re''ady2; sleep 30' | cat").until("ready2").forget()
        s.type("\x03").until("$> ").line("echo code ${PIPESTATUS[0]}").until("code 130")
        s.line("$KRAFT run -- sh -c 'trap \"\" INT; echo re''ady3; sleep 30' | (trap '' INT; cat)").until("ready3").forget()
        s.type("\x03").type("\x03", 0.5).until("$> ").line("echo code ${PIPESTATUS[0]}").until("code 137")
        s.line("$KRAFT run -- sh -c 'echo re''ady4; sleep 1; echo fin''ished' | cat").until("ready4").type("\x1a").until("Stopped").line("fg")
        s.until("finished").line("exit").end()
    os.unlink(os.path.join(home.repo, "count.py"))


@promise("OS-LCH-07", "stop and continue without any terminal: kraft and the command stop and go on together")
def _(t):
    home = shared()
    here = mark()
    # A group of its own in our session, as a shell makes for a job: one that nobody could continue is not stopped.
    process = home.start("./probe", "sleep", "10", here, preexec=os.setpgrp)
    t.works(wait_for(lambda: [p for p in marked(here) if command_of(p)[0] == b"./probe"], 10), "it runs")
    worker = [p for p in marked(here) if command_of(p)[0] == b"./probe"][0]
    os.kill(process.pid, signal.SIGTSTP)
    t.works(wait_for(lambda: state_of(worker) == "T" and state_of(process.pid) == "T", 8), "both stopped", state_of(worker))
    os.kill(process.pid, signal.SIGCONT)
    t.works(wait_for(lambda: state_of(worker) != "T", 8), "both continued", state_of(worker))
    t.works(process.wait(timeout=40) == 0, "it ends well", process.returncode)


@promise("OS-LCH-07", "at a terminal with stderr sent elsewhere, the command's stderr goes there")
def _(t):
    home = shared()
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT run -- sh -c 'test -t 0 && test -t 1 && echo on a ter''minal; test -t 2 || echo to the fi''le >&2' 2>errors; cat errors | tr a-z A-Z")
        s.until("on a terminal").until("TO THE FILE").line("exit").end()
        t.works(b"to the file" not in s.seen, "apart", repr(s.seen))
    os.unlink(os.path.join(home.repo, "errors"))


@promise("RES-05", "a full screen of output, a slow terminal, and Ctrl-C through it")
def _(t):
    home = shared()
    with Screen(home, run_words("sh", "-c", "yes 0123456789")) as s:
        time.sleep(0.5)  # nobody reads: everything in between is full
        os.write(s.master, b"\x03")
        s.end()
        t.works(s.code == 130, "it ends", s.code)
        t.works(len(s.seen) < 4 << 20, "what was in between is bounded", len(s.seen))
    with Screen(home, run_words("seq", "200000")) as s:
        s.end(60)
        t.works(s.seen.split() == [b"%d" % i for i in range(1, 200001)], "all of it, in order", len(s.seen))


@promise("OS-LCH-14", "kraft shell: a terminal, or a sentence that says what to do")
def _(t):
    home = shared()
    with Screen(home, [KRAFT, "shell"], SHELL="/bin/bash") as s:
        s.type("echo $0-$((40+2)); pwd; exit 5\n", 1).until("-42").end()
        t.works(s.code == 5 and b"bash" in s.seen and b"worktrees" in s.seen, "a shell", repr(s.seen))
    piped = home.kraft("shell")
    t.works(piped.code == 2 and "needs a terminal" in piped.err and "kraft run -- sh" in piped.err, "without one", piped)


if __name__ == "__main__":
    main()
