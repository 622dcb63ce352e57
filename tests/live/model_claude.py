"""A stand-in for the model behind Claude Code: the streaming Messages API, driven by a script.

A Model is given steps. Each turn of the agent's conversation takes the next one: its checks look at what the agent
sent, its answer is streamed back. What the agent asks for beside its conversation (counting, titles, settings) has an
explicit answer in SIDE or in `side`; anything else is kept in `unexpected`, and what a check refused in `wrong`: done()
says both, and which steps were not reached. A request is a turn when it offers tools; one without (a title, a summary)
is unexpected as well, unless has_titles says so.

    model = Model([Step(tool("Bash", {"command": "true"}), offers("Bash")), Step(text("done"), result(ok=True))])
    lab.serve("api.example", model.handler(), 443)          # in the tests' network; cert and key of certificate()
    url = model.listen()                                     # or on loopback

An answer is a list of content blocks with their usage, or one that fails: error(), cut(), late().
"""
import contextlib
import itertools
import json
import os
import socket
import ssl
import subprocess
import threading
import time

import netlab

MODEL = "claude-sonnet-4-5-20250929"
_count = itertools.count(1)


# ---- answers ----

class Answer:
    """What a turn gets: blocks streamed with a status, or part of them."""

    def __init__(self, blocks=(), stop="end_turn", usage=None, status=200, body=None, headers=None, wait=0.0, cut_after=None, pause=0.0):
        self.blocks, self.stop, self.status, self.body = list(blocks), stop, status, body
        self.usage = dict({"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}, **(usage or {}))
        self.headers, self.wait, self.cut_after, self.pause = dict(headers or {}), wait, cut_after, pause


def text(words, **more):
    return Answer([{"type": "text", "text": words}], **more)


def tool(name, given, say=None, **more):
    return tools((name, given), say=say, **more)


def tools(*calls, say=None, **more):
    """Several calls in one message."""
    blocks = [{"type": "text", "text": say}] if say else []
    blocks += [{"type": "tool_use", "id": "toolu_%06d" % next(_count), "name": n, "input": i} for n, i in calls]
    return Answer(blocks, stop="tool_use", **more)


def error(status, kind="api_error", message="the stand-in refuses", **headers):
    """headers: words of a name joined by '_'."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_%06d" % next(_count)}
    return Answer(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def cut(answer, after=3):
    """The stream ends after so many of its events, with the connection."""
    answer.cut_after = after
    return answer


def late(seconds, answer):
    answer.wait = seconds
    return answer


def slow(seconds, answer):
    """Between two events of the stream."""
    answer.pause = seconds
    return answer


# ---- checks: each says what is wrong, or None ----

def offers(*names):
    return lambda turn: None if set(names) <= turn.offered else "offers no %s: %s" % (sorted(set(names) - turn.offered), sorted(turn.offered))


def lacks(*names):
    return lambda turn: None if not set(names) & turn.offered else "offers %s" % sorted(set(names) & turn.offered)


def result(ok=None, holds="", lacks=None, nth=-1):
    """The result of the last call: whether it is a success, and what it holds."""
    def check(turn):
        if len(turn.results) < max(1, -nth):
            return "no result of a tool: %r" % turn.last
        text, failed = turn.results[nth]
        if ok is not None and ok == failed:
            return "the result is %s: %s" % ("an error" if failed else "no error", text)
        if holds not in text:
            return "the result lacks %r: %s" % (holds, text)
        return "the result holds %r: %s" % (lacks, text) if lacks and lacks in text else None
    return check


def asked(*words):
    """The prompt, or a later word of the person's, holds these."""
    return lambda turn: next(("the prompt lacks %r: %s" % (w, turn.prompt) for w in words if w not in turn.prompt), None)


def system(*words):
    return lambda turn: next(("the system prompt lacks %r" % w for w in words if w not in turn.system), None)


def header(name, value):
    return lambda turn: None if turn.request.get(name) == value else "the header %s is %r" % (name, turn.request.get(name))


# ---- what was asked ----

def words_of(content):
    """The text in a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    return "\n".join(b.get("text", "") for b in content or [] if b.get("type") == "text")


class Turn:
    """A request of the conversation, taken apart."""

    def __init__(self, request, body):
        self.request, self.body = request, body
        self.messages, self.model = body.get("messages", []), body.get("model")
        self.offered = {t.get("name") for t in body.get("tools") or []}
        self.system = words_of(body.get("system"))
        self.prompt = "\n".join(words_of(m["content"]) for m in self.messages if m["role"] == "user")
        self.last = self.messages[-1]["content"] if self.messages else None
        self.results = [(words_of(b.get("content")), bool(b.get("is_error"))) for m in self.messages if m["role"] == "user" and
                        isinstance(m["content"], list) for b in m["content"] if b.get("type") == "tool_result"]


class Step:
    def __init__(self, answer, *checks):
        self.answer, self.checks = answer, checks


# What Claude Code asks for beside its conversation. (method, path): (status, JSON).
SIDE = {
    ("HEAD", "/"): (200, None),
    ("GET", "/"): (200, {}),
    ("POST", "/v1/messages/count_tokens"): (200, {"input_tokens": 100}),
    ("GET", "/api/hello"): (200, {"message": "hello"}),
}
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error", 529: "Overloaded"}


class Model:
    """token: what must come as x-api-key or bearer, else 401. cert, key: it speaks TLS."""

    def __init__(self, steps=(), side=None, token=None, cert=None, key=None, has_titles=False):
        self.steps, self.side, self.token = list(steps), {**SIDE, **(side or {})}, token
        self.cert, self.key, self.has_titles = cert, key, has_titles
        self.turns, self.requests, self.unexpected, self.wrong, self.titles = [], [], [], [], []
        self.lock = threading.Lock()

    # -- listening --

    def listen(self, port=0, address="127.0.0.1"):
        """On a socket of its own; returns the URL."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(64)
        threading.Thread(target=self._accept, args=(sock,), daemon=True).start()
        return "%s://%s:%d" % ("https" if self.cert else "http", address, sock.getsockname()[1])

    def _accept(self, sock):
        while True:
            conn = netlab.Conn(sock.accept()[0])
            threading.Thread(target=self._one, args=(conn,), daemon=True).start()

    def _one(self, conn):
        with contextlib.suppress(OSError, ValueError):
            self.handler()(conn)
        conn.close()

    def handler(self):
        """For lab.serve."""
        def serve(conn):
            if self.cert:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.cert, self.key)
                conn.sock = context.wrap_socket(conn.sock, server_side=True)
            while True:
                head = conn.until(b"\r\n\r\n")
                if head is None:
                    return
                request = netlab.Request(conn, head)
                if not request.read_body() or not self.answer(conn, request):
                    return
        return serve

    # -- answering --

    def answer(self, conn, request):
        """False when the connection is over."""
        path = request.target.partition("?")[0]
        self.requests.append(request)
        if (request.method, path) == ("POST", "/v1/messages"):
            return self._message(conn, request)
        status, body = self.side.get((request.method, path), (None, None))
        if status is None:
            self.unexpected.append("%s %s %s" % (request.method, request.target, request.body[:2000].decode("utf-8", "replace")))
            status, body = 404, {"type": "error", "error": {"type": "not_found_error", "message": "unknown to the stand-in"}}
        return self._plain(conn, request, status, body)

    def _plain(self, conn, request, status, body, headers=()):
        data = json.dumps(body).encode() if body is not None else b""
        lines = ["HTTP/1.1 %d %s" % (status, REASONS.get(status, "Status")), "Content-Type: application/json", "Content-Length: %d" % len(data)]
        lines += ["%s: %s" % h for h in dict(headers).items()]
        return conn.send("\r\n".join(lines + ["", ""]).encode() + (data if request.method != "HEAD" else b""))

    def _message(self, conn, request):
        turn = Turn(request, json.loads(request.body))
        given = request.get("x-api-key") or (request.get("authorization") or "").replace("Bearer ", "")
        if self.token and given != self.token:
            refusal = error(401, "authentication_error", "invalid x-api-key")
            return self._plain(conn, request, 401, refusal.body)
        if not turn.offered:
            with self.lock:
                self.titles.append(turn)
                if not self.has_titles:
                    self.unexpected.append("a request without tools: %r" % turn.last)
            return self._stream(conn, turn, text("a title")) if turn.body.get("stream") else self._plain(conn, request, 200, message(turn, text("a title")))
        with self.lock:
            n = len(self.turns)
            self.turns.append(turn)
            step = self.steps[n] if n < len(self.steps) else None
        if step is None:
            self.unexpected.append("turn %d: %r" % (n, turn.last))
            return self._stream(conn, turn, text("The script is over."))
        for check in step.checks:
            why = check(turn)
            if why:
                self.wrong.append("turn %d: %s" % (n, why))
        answer = step.answer(turn) if callable(step.answer) else step.answer
        time.sleep(answer.wait)
        if answer.status != 200:
            return self._plain(conn, request, answer.status, answer.body, answer.headers)
        return self._stream(conn, turn, answer)

    def _stream(self, conn, turn, answer):
        head = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Cache-Control: no-cache", "Transfer-Encoding: chunked",
                "request-id: req_%06d" % next(_count)] + ["%s: %s" % h for h in answer.headers.items()]
        if not conn.send("\r\n".join(head + ["", ""]).encode()):
            return False
        for n, (kind, body) in enumerate(events(turn, answer)):
            if answer.cut_after is not None and n >= answer.cut_after:
                conn.close()
                return False
            data = ("event: %s\ndata: %s\n\n" % (kind, json.dumps(dict(body, type=kind)))).encode()
            if not conn.send(b"%x\r\n%s\r\n" % (len(data), data)):
                return False
            time.sleep(answer.pause)
        return conn.send(b"0\r\n\r\n")

    # -- the end --

    def done(self):
        """What went wrong, as a list of sentences; [] when all went by the script."""
        found = ["unexpected: " + u for u in self.unexpected] + ["wrong: " + w for w in self.wrong]
        if len(self.turns) < len(self.steps):
            found.append("only %d of %d steps" % (len(self.turns), len(self.steps)))
        return found


def message(turn, answer, content=None):
    return {"id": "msg_%06d" % next(_count), "type": "message", "role": "assistant", "model": turn.model, "content": answer.blocks if content is None else content,
            "stop_reason": answer.stop, "stop_sequence": None, "usage": answer.usage}


def events(turn, answer):
    """The stream's events: (name, body)."""
    begun = dict(message(turn, answer, []), stop_reason=None)
    begun["usage"] = dict(answer.usage, output_tokens=1)
    yield "message_start", {"message": begun}
    for n, block in enumerate(answer.blocks):
        if block["type"] == "text":
            yield "content_block_start", {"index": n, "content_block": {"type": "text", "text": ""}}
            yield "content_block_delta", {"index": n, "delta": {"type": "text_delta", "text": block["text"]}}
        else:
            yield "content_block_start", {"index": n, "content_block": dict(block, input={})}
            yield "content_block_delta", {"index": n, "delta": {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}}
        yield "content_block_stop", {"index": n}
    yield "message_delta", {"delta": {"stop_reason": answer.stop, "stop_sequence": None}, "usage": {"output_tokens": answer.usage["output_tokens"]}}
    yield "message_stop", {}


# ---- in the tests' network ----

def certificate(lab, *names):
    """A certificate of the lab's authority for these names: (certificate, key)."""
    base = os.path.join(lab.dir, names[0])
    with open(base + ".ext", "w") as f:
        f.write("subjectAltName=%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n" % ",".join("DNS:" + n for n in names))
    run = lambda *words: subprocess.run(["openssl"] + list(words), check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + names[0], "-keyout", base + ".key", "-out", base + ".csr")
    run("x509", "-req", "-in", base + ".csr", "-CA", lab.ca, "-CAkey", os.path.join(lab.dir, "ca.key"), "-CAcreateserial", "-days", "2",
        "-extfile", base + ".ext", "-out", base + ".pem")
    return base + ".pem", base + ".key"
