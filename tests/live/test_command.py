#!/usr/bin/env python3
"""How a command is found (OS-CMD), and commands that want to be found elsewhere (CFG-06 to CFG-10 of the cases)."""
from kraftlive import *

SENTENCE = "%s leads to %s, outside the sandbox's view; add its directory to the sandbox's expose list"
SCRIPT = "#!/bin/sh\necho ran $0\n"


def tool(path, text=SCRIPT, mode=0o755):
    return write(path, text, mode)


def path_of(*dirs):
    return {"PATH": ":".join(dirs) + ":/usr/bin:/bin"}


def seen(home, *paths, **more):
    """Which of the paths the worker can open, asked by a probe in the worktree."""
    return [p for p, v in home.probe("open", "r", *paths, **more).table().items() if v == "ok"]


@promise("OS-CMD-01 OS-CMD-02", "a command runs under the name it has on PATH, its real file's directory is shown")
def _(t):
    home = Home()
    tool(home.home + "/store/v1/real-tool")
    write(home.home + "/store/v1/data", "data")
    os.makedirs(home.home + "/shims")
    os.symlink("../store/v1/real-tool", home.home + "/shims/tool")
    result = home.run("tool", env=path_of(home.home + "/shims"))
    t.works(result.out == "ran %s/shims/tool\n" % home.home, "argv[0] is the name on PATH", result)
    write(home.home + "/store/v1/real-tool", "#!/bin/sh\ncat %s/store/v1/data\n" % home.home)
    t.works(home.run("tool", env=path_of(home.home + "/shims")).out == "data", "the directory of the real file is shown")


@wall("OS-CMD-02 OS-CMD-05", "a bin/ widens to its prefix and no further; an expose path that covers it does not widen")
def _(t):
    home = Home()
    prefix = home.home + "/opt/pack"
    tool(prefix + "/bin/tool", "#!/bin/sh\nfor p; do cat \"$p\" 2>/dev/null || echo absent; done\n")
    write(prefix + "/lib/lib.txt", "lib ")
    write(home.home + "/opt/other/file", "other ")
    look = [prefix + "/lib/lib.txt", home.home + "/opt/other/file"]
    result = home.run("tool", *look, env=path_of(prefix + "/bin"))
    t.works(result.out == "lib absent\n", "the prefix is shown, its neighbour not", result)
    home.configure(expose=[prefix + "/bin"])
    result = home.run("tool", *look, env=path_of(prefix + "/bin"))
    t.attack(result.out == "absent\nabsent\n", "an exposed bin/ is all there is", result)
    t.control(home.host("tool", *look, env=path_of(prefix + "/bin")).out == "lib other ", "the host reads both")


@promise("OS-CMD-03", "a script's interpreter is followed one level, also through env NAME")
def _(t):
    home = Home()
    interpreter = home.home + "/lang/bin/interp"
    os.makedirs(os.path.dirname(interpreter))
    shutil.copy2("/bin/sh", interpreter)
    write(home.home + "/lang/lib/lib.txt", "lib")
    for line in ("#!" + interpreter, "#! " + interpreter + " -e", "#!/usr/bin/env interp", "#!/usr/bin/env -S interp -e"):
        tool(home.home + "/scripts/tool", line + "\ncat %s/lang/lib/lib.txt\n" % home.home)
        result = home.run("tool", env=path_of(home.home + "/scripts", home.home + "/lang/bin"))
        t.works(result.out == "lib", line, result)
    tool(home.home + "/scripts/second", "#!%s/scripts/first\n" % home.home)
    tool(home.home + "/deep/interp2", "#!%s\necho deep\n" % interpreter)
    tool(home.home + "/scripts/two-levels", "#!%s/deep/interp2\n" % home.home)
    result = home.run("two-levels", env=path_of(home.home + "/scripts"))
    t.works(result.code in (125, 126, 127) or result.out == "deep\n", "two levels: refused, not found, or run; never hangs", result)


@wall("OS-CMD-03", "hostile #! lines of a host script: a loop, no end, a protected interpreter, a relative one, 64 KiB, NULs")
def _(t):
    home = Home()
    scripts = home.home + "/scripts"
    tool(home.home + "/.ssh/interp", "#!/bin/sh\necho SECRET\n")
    lines = {"loop": "#!%s/loop\n" % scripts, "protected": "#!%s/.ssh/interp\n" % home.home, "relative": "#!interp\n", "dot": "#!./interp\n",
             "long": "#!/" + "x" * 65536, "nul": "#!/bin/sh\0-c\n", "empty": "#!", "blank": "#!   \n",
             "env-missing": "#!/usr/bin/env no-such-interp\n", "home": "#!%s\n" % home.home, "dev": "#!/dev/stdin\n", "proc": "#!/proc/self/exe\n",
             "env-worktree": "#!/usr/bin/env ./probe\n"}
    for name, line in lines.items():
        tool(os.path.join(scripts, name), line)
        result = home.run(name, env=path_of(scripts), timeout=20)
        t.attack(result.code in (0, 1, 2, 125, 126, 127) and "SECRET" not in result.out, name, result)
    protected = home.run("protected", env=path_of(scripts))
    t.attack(protected.code == 125, "an interpreter in a protected directory is refused before launch", protected)
    t.control(home.host(scripts + "/protected").out == "SECRET\n", "the host runs it")
    tool(scripts + "/fine")
    t.works(home.run("fine", env=path_of(scripts)).code == 0, "a plain script runs")


@promise("OS-CMD-04", "a file under /usr or inside an expose path needs no mount of its own")
def _(t):
    home = Home()
    result, plan = home.explain("env")
    t.works(result.code == 0 and plan, "explain", result)
    tool(home.home + "/shown/sub/tool")
    home.configure(expose=["~/shown"])
    table = [m["at"] for m in mount_table(home.run("sh", "-c", "cat /proc/self/mountinfo").out)]
    ran = home.run("tool", env=path_of(home.home + "/shown/sub"))
    t.works(ran.out == "ran %s/shown/sub/tool\n" % home.home, "runs", ran)
    t.works([m for m in table if m.startswith(home.home + "/shown")] == [home.home + "/shown"], "one mount", table)


@wall("OS-CMD-06", "nothing in the checkout chooses what is mounted: a link, a #!, a name in the worktree")
def _(t):
    home = Home()
    tool(home.home + "/private/interp", "#!/bin/sh\necho private\n")
    write(home.home + "/private/data", "data")
    home.commit("script", "#!%s/private/interp\n" % home.home)
    home.commit("envscript", "#!/usr/bin/env interp\n")
    result = home.run("./script")
    t.attack("private" not in result.out and result.code in (126, 127), "its #! line is not followed", result)
    t.attack("a command was not found inside the os sandbox" in result.err, "the 127 sentence", result)
    result = home.run("./envscript", env=path_of(home.home + "/private"))
    t.attack("private" not in result.out, "nor env NAME", result)
    table = [m["at"] for m in mount_table(home.run("./probe", "open", "r", home.home + "/private/data").out)]
    t.attack(table == [] and home.probe("open", "r", home.home + "/private/data").out.endswith("ENOENT\n"), "no mount is added")
    home.commit("ok", "#!/bin/sh\necho fine\n")
    t.works(home.run("./ok").out == "fine\n", "a script of the worktree with a system interpreter runs")
    t.control(home.host("./script").out == "private\n", "the host runs it")


@wall("OS-CMD-07 CFG-08", "a path-named command that leads outside is refused with the exact sentence")
def _(t):
    home = Home()
    outside = tool(home.home + "/outside/tool")
    os.symlink(outside, home.repo + "/gradlew")
    os.symlink("../../outside", home.repo + "/dir")
    os.symlink("gradlew", home.repo + "/twice")
    os.symlink("/usr/bin/env", home.repo + "/system")
    os.symlink("sub/inner", home.repo + "/inner")
    tool(home.repo + "/sub/inner")
    git(home.repo, "add", "-A")
    git(home.repo, "commit", "-qm", "links")
    for command in ("./gradlew", "./twice"):
        result = home.run(command)
        t.attack(result.code == 125 and SENTENCE % (command, outside) in result.err and result.out == "", command, result)
    via = home.run("./dir/tool")
    t.attack(via.code in (125, 127) and via.out == "", "through a directory link", via)
    for command in (outside, home.home + "/outside/../outside/tool"):
        result = home.run(command)
        t.attack(result.code in (0, 125), "an absolute path outside is refused or mounts its own directory", result)
    t.works(home.run("./system", "echo", "ok").out == "ok\n", "a link to a system directory runs")
    t.works(home.run("./inner").out == "ran %s/inner\n" % home.worktree, "a link inside the worktree runs")
    home.configure(expose=[home.home + "/outside"])
    t.works(home.run("./gradlew").code == 0, "following the sentence makes it work")
    t.control(home.host("./gradlew").out != "", "the host runs it")


@promise("OS-CMD-07", "a path-named command from a folder below: relative to where the person stands")
def _(t):
    home = Home()
    home.commit("sub/tool", "#!/bin/sh\npwd\n")
    result = home.run("./tool", cwd=home.repo + "/sub")
    t.works(result.out == os.path.join(home.worktree, "sub") + "\n", "runs below the worktree", result)
    t.works(home.run("../sub/tool", cwd=home.repo + "/sub").code == 0, "with ..")
    t.works(home.run("sub/tool").code == 0, "without ./")


@wall("OS-CMD-08 CFG-06", "a bare name found nowhere is refused before launch; the worktree, '.', and empty PATH elements do not count")
def _(t):
    home = Home()
    home.commit("only-here", SCRIPT)
    home.commit("sub/only-here", SCRIPT)
    log = home.root + "/launched"
    for path in ("/usr/bin:/bin", ":/usr/bin:/bin", "/usr/bin::/bin", "/usr/bin:/bin:", ".:/usr/bin:/bin", "./:/usr/bin:/bin", "sub:/usr/bin:/bin",
                 home.repo + ":/usr/bin:/bin", home.worktree + ":/usr/bin:/bin", home.repo + "/sub:/usr/bin:/bin", "..:/usr/bin:/bin",
                 home.repo + "/../sample:/usr/bin:/bin"):
        result = home.run("only-here", env={"PATH": path, "KRAFT_BWRAP": home.wrapper(log=log)})
        t.attack(result.code == 125 and "only-here" in result.err and result.out == "", "PATH=%s" % path, result)
        t.attack(not os.path.exists(log), "before launch", path)
    missing = home.run("no-such-command-kraft")
    t.attack(missing.code == 125 and "no-such-command-kraft" in missing.err, "named", missing)
    elsewhere = tool(home.home + "/elsewhere/only-here")
    t.works(home.run("only-here", env=path_of(os.path.dirname(elsewhere))).code == 0, "an absolute PATH element counts")
    t.control(home.host("sh", "-c", "PATH=.:$PATH; only-here").out != "", "a shell would find it in '.'")


@promise("OS-CMD-08", "/opt/kraft/bin is searched first, so a 'kraft' of the host is not the one inside")
def _(t):
    home = Home()
    tool(home.home + "/mine/kraft", "#!/bin/sh\necho host kraft\n")
    result = home.run("kraft", "--version", env=path_of(home.home + "/mine"))
    t.works("host kraft" not in result.out, "the shim is what runs", result)
    inner = home.sh("command -v kraft; echo $PATH", env=path_of(home.home + "/mine"))
    t.works(inner.lines[0] == "/opt/kraft/bin/kraft" and inner.lines[1].startswith("/opt/kraft/bin:"), "first on PATH", inner)


@wall("OS-CMD-09", "expose never adds to PATH")
def _(t):
    home = Home()
    tool(home.home + "/shown/bin/tool")
    home.configure(expose=["~/shown"])
    result = home.run("tool")
    t.attack(result.code == 125, "not found", result)
    inner = home.sh("echo $PATH; command -v tool")
    t.attack(inner.out == "/opt/kraft/bin:/usr/bin:/bin\n", "PATH inside", inner)
    t.works(home.run(home.home + "/shown/bin/tool").code == 0, "by its path it runs")
    t.control(home.run("tool", env=path_of(home.home + "/shown/bin")).code == 0, "and with the directory on the caller's PATH")


@promise("CFG-07", "odd PATHs and odd commands: a documented result, no hang")
def _(t):
    home = Home()
    odd = home.home + "/odd"
    os.makedirs(odd + "/directory")
    os.symlink("nowhere", odd + "/dangling")
    os.symlink("loop", odd + "/loop")
    os.mkfifo(odd + "/fifo")
    tool(odd + "/plain", SCRIPT, 0o644)
    tool(odd + "/unreadable", SCRIPT, 0o311)
    tool(odd + "/empty", "")
    tool(odd + "/garbage", b"\x7fELF\x02garbage")
    os.makedirs(home.home + "/closed")
    os.chmod(home.home + "/closed", 0)
    os.unlink(odd + "/fifo")
    for name in ("directory", "dangling", "loop", "plain", "", ".", "..", "/", "./", "./sub", "sub", "/usr", "/dev/null", "/etc/passwd", "./README",
                 "./missing", "/missing", "x" * 300, "x/" * 3000, "-c", "--", "a=b", "\n", "/proc/self/exe"):
        result = home.run(name, env=path_of(odd), timeout=20)
        t.works(result.code in (0, 125, 126, 127) and (result.code == 0 or result.err.strip()), "command %r" % name[:40], result)
    for name in ("empty", "garbage", "unreadable"):
        result = home.run(name, env=path_of(odd), timeout=20)
        t.works(result.code in (0, 2, 125, 126, 127), "command %s" % name, result)
    for path in ("", ":", "/missing:/usr/bin", "/usr/bin:" * 5000 + "/bin", home.home + "/closed:/usr/bin", "/usr/bin:/usr/bin:/usr/bin", "\n:/usr/bin",
                 "relative:/usr/bin", "~/bin:/usr/bin", "/etc/passwd:/usr/bin", "//usr//bin//", "/usr/bin/../bin", "/" + "y" * 5000 + ":/usr/bin"):
        result = home.run("true", env={"PATH": path}, timeout=20)
        t.works(result.code == (0 if "/bin" in path else 125), "PATH=%r (an empty one names the current directory)" % path[:40], result)
    t.works(home.run("true", env={"PATH": None}).code in (0, 125), "no PATH at all")


@promise("OS-LCH-10 OS-LCH-11", "not executable is 126, an exec failure 127, with the exact sentences")
def _(t):
    home = Home()
    home.commit("plain", "#!/bin/sh\n", 0o644)
    home.commit("nointerp", "#!/no/such/interpreter\n")
    result = home.run("./plain")
    t.works(result.code in (125, 126) and "./plain" in result.err and "is not executable" in result.err, "126", result)
    result = home.run("./nointerp")
    t.works(result.code == 127 and "kraft: a command was not found inside the os sandbox; add its directory to the sandbox's expose list"
            in result.err, "127", result)


@wall("CFG-10", "commands, arguments, names and paths that look like options or hold newlines are data")
def _(t):
    home = Home()
    odd = home.home + "/odd"
    for name in ("--bind", "--help", "new\nline", "sp ace", "-x"):
        tool(os.path.join(odd, name), "#!/bin/sh\nprintf '%s|' \"$@\"\n")
        result = home.run(name, "--ro-bind", "/", "/", "a\nb", "", "--", env=path_of(odd))
        t.works(result.out == "--ro-bind|/|/|a\nb||--|", "command %r" % name, result)
    arguments = ["--args", "3", "--", "--dev-bind", "/", "/", "\x1b[2J", "ünï", "'", '"', "\\", "*", "$HOME", "`id`", " ", "\t", "x" * 100000]
    result = home.run("./probe", "argv", *arguments)
    t.works([line.split()[0] for line in result.lines] == [str(len(a.encode())) for a in arguments], "arguments arrive as they are", result)
    t.attack(home.probe("open", "r", "/root", home.home + "/.ssh", "/boot").out.count(" ok") == 0, "and open nothing")
    spaced = Home(name="a home\nwith --bind / /", repo="my code/ünï sample", kraft_home="kraft home")
    result = spaced.run("pwd", env={})
    t.attack(result.code in (0, 125), "a home whose name holds a newline and options", result)
    if result.code == 0:
        t.works(spaced.run("cat", "README").out == "a sample\n", "works")
    control = home.host(BWRAP, "--ro-bind", "/", "/", "--bind", "/", "/", "true")
    t.control(control.code == 0, "given as options they would be taken")


@promise("CFG-10", "a repository, a KRAFT_HOME and a home with spaces and unicode")
def _(t):
    home = Home(name="a hömé", repo="my code/ünï sample", kraft_home="kraft home")
    result = home.run("sh", "-c", "cat README && pwd && cd && pwd")
    t.works(result.code == 0 and result.lines[0] == "a sample" and "kraft home" in result.lines[2], "runs", result)


@promise("OS-CMD-01", "the arguments and the environment may be huge")
def _(t):
    home = shared()
    many = ["x" * 1000] * full(500, 1500)
    result = home.run("./probe", "argv", *many)
    t.works(len(result.lines) == len(many), "half a megabyte of arguments", len(result.lines), result.err[-300:])
    big = {"BIG%d" % i: "y" * 60000 for i in range(10)}
    result = home.run("true", env=big)
    t.works(result.code == 0, "600 KB of environment of the caller", result)
    home2 = Home(env_passthrough=list(big))
    result = home2.sh("echo ${#BIG0} ${#BIG9}", env=big)
    t.works(result.out == "60000 60000\n" or result.code == 125, "passed on, or refused with the limit named", result)


if __name__ == "__main__":
    main()
