#!/usr/bin/env python3
"""codex's hook is proven before it is relied on (CHN-08): a codex of our own that breaks it in one way after another, and
the real one, where it is installed (KRAFT_AGENTS), alone and behind a wrapper that takes words away from it."""
# kraft-test: timeout 900
from kraftlive import *

# The protocols of codex 0.171 as far as the proof speaks them. mode.py, beside it, may change any of it.
FAKE = r'''#!/usr/bin/python3 -IS
import json, os, re, socket, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
settings = [words[i + 1] for i, w in enumerate(words) if w == "-c"]
def setting(pattern):
    return next((m.group(1) for m in (re.search(pattern, s) for s in settings) if m), None)
command = setting(r'hooks\.PreToolUse=.*command="([^"]*)"')
trusted = setting(r'hooks\.state=.*trusted_hash="([^"]*)"')
model = setting(r'base_url="http://127\.0\.0\.1:(\d+)/')
KEY, HASH = "/<session-flags>/config.toml:pre_tool_use:0:0", "sha256:" + "0123456789abcdef" * 4
def look(what):
    seen = {"what": what, "cwd": os.getcwd(), "home": sorted(os.listdir(os.environ["HOME"])), "session": os.getsid(0),
            "links": sorted(n for _, n in socket.if_nameindex()), "words": words, "variable": os.environ.get("FAKE_MODE")}
    try:
        socket.create_connection(("127.0.0.1", 3128), 2)
        seen["proxy"] = "ok"
    except OSError as why:
        seen["proxy"] = str(why)
    sys.stderr.write("=>" + json.dumps(seen) + "\n")
def hook():
    return {"key": KEY, "eventName": "preToolUse", "handlerType": "command", "command": command, "async": False, "matcher": "*",
            "source": "sessionFlags", "enabled": True, "currentHash": HASH, "trustStatus": "trusted" if trusted == HASH else "untrusted"}
def hooks():
    return [hook()] if command else []
def errors():
    return []
def say(message):
    print(json.dumps(message), flush=True)
def serve():
    for line in sys.stdin:
        question = json.loads(line)
        if question["method"] == "initialize":
            say({"id": 1, "result": {"userAgent": "kraft/0.171.0 (x)"}})
        elif question["method"] == "hooks/list":
            say({"id": 2, "result": {"data": [{"cwd": question["params"]["cwds"][0], "hooks": hooks(), "warnings": [], "errors": errors()}]}})
def post(body):
    s = socket.create_connection(("127.0.0.1", int(model)))
    body = json.dumps(body).encode()
    s.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return b"".join(iter(lambda: s.recv(65536), b"")).decode()
def run(call):
    subprocess.run(json.loads(call["arguments"])["cmd"], shell=True)
    return "Process exited with code 0"
def ask_hook():
    answer = json.loads(subprocess.run(command, shell=True, input=b"{}", capture_output=True).stdout)["hookSpecificOutput"]
    return answer["permissionDecisionReason"] if answer["permissionDecision"] == "deny" else None
def use(call):
    reason = ask_hook() if command and trusted == HASH else None
    return "Command blocked by PreToolUse hook: " + reason if reason else run(call)
def work():
    answer = post({"input": sys.stdin.read()})
    call = next(json.loads(l[6:])["item"] for l in answer.splitlines() if l.startswith("data: ") and "function_call" in l)
    post({"input": [call, {"type": "function_call_output", "call_id": call["call_id"], "output": use(call)}]})
def start():
    look("launch")
    print("the agent ran, trusting", trusted == HASH)
exec(open(here + "/mode.py").read())
if "--version" in words:
    print("codex-cli 0.171.0")
elif words[0] == "app-server":
    look("list")
    serve()
elif model:
    look("call")
    work()
else:
    start()
'''

LOGIN = {"CODEX_API_KEY": "the-key"}


class Desk(Home):
    """A home with a program named codex on its PATH."""

    def __init__(self, mode="", program=FAKE, **entry):
        super().__init__(env_passthrough=["CODEX_API_KEY"], **entry)
        self.tools = self.home + "/tools"
        git(self.repo, "config", "user.name", "Per Son")
        git(self.repo, "config", "user.email", "person@site.example")
        self.program(mode, program)

    def program(self, mode="", program=FAKE):
        write(self.tools + "/mode.py", mode)
        write(self.tools + "/codex", program, 0o755)

    def agent(self, *options, **more):
        env = dict(LOGIN, PATH=self.tools + ":/usr/bin:/bin")
        return self.kraft("run", "--harness", "codex", *options, "hello", env=env, timeout=200, **more)

    def looks(self, purpose="gate"):
        """What the program saw in each short run of this purpose, in order."""
        found = []
        for folder in self.session_folders():
            facts = json.loads(read(folder + "/session.json"))
            if facts["purpose"] == purpose:
                said = re.findall(r"=>(\{.*\})", self.kraft("view", "logs", facts["id"]).out)
                found += [(facts["started_ms"], json.loads(line)) for line in said]
        return [look for _, look in sorted(found, key=lambda at: at[0])]


def refused(result, *words):
    return result.code == 125 and "the agent ran" not in result.out and all(w in result.err for w in words) and "hint: " in result.err


@promise("CHN-08", "an agent is asked and tried inside, without a way out and away from the worktree, once for each version")
def _(t):
    desk = Desk()
    result = desk.agent()
    t.works(result.code == 0 and "the agent ran, trusting True\n" in result.out, "it was launched with its hook trusted", result)
    looks = desk.looks()
    t.works([x["what"] for x in looks] == ["list", "list", "call", "call"], "two listings, two calls", looks)
    for look in looks:
        t.works(look["cwd"] == "/" and look["home"] == [] and look["links"] == ["lo"] and look["proxy"] == "[Errno 111] Connection refused", "alone", look)
    hooked = ["hooks.PreToolUse" in str(x["words"]) for x in looks]
    trusting = ["hooks.state" in str(x["words"]) for x in looks]
    t.works(hooked == [True, True, True, False] and trusting == [False, True, True, False], "with and without its hook", looks)
    launch = desk.looks("agent")[0]["words"]
    proof = looks[2]["words"]
    t.works([w for w in launch if w not in proof and not w.startswith("developer_instructions")] == [], "tried with the words of the launch", launch, proof)
    t.works(desk.agent().code == 0 and len(desk.looks()) == 4, "not a second time")
    desk.program("# another version\n")
    write(desk.tools + "/codex", FAKE + "# another version\n", 0o755)
    t.works(desk.agent().code == 0 and len(desk.looks()) == 8, "another program is asked anew")


BROKEN = {
    "lists it untrusted for ever": ("def hook(h=hook): return dict(h(), trustStatus='untrusted')", "codex 0.171.0 lists kraft's hook as 'untrusted'"),
    "says modified": ("def hook(h=hook): return dict(h(), trustStatus='modified')", "codex 0.171.0 lists kraft's hook as 'modified'"),
    "says trusted, and runs the call": ("use = run", "'codex' ran a call that its hook denied"),
    "asks the hook, and runs the call": ("def use(call): ask_hook(); return run(call)", "'codex' ran a call that its hook denied"),
    "asks the hook too late": ("def use(call): run(call); return 'blocked: ' + ask_hook()", "'codex' ran a call that its hook denied"),
    "runs the call, and dies": ("def use(call): run(call); os.kill(os.getpid(), 9)", "'codex' ran a call that its hook denied"),
    "says nothing of the call": ("def use(call): sys.exit(0)", "it cannot be told whether 'codex' heeds its hook"),
    "denies without asking": ("use = lambda call: 'Command blocked'", "it cannot be told whether 'codex' heeds its hook"),
    "never runs a call": ("def use(call): return 'Command blocked by PreToolUse hook: ' + (ask_hook() if command else 'no')", "the call that was denied does not run without it either"),
    "crashes when it works": ("work = lambda: os.kill(os.getpid(), 11)", "it cannot be told whether 'codex' heeds its hook"),
    "prints garbage": ("def serve(): os.write(1, os.urandom(1000) + b'\\n{\"id\":2}\\n{\"id\":2,\"result\":[]}\\n')", "codex does not say which hooks it has"),
    "prints too much": ("def serve(): print('x' * 400000)", "'codex app-server' does not say which hooks it has"),
    "prints nothing": ("serve = lambda: None", "'codex app-server' does not say which hooks it has"),
    "crashes when it is asked": ("serve = lambda: os.kill(os.getpid(), 11)", "'codex app-server' does not say which hooks it has"),
    "knows no hooks": ("hooks = lambda: []", "codex 0.171.0 does not list kraft's hook"),
    "has a second hook": ("def hooks(): return [hook(), dict(hook(), command='/x/allow', source='user', key='k')]", "codex 0.171.0 would ask a second hook before a tool: '/x/allow' of 'user'"),
    "has an error": ("errors = lambda: [{'path': '/x', 'message': 'bad file'}]", "codex 0.171.0 cannot say which hooks it has: 'bad file'"),
    "switched it off": ("def hook(h=hook): return dict(h(), enabled=False)", "codex 0.171.0 would not ask kraft's hook before every tool"),
    "asks it for some tools": ("def hook(h=hook): return dict(h(), matcher='Bash')", "codex 0.171.0 would not ask kraft's hook before every tool"),
    "changes its hash": ("def hook(h=hook): return dict(h(), currentHash='sha256:' + os.urandom(32).hex(), trustStatus='trusted')", "codex 0.171.0 names another hash of kraft's hook each time"),
    "has a hash with a quote": ("def hook(h=hook): return dict(h(), currentHash='x\"}}, y={z=\"')", "codex 0.171.0 gives kraft's hook a key or a hash that cannot be used"),
    "hangs when it is asked": ("import time\nserve = lambda: time.sleep(1000)", "'codex app-server' does not say which hooks it has"),
    "hangs when it works": ("import time\nwork = lambda: time.sleep(1000)", "it cannot be told whether 'codex' heeds its hook"),
}


@wall("CHN-08 CHAN-09", "no way of breaking its hook gets an agent launched: each is refused by its own sentence")
def _(t):
    hang = [name for name in BROKEN if name.startswith("hangs")]
    for name, (mode, sentence) in BROKEN.items():
        if name in hang[1:] and not ALL:
            continue  # three quarters of a minute each
        desk = Desk(mode)
        result = desk.agent()
        t.attack(refused(result, sentence), "one that " + name, result)
        t.attack(desk.looks("agent") == [], "nothing was launched", name)
    again = len(desk.looks())
    t.attack(refused(desk.agent()) and len(desk.looks()) > again, "a refusal is not kept: it is asked again")
    desk.program()
    t.works(desk.agent().code == 0, "the same program, mended, is launched")
    write(desk.tools + "/mode.py", BROKEN["says trusted, and runs the call"][0])  # what is known is of the program alone
    t.control("the agent ran" in desk.agent().out, "nothing but the proof stops a broken one")


@wall("CHN-08 CFG-03", "what a worker planted in the item's worktree and home has no part in the proof")
def _(t):
    desk = Desk()
    plant = "mkdir -p .codex $HOME/.codex && echo planted | tee .codex/config.toml $HOME/.codex/config.toml >/dev/null"
    desk.ok("sh", "-c", plant, options=["--keep"])
    # one whose hook works only where such a file says so
    desk.program("def planted(): return os.path.exists('.codex/config.toml') or os.path.exists(os.environ['HOME'] + '/.codex/config.toml')\n"
                 "u = use\ndef use(call): return u(call) if planted() else run(call)\n")
    result = desk.agent("--keep")
    t.attack(refused(result, "'codex' ran a call that its hook denied"), "planted files cannot make the proof come out well", result)
    t.works("planted" in desk.ok("sh", "-c", "cat .codex/config.toml $HOME/.codex/config.toml", options=["--keep"]).out, "they are there")
    desk.program()
    t.control(desk.agent("--keep").code == 0, "with a hook that works in any place it is launched")


# ---- the real one ----

AGENTS = os.environ.get("KRAFT_AGENTS")


def real_desk(t):
    """With the codex that ./check installs; its package has more than one program."""
    modules = os.path.join(AGENTS or "/nonexistent", "codex/node_modules")
    if not os.path.exists(modules + "/.bin/codex"):
        t.skip("no codex: KRAFT_AGENTS names no folder that has one")
    desk = Desk(expose=[modules])
    desk.real = modules + "/.bin/codex"
    return desk


def behind(desk, edit):
    """A wrapper of the real one; `edit` changes its words, a list of bytes."""
    desk.program(program="#!/usr/bin/python3 -IS\nimport os, sys\nwords = sys.argv[1:]\n%s\nos.execv('/usr/bin/env', ['env', 'node', %r] + words)\n"
                 % (edit, desk.real))


# A conversation that there is not: it ends at once, and asks no model.
NONE = ("--resume=01a22cf2-7ce4-7a62-bf03-3ecd62f07f1e",)


@promise("CHN-08", "the real codex: its hook is listed, trusted, and a denied call denied")
def _(t):
    desk = real_desk(t)
    behind(desk, "")
    started = time.time()
    result = desk.agent(*NONE)
    t.note("asked and tried in %.1f s" % (time.time() - started))
    known = json.loads(read(desk.run_dir + "/cache/agents/codex.json"))
    t.works(re.fullmatch("sha256:[0-9a-f]{64}", known["hash"]) and known["key"].endswith(":pre_tool_use:0:0"), "its hook is known", known, result)
    t.works("heeds" not in result.err.replace("asking 'codex' whether it heeds", ""), "no complaint of the proof", result)


@wall("CHN-08 CHAN-09", "the real codex without one of the words that its hook needs is not launched")
def _(t):
    drop = "def drop(name):\n    for i in [i for i, w in enumerate(words) if w.startswith(name)][::-1]: del words[i - 1:i + 1]\n"
    cases = {
        "the trust, when it works": (drop + "if words[0] == 'exec': drop('hooks.state')", "'codex' ran a call that its hook denied"),
        "the trust": (drop + "drop('hooks.state')", "lists kraft's hook as 'untrusted'"),
        "the hook": (drop + "drop('hooks.PreToolUse')", "does not list kraft's hook"),
        "the hook, when it works": (drop + "if words[0] == 'exec': drop('hooks.PreToolUse')", "'codex' ran a call that its hook denied"),
        "hooks at all": ("words += ['-c', 'features.hooks=false'] if words[0] != 'exec' else []", "does not list kraft's hook"),
        "hooks at all, when it works": ("if words[0] == 'exec': words = [w.replace('features.hooks=true', 'features.hooks=false') for w in words]", "'codex' ran a call that its hook denied"),
        "the only hook": ("words = [w.replace('hooks.PreToolUse=[', 'hooks.PreToolUse=[{matcher=\"*\",hooks=[{type=\"command\",command=\"/x/second\"}]},') for w in words]", "would ask a second hook before a tool: '/x/second' of 'sessionFlags'"),
        "the hash": ("words = [w.replace('trusted_hash=\"sha256:', 'trusted_hash=\"sha256:0') for w in words]", "lists kraft's hook as"),
        "the program of the hook, when it works": ("if words[0] == 'exec': words = [w.replace('/opt/kraft/bin/kraft', '/opt/kraft/bin/krafty') for w in words]", "'codex' ran a call that its hook denied"),
    }
    desk = real_desk(t)
    for name, (edit, sentence) in list(cases.items())[::1 if ALL else 2]:
        behind(desk, edit)
        result = desk.agent(*NONE)
        t.attack(refused(result, sentence), "without " + name, result)
        t.attack(not os.path.exists(desk.run_dir + "/cache/agents/codex.json") or "hash" not in read(desk.run_dir + "/cache/agents/codex.json"), "nothing of it is kept")
    behind(desk, "")
    t.works("whether 'codex' heeds its hook" not in desk.agent(*NONE).err, "the same wrapper without a change passes")
    t.control("hash" in read(desk.run_dir + "/cache/agents/codex.json"), "and is known then")


if __name__ == "__main__":
    main()
