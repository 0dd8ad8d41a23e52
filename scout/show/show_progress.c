/* Owns what stands on a terminal while a run goes on (a line that tells what goes on and how long it will take, and a
 * table above it), and the plain lines that stand for it where no terminal shows it. */
#include "scout/show/show.h"

#include "common/clock.h"
#include "common/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 20, SHORT_BAR = 8, NARROW = 60, LEAST_WHAT = 24, WIDEST = 240 };
static const double REDRAW_SECONDS = 0.1, SILENT_SECONDS = 5;

void show_progress_init(show_progress *p, bool quiet) {
    *p = (show_progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1, .last = clock_seconds()};
}

const char *show_left(double left_s, char *text, size_t room) {
    if (left_s >= 1 && left_s < 1e6)
        snprintf(text, room, "%d:%02d left", (int)left_s / 60, (int)left_s % 60);
    else
        snprintf(text, room, "%s", "");
    return text;
}

/* Only printable ASCII: names come from files, and a byte is a column then. */
static void plain(const char *from, char *to, size_t room) {
    size_t n = 0;
    for (; *from && n + 1 < room; from++) to[n++] = (char)(*from >= 0x20 && *from < 0x7f ? *from : '?');
    to[n] = 0;
}

bool show_progress_due(const show_progress *p) {
    return !p->quiet && clock_seconds() - p->last >= (p->terminal ? REDRAW_SECONDS : SILENT_SECONDS);
}

static void measure_terminal(show_progress *p) {
    struct winsize size;
    p->columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    if (p->columns > WIDEST) p->columns = WIDEST;
}

/* What goes on, and where that does not change for a while, for how long it has. */
static void say_what(show_progress *p, const char *what, double now, char *text, size_t room) {
    char clean[sizeof p->what];
    if (what) {
        plain(what, clean, sizeof clean);
        if (strcmp(clean, p->what) != 0) p->since = now;
        memcpy(p->what, clean, sizeof clean);
    }
    const double for_s = now - p->since;
    if (p->what[0] && for_s >= SILENT_SECONDS)
        snprintf(text, room, "%s, for %d:%02d", p->what, (int)for_s / 60, (int)for_s % 60);
    else
        snprintf(text, room, "%s", p->what);
}

static void clear(show_progress *p) {
    if (p->table_lines > 0) fprintf(stderr, "\033[%dA\r\033[J", p->table_lines);
    fputs("\r\033[K", stderr);
    p->table_lines = 0;
}

/* The head of a table that is too long; its rows are the heaviest first. */
static void draw_table(show_progress *p) {
    struct winsize size;
    const int rows = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
    for (const char *at = p->table; *at && p->table_lines < rows - 2; p->table_lines++) {
        const size_t n = strcspn(at, "\n");
        fprintf(stderr, "%.*s\n", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

static void draw(show_progress *p, const show_progress_state *s, const char *what) {
    char bar[BAR + 1], left[32], head[2 * WIDEST], line[4 * WIDEST];
    measure_terminal(p);
    const int length = p->columns < NARROW ? SHORT_BAR : BAR;
    const int full = s->part > 0 ? (int)(fmin(s->part, 1) * length + 0.5) : 0;
    for (int k = 0; k < length; k++) bar[k] = k < full ? '#' : '.';
    bar[length] = 0;
    show_left(s->left_s, left, sizeof left);
    const bool all = length + plain_columns(s->phases) + (int)strlen(left) + LEAST_WHAT < p->columns;
    const char *const phases = all ? s->phases : s->phase;
    snprintf(head, sizeof head, "[%s] %s%s%s%s", bar, phases, *phases ? "  " : "", left, *left ? "  " : "");
    const int room = p->columns - 1 - plain_columns(head);
    snprintf(line, sizeof line, "%s%.*s", head, room > 0 ? room : 0, what);
    if (room < 0) line[p->columns - 1] = 0; /* a phase alone is ASCII */
    if (p->table && p->table_lines == 0) {
        clear(p);
        draw_table(p);
    }
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    p->drawn = true;
}

void show_progress_set(show_progress *p, const show_progress_state *s) {
    const double now = clock_seconds();
    char what[sizeof p->what + 32], left[32], line[sizeof what + 2 * WIDEST];
    if (p->quiet) return;
    say_what(p, s->what, now, what, sizeof what);
    if (!show_progress_due(p) && (p->drawn || !p->terminal)) return;
    p->last = now;
    if (p->terminal) {
        draw(p, s, what);
        return;
    }
    show_left(s->left_s, left, sizeof left);
    snprintf(line, sizeof line, "%.200s%s%s%s%s", s->phase, *s->phase && *left ? ", " : "", left,
             (*s->phase || *left) && *what ? ": " : "", what);
    show_progress_line(p, line);
}

void show_progress_table(show_progress *p, const char *text) {
    if (p->table && text && strcmp(p->table, text) == 0) return;
    if (p->drawn) clear(p);
    free(p->table);
    p->table = text ? strdup(text) : NULL; /* without memory there is none */
}

void show_progress_line(show_progress *p, const char *text) {
    p->last = clock_seconds();
    if (!p->quiet && !p->terminal) status_print(stderr, "scout_batch", NULL, text);
}

void show_progress_end(show_progress *p) {
    if (p->drawn) clear(p);
    fflush(stderr);
    p->drawn = false;
}

void show_progress_free(show_progress *p) {
    show_progress_end(p);
    free(p->table);
    p->table = NULL;
}

void show_result_line(const report_input *in, const report_figures *f, char *text, size_t room) {
    char time[32];
    if (f->status != ROW_OK) {
        snprintf(text, room, "%.120s  %s: %.100s", in->operation->name, reason_status_name(f->status),
                 f->text ? f->text : "");
        return;
    }
    show_time(f->baseline_us, time, sizeof time);
    if (isfinite(f->efficiency))
        snprintf(text, room, "%.120s  %s  %.1f %% of the ceiling", in->operation->name, time, 100 * f->efficiency);
    else
        snprintf(text, room, "%.120s  %s", in->operation->name, time);
}
