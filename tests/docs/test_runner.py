"""The runner itself: each way in which a test program can fail to tell the truth counts as a failure."""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# program text, then the closing line and the exit status that the runner must give
CASES = {
    "all points ok": ("echo 1..2; echo ok 1 - a; echo ok 2 - b", "2 passed, 0 failed, 0 skipped", 0),
    "the plan may come last": ("echo ok 1 - a; echo 1..1", "1 passed, 0 failed, 0 skipped", 0),
    "one plan for each group": ("echo 1..1; echo ok 1 - a; echo 1..1; echo ok 1 - b", "2 passed, 0 failed, 0 skipped", 0),
    "one point not ok": ("echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1", "1 passed, 1 failed, 0 skipped", 1),
    "not ok counts at exit 0": ("echo 1..1; echo not ok 1 - a", "0 passed, 1 failed, 0 skipped", 1),
    "no plan": ("echo ok 1 - a", "1 passed, 1 failed, 0 skipped", 1),
    "no output": ("true", "0 passed, 1 failed, 0 skipped", 1),
    "an empty plan": ("echo 1..0", "0 passed, 1 failed, 0 skipped", 1),
    "too few points": ("echo 1..3; echo ok 1 - a; echo ok 2 - b", "2 passed, 1 failed, 0 skipped", 1),
    "too many points": ("echo 1..1; echo ok 1 - a; echo ok 2 - b", "2 passed, 1 failed, 0 skipped", 1),
    "one number twice": ("echo 1..2; echo ok 1 - a; echo ok 1 - b", "2 passed, 1 failed, 0 skipped", 1),
    "a crash after the last point": ("echo 1..1; echo ok 1 - a; kill -SEGV $$", "1 passed, 1 failed, 0 skipped", 1),
    "a crash after a failed point": ("echo 1..2; echo not ok 1 - a; kill -SEGV $$", "0 passed, 1 failed, 0 skipped", 1),
    "a status without a failed point": ("echo 1..1; echo ok 1 - a; exit 3", "1 passed, 1 failed, 0 skipped", 1),
    "bail out": ("echo 1..1; echo ok 1 - a; echo 'Bail out! no room'", "1 passed, 1 failed, 0 skipped", 1),
    "a skip": ("echo 1..2; echo ok 1 - a; echo 'ok 2 - b # SKIP no kernel'", "1 passed, 0 failed, 1 skipped", 0),
    "cmocka's skip": ("echo 1..2; echo ok 1 - a; echo 'not ok 2 # SKIP b'", "1 passed, 0 failed, 1 skipped", 0),
    "the whole program skipped": ("echo '1..0 # SKIP no kernel'", "0 passed, 0 failed, 1 skipped", 0),
    "a child that keeps stdout open": ("sleep 60 & echo 1..1; echo ok 1 - a", "1 passed, 0 failed, 0 skipped", 0),
}


def run(text, **env):
    with tempfile.TemporaryDirectory() as build:
        folder = pathlib.Path(build) / "tests" / "unit"
        folder.mkdir(parents=True)
        program = folder / "unit-fake"
        if text is not None:
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KRAFT_")}
        done = subprocess.run([sys.executable, str(ROOT / "tests" / "run"), "unit", "--build", build], text=True,
                              capture_output=True, timeout=50, env={**clean, **env})
    return done.stdout.splitlines()[-1], done.returncode, done.stdout


def main():
    results = [(name, *run(text), want, status) for name, (text, want, status) in CASES.items()]
    skip = "echo 1..1; echo 'ok 1 - a # SKIP no kernel'"
    results.append(("a skip where everything must work", *run(skip, KRAFT_MUST_WORK="1"), "0 passed, 0 failed, 1 skipped", 1))
    results.append(("no program at all", *run(None), "0 passed, 1 failed, 0 skipped", 1))
    print(f"1..{len(results)}")
    failed = 0
    for number, (name, closing, status, output, want, want_status) in enumerate(results, 1):
        ok = closing == want and status == want_status
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {name}")
        if not ok:
            print(f"# wanted '{want}' and status {want_status}, got '{closing}' and {status}")
            print("".join(f"# {line}\n" for line in output.splitlines()), end="")
    sys.exit(1 if failed else 0)


main()
