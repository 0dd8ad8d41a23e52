/* Table-driven options: parsing, and messages that say what to do next. */
#include "common/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLI_CHOICES_ROOM = 256 };

static const cli_option built_in[] = {
    {.name = "help", .letter = 'h', .help = "print this and exit"},
    {.name = "version", .help = "print the version and exit"},
    {.name = "list-options"}, /* for scripts that make manuals and completions */
};

typedef struct parse {
    const cli_spec *spec;
    char **argv;
    int argc;
    int at; /* the next argument */
    char *destination;
    status *st;
    bool done; /* --help or --version was served */
} parse;

static const cli_option *row_of(const cli_spec *spec, int k) {
    return k < spec->option_count ? &spec->options[k] : &built_in[k - spec->option_count];
}

static int row_count(const cli_spec *spec) { return spec->option_count + (int)(sizeof built_in / sizeof built_in[0]); }

/* NULL behind the last one. */
static const char *choice_of(const cli_option *o, int k) {
    const size_t size = o->choice_size ? o->choice_size : sizeof *o->choices;
    const char *name;
    memcpy(&name, (const char *)o->choices + (size_t)k * size, sizeof name);
    return name;
}

/* "fp16, fp32", cut to the room. */
static const char *choice_text(const cli_option *o, char *text, size_t room) {
    size_t used = 0;
    text[0] = 0;
    for (int k = 0; choice_of(o, k) && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", k > 0 ? ", " : "", choice_of(o, k));
    return text;
}

/* ---- what a table says of itself: --help for people, --list-options for scripts ---- */

enum { HELP_WIDTH = 100, HELP_COLUMN = 26 };

/* Places on a line: of a character the first byte alone. */
static int columns(const char *text, int n) {
    int count = 0;
    for (int k = 0; k < n; k++) count += ((unsigned char)text[k] & 0xc0) != 0x80;
    return count;
}

/* Words of the text from HELP_COLUMN on, over as many lines as they need. */
static void print_wrapped(FILE *out, const char *text) {
    int column = HELP_COLUMN;
    for (bool first = true; *text; first = false) {
        const int n = (int)strcspn(text, " "), wide = columns(text, n);
        if (!first && column + 1 + wide > HELP_WIDTH) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, (size_t)n, out);
        column += wide;
        text += n;
        while (*text == ' ') text++;
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const cli_option *o) {
    if (!o->help) return;
    const char *argument = o->argument ? o->argument : "", *blank = o->argument ? " " : "";
    char letter[] = "    ", head[128];
    if (o->letter) memcpy(letter, (char[]){'-', o->letter, ',', ' '}, 4);
    snprintf(head, sizeof head, "  %s--%s%s%s", letter, o->name, blank, argument);
    fputs(head, out);
    int column = columns(head, (int)strlen(head));
    if (column > HELP_COLUMN - 2) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", HELP_COLUMN - column, "");
    char list[CLI_CHOICES_ROOM], text[4 * CLI_CHOICES_ROOM];
    if (o->kind == CLI_LIST)
        snprintf(text, sizeof text, "%s (separated by commas): %s", choice_text(o, list, sizeof list), o->help);
    print_wrapped(out, o->kind == CLI_LIST ? text : o->help);
}

void cli_help(const cli_spec *spec, FILE *out) {
    fprintf(out, "usage: %s %s\n\n%s\n\noptions:\n", spec->program, spec->usage, spec->about);
    for (int k = 0; k < spec->option_count; k++) print_option(out, &spec->options[k]);
    for (int k = spec->option_count; k < row_count(spec); k++) print_option(out, row_of(spec, k));
    if (spec->after) fprintf(out, "\n%s", spec->after);
}

/* One option a line, tabs between: --name, -letter, the argument's name, its choices. */
static void help_list(const cli_spec *spec, FILE *out) {
    for (int k = 0; k < row_count(spec); k++) {
        const cli_option *o = row_of(spec, k);
        if (!o->help) continue;
        fprintf(out, "--%s\t", o->name);
        if (o->letter) fprintf(out, "-%c", o->letter);
        fprintf(out, "\t%s\t", o->argument ? o->argument : "");
        for (int c = 0; o->choices && choice_of(o, c); c++) fprintf(out, "%s%s", c > 0 ? " " : "", choice_of(o, c));
        fputc('\n', out);
    }
}

/* ---- finding an option ---- */

static const cli_option *find_name(const cli_spec *spec, const char *name, size_t n) {
    for (int k = 0; k < row_count(spec); k++)
        if (strncmp(row_of(spec, k)->name, name, n) == 0 && row_of(spec, k)->name[n] == 0) return row_of(spec, k);
    return NULL;
}

static const cli_option *find_letter(const cli_spec *spec, char letter) {
    for (int k = 0; k < row_count(spec); k++)
        if (row_of(spec, k)->letter == letter) return row_of(spec, k);
    return NULL;
}

/* How many letters must be inserted, dropped, changed or swapped with a neighbour to make one text of the other. */
static int distance(const char *a, size_t na, const char *b, size_t nb) {
    enum { LONGEST = 31 };
    if (na > LONGEST || nb > LONGEST) return LONGEST;
    int d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= na; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= nb; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        for (size_t j = 1; j <= nb; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

static int guess(size_t n) { return n < 4 ? 2 : 3; } /* so far apart it is one */

static int distance_from(const char *name, size_t n, const char *candidate) {
    const size_t length = strlen(candidate);
    if (n >= 3 && n < length && strncmp(candidate, name, n) == 0) return 1; /* shortened */
    return distance(name, n, candidate, length);
}

static const char *nearest(const cli_spec *spec, const char *name, size_t n) {
    const char *found = NULL;
    int least = guess(n);
    for (int k = 0; k < row_count(spec); k++) {
        const char *candidate = row_of(spec, k)->name;
        if (!row_of(spec, k)->help) continue;
        const int d = distance_from(name, n, candidate);
        if (d < least) {
            least = d;
            found = candidate;
        }
    }
    return found;
}

bool cli_near(const char *typed, const char *meant) {
    return distance_from(typed, strlen(typed), meant) < guess(strlen(typed));
}

static bool fail_unknown(const parse *p, const char *name, size_t n) {
    const char *near = nearest(p->spec, name, n);
    if (near) return status_fail(p->st, STATUS_USAGE, "unknown option --%.*s; did you mean --%s?", (int)n, name, near);
    return status_fail(p->st, STATUS_USAGE, "unknown option --%.*s; %s --help lists them", (int)n, name,
                       p->spec->program);
}

/* ---- values ---- */

static bool parse_number(const parse *p, const cli_option *o, const char *text, int64_t *number) {
    char *end = NULL;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    bool starts = (text[0] >= '0' && text[0] <= '9') || ((text[0] == '-' || text[0] == '+') && text[1]);
    if (!starts || *end != 0 || errno == EINVAL)
        return status_fail(p->st, STATUS_USAGE, "--%s: '%s' is not a whole number", o->name, text);
    if (errno == 0 && x < o->min && o->max == INT64_MAX)
        return status_fail(p->st, STATUS_USAGE, "--%s: %s is less than %" PRId64, o->name, text, o->min);
    if (errno == ERANGE || x < o->min || x > o->max)
        return status_fail(p->st, STATUS_USAGE, "--%s: %s is outside %" PRId64 "..%" PRId64, o->name, text, o->min,
                           o->max);
    *number = x;
    return true;
}

/* What the letter behind a time stands for, in seconds; 0: nothing. */
static double unit_of(const char *letter) {
    static const struct {
        const char *letter;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++)
        if (strcmp(units[k].letter, letter) == 0) return units[k].seconds;
    return 0;
}

static bool take_real(const parse *p, const cli_option *o, const char *text) {
    char *end = NULL;
    double x = strtod(text, &end);
    const bool is_time = o->kind == CLI_SECONDS;
    const double unit = is_time ? unit_of(end) : *end == 0;
    if (end == text || unit == 0 || !isfinite(x) || strpbrk(text, "xX "))
        return status_fail(p->st, STATUS_USAGE,
                           is_time ? "--%s: '%s' is not a time; write 90, 90s, 2m or 1h" : "--%s: '%s' is not a number",
                           o->name, text);
    x *= unit;
    if (x < (double)o->min || x > (double)o->max)
        return status_fail(p->st, STATUS_USAGE, "--%s: %s is outside %" PRId64 "..%" PRId64, o->name, text, o->min,
                           o->max);
    memcpy(p->destination + o->offset, &x, sizeof x);
    return true;
}

/* Its place among the choices; -1: it is none, and the status says so. */
static int find_choice(const parse *p, const cli_option *o, const char *name, size_t n) {
    char list[CLI_CHOICES_ROOM];
    for (int k = 0; choice_of(o, k); k++)
        if (strlen(choice_of(o, k)) == n && memcmp(choice_of(o, k), name, n) == 0) return k;
    status_set(p->st, STATUS_USAGE, "--%s: '%.*s' is not one of: %s", o->name, n < 100 ? (int)n : 100, name,
               choice_text(o, list, sizeof list));
    return -1;
}

static bool take_choice(const parse *p, const cli_option *o, const char *argument) {
    const int k = find_choice(p, o, argument, strlen(argument));
    if (k < 0) return false;
    const char *name = choice_of(o, k);
    memcpy(p->destination + o->offset, &name, sizeof name);
    return true;
}

static bool take_list(const parse *p, const cli_option *o, const char *argument) {
    uint32_t named;
    memcpy(&named, p->destination + o->offset, sizeof named);
    for (const char *at = argument;; at++) {
        const size_t n = strcspn(at, ",");
        const int k = find_choice(p, o, at, n);
        if (k < 0) return false;
        named |= (uint32_t)1 << k;
        at += n;
        if (!*at) break;
    }
    memcpy(p->destination + o->offset, &named, sizeof named);
    return true;
}

/* The name may hold an = itself, so that the last one divides. */
static bool take_binding(const parse *p, const cli_option *o, char *argument) {
    cli_bindings *b = (cli_bindings *)(void *)(p->destination + o->offset);
    char *divider = strrchr(argument, '=');
    if (!divider || divider == argument)
        return status_fail(p->st, STATUS_USAGE, "--%s: '%s' is not of the form %s", o->name, argument, o->argument);
    int64_t number = 0;
    if (!parse_number(p, o, divider + 1, &number)) return false;
    *divider = 0;
    for (int k = 0; k < b->count; k++) {
        if (strcmp(b->items[k].name, argument) != 0) continue;
        if (b->items[k].number == number) return true;
        return status_fail(p->st, STATUS_USAGE, "--%s: %s is given as %" PRId64 " and as %" PRId64 "; give it once",
                           o->name, argument, b->items[k].number, number);
    }
    if (!b->items) b->items = calloc((size_t)p->argc, sizeof *b->items); /* there cannot be more than arguments */
    if (!b->items) return status_fail(p->st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    b->items[b->count++] = (cli_binding){argument, number};
    return true;
}

void cli_bindings_free(cli_bindings *b) {
    free(b->items);
    *b = (cli_bindings){0};
}

static bool take_built_in(parse *p, const cli_option *o) {
    if (o == &built_in[0])
        cli_help(p->spec, stdout);
    else if (o == &built_in[2])
        help_list(p->spec, stdout);
    else
        printf("%s %s\n", p->spec->program, p->spec->version);
    p->done = true;
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    return status_fail(p->st, STATUS_ENVIRONMENT, "standard output cannot be written: %s", strerror(errno));
}

static bool take_file(const parse *p, const cli_option *o, char *argument) {
    if (strcmp(argument, "-") == 0)
        return status_fail(p->st, STATUS_USAGE,
                           "--%s: '-' is not a file name; give a file, /dev/stdout, or ./- for a file named -",
                           o->name);
    memcpy(p->destination + o->offset, &argument, sizeof argument);
    return true;
}

static bool take(parse *p, const cli_option *o, char *argument) {
    if (o >= built_in && o < built_in + sizeof built_in / sizeof built_in[0]) return take_built_in(p, o);
    char *to = p->destination + o->offset;
    switch (o->kind) {
    case CLI_FLAG: memcpy(to, &(bool){true}, sizeof(bool)); return true;
    case CLI_TEXT: memcpy(to, &argument, sizeof argument); return true;
    case CLI_FILE: return take_file(p, o, argument);
    case CLI_INT: {
        int64_t number = 0;
        if (!parse_number(p, o, argument, &number)) return false;
        memcpy(to, &number, sizeof number);
        return true;
    }
    case CLI_REAL:
    case CLI_SECONDS: return take_real(p, o, argument);
    case CLI_CHOICE: return take_choice(p, o, argument);
    case CLI_LIST: return take_list(p, o, argument);
    case CLI_BINDING: return take_binding(p, o, argument);
    case CLI_CALL: return o->call(p->destination, argument, p->st);
    }
    return false;
}

/* ---- arguments ---- */

static char no_argument[1];

/* Gives an option its value: what is attached to it, or the next argument. */
static bool take_with_value(parse *p, const cli_option *o, char *attached) {
    if (!o->argument) {
        if (!attached) return take(p, o, no_argument);
        return status_fail(p->st, STATUS_USAGE, "--%s takes no value", o->name);
    }
    char *value = attached;
    if (!value && p->at < p->argc) {
        value = p->argv[p->at++];
        if (value[0] == '-' && value[1] == '-')
            return status_fail(p->st, STATUS_USAGE, "--%s needs %s, but %s follows; write --%s=%s if that is meant",
                               o->name, o->argument, value, o->name, value);
    }
    if (!value || !*value) return status_fail(p->st, STATUS_USAGE, "--%s needs %s", o->name, o->argument);
    return take(p, o, value);
}

static bool take_long(parse *p, char *text) {
    size_t n = strcspn(text, "=");
    const cli_option *o = find_name(p->spec, text, n);
    if (!o) return fail_unknown(p, text, n);
    return take_with_value(p, o, text[n] ? text + n + 1 : NULL);
}

/* -q, -o FILE, -oFILE, and flags in a row. */
static bool take_letters(parse *p, char *text) {
    for (; *text && !p->done; text++) {
        const cli_option *o = find_letter(p->spec, *text);
        if (!o) {
            const cli_option *whole = find_name(p->spec, text, strcspn(text, "="));
            if (whole)
                return status_fail(p->st, STATUS_USAGE, "unknown option -%c; did you mean --%s?", *text, whole->name);
            return status_fail(p->st, STATUS_USAGE, "unknown option -%c; %s --help lists them", *text,
                               p->spec->program);
        }
        if (o->argument) return take_with_value(p, o, text[1] ? text + 1 : NULL);
        if (!take(p, o, no_argument)) return false;
    }
    return true;
}

static bool take_positional(parse *p, const char *text) {
    const cli_spec *spec = p->spec;
    cli_positionals *list = (cli_positionals *)(void *)(p->destination + spec->positionals);
    if (spec->most == 0 || list->count == spec->most)
        return status_fail(p->st, STATUS_USAGE, "'%s' is one argument too many; %s --help shows the usage", text,
                           spec->program);
    if (!*text) return status_fail(p->st, STATUS_USAGE, "an empty argument was given in place of %s", spec->positional);
    list->items[list->count++] = text;
    return true;
}

cli_result cli_parse(const cli_spec *spec, int argc, char **argv, void *destination, status *st) {
    parse p = {.spec = spec, .argv = argv, .argc = argc, .at = 1, .destination = destination, .st = st};
    bool only_positionals = false;
    while (p.at < argc && !p.done) {
        char *text = argv[p.at++];
        bool good;
        if (only_positionals || text[0] != '-' || text[1] == 0)
            good = take_positional(&p, text);
        else if (strcmp(text, "--") == 0)
            good = only_positionals = true;
        else if (text[1] == '-')
            good = take_long(&p, text + 2);
        else
            good = take_letters(&p, text + 1);
        if (!good) return CLI_WRONG;
    }
    if (p.done) return CLI_DONE;
    int given = spec->most > 0 ? ((cli_positionals *)(void *)((char *)destination + spec->positionals))->count : 0;
    if (given >= spec->least) return CLI_RUN;
    status_set(st, STATUS_USAGE, "%s is missing; %s --help shows the usage", spec->positional, spec->program);
    return CLI_WRONG;
}
