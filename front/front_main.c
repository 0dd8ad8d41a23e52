/* ceiling-scout: one command in front of the programs that lie beside it, as git has. A command is a program with its
 * first words, which gets the rest of the line as it was typed; or a table of options for a script, which finds them in
 * its environment, where make leaves them too. Nothing is done here, and what was started ends with its own code. */
#include "common/cli.h"
#include "common/version.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "ceiling-scout"

static const char about[] =
    "Reads an ONNX model and gives a verdict on every operation in it: how fast the best library runs it\n"
    "on this device, how fast the device could run it at all, and where a better kernel would pay.\n"
    "\n"
    "Commands, each with its own --help:\n"
    "  ceiling-scout profile MODEL.onnx    extract, measure and analyze a model, into a folder below out/\n"
    "  ceiling-scout doctor                whether this machine can measure, and what to do about the rest\n"
    "  ceiling-scout extract MODEL.onnx    the operations of a model (extract_ops)\n"
    "  ceiling-scout measure OPS.json      how fast they run, and could run (scout_batch)\n"
    "  ceiling-scout ceilings              what the device can do at best (scout_batch --ceilings)\n"
    "  ceiling-scout analyze DIR           what to do first (analyze)\n"
    "  ceiling-scout explain DIR ID        all that is known of one operation (analyze explain)\n"
    "  ceiling-scout compare BEFORE AFTER  what got slower or faster between two runs (analyze compare)\n"
    "  ceiling-scout dispatch DIR          the table that deployment loads (analyze dispatch)\n"
    "  ceiling-scout validate              a kernel of your own beside the library's: keep or revert\n"
    "  ceiling-scout help COMMAND          the --help of a command";

static const char after[] =
    "examples:\n"
    "  ceiling-scout profile resnet50.onnx --batch 8                  all of it, into out/resnet50@b8\n"
    "  ceiling-scout profile bert.onnx --batch 1 --seq 128 --budget 2m\n"
    "  ceiling-scout explain out/resnet50@b8 gemm_2048                why its verdict is so\n"
    "  ceiling-scout measure --op gemm --shape 4096,4096,4096 --precision fp16\n"
    "  ceiling-scout doctor --device cuda:0                           whether this GPU can be measured\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but something has no figure, no shape or no name; the command's --help says what\n"
    "  2  wrong usage\n"
    "  3  the input is bad\n"
    "  4  the environment failed: memory, disk, device, or a program that was not built\n"
    "  5  a comparison says revert, or found what it was told to fail on\n";

/* ---- what lies beside this program ---- */

static bool is_file(const char *path) {
    struct stat about_it;
    return stat(path, &about_it) == 0 && S_ISREG(about_it.st_mode);
}

/* "DIR/PLACE/NAME", DIR being this program's own folder. False: it has none, or the path is too long. */
static bool beside(const char *place, const char *name, char *path, size_t room) {
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return false;
    self[n] = 0;
    char *const slash = strrchr(self, '/');
    if (!slash) return false;
    *slash = 0;
    const int length = snprintf(path, room, "%s/%s%s", self, place, name);
    return length > 0 && (size_t)length < room;
}

/* Installed, or in the folder of a build; or in the source tree. */
static bool find_script(const char *name, char *path, size_t room) {
    return (beside("../lib/ceiling-scout/", name, path, room) && is_file(path)) ||
           (beside("../scripts/", name, path, room) && is_file(path));
}

static bool find_program(const char *name, char *path, size_t room) {
    return beside("", name, path, room) && is_file(path);
}

static status_code not_there(const char *name, status *st) {
    return status_set(st, STATUS_ENVIRONMENT, "%s is not beside this program; build it with make, or install it again",
                      name);
}

static status_code start(const char *path, char **argv, status *st) {
    execv(path, argv);
    return status_set(st, STATUS_ENVIRONMENT, "%s cannot be started: %s", path, strerror(errno));
}

/* ---- a program with its first words ---- */

typedef struct command command;
struct command {
    const char *name;
    status_code (*run)(const command *c, int argc, char **argv, status *st); /* argv[0] is the command's name */
    const char *program, *first; /* `first` NULL: the rest follows at once */
};

static status_code run_program(const command *c, int argc, char **argv, status *st) {
    char path[PATH_MAX], name[32], first[32];
    int n = 0;
    if (!find_program(c->program, path, sizeof path)) return not_there(c->program, st);
    char **line = calloc((size_t)argc + 2, sizeof *line);
    if (!line) return status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    snprintf(name, sizeof name, "%s", c->program);
    line[n++] = name;
    if (c->first) {
        snprintf(first, sizeof first, "%s", c->first);
        line[n++] = first;
    }
    for (int k = 1; k < argc; k++) line[n++] = argv[k];
    (void)start(path, line, st);
    free(line);
    return st->code;
}

/* ---- a script with its environment ---- */

typedef struct settings { /* NULL and 0: not given */
    const char *model, *precision, *device, *regime, *out;
    const char *target_ci, *min_time;
    bool quick, no_wait;
    const char *before, *after, *shape, *op;
    int64_t batch, seq;
    double budget;
    cli_bindings dims;
    cli_positionals files;
} settings;

#define AT(member) offsetof(settings, member)
static const char *const counted[] = {"model", "fp16", "bf16", "fp32", NULL}; /* what extract_ops takes */
static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", NULL}; /* scout_batch */
static const char *const regimes[] = {"sustained", "burst", NULL};

/* Those of `profile` and then those of `validate`; what is in the middle belongs to both. */
static const cli_option rows[] = {
    {.name = "batch",
     .argument = "N",
     .kind = CLI_INT,
     .min = 1,
     .max = INT64_MAX,
     .offset = AT(batch),
     .help = "bind the usual names of the batch dimension to N"},
    {.name = "seq",
     .argument = "N",
     .kind = CLI_INT,
     .min = 1,
     .max = INT64_MAX,
     .offset = AT(seq),
     .help = "bind the usual names of the sequence dimension to N"},
    {.name = "dim",
     .argument = "NAME=N",
     .kind = CLI_BINDING,
     .max = INT64_MAX,
     .offset = AT(dims),
     .help = "bind the symbolic dimension NAME to N; repeatable"},
    {.name = "precision",
     .argument = "P",
     .kind = CLI_CHOICE,
     .choices = counted,
     .offset = AT(precision),
     .help = "take floating-point operations as fp16, bf16 or fp32; model (the default) leaves them as they are"},
    {.name = "out",
     .letter = 'o',
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(out),
     .help = "write DIR/<model>[@<options>] (out)"},
    {.name = "quick",
     .kind = CLI_FLAG,
     .offset = AT(quick),
     .help = "first figures soon: --budget 20s --target-ci 5%, and no fusions"},
    {.name = "no-wait",
     .kind = CLI_FLAG,
     .offset = AT(no_wait),
     .help = "fail where another run is at the same folder or device, instead of waiting for its end"},
    {.name = "target-ci",
     .argument = "X%",
     .kind = CLI_TEXT,
     .offset = AT(target_ci),
     .help = "measure until a time is known to ± X % (1 %, on a CPU 2 %)"},
    {.name = "min-time",
     .argument = "TIME",
     .kind = CLI_TEXT,
     .offset = AT(min_time),
     .help = "time each operation for so long at least"},
    {.name = "device",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(device),
     .help = "auto (a GPU if present, else the CPU), cpu, cuda:0, several as in cuda:0,1, or all"},
    {.name = "regime",
     .argument = "R",
     .kind = CLI_CHOICE,
     .choices = regimes,
     .offset = AT(regime),
     .help = "sustained (under load until the clock is steady; the default) or burst"},
    {.name = "budget",
     .argument = "TIME",
     .kind = CLI_SECONDS,
     .min = 1,
     .max = 10000000,
     .offset = AT(budget),
     .help = "time limit of measuring (90, 90s, 2m, 1h); large operations come early"},
    {.name = "after",
     .argument = "FILE|NAME",
     .kind = CLI_FILE,
     .offset = AT(after),
     .help = "what is to be judged: a shared object such as ./mine.so, or the name of a candidate"},
    {.name = "before",
     .argument = "NAME",
     .kind = CLI_TEXT,
     .offset = AT(before),
     .help = "what it is held against: a candidate, or a library (cublas, cudnn, onednn); its default if not given"},
    {.name = "op",
     .argument = "KIND",
     .kind = CLI_TEXT,
     .offset = AT(op),
     .help = "kind of the operation: gemm (the default), attention, layernorm, …"},
    {.name = "shape", .argument = "N,N,…", .kind = CLI_TEXT, .offset = AT(shape), .help = "its shape; M,N,K of a gemm"},
    {.name = "precision",
     .argument = "P",
     .kind = CLI_CHOICE,
     .choices = precisions,
     .offset = AT(precision),
     .help = "its precision: fp32 (the default), tf32, fp16, bf16, fp8, int8, int4"},
};
enum { ROWS = sizeof rows / sizeof rows[0], OF_PROFILE = 12, OF_BOTH = 3 };

static const cli_spec profile_spec = {
    .program = NAME " profile",
    .version = version_text,
    .usage = "MODEL.onnx [--batch N] [--seq N] [--dim NAME=N]... [--device NAME] [--budget TIME] [-o DIR]",
    .about = "Extracts the operations of a model, measures them, and says what is worth doing: ops.json, reports,\n"
             "summary.txt, report.html and a dispatch table, in a folder of the model below out/. A step whose inputs\n"
             "have not changed since is not done again, and an interrupted one goes on where it was.",
    .after = "exit codes: the worst of extract_ops, scout_batch and analyze\n",
    .options = rows,
    .option_count = OF_PROFILE,
    .positional = "MODEL.onnx",
    .least = 1,
    .most = 1,
    .positionals = AT(files),
};

static const cli_spec validate_spec = {
    .program = NAME " validate",
    .version = version_text,
    .usage = "--after ./mine.so --shape M,N,K [--before NAME] [--op KIND] [--precision P] [--device NAME]",
    .about = "Measures a kernel of your own beside the library's on one operation, and decides: keep or revert.",
    .after = "exit codes: 0 keep, 1 undecided, 5 revert, and the others of scout_batch\n",
    .options = rows + OF_PROFILE - OF_BOTH,
    .option_count = ROWS - OF_PROFILE + OF_BOTH,
    .positional = "",
};

/* One variable: "PROFILE_BATCH" is text or, for NULL, not there, whatever was exported before. */
static bool give(const char *prefix, const char *name, const char *text) {
    char variable[40];
    snprintf(variable, sizeof variable, "%s_%s", prefix, name);
    return (text ? setenv(variable, text, 1) : unsetenv(variable)) == 0;
}

static bool give_settings(const char *prefix, const settings *s, const char *scout, const char *analyze) {
    char batch[24] = "", seq[24] = "", budget[40] = "";
    if (s->batch) snprintf(batch, sizeof batch, "%" PRId64, s->batch);
    if (s->seq) snprintf(seq, sizeof seq, "%" PRId64, s->seq);
    if (s->budget > 0) snprintf(budget, sizeof budget, "%.12g", s->budget);
    const struct {
        const char *name, *text;
    } all[] = {{"MODEL", s->model},
               {"OUT", s->out},
               {"BATCH", batch},
               {"SEQ", seq},
               {"DIM", NULL},
               {"DEVICE", s->device},
               {"REGIME", s->regime},
               {"BUDGET", budget},
               {"SCOUT", scout},
               {"ANALYZE", analyze},
               {"BEFORE", s->before},
               {"AFTER", s->after},
               {"SHAPE", s->shape},
               {"OP", s->op},
               {"PRECISION", s->precision},
               {"QUICK", s->quick ? "1" : NULL},
               {"NO_WAIT", s->no_wait ? "1" : NULL},
               {"TARGET_CI", s->target_ci},
               {"MIN_TIME", s->min_time}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (!give(prefix, all[k].name, all[k].text && *all[k].text ? all[k].text : NULL)) return false;
    return true;
}

/* "--dim=NAME=N" for each, behind `n` words. */
static bool add_dims(const cli_bindings *dims, char **line, int n) {
    for (int k = 0; k < dims->count; k++)
        if (asprintf(&line[n + k], "--dim=%s=%" PRId64, dims->items[k].name, dims->items[k].number) < 0) {
            line[n + k] = NULL;
            return false;
        }
    return true;
}

/* `program` is the script's first word; the others it finds in its environment. */
static status_code run_script(const char *script, const char *program, const char *prefix, const settings *s,
                              status *st) {
    char path[PATH_MAX], first[PATH_MAX], scout[PATH_MAX], analyze[PATH_MAX];
    if (!find_script(script, path, sizeof path)) return not_there(script, st);
    if (!find_program(program, first, sizeof first)) return not_there(program, st);
    if (!find_program("scout_batch", scout, sizeof scout)) return not_there("scout_batch", st);
    if (!find_program("analyze", analyze, sizeof analyze)) return not_there("analyze", st);
    char **line = calloc((size_t)s->dims.count + 3, sizeof *line);
    if (line && add_dims(&s->dims, line, 2) && give_settings(prefix, s, scout, analyze)) {
        line[0] = path;
        line[1] = first;
        (void)start(path, line, st);
    } else {
        status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    }
    for (int k = 0; line && k < s->dims.count; k++) free(line[2 + k]);
    free(line);
    return st->code;
}

static status_code run_profile(const command *c, int argc, char **argv, status *st) {
    settings s = {.files.items = &s.model};
    (void)c;
    if (cli_parse(&profile_spec, argc, argv, &s, st) == CLI_RUN)
        (void)run_script("profile.sh", "extract_ops", "PROFILE", &s, st);
    cli_bindings_free(&s.dims);
    return st->code;
}

static status_code run_validate(const command *c, int argc, char **argv, status *st) {
    settings s = {.model = NULL};
    (void)c;
    if (cli_parse(&validate_spec, argc, argv, &s, st) != CLI_RUN) return st->code;
    if (!s.after || !s.shape)
        return status_set(st, STATUS_USAGE,
                          "--%s is missing; say " NAME " validate --after ./mine.so --shape 4096,4096,4096",
                          s.after ? "shape" : "after");
    return run_script("validate.sh", "scout_batch", "VALIDATE", &s, st);
}

/* ---- from the first word to a command ---- */

static status_code run_help(const command *c, int argc, char **argv, status *st);

static const command commands[] = {
    {"profile", run_profile, NULL, NULL},
    {"doctor", run_program, "scout_batch", "--doctor"},
    {"extract", run_program, "extract_ops", NULL},
    {"measure", run_program, "scout_batch", NULL},
    {"ceilings", run_program, "scout_batch", "--ceilings"},
    {"analyze", run_program, "analyze", NULL},
    {"explain", run_program, "analyze", "explain"},
    {"compare", run_program, "analyze", "compare"},
    {"dispatch", run_program, "analyze", "dispatch"},
    {"validate", run_validate, NULL, NULL},
    {"help", run_help, NULL, NULL},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const cli_spec spec = {.program = NAME,
                              .version = version_text,
                              .usage = "COMMAND [ARGUMENT]...",
                              .about = about,
                              .after = after,
                              .positional = ""};

/* A model, operations or results where a command belongs. */
static const char *command_for(const char *word) {
    struct stat found;
    const char *const end = strrchr(word, '.');
    const bool there = stat(word, &found) == 0;
    if (there && S_ISDIR(found.st_mode)) return "analyze";
    if (there && end && strcmp(end, ".json") == 0) return "measure";
    return there || (end && strcmp(end, ".onnx") == 0) ? "profile" : NULL;
}

static status_code say_unknown(const char *word, status *st) {
    const char *const meant = command_for(word);
    if (meant && strpbrk(word, " '\"\\$`&;|<>()*?!#~\t\n"))
        return status_set(st, STATUS_USAGE, "%s is no command; say " NAME " %s, and then that in quotes", word, meant);
    if (meant) return status_set(st, STATUS_USAGE, "%s is no command; say " NAME " %s %s", word, meant, word);
    for (int k = 0; k < COMMANDS; k++)
        if (cli_near(word, commands[k].name))
            return status_set(st, STATUS_USAGE, "there is no command %s; did you mean %s?", word, commands[k].name);
    return status_set(st, STATUS_USAGE, "there is no command %s; " NAME " --help lists them", word);
}

static status_code run_command(int argc, char **argv, status *st) {
    for (int k = 0; k < COMMANDS; k++)
        if (strcmp(argv[0], commands[k].name) == 0) return commands[k].run(&commands[k], argc, argv, st);
    return say_unknown(argv[0], st);
}

static status_code run_help(const command *c, int argc, char **argv, status *st) {
    char ask[] = "--help", *line[] = {argc > 1 ? argv[1] : ask, ask, NULL};
    (void)c;
    if (argc > 2) return status_set(st, STATUS_USAGE, "help is for one command at a time: " NAME " help %s", argv[1]);
    const bool of_all = argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0;
    if (!of_all) return run_command(2, line, st);
    cli_help(&spec, stdout);
    return fflush(stdout) == 0 ? STATUS_OK
                               : status_set(st, STATUS_ENVIRONMENT, "writing the help failed: %s", strerror(errno));
}

int main(int argc, char **argv) {
    status st = {0};
    const bool options = argc > 1 && argv[1][0] == '-';
    if (argc < 2 || (options && cli_parse(&spec, argc, argv, NULL, &st) == CLI_RUN))
        status_set(&st, STATUS_USAGE,
                   "which command? say " NAME " profile MODEL.onnx; " NAME " --help lists the others");
    else if (!options)
        (void)run_command(argc - 1, argv + 1, &st);
    if (st.code != STATUS_OK) status_print(stderr, NAME, NULL, st.text);
    return (int)st.code;
}
