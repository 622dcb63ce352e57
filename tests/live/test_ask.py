#!/usr/bin/env python3
"""A worker asks whether it may use a tool; the policy answers, or a person (CHN-06, CHN-09, CHN-12, CHAN)."""
# kraft-test: timeout 600
from asklive import *


@promise("CHN-09 CHN-12", "a worker asks by MCP; a person allows, and it goes on; once, for this input, and it is on record")
def _(t):
    desk = Desk({"ask_tools": ["Bash"], "deny_tools": ["WebSearch"]})
    hello = desk.do("out = rpc('initialize', {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}})")
    t.works(hello["status"] == 200 and hello["message"]["result"]["protocolVersion"] == "2025-06-18", "initialize", hello)
    tools = desk.do("out = rpc('tools/list')")["message"]["result"]["tools"]
    t.works([x["name"] for x in tools] == ["permission_request"], "one tool", tools)
    free = desk.do("out = ask('Read', {'path': 'x'})")
    t.works(free["answer"] == {"behavior": "allow", "updatedInput": {"path": "x"}}, "what the policy allows", free)
    denied = desk.do("out = ask('WebSearch', {})")
    t.works(denied["answer"]["behavior"] == "deny" and "deny_tools" in denied["answer"]["message"], "what it denies", denied)
    n = desk.tell("out = ask('Bash', {'command': 'make \"x\" \\\\ \u00e9 \U0001f600'}, token='t-1')")
    one = desk.open_asks()[0]
    t.works(one["tool"] == "Bash" and json.loads(one["input"]) == {"command": 'make "x" \\ \u00e9 \U0001f600'} and one["state"] == "open", "a person sees tool and input", one)
    t.works(desk.status(desk.item)[0] == "asks you", "the item waits for its person", desk.status(desk.item))
    shown = desk.kraft("view", "show", desk.item).out
    t.works(one["id"] in shown and "make" in shown and [a["id"] for a in desk.show(desk.item)["asks"]] == [one["id"]], "shown", shown)
    t.works("asks you" in desk.kraft("view", "list").out and one["id"] in desk.kraft("view", "asks").out, "and listed")
    time.sleep(2.2)
    t.works(desk.open_asks()[0]["id"] == one["id"], "it waits")
    allowed = desk.kraft("item", "allow", one["id"][:5], "--note", "go")
    t.works(allowed.code == 0 and one["id"] in allowed.out, "allowed", allowed)
    answer = desk.answer(n)
    t.works(answer["answer"] == {"behavior": "allow", "updatedInput": {"command": 'make "x" \\ \u00e9 \U0001f600'}}, "it goes on, with what it asked", answer)
    t.works("text/event-stream" in answer["head"] and answer["progress"] and answer["progress"][0]["params"]["progressToken"] == "t-1" and one["id"] in answer["progress"][0]["params"]["message"], "meanwhile it was shown that a person is asked", answer)
    t.works([(a["id"], a["state"], a["note"]) for a in desk.asks(desk.item)] == [(one["id"], "used", "go")] and desk.asks() == [], "used", desk.asks(desk.item))
    again = desk.kraft("item", "allow", one["id"])
    t.works(again.code == 5 and "it is used" in again.err, "no second answer", again)
    t.works([(d["tool"], d["decision"], d.get("by")) for d in desk.decisions()] == [("Read", "allow", None), ("WebSearch", "deny", None), ("Bash", "allow", "human")], "three decisions", desk.decisions())
    t.works(all(d["node_id"] == "work" and d["session_id"] == one["session_id"] for d in desk.decisions()), "with node and session")
    asked = [e["data"] for e in desk.events_of(desk.item) if e["type"] == "permission_asked"]
    t.works([(a["ask_id"], a["tool"]) for a in asked] == [(one["id"], "Bash")] and "make" in asked[0]["input"], "and the ask", asked)
    second = desk.tell("out = ask('Bash', {'command': 'make \"x\" \\\\ \u00e9 \U0001f600'})")
    two = desk.open_asks()[0]
    t.works(two["id"] != one["id"], "the same input again is another ask", two)
    deny = desk.kraft("item", "deny", two["id"], "--note", "not \"twice\"\n\u2014 no")
    t.works(deny.code == 0, "denied", deny)
    answer = desk.answer(second)
    t.works(answer["answer"] == {"behavior": "deny", "message": "a person denies it: not \"twice\"\n\u2014 no"} and not answer["progress"], "and the note reaches it", answer)
    t.works(desk.enough() == ("needs you", "review", "gate") and desk.asks() == [], "it ends at its gate", desk.status(desk.item))


@promise("CHN-09", "two asks at once, answered in the other order; other calls of the session go on meanwhile")
def _(t):
    desk = Desk({"ask_tools": ["Bash", "Write"]})
    first, second = desk.tell("out = ask('Bash', {'n': 1}, id=7)"), desk.tell("out = ask('Write', {'n': 2}, id=7)")
    asks = {a["tool"]: a["id"] for a in desk.open_asks(2)}
    start = time.monotonic()
    calls = desk.do("out = [post('task=%d' % k, '', '/w/progress')['status'] for k in range(10)] + [ask('Read', {})['answer']['behavior']]")
    t.works(calls == [200] * 10 + ["allow"] and time.monotonic() - start < 5, "other calls", calls)
    desk.kraft("item", "allow", asks["Write"])
    t.works(desk.answer(second)["answer"] == {"behavior": "allow", "updatedInput": {"n": 2}}, "the second")
    desk.kraft("item", "deny", asks["Bash"])
    t.works(desk.answer(first)["answer"] == {"behavior": "deny", "message": "a person denies it"}, "the first")


@wall("CHAN-11 CHN-06", "how many asks wait is bounded; while as many wait as may, calls and other sessions are answered")
def _(t):
    desk, other = Desk({"ask_tools": ["Bash"]}), Desk({"ask_tools": ["Bash"]})
    many = [desk.tell("out = ask('Bash', {'n': %d})" % n) for n in range(8)]
    asks = desk.open_asks(8)
    more = desk.do("out = ask('Bash', {'n': 9})")
    t.attack(more["answer"]["behavior"] == "deny" and "8 things" in more["answer"]["message"], "the ninth is denied at once", more)
    start = time.monotonic()
    t.works(desk.do("out = post('', '', '/w/show')")["status"] == 200 and desk.do("out = ask('Read', {})")["answer"]["behavior"] == "allow" and time.monotonic() - start < 4, "its other calls")
    n = other.tell("out = ask('Bash', {})")
    theirs = other.open_asks()[0]
    other.kraft("item", "allow", theirs["id"])
    t.works(other.answer(n)["answer"]["behavior"] == "allow", "another session asks as before")
    limits = desk.do("out = [post('task=%d' % k, '', '/w/progress')['status'] for k in range(60)]")
    t.works(limits.count(200) == 60, "eight that are looked after take nothing from its twenty a second", limits)
    for ask in asks:
        desk.kraft("item", "deny", ask["id"])
    t.control([desk.answer(n)["answer"]["behavior"] for n in many] == ["deny"] * 8, "the eight were asks")


@wall("CHAN-11 CHN-12", "who leaves an ask has none: a client that goes, one that cancels, one that says more")
def _(t):
    desk = Desk({"ask_tools": ["Bash"]})
    gone = desk.tell("out = ask('Bash', {'n': 1}, after=1.5)['status']")
    one = desk.open_asks()[0]
    desk.answer(gone)
    t.attack(wait_for(lambda: desk.asks() == [], 5), "a client that goes", desk.asks())
    late = desk.kraft("item", "allow", one["id"])
    t.attack(late.code == 5 and "expired" in late.err, "nobody can allow it any more", late)
    n = desk.tell("out = ask('Bash', {'n': 2}, id='x-1')")
    desk.open_asks()
    done = desk.do("out = post({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 'x-1'}})")
    t.attack(done["status"] == 202 and wait_for(lambda: desk.asks() == [], 5) and "answer" not in desk.answer(n), "one that cancels", done, desk.asks())
    n = desk.tell("out = ask('Bash', {'n': 3}, id=3)")
    desk.open_asks()
    desk.do("out = post({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 4}})")
    time.sleep(1.5)
    t.works(len(desk.asks()) == 1, "another id's is not meant")
    desk.kraft("item", "allow", desk.asks()[0]["id"])
    t.control(desk.answer(n)["answer"]["behavior"] == "allow", "who waits gets it")
    reasons = [d["reason"] for d in desk.decisions() if d["decision"] == "deny"]
    t.attack(reasons == ["its worker waits no more"] * 2, "each is a denial on record", desk.decisions())


@wall("CHN-12 ITM-03", "an ask that nobody answers in time is denied; so is one whose session ends, by itself or by force")
def _(t):
    desk = Desk({"ask_tools": ["Bash"]})
    n = desk.tell("out = ask('Bash', {'n': 1})")
    one = desk.open_asks()[0]
    t.works(29 * 60 < (one["until_ms"] - one["ms"]) / 1000 <= 30 * 60, "half an hour", one)
    code = desk.host(PYTHON, "-ISc", "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=20)\ndb.execute('UPDATE asks SET until_ms = ms')\ndb.commit()", os.path.join(desk.run_dir, "orchestrator.db"))
    t.works(code.code == 0, "time passes", code)
    answer = desk.answer(n)
    t.attack(answer["answer"]["behavior"] == "deny" and "within 30 minutes" in answer["answer"]["message"], "out of time", answer)
    t.attack([(a["state"]) for a in desk.asks(desk.item)] == ["expired"] and desk.kraft("item", "allow", one["id"]).code == 5, "expired")
    n = desk.tell("out = ask('Bash', {'n': 2})")
    two = desk.open_asks()[0]
    write(desk.tree(desk.item) + "/enough", "")
    t.attack(desk.settled(desk.item)[0] == "needs you" and desk.asks() == [], "the worker ends", desk.asks())
    late = desk.kraft("item", "allow", two["id"])
    t.attack(late.code == 5 and "expired" in late.err, "too late", late)
    os.unlink(desk.tree(desk.item) + "/enough")
    os.unlink(desk.tree(desk.item) + "/ready")
    desk.kraft("item", "reject", desk.item, "--note", "once more", "--no-start")
    desk.begin()
    n = desk.tell("out = ask('Bash', {'n': 3})")
    three = desk.open_asks()[0]
    desk.kraft("item", "allow", three["id"])
    t.control(desk.answer(n)["answer"]["behavior"] == "allow", "one that is answered in time")
    n = desk.tell("out = ask('Bash', {'n': 4})")
    four = desk.open_asks()[0]
    pid = int(read("%s/worktrees/%s.host" % (desk.run_dir, desk.item)).split()[0])
    os.kill(pid, signal.SIGKILL)
    t.works(wait_for(lambda: desk.status(desk.item)[0] == "cut off", 20), "its host is killed", desk.status(desk.item))
    late = desk.kraft("item", "allow", four["id"])
    t.attack(late.code == 5 and ("has ended" in late.err or "expired" in late.err) and desk.asks() == [], "there is nobody to allow it to", late)
    os.unlink(desk.tree(desk.item) + "/ready")
    desk.begin()
    n = desk.tell("out = ask('Bash', {'n': 5})")
    five = desk.open_asks()[0]
    desk.kraft("item", "allow", five["id"])
    t.works(desk.answer(n)["answer"]["behavior"] == "allow", "the next host's session asks anew")
    ends = {d["ask_id"]: (d["decision"], d["reason"]) for d in desk.decisions() if "ask_id" in d}
    over = ("its session has ended", "its worker waits no more")  # whichever is seen first
    t.attack(all(ends[a["id"]][0] == "deny" and ends[a["id"]][1] in over for a in (two, four)) and len(ends) == 5, "and all is on record", ends)


@wall("CHN-12", "nobody inside answers: no verb, no session's caller; a person's words are the only way")
def _(t):
    desk = Desk({"ask_tools": ["Bash"]})
    n = desk.tell("out = ask('Bash', {'n': 1})")
    one = desk.open_asks()[0]
    for path in ("/w/allow", "/w/ask", "/w/ask_state", "/w/ask_close", "/w/answer", "/w/item-allow", "/api/asks/%s/allow" % one["id"], "/mcp/", "/mcp?x", "/mcp/allow"):
        answer = desk.do("out = post('ask=%s&id=%s' % (ask, ask), '', path)", path=path, ask=one["id"])
        t.attack(answer["status"] == 403, path, answer)
    tools = desk.do("out = [rpc('tools/call', {'name': n, 'arguments': {'ask': ask}})['message'] for n in ('allow', 'item_allow', 'permission_request')]", ask=one["id"])
    t.attack(all(m["error"]["code"] == -32602 for m in tools), "no tool", tools)
    shim = desk.do("p = subprocess.run(['/opt/kraft/bin/kraft', 'item', 'allow', ask], capture_output=True)\nout = [p.returncode, p.stderr.decode()]", ask=one["id"])
    t.attack(shim[0] == 2, "no verb of the worker's kraft", shim)
    session = desk.kraft("item", "allow", one["id"], env={"KRAFT_SESSION_ID": one["session_id"]})
    t.attack(session.code == 5 and "for a person" in session.err, "no session", session)
    t.works(desk.asks()[0]["state"] == "open", "it is open still")
    desk.kraft("item", "allow", one["id"])
    t.control(desk.answer(n)["answer"]["behavior"] == "allow", "a person's command answers it")


@wall("CHAN-02 CHAN-11 CHN-06", "forged sessions are not looked at; nothing of another session's asks is reached")
def _(t):
    desk, other = Desk({"ask_tools": ["Bash"]}), Desk({"ask_tools": ["Bash"]})
    theirs_n = other.tell("out = ask('Bash', {'secret': 'theirs'}, id=77)")
    theirs = other.open_asks()[0]
    for fields in ("Mcp-Session-Id: %s\\r\\n" % theirs["session_id"], "X-Kraft-Session-Id: %s\\r\\n" % theirs["session_id"], "Authorization: Bearer x\\r\\n", "Cookie: session=%s\\r\\n" % theirs["session_id"]):
        n = desk.tell("out = ask('Bash', {'n': 1}, fields='%s')" % fields)
        own = desk.open_asks()[0]
        t.attack(own["session_id"] != theirs["session_id"] and own["item"] == desk.item, "it is its own session's", own)
        desk.kraft("item", "allow", own["id"])
        t.works(desk.answer(n)["answer"]["behavior"] == "allow", "and is answered")
    desk.do("out = post({'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 77}})")
    time.sleep(1.5)
    t.attack(other.asks()[0]["state"] == "open", "another session's ask cannot be cancelled")
    t.attack("theirs" not in json.dumps(desk.do("out = post('', '', '/w/show')")), "nor seen")
    origin = desk.do("out = ask('Read', {}, fields='Origin: http://127.0.0.1:8765\\r\\n')")
    t.attack(origin["status"] == 403, "a browser's page is refused", origin)
    other.kraft("item", "allow", theirs["id"])
    t.control(other.answer(theirs_n)["answer"] == {"behavior": "allow", "updatedInput": {"secret": "theirs"}}, "whose it is gets it")


@wall("CHAN-06 CHAN-11", "batches, repeated ids, nested and huge bodies, bent JSON: refused, nothing stored, memory bounded")
def _(t):
    desk = Desk({"ask_tools": ["Bash"]})
    kinds = lambda: [e["type"] for e in desk.events_of(desk.item)]
    before = len(kinds())
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "permission_request", "arguments": {"tool_name": "Bash", "input": {}}}}
    wrong = desk.do(r"""
call = %s
text = json.dumps(call)
bodies = {
    'batch': json.dumps([call]), 'batch of many': json.dumps([call] * 1000), 'empty': '', 'empty batch': '[]', 'no json': 'task=1', 'half': text[:-1], 'two': text + text,
    'nested': '[' * 100000, 'nested whole': '[' * 100000 + ']' * 100000, 'nested objects': '{"a":' * 80000 + '1' + '}' * 80000,
    'nested input': text.replace('"input": {}', '"input": {"a":' + '[' * 100 + ']' * 100 + '}'), 'two ids': text.replace('"id": 1', '"id": 1, "id": 2'),
    'two inputs': text.replace('"input": {}', '"input": {}, "input": {"x": 1}'), 'two escaped': text.replace('"input": {}', '"input": {}, "inp\\u0075t": {"x": 1}'),
    'id null': text.replace('"id": 1', '"id": null'), 'id object': text.replace('"id": 1', '"id": {}'), 'long id': text.replace('"id": 1', '"id": "' + 'x' * 200 + '"'),
    'version': text.replace('2.0', '1.0'), 'nul': text.replace('Bash', 'Ba\x00sh'), 'surrogate': text.replace('Bash', '\\ud800'), 'no utf-8': text.encode().replace(b'Bash', b'\xff'),
    'overlong': text.encode().replace(b'Bash', b'\xc0\xaf'), 'control': text.replace('Bash', '\\u0007'), 'blank': text.replace('Bash', 'a b'), 'long tool': text.replace('Bash', 'x' * 200),
    'input list': text.replace('"input": {}', '"input": []'), 'no input': text.replace('"input"', '"imput"'), 'arguments': text.replace('{"tool_name"', '[{"tool_name"').replace('{}}}}', '{}}]}}'),
    'large input': text.replace('"input": {}', '"input": {"x": "' + 'y' * (300 << 10) + '"}'), 'large': text.replace('Bash', 'x' * (600 << 10)), '10 MB': text.replace('Bash', 'x' * 10000000), '10 MB blank': ' ' * 10000000 + text}
out = {}
for name, body in bodies.items():
    a = post(body)
    try: code = json.loads(a['body'])['error']['code']
    except ValueError: code = None
    out[name] = [a['status'], code]
""" % json.dumps(call).replace("null", "None"))
    want = {"batch": [400, -32600], "batch of many": [400, -32600], "empty batch": [400, -32600], "large": [413, None], "10 MB": [413, None], "10 MB blank": [413, None], "two ids": [400, -32600], "id null": [400, -32600],
            "id object": [400, -32600], "long id": [400, -32600], "version": [400, -32600]}
    params = ("two inputs", "two escaped", "control", "blank", "long tool", "input list", "no input", "arguments", "large input")
    for name, got in wrong.items():
        t.attack(got == want.get(name, [200, -32602] if name in params else [400, -32700]), name, got)
    t.attack(len(kinds()) == before and desk.asks(desk.item) == [], "nothing of it is stored", kinds()[before:])
    largest = int(re.search(r"VmHWM:\s+(\d+)", read("/proc/%d/status" % desk.egress())).group(1))
    t.attack(sanitized() or largest < 32 << 10, "memory, KiB", largest)
    other = desk.do(r"""
out = {'get': post('', method='GET')['status'], 'delete': post('', method='DELETE')['status'], 'put': post('', method='PUT')['status'], 'accept': post('{}', 'Accept: application/json\r\n')['status'],
       'unknown': rpc('resources/list')['message']['error']['code'], 'tool': rpc('tools/call', {'name': 'Bash', 'arguments': {}})['message']['error']['code'], 'version': rpc('ping', fields='MCP-Protocol-Version: 2023-01-01\r\n')['message']['error'],
       'version status': rpc('ping', fields='MCP-Protocol-Version: 2023-01-01\r\n')['status'], 'ping': rpc('ping')['message'], 'noted': post({'jsonrpc': '2.0', 'method': 'notifications/initialized'})['status'],
       'answer': post({'jsonrpc': '2.0', 'id': 1, 'result': {}})['status'], 'discover old': rpc('server/discover')['message']['error']['code'],
       'method': rpc('tools/list', fields='MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n'), 'no method': rpc('tools/list', fields='MCP-Protocol-Version: 2026-07-28\r\n')['message']['error']['code'],
       'modern': rpc('tools/list', fields='MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n')['message']['result'], 'initialize': rpc('initialize', {}, fields='MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: initialize\r\n')['status']}
""")
    t.works((other["get"], other["delete"], other["put"], other["accept"]) == (405, 405, 403, 406), "methods", other)
    t.works((other["unknown"], other["tool"], other["version"]["code"], other["version status"]) == (-32601, -32602, -32022, 400) and "2026-07-28" in other["version"]["data"]["supported"], "errors", other)
    t.works((other["ping"], other["noted"], other["answer"], other["discover old"]) == ({"jsonrpc": "2.0", "id": 1, "result": {}}, 202, 202, -32601), "the rest", other)
    t.works(other["method"]["status"] == 400 and other["method"]["message"]["error"]["code"] == -32020 and other["no method"] == -32020 and other["modern"]["resultType"] == "complete" and other["initialize"] == 404, "2026-07-28", other)
    n = desk.tell("out = ask('Bash', {'x': 'y\"' * (60 << 10)})")
    one = desk.open_asks()[0]
    desk.kraft("item", "allow", one["id"])
    t.control(desk.answer(n)["answer"] == {"behavior": "allow", "updatedInput": {"x": 'y"' * (60 << 10)}}, "a good one that is long comes back whole")
    kept = desk.asks(desk.item)[-1]
    events = desk.kraft("view", "events", "--json", "--type", "permission_asked").out
    t.attack(len(kept["input"]) <= 4096 and len(events) < 4000, "and only its beginning is kept", len(kept["input"]), len(events))


@promise("CHN-09", "the lists of all layers decide; a grant is one plain command; nobody is asked in kraft run")
def _(t):
    desk = Desk({"allowed_tools": ["Bash", "Read", "Write"], "ask_tools": ["Write"], "grants": ["git-push"]}, chain_policy={"allowed_tools": ["Read", "Write", "Edit"], "deny_tools": ["Glob"], "ask_tools": ["Edit"]})
    found = desk.do(r"""
branch = subprocess.run(['git', 'branch', '--show-current'], capture_output=True).stdout.decode().strip()
asked = {'read': ('Read', {}), 'bash': ('Bash', {'command': 'ls'}), 'edit': ('Edit', {}), 'glob': ('Glob', {}), 'push': ('Bash', {'command': 'git push origin ' + branch}),
         'push elsewhere': ('Bash', {'command': 'git push origin main'}), 'push and more': ('Bash', {'command': 'git push origin %s; ls' % branch}), 'commit': ('Bash', {'command': 'git commit -m x'})}
out = {k: ask(*v)['answer'] for k, v in asked.items()}""")
    got = {k: v["behavior"] for k, v in found.items()}
    t.works(got == {"read": "allow", "bash": "deny", "edit": "deny", "glob": "deny", "push": "allow", "push elsewhere": "deny", "push and more": "deny", "commit": "deny"}, "the task's policy", found)
    t.works([d.get("grant") for d in desk.decisions()] == [None] * 4 + ["git-push"] + [None] * 3, "the grant is on record", desk.decisions())
    write(desk.config_dir + "/policy.yaml", "default: {attempts: 3, wall_clock_s: 3600}\ndefaults: {deny_tools: [Read]}\n")
    t.works(desk.do("out = ask('Read', {})")["answer"]["behavior"] == "allow", "a later edit changes nothing for the item")
    desk.enough()
    run = desk.run("python3", "-ISc", "exec(open('agent.py').read().partition('def run')[0])\nprint(json.dumps([ask(t, {})['answer'] for t in ('Read', 'Bash', 'Write')]))")
    answers = json.loads(run.lines[-1]) if run.code == 0 else run
    t.works([a["behavior"] for a in answers] == ["deny", "allow", "allow"], "kraft run: policy.yaml and the repository", answers)
    desk.policy(defaults={"ask_tools": ["Bash"]})
    run = desk.run("python3", "-ISc", "exec(open('agent.py').read().partition('def run')[0])\nprint(json.dumps(ask('Bash', {})))")
    answer = json.loads(run.lines[-1])["answer"] if run.code == 0 else run
    t.works(answer["behavior"] == "deny" and "kraft run" in answer["message"] and desk.asks() == [], "nobody is asked, and it says why", answer)
    write(desk.config_dir + "/policy.yaml", "default: {attempts: 3}\n")
    run = desk.run("true")
    t.works(run.code == 125 and "policy.yaml:1:" in run.err, "a policy that does not load refuses the launch", run)


@promise("CHN-02 CHAN-09", "an agent's hook asks by the worker's kraft: its tools by their names in the policy, no opinion where there is no list, a person where the policy says so")
def _(t):
    hook = """
def hook(harness, tool, input, **more):
    p = subprocess.run(['/opt/kraft/bin/kraft', 'admin', 'permission-hook', harness], input=json.dumps(dict({'session_id': 'x', 'cwd': '/', 'tool_name': tool, 'tool_input': input}, **more)).encode(), capture_output=True, timeout=60)
    return [p.returncode, p.stdout.decode(), p.stderr.decode()]
"""
    desk = Desk({"deny_tools": ["Edit"], "ask_tools": ["Read"], "grants": ["git-commit"]})
    found = desk.do(hook + """
out = [hook('codex', 'shell', {'command': 'ls'}), hook('codex', 'apply_patch', {'command': '*** x'}), hook('codex', 'shell', {'command': 'git commit -m x'}), hook('cursor', 'Shell', {'command': 'git commit -m x'}), hook('cursor', 'Write', {}), hook('cursor', 'Grep', {}),
       hook('codex', 'a b', {}), hook('codex', 'Bash', []), hook('codex', 'Bash', {'x': 'y' * 300000})]""")
    t.works(all(f[0] == 0 and f[1].count("\n") == 1 for f in found), "one object each", found)
    said = [json.loads(f[1]) for f in found]
    codex = [(s.get("hookSpecificOutput") or {}).get("permissionDecision") for s in said]
    t.works(codex == [None, "deny", "allow", None, None, None, "deny", "deny", "deny"] and said[0] == {}, "codex", said)
    t.works("deny_tools" in said[1]["hookSpecificOutput"]["permissionDecisionReason"], "and why", said[1])
    t.works([s.get("permission") for s in said[3:6]] == ["allow", "deny", None] and said[5] == {}, "cursor", said)
    t.works([(d["tool"], d["decision"], d["harness"], d["cli_tool"], d.get("grant")) for d in desk.decisions()] == [("Write", "deny", "codex", "apply_patch", None), ("Bash", "allow", "codex", "shell", "git-commit"),
            ("Bash", "allow", "cursor", "Shell", "git-commit"), ("Write", "deny", "cursor", "Write", None)], "on record", desk.decisions())
    for word, want in (("allow", "allow"), ("deny", "deny")):
        n = desk.tell(hook + "out = hook('codex', 'Read', {'path': 'x'})")
        one = desk.open_asks()[0]
        time.sleep(1.5)
        t.works(one["tool"] == "Read" and desk.kraft("item", word, one["id"], "--note", "so").code == 0, "a person is asked", one)
        answer = json.loads(desk.answer(n)[1])["hookSpecificOutput"]
        t.works(answer["permissionDecision"] == want and (want == "allow" or "so" in answer["permissionDecisionReason"]), "and " + word + "s", answer)
    n = desk.tell(hook + "out = hook('cursor', 'Read', {'path': 'x'})")
    desk.open_asks()
    os.kill(desk.egress(), signal.SIGKILL)
    answer = desk.answer(n)
    t.works(answer[0] == 0 and json.loads(answer[1])["permission"] == "deny", "when the way out dies it is denied", answer)


@promise("CHN-09 ITM-03", "a person who is not looking is told that a worker asks; the board says it; the item's host stays its only host")
def _(t):
    desk = Desk({"ask_tools": ["Bash"]})
    write(desk.root + "/tell.sh", "#!/bin/sh\ncat >>%s/told\necho >>%s/told\nsleep 2\n" % (desk.root, desk.root), 0o755)
    write(desk.config_dir + "/notify.yaml", "command: [%s/tell.sh]\n" % desk.root)
    told = lambda: [json.loads(line) for line in read(desk.root + "/told").splitlines()] if os.path.exists(desk.root + "/told") else []
    first = desk.tell("out = ask('Bash', {'command': 'touch \\u001b[2Jx; $(touch pwned)'})")
    t.works(wait_for(told, 10), "told")
    message = told()[0]
    t.works(message["event"] == "question" and message["display_status"] == "asks you" and [a["tool"] for a in message["asks"]] == ["Bash"], "what is asked", message)
    board = desk.kraft("view", "watch", "--once")
    t.works("asks you" in board.out and "\x1b" not in board.out + desk.kraft("view", "asks").out + desk.kraft("view", "show", desk.item).out, "on the board", board)
    time.sleep(2.5)
    t.works(len(told()) == 1, "once")
    second = desk.tell("out = ask('Bash', {'command': 'two'})")
    t.works(wait_for(lambda: len(told()) == 2, 10) and len(told()[1]["asks"]) == 2, "of the next again", told()[1:])
    pid = int(read("%s/worktrees/%s.host" % (desk.run_dir, desk.item)).split()[0])
    zombies = [p for p in children(pid) if read("/proc/%d/stat" % p).rsplit(")", 1)[1].split()[0] == "Z"]
    t.works(zombies == [], "nobody is left unburied", zombies)
    third = desk.tell("out = ask('Bash', {'command': 'three'})")
    wait_for(lambda: len(told()) == 3, 10)
    os.kill(pid, signal.SIGKILL)
    t.works(wait_for(lambda: desk.status(desk.item)[0] == "cut off", 10), "who tells holds no lock of the host's", desk.status(desk.item))
    os.unlink(desk.tree(desk.item) + "/ready")
    desk.begin()
    n = desk.tell("out = ask('Bash', {'command': 'four'})")
    desk.kraft("item", "allow", desk.open_asks()[0]["id"])
    t.works(desk.answer(n)["answer"]["behavior"] == "allow" and not os.path.exists(desk.pwned) and (first, second, third), "and it goes on")
    sent = [e["data"] for e in desk.events_of(desk.item) if e["type"] == "notify_sent"]
    t.works(sent and all(e == {"event": "question", "by": "command"} for e in sent), "on record", sent)


MCP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../mcp"))


@promise("CHN-09", "the published clients of the protocol, old and new, from inside a session: negotiated, asked, waited for, cancelled")
def _(t):
    if not os.path.isdir(MCP + "/node_modules"):
        t.skip("the clients are not there: ./dev setup installs them")
    desk = Desk({"ask_tools": ["Bash"]}, expose=[MCP])
    code = "p = subprocess.run(['node', client] + words, capture_output=True, timeout=60)\nout = [p.returncode, p.stdout.decode(), p.stderr.decode()[-2000:]]"
    for which, begins, version, said in (("sdk-old", "-", "2025-03-26", set()), ("sdk-last", "-", "2025-11-25", {"2025-11-25"}), ("client-new", "-", "2025-11-25", {"2025-11-25"}), ("client-new", "newest", "2026-07-28", {"2026-07-28"})):
        name = "%s %s" % (which, begins)
        n = desk.tell(code, client=MCP + "/client.mjs", words=[which, begins, '{"command": "make \\u00e9"}'])
        if not wait_for(lambda: desk.asks(), 30, 0.1):
            raise Failed("%s asks nothing: %r" % (name, desk.answer(n)))
        time.sleep(12)
        desk.kraft("item", "allow", desk.asks()[0]["id"])
        status, out, err = desk.answer(n)
        t.works(status == 0, name + " runs", out, err)
        seen = json.loads(out)
        t.works(seen["answer"] == {"behavior": "allow", "updatedInput": {"command": "make \u00e9"}}, name + ": allowed", seen)
        t.works(len(seen["progress"]) >= 2 and [p["progress"] for p in seen["progress"]] == sorted({p["progress"] for p in seen["progress"]}), name + ": it is shown that it is waited", seen)
        t.works(seen["tools"] == ["permission_request"] and seen["server"]["name"] == "kraft" and seen["version"] in (version, None) and seen["other"] == -32602, name + ": all else", seen)
        t.works({r[1] for r in seen["requests"]} - {None} == said and all(r[3] in (200, 202, 405) for r in seen["requests"]), name + ": no request is refused", seen["requests"])
        n = desk.tell(code, client=MCP + "/client.mjs", words=[which, begins, '{"command": "x"}', "1500"])
        one = desk.open_asks(1, 30)[0]
        status, out, err = desk.answer(n)
        t.works(status == 0 and "answer" not in json.loads(out) and wait_for(lambda: desk.asks() == [], 5, 0.1), name + ": cancelled", out, err, desk.asks())
        t.works([a["state"] for a in desk.asks(desk.item) if a["id"] == one["id"]] == ["expired"], name + ": and it is over")


main()
