/* A measurement as JSON (docs/formats.md): its rows, and what is said of all of them. */
#include "scout/measure_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *approach_of(const measure_row *row) {
    if (row->owner->parts && row->candidate != row->owner->parts) return "FUSION";
    return row->candidate->approach ? row->candidate->approach : "CUSTOM_KERNEL";
}

static json_t *reason_json(const scout_why *why, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "code", reason_known(why->code) ? why->code : "error");
    json_t *text = json_string(why->text); /* a plugin's may not be UTF-8 */
    json_put(b, to, "text", text ? text : json_string("it gives a reason that is no text"));
    return to;
}

static json_t *time_json(const timing_result *r, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_known(b, to, "median", 1e6 * r->median_s);
    json_put_known(b, to, "mean", 1e6 * r->mean_s);
    json_put_known(b, to, "min", 1e6 * r->min_s);
    json_put_known(b, to, "p05", 1e6 * r->p05_s);
    json_put_known(b, to, "p95", 1e6 * r->p95_s);
    json_put_known(b, to, "rel_ci95", r->rel_ci95);
    json_put_int(b, to, "batches", r->batches);
    json_put_int(b, to, "launches", (int64_t)r->launches);
    return to;
}

static bool leaves_zeros_out(const measurement *m, const measure_row *row) {
    return m->weights.bytes && strncmp(approach_of(row), "SPARSE", 6) == 0;
}

/* Who leaves out the zeros does less work than the dense product: both rates are told, under names of their own. */
static void put_rates(const measurement *m, const measure_row *row, double seconds, json_builder *b, json_t *to) {
    const double dense = m->op.flops / seconds / 1e12;
    const bool sparse = leaves_zeros_out(m, row);
    json_put_known(b, to, "tflops", sparse ? dense * (1 - m->weights.facts.zeros) : dense);
    if (sparse) json_put_known(b, to, "dense_equivalent_tflops", dense);
}

/* Whoever has a sparse weight wants to know of everybody who leaves its zeros out how far off he is: of those that
 * dropped out, what the race has seen. Its clock was another one than that of the confirmed times: what it says is how
 * much longer than the baseline one takes. */
static void put_race(const measurement *m, const measure_row *row, json_builder *b, json_t *to) {
    const measure_row *base = m->baseline >= 0 ? &m->rows[m->baseline] : NULL;
    if (row->status != ROW_SKIPPED || !(row->rough_s > 0) || !leaves_zeros_out(m, row)) return;
    if (!base || base->status != ROW_OK || !base->confirmed || !(base->rough_s > 0)) return;
    const double seconds = row->rough_s / base->rough_s * base->result.median_s;
    json_t *race = json_new_object(b);
    json_put_known(b, race, "about_us", 1e6 * seconds);
    put_rates(m, row, seconds, b, race);
    json_put(b, to, "race", race);
}

/* What only a time that counts carries. */
static void put_time(const measurement *m, const measure_row *row, json_builder *b, json_t *to) {
    const timing_result *r = &row->result;
    json_put(b, to, "time_us", time_json(r, b));
    put_rates(m, row, r->median_s, b, to);
    json_put_known(b, to, "tbps", (m->op.bytes_read + m->op.bytes_written) / r->median_s / 1e12);
    json_put_known(b, to, "clock_mhz", r->clock_mhz);
    json_put_known(b, to, "memory_clock_mhz", r->memory_clock_mhz);
    json_put_known(b, to, "power_w", r->power_w);
    json_put_known(b, to, "temperature_c", r->temperature_c);
    json_put_text(b, to, "throttle", r->throttle_text);
    if (row->config) {
        json_t *config = json_loads(row->config, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(config))
            json_put(b, to, "config", config);
        else
            json_decref(config);
    }
}

json_t *measure_json_row(const measurement *m, const measure_row *row, json_builder *b) {
    json_t *to = json_new_object(b);
    const bool ok = row->status == ROW_OK && row->confirmed;
    json_put_text(b, to, "name", row->candidate->name);
    json_put_text(b, to, "variant", row->variant);
    if (row->plugin) {
        char hash[24];
        snprintf(hash, sizeof hash, "%016" PRIx64, row->plugin_hash);
        json_put_text(b, to, "plugin", row->plugin);
        json_put_text(b, to, "plugin_hash", hash);
    }
    json_put_text(b, to, "status", reason_status_name(row->status));
    json_put(b, to, "reason", row->status == ROW_OK ? json_null() : reason_json(&row->why, b));
    if (ok) put_time(m, row, b, to);
    put_race(m, row, b, to);
    if (row->compared && isfinite(row->worst)) {
        json_t *error = json_new_object(b);
        json_put_real(b, error, "worst", row->worst);
        json_put_real(b, error, "tolerance", row->tolerance);
        json_put(b, to, "error", error);
    }
    if (row->needs.packs > 0) {
        json_put_real(b, to, "pack_us", 1e6 * row->pack_s);
        json_put_int(b, to, "pack_bytes", (int64_t)row->needs.pack_bytes);
    }
    if (row->made_of.size > 0) {
        json_put_int(b, to, "kernels", row->made_of.kernels);
        if (row->made_of.copies + row->made_of.others > 0)
            json_put_int(b, to, "copies", (int64_t)row->made_of.copies + row->made_of.others);
    }
    if (row->needs.size > 0) json_put_int(b, to, "workspace_bytes", (int64_t)row->needs.workspace_bytes);
    return to;
}

/* Of all that were confirmed beside the baseline and are not the best, the one that came nearest to winning: whose
 * interval reaches deepest. Also where it would not settle, for the next time it may. */
static const measure_row *find_rival(const measurement *m) {
    const measure_row *rival = NULL;
    double deepest = INFINITY;
    for (int k = 0; k < m->row_count; k++) {
        const measure_row *row = &m->rows[k];
        if (k == m->baseline || k == m->best || !row->confirmed || !isfinite(row->ratio)) continue;
        const double depth = row->ratio * (1 - (isfinite(row->ratio_ci) ? row->ratio_ci : 1));
        if (depth < deepest) deepest = depth, rival = row;
    }
    return rival;
}

static void put_rival(const measurement *m, json_builder *b, json_t *to) {
    const measure_row *rival = find_rival(m);
    if (!rival) return;
    json_t *o = json_new_object(b);
    json_put_text(b, o, "name", rival->candidate->name);
    json_put_text(b, o, "variant", rival->variant);
    json_put_text(b, o, "approach", approach_of(rival));
    json_put_real(b, o, "ratio", rival->ratio);
    json_put_real(b, o, "ratio_ci", isfinite(rival->ratio_ci) ? rival->ratio_ci : 1); /* 1: it may be anything */
    json_put(b, to, "rival", o);
}

/* Where none was prepared, the one that would be it had there been time: its reason is that of the whole, whatever
 * libraries before it lack. Not behind a default that failed, whose fault is to be told. */
static const measure_row *find_baseline(const measurement *m) {
    if (m->baseline >= 0) return &m->rows[m->baseline];
    for (int k = 0; k < m->row_count; k++) {
        const measure_row *row = &m->rows[k];
        if (!measure_rows_is_baseline(m, row->candidate)) continue;
        if (reason_status_bad(row->status)) return NULL;
        if (row->first && row->status == ROW_SKIPPED) return row;
    }
    return NULL;
}

static void put_row_summary(const measurement *m, json_builder *b, json_t *to) {
    const measure_row *baseline = find_baseline(m);
    const measure_row *best = m->best >= 0 ? &m->rows[m->best] : NULL;
    json_put_text(b, to, "baseline", baseline ? baseline->candidate->name : NULL);
    json_put_text(b, to, "baseline_variant", baseline ? baseline->variant : "");
    if (baseline && baseline->candidate->flags & SCOUT_OWN) json_put_bool(b, to, "baseline_own", true);
    json_put_text(b, to, "best", best ? best->candidate->name : NULL);
    json_put_text(b, to, "best_variant", best ? best->variant : NULL); /* nobody has no variant */
    json_put_text(b, to, "best_approach", !best ? NULL : best == baseline ? "NONE" : approach_of(best));
    if (baseline && baseline->status == ROW_OK)
        json_put_real(b, to, "baseline_time_us", 1e6 * baseline->result.median_s);
    if (best) json_put_real(b, to, "best_time_us", 1e6 * best->result.median_s);
    if (best && best != baseline && isfinite(best->ratio)) {
        json_put_real(b, to, "ratio", best->ratio);
        if (isfinite(best->ratio_ci)) json_put_real(b, to, "ratio_ci", best->ratio_ci);
    }
}

static json_t *libraries_json(const measurement *m, json_builder *b) {
    json_t *array = json_new_array(b);
    for (uint32_t k = 0; m->identity && k < m->identity->library_count && k < 8; k++) {
        const scout_library *l = &m->identity->libraries[k];
        json_t *one = json_new_object(b);
        json_put_text(b, one, "name", l->name);
        json_put_text(b, one, "version", l->version);
        json_put_text(b, one, "path", l->path);
        json_push(b, array, one);
    }
    return array;
}

/* What candidates were told: of a hand-written operation the kind knows better than its text what is read. */
static void put_costs(const measurement *m, json_builder *b, json_t *to) {
    const oprec *const rec = &m->request->operation->rec;
    const bool built = m->op.tensor_count > 0;
    json_put_int(b, to, "flops", built ? (int64_t)m->op.flops : rec->flops);
    json_put_int(b, to, "bytes_read", built ? (int64_t)m->op.bytes_read : rec->bytes_read);
    json_put_int(b, to, "bytes_written", built ? (int64_t)m->op.bytes_written : rec->bytes_written);
}

static json_t *spent_json(const measurement *m, json_builder *b) {
    static const char *const names[MEASURE_PHASES] = {"listing", "filling",    "preparing", "settling",
                                                      "racing",  "confirming", "checking"};
    json_t *to = json_new_object(b);
    for (int k = 0; k < MEASURE_PHASES; k++)
        if (m->spent_s[k] > 0) json_put_real(b, to, names[k], m->spent_s[k]);
    return to;
}

json_t *measure_json_result(const measurement *m) {
    json_builder b = {NULL};
    json_t *to = json_new_object(&b), *rows = json_new_array(&b);
    status st;
    put_row_summary(m, &b, to);
    put_rival(m, &b, to);
    json_put_int(&b, to, "rotation_bytes", m->set ? (int64_t)bench_set_rotation_bytes(m->set) : 0);
    json_put_int(&b, to, "copies", m->set ? (int64_t)bench_set_copies(m->set) : 0);
    json_put_real(&b, to, "resident_bytes", m->set ? bench_set_resident_bytes(m->set) : 0);
    json_put_real(&b, to, "specials", m->specials);
    put_costs(m, &b, to);
    json_put_text(&b, to, "precision", operation_precision(m->request->operation));
    if (m->weights.bytes) json_put(&b, to, "weight", weights_json(&m->weights, m->request->operation, &b));
    json_put(&b, to, "probe", measure_probe_json(m, &b));
    json_put_bool(&b, to, "settled", m->settled);
    if (!m->settled && m->settle_why.text[0]) json_put_text(&b, to, "settle", m->settle_why.text);
    if (m->left_out > 0) json_put_int(&b, to, "variants_left_out", m->left_out);
    json_put_real(&b, to, "seconds", measure_elapsed(m));
    json_put(&b, to, "spent_s", spent_json(m, &b));
    json_put(&b, to, "libraries", libraries_json(m, &b));
    for (int k = 0; k < m->row_count; k++) json_push(&b, rows, measure_json_row(m, &m->rows[k], &b));
    json_put(&b, to, "candidates", rows);
    return json_finish(&b, to, &st);
}
