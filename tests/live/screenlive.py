"""What the tests of terminals share: class Screen, a person at a real pseudo-terminal.

It types, resizes, answers the questions that terminals answer, and looks at the modes that a program left behind.
"""
import fcntl
import pty
import select
import struct
import termios

from kraftlive import *

ROWS, COLUMNS = 33, 101


class Screen:
    """A program on a pseudo-terminal of its own. bash: an interactive shell, prompt "$> "."""

    def __init__(self, home, argv=None, answers=(), cwd=None, **env):
        self.home, self.seen, self.code, self.answers = home, b"", None, list(answers)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
                os.chdir(cwd or home.repo)
                argv = argv or ["/bin/bash", "--norc", "--noediting", "-i"]
                os.execve(argv[0], argv, home.env(TERM="xterm", PS1="$> ", KRAFT=KRAFT, **env))
            finally:
                os._exit(126)
        self.modes_before = termios.tcgetattr(self.master)

    def pump(self, seconds):
        """Reads what comes, and answers like a terminal; False when it has ended."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        for question, answer in self.answers:
            if question in data:
                time.sleep(0.005)
                os.write(self.master, answer)
        return bool(data)

    def until(self, text, seconds=20, count=1):
        """Waits until the text was shown this many times."""
        end = time.monotonic() + seconds
        while self.seen.count(text.encode()) < count:
            if time.monotonic() > end or not self.pump(0.1):
                raise Failed("%r does not come; shown: %r" % (text, self.seen[-3000:]))
        return self

    def type(self, text, pause=0.3):
        """A person types a moment later than the eye sees."""
        end = time.monotonic() + pause
        while time.monotonic() < end:
            self.pump(0.05)
        os.write(self.master, text.encode())
        return self

    def line(self, text):
        return self.type(text + "\n", 0.1)

    def forget(self):
        while select.select([self.master], [], [], 0.1)[0] and self.pump(0):
            pass
        self.seen = b""
        return self

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        return self

    def modes(self):
        return termios.tcgetattr(self.master)

    def is_raw(self):
        return not self.modes()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def end(self, seconds=20):
        """Waits for the end of the program; its exit code as a shell tells it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.pump(0.05):
                time.sleep(0.02)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                while self.pump(0) and select.select([self.master], [], [], 0.05)[0]:
                    pass
                self.code = os.waitstatus_to_exitcode(status)
                self.pid = 0
                return self
        raise Failed("it does not end; shown: %r" % self.seen[-3000:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            for victim in children(self.pid) + [self.pid]:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            os.waitpid(self.pid, 0)
        os.close(self.master)


__all__ = [n for n in dir() if not n.startswith("_")]
