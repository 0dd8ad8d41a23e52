/* Work: what the model asks a device to do. Every node becomes one work by its operator's lower function; patterns then
 * join works into larger ones (the joined ones become parts). collect.c merges equal works into the entries of
 * ops.json. */
#pragma once

#include "common/oprec.h"
#include "extract/graph/graph.h"

typedef struct work work;
struct catalog_entry;

/* A constant beside the main weight: "bias", "scales", "recurrence", … (docs/formats.md). */
typedef struct work_weight {
    const char *role;
    tensor *t;
} work_weight;

enum { WORK_TERMS = 3 };

/* One of the operation's own tensors, by the name that docs/kinds_tensors.md gives it: which of the model's it is. */
typedef struct work_operand {
    const char *name;
    tensor *t; /* NULL: none of them, or it is not known which */
    bool made; /* what the operation writes */
} work_operand;

/* A number that the operation computes with and its record does not tell. */
typedef struct work_number {
    const char *name;
    double x;
    bool known;
} work_number;

/* One of its own tensors that is none of the model's: what an elementwise operator makes of some of them. */
typedef struct work_formed {
    const char *name, *what;
    const tensor *like;    /* as large as what they are broadcast to */
    tensor *t[WORK_TERMS]; /* NULL behind the last one */
} work_formed;

/* What a run needs to know beside operands; seldom there. */
typedef struct work_beside {
    work_number *numbers;
    work_formed *formed; /* NULL: there is none */
    int number_count;
} work_beside;

/* A tensor of which less is read or written than there is: of a cache what is valid, of a table some rows. */
typedef struct work_share {
    const tensor *t;
    int64_t part, whole;
} work_share;

struct work {
    model *model;
    arena *arena;
    node *node;   /* the node it was lowered from; of a joined work, the node that anchors it */
    oprec rec;    /* kind, shape, named dimensions, dtypes, costs: common/oprec.h */
    node **nodes; /* all graph nodes it stands for, the anchor among them */
    work **parts; /* works it was recognised from; empty for a plain one */
    int node_count, part_count;
    work *owner;            /* the joined work that this one is a part of; NULL: counts itself */
    tensor *weight;         /* the constant that is its weight (traced to the initializer); NULL where none */
    work_weight *more;      /* further constants of its own; of a joined work see work_weights */
    work_operand *operands; /* as told; work_operands gives them in order */
    work_beside *beside;    /* NULL: nothing */
    work_share *shares;     /* cost.c's own */
    int more_count, operand_count, share_count;
    dtype precision;   /* what floating types are replaced by; DTYPE_NONE: left as the model has them */
    bool moves_stored; /* it moves what a DequantizeLinear before it reads */
    bool free;         /* costs nothing at run time: a view, folded when the model is loaded, or control flow itself */
    bool strided;      /* a move that is free, as what reads it takes it as strides (view.h) */
    bool folded;       /* computed when the model is loaded: depends on constants and bound dimensions only */
    double times;      /* of its region */
    work *next_same;   /* collect.c: next occurrence of the same entry */
    struct catalog_entry *entry; /* collect.c: the entry it was merged into */
    int64_t mark;                /* scratch of work_join, then of fuse_select */
};

typedef struct worklist {
    model *model;
    arena *arena;
    dtype precision;
    work **items; /* plain works in graph order, then joined works in the order of their making */
    size_t count, cap;
    work **of_node; /* by node id: the plain work of that node */
    int64_t mark;   /* work_join's own */
} worklist;

/* Lowers every node. Floating types (and the bytes that follow from them) are taken to be `precision`; DTYPE_NONE
 * leaves the model's own. */
void work_list(worklist *list, model *m, dtype precision);
work *work_of(const worklist *list, const node *n); /* the plain work; NULL for NULL */
const work *work_weights(const work *w);            /* the holder of `more` for its weight: itself or a part */
work *work_top(work *w);                            /* follows owner to the work that counts */

/* Joins nodes into one new work anchored at `anchor`, whose record the caller fills (cost.h helps). Nodes that already
 * belong to a joined work bring that work, and all its nodes, as a part. Returns NULL, and changes nothing, where a
 * node stands in another region. */
work *work_join(worklist *list, node *anchor, node *const *nodes, int node_count);

/* ---- work_operands.c ---- */

/* Adds one. Elements that lie otherwise than the operation takes them are another tensor: `t` is NULL then. */
void work_tell(work *w, const char *name, tensor *t);
void work_tell_made(work *w, const char *name, tensor *t);
void work_tell_formed(work *w, const work_formed *formed);
/* Of a work that becomes a part of it, or of itself; its numbers and what is formed, too. */
void work_take_operands(work *w, const work *from);
/* Beside the record; not known: nothing can compute what the model does by ops.json alone. */
void work_tell_number(work *w, const char *name, double x);
void work_tell_unknown(work *w, const char *name);
tensor *work_told(const work *w, const char *name); /* NULL: not told */
/* All that the record says there are, in the order of the operation's tensors; in the arena. Returns how many. */
int work_operands(const work *w, work_operand **out);

/* ---- shared by the files of work; for a work that is lowered and not free ---- */

void work_add_attrs(work *w);     /* attributes that are fields as they stand */
void work_add_constants(work *w); /* beside its main weight */
void work_add_operands(work *w);  /* where its lower function has told none */
