/* Walks the scores of an attention: up from the softmax to the product of queries and keys, down to the one with the
 * values. */
#include "extract/match/match_scores.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/match/match_flow.h"
#include "extract/match/match_patterns.h"
#include "extract/ops/cost.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- products of two activations, whichever operator spells them, as the two halves of an attention ---- */

enum { PRODUCT_MAX_LETTERS = 16 };

static bool is_matmul(const node *n) {
    return flow_is(n, "MatMul") || graph_is_ms(n, "FusedMatMul") || graph_is_ms(n, "TransposeMatMul") ||
           graph_is_ms(n, "FusedMatMulActivation");
}

/* an operator that may be such a product */
static bool product_is(const node *n) { return is_matmul(n) || (graph_is(n, "Einsum") && n->in_count == 2); }

/* By position. */

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
    s->exchanged = exchange;
    s->left_turned = exchange ? !turn_b : turn_a;
    /* exchanged, the right side stands first and is read by rows, which is what [cols, inner] means */
    s->right_turned = exchange ? !turn_a : turn_b;
    split_lead(out, s->right, s);
    return true;
}

/* By letters. */

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
static void letters_lead(const letters *l, const char *of, const char *right, product_sides *s) {
    int rank = (int)strlen(of);
    s->batch = s->heads = s->kv_heads = 1;
    for (int k = 0; k + 2 < rank; k++) {
        int64_t size = l->size[(unsigned char)of[k]];
        if (rank == 3) {
            s->batch = size;
            s->heads = s->kv_heads = -1;
        } else if (k == 0) {
            s->batch = size;
        } else {
            s->heads = checked_mul(s->heads, size);
            if (has(right, of[k])) s->kv_heads = checked_mul(s->kv_heads, size);
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
    s->by_letters = true;
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
    s->by_letters = true;
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

/* ---- softmax ---- */

/* Softmax written out: exponentials over their sum, with or without the row's maximum taken off before. Joined first,
 * so that an attention finds a softmax whichever way it is spelled. */

/* n leaves one number of each row of x. */
static bool reduces_rows(const node *n, const char *op_type, const tensor *x) {
    const tensor *out = flow_out(n, 0);
    int rank = flow_rank(x);
    if (!graph_is(n, op_type) || flow_in(n, 0) != x || rank < 1 || flow_rank(out) != rank || flow_dim(out, -1) != 1)
        return false;
    for (int k = 0; k < rank - 1; k++) {
        if (flow_dim(out, k) != flow_dim(x, k)) return false;
    }
    return flow_dim(x, -1) > 1;
}

/* The exponentials that n divides by something; that is *divisor. */
static tensor *divided(node *n, tensor **divisor, flow_set *set) {
    if (n->in_count != 2 || !n->in[0] || !n->in[1]) return NULL;
    int slot = graph_is(n, "Mul") && graph_is(n->in[1]->producer, "Exp") ? 1 : 0;
    tensor *over = n->in[1 - slot];
    if (!graph_is(n->in[slot]->producer, "Exp")) return NULL;
    if (graph_is(n, "Mul")) {
        if (!graph_is(over->producer, "Reciprocal") || !flow_in(over->producer, 0)) return NULL;
        flow_add(set, over->producer);
        over = over->producer->in[0];
    } else if (!graph_is(n, "Div")) {
        return NULL;
    }
    *divisor = over;
    return n->in[slot];
}

static tensor *written_out(node *last, flow_set *set) {
    tensor *sum, *powers = divided(last, &sum, set);
    if (!powers || !reduces_rows(sum->producer, "ReduceSum", powers)) return NULL;
    tensor *x = flow_in(powers->producer, 0);
    flow_add(set, sum->producer);
    flow_add(set, powers->producer);
    flow_add(set, last);
    node *shift = x ? x->producer : NULL;
    if (!shift || !graph_is(shift, "Sub") || shift->in_count != 2 || !shift->in[0] || !shift->in[1]) return x;
    node *most = shift->in[1]->producer;
    if (!reduces_rows(most, "ReduceMax", shift->in[0])) return x;
    flow_add(set, shift);
    flow_add(set, most);
    return shift->in[0];
}

/* What goes into the softmax whose result `last` writes; its nodes are added to the set. NULL where it writes none. */
static tensor *softmax_input(node *last, flow_set *set) {
    if (!graph_is(last, "Softmax")) return written_out(last, set);
    int rank = flow_rank(flow_out(last, 0));
    int64_t axis = graph_attr_int(last, "axis", last->opset < 13 ? 1 : -1);
    if (rank < 1 || (axis != -1 && axis != rank - 1)) return NULL;
    flow_add(set, last);
    return flow_in(last, 0);
}

bool match_softmax(match *m, node *last) {
    flow_set set = {.count = 0};
    tensor *x = flow_free(m, last) ? written_out(last, &set) : NULL;
    if (!x) return false;
    work *w = flow_join(m, &set, last);
    if (!w) return false;
    work_tell(w, "x", x);
    work_tell_made(w, "y", flow_out(last, 0));
    memset(&w->rec, 0, sizeof w->rec);
    int64_t cols = flow_dim(x, -1);
    cost_set_rows(w, OP_SOFTMAX, NULL, flow_count(x) / cols, cols, opcost_per_element(OP_SOFTMAX, NULL));
    cost_set_types(w, x, flow_out(last, 0));
    cost_boundary(w);
    return true;
}

/* ---- the scores between ---- */

enum {
    SCORES_MAX_STEPS = 24,
    SCORES_MAX_SEARCH = 48, /* nodes looked at for one input */
    SCORES_MAX_LOOKS = 512, /* and for one softmax */
    SCORES_MAX_INPUTS = 3
};

/* Exporters' guards against overflow: scores beyond these are hidden, or infinite in half precision. */
static const double scores_out_of_range = 1e4;

/* The last two dimensions are the same before and after. */
static bool keeps_matrix(const node *n) {
    const tensor *in = flow_in(n, 0), *out = flow_out(n, 0);
    return flow_rank(in) >= 2 && flow_rank(out) >= 2 && flow_dim(in, -1) == flow_dim(out, -1) &&
           flow_dim(in, -2) == flow_dim(out, -2);
}

static bool is_activation_product(const node *n) {
    return product_is(n) && flow_in(n, 0) && flow_in(n, 1) && !flow_constant(n->in[1]);
}

/* Scores that are stored in fewer bits for a moment. */
static bool is_requantised(const node *n) { return graph_is(n, "QuantizeLinear") || graph_is(n, "DequantizeLinear"); }

/* Does t come from a product by what may stand between it and a softmax? `budget` bounds the search over both sides of
 * additions. */
static bool reaches_product(const tensor *t, int *budget) {
    while (t && t->producer && t->producer_slot == 0 && --*budget >= 0) {
        const node *n = t->producer;
        if (is_activation_product(n)) return true;
        if (n->in_count > SCORES_MAX_INPUTS) return false;
        bool two = graph_is(n, "Add") || graph_is(n, "Mul") || graph_is(n, "Where") || graph_is(n, "Max") ||
                   graph_is(n, "Min");
        bool one = graph_is(n, "Sub") || graph_is(n, "Div") || graph_is(n, "Tanh") || graph_is(n, "Clip") ||
                   graph_is(n, "Transpose");
        if (!two && !one && !flow_renames(n) && !flow_reshapes(n) && !is_requantised(n)) return false;
        int from = graph_is(n, "Where") ? 1 : 0;
        for (int i = from; two && i + 1 < n->in_count && *budget > 0; i++) {
            if (n->in[i] && !flow_is_scalar(n->in[i]) && !flow_constant(n->in[i]) && reaches_product(n->in[i], budget))
                return true;
        }
        t = flow_in(n, two ? n->in_count - 1 : 0);
    }
    return false;
}

/* Which input of n carries the scores: the one that is as large as the output and comes from a product. -1: none. */
static int scores_slot(scores *s, const node *n, int first) {
    int64_t whole = flow_count(flow_out(n, 0));
    if (n->in_count != first + 2) return -1;
    for (int i = first; i < n->in_count; i++) {
        if (!n->in[i] || flow_constant(n->in[i]) || flow_count(n->in[i]) != whole) continue;
        int most = s->search_left < SCORES_MAX_SEARCH ? s->search_left : SCORES_MAX_SEARCH, budget = most;
        bool found = reaches_product(n->in[i], &budget);
        s->search_left -= most - (budget > 0 ? budget : 0);
        if (found) return i;
    }
    return -1;
}

static bool add_term(scores *s, const node *n, tensor *t, mask_form form, bool turned) {
    if (!t || s->term_count == MASK_MAX_TERMS) return false;
    s->terms[s->term_count++] = (mask_term){.t = t, .form = form, .turned = turned, .scores = flow_out(n, 0)};
    return true;
}

/* A factor with nothing along queries and keys scales; any other is a mask. */
static bool is_factor(const tensor *t) {
    return flow_is_scalar(t) || (flow_rank(t) >= 2 && flow_dim(t, -1) == 1 && flow_dim(t, -2) == 1);
}

static bool take_factor(match *m, scores *s, const tensor *t, bool divides) {
    double x;
    if (flow_scalar(m, t, &x) && x != 0)
        s->scale *= divides ? 1 / x : x;
    else
        s->scale_known = false;
    return true;
}

/* Arithmetic on the scores: masks are noted, scales multiplied up. Returns where the scores come from, NULL where
 * unfit. */
static tensor *up_binary(match *m, scores *s, node *n, bool turned) {
    int slot = scores_slot(s, n, 0);
    if (slot < 0) return NULL;
    tensor *other = flow_in(n, 1 - slot);
    double limit;
    bool fits = false;
    if (graph_is(n, "Add")) {
        const bool first = s->term_count == 0, plain = s->scale_known && s->scale == 1 && s->softcap == 0;
        s->added_last = plain && (first || s->added_last);
        fits = add_term(s, n, other, MASK_ADD, turned);
    } else if (graph_is(n, "Sub"))
        fits = slot == 0 && add_term(s, n, other, MASK_SUB, turned);
    else if (graph_is(n, "Div"))
        fits = slot == 0 && is_factor(other) && take_factor(m, s, other, true);
    else if (graph_is(n, "Mul"))
        fits = is_factor(other) ? take_factor(m, s, other, false) : add_term(s, n, other, MASK_MUL, turned);
    else if (flow_scalar(m, other, &limit)) /* Max and Min with a limit that no score reaches */
        fits = graph_is(n, "Max") ? limit <= -scores_out_of_range : limit >= scores_out_of_range;
    return fits ? n->in[slot] : NULL;
}

/* What takes the place of a hidden score: one number, far below every score where it is known. */
static bool is_fill(match *m, tensor *t) {
    double x;
    if (!t) return false;
    node *n = flow_producer(t);
    if (!flow_is_scalar(t) && graph_is(n, "Expand")) t = flow_in(n, 0);
    if (t && flow_is_scalar(t)) return !flow_scalar(m, t, &x) || x <= -100;
    return t && (flow_constant(t) || graph_is(n, "ConstantOfShape"));
}

static bool clips_nothing(match *m, const node *n) {
    double low = graph_attr_float(n, "min", -INFINITY), high = graph_attr_float(n, "max", INFINITY);
    if (flow_in(n, 1) && !flow_scalar(m, n->in[1], &low)) return false;
    if (flow_in(n, 2) && !flow_scalar(m, n->in[2], &high)) return false;
    return low <= -scores_out_of_range && high >= scores_out_of_range;
}

static tensor *up_step(match *m, scores *s, node *n, bool *turned) {
    if (flow_renames(n) || is_requantised(n)) return flow_in(n, 0);
    if (flow_reshapes(n)) return keeps_matrix(n) ? flow_in(n, 0) : NULL;
    if (graph_is(n, "Transpose")) {
        if (!flow_swaps_last(n)) return NULL;
        *turned = !*turned;
        return flow_in(n, 0);
    }
    if (graph_is(n, "Clip")) return clips_nothing(m, n) ? flow_in(n, 0) : NULL;
    if (graph_is(n, "Tanh")) { /* cap * tanh(scores / cap): what was multiplied so far is the cap */
        if (s->softcap != 0 || !s->scale_known) return NULL;
        s->softcap = s->scale;
        s->scale = 1;
        return flow_in(n, 0);
    }
    if (graph_is(n, "Where")) {
        int slot = scores_slot(s, n, 1);
        if (slot < 1 || !is_fill(m, n->in[3 - slot]) ||
            !add_term(s, n, n->in[0], slot == 1 ? MASK_KEEP : MASK_HIDE, *turned))
            return NULL;
        return n->in[slot];
    }
    bool binary = graph_is(n, "Add") || graph_is(n, "Sub") || graph_is(n, "Mul") || graph_is(n, "Div") ||
                  graph_is(n, "Max") || graph_is(n, "Min");
    return binary ? up_binary(m, s, n, *turned) : NULL;
}

static bool walk_up(match *m, scores *s, tensor *t) {
    bool turned = false;
    for (int step = 0; t && t->producer && t->producer_slot == 0 && step < SCORES_MAX_STEPS; step++) {
        node *n = t->producer;
        flow_add(&s->set, n);
        if (is_activation_product(n)) {
            s->first = n;
            s->first_turned = turned;
            return true;
        }
        t = up_step(m, s, n, &turned);
    }
    return false;
}

/* Where(IsNaN(p), 0, p): exporters make a row that sees nothing a row of zeros. */
static node *down_guard(scores *s, const tensor *t, node *a, node *b) {
    node *test = graph_is(a, "IsNaN") ? a : b, *pick = test == a ? b : a;
    if (!graph_is(test, "IsNaN") || !graph_is(pick, "Where") || flow_in(pick, 2) != t) return NULL;
    if (!flow_is_scalar(flow_in(pick, 1)) || flow_producer(flow_in(pick, 0)) != test) return NULL;
    flow_add(&s->set, test);
    if (pick->in[0]->producer != test) flow_add(&s->set, pick->in[0]->producer);
    return pick;
}

/* t is what a term hides pairs by, so that hiding them once more changes nothing. */
static bool is_term(const scores *s, tensor *t, mask_form form) {
    for (int k = 0; k < s->term_count; k++) {
        if (s->terms[k].form == form && flow_origin(s->terms[k].t) == flow_origin(t)) return true;
    }
    return false;
}

/* Probabilities of pairs that are hidden already are made zeros, or multiplied by what the scores were. */
static bool hides_again(match *m, const scores *s, const node *n, const tensor *t) {
    double x;
    if (n->in_count == 2) {
        tensor *other = n->in[0] == t ? n->in[1] : n->in[0];
        if (!other || other == t) return false;
        return flow_scalar(m, other, &x) ? x == 1 : is_term(s, other, MASK_MUL);
    }
    if (n->in_count != 3 || !n->in[0]) return false;
    int slot = n->in[1] == t ? 1 : 2;
    return n->in[slot] == t && flow_in(n, 3 - slot) && flow_scalar(m, n->in[3 - slot], &x) && x == 0 &&
           is_term(s, n->in[0], slot == 1 ? MASK_KEEP : MASK_HIDE);
}

/* What may stand between the softmax and the product with the values. */
static bool down_passes(match *m, const scores *s, const node *n, const tensor *t) {
    if (flow_renames(n)) return flow_in(n, 0) == t;
    if (flow_reshapes(n)) return flow_in(n, 0) == t && keeps_matrix(n);
    if (graph_is(n, "Transpose")) return flow_swaps_last(n);
    if (graph_is(n, "Where") || graph_is(n, "Mul")) return hides_again(m, s, n, t);
    return is_requantised(n) && flow_in(n, 0) == t;
}

static bool walk_down(match *m, scores *s, tensor *t) {
    for (int step = 0; step < SCORES_MAX_STEPS; step++) {
        node *users[2];
        int count = flow_users(t, users, 2);
        if (count < 1) return false;
        node *n = count == 2 ? down_guard(s, t, users[0], users[1]) : users[0];
        if (!n) return false;
        flow_add(&s->set, n);
        if (product_is(n)) {
            s->last = n;
            s->probs = t;
            return true;
        }
        if (count == 1 && !down_passes(m, s, n, t)) return false;
        if (graph_is(n, "Transpose")) s->probs_turned = !s->probs_turned;
        t = flow_out(n, 0);
    }
    return false;
}

/* A mask chosen from two scalars for this attention alone is applied here, and read as the booleans it was chosen by.
 */
static void take_own_masks(scores *s) {
    for (int k = 0; k < s->term_count; k++) {
        node *n = s->terms[k].t->producer;
        if (s->terms[k].form != MASK_ADD || !graph_is(n, "Where") || !flow_closed(&s->set, s->terms[k].t)) continue;
        if (flow_is_scalar(flow_in(n, 1)) && flow_is_scalar(flow_in(n, 2))) flow_add(&s->set, n);
    }
}

/* Factors are no mask unless something is added where they are 0. */
static bool is_weighted(const scores *s) {
    bool factor = false, addend = false;
    for (int k = 0; k < s->term_count; k++) {
        factor = factor || s->terms[k].form == MASK_MUL;
        addend = addend || s->terms[k].form == MASK_ADD || s->terms[k].form == MASK_SUB;
    }
    return factor && !addend;
}

bool scores_find(match *m, node *softmax, scores *s) {
    memset(s, 0, sizeof *s);
    s->scale = 1;
    s->scale_known = true;
    s->search_left = SCORES_MAX_LOOKS;
    tensor *x = softmax_input(softmax, &s->set);
    if (flow_rank(x) < 2 || !walk_up(m, s, x) || !walk_down(m, s, flow_out(softmax, 0))) return false;
    if (is_weighted(s)) return false;
    take_own_masks(s);
    return !s->set.full;
}
