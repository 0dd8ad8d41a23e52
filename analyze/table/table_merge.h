/* Tables of one device class as one. */
#ifndef ANALYZE_TABLE_MERGE_H
#define ANALYZE_TABLE_MERGE_H

#include "common/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

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

#endif
