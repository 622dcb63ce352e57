/* What is no item, as JSON: the same from the API and from the command line. */
#ifndef KR_API_SHAPES_H
#define KR_API_SHAPES_H

#include <jansson.h>

#include "config/config.h"

/* {"code", "message", "hint", "line", "column"}: why a file does not load. */
json_t *kr_error_json(const struct kr_error *err);
json_t *kr_strings_json(const struct kr_strs *list);
/* What it says, under its keys' names. */
json_t *kr_sandbox_json(const struct kr_sandbox *sandbox);
json_t *kr_repo_json(const struct kr_repo *repo);
/* {"file", "repos", "warnings"} */
json_t *kr_repos_json(const struct kr_repos *repos);
/* {"chains"}: all there are, also those that do not load, with why. NULL with err when they cannot be listed.
 */
json_t *kr_chains_json(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err);

#endif
