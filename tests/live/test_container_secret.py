#!/usr/bin/env python3
"""`credentials` of `kind: docker` (SEN-01 to SEN-04, CTR-07): a session in a container whose secrets stay outside, in the tests'
network. What a request to such a host must carry is test_tls.py's."""
# kraft-test: timeout 600
from egresslive import *

import base64
import resource

from claudelive import CERT, HOST as MODEL_HOST, KEY, START
from containerlive import Box, each
from model_claude import Model, Step, text, tool
from worklive import GATE, node, task

HOST, OTHER = "api.tls.example", "plain.tls.example"
SEEN = []


def answer(request):
    SEEN.append(request)
    body = request.head if request.target == "/echo" else b"it came"
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


for name in (HOST, OTHER):
    lab.tls(name, netlab.http(answer))


def secret():
    return "canary-" + base64.b32encode(os.urandom(20)).decode().lower()


RULE = {"env": "API_KEY", "source": "KEY_OUTSIDE", "sentinel": "sk-test-", "inject": [{"domain": HOST, "header": "X-Api-Key", "format": "key %s"}]}
CURL = "curl -sS -H \"X-Api-Key: key $API_KEY\" https://%s/%s"


def boxed(runtime, real, credentials=None, allow=(HOST, OTHER), network=None, **more):
    home = Home(runtime=runtime, image=runtimelive.image("debian"),
                sandbox={"network": network or {"runtime": {"allow": list(allow)}}, "credentials": [RULE] if credentials is None else credentials}, **more)
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli, "ca_bundle": lab.ca}), 0o600)
    home.extra_env = {"KEY_OUTSIDE": real}
    return home


def holders(real, *but):
    """Processes other than these whose arguments or environment hold it, and all that can be read of both."""
    found, looked = [], 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for what in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                with open("/proc/%s/%s" % (pid, what), "rb") as f:
                    looked += 1
                    if real.encode() in f.read() and (what == "cmdline" or int(pid) not in but):
                        found.append((pid, what, name_of(int(pid))))
    return found, looked


def pattern(text):
    """Matches it, and is not it: what is searched for is in no command line."""
    return text.replace("canary", "canar[y]")


def files_with(text, *tops):
    """Files below these that hold it, in any of the forms that a tool would write it in."""
    forms = [text.encode(), base64.b64encode(text.encode())[:-4], text.encode().hex().encode()]
    found = []
    for top in tops:
        for folder, _, names in os.walk(top):
            for one in names:
                with contextlib.suppress(OSError):
                    with open(os.path.join(folder, one), "rb") as f:
                        data = f.read()
                    found += [os.path.join(folder, one)] if any(form in data for form in forms) else []
    return found


@each(wall, "CRED-01 SEN-01 SEN-03 CTR-07", "a worker has only the sentinel, and the host gets the secret")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real, env_passthrough=["KEY_OUTSIDE", "API_KEY", "OTHER_NAME"], env={"API_KEY": "of-the-repository"})
    home.extra_env.update(API_KEY=real, OTHER_NAME="crosses")
    SEEN.clear()
    result = home.sh("echo $API_KEY; echo $OTHER_NAME; %s; echo; cat /proc/*/environ | tr '\\0' '\\n' | grep -c %s; env | grep -c KEY_OUTSIDE; grep -rls %s /tmp /run /etc \"$HOME\" . 2>/dev/null | wc -l"
                     % (CURL % (HOST, "a"), pattern(real), pattern(real)))
    lines = result.lines
    t.works(len(lines) == 6 and lines[0].startswith("sk-test-") and len(lines[0]) == len("sk-test-") + 40 and lines[1] == "crosses" and lines[2] == "it came", "a request goes", result)
    t.attack(lines[3:] == ["0", "0", "0"] and real not in result.out + result.err, "nothing inside has it", result)
    t.works([r.all("x-api-key") for r in SEEN] == [["key " + real]], "the host has it, once", [r.head for r in SEEN])
    again = home.sh("echo $API_KEY")
    t.attack(again.out.strip() != lines[0] and again.out.startswith("sk-test-"), "CRED-15: the next session has another sentinel", again)
    t.attack(files_with(real, home.root) == [], "no file of kraft's has it", files_with(real, home.root))
    t.control(files_with(lines[0], home.root) != [], "the search finds what a log holds")
    open_home = boxed(runtime, real, credentials=[], env_passthrough=["KEY_OUTSIDE"])
    t.control(open_home.sh("echo $KEY_OUTSIDE").out == real + "\n", "without 'credentials' it is inside")


@each(wall, "CRED-01 SEN-03", "while it runs, no process but kraft's own environment has it")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    process = home.start("sh", "-c", "%s; echo; exec sleep 60" % (CURL % (HOST, "b")))
    try:
        t.works(process.stdout.readline() == b"it came\n", "it runs, and has used it")
        found, looked = holders(real, process.pid)
        t.attack(found == [] and looked > 4, "arguments and environments", found, looked)
        t.control(holders(real)[0] != [], "kraft's own environment is found")
        t.attack(files_with(real, home.root) == [], "files while it runs", files_with(real, home.root))
    finally:
        process.terminate()
        process.communicate()


def in_memory(real, *but):
    """Processes other than these whose memory the user may look at, and holds it."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if pid in but or pid == os.getpid():
            continue
        with contextlib.suppress(OSError), open("/proc/%d/mem" % pid, "rb", 0) as memory:
            for line in read("/proc/%d/maps" % pid).splitlines():
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                with contextlib.suppress(OSError, OverflowError, ValueError):
                    if end - start < 256 << 20:
                        memory.seek(start)
                        if real.encode() in memory.read(end - start):
                            found.append((pid, name_of(pid)))
                            break
    return found


@each(wall, "CRED-01 CRED-14 SEN-03", "over a session's whole life: memory, the runtime's own words, the wire, cores, and what is left")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    for word in ("core.", "core"):
        t.works(not os.path.exists(os.path.join(home.repo, word)), "no core lies there")
    with lab.capture() as wire:
        process = home.start("sh", "-c", "%s; echo; while ! test -e go; do sleep 0.1; done; %s; echo; exec sleep 60" % (CURL % (HOST, "h"), CURL % (HOST, "i")),
                             preexec=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2))
        try:
            t.works(process.stdout.readline() == b"it came\n", "it runs, and has used it")
            t.attack(in_memory(real, process.pid) == [], "no process's memory that can be looked at, but kraft's own", in_memory(real, process.pid))
            t.control(in_memory(real) != [], "kraft's own is found")
            name = runtime.containers(home.kraft_home)[0]
            told = json.dumps(runtime.inspect(name)) + "".join(runtime.call("logs", name, ok=False)[1:])
            t.attack(real not in told and home.kraft_home in told, "nothing that the runtime knows of the container", told[:300])
            egress = wait_for(lambda: next((p for p in children(process.pid) if name_of(p).startswith("kraft-egress")), None))
            os.kill(egress, signal.SIGABRT)  # as by a fault of its own
            t.works(bool(wait_for(lambda: events(home, "sandbox_egress_lost"), 10)), "it is told")
            write(home.worktree + "/go", "x")
            t.works(process.stdout.readline() == b"it came\n" and SEEN[-1].target == "/i" and real.encode() in SEEN[-1].head, "and it goes on")
        finally:
            process.terminate()
            out, err = process.communicate()
    t.attack(real.encode() not in out + err, "nothing that was printed")
    t.attack(wire.packets and not [p for p in wire.packets if real.encode() in p[2]], "no packet: TLS is all that left", len(wire.packets))
    t.attack(files_with(real, home.root) == [], "no file is left with it, nor a core", files_with(real, home.root))


@each(wall, "SEN-02 SEN-04 CRED-02 CRED-03", "without the sentinel there is no request; another host gets no secret")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    SEEN.clear()
    wrong = home.sh("curl -sS -o /dev/null -w '%%{http_code}\\n' -H 'X-Api-Key: key sk-test-other' https://%s/; curl -sS -o /dev/null -w '%%{http_code}\\n' http://%s/" % (HOST, HOST))
    t.attack(wrong.lines == ["403", "403"] and SEEN == [], "403, never dialled", wrong, SEEN)
    t.works(bool(events(home, "sandbox_egress_refused")), "an event tells it")
    other = home.sh(CURL % (OTHER, "c"))
    t.attack(other.out == "it came" and real.encode() not in SEEN[-1].head and b"sk-test-" in SEEN[-1].head, "the sentinel goes there as it is", other, SEEN[-1].head)
    t.control(home.sh(CURL % (HOST, "d")).out == "it came" and real.encode() in SEEN[-1].head, "the host of the rule gets it")


@each(wall, "CRED-08", "a host that sends the secret back is cut off before it, and that is told")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    result = home.sh(CURL % (HOST, "echo"))
    t.attack(real not in result.out and result.code != 0, "the worker does not see it", result)
    told = events(home, "sandbox_credential_echoed")
    t.works(len(told) == 1 and "sent back" in result.err and real not in json.dumps(told), "event and word", told, result)
    t.control(real.encode() in SEEN[-1].head, "the host had it to send")


@each(promise, "CRED-14 SEN-01", "what has no value, or is not for this phase")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    for value, words in ((None, "is not set"), ("", "is not set"), (real + "\nX-Evil: 1", "control character"), (" " + real, "blank")):
        home.extra_env["KEY_OUTSIDE"] = value
        result = home.sh("echo ran")
        t.attack(result.code == 125 and all(w in result.err for w in ("'API_KEY'", "KEY_OUTSIDE", words)) and "ran" not in result.out and real not in result.err, "refused: " + words, result)
    home.extra_env["KEY_OUTSIDE"] = real
    t.control(home.sh("echo ran").out == "ran\n", "with one it runs")
    install = boxed(runtime, real, credentials=[dict(RULE, phase=["install"])], network={"install": {"allow": [HOST]}, "runtime": {"allow": [HOST]}})
    result = install.sh("echo \"[$API_KEY]\"; %s" % (CURL % (HOST, "e")))
    t.attack(result.lines[0] == "[]" and real.encode() not in SEEN[-1].head, "not in the other phase", result)
    bare = boxed(runtime, real, credentials=[{"env": "API_KEY", "source": "KEY_OUTSIDE"}])
    t.works(bare.sh("echo $API_KEY").out.startswith("kraft-proxy-managed-"), "one that goes nowhere is a sentinel all the same")


@each(promise, "SEN-01", "kraft explain tells which secret goes where, and no value")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    text, more = home.kraft("explain", "--", "true"), home.kraft("explain", "--json", "--", "true")
    t.works("API_KEY" in text.out and "sentinel of KEY_OUTSIDE" in text.out and "header x-api-key of %s:443" % HOST in text.out and real not in text.out, "text", text)
    t.works(json.loads(more.out)["credentials"] == [{"env": "API_KEY", "source": "KEY_OUTSIDE", "inject": [{"host": HOST, "port": 443, "header": "x-api-key", "format": "key %s"}]}] and real not in more.out, "json", more)


@each(wall, "CRED-16 CRED-13", "a kraft-egress-tls that is killed is started again; a kraft that is killed ends its session")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    process = home.start("sh", "-c", "%s; echo; while ! test -e go; do sleep 0.1; done; %s; echo; exec sleep 60" % (CURL % (HOST, "f"), CURL % (HOST, "g")))
    try:
        t.works(process.stdout.readline() == b"it came\n", "before")
        egress = wait_for(lambda: next((p for p in children(process.pid) if name_of(p).startswith("kraft-egress")), None))
        os.kill(egress, signal.SIGKILL)
        t.works(bool(wait_for(lambda: events(home, "sandbox_egress_lost"), 10)), "it is told")
        write(home.worktree + "/go", "x")
        t.works(process.stdout.readline() == b"it came\n" and SEEN[-1].target == "/g" and real.encode() in SEEN[-1].head, "the same session CA, the same sentinel")
        t.control(len(runtime.containers(home.kraft_home)) == 1, "as long as kraft lives the container is there")
        process.kill()
        t.attack(bool(wait_for(lambda: not runtime.containers(home.kraft_home), 30)), "no container is left with a way out")
        t.attack(files_with(real, home.root) == [], "nothing of it is on the disk", files_with(real, home.root))
    finally:
        process.kill()
        process.communicate()


@each(promise, "SEN-01 CRED-01", "the real claude finishes in a container that holds only the sentinel of its key")
def _(t, runtime):
    real = secret()
    home = Home(runtime=runtime, image=runtimelive.image("agents"),
                sandbox={"network": {"runtime": {"allow": []}}, "credentials": [{"env": "ANTHROPIC_API_KEY"}]})
    home.extra_env = {"ANTHROPIC_API_KEY": real, "SSL_CERT_FILE": lab.ca}
    steps = [Step(tool("Bash", {"command": "printf %s \"$ANTHROPIC_API_KEY\" >key; cat /proc/*/environ >>key 2>/dev/null; true"})), Step(text("it is done"))]
    model = Model(steps, token=real, cert=CERT, key=KEY, side=START)
    lab.serve(MODEL_HOST, model.handler(), 443)
    ran = home.kraft("run", "--harness", "claude", "do it", timeout=240)
    t.works(ran.code == 0 and model.done() == [], "it ends well, and the model knew its key", ran, model.done())
    key = read(home.worktree + "/key")
    t.works(key.startswith("sk-ant-api03-") and real not in key, "what it has is the sentinel", key[:80])
    t.works(files_with(real, home.root) == [], "no file of kraft's has the key", files_with(real, home.root))
    home.extra_env["ANTHROPIC_API_KEY"] = None
    refused = home.kraft("run", "--harness", "claude", "do it", timeout=240)
    t.works(refused.code != 0 and "ANTHROPIC_API_KEY" in refused.err and "is not set" in refused.err, "without it there is no launch", refused)


@each(promise, "SEN-01", "kraft why host and kraft admin doctor tell of credentials")
def _(t, runtime):
    real = secret()
    home = boxed(runtime, real)
    bound, other = home.kraft("why", "host", HOST), home.kraft("why", "host", OTHER)
    t.works("TLS to it ends in kraft, which puts the credential 'API_KEY' in" in bound.out and "TLS to it" not in other.out, "why host", bound, other)
    well = home.kraft("admin", "doctor")
    t.works("1 secret, each with a value here" in well.out and real not in well.out, "doctor, with a value", well)
    home.extra_env = {}
    missing = home.kraft("admin", "doctor")
    t.works(missing.code != 0 and "KEY_OUTSIDE of the credential 'API_KEY' is not set here" in missing.out, "and without", missing)
    home.extra_env = {"KEY_OUTSIDE": real, "KRAFT_EGRESS_TLS": "/nonexistent/kraft-egress-tls"}
    absent = home.sh("echo ran")
    t.works(absent.code == 125 and "ran" not in absent.out and "kraft-egress-tls" in absent.err, "without its program there is no launch", absent)


@each(promise, "SEN-01 CRED-14", "an item's task has its secret put in, and without a value it stops as a configuration error")
def _(t, runtime):
    real = secret()
    home = Box(runtime, sandbox={"network": {"runtime": {"allow": [HOST]}}, "credentials": [RULE]})
    write(home.config_dir + "/sandbox.yaml", json.dumps({"cli": runtime.cli, "ca_bundle": lab.ca}), 0o600)
    home.policy(auto_escalate_stuck=False)
    home.extra_env = {"KEY_OUTSIDE": real}
    chain = home.chain("s", node("checks", task("it", "sh -c '%s'" % (CURL % (HOST, "item")))), GATE)
    item = home.create("With it", "--chain", chain)
    home.kraft("item", "start", item)
    t.works(home.status(item)[2] == "gate" and [r.all("x-api-key") for r in SEEN if r.target == "/item"][-1:] == [["key " + real]], "it goes on to its gate", home.show(item))
    home.extra_env = {}
    item = home.create("Without", "--chain", chain)
    home.kraft("item", "start", item)
    t.works(home.status(item)[2] == "config" and "KEY_OUTSIDE" in home.show(item)["reason"], "it stops, and says what to set", home.show(item))
    t.works(files_with(real, home.root) == [], "no file has it", files_with(real, home.root))


if __name__ == "__main__":
    main()
