"""The container runtimes that the tests have (tests/runtimes serves them), and which of them this program runs on.

A name with "-machine" behind it is the same runtime as if it lived in a virtual machine: its CLI is a wrapper that makes `info`
say so, and shows a container a copy of the session's channel directory, without its sockets, as a real machine does in effect.

KRAFT_RUNTIMES_FILE names the file that tells them. With KRAFT_TEST_RUNTIME set to docker, podman or podman-rootless every
Home of a test is of `kind: docker` on that runtime with the image KRAFT_TEST_IMAGE: so the tests of the walls, of the way out,
of git and of the channel run a second time, inside of a container (again.py says which, and what is expected to differ).
"""
import atexit
import json
import os
import shutil
import subprocess
import tempfile

FILE = os.environ.get("KRAFT_RUNTIMES_FILE") or "/var/cache/kraft-check/runtimes/runtimes.json"
NAMES = ("docker", "podman", "podman-rootless")
IN_LAB = "KRAFT_NETLAB"  # netlab's mark


MACHINE = "-machine"

WRAPPER = """#!/bin/sh
# Stands before a runtime's CLI: %(name)s in a virtual machine.
case $1 in
info)
	%(cli)s "$@" | sed -e '%(says)s'
	exit
	;;
run)
	for word; do
		shift
		case $word in
		--mount=type=bind,src=*/run/sn/*,dst=*)
			path=${word#--mount=type=bind,src=}
			path=${path%%%%,dst=*}
			if [ -d "$path" ]; then
				copy=%(folder)s/$$
				mkdir "$copy"
				(cd "$path" && find . -type f -exec cp -p '{}' "$copy/" ';')
				word="--mount=type=bind,src=$copy,dst=${word#*,dst=}"
			fi
			;;
		esac
		set -- "$@" "$word"
	done
	;;
esac
exec %(cli)s "$@"
"""
SAYS = {"docker": 's/"OperatingSystem": *"[^"]*"/"OperatingSystem":"Docker Desktop"/',
        "podman": 's/"serviceIsRemote": *[a-z]*/"serviceIsRemote":true/; s/"hostname": *"[^"]*"/"hostname":"machine.example"/'}


def wrapper(name, cli, says=True):
    """A program in front of this CLI; says: `info` tells of a machine too."""
    folder = tempfile.mkdtemp(prefix="kraft-machine-")
    atexit.register(shutil.rmtree, folder, True)
    path = os.path.join(folder, os.path.basename(cli))
    with open(path, "w") as f:
        f.write(WRAPPER % {"name": name, "cli": cli, "folder": folder, "says": SAYS[os.path.basename(cli)] if says else ""})
    os.chmod(path, 0o755)
    return path


class Absent(Exception):
    """There is no such runtime here, and why."""


class Runtime:
    """A CLI and what is set for it."""

    def __init__(self, name, told):
        self.name, self.cli, self.bridge = name, told["cli"], told.get("bridge")
        self.real = self.cli
        self.env = dict(told["lab" if os.environ.get(IN_LAB) else "env"])
        self.is_docker, self.is_rootless = name == "docker", name == "podman-rootless"

    def in_machine(self, says=True):
        """The same one behind a wrapper; tests go on to call it directly."""
        machine = Runtime.__new__(Runtime)
        machine.__dict__.update(self.__dict__)
        machine.name, machine.cli, machine.real = self.name + MACHINE, wrapper(self.name, self.cli, says), self.cli
        return machine

    def start(self, *words, **more):
        """The CLI itself, without kraft: of a control, and to look at what kraft started."""
        env = dict({"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": os.path.expanduser("~"), "LANG": "C.UTF-8"}, **self.env)
        return subprocess.Popen([self.real, *words], env=env, cwd="/", stdin=more.pop("stdin", subprocess.DEVNULL),
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
    if name.endswith(MACHINE):
        return find(name[:-len(MACHINE)]).in_machine()
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
