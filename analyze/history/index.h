/* What a morning's reader wants of a history: what changed, and every model over the nights. All formats say the same.
 * Everything lies in the history's arena. */
#pragma once

#include "analyze/history/history.h"

#include <stdio.h>

enum { INDEX_NIGHTS = 90, INDEX_CHANGES = 200 }; /* of a line; that are told, the newest first */

typedef struct index_line { /* times over the nights, the oldest first */
    const double *us;
    size_t count;
} index_line;

typedef struct index_change {
    int64_t night, at;
    bool last; /* of the last night */
    history_state state;
    const char *operation; /* NULL: the device as a whole */
    const char *op, *device, *regime, *cause;
    const char *model, *folder; /* the first that has it; NULL: of the device */
    int64_t models;             /* that have it */
    double change;              /* 0.03: 3 % slower */
    double before_us, lost_us;  /* one; per run of each model that has it, all together */
    int64_t again;
    index_line line; /* of the last night's; of others empty */
} index_change;

typedef struct index_model {
    const char *name, *folder, *device, *regime;
    int64_t night, at, count;
    double us, ci, proven_us, potential_us, ceiling_us, change; /* change: since the night before; or not known */
    size_t slower, faster;                                      /* operations of it, in the last night */
    index_line line;
} index_model;

typedef struct history_index {
    int64_t nights, series, points, bytes, night, at; /* night: the last one; 0: there is none */
    size_t of_last[HISTORY_STATES]; /* operations by what became of them; devices are not among them */
    size_t machines_slower;
    const index_change *changes; /* SLOWER and FASTER: of the last night what costs most first, then earlier ones */
    size_t change_count, change_total;
    const index_model *models; /* the longest time of a run first */
    size_t model_count;
    const history_suspect *suspects;
    size_t suspect_count;
} history_index;

void index_make(history *h, history_index *to);

/* The formats, one line each: adding one is a writer and a line in analyze/formats.c. `only`: NULL, or what the names
 * of the operations, models or devices that are wanted hold. */
typedef struct history_shown {
    history *h;
    const history_index *index;
    const char *only, *folder; /* folder: where it is written, which links begin at; NULL: not known */
} history_shown;
typedef bool history_writer(const history_shown *shown, FILE *out, status *st);
typedef struct history_format {
    const char *name, *file;
    history_writer *write;
} history_format;
extern const history_format history_formats[]; /* ends with one that has no name */
bool history_formats_put(const history_format *f, const history_shown *shown, const char *path, status *st);

history_writer history_write_text, history_write_json, history_write_csv, history_write_junit, history_write_metrics;

/* What the last night came to: "2 operations got slower, 1 faster; 3 were measured again and are as they were". */
const char *index_sum(const history_shown *shown);
/* Seconds since 1970 as "2026-11-22 04:47"; lives to the end of the expression. */
typedef struct index_date {
    char s[32];
} index_date;
index_date index_date_of(int64_t at);
index_date index_change_of(double change); /* "+3.1 %" */
