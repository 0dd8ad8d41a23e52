/* What a host's /sys says of the clock of its processors, and whether a GPU is plugged in. */
#pragma once

#include <stdbool.h>

typedef enum host_turbo { HOST_TURBO_UNKNOWN, HOST_TURBO_OFF, HOST_TURBO_ON } host_turbo;

typedef struct host {
    char governor[32]; /* of the clock: "performance"; that of a processor that has another, if they differ; "": untold
                        */
    host_turbo turbo;
    bool nvidia; /* a GPU of NVIDIA is plugged in, with a driver or without */
} host;

void host_look(const char *sys, host *out); /* sys: "/sys" */
