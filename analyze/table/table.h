/* One entry of dispatch.json, as it follows from a report: what to run, and how that was proven. */
#pragma once

#include "analyze/study/study.h"
#include "common/files.h"
#include "common/json.h"
#include "common/status.h"
#include "dispatch/dispatch_signature.h"
#include "dispatch/dispatch_table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The device of a group, as dispatch.json has it; the caller's. NULL: st says what is wrong with its class. */
json_t *table_entry_device(const study_group *g, status *st);

/* The entry of a report with an OK baseline; the caller's. NULL: st says why it has none, and its code is that of
 * memory (STATUS_ENVIRONMENT), or STATUS_INPUT: the report cannot be used, all others can. */
json_t *table_entry_make(const study_report *r, const json_t *device, status *st);

/* Whether a report has anything to say: its baseline was measured. */
bool table_entry_measured(const study_report *r);

/* Tables of one device class as one. */
typedef struct table_merge {
    json_t *root;     /* the table that grows: dispatch.json as a tree, borrowed */
    json_t *by_key;   /* its entries by key; owned: table_merge_end */
    const char *name; /* of the first table, for messages */
    FILE *notes;      /* where conflicts are told, a line each; NULL: nowhere */
    size_t conflicts; /* keys that two tables decide otherwise */
    size_t repeated;  /* keys that two tables decide alike */
} table_merge;

/* `root` has its device, regime and method; entries may be in it already. false: out of memory, or a key twice. */
bool table_merge_begin(table_merge *m, json_t *root, const char *name, FILE *notes, status *st);
/* Takes an entry in (the caller's reference goes over to the table): new, or better proven than the one that is there.
 */
bool table_merge_entry(table_merge *m, json_t *entry, const char *from, status *st);
/* All entries of another dispatch.json. false: it is none, or of another device class, regime or method. */
bool table_merge_file(table_merge *m, const char *path, status *st);
/* Entries in the order of their keys. */
bool table_merge_end(table_merge *m, status *st);

/* Another dispatch.json as a tree; the caller's. NULL: it is none, or of another device class, regime or method than
 * `all`, which messages call `name`. */
json_t *table_merge_read(const json_t *all, const char *name, const char *path, status *st);
/* Whether two entries of one operation run the same. */
bool table_merge_alike(const json_t *a, const json_t *b);

/* table_changes.c: how many operations run otherwise than by an earlier table, and the first of them, a line each.
 * false: out of memory. */
bool table_changes_tell(const json_t *root, const json_t *before, const char *path, FILE *out, status *st);

/* table_sign.c: what TABLE.json.sig holds, by a key for ssh-keygen. */
typedef struct table_signature {
    char text[DISPATCH_SIGNATURE_BYTES];
    size_t size;
} table_signature;
bool table_sign(const char *text, size_t size, const char *key, table_signature *made, status *st);

/* Gives each entry of dispatch.json its member `ranges`. Keys are canonical and each is there once. `count`: how many
 * were found. false: out of memory. */
bool table_ranges_add(json_t *entries, size_t *count, status *st);

/* Appends all of it. `prefix` begins every name that it defines, `models` (which may be anything) stands in its first
 * comment. */
void table_header_write(files_out *out, const dispatch_table *t, const char *prefix, const char *models);
