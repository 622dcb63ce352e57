"""What a Mac is given: launchd's property list and Homebrew's recipe, against the program and the build that they are of."""
import os
import pathlib
import plistlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KRAFT = os.path.join(os.environ.get("KRAFT_BUILD") or ROOT / "build", "kraft")
PLIST = ROOT / "share/launchd/com.kraft.server.plist"
RECIPE = (ROOT / "packaging/homebrew/kraft.rb").read_text()
BUILD = (ROOT / "meson.build").read_text()
# meson's name of a library, and Homebrew's; None: the system's own, or of tests alone.
LIBRARIES = {"yaml-0.1": "libyaml", "jansson": "jansson", "sqlite3": "sqlite", "llhttp": "llhttp", "libxcrypt": "libxcrypt",
             "threads": None, "crypt": None, "m": None, "cmocka": None, "libssl": None, "libcrypto": None}  # TLS: on Linux only
TOOLS = {"meson", "ninja", "pkgconf", "scdoc"}


def plist():
    with PLIST.open("rb") as file:
        return plistlib.load(file)


def launchd_leaves_what_the_server_started_alone():
    return [] if plist().get("AbandonProcessGroup") is True else ["AbandonProcessGroup is not true"]


def launchd_starts_it_again_when_it_failed():
    return [] if plist().get("KeepAlive") == {"SuccessfulExit": False} and plist().get("RunAtLoad") is True else [str(plist())]


def launchd_runs_a_command_that_there_is():
    words = plist()["ProgramArguments"]
    wrong = [] if words[0].startswith("/") and words[0].endswith("/kraft") and plist()["Label"] == PLIST.stem else [str(words)]
    said = subprocess.run([KRAFT, "help", *words[1:3]], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    known = re.findall(r"--[a-z-]+", said.stdout)
    return wrong + ([said.stderr] if said.returncode else []) + [word for word in words[3:] if word not in known]


def launchd_gives_an_environment():
    """OS-ENV-05's variables have a place there, and no value of one is in the file."""
    given = plist()["EnvironmentVariables"]
    return ([] if "/usr/bin" in given.get("PATH", "").split(":") else ["no PATH"]) + [
        name for name in given if "TOKEN" in name or "KEY" in name] + (
        [] if "CLAUDE_CODE_OAUTH_TOKEN" in PLIST.read_text() else ["no word of a token"])


def the_recipe_has_the_libraries_of_the_build():
    used = set(re.findall(r"(?:dependency|find_library)\('([\w.-]+)'", BUILD))
    unknown = sorted(used - set(LIBRARIES))
    wanted = {LIBRARIES[name] for name in used & set(LIBRARIES)} - {None}
    given = set(re.findall(r'^  depends_on "([\w@.-]+)"(?! =>)', RECIPE, re.M))
    return unknown + sorted(wanted ^ given)


def the_recipe_has_the_tools_of_the_build():
    return sorted(TOOLS ^ set(re.findall(r'^  depends_on "([\w@.-]+)" => :build', RECIPE, re.M)))


def the_recipe_is_of_this_version():
    version = re.search(r"version: '([\d.]+)'", BUILD)[1]
    licence = re.search(r"license: '([\w.-]+)'", BUILD)[1]
    return [] if f"kraft-{version}.tar.gz" in RECIPE and f'license "{licence}"' in RECIPE else [version, licence]


def what_the_recipe_installs_is_there():
    return [name for name in re.findall(r'pkgshare\.install "([^"]+)"', RECIPE) if not (ROOT / name).is_file()] + [
        option for option in re.findall(r'"-D(\w+)=', RECIPE) if f"option('{option}'" not in (ROOT / "meson_options.txt").read_text()]


def the_manual_says_what_macos_does_not_hold_MAC_12():
    page = re.sub(r"[*_\\\\]", "", (ROOT / "man/kraft-run.1.scd").read_text())
    section = " ".join(page[page.index("# ON MACOS"):page.index("# EXIT STATUS")].split())
    words = ["environment and arguments can be read", "/psm", "/mp-", "expose: [/opt/homebrew]", "/usr/local", "no terminal but the worker's own",
             "No Mac has run this"]
    return [word for word in words if word not in section]


def main():
    checks = [launchd_leaves_what_the_server_started_alone, launchd_starts_it_again_when_it_failed, launchd_runs_a_command_that_there_is,
              launchd_gives_an_environment, the_recipe_has_the_libraries_of_the_build, the_recipe_has_the_tools_of_the_build,
              the_recipe_is_of_this_version, the_manual_says_what_macos_does_not_hold_MAC_12, what_the_recipe_installs_is_there]
    print(f"1..{len(checks)}")
    failed = False
    for number, check in enumerate(checks, 1):
        wrong = check()
        failed = failed or bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {check.__name__.replace('_', ' ')} {'; '.join(map(str, wrong))}".rstrip())
    sys.exit(failed)


main()
