/* Einsums that are no plain product: sums of letters, transposes, and products of two operands at a time. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"
#include "extract/graph/equation.h"

#include <string.h>

typedef struct term { /* an operand, or what was made of some; the tensor becomes [dims] where that matters */
    tensor *t;
    equation_term is;
    int64_t dims[INFO_MAX_RANK];
} term;

typedef struct sum {
    expansion *x;
    equation e;
} sum;

static tensor *make(sum *s, const step *made) { return *part_make(s->x, made); }

/* Letters, in an order. */
static void append(equation_term *to, int letter) {
    if (to->rank < INFO_MAX_RANK) to->letters[to->rank++] = letter;
}

static bool same(const equation_term *a, const equation_term *b) {
    return a->rank == b->rank && memcmp(a->letters, b->letters, (size_t)a->rank * sizeof *a->letters) == 0;
}

static void set_dims(const sum *s, term *t) {
    for (int k = 0; k < t->is.rank; k++) t->dims[k] = s->e.size[t->is.letters[k]];
}

static void reshape(sum *s, term *t, int rank, const int64_t *dims) { t->t = part_reshaped(s->x, t->t, rank, dims); }

static void transpose(sum *s, term *t, const equation_term *to) {
    int64_t *perm;
    if (same(&t->is, to)) return;
    reshape(s, t, t->is.rank, t->dims);
    perm = arena_array(s->x->e->m->arena, int64_t, INFO_MAX_RANK);
    for (int k = 0; k < to->rank; k++)
        for (int i = 0; i < t->is.rank; i++)
            if (t->is.letters[i] == to->letters[k]) perm[k] = i;
    t->t = make(s, &(step){.op_type = "Transpose",
                           .in = {t->t},
                           .attrs = {{.name = "perm", .kind = ATTR_INTS, .n = to->rank, .ints = perm}}});
    t->is = *to;
    set_dims(s, t);
}

/* Whether a letter is asked for behind the operands up to k. */
static bool asked(const sum *s, int k, int letter) {
    bool found = equation_has(&s->e.out, letter);
    for (int i = k + 1; i < s->e.count; i++) found = found || equation_has(&s->e.in[i], letter);
    return found;
}

/* Without the letters that neither what follows nor `beside` asks for. */
static void add_up(sum *s, term *t, int k, const equation_term *beside) {
    equation_term left = {.rank = 0};
    int64_t axes[INFO_MAX_RANK];
    int count = 0;
    for (int i = 0; i < t->is.rank; i++) {
        const int letter = t->is.letters[i];
        if (asked(s, k, letter) || (beside && equation_has(beside, letter)))
            append(&left, letter);
        else
            axes[count++] = i;
    }
    if (count == 0) return;
    reshape(s, t, t->is.rank, t->dims);
    t->t = make(s, &(step){.op_type = "ReduceSum",
                           .in = {t->t, part_numbers(s->x, "axes", count, axes)},
                           .attrs = {int_attr("keepdims", 0)}});
    t->is = left;
    set_dims(s, t);
}

/* Of a letter that stands twice: every n + 1st of the n * n elements. */
static void take_diagonal(sum *s, term *t, int first, int second) {
    const int letter = t->is.letters[first];
    const int64_t size = s->e.size[letter], all = checked_mul(size, size);
    int64_t *const perm = arena_array(s->x->e->m->arena, int64_t, INFO_MAX_RANK);
    equation_term left = {.rank = 0};
    reshape(s, t, t->is.rank, t->dims);
    for (int i = 0; i < t->is.rank; i++) {
        if (i == first || i == second) continue;
        perm[left.rank] = i;
        append(&left, t->is.letters[i]);
    }
    perm[left.rank] = first, perm[left.rank + 1] = second;
    if (first != left.rank)
        t->t = make(s, &(step){.op_type = "Transpose",
                               .in = {t->t},
                               .attrs = {{.name = "perm", .kind = ATTR_INTS, .n = t->is.rank, .ints = perm}}});
    t->is = left;
    set_dims(s, t);
    t->dims[left.rank] = all;
    reshape(s, t, left.rank + 1, t->dims);
    t->t = make(s, &(step){.op_type = "Slice",
                           .in = {t->t, part_number(s->x, "starts", 0), part_number(s->x, "ends", all),
                                  part_number(s->x, "axes", left.rank), part_number(s->x, "steps", size + 1)}});
    append(&t->is, letter);
    set_dims(s, t);
}

/* Without its dimensions of 1, and with each letter once. */
static term operand(sum *s, int k) {
    term t = {.t = part_in(s->x, k)};
    const equation_term *const is = &s->e.in[k];
    for (int i = 0; i < is->rank; i++)
        if (tensor_dim(t.t, i) != 1) append(&t.is, is->letters[i]);
    set_dims(s, &t);
    for (int second = 1; second < t.is.rank; second++)
        for (int first = 0; first < second; first++)
            if (t.is.letters[first] == t.is.letters[second]) {
                take_diagonal(s, &t, first, second);
                second = 0;
                break;
            }
    return t;
}

enum { BATCH, OWN, SUMMED, ROLES };

/* The letters of `a` by their roles beside `b`; those that become letters of the output come as they do there. */
static void sort(const sum *s, const term *a, const term *b, int k, equation_term roles[ROLES]) {
    memset(roles, 0, ROLES * sizeof *roles);
    for (int i = 0; i < s->e.out.rank; i++) {
        const int letter = s->e.out.letters[i];
        if (equation_has(&a->is, letter)) append(&roles[equation_has(&b->is, letter) ? BATCH : OWN], letter);
    }
    for (int i = 0; i < a->is.rank; i++) {
        const int letter = a->is.letters[i];
        if (equation_has(&s->e.out, letter)) continue;
        append(&roles[!equation_has(&b->is, letter) ? OWN : asked(s, k, letter) ? BATCH : SUMMED], letter);
    }
}

static void join(equation_term *to, const equation_term *from) {
    for (int k = 0; k < from->rank; k++) append(to, from->letters[k]);
}

static int64_t size_of(const sum *s, const equation_term *t) {
    int64_t size = 1;
    for (int k = 0; k < t->rank; k++) size = checked_mul(size, s->e.size[t->letters[k]]);
    return size;
}

/* As [batch, first, second], or the last two the other way round where it lies so; whether it does. */
static bool as_matrix(sum *s, term *t, const equation_term *batch, const equation_term *first,
                      const equation_term *second) {
    equation_term plain = *batch, turned = *batch;
    join(&plain, first), join(&plain, second);
    join(&turned, second), join(&turned, first);
    const bool is_turned = !same(&t->is, &plain) && same(&t->is, &turned);
    const int64_t rows = size_of(s, is_turned ? second : first), cols = size_of(s, is_turned ? first : second);
    const int64_t dims[] = {size_of(s, batch), rows, cols};
    const int from = batch->rank == 0;
    transpose(s, t, is_turned ? &turned : &plain);
    reshape(s, t, 3 - from, dims + from);
    return is_turned;
}

/* Its letters in the order of those of the result, and a dimension of 1 for each that it has not. */
static void spread(sum *s, term *t, const equation_term *all) {
    equation_term order = {.rank = 0};
    int64_t dims[INFO_MAX_RANK];
    for (int k = 0; k < all->rank; k++) {
        const bool own = equation_has(&t->is, all->letters[k]);
        dims[k] = own ? s->e.size[all->letters[k]] : 1;
        if (own) append(&order, all->letters[k]);
    }
    transpose(s, t, &order);
    reshape(s, t, all->rank, dims);
}

/* Nothing is summed: an elementwise product. */
static term combine(sum *s, term a, term b, equation_term left[ROLES], const equation_term *right) {
    term made = {.is = {.rank = 0}};
    join(&left[BATCH], &left[OWN]), join(&left[BATCH], right);
    for (int k = 0; k < s->e.out.rank; k++)
        if (equation_has(&left[BATCH], s->e.out.letters[k])) append(&made.is, s->e.out.letters[k]);
    for (int k = 0; k < left[BATCH].rank; k++)
        if (!equation_has(&s->e.out, left[BATCH].letters[k])) append(&made.is, left[BATCH].letters[k]);
    spread(s, &a, &made.is), spread(s, &b, &made.is);
    set_dims(s, &made);
    made.t = make(s, &(step){.op_type = "Mul", .in = {a.t, b.t}});
    return made;
}

static term multiply(sum *s, term a, term b, int k) {
    equation_term left[ROLES], right[ROLES];
    sort(s, &a, &b, k, left);
    sort(s, &b, &a, k, right);
    if (left[SUMMED].rank == 0) return combine(s, a, b, left, &right[OWN]);
    term made = {.is = left[BATCH]};
    const bool turn_a = as_matrix(s, &a, &left[BATCH], &left[OWN], &left[SUMMED]),
               turn_b = as_matrix(s, &b, &left[BATCH], &left[SUMMED], &right[OWN]);
    join(&made.is, &left[OWN]), join(&made.is, &right[OWN]);
    set_dims(s, &made);
    made.t = make(s, &(step){.domain = "com.microsoft",
                             .op_type = "FusedMatMul",
                             .in = {a.t, b.t},
                             .attrs = {int_attr("transA", turn_a), int_attr("transB", turn_b)}});
    return made;
}

/* The one whose letters come first in the output stands on the left: then nothing is turned behind the product. */
static bool comes_first(const sum *s, const term *a, const term *b) {
    for (int k = 0; k < s->e.out.rank; k++) {
        const bool in_a = equation_has(&a->is, s->e.out.letters[k]), in_b = equation_has(&b->is, s->e.out.letters[k]);
        if (in_a != in_b) return in_a;
    }
    return true;
}

/* Scores or values of an attention, which is known by its letters: rows of the one meet rows of the other. */
static bool may_be_attention(const sum *s) {
    const equation *e = &s->e;
    bool own[2] = {false, false}, contracts = false;
    if (e->count != 2) return false;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < e->in[k].rank; i++) {
            const int letter = e->in[k].letters[i];
            const bool both = equation_has(&e->in[1 - k], letter), kept = equation_has(&e->out, letter);
            own[k] |= kept && !both;
            contracts |= both && !kept;
        }
    return own[0] && own[1] && contracts && part_beside_softmax(s->x);
}

static bool has_work(const sum *s) {
    const equation *e = &s->e;
    for (int k = 0; k < e->count; k++)
        for (int i = 0; i < e->in[k].rank; i++)
            if (tensor_dim(part_in(s->x, k), i) < 1) return false;
    return true;
}

/* One letter of each has a sum, none stands in one operand alone and is summed, and no operand is repeated along one.
 */
static bool is_plain(const sum *s) {
    const equation *e = &s->e;
    bool contracts = false;
    if (!equation_layout(e)) return false;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < e->in[k].rank; i++) {
            const int letter = e->in[k].letters[i];
            const bool both = equation_has(&e->in[1 - k], letter), kept = equation_has(&e->out, letter);
            for (int j = 0; j < i; j++)
                if (e->in[k].letters[j] == letter) return false;
            if ((!both && !kept) || tensor_dim(part_in(s->x, k), i) != e->size[letter]) return false;
            contracts = contracts || (both && !kept);
        }
    return contracts;
}

void take_einsum(expansion *x) {
    sum s = {.x = x};
    x->failed = x->failed || !equation_read(x->n, &s.e) || !has_work(&s) || may_be_attention(&s);
    if (x->failed || is_plain(&s)) return;
    term made = operand(&s, 0), next;
    for (int k = 1; k < s.e.count; k++) {
        next = operand(&s, k);
        add_up(&s, &made, k, &next.is);
        add_up(&s, &next, k, &made.is);
        made = comes_first(&s, &made, &next) ? multiply(&s, made, next, k) : multiply(&s, next, made, k);
    }
    add_up(&s, &made, s.e.count, NULL);
    equation_term order = {.rank = 0};
    for (int k = 0; k < s.e.out.rank; k++)
        if (equation_has(&made.is, s.e.out.letters[k])) append(&order, s.e.out.letters[k]);
    transpose(&s, &made, &order);
    const tensor *const out = part_out(x, 0);
    if (out) reshape(&s, &made, tensor_rank(out), out->info->dims);
    if (x->made_count == 0)
        part_end(x, &(step){.op_type = "Identity", .in = {part_in(x, 0)}});
    else
        part_end_made(x);
}
