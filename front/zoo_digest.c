/* Owns digest.md: a night in a page that fits a mail. Its figures are those of each model's summary.json. */
#include "front/zoo.h"

#include "common/amount.h"
#include "common/files.h"
#include "common/json.h"
#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENTENCE = 240, FIRST = 5, CHANGES = 20 };

typedef struct row {
    const zoo_item *item;
    json_t *tree;
    const json_t *group, *totals;
    double measured_us, ci, proven_us, potential_us;
    bool gainless; /* the operations' gains are none of the model as a whole, which was measured */
} row;

const char *zoo_digest_plain(zoo *z, const char *text) {
    char *const line = arena_strndup(z->a, text, strlen(text));
    for (char *c = line; *c; c++)
        if (*c == '`' || *c == '|') *c = '\'';
    return plain_cell(z->a, line, SENTENCE);
}

static int by_time(const void *a, const void *b) {
    const double x = ((const row *)a)->measured_us, y = ((const row *)b)->measured_us;
    return (x < y) - (x > y);
}
static int by_proven(const void *a, const void *b) {
    const double x = ((const row *)a)->proven_us, y = ((const row *)b)->proven_us;
    return (x < y) - (x > y);
}

static double or_zero(double x) { return isfinite(x) ? x : 0; }

/* The model as a whole, where that was measured, tells what a run takes and gains better than the sum of its parts. */
static void read_figures(row *r) {
    const json_t *const whole = json_object_get(r->group, "whole"), *const by_default =
                                                                        json_object_get(whole, "default");
    const double us = json_get_positive(by_default, "time_us"), ci = json_get_number(by_default, "ci");
    r->gainless = json_is_false(json_object_get(whole, "proven"));
    r->measured_us = or_zero(json_get_number(r->totals, "measured_us"));
    r->ci = json_get_number(r->totals, "model_ci");
    r->proven_us = r->gainless ? 0 : or_zero(json_get_number(r->totals, "proven_us"));
    r->potential_us = json_get_number(r->totals, "potential_us");
    const bool lacks =
        json_get_int(whole, "left_out", 0) > 0 || *json_get_text(json_object_get(r->group, "partial"), "text");
    if (!(us > 0) || !isfinite(ci) || lacks) return;
    const double ratio = json_get_number(whole, "ratio"); /* unknown where the plan is all defaults */
    r->measured_us = us;
    r->ci = ci;
    r->proven_us = r->gainless || !isfinite(ratio) ? 0 : us * (1 - ratio);
    r->potential_us = fmax(us - r->proven_us - json_get_number(r->totals, "ceiling_us"), 0);
}

static int read_rows(zoo *z, row *rows) {
    int n = 0;
    for (int k = 0; k < z->item_count; k++) {
        const char *const path = arena_printf(z->a, "%s/summary.json", z->items[k].folder);
        row r = {.item = &z->items[k]};
        r.tree = zoo_read_quietly(path);
        if (!r.tree) continue; /* told below where something went wrong with it */
        r.group = json_array_get(json_object_get(r.tree, "groups"), 0);
        r.totals = json_object_get(r.group, "totals");
        read_figures(&r);
        rows[n++] = r;
    }
    return n;
}

/* ---- parts ---- */

static void write_wrong(zoo *z, FILE *out) {
    bool any = false;
    for (int k = 0; k < z->item_count; k++) {
        const zoo_item *item = &z->items[k];
        if (!item->done || !item->why) continue;
        if (!any) fputs("## What is wrong\n\n", out);
        any = true;
        if (item->code > STATUS_INCOMPLETE)
            fprintf(out, "- `%s` ended with %d: `%s`\n", item->label, item->code, item->why);
        else
            fprintf(out, "- `%s`: %s\n", item->label, item->why);
    }
    if (any) fputc('\n', out);
}

static void write_unlike(const zoo *z, FILE *out) {
    if (z->unlike_count > 0) fputs("## Devices that differ from others of their kind\n\n", out);
    for (int k = 0; k < z->unlike_count; k++) fprintf(out, "- `%s`\n", z->unlike[k]);
    if (z->unlike_count > 0) fputc('\n', out);
}

static void write_note(zoo *z, FILE *out, const row *r) {
    const char *const partial = json_get_text(json_object_get(r->group, "partial"), "text");
    const int64_t bad = json_get_int(r->totals, "with_bad_rows", 0);
    if (*partial) fprintf(out, "`%s`", zoo_digest_plain(z, partial));
    if (bad > 0) fprintf(out, "%s%" PRId64 " with a failed candidate", *partial ? "; " : "", bad);
    if (r->gainless) fprintf(out, "%sas a whole no gain is proven", *partial || bad > 0 ? "; " : "");
    if (r->item->done && r->item->code > STATUS_INCOMPLETE) fputs("went wrong now: of an earlier run", out);
}

static void write_table(zoo *z, FILE *out, const row *rows, int n) {
    fputs("| model | time of a run | | proven | potential | operations | device | |\n"
          "|---|--:|---|--:|--:|--:|---|---|\n",
          out);
    for (int k = 0; k < n; k++) {
        const row *r = &rows[k];
        const double all = r->measured_us > 0 ? r->measured_us : NAN;
        fprintf(out, "| `%s` | %s | %s | %s | %s | %" PRId64 " | `%s` | ", r->item->label, amount_time(all).s,
                r->measured_us > 0 ? amount_within(r->ci).s : "", amount_percent(r->proven_us / all).s,
                amount_percent(r->potential_us / all).s, json_get_int(r->totals, "operations", 0),
                zoo_digest_plain(z, json_get_text(json_object_get(r->group, "device"), "model")));
        write_note(z, out, r);
        fputs(" |\n", out);
    }
    fputs("\nProven: something that was measured is faster. Potential: the rest of the way to the measured ceiling.\n",
          out);
}

static void write_proven(FILE *out, const row *rows, int n) {
    for (int k = 0; k < n && k < FIRST && rows[k].proven_us > 0; k++) {
        if (k == 0) fputs("\n## Most is proven\n\n", out);
        fprintf(out, "- `%s`: %s of %s a run (%s)\n", rows[k].item->label, amount_time(rows[k].proven_us).s,
                amount_time(rows[k].measured_us).s, amount_percent(rows[k].proven_us / rows[k].measured_us).s);
    }
}

/* Of the last night, what is sure. */
static void write_changed(zoo *z, FILE *out, const json_t *index) {
    const json_t *one;
    size_t k;
    if (!index) return;
    fprintf(out, "## What changed\n\nThe last of %" PRId64 " nights: %s.\n\n", json_get_int(index, "nights", 0),
            zoo_digest_plain(z, json_get_text(json_object_get(index, "last_night"), "text")));
    size_t told = 0;
    json_array_foreach(json_object_get(index, "changes"), k, one) {
        const char *const operation = json_get_text(one, "operation"), *const model = json_get_text(one, "model");
        if (!json_is_true(json_object_get(one, "last_night")) || told++ >= CHANGES) continue;
        fprintf(out, "- %s by %+.1f %%: `%s`", json_get_text(one, "state"), 100 * json_get_number(one, "change"),
                zoo_digest_plain(z, *operation ? operation : json_get_text(one, "device")));
        if (*model) fprintf(out, " in `%s`", zoo_digest_plain(z, model));
        if (!*operation) fputs(" as a whole", out);
        fprintf(out, ": `%s`\n", zoo_digest_plain(z, json_get_text(one, "cause")));
    }
    if (told > CHANGES) fprintf(out, "- and %zu more, in index.html\n", told - CHANGES);
    if (told > 0) fputc('\n', out);
}

void zoo_digest_write(zoo *z, const char *folder, const char *summary) {
    status st = {0};
    const char *const path = arena_printf(z->a, "%s/digest.md", folder), *const index_path = arena_printf(
                                                                             z->a, "%s/index.json", folder);
    char *text = NULL;
    size_t size = 0;
    row *rows = arena_array(z->a, row, z->item_count);
    const int n = read_rows(z, rows);
    FILE *out = open_memstream(&text, &size);
    json_t *index = zoo_read_quietly(index_path);
    if (out) {
        fprintf(out, "# Zoo of `%s`\n\n%s\n\n", zoo_digest_plain(z, z->path), summary);
        write_wrong(z, out);
        write_unlike(z, out);
        write_changed(z, out, index);
        if (n > 0) fputs("## Models by their time\n\n", out);
        qsort(rows, (size_t)n, sizeof *rows, by_time);
        if (n > 0) write_table(z, out, rows, n);
        qsort(rows, (size_t)n, sizeof *rows, by_proven);
        write_proven(out, rows, n);
    }
    for (int k = 0; k < n; k++) json_decref(rows[k].tree);
    json_decref(index);
    const bool good = out && fclose(out) == 0;
    if (good) (void)files_write(path, text, size, &st);
    free(text);
    if (!good) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    if (st.code != STATUS_OK) guard_fail(z->a->guard, st.code, "%s", st.text);
}
