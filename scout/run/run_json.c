/* Owns run.json: what was asked, on which device, with which ceilings and libraries, and how it went. */
#include "common/version.h"
#include "scout/report/crossover.h"
#include "scout/run/run_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const run_source_names[] = {"pending", "skipped", "left", "kept", "cached", "measured", "failed"};

/* ---- counting ---- */

/* Of all rows and passes of what was measured in this run. */
static void count_blocks(const run_item *i, run_counts *c) {
    const json_t *rows = json_object_get(i->measurement, "candidates"), *row, *pass;
    size_t k, n;
    if (i->source != RUN_MEASURED || i->derived) return;
    json_array_foreach(rows, k, row) json_array_foreach(json_object_get(row, "passes"), n, pass) {
        c->blocks += json_number_value(json_object_get(pass, "blocks"));
        c->dropped += json_number_value(json_object_get(pass, "dropped"));
    }
}

run_counts run_count(const run *r) {
    run_counts c = {.open = 0};
    verdict_sum sum = {0};
    for (int k = 0; k < r->list.count; k++) {
        const run_item *i = &r->items[k];
        const double count = (double)i->operation->count;
        report_figures f;
        c.sources[i->source]++;
        if (i->source == RUN_PENDING || (i->source == RUN_LEFT && !i->measurement)) continue;
        const report_input in = run_input(r, i, -1);
        report_read(&in, &f);
        if (f.baseline_row) {
            c.baseline_us += count * f.baseline_us;
            verdict_sum_add(&sum, count * f.baseline_us, f.baseline_ci);
            c.best_us += count * f.proven_us;
            *(f.own ? &c.own_us : &c.proven_us) += f.verdict.proven_gain_us;
            if (isfinite(f.ceiling_us)) c.ceiling_us += count * f.ceiling_us;
        } else if (!verdict_is_excused(f.code) && count > 0) {
            c.missing++;
            if (isfinite(f.estimate_us)) c.missing_us += count * f.estimate_us;
            if (isfinite(f.estimate_us)) verdict_sum_allow(&sum, count * f.estimate_us);
        }
        if (i->source == RUN_LEFT) continue;
        c.statuses[f.status]++;
        if (i->for_fusion) continue; /* it was not asked for itself */
        c.bad += f.bad_rows > 0;
        c.open += !f.baseline_row && !verdict_is_excused(f.code);
        c.empty += !f.baseline_row && !f.best_row && !verdict_is_excused(f.code);
        c.wide += f.wide;
    }
    for (int k = r->list.count; k < r->item_count; k++) {
        const run_item *i = &r->items[k];
        report_figures f;
        if (i->derived || i->source == RUN_PENDING || i->source == RUN_LEFT) continue;
        const report_input in = run_input(r, i, -1);
        report_read(&in, &f);
        c.bad += f.bad_rows > 0;
    }
    for (int k = 0; k < r->item_count; k++) count_blocks(&r->items[k], &c);
    c.model_us = sum.us;
    c.model_ci = verdict_sum_ci(&sum);
    return c;
}

/* ---- parts ---- */

static json_t *options_json(const run *r, json_builder *b) {
    const options *o = r->options;
    json_t *to = json_new_object(b);
    json_put_text(b, to, "operations", o->ops_path);
    json_put_text(b, to, "op", o->op);
    json_put_text(b, to, "shape", o->shape);
    json_t *const axes = o->axes_count > 0 ? json_new_array(b) : NULL;
    for (int k = 0; k < o->axes_count; k++) json_push_text(b, axes, o->axes[k]);
    if (axes) json_put(b, to, "axes", axes);
    json_t *const sets = o->sets_count > 0 ? json_new_array(b) : NULL;
    for (int k = 0; k < o->sets_count; k++) json_push_text(b, sets, o->sets[k]);
    if (sets) json_put(b, to, "sets", sets);
    json_put_text(b, to, "precision", o->precision);
    if (o->sparsity > 0) json_put_real(b, to, "sparsity", o->sparsity);
    if (o->pattern) json_put_text(b, to, "pattern", o->pattern);
    if (o->weight_threshold > 0) json_put_real(b, to, "weight_threshold", o->weight_threshold);
    if (o->sparse_block) json_put_int(b, to, "sparse_block", o->sparse_block);
    if (o->sparsity_sweep) json_put_bool(b, to, "sparsity_sweep", true);
    if (o->k_sweep) json_put_bool(b, to, "k_sweep", true);
    json_put_text(b, to, "device", o->devices);
    json_put_text(b, to, "only", o->only);
    json_put_text(b, to, "candidate", o->candidate);
    if (o->compare) json_put_bool(b, to, "compare", true);
    if (o->strict) json_put_bool(b, to, "strict", true);
    if (o->before) json_put_text(b, to, "before", o->before);
    if (o->budget_s > 0) json_put_real(b, to, "budget_s", o->budget_s);
    if (o->target_ci > 0) json_put_real(b, to, "target_ci", o->target_ci);
    if (o->min_time_s > 0) json_put_real(b, to, "min_time_s", o->min_time_s);
    json_put_real(b, to, "early_exit", o->early_exit);
    json_put_bool(b, to, "exhaustive", o->exhaustive);
    json_put_bool(b, to, "cache", !o->no_cache);
    json_put_bool(b, to, "resume", o->resume);
    json_put_bool(b, to, "fusions", !o->no_fusions && !o->compare);
    json_put_text(b, to, "cache_dir", o->cache_dir);
    json_put_text(b, to, "library_path", o->library_path);
    json_t *plugins = json_new_array(b);
    for (int k = 0; k < o->plugin_count; k++) json_push_text(b, plugins, o->plugins[k]);
    json_put(b, to, "plugins", plugins);
    return to;
}

static json_t *device_json(const run_device *d, json_builder *b) {
    json_t *to = json_new_object(b), *libraries = json_new_array(b);
    const scout_identity *about = &d->about->identity;
    json_put_text(b, to, "name", d->about->name);
    json_put_text(b, to, "model", about->name);
    json_put_text(b, to, "class", d->about->device_class);
    json_put_text(b, to, "instance", d->about->device_instance);
    json_put_text(b, to, "driver", about->driver);
    for (uint32_t k = 0; k < about->library_count && k < sizeof about->libraries / sizeof about->libraries[0]; k++) {
        json_t *library = json_new_object(b);
        json_put_text(b, library, "name", about->libraries[k].name);
        json_put_text(b, library, "version", about->libraries[k].version);
        json_put_text(b, library, "path", about->libraries[k].path);
        json_push(b, libraries, library);
    }
    json_put(b, to, "libraries", libraries);
    json_put(b, to, "ceilings", d->json ? json_deep_copy(d->json) : json_null());
    json_put_text(b, to, "ceilings_from", d->json ? d->from_cache ? "cache" : "this run" : "nowhere");
    if (d->why[0]) json_put_text(b, to, "ceilings_why", d->why);
    return to;
}

/* Least, middle and most of a figure over all rows that have a time. */
typedef struct range {
    double *x;
    size_t count;
} range;

static int by_number(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_range(json_t *to, const char *key, const range *seen, json_builder *b) {
    if (seen->count == 0) return;
    qsort(seen->x, seen->count, sizeof *seen->x, by_number);
    json_t *o = json_new_object(b);
    json_put_real(b, o, "min", seen->x[0]);
    json_put_real(b, o, "median", seen->x[seen->count / 2]);
    json_put_real(b, o, "max", seen->x[seen->count - 1]);
    json_put(b, to, key, o);
}

static size_t row_count(const run *r) {
    size_t count = 0;
    for (int k = 0; k < r->list.count; k++)
        count += json_array_size(json_object_get(r->items[k].measurement, "candidates"));
    return count;
}

/* Clock, power and temperature over the run. */
static void put_telemetry(const run *r, json_t *to, json_builder *b) {
    static const char *const names[] = {"clock_mhz", "power_w", "temperature_c"};
    double *x = malloc((row_count(r) + 1) * sizeof *x);
    for (size_t n = 0; x && n < sizeof names / sizeof names[0]; n++) {
        range seen = {.x = x};
        for (int k = 0; k < r->list.count; k++) {
            const json_t *rows = json_object_get(r->items[k].measurement, "candidates");
            for (size_t at = 0; at < json_array_size(rows); at++) {
                const json_t *value = json_object_get(json_array_get(rows, at), names[n]);
                if (json_is_number(value) && json_number_value(value) > 0) x[seen.count++] = json_number_value(value);
            }
        }
        put_range(to, names[n], &seen, b);
    }
    free(x);
}

static void put_counts(const run *r, json_t *to, json_builder *b) {
    const run_counts c = run_count(r);
    json_t *statuses = json_new_object(b), *sources = json_new_object(b), *totals = json_new_object(b);
    for (int k = 0; k < ROW_STATUS_COUNT; k++)
        json_put_int(b, statuses, reason_status_name((row_status)k), c.statuses[k]);
    for (int k = 0; k <= RUN_FAILED; k++) json_put_int(b, sources, run_source_names[k], c.sources[k]);
    json_put(b, to, "statuses", statuses);
    json_put(b, to, "sources", sources);
    json_put_int(b, to, "with_bad_rows", c.bad);
    json_put_int(b, to, "without_baseline", c.open);
    json_put_int(b, to, "without_figure", c.empty);
    json_put_int(b, to, "wide", c.wide);
    json_put_real(b, totals, "baseline_us", c.baseline_us);
    json_put_real(b, totals, "best_us", c.best_us);
    json_put_real(b, totals, "ceiling_us", c.ceiling_us);
    json_put_int(b, totals, "missing", c.missing);
    json_put_real(b, totals, "missing_us", c.missing_us);
    json_put_real(b, totals, "model_us", c.model_us);
    json_put_real(b, totals, "model_ci", c.model_ci);
    json_put_real(b, totals, "proven_us", c.proven_us);
    json_put_real(b, totals, "own_us", c.own_us);
    json_put(b, to, "totals", totals);
    json_t *blocks = json_new_object(b);
    json_put_int(b, blocks, "counted", (int64_t)c.blocks);
    json_put_int(b, blocks, "dropped", (int64_t)c.dropped);
    json_put(b, to, "blocks", blocks);
}

/* Where the file tells the dataflow. */
static void put_memory(const run *r, json_t *to, json_builder *b) {
    const operation_memory *m = &r->list.memory;
    if (!m->known) return;
    json_t *memory = json_new_object(b);
    json_put_int(b, memory, "weight_bytes", m->weight_bytes);
    json_put_int(b, memory, "activation_bytes", m->activation_bytes);
    json_put_text(b, memory, "at", m->at);
    if (m->least) json_put_bool(b, memory, "least", true);
    json_put(b, to, "memory", memory);
}

/* What else ran when the run began. */
static void put_beside(const run *r, json_t *to, json_builder *b) {
    if (r->beside.cores == 0) return;
    json_t *beside = json_new_object(b), *programs = json_new_array(b);
    for (int k = 0; k < r->beside.count; k++) json_push_text(b, programs, r->beside.programs[k]);
    json_put_int(b, beside, "cores", r->beside.cores);
    json_put_real(b, beside, "busy_cores", r->beside.use);
    json_put(b, beside, "programs", programs);
    json_put(b, to, "beside", beside);
}

/* Of items [from, to): operations, or fusions. */
static json_t *items_json(const run *r, int from, int to, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = from; k < to; k++) {
        const run_item *i = &r->items[k];
        const report_input in = run_input(r, i, -1);
        report_figures f;
        report_read(&in, &f);
        json_t *o = json_new_object(b);
        json_put_text(b, o, i->fusion ? "fusion" : "operation", i->operation->id);
        if (i->fusion) json_put_text(b, o, "pattern", i->fusion->pattern);
        json_put_text(b, o, "source", run_source_names[i->source]);
        if (i->source != RUN_PENDING && i->source != RUN_LEFT)
            json_put_text(b, o, "status", reason_status_name(f.status));
        if (i->fusion && f.fused.worth) {
            json_put_text(b, o, "worth", f.fused.worth);
            json_put_real(b, o, "saved_us", f.fused.saved_us);
        }
        if (i->source == RUN_MEASURED && !i->derived) json_put_real(b, o, "seconds", i->seconds);
        json_push(b, list, o);
    }
    return list;
}

/* Only where there is one: most runs have no such products. */
static void put_crossovers(run *r, json_t *to, json_builder *b) {
    report_input *inputs = arena_array(&r->arena, report_input, r->list.count + 1);
    crossover *found;
    int count = 0;
    for (int k = 0; k < r->list.count; k++) {
        const run_item *i = &r->items[k];
        if (i->measurement && i->source != RUN_LEFT) inputs[count++] = run_input(r, i, -1);
    }
    const int crossovers = crossover_find(inputs, count, &r->arena, &found);
    if (crossovers > 0) json_put(b, to, "crossovers", crossover_json(found, crossovers, b));
}

/* What varies, and the figures of each combination that has some. */
static void put_along(run *r, json_t *to, json_builder *b) {
    json_t *along = json_new_object(b), *names = json_new_array(b), *points = json_new_array(b);
    for (int k = 0; k < r->axes.count; k++) json_push_text(b, names, r->axes.items[k].name);
    for (int k = 0; k < r->list.count; k++) {
        const report_input in = run_input(r, &r->items[k], -1);
        report_figures f;
        report_read(&in, &f);
        if (!f.baseline_row) continue;
        json_t *point = json_new_object(b), *at = json_new_array(b);
        json_put_text(b, point, "operation", r->items[k].operation->id);
        for (int n = 0; n < r->axes.count; n++) json_push_text(b, at, operation_axis_value(&r->axes, n, k));
        json_put(b, point, "at", at);
        json_put_real(b, point, "baseline_time_us", f.baseline_us);
        json_put_known(b, point, "baseline_ci", f.baseline_ci);
        json_put_known(b, point, "efficiency", f.efficiency);
        json_push(b, points, point);
    }
    json_put(b, along, "axes", names);
    json_put(b, along, "points", points);
    json_put(b, to, "along", along);
}

bool run_json_save(run *r, const char *state, status *st) {
    const options *o = r->options;
    char path[4096], key[64];
    if (!o->output || o->output_is_file) return true;
    if (snprintf(path, sizeof path, "%s/run.json", o->output) >= (int)sizeof path) return true;
    json_builder b = {0};
    json_t *to = json_new_object(&b), *devices = json_new_array(&b);
    json_put_text(&b, to, "schema", "ceiling-scout/run/1");
    json_put_text(&b, to, "program", version_text);
    json_put_text(&b, to, "state", state);
    if (r->stopped) json_put_bool(&b, to, "stopped", true);
    if (r->no_whole) json_put_text(&b, to, "no_whole", r->no_whole);
    json_put_text(&b, to, "started", r->taken);
    json_put_real(&b, to, "seconds", run_now() - r->budget.started);
    json_put_text(&b, to, "model", r->list.model ? r->list.model : "");
    json_put(&b, to, "options", options_json(r, &b));
    regime_key(&o->regime, key, sizeof key);
    json_put_text(&b, to, "regime", key);
    json_put_int(&b, to, "method", REGIME_METHOD);
    for (int k = 0; k < r->device_count; k++) json_push(&b, devices, device_json(&r->devices[k], &b));
    json_put(&b, to, "devices", devices);
    put_memory(r, to, &b);
    put_telemetry(r, to, &b);
    put_beside(r, to, &b);
    put_counts(r, to, &b);
    json_put(&b, to, "operations", items_json(r, 0, r->list.count, &b));
    put_crossovers(r, to, &b);
    if (r->axes.count > 0) put_along(r, to, &b);
    json_put(&b, to, "fusions", items_json(r, r->list.count, r->item_count, &b));
    to = json_finish(&b, to, st);
    const bool good = to && json_save(path, to, st);
    json_decref(to);
    return good;
}
