#!/usr/bin/python3
"""./quickstart as a newcomer meets it: it works, is short, can be run again, and says clearly why it cannot work."""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES = 21


def quickstart(**env):
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LOGNAME", "SUDO_USER") if name in os.environ}
    return subprocess.run([str(ROOT / "quickstart")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**clean, **env}, cwd="/")


def demo_folder():
    user = os.environ.get("USER", "") if os.getuid() != 0 else os.environ.get("SUDO_USER") or "kraft-demo"
    return pathlib.Path("/tmp") / f"kraft-demo-{user}"


def runs_the_sample_inside():
    done = quickstart()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed, 0 failed" in done.stdout, done.stdout
    assert "read-only   /usr " in done.stdout and "the worktree" in done.stdout, "the view is not shown:\n" + done.stdout
    assert "1 commit on branch 'kraft/hello'" in done.stdout, "no commit came out:\n" + done.stdout
    assert "No such file or directory" in done.stdout, "the home directory can be seen inside:\n" + done.stdout
    assert len(done.stdout.splitlines()) < LINES, f"{len(done.stdout.splitlines())} lines:\n{done.stdout}"
    assert done.stderr == "", done.stderr


def can_be_run_again():
    done = quickstart()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed, 0 failed" in done.stdout, done.stdout
    assert "installing" not in done.stdout, done.stdout


def leaves_nothing_of_roots_in_the_users_folder():
    folder = demo_folder()
    owner = folder.stat().st_uid
    assert owner != 0, f"{folder} belongs to root"
    for directory, names, files in os.walk(folder):
        for name in names + files:
            path = os.path.join(directory, name)
            assert os.lstat(path).st_uid == owner, f"{path} belongs to user {os.lstat(path).st_uid}"


def an_old_bubblewrap_is_named():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        fake = pathlib.Path(folder) / "bwrap"
        fake.write_text("#!/bin/sh\necho bubblewrap 0.6.1\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        done = quickstart(KRAFT_BWRAP=str(fake))
    assert done.returncode == 1, done.stdout
    assert "bubblewrap is version 0.6.1, and kraft needs 0.8.0 or later" in done.stderr, done.stderr
    assert "KRAFT_BWRAP" in done.stderr, done.stderr


def a_bubblewrap_that_may_not_is_told_with_its_words():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        fake = pathlib.Path(folder) / "bwrap"
        fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit\n'
                        'echo "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n')
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        done = quickstart(KRAFT_BWRAP=str(fake))
    assert done.returncode == 1, done.stdout
    assert "setting up uid map: Permission denied" in done.stderr, done.stderr


def without_apt_the_missing_packages_are_named():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for directory in os.environ["PATH"].split(":"):
            for name in os.listdir(directory) if os.path.isdir(directory) else ():
                link = os.path.join(folder, name)
                if name not in ("apt-get", "meson", "ninja") and not os.path.lexists(link):
                    os.symlink(os.path.join(directory, name), link)
        done = quickstart(PATH=folder)
    assert done.returncode == 1, done.stdout
    assert "missing: meson ninja-build (there is no apt-get here" in done.stderr, done.stderr


TESTS = [
    runs_the_sample_inside,
    can_be_run_again,
    leaves_nothing_of_roots_in_the_users_folder,
    an_old_bubblewrap_is_named,
    a_bubblewrap_that_may_not_is_told_with_its_words,
    without_apt_the_missing_packages_are_named,
]


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}", flush=True)
        except AssertionError as error:
            failed = True
            print(f"not ok {number} - {test.__name__}")
            for line in str(error).splitlines():
                print(f"# {line}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
