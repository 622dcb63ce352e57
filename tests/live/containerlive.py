"""What the tests of `kind: docker` share: a project on one of the runtimes, a promise that is tested on each of them, and a
look at the containers of a home from outside."""
from servelive import *

DOCKER, PODMAN, ROOTLESS = runtimelive.NAMES
EVERYWHERE = runtimelive.NAMES
# What a rootful podman does otherwise than both of these is tested on it by name (on=EVERYWHERE), and all else with KRAFT_ALL=1.
SAMPLED = EVERYWHERE if ALL else (DOCKER, ROOTLESS)


def each(register, ids, name, on=SAMPLED):
    """Registers a wall or a promise once for each of these runtimes; the function gets it."""
    def decorate(function):
        for runtime in on:
            register(ids, "%s: %s" % (runtime, name))(lambda t, runtime=runtime: function(t, runtimelive.find(runtime)))
        return function
    return decorate


class Box(Served):
    """A project whose sandbox is a container. image: of the tests', without its folder. Keys of `sandbox` are added."""

    def __init__(self, runtime, image="debian", **more):
        super().__init__(runtime=runtime, image=runtimelive.image(image), **more)
        shutil.copy2(PROBE, self.repo + "/probe")
        self.own("add", "probe")
        self.own("commit", "-qm", "a probe")

    def containers(self):
        return self.runtime.containers(self.kraft_home)

    def empty(self, seconds=30):
        """Whether its last container goes."""
        return wait_for(lambda: not self.containers(), seconds, 0.1)

    def running(self, seconds=30):
        """The name of its one container, once it runs."""
        if not wait_for(self.containers, seconds, 0.05):
            raise Failed("no container of '%s' comes" % self.kraft_home)
        return self.containers()[0]

    def sleeping(self, *options, script="echo up; exec sleep 300", **more):
        """A session that has begun; (process, mark): the mark is in its command line."""
        here = mark()
        process = self.start("sh", "-c", script, here, options=options, **more)
        line = process.stdout.readline()
        if line != b"up\n":
            process.kill()
            raise Failed("it does not begin: %r %r" % (line, process.communicate()))
        return process, here

    def bare_run(self, *command, image=None, **more):
        """The runtime's own run of the image: of a control."""
        code, out, err = self.runtime.call(*self.runtime.bare(*command, image=image or self.image, **more), ok=False)
        return Result(code, out.encode(), err.encode())

    def session_events(self, kind):
        lines = self.kraft("view", "events", "--json", "--type", kind).out.splitlines()
        return [json.loads(line) for line in lines]


def refused(t, result, *words, what="refused"):
    """kraft's own exit code and a sentence of its own with these words."""
    t.attack(result.code == 125 and "kraft: " in result.err and all(w in result.err for w in words), what, result)


def end(*processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def cgroup_v1():
    return not os.path.exists("/sys/fs/cgroup/cgroup.controllers")


__all__ = [n for n in dir() if not n.startswith("_")]
