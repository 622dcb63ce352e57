#!/usr/bin/env python3
"""kraft view watch: the board follows what happens, leaves its terminal as it was, and nothing on it steers that terminal."""
# kraft-test: timeout 300
import sqlite3
import unicodedata

from screenlive import *
from worklive import *

WATCH = [KRAFT, "view", "watch"]
ON, OFF = b"\033[?1049h", b"\033[?1049l"
OURS = re.compile(rb"\033\[(?:H|K|J|2J|m|[0-9;]+m|\?1049[hl]|\?25[hl]|\?7[hl])")


def frame(s):
    """The lines of the newest whole frame, without our own escape sequences."""
    frames = s.seen.split(b"\033[H")[1:]
    whole = [f[:f.index(b"\033[J")] for f in frames if b"\033[J" in f]
    return [line.decode() for line in OURS.sub(b"", whole[-1]).split(b"\r\n")] if whole else []


def shows(s, condition, seconds=10):
    """Waits for a frame of which it holds; the frame."""
    end = time.monotonic() + seconds
    while True:
        s.pump(0.05)
        lines = frame(s)
        if lines and condition(lines):
            return lines
        if time.monotonic() > end:
            raise Failed("no such frame; the last one: %r" % lines)


def has(*words):
    return lambda lines: any(all(w in line for w in words) for line in lines)


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def waiting_chain(home, name="w", script="while ! test -e go; do sleep 0.1; done"):
    return home.chain(name, node("work", task("it", "sh -c '%s'" % script.replace("'", "'\\''"))), GATE)


def change(home, sql, *values):
    """As somebody who can write the store."""
    with sqlite3.connect(home.run_dir + "/orchestrator.db", timeout=10) as db:
        db.execute(sql, values)


@promise("ITM-01", "the board follows an item from its filing over progress, refusals and a gate to its end")
def _(t):
    home = Office()
    script = ("kraft item progress 4; curl -s -o /dev/null http://refused.example/; curl -s -o /dev/null http://other.example/;"
              " while ! test -e go; do sleep 0.1; done")
    with Screen(home, WATCH) as s:
        shows(s, has("(nothing)"))
        item = home.create("Draw a board", "--chain", waiting_chain(home, script=script))
        shows(s, has(item, "paused since <1m", "Draw a board"))
        t.works(frame(s)[0].startswith("kraft: 1 item, 0 wait"), "counted", frame(s))
        other = home.create("another", "--chain", "w")
        shows(s, has(other, "paused"))
        process = home.kraft("item", "start", item, popen=True)
        lines = shows(s, lambda lines: has(item, "running since", "work.main.it", " 4 ", " 2 ")(lines))
        t.works(lines[2].startswith(item) and lines[3].startswith(other), "what runs before what is paused", lines)
        process.kill()
        process.communicate()
        shows(s, has(item, "cut off since"))
        write(home.tree(item) + "/go")
        home.kraft("item", "start", item)
        lines = shows(s, has(item, "needs you since <1m", "review"))
        t.works(lines[0].startswith("kraft: 2 items, 1 waits"), "and said", lines)
        failing = home.create("fails", "--chain", home.chain("f", node("work", task("it", "false")), GATE))
        home.kraft("item", "start", failing)
        lines = shows(s, has(failing, "failed since", "work.main.it"))
        t.works([line.split()[0] for line in lines[2:5]] == [item, failing, other], "those that wait first, the longest wait before", lines)
        home.kraft("item", "approve", item)
        shows(s, lambda lines: not has(item)(lines) and has(failing)(lines))
        s.type("q").end()
        t.works(s.code == 0, "q", s.code)


@promise("ITM-01", "how long: minutes, hours and days")
def _(t):
    home = Office()
    item = home.create("old")
    home.create("new")
    for minutes, said in ((0, "<1m"), (2, "2m"), (61, "1h"), (47 * 60, "47h"), (72 * 60, "3d"), (-5, "<1m")):
        change(home, "UPDATE items SET changed_ms = ? WHERE id = ?", int(time.time() * 1000) - minutes * 60000 - 1000, item)
        line = [x for x in home.kraft("view", "watch", "--once").lines if x.startswith(item)][0]
        t.works("paused since %s " % said in line, said, line)


@promise("ITM-01", "every way out gives the terminal back: keys, signals, a crash")
def _(t):
    home = Office()
    home.create("one")
    ways = [("q", "q", 0), ("Ctrl-C", "\x03", 130), ("Ctrl-\\", "\x1c", 131), ("TERM", signal.SIGTERM, 143), ("INT", signal.SIGINT, 130),
            ("HUP", signal.SIGHUP, 129), ("SEGV", signal.SIGSEGV, -11), ("ABRT", signal.SIGABRT, -6)]
    for name, way, code in ways:
        with Screen(home, WATCH) as s:
            shows(s, has("paused"))
            t.works(s.is_raw() and ON in s.seen, name + ": it is on the alternate screen, raw")
            if isinstance(way, str):
                s.type(way)
            else:
                os.kill(s.pid, way)
            s.end()
            t.works(s.code == code, name + ": its status", s.code)
            t.works(s.modes() == s.modes_before, name + ": the modes")
            rest = s.seen[s.seen.rindex(b"\033[H"):]
            t.works(all(o in rest for o in (OFF, b"\033[?25h", b"\033[?7h")) and rest.endswith(OFF), name + ": screen, cursor and wrapping", rest)
    with Screen(home, WATCH) as s:
        shows(s, has("paused"))
        s.type("\x1bOQ\x1b[A", 0.1).type("x", 0.7)
        t.works(OFF not in s.seen, "other keys mean nothing")
        write(home.run_dir + "/orchestrator.db", "nonsense")
        s.end()
        t.works(s.code == 1 and b"kraft:" in s.seen[s.seen.index(OFF):] and s.modes() == s.modes_before,
                "an error, which is told on the screen that was there before", s.seen[-600:])


@promise("ITM-01", "a terminal that takes nothing, and one that goes away, do not keep it")
def _(t):
    home = Office()
    first = home.create("item 1 " + "x" * 490)
    with sqlite3.connect(home.run_dir + "/orchestrator.db", timeout=10) as db:
        columns = ", ".join(c[1] for c in db.execute("PRAGMA table_info(items)") if c[1] != "id")
        for n in range(250):
            db.execute("INSERT INTO items (id, %s) SELECT ?, %s FROM items WHERE id = ?" % (columns, columns), ("copy-%04d" % n, first))
    with Screen(home, WATCH) as s:
        shows(s, has("item 1"))
        s.resize(300, 900)  # a frame that no terminal holds, and nobody reads
        time.sleep(2)
        os.kill(s.pid, signal.SIGTERM)
        ended = wait_for(lambda: os.waitpid(s.pid, os.WNOHANG)[0], 5)
        t.works(ended, "it ends all the same")
        s.pid = 0 if ended else s.pid
        while select.select([s.master], [], [], 0.2)[0] and s.pump(0):
            pass
        t.works(b"\033[J" not in s.seen[s.seen.rindex(b"\033[H"):], "in the middle of a frame", len(s.seen), s.seen[-300:])
    s = Screen(home, WATCH)
    shows(s, has("item 1"))
    os.close(s.master)
    t.works(wait_for(lambda: os.waitpid(s.pid, os.WNOHANG)[0], 5), "and with its terminal")


@promise("ITM-01", "Ctrl-Z, fg, and a start in the background, from an interactive bash")
def _(t):
    home = Office()
    home.create("one")
    with Screen(home) as s:
        s.until("$> ").line("$KRAFT view watch")
        shows(s, has("paused"))
        s.type("\x1a").until("Stopped").until("$> ", count=2)
        t.works(not s.is_raw() and s.seen.rindex(OFF) < s.seen.rindex(b"Stopped"), "the shell has its terminal back")
        s.forget().line("fg")
        shows(s, has("paused"))
        t.works(wait_for(s.is_raw, 3) and ON in s.seen, "and fg draws it anew")
        s.type("q").until("$> ").forget().line("$KRAFT view watch &").until("$> ")
        s.type("", 1.5)
        t.works(ON not in s.seen and not s.is_raw(), "in the background it leaves the terminal alone", s.seen)
        s.line("fg")
        shows(s, has("paused"))
        s.type("q").until("$> ").line("echo code $?").until("code 0").line("exit").end()


@promise("ITM-01", "no line is wider than the window nor are there more, whatever its size and the titles")
def _(t):
    home = Office()
    titles = ["plain " + "x" * 300, "wide " + "\u6f22\u5b57" * 60, "marks " + "a\u0301\u0302\u0303\u0304" * 40, "smile " + "\U0001f600" * 80, "short"]
    for title in titles * 2:
        home.create(title)
    sizes = [(12, 60), (24, 30), (5, 200), (3, 40), (2, 20), (1, 9), (40, 1), (30, 119), (30, 120), (30, 121)]
    with Screen(home, WATCH) as s:
        shows(s, has("paused"))
        for rows, columns in sizes:
            s.forget().resize(rows, columns)
            lines = shows(s, lambda lines: True)
            wide = [line for line in lines if width(line) > columns]
            t.works(not wide, "%d x %d: none is wider" % (rows, columns), wide)
            t.works(len(lines) <= rows and b"\033[2J" in s.seen, "%d x %d: nor are there more, and it is drawn anew" % (rows, columns), lines)
            if 3 <= rows < 12:
                t.works(lines[-1].startswith("... and %d more"[:columns] % (10 - (rows - 3))), "%d x %d: the rest is counted" % (rows, columns), lines)
        s.resize(33, 101)
        lines = shows(s, lambda lines: len(lines) > 11)
        t.works(max(width(line) for line in lines) >= 100, "and the window is used", lines)
        s.type("q").end()


@promise("ITM-01", "when nothing changes nothing is written, and next to no time is used")
def _(t):
    home = Office()
    for n in range(20):
        home.create("item %d" % n)
    with Screen(home, WATCH) as s:
        shows(s, has("item 19"))
        s.type("", 1.2).forget()

        def ticks():
            return sum(int(x) for x in read("/proc/%d/stat" % s.pid).rsplit(")", 1)[1].split()[11:13])
        before = ticks()
        s.type("", 4)
        t.works(s.seen == b"", "not a byte", s.seen)
        used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
        t.works(used < 0.2 or "asan" in BUILD, "in four seconds %.2f s" % used)
        home.create("one more")
        shows(s, has("one more"), 5)
        s.type("q").end()


@promise("ITM-01", "colours only where they are wanted; no board where it cannot be drawn; --once")
def _(t):
    home = Office()
    home.create("one", "--chain", home.chain("f", node("work", task("it", "false")), GATE), "--autostart")
    wait_for(lambda: "failed" in home.kraft("view", "watch", "--once").out)
    with Screen(home, WATCH) as s:
        shows(s, has("failed"))
        t.works(b"\033[1;31mfailed" in s.seen, "red", s.seen)
        s.type("q").end()
    with Screen(home, WATCH, NO_COLOR="1") as s:
        shows(s, has("failed"))
        t.works(not re.search(rb"\033\[[0-9;]+m", s.seen), "NO_COLOR", s.seen)
        s.type("q").end()
    with Screen(home, ["/usr/bin/env", "TERM=dumb", *WATCH]) as s:
        s.until("failed").type("\x03").end()
        t.works(b"\033" not in s.seen, "TERM=dumb: lines", s.seen)
    with Screen(home, WATCH + ["--once"]) as s:
        s.resize(33, 50).end()
        lines = OURS.sub(b"", s.seen).decode().splitlines()
        t.works(s.code == 0 and ON not in s.seen and len(lines) == 2 and "failed since" in lines[1], "--once at a terminal", s.seen)
    once = home.kraft("view", "watch", "--once")
    t.works(once.code == 0 and once.lines[0].split() == ["ID", "STATE", "NODE", "PROGRESS", "REFUSED", "TITLE"] and len(once.lines) == 2 and
            b"\033" not in once.raw_out, "--once into a pipe", once)
    empty = Office().kraft("view", "watch", "--once")
    t.works(empty.code == 0 and empty.out == "(nothing)\n", "without a store", empty)


class Lines:
    """A watch whose stdout is a pipe."""

    def __init__(self, home, *options):
        self.process = home.kraft("view", "watch", *options, popen=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def until(self, *words):
        if not wait_for(lambda: has(*words)(self.lines), 10):
            raise Failed("no line with %r: %r" % (words, self.lines))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()


@promise("ITM-01", "into a pipe a line for each change, with --json an object; it ends with its reader")
def _(t):
    home = Office()
    first = home.create("first", "--chain", waiting_chain(home, script="kraft item progress 7; while ! test -e go; do sleep 0.1; done"))
    with Lines(home) as text, Lines(home, "--json") as objects:
        text.until(first, "paused", "first")
        objects.until(first, "paused")
        process = home.kraft("item", "start", first, popen=True)
        text.until(first, "running", "work.main.it", "progress 7")
        objects.until('"progress":7')
        write(home.tree(first) + "/go")
        process.communicate()
        text.until(first, "needs you", "review")
        objects.until("needs you")
        home.kraft("item", "cancel", first)
        text.until(first, "cancelled", "first")
        objects.until("cancelled")
        told = [json.loads(line) for line in objects.lines]
        t.works(all(set(o) == {"ms", "id", "title", "display_status", "node", "progress", "refused", "since_ms"} for o in told), "its fields", told)
        words = [o["display_status"] for o in told]
        t.works([w for n, w in enumerate(words) if w not in words[:n]] == ["paused", "running", "needs you", "cancelled"], "in order", words)
        count = len(text.lines)
        time.sleep(1.5)
        t.works(len(text.lines) == count and len(set(text.lines)) == count, "no line twice", text.lines)
    once = home.kraft("view", "watch", "--once", "--json")
    t.works(once.code == 0 and once.out == "", "nothing goes on", once)
    home.create("second")
    once = home.kraft("view", "watch", "--once", "--json")
    t.works(len(once.lines) == 1 and json.loads(once.out)["title"] == "second", "--once --json", once)
    pipe = home.kraft("view", "watch", popen=True)
    pipe.stdout.readline()
    pipe.stdout.close()
    t.works(wait_for(lambda: pipe.poll() is not None, 5), "its reader went away")
    pipe.stderr.close()


@wall("RES-07", "nothing that stands in an item steers the terminal")
def _(t):
    home = Office()
    item = home.create("harmless")
    evil = "\x1b[2J\x1b]0;pwned\x07\x9b31m\u202e\u200btab\tcr\rlf\nend\x1b[?1049l"
    change(home, "UPDATE items SET title = ?, place = ?, id = ? WHERE id = ?", evil, evil, "e" + evil, item)
    with Screen(home, WATCH) as s:
        shows(s, has("paused"))
        t.attack(b"\033" not in OURS.sub(b"", s.seen) and b"\x07" not in s.seen and b"\t" not in s.seen, "no sequence of its own", s.seen)
        t.attack(OFF not in s.seen and "\u202e" not in s.seen.decode() and "\x9b" not in s.seen.decode(), "nor one of ours, nor hidden ones", s.seen)
        t.attack(len(frame(s)) == 4 and frame(s)[3] == "", "nor a line of its own", frame(s))
        s.type("q").end()
    for options in ((), ("--json",), ("--once",)):
        with Lines(home, *options) as lines:
            lines.until("paused")
            t.attack(len(lines.lines) == (2 if "--once" in options else 1) and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", "".join(lines.lines)),
                     "into a pipe %s" % (options,), lines.lines)
    with Lines(home, "--json") as lines:
        lines.until("paused")
        t.control(json.loads(lines.lines[0])["title"] == evil, "the bytes are there, for programs")
    t.works(home.kraft("view", "watch", "--once").code == 0, "and the board is")


if __name__ == "__main__":
    main()
