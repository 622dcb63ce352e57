/*
 * libyaml's events, turned into our own tree.
 *
 * Order: the bytes are checked first (UTF-8, no control characters, no line breaks that only some programs
 * see), so that each such fault has an exact place and libyaml's reader has nothing left to refuse; then
 * events are taken one by one and each is checked against the limits before a node is made for it. There is
 * no recursion: the stack is as deep as the depth limit.
 *
 * libyaml's marks count characters, not bytes, and its columns start at 0. A byte order mark would shift its
 * columns, so it never sees one.
 */
#include "config/yaml.h"

#include <yaml.h>

#include "base/text.h"

struct frame {
	struct kr_yaml_node *node;
	struct kr_yaml_node *key; /* of a mapping: the key whose value is awaited */
};

struct reader {
	struct kr_arena *arena;
	struct kr_yaml *doc;
	struct kr_error *err;
	struct frame stack[KR_CONFIG_DEPTH];
	unsigned depth, nodes, documents;
};

/* ---- places ---- */

static size_t
character_bytes(const char *s, size_t n)
{
	unsigned char lead = (unsigned char)s[0];
	size_t len = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	return len <= n && kr_text_is_utf8(s, len) ? len : 1;
}

size_t
kr_yaml_offset(const struct kr_yaml *doc, const struct kr_yaml_mark *mark)
{
	size_t at = doc->bom;

	for (size_t i = 0; i < mark->index && at < doc->n; i++)
		at += character_bytes(doc->bytes + at, doc->n - at);
	return at;
}

static struct kr_yaml_mark
mark_at(const struct kr_yaml *doc, size_t offset)
{
	struct kr_yaml_mark mark = { .line = 1, .column = 1 };

	for (size_t i = doc->bom; i < offset && i < doc->n; mark.index++) {
		char c = doc->bytes[i];

		i += character_bytes(doc->bytes + i, doc->n - i);
		mark.column++;
		if (c == '\n' || (c == '\r' && (i >= doc->n || doc->bytes[i] != '\n'))) {
			mark.line++;
			mark.column = 1;
		}
	}
	return mark;
}

static bool
is_break(char c)
{
	return c == '\n' || c == '\r';
}

/* Adds one character of the line; what a terminal could stumble over becomes one cell, so that the caret
 * stays true. */
static bool
add_cell(char *out, size_t out_size, size_t *used, const char *s, size_t len)
{
	char shown[32];

	if (*s == '\t')
		snprintf(shown, sizeof(shown), " ");
	else if (kr_text_escape(shown, sizeof(shown), s, len) != len)
		snprintf(shown, sizeof(shown), "?");
	len = strlen(shown);
	if (*used + len >= out_size)
		return false;
	memcpy(out + *used, shown, len + 1);
	*used += len;
	return true;
}

void
kr_yaml_place(const struct kr_yaml *doc, const struct kr_yaml_mark *mark, struct kr_error *err)
{
	enum { WIDTH = 100, BEFORE = 60 };
	size_t offset, from, used = 0, skip;
	struct kr_place *place;

	if (!err)
		return;
	place = &err->place;
	snprintf(place->path, sizeof(place->path), "%s", doc->file);
	place->line = mark->line;
	place->column = mark->column;
	offset = kr_yaml_offset(doc, mark);
	for (from = offset; from > doc->bom && !is_break(doc->bytes[from - 1]); from--)
		;
	/* A long line is shown from some way before the caret. */
	skip = mark->column > WIDTH ? mark->column - BEFORE : 0;
	for (size_t i = 0; i < skip && from < offset; i++)
		from += character_bytes(doc->bytes + from, doc->n - from);
	place->excerpt[0] = '\0';
	place->caret = 0;
	if (skip) {
		memcpy(place->excerpt, "... ", 5);
		used = place->caret = 4;
	}
	for (size_t i = from, len, cells = 0; i < doc->n && cells < WIDTH && !is_break(doc->bytes[i]);
		 i += len, cells++) {
		len = character_bytes(doc->bytes + i, doc->n - i);
		place->caret += i < offset;
		if (!add_cell(place->excerpt, sizeof(place->excerpt), &used, doc->bytes + i, len))
			break;
	}
}

static int
fail_at(struct reader *r, const struct kr_yaml_mark *mark)
{
	kr_yaml_place(r->doc, mark, r->err);
	return -1;
}

static struct kr_yaml_mark
mark_of(const yaml_mark_t *m)
{
	return (struct kr_yaml_mark){
		.line = (unsigned)m->line + 1, .column = (unsigned)m->column + 1, .index = m->index
	};
}

/* ---- bytes ---- */

/* Why the character of len bytes may not stand in a file; NULL when it may. */
static const char *
character_fault(const unsigned char *s, size_t len)
{
	if (s[0] >= 0x80 && len == 1)
		return "this is not UTF-8";
	if (s[0] == 0)
		return "a NUL byte";
	if ((s[0] < 0x20 && s[0] != '\t' && s[0] != '\n' && s[0] != '\r') || s[0] == 0x7f)
		return "a control character";
	if (len == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return s[1] == 0x85 ? "a line break that only some programs see (U+0085)" : "a control character";
	if (len == 3 && s[0] == 0xe2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9))
		return "a line break that only some programs see (U+2028 or U+2029)";
	if (len == 3 && s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf)
		return "a byte order mark in the middle";
	if (len == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe)
		return "a character that is none (U+FFFE or U+FFFF)";
	return NULL;
}

static int
check_bytes(struct reader *r)
{
	struct kr_yaml *doc = r->doc;

	if (doc->n > KR_CONFIG_FILE_BYTES) {
		kr_fail(r->err, KR_E_CONFIG, "the file is larger than 1 MiB");
		kr_hint(r->err, "nothing after this place was read; move what does not belong here to another file");
		return fail_at(r, &(struct kr_yaml_mark){ .line = 1, .column = 1 });
	}
	if (doc->n >= 2 && (memcmp(doc->bytes, "\xff\xfe", 2) == 0 || memcmp(doc->bytes, "\xfe\xff", 2) == 0)) {
		kr_fail(r->err, KR_E_CONFIG, "the file is UTF-16");
		kr_hint(r->err, "save it as UTF-8");
		fail_at(r, &(struct kr_yaml_mark){ .line = 1, .column = 1 });
		if (r->err)
			r->err->place.excerpt[0] = '\0'; /* it would be noise */
		return -1;
	}
	if (doc->n >= 3 && memcmp(doc->bytes, "\xef\xbb\xbf", 3) == 0)
		doc->bom = 3;
	for (size_t i = doc->bom, len; i < doc->n; i += len) {
		const char *fault;
		struct kr_yaml_mark mark;

		len = character_bytes(doc->bytes + i, doc->n - i);
		fault = character_fault((const unsigned char *)doc->bytes + i, len);
		if (!fault)
			continue;
		mark = mark_at(doc, i);
		kr_fail(r->err, KR_E_CONFIG, "the file holds what no YAML file may: %s", fault);
		if (len == 1 && (unsigned char)doc->bytes[i] >= 0x80)
			kr_hint(r->err, "save the file as UTF-8");
		else
			kr_hint(r->err,
				doc->bytes[i]
					? "take it away; inside double quotes an escape such as \"\\x1b\" can stand for it"
					: "take it away");
		return fail_at(r, &mark);
	}
	return 0;
}

/* ---- what libyaml refuses ---- */

/* Its problem (and the start of its context, "" for any), our words, the way out, and whether the place that
 * the context began at says more than the place where reading stopped. */
static const struct {
	const char *problem, *context, *message, *hint;
	bool at_context;
} problems[] = {
	{ "did not find expected alphabetic or numeric character", "while scanning an a",
		"a word that begins with '*' or '&' needs quotes", "write it in quotes: \"*.example.com\"", true },
	{ "found character that cannot start any token", "", "this character cannot begin a word",
		"put the word in quotes", false },
	{ "mapping values are not allowed", "", "a ':' where no key can be",
		"check the indentation of this line and the one above; a text with ': ' in it needs quotes", false },
	{ "block sequence entries are not allowed", "", "a '-' where no list can begin",
		"begin the list on a line of its own; a text that begins with '-' needs quotes", false },
	{ "could not find expected ':'", "", "this line is neither 'key: value' nor '- item'",
		"a key is followed by ':' and a blank", true },
	{ "found unexpected end of stream", "while scanning a quoted", "this quote is never closed",
		"close the quote", true },
	{ "found unexpected document indicator", "while scanning a quoted", "this quote is never closed",
		"close the quote", true },
	{ "found unknown escape character", "",
		"this text in double quotes holds an escape that YAML does not know",
		"double the backslash, or use single quotes", true },
	{ "did not find expected hexdecimal number", "", "this text in double quotes holds a broken escape",
		"write \\xNN, \\uNNNN or \\UNNNNNNNN with as many hexadecimal digits", true },
	{ "did not find expected key", "", "this line does not fit the mapping that it stands in",
		"line it up with the keys above", false },
	{ "did not find expected '-' indicator", "", "this line does not fit the list that it stands in",
		"line it up with the items above, or begin it with '- '", false },
	{ "did not find expected ',' or ']'", "", "this list is not closed where it should be",
		"separate items by ',' and close the list with ']'", true },
	{ "did not find expected ',' or '}'", "", "this mapping is not closed where it should be",
		"separate keys by ',' and close the mapping with '}'", true },
	{ "did not find expected node content", "", "a value is missing here",
		"write the value, or \"\" for an empty text", false },
	{ "did not find expected <document start>", "", "text after the end of the document",
		"line it up with the keys above", false },
	{ "found undefined tag handle", "", "tags ('!') are not read here",
		"take the tag away, or put the text in quotes", false },
};

static bool
tab_leads_to(const struct kr_yaml *doc, size_t offset)
{
	if (offset < doc->n && doc->bytes[offset] == '\t')
		return true;
	for (; offset > doc->bom && !is_break(doc->bytes[offset - 1]); offset--) {
		if (doc->bytes[offset - 1] == '\t')
			return true;
		if (doc->bytes[offset - 1] != ' ')
			return false;
	}
	return false;
}

static int
fail_problem(struct reader *r, const yaml_parser_t *parser)
{
	const char *problem = parser->problem ? parser->problem : "cannot be read as YAML";
	const char *context = parser->context ? parser->context : "";
	struct kr_yaml_mark mark = mark_of(&parser->problem_mark);

	if (parser->error == YAML_MEMORY_ERROR)
		return kr_fail(r->err, KR_E_SYSTEM, "out of memory while reading '%s'", r->doc->file);
	if (tab_leads_to(r->doc, kr_yaml_offset(r->doc, &mark))) {
		kr_fail(r->err, KR_E_CONFIG, "a tab cannot indent a line or separate words here");
		kr_hint(r->err, "use blanks");
		return fail_at(r, &mark);
	}
	for (size_t i = 0; i < KR_COUNT(problems); i++) {
		if (!kr_text_has_prefix(problem, problems[i].problem) ||
			!kr_text_has_prefix(context, problems[i].context))
			continue;
		kr_fail(r->err, KR_E_CONFIG, "%s", problems[i].message);
		kr_hint(r->err, "%s", problems[i].hint);
		if (problems[i].at_context)
			mark = mark_of(&parser->context_mark);
		return fail_at(r, &mark);
	}
	kr_fail(r->err, KR_E_CONFIG, "this is not YAML: %s%s%s", context, *context ? ", " : "", problem);
	return fail_at(r, &mark);
}

/* ---- nodes ---- */

static int
refuse(struct reader *r, const yaml_event_t *event, const char *what, const char *hint)
{
	struct kr_yaml_mark mark = mark_of(&event->start_mark);

	kr_fail(r->err, KR_E_CONFIG, "%s", what);
	kr_hint(r->err, "%s", hint);
	return fail_at(r, &mark);
}

static int
take_key(struct reader *r, struct frame *frame, struct kr_yaml_node *node)
{
	if (node->type != KR_YAML_SCALAR || !*node->text) {
		kr_fail(r->err, KR_E_CONFIG, "a key must be text");
		kr_hint(r->err, "write 'key: value'; a text that begins with '?', '[' or '{' needs quotes");
		return fail_at(r, &node->start);
	}
	if (node->plain && strcmp(node->text, "<<") == 0) {
		kr_fail(r->err, KR_E_CONFIG, "merge keys ('<<') are not read here");
		kr_hint(r->err, "write the keys out");
		return fail_at(r, &node->start);
	}
	/* Quadratic, but a mapping has at most half of KR_CONFIG_NODES keys. */
	for (const struct kr_yaml_node *v = frame->node->child; v; v = v->next) {
		if (strcmp(v->key->text, node->text) != 0)
			continue;
		kr_fail(r->err, KR_E_CONFIG, "the key '%.100s' stands twice, on lines %u and %u", node->text,
			v->key->start.line, node->start.line);
		kr_hint(r->err, "keep one of them");
		return fail_at(r, &node->start);
	}
	frame->key = node;
	return 0;
}

static int
attach(struct reader *r, struct kr_yaml_node *node)
{
	struct frame *top = r->depth ? &r->stack[r->depth - 1] : NULL;

	if (++r->nodes > KR_CONFIG_NODES) {
		kr_fail(r->err, KR_E_CONFIG, "the file holds more than %d values", KR_CONFIG_NODES);
		kr_hint(r->err, "nothing from here on was read");
		return fail_at(r, &node->start);
	}
	if (!top) {
		r->doc->root = node;
		return 0;
	}
	if (top->node->type == KR_YAML_MAPPING && !top->key)
		return take_key(r, top, node);
	node->key = top->key;
	top->key = NULL;
	if (top->node->last)
		top->node->last->next = node;
	else
		top->node->child = node;
	top->node->last = node;
	top->node->count++;
	return 0;
}

static struct kr_yaml_node *
new_node(struct reader *r, enum kr_yaml_type type, const yaml_event_t *event)
{
	struct kr_yaml_node *node = kr_arena_new(r->arena, struct kr_yaml_node);

	node->type = type;
	node->text = "";
	node->start = mark_of(&event->start_mark);
	node->end = mark_of(&event->end_mark);
	return node;
}

static const char tag_hint[] = "take the tag away; a text that begins with '!' needs quotes";
static const char anchor_hint[] =
	"take the anchor away and write the value out; a text that begins with '&' needs quotes";

static int
on_scalar(struct reader *r, const yaml_event_t *event)
{
	struct kr_yaml_node *node = new_node(r, KR_YAML_SCALAR, event);
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;

	if (event->data.scalar.anchor)
		return refuse(r, event, "anchors ('&') are not read here", anchor_hint);
	if (event->data.scalar.tag)
		return refuse(r, event, "tags ('!') are not read here", tag_hint);
	if (memchr(value, '\0', length))
		return refuse(r, event, "a text may not hold a NUL character", "take the \"\\0\" away");
	node->text = kr_arena_dup_n(r->arena, value, length);
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return attach(r, node);
}

static int
on_start(struct reader *r, const yaml_event_t *event, enum kr_yaml_type type)
{
	bool list = type == KR_YAML_LIST;
	struct kr_yaml_node *node = new_node(r, type, event);
	const yaml_char_t *anchor = list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
	const yaml_char_t *tag = list ? event->data.sequence_start.tag : event->data.mapping_start.tag;

	if (anchor)
		return refuse(r, event, "anchors ('&') are not read here", anchor_hint);
	if (tag)
		return refuse(r, event, "tags ('!') are not read here", tag_hint);
	node->flow = list ? event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE
					  : event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	if (attach(r, node) < 0)
		return -1;
	if (r->depth == KR_CONFIG_DEPTH) {
		kr_fail(r->err, KR_E_CONFIG, "lists and mappings are nested deeper than %d", KR_CONFIG_DEPTH);
		return fail_at(r, &node->start);
	}
	r->stack[r->depth++] = (struct frame){ .node = node };
	return 0;
}

static int
on_document(struct reader *r, const yaml_event_t *event)
{
	if (r->documents++)
		return refuse(r, event, "a second document begins here", "keep one document in the file");
	if (event->data.document_start.version_directive ||
		event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
		return refuse(r, event, "directives ('%') are not read here",
			"take the line away; the file is read as YAML 1.2");
	return 0;
}

static int
on_event(struct reader *r, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return on_document(r, event);
	case YAML_ALIAS_EVENT:
		return refuse(r, event, "aliases ('*') are not read here",
			"write the value out; a text that begins with '*' needs quotes: \"*.example.com\"");
	case YAML_SCALAR_EVENT:
		return on_scalar(r, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(r, event, KR_YAML_LIST);
	case YAML_MAPPING_START_EVENT:
		return on_start(r, event, KR_YAML_MAPPING);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		KR_BUG_IF(r->depth == 0);
		r->stack[--r->depth].node->end = mark_of(&event->end_mark);
		return 0;
	default:
		return 0;
	}
}

static int
read_events(struct reader *r, yaml_parser_t *parser)
{
	for (bool end = false; !end;) {
		yaml_event_t event;
		int rc;

		if (!yaml_parser_parse(parser, &event))
			return fail_problem(r, parser);
		end = event.type == YAML_STREAM_END_EVENT;
		rc = on_event(r, &event);
		yaml_event_delete(&event);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int
kr_yaml_parse(struct kr_arena *arena, const char *file, const char *bytes, size_t n, struct kr_yaml *out,
	struct kr_error *err)
{
	struct kr_yaml doc = { .file = file, .bytes = bytes, .n = n };
	struct reader r = { .arena = arena, .doc = &doc, .err = err };
	KR_CLEANUP(yaml_parser_delete) yaml_parser_t parser = { 0 };

	if (check_bytes(&r) < 0)
		return -1;
	if (!yaml_parser_initialize(&parser))
		return kr_fail(err, KR_E_SYSTEM, "out of memory while reading '%s'", file);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes + doc.bom, n - doc.bom);
	if (read_events(&r, &parser) < 0)
		return -1;
	*out = doc;
	return 0;
}

/* ---- questions ---- */

static bool
is_one_of(const char *text, const char *const words[])
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static bool
is_integer(const char *s)
{
	if (s[0] == '0' && s[1] == 'o' && s[2])
		return s[2 + strspn(s + 2, "01234567")] == '\0';
	if (s[0] == '0' && s[1] == 'x' && s[2])
		return s[2 + strspn(s + 2, "0123456789abcdefABCDEF")] == '\0';
	s += *s == '-' || *s == '+';
	return *s && s[strspn(s, "0123456789")] == '\0';
}

static bool
is_float(const char *s)
{
	static const char *const words[] = { ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL };
	size_t before, after = 0;

	s += *s == '-' || *s == '+';
	if (is_one_of(s, words))
		return true;
	before = strspn(s, "0123456789");
	s += before;
	if (*s == '.') {
		after = strspn(++s, "0123456789");
		s += after;
	}
	if (before + after == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		if (!*s)
			return false;
		s += strspn(s, "0123456789");
	}
	return *s == '\0';
}

enum kr_yaml_value
kr_yaml_value(const struct kr_yaml_node *node)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE", NULL };

	if (node->type != KR_YAML_SCALAR)
		return node->type == KR_YAML_LIST ? KR_VALUE_LIST : KR_VALUE_MAPPING;
	if (!node->plain)
		return KR_VALUE_STRING;
	if (is_one_of(node->text, nulls))
		return KR_VALUE_NULL;
	if (is_one_of(node->text, bools))
		return KR_VALUE_BOOL;
	if (is_integer(node->text))
		return KR_VALUE_INTEGER;
	return is_float(node->text) ? KR_VALUE_FLOAT : KR_VALUE_STRING;
}

const char *
kr_yaml_value_words(enum kr_yaml_value value)
{
	static const char *const words[] = {
		[KR_VALUE_STRING] = "a string",
		[KR_VALUE_NULL] = "null",
		[KR_VALUE_BOOL] = "a boolean",
		[KR_VALUE_INTEGER] = "a number",
		[KR_VALUE_FLOAT] = "a number",
		[KR_VALUE_LIST] = "a list",
		[KR_VALUE_MAPPING] = "a mapping",
	};

	return words[value];
}

struct kr_yaml_node *
kr_yaml_get(const struct kr_yaml_node *mapping, const char *name)
{
	if (!mapping || mapping->type != KR_YAML_MAPPING)
		return NULL;
	for (struct kr_yaml_node *v = mapping->child; v; v = v->next)
		if (strcmp(v->key->text, name) == 0)
			return v;
	return NULL;
}

/* ---- writing one text ---- */

/* Letters, digits and a few marks with single blanks between words, that no rule of YAML takes for anything
 * else. */
static bool
is_plain_safe(const char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=@ ";
	const struct kr_yaml_node node = { .type = KR_YAML_SCALAR, .plain = true, .text = text };
	size_t n = strlen(text);

	return n && !strchr("-+=@ ", text[0]) && strncmp(text, "...", 3) != 0 && text[n - 1] != ' ' &&
		   !text[strspn(text, safe)] && !strstr(text, "  ") && kr_yaml_value(&node) == KR_VALUE_STRING;
}

static uint32_t
code_point(const unsigned char *s, size_t len)
{
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

void
kr_yaml_add_string(struct kr_buf *out, const char *text)
{
	size_t n = strlen(text);

	if (is_plain_safe(text)) {
		kr_buf_adds(out, text);
		return;
	}
	kr_buf_adds(out, "\"");
	for (size_t i = 0, len; i < n; i += len) {
		const unsigned char *s = (const unsigned char *)text + i;

		len = character_bytes(text + i, n - i);
		if (*s == '"' || *s == '\\')
			kr_buf_addf(out, "\\%c", *s);
		else if (*s == '\t' || *s == '\n' || *s == '\r')
			kr_buf_adds(out, *s == '\t' ? "\\t" : *s == '\n' ? "\\n" : "\\r");
		else if (character_fault(s, len))
			kr_buf_addf(out, "\\u%04x", (unsigned)code_point(s, len));
		else
			kr_buf_add(out, s, len);
	}
	kr_buf_adds(out, "\"");
}

/* Recursive, but no deeper than KR_CONFIG_DEPTH. */
bool
kr_yaml_same(const struct kr_yaml_node *a, const struct kr_yaml_node *b)
{
	const struct kr_yaml_node *x, *y;

	if (!a || !b)
		return a == b;
	if (kr_yaml_value(a) != kr_yaml_value(b) || a->count != b->count || strcmp(a->text, b->text) != 0)
		return false;
	for (x = a->child, y = b->child; x; x = x->next, y = y->next) {
		if (x->key && strcmp(x->key->text, y->key->text) != 0)
			return false;
		if (!kr_yaml_same(x, y))
			return false;
	}
	return true;
}
