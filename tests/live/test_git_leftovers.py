#!/usr/bin/env python3
"""What a command leaves in an item's worktree: repositories that kraft did not make, and changes that nobody committed."""
# kraft-test: timeout 300
from gitlive import *

INNER = "git init -q %s && git -C %s commit -q --allow-empty -m inner; "
MADE = INNER % ("inner", "inner")


def goes_on(home, name, **more):
    return home.item(name, "echo fine", **more).lines == ["fine"]


def stops(t, home, name, path, what, left=None):
    again = home.item(name, "echo fine")
    t.works(again.code == 125 and again.out == "" and "'%s'" % path in again.err, what + " stops the item, by name", left, again)
    t.works("--keep" in again.err and "item remove --force " + name in again.err, what + ": with what to do", again)


@promise("REF-04", "a nested repository of every kind stops the item by name; --keep goes on, and without it the item does")
def _(t):
    home = Project()
    kinds = {
        "whole": (MADE, "inner"),
        "empty": ("git init -q inner", "inner"),
        "deep": ("mkdir -p 'a/b c/d'; " + INNER % ("'a/b c/d'", "'a/b c/d'"), "a/b c/d"),
        "tracked": ("git init -q sub", "sub"),
        "file": ("mkdir inner; git init -q --separate-git-dir=/tmp/elsewhere inner; test -f inner/.git", "inner"),
        "link": ("mkdir inner; ln -s /nowhere inner/.git", "inner"),
        "nothing": ("mkdir -p inner/.git", "inner"),
        "added": (MADE + "git add inner 2>/dev/null; git commit -qm gitlink", "inner"),
        "odd": ("mkdir -p 'new\nline/.git'", "new\\nline"),
    }
    for name, (script, path) in kinds.items():
        left = home.item(name, script)
        t.works(left.code == 0 and "'%s' is a git repository" % path in left.err, name + " is told at once", left)
        stops(t, home, name, path, name, left)
        stops(t, home, name, path, name + ", again")
        kept = home.item(name, "ls -A", options=["--keep"])
        t.works(kept.code == 0 and kept.lines and path.split("/")[0].split("\\n")[0] in kept.out, name + ": --keep goes on", kept)
        if name == "added":
            continue  # the branch still has the link
        mended = home.item(name, "rm -rf inner a new* sub/.git; git status --porcelain", options=["--keep"])
        t.works(mended.code == 0 and mended.out == "", name + " is mended inside", mended)
        t.works("is a git repository" not in mended.err and goes_on(home, name), name + " goes on", mended)
    home.item("outside", MADE)
    shutil.rmtree(home.tree("outside") + "/inner")
    t.works(goes_on(home, "outside"), "a person may take it out as well")
    t.works(home.rev("kraft/added"), "what was committed beside it is published", home.branches())


@promise("REF-04 GIT-05", "what is ignored, a bare repository, and a submodule without its content are no nested repositories")
def _(t):
    home = Project()
    write(home.repo + "/.gitignore", "/build/\nnode_modules\n")
    write(home.common + "/info/exclude", "/mine\n/:*\n")
    library = home.home + "/library"
    git(home.home, "init", "-q", "library")
    git(library, "commit", "-q", "--allow-empty", "-m", "library")
    home.own("-c", "protocol.file.allow=always", "submodule", "add", "-q", library, "lib")
    home.own("add", "-A")
    home.own("commit", "-qm", "with a submodule")
    fair = {
        "ignored": "mkdir -p build/_deps; cd build/_deps; %scd ../..; mkdir -p x/node_modules; %s" % (MADE, INNER % (("x/node_modules/dep",) * 2)),
        "own": INNER % ("mine", "mine"),
        "strange": "mkdir -p ':(top)x/.git' ':!/.git'",
        "bare": "git init -q --bare bare.git; git init -q --bare x; cp -r bare.git fixtures",
        "nothing": "true",
        "elsewhere": INNER % ("/tmp/inner", "/tmp/inner") + INNER % ("$HOME/inner", "$HOME/inner"),
    }
    for name, script in fair.items():
        left = home.item(name, script)
        t.works(left.code == 0 and left.err.count("kraft:") == 0, name + " says nothing", left)
        t.works(goes_on(home, name) and goes_on(home, name), name + " goes on", left)
    left = home.item("filled", "rmdir lib; " + INNER % ("lib", "lib"))
    t.works("'lib' is a git repository" in left.err, "the submodule with a repository in it is told", left)
    stops(t, home, "filled", "lib", "a submodule that was filled")
    both = home.item("both", "mkdir build; cd build; %scd ..; %s" % (MADE, MADE))
    stops(t, home, "both", "inner", "one beside an ignored one", both)
    t.works("build" not in both.err, "which is not named", both)


@promise("REF-04", "a link to another repository's commit that the branch brought comes out and stops the item, until the base has it")
def _(t):
    home = Project()
    link = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),%s; git commit -qm link; git rev-parse HEAD"
    tip = home.item("x", link % "lib")
    home.same_tip(t, "x", tip, "a link")
    t.works("'lib' is a link" in tip.err, "it is told", tip)
    stops(t, home, "x", "lib", "a link")
    home.own("merge", "-q", "kraft/x")
    t.works(goes_on(home, "x") and goes_on(home, "x"), "once the person took it, it is the base's")
    moved = home.item("x", link % "lib")
    home.same_tip(t, "x-2" if home.rev("kraft/x-2") else "x", moved, "another value of it")
    stops(t, home, "x", "lib", "a link that moved")
    back = home.item("x", "git reset -q --hard HEAD~1", options=["--keep"])
    t.works(goes_on(home, "x"), "taken back, it goes on", back)


@promise("REF-04", "a directory that cannot be looked into stops the item by name")
def _(t):
    home = Project()
    left = home.item("x", "mkdir -p shut/inner list; %s chmod 0 shut; chmod 0444 list" % (INNER % ("shut/inner", "shut/inner")))
    t.works("'shut' is a directory that cannot be looked into" in left.err and "'list' is a" in left.err, "told", left)
    again = home.item("x", "true")
    t.works(again.code == 125 and ("'shut'" in again.err or "'list'" in again.err), "it stops", again)
    opened = home.item("x", "chmod 755 shut list; rm -r shut list", options=["--keep"])
    t.works(goes_on(home, "x"), "opened, it goes on", opened)
    write(home.repo + "/.gitignore", "shut\n")
    home.own("add", "-A")
    home.own("commit", "-qm", "ignored")
    t.works(home.item("y", "mkdir shut; chmod 0 shut").code == 0 and goes_on(home, "y"), "an ignored one is nobody's business")
    deep = home.py("import os\nfor n in range(400):\n    os.mkdir('d'); os.chdir('d')\nos.mkdir('.git')", options=["--item", "z"])
    t.works(deep.code == 0 and home.item("z", "true").code == 125, "nor can what lies too deep", deep)


@promise("REF-04", "a kraft that is killed, and two sessions at once, leave nothing unseen")
def _(t):
    home = Project()
    t.works(goes_on(home, "x"), "a clean item")
    process = home.start("sh", "-c", MADE + "echo ready; sleep 60", options=["--item", "x"])
    t.works(process.stdout.readline() == b"ready\n", "it planted")
    process.kill()
    process.communicate()
    stops(t, home, "x", "inner", "what a killed kraft's command planted")
    first = home.start("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; rm go", options=["--item", "y"])
    t.works(first.stdout.readline() == b"ready\n", "the first runs")
    second = home.item("y", MADE)
    t.works(second.code == 0 and "is a git repository" not in second.err, "the last one looks", second)
    write(home.tree("y") + "/go")
    t.works(b"'inner' is a git repository" in first.communicate(timeout=60)[1], "and tells")
    stops(t, home, "y", "inner", "what the other session planted")
    for n in range(full(5, 50)):
        name = "z%d" % n
        pair = [home.start("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.01; done; mkdir -p inner/.git", options=["--item", name])]
        t.works(pair[0].stdout.readline() == b"ready\n", "the first of two")
        pair.append(home.start("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.01; done", options=["--item", name]))
        t.works(pair[1].stdout.readline() == b"ready\n", "and the second")
        write(home.tree(name) + "/go")
        told = sum(b"is a git repository" in p.communicate(timeout=60)[1] for p in pair)
        t.works(told == 1, "one of two that end together looks", told)
        stops(t, home, name, "inner", "two that end together")


@wall("GIT-06", "nothing that a nested repository says runs on the host, neither when it is found nor when it is refused")
def _(t):
    home = Project()
    places = [home.run_dir + "/worktrees", home.run_dir + "/sandbox-git", home.run_dir + "/sandbox-home"]
    payload = "printf '#!/bin/sh\\ntouch %s\\n' >payload; chmod +x payload; " % home.pwned
    home.item("x", "true")
    plant = payload + MADE + "git -C inner config core.fsmonitor $PWD/payload; git config core.fsmonitor $PWD/payload; git config core.excludesFile $PWD/ex"
    for words in (("--keep", "--commit", "--", "sh", "-c", plant), ("--", "true"), ("--keep", "--commit", "--", "git", "-C", "inner", "status")):
        done, seen = traced(home, KRAFT, "run", "--item", "x", *words)
        t.attack(not os.path.exists(home.pwned) and not seen.below(*places), words, done, "\n".join(seen.below(*places)[:5]))
    t.works(home.item("x", "true").code == 125, "it is refused")
    home.host("git", "status", cwd=home.tree("x") + "/inner")
    t.control(os.path.exists(home.pwned), "a plain git there runs it")
    os.unlink(home.pwned)
    t.works(home.kraft("item", "remove", "--force", "x").code == 0 and goes_on(home, "x"), "removed, the item begins anew")
    t.attack(not os.path.exists(home.pwned), "the removal runs nothing either")


# ---- leftovers ----

def names(home, commit):
    return git(home.repo, "show", "--format=", "--name-status", commit).split("\n")[:-1]


@promise("REF-02", "run --commit: what a command leaves, however it ended, is a commit on the item's branch; nothing to commit says nothing")
def _(t):
    home = Project()
    write(home.repo + "/.gitignore", "*.log\n")
    write(home.repo + "/kept.log", "tracked although ignored\n")
    home.own("add", "-A", "-f")
    home.own("commit", "-qm", "ignored")
    leave = "echo new >new; mkdir -p d; echo n >d/n; echo more >>file0; rm file1; chmod +x file2; echo x >x.log; ln -s file0 link; git add d; "
    done = home.item("x", leave + "exit 3", options=["--commit"])
    t.works(done.code == 3 and "1 commit on branch 'kraft/x'" in done.err, "it is told, and the status is the command's", done)
    t.works(names(home, "kraft/x") == ["A\td/n", "M\tfile0", "D\tfile1", "M\tfile2", "A\tlink", "A\tnew"], "all of it", names(home, "kraft/x"))
    said = git(home.repo, "log", "-1", "--format=%s|%an|%ae|%cn|%P", "kraft/x").strip()
    t.works(said == "kraft: left by sh in item x|Per Son|person@site.example|Per Son|" + home.rev("main"), "whose, and on what", said)
    t.works(git(home.repo, "ls-tree", "--name-only", "kraft/x", "kept.log") == "kept.log\n", "what is tracked although ignored stays")
    quiet = home.item("x", "git status --porcelain; cat kept.log", options=["--keep", "--commit"])
    t.works(quiet.lines == ["tracked although ignored"] and "commit" not in quiet.err, "nothing to commit says nothing", quiet)
    t.works(home.rev("kraft/x~1") == home.rev("main"), "and makes none")
    changed = home.item("x", "echo changed >kept.log; echo y >y.log; git commit -q --allow-empty -m own", options=["--keep", "--commit=# 1 'quoted' $(id)\n\nbody"])
    t.works(names(home, "kraft/x") == ["M\tkept.log"], "it survives a change", changed)
    t.works(git(home.repo, "log", "-2", "--format=%B", "kraft/x") == "# 1 'quoted' $(id)\n\nbody\n\nown\n\n", "a message of one's own, as it is")
    killed = home.item("k", "echo k >k; kill -9 $$", options=["--commit"])
    t.works(killed.code == 137 and names(home, "kraft/k") == ["A\tk"], "a command that was killed", killed)
    missing = home.run("no-such-command-here", options=["--item", "m", "--commit"])
    t.works(missing.code in (125, 127) and home.rev("kraft/m") is None, "a command that was not started", missing)
    plain = home.item("p", "echo p >p")
    t.works(home.rev("kraft/p") is None and read(home.tree("p") + "/p") == "p\n", "without the option it stays", plain)
    stale = home.item("s", "echo s >s; touch $(git rev-parse --git-dir)/index.lock", options=["--commit"])
    t.works(names(home, "kraft/s") == ["A\ts"], "a lock that a killed git left does not hold it", stale)
    t.works(home.events("sweep_failed") + home.events("sweep_left_out") == [], "no event")
    t.works(home.kraft("item", "merge", "x").code == 0 and read(home.repo + "/new") == "new\n", "a person can take it")


@promise("CTR-05", "run --commit: hooks, signing, editors and settings of the worker's do not stand in its way, and it needs to know who commits")
def _(t):
    home = Project()
    setting = ("d=$(git rev-parse --git-dir); mkdir -p $d/hooks; for h in pre-commit commit-msg post-commit; do printf '#!/bin/sh\\ntouch %s; exit 1\\n'"
               " $PWD/hooked >$d/hooks/$h; chmod +x $d/hooks/$h; done; git config core.hooksPath $d/hooks; git config commit.gpgSign true;"
               " git config gpg.program /bin/false; git config core.editor 'touch edited'; git config core.worktree /tmp; git config core.bare true;"
               " git config user.name Other; git config author.name Other; git config core.safecrlf true; git config core.autocrlf input;"
               " git config commit.template /nowhere; git config status.showUntrackedFiles no; git config commit.cleanup strip; printf 'a\\r\\n' >crlf; echo s >s")
    done = home.item("x", setting, options=["--commit"])
    t.works(names(home, "kraft/x") == ["A\tcrlf", "A\ts"], "committed", done, home.branches())
    t.works(not os.path.exists(home.tree("x") + "/hooked") and git(home.repo, "log", "-1", "--format=%an%G?", "kraft/x") == "Per SonN\n", "as kraft said")
    for key in ("user.name", "user.email"):
        git(home.repo, "config", "--unset", key)
    nobody = home.item("y", "echo y >y; git config user.name W; git config user.email w@x.example", options=["--commit"])
    t.works(nobody.code == 0 and "user.email" in nobody.err and home.repo in nobody.err and home.rev("kraft/y") is None, "nobody is not made up", nobody)
    events = home.events("sweep_failed")
    t.works(len(events) == 1 and events[0]["item"] == "y" and "user.name" in events[0]["data"]["error"], "recorded", events)
    named = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@x.example", "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@x.example"}
    done = home.item("y", "true", options=["--keep", "--commit"], env=named)
    t.works(names(home, "kraft/y") == ["A\ty"], "named by the environment, it goes", done)


@promise("REF-02 REF-04", "run --commit: not in an operation, on another HEAD, beside planted repositories or another session; it says so and keeps all")
def _(t):
    home = Project()
    merge = "git switch -qc s; echo s >file0; git commit -qam s; git switch -q -; echo m >file0; git commit -qam m; git merge s >/dev/null; "
    cases = {"merge": (merge, "a merge is in progress", None), "other": ("git switch -qc other; ", "HEAD is on branch 'other'", None),
             "detached": ("git checkout -q --detach; ", "HEAD is detached", None), "planted": (MADE, "'inner' is a git repository", ["inner"])}
    for n, (name, (script, reason, paths)) in enumerate(cases.items()):
        done = home.item(name, script + "echo left >left", options=["--commit"])
        t.works(done.code == 0 and "was not committed: " in done.err and reason in done.err, name + " is told", done)
        t.works(read(home.tree(name) + "/left") == "left\n", name + " keeps what is there")
        t.works(name == "merge" or home.rev("kraft/" + name) is None, name + ": no commit", home.branches())
        events = home.events("sweep_failed")
        t.works(len(events) == n + 1 and events[-1]["item"] == name and reason in events[-1]["data"]["error"], name + " is recorded", events)
        out = [e["data"]["paths"] for e in home.events("sweep_left_out") if e["item"] == name]
        t.works(out == ([paths] if paths else []), name + ": what was left out", out)
    mended = home.item("planted", "rm -rf inner", options=["--keep", "--commit"])
    t.works(names(home, "kraft/planted") == ["A\tleft"], "without it, it is committed", mended)
    first = home.start("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; rm go", options=["--item", "two", "--commit"])
    t.works(first.stdout.readline() == b"ready\n", "the first runs")
    second = home.item("two", "echo second >second", options=["--commit"])
    t.works("another session" in second.err and home.rev("kraft/two") is None, "the first one waits", second)
    t.works([e for e in home.events("sweep_failed") if e["item"] == "two"] == [], "which is no failure")
    write(home.tree("two") + "/go")
    out, err = first.communicate(timeout=60)
    t.works(names(home, "kraft/two") == ["A\tsecond"], "the last one commits", out, err)
    for n in range(full(5, 50)):
        name = "z%d" % n
        pair = []
        for k in (1, 2):
            pair.append(home.start("sh", "-c", "echo ready; while [ ! -e /tmp/../$PWD/go ]; do sleep 0.01; done; echo %d >f%d" % (k, k),
                                   options=["--item", name, "--commit"]))
            t.works(pair[-1].stdout.readline() == b"ready\n", "one of two")
        write(home.tree(name) + "/go")
        said = [p.communicate(timeout=60)[1] for p in pair]
        t.works(sorted(names(home, "kraft/" + name)) == ["A\tf1", "A\tf2", "A\tgo"], "exactly one of two that end together commits for both", said)


@promise("REF-02", "run --commit: what cannot be taken is named, told and recorded, and the rest is committed")
def _(t):
    home = Project()
    script = ("import os\nfor n in (b'plain', b'bad\\xff', b'new\\nline', b'shut', b':(top)odd', b'-dash'):\n    open(b'./' + n, 'w').write('x')\nos.chmod('shut', 0)\n"
              "os.mkdir('.GIT'); open('.GIT/x', 'w').write('x'); open('git~1', 'w').write('x')\nos.mkfifo('pipe')\nopen('file0', 'a').write('more')\nos.chmod('file0', 0)")
    done = home.py(script, options=["--item", "x", "--commit"])
    listed = subprocess.run(["git", "-C", home.repo, "diff", "-z", "--name-only", "main", "kraft/x"], stdout=subprocess.PIPE, check=True).stdout
    t.works(sorted(listed.split(b"\0")[:-1]) == sorted([b"plain", b"bad\xff", b"new\nline", b":(top)odd", b"-dash"]), "the rest", listed, done)
    events = home.events("sweep_left_out")
    t.works(len(events) == 1 and sorted(events[0]["data"]["paths"]) == [".GIT/x", "file0", "git~1", "shut"] and events[0]["data"]["count"] == 4, "recorded", events)
    t.works("could not be committed" in done.err and "and 1 more" in done.err and home.events("sweep_failed") == [], "told", done)
    t.works(os.path.exists(home.tree("x") + "/shut"), "it is still there")
    many = home.py("import os\nfor n in range(2000):\n    p='%04d' % n + 'x' * 200; open(p, 'w').close(); os.chmod(p, 0)", options=["--item", "many", "--commit"])
    events = home.events("sweep_left_out")
    t.works(many.code == 0 and events[-1]["data"]["count"] == 2000 and 1 < len(events[-1]["data"]["paths"]) <= 100, "very many are counted", many, len(events))
    filtered = home.item("f", "printf '* filter=f\\n' >.gitattributes; git config filter.f.clean 'for p in /proc/[0-9]*; do printf \"?? /forged\\0\" >$p/fd/1; done"
                         " 2>/dev/null; cat'; echo f >f", options=["--commit"])
    t.works(filtered.seconds < 60 and ("cannot read" in filtered.err or home.rev("kraft/f")), "a program of the worker's may spoil the answer, and no more", filtered)


main()
