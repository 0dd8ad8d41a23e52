/* Options from a table: every kind, every way of writing them, every complaint, and the help. */
#include "common/cli.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

typedef struct settings {
    bool quiet, verbose;
    const char *output, *title;
    int64_t batch;
    const char *precision;
    cli_bindings dims;
    int calls;
    double ratio;
    const char *secret;
    uint32_t kinds, sides;
    const char *items[2];
    cli_positionals models;
} settings;

static bool count_call(void *destination, const char *argument, status *st) {
    settings *s = destination;
    s->calls++;
    if (strcmp(argument, "bad") != 0) return true;
    status_set(st, STATUS_USAGE, "--tag: bad is bad");
    return false;
}

typedef struct side {
    const char *name;
    int number;
} side;
static const side sides[] = {{"left", 3}, {"right", 5}, {NULL, 0}};
static const char *const kinds[] = {"a", "bc", "d", NULL};
static const char *const precisions[] = {"fp16", "fp32", NULL};
#define AT(field) offsetof(settings, field)

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .help = "write there",
     .kind = CLI_FILE,
     .offset = AT(output)},
    {.name = "batch",
     .argument = "N",
     .help = "the batch size, which is described here in so many words that they do not "
             "fit on one line of the help",
     .kind = CLI_INT,
     .offset = AT(batch),
     .min = 1,
     .max = 100},
    {.name = "dim",
     .argument = "NAME=N",
     .help = "bind",
     .kind = CLI_BINDING,
     .offset = AT(dims),
     .min = 0,
     .max = INT64_MAX},
    {.name = "precision",
     .argument = "P",
     .help = "types",
     .kind = CLI_CHOICE,
     .offset = AT(precision),
     .choices = precisions},
    {.name = "title", .argument = "TEXT", .help = "says", .kind = CLI_TEXT, .offset = AT(title)},
    {.name = "tag", .argument = "T,…", .help = "calls", .kind = CLI_CALL, .call = count_call},
    {.name = "ratio", .argument = "X", .help = "real", .kind = CLI_REAL, .offset = AT(ratio), .min = 0, .max = 1},
    {.name = "workings", .argument = "X", .kind = CLI_TEXT, .offset = AT(secret)},
    {.name = "kinds", .argument = "LIST", .help = "which", .kind = CLI_LIST, .offset = AT(kinds), .choices = kinds},
    {.name = "sides",
     .argument = "LIST",
     .help = "both: all",
     .kind = CLI_LIST,
     .offset = AT(sides),
     .choices = &sides[0].name,
     .choice_size = sizeof(side)},
    {.name = "quiet", .letter = 'q', .help = "hush", .kind = CLI_FLAG, .offset = AT(quiet)},
    {.name = "verbose-and-very-long-name", .letter = 'v', .help = "talk", .kind = CLI_FLAG, .offset = AT(verbose)},
};

static const cli_spec spec = {
    .program = "prog",
    .version = "1.2",
    .usage = "MODEL [OTHER]",
    .about = "Does things.",
    .after = "examples:\n  prog x\n",
    .options = options,
    .option_count = (int)(sizeof options / sizeof options[0]),
    .positional = "MODEL",
    .least = 1,
    .most = 2,
    .positionals = AT(models),
};

static settings s;
static status st;
static char kept[512]; /* arguments are changed in place and borrowed */

/* Parses words divided by spaces; an underscore stands for an empty word. */
static cli_result parse(const char *line) {
    char *argv[32] = {"prog"};
    int argc = 1;
    cli_bindings_free(&s.dims);
    s = (settings){.models.items = s.items};
    st = (status){0};
    snprintf(kept, sizeof kept, "%s", line);
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        if (strcmp(word, "_") == 0) *word = 0;
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return cli_parse(&spec, argc, argv, &s, &st);
}

static void wrong(const char *line, const char *text) {
    UNIT_INT(parse(line), CLI_WRONG);
    UNIT_INT(st.code, STATUS_USAGE);
    UNIT_TEXT(st.text, text);
}

static void every_way_of_writing(void) {
    UNIT_INT(parse("model -o out --batch 8 --precision=fp16 -q"), CLI_RUN);
    UNIT_TEXT(s.items[0], "model");
    UNIT_INT(s.models.count, 1);
    UNIT_TEXT(s.output, "out");
    UNIT_INT(s.batch, 8);
    UNIT_TEXT(s.precision, "fp16");
    UNIT_CHECK(s.quiet && !s.verbose);
    UNIT_INT(parse("-oout --batch=+7 -qv a b --tag x --tag=y"), CLI_RUN);
    UNIT_TEXT(s.output, "out");
    UNIT_INT(s.batch, 7);
    UNIT_CHECK(s.quiet && s.verbose);
    UNIT_INT(s.models.count, 2);
    UNIT_INT(s.calls, 2);
    UNIT_INT(parse("-qo out --output=last -- -q"), CLI_RUN);
    UNIT_TEXT(s.output, "last");
    UNIT_TEXT(s.items[0], "-q");
    UNIT_INT(parse("- --output=--odd"), CLI_RUN);
    UNIT_TEXT(s.items[0], "-");
    UNIT_TEXT(s.output, "--odd");
    UNIT_INT(parse("m -o ./-"), CLI_RUN);
    UNIT_TEXT(s.output, "./-");
    UNIT_INT(parse("m --title -"), CLI_RUN);
    UNIT_TEXT(s.title, "-");
    UNIT_INT(parse("m -o -"), CLI_WRONG);
    UNIT_INT(parse("m --output=-"), CLI_WRONG);
}

static void bindings(void) {
    UNIT_INT(parse("m --dim a=1 --dim=b=2 --dim past+1=x=3 --dim a=1"), CLI_RUN);
    UNIT_INT(s.dims.count, 3);
    UNIT_TEXT(s.dims.items[0].name, "a");
    UNIT_TEXT(s.dims.items[1].name, "b");
    UNIT_TEXT(s.dims.items[2].name, "past+1=x");
    UNIT_INT(s.dims.items[2].number, 3);
    wrong("m --dim a=1 --dim a=2", "--dim: a is given as 1 and as 2; give it once");
    wrong("m --dim a", "--dim: 'a' is not of the form NAME=N");
    wrong("m --dim =4", "--dim: '=4' is not of the form NAME=N");
    wrong("m --dim a=", "--dim: '' is not a whole number");
    wrong("m --dim a=-1", "--dim: -1 is less than 0");
}

static void reals(void) {
    UNIT_INT(parse("m --ratio 0.875"), CLI_RUN);
    UNIT_CHECK(s.ratio == 0.875);
    UNIT_INT(parse("m --ratio=1e-3"), CLI_RUN);
    UNIT_CHECK(s.ratio == 1e-3);
    UNIT_INT(parse("m --ratio 1"), CLI_RUN);
    wrong("m --ratio 1.0001", "--ratio: 1.0001 is outside 0..1");
    wrong("m --ratio -0.1", "--ratio: -0.1 is outside 0..1");
    wrong("m --ratio nan", "--ratio: 'nan' is not a number");
    wrong("m --ratio inf", "--ratio: 'inf' is not a number");
    wrong("m --ratio 0x1p-1", "--ratio: '0x1p-1' is not a number");
    wrong("m --ratio 0.5x", "--ratio: '0.5x' is not a number");
    wrong("m --ratio x", "--ratio: 'x' is not a number");
}

static void lists(void) {
    UNIT_INT(parse("m --kinds bc"), CLI_RUN);
    UNIT_INT(s.kinds, 2);
    UNIT_INT(s.sides, 0);
    UNIT_INT(parse("m --kinds d,a --sides=right --kinds a"), CLI_RUN);
    UNIT_INT(s.kinds, 5);
    UNIT_INT(s.sides, 2);
    UNIT_INT(parse("m --sides left,right,left"), CLI_RUN);
    UNIT_INT(s.sides, 3);
    wrong("m --kinds a,b", "--kinds: 'b' is not one of: a, bc, d");
    wrong("m --kinds a,", "--kinds: '' is not one of: a, bc, d");
    wrong("m --kinds ,a", "--kinds: '' is not one of: a, bc, d");
    wrong("m --kinds bcd", "--kinds: 'bcd' is not one of: a, bc, d");
    wrong("m --kinds", "--kinds needs LIST");
    wrong("m --sides left,up", "--sides: 'up' is not one of: left, right");
}

static void what_is_hidden_works_and_is_not_proposed(void) {
    UNIT_INT(parse("m --workings 3,4"), CLI_RUN);
    UNIT_TEXT(s.secret, "3,4");
    wrong("m --working 3", "unknown option --working; prog --help lists them");
}

static void wrong_values(void) {
    wrong("m --batch 0", "--batch: 0 is outside 1..100");
    wrong("m --batch 101", "--batch: 101 is outside 1..100");
    wrong("m --batch 99999999999999999999", "--batch: 99999999999999999999 is outside 1..100");
    wrong("m --batch -3", "--batch: -3 is outside 1..100");
    wrong("m --batch 8x", "--batch: '8x' is not a whole number");
    wrong("m --batch 0x8", "--batch: '0x8' is not a whole number");
    wrong("m --batch -", "--batch: '-' is not a whole number");
    wrong("m --batch +-1", "--batch: '+-1' is not a whole number");
    wrong("m --batch=", "--batch needs N");
    wrong("m --batch _", "--batch needs N");
    wrong("m --batch", "--batch needs N");
    wrong("m -o", "--output needs FILE");
    wrong("m -o --quiet", "--output needs FILE, but --quiet follows; write --output=--quiet if that is meant");
    wrong("m --precision fp8", "--precision: 'fp8' is not one of: fp16, fp32");
    wrong("m --quiet=yes", "--quiet takes no value");
    wrong("m --tag bad", "--tag: bad is bad");
}

static void wrong_options(void) {
    wrong("m --outptu x", "unknown option --outptu; did you mean --output?");
    wrong("m --prec=fp16", "unknown option --prec; did you mean --precision?");
    wrong("m --dims a=1", "unknown option --dims; did you mean --dim?");
    wrong("m --hlep", "unknown option --hlep; did you mean --help?");
    wrong("m --zzzzzz", "unknown option --zzzzzz; prog --help lists them");
    wrong("m --=3", "unknown option --; prog --help lists them");
    wrong("m -x", "unknown option -x; prog --help lists them");
    wrong("m -batch 3", "unknown option -b; did you mean --batch?");
    wrong("", "MODEL is missing; prog --help shows the usage");
    wrong("-q", "MODEL is missing; prog --help shows the usage");
    wrong("_", "an empty argument was given in place of MODEL");
    wrong("a b c", "'c' is one argument too many; prog --help shows the usage");
}

static void long_words_are_survived(void) {
    char line[400];
    memset(line, 'x', sizeof line);
    memcpy(line, "m --", 4);
    line[sizeof line - 1] = 0;
    UNIT_INT(parse(line), CLI_WRONG);
    UNIT_INT(st.code, STATUS_USAGE);
}

static void help_names_every_option(void) {
    char text[4096];
    FILE *out = tmpfile();
    if (!UNIT_CHECK(out != NULL)) return;
    cli_help(&spec, out);
    rewind(out);
    size_t n = fread(text, 1, sizeof text - 1, out);
    fclose(out);
    text[n] = 0;
    UNIT_CHECK(strncmp(text, "usage: prog MODEL [OTHER]\n\nDoes things.\n\noptions:\n", 50) == 0);
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
        char name[64];
        snprintf(name, sizeof name, "--%s", options[k].name);
        UNIT_INT(strstr(text, name) != NULL, options[k].help != NULL);
    }
    UNIT_CHECK(strstr(text, "  -h, --help") && strstr(text, "      --version"));
    UNIT_CHECK(strstr(text, "      --tag T,…           calls\n")); /* … is one column */
    UNIT_CHECK(strstr(text, "examples:\n  prog x\n"));
    UNIT_CHECK(strstr(text, "--kinds LIST        a, bc, d (separated by commas): which\n"));
    UNIT_CHECK(strstr(text, "--sides LIST        left, right (separated by commas): both: all\n"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) UNIT_CHECK(strlen(line) <= 100);
}

/* For scripts: what --help names, in fields. */
static void the_table_can_be_listed(void) {
    char text[4096];
    fflush(stdout);
    FILE *real = stdout, *out = fmemopen(text, sizeof text, "w");
    if (!UNIT_CHECK(out != NULL)) return;
    stdout = out;
    const cli_result result = parse("--list-options");
    stdout = real;
    fclose(out);
    UNIT_INT(result, CLI_DONE);
    UNIT_TEXT(text, "--output\t-o\tFILE\t\n--batch\t\tN\t\n--dim\t\tNAME=N\t\n--precision\t\tP\tfp16 fp32\n"
                    "--title\t\tTEXT\t\n--tag\t\tT,…\t\n--ratio\t\tX\t\n--kinds\t\tLIST\ta bc d\n--sides\t\tLIST\tleft "
                    "right\n--quiet\t-q\t\t\n"
                    "--verbose-and-very-long-name\t-v\t\t\n--help\t-h\t\t\n--version\t\t\t\n");
}

static void no_room_on_standard_output_is_said(void) {
    fflush(stdout);
    FILE *real = stdout, *full = fopen("/dev/full", "w");
    if (!full) return;
    stdout = full;
    cli_result result = parse("--help");
    stdout = real;
    fclose(full);
    UNIT_INT(result, CLI_WRONG);
    UNIT_INT(st.code, STATUS_ENVIRONMENT);
}

int main(void) {
    UNIT_RUN(every_way_of_writing);
    UNIT_RUN(bindings);
    UNIT_RUN(reals);
    UNIT_RUN(lists);
    UNIT_RUN(what_is_hidden_works_and_is_not_proposed);
    UNIT_RUN(wrong_values);
    UNIT_RUN(wrong_options);
    UNIT_RUN(long_words_are_survived);
    UNIT_RUN(help_names_every_option);
    UNIT_RUN(the_table_can_be_listed);
    UNIT_RUN(no_room_on_standard_output_is_said);
    cli_bindings_free(&s.dims);
    return unit_end();
}
