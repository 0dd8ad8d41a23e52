/* The formats of the summary, one line each: adding one is a file with a writer and a line in formats.c. */
#pragma once

#include "analyze/study/summary.h"

#include <stdio.h>

/* Writes all of it; the caller, which opened `out`, checks it for failures. false: st says what else went wrong. */
typedef bool formats_write(const summary *m, FILE *out, status *st);

typedef struct format {
    const char *name; /* of --format */
    const char *file; /* in the folder of -o */
    formats_write *write;
} format;

extern const format formats_all[]; /* ends with one that has no name */

/* To a file that appears whole or not at all; path NULL: to standard output. */
bool formats_put(const format *f, const summary *m, const char *path, status *st);

/* Which formats are written, of those that --format names (bits; 0: none were named), and whether -o (NULL: not given)
 * is a file of the one format: it ends as the format's own file does. What looks like a file's name otherwise is
 * refused. `first`: name and file of a table's first line, lines being `size` bytes; the last has no name. */
bool formats_settle(const char *const *first, size_t size, const char *output, uint32_t *formats, bool *file,
                    status *st);

/* The writers: analyze/write/, analyze/page/. */
formats_write write_text;
formats_write write_json;
formats_write write_markdown;
formats_write write_csv;
formats_write write_junit;
