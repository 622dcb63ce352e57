#!/usr/bin/env python3
"""Workspaces: each member is treated as the root is, and none can be moved, replaced or mistaken."""
# kraft-test: timeout 300
from gitlive import *


@promise("REF-06 GIT-22", "each member has its own git, branch and way out: commits in all of them come out, and nothing else moves")
def _(t):
    home = Workspace()
    before = {repo: refs_of(repo) for repo in (home.repo, home.lib, home.tool)}
    frozen = home.frozen()
    result = home.site(COMMIT)
    t.works(result.code == 0 and len(result.lines) == 3, "commits in all three", result)
    for repo, tip in zip((home.repo, home.lib, home.tool), result.lines):
        t.works(tip_of(repo) == tip, "the branch in '%s'" % repo, refs_of(repo))
        rest = [line for line in refs_of(repo) if "refs/heads/kraft/s " not in line and "refs/kraft/base/s " not in line]
        t.works(rest == before[repo], "and no other ref", rest)
        t.works(git(repo, "fsck", "--strict", "--full", "--no-dangling", "--no-progress") == "", "fsck")
    home.only_branch_moved(t, frozen, "the root")
    t.works(all(git(r, "status", "--porcelain") == "" for r in (home.repo, home.lib, home.tool)), "the checkouts are as they were")
    t.works(not os.path.exists(home.repo + "/libs"), "the root's checkout has no member")
    files = git(home.repo, "ls-tree", "-r", "--name-only", "kraft/s")
    t.works("lib" not in files and "tool" not in files, "the root's commit has nothing of a member's", files)
    again = home.item("s", "git -C libs/deep/lib log --format=%s; test -z \"$(git status --porcelain)\" && git add -A && git diff --cached --quiet"
                      " && test -z \"$(git -C tool status --porcelain)\" && echo clean")
    t.works(again.code == 0 and "clean" in again.lines, "a later run without --workspace has the members", again)
    t.works("first of lib" in again.lines and "new" not in again.lines, "the members were moved to their checkout's HEAD", again)
    t.works(tip_of(home.lib) == result.lines[1], "the branch stays")
    kept = home.site("git -C libs/deep/lib log --format=%s", item="k")
    t.works(kept.lines == ["first of lib"], "another item of the workspace", kept)
    first = home.kraft("run", "--workspace", "site", "--", "sh", "-c", COMMIT)
    second = home.kraft("run", "--workspace", "site", "--keep", "--", "sh", "-c", "git -C tool log -1 --format=%s")
    t.works(first.code == 0 and second.lines == ["new"], "the workspace's own item is kept from run to run", first, second)
    plain = home.run("sh", "-c", "ls")
    t.works(plain.code == 0 and "tool" not in plain.lines, "a run without a workspace has no members", plain)


@promise("REF-06", "a run, an item and the diff cover the members: list, diff, merge, push, remove")
def _(t):
    home = Workspace()
    home.site(COMMIT)
    listed = home.kraft("item", "list", "--json")
    one = [i for i in json.loads(listed.out) if i["item"] == "s"][0]
    t.works(one["workspace"] == "site" and [m["tip"] for m in one["members"]] == [tip_of(home.lib), tip_of(home.tool)], "the list", listed)
    t.works("libs/deep/lib" in home.kraft("item", "list").out, "and as a table")
    diff = home.kraft("view", "diff", "s")
    for name in ("+++ b/new", "+++ b/libs/deep/lib/new", "+++ b/tool/new"):
        t.works(name in diff.lines, "the diff has " + name, diff)
    only = home.kraft("view", "diff", "--name-only", "s")
    t.works(only.lines == ["new", "libs/deep/lib/new", "tool/new"], "names", only)
    stat = home.kraft("view", "diff", "--stat", "--member", "lib", "s")
    t.works("libs/deep/lib/:" in stat.lines and "tool" not in stat.out, "a member's alone", stat)
    wrong = home.kraft("view", "diff", "--member", "nobody", "s")
    t.works(wrong.code == 7 and "has no member 'nobody'" in wrong.err, "one that there is not", wrong)
    for repo in (home.repo, home.lib, home.tool):
        git(home.home, "init", "-q", "--bare", repo + ".git")
        git(repo, "remote", "add", "origin", repo + ".git")
    pushed = home.kraft("item", "push", "s")
    t.works(pushed.code == 0 and all(tip_of(r + ".git") == tip_of(r) for r in (home.repo, home.lib, home.tool)), "push", pushed)
    git(home.lib, "commit", "-q", "--allow-empty", "-m", "mine")
    refused = home.kraft("item", "merge", "s")
    t.works(refused.code != 0 and home.lib in refused.err and not os.path.exists(home.repo + "/new"), "no merge when one cannot be", refused)
    git(home.lib, "reset", "-q", "--hard", "HEAD~")
    merged = home.kraft("item", "merge", "s")
    t.works(merged.code == 0 and all(os.path.exists(r + "/new") for r in (home.repo, home.lib, home.tool)), "merge", merged)
    removed = home.kraft("item", "remove", "s")
    t.works(removed.code == 0 and home.lib in removed.out, "remove", removed)
    for repo in (home.repo, home.lib, home.tool):
        t.works(git(repo, "worktree", "list").count("\n") == 1, "no worktree is left in " + repo)
        t.works(git(repo, "worktree", "prune", "-v") == "" and not os.path.exists(repo + "/.git/worktrees"), "nor anything to prune")
        t.works(git(repo, "for-each-ref", "refs/kraft") == "" and tip_of(repo), "no base ref; the branch stays")
    t.works(os.listdir(home.run_dir + "/sandbox-git") == [], "no private directory", os.listdir(home.run_dir + "/sandbox-git"))
    t.works(not os.path.exists(home.tree("s")), "no files")


ATTACKS = """
import os, errno
def tried(what, call):
    try:
        call()
        print('WORKED', what)
    except OSError as e:
        print(errno.errorcode[e.errno], what)
for d in ('libs', 'libs/deep', 'libs/deep/lib', 'tool'):
    tried('rename ' + d, lambda: os.rename(d, d + '-gone'))
    tried('exchange ' + d, lambda: (os.mkdir('/tmp/x%d' % hash(d)), os.rename('/tmp/x%d' % hash(d), d)))
for d in ('libs/deep/lib', 'tool'):
    tried('rename .git', lambda: os.rename(d + '/.git', d + '/git'))
    tried('remove .git', lambda: os.unlink(d + '/.git'))
    tried('write .git', lambda: open(d + '/.git', 'w'))
    open(d + '/mine', 'w').close()
    tried('replace .git', lambda: os.rename(d + '/mine', d + '/.git'))
    tried('empty', lambda: [os.unlink(os.path.join(d, n)) for n in os.listdir(d) if n != '.git'])
    tried('remove ' + d, lambda: os.rmdir(d))
os.mkdir('own'); os.rename('own', 'own-gone'); os.rmdir('own-gone'); print('control')
open('libs/deep/lib/f', 'w').close(); os.rename('libs/deep/lib/f', 'libs/deep/lib/g'); print('control')
"""


@promise("REF-04 REF-06 GIT-22", "a worker can neither rename, remove nor replace a member, a directory on the way to it, or its .git")
def _(t):
    home = Workspace()
    result = home.py(ATTACKS, options=["--workspace", "site", "--item", "s"])
    t.works(result.code == 0 and result.lines.count("control") == 2, "directories of its own it can", result)
    worked = [line for line in result.lines if line.startswith("WORKED") and "empty" not in line]
    t.works(not worked and len(result.lines) >= 18, "nothing else worked", result)
    t.works(any("EBUSY rename libs" in line for line in result.lines), "they are mounts", result)
    t.works(home.site("git -C tool status --porcelain | wc -l", options=["--keep"]).lines == ["1"], "the member is still one")


@promise("REF-04 REF-06", "a member that was replaced between two sessions stops the item, which names it, for each of five reasons")
def _(t):
    def refused(what, words, change, item="s"):
        home = Workspace()
        t.works(home.site(COMMIT).code == 0, what + ": it ran before")
        before = refs_of(home.lib)
        undo = change(home, home.inside())
        result = home.site("true", options=["--keep"])
        t.works(result.code == 125 and "member 'lib'" in result.err and words in result.err and "kraft item remove s" in result.err, what, result)
        other = home.site("true")
        t.works(other.code == 125 and words in other.err, what + ": also when it would move", other)
        t.works(refs_of(home.lib) == before and not os.path.exists(home.pwned), what + ": nothing moved")
        undo()
        back = home.site("git -C libs/deep/lib log -1 --format=%s", options=["--keep"])
        t.works(back.lines == ["new"], what + ": put back, it goes on", back)
        return home

    def moved(path, put):
        def change(home, lib):
            os.rename(path(lib), home.root + "/aside")
            put(home, lib, home.root + "/aside")

            def undo():
                if os.path.isdir(path(lib)) and not os.path.islink(path(lib)):
                    shutil.rmtree(path(lib))
                elif os.path.lexists(path(lib)):
                    os.unlink(path(lib))
                os.rename(home.root + "/aside", path(lib))
            return undo
        return change

    deep, git_of = (lambda lib: os.path.dirname(lib)), (lambda lib: lib + "/.git")
    home = refused("a directory that is gone", "cannot be reached", moved(lambda lib: lib, lambda home, lib, aside: None))
    refused("a file in its place", "is not a directory", moved(lambda lib: lib, lambda home, lib, aside: write(lib, "x")))
    refused("a link to it", "is a symbolic link", moved(lambda lib: lib, lambda home, lib, aside: os.symlink(aside, lib)))
    refused("a link on the way", "is a symbolic link", moved(deep, lambda home, lib, aside: os.symlink(aside, deep(lib))))

    def fake(home, lib, aside):
        git(home.home, "init", "-q", home.home + "/fake")
        write(home.home + "/fake/.git/config", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch %s\n" % home.pwned)
        write(lib + "/.git", "gitdir: %s/fake/.git\n" % home.home)
    refused("a .git that names another", "its '.git' is not the file", moved(git_of, fake))
    refused("a .git directory", "its '.git' is not the file", moved(git_of, lambda home, lib, aside: git(home.home, "init", "-q", lib)))
    refused("a .git that is a link", "its '.git' is not the file", moved(git_of, lambda home, lib, aside: os.symlink(aside, lib + "/.git")))
    refused("a .git that is a FIFO", "its '.git' is not the file", moved(git_of, lambda home, lib, aside: os.mkfifo(lib + "/.git")))

    def rewritten(name, text):
        def change(home, lib):
            path = read(lib + "/.git")[len("gitdir: "):-1] + "/" + name
            old = read(path)
            write(path, text(home))
            return lambda: write(path, old)
        return change
    refused("a git directory that names another worktree", "/gitdir' does not name it", rewritten("gitdir", lambda home: home.tool + "/.git\n"))
    refused("a git directory of another repository", "/commondir' does not lead to", rewritten("commondir", lambda home: home.tool + "/.git\n"))
    os.rename(home.inside(), home.root + "/lost")
    t.works(home.kraft("item", "remove", "s").code == 0 and home.site("git -C libs/deep/lib log -1 --format=%s").lines == ["first of lib"], "begun anew")


@promise("REF-03 REF-06", "a member's branch that moved meanwhile is not moved: its commits are kept in its repository, an event names it")
def _(t):
    home = Workspace()
    home.site(COMMIT)
    own = git(home.lib, "commit-tree", "-m", "own", "-p", "HEAD", "HEAD^{tree}").strip()
    script = COMMIT.replace("new", "newer")
    with home.start("sh", "-c", script + "; touch started; read x", options=["--item", "s", "--workspace", "site", "--keep"], stdin_file=subprocess.PIPE) as run:
        wait_for(lambda: os.path.exists(home.tree("s") + "/started"))
        git(home.lib, "update-ref", "refs/heads/kraft/s", own)
        out, err = run.communicate(b"x\n", timeout=60)
    tips = out.decode().split()
    t.works(len(tips) == 3 and tip_of(home.repo) == tips[0] and tip_of(home.tool) == tips[2], "the others moved", out, err)
    t.works(tip_of(home.lib) == own and tip_of(home.lib, "refs/kraft/unsynced/kraft/s") == tips[1], "the member's commits are kept", refs_of(home.lib))
    t.works(tip_of(home.repo, "refs/kraft/unsynced") == "", "not in the root's repository")
    events = home.events("sandbox_branch_not_synced")
    t.works(len(events) == 1 and home.lib in events[0]["data"]["reason"] and events[0]["data"]["commit"] == tips[1], "one event", events)


@promise("REF-02 REF-06", "two sessions of a workspace at once, a killed one, and commits that an interrupted one left: the members' come out")
def _(t):
    home = Workspace()
    home.site("true")
    with home.start("sh", "-c", "touch started; read x; " + COMMIT, options=["--item", "s", "--workspace", "site"], stdin_file=subprocess.PIPE) as run:
        wait_for(lambda: os.path.exists(home.tree("s") + "/started"))
        second = home.site("set -e; cd tool; echo 2 >two; git add two; git commit -qm two; git rev-parse HEAD")
        t.works(second.code == 0 and tip_of(home.tool) == second.lines[0], "the second one's", second)
        out, err = run.communicate(b"x\n", timeout=60)
    tips = out.decode().split()
    t.works([tip_of(r) for r in (home.repo, home.lib, home.tool)] == tips, "the first one's", out, err)
    with home.start("sh", "-c", COMMIT.replace("new", "newer") + "; touch again; sleep 60", options=["--item", "s", "--workspace", "site", "--keep"]) as run:
        wait_for(lambda: os.path.exists(home.tree("s") + "/again"))
        run.kill()
        run.communicate()
    t.works("cut off" in home.kraft("item", "list").out, "the list tells it")
    left = home.site("git -C libs/deep/lib log -1 --format=%s", options=["--keep"])
    t.works(left.lines == ["newer"] and git(home.lib, "log", "-1", "--format=%s", "kraft/s").strip() == "newer", "they came in", left)


@promise("REF-04 REF-06", "an operation in progress in a member stops the item, and a move that a member refuses is named")
def _(t):
    home = Workspace()
    stopped = home.site("cd libs/deep/lib; git switch -qc side; echo a >lib; git commit -qam a; git switch -q kraft/s; echo b >lib; git commit -qam b;"
                        " git merge side >/dev/null; true")
    t.works(stopped.code == 0, "a merge with a conflict", stopped)
    refused = home.site("true")
    t.works(refused.code == 125 and "member 'lib' of item 's' cannot go on: a merge is in progress" in refused.err, "it is named", refused)
    done = home.site("cd libs/deep/lib; git merge --abort", options=["--keep"])
    t.works(done.code == 0 and home.site("true").code == 0, "aborted, it goes on", done)
    dirty = home.site("echo mine >tool/tool")
    git(home.tool, "rm", "-q", "tool")
    git(home.tool, "commit", "-qm", "gone")
    clash = home.site("true")
    t.works(dirty.code == 0 and clash.code == 125 and "member 'tool'" in clash.err, "a file that a move would lose", clash)
    home.site("git -C tool checkout -q tool", options=["--keep"])
    moved = home.site("ls tool")
    t.works(moved.code == 0 and moved.lines == [], "then it moves", moved)


@promise("REF-05 REF-06", "the root's setup command runs once, in the root; identity, local files and excludes are each member's own")
def _(t):
    home = Workspace()
    git(home.lib, "config", "user.name", "Lib Person")
    write(home.lib + "/.git/info/exclude", "*.o\n")
    git(home.tool, "config", "committer.name", "Tool Committer")
    home.set_workspace(setup_command="echo ran >>count; git -C tool commit -q --allow-empty -m setup", local=["x.o"])
    write(home.lib + "/x.o", "local\n")
    ask = "for d in . libs/deep/lib tool; do git -C $d commit -q --allow-empty -m x; git -C $d log -1 --format='%an %cn'; done; cat count libs/deep/lib/x.o;" \
          " git -C libs/deep/lib status --porcelain"
    result = home.site(ask)
    t.works(result.lines == ["Per Son Per Son", "Lib Person Lib Person", "Per Son Tool Committer", "ran", "local"], "each as its repository says", result)
    t.works("the root's command, once" in result.err, "it is said", result)
    t.works(git(home.tool, "log", "--format=%s", "kraft/s").splitlines() == ["x", "first of tool"], "what setup did to a member's branch is dropped")
    env = home.site("git -C tool commit -q --allow-empty -m e; git -C tool log -1 --format='%an %cn'", env={"GIT_AUTHOR_NAME": "En Vi", "GIT_COMMITTER_NAME": "En Vi"},
                    options=["--keep"])
    t.works(env.lines == ["En Vi En Vi"], "the environment's", env)


@promise("REF-06 GIT-22", "a workspace that cannot be is refused with its place: unknown names, a path that the root uses, bump, a changed one")
def _(t):
    home = Workspace()

    def refused(what, words, **more):
        home.set_workspace(**more)
        result = home.site("true", item="r")
        t.works(result.code == 125 and words in result.err, what, result)

    refused("a path of the root's", "has something at 'sub'", lib="sub")
    refused("a path below a file", "has something at 'file1'", lib="file1/lib")
    os.symlink("/tmp", home.repo + "/way")
    home.own("add", "way")
    home.own("commit", "-qm", "a link")
    refused("a path through a link", "has something at 'way'", lib="way/lib")
    refused("a root that is another", "is '%s', not" % home.lib, root="lib", lib=None)
    refused("bump", "bump of the workspace 'site' is not supported", pointer="bump")
    refused("nested paths", "share a path", lib="tool/lib")
    home.set_workspace()
    result = home.kraft("run", "--workspace", "nobody", "--", "true")
    t.works(result.code == 125 and "there is no workspace 'nobody'" in result.err and "'site'" in result.err, "no such workspace", result)
    t.works(home.site("true").code == 0, "as it should be, it runs")
    home.set_workspace(lib="elsewhere")
    changed = home.site("true")
    t.works(changed.code == 125 and "had the member 'lib'" in changed.err, "a member that stands elsewhere now", changed)
    home.set_workspace(lib=None)
    t.works(home.site("true").code == 125, "a member that is gone")
    home.set_workspace()
    home.item("plain", "true")
    other = home.site("true", item="plain")
    t.works(other.code == 125 and "was not made for the workspace 'site'" in other.err, "an item without one", other)


@promise("REF-06 GIT-22", "a submodule's place takes a member; the person's submodule, its pointer and its checkout stay")
def _(t):
    home = Workspace()
    home.own("-c", "protocol.file.allow=always", "submodule", "add", "-q", home.lib, "libs/deep/lib")
    home.own("commit", "-qm", "with a submodule")
    before = home.frozen()
    git(home.lib, "commit", "-q", "--allow-empty", "-m", "second")
    result = home.site(COMMIT)
    t.works(result.code == 0 and tip_of(home.lib) == result.lines[1], "commits", result)
    home.only_branch_moved(t, before, "the root")
    t.works(git(home.lib, "log", "-2", "--format=%s", "kraft/s").splitlines() == ["new", "second"], "from the member's checkout's HEAD")
    t.works(git(home.repo, "diff", "--name-only", "HEAD", "kraft/s").splitlines() == ["new"], "the pointer stays")


@promise("REF-06", "kraft explain shows the members' mounts with their reasons, and no git on the host opens a member's files")
def _(t):
    home = Workspace()
    said = home.kraft("explain", "--workspace", "site", "--item", "s", "--", "true")
    for path in ("libs", "libs/deep", "libs/deep/lib", "libs/deep/lib/.git", "tool", "tool/.git"):
        t.works(any(("worktrees/s/" + path + " ") in line for line in said.lines), "explain shows " + path, said)
    t.works("sandbox-git/s-2" in said.out and home.tool + "/.git/objects" in said.out and not os.path.exists(home.tree("s")), "and their git", said)
    home.site(COMMIT)
    result, trace = traced(home, KRAFT, "run", "--workspace", "site", "--item", "s", "--keep", "--", "sh", "-c", COMMIT.replace("new", "newer"), cwd=home.repo)
    t.works(result.code == 0 and trace.gits, "a traced session", result)
    opened = [c for c in trace.below(home.tree("s"), home.run_dir + "/sandbox-git") if ".gitfile" not in c]
    t.works(not opened, "no git on the host opened what the worker could write", opened[:3])


main()
