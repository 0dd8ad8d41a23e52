/* extract_ops: from options to a run to an exit code, and nothing else. */
#include "common/cli.h"
#include "common/files.h"
#include "common/version.h"
#include "extract/extract_run.h"
#include "extract/read/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    extract_options options;
    cli_bindings dims;
    const char *model_path, *config_path;
    config_run config;
    cli_positionals models;
} settings;

static const char *const precisions[] = {"model", "fp16", "bf16", "fp32", NULL};

static const int64_t most = (int64_t)1 << 40; /* a larger dimension is a slip of the finger */

#define AT(field) offsetof(settings, field)

static const char about[] =
    "Reads an ONNX model and writes every operation in it, with its shapes, its work and its bytes, to OPS.json.\n"
    "Weights are never read and may be missing. Without --quiet a table of the largest operations is printed.\n"
    "With --config there is no model: its operations follow from a config.json of transformers.";

static const char after[] =
    "examples:\n"
    "  extract_ops resnet50.onnx                                 only the table\n"
    "  extract_ops bert.onnx -o ops.json --batch 8 --seq 512     bind the usual symbols\n"
    "  extract_ops gpt2.onnx -o ops.json --dim past_length=63    any symbol by its name\n"
    "  extract_ops llama.onnx -o ops.json --precision bf16       count weights and activations as bfloat16\n"
    "  extract_ops --config config.json --tokens 1,16,2048 -o ops.json    three runs of a model that was never "
    "exported\n"
    "  extract_ops --config config.json --tokens 1 --past 2047 --batch 8  a step with 2,047 tokens in the cache\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but a shape is unresolved or an operator is unknown (ops.json lists both)\n"
    "  2  wrong usage\n"
    "  3  the model is invalid, or does not fit the given dimensions\n"
    "  4  memory, disk or another condition of this machine\n"
    "\n";

/* Numbers with commas between, each of them once. */
static bool read_tokens(void *destination, const char *argument, status *st) {
    config_run *run = &((settings *)destination)->config;
    run->token_count = 0;
    for (const char *at = argument;; at++) {
        char *end;
        errno = 0;
        const long long x = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (x < 1 || x > most || errno || (*end && *end != ','))
            return status_fail(st, STATUS_USAGE,
                               "--tokens must be whole numbers above 0 with commas between, not '%.60s'", argument);
        for (int k = 0; k < run->token_count; k++)
            if (run->tokens[k] == x) return status_fail(st, STATUS_USAGE, "--tokens names %lld twice", x);
        if (run->token_count == CONFIG_MAX_TOKENS)
            return status_fail(st, STATUS_USAGE, "--tokens takes at most %d numbers", CONFIG_MAX_TOKENS);
        run->tokens[run->token_count++] = x;
        at = end;
        if (!*end) return true;
    }
}

/* The help's last part: which symbols --batch and --seq bind, from the reader's own tables. */
static void list_names(char *text, size_t size, const char *option, const char *const *names) {
    size_t used = strlen(text), line = used;
    used += (size_t)snprintf(text + used, size - used, "%s binds", option);
    for (int k = 0; names[k] && used < size; k++) {
        if (used - line + strlen(names[k]) > 90) {
            line = used + 1;
            used += (size_t)snprintf(text + used, size - used, "\n ");
        }
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, " %s%s", names[k], names[k + 1] ? "," : "\n");
    }
}

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "OPS.json",
     .kind = CLI_FILE,
     .offset = AT(options.ops_path),
     .help = "write the operations to this file"},
    {.name = "dim",
     .argument = "NAME=N",
     .kind = CLI_BINDING,
     .offset = AT(dims),
     .min = 0,
     .max = most,
     .help = "bind the symbolic dimension NAME to N, or give the input NAME that value, if it is one whole number or "
             "condition; repeatable, overrides --batch and --seq"},
    {.name = "batch",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(options.read.batch),
     .min = 1,
     .max = most,
     .help =
         "bind the usual names of the batch dimension to N; where there is none, what stands first and has no name"},
    {.name = "seq",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(options.read.seq),
     .min = 1,
     .max = most,
     .help = "bind the usual names of the sequence dimension to N"},
    {.name = "config",
     .argument = "CONFIG.json",
     .kind = CLI_FILE,
     .offset = AT(config_path),
     .help = "instead of a model: a configuration of transformers"},
    {.name = "tokens",
     .argument = "N,N",
     .kind = CLI_CALL,
     .call = read_tokens,
     .help = "with --config: tokens of a sequence; several numbers are several runs, which are listed together"},
    {.name = "past",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(config.past),
     .min = 0,
     .max = most,
     .help = "with --config: N keys and values of earlier tokens are in the cache"},
    {.name = "precision",
     .argument = "P",
     .kind = CLI_CHOICE,
     .offset = AT(options.precision),
     .choices = precisions,
     .help = "count floating-point operations as fp16, bf16 or fp32; model (the default) leaves them as they are"},
    {.name = "tensors",
     .argument = "FILE",
     .kind = CLI_FILE,
     .offset = AT(options.tensors_path),
     .help = "write the name, data type and shape of every tensor to this file"},
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .offset = AT(options.quiet), .help = "print no table"},
};

static cli_result parse_options(int argc, char **argv, settings *s, status *st) {
    static char end[4096];
    snprintf(end, sizeof end, "%s", after);
    list_names(end, sizeof end, "--batch", bind_batch_names());
    list_names(end, sizeof end, "--seq", bind_seq_names());
    const cli_spec spec = {
        .program = "extract_ops",
        .version = version_text,
        .usage = "MODEL.onnx [-o OPS.json] [--dim NAME=N]... [--batch N] [--seq N]\n"
                 "                   [--precision fp16|bf16|fp32|model] [--tensors TENSORS.json] [--quiet]\n"
                 "       extract_ops --config CONFIG.json [--tokens N,N] [--past N] [--batch N] [-o OPS.json]\n"
                 "                   [--precision fp16|bf16|fp32|model] [--tensors TENSORS.json] [--quiet]",
        .about = about,
        .after = end,
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "MODEL.onnx",
        .least = 0,
        .most = 1,
        .positionals = AT(models),
    };
    return cli_parse(&spec, argc, argv, s, st);
}

/* The reader has its own idea of a bound dimension, so that it does not know about command lines. */
static read_dim *bound_dims(const cli_bindings *b, status *st) {
    read_dim *dims = calloc((size_t)b->count + 1, sizeof *dims);
    if (!dims) {
        status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
        return NULL;
    }
    for (int k = 0; k < b->count; k++) dims[k] = (read_dim){b->items[k].name, b->items[k].number};
    return dims;
}

/* What belongs to a model and what to a configuration: the one or the other is given. */
static bool choose(settings *s, status *st) {
    const extract_options *o = &s->options;
    if (!s->config_path && !s->model_path)
        return status_fail(st, STATUS_USAGE,
                           "MODEL.onnx is missing; give the path of a model, or --config CONFIG.json");
    if (s->config_path && s->model_path)
        return status_fail(st, STATUS_USAGE, "both a model and --config are given; give one of them");
    if (!s->config_path && (s->config.token_count > 0 || s->config.past > 0))
        return status_fail(st, STATUS_USAGE, "--tokens and --past are for --config; a model has --seq and --dim");
    if (s->config_path && (o->read.seq > 0 || s->dims.count > 0))
        return status_fail(st, STATUS_USAGE, "--seq and --dim are for models; with --config give --tokens and --past");
    s->options.model_path = s->config_path ? s->config_path : s->model_path;
    if (!s->config_path) return true;
    s->config.path = s->config_path;
    s->config.batch = o->read.batch;
    s->options.read.batch = 0;
    s->options.config = &s->config;
    return true;
}

int main(int argc, char **argv) {
    status st = {0};
    settings s = {.options.precision = "model"};
    s.models.items = &s.model_path;
    read_dim *dims = NULL;
    cli_result result = parse_options(argc, argv, &s, &st);
    if (result == CLI_RUN && choose(&s, &st)) dims = bound_dims(&s.dims, &st);
    if (dims) {
        files_clean_on_signals();
        s.options.read.dims = dims;
        s.options.read.dim_count = s.dims.count;
        st.code = extract_run(&s.options, &st);
        files_finish_output(&st, "completely; make room for it, or give --quiet");
    }
    if (st.code > STATUS_INCOMPLETE || (st.code != STATUS_OK && st.text[0]))
        status_print(stderr, "extract_ops", NULL, st.text);
    free(dims);
    cli_bindings_free(&s.dims);
    return (int)st.code;
}
