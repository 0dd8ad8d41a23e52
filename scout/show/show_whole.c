/* The model as a whole, and where it differs from the sum of its parts. */
#include "scout/show/show.h"

#include "common/amount.h"
#include "common/plain.h"

#include <math.h>
#include <string.h>

enum { WORST = 5 };

static void show_time_of(FILE *out, const char *name, const json_t *t) {
    const double us = json_get_positive(t, "time_us"), sum = json_get_positive(t, "sum_us");
    fprintf(out, "  %-9s %s %s", name, amount_time(us).s, amount_within(json_get_number(t, "ci")).s);
    if (sum > 0)
        fprintf(out, ", the sum of its parts %s %s: %+.1f %%", amount_time(sum).s,
                amount_within_of(json_get_number(t, "sum_ci"), json_get_number(t, "sum_unknown")).s,
                100 * (us / sum - 1));
    fputc('\n', out);
}

/* What a sum is made of, and what is left for each launch of it: each part was timed at the clock of its own load. */
static void show_rest(FILE *out, const json_t *root, const json_t *lane, int64_t launches) {
    const double at_us = json_get_positive(lane, "at_clock_us"), us = json_get_positive(lane, "time_us"),
                 fetch_us = json_get_positive(lane, "fetch_us");
    if (!(at_us > 0)) {
        if (fetch_us > 0) fprintf(out, "            %s of that to refill caches\n", amount_time(fetch_us).s);
        return;
    }
    fprintf(out, "            at the model's %.0f MHz they take %s: %+.1f %%", json_get_number(root, "clock_mhz"),
            amount_time(at_us).s, 100 * (us / at_us - 1));
    if (fetch_us > 0) fprintf(out, "; %s of it to refill caches", amount_time(fetch_us).s);
    if (us > at_us && launches > 0)
        fprintf(out, "; each of %lld launches %s more among the others", (long long)launches,
                amount_time((us - at_us) / (double)launches).s);
    fputc('\n', out);
}

static double off(const json_t *one) {
    return json_get_positive(one, "default_us") - json_get_positive(one, "default_sum_us");
}

/* Those that differ most, in the time of the model. */
static void show_differences(FILE *out, arena *a, const json_t *list) {
    const json_t *shown[WORST];
    for (int k = 0; k < WORST; k++) {
        shown[k] = NULL;
        for (size_t n = 0; n < json_array_size(list); n++) {
            const json_t *one = json_array_get(list, n);
            bool taken = !isfinite(off(one));
            for (int before = 0; before < k; before++) taken = taken || shown[before] == one;
            if (!taken && (!shown[k] || fabs(off(one)) > fabs(off(shown[k])))) shown[k] = one;
        }
        if (!shown[k]) return;
        if (k == 0) fputs("  in place, against what was expected:\n", out);
        fprintf(out, "    %s  %s instead of %s\n", plain_cell(a, json_get_text(shown[k], "operation"), 64),
                amount_time(json_get_positive(shown[k], "default_us")).s,
                amount_time(json_get_positive(shown[k], "default_sum_us")).s);
    }
}

static void show_left_out(FILE *out, arena *a, const json_t *list, const char *what) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const double us = fmax(json_get_positive(one, "sum_us"), json_get_positive(one, "least_us"));
        fprintf(out, "  %s: %s%s%s: %s\n", what, plain_cell(a, json_get_text(one, "operation"), 64), us > 0 ? ", " : "",
                us > 0 ? amount_time(us).s : "", plain_cell(a, json_get_text(one, "text"), 200));
    }
}

static void show_turned(FILE *out, const json_t *root) {
    const json_t *regions = json_object_get(root, "turned");
    size_t count = 0;
    for (size_t k = 0; k < json_array_size(regions); k++) count += json_array_size(json_array_get(regions, k));
    if (count > 0)
        fprintf(out, "  turned    %zu operations run with their channels last, behind %zu conversion%s\n", count,
                json_array_size(json_object_get(root, "conversions")),
                json_array_size(json_object_get(root, "conversions")) == 1 ? "" : "s");
}

void show_plan(FILE *out, arena *a, const json_t *root) {
    const json_t *list = json_object_get(root, "left_out");
    show_turned(out, root);
    const size_t count = json_array_size(list);
    for (size_t k = 0; k < count && k < WORST; k++) {
        const json_t *one = json_array_get(list, k);
        fprintf(out, "  not in the plan: %s: %s\n", plain_cell(a, json_get_text(one, "fusion"), 64),
                plain_cell(a, json_get_text(one, "text"), 200));
    }
    if (count > WORST) fprintf(out, "  and %zu more (plan.json)\n", count - WORST);
}

static void show_groups(FILE *out, const json_t *groups) {
    const int64_t operations = json_get_int(groups, "operations", 0), fused = json_get_int(groups, "fused", 0);
    if (operations > 0)
        fprintf(out, "  groups    %lld operations in %lld groups, %lld fused\n", (long long)operations,
                (long long)json_get_int(groups, "groups", 0), (long long)fused);
}

void show_whole(FILE *out, arena *a, const json_t *root) {
    const json_t *memory = json_object_get(root, "memory"), *bound = json_object_get(root, "bound"),
                 *best = json_object_get(root, "best");
    const json_t *first = json_object_get(root, "default");
    fputs("the model, measured as a whole\n", out);
    show_time_of(out, "defaults", first);
    show_rest(out, root, first, json_get_int(root, "launches", 0));
    if (json_is_object(best)) {
        show_time_of(out, json_is_true(json_object_get(root, "given")) ? "given" : "plan", best);
        show_rest(out, root, best, 0);
        const double ratio = json_get_positive(root, "ratio"), ci = json_get_number(root, "ratio_ci");
        fprintf(out, "  ratio     %.4f %s%s\n", ratio, amount_within(ci).s,
                json_is_true(json_object_get(root, "elsewhere")) ? ": it computes other numbers, so no gain is proven"
                : ratio * (1 + ci) < 1                           ? ""
                                                                 : ": as a whole no gain is proven");
    }
    show_groups(out, json_object_get(root, "groups"));
    fprintf(out, "  memory    weights %s, activations %s (at least %s); %lld of %lld tensors found in the dataflow\n",
            amount_bytes(fmax(json_get_number(memory, "weight_bytes"), 0)).s,
            amount_bytes(fmax(json_get_number(memory, "activation_bytes"), 0)).s,
            amount_bytes(fmax(json_get_number(memory, "activation_least_bytes"), 0)).s,
            (long long)json_get_int(bound, "found", 0), (long long)json_get_int(bound, "of", 0));
    if (json_get_int(memory, "weights_shared", 0) > 0)
        fprintf(out, "            memory is short: occurrences of an operation share %lld weights\n",
                (long long)json_get_int(memory, "weights_shared", 0));
    const json_t *ends = json_object_get(root, "ends");
    const double error = json_get_number(ends, "error");
    const double part = json_get_positive(ends, "part"); /* absent: all */
    if (ends && isfinite(error))
        fprintf(out, "  outputs   off by %.2g of their norm from those by defaults%s\n", error,
                part > 0 ? arena_printf(a, ", in the %.3g %% that were compared", 100 * part) : "");
    if (ends && !isfinite(error)) fputs("  outputs   infinite or no numbers, where those by defaults are not\n", out);
    const json_t *exact = json_object_get(root, "exact");
    if (json_object_get(exact, "not")) fprintf(out, "  fp32      not compared: %s\n", json_get_text(exact, "not"));
    const double planned = json_get_number(exact, "best"); /* absent: infinite */
    if (json_object_get(exact, "worse"))
        fprintf(out, "  fp32      the plan is off by %.2g of the norm of its outputs, the defaults by %.2g%s\n",
                isfinite(planned) ? planned : INFINITY, json_get_number(exact, "default"),
                json_is_true(json_object_get(exact, "worse")) ? ": the plan is not to be taken" : "");
    const int64_t nonfinite = json_get_int(root, "nonfinite", 0);
    if (nonfinite > 0)
        fprintf(out, "  numbers   %lld that it ends in are infinite or none: its weights are made up\n",
                (long long)nonfinite);
    show_differences(out, a, json_object_get(root, "operations"));
    show_left_out(out, a, json_object_get(root, "left_out"), "left out");
    show_left_out(out, a, json_object_get(root, "as_default"), "by its default");
    show_left_out(out, a, json_object_get(root, "apart"), "by its parts");
}
