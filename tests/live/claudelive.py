"""What the tests of Claude Code share: a project with a claude on its PATH, the model that it talks to, and a gate of ours that
can be broken. egresslive is imported before it: the model has the real name of its host in the tests' network."""
from egresslive import *
from model_claude import *
from agentlive import AgentOffice
from worklive import GATE, node

AGENTS = os.environ.get("KRAFT_AGENTS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kraft-check/agents")
VERSIONS = {"claude-old": "2.1.197", "claude": "2.1.332"}
HOST = "api.anthropic.com"
TOKEN = "sk-ant-api03-of-the-tests"
CERT, KEY = certificate(lab, HOST)

# What it asks for at its start when it talks to the real name: an organization's settings and limits. There are none.
START = {("GET", "/api/claude_code/settings"): (404, {"type": "error", "error": {"type": "not_found_error", "message": "no settings"}}),
         ("GET", "/api/claude_code/policy_limits"): (200, {"restrictions": {}})}


def each(ids, name, slow=False):
    """A promise of both versions; slow: of the old one at full length only."""
    def register(function):
        for which, version in VERSIONS.items():
            if slow and which == "claude-old" and not ALL:
                continue
            promise(ids, "claude %s: %s" % (version, name))(lambda t, which=which: function(t, which))
        return function
    return register


def bash(command, **more):
    return tool("Bash", {"command": command}, **more)


class Desk(AgentOffice):
    """A project, a claude of that version on its PATH, and the steps of its model.

    layer: the policy's defaults. runtime, deny: hosts beside the model's.
    """

    harness_id = "claude"

    def __init__(self, which, *steps, layer=None, runtime=(), deny=(), token=TOKEN, **entry):
        bin = "%s/%s/node_modules/.bin" % (AGENTS, which)
        if not os.access(bin + "/claude", os.X_OK):
            raise Skipped("there is no '%s/claude': ./check --agents installs it" % bin)
        sandbox = {"network": {"runtime": {"allow": list(runtime), "deny": list(deny)}}}
        if RUNTIME:  # there its key stays outside, and it works with a sentinel (SEN-01): the model takes the key itself only
            entry["image"] = runtimelive.image("agents")
            sandbox["credentials"] = [{"env": "ANTHROPIC_API_KEY"}]
        super().__init__(sandbox=sandbox, **entry)
        self.extra_env = {"PATH": bin + ":/usr/bin:/bin", "ANTHROPIC_API_KEY": token, "SSL_CERT_FILE": lab.ca, "NODE_EXTRA_CA_CERTS": lab.ca}
        if layer is not None:
            self.policy(defaults=layer)
        self.plays(*steps)

    def plays(self, *steps, **more):
        """From here on the model does this."""
        self.model = Model(steps, token=TOKEN, cert=CERT, key=KEY, **dict({"side": START}, **more))
        lab.serve(HOST, self.model.handler(), 443)
        return self.model

    def by_the_script(self, t, what="the model"):
        """Nothing was asked of the model that it did not expect."""
        t.works(self.model.done() == [], what + ": by the script", self.model.done())

    # -- kraft run --

    def agent(self, prompt="do it", *options, **more):
        return self.kraft("run", "--harness", "claude", *options, prompt, timeout=more.pop("timeout", 240), **more)

    # -- items --

    def agents_chain(self, prompt="Do it.", second=False):
        """A chain of an agent, or two, and a gate: "agents"."""
        agent = {"kind": "agent", "harness": "claude", "prompt": prompt}
        nodes = [node("work", dict(agent, id="agent"))] + ([node("again", dict(agent, id="agent"))] if second else [])
        return self.chain("agents", *nodes, GATE)

    @staticmethod
    def on_result(name, content=None):
        """A call of Read or Write of the file that the agent is told of; it is read before it is written."""
        def answer(turn):
            found = re.search(r"(/\S+) \(\$KRAFT_RESULT_PATH\)", turn.prompt + turn.system)
            path = found.group(1) if found else "/nowhere"
            return tool(name, {"file_path": path} if content is None else {"file_path": path, "content": json.dumps(content)})
        return answer

    def conversation(self, session):
        """The id that the agent gave its conversation in this session."""
        for line in self.kraft("view", "logs", session).lines:
            if line.startswith("{") and '"init"' in line:
                return json.loads(line)["session_id"]
        raise Failed("no conversation: %r" % self.kraft("view", "logs", session))

    def open_ask(self, holds, seconds=60):
        """The open ask whose input holds this."""
        def find():
            return next((a for a in json.loads(self.kraft("view", "asks", "--json").out) if holds in a["input"]), None)
        found = wait_for(find, seconds, 0.2)
        if not found:
            raise Failed("nothing asks for %r: %r" % (holds, self.kraft("view", "list", "--all")))
        return found

    def time_passes(self):
        """For every ask: its time is over."""
        code = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=20)\ndb.execute(\"UPDATE asks SET until_ms = ms WHERE state = 'open'\")\ndb.commit()"
        done = self.host(PYTHON, "-ISc", code, os.path.join(self.run_dir, "orchestrator.db"))
        if done.code != 0:
            raise Failed("time does not pass: %r" % done)


class Server:
    """An MCP server that stands in kraft's place: it lets everything run, but for what `broken` makes of the answer.

    broken: from the text of the allow to a result; or a pair: ("error", object), ("id", number), ("raw", bytes or None for a
    reset), ("late", seconds), ("start", seconds before it answers who it is).
    """

    def __init__(self, broken=None):
        self.broken, self.calls = broken, []

    def handler(self):
        def serve(conn):
            while True:
                head = conn.until(b"\r\n\r\n")
                if head is None:
                    return
                request = netlab.Request(conn, head)
                if not request.read_body() or not self.answer(conn, request):
                    return
        return serve

    def answer(self, conn, request):
        if request.method != "POST":
            return conn.send(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        asked = json.loads(request.body)
        if "id" not in asked:
            return conn.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        result = {"initialize": self.hello, "tools/list": self.tools, "tools/call": self.call}.get(asked["method"])
        if result is None:
            return self.send(conn, asked["id"], error={"code": -32601, "message": "Method not found"})
        result = result(asked)
        kind = self.broken[0] if isinstance(self.broken, tuple) and asked["method"] == "tools/call" else None
        if kind == "raw":
            if self.broken[1] is None:
                conn.abort()
            else:
                conn.send(self.broken[1])
            return self.broken[1] is not None and b"Content-Length: 0" in self.broken[1]
        if kind == "late":
            time.sleep(self.broken[1])
        if kind == "error":
            return self.send(conn, asked["id"], error=self.broken[1])
        return self.send(conn, self.broken[1] if kind == "id" else asked["id"], result=result)

    @staticmethod
    def send(conn, id, **more):
        data = json.dumps(dict({"jsonrpc": "2.0", "id": id}, **more)).encode()
        return conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data)

    def hello(self, _asked):
        if isinstance(self.broken, tuple) and self.broken[0] == "start":
            time.sleep(self.broken[1])
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "kraft", "version": "1"}}

    @staticmethod
    def tools(_asked):
        schema = {"type": "object", "properties": {"tool_name": {"type": "string"}, "input": {"type": "object"}, "tool_use_id": {"type": "string"}}}
        return {"tools": [{"name": "permission_request", "description": "asks", "inputSchema": schema}]}

    def call(self, asked):
        given = asked["params"]["arguments"]
        self.calls.append(given["tool_name"])
        allow = json.dumps({"behavior": "allow", "updatedInput": given["input"]})
        result = self.broken(allow) if callable(self.broken) else {"content": [{"type": "text", "text": allow}]}
        return result


__all__ = [n for n in dir() if not n.startswith("_")]
