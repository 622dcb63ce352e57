"""A stand-in for the model's server that codex speaks to: the Responses API, streamed, driven by a script.

A script is a list of steps. A step looks at a request (`check`, from a Turn to a complaint or None) and gives the next
answer: text, calls of tools, an error, a stream that is cut, a pause. Nothing is clever here: the model does what the
test wrote down, and the test learns what the program told it. What codex asks for beside its turns has a list of known
answers in SIDE; a request that is not on it is kept in `unexpected`, as is a turn beyond the script's end and a check
that failed, and a test that does not look there has not looked. So:

    model = Model([Step(shell("touch a")), Step(text("done"), check=lambda turn: turn.wants("denied"))])
    lab.tls("api.openai.com", model.serve)      # in the test network, or
    port = model.start()                        # by itself, on the loopback
    ...
    t.works(model.problems() == [], ...)
"""
import json
import re
import socket
import ssl
import threading
import time

import netlab


# ---- answers ----

class Answer:
    """What the server says to one turn. items: of the response's output. usage: (input, cached, output, reasoning)."""

    def __init__(self, *items, usage=(100, 0, 10, 0), status=200, body=None, fields=(), cut=None, late=0.0, pause=0.0):
        self.items, self.usage, self.status, self.body, self.fields = items, usage, status, body, tuple(fields)
        self.cut, self.late, self.pause = cut, late, pause


def message(said):
    return {"type": "message", "role": "assistant", "id": "msg_%s" % _id(), "content": [{"type": "output_text", "text": said}]}


def function(name, **arguments):
    return {"type": "function_call", "id": "fc_%s" % _id(), "call_id": "call_%s" % _id(), "name": name,
            "arguments": json.dumps(arguments)}


def custom(name, given):
    """A tool that takes text as it is, as apply_patch does."""
    return {"type": "custom_tool_call", "id": "ctc_%s" % _id(), "call_id": "call_%s" % _id(), "name": name, "input": given}


def text(said, **more):
    return Answer(message(said), **more)


def call(name, more=None, **arguments):
    return Answer(function(name, **arguments), **(more or {}))


def script(source, **more):
    """JavaScript that calls tools: the one tool that newer models are offered for all of them."""
    return Answer(custom("exec", source), **more)


def use(name, given, **more):
    """Whichever way the turn's model is offered to use this tool: through a script, or by itself."""
    def answer(turn):
        if "exec" in turn.tools:
            code = "try { const r = await tools.%s(%s); text(typeof r === 'string' ? r : JSON.stringify(r)); } catch (e) { text('failed: ' + e); }"
            return script(code % (name, json.dumps(given)), **more)
        item = custom(name, given) if isinstance(given, str) else function(name, **given)
        return Answer(item, **more)
    return answer


def shell(command, more=None, **arguments):
    return use("exec_command", dict(arguments, cmd=command), **(more or {}))


def patch(path, lines, **more):
    """A new file, by codex's own editing tool."""
    body = "*** Begin Patch\n*** Add File: %s\n%s*** End Patch" % (path, "".join("+%s\n" % line for line in lines))
    return use("apply_patch", body, **more)


def error(status, code="invalid_request_error", said="no", fields=(), **inner):
    body = json.dumps({"error": dict({"message": said, "type": code, "code": code}, **inner)})
    return Answer(status=status, body=body.encode(), fields=fields)


def failed(code, said="no", **more):
    """A stream that begins well and ends with response.failed."""
    return Answer(body={"code": code, "message": said}, **more)


def cut(*items, after=1):
    """A stream that ends early: after so many of its events, without response.completed."""
    return Answer(*(items or (message("half of"),)), cut=after)


_count = [0]
_lock = threading.Lock()


def _id():
    with _lock:
        _count[0] += 1
        return "%06d" % _count[0]


# ---- requests ----

class Turn:
    """One request for a turn, read."""

    def __init__(self, request, body):
        self.request, self.body = request, body
        self.input = body.get("input", [])
        self.instructions = body.get("instructions") or ""
        self.tools = _names(body.get("tools", []))
        for item in self.input:
            if item.get("type") == "additional_tools":
                self.tools += _names(item.get("tools", []))
        self.model, self.token = body.get("model"), request.get("authorization")

    def outputs(self):
        """What the tools gave, oldest first, each as text."""
        return [_flat(item.get("output")) for item in self.input if str(item.get("type", "")).endswith("_call_output")]

    def last(self):
        return (self.outputs() or [""])[-1]

    def said(self, role="user"):
        """What this role said, each message as text."""
        return [_flat(item.get("content")) for item in self.input if item.get("type") == "message" and item.get("role") == role]

    def all(self):
        return json.dumps(self.body)

    def wants(self, words, but=None):
        """A complaint unless the last tool's output has these words (and not those)."""
        last = self.last()
        if words not in last or but and but in last:
            return "the last output is %r, wanted %r" % (last[-600:], words)
        return None


def _names(tools):
    """What is offered: by itself, in a namespace, or to scripts."""
    found = []
    for tool in tools:
        inner = tool.get("tools") if tool.get("type") == "namespace" else [tool]
        for one in inner:
            found.append(one.get("name") or one.get("type"))
            if found[-1] == "exec":
                found += re.findall(r"^### `(\w+)`", one.get("description", ""), re.M)
    return found


def _flat(value):
    if isinstance(value, list):
        return "".join(_flat(part) for part in value)
    if isinstance(value, dict):
        return _flat(value.get("text", value.get("content", "")))
    return "" if value is None else str(value)


class Step:
    def __init__(self, answer, check=None, times=1):
        self.answer, self.check, self.times = answer, check, times


# ---- the server ----

# What codex asks for beside its turns: (method, path without its query) to a function from a request to (status, body).
# Quiet as kraft starts it there is nothing but its try at a web socket, which is refused (426), so that it speaks plain
# HTTP for the rest of its life.
SIDE = {}


def _http(status, body, kind="application/json", fields=()):
    words = {200: "OK", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 426: "Upgrade Required", 429: "Too Many Requests"}
    head = "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n" % (status, words.get(status, "Error"), kind, len(body))
    return (head + "".join("%s: %s\r\n" % field for field in fields) + "\r\n").encode() + body


class Model:
    def __init__(self, steps=(), token=None, side=None, log=None):
        """token: what the Authorization must be for an answer but 401; None: any."""
        self.steps, self.token, self.side = [step for s in steps for step in [s] * s.times], token, dict(SIDE, **(side or {}))
        self.turns, self.unexpected, self.asides, self.sockets, self.answered = [], [], [], 0, []
        self.lock, self.log = threading.Lock(), log

    def script(self, *steps):
        """A new script, as for a test's next part."""
        with self.lock:
            self.steps, self.turns, self.unexpected, self.answered = [step for s in steps for step in [s] * s.times], [], [], []
            self.asides, self.sockets = [], 0

    def problems(self):
        """What did not go by the script; [] for a test that went well."""
        with self.lock:
            left = ["%d steps were not asked for" % len(self.steps)] if self.steps else []
            return self.unexpected + left

    def usage(self):
        """The sums of what was answered: input, cached, output, reasoning."""
        return tuple(sum(numbers) for numbers in zip(*self.answered)) if self.answered else (0, 0, 0, 0)

    def serve(self, conn):
        """A handler of the test network: also behind over_tls."""
        while True:
            head = conn.until(b"\r\n\r\n")
            if head is None:
                return
            request = netlab.Request(conn, head)
            if not request.read_body() or not self.answer(conn, request):
                return

    def start(self, address="127.0.0.1", port=0, cert=None, key=None):
        """Serves by itself; returns the port."""
        sock = socket.socket(socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(64)
        context = None
        if cert:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
        threading.Thread(target=self._accept, args=(sock, context), daemon=True).start()
        return sock.getsockname()[1]

    def _accept(self, sock, context):
        def one(taken):
            try:
                conn = netlab.Conn(context.wrap_socket(taken, server_side=True) if context else taken)
                self.serve(conn)
                conn.close()
            except (OSError, ValueError):
                pass
        while True:
            taken, _ = sock.accept()
            threading.Thread(target=one, args=(taken,), daemon=True).start()

    def wrong(self, what):
        with self.lock:
            self.unexpected.append(what)

    def answer(self, conn, request):
        """Whether the connection stays."""
        path = request.target.partition("?")[0]
        if self.log:
            self.log(request)
        if (request.get("upgrade") or "").lower() == "websocket" and path.endswith("/responses"):
            self.sockets += 1
            return conn.send(_http(426, b"{}"))
        if request.method == "POST" and path.endswith("/responses"):
            return self.turn(conn, request)
        known = self.side.get((request.method, path))
        if known is None:
            self.wrong("%s %s %r" % (request.method, request.target, request.body[:300]))
            return conn.send(_http(404, b'{"error":{"message":"not here"}}'))
        self.asides.append((request.method, path))
        status, body = known(request)
        return conn.send(_http(status, json.dumps(body).encode()))

    def turn(self, conn, request):
        if self.token is not None and request.get("authorization") != "Bearer " + self.token:
            return self.give(conn, error(401, "invalid_api_key", "Incorrect API key provided"))
        try:
            turn = Turn(request, json.loads(request.body))
        except ValueError:
            self.wrong("a turn that is not JSON: %r" % request.body[:300])
            return conn.send(_http(400, b"{}"))
        with self.lock:
            self.turns.append(turn)
            number = len(self.turns)
            step = self.steps.pop(0) if self.steps else None
        if step is None:
            self.wrong("turn %d is beyond the script; the last output is %r" % (number, turn.last()[-600:]))
            return self.give(conn, text("the script is over"))
        try:
            complaint = step.check(turn) if step.check else None
            answer = step.answer(turn) if callable(step.answer) else step.answer
        except Exception as why:  # the test's to see, not this thread's
            complaint, answer = "%s: %s" % (type(why).__name__, why), text("the script failed")
        if complaint:
            self.wrong("turn %d: %s" % (number, complaint))
        return self.give(conn, answer)

    def give(self, conn, answer):
        time.sleep(answer.late)
        if answer.status != 200:
            return conn.send(_http(answer.status, answer.body or b"{}", fields=answer.fields))
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
        conn.send((head + "".join("%s: %s\r\n" % f for f in answer.fields) + "\r\n").encode())
        for number, event in enumerate(self.events(answer)):
            if answer.cut is not None and number >= answer.cut:
                return False
            if not conn.send(b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())):
                return False
            time.sleep(answer.pause)
        if answer.cut is None and answer.body is None:
            with self.lock:
                self.answered.append(answer.usage)
        return False

    @staticmethod
    def events(answer):
        name = "resp_" + _id()
        yield {"type": "response.created", "response": {"id": name}}
        for number, item in enumerate(answer.items):
            yield {"type": "response.output_item.added", "output_index": number, "item": item}
            yield {"type": "response.output_item.done", "output_index": number, "item": item}
        if answer.body is not None:
            yield {"type": "response.failed", "response": {"id": name, "status": "failed", "error": answer.body}}
            return
        given, cached, out, thought = answer.usage
        yield {"type": "response.completed", "response": {
            "id": name, "status": "completed", "usage": {
                "input_tokens": given, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": out,
                "output_tokens_details": {"reasoning_tokens": thought}, "total_tokens": given + out}}}
