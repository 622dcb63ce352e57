/* members: a workspace's item with real git, and the five reasons for which a member is refused. */
#include "repo.h"

#include "git/private.h"
#include "session/item.h"
#include "session/items.h"
#include "session/record.h"
#include "session/session.h"

struct site {
	struct place *p;
	struct kr_host host;
	struct kr_repo repo[2];
	struct kr_checkout checkout[2];
	struct kr_tree trees[2];
	struct kr_item item;
	const char *member; /* its directory */
};

static void
find_tree(struct site *s, int i, const char *name)
{
	struct kr_error err = { 0 };

	if (kr_checkout_find(&s->p->arena, below(s->p, name), &s->checkout[i], &err) < 0)
		fail_msg("%s", err.message);
	s->repo[i].path = s->checkout[i].root;
	s->trees[i] = kr_tree_of(&s->repo[i], &s->checkout[i]);
}

static int
open_site(struct site *s, struct kr_error *err)
{
	const struct kr_item_want want = { .id = "x", .workspace = "site" };

	find_tree(s, 0, "r");
	find_tree(s, 1, "m");
	s->trees[1].member = "lib";
	s->trees[1].below = "libs/lib";
	*err = (struct kr_error){ 0 };
	return kr_item_open(&s->p->arena, &s->host, s->trees, 2, &want, &s->item, err);
}

static void
make_site(struct place *p, struct site *s)
{
	struct kr_error err;

	*s = (struct site){ .p = p, .host.places.run_dir = below(p, "run") };
	for (const char *const *name = (const char *const[]){ "r", "m", NULL }; *name; name++)
		sh(p,
			"git init -q -b main %s && cd %s && git config user.name A && git config user.email a@b.example && echo %s >f"
			" && git add f && git commit -qm one",
			*name, *name, *name);
	if (open_site(s, &err) < 0)
		fail_msg("%s", err.message);
	s->member = s->trees[1].worktree;
	kr_item_close(&s->item);
}

/* Refused for that reason, naming the member and the way on; put back, it is fine. */
static void
refused(struct site *s, const char *why, const char *change, const char *undo)
{
	struct kr_error err;

	sh(s->p, "m='%s' g='%s'; %s", s->member, s->trees[1].git_dir, change);
	assert_int_equal(open_site(s, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	if (!strstr(err.message, why) || !strstr(err.message, "member 'lib' of item 'x'"))
		fail_msg("'%s' and not '%s'", err.message, why);
	assert_non_null(strstr(err.hint, "kraft item remove x"));
	sh(s->p, "m='%s' g='%s'; %s", s->member, below(s->p, "m/.git/worktrees/lib"), undo);
	if (open_site(s, &err) < 0)
		fail_msg("put back: %s", err.message);
	kr_item_close(&s->item);
}

static void
a_member_that_is_not_what_kraft_made_is_refused_REF_04_GIT_22(void **state)
{
	struct site s;

	make_site(*state, &s);
	/* 1. the path */
	refused(&s, "cannot be reached", "mv \"$m\" aside", "mv aside \"$m\"");
	refused(&s, "is not a directory", "mv \"$m\" aside; echo >\"$m\"", "rm \"$m\"; mv aside \"$m\"");
	/* 2. a link */
	refused(&s, "is a symbolic link", "mv \"$m\" aside; ln -s \"$PWD/aside\" \"$m\"", "rm \"$m\"; mv aside \"$m\"");
	refused(&s, "is a symbolic link", "mv \"$(dirname \"$m\")\" up; ln -s \"$PWD/up\" \"$(dirname \"$m\")\"",
		"rm \"$(dirname \"$m\")\"; mv up \"$(dirname \"$m\")\"");
	/* 3. its .git */
	refused(&s, "its '.git' is not the file", "mv \"$m/.git\" git; cp -r m/.git \"$m/.git\"",
		"rm -r \"$m/.git\"; mv git \"$m/.git\"");
	refused(&s, "its '.git' is not the file", "mv \"$m/.git\" git; ln -s \"$PWD/git\" \"$m/.git\"",
		"rm \"$m/.git\"; mv git \"$m/.git\"");
	refused(&s, "its '.git' is not the file", "mv \"$m/.git\" git; mkfifo \"$m/.git\"",
		"rm \"$m/.git\"; mv git \"$m/.git\"");
	refused(&s, "its '.git' is not the file", "cp \"$m/.git\" git; echo more >>\"$m/.git\"", "cp git \"$m/.git\"");
	refused(&s, "its '.git' is not the file", "mv \"$m/.git\" git", "mv git \"$m/.git\"");
	/* 4. the git directory names another worktree */
	refused(&s, "/gitdir' does not name it", "cp \"$g/gitdir\" was; echo /elsewhere/.git >\"$g/gitdir\"",
		"cp was \"$g/gitdir\"");
	/* 5. and another repository */
	refused(&s, "/commondir' does not lead to", "cp \"$g/commondir\" was; echo ../../../../r/.git >\"$g/commondir\"",
		"cp was \"$g/commondir\"");
}

static void
what_was_looked_at_is_what_is_opened_REF_04(void **state)
{
	struct place *p = *state;
	struct site s;
	struct kr_plan_place *places;
	struct kr_error err = { 0 };
	struct kr_step steps[2] = { 0 };
	const struct kr_plan plan = { .request = &(struct kr_request){ 0 }, .steps = steps, .step_count = 2 };
	struct kr_opened opened[2];
	size_t n;

	make_site(p, &s);
	s.host.places = (struct kr_places){ below(p, "home"), below(p, "kh"), below(p, "run"), below(p, "kh/config") };
	assert_int_equal(kr_member_check(&p->arena, "x", s.item.worktree, &s.trees[1], &places, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(places[1].path, s.member);
	for (size_t i = 0; i < n; i++)
		steps[i] = (struct kr_step){ KR_STEP_BIND_RW, .path = places[i].path, .source = places[i].path,
			.device = places[i].device, .inode = places[i].inode };
	assert_int_equal(kr_session_open_sources(&s.host, &plan, "/none", opened, &err), 0);
	kr_session_close_sources(opened, 2);
	sh(p, "mv '%s' aside && cp -a aside '%s'", s.member, s.member); /* the same to every look, and another */
	assert_int_equal(kr_session_open_sources(&s.host, &plan, "/none", opened, &err), -1);
	assert_non_null(strstr(err.message, "somebody changed it in between"));
}

static void
a_workspace_is_remembered_and_stays(void **state)
{
	struct place *p = *state;
	const struct kr_item_want other = { .id = "x", .workspace = "other" }, none = { .id = "x" };
	struct kr_item_seen seen;
	struct kr_error err = { 0 };
	struct site s;
	const char *name;

	make_site(p, &s);
	assert_int_equal(kr_item_workspace(&p->arena, &s.host, "x", &name, NULL), 0);
	assert_string_equal(name, "site");
	assert_int_equal(kr_item_workspace(&p->arena, &s.host, "y", &name, NULL), 0);
	assert_null(name);
	assert_int_equal(kr_item_open(&p->arena, &s.host, s.trees, 2, &other, &s.item, &err), -1);
	assert_non_null(strstr(err.message, "belongs to the workspace 'site'"));
	assert_int_equal(kr_item_open(&p->arena, &s.host, s.trees, 1, &none, &s.item, NULL), -1);
	s.trees[1].below = "elsewhere";
	assert_int_equal(kr_item_open(&p->arena, &s.host, s.trees, 2, &(struct kr_item_want){ .id = "x", .workspace = "site" },
						 &s.item, &err),
		-1);
	assert_non_null(strstr(err.message, "had the member 'lib'"));
	assert_int_equal(kr_item_look(&p->arena, s.host.places.run_dir, "x", &seen, NULL), 0);
	assert_int_equal(seen.tree_count, 2);
	assert_string_equal(seen.trees[1].checkout, s.checkout[1].root);
	sh(p, "cd m && echo two >f && git commit -qam two");
	assert_int_equal(open_site(&s, &err), 0);
	assert_int_equal(s.item.state, KR_ITEM_NEEDS_CHECKOUT);
	assert_true(s.trees[1].is_elsewhere && !s.trees[0].is_elsewhere);
	kr_item_close(&s.item);
	assert_int_equal(kr_item_remove(&p->arena, s.host.places.run_dir, "x", false, NULL), 0);
	sh(p, "test ! -e m/.git/worktrees && test ! -e r/.git/worktrees && test ! -e run/worktrees/x");
}

static void
the_root_leaves_room_or_is_refused_GIT_22(void **state)
{
	static const struct {
		const char *below, *why;
	} cases[] = { { "d", "at 'd'" }, { "f", "at 'f'" }, { "f/x", "at 'f'" }, { "way/x", "at 'way'" }, { "d/f", "at 'd/f'" },
		{ "d/new", NULL }, { "new/deep", NULL }, { "sub", NULL }, { "a b/c*", NULL } };
	struct place *p = *state;
	struct kr_tree trees[2];
	struct kr_error err = { 0 };
	struct site s;

	make_site(p, &s);
	sh(p, "cd r && mkdir d && echo >d/f && ln -s /tmp way && git add . && git update-index --add --cacheinfo"
		  " 160000,$(git -C ../m rev-parse HEAD),sub && git commit -qm more");
	memcpy(trees, s.trees, sizeof(trees));
	snprintf(trees[0].wanted, sizeof(trees[0].wanted), "%s", sh_says(p, "git -C r rev-parse HEAD >said"));
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		trees[1].below = cases[i].below;
		assert_int_equal(kr_members_check_room(&p->arena, trees, 2, &err), cases[i].why ? -1 : 0);
		if (cases[i].why)
			assert_non_null(strstr(err.message, cases[i].why));
	}
}

static void
a_record_keeps_its_members(void **state)
{
	static const char *const bad[] = { "\"members\":[{}]", "\"workspace\":\"w\",\"members\":[{}]", "\"workspace\":\"w\",\"members\":[1]" };
	struct place *p = *state;
	kr_auto_fd int dir = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kr_record_member member = { "lib", "libs/lib", "/c", "/g", "/c/.git", "12" };
	const struct kr_record record = { KR_RECORD_READY, "/r", "/g", "/c", "1", "", .workspace = "w", .members = &member, .member_count = 1 };
	struct kr_record back;

	assert_int_equal(kr_record_write(dir, "x", &record, NULL), 0);
	assert_int_equal(kr_record_read(&p->arena, dir, "x", &back, NULL), 0);
	assert_string_equal(back.workspace, "w");
	assert_int_equal(back.member_count, 1);
	assert_string_equal(back.members[0].below, "libs/lib");
	assert_string_equal(back.members[0].git_common, "/c/.git");
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		const char *text = kr_arena_printf(&p->arena,
			"{\"version\":1,\"state\":\"ready\",\"checkout\":\"/r\",\"git_dir\":\"\",\"git_common\":\"\",\"commit\":\"\","
			"\"setup\":\"\",%s}",
			bad[i]);

		assert_int_equal(kr_file_write_at(dir, "x.json", text, strlen(text), 0600, NULL), 0);
		assert_int_equal(kr_record_read(&p->arena, dir, "x", &back, NULL), 0);
		assert_int_equal(back.state, KR_RECORD_ABSENT);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(a_member_that_is_not_what_kraft_made_is_refused_REF_04_GIT_22),
		place_test(what_was_looked_at_is_what_is_opened_REF_04),
		place_test(a_workspace_is_remembered_and_stays),
		place_test(the_root_leaves_room_or_is_refused_GIT_22),
		place_test(a_record_keeps_its_members),
	};

	return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
