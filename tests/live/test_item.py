#!/usr/bin/env python3
"""Taking over what was committed: view diff, item list, merge, push and remove."""
# kraft-test: timeout 300
from gitlive import *

COMMIT = "echo %s >%s; git add %s; git commit -qm %s"


def commit(home, item, name, options=()):
    done = home.item(item, COMMIT % (name, name, name, name), options=options)
    if done.code != 0:
        raise Failed("%r" % done)
    return done


def items(home):
    return {i["item"]: i for i in json.loads(home.kraft("item", "list", "--json").out)}


@promise("REF-02 GIT-13", "the diff is what was committed inside since it left the person's, and nothing of the person's")
def _(t):
    home = Project()
    nothing = home.kraft("view", "diff", "x")
    t.works(nothing.code == 7 and "there is no item 'x'" in nothing.err and "kraft item list" in nothing.err, "no item", nothing)
    home.item("x", "echo loose >never")
    t.works(home.kraft("view", "diff", "x").out == "" and home.kraft("view", "diff", "x").code == 0, "nothing is committed")
    commit(home, "x", "one")
    commit(home, "x", "two", ["--keep"])
    write(home.repo + "/mine", "mine\n")
    home.own("add", "-A")
    home.own("commit", "-qm", "mine")
    shown = home.kraft("view", "diff", "--name-only", "x")
    t.works(shown.lines == ["one", "two"], "both sessions', not the person's own", shown)
    stat = home.kraft("view", "diff", "--stat", "x")
    t.works("2 files changed, 2 insertions(+)" in stat.out, "--stat", stat)
    write(home.repo + "/uncommitted", "u\n")
    commit(home, "y", "three", ["--with-changes"])
    t.works(home.kraft("view", "diff", "--name-only", "y").lines == ["three"], "changes that were taken along are the person's",
            home.kraft("view", "diff", "y"))
    own = home.run("sh", "-c", COMMIT % (("own",) * 4))
    t.works("own" in home.kraft("view", "diff", "--name-only").lines, "without a name: the repository's own", own)
    t.works(home.kraft("view", "diff", "--name-only", cwd=home.repo + "/sub").out == "own\n", "from below")
    both = home.kraft("view", "diff", "--stat", "--name-only", "x")
    t.works(both.code == 2 and "exclude each other" in both.err, "one form", both)
    nowhere = home.kraft("view", "diff", cwd=home.home)
    t.works(nowhere.code == 7 and "kraft item list" in nowhere.err, "outside of a checkout", nowhere)
    t.works(home.kraft("view", "diff", "x", cwd=home.home).code == 0, "where an item is named it works anywhere")
    plain = home.kraft("view", "diff", "x")
    seen = home.host("script", "-qec", KRAFT + " view diff x", "/dev/null", env={"TERM": "xterm"})
    none = home.host("script", "-qec", KRAFT + " view diff x", "/dev/null", env={"TERM": "xterm", "NO_COLOR": "1"})
    t.works("\033[32m+one" in seen.out and "\033" not in plain.out and "\033" not in none.out, "colours are for terminals", seen, none)


@promise("REF-02", "merge brings the checkout to the branch, prints what it runs, and leaves a true merge to the person")
def _(t):
    home = Project()
    home.item("x", "true")
    early = home.kraft("item", "merge", "x")
    t.works(early.code == 7 and "nothing was committed" in early.err, "nothing yet", early)
    commit(home, "x", "one")
    merged = home.kraft("item", "merge", "x")
    t.works(merged.code == 0 and "git -C %s merge --ff-only refs/heads/kraft/x" % home.repo in merged.out, "printed", merged)
    t.works(read(home.repo + "/one") == "one\n" and home.rev("main") == home.rev("kraft/x"), "done", merged)
    again = home.kraft("item", "merge", "x")
    t.works(again.code == 0 and "already" in again.out, "twice", again)
    commit(home, "x", "two")
    home.own("commit", "-q", "--allow-empty", "-m", "mine")
    before = home.rev("main")
    apart = home.kraft("item", "merge", "x")
    t.works(apart.code == 5 and "no fast-forward" in apart.err and "merge refs/heads/kraft/x" in apart.err, "apart", apart)
    t.works(home.rev("main") == before and git(home.repo, "status", "--porcelain") == "", "nothing was done")
    home.own("merge", "-q", "--no-edit", "kraft/x")
    commit(home, "x", "three")
    write(home.repo + "/three", "in the way\n")
    blocked = home.kraft("item", "merge", "x")
    t.works(blocked.code == 1 and "git merge failed" in blocked.err and read(home.repo + "/three") == "in the way\n", "in the way", blocked)
    t.works(not os.path.exists(home.pwned), "no hook ran")


@wall("GIT-10 GIT-02", "push sends that branch alone to a remote of the person's, with the person's pre-push hook")
def _(t):
    home = Project()
    commit(home, "x", "one")
    lost = home.kraft("item", "push", "x")
    t.works(lost.code == 7 and "no remote 'origin'" in lost.err and "kraft item push x REMOTE" in lost.err, "no remote", lost)
    for name in ("origin", "other"):
        git(home.home, "init", "-q", "--bare", name + ".git")
        git(home.repo, "remote", "add", name, home.home + "/%s.git" % name)
    git(home.repo, "config", "push.followTags", "true")
    git(home.repo, "tag", "-a", "-m", "new", "new", "kraft/x")
    write(home.common + "/hooks/pre-push", "#!/bin/sh\ncat >%s/hook\n" % home.root, 0o755)
    pushed = home.kraft("item", "push", "x")
    t.works(pushed.code == 0 and "push --no-follow-tags -- origin refs/heads/kraft/x:refs/heads/kraft/x" in pushed.out, "printed", pushed)

    def refs(name):
        return git(home.home + "/%s.git" % name, "for-each-ref", "--format=%(refname) %(objectname)")
    t.attack(refs("origin") == "refs/heads/kraft/x %s\n" % home.rev("kraft/x"), "the branch and nothing else", refs("origin"))
    t.works("refs/heads/kraft/x" in read(home.root + "/hook"), "the hook ran")
    write(home.common + "/hooks/pre-push", "#!/bin/sh\necho not today >&2\nexit 1\n", 0o755)
    refused = home.kraft("item", "push", "x", "other")
    t.works(refused.code == 1 and refs("other") == "" and "type it yourself" in refused.err, "the hook may refuse", refused)
    home.own("push", "-q", "origin", "main")
    t.control("refs/tags/" in refs("origin") or "refs/heads/main" in refs("origin"), "a plain push takes more", refs("origin"))
    evil = home.item("y", "git remote add origin ext::sh; git config remote.origin.pushurl /tmp/x; git config url./tmp/.insteadOf %s; " % home.home
                     + COMMIT % (("y",) * 4))
    os.unlink(home.common + "/hooks/pre-push")
    again = home.kraft("item", "push", "y")
    t.attack(again.code == 0 and home.rev("kraft/y") in refs("origin"), "a worker's remotes are not read", evil, again)


@promise("REF-02", "list shows items, remove takes everything of one but its branch, and nothing while a session runs")
def _(t):
    home = Project()
    t.works(home.kraft("item", "list").out == "no items yet\n", "none")
    commit(home, "x", "one")
    tip = home.rev("kraft/x")
    home.item("x", "mkdir -p $HOME/mod/d closed/d; touch $HOME/mod/d/f closed/d/f; chmod 500 $HOME/mod/d $HOME/mod; chmod 0 closed/d;"
              " echo lost >untracked; echo '{}' >$KRAFT_RESULT_FILE 2>/dev/null", options=["--keep"])
    shown = items(home)
    t.works(list(shown) == ["x"] and not shown["x"]["running"] and shown["x"]["branch"] == "kraft/x" and shown["x"]["tip"] == tip and
            shown["x"]["checkout"] == home.repo, "listed", shown)
    running = home.start("sh", "-c", "echo ready; sleep 60", options=["--item", "x", "--keep"])
    t.works(running.stdout.readline() == b"ready\n" and items(home)["x"]["running"], "running", items(home))
    for words in (("view", "diff"), ("item", "merge"), ("item", "push"), ("item", "remove")):
        busy = home.kraft(*words, "x")
        t.works(busy.code == 1 and "a session runs in item 'x'" in busy.err and "kraft view sessions" in busy.err, words, busy)
    running.terminate()
    running.communicate()
    link = home.run_dir + "/worktrees/z"
    os.symlink(home.home, link)
    for name in ("z", "..", "x.lock"):
        t.works(home.kraft("item", "remove", name).code in (2, 7), name + " is none")
    removed = home.kraft("item", "remove", "x")
    t.works(removed.code == 0 and "kraft/x" in removed.out, "removed", removed)
    left = [p for p, _, _ in os.walk(home.run_dir) if "/sessions/" not in p and os.path.basename(p).split(".")[0].split("-")[0] == "x"]
    files = [f for f in os.listdir(home.run_dir + "/worktrees") if f.startswith("x")]
    t.works(not left and not files, "nothing of it is left", left, files)
    t.works(home.rev("kraft/x") == tip and items(home) == {}, "but the branch")
    t.works(git(home.repo, "worktree", "list").count("\n") == 1 and home.branches("refs/kraft") == {}, "the repository knows it no more",
            home.branches("refs/kraft"))
    t.works(os.path.isdir(home.home), "what a link led to is there")
    gone = home.kraft("item", "remove", "x")
    t.works(gone.code == 7 and "there is no item" in gone.err, "twice", gone)
    again = home.item("x", "git log -1 --format=%s")
    t.works(again.code == 0 and again.out == "loose\n", "made anew", again)
    _force_away(home.repo)
    t.works(home.kraft("item", "remove", "x", cwd=home.home).code == 0, "also when the repository is gone")


def _force_away(path):
    os.rename(path, path + ".away")


main()
