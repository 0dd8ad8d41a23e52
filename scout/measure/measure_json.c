/* A measurement as JSON (docs/formats.md): its rows, and what is said of all of them. */
#include "scout/measure/measure_internal.h"

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
    json_put(b, to, "text", text ? text : json_string("its reason is not a string"));
    return to;
}

static void put_config(const measure_row *row, json_builder *b, json_t *to) {
    json_t *config = row->config ? json_loads(row->config, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (json_is_object(config))
        json_put(b, to, "config", config);
    else
        json_decref(config);
}

static bool leaves_zeros_out(const measurement *m, const measure_row *row) {
    return m->weights.bytes && strncmp(approach_of(row), "SPARSE", 6) == 0;
}

json_t *measure_json_row(const measurement *m, const measure_row *row, json_builder *b) {
    json_t *to = json_new_object(b);
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
    json_put_text(b, to, "approach", approach_of(row));
    if (row->candidate->flags & SCOUT_OWN) json_put_bool(b, to, "own", true);
    if (row->timed && row->status == ROW_OK) {
        json_t *const pass = device_lanes_json(&row->lane, m->pass.number, &m->telemetry, b);
        json_put_known(b, pass, "fetch_us", 1e6 * row->fetch_s);
        json_put(b, to, "pass", pass);
        if (leaves_zeros_out(m, row)) json_put_real(b, to, "zeros", m->weights.facts.zeros);
    }
    put_config(row, b, to);
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

/* In the place of its candidate's first choice, whose results were off: which one a framework would take then is not
 * known, so no other one of the library is a gain over it. */
static bool stands_in(const measurement *m, const measure_row *base) {
    for (const measure_row *row = m->rows; base && row < base; row++)
        if (row->candidate == base->candidate && (row->status == ROW_WRONG || strcmp(row->why.code, "precision") == 0))
            return true;
    return false;
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

static json_t *distant_json(const measurement *m, json_builder *b) {
    json_t *names = json_new_array(b);
    for (uint32_t t = 0; t < m->op.tensor_count; t++)
        if (m->op.tensors[t].left == SCOUT_LEFT_DISTANT) json_push_text(b, names, m->op.tensors[t].name);
    return names;
}

static json_t *spent_json(const measurement *m, json_builder *b) {
    static const char *const names[MEASURE_PHASES] = {"waiting",   "listing", "filling",
                                                      "preparing", "timing",  "checking"};
    json_t *to = json_new_object(b);
    for (int k = 0; k < MEASURE_PHASES; k++)
        if (m->spent_s[k] > 0) json_put_real(b, to, names[k], m->spent_s[k]);
    return to;
}

/* Rows that take no part in a later pass are those of the first one. */
json_t *measure_json_result(const measurement *m) {
    const measure_row *base = find_baseline(m);
    json_builder b = {NULL};
    json_t *to = json_new_object(&b), *rows = json_new_array(&b);
    status st;
    json_put_int(&b, to, "pass", m->pass.number);
    json_put_text(&b, to, "baseline", base ? base->candidate->name : NULL);
    json_put_text(&b, to, "baseline_variant", base ? base->variant : "");
    const bool own = base && base->candidate->flags & SCOUT_OWN;
    if (own) json_put_bool(&b, to, "baseline_own", true);
    if (m->request->before)
        json_put_bool(&b, to, "baseline_named", true);
    else if (own || stands_in(m, base))
        json_put_bool(&b, to, "baseline_elected", true);
    if (!m->api->has_graphs) json_put_bool(&b, to, "host", true); /* shares its cores with others */
    json_put_int(&b, to, "rotation_bytes", (int64_t)m->rotation_bytes);
    json_put_int(&b, to, "copies", m->copies);
    json_put_real(&b, to, "resident_bytes", m->resident_bytes);
    json_put_real(&b, to, "specials", m->specials);
    if (m->request->operation->distant) json_put(&b, to, "distant", distant_json(m, &b));
    put_costs(m, &b, to);
    json_put_text(&b, to, "precision", operation_precision(m->request->operation));
    if (m->weights.bytes) json_put(&b, to, "weight", weights_json(&m->weights, m->request->operation, &b));
    json_put(&b, to, "probe", measure_probe_json(m, &b));
    if (m->left_out > 0) json_put_int(&b, to, "variants_left_out", m->left_out);
    json_put_real(&b, to, "seconds", measure_elapsed(m));
    json_put(&b, to, "spent_s", spent_json(m, &b));
    json_put(&b, to, "libraries", libraries_json(m, &b));
    for (int k = 0; k < m->row_count; k++)
        if (m->pass.number == 1 || m->rows[k].chosen) json_push(&b, rows, measure_json_row(m, &m->rows[k], &b));
    json_put(&b, to, "candidates", rows);
    return json_finish(&b, to, &st);
}
