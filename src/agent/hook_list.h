/*
 * What codex's app server answers when it is asked for its hooks (`hooks/list`), and whether that is enough
 * to rely on. codex runs a tool without a word whenever its hook is not trusted, not enabled, or not there,
 * so this is asked of the very program that is to run (CHN-08). The bytes are that program's: parsed by a
 * process without power (os/powerless.h), and what comes back is checked again.
 */
#ifndef KR_AGENT_HOOK_LIST_H
#define KR_AGENT_HOOK_LIST_H

#include "base/arena.h"
#include "base/error.h"

enum { KR_HOOKS_MAX = 16, KR_HOOK_KEY = 256, KR_HOOK_HASH = 128, KR_HOOK_TEXT = 256 };

/* Texts are UTF-8, without control characters, cut where they are longer. */
struct kr_hook {
	char key[KR_HOOK_KEY], hash[KR_HOOK_HASH]; /* "": too long, or none */
	char command[KR_HOOK_TEXT], source[KR_HOOK_TEXT], trust[KR_HOOK_TEXT], matcher[KR_HOOK_TEXT];
	bool is_before_tool, is_enabled, is_async;
};

/* Plain, zero at first. */
struct kr_hook_list {
	bool is_answered;           /* with a list, for one directory */
	char version[KR_HOOK_TEXT]; /* of the program, as it says; "": not known */
	char error[KR_HOOK_TEXT];   /* the first that it tells; "": none */
	size_t count;               /* of hooks, also of those that are not kept */
	struct kr_hook hooks[KR_HOOKS_MAX];
};

/* What the server reads: for one directory. */
const char *kr_hook_list_question(struct kr_arena *arena, const char *directory);

/* Pure. A kr_parse_fn: what the server printed to struct kr_hook_list. */
void kr_hook_list_parse(const void *bytes, size_t n, void *list);
/* What a parser may have left: cuts, and drops what is no text. */
void kr_hook_list_check(struct kr_hook_list *list);

/*
 * Which hook is ours: the only one that is asked before a tool, with this command. KR_E_REFUSED when it is
 * not the only one, or cannot be named on a command line. With `known` it has to be that very hook, trusted
 * and enabled. name: of the harness, for messages.
 */
const struct kr_hook *kr_hook_list_find(const struct kr_hook_list *list, const char *name,
	const char *command, const struct kr_hook *known, struct kr_error *err);

#endif
