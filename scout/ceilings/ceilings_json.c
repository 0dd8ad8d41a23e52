/* Ceilings as JSON (schema ceiling-scout/ceilings/1), out and in. A file is untrusted: every member is checked
 * before it is believed, and the first that is wrong is named. */
#include "scout/ceilings/ceilings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "ceiling-scout/ceilings/1"

/* ---- out ---- */

static void put_positive(json_builder *b, json_t *o, const char *key, double x) {
    if (isfinite(x) && x > 0) json_put_real(b, o, key, x); /* what is not known is left out */
}

/* An interval that could not be told is as wide as the figure itself. */
static void put_interval(json_builder *b, json_t *o, double rel_ci95) {
    json_put_real(b, o, "rel_ci95", rel_ci95 >= 0 && rel_ci95 < 1 ? rel_ci95 : 1);
}

static json_t *peak_to_json(const ceilings_peak *p, json_builder *b) {
    json_t *o = json_new_object(b);
    json_put_text(b, o, "precision", p->precision);
    json_put_real(b, o, "tflops", p->tflops);
    json_put(b, o, "shape", json_new_ints(b, 3, p->shape));
    json_put_text(b, o, "layout", p->layout);
    json_put_text(b, o, "how", p->how);
    put_interval(b, o, p->rel_ci95);
    put_positive(b, o, "clock_mhz", p->clock_mhz);
    put_positive(b, o, "power_w", p->power_w);
    put_positive(b, o, "datasheet_tflops", p->datasheet);
    json_put_int(b, o, "tried", p->tried);
    json_put_real(b, o, "seconds", p->seconds);
    if (p->disturbed) json_put_bool(b, o, "disturbed", true);
    return o;
}

static json_t *bandwidth_to_json(const ceilings_bandwidth *row, json_builder *b) {
    json_t *o = json_new_object(b);
    json_put_int(b, o, "bytes", (int64_t)row->bytes);
    json_put_real(b, o, "read_fraction", row->read_fraction);
    json_put_bool(b, o, "resident", row->resident);
    json_put_real(b, o, "tbps", row->tbps);
    put_interval(b, o, row->rel_ci95);
    return o;
}

json_t *ceilings_sweep_to_json(const ceilings *c, json_builder *b) {
    json_t *o = json_new_object(b), *points = json_new_array(b);
    json_put_text(b, o, "precision", c->sweep_precision);
    for (int k = 0; k < c->sweep_count; k++) {
        json_t *p = json_new_object(b);
        json_put(b, p, "shape", json_new_ints(b, 3, c->sweep[k].shape));
        json_put_real(b, p, "tflops", c->sweep[k].tflops);
        put_interval(b, p, c->sweep[k].rel_ci95);
        put_positive(b, p, "clock_mhz", c->sweep[k].clock_mhz);
        json_push(b, points, p);
    }
    json_put(b, o, "points", points);
    return o;
}

json_t *ceilings_to_json(const ceilings *c, json_builder *b) {
    json_t *o = json_new_object(b), *peaks = json_new_array(b), *rows = json_new_array(b);
    json_put_text(b, o, "schema", SCHEMA);
    json_put_text(b, o, "instance", c->instance);
    json_put_text(b, o, "load", regime_load_names[c->load]);
    json_put_text(b, o, "launch", regime_launch_names[c->launch]);
    json_put_text(b, o, "taken", c->taken);
    json_put_real(b, o, "launch_us", c->launch_s * 1e6);
    put_positive(b, o, "special_per_s", c->special_per_s);
    put_positive(b, o, "special_clock_mhz", c->special_clock_mhz);
    put_positive(b, o, "plateau_bytes", c->plateau_bytes);
    put_positive(b, o, "read_tbps", c->read_tbps);
    put_positive(b, o, "copy_tbps", c->copy_tbps);
    put_positive(b, o, "write_tbps", c->write_tbps);
    put_positive(b, o, "datasheet_tbps", c->datasheet_tbps);
    put_positive(b, o, "clock_mhz", c->clock_mhz);
    put_positive(b, o, "power_w", c->power_w);
    put_positive(b, o, "clock_fall", c->clock_fall);
    for (int k = 0; k < c->peak_count; k++) json_push(b, peaks, peak_to_json(&c->peaks[k], b));
    json_put(b, o, "peaks", peaks);
    for (int k = 0; k < c->bandwidth_count; k++) json_push(b, rows, bandwidth_to_json(&c->bandwidths[k], b));
    json_put(b, o, "bandwidths", rows);
    if (c->sweep_count > 0) json_put(b, o, "sweep", ceilings_sweep_to_json(c, b));
    return o;
}

/* ---- in ---- */

/* Reading goes on after a failure and changes nothing then; `st` keeps the first. */
typedef struct reader {
    status *st;
    bool failed;
    char where[64]; /* "peaks[3]" */
} reader;

static void refuse(reader *r, const char *key, const char *why) {
    if (r->failed) return;
    r->failed = true;
    status_set(r->st, STATUS_INPUT, "ceilings: %s%s%s %s", r->where, r->where[0] ? "." : "", key, why);
}

static void get_text(reader *r, const json_t *o, const char *key, char *out, size_t room) {
    const json_t *x = json_object_get(o, key);
    if (!json_is_string(x)) {
        refuse(r, key, "is not a string");
        return;
    }
    if (json_string_length(x) >= room || strlen(json_string_value(x)) != json_string_length(x)) {
        refuse(r, key, "is too long, or contains a zero byte");
        return;
    }
    if (!r->failed) memcpy(out, json_string_value(x), json_string_length(x) + 1);
}

static double get_number(reader *r, const json_t *o, const char *key, double least, double most, bool needed) {
    const json_t *x = json_object_get(o, key);
    if (!x && !needed) return 0;
    if (!json_is_number(x)) {
        refuse(r, key, "is not a number");
        return 0;
    }
    double value = json_number_value(x);
    if (value >= least && value <= most) return value;
    refuse(r, key, "is out of range");
    return 0;
}

/* false where it is absent. */
static bool get_flag(reader *r, const json_t *o, const char *key) {
    const json_t *x = json_object_get(o, key);
    if (x && !json_is_boolean(x)) refuse(r, key, "is neither true nor false");
    return json_is_true(x);
}

static int64_t get_int(reader *r, const json_t *x, const char *key, int64_t least, int64_t most) {
    if (!json_is_integer(x) || json_integer_value(x) < least || json_integer_value(x) > most) {
        refuse(r, key, "is not a whole number within its range");
        return 0;
    }
    return json_integer_value(x);
}

static void get_shape(reader *r, const json_t *o, int64_t least, int64_t shape[3]) {
    const json_t *x = json_object_get(o, "shape");
    if (!json_is_array(x) || json_array_size(x) != 3) {
        refuse(r, "shape", "is not three numbers");
        return;
    }
    for (size_t k = 0; k < 3; k++) shape[k] = get_int(r, json_array_get(x, k), "shape", least, INT64_C(1) << 40);
}

static int get_choice(reader *r, const json_t *o, const char *key, const char *const *names) {
    const char *text = json_string_value(json_object_get(o, key));
    for (int k = 0; text && names[k]; k++)
        if (strcmp(names[k], text) == 0) return k;
    refuse(r, key, "is not one of its values");
    return 0;
}

/* The array of that name with no more than `most` rows; NULL (and nothing refused) where it is absent and may be. */
static const json_t *get_rows(reader *r, const json_t *o, const char *key, size_t most) {
    const json_t *rows = json_object_get(o, key);
    if (!json_is_array(rows)) {
        refuse(r, key, "is not a list");
        return NULL;
    }
    if (json_array_size(rows) <= most) return rows;
    refuse(r, key, "has too many rows");
    return NULL;
}

enum { TERA_MOST = 1000000000 }; /* no rate above 1e21 per second is a rate */

static void get_peak(reader *r, const json_t *o, ceilings *c) {
    ceilings_peak *p = &c->peaks[c->peak_count];
    get_text(r, o, "precision", p->precision, sizeof p->precision);
    p->tflops = get_number(r, o, "tflops", 1e-9, TERA_MOST, true);
    get_shape(r, o, 0, p->shape);
    get_text(r, o, "layout", p->layout, sizeof p->layout);
    get_text(r, o, "how", p->how, sizeof p->how);
    p->rel_ci95 = get_number(r, o, "rel_ci95", 0, 1e6, true);
    p->clock_mhz = get_number(r, o, "clock_mhz", 0, 1e6, false);
    p->power_w = get_number(r, o, "power_w", 0, 1e6, false);
    p->datasheet = get_number(r, o, "datasheet_tflops", 0, TERA_MOST, false);
    p->tried = (int32_t)get_int(r, json_object_get(o, "tried"), "tried", 0, INT32_MAX);
    p->seconds = get_number(r, o, "seconds", 0, 1e9, true);
    p->disturbed = get_flag(r, o, "disturbed");
    if (!r->failed && (p->precision[0] == 0 || ceilings_find_peak(c, p->precision)))
        refuse(r, "precision", "is empty, or given twice");
    if (!r->failed) c->peak_count++;
}

static void get_bandwidth(reader *r, const json_t *o, ceilings *c) {
    ceilings_bandwidth *row = &c->bandwidths[c->bandwidth_count];
    const json_t *resident = json_object_get(o, "resident");
    row->bytes = (uint64_t)get_int(r, json_object_get(o, "bytes"), "bytes", 1, INT64_MAX);
    row->read_fraction = get_number(r, o, "read_fraction", 0, 1, true);
    if (!json_is_boolean(resident)) refuse(r, "resident", "is neither true nor false");
    row->resident = json_is_true(resident);
    row->tbps = get_number(r, o, "tbps", 1e-12, TERA_MOST, true);
    row->rel_ci95 = get_number(r, o, "rel_ci95", 0, 1e6, true);
    if (!r->failed) c->bandwidth_count++;
}

static void get_point(reader *r, const json_t *o, ceilings *c) {
    ceilings_point *p = &c->sweep[c->sweep_count];
    get_shape(r, o, 1, p->shape);
    p->tflops = get_number(r, o, "tflops", 1e-9, TERA_MOST, true);
    p->rel_ci95 = get_number(r, o, "rel_ci95", 0, 1e6, true);
    p->clock_mhz = get_number(r, o, "clock_mhz", 0, 1e6, false);
    if (!r->failed) c->sweep_count++;
}

static void each_row(reader *r, const json_t *o, const char *key, size_t most,
                     void (*get)(reader *, const json_t *, ceilings *), ceilings *c) {
    const json_t *rows = get_rows(r, o, key, most);
    for (size_t k = 0; rows && k < json_array_size(rows) && !r->failed; k++) {
        snprintf(r->where, sizeof r->where, "%s[%zu]", key, k);
        get(r, json_array_get(rows, k), c);
        r->where[0] = 0;
    }
}

static void get_head(reader *r, const json_t *root, ceilings *c) {
    get_text(r, root, "instance", c->instance, sizeof c->instance);
    c->load = (regime_load)get_choice(r, root, "load", regime_load_names);
    c->launch = (regime_launch)get_choice(r, root, "launch", regime_launch_names);
    get_text(r, root, "taken", c->taken, sizeof c->taken);
    c->launch_s = get_number(r, root, "launch_us", 0, 1e9, true) / 1e6;
    c->special_per_s = get_number(r, root, "special_per_s", 0, 1e21, false);
    c->special_clock_mhz = get_number(r, root, "special_clock_mhz", 0, 1e6, false);
    c->plateau_bytes = get_number(r, root, "plateau_bytes", 0, 1e18, false);
    c->read_tbps = get_number(r, root, "read_tbps", 0, TERA_MOST, false);
    c->copy_tbps = get_number(r, root, "copy_tbps", 0, TERA_MOST, false);
    c->write_tbps = get_number(r, root, "write_tbps", 0, TERA_MOST, false);
    c->datasheet_tbps = get_number(r, root, "datasheet_tbps", 0, TERA_MOST, false);
    c->clock_mhz = get_number(r, root, "clock_mhz", 0, 1e6, false);
    c->power_w = get_number(r, root, "power_w", 0, 1e6, false);
    c->clock_fall = get_number(r, root, "clock_fall", 0, 0.5, false);
}

bool ceilings_from_json(const json_t *root, ceilings *out, status *st) {
    reader r = {.st = st};
    memset(out, 0, sizeof *out);
    if (!json_check_schema(root, "ceilings", 1, "ceilings", st)) return false;
    get_head(&r, root, out);
    each_row(&r, root, "peaks", CEILINGS_MAX_PEAKS, get_peak, out);
    each_row(&r, root, "bandwidths", CEILINGS_MAX_BANDWIDTHS, get_bandwidth, out);
    const json_t *sweep = json_object_get(root, "sweep");
    if (sweep) {
        get_text(&r, sweep, "precision", out->sweep_precision, sizeof out->sweep_precision);
        each_row(&r, sweep, "points", CEILINGS_MAX_SWEEP, get_point, out);
    }
    if (r.failed) memset(out, 0, sizeof *out);
    ceilings_close(out); /* tables were taken that had dents */
    return !r.failed;
}
