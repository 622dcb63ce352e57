#!/usr/bin/env python3
"""notify.yaml: a person who is not looking is told, by a command and by a webhook; what goes wrong in it stops nothing."""
# kraft-test: timeout 300
import http.server
import socket
import threading

from gitlive import *

GATE = {"id": "review", "kind": "gate", "message": "look"}


def chain_of(command, *more):
    return [{"id": "work", "kind": "exec", "tasks": [{"id": "it", "kind": "subprocess", "command": command}]}, *more]


class Server:
    """Keeps what is posted to it, and answers with `status` after `wait` seconds."""

    def __init__(self, status=200, wait=0.0):
        self.got = got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.path, self.headers["Content-Type"], json.loads(body)))
                time.sleep(wait)
                try:
                    self.send_response(status)
                    self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # nobody waits for it any more

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]


class Desk(Project):
    """A project whose person is told by a script that keeps what it is given."""

    SCRIPT = ('#!/bin/sh\nd=$(mktemp -d "%s/told/.XXXXXX") && cat >$d/in && env >$d/env && pwd >$d/pwd && printf "%%s\\n" "$@" >$d/words &&'
              ' echo printed && mv $d "$(echo $d | sed s,/told/.,/told/,)"\n')

    def __init__(self, **entry):
        super().__init__(**entry)
        os.mkdir(self.root + "/told")
        self.script = self.root + "/tell"
        write(self.script, self.SCRIPT % self.root, 0o755)

    def notify(self, **keys):
        write(self.config_dir + "/notify.yaml", json.dumps(keys))

    def told(self):
        """Each message, with the environment, the place and the words that came with it."""
        found = []
        for name in sorted(os.listdir(self.root + "/told")):
            if name.startswith("."):
                continue
            there = self.root + "/told/" + name
            env = dict(line.split("=", 1) for line in read(there + "/env").splitlines() if "=" in line)
            found.append((json.loads(read(there + "/in")), env, read(there + "/pwd").strip(), read(there + "/words").splitlines()))
        return found

    def forget(self):
        for name in os.listdir(self.root + "/told"):
            shutil.rmtree(self.root + "/told/" + name)

    def create(self, title, nodes, *options):
        write(self.config_dir + "/chains/c.yaml", json.dumps({"id": "c", "nodes": nodes}))
        result = self.kraft("item", "create", title, "--chain", "c", *options)
        if result.code != 0:
            raise Failed("it is not filed: %r" % result)
        return result.out.split()[0]

    def show(self, item):
        return json.loads(self.kraft("view", "show", "--json", item).out)

    def events_of(self, item):
        lines = self.kraft("view", "events", "--json", "--item", item).out.splitlines()
        return [(e["type"], e["data"]) for e in map(json.loads, lines) if e["type"].startswith("notify_")]


@promise("ITM-03", "a command is told of a gate, a stop, a question and, when it is asked for, of the end: the item as JSON, in words of no shell")
def _(t):
    home = Desk()
    home.notify(command=[home.script, "$HOME `id`", "", "*"])
    gate = home.create("Look at 'this' $(touch x)", chain_of("true", GATE))
    started = home.kraft("item", "start", gate)
    t.works(started.code == 0 and wait_for(lambda: home.events_of(gate)), "it waits, and that is known", started)
    told = home.told()
    t.works(len(told) == 1, "told once", told)
    message, env, where, words = told[0]
    shown = home.show(gate)
    t.works(message["event"] == "gate" and message["pending_gate"] == "review" and message["display_status"] == "needs you", "of a gate", message)
    t.works(dict(message, event=0) == dict(shown, event=0), "with all that view show --json has", message, shown)
    t.works(env["KRAFT_ITEM"] == gate and env["KRAFT_ITEM_STATUS"] == "needs_human" and env["KRAFT_ITEM_TITLE"] == "Look at 'this' $(touch x)",
            "by its environment", env)
    t.works(env["HOME"] == home.home and where == os.path.realpath(home.home), "a person's own, at home", env, where)
    t.works(words == ["$HOME `id`", "", "*"], "no shell read the words", words)
    t.works(home.events_of(gate) == [("notify_sent", {"event": "gate", "by": "command"})], "the event", home.events_of(gate))
    log = home.run_dir + "/worktrees/%s.host.log" % gate
    t.works(read(log) == "printed\n" and "printed" not in started.out + started.err, "its output is in the host's log", read(log), started)
    home.forget()
    result = "sh -c 'echo \"$1\" >\"$KRAFT_RESULT_PATH\"' sh '%s'"
    cases = {
        "it fails": ("sh -c 'exit 3'", "failed", "exit code 3"),
        "a question": (result % '{"status":"needs_context","question":"\\u001b[2J$(id) which?"}', "question", "\x1b[2J$(id) which?"),
    }
    for title, (command, stop, reason) in cases.items():
        item = home.create(title, chain_of(command, GATE))
        home.kraft("item", "start", item, "--detach")
        t.works(wait_for(lambda: home.events_of(item), 20), title + ": told, from the background", home.show(item))
        message, env, _, words = home.told()[0]
        t.works(message["event"] == "stop" and message["stop"] == stop and reason in message["reason"], title + ": why", message)
        t.works(not [v for k, v in env.items() if "which" in v] and words[0] == "$HOME `id`", title + ": a worker's words are data only", env, words)
        home.forget()
    approved = home.kraft("item", "approve", gate)
    t.works(approved.code == 0 and wait_for(lambda: home.show(gate)["status"] == "completed"), "an item that ends", approved)
    time.sleep(0.5)
    t.works(not home.told(), "is not told where nobody asked for it", home.told())
    home.notify(command=[home.script], on=["complete"])
    done = home.create("to its end", chain_of("true"))
    home.kraft("item", "start", done)
    t.works(wait_for(lambda: home.told()) and home.told()[0][0]["event"] == "complete" and home.told()[0][1]["KRAFT_ITEM_STATUS"] == "completed",
            "and is where somebody did", home.told())
    home.forget()
    other = home.create("a gate", chain_of("true", GATE))
    home.kraft("item", "start", other)
    time.sleep(0.5)
    t.works(not home.told() and not home.events_of(other), "and a gate is not", home.told())


@promise("ITM-03", "a webhook is posted the item by curl, with the URL on no command line and in no event")
def _(t):
    server, home = Server(), Desk()
    home.notify(webhook=server.url + "/hook?token=se%20cret[1-3]{a,b}", on=["gate", "complete"])
    write(home.home + "/.curlrc", "output = %s/curlrc-was-read\n" % home.root)
    item = home.create("post \\ \"me\" \u00e4", chain_of("true", GATE))
    started = home.kraft("item", "start", item)
    t.works(wait_for(lambda: home.events_of(item)), "posted", started)
    t.works(home.events_of(item) == [("notify_sent", {"event": "gate", "by": "webhook"})], "the event", home.events_of(item))
    t.works(len(server.got) == 1, "once", server.got)
    path, kind, message = server.got[0]
    t.works(path == "/hook?token=se%20cret[1-3]{a,b}" and kind == "application/json", "as it is written", path, kind)
    t.works(message == dict(home.show(item), event="gate"), "the item", message)
    t.works(not os.path.exists(home.root + "/curlrc-was-read"), "without the person's curlrc")
    slow = Server(wait=3)
    home.notify(webhook=slow.url + "/s3cr3t")
    item = home.create("seen", chain_of("true", GATE))
    home.kraft("item", "start", item)
    t.works(wait_for(lambda: slow.got), "it is under way")
    lines = host_command_lines()
    t.works(any(line.startswith(b"curl\0") for line in lines), "curl does it", [l for l in lines if b"curl" in l])
    t.works(not [line for line in lines if b"s3cr3t" in line], "and nobody reads the URL from its command line")
    approved = home.kraft("item", "approve", item)
    t.works(approved.code == 0, "it holds no lock meanwhile", approved)


def host_command_lines():
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    found.append(f.read())
            except OSError:
                pass
    return found


@promise("ITM-06", "what fails in telling is an event, and neither delays nor stops an item")
def _(t):
    home, here = Desk(), mark()
    refused = socket.socket()
    refused.bind(("127.0.0.1", 0))  # and does not listen
    url = "http://127.0.0.1:%d/s3cr3t" % refused.getsockname()[1]
    broken, moved = Server(status=500), Server(status=302)
    shutil.copy2(PROBE, home.root + "/probe")
    cases = {
        "exit 3": (dict(command=["/bin/sh", "-c", "exit 3"]), "command", "exit code 3"),
        "not there": (dict(command=["/no/such/s3cr3t"]), "command", "could not be started"),
        "not found": (dict(command=["no-such-s3cr3t"]), "command", "not found"),
        "killed": (dict(command=["/bin/sh", "-c", "kill -9 $$"]), "command", "signal 9"),
        "nobody there": (dict(webhook=url), "webhook", "nobody answers"),
        "an error": (dict(webhook=broken.url + "/s3cr3t"), "webhook", "HTTP error"),
    }
    for name, (keys, by, reason) in cases.items():
        home.notify(**keys)
        item = home.create(name, chain_of("true", GATE))
        started = home.kraft("item", "start", item)
        t.works(started.code == 0 and home.show(item)["stop"] == "gate", name + ": the item waits", started)
        t.works(wait_for(lambda: home.events_of(item)), name + ": an event", home.events_of(item))
        (kind, data), = home.events_of(item)
        t.works(kind == "notify_failed" and data["by"] == by and reason in data["reason"] and data["event"] == "gate", name + ": says why", data)
        t.works("s3cr3t" not in json.dumps(data), name + ": no word of the file", data)
    t.works(len(broken.got) == 1, "it is not tried again", broken.got)
    home.notify(webhook=moved.url)
    item = home.create("moved", chain_of("true", GATE))
    home.kraft("item", "start", item)
    t.works(wait_for(lambda: home.events_of(item)) and [g[0] for g in moved.got] == ["/"], "a redirect is not followed", moved.got)
    # one that takes for ever, and a webhook beside it
    server = Server()
    home.notify(command=["/bin/sh", "-c", "trap '' TERM; %s/probe sleep 60 %s & %s/probe sleep 60 %s" % (home.root, here, home.root, here)],
                webhook=server.url)
    item = home.create("for ever", chain_of("true", GATE))
    started = home.kraft("item", "start", item)
    t.works(started.code == 0 and started.seconds < 8, "the item does not wait for it", started)
    t.control(wait_for(lambda: marked(here)), "it runs")
    t.works(wait_for(lambda: len(home.events_of(item)) == 2, 20), "until its time is out", home.events_of(item))
    t.works(gone(here), "then all of it is ended")
    t.works(home.events_of(item) == [("notify_failed", {"event": "gate", "by": "command", "reason": "it had not ended after 10 s"}),
                                     ("notify_sent", {"event": "gate", "by": "webhook"})], "and both are known", home.events_of(item))
    # a file that does not load
    write(home.config_dir + "/notify.yaml", "webhook: https://h.example/s3cr3t\nwebhok: x\n")
    item = home.create("a typo", chain_of("true", GATE))
    started = home.kraft("item", "start", item)
    t.works(started.code == 0 and home.show(item)["stop"] == "gate", "a file that does not load stops nothing", started)
    t.works("notify.yaml:2:1 does not load" in started.err and len(started.err.splitlines()) == 1, "a line says so", started)
    (kind, data), = home.events_of(item)
    t.works(kind == "notify_failed" and "notify.yaml:2:1" in data["reason"] and data["by"] is None and "s3cr3t" not in json.dumps(data),
            "and an event", data)


@wall("ITM-03 RES-07", "nothing that a worker can write is run or loaded on the host to tell a person")
def _(t):
    home = Desk()
    evil = "#!/bin/sh\ntouch %s\n" % home.pwned
    home.notify(command=["tell"])
    os.mkdir(home.root + "/bin")
    shutil.copy2(home.script, home.root + "/bin/tell")
    item = home.create("plant", chain_of("sh -c 'mkdir -p bin; printf \"$1\" >tell; cp tell bin/tell; chmod +x tell bin/tell' sh '%s'" %
                                         evil.replace("\n", "\\n"), GATE))
    path = "%s/bin:%s:.::%s/bin:/usr/bin:/bin" % (home.tree(item), home.tree(item), home.root)
    started = home.kraft("item", "start", item, env={"PATH": path})
    t.control(os.access(home.tree(item) + "/bin/tell", os.X_OK), "it planted a program", started)
    t.works(wait_for(lambda: home.told()), "the person's own is found", home.events_of(item))
    home.forget()
    home.kraft("item", "retry", item, "--restart", "--no-start")
    again = home.create("once more", chain_of("true", GATE))
    home.kraft("item", "start", again, env={"PATH": path}, cwd=home.tree(item))
    t.works(wait_for(lambda: home.told()), "also when it is called in the worktree", home.events_of(again))
    t.attack(not os.path.exists(home.pwned), "the worker's did not run")
    t.attack(home.told()[0][2] == os.path.realpath(home.home), "and the person's stood at home", home.told())
    for program in (home.tree(item) + "/tell", home.run_dir + "/../run/x", "./tell", "bin/tell"):
        home.notify(command=[program])
        refused = home.kraft("admin", "notify", cwd=home.tree(item))
        t.attack(refused.code == 3 and "notify.yaml:1:14" in refused.err and not os.path.exists(home.pwned), program + " is refused", refused)
    subprocess.run([home.tree(item) + "/bin/tell"], check=True)
    t.control(os.path.exists(home.pwned), "run by hand it does what it is for")


@promise("ITM-03", "kraft admin notify sends a test and says what came of it")
def _(t):
    server, home = Server(), Desk()
    none = home.kraft("admin", "notify")
    t.works(none.code == 7 and "nobody is told" in none.err and "notify.yaml" in none.err, "where there is no file", none)
    home.notify(command=[home.script], webhook=server.url, on=[])
    sent = home.kraft("admin", "notify")
    t.works(sent.code == 0 and sent.lines == ["command  sent", "webhook  sent"] and "printed" in sent.err, "sent by both", sent)
    message = home.told()[0][0]
    t.works(message["event"] == "test" and message == server.got[0][2] and message["id"] == "test", "a test", message)
    item = home.create("x", chain_of("true", GATE))
    t.works(set(message) - {"event"} == set(home.show(item)), "of the shape that an item has", sorted(message))
    home.notify(command=["/bin/false"], webhook=server.url)
    failed = home.kraft("admin", "notify", "--json")
    t.works(failed.code == 1 and json.loads(failed.out) == {"ok": False, "ways": [
        {"by": "command", "ok": False, "reason": "it ended with exit code 1"}, {"by": "webhook", "ok": True, "reason": None}]}, "what failed", failed)
    write(home.config_dir + "/notify.yaml", "comand: [x]\n")
    wrong = home.kraft("admin", "notify")
    t.works(wrong.code == 3 and "notify.yaml:1:1" in wrong.err and "did you mean 'command'?" in wrong.err, "a mistake", wrong)


if __name__ == "__main__":
    main()
