#!/usr/bin/env python3
"""`kraft run` in a container: what is asked before a launch, what a person sees of it, and that nothing stays."""
# kraft-test: timeout 600
from containerlive import *
from screenlive import Screen

CA = """-----BEGIN CERTIFICATE-----
MIIBszCCAVmgAwIBAgIUFfMssmnQpVkFYz5W6vmxC6EwgQ8wCgYIKoZIzj0EAwIw
-----END CERTIFICATE-----
"""
AGENT = """id: mine
kind: cli
command: %s
%scapabilities:
  prompt: {via: stdin}
  context: {via: prompt}
  usage: {reader: none}
"""
VERSION = "version: [\"--version\"]\nmin_version: \"0.1\"\n"


def harness(home, command, more=""):
    write(home.config_dir + "/harnesses/mine.yaml", AGENT % (command, more))


def clients(home):
    """Directories that the runtime's client stood in."""
    try:
        return os.listdir(home.run_dir + "/sandbox-client")
    except OSError:
        return []


def spotless(home):
    return home.empty() and not clients(home) and not os.listdir(home.run_dir + "/sn")


@each(promise, "CTR-01 OS-LCH-09", "exit codes, signals, input and both streams are the command's, and nothing of a session stays", on=EVERYWHERE)
def _(t, runtime):
    home = Box(runtime)
    for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
        result = home.sh(script)
        t.works(result.code == code, script, result)
    t.works(home.run("no-such-command").code == 127, "a command that is not there")
    t.works(home.run("/etc/passwd").code == 126, "one that is none")
    result = home.run("sh", "-c", "cat; echo err >&2", stdin=b"typed\n")
    t.works(result.out == "typed\n" and "err\n" in result.err, "its streams", result)
    result = home.run("head", "-c", "3000000", "/dev/zero")
    t.works(result.code == 0 and len(result.raw_out) == 3000000, "all of a lot", len(result.raw_out))
    t.works(spotless(home), "nothing stays", home.containers(), clients(home))


@each(promise, "OS-LCH-07 CTR-01", "a terminal inside is as outside: its size, its keys, Ctrl-C, and a shell", on=(DOCKER, ROOTLESS))
def _(t, runtime):
    home = Box(runtime)
    with Screen(home, [KRAFT, "run", "--", "sh", "-c", "stty size; test -t 0 && test -t 1 && test -t 2 && tty; read x; echo \"<$x>\""]) as s:
        s.until("/dev/pts/").type("hi\n").until("<hi>").end()
        t.works(s.code == 0 and b"33 101" in s.seen and s.modes() == s.modes_before, "size and keys", repr(s.seen))
    with Screen(home, [KRAFT, "run", "--", "sh", "-c", "echo re''ady; sleep 60"]) as s:
        s.until("ready").type("\x03").end()
        t.works(s.code == 130 and s.modes() == s.modes_before, "Ctrl-C", s.code)
    with Screen(home, [KRAFT, "shell"]) as s:
        s.line("echo in''side; exit 3")
        s.until("inside").end()
        t.works(s.code == 3, "a shell", s.code)
    t.works(spotless(home), "nothing stays", home.containers(), clients(home))


@each(promise, "OS-LCH-07 CTR-05", "TERM and INT reach the command; a second INT ends a container whose command heeds none")
def _(t, runtime):
    home = Box(runtime)
    process, _ = home.sleeping(script="trap 'echo got; exit 9' TERM; echo up; while :; do sleep 0.1; done")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    t.works(process.returncode == 9 and out == b"got\n", "TERM", process.returncode, repr(out), repr(err))
    process, here = home.sleeping(script="trap '' INT TERM; echo up; while :; do sleep 0.1; done")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    t.works(process.poll() is None and marked(here), "one INT is the command's to ignore")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    t.works(process.returncode == 137 and gone(here), "the second one ends it", process.returncode)
    t.works(spotless(home), "nothing stays", home.containers(), clients(home))


@each(promise, "CTR-01 CTR-03 GIT-01", "setup once, a home that stays, a commit of its own, and what it left uncommitted", on=EVERYWHERE)
def _(t, runtime):
    home = Box(runtime, setup_command="echo once >> $HOME/setup")
    result = home.sh("cat $HOME/setup; echo more >> $HOME/setup; echo a > mine; git add mine; git commit -qm mine; git log -1 --format=%s")
    t.works(result.code == 0 and result.out == "once\nmine\n", "set up, and committed", result)
    branch = re.search(r"on branch '([^']+)'", result.err)
    t.works(branch and git(home.repo, "show", branch.group(1) + ":mine") == "a\n", "the commit is in the repository", result)
    result = home.run("sh", "-c", "cat $HOME/setup; echo b > left", options=["--commit=what it left"])
    t.works(result.out == "once\nmore\n", "the home stays, setup is not done again", result)
    branch = re.search(r"on branch '([^']+)'", result.err)
    t.works(branch and git(home.repo, "log", "-1", "--format=%s", branch.group(1)) == "what it left\n", "what it left is a commit", result)
    t.works(git(home.repo, "show", branch.group(1) + ":left") == "b\n", "with the file")
    t.works(spotless(home), "nothing stays", home.containers(), clients(home))


@each(promise, "CTR-09", "an agent that the image lacks is refused before it runs, and the yes of one that has it is asked once")
def _(t, runtime):
    home = Box(runtime)
    harness(home, "no-such-agent")
    result = home.kraft("run", "--harness", "mine", "x")
    t.attack(result.code == 125 and "has no 'no-such-agent'" in result.err and home.image in result.err, "one that is not there", result)
    sessions = len(home.session_folders())
    harness(home, "cat")
    for _ in range(2):
        result = home.kraft("run", "--harness", "mine", "said")
        t.works(result.code == 0 and "said" in result.out, "one that is there", result)
    t.works(len(home.session_folders()) == sessions + 3, "two sessions, and one question", len(home.session_folders()) - sessions)
    home.configure(env={"PATH": "/nowhere"})
    result = home.kraft("run", "--harness", "mine", "said")
    t.attack(result.code == 125 and "has no 'cat'" in result.err, "other variables are another question", result)


@each(promise, "CTR-09", "the image's entry point is what the question goes through", on=(DOCKER, ROOTLESS))
def _(t, runtime):
    home = Box(runtime, image="entry")
    harness(home, "cat")
    result = home.kraft("run", "--harness", "mine", "said")
    t.works(result.code == 0 and "said" in result.out, "an entry point that runs what it is given", result)
    home = Box(runtime, image="bad-entry")
    harness(home, "cat")
    result = home.kraft("run", "--harness", "mine", "said")
    t.works(result.code != 0 and "has no 'cat'" not in result.err, "one that does not is no 'no'", result)


@each(promise, "AGT-02 CTR-09", "the version of an agent is the image's, asked once of an image", on=(DOCKER, ROOTLESS))
def _(t, runtime):
    home = Box(runtime)
    harness(home, "git", VERSION)
    before = len(home.session_folders())
    for _ in range(2):
        result = home.kraft("run", "--harness", "mine", "x")
        t.works(result.code == 1, "it runs", result)  # git without a command
    t.works(len(home.session_folders()) == before + 4, "two sessions and two questions", len(home.session_folders()) - before)
    harness(home, "git", VERSION.replace("0.1", "99.1"))
    result = home.kraft("run", "--harness", "mine", "x")
    t.attack(result.code == 125 and "needs 99.1" in result.err, "one that is too old", result)


@each(wall, "CFG-09 FS-18", "an extra CA is in a bundle with the image's roots, which no worker can write; one that is of no use refuses")
def _(t, runtime):
    home = Box(runtime)
    path = write(home.root + "/ca.pem", "a comment\n" + CA)
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli, "ca_bundle": path}), 0o600)
    look = home.sh("echo $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS $CODEX_CA_CERTIFICATE; cat $SSL_CERT_FILE")
    t.works(look.lines[0] == " ".join(["/etc/kraft/ca-bundle.pem"] * 3), "all variables name it", look)
    t.works(look.out.endswith(CA) and "a comment" not in look.out, "the extra one is in it, and nothing else of its file", look.out[-400:])
    roots = home.sh("cat /etc/ssl/certs/ca-certificates.crt")
    ends = "-----END CERTIFICATE-----"
    t.works(roots.out.count(ends) > 10 and look.out.count(ends) == roots.out.count(ends) + 1, "with all of the image's", look.out.count(ends))
    for script in ("echo x >> /etc/kraft/ca-bundle.pem", "rm /etc/kraft/ca-bundle.pem", "mv /etc/kraft/ca-bundle.pem /etc/kraft/x"):
        t.attack(home.sh(script).code != 0, script)
    t.attack(look.out.endswith("\n" + home.sh("cat /etc/kraft/ca-bundle.pem").out), "it is the same afterwards")
    bundle = write(home.root + "/mine.pem", CA)
    t.control(home.bare_run("sh", "-c", "echo x >> " + bundle, mounts=[bundle]).code == 0, "a mount that may be written is")
    write(path, "no certificate\n")
    refused(t, home.run("true"), "ca_bundle", "ca.pem", what="one that is none")
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli}), 0o600)
    result = home.sh("echo <$SSL_CERT_FILE>".replace("<", "'<'").replace(">", "'>'"), env={"SSL_CERT_FILE": path})
    t.works(result.code == 0 and result.out == "<>\n" and "SSL_CERT_FILE" in result.err, "an environment's that is of no use is told", result)
    t.works(not [n for f in home.session_folders() for n in os.listdir(f) if n == "ca-bundle.pem"], "the bundle goes with its session")


@each(promise, "CTR-07", "a file in the item's home that is another user's refuses the launch, with the command that helps", on=(ROOTLESS,))
def _(t, runtime):
    home = Box(runtime)
    t.works(home.run("true").code == 0, "at first")
    victim = write(home.sandbox_home + "/theirs", "x")
    runtime.call("unshare", "chown", "5:5", victim)
    result = home.run("true")
    t.attack(result.code == 125 and victim in result.err and "chown -R %d" % os.getuid() in result.err, "refused", result)
    runtime.call("unshare", "rm", victim)
    t.works(home.run("true").code == 0, "and again when it is gone")


@each(promise, "LIM-02", "a kill by the memory limit is told and recorded; one that the command survives is only told", on=(DOCKER, PODMAN))
def _(t, runtime):
    home = Box(runtime, sandbox={"resources": {"memory": "64m"}})
    grow = "head -c 200m /dev/zero | tail"
    result = home.sh(grow + "; exit 5")
    t.attack(result.code == 5 and "memory limit of 64m" in result.err, "told", result)
    events = home.session_events("sandbox_oom_killed")
    t.works(len(events) == 1 and events[0]["data"]["memory"] == 64 << 20 and events[0]["data"]["confirmed"], "recorded", events)
    result = home.sh(grow + "; exit 0")
    t.works(result.code == 0 and "ended well all the same" in result.err, "survived", result)
    result = home.sh("kill -9 $$")
    t.works(result.code == 137, "a command that was killed", result)
    events = home.session_events("sandbox_oom_killed")
    t.works([e["data"]["confirmed"] for e in events] == [True, False], "is not confirmed", events)


@each(wall, "CTR-05", "a container that was made and never ran is swept by the next session, and no other home's is")
def _(t, runtime):
    home, other = Box(runtime), Box(runtime)
    t.works(home.run("true").code == 0, "a session")
    names = {}
    for box in (home, other):
        session = "%016x" % (int(uuid.uuid4()) >> 64)
        names[box] = "kraft-" + session
        runtime.call("create", "--name", names[box], "--label", "kraft.home=" + box.kraft_home, "--label", "kraft.session=" + session, box.image, "true")
    try:
        os.makedirs(home.run_dir + "/sandbox-client/" + names[home])
        t.control(home.containers() == [names[home]], "it is there", home.containers())
        result = home.run("true")
        t.works(result.code == 0, "a session", result)
        t.attack(home.empty() and not clients(home), "it is gone", home.containers(), clients(home))
        t.works(other.containers() == [names[other]], "the other home's is not", other.containers())
    finally:
        for name in names.values():
            runtime.call("rm", "-f", name, ok=False)


# A CLI that stays with an image where kraft asks it for its roots.
STAYS = """#!/usr/bin/python3 -IS
import os, sys
if "--entrypoint=/bin/sh" in sys.argv:
    sys.argv[-1] = "exec sleep 300"
os.execv(%r, sys.argv)
"""


@each(wall, "CTR-05", "a container that is only asked for the image's roots has a session's walls, and is swept when kraft is killed meanwhile")
def _(t, runtime):
    home = Box(runtime)
    cli = write(home.root + "/stays/" + os.path.basename(runtime.cli), STAYS % runtime.cli, 0o755)
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": cli, "ca_bundle": write(home.root + "/ca.pem", CA)}), 0o600)
    asking = home.start("true")
    name = home.running()
    told = home.runtime.inspect(name)["HostConfig"]
    t.attack(told["ReadonlyRootfs"] and told["NetworkMode"] == "none" and not told["Binds"] and any("no-new-privileges" in o for o in told["SecurityOpt"]), "its walls", told)
    end(asking)
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli}), 0o600)
    again = home.run("true")
    t.works(again.code == 0, "another session", again)
    t.control(name in home.containers(), "within a minute it may be one of a kraft that lives", home.containers())
    folder = home.run_dir + "/sessions/" + name.replace("kraft-", "")
    os.utime(folder, (time.time() - 120,) * 2)
    t.works(home.run("true").code == 0, "a session")
    t.attack(home.empty() and not clients(home) and not os.path.exists(folder), "then it is gone, with its trace", home.containers(), clients(home))


@each(promise, "CTR-01", "explain shows image, entry point and walls, fetches nothing, and works without a runtime that answers")
def _(t, runtime):
    home = Box(runtime, image="entry")
    told = home.kraft("explain", "--", "ls", "-l")
    t.works(told.code == 0 and home.image in told.out and "kraft-check-entry" in told.out and "no capability" in told.out, "all of it", told)
    t.works(not home.session_folders(), "nothing ran")
    home.configure(sandbox={"image": "127.0.0.1:1/no/such:image"})
    told = home.kraft("explain", "--", "ls")
    t.works(told.code == 0 and "not here yet" in told.err, "an image that is not here", told)
    gone_service = {k: "unix:///nonexistent/sock" for k in runtime.env if k.endswith("_HOST")} or {"CONTAINER_HOST": "unix:///nonexistent/sock"}
    told = home.kraft("explain", "--", "ls", env=gone_service)
    t.works(told.code == 0 and "cannot be told" in told.err and "ls" in told.out, "a runtime that does not answer", told)


@each(promise, "CHN-11", "an open network is told at each launch, in the session's log too, and has no proxy", on=(DOCKER,))
def _(t, runtime):
    home = Box(runtime, sandbox={"network": None, "unrestricted_network": True})
    result = home.sh("env | grep -ci proxy; command -v kraft; ls /sys/class/net")
    t.works("unrestricted_network" in result.err, "told", result)
    t.works(result.lines[0] == "0" and not any("opt/kraft" in line for line in result.lines), "no proxy, no kraft command", result)
    log = home.kraft("view", "logs", os.path.basename(home.session_folders()[-1]))
    t.works("unrestricted_network" in log.out, "and in the log", log)


main()
