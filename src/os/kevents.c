#include "os/kevents.h"

static unsigned
events_of(const struct kr_kevent *seen, bool (*has_ended)(int fd))
{
	const unsigned asked = !seen->is_asked ? 0u : seen->is_read ? KR_POLL_IN : KR_POLL_OUT;

	if (seen->is_broken || (seen->is_end && has_ended(seen->fd)))
		return asked | KR_POLL_END;
	return asked;
}

/* Both filters of a descriptor have the same tag, and whoever is told twice may be gone at the second time. */
int
kr_kevents_join(const struct kr_kevent *seen, int n, bool (*has_ended)(int fd), struct kr_poll_event *out)
{
	int made = 0;

	for (int i = 0; i < n; i++) {
		const unsigned events = events_of(&seen[i], has_ended);
		int at = 0;

		if (!events)
			continue;
		while (at < made && out[at].tag != seen[i].tag)
			at++;
		if (at == made)
			out[made++] = (struct kr_poll_event){ .tag = seen[i].tag };
		out[at].events |= events;
	}
	return made;
}
