/* Comma-separated values as ncu writes them: lines of its own ("==PROF== …") and of the profiled program before the
 * head, a line of units below it on the raw page, quotes around every cell, numbers that may have commas between their
 * thousands. What a program prints into the same file is foreign: nothing is believed before a head is found. */
#include "scout/report/counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 1024, MOST_KERNELS = 1 << 20 };

typedef struct row { /* cells point into the text */
    char *cells[MOST_COLUMNS];
    int count;
} row;

typedef struct table {
    char *at, *end;
    const char *name;
    row head, units, line;
    int id, kernel, metric, unit, value; /* columns; -1: there is none */
    char *open_id, *open_kernel;         /* details: the launch whose metrics are being told */
    int kernels;
} table;

/* ---- lines and cells ---- */

static bool refuse(const table *t, status *st, const char *what) {
    return status_fail(st, STATUS_INPUT, "%s: %s; run ncu again", t->name, what);
}

/* A quoted cell, without its quotes and with "" as ": ends behind the closing quote. NULL: it never closes. */
static char *unquote(char *at, char *end) {
    char *out = at;
    for (at++; at < end; at++) {
        if (*at != '"') {
            *out++ = *at;
        } else if (at + 1 < end && at[1] == '"') {
            *out++ = *at++;
        } else {
            *out = 0;
            return at + 1;
        }
    }
    return NULL;
}

/* The next line's cells; false: there is none, or (st) it is broken. */
static bool next_row(table *t, row *r, status *st) {
    r->count = 0;
    if (t->at >= t->end) return false;
    for (;;) {
        char *cell = t->at;
        if (r->count == MOST_COLUMNS) return refuse(t, st, "a line has too many columns");
        if (cell < t->end && *cell == '"') {
            t->at = unquote(cell, t->end);
            if (!t->at) {
                t->at = t->end;
                return refuse(t, st, "a quote is never closed");
            }
        }
        t->at += strcspn(t->at, ",\r\n");
        r->cells[r->count++] = cell;
        const char last = t->at < t->end ? *t->at : 0;
        if (t->at < t->end) *t->at++ = 0;
        if (last == ',') continue;
        if (last == '\r' && t->at < t->end && *t->at == '\n') t->at++;
        return true;
    }
}

static void skip_line(table *t) {
    t->at += strcspn(t->at, "\n");
    if (t->at < t->end) t->at++;
}

static bool begins(const table *t, const char *with) {
    const size_t n = strlen(with);
    return (size_t)(t->end - t->at) >= n && strncmp(t->at, with, n) == 0;
}

static int column_of(const row *head, const char *name) {
    for (int k = 0; k < head->count; k++)
        if (strcmp(head->cells[k], name) == 0) return k;
    return -1;
}

/* The cell of a column; "" where the line is shorter. */
static char *cell_of(row *r, int column) {
    static char none[4] = "";
    return column >= 0 && column < r->count ? r->cells[column] : none;
}

/* "1,234.5", "12.3", "n/a", "(!) n/a", "". */
static double number_of(const char *cell) {
    char plain[64];
    size_t n = 0;
    for (const char *s = cell; *s; s++) {
        if (*s == ',') continue;
        if (n + 1 == sizeof plain || !strchr("0123456789+-.eE", *s)) return NAN;
        plain[n++] = *s;
    }
    plain[n] = 0;
    char *end;
    const double x = strtod(plain, &end);
    return n > 0 && *end == 0 && isfinite(x) ? x : NAN;
}

/* ---- the two pages ---- */

static bool find_head(table *t, status *st) {
    while (t->at < t->end) {
        if (!begins(t, "\"ID\",") && !begins(t, "ID,")) {
            skip_line(t);
            continue;
        }
        if (!next_row(t, &t->head, st)) return false;
        t->id = column_of(&t->head, "ID");
        t->kernel = column_of(&t->head, "Kernel Name");
        t->metric = column_of(&t->head, "Metric Name");
        t->unit = column_of(&t->head, "Metric Unit");
        t->value = column_of(&t->head, "Metric Value");
        if (t->kernel >= 0 && (t->metric < 0) == (t->value < 0)) return true;
    }
    return refuse(t, st, "it holds no table of ncu");
}

static void read_raw(table *t, const counters_table_reader *reader) {
    if (strcmp(cell_of(&t->line, t->id), "ID") == 0) return; /* the head once more, of another process */
    if (cell_of(&t->line, t->id)[0] == 0) {                  /* which is how the line of units begins */
        t->units = t->line;
        return;
    }
    for (int k = 0; k < t->head.count; k++)
        if (k != t->id && k != t->kernel)
            reader->metric(reader->context, t->head.cells[k], cell_of(&t->units, k), number_of(cell_of(&t->line, k)));
    reader->end(reader->context, cell_of(&t->line, t->kernel));
    t->kernels++;
}

static void close_details(table *t, const counters_table_reader *reader) {
    if (t->open_id) reader->end(reader->context, t->open_kernel);
    t->kernels += t->open_id != NULL;
    t->open_id = NULL;
}

static void read_details(table *t, const counters_table_reader *reader) {
    char *id = cell_of(&t->line, t->id);
    if (t->open_id && strcmp(t->open_id, id) != 0) close_details(t, reader);
    t->open_id = id;
    t->open_kernel = cell_of(&t->line, t->kernel);
    reader->metric(reader->context, cell_of(&t->line, t->metric), cell_of(&t->line, t->unit),
                   number_of(cell_of(&t->line, t->value)));
}

static bool read_table(table *t, const counters_table_reader *reader, status *st) {
    *st = (status){0};
    if (!find_head(t, st)) return false;
    while (t->at < t->end) {
        if (begins(t, "==") || *t->at == '\n' || *t->at == '\r') { /* ncu's own words */
            skip_line(t);
            continue;
        }
        if (!next_row(t, &t->line, st)) break;
        if (t->kernels >= MOST_KERNELS) return refuse(t, st, "there are too many kernels in it");
        if (t->metric >= 0)
            read_details(t, reader);
        else
            read_raw(t, reader);
    }
    if (st->code != STATUS_OK) return false;
    close_details(t, reader);
    return true;
}

bool counters_table_read(char *text, size_t size, const char *name, const counters_table_reader *reader, status *st) {
    if (memchr(text, 0, size))
        return status_fail(st, STATUS_INPUT, "%s: is not text; give the output of `ncu --csv`", name);
    table *t = calloc(1, sizeof *t);
    if (!t) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    t->at = text;
    t->end = text + size;
    t->name = name;
    const bool good = read_table(t, reader, st);
    free(t);
    return good;
}
