#!/usr/bin/env python3
"""kraft admin install-service: a unit for this very program, nobody's file lost; and a server that says when it is ready."""
import contextlib
import shutil
import socket

from servelive import *


def service(home, *words, **more):
    return home.kraft("admin", "install-service", *words, **more)


def environment(pid):
    """Of a process that anybody may look into: one that answers a client is closed."""
    with contextlib.suppress(OSError):
        return read("/proc/%d/environ" % pid)
    return ""


def tells(home, name):
    """The words that come to NOTIFY_SOCKET, and the environments of all that the server started."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind("\0" + name[1:] if name[0] == "@" else name)
        s.settimeout(20)
        process = home.kraft("admin", "start", "--port", "0", popen=True, env={"NOTIFY_SOCKET": name})
        try:
            word = s.recv(4096)
            id = home.kraft("item", "create", "a title", "--", "sh", "-c", "sleep 30").out.split()[0]
            home.kraft("item", "start", id, "--detach")
            hosts = wait_for(lambda: [e for e in map(environment, children(process.pid)) if "KRAFT_HOME=" in e], 20)
            if not hosts:
                raise Failed("nothing runs: %r" % home.kraft("view", "list"))
            found = [e for e in hosts if "NOTIFY_SOCKET" in e]
            s.settimeout(0.5)
            with contextlib.suppress(socket.timeout):
                word += s.recv(4096)
            return word, found
        finally:
            home.kraft("admin", "stop", "--sessions")
            process.wait(20)
            process.stdout.close()
            process.stderr.close()


@promise("OS-LIM-01", "install-service writes a unit for this program and PATH, without a secret, and only its own is replaced or removed")
def _(t):
    home = Home()
    file = home.home + "/.config/systemd/user/kraft.service"
    env = {"PATH": '/usr/bin:/bin:/o d/"b\\%n$x', "CLAUDE_CODE_OAUTH_TOKEN": "secret-token", "ANTHROPIC_API_KEY": "secret-key", "XDG_CONFIG_HOME": None}
    shown = service(home, "--print", env=env)
    t.works(shown.code == 0 and not os.path.exists(file), "--print writes nothing", shown)
    wrote = service(home, env=env)
    text = read(file)
    t.works(wrote.code == 0 and text == shown.out and os.stat(file).st_mode & 0o777 == 0o600 and "systemctl --user" in wrote.out, "written, for this user alone, with the next step", wrote)
    t.works('ExecStart="%s" admin start\n' % os.path.realpath(KRAFT) in text and "Type=notify\n" in text and 'Environment="PATH=/usr/bin:/bin:/o d/\\"b\\\\%%n$x"\n' in text
            and 'Environment="KRAFT_HOME=' in text, "of this program, PATH and home", text)
    t.works("secret" not in text, "no secret", text)
    again = service(home, env=env)
    t.works(again.code == 0 and "as it would be" in again.out, "again, nothing to do", again)
    t.works(service(home, env=dict(env, PATH="/bin")).out.startswith("replaced"), "its own is replaced")
    if shutil.which("systemd-analyze", path="/usr/bin:/bin"):
        service(home)
        checked = home.host("systemd-analyze", "verify", "--user", file, env={"XDG_RUNTIME_DIR": home.root})
        t.works(not [line for line in checked.err.splitlines() if "kraft.service" in line], "systemd takes it", checked)
    t.works(service(home, "--remove").code == 0 and not os.path.exists(file), "removed")
    t.works(service(home, "--remove").code == 0, "and gone is gone")
    for make in (lambda: write(file, "[Service]\nExecStart=/bin/mine\n"), lambda: os.symlink("/etc/hostname", file)):
        make()
        before = os.readlink(file) if os.path.islink(file) else read(file)
        for words in ((), ("--remove",)):
            result = service(home, *words)
            t.works(result.code == 5 and "not of this command's making" in result.err and (os.readlink(file) if os.path.islink(file) else read(file)) == before, "somebody's own stays", result)
        os.unlink(file)
    t.works(service(home, "--print", "--remove").code == 2 and service(home, "--print", env={"PATH": "/bin:\n[x]"}).code != 0, "what cannot be is refused")


@wall("OS-LIM-01", "doctor names a login that the service lacks; --fix writes it for this user alone, and shows it to nobody")
def _(t):
    home = Home()
    env = {"ANTHROPIC_API_KEY": "sk-secret-key", "XDG_CONFIG_HOME": None}
    def rows(**more):
        found = json.loads(home.kraft("admin", "doctor", "--json", env=dict(env, **more)).out)["rows"]
        return [r for r in found if r["id"] == "service"]
    t.works(rows() == [], "without a service there is no row")
    service(home, env=env)
    found = rows()
    t.works(len(found) == 1 and found[0]["verdict"] == "warn" and "ANTHROPIC_API_KEY" in found[0]["detail"], "it lacks one", found)
    fixed = home.kraft("admin", "doctor", "--fix", "--yes", env=env)
    file = home.config_dir + "/service.env"
    t.control(read(file) == "ANTHROPIC_API_KEY=sk-secret-key\n", "now it has it")
    t.attack(os.stat(file).st_mode & 0o777 == 0o600 and "sk-secret" not in fixed.out + fixed.err and "sk-secret" not in json.dumps(found), "for this user alone, and shown nowhere", fixed)
    t.works(rows()[0]["verdict"] == "ok", "and the row is well", rows())
    os.chmod(file, 0o644)
    t.attack(rows()[0]["verdict"] == "fail", "one that others may read is no file for it")
    t.works(home.kraft("admin", "doctor", "--fix", "--yes", env=env).code == 0 and os.stat(file).st_mode & 0o777 == 0o600, "which --fix mends")
    os.unlink(file)
    other = write(home.home + "/other", "mine\n", 0o600)
    os.symlink(other, file)
    result = home.kraft("admin", "doctor", "--fix", "--yes", env=env)
    t.attack(read(other) == "mine\n", "nothing is written through a link", result)


@promise("OS-LIM-01", "a server that a service manager waits for says once that it listens, and nobody else can")
def _(t):
    for name in ("/tmp/kraft-notify-%d" % os.getpid(), "@kraft-notify-%d" % os.getpid()):
        home = Home()
        word, found = tells(home, name)
        t.works(word == b"READY=1" and found == [], "by " + name, word, found)
        with contextlib.suppress(OSError):
            os.unlink(name)
    home = Home()
    process = home.kraft("admin", "start", "--port", "0", popen=True, env={"NOTIFY_SOCKET": "/nonexistent/socket"})
    t.works(wait_for(lambda: home.kraft("admin", "health").code == 0, 20), "one that nobody reads does not keep it from its work")
    home.kraft("admin", "stop")
    process.communicate(timeout=20)


if __name__ == "__main__":
    main()
