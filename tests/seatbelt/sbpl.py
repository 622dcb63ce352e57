"""Seatbelt's profile language, as much of it as kraft writes: read, and asked whether it allows an operation.

It shares nothing with src/backend/seatbelt.c. What it does not know it refuses, since sandbox-exec refuses a whole profile for one
word that it does not know.

A rule that names a group of operations (`file-write*`) and one that names an operation of it (`file-write-unlink`) meet in one of
two ways, and nobody outside of Apple has said which: all rules are one list and the last that fits decides ("in order"), or the
rules that name the operation itself are asked first, and those of its group only when none fits ("narrow first"). `Profile.allows`
answers for one of them; a good profile has the same answer for both.
"""
import re

# Operation: its group, None for none. All of them stand in profiles that run on every Mac: of Chromium (sandbox/policy/mac), of
# Codex (codex-rs/sandboxing), of sandbox-runtime; the ones that are only asked about are in Apple's own in /System/Library/Sandbox.
OPERATIONS = {
    "default": None,
    "file-read*": None, "file-read-data": "file-read*", "file-read-metadata": "file-read*", "file-read-xattr": "file-read*",
    "file-write*": None,
    **{f"file-write-{what}": "file-write*" for what in
       ("acl", "create", "data", "flags", "mode", "owner", "setugid", "times", "unlink", "xattr")},
    "file-test-existence": None, "file-map-executable": None, "file-ioctl": None, "file-link": None, "file-clone": None,
    "process-exec": None, "process-fork": None, "process-info*": None, "process-info-pidinfo": "process-info*",
    "process-info-rusage": "process-info*", "signal": None,
    "mach-lookup": None, "mach-register": None, "mach-priv-task-port": None,
    "sysctl-read": None, "sysctl-write": None,
    "network-bind": None, "network-inbound": None, "network-outbound": None, "system-socket": None,
    "ipc-posix-shm": None, "ipc-posix-shm-read*": "ipc-posix-shm", "ipc-posix-shm-read-data": "ipc-posix-shm-read*",
    "ipc-posix-shm-write-create": "ipc-posix-shm", "ipc-posix-shm-write-data": "ipc-posix-shm",
    "ipc-posix-sem": None,
    "user-preference-read": None, "user-preference-write": None,
    "appleevent-send": None, "lsopen": None, "job-creation": None, "iokit-open": None, "pseudo-tty": None,
}
ORDERS = ("in order", "narrow first")


class Wrong(Exception):
    """sandbox-exec would not take it."""


# ---- reading ----

TOKEN = re.compile(r'[ \n]+|(?P<paren>[()])|"(?P<string>(?:[^"\\]|\\["\\])*)"|(?P<word>[A-Za-z0-9*_.-]+)')


def read(text):
    """The lists of the text; a string is a tuple ("string", value), a word is str."""
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text):
        raise Wrong("control character")
    at, stack = 0, [[]]
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise Wrong(f"cannot be read from: {text[at:at + 40]!r}")
        at = found.end()
        if found["paren"] == "(":
            stack.append([])
        elif found["paren"] == ")":
            done = stack.pop()
            if not stack:
                raise Wrong("one ) too many")
            stack[-1].append(done)
        elif found["string"] is not None:
            if len(found["string"].encode()) > 1023:
                raise Wrong("a string that its reader has no room for")
            stack[-1].append(("string", re.sub(r"\\(.)", r"\1", found["string"])))
        elif found["word"]:
            stack[-1].append(found["word"])
    if len(stack) != 1:
        raise Wrong("a ( too many")
    return stack[0]


def string(item):
    if not (isinstance(item, tuple) and item[0] == "string"):
        raise Wrong(f"{item!r} is no string")
    return item[1]


# ---- filters: each makes a function of a question ----

def is_within(path, top):
    return path == top or path.startswith(top.rstrip("/") + "/")


def one_word(names):
    def check(arguments):
        if len(arguments) != 1 or arguments[0] not in names:
            raise Wrong(f"{arguments!r} is none of {names}")
        return arguments[0]
    return check


def one_string(arguments):
    if len(arguments) != 1:
        raise Wrong(f"{arguments!r} is not one string")
    return string(arguments[0])


def one_path(arguments):
    path = one_string(arguments)
    if not path.startswith("/"):
        raise Wrong(f"{path!r} is no path")
    return path


# What our patterns are made of. A pattern is for bytes there; here characters are as good, as none stands in brackets.
PATTERN = re.compile(r"\^(?:\\[.\[\]{}()*+?^$|\\]|[^.\[\]{}()*+?^$|\\]|\[\^?[A-Za-z0-9/-]+\][+?]?|\((?:\[[0-9a-f-]+\]|/|\|)+\$?\)\??)*\$?")


def one_pattern(arguments):
    text = one_string(arguments)
    if not PATTERN.fullmatch(text):
        raise Wrong(f"the pattern {text!r} is not made of what is known to work")
    return re.compile(text)


def address(arguments):
    if len(arguments) != 2 or arguments[0] != "ip":
        raise Wrong(f"{arguments!r} is no address")
    host, _, port = string(arguments[1]).rpartition(":")
    if host not in ("localhost", "*") or not (port == "*" or port.isdigit() and 0 < int(port) < 65536):
        raise Wrong(f"{arguments[1]!r} is no address")
    return host, port


def is_address(question, host_and_port):
    host, port = host_and_port
    return question.get("host") is not None and host in ("*", question["host"]) and port in ("*", str(question["port"]))


SIMPLE = {
    "literal": (one_path, lambda q, path: q.get("path") == path),
    "subpath": (one_path, lambda q, path: q.get("path") is not None and is_within(q["path"], path)),
    "regex": (one_pattern, lambda q, pattern: q.get("path") is not None and pattern.search(q["path"]) is not None),
    "vnode-type": (one_word({"REGULAR-FILE", "DIRECTORY", "SYMLINK", "CHARACTER-DEVICE"}), lambda q, kind: q.get("vnode") == kind),
    "target": (one_word({"self", "same-sandbox", "others"}), lambda q, target: target in q.get("targets", ())),
    "global-name": (one_string, lambda q, name: q.get("name") == name),
    "local-name": (one_string, lambda q, name: q.get("local") == name),
    "sysctl-name": (one_string, lambda q, name: q.get("sysctl") == name),
    "sysctl-name-prefix": (one_string, lambda q, name: q.get("sysctl", "").startswith(name) if "sysctl" in q else False),
    "ipc-posix-name": (one_string, lambda q, name: q.get("ipc") == name),
    "ipc-posix-name-prefix": (one_string, lambda q, name: q["ipc"].startswith(name) if "ipc" in q else False),
    "preference-domain": (one_string, lambda q, name: q.get("domain") == name),
    "socket-domain": (one_word({"AF_UNIX", "AF_SYSTEM", "AF_ROUTE", "AF_INET"}), lambda q, name: q.get("family") == name),
    "socket-protocol": (one_word({"1", "2"}), lambda q, number: q.get("protocol") == number),
}
# Filters of a place make sense for operations on a file; others for what they are about.
ABOUT = {
    "file-": {"literal", "subpath", "regex", "vnode-type"}, "process-exec": {"literal", "subpath", "regex"},
    "signal": {"target"}, "process-info": {"target"}, "mach-lookup": {"global-name", "local-name"},
    "sysctl-": {"sysctl-name", "sysctl-name-prefix"}, "ipc-posix-": {"ipc-posix-name", "ipc-posix-name-prefix"},
    "user-preference-": {"preference-domain"}, "system-socket": {"socket-domain", "socket-protocol"},
    "network-": {"remote", "local"}, "process-fork": set(), "default": set(),
}


def filter_of(item, operations):
    if not isinstance(item, list) or not item or not isinstance(item[0], str):
        raise Wrong(f"{item!r} is no filter")
    name, arguments = item[0], item[1:]
    if name in ("require-all", "require-any", "require-not"):
        if not arguments or name == "require-not" and len(arguments) != 1:
            raise Wrong(f"{name} of nothing")
        parts = [filter_of(part, operations) for part in arguments]
        return {"require-all": lambda q: all(part(q) for part in parts), "require-any": lambda q: any(part(q) for part in parts),
                "require-not": lambda q: not parts[0](q)}[name]
    for operation in operations:
        known = [names for start, names in ABOUT.items() if operation.startswith(start)]
        if not any(name in names for names in known):
            raise Wrong(f"the filter {name} is not one of {operation}")
    if name in ("remote", "local"):
        if arguments and arguments[0] == "unix-socket":
            place = filter_of(arguments[1], ["file-read*"]) if len(arguments) == 2 else None
            if not place:
                raise Wrong(f"{item!r} has no place")
            return lambda q: q.get("socket") is not None and place({"path": q["socket"]})
        where = address(arguments)
        return lambda q: is_address(q, where) and q["end"] == name
    if name not in SIMPLE:
        raise Wrong(f"the filter {name} is not known")
    check, fits = SIMPLE[name]
    value = check(arguments)
    return lambda q: fits(q, value)


# ---- rules ----

class Rule:
    def __init__(self, item):
        if not isinstance(item, list) or len(item) < 2 or item[0] not in ("allow", "deny"):
            raise Wrong(f"{item!r} is no rule")
        self.item = item
        self.is_allow = item[0] == "allow"
        self.operations = [part for part in item[1:] if isinstance(part, str)]
        self.filters = [part for part in item[1:] if not isinstance(part, str)]
        if item[1:1 + len(self.operations)] != self.operations:
            raise Wrong(f"{item!r} has a filter in front of an operation")
        for operation in self.operations:
            if operation not in OPERATIONS:
                raise Wrong(f"the operation {operation} is not known")
        self.tests = [filter_of(part, self.operations) for part in self.filters]
        self.names = frozenset(self.operations)
        self.known = {}

    def fits(self, number, question):
        """Whether its filters do; the operation apart."""
        if number not in self.known:
            self.known[number] = not self.tests or any(test(question) for test in self.tests)
        return self.known[number]


def groups(operation):
    """The operation, its group, and so on."""
    found = []
    while operation:
        found.append(operation)
        operation = OPERATIONS[operation]
    return tuple(found)


GROUPS = {operation: groups(operation) for operation in OPERATIONS}
LEVELS = {("in order", operation): [frozenset(found)] for operation, found in GROUPS.items()}
LEVELS.update({("narrow first", operation): [frozenset([one]) for one in found] for operation, found in GROUPS.items()})


def rules_of(text):
    items = read(text)
    if not items or items[0] != ["version", "1"]:
        raise Wrong("it does not begin with (version 1)")
    return [Rule(item) for item in items[1:]]


def decide(rules, number, question, order):
    """Whether the last rule that fits allows it. The default's rule fits where no other does."""
    for level in LEVELS[order, question["op"]]:
        for rule in reversed(rules):
            if not level.isdisjoint(rule.names) and rule.fits(number, question):
                return rule.is_allow
    for rule in reversed(rules):
        if "default" in rule.names:
            return rule.is_allow
    raise Wrong("nothing says what the default is")
