#!/usr/bin/env python3
"""Completions in the shells themselves: words, options, and ids as they are now; and no id that a shell would take for its own."""
import contextlib
import pty
import select
import shutil
import signal
import sqlite3
import time

from kraftlive import *

HOME = Home()


def soon(condition):
    """On a machine that does three builds ids may not be there in time; then the person presses the key again."""
    return wait_for(condition, 30, 0.2)


def script(shell):
    return write(HOME.root + "/kraft." + shell, HOME.kraft("completion", shell).out)


def bash(*words):
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kraft; printf "%s\\n" "${COMPREPLY[@]}"'
    done = HOME.host("bash", "-c", code, "bash", script("bash"), *words, env={"PATH": os.path.dirname(KRAFT) + ":/usr/bin:/bin"})
    return done.out.split()


def fish(*words):
    return [line.split("\t")[0] for line in HOME.host("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script("fish"), " ".join(words),
                                                      env={"PATH": os.path.dirname(KRAFT) + ":/usr/bin:/bin"}).out.splitlines()]


def zsh(*words):
    """What an interactive zsh shows when the line is completed twice."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(HOME.repo)
        os.execve("/usr/bin/zsh", ["zsh", "-f", "-i"], HOME.env(PATH=os.path.dirname(KRAFT) + ":/usr/bin:/bin", TERM="dumb", PS1="ready> "))
    out = b""
    def read_until(word, seconds):
        nonlocal out
        end = time.monotonic() + seconds
        while word not in out and time.monotonic() < end:
            if select.select([fd], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    out += os.read(fd, 65536)
    try:
        os.write(fd, ("unsetopt promptcr promptsp; LISTMAX=1000; autoload -Uz compinit; compinit -u -d %s/dump; source %s; compdef _kraft kraft; echo load''ed\n" % (HOME.root, script("zsh"))).encode())
        read_until(b"loaded", 30)
        out = b""
        os.write(fd, " ".join(words).encode() + b"\t\t")
        read_until(b"\0", 3)
        return out.decode("utf-8", "replace")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


@promise("OS-CMD-01", "bash, zsh and fish complete commands, options and ids; a word that a shell would run is no id")
def _(t):
    evil = "$(touch %s/ran)" % HOME.root
    other = HOME.home + "/other"
    shutil.copytree(HOME.repo, other)
    HOME.configure("repos:\n  - %s\n  - %s\n" % (json.dumps(HOME.entry()), json.dumps(dict(HOME.entry(), path=other, name=evil))))
    items = [HOME.kraft("item", "create", title, "--", "true").out.split()[0] for title in ("first one", "second one")]
    t.works(soon(lambda: sorted(bash("kraft", "item", "start", "")) == sorted(items)), "bash: items are there", bash("kraft", "item", "start", ""))
    t.works(bash("kraft", "wh") == ["why"] and "start" in bash("kraft", "item", "") and "--harness" in bash("kraft", "run", "--"), "bash: words and options", bash("kraft", "wh"), bash("kraft", "run", "--"))
    t.works(soon(lambda: bash("kraft", "item", "start", items[0][:6]) == items[:1]), "bash: items", bash("kraft", "item", "start", ""))
    t.works(soon(lambda: "claude" in bash("kraft", "run", "--harness", "") and "default" in bash("kraft", "item", "create", "--chain", "") and "codex" in bash("kraft", "admin", "harnesses", "")), "bash: agents and chains")
    t.works(soon(lambda: bash("kraft", "admin", "doctor", "") == ["sample"] == bash("kraft", "repo", "path", "")), "bash: repositories", bash("kraft", "admin", "doctor", ""))
    t.works(soon(lambda: "why" in fish("kraft", "wh") and set(items) <= set(fish("kraft", "item", "start", "")) and items[0] not in fish("kraft", "admin", "start", "") and "--detach" in fish("kraft", "admin", "start", "--d")),
            "fish: words, options, items", fish("kraft", "item", "start", ""), fish("kraft", "admin", "start", ""))
    t.works(soon(lambda: "sample" in fish("kraft", "repo", "path", "")), "fish: repositories", fish("kraft", "repo", "path", ""))
    t.works(soon(lambda: all(i in zsh("kraft", "item", "start", "") for i in items)), "zsh: items", zsh("kraft", "item", "start", ""))
    t.works(soon(lambda: "watch" in zsh("kraft", "view", "w")), "zsh: words", zsh("kraft", "view", "w"))
    t.attack(not os.path.exists(HOME.root + "/ran") and "touch" not in HOME.kraft("completion", "ids", "repositories").out, "nothing was run")
    t.control("touch" in HOME.kraft("repo", "list").out, "though there is a repository of that name")
    t.works(HOME.kraft("completion", "ids", "nonsense").code == 2 and HOME.kraft("completion", "bash", "x").code == 2, "wrong words are refused")
    store = sqlite3.connect(HOME.run_dir + "/orchestrator.db", isolation_level=None)
    try:
        store.execute("PRAGMA locking_mode=EXCLUSIVE")
        store.execute("BEGIN EXCLUSIVE")
        slow = HOME.kraft("completion", "ids", "items")
        t.works(slow.code == -signal.SIGALRM and slow.out == "", "what is not to be had at once is not waited for", slow)
    finally:
        store.close()


if __name__ == "__main__":
    main()
