/* Lines for a person: as wide as the terminal is, and coloured where it has colours and NO_COLOR is not set.
 *
 *     const terminal t = terminal_of(stdout, 100);
 *     terminal_put(&t, TERMINAL_BOLD, 5, text);     over as many lines as it needs, those after the first indented by 5
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum { TERMINAL_LEAST = 24, TERMINAL_MOST = 140 }; /* narrower is not told apart; in wider lines the eye gets lost */

typedef struct terminal {
    FILE *out;
    int columns;
    bool coloured;
} terminal;

typedef enum terminal_style {
    TERMINAL_PLAIN,
    TERMINAL_BOLD,
    TERMINAL_DIM,
    TERMINAL_GREEN,
    TERMINAL_YELLOW,
    TERMINAL_STYLES
} terminal_style;

/* otherwise: the columns of what is no terminal, which has no colours. */
terminal terminal_of(FILE *out, int otherwise);

/* The text (clean UTF-8) and an end of line. */
void terminal_put(const terminal *t, terminal_style style, int indent, const char *text);

/* What stands before a text of a style, and behind it; "" where there are no colours. */
const char *terminal_on(const terminal *t, terminal_style style);
const char *terminal_off(const terminal *t, terminal_style style);

/* Where a line that begins here has to end: at a blank where there is one, but not between a figure and its unit. */
const char *terminal_break(const char *from, int columns);
