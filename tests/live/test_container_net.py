#!/usr/bin/env python3
"""The extra CA of `kind: docker` (CFG-09), in the tests' network: kraft and its way out are in it, the container is where its
runtime is, and has no network at all."""
# kraft-test: timeout 300
from egresslive import *

from containerlive import each

VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "PIP_CERT", "npm_config_cafile")
BUNDLE = "/etc/kraft/ca-bundle.pem"
FETCH = "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"https://site.example/\", timeout=20).read().decode())'"


def boxed(runtime, settings=None, **more):
    home = Home(runtime=runtime, image=runtimelive.image("debian"), sandbox={"network": {"runtime": {"allow": ["site.example"]}}}, **more)
    write(home.config_dir + "/sandbox.yaml", json.dumps(dict({"cli": runtime.cli}, **(settings or {}))), 0o600)
    return home


@each(wall, "CFG-09 CTR-10", "an extra CA is trusted inside, beside the image's own; without it the same server is not")
def _(t, runtime):
    lab.serve("site.example", netlab.over_tls(lab, netlab.http(), lab.certificate("site.example")), 443)
    home = boxed(runtime, {"ca_bundle": lab.ca})
    named = home.sh("for v in %s; do eval echo \\$$v; done; ls -ln %s" % (" ".join(VARIABLES), BUNDLE))
    t.works(named.lines[:-1] == [BUNDLE] * len(VARIABLES), "each variable names it", named)
    count = home.sh("grep -c BEGIN %s; grep -c BEGIN /etc/ssl/certs/ca-certificates.crt" % BUNDLE)
    t.works([int(n) for n in count.lines] and int(count.lines[0]) == int(count.lines[1]) + read(lab.ca).count("BEGIN CERTIFICATE"), "the image's roots, and one more", count)
    written = home.sh("echo x >>%s; rm %s; mv %s /tmp/x" % ((BUNDLE,) * 3))
    t.attack(written.code != 0 and home.sh("tail -c 30 " + BUNDLE).out.endswith("END CERTIFICATE-----\n"), "it cannot be changed", written)
    for how in ("curl -sS https://site.example/", FETCH):
        result = home.sh(how)
        t.works(result.code == 0 and "from " in result.out, how, result)
    other = boxed(runtime, env={"SSL_CERT_FILE": "/own.pem"})
    t.works(other.sh("echo $SSL_CERT_FILE").out == "/own.pem\n", "the repository's own variable wins", other)
    by_name = boxed(runtime)
    by_name.extra_env = {"SSL_CERT_FILE": lab.ca}
    t.works(by_name.sh("curl -sS https://site.example/").code == 0, "the caller's SSL_CERT_FILE does the same")
    by_name.extra_env = {"SSL_CERT_FILE": "/nowhere/ca.pem"}
    unusable = by_name.sh("curl -sS https://site.example/")
    t.attack(unusable.code == 60, "one that cannot be read is left out", unusable)
    t.works("SSL_CERT_FILE" in by_name.kraft("admin", "doctor").out, "which doctor tells")
    plain = boxed(runtime).sh("curl -sS https://site.example/; echo $?; ls %s" % BUNDLE)
    t.control(plain.lines[0] == "60" and "No such file" in plain.err, "without one the server is not trusted, and there is no bundle", plain)


@each(wall, "NET-01 CHN-11", "no packet of a container's leaves, and what is allowed does by the way out", on=runtimelive.NAMES)
def _(t, runtime):
    lab.serve("site.example")
    home = boxed(runtime)
    with lab.capture() as wire:
        direct = home.py("import socket\nfor a in (('93.184.216.34', 80), ('169.254.169.254', 80), ('10.0.0.1', 22)):\n    s = socket.socket(); s.settimeout(2)\n    try: s.connect(a); print('ok')\n    except OSError as e: print(e.errno)")
    t.attack(direct.code == 0 and "ok" not in direct.out and wire.packets == [], "nothing", direct, wire.packets[:3])
    links = home.sh("ls /sys/class/net")
    t.attack(links.out == "lo\n", "one interface", links)
    t.works(home.sh("curl -sS http://site.example/").code == 0, "by the proxy")
    t.control(b"200 OK" in host_fetch(lab.serve("site.example"), 80, b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\n"), "on the host there is a way")


if __name__ == "__main__":
    main()
