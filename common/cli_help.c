/* Owns what a table of options says of itself: --help for people, --list-options for scripts. */
#include "common/cli_internal.h"

#include <string.h>

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
        snprintf(text, sizeof text, "%s (separated by commas): %s", cli_choice_text(o, list, sizeof list), o->help);
    print_wrapped(out, o->kind == CLI_LIST ? text : o->help);
}

void cli_help(const cli_spec *spec, FILE *out) {
    fprintf(out, "usage: %s %s\n\n%s\n\noptions:\n", spec->program, spec->usage, spec->about);
    for (int k = 0; k < spec->option_count; k++) print_option(out, &spec->options[k]);
    for (int k = spec->option_count; k < cli_row_count(spec); k++) print_option(out, cli_row(spec, k));
    if (spec->after) fprintf(out, "\n%s", spec->after);
}

void cli_help_list(const cli_spec *spec, FILE *out) {
    for (int k = 0; k < cli_row_count(spec); k++) {
        const cli_option *o = cli_row(spec, k);
        if (!o->help) continue;
        fprintf(out, "--%s\t", o->name);
        if (o->letter) fprintf(out, "-%c", o->letter);
        fprintf(out, "\t%s\t", o->argument ? o->argument : "");
        for (int c = 0; o->choices && cli_choice(o, c); c++) fprintf(out, "%s%s", c > 0 ? " " : "", cli_choice(o, c));
        fputc('\n', out);
    }
}
