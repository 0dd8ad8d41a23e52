/* From symbols to numbers: which size every symbolic dimension of the model's inputs has, by --dim, --batch, --seq or
 * default. */
#pragma once

#include "extract/read/read.h"

typedef struct bind_symbol {
    const char *name;
    int64_t size;
    const char *how; /* NULL: not bound yet */
} bind_symbol;

typedef struct bind {
    model *model;
    arena *arena;
    const read_options *options;
    map seen; /* every dim_param seen */
    const char **order;
    size_t seen_count, seen_cap;
    map leading, behind; /* names that exporters number, where they stand first; names that stand behind another */
    map known;           /* names that stand alone somewhere, as a dimension or in an expression */
    map texts; /* every dim_param seen -> bind_symbol or, where it is an expression of others, a symbol that is not
                  listed */
    bind_symbol **symbols; /* in order of appearance */
    size_t count, cap;
    bool *used; /* per --dim: names something */
    map inputs; /* whose values --dim may give */
    map dims;   /* every dim_param seen; an input may be called after one, or one after it */
} bind;

void bind_init(bind *b, model *m, const read_options *options);
/* Registers a dim_param of an input, or the made name "input.axis" of a dimension that has none (`made`). `axis`: where
 * it stands. */
void bind_see(bind *b, const char *text, size_t axis, bool made);
/* Registers an input, should --dim give its value as if it were a dimension. */
void bind_see_input(bind *b, const char *name);
/* It was registered so; `alone`: no dimension is called so. */
bool bind_is_input(const bind *b, const char *name, bool *alone);
/* Gives every symbol a number, warns of defaults and of options that bind nothing, and fills the model's dims. */
void bind_finish(bind *b);
/* The number of a symbol or expression. `exact`: only of a text that was seen; false where it is not bound. */
bool bind_lookup(const bind *b, const char *text, int64_t *size);

/* The customary names of a batch or sequence dimension; case, '-', '.' and ' ' for '_' make no difference. */
const char *const *bind_batch_names(void); /* ends with NULL; likewise the next */
const char *const *bind_seq_names(void);
bool bind_is_batch(const char *name);
bool bind_is_seq(const char *name);

/* ---- bind_expr.c: what exporters write for a dimension that follows from others: "past_sequence_length + 1" ---- */
typedef struct bind_expr_names {
    bool (*size)(void *context, const char *name, size_t length, int64_t *size); /* false: give up. NULL: all are 1 */
    bool (*known)(void *context, const char *name, size_t length);               /* NULL: a '-' never divides a name */
    void *context;
} bind_expr_names;
typedef enum bind_expr_result {
    BIND_EXPR_OK,
    BIND_EXPR_NO_EXPRESSION, /* not in the form of one */
    BIND_EXPR_UNBOUND,       /* a symbol gave up */
    BIND_EXPR_IMPOSSIBLE     /* division by zero, or beyond 64 bits */
} bind_expr_result;
/* `names` may be NULL. Not strict: what cannot be computed is passed over, for a look at the symbols alone. What is no
 * whole number in the end is rounded down. */
bind_expr_result bind_expr(const char *text, const bind_expr_names *names, bool strict, int64_t *size);
