/* What a pass of a replay says, in the form of a measurement's. */
#include "scout/plan/replay_internal.h"

#include <math.h>

static const char *const lane_names[REPLAY_LANES] = {"default", "best"};
static const char *const phase_names[REPLAY_PHASES] = {"preparing", "filling", "checking", "timing"};

static json_t *why_json(const replay_unit *u, const scout_why *why, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "operation", u->of->operation.id);
    json_put_text(b, to, "code", reason_known(why->code) ? why->code : "error");
    json_t *text = json_string(why->text); /* a plugin's may not be UTF-8 */
    json_put(b, to, "text", text ? text : json_string("its reason is not a string"));
    return to;
}

static json_t *memory_json(const replay *r, json_builder *b) {
    const replay_memory *m = &r->memory;
    json_t *to = json_new_object(b);
    json_put_int(b, to, "weight_bytes", (int64_t)m->weight_bytes);
    json_put_int(b, to, "packed_bytes", (int64_t)(m->packed_bytes[0] + m->packed_bytes[1]));
    json_put_int(b, to, "weight_copies", m->copies);
    if (m->shared > 0) json_put_int(b, to, "weights_shared", m->shared);
    json_put_int(b, to, "activation_bytes", (int64_t)m->activation_bytes[0]);
    if (r->two) json_put_int(b, to, "best_activation_bytes", (int64_t)m->activation_bytes[1]);
    json_put_int(b, to, "activation_least_bytes", (int64_t)m->least_bytes);
    json_put_int(b, to, "input_bytes", (int64_t)m->bytes[REPLAY_INPUTS]);
    json_put_int(b, to, "workspace_bytes", (int64_t)m->bytes[REPLAY_WORKSPACE]);
    return to;
}

static json_t *check_json(const replay *r, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_int(b, to, "compared", r->seen.compared);
    if (r->seen.compared == 0) return to;
    const replay_unit *u = &r->units[r->seen.worst];
    json_put_text(b, to, "worst", u->of->operation.id);
    json_put_known(b, to, "error", r->seen.error);
    json_put_real(b, to, "tolerance", u->tolerance);
    return to;
}

static json_t *ends_json(const replay *r, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_int(b, to, "compared", r->ends.compared);
    json_put_int(b, to, "worst", r->ends.worst);
    json_put_known(b, to, "error", r->ends.error);
    if (r->ends.bytes < r->ends.all) json_put_real(b, to, "part", (double)r->ends.bytes / (double)r->ends.all);
    return to;
}

static json_t *exact_json(const replay *r, json_builder *b) {
    json_t *to = json_new_object(b);
    if (!r->exact.known) {
        json_put_text(b, to, "not", r->exact.why.text);
        return to;
    }
    json_put_int(b, to, "worst", r->exact.worst);
    for (int k = 0; k < REPLAY_LANES; k++) json_put_known(b, to, lane_names[k], r->exact.errors[k]);
    json_put_bool(b, to, "worse", r->exact.worse);
    return to;
}

/* All launches of an operation, or of a fusion, in a run of each lane that has some. */
static json_t *in_place_json(const replay *r, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < r->unit_count; k++) {
        const replay_unit *u = &r->units[k];
        const double first_s = u->in_place_s[0], best_s = u->in_place_s[r->two];
        if (u->out || !(first_s > 0 || best_s > 0)) continue;
        json_t *one = json_new_object(b);
        json_put_text(b, one, "operation", u->of->operation.id);
        if (first_s > 0) json_put_real(b, one, "default_us", 1e6 * first_s);
        if (best_s > 0) json_put_real(b, one, "best_us", 1e6 * best_s);
        if (r->pass.trace) json_put_int(b, one, "default_launches", u->traced[0]);
        if (r->pass.trace) json_put_int(b, one, "best_launches", u->traced[r->two]);
        json_push(b, list, one);
    }
    return list;
}

/* What the plan's lane has, of so many occurrences. */
static json_t *groups_json(const replay *r, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_int(b, to, "operations", r->courses[0].count);
    json_put_int(b, to, "groups", r->courses[1].count);
    json_put_int(b, to, "fused", replay_groups_standing(r));
    json_put_int(b, to, "launches", r->launches[1]);
    return to;
}

static json_t *facts_json(const replay *r, json_builder *b) {
    json_t *to = json_new_object(b), *out = json_new_array(b), *waned = json_new_array(b), *apart = json_new_array(b),
           *bound = json_new_object(b);
    for (int k = 0; k < r->unit_count; k++) {
        const replay_unit *u = &r->units[k];
        if (u->out && u->why.code[0])
            json_push(b, k < r->request->operation_count ? out : apart, why_json(u, &u->why, b));
        if (!u->out && u->wanes.code[0]) json_push(b, waned, why_json(u, &u->wanes, b));
    }
    json_put_int(b, bound, "found", r->places_found);
    json_put_int(b, bound, "of", r->places);
    json_put_int(b, to, "launches", r->launches[0]);
    if (r->two) json_put(b, to, "groups", groups_json(r, b));
    json_put(b, to, "bound", bound);
    json_put(b, to, "memory", memory_json(r, b));
    json_put(b, to, "check", check_json(r, b));
    if (r->ends.compared > 0) json_put(b, to, "ends", ends_json(r, b));
    if (r->pass.exact) json_put(b, to, "exact", exact_json(r, b));
    if (r->nonfinite > 0) json_put_int(b, to, "nonfinite", r->nonfinite);
    json_put(b, to, "left_out", out);
    json_put(b, to, "as_default", waned);
    json_put(b, to, "apart", apart);
    if (r->pass.in_place || r->pass.trace) json_put(b, to, "in_place", in_place_json(r, b));
    if (r->pass.trace || r->traces[0].count > 0) json_put(b, to, "trace", replay_trace_json(r, b));
    return to;
}

json_t *replay_json(const replay *r) {
    json_builder b = {NULL};
    status st;
    json_t *to = json_new_object(&b), *rows = json_new_array(&b), *spent = json_new_object(&b);
    double seconds = 0;
    for (int k = 0; k < REPLAY_PHASES; k++) {
        json_put_known(&b, spent, phase_names[k], r->spent_s[k]);
        seconds += r->spent_s[k];
    }
    json_put_int(&b, to, "pass", r->pass.number);
    json_put_text(&b, to, "baseline", lane_names[0]);
    json_put_text(&b, to, "baseline_variant", "");
    if (!r->api->has_graphs) json_put_bool(&b, to, "host", true);
    json_put_known(&b, to, "seconds", seconds);
    /* Of that the next pass takes so much, too. */
    json_put_known(&b, to, "again_s", r->spent_s[REPLAY_FILLING] + r->spent_s[REPLAY_TIMING] - r->learned.hold_s);
    json_put(&b, to, "spent_s", spent);
    for (int k = 0; k < (r->two ? REPLAY_LANES : 1); k++) {
        json_t *row = json_new_object(&b);
        json_put_text(&b, row, "name", lane_names[k]);
        json_put_text(&b, row, "variant", "");
        json_put_text(&b, row, "status", "OK");
        json_put(&b, row, "pass", device_lanes_json(&r->figures[k], r->pass.number, &r->telemetry, &b));
        json_push(&b, rows, row);
    }
    json_put(&b, to, "candidates", rows);
    json_put(&b, to, "replay", facts_json(r, &b));
    return json_finish(&b, to, &st);
}
