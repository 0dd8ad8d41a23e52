/* Lines break at blanks, never between a figure and its unit, and nothing is lost or wider than asked for. */
#include "common/terminal.h"
#include "tests/unit/unit.h"

#include <string.h>

static char said[4096];

static const char *put(int columns, int indent, const char *text) {
    FILE *out = fmemopen(said, sizeof said, "w");
    const terminal t = {.out = out, .columns = columns};
    terminal_put(&t, TERMINAL_BOLD, indent, text);
    fclose(out);
    return said;
}

static void lines_break_at_blanks(void) {
    UNIT_TEXT(put(20, 2, "one two three four five"), "one two three four\n  five\n");
    UNIT_TEXT(put(20, 2, ""), "\n");
    UNIT_TEXT(put(20, 2, "   3 indented itself, and so it stays"), "   3 indented\n  itself, and so it\n  stays\n");
    UNIT_TEXT(put(24, 0, "a/long/name/without/a/blank"), "a/long/name/without/a/bl\nank\n");
}

static void a_figure_keeps_its_unit(void) {
    UNIT_TEXT(put(20, 0, "it takes about 34.3 ms"), "it takes about\n34.3 ms\n");
    UNIT_TEXT(put(22, 0, "known to within ± 0.6 % or so"), "known to within\n± 0.6 % or so\n");
    UNIT_TEXT(put(9, 0, "10 20 30 40 50"), "10 20 30\n40 50\n"); /* where nothing else is there */
}

static void characters_count_not_bytes(void) { UNIT_TEXT(put(10, 0, "ééééé µµµµ"), "ééééé µµµµ\n"); }

static void nothing_is_lost(void) {
    const char *text =
        "Write a custom kernel: up to 12.1 % of the model's time can be gained. Open: x took 25.3 % less.";
    for (int columns = TERMINAL_LEAST; columns < 120; columns++) {
        char joined[256] = "";
        put(columns, 4, text);
        for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
            UNIT_CHECK((int)strlen(line) <= columns);
            if (*joined) strcat(joined, " ");
            strcat(joined, line + strspn(line, " "));
        }
        UNIT_TEXT(joined, text);
    }
}

static void a_file_is_no_terminal(void) {
    FILE *out = fmemopen(said, sizeof said, "w");
    const terminal t = terminal_of(out, 77);
    UNIT_INT(t.columns, 77);
    UNIT_CHECK(!t.coloured && !*terminal_on(&t, TERMINAL_BOLD) && !*terminal_off(&t, TERMINAL_BOLD));
    fclose(out);
}

int main(void) {
    UNIT_RUN(lines_break_at_blanks);
    UNIT_RUN(a_figure_keeps_its_unit);
    UNIT_RUN(characters_count_not_bytes);
    UNIT_RUN(nothing_is_lost);
    UNIT_RUN(a_file_is_no_terminal);
    return unit_end();
}
