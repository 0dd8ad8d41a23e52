/* Owns the command line: the table of options, and what their values stand for. */
#include "scout/run/options.h"

#include "common/version.h"
#include "scout/device/plugins.h"
#include "scout/measure/measure_key.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", NULL};
static const char *const blocks[] = {"16", "32", "64", "128", NULL};
static const char *const patterns[] = {"BLOCK_SPARSE", "STRUCTURED_24", "UNSTRUCTURED", NULL};

static const char about[] =
    "Measures how fast the operations of a model run on this device and how fast they could run, and writes one\n"
    "report per operation to DIR/reports, and one per fusion to DIR/fusions. Inputs: an ops.json of extract_ops, its\n"
    "short form written by hand, or one operation by --op and --shape.";

static const char after[] =
    "examples:\n"
    "  scout_batch out/bert/ops.json -o out/bert            every operation of a model\n"
    "  scout_batch out/bert/ops.json -o out/bert --resume   go on where a run was stopped\n"
    "  scout_batch --op gemm --shape 4096,11008,4096 --precision fp16\n"
    "  scout_batch --op gemm --shape 1..4096:x2,4096,4096 --precision fp16 -o out/sweep\n"
    "  scout_batch --op gemm --shape 8192,8192,147456 --precision fp16 --k-sweep -o report.json\n"
    "  scout_batch --op attention --shape 1,32,2048,128 --causal --kv-heads 8 --precision fp16\n"
    "  scout_batch --op attention --shape 1,16,4096,128 --set block_mask=local,0.25 --precision fp16\n"
    "  scout_batch --op conv --shape 1,64,112,112 --set input=1,3,224,224 --set kernel=7,7 --set stride=2,2 \\\n"
    "      --set pads=3,3,3,3\n"
    "  scout_batch --op gemm --shape 4,4096,4096 --custom-kernel ./mine.so --compare    keep or revert?\n"
    "  scout_batch --ceilings --device cuda:0               the ceilings of the device\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but some operation has no figure, a candidate failed (WRONG, CRASHED, TIMEOUT, ERROR), with\n"
    "     --strict a time is not good (see --target-ci), or the run was interrupted (--resume continues)\n"
    "  2  wrong usage\n"
    "  3  the operations or their file are invalid\n"
    "  4  the device, memory, disk or another condition of this machine\n"
    "  5  --compare says revert\n";

static bool append(const char ***list, int *count, const char *argument, status *st) {
    const char **more = realloc(*list, ((size_t)*count + 1) * sizeof *more);
    if (!more) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    *list = more;
    more[(*count)++] = argument;
    return true;
}

static bool take_plugin(void *destination, const char *argument, status *st) {
    options *o = destination;
    if (plugins_file_is_path(argument)) return append(&o->plugins, &o->plugin_count, argument, st);
    return status_fail(st, STATUS_USAGE, "--custom-kernel: %s is not a path; give ./%s if it is here", argument,
                       argument);
}

static bool take_axis(void *destination, const char *argument, status *st) {
    options *o = destination;
    const char *equals = strchr(argument, '=');
    if (equals && equals > argument && equals[1]) return append(&o->axes, &o->axes_count, argument, st);
    return status_fail(st, STATUS_USAGE, "--axis: '%s' is not of the form NAME=VALUES, such as M=1,16,64", argument);
}

static bool take_set(void *destination, const char *argument, status *st) {
    options *o = destination;
    const char *equals = strchr(argument, '=');
    if (equals && equals > argument && equals[1]) return append(&o->sets, &o->sets_count, argument, st);
    return status_fail(st, STATUS_USAGE, "--set: '%s' is not of the form NAME=VALUE, such as kernel=3,3", argument);
}

static bool take_causal(void *destination, const char *argument, status *st) {
    options *o = destination;
    (void)argument;
    return append(&o->sets, &o->sets_count, "causal=true", st);
}

static bool take_kv_heads(void *destination, const char *argument, status *st) {
    options *o = destination;
    const size_t room = strlen(argument) + sizeof "kv_heads=";
    if (o->kv_heads) return status_fail(st, STATUS_USAGE, "--kv-heads is given twice");
    o->kv_heads = malloc(room);
    if (!o->kv_heads) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    snprintf(o->kv_heads, room, "kv_heads=%s", argument);
    return append(&o->sets, &o->sets_count, o->kv_heads, st);
}

static bool take_counters(void *destination, const char *argument, status *st) {
    options *o = destination;
    const char *equals = strchr(argument, '=');
    if (equals && equals > argument && equals[1]) return append(&o->counters, &o->counters_count, argument, st);
    return status_fail(st, STATUS_USAGE, "--counters: '%s' is not of the form ROW=FILE, such as best=ncu.csv",
                       argument);
}

/* "2%" or 0.02. */
static bool take_target(void *destination, const char *argument, status *st) {
    options *o = destination;
    char *end = NULL;
    const double x = strtod(argument, &end);
    o->target_ci = strcmp(end, "%") == 0 ? x / 100 : *end ? -1 : x;
    if (end != argument && !strpbrk(argument, "xX ") && o->target_ci >= 0.0001 && o->target_ci <= 0.5) return true;
    return status_fail(st, STATUS_USAGE, "--target-ci: '%s' is not a half width from 0.01%% to 50%%; write 2%%",
                       argument);
}

#define AT(field) offsetof(options, field)

static const cli_option rows[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write DIR/reports, DIR/fusions and DIR/run.json; a name that ends in .json receives a single report"},
    {.name = "op",
     .argument = "KIND",
     .kind = CLI_TEXT,
     .offset = AT(op),
     .help = "measure one operation: gemm, attention, layernorm, …"},
    {.name = "shape",
     .argument = "N,N,…",
     .kind = CLI_TEXT,
     .offset = AT(shape),
     .help = "shape of --op; M,N,K for a gemm; 1..4096:x2 in a number's place measures 1, 2, 4, … 4096"},
    {.name = "axis",
     .argument = "NAME=V,V,…",
     .kind = CLI_CALL,
     .call = take_axis,
     .help = "measure --op for each of these: M=1,16,64, kv_len=512..8192:x2, kernel=3,3;5,5 (semicolons between "
             "lists); repeatable"},
    {.name = "set",
     .argument = "NAME=VALUE",
     .kind = CLI_CALL,
     .call = take_set,
     .help = "what else --op is, by its names in docs/formats.md: input=1,3,224,224, kv_heads=8, bias=n; repeatable"},
    {.name = "causal",
     .kind = CLI_CALL,
     .call = take_causal,
     .help = "with --op attention: a query sees no later key; as --set causal=true"},
    {.name = "kv-heads",
     .argument = "N",
     .kind = CLI_CALL,
     .call = take_kv_heads,
     .help = "with --op attention: heads of keys and values; as --set kv_heads=N"},
    {.name = "precision",
     .argument = "P",
     .kind = CLI_CHOICE,
     .choices = precisions,
     .offset = AT(precision),
     .help = "precision of --op, and of a file that gives none: fp32 (the default), tf32, fp16, bf16, fp8, int8, int4"},
    {.name = "sparsity",
     .argument = "X",
     .kind = CLI_REAL,
     .max = 1,
     .offset = AT(sparsity),
     .help = "fraction of zeros in the weight of --op"},
    {.name = "pattern",
     .argument = "NAME",
     .kind = CLI_CHOICE,
     .choices = patterns,
     .offset = AT(pattern),
     .help = "pattern of these zeros: BLOCK_SPARSE (the default), STRUCTURED_24, UNSTRUCTURED"},
    {.name = "sparse-block",
     .argument = "N",
     .kind = CLI_CHOICE,
     .choices = blocks,
     .offset = AT(block),
     .help = "block size of BLOCK_SPARSE: 16, 32, 64 (the default), 128"},
    {.name = "sparsity-sweep",
     .kind = CLI_FLAG,
     .offset = AT(sparsity_sweep),
     .help = "with --op gemm: measure it with 50 to 97 % zeros and print where sparse becomes faster than dense"},
    {.name = "weight-threshold",
     .argument = "X",
     .kind = CLI_REAL,
     .max = 1e6,
     .offset = AT(weight_threshold),
     .help = "report the block structure of weights as if values below X in magnitude were zero; the real weights are "
             "measured"},
    {.name = "device",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(devices),
     .help = "auto (a GPU if present, else the CPU), cpu, cuda:0, several as in cuda:0,1, a part of a name such as "
             "h200, or all"},
    {.name = "regime",
     .argument = "R",
     .kind = CLI_CHOICE,
     .choices = regime_load_names,
     .offset = AT(load),
     .help = "sustained (under load until the clock is steady; the default) or burst"},
    {.name = "cache",
     .argument = "STATE",
     .kind = CLI_CHOICE,
     .choices = regime_cache_names,
     .offset = AT(cache),
     .help = "model (weights cold, activations warm), cold or hot; the default is model for files, cold for --op"},
    {.name = "launch",
     .argument = "HOW",
     .kind = CLI_CHOICE,
     .choices = regime_launch_names,
     .offset = AT(launch),
     .help = "graph (the default) or direct"},
    {.name = "budget",
     .argument = "SECONDS",
     .kind = CLI_SECONDS,
     .max = 10000000,
     .offset = AT(budget_s),
     .help = "time limit of the run (90, 90s, 2m, 1h); large operations come early, and those not reached are SKIPPED"},
    {.name = "target-ci",
     .argument = "X%",
     .kind = CLI_CALL,
     .call = take_target,
     .help =
         "measure until a time is known to ± X %, in 26 passes at most, and call it good then (1 %, on a host 2 %)"},
    {.name = "min-time",
     .argument = "SECONDS",
     .kind = CLI_SECONDS,
     .max = 3600,
     .offset = AT(min_time_s),
     .help = "spend so long on the blocks of each operation and of what it is compared with, however narrow its "
             "interval is"},
    {.name = "quick",
     .kind = CLI_FLAG,
     .offset = AT(quick),
     .help = "first figures soon: --budget 20s --target-ci 5% --no-fusions; what is given beside it counts instead"},
    {.name = "exhaustive",
     .kind = CLI_FLAG,
     .offset = AT(exhaustive),
     .help = "measure every variant, and parts too, without early exit; with --ceilings, audit the search"},
    {.name = "early-exit",
     .argument = "X",
     .kind = CLI_REAL,
     .max = 1,
     .offset = AT(early_exit),
     .help = "skip low-priority candidates once the best reaches this fraction of the ceiling (0.97)"},
    {.name = "only",
     .argument = "ID|KIND",
     .kind = CLI_TEXT,
     .offset = AT(only),
     .help =
         "measure only this operation (id or name), this kind, this fusion (id or pattern), or all fusions (fusion)"},
    {.name = "candidate",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(candidate),
     .help = "measure only the baseline and these candidates (separated by commas)"},
    {.name = "no-fusions",
     .kind = CLI_FLAG,
     .offset = AT(no_fusions),
     .help = "do not measure the fusions of an ops.json"},
    {.name = "no-replay",
     .kind = CLI_FLAG,
     .offset = AT(no_replay),
     .help = "do not measure the model as a whole when its operations are measured"},
    {.name = "replay",
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(replay),
     .help = "measure the model of DIR, whose operations are measured, as a whole: by the defaults and by the "
             "cheapest plan; writes DIR/model.json and DIR/plan.json"},
    {.name = "plan",
     .argument = "FILE",
     .kind = CLI_FILE,
     .offset = AT(plan),
     .help = "with --replay: the plan of this plan.json instead of the cheapest by the reports; what is written says "
             "that it was given"},
    {.name = "resume",
     .kind = CLI_FLAG,
     .offset = AT(resume),
     .help = "keep the reports in DIR that were measured with the same settings, and measure the rest"},
    {.name = "no-wait",
     .kind = CLI_FLAG,
     .offset = AT(no_wait),
     .help = "fail where another run is writing to DIR or measuring on the device, instead of waiting for its end"},
    {.name = "no-cache",
     .kind = CLI_FLAG,
     .offset = AT(no_cache),
     .help = "measure again instead of taking operations (with --ceilings: ceilings) from the cache"},
    {.name = "cache-dir",
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(cache_dir),
     .help = "folder of the cache, instead of $XDG_CACHE_HOME/ceiling-scout"},
    {.name = "k-sweep",
     .kind = CLI_FLAG,
     .offset = AT(k_sweep),
     .help = "with --op gemm or --ceilings: measure K from 65536 to 262144 and print it"},
    {.name = "table",
     .kind = CLI_FLAG,
     .offset = AT(table),
     .help = "print a table of all variants of each operation: time, interval, rates, ratio to the baseline"},
    {.name = "samples",
     .argument = "FILE",
     .kind = CLI_FILE,
     .offset = AT(samples),
     .help = "write the time of every block of this run to FILE as CSV; operations do not come from the cache then"},
    {.name = "strict",
     .kind = CLI_FLAG,
     .offset = AT(strict),
     .help =
         "exit with 1 also where a time is not good: its interval is wider than 1 %, on a host 2 %, or --target-ci"},
    {.name = "library-path",
     .argument = "DIRS",
     .kind = CLI_TEXT,
     .offset = AT(library_path),
     .help = "folders to search first for libraries, separated by colons"},
    {.name = "custom-kernel",
     .argument = "FILE",
     .kind = CLI_CALL,
     .call = take_plugin,
     .help = "add the candidates or the device of this shared object, such as ./mine.so; repeatable"},
    {.name = "compare",
     .kind = CLI_FLAG,
     .offset = AT(compare),
     .help = "measure only the baseline (before) and the custom kernels or --candidate (after), and decide: keep or "
             "revert"},
    {.name = "before",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(before),
     .help = "with --compare: take this candidate, or the default of this library (cublas, cudnn, onednn), as before"},
    {.name = "run-once",
     .argument = "ROW",
     .kind = CLI_TEXT,
     .offset = AT(run_once),
     .help = "for a profiler: launch this row a few times and measure nothing; ROW is best, baseline (of DIR's report) "
             "or NAME:VARIANT"},
    {.name = "counters",
     .argument = "ROW=FILE",
     .kind = CLI_CALL,
     .call = take_counters,
     .help = "add the output of ncu --csv for such a run to DIR's report (scripts/profile_ncu.sh does both)"},
    {.name = "ceilings",
     .kind = CLI_FLAG,
     .offset = AT(ceilings),
     .help = "measure and print the ceilings of the device"},
    {.name = "list-devices", .kind = CLI_FLAG, .offset = AT(list_devices), .help = "print the devices and exit"},
    {.name = "list-candidates",
     .kind = CLI_FLAG,
     .offset = AT(list_candidates),
     .help = "print the known implementations and exit"},
    {.name = "cache-info",
     .kind = CLI_FLAG,
     .offset = AT(cache_info),
     .help = "print the contents of the cache and exit"},
    {.name = "doctor",
     .kind = CLI_FLAG,
     .offset = AT(doctor),
     .help = "say whether this machine can measure, what makes its figures worse, and what to do about it"},
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .offset = AT(quiet), .help = "print nothing but errors"},
    {.name = "worker",
     .argument = "IN,OUT",
     .kind = CLI_TEXT,
     .offset = AT(worker)}, /* how it starts its own workers */
};

/* ---- values ---- */

/* Two descriptors, as the supervisor writes them. */
static bool read_worker(options *o, status *st) {
    char end = 0;
    if (sscanf(o->worker, "%d,%d%c", &o->worker_in, &o->worker_out, &end) == 2 && o->worker_in >= 0 &&
        o->worker_out >= 0)
        return true;
    return status_fail(st, STATUS_USAGE, "--worker: '%s' is not of the form IN,OUT", o->worker);
}

static int index_of(const char *const *names, const char *name, int otherwise) {
    for (int k = 0; name && names[k]; k++)
        if (strcmp(names[k], name) == 0) return k;
    return otherwise;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static void fill_defaults(options *o) {
    o->regime.load = (regime_load)index_of(regime_load_names, o->load, REGIME_SUSTAINED);
    o->regime.cache =
        (regime_cache)index_of(regime_cache_names, o->cache,
                               o->mode == OPTIONS_BATCH || o->mode == OPTIONS_REPLAY ? REGIME_MODEL : REGIME_COLD);
    o->regime.launch = (regime_launch)index_of(regime_launch_names, o->launch, REGIME_GRAPH);
    if (!o->devices) o->devices = "auto";
    if (o->block) o->sparse_block = strtol(o->block, NULL, 10);
    if (o->early_exit < 0) o->early_exit = measure_key_early_exit;
    if (o->quick && o->budget_s < 0) o->budget_s = 20;
    if (o->quick && o->target_ci == 0) o->target_ci = 0.05;
    o->no_fusions = o->no_fusions || o->quick;
    if (o->budget_s < 0) o->budget_s = 0;
    if (o->min_time_s < 0) o->min_time_s = 0;
}

static bool finish(options *o, status *st) {
    struct stat found;
    o->sweep = o->axes_count > 0 || (o->shape && strstr(o->shape, ".."));
    if (o->files.count > 0) o->ops_path = o->files.items[0];
    if (o->shape && !o->op) return status_fail(st, STATUS_USAGE, "--shape needs --op, the kind of the operation");
    if (!options_check_mode(o, st)) return false;
    if (o->output)
        o->output_is_file = ends_with(o->output, ".json") && !(stat(o->output, &found) == 0 && S_ISDIR(found.st_mode));
    if (options_check_needs(o, st) != STATUS_OK) return false;
    if (o->worker && !read_worker(o, st)) return false;
    fill_defaults(o);
    return true;
}

cli_result options_parse(int argc, char **argv, options *o, status *st) {
    const char *file = NULL;
    const cli_spec spec = {
        .program = "scout_batch",
        .version = version_text,
        .usage = "OPS.json -o DIR [--device D] [--regime sustained|burst] [--budget SECONDS] …\n"
                 "       scout_batch --op KIND --shape N,N,… --precision P [--k-sweep] [-o DIR]\n"
                 "       scout_batch --ceilings | --list-devices | --list-candidates | --cache-info | --doctor",
        .about = about,
        .after = after,
        .options = rows,
        .option_count = (int)(sizeof rows / sizeof rows[0]),
        .positional = "OPS.json",
        .most = 1,
        .positionals = AT(files),
    };
    *o = (options){.budget_s = -1, .early_exit = -1, .min_time_s = -1, .files.items = &file};
    const cli_result result = cli_parse(&spec, argc, argv, o, st);
    const bool good = result != CLI_RUN || finish(o, st);
    o->files.items = NULL; /* `file` ends here */
    return good ? result : CLI_WRONG;
}

void options_free(options *o) {
    free(o->plugins);
    free(o->counters);
    free(o->axes);
    free(o->sets);
    free(o->kv_heads);
    o->kv_heads = NULL;
    o->plugins = o->counters = o->axes = o->sets = NULL;
}
