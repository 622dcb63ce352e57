"""Manual pages and documents against the program: commands, options, links and the commands they tell to type."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KRAFT = os.path.join(os.environ.get("KRAFT_BUILD") or ROOT / "build", "kraft")
PAGES = {
    "man/kraft-run.1.scd": ["run", "shell"],
    "man/kraft-explain.1.scd": ["explain"],
    "man/kraft-why.1.scd": ["why host", "why path", "why command", "why env"],
    "man/kraft-repo.1.scd": ["repo connect", "repo list", "repo path", "repo disconnect"],
    "man/kraft-view.1.scd": ["view list", "view watch", "view show", "view threads", "view asks", "view sessions", "view logs", "view events", "view diff"],
    "man/kraft-item.1.scd": ["item create", "item start", "item pause", "item unblock", "item approve", "item reject", "item allow", "item deny", "item retry", "item skip", "item escalate", "item review", "item comment",
                             "item reply", "item resolve", "item reopen", "item complete", "item cancel", "item abandon", "item archive", "item list", "item merge", "item push", "item remove"],
    "man/kraft-admin.1.scd": ["admin start", "admin stop", "admin restart", "admin health", "admin reload", "admin install-service", "admin doctor", "admin chains",
                             "admin harnesses", "admin notify", "admin prune", "admin password", "admin token"],
}
EVERY_COMMANDS = ["--color", "--help"]  # in kraft(1)
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "HACKING.md", "SECURITY.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def kraft(*words):
    done = subprocess.run([KRAFT, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout + done.stderr


def read(path):
    return (ROOT / path).read_text()


def commands():
    return [line[2:24].strip() for line in kraft("help").splitlines() if re.match(r"  [a-z]", line)]


def options(command):
    return re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", kraft("help", *command.split()), re.MULTILINE)


def plain(scd):
    return re.sub(r"[*_\\]", "", scd)


def every_command_is_in_the_manual():
    page = plain(read("man/kraft.1.scd"))
    return [name for name in commands() if f"kraft {name}" not in page]


def every_command_of_the_manual_exists():
    told = set(re.findall(r"^\*kraft ([a-z]+(?: [a-z]+)?)\*", read("man/kraft.1.scd"), re.MULTILINE))
    known = set(commands()) | {"help"}
    return sorted(told - known)


def every_command_with_options_has_a_page():
    paged = {name for names in PAGES.values() for name in names}
    return [name for name in commands() if name not in paged and set(options(name)) - set(EVERY_COMMANDS)]


def every_option_is_in_its_page():
    return [f"{command} {option}" for page, names in PAGES.items() for command in names for option in options(command)
            if option not in EVERY_COMMANDS and f"*{option}*" not in read(page)]


def every_option_of_a_page_exists():
    wrong = []
    for page, names in PAGES.items():
        known = {option for command in names for option in options(command)}
        told = re.findall(r"^(?:\*-\w\*, )?\*(--[a-z-]+)\*", read(page), re.MULTILINE)
        wrong += [f"{page} {option}" for option in told if option not in known]
    return wrong


def the_options_of_every_command_are_in_the_manual():
    page = read("man/kraft.1.scd")
    return [f"{command} {option}" for command in commands() for option in EVERY_COMMANDS
            if option not in options(command) or not re.search(rf"^(\*-h\*, )?\*{option}\*", page, re.MULTILINE)]


def section(page, heading):
    return re.search(rf"^# {heading}\n(.*?)(?=^# |\Z)", read(page), re.MULTILINE | re.DOTALL).group(1)


def exit_codes():
    """The table as the program prints it: number and meaning, on one line."""
    text = re.sub(r"\n {8,}", " ", kraft("help", "exit-codes"))
    return re.findall(r"^  (\d+) +(.*)$", text, re.MULTILINE)


def the_exit_codes_of_the_manual_are_the_programs():
    told = [(number, re.sub(r"\s+", " ", plain(meaning)).strip())
            for number, meaning in re.findall(r"^\*(\d+)\*\n((?:\t.*\n)+)", section("man/kraft.1.scd", "EXIT STATUS"), re.MULTILINE)]
    real = [(number, meaning[0].upper() + meaning[1:].replace("'kraft run'", "kraft run").replace("'kraft shell'", "kraft shell") + ".")
            for number, meaning in exit_codes()]
    return [f"{a} is not {b}" for a, b in zip(told, real) if a != b] + ([] if len(told) == len(real) > 10 else ["other rows"])


def exit_codes_that_are_told_elsewhere_exist():
    """In the pages of other commands, 125 to 127 belong to those that launch."""
    known = {number for number, _ in exit_codes()}
    wrong = []
    for page in PAGES:
        for number in re.findall(r"^\*(\d+)\*", read(page), re.MULTILINE):
            wrong += [] if number in known and int(number) < 125 else [f"{page} {number}"]
    for command in commands():
        said = re.findall(r"\b12[567]\b(?!\.\d)", kraft("help", *command.split()))
        wrong += [f"{command} {number}" for number in said if command not in ("run", "shell", "explain")]
    return wrong


def keys(sections):
    """The keys of some sections, from the rows of the table of keys."""
    table = read("src/config/schema.c")
    found = set(re.findall(r'\{ KR_IN_(?:%s),\s*"([a-z_]+)"' % "|".join(sections), table))
    if "CAPABILITIES" in sections:
        found |= set(re.findall(r'^\tCAPABILITY\("([a-z_]+)"', table, re.MULTILINE))
    return found | set(re.findall(r'UNBUILT\((?:%s), "([a-z_]+)"\)' % "|".join(sections), table))


def keys_of_macros():
    """Those that are written once for several sections."""
    table = read("src/config/schema.c")
    macros = "".join(re.findall(r"^#define (?:[A-Z]+_KEYS?)\(.*?[^\\]\n", table, re.MULTILINE | re.DOTALL))
    return set(re.findall(r'"([a-z]+_?[a-z_]*[a-z])", ?KR_KEY|KR_IN_##in, "([a-z_]+)"', macros))


def every_key_of_a_chain_a_harness_and_the_policy_is_in_its_page():
    pages = {
        "man/kraft-chains.5.scd": ["CHAIN", "NODE", "STEP", "TASK", "FIX_LOOP", "RECOVERY"],
        "man/kraft-harness.5.scd": ["HARNESS", "CAPABILITIES", "CAPABILITY", "REQUIRES", "CONFIG_DIR", "HARNESSES", "HARNESS_ENTRY",
                                    "HARNESS_DEFAULTS"],
        "man/kraft-notify.5.scd": ["NOTIFY"],
        "man/kraft-access.5.scd": ["ACCESS"],
        "man/kraft-sandbox.5.scd": ["CONTAINERS"],
        "man/kraft-policy.5.scd": ["HOST", "DEFAULT", "DEFAULTS", "FINDINGS", "BUDGET", "ARCHIVE", "MAXIMA"],
    }
    wrong = [f"{page} {key}" for page, sections in pages.items() for key in sorted(keys(sections)) if f"*{key}*" not in read(page)]
    both = read("man/kraft-chains.5.scd") + read("man/kraft-policy.5.scd")
    shared = {name for pair in keys_of_macros() for name in pair if name}
    wrong += [f"shared {key}" for key in sorted(shared) if f"*{key}*" not in both]
    return wrong if len(shared) > 10 and all(keys(sections) for sections in pages.values()) else wrong + ["no keys were found"]


def the_reference_of_the_api_is_what_is_printed():
    """docs/api.md; renewed with: kraft help api >docs/api.md"""
    return [] if read("docs/api.md") == kraft("help", "api") else ["docs/api.md differs from 'kraft help api'"]


def links_lead_somewhere():
    dead = []
    for document in DOCUMENTS:
        for link in re.findall(r"\]\(([^)#]+)", read(document)):
            if "://" not in link and not (ROOT / document).parent.joinpath(link).exists():
                dead.append(f"{document}: {link}")
    return dead


def told_pages_exist():
    return [f"{document}: kraft{name}({number})" for document in [*DOCUMENTS, *(f"man/{path.name}" for path in (ROOT / "man").glob("*.scd"))]
            for name, number in re.findall(r"\bkraft((?:-[a-z.-]*[a-z])?)\(([1-8])\)", plain(read(document)))
            if not (ROOT / f"man/kraft{name}.{number}.scd").exists()]


def told_dev_commands_exist():
    known = set(re.findall(r"^\./dev ([a-z]+)", subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True).stdout,
                           re.MULTILINE))
    return [f"{document}: ./dev {word}" for document in DOCUMENTS for word in re.findall(r"\./dev ([a-z]+)", read(document))
            if word not in known]


def told_kraft_commands_exist():
    """In code blocks: lines that begin with kraft, or with a prompt and kraft."""
    first = {name.split()[0] for name in commands()} | {"help"}
    return [f"{document}: {line.strip()}" for document in DOCUMENTS
            for line in re.findall(r"^(?:    (?:\$ )?|\$ )kraft ([a-z].*)$", read(document), re.MULTILINE)
            if line.split()[0] not in first]


def told_kraft_commands_of_a_sentence_exist():
    """In the text of documents: `kraft GROUP COMMAND ...` and `kraft COMMAND ...`, a worker's too."""
    known = set(commands()) | {"help"} | set(re.findall(r"^\*kraft ([a-z]+ [a-z]+)", read("man/kraft-worker.7.scd"), re.MULTILINE))
    groups = {name.split()[0] for name in known if " " in name}

    def is_known(words):
        return " ".join(words[:2]) in known or words[0] in known or (words[0] in groups and len(words) == 1)
    return [f"{document}: kraft {told}" for document in DOCUMENTS
            for told in re.findall(r"`kraft\s+([a-z][^`]*)`", re.sub(r"^```.*?^```$", "", read(document), flags=re.MULTILINE | re.DOTALL))
            if not is_known(told.split())]


def nobody_says_it_fits_only_this_machine():
    """No file names a path of one developer's machine."""
    done = subprocess.run(["git", "-C", ROOT, "-c", f"safe.directory={ROOT}", "grep", "-lE", r"/home/[a-z]+/\.cache"],
                          capture_output=True, text=True)
    return [name for name in done.stdout.split() if name != "tests/docs/test_manual.py"]


TESTS = [
    every_command_is_in_the_manual,
    every_command_of_the_manual_exists,
    every_command_with_options_has_a_page,
    every_option_is_in_its_page,
    every_option_of_a_page_exists,
    the_options_of_every_command_are_in_the_manual,
    the_exit_codes_of_the_manual_are_the_programs,
    exit_codes_that_are_told_elsewhere_exist,
    every_key_of_a_chain_a_harness_and_the_policy_is_in_its_page,
    the_reference_of_the_api_is_what_is_printed,
    links_lead_somewhere,
    told_pages_exist,
    told_dev_commands_exist,
    told_kraft_commands_exist,
    told_kraft_commands_of_a_sentence_exist,
    nobody_says_it_fits_only_this_machine,
]


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    for number, test in enumerate(TESTS, 1):
        wrong = test()
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {test.__name__}", flush=True)
        for line in wrong:
            print(f"# {line}", flush=True)
    sys.exit(1 if failed else 0)


main()
