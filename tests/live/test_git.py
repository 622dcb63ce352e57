#!/usr/bin/env python3
"""Git inside: people's ways of working with it, in every kind of repository; and that one branch moves and nothing else."""
# kraft-test: timeout 300
import hashlib

from gitlive import *

TIP = "\ngit rev-parse HEAD"

# Each begins and ends on the item's branch; `first` is the commit it began at.
WORKFLOWS = {
    "commit": "echo one >new; git add new; git commit -qm one; git commit -q --amend -m 'one, said better'; test $(git rev-list --count $first..) = 1",
    "rebase": "git switch -qc topic HEAD~1; echo t >topic; git add topic; git commit -qm topic; git switch -q -; echo i >mine; git add mine;"
              " git commit -qm mine; git rebase -q topic; git merge-base --is-ancestor topic HEAD; test -f topic -a -f mine",
    "squash": "for i in 1 2 3; do echo $i >>s; git add s; git commit -qm s$i; done;"
              " GIT_SEQUENCE_EDITOR='sed -i 2,3s/pick/fixup/' git rebase -qi HEAD~3; test $(git rev-list --count $first..) = 1",
    "conflict": "git switch -qc side; echo side >file0; git commit -qam side; git switch -q -; echo main >file0; git commit -qam main;"
                " ! git merge side >/dev/null; git status | grep -q 'both modified'; echo both >file0; git add file0; git commit -qm merged;"
                " test $(git rev-list --parents -1 HEAD | wc -w) = 3",
    "cherry-pick": "git switch -qc cherry; echo p >picked; git add picked; git commit -qm picked; git switch -q -; git cherry-pick cherry >/dev/null;"
                   " git revert --no-edit HEAD >/dev/null; test ! -e picked; git reset -q --hard HEAD~1; test -e picked",
    "stash": "echo dirty >file1; echo untracked >u; git stash -qu; git diff --quiet; test ! -e u; git stash pop -q; test -e u; git add -A;"
             " git commit -qm stashed; test -z \"$(git stash list)\"",
    "bisect": "for i in 1 2 3 4; do echo $i >b; git add b; git commit -qm b$i; done; git bisect start HEAD $first >/dev/null 2>&1;"
              " git bisect run sh -c 'test $(cat b 2>/dev/null || echo 0) -lt 3' 2>&1 | grep -q 'is the first bad commit'; git bisect reset >/dev/null 2>&1",
    "worktrees": "test $(git worktree list | wc -l) -ge 1; git worktree add -q /tmp/other -b other 2>&1; git -C /tmp/other commit -q --allow-empty -m o;"
                 " git worktree remove /tmp/other; git merge -q --ff-only other; git submodule status; git clone -q . /tmp/clone;"
                 " git push -q /tmp/clone HEAD:refs/heads/pushed; git fetch -q /tmp/clone pushed; git notes add -m n; git archive HEAD | tar -t >/dev/null",
    "refs": "git tag -a -m mine mine; git branch work; git branch -D loose >/dev/null; git tag -d v2 >/dev/null; git describe --tags >/dev/null;"
            " git log --oneline --all >/dev/null; git reflog >/dev/null; git commit -q --allow-empty -m refs; git branch -m packed renamed",
    "gc": "for i in 1 2 3; do echo $i >g$i; git add -A; git commit -qm g$i; done; git gc -q --prune=now; git repack -adq;"
          " git fsck --strict --no-dangling 2>&1; echo 4 >g4; git add -A; git commit -qm g4",
}


@promise("REF-01 REF-02", "commit, rebase, merge with a conflict, stash, tags, gc, bisect and worktrees work inside; only the branch moves")
def _(t):
    home = Project()
    before = home.frozen()
    script = "".join("(set -e; first=$(git rev-parse HEAD); test -z \"$(git status --porcelain)\"\n%s) && echo fine %s\n" % (text, name)
                     for name, text in WORKFLOWS.items())
    result = home.item("all", script + TIP)
    for name in WORKFLOWS:
        t.works("fine " + name in result.lines, name + " works inside", result)
    home.same_tip(t, "all", result, "all of it")
    t.works("branch 'kraft/all'" in result.err, "it says so", result)
    packed = home.item("packed", "git commit -q --allow-empty -m a; git pack-refs --all; find $(git rev-parse --git-dir)/refs/heads -type f" + TIP)
    home.same_tip(t, "packed", packed, "a branch that only packed-refs has")
    t.works(len(packed.lines) == 1, "no loose one was there", packed)
    t.works(sorted(home.branches()) == ["refs/heads/kraft/all", "refs/heads/kraft/packed"], "these branches and no other", home.branches())
    home.only_branch_moved(t, before, "workflows")


@promise("CTR-05", "who commits inside is who the environment names, else the repository's and the person's configuration; no hook runs")
def _(t):
    home = Project()
    ask = "git commit -q --allow-empty -m x; git log -1 --format='%an <%ae> %cn <%ce>'"
    t.works(home.item("a", ask).lines[-1] == "Per Son <person@site.example> Per Son <person@site.example>", "the repository's")
    env = {"GIT_AUTHOR_NAME": "Au Thor", "GIT_AUTHOR_EMAIL": "a@site.example", "GIT_COMMITTER_NAME": "Com", "GIT_COMMITTER_EMAIL": "c@site.example"}
    t.works(home.item("b", ask, env=env).lines[-1] == "Au Thor <a@site.example> Com <c@site.example>", "the environment's")
    half = home.item("c", ask, env={"GIT_AUTHOR_NAME": "Au Thor"}).lines[-1]
    t.works(half == "Au Thor <person@site.example> Per Son <person@site.example>", "one of them alone", half)
    hooks = home.item("h", "d=$(git rev-parse --git-dir)/hooks; mkdir -p $d; printf '#!/bin/sh\ntouch /tmp/hooked\n' >$d/pre-commit; chmod +x $d/pre-commit;"
                      " git commit -q --allow-empty -m h; ls /tmp/hooked; git -c core.hooksPath=$d commit -q --allow-empty -m h; GIT_CONFIG_COUNT=0 git commit -q"
                      " --allow-empty -m h; ls /tmp/hooked")
    t.works(hooks.lines == ["/tmp/hooked"] and "cannot access" in hooks.err, "hooks run only where the worker lifts the pin", hooks)
    for key in ("user.name", "user.email"):
        git(home.repo, "config", "--unset", key)
    write(home.home + "/.gitconfig", "[user]\n\tname = Glo Bal\n\temail = g@site.example\n")
    t.works(home.item("d", ask).lines[-1] == "Glo Bal <g@site.example> Glo Bal <g@site.example>", "the person's own")
    os.unlink(home.home + "/.gitconfig")
    nobody = home.item("e", "git commit --allow-empty -m x; git -c user.name=W -c user.email=w@x.example commit -q --allow-empty -m y && echo fine")
    t.works(nobody.code == 0 and "fine" in nobody.lines, "nobody's: the worker may say who it is", nobody)


@promise("REF-01 GIT-22", "repositories of every kind: sha256, shallow, with alternates, bare with worktrees, submodules, on an odd path")
def _(t):
    def plain(home, what, more="true"):
        before = home.frozen()
        result = home.item("x", "set -e; " + more + "; git log --oneline | cat >/dev/null; echo new >new; git add new; git commit -qm new;"
                           " test -z \"$(git status --porcelain)\"" + TIP)
        home.same_tip(t, "x", result, what)
        home.only_branch_moved(t, before, what)
        t.works("+new" in home.kraft("view", "diff", "x").out, what + ": the diff")
        merged = home.kraft("item", "merge", "x")
        t.works(merged.code == 0 and read(home.repo + "/new") == "new\n", what + ": the merge", merged)

    plain(Project(init=["--object-format=sha256"]), "sha256", "test $(git rev-parse HEAD | wc -c) = 65")

    shallow = Project()
    os.rename(shallow.repo, shallow.home + "/origin")
    git(shallow.home, "clone", "-q", "--depth", "1", "file://%s/origin" % shallow.home, shallow.repo)
    shallow.identify(shallow.repo)
    plain(shallow, "shallow", "test $(git rev-list --count HEAD) = 1; git rev-parse --is-shallow-repository | grep -q true")

    borrowing = Project()
    os.rename(borrowing.repo, borrowing.home + "/first")
    git(borrowing.home, "clone", "-q", "--shared", "first", "second")
    git(borrowing.home, "clone", "-q", "--shared", "second", borrowing.repo)
    borrowing.identify(borrowing.repo)
    plain(borrowing, "alternates of alternates", "git cat-file -e v1^{tree}")

    bare = Project()
    os.rename(bare.repo, bare.home + "/old")
    git(bare.home, "clone", "-q", "--bare", "old", "main.git")
    bare.identify(bare.home + "/main.git")
    git(bare.home + "/main.git", "worktree", "add", "-q", "-b", "here", bare.repo, "main")
    plain(bare, "a bare repository's worktree", "git rev-parse main >/dev/null")

    outer = Project()
    git(outer.home, "init", "-q", "library")
    git(outer.home + "/library", "commit", "-q", "--allow-empty", "-m", "library")
    outer.own("-c", "protocol.file.allow=always", "submodule", "add", "-q", outer.home + "/library", "lib")
    outer.own("commit", "-qm", "with a submodule")
    plain(outer, "a submodule", "test -z \"$(ls lib)\"; git submodule status | grep -q ^-")
    t.works(os.path.exists(outer.repo + "/lib/.git"), "the person's is as it was")

    plain(Project(repo="code/with space 'and' \"quotes\" caf\u00e9"), "an odd path")


@promise("REF-01 CTR-06", "settings for signing, large files and file names of every kind do not stand in the way")
def _(t):
    home = Project()
    for key, value in (("commit.gpgSign", "true"), ("tag.gpgSign", "true"), ("gpg.program", home.repo + "/sign"), ("user.signingKey", "K"),
                       ("filter.upper.clean", "tr a-z A-Z"), ("filter.upper.smudge", "tr A-Z a-z"), ("filter.upper.required", "true")):
        git(home.repo, "config", key, value)
    write(home.repo + "/sign", "#!/bin/sh\ntouch %s\nexit 1\n" % home.pwned, 0o755)
    before = home.frozen()
    signed = home.item("signed", "set -e; echo s >s; git add s; git commit -qm s; git tag -a -m t t; git cat-file commit HEAD | grep -c gpgsig || true" + TIP)
    home.same_tip(t, "signed", signed, "signing")
    t.works(signed.lines[-2] == "0", "it is not signed", signed)
    filtered = home.item("filtered", "set -e; echo '*.up filter=upper' >.gitattributes; echo loud >a.up; git add -A; git commit -qm f; git show HEAD:a.up;"
                         " rm a.up; git checkout -q a.up; cat a.up" + TIP)
    home.same_tip(t, "filtered", filtered, "a filter")
    t.works(filtered.lines[:2] == ["LOUD", "loud"], "it ran both ways", filtered)
    names = [b"new\nline", b"bad\xff\xfebytes", b"tab\tquote\"", "caf\u00e9\u202e".encode(), b"-dash", b" space ", b"\x1b[31mred"]
    odd = home.py("import os,subprocess as s\nfor n in %r:\n    open(b'./'+n,'wb').write(n)\ns.check_call(['git','add','-A'])\n"
                  "s.check_call(['git','commit','-qm','odd'])\nprint(s.check_output(['git','rev-parse','HEAD']).decode(),end='')" % names,
                  options=["--item", "odd"])
    home.same_tip(t, "odd", odd, "odd names")
    listed = subprocess.run(["git", "-C", home.repo, "diff", "-z", "--name-only", "main", "kraft/odd"], stdout=subprocess.PIPE, check=True).stdout
    t.works(sorted(listed.split(b"\0")[:-1]) == sorted(names), "each came out as it was", listed)
    sparse = home.item("sparse", "set -e; truncate -s 2G huge; echo /huge >>.gitignore; git add .gitignore; git commit -qm i; git status --porcelain" + TIP)
    home.same_tip(t, "sparse", sparse, "a file of 2 GiB in the tree")
    home.only_branch_moved(t, before, "settings")


@promise("REF-01", "large files kept by git-lfs are read inside, and new ones come out as pointers with their content; forged ones do not")
def _(t):
    if not shutil.which("git-lfs"):
        t.skip("there is no git-lfs")
    home = Project()
    write(home.home + "/.gitconfig", "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n"
          "\tprocess = git-lfs filter-process\n\trequired = true\n")
    write(home.repo + "/.gitattributes", "*.big filter=lfs diff=lfs merge=lfs -text\n")
    write(home.repo + "/old.big", "an old large file\n")
    for words in (["add", "-A"], ["commit", "-qm", "large"]):
        done = home.host("git", "-c", "core.hooksPath=/dev/null", *words)
        t.works(done.code == 0, words, done)
    t.works(git(home.repo, "show", "HEAD:old.big").startswith("version https://git-lfs"), "a pointer is in the repository")
    before = home.frozen()
    result = home.item("x", "set -e; cat old.big; test -z \"$(git status --porcelain)\"; rm old.big; git checkout -q old.big; cat old.big;"
                       " echo a new large file >new.big; git add new.big; git commit -qm new; git show HEAD:new.big | head -1" + TIP)
    home.same_tip(t, "x", result, "git-lfs")
    t.works(result.lines[:3] == ["an old large file", "an old large file", "version https://git-lfs.github.com/spec/v1"], "both ways", result)
    name = hashlib.sha256(b"a new large file\n").hexdigest()
    content = "%s/lfs/objects/%s/%s/%s" % (home.common, name[:2], name[2:4], name)
    t.works(read(content) == "a new large file\n", "the content came with it")
    forged = home.item("y", "d=$(git rev-parse --git-dir)/lfs/objects; mkdir -p $d/12/34 $d/ab/cd; echo wrong >$d/12/34/1234%s;"
                       " ln -s /etc/passwd $d/ab/cd/abcd%s; mkfifo $d/12/34/1234%s; truncate -s 1T $d/12/34/1234%s;"
                       " echo x >$d/12/34/zz; git commit -q --allow-empty -m y" % ("0" * 60, "0" * 60, "1" * 60, "2" * 60))
    t.works(home.rev("kraft/y") and "4 large files were not taken" in forged.err, "what is not as its name says stays", forged)
    after = home.frozen()
    t.works(not [p for p in after if re.search("/lfs/objects/(12/34|ab/cd)/", p)], "all of it")
    lfs = home.common + "/lfs/"
    t.works(all(after.get(p) == b for p, b in before.items() if p.startswith(lfs)), "the old one is as it was")
    home.only_branch_moved(t, {p: b for p, b in before.items() if not p.startswith(lfs)}
                           | {p: b for p, b in after.items() if p.startswith(lfs)}, "git-lfs")
    smudged = home.host("git", "lfs", "smudge", stdin=git(home.repo, "cat-file", "-p", "kraft/x:new.big").encode())
    t.works(smudged.out == "a new large file\n", "a person's git-lfs finds it", smudged)


@promise("REF-02", "a session that fails, that is killed, or that leaves processes behind has its commits taken as well (GIT-20)")
def _(t):
    home = Project()
    before = home.frozen()
    script = "echo f >f; git add f; git commit -qm f; git rev-parse HEAD; "
    failed = home.item("failed", script + "exit 3")
    t.works(failed.code == 3 and home.rev("kraft/failed") == failed.lines[-1], "a failure", failed)
    killed = home.item("killed", script + "kill -9 $$")
    t.works(killed.code == 137 and home.rev("kraft/killed") == killed.lines[-1], "a kill", killed)
    process = home.start("sh", "-c", script + "sleep 60", options=["--item", "stopped"])
    tip = process.stdout.readline().decode().strip()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    t.works(len(tip) == 40 and home.rev("kraft/stopped") == tip, "kraft was asked to end", tip, home.branches())
    busy = home.item("busy", script + "(while git commit -q --allow-empty -m more; do :; done) >/dev/null 2>&1 &\nsleep 0.3")
    held = home.private("busy") + "/refs/heads/kraft/busy"
    came = home.rev("kraft/busy")
    t.works(busy.code == 0 and came and read(held).strip() == came, "nothing runs any more when the branch is read", busy)
    time.sleep(0.3)
    t.works(read(held).strip() == came == home.rev("kraft/busy"), "nor later")
    home.only_branch_moved(t, before, "failures")


@promise("REF-02", "two sessions of one item at once share its git, and both find their commits on the branch")
def _(t):
    home = Project()
    before = home.frozen()
    slow = home.start("sh", "-c", "echo a >a; git add a; git commit -qm a; echo ready; while [ ! -e go ]; do sleep 0.02; done;"
                      " echo c >c; git add c; git commit -qm c; git rev-parse HEAD", options=["--item", "two"])
    t.works(slow.stdout.readline() == b"ready\n", "the first one runs")
    quick = home.item("two", "git log --format=%s -1; echo b >b; git add b; git commit -qm b; git rev-parse HEAD")
    t.works(quick.code == 0 and quick.lines[0] == "a", "the second sees its commit", quick)
    t.works(home.rev("kraft/two") == quick.lines[-1], "and brings both out at its end", home.branches())
    busy = home.kraft("view", "diff", "two")
    t.works(busy.code == 1 and "the diff will be there when the session ends" in busy.err, "the diff waits for the other one", busy)
    write(home.tree("two") + "/go", "")
    out, err = slow.communicate(timeout=60)
    t.works(slow.returncode == 0 and home.rev("kraft/two") == out.decode().split()[-1], "the first one's end brings the rest", err, home.branches())
    t.works(git(home.repo, "log", "--format=%s", "main..kraft/two").split() == ["c", "b", "a"], "one line of history")
    home.only_branch_moved(t, before, "two at once")


@promise("REF-02 REF-03 GIT-12", "a branch that a person moved meanwhile is not moved: both commits are kept, an event and a word tell it")
def _(t):
    home = Project()
    running = home.start("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo w >w; git add w; git commit -qm worker;"
                         " git rev-parse HEAD", options=["--item", "both"])
    t.works(running.stdout.readline() == b"ready\n", "it runs")
    git(home.repo, "branch", "kraft/both", "packed")
    before = home.frozen()
    write(home.tree("both") + "/go", "")
    out, err = running.communicate(timeout=60)
    tip = out.decode().split()[-1]
    t.works(home.rev("kraft/both") == home.rev("packed"), "the person's stays", err)
    t.works(home.rev("refs/kraft/unsynced/kraft/both") == tip, "the worker's is kept", err, home.branches("refs/kraft"))
    t.works("kraft/both" in err.decode() and "unsynced" in err.decode(), "it is told", err)
    events = home.events("sandbox_branch_not_synced")
    t.works(len(events) == 1 and events[0]["item"] == "both" and events[0]["data"]["commit"] == tip, "and recorded", events)
    home.only_branch_moved(t, before, "a branch that moved")
    clear = home.item("alone", "git commit -q --allow-empty -m x" + TIP)
    home.same_tip(t, "alone", clear, "another item")
    t.works(len(home.events("sandbox_branch_not_synced")) == 1, "without an event")


@promise("REF-04", "an operation in progress or a HEAD elsewhere is named and not touched; --keep goes on with it")
def _(t):
    home = Project()
    states = {
        "merge": ("git switch -qc s; echo s >file0; git commit -qam s; git switch -q -; echo m >file0; git commit -qam m; git merge s", "git merge --abort"),
        "rebase": ("git switch -qc s; echo s >file0; git commit -qam s; git switch -q -; echo m >file0; git commit -qam m; git rebase s", "git rebase --abort"),
        "cherry": ("git switch -qc s; echo s >file0; git commit -qam s; git switch -q -; echo m >file0; git commit -qam m; git cherry-pick s", "git cherry-pick --abort"),
        "bisect": ("git bisect start HEAD HEAD~2", "git bisect reset"),
        "elsewhere": ("git commit -q --allow-empty -m x; git switch -qc other", "git switch -q kraft/elsewhere"),
        "detached": ("git commit -q --allow-empty -m x; git checkout -q --detach", "git switch -q kraft/detached"),
    }
    for name, (leave, mend) in states.items():
        left = home.item(name, leave + "; git status | head -5")
        words = left.out
        stopped = home.item(name, "true")
        t.works(stopped.code == 125 and "--keep" in stopped.err, name + " stops the item", left, stopped)
        mended = home.item(name, "git status | head -5; " + mend + " 2>&1; git status | head -1", options=["--keep"])
        t.works(mended.code == 0 and mended.lines[:2] == words.splitlines()[-5:][:2], name + " is as it was left", left, mended)
        t.works(mended.lines[-1] == "On branch kraft/" + name, name + " is mended inside", mended)
        t.works(home.item(name, "true").code == 0, name + " goes on", mended)


@promise("REF-05", "a setup command sees the copy and moves no branch; what it did to the refs is dropped")
def _(t):
    home = Project(setup_command="git log -1 --format=%s >seen && git tag set && echo s >s && git add s && git commit -qm setup && git branch made")
    before = home.frozen()
    result = home.item("x", "cat seen; git log -1 --format=%s; git branch --list made; git tag --list set")
    t.works(result.code == 0 and result.lines == ["loose", "loose"], "it saw the copy, and what it did is gone", result)
    t.works(home.branches() == {}, "no branch", home.branches())
    home.only_branch_moved(t, before, "setup")
    tip = home.item("x", "git commit -q --allow-empty -m mine; git log --format=%s -2; git rev-parse HEAD")
    home.same_tip(t, "x", tip, "a session's commit")
    t.works("setup" not in tip.lines, "is not on top of it", tip)


@promise("REF-02", "kraft killed at any moment around the end of a session: the next run brings the commits in")
def _(t):
    home = Project()
    before = home.frozen()
    whole = home.start("sh", "-c", "git commit -q --allow-empty -m whole; echo", options=["--item", "whole"])
    whole.stdout.readline()
    start, late, kills = time.monotonic(), 0, full(5, 60)
    whole.communicate()
    lasts = time.monotonic() - start
    for n in range(kills):
        name = "k%d" % n
        process = home.start("sh", "-c", "echo %d >k; git add k; git commit -qm k; git rev-parse HEAD" % n, options=["--item", name])
        tip = process.stdout.readline().decode().strip()
        time.sleep(lasts * (n + 0.5) / kills)
        late += process.poll() is not None
        process.kill()
        process.communicate()
        moved = home.rev("kraft/" + name)
        t.works(moved in (None, tip), "the branch is absent or whole", moved, tip)
        again = home.item(name, "git rev-parse HEAD; git status --porcelain", options=["--keep"])
        t.works(again.code == 0 and home.rev("kraft/" + name) == tip and again.lines == [tip], "the next run has it", again, tip, moved)
    t.note("%d kills within %d ms, %d came too late" % (kills, lasts * 1000, late))
    home.only_branch_moved(t, before, "kills")


@promise("REF-02", "gc, repack, worktree prune and an amended base of the person's lose nothing, also while a session runs")
def _(t):
    home = Project()

    def tidy():
        git(home.repo, "worktree", "prune")
        git(home.repo, "reflog", "expire", "--expire=now", "--all")
        git(home.repo, "gc", "-q", "--prune=now")
        git(home.repo, "repack", "-adq")
    first = home.item("x", "echo a >a; git add a; git commit -qm a" + TIP)
    home.same_tip(t, "x", first, "before")
    running = home.start("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; git fsck --strict --no-dangling 2>&1; git log -p >/dev/null &&"
                         " echo b >b && git add b && git commit -qm b; git rev-parse HEAD", options=["--item", "y"])
    t.works(running.stdout.readline() == b"ready\n", "it runs")
    home.own("commit", "-q", "--amend", "-m", "said otherwise")
    for ref in ("loose", "v2"):
        git(home.repo, "update-ref", "-d", "refs/heads/" + ref if ref == "loose" else "refs/tags/" + ref)
    tidy()
    write(home.tree("y") + "/go", "")
    out, err = running.communicate(timeout=60)
    t.works(running.returncode == 0 and len(out.split()) == 1, "all objects are there inside", out, err)
    t.works(home.rev("kraft/y") == out.decode().strip(), "and the commit comes out", err, home.branches())
    tidy()
    kept = home.item("y", "git fsck --strict --no-dangling 2>&1; git log --format=%s -1", options=["--keep"])
    t.works(kept.lines == ["b"], "later as well", kept)
    t.works(git(home.repo, "fsck", "--strict", "--full", "--no-dangling", "--no-progress") == "", "the repository is whole")


main()
