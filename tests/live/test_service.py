#!/usr/bin/env python3
"""kraft admin install-service: a unit for this very program, nobody's file lost; and a server that says when it is ready."""
import contextlib
import shutil
import socket

from servelive import *


def service(home, *words, **more):
    return home.kraft("admin", "install-service", *words, **more)


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
            if not wait_for(lambda: "running" in home.kraft("view", "list").out and children(process.pid), 20):
                raise Failed("nothing runs: %r" % home.kraft("view", "list"))
            found = [p for p in children(process.pid) if b"NOTIFY_SOCKET" in read("/proc/%d/environ" % p).encode()]
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
