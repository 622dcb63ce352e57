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


if __name__ == "__main__":
    main()
