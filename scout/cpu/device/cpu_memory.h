/* Memory of this device: aligned, in huge pages where it is large, and really there (touched) when it is handed out. */
#ifndef SCOUT_CPU_DEVICE_CPU_MEMORY_H
#define SCOUT_CPU_DEVICE_CPU_MEMORY_H

#include "scout/plugin.h"

scout_answer cpu_memory_alloc(uint64_t bytes, void **out, scout_why *why); /* owned: cpu_memory_release */
void cpu_memory_release(void *memory);                                     /* NULL is fine */

#endif
