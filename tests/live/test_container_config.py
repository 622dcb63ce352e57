#!/usr/bin/env python3
"""`kind: docker`: what is configured, from sandbox.yaml and repos.yaml to the image: it is taken whole, or refused."""
# kraft-test: timeout 900
from containerlive import *


@each(wall, "CTR-07 CTR-01", "what is written is the person's, setuid files have no other owner, and archive takes all of it", on=EVERYWHERE)
def _(t, runtime):
    home = Box(runtime, test_command="true")
    home.chain("c", node("work", task("it", "sh -c 'mkdir -p deep/er $HOME/own; echo x >deep/er/file; cp /usr/bin/env deep/suid; chmod 6755 deep/suid; echo x >$HOME/own/file; chmod 700 $HOME/own; chmod 000 deep/er/file; ./deep/suid id -u >who; git add who; git commit -qm who'")), GATE)
    item = home.create("Own it", "--chain", "c")
    started = home.kraft("item", "start", item)
    t.works(home.status(item)[0] == "needs you", "it ran", started, home.show(item))
    seen = {}
    for top in (home.tree(item), "%s/sandbox-home/%s" % (home.run_dir, item), home.private(item), home.run_dir + "/results"):
        for where, dirs, files in os.walk(top):
            for name in dirs + files + ["."]:
                info = os.lstat(os.path.join(where, name))
                seen[os.path.relpath(os.path.join(where, name), home.run_dir)] = (info.st_uid, info.st_gid, info.st_mode & 0o6000)
    t.attack(len(seen) > 20 and {v[:2] for v in seen.values()} == {(os.getuid(), os.getgid())}, "each file is ours", {k: v for k, v in seen.items() if v[:2] != (os.getuid(), os.getgid())})
    t.attack([k for k, v in seen.items() if v[2]] and read(home.tree(item) + "/who").strip() == str(os.getuid()), "the setuid one as well, and inside it gave nothing")
    bare_top = home.root + "/bare"
    os.makedirs(bare_top)
    bare = home.bare_run("sh", "-c", "cp /usr/bin/env %s/suid && chmod 4755 %s/suid; stat -c %%u %s/suid" % ((bare_top,) * 3), flags=["--user", "0:0", "--userns", "host"] if runtime.is_docker else ["--user", "0:0"], mounts=[bare_top])
    owner = os.lstat(bare_top + "/suid").st_uid
    t.control(owner != os.getuid() or runtime.is_rootless, "a bare run leaves what is root's", bare, owner)
    home.bare_run("rm", "-f", bare_top + "/suid", flags=["--user", "0:0"], mounts=[bare_top])
    t.works(home.kraft("item", "complete", item).code == 0 and home.kraft("item", "archive", item).code == 0, "archived")
    left = [k for k in seen if os.path.lexists(home.run_dir + "/" + k) and item in k]
    t.works(not left, "and all of it is gone", left)


@each(wall, "CTR-08 CFG-10", "names that look like options, templates and mount options are data")
def _(t, runtime):
    # Short, for the socket below it.
    home = Box(runtime, name="h,ro", repo="code/sam ple:z,readonly {{json .}}", kraft_home=".k --x {{.ID}}:ro$A'\"=é", test_command="true")
    process, here = home.sleeping("--item", "a-b-c")
    try:
        name = home.running()
        told = home.runtime.inspect(name)
        t.attack(told["Config"]["Labels"]["kraft.home"] == home.kraft_home and not told["HostConfig"]["Privileged"], "the label is the whole name", told["Config"]["Labels"])
        t.attack(re.fullmatch(r"/?kraft-[A-Za-z0-9_.-]+", told["Name"]), "the container's name is a plain one", told["Name"])
    finally:
        end(process)
    t.attack(home.empty(), "it is found again by that label", home.containers())
    result = home.run("printf", "%s|", "--privileged", "-v", "/:/host", "{{.ID}}", "a b", "$HOME", "\n", "é")
    t.attack(result.out == "--privileged|-v|/:/host|{{.ID}}|a b|$HOME|\n|é|", "words of the command", result)
    refused_ids = [home.run("true", options=["--item", i]) for i in ("--privileged", "{{.Id}}", "a/../b", "a b", "A;b", "x" * 300)]
    t.attack(all(r.code != 0 and "kraft: " in r.err for r in refused_ids), "an item's id that is none", refused_ids)
    item = home.create("{{.Config.Env}} --volume=/:/host $(id)", worker="echo ran >ran; git add ran; git commit -qm ran")
    home.kraft("item", "start", item)
    t.works(home.rev("kraft/%s:ran" % item) is not None, "an item whose title looks like an option runs", home.show(item))
    home.configure(env={"A,B": "x"})
    t.works(home.run("true").code != 0, "a variable that is no name does not load")
    home.configure(env={"VALUE": "--env X=1,{{.}}\n$Y"})
    t.works(home.py("import os; print(repr(os.environ['VALUE']))").out == repr("--env X=1,{{.}}\n$Y") + "\n", "a value of any kind comes whole")
    bare = home.runtime.call("version", "--format", "v{{.Client.Version}}")[1]
    t.control(re.match(r"v\d", bare), "templates are templates to the runtime", bare[:300])


@each(wall, "CTR-07 OS-LCH-03", "values cross by name: in no command line, no log and no answer of the runtime's while it runs")
def _(t, runtime):
    secrets = {n: "secret-" + uuid.uuid4().hex for n in ("ANTHROPIC_API_KEY", "PASSED", "REPO_VALUE")}
    home = Box(runtime, env={"REPO_VALUE": secrets["REPO_VALUE"]}, env_passthrough=["PASSED"])
    env = {n: secrets[n] for n in ("ANTHROPIC_API_KEY", "PASSED")}
    seen, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            for pid in os.listdir("/proc"):
                if pid.isdigit():
                    words = b"\0".join(command_of(int(pid)))
                    seen.extend(n for n, value in secrets.items() if value.encode() in words)
            time.sleep(0.005)
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    process, _ = home.sleeping(env=env)
    try:
        name = home.running()
        whole = json.dumps(home.runtime.inspect(name)) + home.runtime.call("logs", name, ok=False)[1]
        t.attack(not [n for n, value in secrets.items() if value in whole], "inspect and logs hold none", [n for n, value in secrets.items() if value in whole])
    finally:
        end(process)
        stop.set()
        watcher.join()
    t.attack(not seen, "no command line of the host's, from the first moment", seen)
    inside = home.sh("echo $ANTHROPIC_API_KEY; echo $PASSED; echo $REPO_VALUE", env=env)
    t.works(set(inside.lines) == set(secrets.values()), "inside they are there", inside)
    t.attack(not [n for n, v in secrets.items() if v in home.kraft("explain", "--json", "--", "true", env=env).out], "explain tells none")
    bare = mark()
    runtime.call("create", "--name", bare, "--env", "PASSED=" + secrets["PASSED"], "--network", "none", home.image, "true")
    t.control(secrets["PASSED"] in json.dumps(runtime.inspect(bare)), "a bare -e NAME=value is in inspect")
    runtime.call("rm", bare)


@each(wall, "CTR-01 CTR-09", "kraft's init is process 1, and the image's own entry point runs below it")
def _(t, runtime):
    home = Box(runtime, image="entry")
    home.commit("script", "#!/bin/sh\necho $KRAFT_ENTRY_RAN; echo $KRAFT_IMAGE_SAYS; tr '\\0' ' ' </proc/1/cmdline; echo; echo $PATH\n")
    result = home.run("./script")
    t.works(result.lines[:2] == ["yes, as %d" % os.getuid(), "two words"], "it ran, and its variables are there", result)
    t.attack(result.lines[2].startswith("/opt/kraft/init"), "process 1 is kraft's", result)
    t.works(result.lines[3].startswith("/opt/kraft/bin:"), "kraft's shim is first on PATH", result)
    told, as_json = home.explain("./script")
    t.works("kraft-check-entry" in told.out and as_json, "explain shows it", told)
    for image, words in (("bad-entry", ["true"]), ("no-entry", ["true"]), ("debian", ["no-such-program"]), ("bare", ["sh"])):
        other = Box(runtime, image=image)
        result = other.run(*words)
        # An entry point that ends without the command is a command that failed; the others are words of kraft's.
        told = result.code == 1 if image == "bad-entry" else result.code in (125, 127) and "kraft: " in result.err
        t.attack(told and result.out == "", "%s in '%s': nothing runs" % (words[0], image), result)
        t.attack(other.empty(), "and no container is left", other.containers())
    bare = home.bare_run("sh", "-c", "cat /proc/1/comm")
    t.control("init" not in bare.out, "a bare run's process 1 is the image's", bare)
    user = Box(runtime, image="user")
    mine = user.sh("id -u; pwd; ls -d /data")
    t.works(mine.lines[0] == str(os.getuid()) and mine.lines[1] == user.worktree, "a USER and WORKDIR of the image's are not ours", mine)
    written = user.sh("stat -f -c %T /data; head -c 100000000 /dev/zero >/data/x; stat -c %s /data/x")
    t.attack(written.lines[0] == "tmpfs" and "No space left" in written.err and int(written.lines[1]) < 100000000,
             "FS-20: its VOLUME is memory with a limit, and nothing of the host's disk", written)
    again = user.sh("ls /data")
    t.attack(again.out == "" and again.code == 0, "the next session finds it empty", again)
    t.works(user.empty(), "nothing is left")
    volumes = runtime.call("volume", "ls", "--format", "{{.Name}}")[1].split()
    user.ok("true")
    t.works(user.empty() and wait_for(lambda: runtime.call("volume", "ls", "--format", "{{.Name}}")[1].split() == volumes, 10, 0.5), "no volume either", volumes)
    t.control(user.bare_run("sh", "-c", "echo x >/data/x", flags=["--user", "0:0"]).code == 0, "a bare run writes there")


@each(wall, "CTR-02 CTR-10", "sandbox.yaml: the CLI by name and by path, a podman that is called docker, one that is absent or does not answer")
def _(t, runtime):
    home = Box(runtime)
    mine = home.root + "/bin"
    write(mine + "/docker", "#!/bin/sh\nexec %s \"$@\"\n" % runtime.cli, 0o755)

    def with_cli(**keys):
        write(home.config_dir + "/sandbox.yaml", json.dumps(keys), 0o600)
        return home
    by_path = with_cli(cli=mine + "/docker").run("cat", "/etc/debian_version", env={"PATH": mine + ":/usr/bin:/bin"})
    t.works(by_path.code == 0, "whatever its name is", by_path)
    doctor = home.kraft("admin", "doctor")
    t.works(("docker" if runtime.is_docker else "podman") in doctor.out, "doctor says what it is", doctor)
    by_name = with_cli(cli="docker", relay_image="x.example/y").run("true", env={"PATH": mine + ":/usr/bin:/bin"})
    t.works(by_name.code == 0, "by its name, along PATH; relay_image is accepted", by_name)
    refused(t, with_cli(cli="/nowhere/docker").run("true"), "/nowhere/docker", what="one that is not there")
    write(home.repo + "/" + os.path.basename(runtime.cli), "#!/bin/sh\ntouch %s/pwned\n" % home.root, 0o755)
    found = with_cli(cli=os.path.basename(runtime.cli)).run("true", env={"PATH": home.repo + ":/usr/bin:/bin"})
    t.attack(found.code == 0 and not os.path.exists(home.root + "/pwned"), "one on PATH in the checkout is passed over", found)
    write(mine + "/slow", "#!/bin/sh\nexec sleep 600\n", 0o755)
    start = time.monotonic()
    refused(t, with_cli(cli=mine + "/slow").run("true"), "answer", what="one that does not answer")
    t.attack(8 < time.monotonic() - start < 40, "after ten seconds", time.monotonic() - start)
    for keys in ({"cli": 7}, {"cli": "sh -c x"}, {"selinux": "off"}, {"unknown": 1}, {"ca_bundle": "relative"}, {"ca_bundle": "/nowhere/ca.pem"}):
        result = with_cli(**keys).run("true")
        t.attack(result.code != 0 and list(keys)[0] in result.err, "%r" % keys, result)
    t.control(with_cli(cli=runtime.cli).run("true").code == 0, "its own")


@each(promise, "CTR-13", "an image that is not here is pulled before the session, and one that nobody has is told", on=(DOCKER, ROOTLESS, PODMAN))
def _(t, runtime):
    address = runtimelive.told()["registry"]
    store = tempfile.mkdtemp(prefix="kraft-live-")
    config = write(store + "/config.yml", json.dumps({"version": 0.1, "storage": {"filesystem": {"rootdirectory": store + "/data"}}, "http": {"addr": address}, "log": {"level": "error"}}))
    registry = subprocess.Popen(["/usr/bin/docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        name = "%s/kraft-check/pulled:%s" % (address, uuid.uuid4().hex[:8])
        insecure = [] if runtime.is_docker or "CONTAINER_HOST" in runtime.env else ["--tls-verify=false"]
        runtime.call("tag", runtimelive.image("busybox"), name)
        pushed = wait_for(lambda: runtime.call("push", *insecure, name, ok=False)[0] == 0, 20, 0.5)
        t.works(pushed, "it is in a registry", runtime.call("push", *insecure, name, ok=False))
        runtime.call("rmi", name)
        home = Box(runtime, image="busybox")
        home.configure(sandbox={"image": name})
        doctor = home.kraft("admin", "doctor")
        t.works(name in doctor.out, "doctor says that it is not pulled", doctor)
        result = home.sh("echo pulled")
        t.works(result.code == 0 and result.out == "pulled\n", "it is pulled, and runs", result)
        t.works(home.sh("echo again").out == "again\n", "it is here now")
        runtime.call("rmi", name)
    finally:
        registry.kill()
        registry.wait()
        shutil.rmtree(store, ignore_errors=True)
    home.configure(sandbox={"image": "%s/kraft-check/nobody:has" % address})
    result = home.run("true")
    t.attack(result.code == 125 and "nobody:has" in result.err, "nobody has it", result)


@each(wall, "CTR-11 CHN-11", "without a network policy nothing is launched, but for unrestricted_network, which says what it costs")
def _(t, runtime):
    home = Box(runtime)
    home.configure(sandbox={"network": None})
    refused(t, home.run("true"), "network", what="no policy, no launch")
    home.configure(sandbox={"unrestricted_network": True})
    both = home.run("true")
    t.attack(both.code != 0 and "unrestricted_network" in both.err, "both together do not load", both)
    home.configure(sandbox={"network": None, "unrestricted_network": True})
    if not runtime.bridge:
        t.note("%s has no open network on this machine: only the refusals are tried" % runtime.name)
        t.works(Box(runtime).run("true").code == 0, "with a policy it runs")
        t.control(home.bare_run("true").code == 0, "a bare run needs none")
        return
    server = socket.create_server(("0.0.0.0", 0))
    port = server.getsockname()[1]
    dial = "import socket\ntry: socket.create_connection(('%s', %d), 5); print('open')\nexcept OSError as e: print('closed')" % (runtime.bridge, port)
    try:
        result = home.py(dial)
        t.works(result.out == "open\n", "the open network", result)
        looked = home.sh("ls /opt/kraft/bin/kraft; env | grep -i proxy; readlink /proc/1/exe; cat /proc/1/comm")
        t.works("No such file" in looked.err and "proxy" not in looked.out.lower(), "no command of kraft's inside and no proxy", looked)
        claude = home.kraft("run", "--harness", "claude", "do it")
        t.attack(claude.code != 0 and "unrestricted_network" in claude.err + claude.out or "network" in claude.err, "a Claude task is refused all the same", claude)
        closed = Box(runtime).py(dial)
        t.attack(closed.out == "closed\n", "under a policy there is no such way", closed)
        t.control(home.host(PYTHON, "-c", dial).out == "open\n", "the server answers")
    finally:
        server.close()


if __name__ == "__main__":
    main()
