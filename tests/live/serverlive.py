"""What the tests of the server share."""
from worklive import *

PORT_0 = ("--port", "0")


class Served(Office):
    """An office with a server."""

    def __init__(self, *options, **more):
        super().__init__(**more)
        self.server = None

    def serve(self, *options, **more):
        result = self.kraft("admin", "start", "--detach", *PORT_0, *options, **more)
        found = re.fullmatch(r"process (\d+) listens on (http://127\.0\.0\.1:\d+)\n", result.out)
        if result.code != 0 or not found:
            raise Failed("no server: %r" % result)
        self.server, self.url = int(found.group(1)), found.group(2)
        atexit.register(self.kill_server)
        return self

    def kill_server(self, how=signal.SIGKILL):
        if self.server:
            try:
                os.kill(self.server, how)
            except ProcessLookupError:
                pass
            wait_for(lambda: not os.path.exists("/proc/%d" % self.server), 5)
            self.server = None

    def words(self, item):
        return self.show(item)["display_status"]

    def becomes(self, item, *words, seconds=30):
        return wait_for(lambda: self.words(item) in words, seconds, 0.05)

    def types(self, item):
        return [e["type"] for e in self.events_of(item)]

    def health(self):
        return json.loads(self.kraft("admin", "health", "--json").out)


__all__ = [n for n in dir() if not n.startswith("_")]
