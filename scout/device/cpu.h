/* The device that is always there: this machine's processor. Built into scout_batch; its libraries (oneDNN, OpenBLAS)
 * are opened at run time and may be missing: the own candidates are then all there is. */
#pragma once

#include "scout/plugin.h"

const scout_device_api *cpu_device_api(void); /* borrowed, for the life of the process; threads: one at a time */

/* Must be called before any other object is loaded into this process: it may bring the threads' library. */
void cpu_device_prepare(void);
