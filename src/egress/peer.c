#include "egress/peer.h"

enum kr_peer
kr_peer_judge(const pid_t *holders, int n, kr_peer_of_fn *of, void *context)
{
	enum kr_peer found = n > 0 ? KR_PEER_OTHER : KR_PEER_UNKNOWN;

	for (int i = 0; i < n; i++)
		switch (of(context, holders[i])) {
		case KR_PEER_SESSION:
			return KR_PEER_SESSION;
		case KR_PEER_UNKNOWN:
			found = KR_PEER_UNKNOWN;
			break;
		case KR_PEER_OTHER:
			break;
		}
	return found;
}
