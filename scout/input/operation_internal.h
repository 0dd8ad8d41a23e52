/* What the readers of operations share: how they complain, and how a record's members are read from JSON. */
#pragma once

#include "scout/input/operation.h"
#include "scout/op/block_mask.h"

typedef struct operation_reader {
    arena *arena;
    const char *where; /* file, or what of the command line is read */
    const char *entry; /* that is being read; "" before the first */
    status_code code;  /* of its complaints */
    const char *precision;
    const char *dimensions;  /* "M, N, K, ": what an axis may be, beside members; NULL: there are no axes */
    const char *const *sets; /* NAME=VALUE of the command line: members of every entry */
    int set_count;
    bool whole; /* what runs the model is told, too */
} operation_reader;

typedef struct operation_precision_row {
    const char *name;
    dtype type, weight, out; /* out DTYPE_NONE: as type */
    const char *math;        /* NULL: as the type says */
    const char *layout;      /* of a product, where nothing else is said */
    int64_t block_size;      /* of the weight along K; 0: none */
} operation_precision_row;
const operation_precision_row *operation_find_precision(const char *name); /* NULL: unknown */
/* Fails with the list of those that are known, unless name is NULL or one of them. */
void operation_check_precision(const operation_reader *r, const char *name);

_Noreturn void operation_fail(const operation_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { OPERATION_MAX_RANK = 64 };
extern const int64_t operation_max_dim; /* 2^40 */

/* Members of an object; each fails with a line that names the member where it is there and not what it must be. */
const char *operation_text(const operation_reader *r, const json_t *o, const char *name); /* NULL: absent */
int64_t operation_number(const operation_reader *r, const json_t *o, const char *name, int64_t least, int64_t most,
                         int64_t otherwise);
dtype operation_dtype(const operation_reader *r, const json_t *o, const char *name);
/* Kind, shape, layout, mask, what and types but for dtype (where the short form has a precision); dimensions are at
 * least `least`. */
void operation_read_record(const operation_reader *r, const json_t *o, int64_t least, oprec *rec);
/* All named dimensions that `o` holds: the names of a closed table (docs/formats.md), others are ignored. */
void operation_read_fields(const operation_reader *r, const json_t *o, oprec *rec);
void operation_read_costs(const operation_reader *r, const json_t *o, oprec *rec);
/* Where there is a block mask: its text becomes the canonical one, and the record's mask says that there are blocks. */
void operation_settle_block_mask(const operation_reader *r, oprec *rec);
/* Of a record that is complete. */
void operation_check_block_mask(const operation_reader *r, const oprec *rec);
/* Sets the costs of an attention, of the blocks that are seen where it has a block mask. */
void operation_cost_attention(oprec *rec);
bool operation_is_field(const char *name);
const char *operation_field_name(size_t k); /* of that table; NULL: it ends before */
/* Shape and layout are possible for their kind; said for both forms alike. */
void operation_check_record(const operation_reader *r, const oprec *rec);
void operation_read_sparsity(const operation_reader *r, const json_t *o, const char *pattern_name, operation *out);
/* That a written entry has zeros only where they can be skipped: asked when all of it is read. */
void operation_check_sparsity(const operation_reader *r, const operation *o);

/* It costs nothing: a view, control, or computed when the model is loaded. */
bool operation_is_free(const oprec *rec);
/* Reads `graph` of ops.json, n bytes and a NUL, which change, holds it against the operations of the list, and fills in
 * the list's memory. */
void operation_read_graph(operation_reader *r, char *text, size_t n, operation_list *list);

/* A hand-written member that names what an entry reads, and is no dimension. */
bool operation_names_inputs(const char *name, const json_t *x);
/* Dataflow of the hand-written form, when all entries are read: operands of elementwise work, and the list's memory. */
void operation_read_inputs(operation_reader *r, operation_list *list);

/* That all members of a hand-written entry are known ones. */
void operation_check_names(const operation_reader *r, const json_t *entry);
/* That it has those without which its kind is nothing: `rec` is what was read of it so far, its named dimensions too.
 */
void operation_check_needs(const operation_reader *r, const json_t *entry, const oprec *rec);

void operation_finish_recurrent(const operation_reader *r, oprec *rec); /* of the hand-written form */

/* What a value of the command line is: a number, numbers with commas between, true or false, else a text. */
void operation_put_value(json_builder *b, json_t *entry, const char *name, const char *text);
/* The reader's sets; a member that the entry has already fails. */
void operation_put_sets(const operation_reader *r, json_builder *b, json_t *entry);
/* The words of the command line, as operation_from_words reads them, with this reader's complaints. */
void operation_read_words(operation_reader *r, const char *kind, const char *shape, double sparsity,
                          const char *pattern, operation_list *list);

/* An entry whose `op` is a list becomes one whose `op` is its first word, with members for the others. */
enum { OPERATION_SEQUENCE = 8 };
void operation_read_sequence(const operation_reader *r, json_t *entry);

/* The hand-written form: one entry, and all of them. */
void operation_read_short(operation_reader *r, const char *name, json_t *entry, operation *out);
