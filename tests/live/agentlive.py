"""What the tests of the real agents share: a project whose agent's harness can be edited, and what its session left. Import
egresslive first: the program starts again inside of the tests' network."""
import worklive
from kraftlive import *


class AgentOffice(worklive.Office):
    harness_id = None  # of a harness that comes with kraft

    def edit_harness(self, *pairs):
        """A harness of the person's own in place of the shipped one: texts that stand in it, and what stands there then."""
        text = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/harnesses/%s.yaml" % self.harness_id))
        for old, new in pairs:
            if old not in text:
                raise Failed("the shipped harness lacks %r" % old)
            text = text.replace(old, new)
        write("%s/harnesses/%s.yaml" % (self.config_dir, self.harness_id), text)

    def worktree_of(self):
        """The worktree of the item that `kraft run` takes by itself."""
        names = [n for n in os.listdir(self.run_dir + "/worktrees") if os.path.isdir("%s/worktrees/%s/sub" % (self.run_dir, n))]
        if len(names) != 1:
            raise Failed("not one worktree, but %r" % names)
        return "%s/worktrees/%s" % (self.run_dir, names[0])

    def left(self):
        return sorted(os.listdir(self.worktree_of()))

    def has(self, name):
        return os.path.exists(os.path.join(self.worktree_of(), name))

    def decided(self):
        """Every permission decision of the store."""
        return [e["data"] for e in self.events("permission_decision")]
