#!/usr/bin/env python3
"""The test network itself (netlab.py): what the tests of the egress take for granted about it."""
import netlab

netlab.enter()

import socket

from kraftlive import *

lab = netlab.Lab()


def fetch(address, port=80, data=b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
    with socket.create_connection((address, port), 5) as s:
        s.sendall(data)
        found = b""
        while True:
            more = s.recv(65536)
            if not more:
                return found
            found += more


def resolve(name):
    return sorted({a[4][0] for a in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})


@promise("LAB", "the test and what it starts have no capabilities, and can make a sandbox")
def _(t):
    for who in ("self", "thread-self"):
        status = read("/proc/%s/status" % who)
        t.works(not int(re.search(r"CapEff:\s+(\S+)", status).group(1), 16), who, status)
    done = Home().host(BWRAP, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "grep", "-E", "Cap(Prm|Eff|Inh|Amb)", "/proc/self/status")
    t.works(done.code == 0 and set(re.findall(r"\S+$", done.out, re.M)) == {"0" * 16}, "in a sandbox", done)
    raw = Home().host(PYTHON, "-c", "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)")
    t.works("PermissionError" in raw.err, "no raw sockets for what it starts", raw)


@promise("LAB", "every address answers, public, private, link-local and IPv6, and each is recorded")
def _(t):
    lab.listen(80, netlab.http())
    for address in ("93.184.216.34", "8.8.8.8", "10.9.8.7", "169.254.169.254", "100.100.100.200", "2a00:1450:1::7", "fd12::1", "fd00:ec2::254"):
        answer = fetch(address)
        t.works(answer.endswith(b"from %s\n" % address.encode()), address, answer)
        t.works(len(lab.reached(address, 80)) == 1 and b"Host: x" in lab.reached(address)[0].got, "recorded", address)
    try:
        fetch("8.8.8.8", 81)
        t.works(False, "a port without a server is refused")
    except ConnectionRefusedError:
        pass


@promise("LAB", "the capture sees what leaves: TCP, UDP, IPv6, and nothing when nothing does")
def _(t):
    with lab.capture() as quiet:
        time.sleep(0.3)
    t.works(quiet.packets == [], "quiet", quiet.packets[:5])
    with lab.capture() as wire:
        fetch("93.184.216.34")
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"mark-udp", ("192.0.2.9", 5353))
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"mark-six", ("2a00:1450:9::9", 443))
    kinds = {(address, kind) for address, kind, _ in wire.packets}
    t.works({("93.184.216.34", 6), ("192.0.2.9", 17), ("2a00:1450:9::9", 17)} <= kinds, "all three", kinds)


@promise("LAB", "names: fixed, none, rebinding, many, stalled, malformed; look-ups are counted")
def _(t):
    lab.name("one.example", ["93.184.1.1", "2a00:1450:1::1"])
    t.works(resolve("one.example") == ["2a00:1450:1::1", "93.184.1.1"], "both families", lab.names.asked)
    t.works(lab.asked("one.example") == 2 and lab.asked("example") == 2 and lab.asked("two.example") == 0, "counted", lab.names.asked)
    lab.name("turn.example", lambda kind, n: ["93.184.1.1"] if n == 0 else ["127.0.0.1"])
    t.works([resolve("turn.example"), resolve("turn.example")] == [["93.184.1.1"], ["127.0.0.1"]], "rebinds")
    lab.name("many.example", ["93.185.%d.%d" % divmod(n, 250) for n in range(300)])
    t.works(len(resolve("many.example")) == 300 and ("many.example", "A", "tcp") in lab.names.asked, "300 records, over TCP")
    lab.name("stall.example", "stall")
    lab.name("odd.example", ("raw", b"\x85\x80\xff\xff\xff\xff\0\0"))
    for name in ("none.example", "stall.example", "odd.example"):
        try:
            t.works(False, name, resolve(name))
        except socket.gaierror:
            pass
    t.works(resolve("labhost.example") == [netlab.HOST_V4], "the hosts file is ours")
    t.works(lab.asked("labhost.example") == 0, "and is read first")


@promise("LAB", "TLS with a test CA; echo, sink and source; the upstream proxy; a server on the host's loopback")
def _(t):
    lab.tls("web.tls.example")
    context = netlab.ssl.create_default_context(cafile=lab.ca)
    with context.wrap_socket(socket.create_connection((resolve("web.tls.example")[0], 443), 5), server_hostname="web.tls.example") as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        t.works(s.recv(4096).startswith(b"HTTP/1.1 200"), "TLS")
    t.works(lab.conns[-1].hello == "web.tls.example", "the name asked for is kept")
    address = lab.serve("source.example", netlab.source(3 << 20), 7001)
    t.works(len(fetch(address, 7001)) == 3 << 20, "source")
    address = lab.serve("echo.example", netlab.echo, 7002)
    with socket.create_connection((address, 7002), 5) as s:
        s.sendall(b"hello")
        t.works(s.recv(10) == b"hello", "echo")
    lab.on_host("127.0.0.1", 8118, netlab.proxy())
    lab.serve("plain.example", netlab.http())
    answer = fetch("127.0.0.1", 8118, b"GET http://plain.example/a HTTP/1.1\r\nHost: plain.example\r\nConnection: close\r\n\r\n")
    t.works(answer.startswith(b"HTTP/1.1 200") and lab.requests[-1].target == "/a", "the proxy", answer)
    tunnel = fetch("127.0.0.1", 8118, b"CONNECT plain.example:80 HTTP/1.1\r\nHost: plain.example:80\r\n\r\nGET /b HTTP/1.1\r\nHost: plain.example\r\nConnection: close\r\n\r\n")
    t.works(tunnel.startswith(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200") and lab.requests[-1].target == "/b", "and its tunnels", tunnel)
    t.works([r.method for r in lab.proxied] == ["GET", "CONNECT"], "recorded")


@promise("LAB", "kraft itself runs here")
def _(t):
    home = Home()
    t.works(home.sh("echo inside").out == "inside\n", "a run", home.sh("echo inside"))


if __name__ == "__main__":
    main()
