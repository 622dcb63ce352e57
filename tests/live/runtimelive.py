"""The container runtimes that the tests have (tests/runtimes serves them), and which of them this program runs on.

KRAFT_RUNTIMES_FILE names the file that tells them. With KRAFT_TEST_RUNTIME set to docker, podman or podman-rootless every
Home of a test is of `kind: docker` on that runtime with the image KRAFT_TEST_IMAGE: so the tests of the walls, of the way out,
of git and of the channel run a second time, inside of a container (again.py says which, and what is expected to differ).
"""
import json
import os
import subprocess

FILE = os.environ.get("KRAFT_RUNTIMES_FILE") or "/var/cache/kraft-check/runtimes/runtimes.json"
NAMES = ("docker", "podman", "podman-rootless")
IN_LAB = "KRAFT_NETLAB"  # netlab's mark


class Absent(Exception):
    """There is no such runtime here, and why."""


class Runtime:
    """A CLI and what is set for it."""

    def __init__(self, name, told):
        self.name, self.cli, self.bridge = name, told["cli"], told.get("bridge")
        self.env = dict(told["lab" if os.environ.get(IN_LAB) else "env"])
        self.is_docker, self.is_rootless = name == "docker", name == "podman-rootless"

    def start(self, *words, **more):
        """The CLI itself, without kraft: of a control, and to look at what kraft started."""
        env = dict({"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": os.path.expanduser("~"), "LANG": "C.UTF-8"}, **self.env)
        return subprocess.Popen([self.cli, *words], env=env, cwd="/", stdin=more.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def call(self, *words, timeout=120, ok=True):
        """(exit code, stdout, stderr). ok: anything but 0 is an error of the test."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        if ok and process.returncode:
            raise RuntimeError("%s %s: exit %d: %s" % (self.cli, " ".join(words), process.returncode, err.decode("utf-8", "replace")))
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def containers(self, home):
        """Names of a KRAFT_HOME's containers, whatever state they are in."""
        words = "label=kraft.home=" + home
        if not self.is_docker:  # which splits it at commas, but for this
            words = '"%s"' % words.replace('"', '""')
        _, out, _ = self.call("ps", "--all", "--no-trunc", "--filter", words, "--format", "{{.Names}}")
        return sorted(out.split())

    def inspect(self, name):
        return json.loads(self.call("inspect", name)[1])[0]

    def bare(self, *command, image, flags=(), mounts=(), cwd=None, network="none"):
        """The words of a run without kraft, of the same image: what `docker run` gives by itself."""
        user = ["--userns", "keep-id"] if self.is_rootless else []
        binds = [w for path in mounts for w in ("--mount", "type=bind,src=%s,dst=%s" % (path, path))]
        where = ["--workdir", cwd] if cwd else []
        return ["run", "--rm", "--pull", "never", "--network", network, *user, "--user", "%d:%d" % (os.getuid(), os.getgid()), *binds, *where, *flags, image, *command]


_told = None


def told():
    global _told
    if _told is None:
        try:
            with open(FILE) as f:
                _told = json.load(f)
        except OSError:
            _told = {}
    return _told


def find(name):
    """The runtime of that name; Absent."""
    found = told().get(name, {"absent": "no '%s': ./check --containers starts the runtimes, or `./dev runtimes` as root" % FILE})
    if "absent" in found:
        raise Absent("%s: %s" % (name, found["absent"]))
    return Runtime(name, found)


def image(name):
    """The whole name of one of the tests' images; Absent."""
    whole = "kraft-check/" + name
    if whole not in told().get("images", []):
        raise Absent("there is no image '%s': ./check --agents makes those with the agents" % whole)
    return whole


WANTED = os.environ.get("KRAFT_TEST_RUNTIME")  # None: the OS sandbox
IMAGE = os.environ.get("KRAFT_TEST_IMAGE", "kraft-check/debian")
