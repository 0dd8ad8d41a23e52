/* What lanes and a device have to do with each other. */
#include "scout/measure/device_lanes.h"

#include <math.h>

/* ---- the clock ---- */

static double clock_now(void *context) {
    const device_lanes *d = context;
    return d->api->now(d->device);
}

static void clock_pause(void *context, double seconds) {
    const device_lanes *d = context;
    if (d->api->pause) d->api->pause(d->device, seconds);
}

static void clock_telemetry(void *context, scout_telemetry *out) {
    const device_lanes *d = context;
    const double unknown = (double)NAN;
    *out = (scout_telemetry){.size = sizeof *out,
                             .clock_mhz = unknown,
                             .memory_clock_mhz = unknown,
                             .power_w = unknown,
                             .temperature_c = unknown,
                             .most_clock_mhz = unknown};
    if (d->api->telemetry) d->api->telemetry(d->device, out);
    out->throttle_text[sizeof out->throttle_text - 1] = 0;
    for (char *c = out->throttle_text; *c; c++) /* a plugin's may be no text */
        if (*c < 0x20 || *c > 0x7e) *c = '?';
}

static double clock_stolen(void *context) {
    const device_lanes *d = context;
    return d->api->stolen(d->device);
}

static scout_answer clock_play(void *context, scout_sequence *const *sequences, uint32_t count, double expected_s,
                               double *seconds, scout_why *why) {
    const device_lanes *d = context;
    d->play(d->context, fmin(30 + 20 * expected_s, 3600));
    return d->api->play(d->device, sequences, count, seconds, why);
}

static uint32_t clock_clocks(void *context, double *hz, uint32_t most) {
    const device_lanes *d = context;
    return d->api->clocks(d->device, hz, most);
}

static void clock_beat(void *context, double seconds) {
    const device_lanes *d = context;
    d->beat(d->context, seconds);
}

timing_clock device_lanes_clock(device_lanes *d) {
    const scout_device_api *api = d->api;
    return (timing_clock){.context = d,
                          .resolution_s = api->resolution_s,
                          .now = clock_now,
                          .pause = clock_pause,
                          .telemetry = clock_telemetry,
                          .beat = clock_beat,
                          .stolen = SCOUT_HAS(api, stolen) && api->stolen ? clock_stolen : NULL,
                          .play = d->play && SCOUT_HAS(api, play) && api->play ? clock_play : NULL,
                          .clocks = SCOUT_HAS(api, clocks) && api->clocks ? clock_clocks : NULL};
}

/* ---- figures ---- */

static json_t *samples_json(const lanes_lane *l, json_builder *b) {
    json_t *list = json_new_array(b);
    for (uint32_t k = 0; k < l->sample_count; k++) {
        const lanes_sample *s = &l->samples[k];
        json_t *one = json_new_object(b);
        json_put_real(b, one, "time_us", 1e6 * s->seconds);
        json_put_int(b, one, "launches", (int64_t)s->launches);
        if (s->hz > 0) json_put_real(b, one, "clock_mhz", 1e-6 * s->hz);
        json_put_bool(b, one, "counts", s->counts);
        json_push(b, list, one);
    }
    return list;
}

/* `blocks` are those that count. */
json_t *device_lanes_json(const lanes_lane *l, int pass, const scout_telemetry *seen, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_int(b, to, "pass", pass);
    json_put_known(b, to, "time_us", 1e6 * l->time_s);
    if (isfinite(l->error)) json_put_real(b, to, "error", l->error);
    if (l->mean_s > 0) {
        json_put_real(b, to, "mean_us", 1e6 * l->mean_s);
        json_put_real(b, to, "min_us", 1e6 * l->min_s);
        json_put_real(b, to, "p05_us", 1e6 * l->p05_s);
        json_put_real(b, to, "p25_us", 1e6 * l->p25_s);
        json_put_real(b, to, "p50_us", 1e6 * l->p50_s);
        json_put_real(b, to, "p75_us", 1e6 * l->p75_s);
        json_put_real(b, to, "p95_us", 1e6 * l->p95_s);
    }
    json_put_int(b, to, "blocks", l->blocks);
    if (l->outliers > 0) json_put_int(b, to, "outliers", l->outliers);
    if (l->dropped > 0) json_put_int(b, to, "dropped", l->dropped);
    json_put_int(b, to, "launches", (int64_t)l->total);
    if (l->raced_out) json_put_bool(b, to, "race", true);
    if (l->disturbed) json_put_bool(b, to, "disturbed", true);
    if (l->disturbed) json_put_real(b, to, "missed", l->missed);
    json_put_known(b, to, "clock_mhz", l->clock_hz > 0 ? 1e-6 * l->clock_hz : seen->clock_mhz);
    if (l->clock_hz > 0) {
        json_put_real(b, to, "clock_xx", l->clock_xx);
        json_put_real(b, to, "clock_xy", l->clock_xy);
        json_put_real(b, to, "clock_yy", l->clock_yy);
        json_put_real(b, to, "clock_blocks", l->clock_n);
    }
    if (l->held_hz > 0) {
        json_put_real(b, to, "held_mhz", 1e-6 * l->held_hz);
        json_put_real(b, to, "held_error", l->held_error);
    }
    json_put_known(b, to, "memory_clock_mhz", seen->memory_clock_mhz);
    json_put_known(b, to, "power_w", seen->power_w);
    json_put_known(b, to, "temperature_c", seen->temperature_c);
    if (seen->throttle_text[0]) json_put_text(b, to, "throttle", seen->throttle_text);
    if (l->sample_count > 0) json_put(b, to, "samples", samples_json(l, b));
    return to;
}
