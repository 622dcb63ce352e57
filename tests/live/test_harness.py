#!/usr/bin/env python3
"""The controls that need no kraft: what the probe says on the host and in a bare bubblewrap. When these fail, the
other files' controls mean nothing on this machine."""
from kraftlive import *


@promise("G2", "on the host the filter's verdict is 'allowed' for every listed call")
def _(t):
    home = shared()
    result = home.host_probe("listed")
    t.works(result.code == 0 and result.lines, "the probe runs", result)
    t.control(all(line.endswith(" allowed") for line in result.lines), "no filter on the host", result)


@promise("G2", "a bare bubblewrap with the view of the tests starts")
def _(t):
    home = shared()
    result = home.bare("./probe", "flags")
    t.works(result.said("no_new_privs") == "1", "bare bubblewrap runs the probe", result)


@promise("G2", "the wrapper drops one option of an --args file and keeps the others")
def _(t):
    home = shared()
    with open(os.path.join(home.root, "args"), "wb") as f:
        for word in ("--unshare-all --ro-bind / / --size 4096 --tmpfs /tmp --tmpfs /mnt").split():
            f.write(word.encode() + b"\0")
    script = "exec 9<'%s/args'; exec %s --args 9 -- sh -c 'stat -f -c %%T /tmp /mnt'"
    whole = home.host("sh", "-c", script % (home.root, BWRAP))
    cut = home.host("sh", "-c", script % (home.root, home.wrapper(drop=[["--tmpfs", "/tmp"]])))
    t.works(whole.out == "tmpfs\ntmpfs\n", "all options", whole)
    t.control(cut.lines[1:] == ["tmpfs"] and cut.lines[0] != "tmpfs", "one option less", cut)


if __name__ == "__main__":
    main()
