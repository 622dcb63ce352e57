/* Inside the room cli/ only: where the files of a server that a service manager keeps lie (cmd_admin_service.c). */
#ifndef KR_CLI_SERVICE_H
#define KR_CLI_SERVICE_H

#include "plan/plan.h"

const char *kr_service_file(struct kr_arena *arena, const struct kr_host *host);
/* systemd's: a line NAME=value for each login. */
const char *kr_service_environment(struct kr_arena *arena, const struct kr_host *host);

#endif
