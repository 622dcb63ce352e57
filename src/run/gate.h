/*
 * Before the first launch of a version of an agent whose hook has to be trusted: whether a call that kraft
 * denies is really denied (CHN-08). The program that will run is asked, inside the walls, in short runs
 * without a way out:
 *
 *     which hooks it has, and the key and hash of ours        else it is not listed
 *     the same with the words that make it trust ours         else it is not trusted, or not the only one
 *     a call of its shell, when nobody answers the hook       else it was not asked, or did not heed it
 *     the same without the hook                               else "denied" says nothing: the call must run
 *
 * Whatever cannot be shown refuses the launch.
 */
#ifndef KR_RUN_GATE_H
#define KR_RUN_GATE_H

#include "agent/agent.h"

struct kr_run_state;

/* What kr_agent_want's hook_key and hook_hash are. Safe between double quotes. */
struct kr_gate {
	char key[256], hash[128];
};

/* Of want, the harness and the settings_dir are looked at: the proof does not depend on what is to be done.
 * Takes some seconds. KR_E_REFUSED says in which way it was not proven. */
int kr_gate_prove(
	struct kr_run_state *run, const struct kr_agent_want *want, struct kr_gate *out, struct kr_error *err);

#endif
