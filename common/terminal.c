/* Owns what a terminal is to this project: how wide, whether coloured, and where lines break. */
#include "common/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *const styles[TERMINAL_STYLES] = {"", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m"};

terminal terminal_of(FILE *out, int otherwise) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    struct winsize size;
    terminal t = {.out = out, .columns = otherwise};
    if (!isatty(fileno(out))) return t;
    t.columns = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    if (t.columns < TERMINAL_LEAST) t.columns = TERMINAL_LEAST;
    t.coloured = !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    return t;
}

const char *terminal_on(const terminal *t, terminal_style style) { return t->coloured ? styles[style] : ""; }
const char *terminal_off(const terminal *t, terminal_style style) {
    return t->coloured && style != TERMINAL_PLAIN ? "\x1b[0m" : "";
}

/* "34.3 ms", "± 0.6 %": the blank belongs to what stands around it. */
static bool is_joined(const char *blank, const char *from) {
    const char before = blank > from ? blank[-1] : ' ';
    return (before >= '0' && before <= '9') || (blank - from >= 2 && memcmp(blank - 2, "±", 2) == 0);
}

const char *terminal_break(const char *from, int columns) {
    const char *at = from, *blank = NULL, *joined = NULL;
    for (int column = 0; *at; at++) {
        column += ((unsigned char)*at & 0xc0) != 0x80;
        if (column > columns + (*at == ' ')) return blank ? blank : joined ? joined : at;
        if (*at == ' ' && at > from && at[-1] != ' ') *(is_joined(at, from) ? &joined : &blank) = at;
    }
    return at;
}

void terminal_put(const terminal *t, terminal_style style, int indent, const char *text) {
    const char *rest = text;
    int used = 0;
    if (indent > t->columns / 2) indent = t->columns / 2;
    do {
        const char *end = terminal_break(rest, t->columns - used), *last = end;
        while (last > rest && last[-1] == ' ') last--;
        if (last > rest)
            fprintf(t->out, "%*s%s%.*s%s\n", used, "", terminal_on(t, style), (int)(last - rest), rest,
                    terminal_off(t, style));
        else
            fputc('\n', t->out);
        for (rest = end; *rest == ' ';) rest++;
        used = indent;
    } while (*rest);
}
