/*
 * A command of Bash's, as any agent may send it: an instance of a grant has nothing in it that a shell acts
 * on outside of quotes, begins with git, and a push names its branch.
 */
#include "policy/permit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Without what stands in quotes. */
static void
check_bare(const char *text, size_t n)
{
	char quote = 0;

	for (size_t i = 0; i < n; i++) {
		KR_BUG_IF((unsigned char)text[i] < 0x20 || text[i] == 0x7f);
		KR_BUG_IF(quote == '"' && strchr("$`\\!", text[i]));
		if (quote && text[i] == quote)
			quote = 0;
		else if (!quote && strchr("'\"", text[i]))
			quote = text[i];
		else
			KR_BUG_IF(!quote && strchr(";&|<>$`\\!*?[]{}()#", text[i]));
	}
	KR_BUG_IF(quote);
}

static bool
has(const char *text, size_t n, const char *word)
{
	return memmem(text, n, word, strlen(word)) != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1); /* exactly so large */
	enum kr_grant grant;

	KR_BUG_IF(!text);
	memcpy(text, data, size);
	grant = kr_permit_grant(text, size, "b");
	if (grant != KR_GRANT_COUNT)
		check_bare(text, size);
	KR_BUG_IF(grant == KR_GRANT_INDEX_PUSH && !has(text, size, "b"));
	KR_BUG_IF(grant == KR_GRANT_INDEX_PUSH && kr_permit_grant(text, size, NULL) != KR_GRANT_COUNT);
	free(text);
	return 0;
}
