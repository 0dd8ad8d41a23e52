/* Owns the line on a terminal that tells what goes on and how long it will take, and the plain lines that stand for it
 * where no terminal shows it. */
#include "scout/show/show.h"

#include "common/clock.h"
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 20, WIDEST = 240 };
static const double REDRAW_SECONDS = 0.1, HINT_SECONDS = 5;

void show_progress_init(show_progress *p, bool quiet) {
    *p = (show_progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1, .last = clock_seconds()};
}

static void write_left(double left_s, const char *behind, char *text, size_t room) {
    if (left_s >= 0 && left_s < 1e6)
        snprintf(text, room, "%d:%02d left%s", (int)left_s / 60, (int)left_s % 60, behind);
    else
        snprintf(text, room, "%s", "");
}

const char *show_left(double left_s, char *text, size_t room) {
    write_left(left_s < 1 ? NAN : left_s, "", text, room);
    return text;
}

/* By what came since it began. */
static double guess_left(const show_progress *p, double part, double at) {
    const double gone = at - p->begun, came = part - p->part_begun;
    return came > 0 && gone >= 1 ? gone * (1 - part) / came : NAN;
}

/* Only printable ASCII: names come from files, and a byte is a column then. */
static void plain(const char *from, char *to, size_t room) {
    size_t n = 0;
    for (; *from && n + 1 < room; from++) to[n++] = (char)(*from >= 0x20 && *from < 0x7f ? *from : '?');
    to[n] = 0;
}

void show_progress_set(show_progress *p, double part, double left_s, int finished, int count, const char *what) {
    const double at = clock_seconds();
    if (p->quiet || !p->terminal || (p->drawn && at - p->last < REDRAW_SECONDS)) return;
    if (p->begun == 0 || part <= p->part_begun) {
        p->begun = at;
        p->part_begun = part;
    }
    if (!isnan(left_s)) p->begun = 0; /* ceilings: what is guessed later begins anew behind them */
    p->last = at;
    struct winsize size;
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    if (width > WIDEST) width = WIDEST;
    char bar[BAR + 1], left[32], clean[WIDEST], line[WIDEST + 64];
    const int full = part > 0 ? (int)(part * BAR + 0.5) : 0;
    for (int k = 0; k < BAR; k++) bar[k] = k < full ? '#' : '.';
    bar[BAR] = 0;
    write_left(isnan(left_s) ? guess_left(p, part, at) : left_s < 1 ? NAN : left_s, "  ", left, sizeof left);
    plain(what, clean, sizeof clean);
    snprintf(line, sizeof line, "[%s] %d/%d  %s%s", bar, finished, count, left, clean);
    if (strlen(line) >= (size_t)width) line[width - 1] = 0;
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    p->drawn = true;
}

void show_progress_line(show_progress *p, const char *text) {
    if (!p->quiet && !p->terminal) status_print(stderr, "scout_batch", NULL, text);
}

void show_progress_hint(show_progress *p, const char *text) {
    const double at = clock_seconds();
    if (p->terminal || at - p->last < HINT_SECONDS) return;
    p->last = at;
    show_progress_line(p, text);
}

void show_progress_end(show_progress *p) {
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
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
