#include "guest/ending.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MS = 5 }; /* between looks that found somebody: what was killed takes a moment to go */

bool
kg_end_init(struct kg_end *end)
{
	for (int i = 0; i < 2; i++)
		if (!end->table[i] && !(end->table[i] = kg_map(KG_TABLE_MOST * sizeof(*end->table[i]))))
			return false;
	end->family = (struct kg_family){
		.self = getpid(),
		.self_id = kg_process_id(getpid()),
		.kraft_id = kg_process_id(getppid()),
		.uid = getuid(),
	};
	return true;
}

long
kg_end_look(struct kg_end *end)
{
	struct kg_process *now = end->table[!end->turn];
	long n;

	if (end->reap)
		(void)end->reap(end->context);
	end->look.family = &end->family;
	n = kg_processes_look(&end->mark, &end->look, now, KG_TABLE_MOST);
	if (n < 0)
		return n;
	end->family.before = end->table[end->turn];
	end->family.before_count = end->count;
	end->turn = !end->turn;
	end->count = (size_t)n;
	return (long)kg_family_judge(&end->family, now, (size_t)n);
}

/* The youngest first: what runs away is there. The number could be another process's by now, so its id is asked for at the
 * last moment; nothing closes what is left of that gap, but numbers come round only after all others were used. */
static void
send_signals(const struct kg_process *table, size_t n)
{
	for (size_t i = n; i-- > 0;)
		if (table[i].signal && (!table[i].id || kg_process_id(table[i].pid) == table[i].id))
			(void)kill(table[i].pid, table[i].signal); /* the next look tells */
}

long
kg_end_all(struct kg_end *end)
{
	const int64_t until = kg_now_ms() + KG_ENDING_MS;
	struct kg_ending ending = { 0 };

	for (;;) {
		long ours;

		end->look.signal = ending.kills ? SIGKILL : SIGSTOP;
		ours = kg_end_look(end);

		if (ours < 0)
			return ours;
		if (kg_ending_step(&ending, end->table[end->turn], end->count, (size_t)ours, end->look.missed))
			return 0;
		if (ours && kg_now_ms() >= until)
			return ours;
		send_signals(end->table[end->turn], end->count);
		if (ours && ending.kills)
			(void)poll(NULL, 0, PAUSE_MS);
	}
}

/* ---- the role `end` ---- */

KG_TAKE_PATH(struct kg_end, own, mark.own)
KG_TAKE_PATH(struct kg_end, other, mark.other)

static const struct kg_option end_options[] = {
	{ "--own", true, take_own },
	{ "--other", true, take_other },
};

static void
print_left(const struct kg_process *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[24];
		size_t length;

		if (!table[i].is_ours || table[i].has_ended)
			continue;
		length = kg_decimal((uint64_t)table[i].pid, text);
		text[length++] = '\n';
		(void)!write(1, text, length); /* nobody left to tell */
	}
}

int
kg_end_main(int argc, char **argv)
{
	static struct kg_end end;
	struct kg_options options = { argv, argc, 2 };
	const char *culprit;
	long left;

	if (!kg_options_read(&options, end_options, KG_COUNT(end_options), &end, &culprit) || options.at != argc ||
		!end.mark.own || !end.mark.other) {
		kg_say(2, "end: wrong arguments", NULL);
		return KG_EXIT_REFUSED;
	}
	if (!kg_end_init(&end)) {
		kg_say(2, "end: out of memory", NULL);
		return KG_EXIT_REFUSED;
	}
	left = kg_end_all(&end);
	if (left < 0) {
		kg_say(2, "cannot look at the processes: ", kg_errno_text((int)-left), NULL);
		return KG_EXIT_REFUSED;
	}
	print_left(end.table[end.turn], end.count);
	return 0;
}
