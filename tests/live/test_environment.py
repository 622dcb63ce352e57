#!/usr/bin/env python3
"""The worker's environment (OS-ENV), and hostile ones (PROC-16, PROC-17)."""
from kraftlive import *


def environment(home, **more):
    result = home.ok("env", "-0", **more)
    return dict(pair.split("=", 1) for pair in result.out.split("\0") if "=" in pair)


@wall("OS-ENV-01 OS-LCH-03", "login tokens cross by name, env_passthrough adds names, env sets literals; nothing else crosses")
def _(t):
    home = Home(env={"LITERAL": "value with spaces", "EMPTY": ""}, env_passthrough=["MY_KEY", "UNSET_KEY"])
    outside = {"CLAUDE_CODE_OAUTH_TOKEN": "token-1", "ANTHROPIC_API_KEY": "token-2", "MY_KEY": "key", "OTHER_KEY": "canary", "AWS_SECRET_ACCESS_KEY": "canary",
               "SSH_AUTH_SOCK": "/tmp/agent", "GITHUB_TOKEN": "canary", "DBUS_SESSION_BUS_ADDRESS": "x", "XDG_RUNTIME_DIR": "/run/user/1", "LITERAL": "overridden"}
    inside = environment(home, env=outside)
    for name, value in (("CLAUDE_CODE_OAUTH_TOKEN", "token-1"), ("ANTHROPIC_API_KEY", "token-2"), ("MY_KEY", "key"), ("LITERAL", "value with spaces"), ("EMPTY", "")):
        t.works(inside.get(name) == value, name, inside)
    t.attack(not set(inside) & {"OTHER_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "UNSET_KEY"},
             "others do not cross", inside)
    t.attack("canary" not in "\n".join(inside.values()), "no canary", inside)
    t.control("canary" in home.host("env", env=outside).out, "a child of the caller would have them")
    t.works("KRAFT_RESULT_PATH" in inside and "KRAFT_HOME" not in inside, "kraft's own names", inside)


@wall("OS-ENV-02", "the agent's own configuration and login do not reach the worker")
def _(t):
    home = Home()
    for name in (".claude/.credentials.json", ".claude/settings.json", ".codex/auth.json", ".claude.json", ".gitconfig", ".netrc", ".config/gh/hosts.yml"):
        write(os.path.join(home.home, name), "canary")
    inside = home.sh("ls -A ~; cat ~/.claude.json ~/.claude/settings.json ~/.gitconfig ~/.netrc '%s/.claude.json'; git config --global -l" % home.home)
    t.attack("canary" not in inside.out and ".claude" not in inside.out, "nothing of it", inside)
    t.works(home.sh("mkdir -p ~/.claude && echo mine >~/.claude/settings.json && cat ~/.claude/settings.json").out == "mine\n", "the worker has its own")
    t.control(home.host("cat", home.home + "/.claude.json").out == "canary", "the host reads it")


@promise("OS-ENV-04", "/opt/kraft/bin is first on PATH, the caller's PATH follows")
def _(t):
    home = shared()
    inside = environment(home, env={"PATH": "/usr/local/bin:/usr/bin:/bin"})
    t.works(inside["PATH"] == "/opt/kraft/bin:/usr/local/bin:/usr/bin:/bin", "PATH", inside["PATH"])
    home2 = Home(env={"PATH": "/evil"})
    result = home2.run("env")
    t.works(result.code == 125 or "PATH=/opt/kraft/bin:" in result.out, "a PATH in env: is refused or stands after kraft's", result)


@promise("OS-ENV-01", "HOME, USER, TERM, LANG: what a build expects")
def _(t):
    home = shared()
    inside = environment(home, env={"TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "Europe/Berlin"})
    t.works(inside.get("HOME", "").startswith(home.run_dir), "HOME", inside)
    t.note("names inside: " + " ".join(sorted(inside)))
    for name in ("KRAFT_HOME", "KRAFT_RUN_DIR", "KRAFT_CONFIG_DIR", "KRAFT_BWRAP", "KRAFT_GUEST_DIR", "OLDPWD", "_"):
        t.works(name not in inside, name + " is not passed", inside)


@wall("PROC-16 OS-LCH-03", "20 canary secrets of the caller's environment are in no process the worker can see, nor on a command line")
def _(t):
    home = Home(env={"REPO_SECRET": "repo-canary-value"}, env_passthrough=["PASSED"])
    canaries = {"CANARY_%d" % i: "canary-%d-%s" % (i, uuid.uuid4().hex) for i in range(20)}
    canaries["PASSED"] = "passed-canary-value"
    inside = home.sh("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -a canary", env=canaries)
    t.attack(not re.search(r"canary-\d+-", inside.out), "none of the 20", inside)
    here = mark()
    process = home.start("./probe", "sleep", "20", here, env=canaries)
    try:
        wait_for(lambda: marked(here))
        words = b""
        environments = b""
        for pid in children(process.pid):
            words += b"\0".join(command_of(pid))
            if here.encode() not in b"\0".join(command_of(pid)):
                try:
                    with open("/proc/%d/environ" % pid, "rb") as f:
                        environments += f.read()
                except OSError:
                    pass
        t.attack(b"canary" not in words, "no value on any command line", words)
        t.attack(not re.search(rb"canary-\d+-", environments), "none in the environment of launcher, bubblewrap, init", environments)
        with open("/proc/%d/environ" % process.pid, "rb") as f:
            t.control(b"canary-3-" in f.read(), "kraft itself was given them")
    finally:
        process.kill()
        process.communicate()
    t.works(home.sh("echo $PASSED $REPO_SECRET", env=canaries).out == "passed-canary-value repo-canary-value\n", "named ones reach the command")


HOSTILE = ["LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND",
           "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_DIR", "GCONV_PATH", "LD_DEBUG", "MALLOC_CHECK_", "TMPDIR", "IFS", "PERL5OPT"]


def marker_library(home):
    source = write(home.root + "/marker.c", "#include <fcntl.h>\n#include <unistd.h>\n#include <string.h>\n"
                   "__attribute__((constructor)) static void go(void){int s=open(\"/proc/self/cmdline\",0);char b[4096];long n=read(s,b,4096);"
                   "int f=open(\"%s/loaded\",O_CREAT|O_APPEND|O_WRONLY,0666);(void)!write(f,b,n>0?n:0);(void)!write(f,\"\\n\",1);}\n" % home.root)
    built = home.host("gcc", "-shared", "-fPIC", "-o", home.root + "/marker.so", source)
    return home.root + "/marker.so" if built.code == 0 else None


@wall("PROC-17 OS-LCH-05", "env: of the repository with LD_PRELOAD and its kind: launcher, bubblewrap, init and host git are unaffected")
def _(t):
    home = Home()
    library = marker_library(home)
    if not library:
        t.skip("no compiler to build the marker library with")
    values = {name: library if name in ("LD_PRELOAD", "LD_AUDIT") else home.root + "/evil" for name in HOSTILE}
    write(home.root + "/evil", "touch %s/ran\n" % home.root, 0o755)
    home.configure(env=values)
    before = home.run("env")
    t.works(before.code in (0, 125), "runs, or is refused by name", before)
    crossed = {line.split("=", 1)[0] for line in before.lines}
    t.note("names that reach the command: " + " ".join(n for n in HOSTILE if n in crossed))
    t.attack(not os.path.exists(home.root + "/loaded") and not os.path.exists(home.root + "/ran"), "nothing of the host loaded or ran it",
             read(home.root + "/loaded") if os.path.exists(home.root + "/loaded") else "")
    home.host("true", env={"LD_PRELOAD": library})
    t.control(os.path.exists(home.root + "/loaded"), "on the host the library is loaded")


@wall("PROC-17 OS-LCH-05", "the caller's own environment with the same names steers nothing that runs beside the worker")
def _(t):
    home = Home()
    library = marker_library(home)
    if not library:
        t.skip("no compiler to build the marker library with")
    evil = write(home.root + "/evil", "#!/bin/sh\ntouch %s/ran\n" % home.root, 0o755)
    write(home.root + "/gitconfig", "[core]\n\tfsmonitor = %s\n\thooksPath = %s\n\tsshCommand = %s\n" % (evil, home.root, evil))
    names = {"BASH_ENV": evil, "ENV": evil, "PYTHONSTARTUP": evil, "GIT_DIR": "/nonexistent", "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/x", "GIT_OBJECT_DIRECTORY": "/x",
             "GIT_CONFIG_GLOBAL": home.root + "/gitconfig", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": evil,
             "GIT_EXTERNAL_DIFF": evil, "GIT_TEMPLATE_DIR": home.root, "GIT_SSH_COMMAND": evil, "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/x", "GIT_EXEC_PATH": home.root,
             "GIT_TRACE": home.root + "/trace", "LD_LIBRARY_PATH": home.root, "IFS": "/", "CDPATH": "/", "POSIXLY_CORRECT": "1", "PAGER": evil}
    result = home.run("sh", "-c", "cat README; env", env=names, options=["--item", "fresh-1"])
    t.works(result.lines[0] == "a sample", "runs", result)
    t.attack(not os.path.exists(home.root + "/ran") and not os.path.exists(home.root + "/trace"), "nothing was run or traced")
    t.attack(not [line for line in result.lines[1:] if line.split("=")[0] in names and line.split("=")[0] not in ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0")
                  and evil in line], "nor does it cross", result)
    loaded = home.root + "/loaded"
    again = home.run("true", env=dict(TRACED, LD_PRELOAD=library), options=["--item", "fresh-2"])
    text = read(loaded) if os.path.exists(loaded) else ""
    helpers = [line for line in text.splitlines() if "launch" in line or "bwrap" in line or "git" in line.split("\0")[0]]
    t.attack(again.code == 0 and not helpers, "a preloaded library reaches kraft, which the caller runs, and no helper of it", text)
    t.control("kraft" in text, "the library was loaded by kraft itself", text)


@wall("PROC-17", "names that are no names, and the reserved ones, in env: and env_passthrough")
def _(t):
    home = Home()
    for name in ("A=B", "", "1X", "with space", "new\nline", "--setenv", "ü", "A\0B", "KRAFT_RESULT_PATH", "HOME", "PATH"):
        for keys in ({"env": {name: "x"}}, {"env_passthrough": [name]}):
            home.configure(**keys)
            result = home.run("env")
            if name in ("KRAFT_RESULT_PATH", "HOME", "PATH"):
                t.attack(result.code == 125 or ("HOME=x" not in result.lines and "PATH=x" not in result.lines and "KRAFT_RESULT_PATH=x" not in result.lines),
                         "%r does not replace kraft's" % keys, result)
            else:
                t.attack(result.code == 125 and "repos.yaml:" in result.err, "%r does not load" % keys, result)
    home.configure(env={"FINE_1": "x\ny=z\t\"'\\ $HOME"})
    result = home.py("import os; print(repr(os.environ['FINE_1']))")
    t.works(result.out == "%r\n" % "x\ny=z\t\"'\\ $HOME", "a value with anything in it arrives", result)
    t.control(home.host("env", "A=B", "sh", "-c", "echo $A").out == "B\n", "the host takes such names")


if __name__ == "__main__":
    main()
