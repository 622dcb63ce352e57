"""docs/promises.md tells the truth: every promise of this version is there once, and the tests it names exist.

A row is "| id | what holds | tests |"; a test is `file: name`, where the name is text of that file, or `file` alone.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "promises.md"
ROW = re.compile(r"^\| ([A-Z]+(?:-[A-Z]+)?-\d\d) \| (.+) \| (.*) \|$")
OTHER_TESTS = re.compile(r"tests/(unit|golden|live|fuzz|docs|fault|seatbelt)/|tests/quickstart\.py$|guest/test")


def ids(prefix, *numbers):
    return [f"{prefix}-{number:02d}" for number in numbers]


EXPECTED = [
    *ids("CFG", *range(1, 12)),
    *ids("OS-MNT", *range(1, 14)),
    *ids("OS-EXP", *range(1, 6)),
    *ids("OS-CMD", *range(1, 10)),
    *ids("OS-LCH", *range(1, 15)),
    *ids("OS-SEC", *range(1, 9)),
    *ids("OS-ENV", *range(1, 7)),
    *ids("OS-LIM", 1, 2, 3),
    *ids("POL", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    *ids("CHN", *range(1, 13)),
    *ids("ITM", *range(1, 7)),
    *ids("REF", *range(1, 7)),
    *ids("CTR", *range(1, 15)),
    *ids("LIM", 1, 2),
    *ids("SEN", 1, 2, 3, 4),
    *ids("MAC", *range(1, 14)),
]


def rows():
    for line in PAGE.read_text().splitlines():
        found = ROW.match(line)
        if found:
            yield found.group(1), re.findall(r"`([^`]+)`", found.group(3))


def all_test_text():
    return "\n".join(path.read_text(errors="replace") for path in sorted((ROOT / "tests").rglob("*"))
                     if path.is_file() and path.suffix in (".c", ".py", ".yaml", ".json") and path.parent.name != "docs")


def missing_of(test):
    """What is wrong with one named test; None when it is there."""
    file, _, name = test.partition(": ")
    path = ROOT / file
    if not OTHER_TESTS.search(file):
        return f"'{file}' is no test file"
    if not path.is_file():
        return f"there is no '{file}'"
    if name and name not in path.read_text(errors="replace"):
        return f"'{file}' has no test '{name}'"
    return None


def main():
    found = list(rows())
    text = all_test_text()
    problems = {}
    for promise in EXPECTED:
        lines = [tests for name, tests in found if name == promise]
        problems[promise] = []
        if len(lines) != 1:
            problems[promise].append(f"{len(lines)} rows in docs/promises.md")
            continue
        if not lines[0]:
            problems[promise].append("names no test")
        problems[promise] += [wrong for wrong in map(missing_of, lines[0]) if wrong]
        if not re.search(rf"\b{promise}\b", text):
            problems[promise].append("no test file mentions the id")
    extra = sorted({name for name, _ in found} - set(EXPECTED))
    print(f"1..{len(EXPECTED) + 1}")
    for number, (promise, wrong) in enumerate(problems.items(), 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {promise} {'; '.join(wrong)}".rstrip())
    print(f"{'not ok' if extra else 'ok'} {len(EXPECTED) + 1} - no row for anything else {' '.join(extra)}".rstrip())
    sys.exit(1 if extra or any(problems.values()) else 0)


main()
