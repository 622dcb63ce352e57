#!/usr/bin/env python3
"""Agents of work items, with a CLI of our own that speaks as claude does: how they come out, limits, caps, resumed conversations,
turns and answers (ITM-01, ITM-02, ITM-05). The real ones are in test_claude.py and test_codex.py."""
# kraft-test: timeout 400
from worklive import *

# It writes down how it was started, takes the next piece of shell that the test left for it, and says what an agent says.
FAKE = r"""#!/bin/sh
here=$(dirname "$0")
case "$*" in *--version*) echo "2.3.4 (a CLI)"; exit 0 ;; esac
n=$(ls "$HOME" | grep -c '^argv-')
printf '%s\n' "$@" >"$HOME/argv-$n"
cat >"$HOME/told-$n"
say() { printf '%s\n' "$1"; }
begin() { say '{"type":"system","subtype":"init","session_id":"'"${1:-conv-1}"'","model":"big-model"}'; }
end() { say '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"'"$1"'","session_id":"conv-1","total_cost_usd":'"${2:-0.25}"',"usage":{"input_tokens":100,"output_tokens":20,"cache_creation_input_tokens":3,"cache_read_input_tokens":7}}'; }
fault() { say '{"type":"result","subtype":"success","is_error":true,"api_error_status":'"$2"',"num_turns":1,"result":"'"$1"'","session_id":"conv-1","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}'; }
result() { printf '%s' "$1" >"$KRAFT_RESULT_PATH"; }
script="$here/script-$n"
[ -e "$script" ] || script="$here/script"
. "$script"
"""

HARNESS = {"id": "fake", "kind": "cli", "command": "fake",
           "capabilities": {"prompt": {"via": "stdin"}, "context": {"args": ["--context", "{value}"]}, "usage": {"reader": "claude"},
                            "model": {"args": ["--model", "{value}"]}, "resume": {"args": ["--resume", "{value}"]}},
           "network": {"requires": ["models.example"]}, "login": ["FAKE_TOKEN"]}

GOOD = "begin; echo work >>made; git add -A; git commit -qm made; result '{\"status\":\"done\",\"session_summary\":\"made it\"}'; end fine"


class Desk(Office):
    """A project whose agent is the CLI above."""

    def __init__(self, script=GOOD, harness=None, **policy):
        super().__init__(env_passthrough=["FAKE_TOKEN"])
        self.tools = self.home + "/tools"
        write(self.tools + "/fake", FAKE, 0o755)
        self.script(script)
        self.harness(**(harness or {}))
        if policy:
            self.policy(**policy)
        self.agent = {"id": "it", "kind": "agent", "harness": "fake", "prompt": "Do it."}
        self.chain("c", node("work", self.agent), GATE)

    def env(self, **more):
        return super().env(**dict({"FAKE_TOKEN": "t", "PATH": self.tools + ":/usr/bin:/bin"}, **more))

    def harness(self, id="fake", **keys):
        write("%s/harnesses/%s.yaml" % (self.config_dir, id), json.dumps(dict(HARNESS, id=id, **keys)))

    def script(self, text, number=None):
        write(self.tools + "/script" + ("" if number is None else "-%d" % number), text)

    def run_item(self, title, *options):
        item = self.create(title, "--chain", "c", *options)
        self.kraft("item", "start", item)
        return item

    def told(self, item, number):
        return read("%s/sandbox-home/%s/told-%d" % (self.run_dir, item, number))

    def argv(self, item, number):
        path = "%s/sandbox-home/%s/argv-%d" % (self.run_dir, item, number)
        return read(path).splitlines() if os.path.exists(path) else None

    def data(self, item, kind):
        return [e["data"] for e in self.events_of(item) if e["type"] == kind]

    def becomes(self, item, words, seconds=20):
        return wait_for(lambda: self.show(item)["display_status"] == words, seconds, 0.1)


@promise("ITM-01 ITM-02", "an agent does a task: what it is told, its result, what it used, its commits; without a result it has failed, whatever its exit status")
def _(t):
    home = Desk()
    item = home.create("/clear the 'table'", "--description", "All of it.", "--chain", "c")
    started = home.kraft("item", "start", item)
    told = home.show(item)
    t.works(home.status(item) == ("needs you", "review", "gate"), "to its gate", started, told)
    asked, argv = home.told(item, 0), home.argv(item, 0)
    t.works(asked == "Work item: /clear the 'table'\n\nAll of it.\n\nDo it.\n", "its prompt does not begin with a slash", asked)
    t.works(argv[0] == "--context" and "$KRAFT_RESULT_PATH" in "\n".join(argv) and "kraft item progress N" in "\n".join(argv), "its context", argv)
    s = told["sessions"][0]
    t.works((s["status"], s["reason"], s["harness"], s["model"], s["conversation"]) == ("done", "made it", "fake", "big-model", "conv-1"), "its row", s)
    t.works(s["usage"] == {"input": 100, "output": 20, "cache_write": 3, "cache_read": 7} and s["cost_usd"] == 0.25, "what it used", s)
    ended = home.data(item, "worker_session_exited")[0]
    t.works(ended["usage"] == s["usage"] and ended["cost_usd"] == 0.25 and ended["harness"] == "fake", "in the event too", ended)
    t.works(git(home.repo, "show", "kraft/%s:made" % item) == "work\n", "its commits")
    for script, reason in (("begin; end 'all is well'", "it left no result; it ended with: all is well"), ("exit 0", "it left no result, and ended with 0"),
                           ("begin; exit 9", "ended with 9")):
        home.script(script)
        item = home.run_item("none")
        told = home.show(item)
        t.works(told["stop"] == "failed" and reason in told["reason"], "no result: " + script, told["reason"], told["sessions"])
    home.script("begin; result '{\"status\":\"needs_context\",\"question\":\"which?\"}'; sleep 600 & end fine")
    item = home.run_item("asks")
    t.works(home.show(item)["stop"] == "question" and home.show(item)["reason"] == "which?", "a question, whatever it left running", home.show(item))


# As the tools of an agent write a file: another one beside it, a rename, and into the file itself when that is busy.
BESIDE = """begin; python3 -c '
import os
path = os.environ["KRAFT_RESULT_PATH"]
open(path + ".tmp", "w").write("{\\"status\\": \\"done\\", \\"session_summary\\": \\"%s\\"}" % path)
try:
    os.rename(path + ".tmp", path)
except OSError as why:
    assert why.errno == 16, why
    open(path, "w").write(open(path + ".tmp").read())
'; end fine"""


@promise("ITM-02", "an agent's own tool that writes beside a file and renames writes its result")
def _(t):
    home = Desk(BESIDE)
    told = home.show(home.run_item("beside"))
    t.works(told["stop"] == "gate" and told["sessions"][0]["reason"] == "/tmp/kraft-result.json", "it is read", told)
    home.script("begin; mv /tmp /tmp2 2>&1; rm -f /tmp/kraft-result.json; end fine")
    told = home.show(home.run_item("removes"))
    t.works(told["stop"] == "failed" and "left no result" in told["reason"], "it cannot be taken away: there is none in it", told)


@promise("ITM-02", "what an agent leaves running in the background fails it, and is named; a command's does not")
def _(t):
    home = Desk(GOOD + "; sleep 600 & sleep 600 &")
    item = home.run_item("left")
    told = home.show(item)
    t.works(told["stop"] == "failed" and told["sessions"][0]["status"] == "failed" and "running in the background: sleep, sleep" in told["reason"], "failed", told)
    left = home.data(item, "background_jobs_abandoned")
    t.works(len(left) == 1 and left[0]["jobs"] == "sleep, sleep" and left[0]["session_id"] == told["sessions"][0]["id"], "the event", left)
    log = home.kraft("view", "logs", told["sessions"][0]["id"]).out.splitlines()
    t.works("still running when the command had ended: sleep, sleep" in log[-1], "and the log's last line", log[-3:])
    home.script(GOOD + "; sleep 0.3 &")
    t.control(home.show(home.run_item("short"))["stop"] == "gate", "what ends by itself is none")
    home.chain("d", node("work", task("it", "sh -c 'sleep 600 & true'")), GATE)
    other = home.create("a command", "--chain", "d")
    started = home.kraft("item", "start", other)
    t.control(home.show(other)["stop"] == "gate" and "sleep" in started.err, "a command's is a remark", started)


@promise("ITM-02", "a refused login, an unreachable model and a gate that is not found stop the item with what to do; the gate is tried once more")
def _(t):
    home = Desk("begin; fault 'Invalid API key' 401; exit 1")
    told = home.show(home.run_item("login"))
    t.works(told["stop"] == "config" and "login was refused" in told["reason"] and "FAKE_TOKEN" in told["reason"], "login", told["reason"])
    gate = "echo 'Error: MCP tool mcp__kraft__permission_request (passed via --permission-prompt-tool) not found. Available MCP tools: none' >&2; exit 1"
    home.script(GOOD)
    home.script(gate, 0)
    item = home.run_item("late gate")
    t.works(home.show(item)["stop"] == "gate" and home.paths(item) == ["work.main.it config_error", "work.main.it done"], "once more, and it works", home.show(item))
    home.script(gate, 1)
    item = home.run_item("no gate")
    t.works(home.show(item)["stop"] == "config" and len(home.paths(item)) == 2 and "permission tool" in home.show(item)["reason"], "not for ever", home.show(item))
    allowed = Desk(defaults={"allowed_harnesses": ["claude"]})
    told = allowed.show(allowed.run_item("not allowed"))
    t.works(told["stop"] == "config" and "fake" in told["reason"] and allowed.argv(told["id"], 0) is None, "allowed_harnesses", told["reason"])


LIMIT = ("begin; say '{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":'$(($(date +%s) + SECONDS))',\"rateLimitType\":\"five_hour\"}}';"
         " fault \"You've hit your limit\" 429; exit 1")


def limit(seconds):
    return LIMIT.replace("SECONDS", str(seconds))


@promise("ITM-01 ITM-02", "a rate limit is waited out by the host, and the conversation goes on; a person may pause it, and a killed host's wait goes on")
def _(t):
    home = Desk()
    home.script(limit(2), 0)
    item = home.run_item("limited")
    t.works(home.show(item)["stop"] == "gate" and home.paths(item) == ["work.main.it rate_limited", "work.main.it done"], "it went on", home.show(item))
    t.works(home.argv(item, 1)[-2:] == ["--resume", "conv-1"] and home.told(item, 1).startswith("Your provider had turned you away"), "in its conversation",
            home.argv(item, 1), home.told(item, 1))
    hit, told = home.data(item, "rate_limit_hit"), home.data(item, "work_item_rate_limited")
    t.works(hit[0]["rate_limit_type"] == "five_hour" and hit[0]["node_id"] == "work" and told[0]["retry_at"] == hit[0]["resets_at_iso"], "told", hit, told)
    t.works(len(home.data(item, "agent_session_resumed")) == 1 and not home.data(item, "notify_sent"), "and that it goes on")
    home.script(limit(300), 0)
    item = home.create("long", "--chain", "c")
    t.works(home.kraft("item", "start", "-d", item).code == 0 and home.becomes(item, "rate-limited"), "it waits", home.show(item))
    shown = home.kraft("view", "show", item).out
    t.works(re.search(r"rate-limited until \d\d:\d\d|rate-limited until \d{4}-", shown) and "rate-limited until" in home.kraft("view", "list").out, "until when", shown)
    t.works(home.kraft("item", "pause", item).code == 0 and home.status(item)[0] == "paused" and home.show(item)["retry_ms"] is None, "paused", home.show(item))
    home.script(GOOD, 1)
    home.kraft("item", "start", item)
    t.works(home.show(item)["stop"] == "gate" and "--resume" in home.argv(item, 1), "and goes on at once", home.argv(item, 1))
    home.script(limit(6), 0)
    item = home.create("killed", "--chain", "c")
    home.kraft("item", "start", "-d", item)
    t.works(home.becomes(item, "rate-limited"), "it waits", home.show(item))
    pid = int(read("%s/worktrees/%s.host" % (home.run_dir, item)).split()[0])
    os.kill(pid, signal.SIGKILL)
    t.works(home.becomes(item, "cut off"), "its host is gone", home.show(item))
    home.kraft("item", "start", item)
    t.works(home.show(item)["stop"] == "gate" and len(home.paths(item)) == 2, "the next one goes on waiting", home.show(item))
    home.script("begin; fault \"You've hit your limit\" 429; exit 1", 0)
    none = Desk("begin; fault \"You've hit your limit\" 429; exit 1", rate_limit_retries=0)
    told = none.show(none.run_item("no retries"))
    t.works(told["stop"] == "cap" and "rate_limit_retries" in told["reason"], "as often as the policy says", told["reason"])


@promise("ITM-01", "a paused agent is interrupted, and goes on in its own conversation with the steer; after a failure, or when the conversation is gone, it begins anew")
def _(t):
    home = Desk()
    home.script("begin; trap 'echo interrupted >\"$HOME/how\"; exit 0' INT; touch \"$HOME/ready\"; while :; do sleep 0.1; done", 0)
    item = home.create("pause me", "--chain", "c")
    home.kraft("item", "start", "-d", item)
    inside = "%s/sandbox-home/%s/" % (home.run_dir, item)
    t.works(wait_for(lambda: os.path.exists(inside + "ready"), 20), "it works")
    t.works(home.kraft("item", "pause", item).code == 0 and home.status(item)[0] == "paused", "paused", home.show(item))
    t.works(read(inside + "how") == "interrupted\n", "by an interrupt")
    home.kraft("item", "start", "--steer", "use tabs", item)
    t.works(home.argv(item, 1)[-2:] == ["--resume", "conv-1"], "resumed", home.argv(item, 1))
    told = home.told(item, 1)
    t.works(told.startswith("You had been paused. Go on where you were.\n") and told.endswith("A person says: use tabs\n") and "Do it." not in told, "with the steer alone", told)
    t.works(home.show(item)["stop"] == "gate" and home.data(item, "agent_session_resumed")[0]["task"] == "work.main.it", "told", home.show(item))
    home.kraft("item", "reject", item, "--note", "again", "--no-start")
    home.kraft("item", "start", item)
    t.works("--resume" not in home.argv(item, 2) and "A person says: again" in home.told(item, 2), "after a rejection it begins anew", home.argv(item, 2))
    home.script("begin; touch \"$HOME/ready\"; sleep 600", 0)
    home.script("echo 'No conversation found with session ID: conv-1' >&2; exit 1", 1)
    item = home.create("gone", "--chain", "c")
    home.kraft("item", "start", "-d", item)
    t.works(wait_for(lambda: os.path.exists("%s/sandbox-home/%s/ready" % (home.run_dir, item)), 20) and home.kraft("item", "pause", item).code == 0, "paused")
    home.kraft("item", "start", item)
    t.works("--resume" in home.argv(item, 1) and "--resume" not in home.argv(item, 2) and home.show(item)["stop"] == "gate", "its conversation is gone: anew", home.show(item))


@promise("ITM-02", "token_budget and budget_usd stop the next launch; a retry counts anew; a harness that does not tell is refused")
def _(t):
    for caps, used, name in (({"token_budget": 123}, 2, "token_budget"), ({"budget_usd": 0.5}, 3, "budget_usd")):
        home = Desk(defaults=caps)
        steps = [dict(home.agent, id="s%d" % n) for n in range(4)]
        home.chain("c", *[node("n%d" % n, s) for n, s in enumerate(steps)], GATE)
        item = home.run_item("capped")
        told = home.show(item)
        t.works(told["stop"] == "budget" and home.argv(item, used - 2) and not home.argv(item, used - 1) and name in told["reason"], name, told["reason"], told["sessions"])
        reached = home.data(item, "scope_budget_reached")
        t.works(len(reached) == 1 and reached[0]["breach"] == name and reached[0]["task"] == told["node"], "the event", reached)
        home.kraft("item", "retry", item, "--no-start")
        home.kraft("item", "start", item)
        t.works(home.argv(item, used - 1) is not None, "a retry counts anew", home.show(item)["sessions"])
    silent = Desk(defaults={"budget_usd": 5})
    silent.harness(capabilities=dict(HARNESS["capabilities"], usage={"reader": "codex"}))
    told = silent.show(silent.run_item("no price"))
    t.works(told["stop"] == "config" and "budget_usd" in told["reason"] and "token_budget can" in told["reason"], "no price", told["reason"])
    silent.policy(defaults={"token_budget": 5})
    silent.harness(capabilities=dict(HARNESS["capabilities"], usage={"reader": "none"}))
    told = silent.show(silent.run_item("no figures"))
    t.works(told["stop"] == "config" and "token_budget" in told["reason"] and silent.argv(told["id"], 0) is None, "no figures", told["reason"])


@promise("ITM-01 ITM-05", "item create --harness takes the place of what the chain names; turns and answers have an agent too, by escalation_harness")
def _(t):
    home = Desk()
    home.chain("c", node("work", dict(home.agent, harness="claude", model="opus")), GATE)
    refused = home.kraft("item", "create", "x", "--harness", "nobody")
    t.works(refused.code == 7 and "nobody" in refused.err, "one that is not there", refused)
    both = home.kraft("item", "create", "x", "--harness", "fake", "--", "true")
    t.works(both.code == 2 and "not both" in both.err, "one, or a command", both)
    item = home.run_item("own", "--harness", "fake")
    told = home.show(item)
    t.works(told["harness"] == "fake" and told["stop"] == "gate" and "--model" not in home.argv(item, 0), "its own; the other's model is not its", told)
    t.works("fake" in home.kraft("view", "show", item).out, "shown")
    home.kraft("item", "comment", item, "why?")
    home.script("begin; id=$(grep -o '^Thread t[0-9a-f]*' \"$HOME/told-1\" | cut -d' ' -f2); kraft item reply $id --body because --claim answered; "
                "result '{\"status\":\"done\"}'; end fine", 1)
    answered = home.kraft("item", "review", item, "--outcome", "comment")
    wait_for(lambda: home.show(item)["escalation_session_id"] is None, 20, 0.1)
    threads = json.loads(home.kraft("view", "threads", "--json", item).out)
    t.works(answered.code == 0 and threads[0]["comments"][-1]["body"] == "because", "a reply agent", answered, threads, home.show(item)["sessions"])
    t.works("Commit what you do" not in "\n".join(home.argv(item, 1)), "which is told not to commit", home.argv(item, 1))
    for number, (policy, harness) in enumerate(((None, "fake"), ("claude", "claude"))):
        desk = Desk("begin; exit 3", defaults={"escalation_harness": policy} if policy else {})
        stopped = desk.run_item("stopped")
        desk.script(GOOD)
        desk.kraft("item", "escalate", stopped, "what is it?")
        wait_for(lambda: desk.show(stopped)["escalation_session_id"] is None, 20, 0.1)
        turn = desk.show(stopped)["sessions"][-1]
        t.works(turn["path"] == "escalation" and turn["harness"] == harness and (turn["status"] == "done") == (harness == "fake"), "escalation_harness " + str(policy), turn)


if __name__ == "__main__":
    main()
