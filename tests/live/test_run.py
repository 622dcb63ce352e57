#!/usr/bin/env python3
"""kraft run as a whole: what happens once, what is said on stderr, what is kept and shown afterwards."""
# kraft-test: timeout 300
from kraftlive import *


def sessions(home, *options):
    return json.loads(home.kraft("view", "sessions", "--json", *options).out)


@promise("OS-LCH-12", "the setup command runs once, in the walls; when it fails the launch is refused and it runs again")
def _(t):
    home = Home(setup_command="echo setting; echo noise >&2; echo x >>count; test -e allowed")
    failed = home.run("true")
    t.works(failed.code == 125 and "failed with exit code 1" in failed.err and "kraft view logs" in failed.err, "refused", failed)
    t.works(failed.out == "" and "setting\n" in failed.err and "noise" in failed.err, "what it says goes to stderr", failed)
    t.works("noise" in home.kraft("view", "logs").out, "and is kept")
    t.works("refused in the" not in failed.err, "no host was asked for", failed)
    ask = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT no.example:443 HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"
    home.configure(setup_command="bash -c %r; exit 1" % ask, sandbox={"network": {"install": {"allow": ["example.com"]}}})
    offline = home.run("true", options=["--item", "offline"])
    t.works(offline.code == 125 and "1 host was refused in the install phase" in offline.err and
            "network.install.allow" in offline.err and '- "no.example:443"' in offline.err, "one was", offline)
    home.configure(setup_command="echo x >>count")
    for _ in range(2):
        t.works(home.ok("cat", "count").out == "x\nx\n", "failed once, worked once")
    t.works([s["purpose"] for s in sessions(home)] == ["command", "command", "setup", "setup", "setup"], "sessions", sessions(home))
    t.works("(sets up) echo x >>count" in home.kraft("view", "sessions").out, "a table")
    home.configure(setup_command=None)
    t.works(home.run("true").code == 0, "none declared")


@promise("FS-04", "uncommitted changes: counted, left out, or taken along; a worktree with changes of its own is not overwritten")
def _(t):
    home = Home()
    t.works(home.ok("true").err == "", "nothing is said of a clean checkout")
    write(home.repo + "/README", "changed\n")
    t.works("1 uncommitted change is not included; --with-changes takes it along" in home.run("true").err, "one")
    write(home.repo + "/new", "new\n")
    git(home.repo, "mv", "sub/file", "sub/moved")
    left_out = home.sh("cat README; ls; ls sub")
    t.works("3 uncommitted changes are not included; --with-changes takes them along" in left_out.err, "counted", left_out)
    missing = home.run("./new")
    t.works(missing.code == 127 and "'./new' is in your checkout but not in the worktree" in missing.err, "a command", missing)
    t.works("there is no './neither' in the worktree" in home.run("./neither").err, "in neither")
    t.works("a sample" in left_out.out and "new" not in left_out.lines and "file" in left_out.lines, "left out", left_out)
    taken = home.sh("cat README; ls; ls sub", options=["--with-changes"])
    t.works("changed" in taken.out and "new" in taken.lines and "moved" in taken.lines and "uncommitted" not in taken.err, "taken", taken)
    t.works(git(home.repo, "status", "--porcelain").split("\n")[0].strip() != "", "the checkout keeps them")
    home.sh("echo mine >README; echo mine >own", options=["--keep"])
    conflict = home.run("true")
    t.works(conflict.code == 125 and "'README'" in conflict.err and "--keep" in conflict.err and "--item" in conflict.err, "a conflict", conflict)
    t.works(home.sh("cat README", options=["--keep"]).out == "mine\n", "--keep")
    t.works(home.sh("cat README", options=["--item", "other"]).out == "a sample\n", "--item")


@promise("OS-MNT-04", "the worktree follows the checkout's commit; the command starts where the person stands")
def _(t):
    home = Home()
    home.ok("sh", "-c", "echo kept >untracked")
    home.commit("later", "later\n")
    t.works(home.ok("cat", "later").out == "later\n", "the new commit")
    t.works(home.ok("cat", "untracked").out == "kept\n", "what was not committed there stays")
    t.works(home.run("pwd", cwd=home.repo + "/sub").out == home.worktree + "/sub\n", "a subdirectory")
    os.makedirs(home.repo + "/fresh/deep")
    fresh = home.run("pwd", cwd=home.repo + "/fresh/deep")
    t.works(fresh.out == home.worktree + "\n" and "is not in the worktree" in fresh.err, "one that is not committed", fresh)
    t.works(home.kraft("run", "--repo", home.repo, "--", "pwd", cwd="/").out == home.worktree + "\n", "--repo")
    home.ok("sh", "-c", "rm -rf sub; ln -s /etc sub")
    away = home.run("pwd", cwd=home.repo + "/sub", options=["--keep"])
    t.works(away.out == home.worktree + "\n", "a link of the worker's is not followed", away)


@promise("GIT-04", "a program of the worktree's that a filter runs while kraft moves the worktree cannot lead a later git astray")
def _(t):
    home = Home()
    write(home.repo + "/.gitattributes", "*.x filter=f\n")
    os.chmod(write(home.repo + "/f.sh", "#!/bin/sh\ncat\n"), 0o755)
    git(home.repo, "config", "filter.f.smudge", "./f.sh")
    write(home.repo + "/a.x", "one\n")
    git(home.repo, "add", "-A")
    git(home.repo, "commit", "-qm", "filtered")
    attack = ("#!/bin/sh\ncat\nfor f in .git $GIT_DIR/commondir $GIT_DIR/gitdir $GIT_DIR/config.worktree; do\n"
              "  (echo x >$f) 2>&-; rm -f $f; mv $f $f.old; ln -sf /tmp $f; done 2>&-\n"
              "touch attacked $GIT_DIR/attacked\n")
    write(home.root + "/attack", attack)
    home.ok("sh", "-c", "cat >f.sh", stdin=attack.encode())
    places = [home.worktree + "/.git"]
    git_dir = read(places[0]).split(": ")[1].strip()
    places += [git_dir + "/commondir", git_dir + "/gitdir"]
    before = [read(p) for p in places]
    write(home.repo + "/a.x", "two\n")
    git(home.repo, "commit", "-qam", "again")
    moved = home.run("cat", "a.x")
    t.works(moved.out == "two\n", "the worktree is moved, through the filter", moved)
    t.works(os.path.exists(home.worktree + "/attacked"), "the worktree's program ran, where it may write", moved)
    t.works(not os.path.exists(git_dir + "/attacked"), "the repository's side of the worktree is not there", moved)
    t.works([read(p) for p in places] == before and not any(os.path.islink(p) for p in places), "the pointers are as they were")
    config = git_dir + "/config.worktree"
    t.works(not os.path.islink(config) and (not os.path.exists(config) or read(config) == ""), "and no configuration was added")


@promise("GIT-01", "kraft's own directory inside the checkout, where host git would look into it, is refused")
def _(t):
    home = Home()
    inside = {"KRAFT_HOME": home.repo + "/.kraft"}
    os.makedirs(inside["KRAFT_HOME"] + "/config", 0o700)
    shutil.copy(home.config_dir + "/repos.yaml", inside["KRAFT_HOME"] + "/config/repos.yaml")
    for words in (("run", "--", "true"), ("explain", "--", "true"), ("repo", "connect", ".")):
        if words[0] == "repo":
            os.unlink(inside["KRAFT_HOME"] + "/config/repos.yaml")
        result = home.kraft(*words, env=inside)
        t.works(result.code != 0 and "holds kraft's own directory" in result.err, words, result)
    t.works(not os.path.exists(inside["KRAFT_HOME"] + "/run/worktrees"), "nothing was made")


@promise("CFG-06", "a checkout that is not connected, a wrong phase, no command: one sentence and the next step")
def _(t):
    home = Home()
    other = home.make_repo(home.home + "/code/other")
    stranger = home.run("true", cwd=other)
    t.works(stranger.code == 125 and "is not connected" in stranger.err and "kraft repo connect" in stranger.err, "connect", stranger)
    phase = home.run("true", options=["--phase", "build"])
    t.works(phase.code == 2 and "'install', 'runtime'" in phase.err, "phase", phase)
    t.works(home.run("true", options=["--phase", "install"]).code == 0, "install")
    nothing = home.kraft("run")
    t.works(nothing.code == 2 and "COMMAND" in nothing.err, "no command", nothing)
    option = home.kraft("run", "--itm", "x", "--", "true")
    t.works(option.code == 2 and "did you mean '--item'" in option.err, "an option", option)
    command = home.kraft("rn")
    t.works(command.code == 2 and "'kraft run'" in command.err, "a command", command)
    nowhere = home.run("true", cwd=home.home)
    t.works(nowhere.code == 125 and nowhere.err.startswith("kraft: "), "no checkout", nowhere)


@wall("OS-EXP-02", "a path outside that a failed command named is named with the line to add; a protected one never is")
def _(t):
    home = Home()
    write(home.home + "/tool/lib/data", "data\n")
    write(home.home + "/.ssh/id_test", "secret\n")
    write(home.repo + "/README", "a sample\n")
    missing = home.run("cat", home.home + "/tool/lib/data")
    t.works(missing.code == 1 and "add '~/tool/lib' to the expose list" in missing.err, "named", missing)
    mine = home.run("cat", home.repo + "/README")
    t.works("is in your checkout" in mine.err, "the checkout's own", mine)
    fine = home.sh("echo %s/tool/lib/data" % home.home)
    t.works("expose" not in fine.err, "nothing after success", fine)
    for path in (home.home + "/.ssh/id_test", home.home, home.kraft_home + "/config/repos.yaml", home.home + "/tool/../.ssh/id_test"):
        secret = home.run("cat", path)
        t.attack(secret.code == 1 and "expose" not in secret.err, path, secret)
    flood = home.sh("i=0; while [ $i -lt 3000 ]; do echo /opt/none$i /etc/none$i; i=$((i+1)); done; printf '%s\\033]0;x\\007\\n'; exit 1" % (home.home + "/tool"))
    t.attack("\x1b" not in flood.err and flood.seconds < 5, "a flood of paths", flood.err[-300:])
    home.configure(expose=["~/tool/lib"])
    t.control(home.ok("cat", home.home + "/tool/lib/data").out == "data\n", "the fix works")


@promise("RES-07", "sessions and logs are listed, chosen, followed, and given to programs")
def _(t):
    home = Home()
    t.works("no sessions" in home.kraft("view", "sessions").out, "none yet")
    t.works(home.kraft("view", "logs").code == 7, "no log yet")
    home.sh("echo one; exit 3")
    home.sh("echo two >&2", options=["--item", "b"])
    home.sh("kill -9 $$")
    listed = sessions(home)
    t.works([(s["state"], s["code"], s["signal"]) for s in listed] == [("exited", 137, 9), ("exited", 0, 0), ("exited", 3, 0)], "outcomes", listed)
    t.works(len(sessions(home, "--item", "b")) == 1, "of one item")
    table = home.kraft("view", "sessions").out
    t.works("exit 3" in table and "signal 9" in table and "sh -c echo one; exit 3" in table, "a table", table)
    t.works(home.kraft("view", "logs", "--item", "b").out == "two\n" and home.kraft("view", "logs", listed[2]["id"]).out == "one\n", "chosen")
    t.works(home.kraft("view", "logs", listed[2]["id"][:15]).out == "one\n", "by the beginning of its id")
    line = json.loads(home.kraft("view", "logs", "--item", "b", "--json").out)
    t.works(line["stream"] == "stderr" and line["text"] == "two" and abs(line["ms"] / 1000 - time.time()) < 60, "JSON", line)
    for wrong in (["nonsense"], ["../../etc"], ["0" * 16]):
        t.works(home.kraft("view", "logs", *wrong).code == 7, "no such session", wrong)
    process = home.start("sh", "-c", "for i in 1 2 3 4 5; do echo tick$i; sleep 0.3; done")
    wait_for(lambda: sessions(home)[0]["state"] == "running", 10)
    t.works(sessions(home)[0]["state"] == "running", "running")
    home.sh("echo newer, and over")
    followed = home.kraft("view", "logs", "-f", timeout=30)
    t.works(followed.out == "".join("tick%d\n" % i for i in range(1, 6)), "followed to its end", followed)
    process.wait(timeout=20)
    process = home.start("./probe", "sleep", "60", mark())
    wait_for(lambda: sessions(home)[0]["state"] == "running", 10)
    process.kill()
    process.wait(timeout=20)
    t.works(wait_for(lambda: sessions(home)[0]["state"] in ("exited", "failed", "lost"), 10), "killed with its host", sessions(home)[0])


@promise("OS-LCH-12", "a refused launch is a session with its reason in its log")
def _(t):
    home = Home()
    refused = home.run("no-such-command-at-all")
    t.works(refused.code == 125, "refused", refused)
    last = sessions(home)[0]
    t.works(last["state"] == "failed" and last["code"] == 125, "failed", last)
    t.works("no-such-command-at-all" in home.kraft("view", "logs").out, "in the log", home.kraft("view", "logs"))


@promise("LIFE-12", "old sessions are cleared away, the channel directories at once")
def _(t):
    home = Home()
    for _ in range(3):
        home.ok("true")
    t.works(os.listdir(home.run_dir + "/sn") == [], "channels", os.listdir(home.run_dir + "/sn"))
    for i in range(700):
        folder = write(home.run_dir + "/sessions/%016x/session.json" % i, "{}")
        os.utime(os.path.dirname(folder), (i, i))
    home.ok("true")
    left = os.listdir(home.run_dir + "/sessions")
    t.works(len(left) <= 301 and "%016x" % 0 not in left and len(sessions(home)) >= 4, "the newest stay", len(left))


@promise("CFG-11", "stdin from a file in a shell's loop is read no further than the command read")
def _(t):
    home = Home()
    write(home.root + "/list", "".join("%d\n" % i for i in range(6)))
    loop = home.host("sh", "-c", "while read x; do '%s' run -- echo got $x; done <%s/list" % (KRAFT, home.root))
    t.works(loop.lines == ["got %d" % i for i in range(6)], "every line", loop)


def state_of(pid):
    return read("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()[0]


def becomes(pid, state):
    end = time.monotonic() + 20
    while state_of(pid) not in state and time.monotonic() < end:
        time.sleep(0.02)
    return state_of(pid) in state


@promise("PROC-07", "without a terminal the person's stop stops kraft too, the command's own stop does not")
def _(t):
    home = Home()
    home.ok("true")
    group = lambda: os.setpgid(0, 0)  # not orphaned: we, in another group of the session, could continue it
    alone = home.run("sh", "-c", "(sleep 1; kill -CONT $$) & kill -STOP $$; echo back", preexec=group, timeout=30)
    t.works(alone.out == "back\n", "stopped and continued inside", alone)
    for own_stop in ("", "kill -STOP $$; "):
        marker = home.worktree + "/stopping"
        process = home.kraft("run", "--", "sh", "-c", ">stopping; %ssleep 1; echo end" % own_stop, preexec=group, popen=True)
        t.works(wait_for(lambda: os.path.exists(marker)), "it runs")
        time.sleep(0.3)
        t.works(state_of(process.pid) != "T", "not stopped by itself", own_stop)
        os.killpg(process.pid, signal.SIGTSTP)
        t.works(becomes(process.pid, "T"), "the person's stop", own_stop)
        os.killpg(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=20)
        t.works(process.returncode == 0 and out == b"end\n", "and goes on", (own_stop, out, err))
        os.unlink(marker)


@promise("PROC-15", "kraft started with its standard streams closed runs the command all the same")
def _(t):
    home = Home()
    home.ok("true")
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        result = home.host("sh", "-c", "'%s' run -- sh -c 'echo x; echo y >&2; cat; echo z >made; exit 7' %s" % (KRAFT, closed))
        t.works(result.code == 7 and read(home.worktree + "/made") == "z\n", closed, result)
        os.unlink(home.worktree + "/made")


if __name__ == "__main__":
    main()
