#!/usr/bin/env python3
"""What kraft says that it does not do (OS-LIM), held to the words: a limit that is said must be there, and no larger.

A limit that goes away is good news, and this file and SECURITY.md then say so."""
from kraftlive import *


@promise("OS-LIM-01", "a session lives as long as its kraft: killed, it takes the session along, and nothing adopts it")
def _(t):
    home = shared()
    here = mark()
    process = home.start("./probe", "stubborn", "60", here)
    t.works(wait_for(lambda: [p for p in marked(here) if command_of(p)[0].endswith(b"probe")], 10), "runs")
    process.kill()
    process.wait()
    t.attack(gone(here), "nothing of it is left", marked(here))
    t.works(home.ok("true").code == 0, "the next run is not in its way")


@promise("OS-LIM-02", "no resources, credentials or CA bundle of its own: refused by name, never ignored")
def _(t):
    home = Home("limits-keys", make_repo=True)
    for key, value in (("resources", "{cpu: 1}"), ("credentials", "[{env: TOKEN}]"), ("image", "debian")):
        home.configure("repos:\n  - path: %s\n    sandbox:\n      kind: os\n      network: {runtime: {allow: []}}\n      %s: %s\n"
                       % (home.repo, key, value))
        refused = home.run("true")
        t.attack(refused.code == 125 and "kind: os takes no %s" % key in refused.err, key, refused)
    home.configure("repos:\n  - path: %s\n    sandbox:\n      kind: os\n      network: {runtime: {allow: []}}\n      ca_bundle: /etc/hosts\n"
                   % home.repo)
    refused = home.run("true")
    t.attack(refused.code == 125 and "ca_bundle" in refused.err, "an unknown key close to nothing stops the sandbox too", refused)


@promise("OS-LIM-03", "key names and /etc are visible, and that is all: keys cannot be used, /etc cannot be written")
def _(t):
    home = shared()
    names = home.sh("cat /proc/keys >/dev/null && echo seen")
    t.works(names.out == "seen\n", "/proc/keys can be read", names)
    keyctl = home.probe("keys")
    t.attack(set(keyctl.table().values()) == {"EPERM"}, "and no key can be used", keyctl)
    passwd = home.sh("grep -c ^root: /etc/passwd; : >>/etc/passwd")
    t.works(passwd.out == "1\n", "/etc/passwd can be read", passwd)
    t.attack(passwd.code != 0, "and not written", passwd)


@promise("OS-LCH-06 OS-ENV-03", "the way out answers on 127.0.0.1:3128, and the proxy variables name it")
def _(t):
    home = shared()
    said = home.py("""
import socket
s = socket.create_connection(('127.0.0.1', 3128), 5)
s.sendall(b'CONNECT nowhere.example:443 HTTP/1.1\\r\\nHost: nowhere.example:443\\r\\n\\r\\n')
print(s.makefile('rb').read().decode())
""")
    t.works(said.out.startswith("HTTP/1.1 403 ") and "kraft: " in said.out, "a refusal with its reason", said)
    names = home.sh("env | grep -i '^[a-z]*_proxy=' | sort")
    t.works(names.out == "".join(sorted("%s=%s\n" % (n, v) for v, of in (
        ("http://127.0.0.1:3128", ("http_proxy", "https_proxy", "all_proxy")), ("localhost,127.0.0.1,::1", ("no_proxy",)))
        for n in of + tuple(n.upper() for n in of))), "every proxy variable, in both cases", names)
    node = home.sh("echo $NODE_USE_ENV_PROXY; echo $JAVA_TOOL_OPTIONS")
    t.works(node.lines[0] == "1" and "-Dhttps.proxyPort=3128" in node.lines[1], "Node and Java are told in their own way", node)


if __name__ == "__main__":
    main()
