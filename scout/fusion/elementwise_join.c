/* Joining parts: dimensions are kept from the last one on here, so that operands of any rank lie under one another as
 * broadcasting wants it, and what a part lacks is 1. */
#include "scout/fusion/elementwise_join.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"
#include "scout/op/elementwise_chain.h"

#include <string.h>

typedef struct dims {
    int64_t at[SCOUT_MAX_RANK]; /* the last dimension first */
} dims;

typedef struct operand {
    dims dims;
    uint32_t type;
    bool side;
} operand;

typedef struct joiner {
    arena *arena;
    scout_why *why;
    int part;        /* that is joined */
    uint32_t type;   /* of the whole: that of the first part */
    dims value;      /* what the parts so far compute */
    uint32_t result; /* its type */
    operand operands[ELEMENTWISE_MAX_OPERANDS];
    int operand_count;
    elementwise_step steps[ELEMENTWISE_CHAIN_STEPS]; /* `from` as in a chain */
    const char *numbers[ELEMENTWISE_CHAIN_STEPS];    /* in brackets, or "" */
} joiner;

static bool refuse(const joiner *j, const char *code, const char *text) {
    return kind_tensors_refuse(j->why, code, "part %d %s", j->part + 1, text);
}

/* ---- dimensions ---- */

static dims dims_of(uint32_t rank, const int64_t *from) {
    dims d;
    for (uint32_t k = 0; k < SCOUT_MAX_RANK; k++) d.at[k] = k < rank ? from[rank - 1 - k] : 1;
    return d;
}

static bool alike(const dims *a, const dims *b) { return memcmp(a, b, sizeof *a) == 0; }

static int64_t elements(const dims *d, int of_last) {
    int64_t count = 1;
    for (int k = 0; k < of_last; k++) count = checked_mul(count, d->at[k]);
    return count;
}

/* How many of the last dimensions an operand has, all as the whole has them; -1: it is no such suffix. */
static int suffix_of(const dims *d, const dims *whole) {
    int last = 0;
    while (last < SCOUT_MAX_RANK && d->at[last] == whole->at[last]) last++;
    for (int k = last; k < SCOUT_MAX_RANK; k++)
        if (d->at[k] != 1) return -1;
    return last;
}

/* An operand under `before` as it lies under `behind`, which has the same elements by other dimensions. */
static bool review(dims *d, const dims *before, const dims *behind) {
    const int last = suffix_of(d, before);
    const int64_t count = elements(d, SCOUT_MAX_RANK);
    if (last < 0) return false;
    for (int k = 0; k <= SCOUT_MAX_RANK; k++)
        if (elements(behind, k) == count) {
            for (int i = 0; i < SCOUT_MAX_RANK; i++) d->at[i] = i < k ? behind->at[i] : 1;
            return true;
        }
    return false;
}

/* ---- parts ---- */

/* The tensor that the part before wrote, -1: there is none. After a view every operand so far lies anew. */
static int find_value(joiner *j, const scout_op *op) {
    const dims whole = dims_of(op->rank, op->shape);
    const int inputs = (int)op->tensor_count - 1;
    for (int t = 0; t < inputs; t++) {
        const dims d = dims_of(op->tensors[t].rank, op->tensors[t].dims);
        if (op->tensors[t].type == j->result && alike(&d, &j->value)) return t;
    }
    for (int t = 0; t < inputs; t++) {
        const dims d = dims_of(op->tensors[t].rank, op->tensors[t].dims);
        if (op->tensors[t].type != j->result || !alike(&d, &whole)) continue;
        if (elements(&d, SCOUT_MAX_RANK) != elements(&j->value, SCOUT_MAX_RANK)) continue;
        for (int k = 0; k < j->operand_count; k++)
            if (!review(&j->operands[k].dims, &j->value, &whole)) return -1;
        return t;
    }
    return -1;
}

static bool add_operand(joiner *j, const scout_tensor *t, int *index) {
    if (j->operand_count == ELEMENTWISE_MAX_OPERANDS)
        return refuse(j, "feature", "reads more tensors than one operation has");
    *index = j->operand_count;
    j->operands[j->operand_count++] =
        (operand){.dims = dims_of(t->rank, t->dims), .type = t->type, .side = t->role == SCOUT_SIDE};
    return true;
}

/* The shortest decimal that reads back as the same number. */
static const char *decimal(arena *a, double x) {
    const char *text = "";
    for (int digits = 6; digits <= 17; digits++) {
        text = arena_printf(a, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    return text;
}

/* The numbers that the operation tells, as "[alpha=0.5]". */
static const char *numbers_of(arena *a, const scout_op *op, elementwise_id id) {
    const elementwise_number_names *names = elementwise_number_names_of(id);
    const elementwise_numbers n = elementwise_numbers_of(op);
    if (!names) return "";
    const char *first = op_field(op, names->first) ? arena_printf(a, "%s=%s", names->first, decimal(a, n.alpha)) : "";
    const char *second =
        names->second && op_field(op, names->second) ? arena_printf(a, "%s=%s", names->second, decimal(a, n.beta)) : "";
    if (!*first && !*second) return "";
    return arena_printf(a, "[%s%s%s]", first, *first && *second ? "," : "", second);
}

static const char *type_name(uint32_t type) {
    for (size_t k = 0; elementwise_type_name_at(k).name; k++)
        if (elementwise_type_name_at(k).type == type) return elementwise_type_name_at(k).name;
    return dtype_get((dtype)type)->name; /* the reader refuses it */
}

static bool add_part(joiner *j, const operation *part, elementwise_join_part *where) {
    elementwise_chain single;
    scout_op op;
    int sources[ELEMENTWISE_MAX_OPERANDS] = {0};
    const bool cast = part->rec.kind == OP_MOVE && part->rec.what && strcmp(part->rec.what, "cast") == 0;
    if (part->rec.kind != OP_ELEMENTWISE && !cast) return refuse(j, "feature", "is not an elementwise operation");
    if (!kinds_build(part, 0, j->arena, &op, j->why)) return false;
    if (op_is(&op, "chain")) return refuse(j, "feature", "is a chain already");
    if (op_field(&op, "quant")) return refuse(j, "feature", "is quantised work, which no chain has");
    if (!cast && !elementwise_chain_of(&op, &single, j->why)) return false;
    elementwise_step *s = &j->steps[j->part];
    *s = (elementwise_step){.id = cast ? ELEMENTWISE_COUNT : single.steps[0].id, .result = op.output};
    s->inputs = cast ? 1 : elementwise_sources(&op, sources);
    if (j->part == 0) j->type = op.input;
    const int value = j->part == 0 ? -1 : find_value(j, &op);
    if (j->part > 0 && value < 0) return refuse(j, "shape", "reads no output of the part before it");
    where->tensor_count = (int)op.tensor_count - 1;
    for (int t = 0; t < where->tensor_count; t++) {
        where->tensors[t] = ELEMENTWISE_CHAIN_VALUE;
        if (t != value && !add_operand(j, &op.tensors[t], &where->tensors[t])) return false;
    }
    for (int k = 0; k < s->inputs; k++) s->from[k] = where->tensors[sources[k]];
    j->numbers[j->part] =
        cast ? arena_printf(j->arena, "[to=%s]", type_name(op.output)) : numbers_of(j->arena, &op, s->id);
    j->value = dims_of(op.rank, op.shape);
    j->result = op.output;
    return true;
}

/* ---- the text ---- */

static const char *operand_text(const joiner *j, int k) {
    const operand *o = &j->operands[k];
    const int last = suffix_of(&o->dims, &j->value);
    const int64_t count = elements(&o->dims, SCOUT_MAX_RANK);
    const char *type = o->type == j->type ? "" : arena_printf(j->arena, ":%s", type_name(o->type)), *text = "";
    int rank = SCOUT_MAX_RANK;
    if (o->side && count == 1) return arena_printf(j->arena, "scalar%s", type);
    if (alike(&o->dims, &j->value)) return arena_printf(j->arena, "tensor%s", type);
    if (o->side && last >= 1 && count == o->dims.at[0]) return arena_printf(j->arena, "vector%s", type);
    while (rank > 1 && o->dims.at[rank - 1] == 1) rank--;
    for (int d = rank; d-- > 0;)
        text = arena_printf(j->arena, "%s%s%lld", text, *text ? "x" : "", (long long)o->dims.at[d]);
    return arena_printf(j->arena, "%s%s", text, type);
}

static const char *chain_text(const joiner *j, int parts) {
    const char *text = "";
    for (int p = 0; p < parts; p++) {
        const elementwise_step *s = &j->steps[p];
        const elementwise_operator *is = elementwise_operator_at(s->id);
        text = arena_printf(j->arena, "%s%s%s%s(", text, p ? ";" : "", is ? is->what : "cast", j->numbers[p]);
        for (int k = 0; k < s->inputs; k++) {
            const bool same = k > 0 && s->from[k] >= 0 && s->from[k] == s->from[k - 1];
            const char *one = s->from[k] < 0 ? "v" : same ? "same" : operand_text(j, s->from[k]);
            text = arena_printf(j->arena, "%s%s%s", text, k ? "," : "", one);
        }
        text = arena_printf(j->arena, "%s)", text);
    }
    return text;
}

/* The record, whose bytes are those of its tensors. */
static bool finish(const joiner *j, const operation *const *parts, int count, operation *out) {
    scout_op op;
    const oprec *last = &parts[count - 1]->rec;
    *out = (operation){.count = 1, .pattern = "DENSE"};
    out->rec = (oprec){.kind = OP_ELEMENTWISE, .what = "chain", .type = (dtype)j->type};
    if (j->result != j->type) out->rec.out_type = (dtype)j->result;
    oprec_set_shape(&out->rec, j->arena, last->rank, last->shape);
    oprec_set_text(&out->rec, "chain", chain_text(j, count));
    for (int p = 0; p < count; p++) out->rec.flops = checked_add(out->rec.flops, parts[p]->rec.flops);
    out->id = out->name = oprec_id(&out->rec, j->arena);
    if (!kinds_build(out, 0, j->arena, &op, j->why)) return false;
    out->rec.bytes_read = (int64_t)op.bytes_read;
    out->rec.bytes_written = (int64_t)op.bytes_written;
    return true;
}

bool elementwise_join(const operation *const *parts, int count, arena *a, operation *out, elementwise_join_part *where,
                      scout_why *why) {
    joiner j = {.arena = a, .why = why};
    if (count < 2 || count > ELEMENTWISE_CHAIN_STEPS)
        return kind_tensors_refuse(why, "feature", "a chain has 2 to %d parts, not %d", (int)ELEMENTWISE_CHAIN_STEPS,
                                   count);
    for (; j.part < count; j.part++)
        if (!add_part(&j, parts[j.part], &where[j.part])) return false;
    return finish(&j, parts, count, out);
}
