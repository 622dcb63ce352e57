"""A network of our own for the tests of the egress: a whole internet behind one cable, entered by an ordinary user.

enter() starts the program again in new user, network and mount namespaces. Lab() then lays a cable (a veth pair) between
the namespace that the test and kraft run in, called "the host" below, and a second one, "the internet", in which every
address is local: what a listener of ours does not answer is refused there, and nothing reaches a real network. So a
packet that leaves the host is seen, wherever it was meant to go, and 8.8.8.8 or the metadata address can be tried
without harm. The capabilities that this takes stay with two threads; the test and everything that it starts have none,
and make their sandboxes as an ordinary user does.

    the host          203.5.0.2, 2a00:1450:5::2 on k0; /etc/hosts, /etc/resolv.conf and /etc/nsswitch.conf are the lab's
    the internet      any other address; the name server is 9.9.9.53

A name is made with lab.name (any answer, also none, late, malformed or another one each time), a server with lab.serve.
Servers keep every byte that they were sent, and the connections and look-ups are counted.
"""
import atexit
import base64
import contextlib
import ctypes
import ipaddress
import os
import queue
import re
import select
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

HOST_V4, FAR_V4 = "203.5.0.2", "203.5.0.1"
HOST_V6, FAR_V6 = "2a00:1450:5::2", "2a00:1450:5::1"
NAME_SERVER = "9.9.9.53"
KEPT = 1 << 20  # of the bytes a connection sent; the rest is counted
CLONE_NEWNET = 0x40000000
MARK = "KRAFT_NETLAB"

libc = ctypes.CDLL(None, use_errno=True)


def enter():
    """Starts this program again inside of namespaces of its own; returns there."""
    if os.environ.get(MARK) == "inside":
        return
    os.environ[MARK] = "inside"
    words = ["unshare", "--user", "--map-current-user", "--net", "--mount", "--keep-caps", "--", sys.executable] + sys.argv
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    for needed in ("unshare", "ip", "mount", "openssl"):
        if not shutil.which(needed):
            print("Bail out! the test network needs the program '%s'" % needed)
            sys.exit(1)
    os.execvp(words[0], words)


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(words), done.stdout.decode("utf-8", "replace").strip()))


def _check(value, what):
    if value:
        raise OSError(ctypes.get_errno(), what)


def drop_capabilities():
    """Of the calling thread, for good: what it starts is an ordinary user's program."""
    _check(libc.prctl(47, 4, 0, 0, 0), "PR_CAP_AMBIENT_CLEAR_ALL")
    header, data = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    _check(libc.capset(header, data), "capset")


class Worker(threading.Thread):
    """A thread that keeps its capabilities, and its own network namespace, and does what it is asked to there."""

    def __init__(self):
        super().__init__(daemon=True)
        self.asked = queue.Queue()
        self.start()

    def run(self):
        while True:
            function, answer = self.asked.get()
            try:
                answer.put((function(), None))
            except BaseException as why:  # the caller's to see
                answer.put((None, why))

    def call(self, function):
        answer = queue.Queue()
        self.asked.put((function, answer))
        value, why = answer.get()
        if why:
            raise why
        return value


# ---- connections ----

class Conn:
    """A connection that a server of ours took: what came in over it, and how it ended."""

    def __init__(self, sock):
        self.sock = sock
        self.address, self.port = _plain(sock.getsockname()[0]), sock.getsockname()[1]
        self.peer = _plain(sock.getpeername()[0])
        self.got, self.count, self.held = bytearray(), 0, b""
        self.ended = None  # "eof", "reset" or "closed" (by us)
        self.hello = None  # the name that a TLS client asked for

    def recv(self, n=65536):
        if self.held:
            data, self.held = self.held[:n], self.held[n:]
            return data
        try:
            data = self.sock.recv(n)
        except OSError:
            self.ended = self.ended or "reset"
            return b""
        if not data:
            self.ended = self.ended or "eof"
        self.count += len(data)
        if len(self.got) < KEPT:
            self.got += data[:KEPT - len(self.got)]
        return data

    def until(self, end, most=1 << 20):
        """Bytes up to and with `end`; None when the connection ends before it."""
        data = b""
        while end not in data:
            more = self.recv()
            if not more or len(data) > most:
                return None
            data += more
        head, _, self.held = data.partition(end)
        return head + end

    def exactly(self, n):
        data = b""
        while len(data) < n:
            more = self.recv(min(n - len(data), 1 << 18))
            if not more:
                return None
            data += more
        return data

    def send(self, data):
        try:
            self.sock.sendall(data)
            return True
        except OSError:
            self.ended = self.ended or "reset"
            return False

    def close(self):
        """What is still on its way is read first: it is kept as well, and an answer is not lost to a reset."""
        with contextlib.suppress(OSError, ValueError):
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.settimeout(0.5)
            end = time.monotonic() + 2
            while self.ended is None and time.monotonic() < end and self.recv():
                pass
        self.ended = "closed" if self.ended in (None, "reset") else self.ended
        self.sock.close()

    def abort(self):
        """Ends it with a reset."""
        self.ended = "closed"
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def _plain(address):
    address = address.partition("%")[0]
    return address[7:] if address.startswith("::ffff:") and "." in address else address


# ---- what a server does with a connection ----

def echo(conn):
    while True:
        data = conn.recv()
        if not data or not conn.send(data):
            return


def sink(conn):
    while conn.recv(1 << 20):
        pass


def silent(conn):
    """Takes the connection, says nothing, and reads nothing until the lab ends."""
    time.sleep(600)


def source(total, block=1 << 18):
    """Sends so many bytes, as fast as they are taken."""
    def serve(conn):
        data, left = bytes(block), total
        while left > 0 and conn.send(data[:min(left, block)]):
            left -= block
    return serve


def says(data, read_first=True, hold=0.0):
    """Waits for a request head, answers these bytes whatever it was, and closes."""
    def serve(conn):
        if read_first and conn.until(b"\r\n\r\n") is None:
            return
        conn.send(data)
        time.sleep(hold)
    return serve


class Request:
    """A request as an HTTP server of ours read it, strictly: what is not well formed is `bad`."""

    def __init__(self, conn, head):
        self.conn, self.head, self.body, self.bad = conn, head, b"", None
        lines = head[:-4].split(b"\r\n")
        self.line = lines[0].decode("latin-1")
        self.method, self.target, self.version = (self.line.split(" ") + ["", "", ""])[:3]
        self.fields = []
        for line in lines[1:]:
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or b"\n" in line or b"\r" in line:
                self.bad = "field %r" % line
            self.fields.append((name.lower(), value.strip(" \t")))

    def all(self, name):
        return [v for n, v in self.fields if n == name]

    def get(self, name):
        return (self.all(name) + [None])[0]

    def read_body(self):
        """False when it ended early."""
        lengths, codings = self.all("content-length"), self.all("transfer-encoding")
        if lengths and codings or len(lengths) > 1 or len(codings) > 1:
            self.bad = "framing"
        if codings:
            return self._read_chunks()
        if lengths:
            body = self.conn.exactly(int(lengths[0]))
            self.body = body or b""
            return body is not None
        return True

    def _read_chunks(self):
        while True:
            line = self.conn.until(b"\r\n")
            if line is None:
                return False
            size = int(line.split(b";")[0], 16)
            data = self.conn.exactly(size + 2) if size else b""
            if data is None:
                return False
            if size == 0:
                self.trailers = b""
                while True:
                    line = self.conn.until(b"\r\n")
                    if line is None:
                        return False
                    if line == b"\r\n":
                        return True
                    self.trailers += line
            self.body += data[:-2]


def http(answer=None):
    """An HTTP server. answer: from a Request to the whole response; default: 200 and what address was asked."""
    def plain(request):
        body = ("from %s\n" % request.conn.address).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def serve(conn):
        while True:
            head = conn.until(b"\r\n\r\n")
            if head is None:
                return
            request = Request(conn, head)
            whole = request.read_body()
            request.whole = whole
            conn.lab.requests.append(request)
            if not whole or not conn.send((answer or plain)(request)) or request.get("connection") == "close":
                return
    return serve


def over_tls(lab, handler, pair=None):
    """The handler behind TLS with the lab's certificate, or with another one and its key."""
    def serve(conn):
        try:
            conn.sock = lab.tls_context(conn, pair).wrap_socket(conn.sock, server_side=True)
        except (OSError, ValueError):
            conn.ended = "reset"
            return
        handler(conn)
    return serve


def proxy(answer=None):
    """A person's own HTTP proxy. answer: bytes to answer instead of doing it. Kept in lab.proxied, as Requests."""
    def serve(conn):
        head = conn.until(b"\r\n\r\n")
        if head is None:
            return
        request = Request(conn, head)
        conn.lab.proxied.append(request)
        if answer is not None:
            conn.send(answer)
            time.sleep(0.2)
            return
        host, _, port = request.target.rpartition(":") if request.method == "CONNECT" else \
            request.target.partition("://")[2].partition("/")[0].partition(":")
        if request.method != "CONNECT":
            host, port = (request.target.partition("://")[2].partition("/")[0] + ":80").split(":")[:2]
        try:
            far = conn.lab.dial(host.strip("[]"), int(port))
        except (OSError, KeyError, ValueError):
            conn.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        if request.method == "CONNECT":
            conn.send(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            path = "/" + request.target.partition("://")[2].partition("/")[2]
            far.sendall(head.replace(request.target.encode(), path.encode(), 1))
        if conn.held:
            far.sendall(conn.recv())
        pump(conn, far)
    return serve


def naive(conn):
    """A proxy that trusts what it is sent: takes the first host that it sees and passes every byte on as it came. What
    it lets through is what a proxy that reads must not."""
    data = conn.recv()
    found = re.search(rb"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.example", data)
    try:
        far = conn.lab.dial(found.group(0).decode(), 80)
    except (AttributeError, OSError):
        return
    far.sendall(data)
    pump(conn, far)


def pump(conn, far):
    """Both ways until both have ended; an end is passed on."""
    def back():
        with contextlib.suppress(OSError):
            while True:
                data = far.recv(65536)
                if not data:
                    break
                conn.sock.sendall(data)
            conn.sock.shutdown(socket.SHUT_WR)
    thread = threading.Thread(target=back, daemon=True)
    thread.start()
    while True:
        data = conn.recv()
        if not data:
            break
        with contextlib.suppress(OSError):
            far.sendall(data)
    with contextlib.suppress(OSError):
        far.shutdown(socket.SHUT_WR)
    thread.join(20)
    far.close()


# ---- names ----

TYPES = {1: "A", 28: "AAAA"}


def _skip_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels).lower(), at + 1


class Names:
    """The name server. A name's rule is a list of addresses; None (no such name); "stall" (no answer); "fail";
    ("late", seconds, rule); ("raw", bytes or function of the query); or a function of (type, how often asked before)
    that gives one of these."""

    def __init__(self):
        self.rules, self.asked, self.counts, self.lock = {}, [], {}, threading.Lock()

    def answer(self, query, tcp):
        name, at = _skip_name(query, 12)
        number = struct.unpack_from("!H", query, at)[0]
        kind = TYPES.get(number, str(number))
        with self.lock:
            before = self.counts.get((name, kind), 0)
            self.counts[name, kind] = before + 1
            self.asked.append((name, kind, "tcp" if tcp else "udp"))
        rule = self.rules.get(name)
        if callable(rule):
            rule = rule(kind, before)
        if isinstance(rule, tuple) and rule[0] == "late":
            time.sleep(rule[1])
            rule = rule[2]
        if rule == "stall":
            return None
        if isinstance(rule, tuple) and rule[0] == "raw":
            return rule[1](query) if callable(rule[1]) else query[:2] + rule[1]
        return self.build(query, at + 4, number, rule, tcp)

    def build(self, query, question_end, number, rule, tcp):
        code = {None: 3, "fail": 2}.get(rule if not isinstance(rule, list) else "", 0)
        records = b""
        count = 0
        for address in rule if isinstance(rule, list) else []:
            packed = ipaddress.ip_address(address).packed
            if (len(packed) == 4) == (number == 1) and number in TYPES:
                records += b"\xc0\x0c" + struct.pack("!HHIH", number, 1, 0, len(packed)) + packed
                count += 1
        cut = not tcp and question_end + len(records) > 512
        flags = 0x8580 | code | (0x0200 if cut else 0)
        head = query[:2] + struct.pack("!HHHHH", flags, 1, 0 if cut else count, 0, 0) + query[12:question_end]
        return head if cut else head + records

    def seen(self, name):
        """How often this name, or one below it, was asked for."""
        with self.lock:
            return sum(1 for n, _, _ in self.asked if n == name or n.endswith("." + name))

    def serve_udp(self, sock):
        while True:
            query, peer = sock.recvfrom(4096)
            threading.Thread(target=self._one, args=(sock, query, peer), daemon=True).start()

    def _one(self, sock, query, peer):
        with contextlib.suppress(OSError, IndexError, struct.error):
            answer = self.answer(query, False)
            if answer is not None:
                sock.sendto(answer, peer)

    def serve_tcp(self, conn):
        while True:
            size = conn.exactly(2)
            query = conn.exactly(struct.unpack("!H", size)[0]) if size else None
            if query is None:
                return
            answer = self.answer(query, True)
            if answer is not None:
                conn.send(struct.pack("!H", len(answer)) + answer)


# ---- the wire ----

class Capture:
    """Every IP packet on the host's cable while it is open, but for the neighbour discovery of the cable itself."""

    def __init__(self, sock):
        self.sock, self.packets, self.stop = sock, [], threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while not self.stop.is_set() or select.select([self.sock], [], [], 0)[0]:
            if select.select([self.sock], [], [], 0.05)[0]:
                packet = self._parse(self.sock.recv(65536))
                if packet:
                    self.packets.append(packet)

    @staticmethod
    def _parse(frame):
        kind, body = struct.unpack_from("!H", frame, 12)[0], frame[14:]
        if kind == 0x0800:
            size = (body[0] & 15) * 4
            return (socket.inet_ntop(socket.AF_INET, body[16:20]), body[9], body[size:])
        if kind == 0x86dd:
            if body[6] in (0, 58) and (body[6] == 0 or body[40] in (133, 134, 135, 136, 143)):
                return None
            return (socket.inet_ntop(socket.AF_INET6, body[24:40]), body[6], body[40:])
        return None

    def close(self):
        time.sleep(0.1)
        self.stop.set()
        self.thread.join()
        self.sock.close()


# ---- all of it ----

class Lab:
    def __init__(self):
        if os.environ.get(MARK) != "inside":
            raise RuntimeError("call enter() first")
        self.dir = tempfile.mkdtemp(prefix="kraft-lab-")
        atexit.register(shutil.rmtree, self.dir, True)
        self.conns, self.requests, self.proxied = [], [], []
        self.handlers, self.defaults, self.names = {}, {}, Names()
        self.next_v4, self.next_v6, self.next_private = 0, 0, 0
        self.host, self.far = Worker(), Worker()
        self.far.call(self._far_network)
        self.host.call(self._host_network)
        self.host.call(self._files)
        drop_capabilities()
        self._certificates()
        self._name_server()
        self.names.rules["localhost"] = ["127.0.0.1"]

    # -- making it --

    @staticmethod
    def _sysctl(name, value):
        with open("/proc/sys/net/" + name, "w") as f:
            f.write(value)

    def _far_network(self):
        _check(libc.unshare(CLONE_NEWNET), "unshare")
        self._sysctl("ipv4/ip_unprivileged_port_start", "0")
        self._sysctl("ipv4/conf/all/rp_filter", "0")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "s0", "type", "veth", "peer", "name", "k0", "netns", str(os.getpid()))
        run("ip", "addr", "add", FAR_V4 + "/24", "dev", "s0")
        run("ip", "-6", "addr", "add", FAR_V6 + "/64", "dev", "s0", "nodad")
        run("ip", "link", "set", "s0", "up")
        # Every address is local: not in the table "local", which is read first and would hold the cable's own as well.
        run("ip", "route", "add", "local", "default", "dev", "lo", "table", "main")
        run("ip", "-6", "route", "add", "local", "default", "dev", "lo", "table", "main")

    def _host_network(self):
        self._sysctl("ipv4/ip_unprivileged_port_start", "0")
        run("ip", "link", "set", "lo", "up")
        run("ip", "addr", "add", HOST_V4 + "/24", "dev", "k0")
        run("ip", "-6", "addr", "add", HOST_V6 + "/64", "dev", "k0", "nodad")
        run("ip", "link", "set", "k0", "up")
        run("ip", "route", "add", "default", "via", FAR_V4)
        run("ip", "-6", "route", "add", "default", "via", FAR_V6)

    def _files(self):
        texts = {"hosts": "127.0.0.1 localhost\n::1 localhost\n%s labhost.example\n" % HOST_V4,
                 "resolv.conf": "nameserver %s\noptions timeout:2 attempts:2\n" % NAME_SERVER,
                 "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
        for name, text in texts.items():
            path = os.path.join(self.dir, name)
            with open(path, "w") as f:
                f.write(text)
            run("mount", "--bind", path, "/etc/" + name)
        for cache in ("/run/nscd", "/var/run/nscd"):  # a cache of the machine's would answer in our place
            if os.path.isdir(cache):
                run("mount", "-t", "tmpfs", "none", cache)

    def _certificates(self):
        self.ca, key = os.path.join(self.dir, "ca.pem"), os.path.join(self.dir, "ca.key")
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        run("openssl", "req", "-x509", *curve, "-subj", "/CN=kraft test network", "-days", "2", "-keyout", key,
            "-out", self.ca, "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-addext", "basicConstraints=critical,CA:TRUE")
        request, extra = os.path.join(self.dir, "server.csr"), os.path.join(self.dir, "server.ext")
        self.server_key, self.server_cert = os.path.join(self.dir, "server.key"), os.path.join(self.dir, "server.pem")
        run("openssl", "req", *curve, "-subj", "/CN=tls.example", "-keyout", self.server_key, "-out", request)
        with open(extra, "w") as f:
            f.write("subjectAltName=DNS:tls.example,DNS:*.tls.example\nbasicConstraints=CA:FALSE\n"
                    "extendedKeyUsage=serverAuth\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", key, "-CAcreateserial", "-days", "2",
            "-extfile", extra, "-out", self.server_cert)

    def certificate(self, name):
        """A certificate of the lab's authority for a name that the real internet has too, and its key."""
        base = os.path.join(self.dir, name)
        with open(base + ".ext", "w") as f:
            f.write("subjectAltName=DNS:%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n" % name)
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + name,
            "-keyout", base + ".key", "-out", base + ".csr")
        run("openssl", "x509", "-req", "-in", base + ".csr", "-CA", self.ca, "-CAkey", os.path.join(self.dir, "ca.key"),
            "-CAcreateserial", "-days", "2", "-extfile", base + ".ext", "-out", base + ".pem")
        return base + ".pem", base + ".key"

    def tls_context(self, conn, pair=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(pair or (self.server_cert, self.server_key)))

        def hello(_sock, name, _context):
            conn.hello = name
        context.sni_callback = hello
        return context

    def _name_server(self):
        def start():
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind((NAME_SERVER, 53))
            threading.Thread(target=self.names.serve_udp, args=(udp,), daemon=True).start()
        self.far.call(start)
        self.handlers[NAME_SERVER, 53] = self.names.serve_tcp
        self.listen(53)

    # -- servers --

    def listen(self, port, default=None):
        """Takes connections to this port of every address; `default` does those that lab.serve has not been told of."""
        if port not in self.defaults:
            self.defaults[port] = default or echo
            self.far.call(lambda: self._listen(socket.socket(socket.AF_INET6), "::", port))
        elif default:
            self.defaults[port] = default

    def on_host(self, address, port, handler):
        """A server on the host itself, on its loopback or its own address."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.handlers[address, port] = handler
        self.host.call(lambda: self._listen(socket.socket(family), address, port))

    def _listen(self, sock, address, port):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address, port))
        sock.listen(4096)
        threading.Thread(target=self._accept, args=(sock,), daemon=True).start()

    def _accept(self, sock):
        while True:
            try:
                taken, _ = sock.accept()
                conn = Conn(taken)
            except OSError:
                continue
            conn.lab = self
            if (conn.address, conn.port) != (NAME_SERVER, 53):
                self.conns.append(conn)
            threading.Thread(target=self._handle, args=(conn,), daemon=True).start()

    def _handle(self, conn):
        handler = self.handlers.get((conn.address, conn.port)) or self.defaults.get(conn.port, echo)
        try:
            handler(conn)
        except (OSError, ValueError):
            pass
        finally:
            conn.close()

    def serve(self, name, handler=None, port=80, address=None):
        """A name with an address of its own, and what answers there; returns the address. Without a handler the port's."""
        if address is None:
            address = self.names.rules.get(name, [None])[0]
        if address is None:
            address = "93.184.%d.%d" % divmod(self.next_v4 + 1, 256)
            self.next_v4 += 1
        self.names.rules.setdefault(name, [address])
        if handler:
            self.handlers[address, port] = handler
        self.listen(port)
        return address

    def tls(self, name, handler=None, port=443):
        return self.serve(name, over_tls(self, handler or http()), port)

    def name(self, name, rule):
        self.names.rules[name] = rule

    def dial(self, host, port):
        """From the internet, as a proxy there would."""
        rule = self.names.rules.get(host)
        address = rule[0] if isinstance(rule, list) else host
        return socket.create_connection((address, port), 10)

    def reached(self, address, port=None):
        """The connections that an address of the internet took."""
        return [c for c in list(self.conns) if c.address == address and port in (None, c.port)]

    def took(self, address, n=1, port=None, seconds=5):
        """Waits until so many came, since a client may be done before a server's thread has begun; returns whether."""
        end = time.monotonic() + seconds
        while len(self.reached(address, port)) < n and time.monotonic() < end:
            time.sleep(0.01)
        return len(self.reached(address, port)) >= n

    def asked(self, name):
        return self.names.seen(name)

    @contextlib.contextmanager
    def capture(self):
        def make():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sock.bind(("k0", 0))
            return sock
        capture = Capture(self.host.call(make))
        try:
            yield capture
        finally:
            capture.close()
