/* Reads a product's dimensions. A MatMul says them by position, an Einsum by letters. */
#include "extract/match/match_product.h"

#include "common/checked.h"

#include <ctype.h>
#include <string.h>

enum { PRODUCT_MAX_LETTERS = 16 };

static bool is_matmul(const node *n) {
    return flow_is(n, "MatMul") || graph_is_ms(n, "FusedMatMul") || graph_is_ms(n, "TransposeMatMul") ||
           graph_is_ms(n, "FusedMatMulActivation");
}

bool product_is(const node *n) { return is_matmul(n) || (graph_is(n, "Einsum") && n->in_count == 2); }

/* ---- by position ---- */

/* The size of what lies before the last two dimensions, split into batch and heads as the scores' rank suggests. */
static void split_lead(const tensor *out, const tensor *right, product_sides *s) {
    int rank = flow_rank(out), right_rank = flow_rank(right);
    const int64_t *d = out->info->dims;
    s->batch = s->heads = s->kv_heads = 1;
    if (rank == 3) {
        s->batch = d[0];
        s->heads = -1;
        s->kv_heads = -1;
        return;
    }
    if (rank < 4) return;
    int first = rank - 3; /* first of the dimensions that are heads */
    bool grouped = rank == 5 && flow_dim(right, -3) == 1 && d[2] > 1 && right_rank == 5;
    if (grouped) first = rank - 4;
    for (int k = 0; k < rank - 2; k++) {
        int64_t own = flow_dim(right, k - rank);
        if (k < first) {
            s->batch = checked_mul(s->batch, d[k]);
        } else {
            s->heads = checked_mul(s->heads, d[k]);
            s->kv_heads = checked_mul(s->kv_heads, k + right_rank >= rank && own > 0 ? own : 1);
        }
    }
}

static bool matmul_sides(const node *n, bool exchange, product_sides *s) {
    tensor *out = flow_out(n, 0), *a = flow_in(n, 0), *b = flow_in(n, 1);
    if (flow_rank(out) < 2 || flow_rank(a) < 2 || flow_rank(b) < 2) return false;
    bool turn_a = false, turn_b = false;
    if (!flow_is(n, "MatMul")) {
        turn_a = graph_attr_int(n, "transA", 0) != 0;
        turn_b = graph_attr_int(n, "transB", 0) != 0;
        if (graph_attr_int(n, "transBatchA", 0) || graph_attr_int(n, "transBatchB", 0)) return false;
        if (graph_attr_string(n, "activation", NULL)) return false;
        s->alpha = graph_attr_float(n, "alpha", 1);
    } else {
        s->alpha = 1;
    }
    s->left = exchange ? b : a;
    s->right = exchange ? a : b;
    s->rows = flow_dim(out, exchange ? -1 : -2);
    s->cols = flow_dim(out, exchange ? -2 : -1);
    s->inner = flow_dim(a, turn_a ? -2 : -1);
    /* exchanged, the right side stands first and is read by rows, which is what [cols, inner] means */
    s->right_turned = exchange ? !turn_a : turn_b;
    split_lead(out, s->right, s);
    return true;
}

/* ---- by letters ---- */

typedef struct letters {
    char text[3][PRODUCT_MAX_LETTERS]; /* two inputs and the output; without blanks */
    int64_t size[128];
} letters;

static bool letters_read(const node *n, letters *l) {
    const char *p = graph_attr_string(n, "equation", "");
    int part = 0, at = 0;
    memset(l, 0, sizeof *l);
    for (; *p; p++) {
        if (*p == ' ') continue;
        if (*p == ',' || (*p == '-' && p[1] == '>')) {
            if (++part > 2 || (*p == ',') != (part == 1)) return false;
            at = 0;
            if (*p == '-') p++;
            continue;
        }
        if (!isalpha((unsigned char)*p) || at + 1 >= PRODUCT_MAX_LETTERS) return false;
        if (memchr(l->text[part], *p, (size_t)at)) return false;
        l->text[part][at++] = *p;
    }
    if (part != 2) return false;
    for (int i = 0; i < 2; i++) {
        const tensor *t = flow_in(n, i);
        if (flow_rank(t) != (int)strlen(l->text[i])) return false;
        for (int k = 0; l->text[i][k]; k++) {
            int64_t *size = &l->size[(unsigned char)l->text[i][k]], dim = flow_dim(t, k);
            if (dim > *size) *size = dim;
        }
    }
    return true;
}

static bool has(const char *text, char letter) { return letter && strchr(text, letter) != NULL; }

/* What stands before the last two letters of the scores is the batch (its first letter) and the heads. */
static void letters_lead(const letters *l, const char *scores, const char *right, product_sides *s) {
    int rank = (int)strlen(scores);
    s->batch = s->heads = s->kv_heads = 1;
    for (int k = 0; k + 2 < rank; k++) {
        int64_t size = l->size[(unsigned char)scores[k]];
        if (rank == 3) {
            s->batch = size;
            s->heads = s->kv_heads = -1;
        } else if (k == 0) {
            s->batch = size;
        } else {
            s->heads = checked_mul(s->heads, size);
            if (has(right, scores[k])) s->kv_heads = checked_mul(s->kv_heads, size);
        }
    }
}

static bool einsum_scores(const node *n, bool turned, product_sides *s) {
    letters l;
    if (!letters_read(n, &l)) return false;
    const char *out = l.text[2];
    int rank = (int)strlen(out);
    if (rank < 2) return false;
    char key = out[turned ? rank - 2 : rank - 1], query = out[turned ? rank - 1 : rank - 2];
    int right = has(l.text[1], key) ? 1 : 0;
    const char *k = l.text[right], *q = l.text[1 - right];
    if (!has(k, key) || has(q, key) || !has(q, query) || has(k, query)) return false;
    s->left = n->in[1 - right];
    s->right = n->in[right];
    s->rows = l.size[(unsigned char)query];
    s->cols = l.size[(unsigned char)key];
    s->inner = 1;
    for (int i = 0; q[i]; i++) {
        if (has(k, q[i]) && !has(out, q[i])) s->inner = checked_mul(s->inner, l.size[(unsigned char)q[i]]);
    }
    s->alpha = 1;
    s->right_turned = true; /* letters need no transpose before them */
    letters_lead(&l, out, k, s);
    return true;
}

static bool einsum_values(const node *n, const tensor *p, bool turned, product_sides *s) {
    letters l;
    if (!letters_read(n, &l)) return false;
    int left = n->in[0] == p ? 0 : 1;
    const char *probs = l.text[left], *vals = l.text[1 - left], *out = l.text[2];
    int rank = (int)strlen(probs);
    if (rank < 2) return false;
    char key = probs[turned ? rank - 2 : rank - 1], query = probs[turned ? rank - 1 : rank - 2];
    if (!has(vals, key) || has(out, key) || has(vals, query) || !has(out, query)) return false;
    s->left = n->in[left];
    s->right = n->in[1 - left];
    s->rows = l.size[(unsigned char)query];
    s->inner = l.size[(unsigned char)key];
    s->cols = 1;
    for (int i = 0; vals[i]; i++) {
        if (!has(probs, vals[i])) s->cols = checked_mul(s->cols, l.size[(unsigned char)vals[i]]);
    }
    s->alpha = 1;
    s->right_turned = false;
    letters_lead(&l, probs, vals, s);
    return true;
}

bool product_scores(const node *n, bool turned, product_sides *s) {
    memset(s, 0, sizeof *s);
    if (graph_is(n, "Einsum")) return n->in_count == 2 && einsum_scores(n, turned, s);
    return is_matmul(n) && matmul_sides(n, turned, s);
}

bool product_values(const node *n, const tensor *p, bool turned, product_sides *s) {
    memset(s, 0, sizeof *s);
    if (graph_is(n, "Einsum")) return n->in_count == 2 && einsum_values(n, p, turned, s);
    if (!is_matmul(n)) return false;
    bool second = flow_in(n, 1) == p;
    if (flow_in(n, 0) == p && second) return false;
    bool own = graph_attr_int(n, second ? "transB" : "transA", 0) != 0;
    /* probabilities must meet the value along their keys: P V, or (as transposes) V' P' */
    if (second != (turned != own)) return false;
    return matmul_sides(n, second, s);
}
