#!/usr/bin/env python3
"""Hosts that are broken, one thing each: what kraft admin doctor says of them beside a healthy one, and that none starts anything with less
walls. tests/golden/hosts/NAME.txt holds the rows that differ; KRAFT_GOLDEN=write writes them anew."""
# kraft-test: timeout 300
import concurrent.futures
import pathlib

from kraftlive import *

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "hosts"


def after(script):
    """Words in front of kraft: this is done in a user and a mount namespace of its own, with rights there that kraft has not any more."""
    return ["unshare", "--user", "--map-current-user", "--mount", "--keep-caps", "sh", "-c", script + " && exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"", "sh"]


HOSTS = {}


def host(function):
    """function(home) breaks it and returns the environment, or (environment, words in front of kraft)."""
    HOSTS[function.__name__.replace("_", "-")] = function
    return function


def bwrap(version="bubblewrap 0.11.0", then="exit 1", mode=0o755):
    """A stand-in that answers --version so, and does that when it is to make a sandbox."""
    def make(home):
        path = write(home.root + "/bwrap", "#!/bin/sh\ncase $* in --version) echo '%s'; exit 0;; --help) echo '--ro-bind-fd --bind-fd --disable-userns'; exit 0;; esac\n%s\n" % (version, then), 0o755)
        os.chmod(path, mode)
        return {"KRAFT_BWRAP": path}
    return make


# What these mean is told by the host's own kernel, which is another one elsewhere: of their rows only the verdict is kept.
BY_KERNEL = {"apparmor-at-the-map", "apparmor-at-loopback", "no-permission-for-namespaces", "nested-without-proc", "out-of-namespaces", "kernel-without-namespaces",
             "bubblewrap-fails-without-a-word", "bubblewrap-killed", "user-namespaces-off"}


def says(text):
    return bwrap(then="echo 'bwrap: %s' >&2; exit 1" % text)


def container(home, text):
    cli = write(home.root + "/docker", "#!/bin/sh\n" + text, 0o755)
    write(home.config_dir + "/repos.yaml", json.dumps({"repos": [{"path": home.repo, "setup_command": "", "test_command": "true", "sandbox": {
        "kind": "docker", "image": "nowhere.example/image", "network": {"runtime": {"allow": ["a.example"]}}}}]}), 0o600)
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": cli}), 0o600)
    return {}


for name, make in {
    "bubblewrap-old": bwrap("bubblewrap 0.4.0"), "bubblewrap-a-little-old": bwrap("bubblewrap 0.7.9"), "bubblewrap-mute": bwrap(""),
    "bubblewrap-of-another-kind": bwrap("busybox v1.35"), "bubblewrap-setuid": bwrap(mode=0o4755), "bubblewrap-not-executable": bwrap(mode=0o644),
    "bubblewrap-fails-without-a-word": bwrap(), "apparmor-at-the-map": says("setting up uid map: Permission denied"),
    "apparmor-at-loopback": says("loopback: Failed RTM_NEWADDR: Operation not permitted"),
    "no-permission-for-namespaces": says("No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."),
    "nested-without-proc": says("Can\\'t mount proc on /newroot/proc: Operation not permitted".replace("\\'", "'\\''")),
    "out-of-namespaces": says("Creating new namespace failed: No space left on device"), "kernel-without-namespaces": says("Creating new namespace failed: Invalid argument"),
    "bubblewrap-killed": bwrap(then="kill -9 $$"),
}.items():
    HOSTS[name] = make


@host
def bubblewrap_absent(home):
    return {"KRAFT_BWRAP": home.root + "/none"}


@host
def bubblewrap_a_directory(home):
    return {"KRAFT_BWRAP": home.home}


@host
def user_namespaces_off(home):
    return {}, after("echo 0 >/proc/sys/user/max_user_namespaces")


@host
def root(home):
    return {}, ["unshare", "--user", "--map-root-user"]


def git(home, text, mode=0o755):
    return {}, after("mount --bind %s /usr/bin/git" % write(home.root + "/git", text, mode))


@host
def git_old(home):
    return git(home, "#!/bin/sh\necho git version 1.8.3\n")


@host
def git_fails(home):
    return git(home, "#!/bin/sh\necho 'git: broken' >&2; exit 1\n")


@host
def git_mute(home):
    return git(home, "#!/bin/sh\nexit 0\n")


@host
def git_not_executable(home):
    return git(home, "", 0o644)


@host
def bubblewrap_not_installed(home):
    return {}, after("mount --bind %s /usr/bin/bwrap" % write(home.root + "/bwrap", "", 0o644))


def run_directory(home, options, more="true"):
    os.makedirs(home.kraft_home + "/run", 0o700, exist_ok=True)
    return {}, after("mount -t tmpfs -o mode=700,%s it %s/run && %s" % (options, home.kraft_home, more))


@host
def disk_full(home):
    return run_directory(home, "size=64k", "head -c 60k /dev/zero >%s/run/filler" % home.kraft_home)


@host
def no_inodes(home):
    return run_directory(home, "nr_inodes=2")


@host
def home_read_only(home):
    return {}, after("mount --bind {0} {0} && mount -o remount,bind,ro {0}".format(home.kraft_home))


@host
def home_a_link(home):
    os.rename(home.kraft_home, home.root + "/elsewhere")
    os.symlink(home.root + "/elsewhere", home.kraft_home)
    return {}


@host
def home_of_everybody(home):
    os.chmod(home.kraft_home, 0o777)
    return {}


@host
def home_a_file(home):
    return {"KRAFT_RUN_DIR": write(home.root + "/file", "x")}


@host
def home_relative(home):
    return {"KRAFT_HOME": "relative/place"}


@host
def run_directory_long(home):
    return {"KRAFT_RUN_DIR": home.root + "/" + "r" * 100}


@host
def configuration_open(home):
    os.chmod(home.config_dir, 0o777)
    return {}


@host
def token_readable(home):
    write(home.kraft_home + "/run/token", "x" * 43 + "\n", 0o644)
    os.chmod(home.kraft_home + "/run", 0o700)
    return {}


@host
def store_of_another_program(home):
    write(home.kraft_home + "/run/orchestrator.db", "not a database " * 20, 0o600)
    os.chmod(home.kraft_home + "/run", 0o700)
    return {}


@host
def store_of_a_newer_kraft(home):
    header = bytearray(b"SQLite format 3\0" + bytes(84))
    header[60:64], header[68:72] = (999).to_bytes(4, "big"), (0x6b726674).to_bytes(4, "big")
    os.makedirs(home.kraft_home + "/run", 0o700, exist_ok=True)
    with open(home.kraft_home + "/run/orchestrator.db", "wb") as f:
        f.write(header)
    os.chmod(f.name, 0o600)
    return {}


@host
def repos_broken(home):
    write(home.config_dir + "/repos.yaml", "repos: [\n", 0o600)
    return {}


@host
def repos_unknown_key(home):
    home.configure("repos:\n  - " + json.dumps(dict(home.entry(), zzzz=1)) + "\n")
    return {}


@host
def exposed_missing(home):
    home.configure(expose=[home.home + "/none"])
    return {}


@host
def checkout_gone(home):
    home.configure("repos:\n  - %s\n  - %s\n" % (json.dumps(home.entry()), json.dumps(dict(home.entry(), path=home.home + "/gone"))))
    return {}


@host
def runtime_dead(home):
    return container(home, "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 1\n")


@host
def runtime_of_another_kind(home):
    return container(home, "echo hello\n")


@host
def runtime_absent(home):
    container(home, "")
    os.unlink(home.root + "/docker")
    return {}


# ---- what is said, and what is started ----

def plain(home, text):
    """What differs from machine to machine, and from run to run, is taken out."""
    for path, word in ((home.kraft_home, "KRAFT_HOME"), (home.repo, "REPO"), (home.home, "HOME"), (home.root, "ROOT"), (os.environ["KRAFT_BUILD"], "BUILD"), (USER, "USER")):
        text = text.replace(path, word)
    text = re.sub(r"\b\d+ (MiB|KiB|bytes)\b", r"N \1", re.sub(r"(\.yaml:\d+):\d+:", r"\1:N:", text))  # a column depends on the length of paths
    return re.sub(r"\bsetuid-root\b", "setuid", re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", text))


def doctor(home, env, before):
    result = home.kraft("admin", "doctor", "--json", env=env, before=before)
    try:
        return result, json.loads(result.out)["rows"]
    except ValueError:
        return result, None


def page(home, result, rows, healthy):
    """The rows that are not the healthy host's; of a doctor that could not ask, what it said."""
    if rows is None:
        return plain(home, "exit %d\n%s" % (result.code, result.err))
    told = []
    rows = [row for row in rows if row["id"] != "run-directory"]  # of which type it is differs from machine to machine
    for row in rows:
        line = plain(home, "%-4s  %s  %s%s\n" % (row["verdict"], row["id"], row["detail"], "".join("\n      " + l for l in ("fix: " + row["fix"]).split("\n")) if row["fix"] else ""))
        told += [line] if line not in healthy else []
    ids = {row["id"] for row in rows}
    return "exit %d\n" % result.code + "".join(told) + "".join("gone  %s\n" % l.split()[1] for l in healthy if l.split()[1] not in ids)


CANARY = "if test -e %s; then echo WEAK; else echo WALLED; fi"


def meet(name):
    """(page, how a start ended, what it printed) of one host."""
    home = Home()
    secret = write(home.home + "/.ssh/id", "secret")
    _, rows = doctor(home, {}, ())
    healthy = page(home, type("", (), {"code": 0}), rows, []).split("\n", 1)[1]
    healthy = re.split(r"(?m)^(?=\S)", healthy)[1:] or [healthy]
    made = HOSTS[name](home)
    env, before = made if isinstance(made, tuple) else (made, ())
    result, rows = doctor(home, env, before)
    run = home.kraft("run", "--", "sh", "-c", CANARY % secret, env=env, before=before)
    text = page(home, result, rows, healthy)
    if name in BY_KERNEL:
        text = "".join(" ".join(line.split()[:2]) + "\n" for line in text.splitlines() if line[:1] != " ")
    return text, result, run


@wall("OS-LCH-14 CFG-12 CFG-13", "of each broken host doctor says what is broken, and nothing starts with less walls")
def _(t):
    healthy = Home()
    secret = write(healthy.home + "/.ssh/id", "secret")
    t.works(healthy.sh(CANARY % secret).out == "WALLED\n", "on a healthy host the canary runs, behind walls")
    t.control(healthy.host("sh", "-c", CANARY % secret).out == "WEAK\n", "and without walls it says so")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        met = dict(zip(HOSTS, pool.map(meet, HOSTS)))
    t.works(len(met) >= 35, "enough of them", len(met))
    weak, wordless, unknown, other = [], [], [], []
    for name, (text, _result, run) in met.items():
        refused = run.code in (2, 125) and run.out == "" and re.search(r"(?m)^kraft: ", run.err)
        weak += [] if refused or (run.code == 0 and run.out == "WALLED\n") else [(name, run)]
        wordless += [(name, run)] if refused and "hint:" not in run.err else []
        unknown += [(name, text, run)] if refused and text.startswith("exit 0") else []
        file = GOLDEN / (name + ".txt")
        if os.environ.get("KRAFT_GOLDEN") == "write":
            GOLDEN.mkdir(exist_ok=True)
            file.write_text(text)
        other += [(name, text)] if not file.exists() or file.read_text() != text else []
    t.attack(not weak, "each start is refused, or walled as ever", weak)
    t.works(not wordless, "what refuses tells the next step", wordless)
    t.works(not unknown, "what a start refuses, doctor fails", unknown)
    t.works(not other, "each page is as tests/golden/hosts has it", other)
    known = {f.stem for f in GOLDEN.glob("*.txt")}
    t.works(known == set(met), "a page for each host", known ^ set(met))


if __name__ == "__main__":
    main()
