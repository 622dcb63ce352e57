#include "cli/item.h"

#include <errno.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/work.h"
#include "os/host.h"
#include "session/item.h"

/* The repository's own item: it need not be connected any more to look at what was done. */
static const char *
own_id(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	struct kr_checkout checkout;
	struct kr_item item;
	char cwd[KR_PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd))) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell the current directory");
		return NULL;
	}
	if (kr_checkout_find(arena, cwd, &checkout, err) < 0) {
		if (err->code == KR_E_NOT_FOUND)
			kr_hint(err, "stand in a checkout, or name an item: 'kraft item list' shows them");
		return NULL;
	}
	return kr_item_name(arena, host, &checkout, NULL, &item, err) < 0 ? NULL : item.id;
}

/*
 * Work items are named by any beginning of their id, and without a name the checkout's only one is meant when
 * nothing was run there by itself. Without a store there is none, and then the id is as it was.
 */
static const char *
work_item(struct kr_arena *arena, const struct kr_host *host, const char *id)
{
	struct kr_work work = { .arena = arena, .host = *host };
	struct kr_error ignored = { 0 };
	struct kr_item_row row;
	const char *found = id;

	if (kr_store_open(host->places.run_dir, KR_STORE_READ, &work.store, &ignored) < 0)
		return id;
	if (!id)
		found = kr_work_id(&work, NULL, &ignored);
	else if (kr_store_item_get(arena, work.store, id, &row, &ignored) == 0)
		found = row.id;
	kr_work_close(&work);
	return found;
}

static int
look(struct kr_arena *arena, const struct kr_host *host, const char *id, struct kr_item_seen *seen,
	struct kr_error *err)
{
	const char *run_dir = host->places.run_dir, *own;

	if (id)
		return kr_item_look(arena, run_dir, work_item(arena, host, id), seen, err);
	own = own_id(arena, host, err);
	if (!own)
		return -1;
	if (kr_item_look(arena, run_dir, own, seen, err) == 0)
		return 0;
	id = err->code == KR_E_NOT_FOUND ? work_item(arena, host, NULL) : NULL;
	if (!id)
		return -1;
	*err = (struct kr_error){ 0 };
	return kr_item_look(arena, run_dir, id, seen, err);
}

int
kr_item_find(
	struct kr_arena *arena, const char *id, const char *what, struct kr_item_trees *out, struct kr_error *err)
{
	struct kr_item_seen seen;
	struct kr_host host;

	if (kr_host_gather_places(arena, &host, err) < 0 || look(arena, &host, id, &seen, err) < 0)
		return -1;
	return kr_item_trees_of(arena, &seen, what, out, err);
}
