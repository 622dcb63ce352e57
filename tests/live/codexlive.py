"""What the tests of Codex share: a project with a codex on its PATH, and a model of its own that answers under the real name.

A desk's token says which desk's model is meant, so that a session that an earlier test left behind disturbs nobody.
"""
from egresslive import *
from model_codex import *
from agentlive import AgentOffice
from worklive import GATE, node, task

AGENTS = os.environ.get("KRAFT_AGENTS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kraft-check/agents")
PACKAGE = AGENTS + "/codex/node_modules/@openai"
HOST = "api.openai.com"
PLAIN, SCRIPTED = "gpt-5.5", "gpt-6.2-sol"  # a model that is offered each tool by itself, and one that writes scripts

MODELS, STRAYS = {}, []  # by token; and the requests of nobody's


def serve(conn):
    while True:
        head = conn.until(b"\r\n\r\n")
        if head is None:
            return
        request = netlab.Request(conn, head)
        if not request.read_body():
            return
        model = MODELS.get((request.get("authorization") or "").replace("Bearer ", "", 1))
        if model is None:
            STRAYS.append(request)
        if not (model or NOBODY).answer(conn, request):
            return


NOBODY = Model(token="nobody's")  # which nobody has: 401
lab.serve(HOST, netlab.over_tls(lab, serve, lab.certificate(HOST)), 443)


def native():
    """The program itself, which npm's package starts by a script."""
    for top, _, files in os.walk(PACKAGE):
        if top.endswith("/bin") and "codex" in files:
            return os.path.join(top, "codex")
    raise Skipped("there is no codex below '%s': ./check --agents installs it" % PACKAGE)


class Desk(AgentOffice):
    """A project, a codex on its PATH, and the steps of its model.

    layer: the policy's defaults. runtime, deny: hosts beside the model's. wrap: a script in codex's place, with @codex@ for
    the real one. ask: kraft knows nothing of the program yet.
    """

    harness_id = "codex"

    proven = None  # what kraft keeps of a program that it has asked: the next desk's kraft need not ask again

    def __init__(self, *steps, layer=None, runtime=(), deny=(), model=PLAIN, wrap=None, env=None, ask=False, **entry):
        program = native()
        sandbox = {"network": {"runtime": {"allow": list(runtime), "deny": list(deny)}}}
        if RUNTIME:  # there its key stays outside, and it works with a sentinel (SEN-01): the model takes the key itself only
            entry["image"] = runtimelive.image("agents")
            sandbox["credentials"] = [{"env": "CODEX_API_KEY"}]
        else:
            entry.setdefault("env_passthrough", ["CODEX_API_KEY"])
        super().__init__(sandbox=sandbox,
                         expose=entry.pop("expose", []) + [PACKAGE], **entry)
        self.bin = os.path.dirname(program)
        if wrap:
            self.bin = self.home + "/tools"
            write(self.bin + "/codex", wrap.replace("@codex@", program), 0o755)
        self.token = "sk-" + uuid.uuid4().hex
        self.extra_env = dict({"PATH": self.bin + ":/usr/bin:/bin", "CODEX_API_KEY": self.token, "SSL_CERT_FILE": lab.ca}, **(env or {}))
        write(self.config_dir + "/harnesses.yaml", json.dumps({"harnesses": {"codex": {"defaults": {"model": model}}}}))
        if layer is not None:
            self.policy(defaults=layer)
        self.keeps = wrap is None and not ask
        if self.keeps and Desk.proven:
            write(self.known(), Desk.proven, 0o600)
        self.plays(*steps)

    def known(self):
        return self.run_dir + "/cache/agents/codex.json"

    def plays(self, *steps):
        """From here on the model does this. A list among the steps stands for its own."""
        self.model = MODELS[self.token] = Model([one for step in steps for one in (step if isinstance(step, list) else [step])])
        return self.model

    def by_the_script(self, t, what="the model"):
        """Nothing was asked of the model that it did not expect."""
        t.works(self.model.problems() == [], what + ": by the script", self.model.problems())

    # -- kraft run --

    def agent(self, prompt="do it", *options, **more):
        ran = self.kraft("run", "--harness", "codex", *options, prompt, timeout=more.pop("timeout", 240), **more)
        if self.keeps and os.path.exists(self.known()):
            Desk.proven = read(self.known())
        return ran

    # -- items --

    def filed(self, *steps, more=()):
        """An item whose agent codex is, with these steps of its model; it is not begun."""
        if steps:
            self.plays(*steps)
        agent = {"id": "agent", "kind": "agent", "harness": "codex", "prompt": "Do it as asked."}
        self.chain("codex", node("work", agent), *more, GATE)
        return self.create("Make it", "--chain", "codex")

    def decisions(self, item):
        return [e["data"] for e in self.events_of(item) if e["type"] == "permission_decision"]

    def asked(self, item, before=None):
        """The open ask of the item's, when it is another one than before."""
        def there():
            return [a for a in json.loads(self.kraft("view", "asks", "--json", item).out) if a["state"] == "open" and (not before or a["id"] != before["id"])]
        found = wait_for(there, 60, 0.2)
        if not found:
            raise Failed("nobody asks: %r; %r" % (self.show(item), self.model.unexpected))
        return found[0]

    def egress_of(self, item):
        """The pid of its session's kraft-egress."""
        pids = [int(read("%s/worktrees/%s.host" % (self.run_dir, item)).split()[0])]
        for pid in pids:
            pids += children(pid)
        return next(p for p in pids if name_of(p) == "kraft-egress")


def lines(ran):
    """What it printed: codex's lines."""
    return [json.loads(line) for line in ran.lines if line.startswith("{")]


def ok(words=""):
    """Of a step: that the last call ran."""
    return lambda turn: turn.wants(words, but="blocked by PreToolUse hook")


def denied(words=""):
    """Of a step: that the last call was denied, for a reason with these words."""
    def check(turn):
        return turn.wants("blocked by PreToolUse hook") or turn.wants(words)
    return check


def told(*words):
    """Of a step: that the model was told all of these."""
    return lambda turn: next(("nothing of %r in %r" % (word, turn.said() + turn.said("developer")[-1:]) for word in words if word not in turn.all()), None)


def finish(status="done", **more):
    """It writes its result, and says so."""
    return [Step(shell("echo '{\"status\": \"%s\", \"session_summary\": \"made\"}' >$KRAFT_RESULT_PATH" % status, more=more)), Step(text("it is done"), ok())]


__all__ = [n for n in dir() if not n.startswith("_")]
