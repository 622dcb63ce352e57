#!/usr/bin/env python3
"""kind: os on macOS: the git of an item is the repository's own, and what a session left on its branch is judged.

There is no Seatbelt here, so a worker may do more than on a Mac: what it does to its own branch is what it could do there too.
"""
from gitlive import *
from maclive import *
from worklive import *

REF = "ref=$(git rev-parse --git-common-dir)/refs/heads/$(git symbolic-ref --short HEAD); "


class Site(Mac, Office):
    """A Mac with a repository whose branches are looked at."""

    def told(self):
        return self.events("sandbox_branch_not_synced")


@promise("MAC-08 MAC-13", "a commit is on the item's branch in the repository at once, and is nobody's private copy; the next session goes on")
def _(t):
    home = Site()
    start = home.rev("main")
    done = home.item("a", "git branch --list && echo 1 >new && git add new && git commit -qm one && git rev-parse HEAD")
    t.works(done.code == 0 and done.lines[-1] == home.rev("kraft/a"), "the branch is at the commit", done)
    t.works("main" in done.out and "1 commit on branch 'kraft/a'" in done.err, "refs are listed, the commit is told", done)
    t.works(home.rev("main") == start and not os.path.exists(home.private("a")), "nothing else moved, no private directory")
    t.works(home.own("cat-file", "-t", "kraft/a").strip() == "commit" and home.own("fsck", "--strict") is not None, "it is whole")
    again = home.item("a", "git log --format=%s -2", options=["--keep"])
    t.works(again.lines == ["one", home.own("log", "-1", "--format=%s", "main").strip()], "the next one stands on it", again)
    t.works(not home.told(), "no event")
    plain = Project()
    plain.item("a", "git commit -q --allow-empty -m x")
    t.control(os.path.exists(plain.private("a")), "on Linux it has a private directory")


@promise("MAC-08", "security case MAC-07: a branch that holds anything but a commit after a session is put back, told and recorded")
def _(t):
    home = Site()
    start = home.rev("main")
    cases = {
        "a symbolic ref": "echo 'ref: refs/heads/main' >$ref",
        "no value": ": >$ref",
        "a FIFO": "rm $ref; mkfifo $ref",
        "a link": "rm $ref; ln -s main $ref",
        "gone": "rm $ref",
        "a tree": "x=$(git rev-parse HEAD^{tree}); echo $x >$ref",
        "nothing": "echo 1234567890123456789012345678901234567890 >$ref",
    }
    for number, (what, script) in enumerate(cases.items(), 1):
        done = home.item("a", REF + script)
        t.works(done.code == 0 and "the branch 'kraft/a' was put back to %.12s" % start in done.err, what, done)
        told = home.told()
        t.works(len(told) == number and told[-1]["data"]["branch"] == "kraft/a" and "put back" in told[-1]["data"]["reason"], "event", told)
        t.works(home.rev("kraft/a") == start == home.rev("main"), "nothing moved")
        t.works(home.own("worktree", "list").count("\n") == 2, "the person's git goes by")
    kept = home.item("a", "git commit -q --allow-empty -m kept && git rev-parse HEAD")
    t.control(kept.lines[-1] == home.rev("kraft/a"), "a commit stays", kept)


@promise("MAC-08", "kraft killed in a session: the next one judges the branch before anything else")
def _(t):
    home = Site()
    start = home.rev("main")
    home.item("a", "true")
    kraft = home.start("sh", "-c", REF + "echo 'ref: refs/heads/main' >$ref; touch ready; sleep 60", options=["--item", "a"])
    t.works(wait_for(lambda: os.path.exists(home.tree("a") + "/ready")), "it is at work")
    kraft.kill()
    kraft.wait()
    time.sleep(1)
    done = home.item("a", "git rev-parse HEAD")
    t.works(done.code == 0 and "was put back" in done.err and done.lines[-1] == start, "put back first", done)


@promise("MAC-08", "what a setup command did to the branch is dropped (REF-05); what is left uncommitted can be committed")
def _(t):
    home = Site(setup_command="git commit -q --allow-empty -m setup && echo s >s && git add s")
    home.identify(home.repo)
    done = home.item("a", "git log --format=%s -1; git status --porcelain; git symbolic-ref HEAD; echo left >left", options=["--commit"])
    t.works(done.lines == [home.own("log", "-1", "--format=%s", "main").strip(), "?? s", "refs/heads/kraft/a"], "dropped", done)
    t.works(home.own("log", "--format=%s", "main..kraft/a").strip() == "kraft: left by sh in item a", "committed", done)


@promise("MAC-08", "an item walks from its making to its gate with a commit of its worker's, and the person takes it over")
def _(t):
    home = Site()
    home.chain("c", node("one", task("make", "sh -c 'echo 1 >made && git add made && git commit -qm made'")), GATE)
    item = home.create("on a Mac", "--chain", "c")
    started = home.kraft("item", "start", item)
    t.works(started.code == 0 and "needs you at" in started.out, "at its gate", started)
    t.works("made" in home.kraft("view", "diff", item).out, "the diff is there")
    t.works(home.own("log", "--format=%s", "main..kraft/" + item).strip() == "made", "on its branch")
    approved = home.kraft("item", "approve", item)
    t.works(approved.code == 0, "approved", approved)
    merged = home.kraft("item", "merge", item)
    t.works(merged.code == 0 and home.rev("main") == home.rev("kraft/" + item), "merged", merged)


class MacSpace(Mac, Workspace):
    """A Mac with a workspace of three repositories."""

    def __init__(self, places=None, **entry):
        super().__init__(places=places, **entry)


TAKEN = "git add -A && git diff --cached --name-only --diff-filter=A"


@promise("MAC-08 REF-06", "a workspace's members are worked on in their own repositories: commits are on each one's branch, and the root takes none for its files")
def _(t):
    home = MacSpace()
    before = {repo: refs_of(repo) for repo in (home.repo, home.lib, home.tool)}
    result = home.site(COMMIT)
    t.works(result.code == 0 and len(result.lines) == 3, "commits in all three", result)
    for repo, tip in zip((home.repo, home.lib, home.tool), result.lines):
        rest = [line for line in refs_of(repo) if "refs/heads/kraft/s " not in line and "refs/kraft/base/s " not in line]
        t.works(tip_of(repo) == tip and rest == before[repo], "the branch in '%s', and no other ref" % repo, refs_of(repo))
        t.works(git(repo, "fsck", "--strict", "--full", "--no-dangling", "--no-progress") == "", "fsck")
    t.works(os.listdir(home.run_dir + "/sandbox-git") and not [n for n in os.listdir(home.run_dir + "/sandbox-git") if os.path.isdir(home.run_dir + "/sandbox-git/" + n)],
            "no private directory", os.listdir(home.run_dir + "/sandbox-git"))
    write(home.inside("tool") + "/libs/deep/lib/own", "a member's file where the root has a member\n")
    clean = home.site("echo 2 >two; " + TAKEN + "; git status --porcelain; cd tool && " + TAKEN, options=["--keep"])
    t.works(clean.lines == ["two", "A  two", "libs/deep/lib/own"], "the root's git does not see the members, a member's own sees its files", clean)
    bare = home.site("git reset -q; GIT_CONFIG_COUNT=0 sh -c '%s'" % TAKEN, options=["--keep"])
    t.control(bare.lines == ["libs/deep/lib", "tool", "two"], "without that setting it takes them for submodules", bare)
    left = home.site("git reset -q; git -C tool reset -q; echo 3 >libs/deep/lib/three", options=["--keep", "--commit"])
    files = git(home.repo, "ls-tree", "-r", "--name-only", "kraft/s").splitlines()
    t.works(left.code == 0 and "two" in files and "tool" not in files and "libs/deep/lib" not in files, "nor does the commit of what is left", left, files)
    t.works("three" in git(home.lib, "ls-tree", "-r", "--name-only", "kraft/s").splitlines(), "a member's is on its branch")
    again = home.site("git -C libs/deep/lib log --format=%s; ls tool")
    t.works(again.lines == ["first of lib", "tool"], "the next session begins at the members' own checkouts", again)
    removed = home.kraft("item", "remove", "--force", "s")
    for repo in (home.repo, home.lib, home.tool):
        t.works(removed.code == 0 and git(repo, "worktree", "list").count("\n") == 1 and tip_of(repo), "removed; the branch stays in " + repo, removed)


@promise("MAC-08 REF-06", "a path of a member's and of kraft's is a name, no pattern and no setting; who commits is what each repository says")
def _(t):
    home = MacSpace({"kraft_home": "k [a]*\"q", "repo": "code/s[a]m?*\\"})
    home.set_workspace(lib="li*s [x]/lib")
    git(home.lib, "config", "user.name", 'Lib "Quoted" \\ Person')
    git(home.tool, "config", "committer.name", "Tool Committer")
    ask = "for d in . 'li*s [x]/lib' tool; do git -C \"$d\" commit -q --allow-empty -m x; git -C \"$d\" log -1 --format='%an %cn'; done; mkdir -p 'lixs x' && echo 1 >'lixs x/f'; " + TAKEN
    result = home.site(ask)
    t.works(result.lines == ["Per Son Per Son", 'Lib "Quoted" \\ Person Lib "Quoted" \\ Person', "Per Son Tool Committer", "lixs x/f"], "each as its repository says", result)
    said = home.kraft("explain", "--workspace", "site", "--item", "s", "--", "true")
    t.works(said.code == 0 and said.out.count("includeIf.gitdir:") == 3, "explain shows it", said)


@promise("MAC-08 REF-04 REF-06", "a member's branch that holds no commit is put back in its repository; one that was replaced stops the item")
def _(t):
    home = MacSpace()
    home.site("true")
    start = tip_of(home.lib)
    done = home.site("cd libs/deep/lib; " + REF + "echo 'ref: refs/heads/other' >$ref")
    t.works(done.code == 0 and "was put back to %.12s" % start in done.err and home.lib in done.err, "told with its repository", done)
    told = home.events("sandbox_branch_not_synced")
    t.works(len(told) == 1 and told[0]["data"]["repository"] == home.lib and tip_of(home.lib) == start, "the event", told)
    for what, script, words in (("a directory of its own", "rm -r tool && git init -q tool", "its '.git' is not the file"),
                                ("a link", "mv tool gone && ln -s gone tool", "is a symbolic link")):
        home = MacSpace()
        replaced = home.site(script)
        refused = home.site("true", options=["--keep"])
        t.attack(replaced.code == 0 and refused.code == 125 and "member 'tool'" in refused.err and words in refused.err, what, replaced, refused)
        t.attack(tip_of(home.tool) == git(home.tool, "rev-parse", "HEAD").strip(), "nothing moved there")
    kept = MacSpace()
    t.control(kept.site("true").code == 0 and kept.site("true", options=["--keep"]).code == 0, "one that nobody touched goes on")


if __name__ == "__main__":
    main()
