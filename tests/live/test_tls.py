#!/usr/bin/env python3
"""Hosts whose secrets a worker never holds (SEN-01, SEN-02, SEN-04): kraft's own broker and the real kraft-egress-tls, served by
door.c without a session around them, between clients and servers of the test. What a request must carry, and what is sought in a
response, is judged in unit tests too; here are the connections."""
# kraft-test: timeout 300
from egresslive import *

import base64
import filecmp
import ssl
import urllib.parse
import warnings

REAL = "kr-real-" + base64.b32encode(os.urandom(20)).decode().lower()
REAL_B = "kr-realb-" + base64.b32encode(os.urandom(20)).decode().lower()
SENTINEL = "sk-sentinel-" + base64.b32encode(os.urandom(20)).decode()
SENTINEL_B = "sk-sentinelb-" + base64.b32encode(os.urandom(20)).decode()
BOUND, BOUND_B, OTHER = "api.tls.example", "second.tls.example", "plain.tls.example"
HOME = Home("tls")

# host, port, header, format, sentinel, variable, source, value
RULES = [(BOUND, 443, "x-api-key", "%s", SENTINEL, "API_KEY", "REAL_API_KEY", REAL),
         (BOUND_B, 443, "authorization", "Bearer %s", SENTINEL_B, "B_TOKEN", "REAL_B_TOKEN", REAL_B),
         (BOUND, 8443, "x-api-key", "%s", SENTINEL, "API_KEY", "REAL_API_KEY", REAL)]


SAYS = []


def git_backend(request, path, query):
    """git's own server, as a web server runs it."""
    env = {"PATH": "/usr/bin:/bin", "HOME": lab.dir, "GIT_PROJECT_ROOT": lab.dir, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
           "REQUEST_METHOD": request.method, "CONTENT_TYPE": request.get("content-type") or "", "CONTENT_LENGTH": str(len(request.body)),
           "HTTP_CONTENT_ENCODING": request.get("content-encoding") or "", "GIT_PROTOCOL": request.get("git-protocol") or "", "REMOTE_ADDR": "::1"}
    out = subprocess.run(["git", "http-backend"], input=request.body, stdout=subprocess.PIPE, env=env, check=True).stdout
    head, _, body = out.partition(b"\r\n\r\n")
    found = re.search(rb"(?im)^status: (\d+).*\r\n", head + b"\r\n")
    return b"HTTP/1.1 %s X\r\n%s\r\nContent-Length: %d\r\n\r\n" % (found.group(1) if found else b"200", head, len(body)) + body


def answer(request):
    """/len/N, /echo, /chunks/N, /close, /status/N, /redirect: what a bound host may answer with."""
    path, _, query = request.target.partition("?")
    words = path.strip("/").split("/")
    if words[0] == "echo":
        body = request.head + request.body
    elif words[0] == "len":
        body = b"x" * int(words[1])
    elif words[0] == "chunks":
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"5\r\nhello\r\n" * int(words[1]) + b"0\r\n\r\n"
    elif words[0] == "close":
        request.conn.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
        if words[1:] != ["cut"]:
            with contextlib.suppress(OSError):
                request.conn.sock.settimeout(3)
                request.conn.sock = request.conn.sock.unwrap()  # TLS's own word for the end
        raise OSError("the connection ends")
    elif words[0] == "status":
        return b"HTTP/1.1 %s X\r\nX-Of: it\r\n\r\n" % words[1].encode()
    elif words[0] == "last":  # ends the connection behind its answer, without having said so
        request.conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")
        raise OSError("the connection ends")
    elif words[0] == "repo.git":
        return git_backend(request, path, query)
    elif words[0] == "ranges":  # the secret, whole or in the part that is asked for
        secret, found = request.get("x-api-key").encode(), re.match(r"bytes=(\d+)-(\d+)$", request.get("range") or "")
        body = secret[int(found.group(1)):int(found.group(2)) + 1] if found else secret
        return b"HTTP/1.1 %s X\r\nContent-Length: %d\r\n\r\n" % (b"206" if found else b"200", len(body)) + body
    elif words[0] == "says":  # bytes of the test's own choice, in pieces
        for piece in SAYS:
            request.conn.send(piece)
            time.sleep(0.02)
        raise OSError("the connection ends")
    elif words[0] == "redirect":
        return b"HTTP/1.1 302 Found\r\nLocation: https://%s/there\r\nContent-Length: 0\r\n\r\n" % OTHER.encode()
    elif words[0] == "early":
        return b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX-Hint: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    elif words[0] == "switch":
        return b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw"
    elif words[0] == "extra":
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    else:
        body = b"hello " + request.target.encode()
    if request.method == "HEAD":
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body


for name in (BOUND, BOUND_B, OTHER):
    lab.tls(name, netlab.http(answer))
lab.listen(8443, netlab.over_tls(lab, netlab.http(answer)))
CA_BUNDLE = os.path.join(lab.dir, "both.pem")


class Tls:
    """A way out with managed hosts; as a context manager it ends it."""

    def __init__(self, rules=RULES, hosts=(BOUND, BOUND_B, OTHER, BOUND + ":8443"), roots=None, env=None):
        self.folder = tempfile.mkdtemp(dir=lab.dir)
        self.file, self.authority = os.path.join(self.folder, "rules"), os.path.join(self.folder, "ca.pem")
        self.roots = roots or lab.ca
        self.write(rules)
        build = os.environ["KRAFT_BUILD"]
        self.process = subprocess.Popen([os.path.join(build, "tests/live/door"), os.path.join(build, "kraft-egress-tls"), "0", *hosts],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env or {}, DOOR_MANAGED=self.file), start_new_session=True)
        self.url = self.process.stdout.readline().decode().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.token, self.port, self.said = parts.password, parts.port, []
        if not self.port:
            raise Failed("there is no way out: %r" % self.url)
        threading.Thread(target=self._read, daemon=True).start()
        self.bundle = os.path.join(self.folder, "bundle.pem")
        with open(self.bundle, "w") as f:
            f.write(read(self.authority) + read(lab.ca))

    def write(self, rules):
        with open(self.file, "w") as f:
            f.write("%s\n%s\n" % (self.roots, self.authority) + "".join("\t".join(map(str, r)) + "\n" for r in rules))

    def _read(self):
        for line in self.process.stdout:
            self.said.append(line.decode().strip())

    def tells(self, text):
        return wait_for(lambda: any(text in line for line in self.said), 5) or False

    def pid(self):
        return wait_for(lambda: next((p for p in children(self.process.pid) if name_of(p).startswith("kraft-egress")), None))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.process.wait(20) != 0:
            raise Failed("the door ended with %d" % self.process.returncode)

    # -- clients --

    def connect(self, host=BOUND, port=443, early=b""):
        """A tunnel: the status and the socket."""
        s = socket.create_connection(("127.0.0.1", self.port), 10)
        secret = base64.b64encode(b"kraft:" + self.token.encode()).decode()
        s.sendall(("CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\nProxy-Authorization: Basic %s\r\n\r\n" % (host, port, host, port, secret)).encode() + early)
        head = b""
        while b"\r\n\r\n" not in head:
            more = s.recv(1)
            if not more:
                break
            head += more
        return int(head.split()[1]) if head else None, s

    def context(self, alpn=("http/1.1",), ca=None):
        context = ssl.create_default_context(cafile=ca or self.bundle)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context

    def tls(self, host=BOUND, port=443, sni=None, context=None):
        """A TLS connection inside of a tunnel; sni: another name to say, "" for none."""
        status, s = self.connect(host, port)
        if status != 200:
            raise Failed("CONNECT %s: %s" % (host, status))
        context = context or self.context()
        if sni is None:
            return context.wrap_socket(s, server_hostname=host, suppress_ragged_eofs=False)
        context.check_hostname = False
        return context.wrap_socket(s, server_hostname=sni or None, suppress_ragged_eofs=False)

    def exchange(self, data, host=BOUND, port=443, timeout=10, **more):
        """One TLS connection: sends the bytes, reads to the end: what came, and how it ended."""
        with self.tls(host, port, **more) as s:
            s.settimeout(timeout)
            s.sendall(data)
            return read_all(s)

    def curl(self, *words, **more):
        return HOME.host("curl", "-sS", "-m", "20", *words, env=self.environment(**more), cwd=HOME.root)

    def environment(self, **more):
        return dict({"PATH": "/usr/bin:/bin", "HOME": HOME.root, "SSL_CERT_FILE": self.bundle, "CURL_CA_BUNDLE": self.bundle, "GIT_SSL_CAINFO": self.bundle,
                     "NODE_EXTRA_CA_CERTS": self.bundle, "http_proxy": self.url, "https_proxy": self.url, "HTTP_PROXY": self.url, "HTTPS_PROXY": self.url,
                     "NODE_USE_ENV_PROXY": "1"}, **more)


def read_all(s):
    data = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return data, "eof"
            data += more
    except socket.timeout:
        return data, "still-open"
    except (ssl.SSLError, OSError):
        return data, "cut"


def read_response(s, rest=b"", head_only=False):
    """One response from a connection that goes on: head, body, and what came behind."""
    while b"\r\n\r\n" not in rest:
        more = s.recv(65536)
        if not more:
            raise Failed("the connection ended: %r" % rest)
        rest += more
    head, _, rest = rest.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    n = 0 if head_only or not found else int(found.group(1))
    while len(rest) < n:
        more = s.recv(65536)
        if not more:
            raise Failed("the body ended")
        rest += more
    return head, rest[:n], rest[n:]


def request(path="/", host=BOUND, method="GET", fields=(), sentinel=SENTINEL, header="x-api-key", body=b"", close=False):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + host] + (["%s: %s" % (header, sentinel)] if sentinel else []) + list(fields)
    lines += ["Content-Length: %d" % len(body)] if body else []
    lines += ["Connection: close"] if close else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def status_of(data):
    found = re.match(rb"HTTP/1\.1 (\d{3})", data)
    return int(found.group(1)) if found else None


def works(t, way):
    """A good request passes, and the host sees the real value."""
    before = len(lab.requests)
    data, end = way.exchange(request("/fine", close=True))
    got = lab.requests[-1] if len(lab.requests) > before else None
    t.works(status_of(data) == 200 and data.endswith(b"hello /fine") and end == "eof", "a good request is answered", data[:200], end)
    t.works(got is not None and got.all("x-api-key") == [REAL], "and the host had the secret", got and got.fields)


def sent_since(before):
    return b"".join(bytes(c.got) for c in lab.conns[before:])


@wall("SEN-01 SEN-04 CRED-02", "the real value reaches the named host in the named header, and nobody else")
def _(t):
    with Tls() as way:
        works(t, way)
        data, _ = way.exchange(request("/b", BOUND_B, header="Authorization", sentinel="Bearer " + SENTINEL_B, close=True), BOUND_B)
        t.works(status_of(data) == 200 and lab.requests[-1].all("authorization") == ["Bearer " + REAL_B], "another rule's, in its own format", data[:100])
        data, _ = way.exchange(request("/p", BOUND + ":8443", close=True), BOUND, 8443)
        t.works(status_of(data) == 200 and lab.requests[-1].get("x-api-key") == REAL, "and at another port that a rule names", data[:100])
        with way.tls(OTHER, context=way.context(ca=lab.ca)) as s:
            issuer = dict(x[0] for x in s.getpeercert()["issuer"])
            s.sendall(request("/o", OTHER, close=True))
            data, _ = read_all(s)
        t.works(issuer["commonName"] == "kraft test network", "a host without a rule is a blind tunnel: its own certificate", issuer)
        t.attack(status_of(data) == 200 and lab.requests[-1].all("x-api-key") == [SENTINEL], "and it gets the sentinel as it is", lab.requests[-1].fields)
        with way.tls() as s:
            issuer = dict(x[0] for x in s.getpeercert()["issuer"])
        t.control(issuer["commonName"] == "kraft session", "where a bound one's is the session's", issuer)


@wall("SEN-02 CRED-03 CRED-09", "a request without exactly the sentinel is 403, closed and never dialled")
def _(t):
    cases = {"none": request(sentinel=None), "wrong": request(sentinel=SENTINEL[:-1] + "x"), "longer": request(sentinel=SENTINEL + "x"),
             "other rule's": request(sentinel=SENTINEL_B), "twice, once wrong": request(fields=["X-Api-Key: other"]),
             "another header": request(sentinel=None, fields=["X-Other: " + SENTINEL]), "query": request("/?key=" + SENTINEL, sentinel=None),
             "path": request("/" + SENTINEL), "basic": request(sentinel=None, fields=["Authorization: Basic " + base64.b64encode(b"u:" + SENTINEL.encode()).decode()]),
             "other host": request(host=OTHER), "other port": request(host=BOUND + ":8443"), "host of the other rule": request(host=BOUND_B),
             "absolute": request("https://%s/" % BOUND), "absolute to another": request("http://%s/" % OTHER)}
    with Tls() as way:
        before, asked = len(lab.conns), len(lab.names.asked)
        found = {}
        for label, data in cases.items():
            got, end = way.exchange(data)
            found[label] = (status_of(got), end)
        wrong = {k: v for k, v in found.items() if v[0] not in (400, 403) or v[1] != "eof"}
        t.attack(not wrong and len(found) == len(cases), "refused and closed", wrong)
        t.attack(len(lab.conns) == before and len(lab.names.asked) == asked, "nothing was dialled or looked up", len(lab.conns) - before)
        t.attack(way.tells("refused " + BOUND) and not any(REAL in line or SENTINEL in line for line in way.said), "kraft is told, without values", way.said)
        works(t, way)
        raw = [way.exchange(data, OTHER, context=way.context(ca=lab.ca))[0] for data in (request(sentinel=None, close=True), request(host=OTHER, close=True))]
        t.control([status_of(r) for r in raw] == [200, 200], "a host without a rule takes them all", raw)


@wall("CRED-04", "a plain request to a bound name is 403 and never dialled")
def _(t):
    lab.serve(BOUND)
    with Tls() as way:
        before = len(lab.conns)
        for url in ("http://%s/" % BOUND, "http://%s:443/" % BOUND, "http://%s:8080/x" % BOUND):
            got = way.curl("-i", url, "-H", "X-Api-Key: " + SENTINEL)
            t.attack(" 403 " in got.out and "only over TLS" in got.out, "refused", url, got.out)
        t.attack(len(lab.conns) == before, "nothing was dialled")
        t.attack(way.tells("only over TLS"), "kraft is told", way.said)
        works(t, way)
    with Tls(rules=RULES[1:2], hosts=(BOUND, BOUND_B)) as way:
        got = way.curl("http://%s/" % BOUND)
        t.control(got.code == 0 and "from" in got.out, "without a rule for it, it goes out", got)


@wall("CRED-05", "CONNECT, SNI and Host: only where all three agree is anything forwarded")
def _(t):
    names = [BOUND, BOUND_B, OTHER, "denied.tls.example"]
    with Tls() as way:
        before, passed, wrong = len(lab.requests), 0, []
        for authority in (BOUND, BOUND_B):
            sentinel, header = (SENTINEL, "x-api-key") if authority == BOUND else ("Bearer " + SENTINEL_B, "authorization")
            for sni in names:
                for host in names:
                    try:
                        data, _ = way.exchange(request("/three", host, sentinel=sentinel, header=header, close=True), authority, sni=sni)
                    except (ssl.SSLError, OSError) as why:
                        data = str(why).encode()
                    good = authority == sni == host
                    passed += status_of(data) == 200
                    if (status_of(data) == 200) != good or (sni != authority and b"unrecognized" not in data.lower()):
                        wrong.append((authority, sni, host, data[:80]))
        t.attack(not wrong, "each other combination is refused", wrong)
        t.control(passed == 2 and len(lab.requests) == before + 2, "the two that agree pass", passed, len(lab.requests) - before)
        t.attack(way.tells("SNI") and way.tells("'denied.tls.example'"), "kraft is told which name the client gave", way.said)
        works(t, way)


def hello_in_pieces(way, size, pause=0.0, host=BOUND, context=None, sni=True):
    """A handshake whose bytes go out in pieces; the answer to a request after it."""
    status, s = way.connect(host)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = (context or way.context()).wrap_bio(incoming, outgoing, server_hostname=host)

    def push():
        data = outgoing.read()
        for i in range(0, len(data), size):
            s.sendall(data[i:i + size])
            time.sleep(pause)

    def pull():
        more = s.recv(65536)
        if not more:
            raise Failed("the connection ended")
        incoming.write(more)

    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            push()
            pull()
    tls.write(request("/pieces", host, close=True))
    push()
    data = b""
    with contextlib.suppress(ssl.SSLZeroReturnError, ssl.SSLEOFError, Failed):
        while True:
            try:
                more = tls.read(65536)
                if not more:
                    break
                data += more
            except ssl.SSLWantReadError:
                pull()
    s.close()
    return data


@wall("CRED-06", "a ClientHello in one-byte segments, a large one, one without a name, and what is no TLS at all")
def _(t):
    with Tls() as way:
        t.works(status_of(hello_in_pieces(way, 1)) == 200, "one byte in each segment")
        large = way.context(alpn=["p%d-%s" % (i, "x" * 200) for i in range(40)] + ["http/1.1"])
        t.works(status_of(hello_in_pieces(way, 700, context=large)) == 200, "the names of protocols fill eight kilobytes")
        before = len(lab.conns)
        try:
            way.tls(sni="")
            t.attack(False, "without a name the handshake fails")
        except ssl.SSLError as why:
            t.attack("UNRECOGNIZED" in str(why).upper(), "without a name: unrecognized_name", why)
        t.attack(way.tells("names no host"), "and kraft is told", way.said)
        for junk in (b"GET / HTTP/1.1\r\n\r\n", bytes(2000), b"\x16\x03\x01\xff\xff" + bytes(70000), b"\x80\x2e\x01\x03\x00"):
            _, s = way.connect()
            with contextlib.suppress(OSError):
                s.sendall(junk)
            t.attack(read_all(s)[0][:1] in (b"", b"\x15"), "what is no hello gets an alert or nothing", junk[:10])
            s.close()
        status, s = way.connect(early=b"\x16\x03\x01")
        s.close()
        t.attack(status == 400, "bytes before the tunnel is there: 400", status)
        t.attack(len(lab.conns) == before, "nothing was dialled")
        works(t, way)
        t.control(status_of(hello_in_pieces(way, 100000)) == 200, "in one piece it is the same")


@wall("CRED-07", "only h2, old TLS, session tickets, renegotiation: refused or not offered")
def _(t):
    with Tls() as way:
        for alpn in (["h2"], ["h2", "grpc"], ["http/1.0"], ["xhttp/1.1", "http/1.1x"]):
            try:
                way.tls(context=way.context(alpn=alpn))
                t.attack(False, "refused", alpn)
            except ssl.SSLError as why:
                t.attack("NO_APPLICATION_PROTOCOL" in str(why).upper().replace(" ", "_"), "no_application_protocol", alpn, why)
        t.attack(way.tells("HTTP/2"), "kraft is told", way.said)
        both = way.tls(context=way.context(alpn=["h2", "http/1.1"]))
        t.control(both.selected_alpn_protocol() == "http/1.1", "one that offers both gets http/1.1")
        both.close()
        none = way.tls(context=way.context(alpn=()))
        t.control(none.selected_alpn_protocol() is None, "one that offers nothing is served")
        none.close()
        for version, good in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
            context = way.context()
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the old one is meant
                context.minimum_version = context.maximum_version = version
            try:
                with way.tls(context=context) as s:
                    s.sendall(request(close=True))
                    got = status_of(read_all(s)[0])
                    (t.control if good else t.attack)(good and got == 200, "this version is spoken", version, got)
                    t.attack(not s.session or not s.session.has_ticket, "and no ticket is given", version)
            except (ssl.SSLError, OSError) as why:
                t.attack(not good, "an old version is not spoken", version, why)
        words = ["openssl", "s_client", "-quiet", "-tls1_2", "-proxy", "127.0.0.1:%d" % way.port, "-proxy_user", "kraft", "-proxy_pass", "pass:" + way.token,
                 "-connect", BOUND + ":443", "-servername", BOUND]
        done = subprocess.run([w for w in words if w != "-quiet"], input=b"R\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False)
        t.attack(b"RENEGOTIATING" in done.stdout and b"no renegotiation" in done.stdout.lower(), "renegotiation is refused", done.stdout[-300:])
        works(t, way)


def said(way, *pieces):
    """What comes through of these bytes of the host's."""
    SAYS[:] = pieces
    return way.exchange(request("/says"))


@wall("CRED-08", "a host that answers with the secret is cut off before it: in head and body, split and spelled in other ways")
def _(t):
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
    spelled = {"plain": REAL.encode(), "base64": base64.b64encode(b"x:" + REAL.encode()), "base64, url": base64.urlsafe_b64encode(b"key " + REAL.encode() + b"??"),
               "percent": "".join("%%%02x" % c for c in REAL.encode()).encode(), "hex": REAL.encode().hex().encode()}
    with Tls() as way:
        before = len(lab.requests)
        for label, secret in spelled.items():
            body = b"before " + secret + b" behind"
            data, end = said(way, ok % len(body) + body)
            t.attack(end == "cut" and data.endswith(b"before ") or data.endswith(b"before e") or (label.startswith("base64") and end == "cut" and secret[8:] not in data), "in one piece", label, data, end)
            data, end = said(way, ok % len(body), *[body[i:i + 1] for i in range(len(body))])
            t.attack(end == "cut" and b"behind" not in data and secret[4:] not in data, "in single bytes", label, data, end)
            chunks = b"".join(b"1\r\n%c\r\n" % c for c in body)
            data, end = said(way, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
            plain = re.sub(rb"[0-9a-f]+\r\n(.*?)\r\n", rb"\1", data.partition(b"\r\n\r\n")[2], flags=re.S)
            t.attack(end == "cut" and secret[4:] not in plain and b"behind" not in plain and b"0\r\n\r\n" not in data, "in chunks of one", label, data, end)
        body = b"x" * 100000 + REAL.encode() + b"y" * 100000
        data, end = said(way, ok % len(body) + body)
        t.attack(end == "cut" and data.endswith(b"x" * 99999) and b"kr-" not in data, "in a large one: all before it comes, nothing of it", len(data), end)
        for head in (b"X-Echo: " + REAL.encode(), b"Set-Cookie: a=" + base64.b64encode(REAL.encode())):
            data, end = said(way, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + head + b"\r\n\r\n")
            t.attack(status_of(data) == 502 and REAL.encode() not in data and b"secret" in data, "in a header: 502", data)
            data, end = said(way, b"HTTP/1.1 103 Early\r\n" + head + b"\r\n\r\n" + ok % 0)
            t.attack(status_of(data) == 502 and REAL.encode() not in data, "of an interim response too", data)
        data, end = said(way, b"HTTP/1.1 200 " + REAL.encode() + b"\r\nContent-Length: 0\r\n\r\n")
        t.attack(status_of(data) == 502, "in the status line", data)
        data, end = said(way, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc")
        t.attack(status_of(data) == 502 and b"abc" not in data, "a packed answer, which nobody asked for", data)
        for head in (b"206 Partial Content\r\nContent-Range: bytes 0-2/9", b"206 Partial Content", b"200 OK\r\nContent-Range: bytes 0-2/9"):
            data, end = said(way, b"HTTP/1.1 " + head + b"\r\nContent-Length: 3\r\n\r\nabc")
            t.attack(status_of(data) == 502 and b"abc" not in data, "a part, which nobody asked for", head, data)
        data, end = said(way, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
        t.control(data.endswith(b"abc"), "the same whole", data)
        t.attack(way.tells("echoed %s API_KEY" % BOUND) and not any(REAL in line for line in way.said), "kraft is told", way.said)
        data, end = way.exchange(request("/echo", fields=["X-Of-Mine: a", "Accept-Encoding: gzip"]))
        t.attack(end == "cut" and REAL.encode()[:8] not in data, "a host that echoes the request", data, end)
        t.works(len(lab.requests) > before and lab.requests[-1].all("accept-encoding") == [] and lab.requests[-1].get("x-of-mine") == "a", "which was asked for nothing packed")
        part = REAL.encode()[:20]
        data, end = said(way, ok % (10 + len(part)) + b"beginning " + part)
        t.works(status_of(data) == 200 and data.endswith(part), "what only begins like it comes whole", data, end)
        data, end = said(way, b"HTTP/1.1 200 OK\r\n\r\nuntil the end " + part)
        t.works(b"until the end" in data and REAL.encode() not in data, "also before an end", data, end)
        works(t, way)
    with Tls(rules=[r[:7] + ("another-value-of-the-secret",) for r in RULES]) as way:
        data, end = said(way, ok % len(REAL) + REAL.encode())
        t.control(data.endswith(REAL.encode()), "what is no secret comes through", data, end)


@wall("CRED-08", "a host that echoes is not asked for the secret in parts")
def _(t):
    with Tls() as way:
        found = b""
        for i in range(0, len(REAL), 8):
            data, end = way.exchange(request("/ranges", fields=["Range: bytes=%d-%d" % (i, i + 7), "If-Range: x"], close=True))
            found += data.partition(b"\r\n\r\n")[2]
            t.attack(end == "cut" and lab.requests[-1].all("range") == [] and lab.requests[-1].all("if-range") == [], "the whole is asked for, and cut", data, end)
        t.attack(found == b"", "nothing of it came", found)
        works(t, way)
        part, _ = way.exchange(request("/ranges", OTHER, fields=["Range: bytes=0-7"], close=True), OTHER, context=way.context(ca=lab.ca))
        t.control(status_of(part) == 206 and part.endswith(SENTINEL[:8].encode()), "a host without a rule is asked for parts", part)


@wall("CRED-10 CRED-11", "one identity reaches the host, and no other host")
def _(t):
    own = ["Authorization: Bearer own-secret", "Cookie: session=own-secret", "Api-Key: own-secret", "X-Goog-Api-Key: own-secret", "Private-Token: own-secret",
           "Proxy-Authorization: Basic own-secret", "X-Harmless: stays"]
    with Tls() as way:
        data, _ = way.exchange(request("/own", fields=own, close=True))
        got = lab.requests[-1]
        t.attack(status_of(data) == 200 and b"own-secret" not in got.head and got.all("x-api-key") == [REAL], "none of the worker's own credentials", got.fields)
        t.works(got.get("x-harmless") == "stays", "the rest goes on", got.fields)
        data, _ = way.exchange(request("/twice", fields=["X-API-KEY: " + SENTINEL], close=True))
        t.attack(status_of(data) == 200 and lab.requests[-1].all("x-api-key") == [REAL], "the same one twice becomes one", lab.requests[-1].fields)
        before = len(lab.requests)
        got = way.curl("-L", "https://%s/redirect" % BOUND, "-H", "X-Api-Key: " + SENTINEL)
        there = lab.requests[-1]
        t.attack(there.target == "/there" and there.all("x-api-key") == [SENTINEL] and REAL.encode() not in there.head, "a redirected client takes the sentinel along, and nothing else", there.fields)
        t.works(got.code == 0 and len(lab.requests) == before + 2, "and is answered", got)
        way.exchange(request("/own", OTHER, fields=own, close=True), OTHER, context=way.context(ca=lab.ca))
        t.control(lab.requests[-1].head.count(b"own-secret") == 6, "a host without a rule gets them as they are", lab.requests[-1].head)


@wall("CRED-14 CRED-15", "no error says the value; another session's sentinel and random ones are refused")
def _(t):
    with Tls() as one, Tls(rules=[r[:4] + ("sk-other-sentinel-0123456789abcdef",) + r[5:] for r in RULES[:1]], hosts=(BOUND,)) as two:
        data, _ = two.exchange(request())
        t.attack(status_of(data) == 403 and SENTINEL.encode() not in data, "another session's sentinel", data)
        answers = [data]
        before = len(lab.conns)
        for _ in range(200):
            guess = "sk-sentinel-" + base64.b32encode(os.urandom(20)).decode()
            answers.append(one.exchange(request(sentinel=guess))[0])
        t.attack(all(status_of(a) == 403 for a in answers) and len(lab.conns) == before, "random ones")
        for bad in (request(path="/" + SENTINEL), request(fields=["A b: c"]), request(fields=["Content-Length: 1", "Content-Length: 2"]), b"\r\n\r\n", request(host="x y")):
            answers.append(one.exchange(bad)[0])
        said = "\n".join(one.said + two.said).encode()
        found = [a for a in answers + [said] if REAL.encode() in a or SENTINEL.encode() in a]
        t.attack(not found and all(a for a in answers), "no answer and no event says a value or a sentinel", found)
        works(t, one)
        t.control(b"refused " + BOUND.encode() in said and b"API_KEY" in said, "though they say which credential it was about", said[:500])


def revocations(folder, name, certificates, *until):
    """The lab's CA revokes these: its list, as PEM; until: openssl's words for how long it holds."""
    database, out = name + ".index", name + ".crl"
    open(database, "w").close()
    settings = name + ".conf"
    with open(settings, "w") as f:
        f.write("[ca]\ndefault_ca=own\n[own]\ndatabase=%s\ndefault_md=sha256\n" % database)
    ca = ["openssl", "ca", "-config", settings, "-cert", lab.ca, "-keyfile", os.path.join(folder, "ca.key")]
    for certificate in certificates:
        netlab.run(*ca, "-revoke", certificate)
    netlab.run(*ca, "-gencrl", *(until or ("-crldays", "2")), "-out", out)
    return read(out)


@wall("CRED-12", "a host whose certificate does not hold gets no byte of a request")
def _(t):
    folder = lab.dir
    def pair(name, *words, san=BOUND, days="2", ca=True):
        base = os.path.join(folder, name)
        with open(base + ".ext", "w") as f:
            f.write("subjectAltName=%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n" % san)
        netlab.run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + BOUND, "-keyout", base + ".key", "-out", base + ".csr")
        signer = ["-CA", lab.ca, "-CAkey", os.path.join(folder, "ca.key"), "-CAcreateserial"] if ca else ["-signkey", base + ".key"]
        netlab.run("openssl", "x509", "-req", "-in", base + ".csr", *signer, "-days", days, "-extfile", base + ".ext", "-out", base + ".pem", *words)
        return base + ".pem", base + ".key"
    cases = {"good": (pair("good", san="DNS:bad0.tls.example"), None), "expired": (pair("expired", san="DNS:bad1.tls.example", days="-1"), "expired"),
             "self-signed": (pair("self", san="DNS:bad2.tls.example", ca=False), "self-signed"), "other name": (pair("other", san="DNS:elsewhere.example"), "hostname mismatch"),
             "name in the subject only": (pair("subject", san="email:a@example.org"), "hostname mismatch"),
             "part of a label": (pair("partial", san="DNS:b*.tls.example"), "hostname mismatch"), "wildcard": (pair("wild", san="DNS:*.tls.example"), None),
             "no TLS": (None, "TLS with the host failed")}
    rules = [("bad%d.tls.example" % i, 443) + RULES[0][2:] for i in range(len(cases))]
    for i, (files, _) in enumerate(cases.values()):
        address = lab.serve("bad%d.tls.example" % i)
        lab.handlers[address, 443] = netlab.over_tls(lab, netlab.http(answer), files) if files else netlab.says(b"HTTP/1.1 200 OK\r\n\r\n", False)
    lab.listen(443)
    with Tls(rules=rules + RULES, hosts=["*.tls.example"] + [r[0] for r in rules]) as way:
        for i, (label, (_, why)) in enumerate(cases.items()):
            host, before, requests = "bad%d.tls.example" % i, len(lab.conns), len(lab.requests)
            data, end = way.exchange(request("/verify", host, body=b"body " + SENTINEL.encode(), method="POST", close=True), host)
            if why is None:
                t.control(status_of(data) == 200 and lab.requests[-1].get("x-api-key") == REAL, "served", label, data[:200])
                continue
            t.attack(status_of(data) == 502 and why.encode() in data and end == "eof", "502", label, data[:300])
            t.attack(len(lab.requests) == requests and REAL.encode() not in sent_since(before), "no byte of the request", label)
            t.attack(way.tells("refused " + host), "kraft is told", way.said)
        works(t, way)
    revoked, other = os.path.join(folder, "revoked.pem"), os.path.join(folder, "nothing.pem")
    for file, gone in ((revoked, "good"), (other, "other")):
        with open(file, "w") as f:
            f.write(read(lab.ca) + revocations(folder, file, [os.path.join(folder, gone + ".pem")]))
    for roots, status, why in ((revoked, 502, b"certificate revoked"), (other, 200, b"")):
        with Tls(rules=rules + RULES, hosts=[r[0] for r in rules], roots=roots) as way:
            before, requests = len(lab.conns), len(lab.requests)
            data, _ = way.exchange(request("/verify", rules[0][0], close=True), rules[0][0])
            try_it = t.attack if why else t.control
            try_it(status_of(data) == status and why in data, "a certificate that the extra CA has revoked, and one that it has not", data[:300])
            try_it(len(lab.requests) - requests == (status == 200) and (REAL.encode() not in sent_since(before) or status == 200), "no byte of the request", roots)
    with open(revoked, "w") as f:
        f.write(read(lab.ca) + revocations(folder, revoked, [], "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z"))
    with Tls(rules=rules + RULES, hosts=[r[0] for r in rules], roots=revoked) as way:
        data, _ = way.exchange(request("/verify", rules[0][0], close=True), rules[0][0])
        t.attack(status_of(data) == 502 and b"CRL has expired" in data, "a list that has run out says nothing any more, so nothing goes there", data[:300])
    with Tls(roots="/etc/ssl/certs/ca-certificates.crt") as way:
        before = len(lab.requests)
        data, _ = way.exchange(request(close=True))
        t.attack(status_of(data) == 502 and len(lab.requests) == before, "with other roots the lab's hosts are unknown", data[:200])
    with Tls() as way:
        netlab_ca = os.path.join(way.folder, "session-only.pem")
        with open(netlab_ca, "w") as f:
            f.write(read(way.authority))
        t.attack(read(way.authority) not in read(lab.ca), "the session's authority is not among the roots that hosts are verified with")


@wall("CRED-13", "the authority: each session its own, its key nowhere, and only for the names of rules")
def _(t):
    with Tls() as one, Tls() as two:
        t.attack(read(one.authority) != read(two.authority) and "PRIVATE" not in read(one.authority), "each session has its own, and only its certificate is given")
        try:
            two.tls(context=two.context(ca=one.authority))
            t.attack(False, "one session's is not the other's")
        except ssl.SSLError:
            t.attack(True, "one session's is not the other's")
        text = subprocess.run(["openssl", "x509", "-in", one.authority, "-noout", "-text"], stdout=subprocess.PIPE, check=True).stdout.decode()
        t.works("CA:TRUE, pathlen:0" in text and "Certificate Sign, CRL Sign" in text and "CN = kraft session" in text, "what it says of itself", text)
        with one.tls() as s:
            found = s.getpeercert()
        t.attack(found["subjectAltName"] == (("DNS", BOUND),) and not found["subject"], "a leaf is for one name", found)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            for name in ("cmdline", "environ"):
                t.attack("PRIVATE" not in read("/proc/%d/%s" % (one.pid(), name)) and REAL not in read("/proc/%d/%s" % (one.pid(), name)), "nothing in its " + name)
        t.attack(not os.access("/proc/%d/mem" % one.pid(), os.R_OK) and not os.access("/proc/%d/environ" % one.pid(), os.R_OK), "its memory is closed to others of the user")
        t.control(os.access("/proc/%d/mem" % one.process.pid, os.R_OK), "where an ordinary process's is open")
        works(t, one)


@promise("SEN-01", "keep-alive, pipelining, bodies, interim responses: as the host says them")
def _(t):
    with Tls() as way, way.tls() as s:
        s.settimeout(20)
        conns, requests, rest = len(lab.conns), len(lab.requests), b""
        for i in range(200):
            s.sendall(request("/n/%d" % i))
            head, body, rest = read_response(s, rest)
            if body != b"hello /n/%d" % i:
                t.works(False, "each answer is its own", i, head, body)
        t.works(len(lab.conns) == conns + 1 and len(lab.requests) == requests + 200, "200 requests over one connection on both sides", len(lab.conns) - conns)
        s.sendall(b"".join(request("/p/%d" % i, body=b"x" * i, method="POST") for i in range(50)))
        answers = []
        for i in range(50):
            _, body, rest = read_response(s, rest)
            answers.append(body)
        t.works(answers == [b"hello /p/%d" % i for i in range(50)] and rest == b"", "50 at once are answered in order")
        s.sendall(request("/h", method="HEAD") + request("/early"))
        head, _, rest = read_response(s, rest, head_only=True)
        t.works(b"Content-Length: 8" in head, "HEAD has no body", head)
        first, _, rest = read_response(s, rest, head_only=True)
        second, _, rest = read_response(s, rest, head_only=True)
        third, body, rest = read_response(s, rest)
        t.works(first.startswith(b"HTTP/1.1 100") and b"X-Hint: a" in second and body == b"ok", "interim responses pass", first, second, third)
        s.sendall(request("/status/304") + request("/status/204") + request("/len/300000"))
        one, _, rest = read_response(s, rest, head_only=True)
        two, _, rest = read_response(s, rest, head_only=True)
        three, body, rest = read_response(s, rest)
        t.works(status_of(one) == 304 and status_of(two) == 204 and len(body) == 300000, "304 and 204 have none, a large one is whole", one, two, len(body))
        chunk = b"%x\r\n%s\r\n" % (40000, b"c" * 40000)
        s.sendall(request("/echo", method="POST", fields=["Transfer-Encoding: chunked"]) + chunk * 5 + b"0\r\n\r\n" + request("/len/3"))
    with Tls() as way:
        data, end = way.exchange(request("/close"))
        t.works(data.endswith(b"until the end") and end == "eof", "a body until the end", data, end)
        data, end = way.exchange(request("/close/cut"))
        t.works(data.endswith(b"until the end") and end == "cut", "one that is cut off looks cut off", data, end)
        data, end = way.exchange(request("/switch"))
        t.works(status_of(data) == 502 and end == "eof", "101 is not passed", data[:200])
        requests = len(lab.requests)
        data, end = way.exchange(request("/chat", fields=["Connection: Upgrade", "Upgrade: WebSocket"]))
        t.works(status_of(data) == 426 and end == "eof" and len(lab.requests) == requests, "a WebSocket is refused before it is asked for", data[:200])
        data, _ = way.exchange(request("/chat", fields=["Connection: Upgrade, close", "Upgrade: h2c"]))
        t.control(status_of(data) == 200, "the same without", data[:200])
        data, end = way.exchange(request("/n/1") + request("/n/2", sentinel="wrong-wrong-wrong-wrong-wrong"))
        t.works(data.count(b"HTTP/1.1 200") == 1 and data.count(b"HTTP/1.1 403") == 1 and end == "eof", "each request of a pipeline is judged", data)
        with way.tls() as s:
            conns = len(lab.conns)
            s.sendall(request("/extra"))
            _, body, rest = read_response(s)
            s.sendall(request("/next"))
            _, after, rest = read_response(s, rest)
            t.works(body == b"ok" and after == b"hello /next" and rest == b"", "what a host sends behind a response is no answer to the next request", body, after)
            t.works(len(lab.conns) == conns + 2, "which goes over a new connection", len(lab.conns) - conns)
            s.sendall(request("/last"))
            _, body, _ = read_response(s)
            time.sleep(0.3)
            s.sendall(request("/behind"))
            _, after, _ = read_response(s)
            t.works(body == b"last" and after == b"hello /behind", "a host that hung up between two requests is dialled anew", body, after)


@promise("SEN-01", "through the person's own proxy: TLS with the host itself, and the proxy sees none of it")
def _(t):
    lab.on_host("127.0.0.1", 3999, netlab.proxy())
    lab.on_host("127.0.0.1", 3998, netlab.proxy(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"))
    with Tls(env={"https_proxy": "http://me:word@127.0.0.1:3999"}) as way:
        before = len(lab.proxied)
        data, _ = way.exchange(request("/via", close=True))
        t.works(status_of(data) == 200 and lab.requests[-1].get("x-api-key") == REAL, "the host has the secret", data[:200])
        t.works(len(lab.proxied) == before + 1 and lab.proxied[-1].line.startswith("CONNECT %s:443" % BOUND), "by CONNECT", lab.proxied[-1].line)
        seen = b"".join(bytes(c.got) for c in lab.conns if c.port == 3999)
        t.works(REAL.encode() not in seen and SENTINEL.encode() not in seen and b"CONNECT" in seen, "the proxy saw only TLS")
    with Tls(env={"https_proxy": "http://127.0.0.1:3998"}) as way:
        data, _ = way.exchange(request("/via", close=True))
        t.works(status_of(data) == 502 and b"upstream proxy refused" in data, "its refusal is told", data)


@promise("SEN-03", "a kraft-egress-tls that was killed is started again with the same authority, and asks for the values anew")
def _(t):
    with Tls(rules=[RULES[0][:7] + ("-",)]) as way:
        data, end = way.exchange(request())
        t.works(status_of(data) == 403 and b"REAL_API_KEY" in data, "a value that is not there: 403 that names its source", data)
        way.write(RULES)
        os.kill(way.pid(), 9)
        t.works(way.tells("lost"), "it is told of", way.said)
        works(t, way)


@promise("SEN-01", "curl, python, node and git, as they are")
def _(t):
    with Tls() as way:
        got = way.curl("https://%s/curl" % BOUND, "https://%s/curl2" % BOUND, "-H", "X-Api-Key: " + SENTINEL)
        t.works(got.out == "hello /curlhello /curl2", "curl, two requests", got)
        got = way.curl("--data-binary", "@/etc/services", "https://%s/echo" % BOUND, "-H", "X-Api-Key: " + SENTINEL, "-H", "Expect: 100-continue")
        t.works("ssh" in lab.requests[-1].body.decode(), "curl, an upload that waits for a word")
        code = ("import urllib.request as u; r = u.Request('https://%s/py', headers={'X-Api-Key': '%s'}); print(u.urlopen(r).read().decode())" % (BOUND, SENTINEL))
        got = HOME.host("python3", "-c", code, env=way.environment(), cwd=HOME.root)
        t.works(got.out.strip() == "hello /py", "python", got)
        node = ("const tls=require('tls'),net=require('net');const u=new URL(process.env.https_proxy);"
                "const s=net.connect(u.port,u.hostname,()=>s.write('CONNECT %s:443 HTTP/1.1\\r\\nHost: x\\r\\nProxy-Authorization: Basic '+Buffer.from('kraft:'+u.password).toString('base64')+'\\r\\n\\r\\n'));"
                "s.once('data',()=>{const t=tls.connect({socket:s,servername:'%s',ALPNProtocols:['http/1.1']},()=>t.write('GET /node HTTP/1.1\\r\\nHost: %s\\r\\nX-Api-Key: %s\\r\\nConnection: close\\r\\n\\r\\n'));"
                "t.on('data',d=>process.stdout.write(d))})") % (BOUND, BOUND, BOUND, SENTINEL)
        got = HOME.host("node", "-e", node, env=way.environment(), cwd=HOME.root)
        t.works(got.out.endswith("hello /node"), "node", got)
        repo, work = os.path.join(lab.dir, "repo.git"), os.path.join(way.folder, "clone")
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repo], check=True)
        subprocess.run(["git", "--git-dir", repo, "config", "http.receivepack", "true"], check=True)
        url, name = "https://%s/repo.git" % BOUND, ["-c", "user.name=a", "-c", "user.email=a"]
        def git(*words):
            return HOME.host("git", "-c", "http.extraHeader=X-Api-Key: " + SENTINEL, *words, env=way.environment(), cwd=HOME.root)
        subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)
        with open(os.path.join(work, "large"), "wb") as f:
            f.write(os.urandom(3 << 20))  # more than git sends in one piece: it goes out chunked, with a probe before
        subprocess.run(["git", "-C", work, "add", "."], check=True)
        subprocess.run(["git", "-C", work, *name, "commit", "-qm", "through"], check=True)
        got = git("-C", work, "push", "-q", url, "main")
        heads = subprocess.run(["git", "--git-dir", repo, "log", "--format=%s"], stdout=subprocess.PIPE, check=False).stdout
        posts = [r for r in lab.requests if r.method == "POST" and "git-receive-pack" in r.target]
        t.works(got.code == 0 and heads == b"through\n", "git, a push", got, heads)
        t.works(any(r.get("transfer-encoding") for r in posts) and all(r.all("x-api-key") == [REAL] for r in posts), "in chunks, with the secret", [r.head for r in posts])
        got = git("clone", "-q", url, work + "2")
        t.works(got.code == 0 and filecmp.cmp(work + "2/large", work + "/large", shallow=False), "git, a clone", got)
        subprocess.run(["git", "-C", work, *name, "commit", "-qm", "more", "--allow-empty"], check=True)
        got = [git("-C", work, "push", "-q", url, "main"), git("-C", work + "2", "pull", "-q", "--ff-only")]
        said = subprocess.run(["git", "-C", work + "2", "log", "--format=%s"], stdout=subprocess.PIPE, check=True).stdout
        t.works(said == b"more\nthrough\n", "git, a pull", got, said)
        requests = len(lab.requests)
        got = HOME.host("git", "ls-remote", url, env=way.environment(), cwd=HOME.root)
        t.control(got.code != 0 and "403" in got.err and len(lab.requests) == requests, "without the sentinel it gets nothing", got)


if __name__ == "__main__":
    main()
