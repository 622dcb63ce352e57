/* Repositories and chains: what the configuration has now. */
#include "api/internal.h"

#include "api/shapes.h"
#include "os/host.h"

int
kr_api_repos_list(struct kr_api_call *call, struct kr_error *err)
{
	const struct kr_repos *repos;
	struct kr_host host;

	if (kr_host_gather_places(call->arena, &host, err) < 0 ||
		!(repos = kr_repos_load(call->arena, &host.places, err)))
		return -1;
	call->json = kr_repos_json(repos);
	return 0;
}

int
kr_api_chains_list(struct kr_api_call *call, struct kr_error *err)
{
	struct kr_host host;

	if (kr_host_gather_places(call->arena, &host, err) < 0)
		return -1;
	call->json = kr_chains_json(call->arena, &host.places, err);
	return call->json ? 0 : -1;
}
