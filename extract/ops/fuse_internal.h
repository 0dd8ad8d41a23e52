/* What the files of fuse share: units (works that run), what flows between them, and candidates. */
#pragma once

#include "extract/ops/collect.h"

enum {
    FUSE_MAX_OPS = 16,    /* operations one candidate may join; longer chains are cut */
    FUSE_MAX_THROUGH = 64 /* views looked through, and users looked at, per tensor */
};

typedef struct fuse_candidate {
    const char *pattern;
    work *ops[FUSE_MAX_OPS];
    int op_count;
    int64_t saved; /* bytes per occurrence, against its operations one by one */
    bool selected;
} fuse_candidate;

typedef struct fuse {
    catalog *catalog;
    arena *arena;
    work **unit_of; /* by node id: the counted work that runs it; NULL for what is free */
    fuse_candidate *found;
    size_t count, cap;
} fuse;

/* ---- fuse_flow.c: what flows between units ---- */

/* The one tensor that leaves a unit, NULL where several do or none. */
tensor *fuse_result(const fuse *f, const work *w);
/* The unit that uses t, seen through views, where it is the only one; NULL where there are others (*others counts them,
 * graph outputs and bodies too). */
work *fuse_only_user(const fuse *f, tensor *t, int *others);
/* All distinct units that use t, seen through views, up to `max`; what can't be a partner (bodies, graph outputs) is
 * not among them. */
int fuse_users(const fuse *f, tensor *t, work **users, int max, int *others);
/* Where t comes from, seen through views: the unit, or NULL; *root is the tensor it gives. */
work *fuse_source(const fuse *f, tensor *t, tensor **root);
/* How the operand of elementwise work w that is not `t` (seen through views) compares with the result: as large, or
 * smaller. */
typedef enum fuse_operand { FUSE_OPERAND_NONE, FUSE_OPERAND_VECTOR, FUSE_OPERAND_FULL } fuse_operand;
fuse_operand fuse_other_operand(const fuse *f, const work *w, const tensor *t);

/* ---- fuse_patterns.c: the table, and finding candidates ---- */
void fuse_find(fuse *f);
void fuse_add(fuse *f, const fuse_candidate *c);

/* ---- fuse_select.c ---- */
void fuse_select(fuse *f);
