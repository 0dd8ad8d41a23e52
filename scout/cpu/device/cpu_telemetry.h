/* Clock, power and temperature of the processor, where available. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

typedef struct cpu_telemetry { /* zeroed to begin with; what power needs from one reading to the next */
    double energy_j, when_s;
    double power_w;
} cpu_telemetry;

/* How long threads of this process were ready to run and had to wait, by the kernel's own account, and how long they
 * were far from each other. Zeroed to begin
 * with; cpu_stolen_end closes what it holds open. */
enum { CPU_STOLEN_THREADS = 256 };
typedef struct cpu_stolen {
    bool opened;
    int count, files[CPU_STOLEN_THREADS];
    double meeting_s;         /* a call of the team at its best; 0: not yet seen */
    bool apart;               /* at the last look its threads were far from each other */
    double looked_s, apart_s; /* when that was, and the time between two looks of which one said so */
} cpu_stolen;
double cpu_stolen_seconds(cpu_stolen *s);
bool cpu_stolen_far(cpu_stolen *s, double meeting_s); /* whether a call of the team that took so long says so */
void cpu_stolen_end(cpu_stolen *s);

void cpu_telemetry_read(cpu_telemetry *t, scout_telemetry *out);
double cpu_telemetry_power_limit(void); /* W; 0: not known */
double cpu_telemetry_now(void);         /* seconds of a clock that is never adjusted */
double cpu_telemetry_resolution(void);  /* least time that it can tell, its own cost included */
