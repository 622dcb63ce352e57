#include "work/result.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "os/powerless.h"

/* Never in the middle of a character. */
static void
take_text(const json_t *object, const char *key, char out[KR_RESULT_TEXT])
{
	const char *text = json_string_value(json_object_get(object, key));
	size_t n = text ? strlen(text) : 0;

	if (n >= KR_RESULT_TEXT) {
		for (n = KR_RESULT_TEXT - 4; n && ((unsigned char)text[n] & 0xc0) == 0x80;)
			n--;
		memcpy(out + n, "...", 4);
	}
	if (n)
		memcpy(out, text, n);
}

static void
read_status(const json_t *object, struct kr_result *r)
{
	const char *name = json_string_value(json_object_get(object, "status"));
	enum kr_mark_kind kind;

	if (!name)
		snprintf(r->problem, sizeof(r->problem), "it has no 'status'");
	else if (!kr_mark_from_name(name, &kind) || kind > KR_MARK_QUESTION)
		snprintf(r->problem, sizeof(r->problem),
			"its 'status' is none of done, done_with_concerns, failed, needs_context");
	else
		r->status = kind;
}

void
kr_result_parse(const void *bytes, size_t n, void *result)
{
	struct kr_result *r = result;
	json_t *object;

	*r = (struct kr_result){ .is_there = true, .status = KR_MARK_FAILED };
	object = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(object))
		snprintf(r->problem, sizeof(r->problem), "it is no JSON object");
	else {
		read_status(object, r);
		take_text(object, "concerns", r->concerns);
		take_text(object, "question", r->question);
		take_text(object, "session_summary", r->summary);
	}
	json_decref(object);
}

/* The parser may have been the worker's in the end. */
static void
check(struct kr_result *r)
{
	r->is_there = true;
	r->problem[sizeof(r->problem) - 1] = r->concerns[KR_RESULT_TEXT - 1] = r->question[KR_RESULT_TEXT - 1] =
		r->summary[KR_RESULT_TEXT - 1] = '\0';
	if ((unsigned)r->status > KR_MARK_QUESTION)
		r->status = KR_MARK_FAILED;
	if (!kr_text_is_utf8(r->problem, strlen(r->problem)) ||
		!kr_text_is_utf8(r->concerns, strlen(r->concerns)) ||
		!kr_text_is_utf8(r->question, strlen(r->question)) ||
		!kr_text_is_utf8(r->summary, strlen(r->summary)))
		*r = (struct kr_result){ .is_there = true, .status = KR_MARK_FAILED, .problem = "it is not UTF-8" };
}

static int
fail(struct kr_result *out, const char *problem)
{
	*out = (struct kr_result){ .is_there = true, .status = KR_MARK_FAILED };
	snprintf(out->problem, sizeof(out->problem), "%s", problem);
	return 0;
}

int
kr_result_read(const char *path, struct kr_result *out, struct kr_error *err)
{
	struct kr_error why = { 0 };
	kr_auto_fd int fd = kr_path_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, &why);
	kr_auto_buf struct kr_buf buf = KR_BUF(KR_RESULT_BYTES);
	struct stat st;

	*out = (struct kr_result){ 0 };
	if (fd < 0)
		return why.sys_errno == ENOENT ? 0 : fail(out, "it cannot be opened");
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fail(out, "it is no regular file");
	if (kr_read_all(fd, &buf, "result file", &why) < 0)
		return fail(out, why.code == KR_E_LIMIT ? "it is larger than 1 MiB" : "it cannot be read");
	if (!buf.len)
		return 0;
	json_object_seed(0); /* it would open a file for that */
	if (kr_powerless_parse(kr_result_parse, buf.data, buf.len, out, sizeof(*out), &why) < 0) {
		if (why.code != KR_E_REFUSED) {
			*err = why;
			return kr_wrap(err, "cannot read the result file");
		}
		return fail(out, "it cannot be parsed");
	}
	check(out);
	return 0;
}
