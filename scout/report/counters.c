/* What the figures of each kernel come to for a candidate, and the bottleneck that they speak for. The table itself is
 * read in counters_table.c. */
#include "scout/report/counters.h"

#include <math.h>
#include <string.h>

/* A unit that works at this part of what it can sustain is what the others wait for; below, nothing is. */
static const double busy_percent = 60;
static const double waiting_percent = 100.0 / 3; /* of held-back time at barriers, from which they are to blame */

static const double most_value = 1e15; /* more is no count of anything; sums of less stay numbers */

/* ---- what a metric's name stands for ---- */

enum { METRIC_TIME = COUNTERS_FIGURES, METRIC_HELD, METRIC_NONE }; /* after the figures themselves */

/* Where several are there (pipes of several types, names of several generations), the largest counts. */
static const struct {
    int what;
    const char *begin, *end;
} metrics[] = {
    {COUNTERS_WARPS, "sm__warps_active.avg.", "pct_of_peak_sustained_active"},
    {COUNTERS_TENSOR, "sm__pipe_tensor_", "cycles_active.avg.pct_of_peak_sustained_active"},
    {COUNTERS_TENSOR, "sm__inst_executed_pipe_tensor", ".avg.pct_of_peak_sustained_active"},
    {COUNTERS_DRAM, "dram__throughput.avg.", "pct_of_peak_sustained_elapsed"},
    {COUNTERS_DRAM, "gpu__dram_throughput.avg.", "pct_of_peak_sustained_elapsed"},
    {COUNTERS_L2, "lts__throughput.avg.", "pct_of_peak_sustained_elapsed"},
    {COUNTERS_L2, "lts__t_sectors.avg.", "pct_of_peak_sustained_elapsed"},
    {METRIC_TIME, "gpu__time_duration.sum", ""},
    {METRIC_NONE, "smsp__average_warps_issue_stalled_selected", ""},                           /* these run */
    {METRIC_NONE, "smsp__average_warps_issue_stalled_not_selected", ""},                       /* and these could */
    {METRIC_NONE, "smsp__average_warps_issue_stalled_", "_not_issued_per_issue_active.ratio"}, /* counted already */
    {COUNTERS_SYNCHRONISATION, "smsp__average_warps_issue_stalled_barrier", "_per_issue_active.ratio"},
    {COUNTERS_SYNCHRONISATION, "smsp__average_warps_issue_stalled_membar", "_per_issue_active.ratio"},
    {COUNTERS_SYNCHRONISATION, "smsp__average_warps_issue_stalled_sleeping", "_per_issue_active.ratio"},
    {METRIC_HELD, "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"},
};

static int metric_of(const char *name) {
    const size_t length = strlen(name);
    for (size_t k = 0; k < sizeof metrics / sizeof metrics[0]; k++) {
        const size_t begin = strlen(metrics[k].begin), end = strlen(metrics[k].end);
        if (length >= begin + end && strncmp(name, metrics[k].begin, begin) == 0 &&
            strcmp(name + length - end, metrics[k].end) == 0)
            return metrics[k].what;
    }
    return METRIC_NONE;
}

/* To microseconds, as ncu has spelled them over the years. */
static double time_unit(const char *unit) {
    static const struct {
        const char *name;
        double us;
    } units[] = {{"ns", 1e-3}, {"nsecond", 1e-3}, {"us", 1},  {"usecond", 1},
                 {"ms", 1e3},  {"msecond", 1e3},  {"s", 1e6}, {"second", 1e6}};
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++)
        if (strcmp(unit, units[k].name) == 0) return units[k].us;
    return NAN;
}

/* ---- over the kernels ---- */

typedef struct sums { /* of one kernel, then of all */
    double percent[COUNTERS_FIGURES], held, time_us;
} sums;

typedef struct totals {
    counters *out;
    sums kernel;
    char name[sizeof((counters *)0)->slowest];
    double most_us;
    double sum[COUNTERS_FIGURES], weight[COUNTERS_FIGURES];
} totals;

static const sums nothing = {.percent = {NAN, NAN, NAN, NAN, NAN}, .held = 0, .time_us = NAN};

/* The harness's own, which holds the stream until the host is ahead. */
static bool is_ours(const char *kernel) { return strncmp(kernel, "stream_delay", 12) == 0; }

static void take_metric(void *context, const char *metric, const char *unit, double value) {
    totals *t = context;
    const int what = metric_of(metric);
    if (what == METRIC_NONE || !(value >= 0 && value < most_value)) return;
    if (what == METRIC_TIME) {
        t->kernel.time_us = value * time_unit(unit);
    } else if (what == METRIC_HELD) {
        t->kernel.held += value;
    } else if (what == COUNTERS_SYNCHRONISATION) {
        t->kernel.held += value;
        t->kernel.percent[what] =
            fmax(t->kernel.percent[what], 0) + value; /* a sum: fmax leaves out what is no number */
    } else {
        t->kernel.percent[what] = fmax(t->kernel.percent[what], value);
    }
}

static void end_kernel(void *context, const char *name) {
    totals *t = context;
    sums *k = &t->kernel;
    const double weight = isfinite(k->time_us) && k->time_us > 0 ? k->time_us : 1;
    if (!is_ours(name)) {
        double *waiting = &k->percent[COUNTERS_SYNCHRONISATION];
        *waiting = k->held > 0 ? 100 * fmax(*waiting, 0) / k->held : NAN;
        t->out->kernels++;
        if (isfinite(k->time_us)) t->out->time_us += k->time_us;
        if (weight > t->most_us) {
            t->most_us = weight;
            snprintf(t->out->slowest, sizeof t->out->slowest, "%s", name);
        }
        for (int f = 0; f < COUNTERS_FIGURES; f++) {
            if (!isfinite(k->percent[f])) continue;
            t->sum[f] += weight * k->percent[f];
            t->weight[f] += weight;
        }
    }
    *k = nothing;
}

/* ---- what it says ---- */

static bool is_busy(double percent) { return percent >= busy_percent; }

static void say_latency(counters *c) {
    static const struct {
        counters_figure what;
        const char *name;
    } shown[] = {
        {COUNTERS_DRAM, "DRAM"}, {COUNTERS_L2, "L2"}, {COUNTERS_TENSOR, "tensor pipe"}, {COUNTERS_WARPS, "warps"}};
    size_t used = (size_t)snprintf(c->text, sizeof c->text, "nothing is near its peak");
    for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++) {
        const double x = c->percent[shown[k].what];
        if (!isfinite(x) || used >= sizeof c->text) continue;
        used += (size_t)snprintf(c->text + used, sizeof c->text - used, ", %s %.0f %%", shown[k].name, x);
    }
}

static void find_bottleneck(counters *c) {
    const double dram = c->percent[COUNTERS_DRAM], l2 = c->percent[COUNTERS_L2], tensor = c->percent[COUNTERS_TENSOR];
    const double waiting = c->percent[COUNTERS_SYNCHRONISATION], memory = fmax(dram, l2);
    if (is_busy(tensor) && !(memory > tensor)) {
        c->bottleneck = "tensor";
        snprintf(c->text, sizeof c->text, "the tensor pipe is busy for %.0f %% of the time", tensor);
    } else if (is_busy(memory)) {
        c->bottleneck = "memory";
        snprintf(c->text, sizeof c->text, "%s works at %.0f %% of its peak", l2 > dram || isnan(dram) ? "L2" : "DRAM",
                 memory);
    } else if (waiting >= waiting_percent) {
        c->bottleneck = "synchronisation";
        snprintf(c->text, sizeof c->text, "stalled warps wait at barriers for %.0f %% of that time", waiting);
    } else {
        c->bottleneck = "latency";
        say_latency(c);
    }
}

bool counters_read(char *text, size_t size, const char *name, counters *out, status *st) {
    *out = (counters){.bottleneck = ""};
    totals t = {.out = out, .kernel = nothing};
    const counters_table_reader reader = {&t, take_metric, end_kernel};
    if (!counters_table_read(text, size, name, &reader, st)) return false;
    bool any = false;
    for (int f = 0; f < COUNTERS_FIGURES; f++) {
        out->percent[f] = t.weight[f] > 0 ? t.sum[f] / t.weight[f] : NAN;
        any = any || (isfinite(out->percent[f]) && f != COUNTERS_SYNCHRONISATION && f != COUNTERS_WARPS);
    }
    if (out->kernels == 0)
        return status_fail(st, STATUS_INPUT, "%s: holds no kernel; ncu's message in it gives the reason", name);
    if (!any)
        return status_fail(st, STATUS_INPUT,
                           "%s: holds none of the counters that show a bottleneck; use scripts/profile_ncu.sh", name);
    find_bottleneck(out);
    return true;
}

json_t *counters_json(const counters *c, json_builder *b) {
    static const char *const names[COUNTERS_FIGURES] = {"warps_active_pct", "tensor_active_pct", "dram_pct", "l2_pct",
                                                        "synchronisation_pct"};
    json_t *to = json_new_object(b), *slowest = json_string(c->slowest);
    json_put_int(b, to, "kernels", c->kernels);
    if (c->time_us > 0) json_put_real(b, to, "time_us", c->time_us);
    json_put(b, to, "slowest", slowest ? slowest : json_string("a name that is not a string"));
    for (int f = 0; f < COUNTERS_FIGURES; f++)
        if (isfinite(c->percent[f])) json_put_real(b, to, names[f], c->percent[f]);
    json_put_text(b, to, "bottleneck", c->bottleneck);
    json_put_text(b, to, "text", c->text);
    return to;
}
