"""Fault points (src/base/fault.h) are in no build that is installed: their names and their variables are not in its programs."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("KRAFT_BUILD") or ROOT / "build")
PROGRAMS = ["kraft", "kraft-egress", "guest/kraft-guest"]
TABLE = re.findall(r"^\tX\((\w+)\)", (ROOT / "src/base/fault.h").read_text(), re.M)
FUNCTIONS = set(re.findall(r"^(\w+)\(", "".join(p.read_text() for p in (ROOT / "src").rglob("*.c")), re.M))  # in a table of symbols
VARIABLES = ["KRAFT_FAULT", "KRAFT_PRETEND_MACOS"]
NAMES = VARIABLES + [name for name in TABLE if "_" in name and name not in FUNCTIONS]


def held(path):
    """Those of the names that a file holds."""
    data = path.read_bytes()
    return [name for name in NAMES if b"\0" + name.encode() + b"\0" in data or name in VARIABLES and name.encode() in data]


def a_release_holds_none():
    return ["%s: %s" % (program, name) for program in PROGRAMS for name in held(BUILD / program)]


def with_the_option_they_are_found():
    """The same look, at the same source compiled with the option."""
    with tempfile.TemporaryDirectory() as place:
        made = pathlib.Path(place) / "fault.o"
        subprocess.run(["cc", "-D_GNU_SOURCE", "-DKR_FAULT_POINTS_ON", "-I", ROOT / "src", "-c", ROOT / "src/base/fault.c", "-o", made], check=True)
        return sorted(set(NAMES) - set(held(made)))


def every_name_is_a_place():
    """Each name of the table stands once in the sources, and none stands there that the table does not know."""
    text = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.c")))
    used = re.findall(r"KR_FAULT\((\w+)\)", text)
    return sorted(set(TABLE) ^ set(used)) + sorted({name for name in used if used.count(name) > 1})


TESTS = [a_release_holds_none, with_the_option_they_are_found, every_name_is_a_place]


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    for number, test in enumerate(TESTS, 1):
        problems = test()
        print(f"{'not ok' if problems else 'ok'} {number} - {test.__name__}")
        for problem in problems:
            print(f"# {problem}")
        failed = failed or bool(problems)
    return failed


if __name__ == "__main__":
    sys.exit(main())
