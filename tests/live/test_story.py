#!/usr/bin/env python3
"""The README's story as a new user lives it: an item with a server, watched, asked, sent back, approved; and the server killed."""
# kraft-test: timeout 200
from servelive import *

# What the README calls ./worker.sh: it edits, commits, tells how far it is, answers its reviewer, and asks permission.
WORKER = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/worker.sh"))


@promise("ITM-01 ITM-03 ITM-06 CHN-02 CHN-12", "as a new user: connect, file, watch, answer what is asked, send back with a note, approve; the server is killed in the middle")
def _(t):
    home = Served(test_command="grep -q . greeting")
    home.policy(defaults={"ask_tools": ["Deploy"]})
    write(home.repo + "/worker.sh", WORKER, 0o755)
    home.own("add", "-A")
    home.own("commit", "-qm", "a worker")
    home.serve()
    created = home.kraft("item", "create", "Greet the world", "--autostart", "--", "./worker.sh")
    item = created.out.split()[0]
    t.works(created.code == 0 and created.out.split()[1] in ("queued", "running"), "filed and started", created)

    def answer(word, *note):
        asks = wait_for(lambda: json.loads(home.kraft("view", "asks", "--json").out), 30, 0.1)
        if not asks:
            raise Failed("nobody asks: %r" % home.show(item))
        return home.kraft("item", word, asks[0]["id"], *note)

    t.works(home.becomes(item, "asks you"), "it asks", home.show(item))
    board = home.kraft("view", "watch", "--once")
    t.works(item in board.out and "asks you" in board.out, "the board shows it", board)
    home.kill_server()  # in the middle: what runs goes on
    t.works(home.words(item) == "asks you", "it goes on without its server")
    home.serve()
    t.works(answer("allow").code == 0, "allowed")
    t.works(home.becomes(item, "needs you"), "it comes to its gate", home.show(item))
    t.works(home.show(item)["progress"] == 2, "it told how far it is", home.show(item))
    t.works("+hello" in home.kraft("view", "diff", item).out, "the diff")
    thread = home.kraft("item", "comment", item, "French would be nicer").out.strip()
    told = home.kraft("item", "reject", "--note", "in French, please", item)
    t.works(told.code == 0 and home.becomes(item, "asks you"), "sent back, and asked again", told, home.show(item))
    os.kill(host_of(home, item), signal.SIGKILL)  # and now the process that is at it
    t.works(wait_for(lambda: "session_unknown" in home.types(item), 20), "its host is lost", home.types(item))
    t.works(home.becomes(item, "asks you"), "and asks again by itself", home.show(item))
    t.works(answer("allow").code == 0 and home.becomes(item, "needs you"), "to its gate", home.show(item))
    replies = [c for x in json.loads(home.kraft("view", "threads", "--json", item).out) if x["id"] == thread for c in x["comments"]]
    t.works([(c["author"], c["claim"]) for c in replies] == [("human", None), ("agent", "fixed")] and "bonjour" in replies[1]["body"],
            "its reviewer is answered", replies)
    home.kraft("item", "resolve", "--item", item, thread)
    t.works(home.kraft("item", "approve", item).code == 0 and home.becomes(item, "done"), "approved", home.show(item))
    t.works(git(home.repo, "show", "kraft/%s:greeting" % item) == "bonjour\n", "the branch is there")
    merged = home.kraft("item", "merge", item)
    t.works(merged.code == 0 and read(home.repo + "/greeting") == "bonjour\n", "and merged", merged)


@promise("ITM-02 CHN-12", "the same worker without an answer: what a person denies it does not do, and the item says so")
def _(t):
    home = Served(test_command="true")
    home.policy(default={"attempts": 1, "wall_clock_s": 600}, defaults={"ask_tools": ["Deploy"]}, auto_escalate_stuck=False)
    write(home.repo + "/worker.sh", WORKER, 0o755)
    home.own("add", "-A")
    home.own("commit", "-qm", "a worker")
    home.serve()
    item = home.create("Denied", "--autostart", worker="exec ./worker.sh")
    t.works(home.becomes(item, "asks you"), "it asks")
    ask = json.loads(home.kraft("view", "asks", "--json").out)[0]["id"]
    t.works(home.kraft("item", "deny", ask, "--note", "not today").code == 0 and home.becomes(item, "failed"), "it stops", home.show(item))
    t.control(not os.path.exists(home.tree(item) + "/greeting") and home.show(item)["stop"] == "failed", "and did nothing", home.show(item))


if __name__ == "__main__":
    main()
