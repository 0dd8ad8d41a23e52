/* Lanes on a device: the clock that the timing engine is told the time by, and what a pass says of a lane as JSON. */
#pragma once

#include "common/json.h"
#include "scout/timing/lanes.h"

typedef struct device_lanes { /* outlives the clock that is made of it */
    const scout_device_api *api;
    scout_device *device;
    void *context;
    /* By when the next sign of life comes at the latest: between runs; and before several sequences are played, NULL:
     * none are. */
    void (*beat)(void *context, double seconds);
    void (*play)(void *context, double seconds);
} device_lanes;

timing_clock device_lanes_clock(device_lanes *d);
/* What pass number so many says (docs/formats.md: a row's `passes`). */
json_t *device_lanes_json(const lanes_lane *l, int pass, const scout_telemetry *seen, json_builder *b);
