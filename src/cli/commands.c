/*
 * Every command of kraft, in the order in which help shows them: daily ones first. One line here and one file
 * cmd_*.c make a command; parsing, help, completions and suggestions follow from its struct.
 */
#include "cli/cli.h"

#include "base/text.h"

#define COMMANDS(X)    \
	X(run)             \
	X(shell)           \
	X(explain)         \
	X(why_host)        \
	X(why_path)        \
	X(why_command)     \
	X(why_env)         \
	X(view_list)       \
	X(view_watch)      \
	X(view_show)       \
	X(view_threads)    \
	X(view_asks)       \
	X(view_sessions)   \
	X(view_logs)       \
	X(view_events)     \
	X(view_diff)       \
	X(item_create)     \
	X(item_start)      \
	X(item_pause)      \
	X(item_unblock)    \
	X(item_approve)    \
	X(item_reject)     \
	X(item_allow)      \
	X(item_deny)       \
	X(item_retry)      \
	X(item_skip)       \
	X(item_escalate)   \
	X(item_review)     \
	X(item_comment)    \
	X(item_reply)      \
	X(item_resolve)    \
	X(item_reopen)     \
	X(item_complete)   \
	X(item_cancel)     \
	X(item_abandon)    \
	X(item_archive)    \
	X(item_list)       \
	X(item_merge)      \
	X(item_push)       \
	X(item_remove)     \
	X(repo_connect)    \
	X(repo_list)       \
	X(repo_disconnect) \
	X(repo_path)       \
	X(admin_start)     \
	X(admin_stop)      \
	X(admin_restart)   \
	X(admin_health)    \
	X(admin_reload)    \
	X(admin_install_service) \
	X(admin_doctor)    \
	X(admin_chains)    \
	X(admin_harnesses) \
	X(admin_notify)    \
	X(admin_prune)     \
	X(admin_password)  \
	X(admin_token)     \
	X(completion)

#define X(name) extern const struct kr_command kr_cmd_##name;
COMMANDS(X)
#undef X

const struct kr_command *const kr_commands[] = {
#define X(name) &kr_cmd_##name,
	COMMANDS(X)
#undef X
		NULL,
};

enum { NEAR = 3 }; /* an edit distance over this suggests nothing */

/* How many of the words make up the name of this command; 0 when they name another one. */
static int
words_matched(const struct kr_command *command, int argc, char **argv)
{
	size_t first = strcspn(command->name, " ");

	if (argc < 1 || strlen(argv[0]) != first || memcmp(argv[0], command->name, first) != 0)
		return 0;
	if (command->name[first] == '\0')
		return 1;
	return argc > 1 && strcmp(argv[1], command->name + first + 1) == 0 ? 2 : 0;
}

static bool
is_group(const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; kr_commands[i]; i++)
		if (strncmp(kr_commands[i]->name, word, n) == 0 && kr_commands[i]->name[n] == ' ')
			return true;
	return false;
}

/* Adds "'x', 'y'" of the commands that are as near to `text` as the nearest one. */
static void
suggest(const char *text, char *out, size_t size)
{
	unsigned best = NEAR + 1;
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; kr_commands[i]; i++) {
		unsigned d = kr_text_distance(text, kr_commands[i]->name, NEAR);

		best = d < best ? d : best;
	}
	if (best > NEAR || best >= strlen(text))
		return;
	for (size_t i = 0; kr_commands[i] && used < size; i++)
		if (kr_text_distance(text, kr_commands[i]->name, NEAR) == best)
			used += (size_t)snprintf(
				out + used, size - used, "%s'kraft %s'", used ? " or " : "", kr_commands[i]->name);
}

static void
list_group(const char *group, char *out, size_t size)
{
	size_t used = 0, n = strlen(group);

	out[0] = '\0';
	for (size_t i = 0; kr_commands[i] && used < size; i++)
		if (strncmp(kr_commands[i]->name, group, n) == 0 && kr_commands[i]->name[n] == ' ')
			used += (size_t)snprintf(
				out + used, size - used, "%s'kraft %s'", used ? ", " : "", kr_commands[i]->name);
}

const struct kr_command *
kr_command_find(int argc, char **argv, int *used, struct kr_error *err)
{
	bool two = argc > 1 && argv[1][0] != '-' && is_group(argv[0]);
	char text[160], near[256];

	for (size_t i = 0; kr_commands[i]; i++) {
		int matched = words_matched(kr_commands[i], argc, argv);

		if (matched) {
			*used = matched;
			return kr_commands[i];
		}
	}
	if (is_group(argv[0]) && !two) {
		kr_fail(err, KR_E_USAGE, "'kraft %s' needs one more word", argv[0]);
		list_group(argv[0], near, sizeof(near));
		kr_hint(err, "one of %s", near);
		return NULL;
	}
	snprintf(text, sizeof(text), "%s%s%s", argv[0], two ? " " : "", two ? argv[1] : "");
	kr_fail(err, KR_E_USAGE, "unknown command '%s'", text);
	suggest(text, near, sizeof(near));
	if (near[0])
		kr_hint(err, "did you mean %s?", near);
	else if (two && (list_group(argv[0], near, sizeof(near)), near[0]))
		kr_hint(err, "one of %s", near);
	else
		kr_hint(err, "'kraft help' lists the commands");
	return NULL;
}
