"""What the tests of work items share: a project with chains of its own, and questions about its items."""
from gitlive import *


def task(name, command, **more):
    return dict({"id": name, "kind": "subprocess", "command": command}, **more)


def node(name, *tasks, **more):
    return dict({"id": name, "kind": "exec", "tasks": list(tasks)}, **more)


GATE = {"id": "review", "kind": "gate", "message": "look"}


class Office(Project):
    """A project with chains of its own."""

    def chain(self, name, *nodes):
        write("%s/chains/%s.yaml" % (self.config_dir, name), json.dumps({"id": name, "nodes": list(nodes)}))
        return name

    def policy(self, **keys):
        write(self.config_dir + "/policy.yaml", json.dumps(dict({"default": {"attempts": 3, "wall_clock_s": 3600}}, **keys)))

    def create(self, title, *options, worker=None):
        result = self.kraft("item", "create", title, *options, *(["--", "sh", "-c", worker] if worker else []))
        if result.code != 0 or not re.fullmatch(r"[a-z0-9-]+ \w+\n", result.out):
            raise Failed("it is not filed: %r" % result)
        return result.out.split()[0]

    def show(self, item):
        return json.loads(self.kraft("view", "show", "--json", item).out)

    def status(self, item):
        told = self.show(item)
        return told["display_status"], told["node"], told["stop"]

    def events_of(self, item):
        lines = self.kraft("view", "events", "--json", "--item", item).out.splitlines()
        return [json.loads(line) for line in lines]

    def paths(self, item):
        return ["%s %s" % (s["path"], s["status"]) for s in self.show(item)["sessions"]]

    def settled(self, item, seconds=30):
        """Waits until nobody is at it."""
        wait_for(lambda: self.show(item)["display_status"] not in ("running", "asks you"), seconds, 0.1)
        return self.status(item)


__all__ = [n for n in dir() if not n.startswith("_")]
