"""Errors with a number (src/base/errors.h): each is its own for ever, is used, is told of, and nothing tells of one that is none."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KRAFT = os.path.join(os.environ.get("KRAFT_BUILD") or ROOT / "build", "kraft")
TABLE = re.findall(r"^\tX\(([A-Z_0-9]+), (\d+), ([A-Z_]+),", (ROOT / "src/base/errors.h").read_text(), re.M)
EVER = ROOT / "tests/golden/errors.txt"  # every number that ever was one; a line is added and none is taken away


def kraft(*words):
    return subprocess.run([KRAFT, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def numbers_rise():
    numbers = [int(n) for _, n, _ in TABLE]
    return [] if numbers == sorted(set(numbers)) and len(numbers) > 30 else [str(numbers)]


def a_number_is_never_given_to_another():
    told = dict(line.split() for line in EVER.read_text().splitlines())
    now = {"E%04d" % int(n): name for name, n, _ in TABLE}
    return ["%s was %s" % (n, told[n]) for n in told if n in now and now[n] != told[n]] + [n for n in now if n not in told]


def each_is_used():
    source = "".join(p.read_text() for p in (ROOT / "src").rglob("*.c"))
    return [name for name, _, _ in TABLE if not re.search(r"\bKR_E_%s\b" % name, source)]


def each_is_told_of():
    wrong = []
    for _, n, _ in TABLE:
        said = kraft("help", "e%04d" % int(n))
        if said.returncode or not said.stdout.startswith("E%04d: " % int(n)) or "\nfor instance:\n    " not in said.stdout:
            wrong.append(n)
    return wrong + ([] if kraft("help", "E0000").returncode == 2 else ["E0000"])


def the_page_is_what_is_printed():
    """renewed with: kraft help kraft-errors >man/kraft-errors.7.scd"""
    return [] if (ROOT / "man/kraft-errors.7.scd").read_text() == kraft("help", "kraft-errors").stdout else ["man/kraft-errors.7.scd differs"]


def those_that_are_named_exist():
    known = {"E%04d" % int(n) for _, n, _ in TABLE}
    files = [*(ROOT / "man").glob("*.scd"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / "src").rglob("*.[ch]")]
    return ["%s: %s" % (f.name, n) for f in files for n in re.findall(r"\bE0\d{3}\b", f.read_text()) if n not in known]


TESTS = [numbers_rise, a_number_is_never_given_to_another, each_is_used, each_is_told_of, the_page_is_what_is_printed, those_that_are_named_exist]


def main():
    failed = False
    print("1..%d" % len(TESTS))
    for number, test in enumerate(TESTS, 1):
        wrong = test()
        failed = failed or bool(wrong)
        print("%sok %d - %s" % ("not " if wrong else "", number, test.__name__.replace("_", " ")))
        for line in wrong:
            print("# " + line)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
