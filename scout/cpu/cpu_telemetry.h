/* Clock, power and temperature of the processor, as far as it tells. */
#ifndef SCOUT_CPU_CPU_TELEMETRY_H
#define SCOUT_CPU_CPU_TELEMETRY_H

#include "scout/plugin.h"

typedef struct cpu_telemetry { /* zeroed to begin with; what power needs from one reading to the next */
    double energy_j, when_s;
    double power_w;
} cpu_telemetry;

void cpu_telemetry_read(cpu_telemetry *t, scout_telemetry *out);
double cpu_telemetry_power_limit(void); /* W; 0: not known */
double cpu_telemetry_now(void);         /* seconds of a clock that nobody adjusts */
double cpu_telemetry_resolution(void);  /* least time that it can tell, its own cost included */

#endif
