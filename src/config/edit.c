/*
 * Editing a person's repos.yaml: a few bytes are put in or cut out at a mark, and every other byte stays. The
 * file is never written anew from the tree, so comments, layout, quotes and line ends survive.
 *
 * Order: the old bytes must load; the patch is made; the new bytes must load too, and their tree must be the
 * old one but for the one entry. A layout that this file does not understand therefore ends in an error, not
 * in a damaged file.
 */
#include "config/yaml.h"

#include "base/text.h"

enum { PATCHES_MAX = 4 };

struct patch {
	size_t from, to;  /* cut away */
	const char *text; /* put in their place; NULL for nothing */
};

struct edit {
	struct kr_arena arena;
	struct kr_yaml doc;
	const char *newline;
	struct patch patches[PATCHES_MAX]; /* ascending */
	size_t count;
};

static void
edit_fini(struct edit *edit)
{
	kr_arena_fini(&edit->arena);
}

static void
add_patch(struct edit *edit, size_t from, size_t to, const char *text)
{
	KR_BUG_IF(edit->count == PATCHES_MAX);
	edit->patches[edit->count++] = (struct patch){ from, to, text };
}

static void
apply(const struct edit *edit, struct kr_buf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < edit->count; i++) {
		const struct patch *p = &edit->patches[i];

		KR_BUG_IF(p->from < at || p->to < p->from || p->to > edit->doc.n);
		kr_buf_add(out, edit->doc.bytes + at, p->from - at);
		if (p->text)
			kr_buf_adds(out, p->text);
		at = p->to;
	}
	kr_buf_add(out, edit->doc.bytes + at, edit->doc.n - at);
}

/* ---- lines of the file ---- */

static bool
is_break(char c)
{
	return c == '\n' || c == '\r';
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t
line_start(const struct kr_yaml *doc, size_t at)
{
	while (at > doc->bom && !is_break(doc->bytes[at - 1]))
		at--;
	return at;
}

static size_t
line_end(const struct kr_yaml *doc, size_t at)
{
	while (at < doc->n && !is_break(doc->bytes[at]))
		at++;
	return at;
}

static size_t
next_line(const struct kr_yaml *doc, size_t at)
{
	at = line_end(doc, at);
	if (at + 1 < doc->n && memcmp(doc->bytes + at, "\r\n", 2) == 0)
		return at + 2;
	return at < doc->n ? at + 1 : at;
}

static size_t
skip_blanks(const struct kr_yaml *doc, size_t at)
{
	while (at < doc->n && is_blank(doc->bytes[at]))
		at++;
	return at;
}

/* Nothing but blanks and perhaps a comment up to the end of the line. */
static bool
rest_is_empty(const struct kr_yaml *doc, size_t at)
{
	at = skip_blanks(doc, at);
	return at == doc->n || is_break(doc->bytes[at]) || doc->bytes[at] == '#';
}

/* The first byte from `at` on that is no blank, line break or comment. */
static size_t
skip_space(const struct kr_yaml *doc, size_t at)
{
	for (;;) {
		at = skip_blanks(doc, at);
		if (at == doc->n || (!is_break(doc->bytes[at]) && doc->bytes[at] != '#'))
			return at;
		at = next_line(doc, at);
	}
}

static const char *
newline_of(const struct kr_yaml *doc)
{
	size_t at = line_end(doc, doc->bom);

	if (at == doc->n || doc->bytes[at] == '\n')
		return "\n";
	return at + 1 < doc->n && doc->bytes[at + 1] == '\n' ? "\r\n" : "\r";
}

/* ---- nodes ---- */

static size_t
start_of(const struct edit *edit, const struct kr_yaml_node *node)
{
	return kr_yaml_offset(&edit->doc, &node->start);
}

/* Where a node's own text ends. A block's end mark stands at whatever comes next, so its last word is asked.
 */
static size_t
end_of(const struct edit *edit, const struct kr_yaml_node *node)
{
	while (node->type != KR_YAML_SCALAR && !node->flow && node->last)
		node = node->last;
	return kr_yaml_offset(&edit->doc, &node->end);
}

/* The start of the line behind an item of a block list whose dash stands at `column` (from 0): behind its
 * text, and behind the comments below it that are indented deeper than the dash, for those speak of it. */
static size_t
behind_item(const struct edit *edit, const struct kr_yaml_node *item, size_t column)
{
	const struct kr_yaml *doc = &edit->doc;
	size_t at = end_of(edit, item);

	if (at > line_start(doc, at))
		at = next_line(doc, at);
	for (size_t line = at; line < doc->n; line = next_line(doc, line)) {
		size_t word = skip_blanks(doc, line);

		if (word < doc->n && is_break(doc->bytes[word]))
			continue;
		if (word == doc->n || doc->bytes[word] != '#' || word - line <= column)
			break;
		at = next_line(doc, line);
	}
	return at;
}

static bool
spans_lines(const struct kr_yaml_node *node)
{
	return node->start.line != node->end.line;
}

/* ---- the new entry as text ---- */

static const char *
blanks(struct edit *edit, size_t n)
{
	char *s = kr_arena_alloc(&edit->arena, n + 1);

	memset(s, ' ', n);
	return s;
}

/* Lines of an item of a block list, "- " at `indent`. With `at_end` of a file that has no last line break,
 * the break stands before the lines, so that the file goes on having none. */
static const char *
block_text(struct edit *edit, const char *head, size_t indent, const char *entry_yaml, size_t at)
{
	bool open_end = at == edit->doc.n && at > edit->doc.bom && !is_break(edit->doc.bytes[at - 1]);
	struct kr_buf buf = KR_BUF(KR_CONFIG_FILE_BYTES);
	const char *dash = "- ", *text;

	kr_buf_adds(&buf, open_end ? edit->newline : "");
	kr_buf_adds(&buf, head);
	for (const char *line = entry_yaml; *line;) {
		size_t n = strcspn(line, "\n");

		if (n) {
			kr_buf_addf(&buf, "%s%s%.*s%s", blanks(edit, indent), dash, (int)n, line, edit->newline);
			dash = "  ";
		}
		line += n + (line[n] == '\n');
	}
	if (open_end && buf.data && !buf.overflow)
		buf.len -= strlen(edit->newline);
	text = kr_arena_dup_n(&edit->arena, buf.data ? buf.data : "", buf.len);
	kr_buf_fini(&buf);
	return text;
}

static void
flow_scalar(struct kr_buf *buf, const struct kr_yaml_node *node)
{
	if (kr_yaml_value(node) == KR_VALUE_STRING)
		kr_yaml_add_string(buf, node->text);
	else
		kr_buf_adds(buf, *node->text ? node->text : "null"); /* numbers and the like are safe as they stand */
}

/* Our own entry on one line, for a list that a person wrote in brackets. Recursive, to the parser's depth
 * limit. */
static void
flow_node(struct kr_buf *buf, const struct kr_yaml_node *node)
{
	bool list = node->type == KR_YAML_LIST;

	if (node->type == KR_YAML_SCALAR) {
		flow_scalar(buf, node);
		return;
	}
	kr_buf_adds(buf, list ? "[" : "{");
	for (const struct kr_yaml_node *v = node->child; v; v = v->next) {
		if (v->key) {
			flow_scalar(buf, v->key);
			kr_buf_adds(buf, ": ");
		}
		flow_node(buf, v);
		kr_buf_adds(buf, v->next ? ", " : "");
	}
	kr_buf_adds(buf, list ? "]" : "}");
}

static const char *
flow_text(
	struct edit *edit, const char *before, const char *entry_yaml, const char *after, struct kr_error *err)
{
	struct kr_yaml entry;
	struct kr_buf buf = KR_BUF(KR_CONFIG_FILE_BYTES);
	const char *text;

	if (kr_yaml_parse(&edit->arena, "the new entry", entry_yaml, strlen(entry_yaml), &entry, err) < 0)
		return NULL;
	if (!entry.root) {
		kr_fail(err, KR_E_CONFIG, "the new entry is empty");
		return NULL;
	}
	kr_buf_adds(&buf, before);
	flow_node(&buf, entry.root);
	kr_buf_adds(&buf, after);
	text = kr_arena_dup_n(&edit->arena, buf.data, buf.len);
	kr_buf_fini(&buf);
	return text;
}

/* ---- adding ---- */

/* Puts a block list in the place of an empty value: the value's text is cut, the lines go below its line. */
static int
add_below(struct edit *edit, const struct kr_yaml_node *empty, const char *head, size_t indent,
	const char *entry_yaml)
{
	const struct kr_yaml *doc = &edit->doc;
	size_t from = start_of(edit, empty), to = kr_yaml_offset(doc, &empty->end);
	/* The mark of a document that says nothing stands at whatever comes next. */
	size_t at = from == to && from == line_start(doc, from) ? from : next_line(doc, to);

	if (skip_blanks(doc, to) == line_end(doc, to)) /* no comment behind it */
		while (from > doc->bom && is_blank(doc->bytes[from - 1]))
			from--;
	if (to > from)
		add_patch(edit, from, to, NULL);
	add_patch(edit, at, at, block_text(edit, head, indent, entry_yaml, at));
	return 0;
}

static int
add_to_flow(struct edit *edit, const struct kr_yaml_node *list, const char *entry_yaml, struct kr_error *err)
{
	size_t at = list->last ? end_of(edit, list->last) : start_of(edit, list) + 1;
	const char *text = flow_text(edit, list->last ? ", " : "", entry_yaml, "", err);

	if (!text)
		return -1;
	add_patch(edit, at, at, text);
	return 0;
}

/* The file's mapping is in braces: everything in it is. */
static int
add_key_to_flow(struct edit *edit, const struct kr_yaml_node *root, const struct kr_yaml_node *repos,
	const char *entry_yaml, struct kr_error *err)
{
	size_t from, to;
	const char *text;

	if (repos) {
		from = start_of(edit, repos);
		to = kr_yaml_offset(&edit->doc, &repos->end);
		text = flow_text(edit, " [", entry_yaml, "]", err);
	} else {
		from = to = root->last ? end_of(edit, root->last) : start_of(edit, root) + 1;
		text = flow_text(edit, root->last ? ", repos: [" : "repos: [", entry_yaml, "]", err);
	}
	if (!text)
		return -1;
	add_patch(edit, from, to, text);
	return 0;
}

static int
add_key(struct edit *edit, const struct kr_yaml_node *root, const char *entry_yaml)
{
	size_t indent = root->start.column - 1, at = line_start(&edit->doc, start_of(edit, root));
	const char *head = kr_arena_printf(&edit->arena, "%srepos:%s", blanks(edit, indent), edit->newline);

	add_patch(edit, at, at, block_text(edit, head, indent + 2, entry_yaml, at));
	return 0;
}

static int
add_to_empty_file(struct edit *edit, const char *entry_yaml)
{
	const char *head = kr_arena_printf(&edit->arena, "repos:%s", edit->newline);

	if (edit->doc.root)
		return add_below(edit, edit->doc.root, head, 2, entry_yaml);
	add_patch(edit, edit->doc.n, edit->doc.n, block_text(edit, head, 2, entry_yaml, edit->doc.n));
	return 0;
}

static int
make_addition(struct edit *edit, const char *entry_yaml, struct kr_error *err)
{
	const struct kr_yaml_node *root = edit->doc.root, *repos = kr_yaml_get(root, "repos");

	if (!root || kr_yaml_value(root) == KR_VALUE_NULL)
		return add_to_empty_file(edit, entry_yaml);
	if (repos && repos->flow && (repos->count || root->flow || spans_lines(repos)))
		return add_to_flow(edit, repos, entry_yaml, err);
	if (root->flow && !root->count)
		return add_below(edit, root, kr_arena_printf(&edit->arena, "repos:%s", edit->newline), 2, entry_yaml);
	if (root->flow)
		return add_key_to_flow(edit, root, repos, entry_yaml, err);
	if (!repos)
		return add_key(edit, root, entry_yaml);
	if (!repos->count)
		return add_below(edit, repos, "", repos->key->start.column + 1, entry_yaml);
	{
		size_t column = repos->start.column - 1, at = behind_item(edit, repos->last, column);

		add_patch(edit, at, at, block_text(edit, "", column, entry_yaml, at));
	}
	return 0;
}

/* ---- removing ---- */

/* The dash of a block list's item: the first word behind the item before it. */
static size_t
dash_of(const struct edit *edit, const struct kr_yaml_node *list, const struct kr_yaml_node *before)
{
	return before ? skip_space(&edit->doc, end_of(edit, before)) : start_of(edit, list);
}

static void
remove_from_block(struct edit *edit, const struct kr_yaml_node *list, const struct kr_yaml_node *before,
	const struct kr_yaml_node *item)
{
	const struct kr_yaml *doc = &edit->doc;
	size_t from = line_start(doc, dash_of(edit, list, before));
	size_t to = behind_item(edit, item, list->start.column - 1);

	if (list->count == 1) {
		size_t colon = skip_space(doc, kr_yaml_offset(doc, &list->key->end));

		if (colon < from && doc->bytes[colon] == ':')
			add_patch(edit, colon + 1, colon + 1, " []");
	}
	add_patch(edit, from, to, NULL);
}

static void
remove_from_flow(struct edit *edit, const struct kr_yaml_node *before, const struct kr_yaml_node *item)
{
	const struct kr_yaml *doc = &edit->doc;
	size_t from = start_of(edit, item), to = end_of(edit, item), comma = skip_space(doc, to),
		   line = line_start(doc, from);

	if (comma < doc->n && doc->bytes[comma] == ',') {
		to = comma + 1;
	} else if (before) {
		comma = skip_space(doc, end_of(edit, before));
		if (comma < from && doc->bytes[comma] == ',')
			add_patch(edit, comma, comma + 1, NULL);
	}
	if (skip_blanks(doc, line) == from && line > doc->bom && rest_is_empty(doc, to)) {
		from = line; /* it stood alone on its lines */
		to = next_line(doc, to);
	} else if (item->next) {
		to = skip_blanks(doc, to);
	}
	add_patch(edit, from, to, NULL);
}

/* ---- both ---- */

static const struct kr_repos *
begin(struct edit *edit, const char *file, const char *bytes, size_t n, const struct kr_places *places,
	struct kr_error *err)
{
	const struct kr_repos *repos = kr_repos_parse(&edit->arena, file, bytes, n, places, err);

	if (!repos || kr_yaml_parse(&edit->arena, file, bytes, n, &edit->doc, err) < 0)
		return NULL;
	edit->newline = newline_of(&edit->doc);
	return repos;
}

/* True when `new` lists what `old` lists, but for `removed` (may be NULL), and then `added` more. */
static bool
lists_agree(const struct kr_yaml_node *old, const struct kr_yaml_node *new,
	const struct kr_yaml_node *removed, size_t added)
{
	const struct kr_yaml_node *o = old ? old->child : NULL, *n = new ? new->child : NULL;

	for (; o; o = o->next) {
		if (o == removed)
			continue;
		if (!n || !kr_yaml_same(o, n))
			return false;
		n = n->next;
	}
	for (; n && added; n = n->next)
		added--;
	return !n && !added;
}

static bool
others_agree(const struct kr_yaml_node *old, const struct kr_yaml_node *new)
{
	for (const struct kr_yaml_node *v = old ? old->child : NULL; v; v = v->next)
		if (strcmp(v->key->text, "repos") != 0 && !kr_yaml_same(v, kr_yaml_get(new, v->key->text)))
			return false;
	return true;
}

static int
finish(struct edit *edit, const struct kr_places *places, const struct kr_yaml_node *removed, size_t added,
	struct kr_buf *out, struct kr_error *err)
{
	struct kr_buf patched KR_CLEANUP(kr_buf_fini) = KR_BUF(KR_CONFIG_FILE_BYTES);
	const struct kr_yaml_node *old = edit->doc.root;
	struct kr_yaml doc;
	const char *bytes;

	apply(edit, &patched);
	if (patched.overflow)
		return kr_fail(err, KR_E_LIMIT, "'%s' would become larger than 1 MiB", edit->doc.file);
	bytes = patched.data ? patched.data : "";
	if (!kr_repos_parse(&edit->arena, edit->doc.file, bytes, patched.len, places, err) ||
		kr_yaml_parse(&edit->arena, edit->doc.file, bytes, patched.len, &doc, err) < 0)
		return kr_wrap(err, "the file would not load with this change");
	if (!lists_agree(kr_yaml_get(old, "repos"), kr_yaml_get(doc.root, "repos"), removed, added) ||
		!others_agree(old, doc.root)) {
		kr_fail(err, KR_E_UNSUPPORTED, "cannot change '%s' in its present layout", edit->doc.file);
		return kr_hint(err, "edit the list under 'repos:' by hand");
	}
	kr_buf_add(out, bytes, patched.len);
	return out->overflow ? kr_fail(err, KR_E_LIMIT, "'%s' would become too large", edit->doc.file) : 0;
}

int
kr_repos_edit_add(const char *file, const char *bytes, size_t n, const struct kr_places *places,
	const char *entry_yaml, struct kr_buf *out, struct kr_error *err)
{
	KR_CLEANUP(edit_fini) struct edit edit = { 0 };

	if (!begin(&edit, file, bytes, n, places, err) || make_addition(&edit, entry_yaml, err) < 0)
		return -1;
	return finish(&edit, places, NULL, 1, out, err);
}

int
kr_repos_edit_remove(const char *file, const char *bytes, size_t n, const struct kr_places *places,
	const char *path, struct kr_buf *out, struct kr_error *err)
{
	KR_CLEANUP(edit_fini) struct edit edit = { 0 };
	const struct kr_repos *repos;
	const struct kr_yaml_node *list, *item, *before = NULL;
	size_t index = 0;

	repos = begin(&edit, file, bytes, n, places, err);
	if (!repos)
		return -1;
	while (index < repos->repo_count && strcmp(repos->repo[index].path, path) != 0)
		index++;
	if (index == repos->repo_count)
		return kr_fail(err, KR_E_NOT_FOUND, "'%s' has no entry in '%s'", path, file);
	list = kr_yaml_get(edit.doc.root, "repos");
	item = list->child;
	for (; index; index--) {
		before = item;
		item = item->next;
	}
	if (list->flow)
		remove_from_flow(&edit, before, item);
	else
		remove_from_block(&edit, list, before, item);
	return finish(&edit, places, item, 0, out, err);
}
