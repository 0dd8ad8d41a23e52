/* analyze export: what was measured, in the tuning files of other programs; and which of such files one lacks. */
#include "analyze/command.h"

#include "analyze/export/export.h"
#include "analyze/export/missing.h"
#include "analyze/study/study.h"
#include "common/version.h"

#include <string.h>

enum { MOST_FOLDERS = 1024, CONSUMER_ROOM = 64 };

typedef struct settings {
    const char *output, *consumer;
    missing_request missing;
    verdict_thresholds thresholds;
    cli_positionals words; /* a format, then folders; a model with --missing */
} settings;

static bool set_consumer(void *destination, const char *argument, status *st) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_";
    const size_t n = strlen(argument);
    ((settings *)destination)->consumer = argument;
    if (n > 0 && n < CONSUMER_ROOM && strspn(argument, letters) == n) return true;
    return status_fail(st, STATUS_USAGE, "--consumer: a version such as 2.15.0, at most %d letters, digits and .+-_",
                       CONSUMER_ROOM - 1);
}

static bool add_configs(void *destination, const char *argument, status *st) {
    missing_request *const m = &((settings *)destination)->missing;
    if (*argument && m->folder_count < MISSING_FOLDERS) {
        m->folders[m->folder_count++] = argument;
        return true;
    }
    return status_fail(st, STATUS_USAGE, "--configs: a folder, at most %d of them", MISSING_FOLDERS);
}

#define AT(field) offsetof(settings, field)

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "OUT",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write to this file instead of standard output"},
    {.name = "consumer",
     .argument = "VERSION",
     .kind = CLI_CALL,
     .call = set_consumer,
     .help = "version of the program that reads the file, where the format holds one: 2.15.0"},
    {.name = "missing",
     .argument = "PROGRAM",
     .kind = CLI_CHOICE,
     .offset = AT(missing.program),
     .choices = missing_programs,
     .help = "say instead which tuning files a deployment of MODEL by this program lacks: vllm. MODEL is a "
             "config.json, or its folder"},
    {.name = "device",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(missing.device),
     .help = "with --missing: the GPU, as the driver names it: \"NVIDIA H200\""},
    {.name = "configs",
     .argument = "FOLDER",
     .kind = CLI_CALL,
     .call = add_configs,
     .help = "with --missing: vLLM's own folder, or one of tuning files (VLLM_TUNED_CONFIG_FOLDER); repeatable"},
    {.name = "tensor-parallel",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(missing.tensor_parallel),
     .min = 1,
     .max = 1024,
     .help = "with --missing: over how many GPUs each layer is spread (1)"},
    {.name = "expert-parallel",
     .kind = CLI_FLAG,
     .offset = AT(missing.expert_parallel),
     .help = "with --missing: these GPUs share the experts instead of cutting each of them"},
    THRESHOLDS_OPTION(settings, thresholds, ceiling, "ceiling",
                      "efficiency from which on a library is at its ceiling, a fraction (0.9)"),
    THRESHOLDS_OPTION(settings, thresholds, margin, "margin",
                      "least fraction of the default's time that a replacement must save (0.02)"),
};

static const char about[] =
    "Writes what was measured as the tuning file of another program. DIR is a model's folder or a folder of "
    "reports.\nOperations that the other program cannot run, or cannot tell apart, are left out and counted in a "
    "line.\n"
    "\n"
    "formats:\n"
    "  tunableop  the results of PyTorch's TunableOp (CSV): an algorithm of cuBLASLt for a product. Needs --consumer\n"
    "  inductor   torch.compile's lookup table (JSON): products that need no tuning, for the library is at its "
    "ceiling\n"
    "  triton     a Python module for kernels in Triton: which blocks to try, and where tuning gains nothing";

static const char after[] =
    "examples:\n"
    "  analyze export tunableop out/bert --consumer 2.15.0 -o tunableop_results0.csv\n"
    "  analyze export inductor out/bert -o table.json\n"
    "  analyze export triton out/bert -o scout_triton.py\n"
    "  analyze export --missing vllm Mixtral-8x7B --device 'NVIDIA H200' --tensor-parallel 2 --configs lib/vllm\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but nothing could be told in this format, or tuning files are missing, or reports were left out\n"
    "  2  wrong usage\n"
    "  3  there are no reports, or they differ in device class, regime or method; a config.json that is not known\n"
    "  4  memory, disk or another condition of this machine\n";

typedef struct run {
    const settings *s;
    const export_format *format;
    const study *data;
    arena a;
    status *st;
    status_code code;
} run;

static void work(void *context) {
    run *const r = context;
    const char *const out = r->s->output;
    export_all x;
    export_make(r->format, &r->data->groups[0], r->s->consumer, &x, &r->a);
    const char *const left_out = export_left_out(&x);
    if (!export_formats_put(r->format, &x, out, r->st)) {
        r->code = r->st->code;
        return;
    }
    if (out) status_print(stdout, out, NULL, arena_printf(&r->a, "%zu entries for %s", x.count, r->format->name));
    if (*left_out) status_print(stderr, "analyze", "left out: ", left_out);
    r->code = x.count == 0 || r->data->skipped_count > 0 ? STATUS_INCOMPLETE : STATUS_OK;
}

static status_code write_all(run *r) {
    const settings *const s = r->s;
    if (r->data->group_count != 1 || r->data->groups[0].count == 0)
        return status_set(r->st, STATUS_INPUT, "%s: holds no report of an operation; run scout_batch first",
                          s->words.items[1]);
    if (s->output && study_is_report(&r->data->groups[0], s->output))
        return status_set(r->st, STATUS_USAGE, "%s is one of the reports; name another file", s->output);
    return arena_within(&r->a, work, r, r->st) ? r->code : r->st->code;
}

static status_code export_reports(const settings *s, status *st) {
    study data;
    const study_options with = {.folders = s->words.items + 1,
                                .folder_count = s->words.count - 1,
                                .thresholds = s->thresholds,
                                .told = left_out_tell,
                                .instead = "export each by itself, from its own folder"};
    run r = {.s = s, .data = &data, .st = st};
    char names[200] = "";
    for (const export_format *f = export_formats; f->name; f++) {
        const size_t used = strlen(names);
        if (strcmp(f->name, s->words.items[0]) == 0) r.format = f;
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", f->name);
    }
    if (!r.format) return status_set(st, STATUS_USAGE, "%s: no such format; there are %s", s->words.items[0], names);
    if (with.folder_count == 0) return status_set(st, STATUS_USAGE, "no folder of reports is named; give DIR");
    if (r.format->consumer && !s->consumer)
        return status_set(st, STATUS_USAGE, "%s: the file holds the version of %s; give --consumer VERSION",
                          r.format->name, r.format->consumer);
    if (!r.format->consumer && s->consumer)
        return status_set(st, STATUS_USAGE, "%s: the file holds no version of its reader; leave --consumer out",
                          r.format->name);
    if (s->missing.device || s->missing.folder_count || s->missing.expert_parallel || s->missing.tensor_parallel > 1)
        return status_set(st, STATUS_USAGE,
                          "--device, --configs, --tensor-parallel and --expert-parallel go with --missing");
    if (!study_open(&data, &with, st)) return st->code;
    const status_code code = write_all(&r);
    left_out_tell(data.skipped, data.skipped_count);
    study_close(&data);
    return code;
}

static status_code say_missing(const settings *s, status *st) {
    if (s->words.count != 1)
        return status_set(st, STATUS_USAGE, "--missing takes one MODEL, a config.json or its folder");
    if (s->consumer || s->output)
        return status_set(st, STATUS_USAGE, "--missing prints a list; leave -o and --consumer out");
    return missing_say(&s->missing, s->words.items[0], stdout, st);
}

status_code command_export(int argc, char **argv, status *st) {
    static const char *words[MOST_FOLDERS + 1];
    settings s = {.thresholds = verdict_defaults, .words.items = words, .missing.tensor_parallel = 1};
    const cli_spec spec = {
        .program = "analyze export",
        .version = version_text,
        .usage = "FORMAT DIR... [-o OUT] [--consumer VERSION] | --missing vllm MODEL --device NAME --configs FOLDER",
        .about = about,
        .after = after,
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "FORMAT, DIR or MODEL",
        .least = 1,
        .most = MOST_FOLDERS + 1,
        .positionals = AT(words),
    };
    if (cli_parse(&spec, argc, argv, &s, st) != CLI_RUN) return st->code;
    return s.missing.program ? say_missing(&s, st) : export_reports(&s, st);
}
