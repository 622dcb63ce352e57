"""The profiles of tests/golden/plan/macos-* answer every question as they must, and each word of them matters.

Each question (questions.py) is asked in four worlds: rules in one list or the narrower first (sbpl.py), and either with the
patterns of denying rules or without them, since a denial must not rest on a pattern alone where the name itself can be said.

Then every profile is changed, one word at a time: a rule away, turned around, moved, a filter wider or gone. A change that no
question notices is a rule that nobody needs or a question that is missing, and fails. An ordinary run changes four profiles, which
have every kind of rule; with KRAFT_ALL=1 all are.
"""
import os
import pathlib
import re
import sys

import questions
import sbpl as seatbelt

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "plan"
LEAST = 200
PROMISES = ["MAC-02", "MAC-03", "MAC-04", "MAC-05", "MAC-07", "MAC-08", "MAC-09", "MAC-10", "MAC-12", "MAC-13"]
SECURITY = ["MAC-01 launch", "MAC-02 port", "MAC-04 path", "MAC-05 move", "MAC-07 ref"]  # the others are none of a profile's
WORLDS = [(order, has_patterns) for has_patterns in (True, False) for order in seatbelt.ORDERS]
CHANGED = set(questions.CASES) if os.environ.get("KRAFT_ALL") else {"agent", "expose", "no-git", "workspace"}
TAPE = []
PROVEN = set()  # rules about no place, as they stand in every profile: once is enough


def point(name, problems):
    TAPE.append(not problems)
    print(f"{'not ' if problems else ''}ok {len(TAPE)} - {name}")
    for problem in problems[:12]:
        print(f"# {problem}")
    if len(problems) > 12:
        print(f"# and {len(problems) - 12} more")


# ---- asking ----

def without_pattern(rule):
    """The denying rule as it is where patterns fit nothing."""
    rest = [part for part in rule.filters if part[0] != "regex"]
    if rule.is_allow or len(rest) == len(rule.filters):
        return rule
    if not rest:
        raise seatbelt.Wrong(f"{rule.item} rests on a pattern alone")
    return seatbelt.Rule([rule.item[0], *rule.operations, *rest])


class Sheet:
    """All questions of one golden host, each try once."""

    def __init__(self, name):
        self.asked = list(questions.questions(name))
        self.oracle = questions.Oracle(questions.places_of(name))
        self.tries, numbers = [], {}
        self.parts = []
        for asked in self.asked:
            self.parts.append([])
            for one in asked.tries:
                key = repr(sorted(one.items()))
                if key not in numbers:
                    numbers[key] = len(self.tries)
                    self.tries.append(one)
                self.parts[-1].append(numbers[key])
        self.about = {}  # operation or group: tries
        for number, one in enumerate(self.tries):
            for operation in seatbelt.GROUPS[one["op"]]:
                self.about.setdefault(operation, []).append(number)
        self.askers = [[] for _ in self.tries]
        for index, parts in enumerate(self.parts):
            for number in set(parts):
                self.askers[number].append(index)

    def answers(self, rules, order):
        return [seatbelt.decide(rules, number, one, order) for number, one in enumerate(self.tries)]

    def wrong(self, answers, has_patterns, only=None):
        for index in range(len(self.asked)) if only is None else only:
            asked = self.asked[index]
            if (has_patterns or not asked.is_spelling) and all(answers[number] for number in self.parts[index]) != asked.expect:
                yield asked


def in_world(rules, has_patterns):
    return rules if has_patterns else [without_pattern(rule) for rule in rules]


# ---- changing one word ----

def parent(path):
    return os.path.dirname(path) or "/"


def widened(part, is_denied=False):
    """Filters that fit more than this one, or other things."""
    name, arguments = part[0], part[1:]
    if name == "literal":
        yield ["subpath", *arguments]
    elif name == "subpath":
        yield ["literal", *arguments]
        yield ["subpath", ("string", parent(arguments[0][1]))]
    elif name == "regex":
        pattern = arguments[0][1]
        changes = {pattern.lstrip("^"), pattern.rstrip("$"), re.sub(r"\(/\|\$\)$", "", pattern)}
        fixed = pattern.rfind("/", 0, (pattern + "[").index("[")) if is_denied else 0  # in front of it nothing is writable anyway
        for found in re.finditer(r"\[\^/\]\+|\[\^/\]\??|\[0-9a-f\]\+?|\[([a-z])[A-Z]\]|\\\.", pattern):
            other = {"[^/]+": ".+", "[^/]": ".", "[^/]?": "", "[0-9a-f]": "[^/]", "[0-9a-f]+": ".+", "\\.": "."}.get(found[0], found[1])
            if found.start() >= fixed:
                changes.add(pattern[:found.start()] + other + pattern[found.end():])
        yield from (["regex", ("string", change)] for change in sorted(changes - {pattern}))
    elif name.endswith("-prefix"):
        yield [name, ("string", arguments[0][1][:-1])]
    elif name == "require-all":
        yield ["require-any", *arguments]
        for index in range(len(arguments)):
            yield [name, *arguments[:index], *arguments[index + 1:]]
    elif name == "target":
        yield [name, "self"]
        yield [name, "others"]
    elif name in ("remote", "local") and arguments[0] == "ip":
        host, port = arguments[1][1].split(":")
        yield from ([name, "ip", ("string", wide)] for wide in (f"*:{port}", f"{host}:*", f"{host}:{int(port) + 1}"))
        yield ["local" if name == "remote" else "remote", *arguments]
    for index, argument in enumerate(arguments):
        if isinstance(argument, list):
            for change in widened(argument, is_denied):
                yield [name, *arguments[:index], change, *arguments[index + 1:]]


def spelling_is_free(part, change):
    """Where the pattern takes anything short for a letter, one possible character fewer is no other wall for those letters."""
    return part[0] == "regex" and re.sub(r"\[\^/\]\[\^/\]\?\[\^/\]\?", "", part[1][1]) == re.sub(r"\[\^/\]\[\^/\]\?(\[\^/\]\?)?|\[\^/\]\?\[\^/\]\?|\.\[\^/\]\?\[\^/\]\?", "", change[1][1])


def changed_rules(rule):
    """(what was done, the rule instead; None: none)"""
    answer, operations, filters = rule.item[0], rule.operations, rule.filters
    yield "away", None
    yield "turned around", [{"allow": "deny", "deny": "allow"}[answer], *operations, *filters]
    for index in range(len(operations) if len(operations) > 1 else 0):
        yield f"without {operations[index]}", [answer, *operations[:index], *operations[index + 1:], *filters]
    for index, operation in enumerate(operations):
        group = seatbelt.OPERATIONS[operation]
        if group and answer == "allow" and operation.startswith("file-write"):
            yield f"{group} for {operation}", [answer, *operations[:index], group, *operations[index + 1:], *filters]
        if operation == "file-read*":
            yield f"file-read-data for {operation}", [answer, *operations[:index], "file-read-data", *operations[index + 1:], *filters]
    if filters:
        yield "without filters", [answer, *operations]
    for index, part in enumerate(filters):
        rest = filters[:index], filters[index + 1:]
        if len(filters) > 1:
            yield f"without {part}", [answer, *operations, *rest[0], *rest[1]]
        for change in widened(part, answer == "deny"):
            if not spelling_is_free(part, change):
                yield f"{change} for {part}", [answer, *operations, *rest[0], change, *rest[1]]


def make_rule(item):
    """None where sandbox-exec would not take it; patterns may be any here."""
    strict, seatbelt.SIMPLE["regex"] = seatbelt.SIMPLE["regex"], (lambda a: re.compile(seatbelt.one_string(a)), seatbelt.SIMPLE["regex"][1])
    try:
        return seatbelt.Rule(item)
    except seatbelt.Wrong:
        return None
    finally:
        seatbelt.SIMPLE["regex"] = strict


def places_in(item):
    if isinstance(item, list):
        if item and item[0] in ("literal", "subpath"):
            yield item[0], item[1][1]
        for part in item:
            yield from places_in(part)


def touch(one, other):
    """Whether the order of these two can matter: an operation and a place in common."""
    common = any(a in seatbelt.GROUPS[b] or b in seatbelt.GROUPS[a] for a in one.operations for b in other.operations)
    paths, others = list(places_in(one.filters)), list(places_in(other.filters))
    near = any(questions.is_within(a[1], b[1]) and (b[0] == "subpath" or a[1] == b[1]) for x in paths for y in others for a, b in ((x, y), (y, x)))
    return one.is_allow != other.is_allow and common and (near or not one.filters or not other.filters)


def moved(rules):
    """Each rule in front of the first, and behind the last, with which its order matters."""
    for index, rule in enumerate(rules[1:], 1):
        before = [i for i in range(1, index) if touch(rules[i], rule)]
        after = [i for i in range(index + 1, len(rules)) if touch(rules[i], rule)]
        if before:
            yield index, before[0], [*rules[:before[0]], rule, *rules[before[0]:index], *rules[index + 1:]]
        if after:
            yield index, after[-1], [*rules[:index], *rules[index + 1:after[-1] + 1], rule, *rules[after[-1] + 1:]]


class Base:
    """The answers of one profile in each world, and what a change of one rule makes of them."""

    def __init__(self, sheet, rules):
        self.sheet, self.rules = sheet, rules
        self.worlds = {world: in_world(rules, world[1]) for world in WORLDS}
        self.answers = {world: sheet.answers(self.worlds[world], world[0]) for world in WORLDS}

    def is_noticed(self, world, rules, tries):
        answers = list(self.answers[world])
        touched = set()
        for number in tries:
            answers[number] = seatbelt.decide(rules, number, self.sheet.tries[number], world[0])
            if answers[number] != self.answers[world][number]:
                touched.update(self.sheet.askers[number])
        return any(True for _ in self.sheet.wrong(answers, world[1], touched))

    def concerned(self, *rules):
        """Tries about which one of these rules says something."""
        found = set()
        for rule in rules:
            for operation in rule.operations if rule else ():
                found.update(number for number in self.sheet.about.get(operation, ()) if rule.fits(number, self.sheet.tries[number]))
        return found

    def survivors(self):
        count = 0
        for index, rule in enumerate(self.rules):
            if rule.operations == ["default"] or repr(rule.item) in PROVEN:
                continue
            is_proven = not list(places_in(rule.item))
            for what, item in changed_rules(rule):
                if item and rule.operations == ["file-write-unlink"] and self.denies_nothing_more(rule, item):
                    continue
                instead = item and make_rule(item)
                count += 1
                if item and not instead:
                    continue  # refused
                if self.is_caught(index, rule, instead):
                    continue
                is_proven = False
                yield f"rule {index + 1} {what}: {rule.item}"
            if is_proven:
                PROVEN.add(repr(rule.item))
        for index, where, rules in moved(self.rules):
            count += 1
            rule = self.rules[index]
            tries = list(self.concerned(rule))
            if not any(self.is_noticed(world, in_world(rules, world[1]), tries) for world in WORLDS):
                yield f"rule {index + 1} moved to {where + 1}: {rule.item}"
        self.count = count

    def denies_nothing_more(self, rule, item):
        """A file that stays, and what were below it: nothing of that is allowed by anything."""
        now, then = set(places_in(rule.item)), set(places_in(item))
        return any(kind == "subpath" and ("literal", path) in now and not self.sheet.oracle.may_write(f"{path}/zz", "REGULAR-FILE")
                   for kind, path in then - now)

    def is_caught(self, index, rule, instead):
        for world in WORLDS:
            rules = list(self.worlds[world])
            try:
                other = instead and (instead if world[1] else without_pattern(instead))
            except seatbelt.Wrong:
                return True  # it rests on a pattern alone
            tries = list(self.concerned(rules[index], other))
            if other:
                rules[index] = other
            else:
                del rules[index]
            if self.is_noticed(world, rules, tries):
                return True
        return False


# ---- all of it ----

def uncovered(name, sheet):
    """Each promise and each case is asked with both answers, where a host has what they are about."""
    case = questions.CASES[name]
    whole = case.get("git", True) and case.get("port", True)
    for about in PROMISES + SECURITY if whole else ():
        found = {asked.expect for asked in sheet.asked if asked.about == about}
        for answer in {True, False} - found:
            yield f"{about} is never asked with the answer {'yes' if answer else 'no'}"


def check(name):
    text = (GOLDEN / f"macos-{name}" / "expected.sb").read_text()
    sheet = Sheet(name)
    try:
        rules = seatbelt.rules_of(text)
        base = Base(sheet, rules)
    except seatbelt.Wrong as wrong:
        point(f"{name}: sandbox-exec takes the profile", [str(wrong)])
        return
    problems = [f"{asked.about}, {world[0]}, patterns {world[1]}: {asked.text}: must be {'allowed' if asked.expect else 'denied'}"
                for world in WORLDS for asked in sheet.wrong(base.answers[world], world[1])]
    problems += [f"only {len(sheet.asked)} questions"] if len(sheet.asked) < LEAST else []
    point(f"{name}: {len(sheet.asked)} questions have the answers of the ledger and the security cases", problems + list(uncovered(name, sheet)))
    if name not in CHANGED:
        return
    survivors = list(base.survivors())
    point(f"{name}: each of {base.count} changes of the profile is noticed", survivors)


def reader():
    """A control: what sandbox-exec would not take, the reader does not take."""
    good = '(version 1)\n(deny default)\n(allow file-read* (subpath "/a \\"b\\" \\\\c"))\n'
    bad = ['(version 1)\n(deny default', '(version 1)\n(deny default))', '(deny default)', '(version 1)\n(allow file-red* (subpath "/a"))',
           '(version 1)\n(allow file-read* (subpth "/a"))', '(version 1)\n(allow file-read* (subpath "a"))', '(version 1)\n(allow file-read* (subpath /a))',
           '(version 1)\n(allow (subpath "/a") file-read*)', '(version 1)\n(allow file-read* (subpath "/a\\n"))', '(version 1)\n(allow signal (subpath "/a"))',
           '(version 1)\n(allow network-outbound (remote ip "127.0.0.1:80"))', '(version 1)\n(allow network-outbound (remote unix "/a"))',
           '(version 1)\n(allow file-read* (regex "^/a.*b$"))', '(version 1)\n(allow file-read* (subpath "/\ta"))',
           '(version 1)\n(allow file-read* (subpath "/' + 1100 * "a" + '"))']
    problems = [] if seatbelt.rules_of(good)[1].fits(0, {"path": '/a "b" \\c/d'}) else ["a quoted path does not fit itself"]
    for text in bad:
        try:
            seatbelt.rules_of(text)
            problems.append(f"taken: {text!r}")
        except seatbelt.Wrong:
            pass
    point("what sandbox-exec would not take, this reader does not take", problems)


def main():
    found = sorted(path.parent.name[len("macos-"):] for path in GOLDEN.glob("macos-*/expected.sb"))
    print(f"1..{2 + len(found) + len(CHANGED & set(found))}")
    point("every golden profile has its questions", sorted(set(found) ^ set(questions.CASES)))
    reader()
    for name in found:
        if name in questions.CASES:
            check(name)
    sys.exit(0 if all(TAPE) else 1)


main()
