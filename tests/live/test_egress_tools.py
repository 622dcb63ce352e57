#!/usr/bin/env python3
"""Which tools get out through the proxy variables as they are, and which need a word more. The table below is what the
documentation says; each row is one small fetch over TLS from a server of the test network."""
# kraft-test: timeout 240
from egresslive import *

import io
import tarfile
import zipfile

HOSTS = ["web.tls.example", "plain.example"]
HOME = policy(HOSTS)
lab.tls("web.tls.example", netlab.http(lambda request: serve_file(request)))
lab.serve("plain.example")
HOME.commit("ca.pem", read(lab.ca), 0o644)
FILES = {"/hello": b"hello from far away\n"}
CA = 'export SSL_CERT_FILE=$PWD/ca.pem CURL_CA_BUNDLE=$PWD/ca.pem GIT_SSL_CAINFO=$PWD/ca.pem NODE_EXTRA_CA_CERTS=$PWD/ca.pem REQUESTS_CA_BUNDLE=$PWD/ca.pem PIP_CERT=$PWD/ca.pem\n'
URL = "https://web.tls.example/hello"


def serve_git(request):
    """A repository of far.git's over git's own protocol, by the program that git has for it."""
    path, _, query = request.target.partition("?")
    env = {"GIT_PROJECT_ROOT": HOME.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": request.method,
           "CONTENT_TYPE": request.get("content-type") or "", "HTTP_CONTENT_ENCODING": request.get("content-encoding") or "", "PATH": "/usr/bin:/bin",
           "GIT_PROTOCOL": request.get("git-protocol") or "", "CONTENT_LENGTH": str(len(request.body)), "REMOTE_USER": "somebody",
           "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    said = subprocess.run(["git", "http-backend"], env=env, input=request.body, stdout=subprocess.PIPE, check=True).stdout
    head, _, body = said.partition(b"\r\n\r\n")
    status = b"200 OK"
    for line in head.split(b"\r\n"):
        if line.startswith(b"Status: "):
            status = line[8:]
    return b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def serve_file(request):
    if request.target.startswith("/smart.git/"):
        return serve_git(request)
    body = FILES.get(request.target.partition("?")[0])
    if body is None:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    kind = b"text/html" if request.target.endswith("/") else b"application/octet-stream"
    return b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + (body if request.method != "HEAD" else b"")


def there(program):
    return shutil.which(program, path="/usr/bin:/bin:/usr/local/bin:/usr/local/go/bin")


def goes_out(t, script, expected, what):
    """Whether the script prints the far file; and that, when it does not, not a packet left."""
    before = len(lab.reached(lab.names.rules["web.tls.example"][0]))
    with lab.capture() as wire:
        result = HOME.sh(CA + script, timeout=90)
    reached = len(lab.reached(lab.names.rules["web.tls.example"][0])) > before
    got = "hello from far away" in result.out
    t.note("%s: %s" % (what, "gets out" if got else "does not get out"))
    t.works(got == expected, "%s: expected %s" % (what, "to get out" if expected else "not to get out"), result)
    t.works(reached == expected and bool(wire.packets) == expected, "%s: and the wire agrees" % what, reached, wire.packets[:3])


@promise("OS-ENV-03", "curl and wget")
def _(t):
    goes_out(t, "curl -sS -m 20 " + URL, True, "curl")
    goes_out(t, "curl -sS -m 20 --noproxy '*' " + URL, False, "curl, told to ignore the proxy")
    goes_out(t, "wget -q -T 20 -t 1 -O - --ca-certificate=ca.pem " + URL, True, "wget")
    plain = HOME.sh("curl -sS -m 20 http://plain.example/; wget -q -T 20 -t 1 -O - http://plain.example/")
    t.works(plain.out.count("from 93.184.") == 2, "plain http, both", plain)
    local = HOME.sh("python3 -m http.server 8099 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 1; curl -sS -m 9 http://localhost:8099/README; wget -q -T 9 -t 1 -O - http://127.0.0.1:8099/README; kill $!")
    t.works(local.out.count("a sample") == 2, "NO_PROXY: a server inside is reached directly", local)
    refused = HOME.sh(CA + "curl -sS -m 20 http://closed.example/; curl -sS -m 20 https://closed.example/")
    t.works("kraft: " in refused.out and "closed.example" in refused.out and "403" in refused.err, "a refusal is shown", refused)


@promise("OS-ENV-03", "git over https")
def _(t):
    bare = os.path.join(HOME.root, "far.git")
    git(HOME.repo, "clone", "-q", "--bare", HOME.repo, bare)
    git(bare, "repack", "-adq")
    git(bare, "update-server-info")
    for top, _, files in os.walk(bare):
        for name in files:
            path = os.path.join(top, name)
            with open(path, "rb") as f:
                FILES["/far.git/" + os.path.relpath(path, bare)] = f.read()
    goes_out(t, "git clone -q https://web.tls.example/far.git \"$HOME/cloned\" && test -f \"$HOME/cloned/README\" && echo hello from far away", True, "git clone")


@promise("OS-ENV-03 REF-01", "git fetch and git push from inside, to the remote that the repository names")
def _(t):
    bare = os.path.join(HOME.root, "smart.git")
    git(HOME.repo, "clone", "-q", "--bare", HOME.repo, bare)
    git(bare, "config", "http.receivepack", "true")
    git(HOME.repo, "config", "user.name", "Per Son")
    git(HOME.repo, "config", "user.email", "person@site.example")
    git(HOME.repo, "remote", "add", "far", "https://somebody:secret@web.tls.example/smart.git")
    ahead = git(bare, "commit-tree", "-p", "HEAD", "-m", "far ahead", "HEAD^{tree}").strip()
    git(bare, "update-ref", "refs/heads/ahead", ahead)
    script = ("set -e; git remote get-url far; git fetch -q far ahead; git merge -q --ff-only FETCH_HEAD; echo own >own; git add own; git commit -qm own;"
              " git push -q far HEAD:refs/heads/pushed; git rev-parse HEAD")
    done = HOME.sh(CA + script, options=["--item", "far"], timeout=90)
    t.works(done.code == 0, "both work", done)
    t.works(git(bare, "rev-parse", "pushed").strip() == done.lines[-1] == git(HOME.repo, "rev-parse", "kraft/far").strip(), "the commit is in both repositories", done)
    t.works("secret" not in done.out + done.err and "secret" not in HOME.sh("git config --list", options=["--item", "far", "--keep"]).out,
            "the password of the person's remote does not cross", done)
    refused = HOME.sh(CA + "git push -q https://closed.example/smart.git HEAD:refs/heads/x", options=["--item", "far", "--keep"])
    t.works(refused.code != 0 and "403" in refused.err, "a host that is not on the list is refused", refused)


@promise("OS-ENV-03", "node's own http and fetch, with and without NODE_USE_ENV_PROXY; npm")
def _(t):
    major, minor = [int(n) for n in subprocess.run(["node", "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()[1:].split(".")[:2]]
    reads = (major == 22 and minor >= 21) or (major == 24 and minor >= 5) or major > 24
    https = "require('https').get('%s', r => r.pipe(process.stdout)).on('error', e => console.error(e.message))" % URL
    fetch = "fetch('%s').then(r => r.text()).then(console.log, e => console.error(e.message))" % URL
    goes_out(t, "node -e \"%s\"" % https, reads, "node %d.%d https" % (major, minor))
    goes_out(t, "node -e \"%s\"" % fetch, reads, "node %d.%d fetch" % (major, minor))
    goes_out(t, "unset NODE_USE_ENV_PROXY; node -e \"%s\"" % fetch, False, "node %d.%d without NODE_USE_ENV_PROXY" % (major, minor))
    by_hand = """node -e "
const http = require('http'), tls = require('tls'), p = new URL(process.env.HTTPS_PROXY);
http.request({host: p.hostname, port: p.port, method: 'CONNECT', path: 'web.tls.example:443'}).on('connect', (r, s) => {
  const t = tls.connect({socket: s, servername: 'web.tls.example'}, () => t.write('GET /hello HTTP/1.1\\r\\nHost: web.tls.example\\r\\nConnection: close\\r\\n\\r\\n'));
  t.pipe(process.stdout);
}).end()" """
    goes_out(t, by_hand, True, "node with an agent that reads the variables")
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w:gz") as tar:
        for name, text in (("package/package.json", b'{"name": "far-package", "version": "1.0.0"}'), ("package/index.js", b"// hello from far away\n")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    FILES["/far-package/-/far-package-1.0.0.tgz"] = package.getvalue()
    FILES["/far-package"] = json.dumps({"name": "far-package", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "far-package", "version": "1.0.0", "dist": {"tarball": "https://web.tls.example/far-package/-/far-package-1.0.0.tgz"}}}}).encode()
    goes_out(t, "export npm_config_cafile=$PWD/ca.pem; mkdir p && cd p && echo '{}' >package.json && npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0 --registry https://web.tls.example/ far-package >&2; cat node_modules/far-package/index.js", True, "npm install")


@promise("OS-ENV-03", "python: urllib, and pip")
def _(t):
    goes_out(t, "python3 -c \"import urllib.request; print(urllib.request.urlopen('%s', timeout=20).read().decode())\"" % URL, True, "python3 urllib")
    raw = "python3 -c \"import socket, ssl; s = ssl.create_default_context().wrap_socket(socket.create_connection(('93.184.0.1', 443), 5), server_hostname='web.tls.example'); print(s)\""
    goes_out(t, raw, False, "python3 with a socket of its own")
    if not there("pip3"):
        t.note("pip is not installed here")
        return
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("far_module.py", "print('hello from far away')\n")
        z.writestr("far_module-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: far-module\nVersion: 1.0\n")
        z.writestr("far_module-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("far_module-1.0.dist-info/RECORD", "far_module.py,,\nfar_module-1.0.dist-info/METADATA,,\nfar_module-1.0.dist-info/WHEEL,,\nfar_module-1.0.dist-info/RECORD,,\n")
    FILES["/simple/far-module/far_module-1.0-py3-none-any.whl"] = wheel.getvalue()
    page = b"<!DOCTYPE html><html><body><a href=\"far_module-1.0-py3-none-any.whl\">far_module-1.0-py3-none-any.whl</a></body></html>"
    FILES["/simple/far-module/"] = page
    goes_out(t, "/usr/bin/pip3 install -q --retries 0 --timeout 20 --disable-pip-version-check --no-deps --target \"$HOME/pip\" --index-url https://web.tls.example/simple far-module >&2; PYTHONPATH=\"$HOME/pip\" python3 -c 'import far_module'", True, "pip")


JAVA = """
import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;
public class Fetch {
  public static void main(String[] a) throws Exception {
    KeyStore keys = KeyStore.getInstance(KeyStore.getDefaultType()); keys.load(null);
    keys.setCertificateEntry("lab", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream("ca.pem")));
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm()); trust.init(keys);
    SSLContext context = SSLContext.getInstance("TLS"); context.init(null, trust.getTrustManagers(), null);
    HttpsURLConnection c = (HttpsURLConnection) new URL(a[0]).openConnection();
    c.setSSLSocketFactory(context.getSocketFactory()); c.setConnectTimeout(5000);
    System.out.println(new String(c.getInputStream().readAllBytes()));
  }
}
"""
GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
	io.Copy(os.Stdout, r.Body)
}
"""


@promise("OS-ENV-03", "Java and Go, where they are installed")
def _(t):
    if there("java") and there("javac"):
        fetch = "cat >Fetch.java <<'END'\n%sEND\njava Fetch.java %s" % (JAVA, URL)
        goes_out(t, "unset JAVA_TOOL_OPTIONS; " + fetch, False, "Java without JAVA_TOOL_OPTIONS")
        goes_out(t, fetch, True, "Java")
    else:
        t.note("Java is not installed here")
    if there("go"):
        goes_out(t, "export PATH=$PATH:/usr/local/go/bin GOFLAGS=-mod=mod GOTOOLCHAIN=local; mkdir g && cd g && cat >m.go <<'END'\n%sEND\ngo run m.go %s" % (GO, URL), True, "Go")
    else:
        t.note("Go is not installed here")
    t.works(there("curl"), "the others are there")


if __name__ == "__main__":
    main()
