/* Owns the file of --samples: a line of CSV for every block that was timed in this run, as it came. */
#include "scout/run/run_internal.h"

#include "common/plain.h"

#include <string.h>

static const char head[] = "operation,candidate,variant,pass,block,time_us,launches,clock_mhz,counts\n";

bool run_samples_begin(run *r, status *st) {
    if (!r->options->samples) return true;
    if (!files_begin(&r->samples, r->options->samples, st)) return false;
    r->sampling = true;
    files_append(&r->samples, head, sizeof head - 1);
    return true;
}

/* Always in quotes. Names are those of plugins too: none shall be a formula where a spreadsheet opens the file. */
static const char *quoted(run *r, const char *text) {
    const char *rest = plain_cell(&r->arena, text, 256), *out = *rest && strchr("=+-@", *rest) ? "\"'" : "\"";
    for (size_t n; *rest; rest += n) {
        n = strcspn(rest, "\"");
        out = arena_printf(&r->arena, "%s%.*s%s", out, (int)n, rest, rest[n] ? "\"\"" : "");
        n += rest[n] == '"';
    }
    return arena_printf(&r->arena, "%s\"", out);
}

/* Of one row in one pass; `name`: the first columns. */
static void add_row(run *r, const char *name, const json_t *list) {
    for (size_t n = 0; n < json_array_size(list); n++) {
        const json_t *one = json_array_get(list, n);
        const double mhz = json_get_positive(one, "clock_mhz");
        char line[1024], clock[32] = "";
        if (mhz > 0) snprintf(clock, sizeof clock, "%.6g", mhz);
        const int length =
            snprintf(line, sizeof line, "%s,%zu,%.6g,%lld,%s,%d\n", name, n + 1, json_get_positive(one, "time_us"),
                     (long long)json_get_int(one, "launches", 0), clock, json_is_true(json_object_get(one, "counts")));
        if (length > 0 && length < (int)sizeof line) files_append(&r->samples, line, (size_t)length);
    }
}

void run_samples_add(run *r, const run_item *i, const json_t *result) {
    const json_t *rows = json_object_get(result, "candidates");
    const arena_mark mark = arena_save(&r->arena);
    for (size_t k = 0; r->sampling && k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k), *pass = json_object_get(row, "pass");
        const char *name =
            arena_printf(&r->arena, "%s,%s,%s,%lld", quoted(r, i->operation->id), quoted(r, json_get_text(row, "name")),
                         quoted(r, json_get_text(row, "variant")), (long long)json_get_int(pass, "pass", 0));
        add_row(r, name, json_object_get(pass, "samples"));
    }
    arena_rewind(&r->arena, mark);
}

void run_samples_end(run *r, bool good) {
    status st = {0};
    if (!r->sampling) return;
    r->sampling = false;
    if (!good)
        files_abort(&r->samples);
    else if (!files_commit(&r->samples, &st) && r->failure.code == STATUS_OK)
        r->failure = st;
}
