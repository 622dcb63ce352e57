#!/usr/bin/env python3
"""kraft admin doctor --probe where the repository's workers run in containers."""
# kraft-test: timeout 240
import contextlib

from kraftlive import *

from containerlive import each


def probe(home, **more):
    result = home.kraft("admin", "doctor", "--probe", "--json", timeout=300, **more)
    with contextlib.suppress(ValueError):
        return result, json.loads(result.out)
    return result, {"ok": None, "rows": []}


@each(wall, "CTR-01 OS-MNT-11 OS-SEC-04", "doctor --probe asks from inside of a container of the person's runtime and image")
def _(t, runtime):
    home = Home(runtime=runtime, image=runtimelive.image("debian"))
    result, found = probe(home)
    t.works(result.code == 0 and found["ok"] and len(found["rows"]) >= 35 and {r["kind"] for r in found["rows"]} == {"docker"}, "all are right",
            [r for r in found["rows"] if not r["right"]], result.err)
    by_probe = {r["probe"]: r for r in found["rows"]}
    t.attack(by_probe["read a file of the home directory"]["inside"] != "ok" and by_probe["let its own item through the gate"]["inside"] != "ok", "what must not be is not", by_probe)
    t.control(all(r["outside"] == "ok" for r in found["rows"] if r["outside"]), "outside nothing is refused")
    t.works(not [n for n in os.listdir(home.home) if n.startswith(".kraft-probe")] and runtime.containers(home.kraft_home) == [], "nothing is left")


if __name__ == "__main__":
    main()
