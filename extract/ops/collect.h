/* The catalog of a model's operations: equal works merged into entries, with counts, totals and coverage. What ops.json
 * and the terminal table are written from. Everything in the run's arena. */
#pragma once

#include "extract/ops/work.h"

typedef struct catalog_entry catalog_entry;
struct catalog_entry {
    const char *id;   /* unique within the catalog */
    int place;        /* in the catalog's list */
    const char *key;  /* canonical key of the record */
    const oprec *rec; /* of the first occurrence */
    graph *home;      /* its region */
    work *first;      /* occurrences, linked by next_same in graph order */
    work *last;
    int64_t occurrences;
    int64_t count;         /* runs per run of the model; 0 for parts and for branches that do not run */
    bool part;             /* belongs to joined operations only */
    bool free;             /* view, folded, control */
    catalog_entry **parts; /* of the first occurrence, one per part, so an entry may stand there twice */
    int part_count;
};

/* Where a fusion could be done: the works that it joins there, in the order of its operations. */
typedef struct catalog_site {
    work *const *works;
    struct catalog_site *next;
} catalog_site;

/* Operations that could run as one. Filled by the search for fusions, after collect. */
typedef struct catalog_fusion {
    const char *pattern;
    catalog_entry **ops; /* what it joins, in graph order */
    int op_count;
    int64_t count;                   /* how often it occurs per run of the model */
    int64_t selected;                /* how many of them are in the set that saves most without overlap */
    int64_t saved_bytes;             /* per occurrence */
    catalog_site *sites, *last_site; /* in graph order */
} catalog_fusion;

typedef struct catalog_totals {
    int64_t macs, flops, bytes_read, bytes_written;
} catalog_totals;

typedef struct catalog_unknown {
    const char *op_type; /* with its domain in front where it is not ai.onnx */
    int64_t count;
} catalog_unknown;

typedef struct catalog {
    model *model;
    arena *arena;
    dtype precision;
    catalog_entry **entries; /* in order of first appearance; a joined entry is followed by its parts */
    size_t entry_count, entry_cap;
    catalog_fusion *fusions;
    size_t fusion_count;
    const struct dataflow *dataflow; /* filled last: dataflow.h */
    catalog_totals totals;
    int64_t parameters;
    int64_t nodes, resolved;
    node **unresolved; /* nodes - resolved of them */
    catalog_unknown *unknown;
    size_t unknown_count, unknown_cap;
} catalog;

/* Before: of each If whose condition is not known, the costlier branch is what runs. */
void collect_branches(worklist *list);
catalog *collect(worklist *list);
int64_t collect_bytes(const catalog_totals *t); /* read and written together */
bool collect_is_complete(const catalog *c);     /* every node resolved, no operator unknown */

/* ---- collect_totals.c: sums over a catalog with complete entries; collect calls them in this order ---- */
void collect_totals(catalog *c);
void collect_parameters(catalog *c, const worklist *list);
void collect_coverage(catalog *c);

/* ---- fuse.c ---- */
/* Finds the candidates in the catalog's works, marks the set that saves most without overlap, and fills c->fusions. */
void fuse_all(catalog *c);
