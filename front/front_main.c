/* ceiling-scout: one command in front of the programs that lie beside it, as git has. A command is a program with its
 * first words, which gets the rest of the line as it was typed; or a table of options for a script, which finds them in
 * its environment, where make leaves them too; or the zoo. Nothing else is done here, and what was started ends with
 * its own code. */
#include "common/cli.h"
#include "common/version.h"
#include "front/start.h"
#include "front/zoo.h"

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
    "  ceiling-scout history DB            the nights that a zoo keeps, and what got slower (analyze history)\n"
    "  ceiling-scout dispatch DIR          the table that deployment loads (analyze dispatch)\n"
    "  ceiling-scout export FORMAT DIR     tuning files of other programs (analyze export)\n"
    "  ceiling-scout validate              a kernel of your own beside the library's: keep or revert\n"
    "  ceiling-scout evidence DIR          all of a folder's results in one archive, for a bug report or a paper\n"
    "  ceiling-scout zoo                   profile many models at many sizes, again where something has changed\n"
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

/* ---- a program with its first words ---- */

typedef struct command command;
struct command {
    const char *name;
    status_code (*run)(const command *c, int argc, char **argv, status *st); /* argv[0] is the command's name */
    const char *program, *first; /* `first` NULL: the rest follows at once */
};

static status_code run_program(const command *c, int argc, char **argv, status *st) {
    return start_program(c->program, c->first, argc, argv, st);
}

/* ---- a script with its environment ---- */

#define AT(member) offsetof(settings, member)
static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", NULL}; /* scout_batch */

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
     .choices = start_precisions,
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
    {.name = "counters",
     .argument = "N",
     .kind = CLI_INT,
     .min = 1,
     .max = 99,
     .offset = AT(counters),
     .help = "read the counters of the N operations that take longest, by Nsight Compute (ncu)"},
    {.name = "folder",
     .kind = CLI_FLAG,
     .offset = AT(ask),
     .help = "print the folder that the results are written to, and do nothing"},
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
     .choices = start_regimes,
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
enum { ROWS = sizeof rows / sizeof rows[0], OF_PROFILE = 14, OF_BOTH = 3 };

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

static const cli_option evidence_rows[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = CLI_FILE,
     .offset = AT(out),
     .help = "write it there (<DIR>-evidence.tar.gz, in the current folder)"},
};

static const cli_spec evidence_spec = {
    .program = NAME " evidence",
    .version = version_text,
    .usage = "DIR [-o FILE.tar.gz]",
    .about =
        "Packs what a folder of results holds into one archive, for a bug report or a paper: operations, reports,\n"
        "counters, ceilings, summaries and tables, with the commands, the versions, the machine, and a checksum of\n"
        "each file. The model and its weights are not in it. Paths and names of this machine are: look at it before\n"
        "you send it.",
    .after = "exit codes: 0 written; 2 wrong usage; 3 the folder holds no results; 4 the archive cannot be written\n",
    .options = evidence_rows,
    .option_count = sizeof evidence_rows / sizeof evidence_rows[0],
    .positional = "DIR",
    .least = 1,
    .most = 1,
    .positionals = AT(files),
};

static status_code run_evidence(const command *c, int argc, char **argv, status *st) {
    settings s = {.files.items = &s.model};
    (void)c;
    if (cli_parse(&evidence_spec, argc, argv, &s, st) != CLI_RUN) return st->code;
    return start_script("collect_evidence.sh", "analyze", "EVIDENCE", &s, st);
}

static status_code run_profile(const command *c, int argc, char **argv, status *st) {
    settings s = {.files.items = &s.model};
    (void)c;
    if (cli_parse(&profile_spec, argc, argv, &s, st) == CLI_RUN)
        (void)start_script("profile.sh", "extract_ops", "PROFILE", &s, st);
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
    return start_script("validate.sh", "scout_batch", "VALIDATE", &s, st);
}

static status_code run_zoo(const command *c, int argc, char **argv, status *st) {
    (void)c;
    return zoo_command(argc, argv, st);
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
    {"history", run_program, "analyze", "history"},
    {"dispatch", run_program, "analyze", "dispatch"},
    {"export", run_program, "analyze", "export"},
    {"validate", run_validate, NULL, NULL},
    {"evidence", run_evidence, NULL, NULL},
    {"zoo", run_zoo, NULL, NULL},
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
