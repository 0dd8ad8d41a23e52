/* Limits of processors and memory for this process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

double cpu_limits_quota(void);                                       /* processors that may run at once; 0: no limit */
bool cpu_limits_memory(uint64_t *free_bytes, uint64_t *total_bytes); /* the tightest of machine and control groups */
