/* Shared by the view commands. */
#ifndef KR_CLI_VIEW_H
#define KR_CLI_VIEW_H

#include "base/base.h"
#include "store/work.h"

/* A time for a person: this machine's own, "2025-07-20 08:12:00". Returns out. */
const char *kr_view_local_time(uint64_t ms, char *out, size_t size);
/* What workers asked, each in two lines or three. */
void kr_view_print_asks(const struct kr_ask_rows *asks);

#endif
