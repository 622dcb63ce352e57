#!/usr/bin/env python3
"""Configuration as the person sees it (ledger CFG-01 to -07, -10, -11) and attempts through it (cases CFG-01 to -13)."""
from kraftlive import *

FIRST = "repos:\n  - path: %s\n"


def launch(home, text):
    home.configure(text % {"repo": home.repo, "home": home.home})
    log = os.path.join(home.root, "launched-" + uuid.uuid4().hex)
    result = home.run("true", env={"KRAFT_BWRAP": home.wrapper(log=log)})
    return result, os.path.exists(log)


def refuse(t, home, text, *words, place=True):
    result, ran = launch(home, text)
    t.attack(result.code == 125 and not ran, "refused: %s" % text[-120:], result)
    if place:
        t.attack(re.search(r"repos\.yaml:\d+:\d+: ", result.err), "with file, line and column", text, result)
    for word in words:
        t.attack(word in result.err, "says %r" % word, result)
    return result


GOOD = "repos:\n  - path: %(repo)s\n    setup_command: ''\n    sandbox:\n      kind: os\n      network: {runtime: {allow: [example.com]}}\n"


@wall("CFG-01 CFG-02 CFG-03 CFG-05 CFG-07 CFG-11", "every refused key and shape: nothing runs, the entry and the place are named")
def _(t):
    home = Home()
    os_entry = "repos:\n  - path: %(repo)s\n    setup_command: ''\n    sandbox:\n      kind: os\n      network: {runtime: {allow: [example.com]}}\n      "
    for key in ("image: x", "runtime: docker", "kit: a@sha256:" + "0" * 64, "resources: {}", "unrestricted_network: true", "unrestricted_network: false",
                "credentials: []", "resources: {cpu: 1}"):
        name = key.split(":")[0]
        refuse(t, home, os_entry + key + "\n", "kind: os takes no " + name)
    body = "repos:\n  - path: %(repo)s\n    setup_command: ''\n    sandbox: "
    for sandbox in ("{kind: os}", "{kind: os, network: {}}", "{kind: os, network: null}", "{kind: os, network: ''}", "{kind: os, network: []}", "{}",
                    "{network: {runtime: {}}}", "{kind: vm, network: {runtime: {}}}", "{kind: OS, network: {runtime: {}}}", "{kind: [os]}", "{kind: 1}", "true",
                    "os", "[]", "{kind: os, network: {runtime: {}}, expose: /usr}", "{kind: os, network: {runtime: {}}, expose: [1]}",
                    "{kind: os, network: {runtime: {}}, expose: [relative]}", "{kind: os, network: {runtime: {}}, expose: ['~other/x']}",
                    "{kind: os, network: {runtime: {}}, expose: ['']}", "{kind: os, network: {runtime: {}}, expose: [null]}",
                    "{kind: os, network: {run_time: {}}}", "{kind: os, network: {runtime: {allow: ['http://x']}}}", "{kind: os, network: {runtime: {allow: ['1.2.3.0/24']}}}",
                    "{kind: os, network: {runtime: {allow: 'x'}}}", "{kind: os, network: {runtime: {allow: ['a_b']}}}", "{kind: os, kind: os, network: {runtime: {}}}",
                    "{kind: os, network: {runtime: {}}, exposee: []}"):
        refuse(t, home, body + sandbox + "\n")
    refuse(t, home, GOOD + "    policy:\n      sandbox: {kind: os, network: {runtime: {}}}\n")
    for text in ("repos: 1\n", "repos:\n  - 1\n", "repos:\n  - {}\n", "repos:\n  - path: relative\n", "repos:\n\t- path: x\n", "- a\n", "a: &x 1\nrepos: *x\n", "repos: []\nrepos: []\n",
                 "repos: [\n", "!!python/object:x {}\n", "repos: []\n---\nrepos: []\n", GOOD + "    env: {A: 1}\n",
                 GOOD + "    env: [A]\n", GOOD + "    env_passthrough: A\n", GOOD + "    setup_command: 1\n", GOOD + "    setup_comand: x\n"):
        refuse(t, home, text.replace("%", "%%") if "%(" not in text else text)
    result, ran = launch(home, GOOD)
    t.works(result.code == 0 and ran, "the good entry runs", result)
    result, ran = launch(home, GOOD.replace("{runtime: {allow: [example.com]}}", "{runtime: {}}"))
    t.works(result.code == 0, "a phase that is written counts even when empty", result)
    t.control(home.host("true").code == 0, "the host would run it")


@wall("CFG-06 CFG-12", "an unreadable, huge, binary or odd repos.yaml is never read as 'no sandbox'")
def _(t):
    home = Home()
    file = home.config_dir + "/repos.yaml"
    good = read(file)

    def tried(what):
        result = home.run("sh", "-c", "echo ran")
        t.attack(result.code == 125 and "ran" not in result.out and "repos.yaml" in result.err, what, result)
    os.chmod(file, 0)
    tried("unreadable")
    os.unlink(file)
    os.mkdir(file)
    tried("a directory")
    os.rmdir(file)
    os.mkfifo(file)
    tried("a FIFO (and no hang)")
    os.unlink(file)
    os.symlink("loop", home.config_dir + "/loop")
    os.symlink("loop", file)
    tried("a loop of links")
    os.unlink(file)
    for what, text in (("2 MiB", good + "#" * (2 << 20)), ("NULs", "repos:\0\n"), ("binary", os.urandom(4096)), ("invalid UTF-8", b"repos:\n  - path: /\xff\xfe\n"),
                       ("deep", "repos: " + "[" * 10000), ("UTF-16", "repos: []".encode("utf-16"))):
        write(file, text, 0o600)
        tried(what)
    os.unlink(file)
    none = home.run("sh", "-c", "echo ran")
    t.attack(none.code != 0 and "ran" not in none.out, "no file at all: the repository is not connected", none)
    t.works("connect" in none.err, "and the next step is named", none)
    for text in ("", "\n", "# only a comment\n", "repos: []\n", "repos:\n", "{}"):
        write(file, text, 0o600)
        result = home.run("sh", "-c", "echo ran")
        t.attack(result.code != 0 and "ran" not in result.out, "no entry: %r" % text, result)
    write(file, good, 0o600)
    t.works(home.run("sh", "-c", "echo ran").out == "ran\n", "with the file back it runs")
    t.control(home.host("echo", "ran").out == "ran\n", "the host runs it")


@promise("CFG-02", "kind docker and kit are parsed and a launch of one ends honestly")
def _(t):
    home = Home()
    write(home.config_dir + "/sandbox.yaml", "cli: /nowhere/docker\n")
    for sandbox, kind, why in (("{kind: docker, image: debian, network: {runtime: {}}}", "docker", "'/nowhere/docker', the container CLI of sandbox.yaml, is no program"),
                               ("{kind: kit, runtime: docker, kit: 'a@sha256:%s'}" % ("0" * 64), "kit", "'/nowhere/docker', the container CLI of sandbox.yaml, is no program")):
        result, ran = launch(home, "repos:\n  - path: %(repo)s\n    setup_command: ''\n    sandbox: " + sandbox + "\n")
        t.works(result.code == 125 and why in result.err and not ran, kind, result)


@wall("CFG-01", "agent and editor configuration planted in the worktree is read by nothing on the host")
def _(t):
    home = Home()
    names = [".claude/settings.json", ".mcp.json", ".codex/config.toml", ".cursor/mcp.json", ".gemini/settings.json", ".vscode/tasks.json", ".idea/x.xml", ".envrc",
             "Makefile", "package.json", ".kraft/repos.yaml", "kraft.yaml", "repos.yaml", ".kraft.yaml", ".git/hooks/post-checkout", ".gitattributes", ".gitmodules"]
    evil = "touch %s/ran\n" % home.root
    script = "for f; do mkdir -p \"$(dirname $f)\" 2>/dev/null; printf '%s' \"$EVIL\" >$f; chmod +x $f; done 2>/dev/null; true"
    home.configure(env={"EVIL": "#!/bin/sh\n" + evil})
    made = home.run("sh", "-c", script, "sh", *names)
    t.works(made.code == 0, "they can be planted", made)
    traced = home.host("strace", "-f", "-e", "trace=openat,open,execve", "-o", home.root + "/trace", KRAFT, "run", "--", "./probe", "flags", env=TRACED)
    t.works(traced.code == 0, "the next session is sandboxed all the same", traced)
    t.works(traced.said("seccomp") == "2", "with its filter", traced)
    text = read(home.root + "/trace")
    opened = [line for line in text.splitlines() for n in names if n + '"' in line and home.config_dir not in line and "execve" not in line and " = -1 " not in line]
    t.attack(not opened and not os.path.exists(home.root + "/ran"), "no process of kraft's opened one", opened)
    t.control(os.path.exists(os.path.join(home.worktree, ".envrc")), "they are there")


@wall("CFG-02", "files planted in the item's home steer nothing")
def _(t):
    home = Home()
    evil = "touch %s/ran" % home.root
    home.ok("sh", "-c", "cd; printf '[core]\\n\\tfsmonitor = \"%s\"\\n\\thooksPath = /tmp\\n' >.gitconfig; for f in .bashrc .profile .bash_profile .zshrc .curlrc .npmrc; do echo '%s' >$f; done; "
            "mkdir -p .ssh .config/git bin; echo 'ProxyCommand %s' >.ssh/config; cp .gitconfig .config/git/config; for p in bwrap git true sh; do printf '#!/bin/sh\\n%s\\n' >bin/$p; chmod +x bin/$p; done"
            % ((evil,) * 4))
    again = home.run("./probe", "flags")
    t.works(again.said("seccomp") == "2", "session 2 is confined as ever", again)
    t.attack(not os.path.exists(home.root + "/ran"), "nothing of it ran on the host")
    t.control("fsmonitor" in read(home.sandbox_home + "/.gitconfig"), "they are there")


@wall("CFG-04", "a repository's own files and environment cannot switch the sandbox off or widen it")
def _(t):
    home = Home()
    for name in (".kraft/repos.yaml", "repos.yaml", ".kraft.yaml", "kraft.yaml", "config/repos.yaml"):
        home.commit(name, "repos:\n  - path: %s\n    sandbox: false\n" % home.repo)
    result = home.run("./probe", "flags")
    t.attack(result.said("seccomp") == "2", "files of the repository", result)
    home.configure("repos:\n  - path: %s\n    setup_command: ''\n    sandbox: false\n" % home.repo)
    off = home.run("./probe", "flags")
    t.attack(off.code == 125 and off.out == "", "sandbox: false starts nothing outside the walls", off)
    home.configure("repos:\n  - path: %s\n    setup_command: ''\n" % home.repo)
    none = home.run("./probe", "flags")
    t.attack(none.code == 125 and none.out == "", "no sandbox at all starts nothing", none)
    home.configure(env={"KRAFT_BWRAP": "/bin/true", "KRAFT_HOME": "/tmp", "KRAFT_CONFIG_DIR": "/tmp"})
    env = home.run("./probe", "flags")
    t.attack(env.code == 125 or env.said("seccomp") == "2", "nor its environment", env)
    home.configure()
    t.works(home.run("./probe", "flags").said("seccomp") == "2", "the owner's entry is what counts")
    t.control(home.host_probe("flags").said("seccomp") == "0", "the host has no filter")


@wall("CFG-11", "bubblewrap missing, too old, setuid, without options: refused with the reason, nothing runs unsandboxed")
def _(t):
    home = Home()

    def tried(what, env, *words):
        result = home.run("sh", "-c", "echo ran", env=env)
        t.attack(result.code in (2, 125) and "ran" not in result.out, what, result)
        for word in words:
            t.attack(word in result.err.lower(), "%s: says %r" % (what, word), result)
    tried("missing", {"KRAFT_BWRAP": "/nonexistent/bwrap"}, "bwrap")
    tried("not executable", {"KRAFT_BWRAP": write(home.root + "/plain", "x", 0o644)})
    tried("a directory", {"KRAFT_BWRAP": "/usr"})
    tried("relative", {"KRAFT_BWRAP": "bwrap"})
    tried("empty", {"KRAFT_BWRAP": ""}) if home.run("true", env={"KRAFT_BWRAP": ""}).code != 0 else None
    tried("too old", {"KRAFT_BWRAP": home.wrapper(version="bubblewrap 0.4.1")}, "0.8.0")
    tried("no version", {"KRAFT_BWRAP": home.wrapper(version="hello")})
    tried("another program", {"KRAFT_BWRAP": "/bin/true"})
    tried("fails", {"KRAFT_BWRAP": "/bin/false"})
    setuid = home.root + "/setuid-bwrap"
    shutil.copy2(os.path.realpath(BWRAP), setuid)
    os.chmod(setuid, 0o4755)
    tried("setuid", {"KRAFT_BWRAP": setuid}, "setuid")
    os.chmod(setuid, 0o755)
    t.works(home.run("sh", "-c", "echo ran", env={"KRAFT_BWRAP": setuid}).out == "ran\n", "a copy without the bit works")
    t.control(home.run("sh", "-c", "echo ran").out == "ran\n", "with bubblewrap in place it runs")


@wall("CFG-11 CFG-12", "user namespaces switched off, or a mount that fails: refused with the reason, no weaker retry")
def _(t):
    home = Home()
    home.ok("true")
    log = home.root + "/log"
    count = home.root + "/count"
    failing = home.wrapper(exit=1, stderr="bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.\n", log=log)
    result = home.run("sh", "-c", "echo ran", env={"KRAFT_BWRAP": failing})
    t.attack(result.code == 125 and "ran" not in result.out and "namespace" in result.err, "no namespaces", result)
    options = json.loads(read(log))["options"]
    names = [o[0] for o in options]
    t.attack({"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--seccomp"} <= set(names) or "--as-pid-1" in names, "the walls were asked for", names)
    t.attack(not [n for n in names if n.endswith("-try") or n in ("--share-net", "--not-a-security-boundary")], "no fail-open option", names)
    for text in ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n", "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n",
                 "bwrap: setting up uid map: Permission denied\n", "bwrap: Creating new namespace failed: Resource temporarily unavailable\n", ""):
        result = home.run("sh", "-c", "echo ran", env={"KRAFT_BWRAP": home.wrapper(exit=1, stderr=text)})
        t.attack(result.code == 125 and "ran" not in result.out and result.err.strip(), text or "no word", result)
        ends = read(home.exit_files()[-1]) if home.exit_files() else ""
        t.works("not-started" in ends, "recorded as not started", ends, count)
    for limit in ("max_user_namespaces", "max_mnt_namespaces", "max_pid_namespaces", "max_net_namespaces"):
        inner = home.host("unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/%s 2>/dev/null || exit 9; exec unshare -U --map-user=%d --map-group=%d '%s' run -- echo ran" %
                          (limit, os.getuid(), os.getgid(), KRAFT))
        if inner.code == 9 or "unshare failed" in inner.err:
            continue
        t.attack(inner.code == 125 and "ran" not in inner.out, limit + " is 0", inner)
    t.control(home.run("sh", "-c", "echo ran").out == "ran\n", "unhindered it runs")


@wall("CFG-13", "state, run and config directories that are links, group-writable, or another's")
def _(t):
    home = Home()
    home.ok("true")

    def tried(what, env=None):
        result = home.run("sh", "-c", "echo ran", env=env)
        t.attack(result.code != 0 and "ran" not in result.out and result.err.strip(), what, result)
    for place in (home.kraft_home, home.run_dir, home.config_dir):
        for mode in (0o770, 0o707, 0o777, 0o1777):
            os.chmod(place, mode)
            tried("%s mode %o" % (os.path.basename(place), mode))
        os.chmod(place, 0o700)
        os.rename(place, place + "-real")
        os.symlink(place + "-real", place)
        tried("%s is a link" % os.path.basename(place))
        os.unlink(place)
        write(place, "a file")
        tried("%s is a file" % os.path.basename(place))
        os.unlink(place)
        os.rename(place + "-real", place)
    tried("another's", {"KRAFT_HOME": "/usr"})
    tried("of root", {"KRAFT_RUN_DIR": "/"})
    tried("relative", {"KRAFT_HOME": "relative"})
    tried("sticky and open", {"KRAFT_RUN_DIR": "/tmp"})
    t.works(home.run("sh", "-c", "echo ran").out == "ran\n", "as they were it runs")
    os.chmod(home.kraft_home, 0o750)
    t.note("mode 0750: exit %d" % home.run("true").code)
    os.chmod(home.kraft_home, 0o700)
    t.control(home.host("echo", "ran").out == "ran\n", "the host runs it")
    fresh = Home()
    shutil.rmtree(fresh.run_dir, ignore_errors=True)
    os.umask(0)
    try:
        fresh.ok("true")
    finally:
        os.umask(0o022)
    loose = [p for p in (fresh.run_dir, fresh.run_dir + "/worktrees", fresh.run_dir + "/sessions", fresh.run_dir + "/sandbox-home") if os.path.isdir(p) and os.stat(p).st_mode & 0o077 and p == fresh.run_dir]
    t.attack(not loose, "made with umask 0 the run directory is still private", loose)
    writable = [os.path.join(d, n) for d, ds, fs in os.walk(fresh.run_dir) for n in ds + fs
                if not os.path.islink(os.path.join(d, n)) and os.lstat(os.path.join(d, n)).st_mode & 0o022 and "/worktrees/" not in os.path.join(d, n)]
    t.attack(not writable, "and nothing in it is writable for others", writable[:10])


@promise("CFG-01", "repo connect proposes, list shows, path names, disconnect removes; comments survive")
def _(t):
    home = Home()
    os.unlink(home.config_dir + "/repos.yaml")
    write(home.repo + "/Makefile", "test:\n\ttrue\n")
    connect = home.kraft("repo", "connect", ".")
    t.works(connect.code == 0, "connect", connect)
    text = read(home.config_dir + "/repos.yaml")
    t.works(home.repo in text and "make" in text and "kind: os" in text, "an entry with what it found", text)
    t.works(home.run("echo", "ran").out == "ran\n", "and it runs", home.run("echo", "ran"))
    write(home.config_dir + "/repos.yaml", "# my comment\n" + text + "# end\n", 0o600)
    second = home.make_repo(home.home + "/code/second: #2")
    t.works(home.kraft("repo", "connect", second).code == 0, "a second, with an odd name")
    listing = home.kraft("repo", "list")
    t.works(home.repo in listing.out and second in listing.out, "list", listing)
    again = home.kraft("repo", "connect", ".")
    t.works(again.code in (0, 1, 2, 125) and read(home.config_dir + "/repos.yaml").count(home.repo + "\n") <= 1, "twice is not two entries", again)
    t.works(home.kraft("repo", "disconnect", second).code == 0, "disconnect")
    left = read(home.config_dir + "/repos.yaml")
    t.works("# my comment" in left and second not in left and home.repo in left, "the rest survives", left)
    t.works(home.run("echo", "ran", cwd=second).code != 0, "a disconnected repository does not run")
    none = home.kraft("repo", "connect", "--image", "", second)
    t.works(none.code == 3 and "image" in none.err and read(home.config_dir + "/repos.yaml") == left, "an empty image is none", none)
    odd = "registry.example:5000/team/agent@sha256:" + "0" * 64
    image = home.kraft("repo", "connect", "--image", odd, second)
    entry = [r for r in json.loads(home.kraft("repo", "list", "--json").out)["repos"] if r["path"] == second]
    t.works(image.code == 0 and [r["sandbox"] for r in entry] == [{"kind": "docker", "image": odd, "network": {phase: {"allow": [], "deny": []} for phase in ("install", "runtime")}}],
            "with an image: kind docker", image, entry)
    t.works("docker " + odd in home.kraft("repo", "list").out, "and the list has it", home.kraft("repo", "list"))
    t.works(json.loads(home.kraft("repo", "path", "--json", ".").out)["sandbox"]["kind"] == "os", "the other is of kind os")


if __name__ == "__main__":
    main()
