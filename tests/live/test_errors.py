#!/usr/bin/env python3
"""Errors with a number, met as a person meets them: the message, the number's line, the exit status."""
import uuid

from kraftlive import *


def fake(home, text):
    return {"KRAFT_BWRAP": write(home.root + "/bwrap-%s" % uuid.uuid4().hex[:8], "#!/bin/sh\n" + text, 0o755)}


@promise("CFG-06 OS-CMD-01", "what a person meets has its number, and 'kraft help' tells of it")
def _(t):
    home = Home()
    bare, empty = home.root + "/bare", home.root + "/empty"
    os.makedirs(bare)
    subprocess.run(["git", "init", "-q", empty], check=True)
    setuid = write(home.root + "/setuid-bwrap", "#!/bin/sh\necho 'bubblewrap 0.8.0'\n", 0o755)
    os.chmod(setuid, 0o4755)
    long = {"KRAFT_RUN_DIR": home.root + "/" + "r" * 100}
    met = [
        ("E0201", 125, ["run", "--", "no-such-command"], {}),
        ("E0201", 5, ["explain", "--", "no-such-command"], {}),
        ("E0303", 125, ["run", "--", "true"], {"env": fake(home, "echo 'bubblewrap 0.4.0'\n")}),
        ("E0302", 125, ["run", "--", "true"], {"env": {"KRAFT_BWRAP": setuid}}),
        ("E0501", 7, ["explain"], {"cwd": bare}),
        ("E0102", 3, ["explain"], {"cwd": empty}),
        ("E0502", 125, ["run", "--", "true"], {"cwd": empty}),
        ("E0506", 7, ["view", "show", "nobody"], {}),
        ("E0701", 6, ["admin", "stop"], {}),
        ("E0705", 125, ["run", "--", "true"], {"env": long}),
    ]
    for number, status, words, more in met:
        if number == "E0502":
            home.kraft("repo", "connect", cwd=empty)
        result = home.kraft(*words, **more)
        t.works(result.code == status and result.err.rstrip().endswith("see: kraft help " + number), "%s by %r" % (number, words), result)
        t.works(home.kraft("help", number).out.startswith(number + ": "), "and is told of")
    home.configure(expose=["~/.ssh"])
    result = home.kraft("run", "--", "true")
    t.works(result.code == 125 and ("E0105" in result.err or "protected" in result.err), "a protected path", result)
    write(home.config_dir + "/repos.yaml", read(home.config_dir + "/repos.yaml").replace('"expose"', '"exposee"'))
    result = home.kraft("repo", "list")
    t.works(result.code == 3 and "see: kraft help E0101" in result.err, "an unknown key", result)
    result = home.kraft("view", "list", "--nonsense")
    t.works(result.code == 2 and "see:" not in result.err, "one whose message says all has none", result)


if __name__ == "__main__":
    main()
