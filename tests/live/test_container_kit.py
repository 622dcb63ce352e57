#!/usr/bin/env python3
"""`kind: kit`: an image that says which sandbox it wants, from a registry of the test's own: taken whole and by digest, or refused
by a sentence before anything of the item is made."""
# kraft-test: timeout 900
import hashlib
import http.client
import socket
import tarfile
import urllib.parse

from containerlive import *

ON = (DOCKER, ROOTLESS)
OCI = "application/vnd.oci.image."
TYPE = "com.docker.sandbox/"
ANNOTATION = "vnd.docker.sandbox.kit.descriptor"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Registry:
    """On loopback, with the layers of one of the tests' images in it."""

    def __init__(self, runtime, image="busybox", address=None):
        self.folder = tempfile.mkdtemp(prefix="kraft-kit-")
        self.address = address or "127.0.0.1:%d" % free_port()
        config = write(self.folder + "/config.yml", json.dumps({"version": 0.1, "storage": {"filesystem": {"rootdirectory": self.folder + "/data"}}, "http": {"addr": self.address}, "log": {"level": "error"}}))
        self.conf = write(self.folder + "/registries.conf", '[[registry]]\nlocation = "%s"\ninsecure = true\n' % self.address)
        self.runtime, self.name = runtime, "%s/kit-%s" % (self.address, uuid.uuid4().hex[:8])
        self.process = subprocess.Popen(["/usr/bin/docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.end)
        if not wait_for(self.answers, 20, 0.1):
            raise Failed("the registry does not answer")
        self.client = client_of(runtime, self.folder)
        self.layers = self.parts(runtime, image)

    def answers(self):
        try:
            return self.ask("GET", "/v2/")[0] == 200
        except OSError:
            return False

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        _, out, _ = self.runtime.call("images", "--digests", "--format", "{{.Repository}}@{{.Digest}}", ok=False)
        mine = sorted({line for line in out.split() if line.startswith(self.name + "@")})
        if mine:
            self.runtime.call("rmi", "--force", *mine, ok=False)

    def ask(self, method, path, body=None, kind="application/octet-stream"):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def blob(self, data):
        where = urllib.parse.urlparse(self.ask("POST", "/v2/%s/blobs/uploads/" % self.repository)[1]["Location"])
        status, _, said = self.ask("PUT", "%s?%s&digest=%s" % (where.path, where.query, digest(data)), data)
        if status != 201:
            raise Failed("no blob: %r" % said)
        return {"size": len(data), "digest": digest(data)}

    @property
    def repository(self):
        return self.name.partition("/")[2]

    def parts(self, runtime, image):
        path = self.folder + "/image.tar"
        runtime.call("save", *([] if runtime.is_docker else ["--format", "docker-archive"]), "-o", path, runtimelive.image(image))
        with tarfile.open(path) as archive:
            told = json.load(archive.extractfile("manifest.json"))[0]
            self.told = json.load(archive.extractfile(told["Config"]))
            layers = [archive.extractfile(name).read() for name in told["Layers"]]
        os.unlink(path)
        return [dict(self.blob(l), mediaType=OCI + "layer.v1.tar") for l in layers]

    def another(self):
        """An image that no other one is the same as."""
        config = dict(self.told, config=dict(self.told.get("config") or {}, Labels={"one": uuid.uuid4().hex}))
        return dict(self.blob(json.dumps(config).encode()), mediaType=OCI + "config.v1+json")

    def put(self, manifest, tag):
        data = json.dumps(manifest, indent=2).encode()
        status, _, said = self.ask("PUT", "/v2/%s/manifests/%s" % (self.repository, tag), data, manifest["mediaType"])
        if status != 201:
            raise Failed("no manifest: %r" % said)
        return data

    def push(self, descriptor, tag="1", config=None):
        """The kit's name by digest. descriptor: a text, or what becomes JSON; None: an image that is no kit."""
        text = descriptor if isinstance(descriptor, str) else json.dumps(descriptor)
        manifest = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config or self.another(), "layers": self.layers}
        if descriptor is not None:
            manifest["annotations"] = {ANNOTATION: text}
        return "%s:%s@%s" % (self.name, tag, digest(self.put(manifest, tag)))

    def data_of(self, kit):
        hexa = kit.partition("sha256:")[2]
        return "%s/data/docker/registry/v2/blobs/sha256/%s/%s/data" % (self.folder, hexa[:2], hexa)


STAND_IN = """#!/usr/bin/python3
# %(real)s, but for `manifest inspect --verbose`: that is answered as a newer client of docker's does.
import base64, hashlib, json, os, sys, urllib.request
if sys.argv[1:3] != ["manifest", "inspect"]:
    os.execv(%(real)r, [%(real)r, *sys.argv[1:]])
def get(digest):
    wanted = urllib.request.Request("http://%%s/v2/%%s/manifests/%%s" %% (host, path, digest), headers={"Accept": "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"})
    data = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(wanted).read()
    if "sha256:" + hashlib.sha256(data).hexdigest() != digest:
        sys.exit("manifest verification failed for digest " + digest)
    return data
def tell(digest, platform):
    return {"Descriptor": {"digest": digest, "platform": platform}, "Raw": base64.b64encode(get(digest)).decode()}
name, _, digest = sys.argv[-1].partition("@")
host, _, path = name.partition("/")
listed = json.loads(get(digest)).get("manifests")
print(json.dumps([tell(m["digest"], m["platform"]) for m in listed] if listed else tell(digest, {})))
"""


def client_of(runtime, folder):
    """Docker's client, where this machine has one that can read a manifest of OCI's; else one that does as if."""
    if not runtime.is_docker:
        return runtime.cli
    for path in (runtime.cli, "/usr/local/bin/docker"):
        told = subprocess.run([path, "--version"], stdout=subprocess.PIPE).stdout.decode() if os.path.exists(path) else ""
        if int((re.search(r"version (\d+)", told) or [0, 0])[1]) >= 28:
            return path
    return write(folder + "/docker", STAND_IN % {"real": runtime.cli}, 0o755)


def capability(name, config=None, **more):
    return dict({"type": TYPE + name}, **({} if config is None else {"config": config}), **more)


def policy(allow=(), deny=()):
    return capability("network-policy@1", {"runtime": {"allow": list(allow), "deny": list(deny)}})


def kit(*capabilities, allow=(), **keys):
    return dict({"schemaVersion": "3", "kind": "workload", "capabilities": [policy(allow), *capabilities]}, **keys)


def credential(service="acme", **key):
    rule = {"domain": "api.example.com", "header": "Authorization", "format": "Bearer %s"}
    return capability("credential@1", {"service": service, "phase": "runtime", "apiKey": dict({"name": "ACME_KEY", "proxyManaged": True, "inject": [rule]}, **key)})


class KitHome(Box):
    def __init__(self, runtime, registry, name=None):
        super().__init__(runtime, image="busybox")
        self.client = registry.client
        self.extra_env = {} if runtime.is_docker else {"CONTAINERS_REGISTRIES_CONF": registry.conf}
        self.kit = name
        if name:
            self.use(name)

    def use(self, name, **settings):
        self.configure(sandbox={"kind": "kit", "runtime": "docker", "kit": name, "image": None, "network": None})
        write(self.config_dir + "/sandbox.yaml", json.dumps(dict({"cli": self.client}, **settings)), 0o600)
        return self

    def kept(self):
        return sorted(os.listdir(self.run_dir + "/kit")) if os.path.isdir(self.run_dir + "/kit") else []

    def trees(self):
        return [n for n in os.listdir(self.run_dir + "/worktrees")] if os.path.isdir(self.run_dir + "/worktrees") else []


@each(promise, "kits", "its image, lists and limits are the sandbox, fetched once, told by explain, doctor and an event", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    limits = [capability("resources@1", {"memory": "64mib", "cpu": 1})] if runtime.is_docker else []
    name = registry.push(kit(*limits, capability("agent-sessions@1", {"prompt": ["-p"]}), capability("volume@1", {"path": "/x"}, optional=True), allow=["api.example.com:443"]))
    home = KitHome(runtime, registry, name)
    early = home.kraft("explain", "--", "true")
    t.works(early.code != 0 and "has not been fetched yet" in early.err and "kraft run" in early.err, "explain fetches nothing", early)
    t.works("has not been fetched yet" in home.kraft("admin", "doctor").out, "doctor neither")
    result = home.sh("echo ran; id -u", options=["--item", "one"])
    t.works(result.code == 0 and result.lines == ["ran", str(os.getuid())], "it runs", result)
    kept = home.kept()
    t.works(kept == [name.partition("sha256:")[2] + ".json"], "the descriptor is kept by its digest", kept)
    told = json.loads(read(home.run_dir + "/kit/" + kept[0]))
    t.works(told["manifest"] == name.partition("@")[2] and json.loads(told["descriptor"])["kind"] == "workload", "with its manifest's", told)
    registry.process.kill()
    registry.process.wait()
    t.works(home.sh("echo again", options=["--item", "one"]).out == "again\n", "it is not asked for again")
    t.works(home.sh("echo other", options=["--item", "two"]).out == "other\n", "nor for another item")
    events = home.session_events("sandbox_kit_resolved")
    t.works([e["item"] for e in events] == ["one", "two"], "one event for each item", events)
    t.works(events[0]["data"] == {"kit": name, "manifest": name.partition("@")[2], "skipped": [TYPE + "volume@1"], "ignored": [TYPE + "agent-sessions@1"]}, "which tells it", events[0])
    plan = home.kraft("explain", "--", "true", timeout=120)
    t.works(plan.code == 0 and "api.example.com:443" in plan.out and name in plan.out and TYPE + "volume@1" in plan.out, "explain tells what it asks for", plan)
    doctor = home.kraft("admin", "doctor")
    t.works("kit " in doctor.out and name in doctor.out and "busybox" not in doctor.out, "doctor has its rows", doctor)
    why = home.kraft("why", "host", "other.example.com")
    t.works("nobody adds to them" in why.out, "why says whose lists they are", why)
    listed = home.kraft("repo", "list")
    t.works(name in listed.out, "repo list names it", listed)
    if limits:
        process, _ = home.sleeping()
        try:
            host = home.runtime.inspect(home.running())["HostConfig"]
            t.attack(host["Memory"] == 64 << 20 and host["NanoCpus"] == 10 ** 9, "its limits hold", host["Memory"], host["NanoCpus"])
        finally:
            end(process)
        bare = runtime.call("create", "--network", "none", home.image, "true")[1].strip()
        t.control(runtime.inspect(bare)["HostConfig"]["Memory"] == 0, "a bare container has none")
        runtime.call("rm", bare)


@each(wall, "kits NET-01", "its network lists hold, and no harness adds to them", on=ON)
def _(t, runtime):
    registry = Registry(runtime, "debian")
    fetch = "curl -sS -m 40 -o /dev/null -w '%%{http_code}\n' http://%s/"
    closed = KitHome(runtime, registry, registry.push(kit(allow=["far.example"])))
    result = closed.sh(fetch % "site.example")
    t.attack(result.lines == ["403"], "a host that it does not name is refused", result)
    events = closed.session_events("sandbox_egress_refused")
    t.attack(any(e["data"]["host"] == "site.example" for e in events), "and told", events)
    links = closed.sh("ls /sys/class/net")
    t.attack(links.out == "lo\n", "there is no other way out", links)
    agent = closed.kraft("explain", "--harness", "claude", "--json")
    hosts = json.dumps(json.loads(agent.out).get("network", json.loads(agent.out)))
    t.attack(agent.code in (0, 4) and "far.example" in hosts and "api.anthropic.com" not in hosts, "an agent's session has no other hosts", agent)
    by_hand = closed.configure(sandbox={"network": {"runtime": {"allow": ["far.example"]}}}).kraft("explain", "--harness", "claude", "--json")
    t.control("api.anthropic.com" in by_hand.out, "kind: docker has its harness's", by_hand)
    opened = KitHome(runtime, registry, registry.push(kit(allow=["site.example"])))
    result = opened.sh(fetch % "site.example")
    told = opened.session_events("sandbox_egress_refused")
    t.control("does not resolve" in told[0]["data"]["reason"] and "does not resolve" not in events[0]["data"]["reason"],
              "where a kit names it, it is looked up, and fails for having no address here", told, events)
    t.works("far.example" in closed.use(closed.kit).kraft("why", "host", "far.example", "--json").out, "why asks the kit's lists")


@each(wall, "kits", "what kraft cannot do refuses it by a sentence, and nothing is made or kept", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    home = KitHome(runtime, registry)
    cases = (
        (None, "is no kit"),
        (kit(kind="mixin"), "is a mixin"),
        (kit(requires=["node >= 20"]), "requires another kit ('node >= 20')"),
        (kit({"group": {"capabilities": [policy()]}}), "groups its capabilities"),
        (kit(description="${{ kit.args.x }}"), "reference like '${{ kit.args.x }}'"),
        (kit(args={"model": {"env": "MODEL"}}), "exports its argument 'model' as the variable 'MODEL'"),
        (dict(kit(), capabilities=[]), "does not say which hosts it may reach"),
        (kit(capability("privileged@1")), "needs the capability 'com.docker.sandbox/privileged@1'"),
        (kit(capability("resources@1", {"gpu": "all"})), "needs a gpu"),
        (kit(credential(proxyManaged=False), allow=["api.example.com"]), "would reach the worker"),
        (kit(credential(inject=[]), allow=["api.example.com"]), "goes into no header"),
        (kit(credential()), "does not allow by name"),
        (kit(credential(), allow=["api.example.com"]), "service 'acme'"),
        (kit(power=True), "unknown key 'power'"),
        ('{"schemaVersion":"3","kind":"mixin","kind":"workload"}', "is no JSON"),
        ("kind: &a workload\n", "neither JSON nor YAML"),
        (kit(description="x" * (513 << 10)), "more than 512 KiB"),
    )
    for descriptor, words in cases:
        home.use(registry.push(descriptor))
        result = home.run("sh", "-c", "echo ran")
        refused(t, result, words, what=words)
        t.attack("ran" not in result.out and not home.trees(), "%s: nothing ran, and no worktree is made" % words, result, home.trees())
    unbound = home.use(registry.push(kit(credential("acme"), allow=["api.example.com"]))).run("true")
    t.attack("'acme: VARIABLE'" in unbound.err and "sandbox.yaml" in unbound.err, "the line for sandbox.yaml is told", unbound)
    home.use(registry.push("# a kit\nschemaVersion: \"3\"\nkind: workload\ncapabilities:\n  - type: com.docker.sandbox/network-policy@1\n    config: {runtime: {allow: []}}\n"))
    t.works(home.sh("echo ran").out == "ran\n", "one in YAML runs")
    home.use(registry.push(kit(description="as it should be")))
    t.control(home.sh("echo ran").out == "ran\n", "and one with nothing of it")


@each(wall, "kits", "bytes that are not those of the digest are refused, whoever changed them", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    name = registry.push(kit(allow=["good.example"]))
    home = KitHome(runtime, registry, name)
    data = registry.data_of(name)
    good = read(data)
    write(data, good.replace("good.example", "evil.example"))
    result = home.run("sh", "-c", "echo ran")
    t.attack(result.code == 125 and "ran" not in result.out and not home.kept() and not home.trees(), "the registry changed it", result)
    t.attack("evil.example" not in home.kraft("explain", "--", "true").out, "and it reaches no plan")
    if runtime.is_docker:
        write(data, good)
        liar = write(home.root + "/docker", "#!/usr/bin/python3\nimport base64, json, os, subprocess, sys\nreal = %r\n"
                     "if sys.argv[1:3] != ['manifest', 'inspect']:\n    os.execv(real, [real, *sys.argv[1:]])\n"
                     "told = json.loads(subprocess.run([real, *sys.argv[1:]], stdout=subprocess.PIPE).stdout)\n"
                     "told['Raw'] = base64.b64encode(base64.b64decode(told['Raw']).replace(b'good.example', b'evil.example')).decode()\n"
                     "print(json.dumps(told))\n" % registry.client, 0o755)
        home.use(name, cli=liar)
        refused(t, home.run("true"), "has another digest", what="the client changed it")
        t.attack(not home.kept(), "nothing is kept")
    write(data, good)
    home.use(name)
    t.works(home.kraft("explain", "--", "true").code != 0, "it is not known")
    t.control(home.sh("echo ran").out == "ran\n" and "good.example" in home.kraft("explain", "--", "true").out, "as it was it is taken")


@each(wall, "kits", "a tag that moves, and the same image under another manifest, change nothing of what the digest says", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    image = registry.another()
    first = registry.push(kit(allow=["first.example"]), config=image)
    home = KitHome(runtime, registry, first)
    t.works(home.sh("echo ran", options=["--item", "one"]).out == "ran\n", "it runs")
    second = registry.push(kit(allow=["second.example"]), config=image)
    other = KitHome(runtime, registry, second)
    result = other.sh("echo ran")
    told = other.kraft("explain", "--", "true")
    t.attack("first.example" not in told.out, "the other kit of the same image is not taken for it", result, told)
    t.works(result.out == "ran\n" and "second.example" in told.out, "the tag has another kit now", result)
    t.attack(home.sh("echo ran", options=["--item", "one"]).out == "ran\n", "the first goes on")
    late = KitHome(runtime, registry, first)
    result = late.sh("echo ran")
    told = late.kraft("explain", "--", "true")
    t.attack(result.out == "ran\n" and "first.example" in told.out and "second.example" not in told.out, "who comes late gets what its digest says", result, told)
    t.control(first != second and first.partition("@")[0] == second.partition("@")[0], "it is one name")


@each(wall, "kits SEN-01", "the secret of a service that sandbox.yaml binds stays outside, and the worker has a placeholder", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    secret = "canary-" + uuid.uuid4().hex
    home = KitHome(runtime, registry).use(registry.push(kit(credential(), allow=["api.example.com"])), credentials={"acme": "MINE"})
    look = "echo $ACME_KEY; env"
    result = home.sh(look, env={"MINE": secret})
    t.works(result.code == 0 and result.lines[0].startswith("kraft-proxy-managed-"), "the variable that the kit names holds a placeholder", result)
    t.attack(secret not in result.out + result.err, "the secret is not inside", result)
    explain = home.kraft("explain", "--", "true", env={"MINE": secret})
    t.attack(secret not in explain.out + explain.err and "ACME_KEY" in explain.out, "explain has the name only", explain)
    missing = home.run("true")
    refused(t, missing, "MINE", what="without a value nothing is launched")
    passed = Box(runtime, image="busybox", env_passthrough=["MINE"]).sh("echo $MINE", env={"MINE": secret})
    t.control(secret in passed.out, "a variable that is handed on is inside", passed)


@each(promise, "kits", "an item whose kit is refused stops once as a configuration error; with one that is taken a retry goes on", on=ON)
def _(t, runtime):
    registry = Registry(runtime, "debian")
    home = KitHome(runtime, registry, registry.push(kit(requires=["node"])))
    home.policy(auto_escalate_stuck=False)
    home.chain("c", node("work", task("it", "sh -c 'echo ran >ran; git add ran; git commit -qm ran'")), GATE)
    item = home.create("Do it", "--chain", "c")
    home.kraft("item", "start", item)
    shown = home.show(item)
    t.attack(home.status(item)[0] == "failed" and home.status(item)[2] == "config" and "requires another kit" in shown["reason"], "it stops and says why", shown)
    t.attack(len(shown["sessions"]) == 1 and "sandbox_kit_resolved" not in [e["type"] for e in home.events_of(item)], "once, and no kit is said to be known", shown["sessions"])
    good = registry.push(kit())
    home.use(good)
    retried = home.kraft("item", "retry", item)
    t.works(wait_for(lambda: home.status(item)[0] == "needs you", 60, 0.2), "it goes on", retried, home.show(item))
    t.works(home.rev("kraft/%s:ran" % item) is not None, "and its commit comes out")
    events = [e["data"] for e in home.events_of(item) if e["type"] == "sandbox_kit_resolved"]
    t.works([e["kit"] for e in events] == [good], "one event, of the kit that runs", events)
    t.control(home.empty(), "no container is left", home.containers())


@each(promise, "kits", "a digest of images for several machines is refused with the one to name", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    one = registry.push(kit(allow=["far.example"])).partition("@")[2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    data = open(registry.data_of(one), "rb").read()
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [{"mediaType": OCI + "manifest.v1+json", "digest": one, "size": len(data), "platform": {"os": "linux", "architecture": machine}}]}
    home = KitHome(runtime, registry, "%s:all@%s" % (registry.name, digest(registry.put(index, "all"))))
    result = home.run("true")
    refused(t, result, "for several machines", "%s:all@%s" % (registry.name, one), what="the index")
    home.use("%s:all@%s" % (registry.name, one))
    t.works(home.sh("echo ran").out == "ran\n", "and that one runs")


@each(promise, "kits", "a client that cannot read the manifest, and a registry that does not answer, are told with the next step", on=ON)
def _(t, runtime):
    registry = Registry(runtime)
    home = KitHome(runtime, registry, registry.push(kit()))
    if runtime.is_docker:
        old = write(home.root + "/docker", "#!/bin/sh\n[ \"$1\" != manifest ] || { echo no such manifest: x >&2; exit 1; }\nexec %s \"$@\"\n" % runtime.cli, 0o755)
        refused(t, home.use(registry.push(kit()), cli=old).run("true"), "no such manifest", "newer one", "podman", what="an old client")
        mute = write(home.root + "/mute", "#!/bin/sh\n[ \"$1\" != manifest ] || { echo '{}'; exit 0; }\nexec %s \"$@\"\n" % runtime.cli, 0o755)
        refused(t, home.use(registry.push(kit()), cli=mute).run("true"), "does not say what the manifest", what="one that gives no bytes")
        home.use(registry.push(kit()))
    registry.process.kill()
    registry.process.wait()
    refused(t, home.run("true"), "kit", "by hand has to work", what="no registry")
    t.attack(not home.trees() and not home.kept(), "nothing is made")


@each(promise, "kits", "a podman that keeps its images where kraft cannot read them is refused by name", on=(PODMAN,))
def _(t, runtime):
    registry = Registry(runtime, address=runtimelive.told()["registry"])
    home = KitHome(runtime, registry, registry.push(kit()))
    result = home.run("sh", "-c", "echo ran")
    refused(t, result, "where kraft cannot read it", "a podman that runs as you", what="another user's service")
    t.attack("ran" not in result.out and not home.trees(), "nothing runs", result)
    home.use(registry.push(None))
    t.attack("ran" not in home.run("sh", "-c", "echo ran").out, "nor an image that is no kit")


if __name__ == "__main__":
    main()
