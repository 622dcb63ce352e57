#!/usr/bin/env python3
"""The sandbox's own network: a loopback and nothing else (NET-01 to NET-04). The way out of it is test_egress.py's."""
import socket

from kraftlive import *

TRY = """
import socket, sys, struct
def attempt(name, make):
    try:
        make(); print(name, 'ok')
    except OSError as e:
        import errno
        print(name, errno.errorcode.get(e.errno, e.errno if e.errno else type(e).__name__))
    except Exception as e:
        print(name, type(e).__name__)
def tcp(f, a, p):
    def go():
        s = socket.socket(f, socket.SOCK_STREAM); s.settimeout(2); s.connect((a, p))
    return go
def udp(f, a, p, broadcast=False):
    def go():
        s = socket.socket(f, socket.SOCK_DGRAM)
        if broadcast: s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.sendto(b'x', (a, p))
    return go
def raw(f, p):
    def go():
        s = socket.socket(f, socket.SOCK_RAW, p); s.sendto(b'x' * 16, ('127.0.0.1' if f == socket.AF_INET else '::1', 0))
    return go
I, J = socket.AF_INET, socket.AF_INET6
for a in ('192.0.2.1', '198.51.100.7', '10.0.0.1', '192.168.0.1', '172.16.0.1', '169.254.169.254', '100.100.100.200', '8.8.8.8', '1.1.1.1', '224.0.0.251', '255.255.255.255', '239.255.255.250') + tuple(sys.argv[1:]):
    attempt('tcp-' + a, tcp(I, a, 80)); attempt('udp-' + a, udp(I, a, 53, True))
for a in ('2001:db8::1', 'fe80::1', 'ff02::fb', 'fd00::1', 'fd00:ec2::254', '::ffff:192.0.2.1', '64:ff9b::1.1.1.1'):
    attempt('tcp6-' + a, tcp(J, a, 80)); attempt('udp6-' + a, udp(J, a, 5353))
attempt('icmp', raw(I, 1)); attempt('icmp6', raw(J, 58)); attempt('raw', raw(I, 255))
attempt('ping', lambda: socket.socket(I, socket.SOCK_DGRAM, 1).sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0', ('192.0.2.1', 0)))
attempt('dns', lambda: socket.getaddrinfo('example.com', 80))
attempt('quic', udp(I, '192.0.2.1', 443))
"""


@wall("NET-01 NET-02", "TCP, UDP, ICMP, raw and DNS, IPv4 and IPv6: no route, nothing leaves")
def _(t):
    home = shared()
    result = home.py(TRY, timeout=120)
    answers = result.table()
    good = {k: v for k, v in answers.items() if v == "ok"}
    t.attack(len(answers) >= 40 and not good, "nothing is sent", good, result)
    strange = {k: v for k, v in answers.items() if v not in ("ENETUNREACH", "EPERM", "EADDRNOTAVAIL", "gaierror", "EACCES", "EHOSTUNREACH") and (k, v) != ("tcp6-fe80::1", "EINVAL") and (k, v) != ("udp6-fe80::1", "EINVAL") and k != "dns"}
    t.attack(not strange, "at once, not by a time-out", strange)
    t.attack(result.seconds < 20, "quickly", result.seconds)
    names = home.py("import socket; print(*[n for _, n in socket.if_nameindex()]); print(open('/proc/net/route').read().count(chr(10)) - 1)")
    t.attack(names.lines[0] == "lo" and names.lines[1] == "0", "one interface, no route", names)
    local = home.py("""
import socket, threading
for f, a in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '127.5.5.5'), (socket.AF_INET6, '::1')):
    s = socket.socket(f); s.bind((a, 0)); s.listen(); c = socket.create_connection(s.getsockname()[:2], 2); print('ok')
""")
    t.works(local.out.count("ok") >= 2, "loopback inside works", local)
    open_net = home.on_the_hosts_network("python3", "-IS", "-c", "import socket; print(len(socket.if_nameindex()))")
    there = len(socket.if_nameindex())
    t.control(open_net.out.strip() == str(there) and there > 1, "with the network shared its interfaces are there", open_net)


@wall("NET-03", "services of the host on loopback, its API port, its abstract and listening sockets are out of reach")
def _(t):
    home = shared()
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(8)
    port = server.getsockname()[1]
    code = "import socket,sys\ntry:\n    socket.create_connection((sys.argv[1], int(sys.argv[2])), 2); print('connected')\nexcept OSError as e: print(e.errno)"
    try:
        for address in ("127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1", "127.1"):
            inside = home.py(code, address, str(port))
            t.attack(inside.out.strip() != "connected", address, inside)
        t.control(home.host(PYTHON, "-IS", "-c", code, "127.0.0.1", str(port)).out == "connected\n", "on the host it answers")
        listing = home.sh("cat /proc/net/tcp /proc/net/unix")
        t.attack(":%04X " % port not in listing.out, "nor is it listed", listing)
    finally:
        server.close()
    t.works(home.py("import socket; s = socket.create_server(('127.0.0.1', 8080)); socket.create_connection(('127.0.0.1', 8080)); print('own')").out == "own\n",
            "a server of the worker's own answers itself")


@wall("NET-01", "the network namespace cannot be left or changed: setns, netlink, interfaces")
def _(t):
    home = shared()
    result = home.py("""
import socket, os, fcntl, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def attempt(name, f):
    try:
        f(); print(name, 'ok')
    except OSError as e:
        print(name, e.errno)
attempt('down', lambda: fcntl.ioctl(s, 0x8914, struct.pack('16sH14s', b'lo', 0, b'')))
attempt('address', lambda: fcntl.ioctl(s, 0x8916, struct.pack('16sHH4s8s', b'lo', 2, 0, socket.inet_aton('10.1.1.1'), b'')))
attempt('tun', lambda: os.open('/dev/net/tun', os.O_RDWR))
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
n.send(struct.pack('=IHHII', 32, 16, 5, 1, 0) + struct.pack('=BxHiII', 0, 0, 0, 0, 0))
print('newlink', struct.unpack_from('=i', n.recv(4096), 16)[0])
attempt('port-80', lambda: socket.create_server(('127.0.0.1', 80)))
""")
    answers = result.table()
    t.attack(answers.get("down") != "ok" and answers.get("address") != "ok" and answers.get("tun") != "ok" and answers.get("newlink") in ("-1", "-95"), "refused", result)
    t.works(home.sh("ip -o addr 2>/dev/null | head -2; cat /proc/net/dev").code == 0, "the state can be read")
    root = home.host("unshare", "-rn", PYTHON, "-IS", "-c", "import fcntl,struct,socket; fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack('16sH14s', b'lo', 1, b'')); print('up')")
    t.control(root.out == "up\n", "with the capability in a namespace of one's own it works", root)


if __name__ == "__main__":
    main()
