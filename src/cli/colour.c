/*
 * Whether to write in colour: what the person says in this command line, then what the environment says for
 * every program (NO_COLOR before CLICOLOR_FORCE and FORCE_COLOR; set to nothing is not set), then whether it
 * is a terminal that can. A colour is never the only sign of anything: a word goes with it.
 */
#include "cli/cli.h"

#include <unistd.h>

const struct kr_option kr_colour_option = { "color", 0, "WHEN",
	"auto, always or never; NO_COLOR and FORCE_COLOR count with auto" };

static enum kr_colour chosen; /* of the command line */

static bool
is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

int
kr_colour_read(const char *word, enum kr_colour *out, struct kr_error *err)
{
	static const char *const words[] = {
		[KR_COLOUR_AUTO] = "auto", [KR_COLOUR_ALWAYS] = "always", [KR_COLOUR_NEVER] = "never"
	};

	for (size_t i = 0; i < KR_COUNT(words); i++)
		if (strcmp(word, words[i]) == 0) {
			*out = (enum kr_colour)i;
			return 0;
		}
	kr_fail(err, KR_E_USAGE, "'--%s' takes no '%s'", kr_colour_option.name, word);
	return kr_hint(err, "one of 'auto', 'always', 'never'");
}

void
kr_colour_choose(enum kr_colour when)
{
	chosen = when;
}

bool
kr_colour_on(int fd)
{
	const char *term = getenv("TERM");

	if (chosen != KR_COLOUR_AUTO)
		return chosen == KR_COLOUR_ALWAYS;
	if (is_set("NO_COLOR"))
		return false;
	if (is_set("CLICOLOR_FORCE") || is_set("FORCE_COLOR"))
		return true;
	return term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}
