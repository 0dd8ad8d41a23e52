/* Matrix products in all their forms, and determinants. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <ctype.h>
#include <string.h>

/* numpy's matmul of inputs a and b; the two vectors' dimensions are dropped from the result. */
static void matmul(infer *c, int a, int b, dtype type) {
    int64_t dims[INFO_MAX_RANK];
    if (!value_index_need(c, a) || !value_index_need(c, b)) return;
    const info *x = infer_in(c, a), *y = infer_in(c, b);
    if (x->rank == 0 || y->rank == 0)
        infer_fail(c, "cannot multiply %s and %s", info_text(c->arena, x), info_text(c->arena, y));
    int64_t inner = y->dims[y->rank == 1 ? 0 : y->rank - 2];
    if (x->dims[x->rank - 1] != inner)
        infer_fail(c, "cannot multiply %s and %s: the inner dimensions differ", info_text(c->arena, x),
                   info_text(c->arena, y));
    int rank = infer_broadcast(c, x->rank > 2 ? x->rank - 2 : 0, x->dims, y->rank > 2 ? y->rank - 2 : 0, y->dims, dims);
    if (x->rank > 1) dims[rank++] = x->dims[x->rank - 2];
    if (y->rank > 1) dims[rank++] = y->dims[y->rank - 1];
    infer_set(c, 0, type, rank, dims);
}

void shape_matmul(infer *c) {
    shape_need_one_type(c, 0, 2);
    matmul(c, 0, 1, infer_type(c, 0));
}

void shape_matmul_integer(infer *c) { matmul(c, 0, 1, DTYPE_INT32); }

void shape_matmul_qlinear(infer *c) { matmul(c, 0, 3, infer_type(c, 7)); }

void shape_matmul_gemm(infer *c) {
    shape_need_one_type(c, 0, 3);
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return;
    const info *x = infer_in(c, 0), *y = infer_in(c, 1);
    if (x->rank != 2 || y->rank != 2)
        infer_fail(c, "needs two matrices, not %s and %s", info_text(c->arena, x), info_text(c->arena, y));
    bool flip_x = infer_attr_int(c, "transA", 0) != 0, flip_y = infer_attr_int(c, "transB", 0) != 0;
    if (x->dims[!flip_x] != y->dims[flip_y])
        infer_fail(c, "cannot multiply %s%s and %s%s: the inner dimensions differ", info_text(c->arena, x),
                   flip_x ? " (transposed)" : "", info_text(c->arena, y), flip_y ? " (transposed)" : "");
    const int64_t dims[2] = {x->dims[flip_x], y->dims[!flip_y]};
    if (infer_has(c, 2) && infer_shaped(c, 2)) {
        const info *bias = infer_in(c, 2);
        bool fits = bias->rank <= 2;
        for (int d = 1; fits && d <= bias->rank; d++)
            fits = bias->dims[bias->rank - d] == 1 || bias->dims[bias->rank - d] == dims[2 - d];
        const info product = {.form = INFO_TENSOR, .type = x->type, .rank = 2, .dims = dims};
        if (!fits)
            infer_fail(c, "cannot add %s to the product %s", info_text(c->arena, bias), info_text(c->arena, &product));
    }
    infer_set(c, 0, x->type, 2, dims);
}

void shape_matmul_det(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        infer_fail(c, "needs square matrices, not %s", info_text(c->arena, x));
    infer_set(c, 0, x->type, x->rank - 2, x->dims);
}

/* ---- Einsum ---- */

typedef struct einsum {
    int64_t size[128];           /* of each letter; -1: not met */
    int met[128];                /* how often */
    int64_t dots[INFO_MAX_RANK]; /* what the ellipsis stands for, broadcast over the operands */
    int dot_rank;
    bool dotted;
} einsum;

static void einsum_letter(infer *c, einsum *e, int letter, const info *x, int at) {
    if (at >= x->rank) infer_fail(c, "its equation has more indices than %s has dimensions", info_text(c->arena, x));
    int64_t dim = x->dims[at];
    if (e->size[letter] < 0 || e->size[letter] == 1) e->size[letter] = dim;
    if (dim != 1 && dim != e->size[letter])
        infer_fail(c, "index '%c' is %lld and, in %s, %lld", letter, (long long)e->size[letter], info_text(c->arena, x),
                   (long long)dim);
    e->met[letter]++;
}

static int count_letters(const char *term, size_t n) {
    int letters = 0;
    for (size_t k = 0; k < n; k++) letters += isalpha((unsigned char)term[k]) != 0;
    return letters;
}

/* Reads one operand's term (of n characters) against its shape. */
static void einsum_term(infer *c, einsum *e, const char *term, size_t n, const info *x) {
    int at = 0, letters = count_letters(term, n);
    bool dotted = false;
    for (size_t k = 0; k < n; k++) {
        if (isalpha((unsigned char)term[k])) {
            einsum_letter(c, e, term[k], x, at++);
        } else if (term[k] == '.') {
            if (dotted || k + 2 >= n || term[k + 1] != '.' || term[k + 2] != '.')
                infer_fail(c, "its equation has stray dots");
            int64_t so_far[INFO_MAX_RANK];
            int rank = x->rank - letters;
            if (rank < 0) infer_fail(c, "its equation has more indices than %s has dimensions", info_text(c->arena, x));
            memcpy(so_far, e->dots, sizeof so_far);
            e->dot_rank = infer_broadcast(c, e->dot_rank, so_far, rank, x->dims + at, e->dots);
            dotted = e->dotted = true;
            at += rank;
            k += 2;
        } else if (!isspace((unsigned char)term[k])) {
            infer_fail(c, "its equation has a character that is neither a letter nor a dot");
        }
    }
    if (at != x->rank) infer_fail(c, "its equation has %d indices for %s", at, info_text(c->arena, x));
}

/* The output term spelled out: the ellipsis' dimensions, then letters. */
static int einsum_output(infer *c, const einsum *e, const char *term, int64_t *dims) {
    int rank = 0;
    bool seen[128] = {false};
    for (size_t k = 0; term[k]; k++) {
        if (isspace((unsigned char)term[k])) continue;
        if (term[k] == '.') {
            if (strncmp(term + k, "...", 3)) infer_fail(c, "its equation has stray dots");
            if (rank + e->dot_rank >= INFO_MAX_RANK) infer_fail(c, "its equation has too many indices");
            memcpy(dims + rank, e->dots, sizeof *dims * (size_t)e->dot_rank);
            rank += e->dot_rank;
            k += 2;
            continue;
        }
        int letter = (unsigned char)term[k];
        if (letter > 127 || e->size[letter] < 0) infer_fail(c, "its output has an index that no operand has");
        if (seen[letter]) infer_fail(c, "its output has index '%c' twice", letter);
        seen[letter] = true;
        if (rank >= INFO_MAX_RANK) infer_fail(c, "its equation has too many indices");
        dims[rank++] = e->size[letter];
    }
    return rank;
}

void shape_matmul_einsum(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    einsum e = {.dot_rank = 0};
    const char *equation = infer_attr_string(c, "equation", ""), *arrow = strstr(equation, "->"), *term = equation;
    for (int k = 0; k < 128; k++) e.size[k] = -1;
    const char *end = arrow ? arrow : equation + strlen(equation);
    for (int k = 0; k < infer_in_count(c); k++) {
        if (!value_index_need(c, k)) return;
        const char *comma = memchr(term, ',', (size_t)(end - term));
        bool last = k == infer_in_count(c) - 1;
        if (last == (comma != NULL)) infer_fail(c, "its equation has not as many terms as there are inputs");
        einsum_term(c, &e, term, (size_t)((comma ? comma : end) - term), infer_in(c, k));
        if (comma) term = comma + 1;
    }
    char implied[160] = "";
    if (!arrow) { /* the ellipsis, then what stands once, in the order of the alphabet (capitals first) */
        size_t n = 0;
        if (e.dotted) n = strlen(strcpy(implied, "..."));
        for (int letter = 0; letter < 128; letter++)
            if (e.met[letter] == 1) implied[n++] = (char)letter;
        implied[n] = 0;
    }
    int rank = einsum_output(c, &e, arrow ? arrow + 2 : implied, dims);
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}
