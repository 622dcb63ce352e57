#!/usr/bin/env python3
"""What a worker plants for the git on the host: settings, hooks, attributes, links, objects, refs. The GIT cases by id."""
# kraft-test: timeout 300
from gitlive import *

TIP = "\ngit rev-parse HEAD"

# Settings that run a program when a git reads them; P stands for the program.
SETTINGS = """core.fsmonitor core.sshCommand core.editor core.pager core.askPass core.gitProxy core.alternateRefsCommand
  core.hooksPath diff.external diff.d.command diff.d.textconv merge.d.driver filter.f.clean filter.f.smudge filter.f.process
  gpg.program gpg.ssh.program sequence.editor credential.helper interactive.diffFilter uploadpack.packObjectsHook
  remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs difftool.d.cmd mergetool.d.cmd alias.status pager.diff
  web.browser sendemail.smtpServer trailer.x.command submodule.x.update gc.recentObjectsHook""".split()


def plant(home, where, gitdir="$(git rev-parse --git-dir)"):
    """Shell that plants a program and all that could make a git run it: settings, hooks, attributes."""
    return """
    cat >payload <<'END'
#!/bin/sh
touch %s
cat
END
    chmod +x payload
    P=$PWD/payload
    for key in %s; do git config -f %s/config $key $P; done
    git config -f %s/config core.hooksPath $PWD/hooks
    git config -f %s/config include.path $PWD/more
    mkdir -p hooks %s/hooks
    for hook in pre-commit post-commit post-checkout post-merge post-index-change reference-transaction pre-push post-rewrite update; do
        cp payload hooks/$hook; cp payload %s/hooks/$hook
    done
    printf '[core]\\n\\tfsmonitor = %%s\\n' $P >more
    echo '* filter=f diff=d merge=d' >%s
    """ % (home.pwned, " ".join(SETTINGS), gitdir, gitdir, gitdir, gitdir, gitdir, where)


def fires(home, *argv, **more):
    """Whether the worker's program runs when this is done on the host."""
    home.host(*argv, **more)
    was = os.path.exists(home.pwned)
    if was:
        os.unlink(home.pwned)
    return was


@wall("GIT-01 GIT-02 GIT-03 GIT-21", "settings, hooks and attributes that a worker plants in its git run nothing on the host")
def _(t):
    home = Project()
    before = home.frozen()
    tip = home.item("x", "echo w >w; git add w; git commit -qm w;" + plant(home, ".gitattributes") +
                    "GIT_CONFIG_COUNT=0 git --git-dir=$(git rev-parse --git-dir) commit -qam again; git config core.fsmonitor" + TIP)
    t.attack(home.rev("kraft/x") is not None and not os.path.exists(home.pwned), "published", tip, home.branches())
    for words in (("view", "diff", "x"), ("view", "diff", "--stat", "x"), ("item", "list")):
        t.attack(home.kraft(*words).code == 0 and not os.path.exists(home.pwned), words)
    again = home.item("x", "git log --format=%s -2; git config core.fsmonitor; ls \"$(git rev-parse --git-path hooks)\"", options=["--keep"])
    t.attack(not os.path.exists(home.pwned), "the next run", again)
    write(home.repo + "/own", "own\n")
    home.own("add", "-A")
    home.own("commit", "-qm", "own")
    before = home.frozen()
    home.item("x", "true")
    home.item("x", "true", options=["--with-changes"])
    t.attack(not os.path.exists(home.pwned), "a run that moves the worktree, and one that takes a snapshot")
    copy = home.root + "/copy"
    shutil.copytree(home.private("x"), copy, symlinks=True)
    shutil.copytree(home.tree("x"), copy + "/tree", symlinks=True, ignore=shutil.ignore_patterns(".git"))
    planted = home.host("sh", "-ec", "cd %s/tree; export GIT_DIR=%s; git config -f $GIT_DIR/config user.name x\n%s" % (copy, copy, plant(home, ".gitattributes", copy)))
    t.control(fires(home, "git", "--git-dir", copy, "--work-tree", copy + "/tree", "status"), "a plain git in that directory runs it", planted)
    t.works(home.rev("kraft/x") is not None and git(home.repo, "show", "kraft/x:w") == "w\n", "the commits came")
    home.only_branch_moved(t, before, "planted settings")


@wall("GIT-03 GIT-02", "a merge of what a worker committed runs none of its hooks, filters and drivers")
def _(t):
    home = Project()
    tip = home.item("x", plant(home, ".gitattributes") + "git -c core.hooksPath=/dev/null add -A; GIT_CONFIG_COUNT=0 git --git-dir=$(git rev-parse --git-dir)"
                    " commit -qm planted || git commit -qm planted" + TIP)
    t.works(home.rev("kraft/x"), "it is committed", tip)
    merged = home.kraft("item", "merge", "x")
    t.attack(merged.code == 0 and not os.path.exists(home.pwned), "merged", merged)
    t.works(os.path.exists(home.repo + "/payload") and home.rev("HEAD") == home.rev("kraft/x"), "the checkout is there", merged)
    t.works("merge --ff-only refs/heads/kraft/x" in merged.out, "the command was shown", merged)
    git(home.repo, "config", "filter.f.clean", home.repo + "/payload")
    t.control(fires(home, "sh", "-c", "touch file0; git status"), "with a setting of the person's own, which only the person can make, it runs")


@wall("GIT-04", "the .git file inside and the way from it cannot be replaced; outside it leads where it led")
def _(t):
    home = Project()
    home.item("x", "true")
    before = read(home.tree("x") + "/.git")
    tries = home.item("x", "for c in 'rm -f .git' 'mv .git moved' 'ln -sf /tmp .git' 'cp file0 .git' 'chmod 777 .git'; do"
                      " $c 2>&1 && echo CHANGED; done; echo 'gitdir: /tmp' >.git && echo CHANGED; mkdir /tmp/evil; git init -q /tmp/evil;"
                      " mv /tmp/evil/.git .git 2>&1 && test -f .git/HEAD && echo CHANGED; git rev-parse --git-dir", options=["--keep"])
    t.attack("CHANGED" not in tries.out, "every way fails", tries)
    t.works(tries.lines[-1] == home.private("x"), "git inside has its own directory", tries)
    t.attack(read(home.tree("x") + "/.git") == before, "outside it is what it was")
    t.works(home.host("git", "status", "--porcelain", cwd=home.tree("x")).code == 0, "the person can use it there")
    git(home.repo, "worktree", "add", "-q", "--detach", home.root + "/own")
    t.control(home.host("sh", "-c", "mv .git moved && echo 'gitdir: /tmp' >.git", cwd=home.root + "/own").code == 0, "without the walls it goes")


@wall("GIT-05 GIT-06", "a bare repository among the files, nested repositories and submodules with programs: nothing of them runs")
def _(t):
    home = Project()
    nest = ("git init -q --bare bare.git; git config -f bare.git/config core.fsmonitor $PWD/payload; git config -f bare.git/config core.bare false;"
            " git config -f bare.git/config core.worktree $PWD; echo x >bare.git/objects/keep; echo x >bare.git/refs/keep; rm -rf bare.git/hooks;"
            " printf '#!/bin/sh\\ntouch %s\\n' >payload; chmod +x payload; " % home.pwned)
    tip = home.item("x", nest + "git add -A; git commit -qm nested" + TIP)
    t.works(tip.code == 0 and home.rev("kraft/x") == tip.lines[-1], "committed as files", tip)
    for words in (("view", "diff", "x"), ("item", "merge", "x"), ("run", "--item", "x", "--", "true"), ("run", "--item", "y", "--with-changes", "--", "true")):
        done = home.kraft(*words)
        t.attack(done.code == 0 and not os.path.exists(home.pwned), words, done)
    inside = home.kraft("run", "--item", "z", "--", "true", cwd=home.repo + "/bare.git")
    t.attack(not os.path.exists(home.pwned), "a person who stands in it", inside)
    home.host("git", "config", "-f", home.repo + "/bare.git/config", "core.fsmonitor", home.repo + "/payload")
    t.control(fires(home, "git", "status", cwd=home.repo + "/bare.git"), "a plain git there runs the program")
    sub = home.item("s", "git init -q inner; cd inner; git config user.name x; git config user.email x@x.example; git commit -q --allow-empty -m i;"
                    " git config core.fsmonitor $PWD/../payload; cd ..; git add inner 2>/dev/null; git commit -qm gitlink; git status --porcelain" + TIP)
    t.attack(not os.path.exists(home.pwned), "a nested repository", sub)
    t.works(home.rev("kraft/s") == sub.lines[-1], "its link came out", sub)
    shown = home.kraft("view", "diff", "s")
    t.works("Subproject commit" in shown.out, "and the diff says so", shown)


@wall("GIT-07 GIT-16", "trees and .gitmodules that would harm a checkout are refused before they come in")
def _(t):
    home = Project()
    before = home.frozen()
    blob = "b=$(echo x | git hash-object -w --stdin); "
    commit = "c=$(git commit-tree -p HEAD -m bad $t); git update-ref HEAD $c; git rev-parse HEAD"
    top = "{ git ls-tree HEAD; printf '%s'; } | git mktree --missing"
    bad = {
        "dotgit": blob + "t=$(" + top % "40000 tree '$(printf \"100644 blob $b\\tconfig\\n\" | git mktree)'\\t.GIT\\n" + "); ",
        "hfs": blob + "t=$(printf \"100644 blob $b\\t.g\\342\\200\\214it\\n\" | git mktree); ",
        "dots": blob + "i=$(printf \"100644 blob $b\\tx\\n\" | git mktree); t=$(printf \"40000 tree $i\\t..\\n\" | git mktree); ",
        "twice": blob + "t=$(python3 -IS -c \"import sys,subprocess as s;o=bytes.fromhex('$b');"
                 "sys.stdout.buffer.write(s.run(['git','hash-object','-t','tree','-w','--literally','--stdin'],"
                 "input=b'100644 a\\0'+o+b'100644 a\\0'+o,stdout=s.PIPE).stdout)\"); ",
        "url": "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./payload\\n' >.gitmodules; git add -A; t=$(git write-tree); ",
        "name": "printf '[submodule \"../../x\"]\\n\\tpath = x\\n\\turl = https://h.example/x\\n' >.gitmodules; git add -A; t=$(git write-tree); ",
        "modlink": "l=$(printf /etc/passwd | git hash-object -w --stdin); t=$({ git ls-tree HEAD; printf \"120000 blob $l\\t.gitmodules\\n\"; } | git mktree); ",
    }
    for name, script in bad.items():
        result = home.item(name, script + commit)
        t.works(result.code == 0 and len(result.lines[-1]) == 40, name + " can be made", result)
        t.attack(home.rev("kraft/" + name) is None and home.rev("refs/kraft/unsynced/kraft/" + name) is None, name + " is not taken", result)
        t.attack("kraft/" + name in result.err, name + " is told", result)
        t.attack(home.item(name, "true").code in (0, 125), name + " does not hang the next run")
    home.only_branch_moved(t, before, "bad trees")
    good = home.item("good", "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = https://h.example/x\\n' >.gitmodules; git add -A; t=$(git write-tree); " + commit)
    t.works(home.rev("kraft/good") == good.lines[-1], "a harmless one comes", good)
    for name in ("dotgit", "url"):
        fetched = home.host("git", "-c", "protocol.file.allow=always", "fetch", "-q", home.private(name), "kraft/" + name)
        t.control(fetched.code == 0, name + ": a plain fetch takes it", fetched)


@wall("GIT-08", "forged alternates, links among the objects and links for packs bring no object of another repository in")
def _(t):
    home = Project()
    secret = home.home + "/secret"
    os.makedirs(secret)
    git(secret, "init", "-q")
    write(secret + "/key", "the secret\n")
    git(secret, "add", "-A")
    git(secret, "commit", "-qm", "secret")
    blob, objects = git(secret, "rev-parse", "HEAD:key").strip(), secret + "/.git/objects"
    use = ("t=$(printf '100644 blob %s\\tkey\\n' | git mktree --missing); c=$(git commit-tree -p HEAD -m s $t); git update-ref HEAD $c;"
           " git rev-parse HEAD" % blob)
    ways = {
        "alternates": "cd $(git rev-parse --git-dir); for c in 'rm -f objects/info/alternates' 'mv objects/info objects/was' 'mv objects objects.was'"
                      " 'ln -sf /tmp objects/info/alternates'; do $c 2>&1 && echo CHANGED; done; echo %s >>objects/info/alternates && echo CHANGED; cd - >/dev/null; " % objects,
        "http": "echo %s >$(git rev-parse --git-dir)/objects/info/http-alternates 2>/dev/null; " % objects,
        "link": "ln -s %s/%s $(git rev-parse --git-dir)/objects/%s; " % (objects, blob[:2], blob[:2]),
        "pack": "d=$(git rev-parse --git-dir)/objects/pack; mkdir -p $d; rmdir $d 2>/dev/null; ln -s %s/pack $d 2>&1; " % objects,
        "commondir": "echo %s/.git >$(git rev-parse --git-dir)/commondir; " % secret,
    }
    for name, way in ways.items():
        result = home.item(name, way + use)
        t.attack("CHANGED" not in result.out, name + ": what is read-only stays", result)
        t.attack(home.rev("kraft/" + name) is None, name + ": the commit does not come in", result)
        t.attack(home.host("git", "cat-file", "-e", blob).code != 0, name + ": nor does the object")
    held = home.item("held", use.replace(blob, home.rev("HEAD:file0")))
    t.works(home.rev("kraft/held") == held.lines[-1], "with an object of the repository's own it comes", held)
    copy = home.root + "/copy"
    shutil.copytree(home.private("link"), copy, symlinks=True)
    t.control(home.host("git", "--git-dir", copy, "cat-file", "-p", blob).out == "the secret\n", "a plain git in there reads the secret")


@wall("GIT-09", "a private git directory made a partial clone starts no program and fetches nothing")
def _(t):
    home = Project()
    payload = "printf '#!/bin/sh\\ntouch %s\\n' >payload; chmod +x payload; " % home.pwned
    promise = ("git config core.repositoryFormatVersion 1; git config extensions.partialClone origin; git config remote.origin.promisor true;"
               " git config remote.origin.url $PWD; git config remote.origin.uploadpack $PWD/payload; ")
    missing = "t=$(printf '100644 blob %s\\tx\\n' | git mktree --missing); c=$(git commit-tree -p HEAD -m m $t); git update-ref HEAD $c; " % ("12" * 20)
    result = home.item("x", payload + promise + missing)
    t.attack(home.rev("kraft/x") is None and not os.path.exists(home.pwned), "nothing runs, nothing comes", result)
    t.attack(home.item("x", "true", options=["--keep"]).code == 0 and not os.path.exists(home.pwned), "the next run neither")
    fine = home.item("y", payload + promise + "git commit -q --allow-empty -m fine" + TIP)
    t.works(home.rev("kraft/y") == fine.lines[-1], "whole commits come", fine)
    copy = home.root + "/copy"
    shutil.copytree(home.private("y"), copy, symlinks=True)
    t.control(fires(home, "git", "--git-dir", copy, "cat-file", "-p", "12" * 20), "a plain git in there starts it")


@wall("GIT-11 REF-01 REF-02", "other branches, tags, symbolic refs and odd names are made inside and none comes out")
def _(t):
    home = Project()
    before = home.frozen()
    mess = ("git update-ref refs/heads/main HEAD~2; git tag -f v1 HEAD; git branch -D loose packed; git update-ref -d refs/tags/v2;"
            " git branch evil; git symbolic-ref refs/heads/sym refs/heads/main; git update-ref refs/remotes/origin/main HEAD;"
            " git update-ref refs/kraft/base/x HEAD; d=$(git rev-parse --git-dir); mkdir -p $d/refs/heads/a..b;"
            " git rev-parse HEAD >$d/refs/heads/a..b/c; git rev-parse HEAD >$d/refs/heads/../../escaped; git replace HEAD HEAD~1;"
            " git config remote.origin.url https://h.example; git commit -q --allow-empty -m mine; ")
    result = home.item("x", mess + TIP)
    t.works(home.rev("kraft/x") == result.lines[-1], "the branch comes", result)
    t.attack(list(home.branches("refs")) == list(dict.fromkeys(home.branches("refs"))) and
             not set(home.branches("refs")) & {"refs/heads/evil", "refs/heads/sym", "refs/remotes/origin/main"}, "no other", home.branches("refs"))
    home.only_branch_moved(t, before, "other refs")
    t.attack(True, "and every old one is where it was")
    ref = "$(git rev-parse --git-dir)/refs/heads/kraft/%s"
    odd = {
        "symbolic": "git commit -q --allow-empty -m a; git symbolic-ref " + "refs/heads/kraft/%s refs/heads/main",
        "symlink": "git commit -q --allow-empty -m a; git branch made; f=" + ref + "; rm $f; ln -s ../made $f",
        "outside": "git commit -q --allow-empty -m a; f=" + ref + "; rm $f; ln -s /etc/passwd $f",
        "fifo": "git commit -q --allow-empty -m a; f=" + ref + "; rm $f; mkfifo $f",
        "directory": "git commit -q --allow-empty -m a; f=" + ref + "; rm $f; mkdir -p $f/x",
        "garbage": "git commit -q --allow-empty -m a; f=" + ref + "; head -c 100000 /dev/urandom >$f",
        "upper": "git commit -q --allow-empty -m a; f=" + ref + "; tr a-f A-F <$f >/tmp/v; cat /tmp/v >$f",
        "sparse": "git commit -q --allow-empty -m a; f=" + ref + "; truncate -s 1T $f",
        "gone": "git commit -q --allow-empty -m a; git checkout -q --detach; git branch -D kraft/%s",
        "dirlink": "git commit -q --allow-empty -m a; d=$(git rev-parse --git-dir)/refs/heads; mv $d/kraft $d/was; ln -s was $d/kraft; : %s",
    }
    for name, script in odd.items():
        start = time.monotonic()
        result = home.item(name, script % name)
        t.attack(home.rev("kraft/" + name) is None, name + " publishes nothing", result)
        t.attack(time.monotonic() - start < 20, name + " does not hang")
    plain = home.item("plain", "git commit -q --allow-empty -m a" + TIP)
    t.works(home.rev("kraft/plain") == plain.lines[-1], "a plain value does", plain)
    home.only_branch_moved(t, before, "odd refs")
    t.control(home.host("git", "--git-dir", home.private("symlink"), "log", "--format=%s", "-1", "kraft/symlink").out == "a\n",
              "a plain git follows the link")


@wall("GIT-13", "a replacement cannot make the diff empty")
def _(t):
    home = Project()
    tip = home.item("x", "echo hostile >file0; git commit -qam x; b=$(git rev-parse HEAD~1); git replace HEAD $b; git diff $b HEAD | wc -l" + TIP)
    t.works(tip.lines[0] == "0" and home.rev("kraft/x"), "inside it is empty", tip)
    git(home.repo, "replace", "kraft/x", "main")
    t.control(home.host("git", "diff", "main", "kraft/x").out == "", "so it is for a plain git that has the replacement")
    for words in ((), ("--stat",), ("--name-only",)):
        shown = home.kraft("view", "diff", *words, "x")
        t.attack("file0" in shown.out and (words or "+hostile" in shown.out), words, shown)
    t.works(home.kraft("view", "diff", "--stat", "x").out.count("|") == 1, "one file")


@wall("GIT-14", "attributes, drivers and NUL bytes cannot hide a change: it is shown, or said to be binary")
def _(t):
    home = Project()
    git(home.repo, "config", "diff.d.textconv", "true")
    write(home.repo + "/.gitattributes", "*.c -diff\n*.t diff=d\n")
    home.own("add", "-A")
    home.own("commit", "-qm", "attributes")
    tip = home.item("x", "echo 'evil();' >a.c; echo evil >a.t; printf 'evil\\0' >a.js; printf '*.py -diff\\n* binary\\n' >>.gitattributes;"
                    " echo evil >a.py; git init -q /tmp/m; git add -A; git commit -qm x" + TIP)
    home.same_tip(t, "x", tip, "committed")
    plain = home.host("git", "diff", "main", "kraft/x").out
    t.control("+evil();" not in plain and "+evil\n" not in plain.split("a.t")[-1], "a plain diff hides them", plain)
    shown = home.kraft("view", "diff", "x")
    t.attack("+evil();" in shown.out and shown.out.count("+evil\n") == 2, "all are shown", shown)
    t.attack("Binary files /dev/null and b/a.js differ" in shown.out and "1 file is binary" in shown.err, "what is binary is said", shown)
    text = home.kraft("view", "diff", "--text", "x")
    t.works("+evil\\x00" in text.out and "binary" not in text.err, "--text shows it", text)


@wall("GIT-15", "bytes that steer a terminal are made visible in diffs, names and messages")
def _(t):
    home = Project()
    tip = home.item("x", "printf 'a\\033[2Jb\\302\\233c\\342\\200\\256d\\302\\255e\\rf\\n' >file0; printf x >\"$(printf 'n\\033]0;x\\007\\342\\200\\256')\";"
                    " git -c core.quotePath=false add -A; git commit -qm \"$(printf 'm\\033[2J')\"" + TIP)
    home.same_tip(t, "x", tip, "committed")
    git(home.repo, "config", "core.quotePath", "false")
    bad = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u00ad]")
    for words in (("view", "diff", "x"), ("view", "diff", "--stat", "x"), ("view", "diff", "--name-only", "x"), ("item", "merge", "x"), ("item", "list")):
        shown = home.kraft(*words)
        t.attack(shown.code == 0 and not bad.search(shown.out + shown.err), words, shown)
    t.control(bad.search(home.host("git", "show", "kraft/x").out), "a plain git passes them on")
    t.works("\\x1b[2J" in home.kraft("view", "diff", "x").out or home.rev("main") == home.rev("kraft/x"), "they are shown")


@wall("GIT-18 GIT-19 GIT-17", "a broken index, broken object files, locks and floods: the next run works, the repository is whole")
def _(t):
    home = Project()
    before = home.frozen()
    d = "d=$(git rev-parse --git-dir); "
    breaks = {
        "index": d + "head -c 5000 /dev/urandom >$d/index",
        "index-link": d + "rm -f $d/index; ln -s /etc/passwd $d/index",
        "index-huge": d + "truncate -s 1T $d/index",
        "graph": d + "git commit-graph write --reachable 2>/dev/null; mkdir -p $d/objects/info; f=$d/objects/info/commit-graph; chmod +w $f; head -c 3000 /dev/urandom >$f",
        "midx": d + "git repack -dq; git multi-pack-index write; for f in $d/objects/pack/*; do chmod +w $f; head -c 2000 /dev/urandom >$f; done",
        "locks": d + "touch $d/index.lock $d/HEAD.lock $d/packed-refs.lock $d/config.lock $d/refs/heads/kraft/locks.lock $d/shallow.lock",
        "attributes": "python3 -IS -c \"open('.gitattributes','w').write('* '+'a'*10000000);open('.gitignore','w').write('x*'*3000000)\"",
        "config": d + "echo '[[[' >$d/config",
        "nothing": d + "rm -rf $d/objects/?? $d/refs $d/packed-refs $d/logs",
    }
    for name, script in breaks.items():
        result = home.item(name, "git commit -q --allow-empty -m first; " + script)
        t.attack(result.seconds < 30, name + " ends", result)
        again = home.item(name, "git status --porcelain | head -3; git commit -q --allow-empty -m again; git log -1 --format=%s")
        t.works(again.lines[-1:] == ["again"] or (again.code == 125 and "item remove --force" in again.err), name + ": the next run works or says why", result, again)
        if name not in ("midx", "config", "nothing"):  # what these break is gone
            t.works(again.code == 0, name + ": the next run works", result, again)
    home.only_branch_moved(t, before, "breaks")
    t.control(home.host("git", "--git-dir", home.root + "/none", "status").code != 0 and
              home.host("sh", "-c", "cp -r %s %s/b; echo '[[[' >%s/b/config; git --git-dir=%s/b log" % (home.private("config"), home.root, home.root, home.root)).code != 0,
              "a plain git stops at such a configuration")


@promise("GIT-17", "a pipe in the place of a file that git opens holds nobody: Ctrl-C ends the wait, and the item can go on or be removed")
def _(t):
    home = Project()
    process = home.start("sh", "-c", "git commit -q --allow-empty -m x; d=$(git rev-parse --git-dir); rm $d/HEAD; mkfifo $d/HEAD; echo done",
                         options=["--item", "x"])
    t.works(process.stdout.readline() == b"done\n", "it ran")
    time.sleep(1.5)
    t.works(process.poll() is None, "git inside waits on the pipe")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    t.works(b"commits on branch 'kraft/x' were not taken" in err and home.rev("kraft/x") is None, "it is told", err)
    t.works(any(i["item"] == "x" and i["cut_off"] for i in json.loads(home.kraft("item", "list", "--json").out)), "and seen")
    refused = home.kraft("item", "remove", "x")
    t.works(refused.code == 5 and "--force" in refused.err, "commits are not lost by mistake", refused)
    t.works(home.kraft("item", "remove", "--force", "x").code == 0 and home.item("x", "git log -1 --format=%s").out == "loose\n", "removed, and made anew")


@promise("GIT-22 CTR-12", "a repository whose refs this git cannot read is refused, naming the format")
def _(t):
    home = Project()
    common = home.common
    git(home.repo, "config", "core.repositoryFormatVersion", "1")
    git(home.repo, "config", "extensions.refStorage", "reftable")
    os.mkdir(common + "/reftable")
    write(common + "/HEAD", "ref: refs/heads/.invalid\n")
    refused = home.run("true", options=["--item", "x"])
    t.works(refused.code == 125 and refused.err.startswith("kraft: "), "refused", refused)
    t.works("reftable" in refused.err, "naming it", refused)
    t.works(not os.path.exists(home.private("x")), "nothing was made")


# ---- no git of the host's looks where a worker can write ----

@wall("GIT-01 GIT-04", "through a whole item no git on the host opens a path that a worker could write")
def _(t):
    home = Project()
    places = [home.run_dir + "/worktrees", home.run_dir + "/sandbox-git", home.run_dir + "/sandbox-home", home.run_dir + "/results"]
    # The worktree is made before anybody was in it: what git writes then is nobody's yet.
    home.item("x", "true")
    home.own("commit", "-q", "--allow-empty", "-m", "later")
    steps = [(KRAFT, "run", "--item", "x", "--", "sh", "-c", "echo v >v; git add v; git commit -qm v; git worktree list"),
             (KRAFT, "run", "--item", "x", "--keep", "--", "sh", "-c", "echo v >>v; git commit -qam v; exit 3"),
             (KRAFT, "run", "--item", "x", "--with-changes", "--", "git", "status"),
             (KRAFT, "view", "diff", "x"), (KRAFT, "item", "merge", "x"),
             (KRAFT, "item", "remove", "x")]
    gits, own = 0, 0
    for words in steps:
        done, seen = traced(home, *words)
        gits += len(seen.gits)
        own += len(seen.below(home.common + "/objects"))
        t.attack(not seen.below(*places), words, done, "\n".join(seen.below(*places)[:5]))
    t.works(gits >= 8 and own >= 6, "gits were seen, at work in the repository", gits, own)
    t.works(home.rev("kraft/x-2") or home.rev("kraft/x"), "commits came", home.branches())
    home.item("y", "true")
    plain, seen = traced(home, "git", "-C", home.tree("y"), "status")
    t.control(seen.below(*places), "a plain git in a worktree does", plain)


main()
