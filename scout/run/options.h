/* The command line of scout_batch: what was asked, with defaults filled in and nonsense refused. */
#pragma once

#include "common/cli.h"
#include "scout/terms/regime.h"

typedef enum options_mode {
    OPTIONS_BATCH = 1,       /* OPS.json */
    OPTIONS_SINGLE = 2,      /* --op */
    OPTIONS_CEILINGS = 4,    /* --ceilings */
    OPTIONS_DEVICES = 8,     /* --list-devices */
    OPTIONS_CANDIDATES = 16, /* --list-candidates */
    OPTIONS_CACHE = 32,      /* --cache-info */
    OPTIONS_WORKER = 64,     /* --worker */
    OPTIONS_DOCTOR = 128,    /* --doctor */
    OPTIONS_REPLAY = 256     /* --replay */
} options_mode;

/* Texts are borrowed from argv. */
typedef struct options {
    options_mode mode;
    const char *ops_path, *op, *shape, *precision, *pattern; /* NULL: not given */
    double sparsity, weight_threshold;                       /* 0: not given */
    long sparse_block;                                       /* 0: not given */
    const char *output;                                      /* NULL: nothing is written */
    bool output_is_file;                                     /* one report, or the ceilings; else a folder */
    const char *devices;                                     /* "auto" */
    const char *only;      /* id, name or kind of the operations that are asked for; NULL: all */
    const char *candidate; /* those beside the baseline, commas between; NULL: all */
    const char *before;    /* of a comparison, instead of the library's default; NULL: that */
    const char *cache_dir, *library_path;
    const char **plugins; /* owned: options_free */
    int plugin_count;
    const char *run_once; /* the row to launch for a profiler: best, baseline, NAME[:VARIANT]; NULL: none */
    const char **axes;    /* owned: NAME=VALUE,… */
    int axes_count;
    const char **sets; /* owned: NAME=VALUE */
    int sets_count;
    char *kv_heads;        /* owned: the one of --kv-heads */
    const char *replay;    /* the folder of a measured model; NULL: not asked */
    const char *plan;      /* the plan.json to replay; NULL: the cheapest */
    const char *samples;   /* every block that is timed, as CSV; NULL: not asked */
    bool sweep;            /* several operations of one kind: by --axis, or a range in --shape */
    const char **counters; /* owned: ROW=FILE */
    int counters_count;
    regime regime;
    double budget_s;   /* of the whole run; 0: none */
    double early_exit; /* fraction of the ceiling */
    double target_ci;  /* a time is good once it is known to this, relative; 0: as the method says */
    double min_time_s; /* that the blocks of an operation run at least; 0: as long as its figures need */
    bool exhaustive, no_cache, resume, k_sweep, sparsity_sweep, compare, no_fusions, no_replay, quiet;
    bool no_wait; /* where another run is at it already, this one fails */
    bool strict;  /* what is wide ends the run with 1 too */
    bool table;   /* all variants beside each other are printed */
    int worker_in, worker_out;

    /* as parsed */
    const char *load, *cache, *launch, *worker, *block;
    bool ceilings, list_devices, list_candidates, cache_info, doctor, quick;
    cli_positionals files;
} options;

/* CLI_RUN: o is whole. CLI_DONE: --help or --version was served. Owned in every case: options_free. */
cli_result options_parse(int argc, char **argv, options *o, status *st);
void options_free(options *o);

/* ---- options_check.c: which options go together ---- */

/* Finds o->mode. False: nothing is asked for, several things are, or an option has no effect with it. */
bool options_check_mode(options *o, status *st);
/* What options need beside themselves; after options_check_mode. */
status_code options_check_needs(const options *o, status *st);
