#!/usr/bin/env python3
"""What docs/ tells a newcomer to type works, in the order in which it stands there, and prints what stands there.

A block ```console is a session: lines that begin with "$ " are commands, what follows is what they print, stdout and stderr
together. "..." stands for any text, and on a line of its own for any lines. A word that ends in four hexadecimal digits, as
ids do, is another one here: it is learned where it is first printed, and put into the commands that follow.
What stands behind the word console is not shown to a reader: "fails: WHY" where the last command has to fail, "not run: WHY"
where it cannot be run here.
"""
from kraftlive import *

DOCS = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs"))
NOT_RUN = {"first-session.md": 2, "service.md": 2}  # blocks; a new one is a decision
ID = re.compile(r"\b[a-z][a-z-]*-[0-9a-f]{4}\b")


def blocks(text):
    """(info, [(command, lines)]) of each session."""
    for info, body in re.findall(r"^```console *(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        session = []
        for line in body.splitlines():
            if line.startswith("$ "):
                session.append((line[2:], []))
            else:
                session[-1][1].append(line)
        yield info, session


class Reader:
    """Who follows one document, in a home that is empty but for a name for git."""

    def __init__(self, name, before=""):
        self.home = Home(name, make_repo=False)
        os.unlink(os.path.join(self.home.config_dir, "repos.yaml"))
        self.where, self.ids = self.home.home, {}
        self.env = self.home.env(HOME=self.home.home, PATH=os.path.dirname(KRAFT) + ":/usr/bin:/bin",
                                 GIT_CONFIG_GLOBAL=os.path.join(self.home.home, ".gitconfig"))
        self.type('git config --global user.name You && git config --global user.email you@example.com')
        for command in before.splitlines():
            self.type(command)

    def type(self, command):
        for told, real in self.ids.items():
            command = command.replace(told, real)
        at = os.path.join(self.home.root, "where")
        done = subprocess.run(["/bin/bash", "-c", command + '\nend=$?; pwd >"$0"; exit $end', at], cwd=self.where, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.where = read(at).strip() if os.path.exists(at) else self.where
        return done.returncode, done.stdout.decode()

    def prints(self, lines, printed):
        """Whether that was told. The ids that are new in it are learned."""
        told = "\n".join(lines)
        new = [name for name in dict.fromkeys(ID.findall(told)) if name not in self.ids]
        for real in ID.findall(printed):
            for name in new:
                if real[:-4] == name[:-4]:
                    self.ids[name] = real
        for name, real in self.ids.items():
            told = told.replace(name, real)
        pattern = ""
        for line in told.splitlines():
            if line == "...":
                pattern += r"(?:.*\n)*"
            else:
                pattern += ".*".join(re.escape(part.rstrip()) if i else re.escape(part) for i, part in enumerate(line.split("..."))) + r" *\n"
        return re.fullmatch(pattern, printed) is not None


def follow(t, document, before=""):
    reader, not_run, typed = Reader(document[:-3], before), 0, 0
    for info, session in blocks(read(os.path.join(DOCS, document))):
        if info.startswith("not run: "):
            not_run += 1
            continue
        t.works(not info or info.startswith("fails: "), "what stands behind console is known", info)
        for i, (command, lines) in enumerate(session):
            code, printed = reader.type(command)
            fails = info.startswith("fails: ") and i == len(session) - 1
            t.works((code != 0) == fails, "$ %s %s" % (command, "fails" if fails else "works"), code, printed)
            t.works(reader.prints(lines, printed), "$ %s prints what is told" % command, "\n".join(lines), printed)
            typed += 1
    t.works(not_run == NOT_RUN[document] and typed >= 3, "few are left out", not_run, typed)
    return reader


@promise("DOC-01", "who follows first-session.md reaches a merged piece of work, and everything is printed as it stands there")
def _(t):
    reader = follow(t, "first-session.md")
    log = reader.type("git log --format=%s")[1]
    t.works(log.count("\n") == 2 and "two and two" in log, "one commit came", log)


@promise("DOC-02", "who follows service.md has a server and stops it")
def _(t):
    reader = follow(t, "service.md", "git init -q sample\ncd sample\ngit commit -q --allow-empty -m first\nkraft repo connect .")
    t.works(reader.type("kraft admin health")[0] == 6, "no server is left")


@promise("DOC-03", "the unit that service.md has written is one that systemd takes")
def _(t):
    if not shutil.which("systemd-analyze"):
        t.skip("there is no systemd-analyze")
    home = Home("unit", make_repo=False)
    unit = home.kraft("admin", "install-service", "--print", cwd=home.home).out
    file = os.path.join(home.root, "kraft.service")

    def verify(text):
        write(file, text)
        return subprocess.run(["systemd-analyze", "verify", "--user", file], capture_output=True, text=True,
                              env={**os.environ, "XDG_RUNTIME_DIR": home.root})
    taken = verify(unit)
    t.works(taken.returncode == 0 and "kraft.service" not in taken.stderr, "it is taken", taken)
    t.control("kraft.service" in verify(unit.replace("Restart=", "Restrat=")).stderr, "a wrong word is told")


@promise("DOC-04", "a document that tells something else than what happens fails its test")
def _(t):
    reader = Reader("wrong")
    code, printed = reader.type("echo item-12ab; echo 'one  two'; exit 3")
    t.works(code == 3, "the status is seen", code)
    t.works(reader.prints(["item-ffff", "one ..."], printed) and reader.ids == {"item-ffff": "item-12ab"}, "an id is learned", reader.ids)
    t.works(reader.type("echo item-ffff")[1] == "item-12ab\n", "and put in")
    for wrong in (["item-ffff"], ["item-ffff", "two"], ["other-ffff", "..."], ["...", "three", "..."], []):
        t.works(not reader.prints(wrong, printed), "differs", wrong, printed)
    t.works([i for i, _ in blocks("```console fails: x\n$ a\n```\n\n```sh\nb\n```\n```console\n$ c\nd\n```\n")] == ["fails: x", ""], "blocks are found")


# Of the commands in the README's blocks: how they end, in the order in which they stand there, for a person with a small project, a server, and
# no agent, no container runtime and no network. What is typed by another test, or stays in front, is named.
README = [
    ("./quickstart", "tests/quickstart.py"), ("./check", "this is a part of it"),
    ("kraft repo connect .", 0), ("kraft run -- make test", 0), ("kraft explain -- make test", 0),
    ("kraft run --item hello --commit -- sh -c 'echo hello >hello.txt'", 0), ("kraft run -- sh -c 'ls /home/kraft-demo || true'", 0),
    ("kraft repo connect .", 0), ("kraft explain -- npm test", 0), ("kraft why host api.github.com", 1), ("kraft why path ~/.cargo", 1), ("kraft run -- npm test", 0),
    ('kraft run --harness claude "PROMPT"', 125), ("kraft shell", 2), ("kraft view logs", 0), ("kraft view events", 0),
    ('kraft run --harness claude "fix the flaky test"', 125), ('kraft item create "add --json"', 0), ("kraft admin doctor", 0), ("kraft", "it stays in front"),
    ("kraft run -- sh -c 'echo hello >greeting && git add greeting && git commit -qm \"a greeting\"'", 0),
    ("kraft admin start --detach", 0), ('kraft item create "Greet the world" --autostart -- ./worker.sh', 0), ("kraft view list", 0), ("kraft item allow a3f90c1", 7),
    ("GATE", None), ("kraft view diff --stat greet-the-world-3fa9", 0), ('kraft item reject greet-the-world-3fa9 --note "in French, please"', 0), ("GATE", None), ("kraft item approve greet-the-world-3fa9", 0),
    ("kraft item merge greet-the-world-3fa9", 0),
    ("export ANTHROPIC_API_KEY=...", 0), ('kraft run --harness claude "make the parser refuse empty keys"', 125),
    ('kraft item create "Refuse empty keys" --harness codex --autostart', 0), ("kraft view show refuse-empty-keys-8c21", 0), ("kraft admin harnesses", 0),
    ("kraft repo connect --image registry.example/build:12 .", "tests/live/test_container_run.py has a runtime"), ("kraft admin doctor", "the same"), ("kraft run -- make test", "the same"),
    ("kraft run -- curl -sS https://api.example.com", "first-session.md has one like it"),
]


def readme_commands():
    page = read(os.path.join(DOCS, "../README.md"))
    lines = re.findall(r"^    (?:\$ )?((?:kraft|\./quickstart|\./check|export)\b(?!:).*)$", page, re.M)
    return [re.sub(r"\s+#.*$", "", line).strip() for line in lines]


@promise("DOC-05", "each command of the README ends as a reader would expect")
def _(t):
    told = readme_commands()
    t.works(told == [c for c, _ in README if c != "GATE"], "each is known here", [c for c in told if c not in dict(README)], [c for c, _ in README if c not in told])
    reader = Reader("readme", "mkdir -p tools/npm/bin project && cd project && git init -q && printf 'test:\\n\\ttrue\\n' >Makefile\n"
                    "printf '#!/bin/sh\\necho bonjour >>greeting; git add -A; git commit -qm \"[1] greet\"\\n' >worker.sh && chmod +x worker.sh && git add . && git commit -qm first\n"
                    "printf '#!/bin/sh\\necho npm $1\\n' >~/tools/npm/bin/npm && chmod +x ~/tools/npm/bin/npm")
    reader.env["PATH"] = reader.home.home + "/tools/npm/bin:" + reader.env["PATH"]
    stems = {name[:-4]: name for name in ID.findall(" ".join(told))}
    wrong = []
    try:
        for command, ends in README:
            if command == "GATE":
                gate = wait_for(lambda: reader.type("kraft view list | grep -q 'Greet.*' && kraft view list | grep Greet | grep -q review")[0] == 0, 40)
                wrong += [] if gate else [("no gate", reader.type("kraft view list; kraft view show")[1])]
            elif isinstance(ends, int):
                code, printed = reader.type(command)
                wrong += [] if code == ends else [(command, code, printed)]
                for real in ID.findall(printed):
                    if real[:-4] in stems:
                        reader.ids.setdefault(stems[real[:-4]], real)
    finally:
        reader.type("kraft admin stop --sessions")
    t.works(not wrong, "each ends so", wrong)


if __name__ == "__main__":
    main()
