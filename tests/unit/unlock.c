/* base: a tree goes also where its owner locked what is in it. */
#include "repo.h"

#include "locked.h"

#define TREE "mkdir -p t/open t/shut/deep && echo 1 >t/file && echo 2 >t/open/file && echo 3 >t/shut/deep/file && ln -s /etc t/link"

static void
lock_some(struct place *p)
{
	static const char *const names[] = { "t", "t/file", "t/open/file", "t/shut", "t/shut/deep/file", "t/link" };

	locked_count = 0;
	sh(p, TREE);
	for (size_t i = 0; i < KR_COUNT(names); i++)
		lock_file(below(p, names[i]));
}

static void
mac_07_what_was_locked_goes_with_its_tree(void **state)
{
	struct place *p = *state;
	kr_auto_fd int top = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	lock_some(p);
	unlocks = true;
	assert_int_equal(kr_tree_remove_at(top, "t"), 0);
	assert_int_equal(locked_count, 0);
	sh(p, "test ! -e t && test -d /etc");
	lock_some(p);
	assert_int_equal(unlinkat(top, "t/file", 0), -1);
	assert_int_equal(errno, EPERM);
	unlocks = false;
	assert_int_equal(kr_tree_remove_at(top, "t"), -1); /* the control: nobody unlocks */
	sh(p, "test -e t/file && test -e t/open/file && test -e t/shut/deep/file");
	locked_count = 0;
	unlocks = true;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(mac_07_what_was_locked_goes_with_its_tree),
	};

	return cmocka_run_group_tests_name("unlock", tests, NULL, NULL);
}
