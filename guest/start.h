/* What the launcher of macOS and `start`, which it starts inside, share. */
#ifndef KG_START_H
#define KG_START_H

#include "guest/sys.h"

int kg_seatbelt_main(int argc, char **argv, char **environment);
int kg_start_main(int argc, char **argv);

#endif
