#!/usr/bin/env python3
"""kraft explain: says what a session would see, runs nothing, leaves nothing, tells no secret."""
import re

from kraftlive import *


@wall("OS-LCH-12", "explain starts no process and leaves no file")
def _(t):
    home = Home()
    before = tree_hash(home.root)
    for words in (["explain"], ["explain", "--", "make", "test"], ["explain", "--json", "--", "./probe", "x"], ["explain", "--", "missing"]):
        trace = home.root + "/trace"
        result = home.host("strace", "-f", "-e", "trace=execve,fork,vfork,clone,clone3,openat,mkdir,mkdirat,unlink,rename,renameat2", "-o", trace, KRAFT, *words, env=TRACED)
        text = read(trace)
        os.unlink(trace)
        t.attack(text.count("execve(") == 1 and not re.search(r"\b(clone3?|v?fork)\(", text), "no process: %r" % words, text[-1500:])
        t.attack("O_CREAT" not in text and not re.search(r"\bmkdir(at)?\(", text), "no file: %r" % words, text[-1500:])
        t.attack(not changed(before, tree_hash(home.root)), "nothing left", changed(before, tree_hash(home.root)))
        t.works(result.out.strip() or result.err.strip(), "it says something", result)
    traced = home.host("strace", "-f", "-e", "trace=execve", "-o", home.root + "/trace", KRAFT, "run", "--", "true", env=TRACED)
    t.control(read(home.root + "/trace").count("execve(") > 3, "a run does start processes", traced)


@promise("OS-CMD-01", "explain tells the lookup step by step, and why a command is refused")
def _(t):
    home = Home()
    tool = write(home.home + "/pack/bin/tool", "#!/usr/bin/env python3\n", 0o755)
    env = {"PATH": os.path.dirname(tool) + ":/usr/bin:/bin"}
    result = home.kraft("explain", "--", "tool", env=env)
    t.works(result.code == 0 and tool in result.out and home.home + "/pack" in result.out, "the steps", result)
    result = home.kraft("explain", "--", "no-such-tool", env=env)
    t.works(result.code == 5 and "no-such-tool" in result.err + result.out, "a refusal, as a refusal of any command", result)


@wall("OS-ENV-01", "explain never prints a secret's value")
def _(t):
    home = Home(env={"LITERAL": "literal-secret"}, env_passthrough=["PASSED"])
    env = {"PASSED": "passed-secret", "ANTHROPIC_API_KEY": "api-secret"}
    for words in (["explain"], ["explain", "--json"], ["explain", "--json", "--", "true"]):
        result = home.kraft(*words, env=env)
        t.attack("secret" not in result.out + result.err, "no value", result)
        t.works("PASSED" in result.out and "LITERAL" in result.out and "ANTHROPIC_API_KEY" in result.out, "the names", result)
    t.control(home.sh("echo $PASSED", env=env).out == "passed-secret\n", "the command would have them")


@promise("OS-MNT-01", "what explain lists is what the session sees, mount by mount")
def _(t):
    home = Home()
    write(home.home + "/shown/credentials", "x")
    home.configure(expose=["~/shown"])
    result, plan = home.explain("cat", "/proc/self/mountinfo")
    t.works(plan is not None, "JSON", result)
    text = json.dumps(plan)
    table = mount_table(home.ok("cat", "/proc/self/mountinfo").out)
    seen = {m["at"] for m in table}
    missing = [m for m in seen if json.dumps(m)[1:-1] not in text and not m.startswith(("/dev/", "/proc/")) and m != "/" and "/sn/" not in m and "/results/" not in m]
    t.works(not missing, "every mount is in the plan", missing, result)
    t.works("because" in text, "with reasons")
    t.works(home.home + "/shown/credentials" in text, "masks too")


@promise("OS-MNT-12", "explain is quick, also with a large tree exposed")
def _(t):
    home = Home()
    for i in range(40):
        for k in range(25):
            write(home.home + "/tree/%d/%d/%s" % (i, k, "file"), "x")
    home.configure(expose=["~/tree"])
    times = sorted(home.kraft("explain").seconds for _ in range(7))
    t.note("explain with 1,000 directories exposed: median %.1f ms (process start included)" % (times[3] * 1000))
    t.works(times[0] < 0.5, "the best of seven", times)


if __name__ == "__main__":
    main()
