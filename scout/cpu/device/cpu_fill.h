/* Memory of this device: allocation, fills with random or fixed values, checksums; on all threads. */
#pragma once

#include "scout/plugin.h"

/* cpu_memory.c: aligned, in huge pages where it is large, and touched. */
scout_answer cpu_memory_alloc(uint64_t bytes, void **out, scout_why *why); /* owned: cpu_memory_release */
void cpu_memory_release(void *memory);                                     /* NULL is fine */

/* The same seed gives the same bytes on the same processor, whatever the number of threads. */
scout_answer cpu_fill(void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed, scout_why *why);
uint64_t cpu_fill_checksum(const void *data, uint64_t bytes);
