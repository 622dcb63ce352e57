#!/usr/bin/env python3
"""Agents in place of a command (kraft run --harness): version, login, hosts, settings, conversation; with a CLI of our own that writes
down what it gets. The real ones are in test_claude.py and test_codex.py."""
# kraft-test: timeout 300
from egresslive import *
from worklive import *

# It answers its version as the file beside it says, and else does what its prompt says, a piece of Python, and tells what it saw.
FAKE = r"""#!/usr/bin/python3 -IS
import json, os, socket, sys
here = os.path.dirname(os.path.abspath(__file__))
def look():
    seen = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "home": sorted(os.listdir(os.environ["HOME"])),
            "session": os.getsid(0), "links": sorted(n for _, n in socket.if_nameindex())}
    for name, attempt in (("proxy", lambda: socket.create_connection(("127.0.0.1", 3128), 2)), ("tty", lambda: open("/dev/tty"))):
        try:
            attempt()
            seen[name] = "ok"
        except OSError as why:
            seen[name] = str(why)
    return seen
if "--version" in sys.argv:
    sys.stderr.write("=>" + json.dumps(look()) + "\n")
    exec(open(here + "/version.py").read())
    sys.exit(0)
seen = look()
seen["input"] = sys.stdin.read()
settings = next((w[11:] for w in sys.argv if w.startswith("--settings=")), None)
if settings:
    seen["settings"] = {n: open(os.path.join(settings, n)).read() for n in os.listdir(settings) if n != "s.sock"}
out = None
if seen["input"].startswith("#"):
    exec(seen["input"])
elif "#<" in seen["input"]:  # in an item's instruction
    exec(seen["input"].split("#<")[1].split("#>")[0])
seen["out"] = out
print("=>" + json.dumps(seen))
"""

HARNESS = {"id": "fake", "kind": "cli", "command": "fake", "min_version": "2.1.0",
           "capabilities": {"prompt": {"via": "stdin"}, "context": {"via": "prompt"}, "usage": {"reader": "claude"},
                            "model": {"args": ["--model", "{value}"]}, "resume": {"args": ["--resume", "{value}"]}},
           "network": {"requires": ["models.example"]}, "login": ["FAKE_TOKEN", "OTHER_TOKEN"], "env": {"FAKE_MODE": "on"}}

TOKEN = {"FAKE_TOKEN": "the-token"}


class Desk(Home):
    '''A home with the CLI on its PATH and a harness for it.'''

    def __init__(self, harness=None, runtime=("allowed.example",), deny=(), install=("install.example",), **entry):
        entry.setdefault("env_passthrough", ["FAKE_TOKEN"])
        super().__init__(sandbox={"network": {"runtime": {"allow": list(runtime), "deny": list(deny)},
                                              "install": {"allow": list(install), "deny": []}}}, **entry)
        self.tools = self.home + "/tools"
        git(self.repo, "config", "user.name", "Per Son")
        git(self.repo, "config", "user.email", "person@site.example")
        write(self.tools + "/fake", FAKE, 0o755)
        self.version("print('fake 2.3.4 (a CLI)')")
        self.harness(**(harness or {}))

    def version(self, script):
        write(self.tools + "/version.py", script)
        os.utime(self.tools + "/fake")  # the program is what is looked at

    def harness(self, id="fake", **keys):
        whole = {k: v for k, v in dict(HARNESS, id=id, **keys).items() if v is not None}
        write("%s/harnesses/%s.yaml" % (self.config_dir, id), json.dumps(whole))

    def agent(self, prompt="hello", *options, env=None, harness="fake", **more):
        env = dict(TOKEN, PATH=self.tools + ":/usr/bin:/bin", **(env or {}))
        return self.kraft("run", "--harness", harness, *options, prompt, env=env, **more)

    def sees(self, *words, **more):
        '''What a run saw; it has to work.'''
        result = self.agent(*words, **more)
        if result.code != 0 or not result.said_json:
            raise Failed("the agent should run: %r" % result)
        return result.said_json

    def asked(self):
        '''What each run that was asked its version saw.'''
        found = []
        for folder in self.session_folders():
            facts = json.loads(read(folder + "/session.json"))
            if facts["purpose"] == "version":
                said = self.kraft("view", "logs", facts["id"]).out
                found.append(json.loads(re.search(r"=>(\{.*\})", said).group(1)))
        return found


class DeskOffice(Desk, Office):
    """The same with chains of its own."""


def _said(self):
    lines = [line for line in self.lines if line.startswith("=>")]
    return json.loads(lines[-1][2:]) if lines else None


Result.said_json = property(_said)


@promise("OS-LCH-13 OS-ENV-01", "kraft run --harness: the prompt goes in, words and variables are the harness's, the CLI's status comes out")
def _(t):
    home = Desk()
    seen = home.sees("say hello", "--model", "big")
    t.works(seen["input"].strip().endswith("say hello") and seen["argv"] == ["--model", "big"], "what it gets", seen)
    t.works(seen["env"]["FAKE_MODE"] == "on" and seen["env"]["FAKE_TOKEN"] == "the-token", "its variables", seen["env"])
    t.works(seen["tty"] != "ok" and seen["proxy"] == "ok", "no terminal, and the way out", seen)
    own = Desk(env={"FAKE_MODE": "the repository's"})
    t.works(own.sees("x")["env"]["FAKE_MODE"] == "the repository's", "the repository's env wins")
    t.works(home.agent("# leave\nsys.exit(7)").code == 7, "its exit status")
    t.works(home.sees("-", stdin=b"from stdin")["input"].strip().endswith("from stdin"), "a prompt on stdin")
    big = "x" * (1 << 20)
    t.works(home.sees("-", stdin=big.encode())["input"].strip().endswith(big), "of a mebibyte")
    for words, stdin, what in ((["-"], b"", "empty"), (["-"], b"a\0b", "zero byte"), (["two", "words"], b"", "one word")):
        result = home.kraft("run", "--harness", "fake", *words, stdin=stdin)
        t.works(result.code == 2 and what in result.err, "refused: " + what, result)
    for words in (["--model", "big", "--", "true"], ["--resume", "--", "true"]):
        result = home.kraft("run", *words)
        t.works(result.code == 2 and "goes with --harness" in result.err, "an agent's option without one", result)
    result = home.kraft("run", "--harness", "fake", "--phase", "install", "x")
    t.works(result.code == 2 and "runtime phase" in result.err, "no agent installs", result)
    left = home.sees("# write\nopen('made', 'w').write('1')")
    t.works(left and "made" in os.listdir(left["cwd"]), "what it leaves stays")
    done = home.agent("# write\nopen('made', 'w').write('2')", "--commit=an agent's work", "--keep")
    t.works("an agent's work" in git(home.repo, "log", "--format=%s", "-1", "--branches=kraft"), "with --commit it is committed", done)


@wall("OS-LCH-13", "asked its version the CLI has no way out, an empty home, a session of its own, and no word of a worker's")
def _(t):
    home = Desk()
    home.ok("sh", "-c", "mkdir -p ~/.fake && echo planted >~/.fake/settings && echo print\\(\\'fake 9.9.9\\'\\) >version.py")
    seen = home.sees("x")
    asked = home.asked()
    t.works(len(asked) == 1 and asked[0]["argv"] == ["--version"], "it is asked once", asked)
    t.attack(asked[0]["proxy"] != "ok" and asked[0]["links"] == ["lo"], "no way out", asked)
    t.attack(asked[0]["home"] == [] and asked[0]["cwd"] == "/", "an empty home, away from the worktree", asked)
    t.attack(asked[0]["tty"] != "ok" and "HTTPS_PROXY" not in asked[0]["env"], "no terminal", asked)
    t.attack(not os.path.exists(asked[0]["env"]["HOME"]), "the home is thrown away")
    t.control(seen["proxy"] == "ok" and ".fake" in seen["home"], "its own session has both", seen)
    told = [r for r in json.loads(home.kraft("admin", "doctor", "--json", env={"PATH": home.tools + ":/usr/bin:/bin"}).out)["rows"] if r["id"] == "harness-fake"]
    t.works(len(told) == 1 and re.search(r", version \d", told[0]["detail"]) and home.asked() == asked, "doctor tells the version, and asks nothing", told)
    t.works(asked[0]["env"]["FAKE_MODE"] == "on", "with the harness's variables")


@promise("OS-LCH-13", "too old, unreadable, failing, silent and endless versions are refused with what is to be done; an answer is kept until the program changes")
def _(t):
    home = Desk()
    cache = home.run_dir + "/cache/agents/fake.json"
    for script, what in (("print('fake 2.0.99')", "is version 2.0.99, and its harness needs 2.1.0"), ("print('no number')", "told no version, but 'no number"),
                         ("pass", "told no version"), ("sys.exit(3)", "ended with 3"), ("print('y' * (1 << 22), flush=True); import time; time.sleep(1000)", "larger than 65536 bytes"),
                         *([("import time; time.sleep(1000)", "did not end within 60 s")] if ALL else [])):
        home.version(script)
        result = home.agent("# never\nopen('ran', 'w')")
        t.works(result.code == 125 and what in result.err and not result.out, "refused: " + what, result)
    t.works(not os.path.exists(home.worktree + "/ran"), "and nothing ran")
    home.version("print('fake 2.0.99')")
    count = len(home.session_folders())
    home.agent("x")
    home.agent("x")
    t.works(len(home.session_folders()) == count + 3, "an old one is asked once, and refused each time")
    home.version("print('warning: 1 thing\\nfake-cli 10.0\\n')")
    t.works(home.sees("x"), "10.0 is newer than 2.1.0, and behind other words")
    asked = len(home.session_folders())
    home.sees("x")
    t.works(len(home.session_folders()) == asked + 1, "a second launch asks nothing")
    t.works(json.loads(read(cache))["version"] == "10.0" and stat.S_IMODE(os.stat(cache).st_mode) == 0o600, "it is kept", read(cache))
    for text in ("", "{", "[]", '{"program": 1}', read(cache).replace("10.0", "99.0; rm"), "x" * (1 << 20)):
        write(cache, text)
        asked = len(home.session_folders())
        home.sees("x")
        t.works(len(home.session_folders()) == asked + 2 and json.loads(read(cache))["version"] == "10.0", "a broken one is asked again", text[:50])
    shutil.copy2(home.tools + "/fake", home.tools + "/fake.new")
    os.rename(home.tools + "/fake.new", home.tools + "/fake")
    asked = len(home.session_folders())
    home.sees("x")
    t.works(len(home.session_folders()) == asked + 2, "another file of the same time and size is another program")
    home.harness(min_version=None)
    home.version("sys.exit(9)")
    t.works(home.sees("x"), "without min_version nothing is asked")


@promise("OS-ENV-01 OS-ENV-02 OS-ENV-05", "without a login nothing runs: which variables, where they go, and a refusal in the session's log")
def _(t):
    home = Desk()
    write(home.home + "/.fake/login.json", "a login of the person's")
    result = home.agent("x", env={"FAKE_TOKEN": None})
    t.works(result.code == 125 and "FAKE_TOKEN or OTHER_TOKEN is not set" in result.err and "does not reach the sandbox" in result.err, "both are named",
            result)
    t.works("OTHER_TOKEN under env_passthrough" in result.err, "and where one has to be listed", result)
    session = max(home.session_folders(), key=lambda f: json.loads(read(f + "/session.json"))["started_ms"])
    log = home.kraft("view", "logs", os.path.basename(session)).out
    t.works("has no login in the sandbox" in log and json.loads(read(session + "/session.json"))["harness"] == "fake", "the session's log has it", log)
    t.works(home.agent("x", env={"FAKE_TOKEN": ""}).code == 125, "an empty one is none")
    result = home.agent("x", env={"FAKE_TOKEN": None, "OTHER_TOKEN": "t"})
    t.works(result.code == 125 and "OTHER_TOKEN is set here but does not cross" in result.err, "one that does not cross", result)
    service = home.agent("x", env={"FAKE_TOKEN": None, "INVOCATION_ID": "1"})
    t.works("systemctl --user edit" in service.err and "Environment=" in service.err, "for a service", service)
    t.works(Desk(env={"OTHER_TOKEN": "of the repository"}).agent("x", env={"FAKE_TOKEN": None}).code == 0, "one of the repository's env will do")
    t.works(Desk(harness={"login": []}).agent("x", env={"FAKE_TOKEN": None}).code == 0, "where none is needed none is asked for")


GET = "# get\nimport urllib.request\nout = {}\nfor host in %r:\n    try:\n        out[host] = urllib.request.urlopen('http://' + host + '/').status\n" \
      "    except Exception as why:\n        out[host] = getattr(why, 'code', str(why))"


@wall("POL-02 NET-15", "the harness's hosts are let out in its session alone: not for commands, not in install, and a deny still wins")
def _(t):
    hosts = ["allowed.example", "models.example", "sub.models.example", "denied.example"]
    for host in hosts:
        lab.serve(host)
    ask = GET % hosts
    home = Desk(deny=["denied.example"], harness={"network": {"requires": ["models.example", "denied.example"]}})
    out = home.sees(ask)["out"]
    t.works(out["models.example"] == 200 and out["allowed.example"] == 200, "they are let out", out)
    t.attack(out["denied.example"] == 403, "a deny wins", out)
    t.attack(out["sub.models.example"] == 403, "and no more than they name", out)
    plain = home.run("python3", "-c", ask + "\nimport json\nprint(json.dumps(out))")
    t.attack(json.loads(plain.out)["models.example"] == 403, "a command has them not", plain)
    install = home.run("python3", "-c", ask + "\nimport json\nprint(json.dumps(out))", options=["--phase", "install"])
    t.attack(json.loads(install.out)["models.example"] == 403, "nor the install phase", install)
    open_home = Desk(harness={"network": {"requires": ["models.example", "denied.example"]}})
    t.control(open_home.sees(ask)["out"]["denied.example"] == 200, "without the deny it is let out")


@promise("OS-ENV-01 OS-LCH-13", "unknown, switched off, not allowed: refused by name before anything runs; explain shows the launch and never a value")
def _(t):
    home = Desk()
    result = home.agent("x", harness="nosuch")
    t.works(result.code == 125 and "'nosuch'" in result.err and "fake" in result.err, "the ids that there are", result)
    write(home.config_dir + "/harnesses.yaml", json.dumps({"harnesses": {"fake": {"enabled": False}}}))
    result = home.agent("x")
    t.works(result.code == 125 and "fake" in result.err and not result.out, "switched off", result)
    os.unlink(home.config_dir + "/harnesses.yaml")
    t.works(home.agent("x").code == 0, "and on")
    write(home.config_dir + "/policy.yaml", json.dumps({"default": {"attempts": 3, "wall_clock_s": 3600}, "defaults": {"allowed_harnesses": ["other"]}}))
    result = home.agent("x")
    t.works(result.code == 125 and "allowed_harnesses" in result.err and not result.out, "not allowed", result)
    os.unlink(home.config_dir + "/policy.yaml")
    result = home.agent("x", "--effort", "high")
    t.works(result.code == 125 and "effort" in result.err, "an option that it lacks", result)
    env = dict(TOKEN, PATH=home.tools + ":/usr/bin:/bin")
    text = home.kraft("explain", "--harness", "fake", "PROMPT", env=env)
    t.works(text.code == 0 and re.search(r"allow +models.example +needed by fake", text.out) and "FAKE_MODE" in text.out, "explain", text)
    t.works("the-token" not in text.out and not re.search(r"FAKE_MODE +on", text.out), "no value", text)
    told = json.loads(home.kraft("explain", "--json", "--harness", "fake", env=env).out)
    t.works(told["network"]["needed"] == {"by": "fake", "hosts": ["models.example"]}, "for programs", told["network"])
    missing = home.kraft("explain", "--harness", "fake", env=dict(env, FAKE_TOKEN=None))
    t.works(missing.code == 4 and "allow" in missing.out and "FAKE_TOKEN" in missing.err, "what would be refused", missing)
    t.works(home.kraft("explain", "--harness", "nosuch").code == 7, "an unknown one")


@wall("CFG-03 OS-LCH-13", "an agent's settings are read-only inside, new for each launch, gone after it, and nothing that an earlier one left is used")
def _(t):
    rules = dict(HARNESS["capabilities"], deny_tools={"via": "rules", "args": ["--settings={settings}"]})
    home = Desk(harness={"permission_rules": "amp", "capabilities": rules})
    write(home.config_dir + "/policy.yaml", json.dumps({"default": {"attempts": 3, "wall_clock_s": 3600}, "defaults": {"deny_tools": ["WebFetch"]}}))
    spoil = "# spoil\nout = {}\nfor name in list(seen['settings']) + ['new']:\n    try:\n        open(os.path.join(settings, name), 'w').write('{}')\n" \
            "        out[name] = 'ok'\n    except OSError as why:\n        out[name] = why.strerror\n" \
            "for at in (os.environ['HOME'], '.'):\n    os.makedirs(at + '/.fake', exist_ok=True)\n    open(at + '/.fake/settings.json', 'w').write('{}')"
    first = home.sees(spoil)
    place = first["argv"][0][len("--settings="):]
    t.works(first["settings"] and "WebFetch" in json.dumps(first["settings"]), "they are there", first)
    t.attack(len(first["out"]) >= 2 and all("Read-only" in v for v in first["out"].values()), "and cannot be written", first["out"])
    t.attack(not os.path.exists(place), "gone after it", place)
    second = home.sees("x", "--keep")
    t.attack(second["settings"] == first["settings"] and second["argv"][0] != first["argv"][0], "the next has its own, the same", second)
    t.control(".fake" in second["home"], "although the first one's files are there", second["home"])


@wall("CFG-03 OS-LCH-13", "an agent's own directory is new for each session but for what its harness keeps, whatever a worker put in its place")
def _(t):
    home = Desk(harness={"config_dir": {"env": "FAKE_HOME", "keep": ["sessions"]}}, env={"FAKE_HOME": "/elsewhere"})
    look = "# look\nown = os.environ['FAKE_HOME']\nout = {'own': own, 'has': sorted(os.listdir(own)), 'kept': sorted(os.listdir(own + '/sessions'))}\n"
    first = home.sees(look + "open(own + '/config', 'w').write('x')\nopen(own + '/sessions/one', 'w').write('1')")["out"]
    t.works(first["has"] == ["sessions"] and first["kept"] == [] and first["own"].startswith(home.run_dir), "it is empty at first", first)
    t.attack(not os.path.exists(first["own"]), "gone after the session", first["own"])
    second = home.sees(look, "--keep")["out"]
    t.attack(second["has"] == ["sessions"] and second["own"] != first["own"], "what was put there is not there again", second)
    t.works(second["kept"] == ["one"], "what is kept is", second)
    other = home.home + "/other"
    write(other + "/secret", "s")
    kept = home.sandbox_home + "/.kraft-agents/fake/sessions"
    for plant in ("rm -rf %s; ln -s %s %s" % (kept, other, kept), "rm -rf %s; echo x >%s" % (kept, kept), "chmod 0 %s" % kept,
                  "cd; rm -rf .kraft-agents; ln -s %s .kraft-agents" % other):
        home.ok("sh", "-c", plant, options=["--keep"])
        t.attack(home.sees(look, "--keep")["out"]["kept"] == [], "planted: " + plant)
    t.attack(os.listdir(other) == ["secret"], "and what a link led to is as it was")
    t.control(os.path.isdir(kept) and not os.path.islink(home.sandbox_home + "/.kraft-agents"), "a plain directory stands there again")


@promise("OS-LCH-13", "on a terminal an agent's lines are shown in words, and its log has them as they came; elsewhere they are passed on")
def _(t):
    import pty
    home = Desk()
    say = "# say\nprint(json.dumps({'type': 'assistant', 'message': {'id': 'm', 'content': [{'type': 'text', 'text': 'hello there'}]}, 'session_id': 's'}))"
    plain = home.agent(say)
    t.works('"text": "hello there"' in plain.out, "as they came", plain)
    master, slave = pty.openpty()
    process = home.kraft("run", "--harness", "fake", say, env=dict(TOKEN, PATH=home.tools + ":/usr/bin:/bin"), popen=True, stdout=slave)
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):
        while True:
            more = os.read(master, 65536)
            if not more:
                break
            shown += more
    os.close(master)
    errors = process.stderr.read()
    t.works(process.wait(60) == 0 and b"hello there" in shown and b'"text"' not in shown, "in words", shown, errors)
    session = [f for f in home.session_folders() if json.loads(read(f + "/session.json"))["purpose"] == "agent"][-1]
    t.works('"text": "hello there"' in home.kraft("view", "logs", os.path.basename(session)).out, "its log")
    login = home.agent("# fail\nprint(json.dumps({'type': 'result', 'subtype': 'success', 'is_error': True, 'api_error_status': 401, 'result': "
                       "'Invalid API key', 'session_id': 's'}))\nsys.exit(1)")
    t.works(login.code == 1 and "its login was refused" in login.err, "what went wrong is told", login)


@promise("OS-LCH-13", "bash completes the ids of harnesses after --harness")
def _(t):
    home = Desk()
    script = home.kraft("completion", "bash").out
    ask = "kraft() { '%s' \"$@\"; }\n%s\nCOMP_WORDS=(kraft run --harness %%s); COMP_CWORD=3; _kraft; echo \"${COMPREPLY[@]}\"" % (KRAFT, script)
    t.works("fake" in home.host("bash", "-c", ask % "''").out.split() and home.host("bash", "-c", ask % "fa").out == "fake\n", "the ids that there are",
            home.host("bash", "-c", ask % "''"))


@promise("OS-LCH-13", "--resume goes on with the conversation that the item's last agent named, or the one that is given; an id is never an option")
def _(t):
    home = Desk()
    speak = "# speak\nprint(json.dumps({'type': 'system', 'subtype': 'init', 'session_id': '%s', 'model': 'm', 'tools': []}))"
    result = home.agent("x", "--resume")
    t.works(result.code == 125 and "has no conversation of 'fake'" in result.err, "there is none yet", result)
    home.sees(speak % "0a1b-2c")
    home.sees("says nothing of one")
    t.works(home.sees("x", "--resume")["argv"] == ["--resume", "0a1b-2c"], "the last one")
    t.works(home.sees("x", "--resume=other_1")["argv"] == ["--resume", "other_1"], "one that is named")
    for bad in ("--evil", "a b", "a/../b"):
        result = home.agent("x", "--resume=" + bad)
        t.works(result.code == 125 and "no conversation's id" in result.err and not result.out, "refused: " + bad[:20], result)
    home.sees(speak % "--evil")
    t.works(home.sees("x", "--resume")["argv"][1] in ("other_1", "0a1b-2c"), "a worker's word is no option")
    t.works(home.agent("x", "--resume", "--item", "another").code == 125, "another item has its own")


@promise("OS-ENV-05 OS-LCH-12 OS-LCH-13", "an item's agent is launched the same way: a missing login or an old version stops the item as a configuration error, with the words")
def _(t):
    home = DeskOffice(harness={"capabilities": dict(HARNESS["capabilities"], usage={"reader": "none"})})
    DO = "#<open('made', 'w').write('x'); open(os.environ['KRAFT_RESULT_PATH'], 'w').write('{\"status\": \"done\"}')#>"
    home.chain("one", node("work", {"id": "do", "kind": "agent", "harness": "fake", "prompt": DO}), GATE)
    for env, script, what in (({"FAKE_TOKEN": None}, "print('fake 3.0')", "FAKE_TOKEN or OTHER_TOKEN is not set"),
                              ({}, "print('fake 1.0')", "is version 1.0, and its harness needs 2.1.0")):
        home.version(script)
        home.extra_env = dict(TOKEN, PATH=home.tools + ":/usr/bin:/bin", **env)
        item = home.create("an agent", "--chain", "one")
        home.kraft("item", "start", item)
        t.works(home.settled(item)[2] == "config" and what in json.dumps(home.show(item)), "stopped: " + what, home.show(item))
        home.kraft("item", "cancel", item, "--reason", "x")
    home.version("print('fake 3.0')")
    home.extra_env = dict(TOKEN, PATH=home.tools + ":/usr/bin:/bin")
    item = home.create("an agent", "--chain", "one")
    home.kraft("item", "start", item)
    t.works(home.settled(item)[0] == "needs you" and git(home.repo, "show", "kraft/%s:made" % item) == "x", "and with both it does its work", home.show(item))


if __name__ == "__main__":
    main()
