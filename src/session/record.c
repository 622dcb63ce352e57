#include "session/record.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/text.h"

enum { RECORD_BYTES = 1 << 20, VERSION = 1 };

static const char *const state_names[] = {
#define X(state, name) name,
	KR_RECORD_STATES(X)
#undef X
};
_Static_assert(KR_COUNT(state_names) == KR_RECORD_STATE_COUNT, "one name per state");

static const struct field {
	const char *name;
	size_t offset;
} fields[] = {
	{ "checkout", offsetof(struct kr_record, checkout) },
	{ "git_dir", offsetof(struct kr_record, git_dir) },
	{ "git_common", offsetof(struct kr_record, git_common) },
	{ "commit", offsetof(struct kr_record, commit) },
	{ "setup", offsetof(struct kr_record, setup) },
};

static const struct field member_fields[] = {
	{ "member", offsetof(struct kr_record_member, name) },
	{ "below", offsetof(struct kr_record_member, below) },
	{ "checkout", offsetof(struct kr_record_member, checkout) },
	{ "git_dir", offsetof(struct kr_record_member, git_dir) },
	{ "git_common", offsetof(struct kr_record_member, git_common) },
	{ "commit", offsetof(struct kr_record_member, commit) },
};

static const char **
field_of(void *object, const struct field *field)
{
	return (const char **)(void *)((char *)object + field->offset);
}

static bool
parse_fields(
	struct kr_arena *arena, const json_t *json, const struct field *list, size_t count, void *out)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = json_string_value(json_object_get(json, list[i].name));

		if (!value)
			return false;
		*field_of(out, &list[i]) = kr_arena_dup(arena, value);
	}
	return true;
}

static int
add_fields(json_t *json, const struct field *list, size_t count, void *object, struct kr_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = *field_of(object, &list[i]);

		if (!kr_text_is_utf8(value, strlen(value)))
			return kr_fail(
				err, KR_E_UNSUPPORTED, "the path '%s' is not UTF-8, so it cannot be recorded", value);
		json_object_set_new(json, list[i].name, json_string(value));
	}
	return 0;
}

static bool
parse_members(struct kr_arena *arena, const json_t *json, struct kr_record *out)
{
	const json_t *list = json_object_get(json, "members");
	const char *workspace = json_string_value(json_object_get(json, "workspace"));

	if (!workspace)
		return !list;
	out->workspace = kr_arena_dup(arena, workspace);
	out->members = kr_arena_alloc(arena, (json_array_size(list) + 1) * sizeof(*out->members));
	for (; out->member_count < json_array_size(list); out->member_count++)
		if (!parse_fields(arena, json_array_get(list, out->member_count), member_fields,
				KR_COUNT(member_fields), &out->members[out->member_count]))
			return false;
	return true;
}

static int
add_members(json_t *json, const struct kr_record *record, struct kr_error *err)
{
	json_t *list;

	if (!record->workspace)
		return 0;
	list = json_array();
	json_object_set_new(json, "workspace", json_string(record->workspace));
	json_object_set_new(json, "members", list);
	for (size_t i = 0; i < record->member_count; i++) {
		json_t *one = json_object();

		json_array_append_new(list, one);
		if (add_fields(one, member_fields, KR_COUNT(member_fields), &record->members[i], err) < 0)
			return -1;
	}
	return 0;
}

static void
json_free_p(json_t **json)
{
	json_decref(*json);
}

static void
name_of(const char *item, char *out, size_t out_size)
{
	snprintf(out, out_size, "%s.json", item);
}

/* False leaves the record absent: a damaged one says nothing about the directory beside it. */
static bool
parse(struct kr_arena *arena, const json_t *json, struct kr_record *out)
{
	const char *state = json_string_value(json_object_get(json, "state"));
	struct kr_record record = { 0 };

	if (json_integer_value(json_object_get(json, "version")) != VERSION || !state)
		return false;
	if (!parse_fields(arena, json, fields, KR_COUNT(fields), &record) || !parse_members(arena, json, &record))
		return false;
	for (size_t i = KR_RECORD_MAKING; i < KR_COUNT(state_names); i++)
		if (strcmp(state, state_names[i]) == 0)
			record.state = (enum kr_record_state)i;
	if (record.state == KR_RECORD_ABSENT)
		return false;
	*out = record;
	return true;
}

int
kr_record_read(
	struct kr_arena *arena, int dir_fd, const char *item, struct kr_record *out, struct kr_error *err)
{
	KR_CLEANUP(json_free_p) json_t *json = NULL;
	kr_auto_buf struct kr_buf buf = KR_BUF(RECORD_BYTES);
	struct kr_error failed = { 0 };
	char name[128];

	*out = (struct kr_record){ .checkout = "", .git_dir = "", .git_common = "", .commit = "", .setup = "" };
	name_of(item, name, sizeof(name));
	if (kr_file_read_at(dir_fd, name, &buf, &failed) < 0) {
		if (failed.sys_errno == 0 || failed.sys_errno == ENOENT)
			return 0;
		if (err)
			*err = failed;
		return kr_wrap(err, "the record of item '%s'", item);
	}
	json = json_loadb(buf.data ? buf.data : "", buf.len, JSON_REJECT_DUPLICATES, NULL);
	if (json)
		(void)parse(arena, json, out);
	return 0;
}

int
kr_record_write(int dir_fd, const char *item, const struct kr_record *record, struct kr_error *err)
{
	KR_CLEANUP(json_free_p) json_t *json = json_object();
	kr_auto_free char *text = NULL;
	struct kr_record copy = *record;
	char name[128];

	json_object_set_new(json, "version", json_integer(VERSION));
	json_object_set_new(json, "state", json_string(state_names[record->state]));
	if (add_fields(json, fields, KR_COUNT(fields), &copy, err) < 0 || add_members(json, record, err) < 0)
		return -1;
	text = json_dumps(json, JSON_INDENT(2));
	KR_BUG_IF(!text);
	name_of(item, name, sizeof(name));
	if (kr_file_write_at(dir_fd, name, text, strlen(text), 0600, err) < 0)
		return kr_wrap(err, "the record of item '%s'", item);
	return 0;
}

const char *
kr_setup_hash(struct kr_arena *arena, const char *command)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a: it tells an edited command from the old one, no more */

	if (!command || !*command)
		return "";
	for (; *command; command++)
		hash = (hash ^ (unsigned char)*command) * 1099511628211u;
	return kr_arena_printf(arena, "%016" PRIx64, hash);
}
