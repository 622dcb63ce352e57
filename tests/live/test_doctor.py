#!/usr/bin/env python3
"""kraft admin doctor: a row for each thing that a launch needs, with its fix; exit 1 when one fails."""
import contextlib
import pty
import socket

from kraftlive import *


def doctor(home, **more):
    result = home.kraft("admin", "doctor", "--json", **more)
    try:
        report = json.loads(result.out)
    except ValueError:
        raise Failed("no JSON: %r" % result)
    if report["ok"] != (result.code == 0):
        raise Failed("exit status and 'ok' differ: %r" % result)
    return result, report["rows"]


def on_a_terminal(home, typed):
    """--fix, answered on a terminal: the exit status and what was printed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(home.repo)
        os.execve(KRAFT, ["kraft", "admin", "doctor", "--fix"], home.env())
    os.write(fd, typed.encode())
    out = b""
    with contextlib.suppress(OSError):
        while more := os.read(fd, 65536):
            out += more
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(status), out.decode()


def rows(found, name, verdict=None):
    return [r for r in found if r["name"] == name and verdict in (None, r["verdict"])]


def bind(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    s = socket.socket(socket.AF_UNIX)
    here = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        s.bind("/proc/self/fd/%d/%s" % (here, os.path.basename(path)))
    finally:
        os.close(here)
        s.close()
    return path


@promise("CFG-04 OS-LCH-14", "a fit host passes, for a person and as JSON")
def _(t):
    home = Home()
    result, found = doctor(home)
    t.works(result.code == 0 and not [r for r in found if r["verdict"] == "fail"], "no row fails", result)
    for name in ("user", "directories", "run directory", "disk", "guest program", "egress program", "git", "architecture", "bubblewrap",
                 "sandbox", "repos.yaml", "checkout sample", "sandbox sample"):
        t.works(rows(found, name, "ok"), "row '%s'" % name, found)
    shown = home.kraft("admin", "doctor")
    t.works(shown.code == 0 and re.search(r"^ok    sandbox +one was made$", shown.out, re.M), "as text", shown)
    t.works(home.run("true").code == 0, "and a launch succeeds")


@promise("CFG-04", "rows have ids that stay, about one repository none of another's, and nothing is written")
def _(t):
    home = Home()
    home.configure()
    before = tree_hash(home.root)
    result, found = doctor(home)
    t.attack(not changed(before, tree_hash(home.root)), "nothing is written", changed(before, tree_hash(home.root)))
    ids = {r["id"]: r for r in found}
    for id in ("user", "directories", "run-directory", "disk", "store", "socket-path", "guest-program", "egress-program", "git", "architecture", "kernel", "bubblewrap", "sandbox",
               "inode-caps", "keyring", "repos.yaml", "checkout:sample", "sandbox:sample", "setup:sample", "tests:sample", "hosts:sample", "user-manager", "server", "token",
               "strays", "harness-claude"):
        t.works(id in ids, "row '%s'" % id, sorted(ids))
    t.works(ids["checkout:sample"]["repository"] == "sample" and ids["git"]["repository"] is None, "whose it is", found)
    for word in ("sample", home.repo, "."):
        got = home.kraft("admin", "doctor", "--json", word)
        t.works(got.code == 0 and {r["repository"] for r in json.loads(got.out)["rows"]} == {None, "sample"}, "about " + word, got)
    got = home.kraft("admin", "doctor", "nobody")
    t.works(got.code == 7 and "not connected" in got.err, "about one that there is not", got)
    t.control(home.kraft("item", "create", "a title").code == 0 and changed(before, tree_hash(home.root)), "other commands do write")
    result, found = doctor(home)
    t.works(rows(found, "store", "ok") and not [r for r in found if r["verdict"] == "fail"], "with what others leave it is as well", [r for r in found if r["verdict"] == "fail"])
    write(home.kraft_home + "/run/orchestrator.db", "not a database " * 20)
    t.works(rows(doctor(home)[1], "store", "fail"), "a store that is none")


@wall("CFG-13", "--fix mends modes of the person's own files, only what was agreed to, and follows no link")
def _(t):
    home = Home()
    home.kraft("item", "create", "a title")
    run, token = home.kraft_home + "/run", home.kraft_home + "/run/token"
    def loosen():
        write(token, "x" * 43 + "\n", 0o644)
        os.chmod(home.kraft_home, 0o777)
        os.chmod(run + "/orchestrator.db", 0o666)
    def modes():
        return [os.stat(p).st_mode & 0o777 for p in (home.kraft_home, run + "/orchestrator.db", token)]
    loosen()
    t.control([r["id"] for r in doctor(home)[1] if r["verdict"] == "fail"] == ["directories", "store", "token"], "three rows fail", doctor(home)[0])
    for words, code in ((["--fix"], 2), (["--fix", "--json"], 2), (["--yes"], 2)):
        result = home.kraft("admin", "doctor", *words)
        t.attack(result.code == code and modes() == [0o777, 0o666, 0o644], "not asked, nothing changes: %r" % words, result)
    result = home.kraft("admin", "doctor", "--fix", "--yes")
    t.works(result.code == 0 and modes() == [0o755, 0o600, 0o600] and "take rights away" in result.out, "agreed to, it does, and the rows are asked again", result, modes())
    loosen()
    result = on_a_terminal(home, "n\nn\ny\n")
    t.works(modes() == [0o777, 0o666, 0o600] and result[0] == 1 and result[1].count("do it? [y/N]") == 3, "each by itself on a terminal", result, modes())
    os.chmod(home.kraft_home, 0o700)
    os.chmod(run + "/orchestrator.db", 0o600)
    other = write(home.home + "/other", "mine", 0o644)
    os.unlink(token)
    os.symlink(other, token)
    result = home.kraft("admin", "doctor", "--fix", "--yes")
    t.attack(result.code == 1 and os.stat(other).st_mode & 0o777 == 0o644, "what a link leads to stays as it is", result)


@wall("CFG-04 CFG-10 OS-EXP-02", "each exposed path that a launch refuses fails its own row")
def _(t):
    home = Home()
    good = os.path.join(home.home, "tool")
    os.makedirs(good)
    os.symlink(os.path.join(home.home, ".ssh"), os.path.join(home.home, "innocent"))
    os.makedirs(os.path.join(home.home, ".ssh"))
    bad = [os.path.join(home.home, "absent"), os.path.join(home.home, "innocent"), bind(home.home + "/near/a/s")]
    bad[2] = home.home + "/near"
    home.configure(expose=[bad[0], good] + bad[1:])
    result, found = doctor(home)
    failed = rows(found, "expose sample", "fail")
    t.attack(result.code == 1 and len(failed) == 3, "three rows fail", result)
    t.attack(any("does not exist" in r["detail"] and r["fix"] for r in failed), "the missing one", failed)
    t.attack(any(".ssh" in r["detail"] for r in failed), "the link to a protected path", failed)
    t.attack(any("/near/a/s' is a socket" in r["detail"] for r in failed), "the one with a socket", failed)
    t.works(len(rows(found, "expose sample", "ok")) == 1, "the good one passes", found)
    for path in bad:
        home.configure(expose=[path])
        t.attack(home.run("true").code == 125, "the launch refuses '%s' too" % path)
    home.configure(expose=[good])
    t.control(doctor(home)[0].code == 0 and home.run("true").code == 0, "without them both succeed")


@promise("OS-SEC-08", "sockets and FIFOs deeper than the launch looks are named, and links are not followed")
def _(t):
    home = Home()
    deep = bind(home.home + "/tool/1/2/3/4/5/6/s")
    os.mkfifo(home.home + "/tool/1/2/3/4/fifo")
    os.makedirs(home.home + "/other/1/2/3/4")
    os.symlink(home.home + "/tool", home.home + "/other/1/2/3/4/link")
    home.configure(expose=[home.home + "/tool", home.home + "/other"])
    result, found = doctor(home)
    warned = rows(found, "sockets sample", "warn")
    t.works(result.code == 0 and len(warned) == 1, "one row warns, none fails", result)
    t.works("/tool/1/2/3/4/fifo' and 1 more" in warned[0]["detail"], "the nearest is named, the rest counted", warned)
    os.unlink(deep)
    os.unlink(home.home + "/tool/1/2/3/4/fifo")
    t.works(not rows(doctor(home)[1], "sockets sample"), "without them there is nothing to say")


@promise("CFG-06 CFG-11", "a broken repos.yaml, unknown keys, and what a repository lacks")
def _(t):
    home = Home()
    home.configure("repos:\n  - path: %s\n    sandbxo: {}\n" % home.repo)
    result, found = doctor(home)
    t.works(result.code == 1 and "repos.yaml:3:5: unknown key 'sandbxo'" in rows(found, "repos.yaml", "fail")[0]["detail"], "place", found)
    t.works("sandbox" in rows(found, "repos.yaml", "fail")[0]["fix"], "fix", found)
    home.configure(colour_scheme="dark")
    result, found = doctor(home)
    t.works(result.code == 1 and "colour_scheme" in rows(found, "keys", "fail")[0]["detail"], "an unknown key that is kept", found)
    home.configure(local_files=[".env"])
    result, found = doctor(home)
    t.works(result.code == 1 and "'.env' is not there" in rows(found, "checkout sample", "fail")[0]["detail"], "a local file", found)
    write(home.repo + "/.env", "x")
    t.works(doctor(home)[0].code == 0, "which is then made")
    home.configure(path=home.home + "/gone\x1b[31m")
    result, found = doctor(home)
    t.works(result.code == 1 and [r for r in found if r["name"].startswith("checkout") and r["verdict"] == "fail"], "no checkout", found)
    t.works(b"\x1b" not in home.kraft("admin", "doctor").raw_out, "and its name steers no terminal")


def stand_in(home, said, image=""):
    """A docker of ours that answers as one does, with these of its facts; image: what it says of one, "" has none."""
    info = {"KernelVersion": os.uname().release, "OSType": "linux", "OperatingSystem": "any", "MemoryLimit": True, "SwapLimit": True,
            "CpuCfsPeriod": True, "CpuCfsQuota": True, "PidsLimit": True}
    answers = {"version": {"Client": {"Version": "28.0.1", "ApiVersion": "1.48"}, "Server": {"Version": "28.0.1"}}, "info": dict(info, **said)}
    script = "#!/bin/sh\ncase $1 in\n" + "".join("%s) echo '%s';;\n" % (word, json.dumps(text)) for word, text in answers.items())
    script += "image) %s;;\nesac\n" % ("echo '%s'" % image if image else "echo 'Error: No such image: x' >&2; exit 1")
    return write(home.root + "/bin/docker", script, 0o755)


def podman_stand_in(home, rootless, runc, runroot):
    """The same for podman: what it says of its runc and of its run directory."""
    version = {"Client": {"APIVersion": "4.3.1", "Version": "4.3.1"}}
    info = {"host": {"kernel": os.uname().release, "security": {"rootless": rootless}, "ociRuntime": {"name": "runc", "version": "runc version %s\ncommit: 1" % runc}},
            "store": {"runRoot": runroot}}
    script = "#!/bin/sh\ncase $1 in\nversion) cat <<'END'\n%s\nEND\n;;\ninfo) cat <<'END'\n%s\nEND\n;;\nimage) echo 'Error: x: image not known' >&2; exit 125;;\nesac\n"
    return write(home.root + "/bin/podman", script % (json.dumps(version), json.dumps(info)), 0o755)


@promise("CTR-02 CTR-10 CTR-11 LIM-01", "kind docker: runtime, limits, image, extra CA, and what leads out")
def _(t):
    home = Home()
    network, image = {"runtime": {"allow": ["a.example"]}}, json.dumps({"Id": "sha256:" + "0" * 64, "Architecture": "amd64"})

    def ask(said={}, image=image, settings={}, env={}, **sandbox):
        home.configure("repos:\n  - " + json.dumps({"path": home.repo, "sandbox": dict({"kind": "docker", "image": "x"}, **sandbox)}) + "\n")
        write(home.config_dir + "/sandbox.yaml", json.dumps(dict({"cli": stand_in(home, said, image)}, **settings)), 0o600)
        return doctor(home, env=env)
    result, found = ask(network=network)
    row = rows(found, "sandbox sample", "ok")
    t.works(result.code == 0 and row and "docker 28.0.1" in row[0]["detail"] and rows(found, "egress sample", "ok"), "a fit one", result)
    t.works(rows(found, "bubblewrap", "skip") and not rows(found, "ca") and not rows(found, "proxy sample"), "bubblewrap is not needed", found)
    result, found = ask(image="", network=network)
    t.works(result.code == 0 and "pulled at the first task" in rows(found, "sandbox sample", "warn")[0]["detail"], "an image that is not here", result)
    result, found = ask({"MemoryLimit": False}, network=network, resources={"memory": "64m"})
    t.works(result.code == 1 and "'memory'" in rows(found, "sandbox sample", "fail")[0]["detail"], "a limit that would be dropped", result)
    result, found = ask(unrestricted_network=True, env={"https_proxy": "http://127.0.0.1:3128"})
    t.works(result.code == 0 and rows(found, "egress sample", "warn") and "https_proxy" in rows(found, "proxy sample", "warn")[0]["detail"], "an open network", result)
    result, found = ask()
    t.works(result.code == 1 and "neither" in rows(found, "egress sample", "fail")[0]["detail"], "neither", result)
    result, found = ask(network=network, settings={"relay_image": "y"}, env={"SSL_CERT_FILE": home.repo})
    t.works(result.code == 0 and "not needed" in rows(found, "relay_image", "skip")[0]["detail"], "a relay image", result)
    t.works("SSL_CERT_FILE is ignored" in rows(found, "ca", "warn")[0]["detail"], "a CA of the environment's", found)
    result, found = ask(network=network, settings={"ca_bundle": home.repo + "/absent.pem"})
    t.works(result.code == 1 and "sandbox.yaml:1:" in rows(found, "ca", "fail")[0]["detail"], "a CA that was asked for", result)
    result, found = ask(network=network, settings={"selinux": "off"})
    t.works(result.code == 1 and rows(found, "sandbox.yaml", "fail") and rows(found, "sandbox sample", "skip"), "a broken sandbox.yaml", result)
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": "/nowhere/docker"}), 0o600)
    result, found = doctor(home)
    t.works(result.code == 1 and "/nowhere/docker" in rows(found, "sandbox sample", "fail")[0]["detail"], "no runtime", result)


@promise("CTR-03", "a podman whose runc follows an image's link on the host, or whose run directory is too long, is warned of, with the fix")
def _(t):
    home = Home()
    home.configure("repos:\n  - " + json.dumps({"path": home.repo, "sandbox": {"kind": "docker", "image": "x", "network": {"runtime": {"allow": []}}}}) + "\n")
    short, long = "/run/" + "x" * 45, "/run/" + "x" * 46
    for rootless, runc, runroot, warned in ((False, "1.1.5+ds1", short, ["runc"]), (True, "1.1.5+ds1", short, []), (False, "1.2.0", short, []),
                                            (True, "1.2.0", long, ["runroot"]), (False, "1.1.12", long, ["runc", "runroot"])):
        write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": podman_stand_in(home, rootless, runc, runroot)}), 0o600)
        result, found = doctor(home)
        seen = [r["name"] for r in found if r["name"] in ("runc", "runroot") and r["verdict"] == "warn" and r["fix"]]
        t.works(result.code == 0 and seen == warned, "%s, runc %s, %d characters" % (rootless, runc, len(runroot)), seen, result)


@wall("CFG-11 CFG-12 CFG-13", "what is missing on the host fails its row; the other rows are still asked")
def _(t):
    home = Home()
    for env, name, word in (({"KRAFT_BWRAP": "/nonexistent/bwrap"}, "bubblewrap", "bwrap"),
                            ({"KRAFT_BWRAP": home.wrapper(version="bubblewrap 0.4.1")}, "bubblewrap", "0.4.1"),
                            ({"KRAFT_GUEST_DIR": "/nonexistent"}, "guest program", "guest"),
                            ({"KRAFT_EGRESS": "/nonexistent"}, "egress program", "KRAFT_EGRESS")):
        result, found = doctor(home, env=env)
        failed = rows(found, name, "fail")
        t.attack(result.code == 1 and failed and word in failed[0]["detail"], name, result)
        t.works(rows(found, "repos.yaml", "ok"), "the configuration is still looked at")
    nested = [BWRAP, "--unshare-user", "--disable-userns", "--dev-bind", "/", "/"]
    result, found = doctor(home, before=nested)
    t.attack(result.code == 1 and rows(found, "sandbox", "fail") and rows(found, "inode caps", "warn"), "no user namespaces", result)
    os.chmod(home.config_dir, 0o777)
    result, found = doctor(home)
    t.attack(result.code == 1 and "written by others" in rows(found, "directories", "fail")[0]["detail"], "an open directory", result)
    os.chmod(home.config_dir, 0o700)
    t.control(doctor(home)[0].code == 0, "with all of it in place it passes")


if __name__ == "__main__":
    main()
