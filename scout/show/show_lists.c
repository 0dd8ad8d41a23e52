/* Lists that a person asks for: ceilings, devices, candidates, what the cache holds. */
#include "scout/show/show.h"

#include "common/json.h"
#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WIDE = 240, MOST_FRACTIONS = 8 };

static const char *cell_of(arena *a, const json_t *object, const char *key) {
    return plain_cell(a, json_get_text(object, key), WIDE);
}

static const char *shape_text(arena *a, const int64_t shape[3]) {
    return arena_printf(a, "%" PRId64 " x %" PRId64 " x %" PRId64, shape[0], shape[1], shape[2]);
}

/* ---- ceilings ---- */

static void print_peaks(FILE *out, arena *a, const ceilings *c) {
    for (int k = 0; k < c->peak_count; k++) {
        const ceilings_peak *p = &c->peaks[k];
        const char *where = p->shape[0] > 0 ? arena_printf(a, "at %s %s, ", shape_text(a, p->shape), p->layout) : "";
        fprintf(out, "  %-10s %-5s %15s ± %.1f %%  %s%s", k == 0 ? "peak" : "", p->precision,
                show_rate(a, p->tflops * 1e12, "FLOP/s"), 100 * p->rel_ci95, plain_cell(a, where, 80),
                plain_cell(a, p->how, 60));
        if (p->clock_mhz > 0) fprintf(out, ", %.0f MHz", p->clock_mhz);
        if (p->tried > 1) fprintf(out, ", best of %d shapes in %.0f s", p->tried, p->seconds);
        if (p->datasheet > 0) fprintf(out, " (datasheet %s)", show_rate(a, p->datasheet * 1e12, "FLOP/s"));
        if (p->disturbed) fprintf(out, ", DISTURBED: the next run measures it again");
        fputc('\n', out);
    }
}

/* The read fractions that occur, all reads first. */
static int fractions_of(const ceilings *c, double *found) {
    int count = 0;
    for (int k = 0; k < c->bandwidth_count; k++) {
        const double x = c->bandwidths[k].read_fraction;
        int at = 0;
        while (at < count && found[at] > x) at++;
        if ((at < count && found[at] == x) || count == MOST_FRACTIONS) continue;
        memmove(&found[at + 1], &found[at], (size_t)(count - at) * sizeof *found);
        found[at] = x;
        count++;
    }
    return count;
}

static const char *fraction_name(arena *a, double x) {
    if (x == 1) return "read";
    if (x == 0) return "write";
    return x == 0.5 ? "copy" : arena_printf(a, "%.0f %% read", 100 * x);
}

static const ceilings_bandwidth *find_bandwidth(const ceilings *c, uint64_t bytes, bool resident, double fraction) {
    for (int k = 0; k < c->bandwidth_count; k++) {
        const ceilings_bandwidth *w = &c->bandwidths[k];
        if (w->bytes == bytes && w->resident == resident && w->read_fraction == fraction) return w;
    }
    return NULL;
}

static void print_bandwidths(FILE *out, arena *a, const ceilings *c, bool resident) {
    double fractions[MOST_FRACTIONS + 1];
    const int count = fractions_of(c, fractions);
    bool headed = false;
    for (int k = 0; k < c->bandwidth_count; k++) {
        const ceilings_bandwidth *w = &c->bandwidths[k];
        bool seen = w->resident != resident;
        for (int j = 0; j < k && !seen; j++)
            seen = c->bandwidths[j].bytes == w->bytes && c->bandwidths[j].resident == resident;
        if (seen) continue;
        if (!headed) {
            fprintf(out, "  %-10s %9s", resident ? "resident" : "cold", "bytes");
            for (int f = 0; f < count; f++) fprintf(out, " %12s", fraction_name(a, fractions[f]));
            fputc('\n', out);
            headed = true;
        }
        fprintf(out, "  %-10s %9s", "", show_bytes(a, (double)w->bytes));
        for (int f = 0; f < count; f++) {
            const ceilings_bandwidth *cell = find_bandwidth(c, w->bytes, resident, fractions[f]);
            fprintf(out, " %12s", cell ? show_rate(a, cell->tbps * 1e12, "B/s") : "-");
        }
        fputc('\n', out);
    }
}

static void print_audit(FILE *out, arena *a, const json_t *audit) {
    const char *precision;
    json_t *row;
    json_object_foreach((json_t *)(uintptr_t)audit, precision, row) {
        fprintf(out,
                "  %-10s %-5s %.2f %% of the best of %.0f random shapes, ± %.2f (%s against %s), audited in %.1f s\n",
                "audit", plain_cell(a, precision, 8), 100 * json_number_value(json_object_get(row, "ratio")),
                json_number_value(json_object_get(row, "random_shapes")),
                100 * json_number_value(json_object_get(row, "rel_ci95")),
                show_rate(a, 1e12 * json_number_value(json_object_get(row, "found_tflops")), "FLOP/s"),
                show_rate(a, 1e12 * json_number_value(json_object_get(row, "best_random_tflops")), "FLOP/s"),
                json_number_value(json_object_get(row, "seconds")));
    }
}

void show_ceilings(FILE *out, arena *a, const supervisor_device *device, const regime *r, const ceilings *c,
                   const json_t *audit) {
    char launch[32];
    fprintf(out, "%s (%s) · %s, %s · measured %s", plain_cell(a, device->identity.name, 80), device->name,
            regime_load_names[r->load], regime_launch_names[r->launch], plain_cell(a, c->taken, 32));
    if (c->clock_mhz > 0) fprintf(out, " · %.0f MHz", c->clock_mhz);
    if (c->power_w > 0) fprintf(out, ", %.0f W", c->power_w);
    fputc('\n', out);
    print_peaks(out, a, c);
    if (c->read_tbps > 0)
        fprintf(out, "  %-10s read %s, copy %s, write %s%s\n", "memory", show_rate(a, c->read_tbps * 1e12, "B/s"),
                show_rate(a, c->copy_tbps * 1e12, "B/s"), show_rate(a, c->write_tbps * 1e12, "B/s"),
                c->datasheet_tbps > 0
                    ? arena_printf(a, " (datasheet %s)", show_rate(a, c->datasheet_tbps * 1e12, "B/s"))
                    : "");
    if (c->plateau_bytes > 0) fprintf(out, "  %-10s from %s on\n", "", show_bytes(a, c->plateau_bytes));
    print_bandwidths(out, a, c, false);
    print_bandwidths(out, a, c, true);
    show_time(1e6 * c->launch_s, launch, sizeof launch);
    fprintf(out, "  %-10s %s\n", "launch", launch);
    if (c->special_per_s > 0) fprintf(out, "  %-10s %s\n", "special", show_rate(a, c->special_per_s, "exp/s"));
    show_sweep(out, c);
    print_audit(out, a, audit);
}

/* ---- lists of workers ---- */

void show_devices(FILE *out, arena *a, const json_t *devices) {
    for (size_t k = 0; k < json_array_size(devices); k++) {
        const json_t *d = json_array_get(devices, k);
        const char *why = json_string_value(json_object_get(d, "why"));
        if (why)
            fprintf(out, "%-8s not available: %s\n", cell_of(a, d, "device"), plain_cell(a, why, WIDE));
        else
            fprintf(out, "%-8s %s\n         class %s\n", cell_of(a, d, "device"), cell_of(a, d, "name"),
                    cell_of(a, d, "class"));
    }
}

static const char *precisions_text(arena *a, const json_t *names) {
    const char *text = "";
    for (size_t k = 0; k < json_array_size(names); k++) {
        const char *name = json_string_value(json_array_get(names, k));
        if (name) text = arena_printf(a, "%s%s%s", text, k > 0 ? " " : "", name);
    }
    return text;
}

void show_candidates(FILE *out, arena *a, const json_t *candidates) {
    fprintf(out, "%-10s %-6s %-20s %8s %-30s %s\n", "kind", "device", "name", "priority", "precisions", "what it is");
    for (size_t k = 0; k < json_array_size(candidates); k++) {
        const json_t *c = json_array_get(candidates, k);
        const json_int_t flags = json_integer_value(json_object_get(c, "flags"));
        const char *plugin = json_string_value(json_object_get(c, "plugin"));
        fprintf(out, "%-10s %-6s %-20s %8" JSON_INTEGER_FORMAT " %-30s %s%s%s%s%s\n", cell_of(a, c, "kind"),
                cell_of(a, c, "device"), cell_of(a, c, "name"), json_integer_value(json_object_get(c, "priority")),
                plain_cell(a, precisions_text(a, json_object_get(c, "precisions")), 60), cell_of(a, c, "about"),
                flags & SCOUT_BASELINE ? " [baseline]" : "", plugin ? " (" : "",
                plugin ? plain_cell(a, plugin, 80) : "", plugin ? ")" : "");
    }
}

void show_cache(FILE *out, arena *a, const char *folder, const cache_info *rows, int count) {
    uint64_t entries = 0, bytes = 0;
    fprintf(out, "%s\n", plain_cell(a, folder, WIDE));
    for (int k = 0; k < count; k++) {
        fprintf(out, "  %8" PRIu64 " entries %10s  %s\n", rows[k].entries, show_bytes(a, (double)rows[k].bytes),
                plain_cell(a, rows[k].device, 128));
        entries += rows[k].entries;
        bytes += rows[k].bytes;
    }
    fprintf(out, "  %8" PRIu64 " entries %10s  in all\n", entries, show_bytes(a, (double)bytes));
}
