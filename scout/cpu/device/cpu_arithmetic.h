/* Multiply-adds in registers, on all threads: the peak of each precision, without any memory. */
#ifndef SCOUT_CPU_DEVICE_CPU_ARITHMETIC_H
#define SCOUT_CPU_DEVICE_CPU_ARITHMETIC_H

#include "scout/plugin.h"

/* At least `flops` (a multiply-add is two); the number really done comes back. SCOUT_NO: no such instructions here. */
scout_answer cpu_arithmetic_run(uint32_t type, uint64_t flops, uint64_t *done, scout_why *why);

#endif
