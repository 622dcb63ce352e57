/*
 * A harness: how one agent CLI is started, what it can be told, and which hosts and logins it needs. YAML at
 * <config_dir>/harnesses/<id>.yaml; seven come with kraft (share/harnesses/), and a file of the same name takes a
 * shipped one's place whole. <config_dir>/harnesses.yaml says what holds on this host: another program, defaults,
 * switched off.
 *
 * A capability is a piece of the CLI's command line. The order in which a file declares them is the order of
 * the words; one that a file lacks cannot be asked for (agent/agent.h refuses it by name).
 */
#ifndef KR_CONFIG_HARNESS_H
#define KR_CONFIG_HARNESS_H

#include "config/config.h"

/*
 * In its words {value} is the one value (of a list: {csv}, with commas between), and {json} the same as JSON: a string
 * in quotes, which TOML reads too, or an array. {settings} is the directory of the launch's files, anywhere.
 */
/* capability, key in YAML */
#define KR_CAPABILITIES(X)                                                                                  \
	X(PROMPT, "prompt")                     /* the instruction; required */                                 \
	X(CONTEXT, "context")                   /* what kraft tells beside it; required */                      \
	X(USAGE, "usage")                       /* how what it used is read; required */                        \
	X(STRUCTURED_LOG, "structured_log")     /* words only */                                                \
	X(MODEL, "model")                                                                                       \
	X(EFFORT, "effort")                                                                                     \
	X(PERMISSION_MODE, "permission_mode")                                                                   \
	X(DENY_TOOLS, "deny_tools")             /* the policy's, and `also` */                                  \
	X(ALLOWED_TOOLS, "allowed_tools")       /* by words: these run unasked, which keeps none from running */ \
	X(RESTRICT_TOOLS, "restrict_tools")     /* the same list: others are not offered */                     \
	X(ASK_TOOLS, "ask_tools")               /* calls of these reach kraft, whatever the CLI thinks */       \
	X(APPROVAL_CHANNEL, "approval_channel") /* words only: asks kraft by MCP */                             \
	X(MCP_CONFIG, "mcp_config")             /* {value}: JSON that names kraft's server and no other */      \
	X(PERMISSION_HOOK, "permission_hook")   /* {command}; `trust`: {key} and {hash} */                      \
	X(RESUME, "resume")                     /* {value}: the conversation; `command` in place of `subcommand` */
enum kr_capability {
#define X(capability, name) KR_CAP_##capability,
	KR_CAPABILITIES(X)
#undef X
		KR_CAP_COUNT
};
const char *kr_capability_name(enum kr_capability capability);

/* placeholder, name in the words' braces */
#define KR_PLACEHOLDERS(X) \
	X(VALUE, "value") X(CSV, "csv") X(JSON, "json") X(COMMAND, "command") X(KEY, "key") X(HASH, "hash") X(SETTINGS, "settings")
enum kr_placeholder {
#define X(placeholder, name) KR_PLACEHOLDER_##placeholder,
	KR_PLACEHOLDERS(X)
#undef X
		KR_PLACEHOLDER_COUNT
};
/* The first of them in a text and its length, NULL: none; braces around anything but small letters and _ are text.
 * KR_PLACEHOLDER_COUNT: one that nobody knows, so no file that was read has it. */
const char *kr_placeholder_find(const char *text, enum kr_placeholder *which, size_t *n);

/* How a value gets there: words, standard input, ahead of the prompt, asked of kraft by the hook, a file of rules. */
#define KR_VIAS(X) X(ARGS, "args") X(STDIN, "stdin") X(PROMPT, "prompt") X(HOOK, "hook") X(RULES, "rules")
enum kr_via {
#define X(via, name) KR_VIA_##via,
	KR_VIAS(X)
#undef X
};
const char *kr_via_name(enum kr_via via);

/* What a CLI's output is read by (agent/stream.h). */
#define KR_READERS(X) X(NONE, "none") X(CLAUDE, "claude") X(CODEX, "codex")
enum kr_reader {
#define X(reader, name) KR_READER_##reader,
	KR_READERS(X)
#undef X
		KR_READER_COUNT
};
const char *kr_reader_name(enum kr_reader reader);

struct kr_cap {
	enum kr_capability kind;
	enum kr_via via;                      /* prompt: ARGS, STDIN; context: ARGS, PROMPT; allowed_tools, deny_tools:
											 ARGS, HOOK, RULES; ask_tools: ARGS, HOOK; else ARGS */
	struct kr_strs args;                  /* words with placeholders */
	struct kr_strs trust;                 /* permission_hook: words that make the CLI trust it */
	struct kr_strs command;               /* resume: the words that stand in place of `subcommand` */
	struct kr_strs values;                /* that are taken; n 0: any */
	struct kr_strs also;                  /* deny_tools: on every launch */
	struct kr_strs under_policy;          /* ask_tools: as soon as the policy says anything of tools */
	const char *always, *under_allowlist; /* permission_mode: without a list, with one; NULL: none */
	struct kr_mark mark;
};

/* The policy's names of a tool that the CLI calls otherwise. */
struct kr_tool_name {
	const char *cli;       /* "apply_patch" */
	struct kr_strs policy; /* "Write", "Edit" */
};

struct kr_harness {
	const char *id, *file;      /* id: as in harnesses.yaml; file: for messages; "kraft's own" for a shipped one */
	const char *provider;       /* the id of the harness file; mostly `id` */
	const char *text;           /* all of the file */
	size_t text_len;
	const char *command;        /* looked up on PATH; harnesses.yaml's `executable`, also a clean path, takes its place */
	struct kr_strs subcommand;  /* words right behind it ("exec"); n 0: none */
	struct kr_strs version;     /* words that make it print its version; usually "--version" */
	const char *min_version;    /* NULL: any */
	struct kr_cap *caps;        /* in order of declaration, each at most once */
	size_t cap_count;
	enum kr_reader reader;      /* of `usage` */
	struct kr_strs hosts;       /* network.requires: they join the runtime list; a deny still wins */
	bool proxy_aware;           /* false: it goes around a proxy, so it is refused under a network policy (CHN-10) */
	struct kr_strs login;       /* variables; one of them has to be there; n 0: none is needed */
	struct kr_credential *credentials; /* only env, sentinel and inject; of use where the sandbox lists the same env */
	size_t credential_count;
	struct kr_env_literal *env; /* set inside, unless the repository's env does */
	size_t env_count;
	struct kr_tool_name *tools;
	size_t tool_count;
	struct kr_strs unhooked;    /* tools (policy names) that never reach the hook */
	const char *hook;           /* "codex", "cursor": the shim's word; NULL: none */
	const char *rules;          /* "amp", "opencode": whose form of rules; NULL: none */
	/* A directory of its own for the CLI's configuration and state, which this variable names; NULL: none. It is made
	 * anew before each launch, but for the directories in it that are kept. */
	const char *config_env;
	struct kr_strs config_keep;
	/* Inside of walls it stands in place of permission_mode's `always`, however that came about; NULL: nothing does. */
	const char *container_permission_mode;
	/* of harnesses.yaml */
	bool enabled;
	const char *model, *effort, *permission_mode; /* its defaults; NULL: none */
};

/* NULL when the file declares none. */
const struct kr_cap *kr_harness_cap(const struct kr_harness *harness, enum kr_capability capability);

/* Pure. id: the file's name; NULL: any valid. Without what harnesses.yaml says: it is enabled. */
int kr_harness_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *id,
	const char *text, size_t len, struct kr_harness *out, struct kr_error *err);
/* The person's file or the shipped one, and what harnesses.yaml says of it. KR_E_NOT_FOUND with the ids that there
 * are; one that is switched off loads, with `enabled` false. A harnesses.yaml that is wrong fails all. */
int kr_harness_load(struct kr_arena *arena, const struct kr_places *places, const char *id, struct kr_harness *out,
	struct kr_error *err);
/* Pure. Whether harnesses.yaml is right. */
int kr_harnesses_check(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *text,
	size_t len, struct kr_error *err);
/* Ids, sorted; those of harnesses.yaml too, and of files that would not load. */
int kr_harness_ids(
	struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out, struct kr_error *err);

#endif
