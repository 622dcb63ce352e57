"""What scripts/build-macos made: Mach-O for the machine, and nothing taken from anywhere but libSystem and the stubs.

They cannot be run here. That they link says that every call has a declaration of macOS's and stands in a library; this says that
what came out is what was meant.
"""
import os
import pathlib
import struct
import sys

BUILD = pathlib.Path(os.environ.get("KRAFT_BUILD") or pathlib.Path(__file__).resolve().parent.parent.parent / "build-macos")
SYSTEM = "/usr/lib/libSystem.B.dylib"
STUBS = {"@rpath/lib%s.dylib" % name for name in ("jansson", "yaml", "sqlite3", "crypt")}
MACHINES = {"aarch64": 0x0100000C, "x86_64": 0x01000007}
PROGRAMS = {"kraft": {SYSTEM} | STUBS, "kraft-egress": {SYSTEM}, "kraft-guest": {SYSTEM}}
# mach-o/loader.h
MAGIC, EXECUTE, PIE, TWOLEVEL = 0xFEEDFACF, 2, 0x200000, 0x80
SYMTAB, LOAD_DYLIB, MAIN, BUILD_VERSION, SIGNATURE = 0x2, 0xC, 0x80000028, 0x32, 0x1D
TYPE, EXTERNAL = 0x0E, 0x01  # of a symbol


class Program:
    """What a Mach-O file's header says."""
    def __init__(self, data):
        magic, self.machine, _, self.type, count, _, self.flags, _ = struct.unpack_from("<8I", data)
        if magic != MAGIC:
            raise ValueError("no Mach-O file of 64 bits")
        self.libraries, self.taken, self.commands, self.least = [], {}, set(), None
        at = 32
        for _ in range(count):
            command, size = struct.unpack_from("<2I", data, at)
            self.commands.add(command)
            if command == LOAD_DYLIB:
                name = at + struct.unpack_from("<I", data, at + 8)[0]
                self.libraries.append(data[name:at + size].split(b"\0")[0].decode())
            elif command == BUILD_VERSION:
                self.least = struct.unpack_from("<2I", data, at + 8)
            elif command == SYMTAB:
                symbols = struct.unpack_from("<4I", data, at + 8)
            at += size
        self._read_symbols(data, *symbols)

    def _read_symbols(self, data, first, count, strings, _size):
        """Those that are defined elsewhere, with the number of the library: 1 is the first, above are lookups in any."""
        for i in range(count):
            name, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, first + 16 * i)
            if kind & EXTERNAL and kind & TYPE == 0:
                text = data[strings + name:data.index(b"\0", strings + name)].decode()
                self.taken[text] = description >> 8


def problems_of(machine, name, data):
    program = Program(data)
    found = []
    if program.machine != MACHINES[machine] or program.type != EXECUTE or MAIN not in program.commands:
        found.append("it is no program for %s" % machine)
    if not program.flags & PIE or not program.flags & TWOLEVEL:
        found.append("it lies at a fixed address, or its symbols are looked for in any library")
    if program.least is None or program.least[0] != 1 or program.least[1] >> 16 != 13:
        found.append("it is not for macOS 13 and later: %r" % (program.least,))
    if machine == "aarch64" and SIGNATURE not in program.commands:
        found.append("it has no signature, without which that machine runs nothing")
    if set(program.libraries) != PROGRAMS[name]:
        found.append("it loads %s" % ", ".join(program.libraries))
    if "_sandbox_init" not in program.taken and name != "kraft-guest":
        found.append("it takes no sandbox_init: what parses for it would not be confined")
    return found + ["'%s' is of no library" % symbol for symbol, number in sorted(program.taken.items())
                    if not 1 <= number <= len(program.libraries)]


def main():
    files = [(machine, name) for machine in MACHINES for name in PROGRAMS]
    print("1..%d" % (len(files) + 3))
    failed = False

    def point(number, name, problems):
        nonlocal failed
        print("%s %d - %s" % ("not ok" if problems else "ok", number, name))
        for problem in problems:
            print("# %s" % problem)
        failed = failed or bool(problems)

    for number, (machine, name) in enumerate(files, 1):
        path = BUILD / machine / name
        problems = problems_of(machine, name, path.read_bytes()) if path.exists() else ["it was not built"]
        point(number, "%s for %s" % (name, machine), problems)
    # The look itself: it sees a program of the other machine, a library too many, and a symbol of no library.
    whole = (BUILD / "aarch64" / "kraft").read_bytes()
    point(len(files) + 1, "the other machine's is seen", [] if problems_of("x86_64", "kraft", whole) else ["it was taken"])
    point(len(files) + 2, "a library too many is seen", [] if problems_of("aarch64", "kraft-egress", whole) else ["it was taken"])
    point(len(files) + 3, "a symbol that is looked for anywhere is seen", [] if anywhere(whole) else ["it was taken"])
    return failed


def anywhere(whole):
    """One symbol's library made DYNAMIC_LOOKUP."""
    data, at = bytearray(whole), 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<2I", data, at)
        if command == SYMTAB:
            first, count = struct.unpack_from("<2I", data, at + 8)
            for i in range(count):
                if data[first + 16 * i + 4] & (EXTERNAL | TYPE) == EXTERNAL:
                    struct.pack_into("<H", data, first + 16 * i + 6, 0xFE00)
                    break
        at += size
    return [p for p in problems_of("aarch64", "kraft", bytes(data)) if "is of no library" in p]


if __name__ == "__main__":
    sys.exit(main())
