#!/usr/bin/env python3
"""kraft why path, command, env: what they say is what a worker meets; what they advise helps, and is never a protected path."""
import contextlib

from kraftlive import *


def why(home, *words, **more):
    result = home.kraft("why", *words, "--json", **more)
    with contextlib.suppress(ValueError):
        return result.code, json.loads(result.out), result
    return result.code, {}, result


SEEN = """import json, os
found = {}
for path in %r:
    there = os.path.exists(path)
    found[path] = {"exists": there, "write": there and os.access(path, os.W_OK), "read": there and os.access(path, os.R_OK),
                   "empty": os.path.isfile(path) and os.path.getsize(path) == 0, "real": os.path.realpath(path)}
print(json.dumps(found))"""


@wall("OS-MNT-01 OS-EXP-01", "why path says of any path what a worker finds there")
def _(t):
    home = Home()
    write(home.home + "/shown/x", "x")
    write(home.home + "/shown/credentials", "secret")
    write(home.home + "/hidden/x", "x")
    write(home.home + "/.ssh/id", "key")
    os.symlink(home.home + "/hidden/x", home.home + "/shown/out")
    os.symlink("x", home.home + "/shown/back")
    os.symlink(home.home + "/shown", home.home + "/link")
    home.configure(expose=["~/shown", "~/link"])
    work = home.worktree
    paths = [home.home + p for p in ("/shown", "/shown/x", "/shown/credentials", "/shown/out", "/shown/back", "/link/x", "/hidden/x", "/hidden", "/.ssh/id", "/none", "/shown/none", "")]
    paths += [home.repo, home.repo + "/Makefile", work, work + "/.git", "/", "/usr/bin/env", "/bin/sh", "/etc/passwd", "/usr/bin/none", "/var/tmp", "/var/log",
              "/root", "/srv", home.kraft_home, home.kraft_home + "/run/kraft.db", "/opt/kraft/init", "/sys", "/sys/kernel", "/run/systemd", "/home"]
    result = home.py(SEEN % paths)
    t.works(result.code == 0, "a worker looks", result)
    seen = json.loads(result.out)
    for path in paths:
        code, told, raw = why(home, "path", path)
        real = seen[path]
        verdict = told.get("verdict")
        right = {"absent": not real["exists"], "masked": real["exists"] and real["empty"], "read-only": real["exists"] and not real["write"],
                 "read-write": real["exists"] and real["write"], "own": True}.get(verdict, False)
        t.attack(right and code == (0 if verdict in ("read-only", "read-write") or (verdict == "own" and told["exists"]) else 1), "%s is %s" % (path, verdict), real, raw)
        t.works(not real["exists"] or verdict == "masked" or told["leads_to"] == real["real"], "and where it leads", real, raw)
    result = home.kraft("why", "path", "Makefile")
    t.works(result.code == 1 and work + "/Makefile" in result.out, "of a file of the checkout, where the worker's own is", result)
    t.control(why(home, "path", home.home + "/hidden/x")[1]["expose_helps"], "what could be exposed is not called protected")


@wall("OS-EXP-01 OS-EXP-03", "why path advises an entry only where it helps, and never a protected path")
def _(t):
    home = Home()
    write(home.home + "/data/x", "x")
    protected = [write(home.home + p, "s") for p in ("/.ssh/id", "/.aws/credentials", "/.gnupg/x", "/.netrc", "/.config/gh/hosts.yml")]
    os.symlink(home.home + "/.ssh", home.home + "/innocent")
    for path in protected + [home.home, home.home + "/innocent", home.home + "/innocent/id", home.kraft_home + "/config/repos.yaml", "/run/user", "/none", "/dev/kmsg"]:
        result = home.kraft("why", "path", path)
        told = why(home, "path", path)[1]
        t.attack("expose:" not in result.out and not told["expose_helps"], "no advice for " + path, result)
    for path in (home.home + "/data", home.home + "/data/x"):
        result = home.kraft("why", "path", path)
        t.works(result.code == 1 and "expose:\n    - " + path in result.out and "repos.yaml" in result.out, "advice", result)
        home.configure(expose=[path])
        t.control(home.kraft("why", "path", path).code == 0 and home.run("test", "-r", path).code == 0, "which helps")
        home.configure(expose=[])


@promise("OS-CMD-01", "why command tells what a launch finds, and refuses what it refuses")
def _(t):
    home = Home()
    tool = write(home.home + "/pack/bin/tool", "#!/bin/sh\n", 0o755)
    write(home.home + "/.ssh/bin/spy", "#!/bin/sh\n", 0o755)
    env = {"PATH": "%s:%s:/usr/bin:/bin" % (os.path.dirname(tool), home.home + "/.ssh/bin")}
    for name in ("true", "tool", "spy", "none", "/bin/sh", "/none/x"):
        code, told, raw = why(home, "command", name, env=env)
        ran = home.kraft("run", "--", name, env=env)
        started = ran.code not in (125, 127)
        t.works((code == 0) == told["found"] and (started or code == 1 or name.startswith("/none")), name, raw, ran)
        t.works(told["lookup"] or name.startswith("/none"), "with its steps", raw)
    result = home.kraft("why", "command", "none", env=env)
    t.works(result.code == 1 and result.out.startswith("refused  none\n") and result.out.count("was not found") == 1 and not result.err, "as text", result)


@wall("OS-ENV-01", "why env tells who sets a variable, and no value of another's")
def _(t):
    home = Home(env={"LITERAL": "literal-secret"}, env_passthrough=["PASSED", "UNSET"])
    env = {"PASSED": "passed-secret", "OTHER": "other-secret", "KRAFT_X": "kraft-secret", "ANTHROPIC_API_KEY": "api-secret", "LD_PRELOAD": ""}
    want = {"HOME": "kraft", "LITERAL": "repository", "PASSED": "host", "ANTHROPIC_API_KEY": "host", "UNSET": None, "OTHER": None, "KRAFT_X": None, "NOPE": None}
    inside = dict(line.split("=", 1) for line in home.kraft("run", "--", "env", env=env).out.splitlines() if "=" in line)
    for name, source in want.items():
        code, told, raw = why(home, "env", name, env=env)
        t.works(told.get("source") == source and (code == 0) == (source is not None) == (name in inside), name, raw)
        t.attack("secret" not in raw.out + home.kraft("why", "env", name, env=env).out, "no value of " + name, raw)
    t.works(why(home, "env", "OTHER", env=env)[1]["passthrough_helps"] and not why(home, "env", "KRAFT_X", env=env)[1]["passthrough_helps"], "what env_passthrough can bring is said")
    result = home.kraft("why", "env", "A=b")
    t.works(result.code == 2, "no name", result)
    t.control(inside.get("PASSED") == "passed-secret", "the worker has them")


if __name__ == "__main__":
    main()
