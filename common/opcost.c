/* Owns how operations are counted. */
#include "common/opcost.h"

#include "common/checked.h"

#include <string.h>

static const struct {
    op_kind kind;
    const char *what; /* NULL: any other */
    int64_t flops;
} per_element[] = {
    {OP_NORM, "rms", 5}, {OP_NORM, "l2", 5},      {OP_NORM, "batch", 2},  {OP_NORM, "lp", 4},   {OP_NORM, "mvn", 6},
    {OP_NORM, NULL, 8},  {OP_SOFTMAX, "hard", 2}, {OP_SOFTMAX, NULL, 12}, {OP_ROTARY, NULL, 3},
};

int64_t opcost_per_element(op_kind kind, const char *what) {
    for (size_t k = 0; k < sizeof per_element / sizeof *per_element; k++) {
        const char *wanted = per_element[k].what;
        if (per_element[k].kind == kind && (!wanted || (what && strcmp(wanted, what) == 0)))
            return per_element[k].flops;
    }
    return 1;
}

bool opcost_by_data(const oprec *r) {
    return r->kind == OP_REDUCE && r->what && strcmp(r->what, "nonmaxsuppression") == 0;
}

void opcost_macs(oprec *r, int64_t macs) {
    r->macs = macs;
    r->flops = checked_mul(2, macs);
}

void opcost_gemm(oprec *r) {
    opcost_macs(r,
                checked_mul(checked_mul(r->shape[0], r->shape[1]), checked_mul(r->shape[2], oprec_int(r, "batch", 1))));
}

/* Queries times the keys each may see. Query i sees past + i + 1 keys under a causal mask, never more than `cap`. */
static int64_t visible_pairs(int64_t queries, int64_t cap, int64_t past, bool causal) {
    if (!causal) return checked_mul(queries, cap);
    int64_t first = checked_add(past, 1), rows = queries;
    if (first < 1) { /* the first queries see nothing */
        const int64_t blind = checked_sub(1, first);
        rows = rows > blind ? rows - blind : 0;
        first = 1;
    }
    int64_t growing = cap > first ? checked_sub(cap, first) : 0;
    if (growing > rows) growing = rows;
    const int64_t ends = checked_add(checked_mul(2, first), growing - 1);
    return checked_add(checked_mul(growing, ends) / 2, checked_mul(rows - growing, cap));
}

void opcost_attention_pairs(oprec *r, int64_t pairs) {
    const int64_t queries = r->shape[2], head = r->shape[3], keys = oprec_int(r, "kv_len", queries);
    const int64_t each =
        checked_mul(checked_mul(r->shape[0], r->shape[1]), checked_add(head, oprec_int(r, "v_head", head)));
    r->macs = checked_mul(each, checked_mul(queries, keys));
    r->flops = checked_mul(2, checked_mul(each, pairs));
}

void opcost_attention(oprec *r) {
    const int64_t queries = r->shape[2], keys = oprec_int(r, "kv_len", queries);
    const int64_t window = oprec_int(r, "window", 0), cap = window > 0 && window < keys ? window : keys;
    const int64_t past = oprec_int(r, "past", checked_sub(keys, queries));
    const bool causal = r->mask && strncmp(r->mask, "causal", 6) == 0;
    opcost_attention_pairs(r, visible_pairs(queries, cap, past, causal));
}

int opcost_gates(const oprec *r) {
    if (r->what && strcmp(r->what, "lstm") == 0) return 4;
    return r->what && strcmp(r->what, "gru") == 0 ? 3 : 1;
}

void opcost_recurrent(oprec *r) {
    enum { POINTWISE = 12 }; /* operations per gate and hidden unit beside the products */
    const int64_t rows = checked_mul(r->shape[0], r->shape[1]), hidden = r->shape[3];
    const int64_t wide = checked_mul(oprec_int(r, "directions", 1), checked_mul(hidden, opcost_gates(r)));
    const int64_t cells = checked_mul(rows, wide);
    opcost_macs(r, checked_mul(cells, checked_add(r->shape[2], hidden)));
    r->flops = checked_add(r->flops, checked_mul(cells, POINTWISE));
}
