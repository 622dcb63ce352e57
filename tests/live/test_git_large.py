#!/usr/bin/env python3
"""A repository of the size and the oddities of a large public one: a worker commits inside, and its branch alone moves."""
# kraft-test: timeout 600
from gitlive import *

FILES, OLD, BRANCHES, TAGS = full(20000, 100000), full(2000, 10000), 2000, 500
FANOUT = 100  # files to a directory


class Stream:
    """Input for git fast-import."""

    def __init__(self):
        self.parts, self.marks, self.clock = [], 0, 1500000000

    def commit(self, ref, message, changes, parent=None, merge=None):
        """changes: fast-import's own lines, as file(), link() and remove() give them; the new commit's mark."""
        self.marks, self.clock = self.marks + 1, self.clock + 3600
        self.parts.append("commit %s\nmark :%d\ncommitter Old Hand <hand@site.example> %d +0200\ndata %d\n%s\n" %
                          (ref, self.marks, self.clock, len(message.encode()), message))
        self.parts += ["from :%d\n" % parent] if parent else []
        self.parts += ["merge :%d\n" % merge] if merge else []
        self.parts += changes
        return self.marks

    def name(self, ref, mark):
        self.parts.append("reset %s\nfrom :%d\n\n" % (ref, mark))

    def tag(self, name, mark):
        self.parts.append("tag %s\nfrom :%d\ntagger Old Hand <hand@site.example> %d +0200\ndata %d\n%s\n" % (name, mark, self.clock, len(name), name))

    @staticmethod
    def file(path, text, mode="100644"):
        return "M %s inline %s\ndata %d\n%s\n" % (mode, path, len(text.encode()), text)

    @staticmethod
    def module(path, commit):
        return "M 160000 %s %s\n" % (commit, path)

    @staticmethod
    def remove(path):
        return "D %s\n" % path

    def bytes(self):
        return "".join(self.parts).encode()


def at(n):
    return "src/d%03d/part%02d/f%d.c" % (n // FANOUT // 10, n // FANOUT % 10, n)


def body(n, age):
    return "/* part %d, as of %d */\n#include \"all.h\"\n\nint part%d(int x)\n{\n\treturn x + %d;\n}\n" % (n, age, n, age)


def history():
    """A tree of many files, a line of commits with merges, branches left at old commits, tags of both kinds."""
    s = Stream()
    odd = [Stream.file('"doc/\\303\\274ber \\"das\\".txt"', "names\n"), Stream.file("run.sh", "#!/bin/sh\n", "100755"),
           Stream.file("link", "doc", "120000"), Stream.file(".gitattributes", "*.txt text eol=crlf\n*.bin -diff\n"),
           Stream.file(".gitignore", "*.o\n/out/\n"), Stream.file("data.bin", "\\0x" * 400000), Stream.file("dos.txt", "a line\n"),
           Stream.file(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = https://site.example/lib\n"),
           Stream.module("lib", "1234567890" * 4)]
    last = s.commit("refs/heads/main", "the tree", odd + [Stream.file(at(n), body(n, 0)) for n in range(FILES)])
    marks = [last]
    for age in range(1, OLD):
        changes = [Stream.file(at(n % FILES), body(n % FILES, age)) for n in range(age * 7, age * 7 + 5)]
        if age % 11 == 0:
            changes += [Stream.file("old/%d.c" % age, body(age, age)), Stream.remove("old/%d.c" % (age - 11))]
        if age % 20 == 0:
            side = s.commit("refs/heads/side", "side %d" % age, [Stream.file("side/%d" % age, "side\n")], marks[-min(len(marks), 9)])
            last = s.commit("refs/heads/main", "Merge side %d" % age, changes, last, side)
        else:
            last = s.commit("refs/heads/main", "change %d" % age, changes, last)
        marks.append(last)
    for n in range(BRANCHES):
        s.name("refs/heads/topic/%d" % n, marks[n * 13 % len(marks)])
    for n in range(TAGS):
        s.tag("v1.%d" % n, marks[n * 3 % len(marks)])
        s.name("refs/tags/light-%d" % n, marks[n * 5 % len(marks)])
    return s.bytes()


class Large(Project):
    def _fill(self, init):
        where = self.repo
        os.makedirs(where, exist_ok=True)
        git(where, "init", "-q", "-b", "main", *init)
        self.identify(where)
        subprocess.run(["git", "-C", where, "fast-import", "--quiet"], input=history(), check=True)
        git(where, "pack-refs", "--all")
        git(where, "commit-graph", "write", "--reachable")
        git(where, "reset", "-q", "--hard")
        for n in range(40):  # a person's own days: loose objects and refs, a note, a stash, another worktree
            write("%s/%s" % (where, at(n)), body(n, -1))
            git(where, "commit", "-qam", "own %d" % n)
            git(where, "branch", "own/%d" % n)
        git(where, "notes", "add", "-m", "a note")
        write(where + "/run.sh", "#!/bin/sh\ntrue\n", 0o755)
        git(where, "stash", "-q")
        git(where, "worktree", "add", "-q", "--no-checkout", self.root + "/beside", "topic/7")


WORK = r"""set -e
first=$(git rev-parse HEAD)
test -z "$(git status --porcelain)"
for i in $(seq 12); do
    sed -i "s/as of/at $i, as of/" src/d00$((i % 4))/part0$((i % 10))/*.c
    mkdir -p new/$i
    for n in $(seq 20); do echo "$i $n" >new/$i/$n; done
    git add -A; git commit -qm "work $i"
done
git rm -rqf src/d003/part01; git mv src/d003/part02 moved; chmod -x run.sh; ln -s moved l2; git add -A; git commit -qm shape
git switch -qc aside topic/3; echo aside >aside-file; git add aside-file; git commit -qm aside
git switch -q -; git merge -q --no-edit aside
git branch -D topic/1 >/dev/null; git tag -d v1.3 >/dev/null; git update-ref refs/heads/main aside
git gc -q; git fsck --strict --no-dangling --no-progress
test -z "$(git status --porcelain)"
git rev-list --count $first..
git rev-parse HEAD"""


@promise("REF-01 REF-02", "in a large repository with history a worker commits and gathers; every ref, object, hook and setting that was there is as it was")
def _(t):
    home = Large()
    before, refs = home.frozen(), home.rev("HEAD") and git(home.repo, "show-ref", "--head", "-d")
    objects = [p for p in before if "/.git/objects/" in p]
    t.works(len(before) > FILES and len(objects) > 100 and refs.count("\n") > BRANCHES + TAGS, "it is large", len(before), len(objects))
    result = home.item("big", WORK, timeout=300)
    home.same_tip(t, "big", result, "a day's work")
    t.works(int(result.lines[-2]) >= 15, "every commit is there", result)
    home.only_branch_moved(t, before, "a day's work")
    now = git(home.repo, "show-ref", "--head", "-d").splitlines()
    extra = [line.split(" ", 1)[1] for line in now if line not in refs.splitlines()]
    t.works(set(refs.splitlines()) <= set(now) and set(extra) == {"refs/heads/kraft/big", "refs/kraft/base/big"}, "no other ref", extra)
    shown = home.kraft("view", "diff", "--name-only", "big")
    theirs = git(home.repo, "diff", "--name-only", "-M", "main", "kraft/big").splitlines()
    t.works(shown.code == 0 and sorted(shown.lines) == sorted(theirs), "the diff names what was changed", len(shown.lines), len(theirs))
    again = home.item("big", "git commit -q --allow-empty -m again; git rev-parse HEAD", options=["--keep"], timeout=300)
    home.same_tip(t, "big", again, "another session")
    home.only_branch_moved(t, before, "another session")
    write(home.common + "/refs/heads/own/3", "0" * 40 + "\n")
    try:
        home.only_branch_moved(t, before, "control")
    except Failed as e:
        t.control("own/3" in str(e), "a ref that is different would be seen", e)
    else:
        t.control(False, "a ref that is different would be seen")


if __name__ == "__main__":
    main()
