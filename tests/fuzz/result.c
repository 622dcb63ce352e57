/* A result file: whatever it says, the answer is one of a worker's four words, and its texts are whole UTF-8. */
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "work/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kr_result r;

	kr_result_parse(data, size, &r);
	KR_BUG_IF(!r.is_there || r.status > KR_MARK_QUESTION);
	KR_BUG_IF(r.problem[0] && r.status != KR_MARK_FAILED);
	KR_BUG_IF(strlen(r.concerns) >= KR_RESULT_TEXT || strlen(r.question) >= KR_RESULT_TEXT);
	KR_BUG_IF(strlen(r.summary) >= KR_RESULT_TEXT || !kr_text_is_utf8(r.summary, strlen(r.summary)));
	KR_BUG_IF(!kr_text_is_utf8(r.concerns, strlen(r.concerns)) || !kr_text_is_utf8(r.question, strlen(r.question)));
	return 0;
}
