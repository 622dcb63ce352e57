/*
 * One command in the walls of the repository that a person stands in: the way that `kraft run` and `kraft
 * shell` share.
 */
#ifndef KR_RUN_RUN_H
#define KR_RUN_RUN_H

#include "agent/agent.h"
#include "base/arena.h"
#include "base/error.h"
#include "config/config.h"
#include "session/calls.h"
#include "session/relay.h"

/* Where a command's streams are, when they are not ours; -1: nothing to read, not kept beside the log. */
struct kr_run_streams {
	int in, out, err;
};

/* What became of the command. */
struct kr_run_done {
	bool has_session; /* there is a folder and a log of it */
	bool started;
	int signal;        /* that ended it; 0: none */
	bool commits_stay; /* what it committed could not be taken out: the next session does it */
	bool files_stay;   /* what it left uncommitted was to become a commit and did not */
	/* with put_back: the first files that were, one on each line, escaped; and why they could not be; "": nothing */
	char wrote[2048], not_put_back[768];
	/* Names of processes that still ran when the command had ended, "a, b and 3 more", escaped; "": none did. They were
	 * ended. */
	char left_running[KR_LEFT_WORDS];
	/* LIM-02: its memory limit killed something of it. confirmed: by the kernel's or the runtime's own word. */
	bool oom, oom_confirmed;
};

/* "it was killed by its memory limit of 512m ('memory' of resources)"; not confirmed: it was likely. */
const char *kr_run_oom_words(struct kr_arena *arena, const struct kr_sandbox *sandbox, bool is_confirmed);

/* An agent in place of a command: what is to be started is found in the item, when its policy is known (agent.c). */
struct kr_run_agent {
	const struct kr_harness *harness;
	const char *model, *effort, *permission_mode; /* NULL: the harness's default */
	const char *context, *prompt;
	const char *resume; /* as in agent/agent.h; "": the last one that an agent of this harness had in the item */
	bool is_rendered;   /* what it prints is shown as a person reads it (kr_agent_render); its log has it as it came */
	bool is_coloured;   /* with is_rendered */
};

struct kr_run_want {
	const char *repo;      /* a path in the checkout; NULL: where we stand */
	const char *item;      /* NULL: the repository's own */
	const char *workspace; /* NULL: the one that the item was made for, if any */
	const char *phase;     /* "install" or "runtime"; NULL: runtime */
	const char
		*session; /* the id that the command's session is to have (kr_session_new_id); NULL: a new one */
	const char *purpose; /* for session.json: "command", "shell" */
	const char *base;    /* a branch that the worktree is made from; NULL: where the checkout stands */
	bool keep, with_changes;
	bool go_on; /* as keep, but forward with its branch, what stops an item stops it, and its git is made anew
				 */
	const struct kr_run_streams *streams; /* NULL: ours, a terminal when we have one */
	struct kr_run_done *done;             /* filled in, when not NULL */
	kr_calls_fn *on_call; /* answers the command's calls to kraft; NULL: as an item of `kraft run` */
	void *context;        /* its */
	const char *commit;   /* what is left uncommitted becomes a commit with this message; "": one of kraft's;
							 NULL: stays */
	bool ask_image; /* under kind: docker: whether the image has the command is asked first (CTR-09); of an agent it always is */
	const struct kr_policy_layer *const *layers; /* as of kr_where_layers */
	bool put_back; /* what it changes of files that are not ignored is put back, its commits dropped */
	const char *const *argv; /* NULL: `agent` */
	const struct kr_run_agent *agent;
};

/* Returns the exit status of kraft; -1 with err when the command was not run. */
int kr_run(struct kr_arena *arena, const struct kr_run_want *want, struct kr_error *err);

#endif
