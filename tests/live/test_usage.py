#!/usr/bin/env python3
"""What agents used, as a person sees it: of each session and of the item (ITM-01)."""
import sqlite3

from worklive import *


def told(home, session, **columns):
    """As the host writes it when an agent's session has ended."""
    with sqlite3.connect(home.run_dir + "/orchestrator.db") as db:
        db.execute("UPDATE sessions SET %s WHERE id = ?" % ", ".join(c + " = ?" for c in columns), (*columns.values(), session))


@promise("ITM-01", "view show says what each agent's session used and the item in all; what is not known is not made up")
def _(t):
    home = Office(test_command="")
    item = home.create("use", worker="true")
    home.kraft("item", "start", item)
    home.kraft("item", "reject", item, "--note", "again", "--no-start")
    home.kraft("item", "start", item)
    agents = [s["id"] for s in home.show(item)["sessions"] if s["path"].startswith("implementation")]
    t.works(len(agents) == 2, "two sessions of an agent's task", home.show(item))
    plain = home.show(item)
    t.works(plain["usage"] is None and plain["cost_usd"] is None and plain["sessions"][0]["harness"] is None and "used" not in home.kraft("view", "show", item).out,
            "a worker that told nothing", plain)
    told(home, agents[0], harness="claude", model="claude-opus-4-8", conversation="c1", tokens_in=5000, tokens_out=118, tokens_cache_write=2,
         tokens_cache_read=9, cost_micro=41200)
    told(home, agents[1], harness="codex", conversation="c2", tokens_in=1000, tokens_out=1, tokens_cache_write=0, tokens_cache_read=0)
    shown = home.show(item)
    first, second = [s for s in shown["sessions"] if s["id"] in agents]
    t.works([first[k] for k in ("harness", "model", "conversation", "cost_usd")] == ["claude", "claude-opus-4-8", "c1", 0.0412] and
            first["usage"] == {"input": 5000, "output": 118, "cache_write": 2, "cache_read": 9}, "the first", first)
    t.works([second[k] for k in ("harness", "model", "cost_usd")] == ["codex", None, None] and second["usage"]["input"] == 1000, "the second tells no price", second)
    t.works(shown["usage"] == {"input": 6000, "output": 119, "cache_write": 2, "cache_read": 9} and shown["cost_usd"] == 0.0412, "the item's sums", shown)
    out = home.kraft("view", "show", item).out
    t.works("used        6121 tokens, 9 more from a cache, $0.0412\n" in out, "in words", out)
    t.works(agents[0] + "  claude claude-opus-4-8, 5120 tokens, 9 more from a cache, $0.0412\n" in out and agents[1] + "  codex, 1001 tokens\n" in out,
            "beside each session", out)
    told(home, agents[1], tokens_in=None, tokens_out=None, tokens_cache_write=None, tokens_cache_read=None, model="\x1b[2Jx")
    out = home.kraft("view", "show", item).out
    t.works("5120 tokens, 9 more from a cache, $0.0412; 1 of its sessions did not tell\n" in out and "\x1b" not in out and "codex \\x1b[2Jx\n" in out,
            "one that did not tell; what it calls its model steers no terminal", out)


if __name__ == "__main__":
    main()
