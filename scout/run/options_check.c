/* Two tables: which options ask for what, and which go with it; and what an option needs beside itself. */
#include "scout/run/options.h"

#include <string.h>

static const struct {
    options_mode mode;
    const char *name;
} mode_names[] = {{OPTIONS_BATCH, "a file of operations"},
                  {OPTIONS_SINGLE, "--op"},
                  {OPTIONS_CEILINGS, "--ceilings"},
                  {OPTIONS_DEVICES, "--list-devices"},
                  {OPTIONS_CANDIDATES, "--list-candidates"},
                  {OPTIONS_CACHE, "--cache-info"},
                  {OPTIONS_DOCTOR, "--doctor"},
                  {OPTIONS_REPLAY, "--replay"},
                  {OPTIONS_WORKER, "--worker"}};

static const char *mode_name(options_mode mode) {
    size_t k = 0;
    while (mode_names[k].mode != mode && k + 1 < sizeof mode_names / sizeof mode_names[0]) k++;
    return mode_names[k].name;
}

static bool find_mode(options *o, status *st) {
    const struct {
        options_mode mode;
        bool given;
    } modes[] = {{OPTIONS_BATCH, o->ops_path != NULL},
                 {OPTIONS_SINGLE, o->op != NULL},
                 {OPTIONS_CEILINGS, o->ceilings},
                 {OPTIONS_DEVICES, o->list_devices},
                 {OPTIONS_CANDIDATES, o->list_candidates},
                 {OPTIONS_CACHE, o->cache_info},
                 {OPTIONS_DOCTOR, o->doctor},
                 {OPTIONS_REPLAY, o->replay != NULL},
                 {OPTIONS_WORKER, o->worker != NULL}};
    for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++) {
        if (!modes[k].given) continue;
        if (o->mode)
            return status_fail(st, STATUS_USAGE, "%s and %s do not go together; give one of them", mode_name(o->mode),
                               mode_name(modes[k].mode));
        o->mode = modes[k].mode;
    }
    if (o->mode) return true;
    return status_fail(st, STATUS_USAGE,
                       "nothing to measure; give an OPS.json, or --op and --shape (scout_batch --help)");
}

static bool check_modes(const options *o, status *st) {
    enum { RUNS = OPTIONS_BATCH | OPTIONS_SINGLE, MEASURES = RUNS | OPTIONS_CEILINGS };
    enum { LOADS = MEASURES | OPTIONS_REPLAY | OPTIONS_DEVICES | OPTIONS_CANDIDATES | OPTIONS_WORKER | OPTIONS_DOCTOR };
    const struct {
        const char *name;
        bool given;
        int modes;
    } uses[] = {
        {"output", o->output != NULL, MEASURES | OPTIONS_DOCTOR},
        {"shape", o->shape != NULL, OPTIONS_SINGLE},
        {"axis", o->axes_count > 0, OPTIONS_SINGLE},
        {"set", o->sets_count > 0, OPTIONS_SINGLE},
        {"precision", o->precision != NULL, MEASURES},
        {"sparsity", o->sparsity > 0, OPTIONS_SINGLE},
        {"pattern", o->pattern != NULL, OPTIONS_SINGLE},
        {"sparse-block", o->block != NULL, OPTIONS_SINGLE},
        {"sparsity-sweep", o->sparsity_sweep, OPTIONS_SINGLE},
        {"weight-threshold", o->weight_threshold > 0, RUNS},
        {"device", o->devices != NULL, MEASURES | OPTIONS_DEVICES | OPTIONS_DOCTOR | OPTIONS_REPLAY},
        {"regime", o->load != NULL, MEASURES | OPTIONS_DEVICES}, /* whether they are right, before a run is begun */
        {"cache", o->cache != NULL, RUNS},
        {"launch", o->launch != NULL, MEASURES},
        {"budget", o->budget_s >= 0, MEASURES | OPTIONS_DEVICES | OPTIONS_REPLAY},
        {"target-ci", o->target_ci > 0, RUNS | OPTIONS_DEVICES | OPTIONS_REPLAY},
        {"min-time", o->min_time_s >= 0, RUNS | OPTIONS_DEVICES},
        {"quick", o->quick, RUNS | OPTIONS_DEVICES},
        {"exhaustive", o->exhaustive, MEASURES},
        {"early-exit", o->early_exit >= 0, RUNS},
        {"only", o->only != NULL, OPTIONS_BATCH},
        {"candidate", o->candidate != NULL, RUNS},
        {"no-fusions", o->no_fusions, OPTIONS_BATCH},
        {"no-replay", o->no_replay, OPTIONS_BATCH},
        {"plan", o->plan != NULL, OPTIONS_REPLAY},
        {"resume", o->resume, OPTIONS_BATCH},
        {"no-wait", o->no_wait, MEASURES | OPTIONS_REPLAY},
        {"no-cache", o->no_cache, MEASURES},
        {"cache-dir", o->cache_dir != NULL, MEASURES | OPTIONS_CACHE | OPTIONS_DOCTOR | OPTIONS_REPLAY},
        {"k-sweep", o->k_sweep, OPTIONS_SINGLE | OPTIONS_CEILINGS},
        {"table", o->table, RUNS},
        {"samples", o->samples != NULL, RUNS},
        {"strict", o->strict, RUNS},
        {"library-path", o->library_path != NULL, LOADS},
        {"custom-kernel", o->plugin_count > 0, LOADS},
        {"compare", o->compare, RUNS},
        {"before", o->before != NULL, RUNS},
        {"run-once", o->run_once != NULL, OPTIONS_BATCH},
        {"counters", o->counters_count > 0, OPTIONS_BATCH},
    };
    for (size_t k = 0; k < sizeof uses / sizeof uses[0]; k++) {
        if (!uses[k].given || (uses[k].modes & (int)o->mode)) continue;
        return status_fail(st, STATUS_USAGE, "--%s has no effect with %s; leave it out", uses[k].name,
                           mode_name(o->mode));
    }
    return true;
}

bool options_check_mode(options *o, status *st) { return find_mode(o, st) && check_modes(o, st); }

status_code options_check_needs(const options *o, status *st) {
    if (o->mode == OPTIONS_SINGLE && !o->shape)
        return status_set(st, STATUS_USAGE, "--op needs --shape; of a gemm it is M,N,K");
    if (o->sparsity >= 1) return status_set(st, STATUS_USAGE, "--sparsity: a weight of zeros alone needs no work");
    if (o->weight_threshold > 0 && o->mode == OPTIONS_SINGLE && o->sparsity <= 0 && !o->sparsity_sweep)
        return status_set(st, STATUS_USAGE, "--weight-threshold needs a weight: a model's, or one of --sparsity");
    if (o->sparsity_sweep && strcmp(o->op, "gemm") != 0)
        return status_set(st, STATUS_USAGE, "--sparsity-sweep is for --op gemm; %s has no weight that can be sparse",
                          o->op);
    if (o->sparsity_sweep && (o->sparsity > 0 || o->k_sweep))
        return status_set(st, STATUS_USAGE, "--sparsity-sweep sets the fraction of zeros; leave %s out",
                          o->k_sweep ? "--k-sweep" : "--sparsity");
    if (o->sparsity_sweep && o->output_is_file)
        return status_set(st, STATUS_USAGE,
                          "--sparsity-sweep writes a report for each fraction of zeros; name a folder");
    if (o->sparsity_sweep && o->pattern && strcmp(o->pattern, "STRUCTURED_24") == 0)
        return status_set(st, STATUS_USAGE, "--sparsity-sweep: STRUCTURED_24 is always half zeros");
    if (o->sweep && (o->sparsity_sweep || o->k_sweep))
        return status_set(st, STATUS_USAGE, "--%s is for one shape; leave --axis and ranges out",
                          o->k_sweep ? "k-sweep" : "sparsity-sweep");
    if (o->sets_count > 0 && (o->sparsity_sweep || o->k_sweep))
        return status_set(st, STATUS_USAGE, "--%s is of plain products; leave --set out",
                          o->k_sweep ? "k-sweep" : "sparsity-sweep");
    if (o->sweep && o->output_is_file)
        return status_set(st, STATUS_USAGE, "--axis and ranges write a report for each shape; name a folder");
    if (o->pattern && o->sparsity <= 0 && !o->sparsity_sweep)
        return status_set(st, STATUS_USAGE, "--pattern needs --sparsity");
    if (o->block &&
        ((o->sparsity <= 0 && !o->sparsity_sweep) || (o->pattern && strcmp(o->pattern, "BLOCK_SPARSE") != 0)))
        return status_set(st, STATUS_USAGE, "--sparse-block needs --sparsity, and pattern BLOCK_SPARSE");
    if (o->k_sweep && o->mode == OPTIONS_SINGLE && strcmp(o->op, "gemm") != 0)
        return status_set(st, STATUS_USAGE, "--k-sweep is for --op gemm; %s has no K", o->op);
    if (o->resume && (!o->output || o->output_is_file))
        return status_set(st, STATUS_USAGE, "--resume needs -o DIR, the folder of the reports to keep");
    if ((o->run_once || o->counters_count > 0) && (!o->only || !o->output || o->output_is_file))
        return status_set(st, STATUS_USAGE,
                          "--run-once and --counters need --only ID and -o DIR, the folder of its report");
    if (o->before && !o->compare)
        return status_set(st, STATUS_USAGE, "--before has no effect without --compare; leave it out");
    if (o->compare && !o->candidate && o->plugin_count == 0)
        return status_set(st, STATUS_USAGE,
                          "--compare needs a candidate to compare: --custom-kernel FILE, or --candidate NAME");
    if (o->budget_s == 0)
        return status_set(st, STATUS_USAGE, "--budget: nothing can be measured in 0 seconds; write 90, 90s, 2m or 1h");
    return STATUS_OK;
}
