/* Einsums taken apart: the parts are computed one after the other and held against the sum that the equation says. */
#include "extract/expand/expand.h"

#include "tests/unit/extract/lowering_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, RANK = 8, TERMS = 4 };

typedef struct array {
    const tensor *of;
    int rank;
    int64_t dims[RANK];
    double at[MOST];
} array;

static array made[64]; /* what the graph's tensors hold */
static int made_count;

static int64_t count_of(int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int k = 0; k < rank; k++) n *= dims[k];
    return n;
}

/* Where a position lies whose indices are those of `index`; a dimension of 1 has one. */
static int64_t place(int rank, const int64_t *dims, const int64_t *index) {
    int64_t at = 0;
    for (int k = 0; k < rank; k++) at = at * dims[k] + (dims[k] == 1 ? 0 : index[k]);
    return at;
}

static bool next(int rank, const int64_t *dims, int64_t *index) {
    for (int k = rank - 1; k >= 0; k--) {
        if (++index[k] < dims[k]) return true;
        index[k] = 0;
    }
    return false;
}

static array *array_of(const tensor *t) {
    for (int k = 0; k < made_count; k++)
        if (made[k].of == t) return &made[k];
    array *a = &made[made_count++];
    memset(a, 0, sizeof *a);
    a->of = t, a->rank = t->info->rank;
    memcpy(a->dims, t->info->dims, (size_t)a->rank * sizeof *a->dims);
    return a;
}

/* --- the parts --- */

static void move(const node *n, const array *x, array *y) {
    const attr *perm = graph_attr(n, "perm", ATTR_INTS);
    int64_t index[RANK] = {0}, from[RANK] = {0};
    do {
        for (int k = 0; k < y->rank; k++) from[perm->ints[k]] = index[k];
        y->at[place(y->rank, y->dims, index)] = x->at[place(x->rank, x->dims, from)];
    } while (next(y->rank, y->dims, index));
}

static void add_up(const node *n, const array *x, array *y) {
    const value *axes = n->in[1]->info->val;
    int64_t index[RANK] = {0}, kept[RANK] = {0};
    do {
        int rank = 0;
        for (int k = 0; k < x->rank; k++) {
            bool summed = false;
            for (int64_t i = 0; i < axes->n; i++) summed = summed || axes->i[i] == k;
            if (!summed) kept[rank++] = index[k];
        }
        UNIT_INT(rank, y->rank);
        y->at[place(y->rank, y->dims, kept)] += x->at[place(x->rank, x->dims, index)];
    } while (next(x->rank, x->dims, index));
}

static void product(const node *n, const array *x, const array *w, array *y) {
    const bool ta = graph_attr_int(n, "transA", 0) != 0, tb = graph_attr_int(n, "transB", 0) != 0;
    const int r = y->rank;
    const int64_t depth = x->dims[ta ? r - 2 : r - 1];
    int64_t index[RANK] = {0};
    UNIT_CHECK(r >= 2 && x->rank == r && w->rank == r && depth == w->dims[tb ? r - 1 : r - 2]);
    do {
        int64_t a[RANK], b2[RANK];
        memcpy(a, index, sizeof a), memcpy(b2, index, sizeof b2);
        double sum = 0;
        for (int64_t k = 0; k < depth; k++) {
            a[ta ? r - 1 : r - 2] = index[r - 2], a[ta ? r - 2 : r - 1] = k;
            b2[tb ? r - 1 : r - 2] = k, b2[tb ? r - 2 : r - 1] = index[r - 1];
            sum += x->at[place(r, x->dims, a)] * w->at[place(r, w->dims, b2)];
        }
        y->at[place(r, y->dims, index)] = sum;
    } while (next(r, y->dims, index));
}

/* Of one axis, from the first element on. */
static void pick(const node *n, const array *x, array *y) {
    const int64_t axis = n->in[3]->info->val->i[0], step = n->in[4]->info->val->i[0];
    int64_t index[RANK] = {0}, from[RANK];
    do {
        memcpy(from, index, sizeof from);
        from[axis] *= step;
        y->at[place(y->rank, y->dims, index)] = x->at[place(x->rank, x->dims, from)];
    } while (next(y->rank, y->dims, index));
}

static void times(const array *x, const array *w, array *y) {
    int64_t index[RANK] = {0};
    UNIT_CHECK(x->rank == y->rank && w->rank == y->rank);
    do
        y->at[place(y->rank, y->dims, index)] =
            x->at[place(x->rank, x->dims, index)] * w->at[place(w->rank, w->dims, index)];
    while (next(y->rank, y->dims, index));
}

static void compute(const node *n) {
    array *y = array_of(n->out[0]);
    const array *x = array_of(n->in[0]);
    if (graph_is(n, "Transpose"))
        move(n, x, y);
    else if (graph_is(n, "ReduceSum"))
        add_up(n, x, y);
    else if (graph_is(n, "Slice"))
        pick(n, x, y);
    else if (graph_is(n, "Mul"))
        times(x, array_of(n->in[1]), y);
    else if (graph_is_ms(n, "FusedMatMul"))
        product(n, x, array_of(n->in[1]), y);
    else if (UNIT_CHECK(graph_is(n, "Reshape") || graph_is(n, "Identity")))
        memcpy(y->at, x->at, sizeof y->at);
    else
        printf("  %s\n", n->op_type);
}

/* --- the equation, read in another way: a letter is a character, those of an ellipsis are '9', '8', … from the right
 */

typedef struct plan {
    char terms[TERMS + 1][RANK + 1];
    int64_t dims[TERMS][RANK];
    int count;
} plan;

static void spell(const char *text, size_t n, int rank, char *out) {
    int named = 0, at = 0;
    for (size_t k = 0; k < n; k++) named += text[k] != '.' && text[k] != ' ';
    for (size_t k = 0; k < n; k++) {
        if (text[k] == ' ') continue;
        if (text[k] != '.') {
            out[at++] = text[k];
            continue;
        }
        for (int d = rank - named; d > 0; d--) out[at++] = (char)('9' + 1 - d);
        k += 2;
    }
    out[at] = 0;
}

static int read_dims(const char **text, int64_t *dims) {
    int rank = 0;
    while (**text && **text != ',') {
        dims[rank++] = strtoll(*text, (char **)text, 10);
        if (**text == 'x') ++*text;
    }
    if (**text) ++*text;
    return rank;
}

static void read_plan(const char *equation, const char *shapes, plan *p) {
    const char *left = equation, *arrow = strstr(equation, "->");
    int dots = 0;
    for (p->count = 0; left < arrow; p->count++) {
        const size_t n = strcspn(left, ",-");
        const int rank = read_dims(&shapes, p->dims[p->count]);
        spell(left, n, rank, p->terms[p->count]);
        int own = 0;
        for (const char *c = p->terms[p->count]; *c; c++) own += *c >= '0' && *c <= '9';
        if (own > dots) dots = own;
        left += n + (left[n] == ',');
    }
    int named = 0;
    for (const char *c = arrow + 2; *c; c++) named += *c != '.' && *c != ' ';
    spell(arrow + 2, strlen(arrow + 2), named + dots, p->terms[p->count]);
}

static int64_t size_of(const plan *p, char letter) {
    int64_t size = 1;
    for (int t = 0; t < p->count; t++)
        for (int k = 0; p->terms[t][k]; k++)
            if (p->terms[t][k] == letter && p->dims[t][k] > size) size = p->dims[t][k];
    return size;
}

static void sum_all(const plan *p, tensor *const *in, const array *y, double *want) {
    char letters[32] = "";
    int64_t sizes[32], index[32] = {0};
    int count = 0;
    for (int t = 0; t < p->count; t++)
        for (const char *c = p->terms[t]; *c; c++)
            if (!strchr(letters, *c)) sizes[count] = size_of(p, *c), letters[count++] = *c;
    do {
        double term = 1;
        int64_t own[RANK] = {0};
        for (int t = 0; t < p->count; t++) {
            const array *x = array_of(in[t]);
            for (int k = 0; k < x->rank; k++) own[k] = index[strchr(letters, p->terms[t][k]) - letters];
            term *= x->at[place(x->rank, x->dims, own)];
        }
        for (int k = 0; k < y->rank; k++) own[k] = index[strchr(letters, p->terms[p->count][k]) - letters];
        want[place(y->rank, y->dims, own)] += term;
    } while (next(count, sizes, index));
}

/* --- the cases --- */

static node *einsum(const char *equation, const char *shapes, plan *p) {
    tensor *in[TERMS];
    int64_t out[RANK];
    memset(p, 0, sizeof *p);
    read_plan(equation, shapes, p);
    for (int t = 0; t < p->count; t++) in[t] = bench_tensor(DTYPE_FP32, (int)strlen(p->terms[t]), p->dims[t]);
    const int rank = (int)strlen(p->terms[p->count]);
    for (int k = 0; k < rank; k++) out[k] = size_of(p, p->terms[p->count][k]);
    node *n = bench_node("", "Einsum", bench_tensor(DTYPE_FP32, rank, out), p->count, in);
    bench_attr(n, (attr){.name = "equation", .kind = ATTR_STRING, .s = equation, .n = (int64_t)strlen(equation)});
    return n;
}

static void expand(void) {
    graph_link_users(&b.model);
    b.graphs[0]->nodes = arena_array(&b.arena, node *, b.model.node_count);
    for (int64_t k = 0; k < b.model.node_count; k++) b.graph.nodes[b.graph.node_count++] = b.nodes[k];
    expand_model(&b.model);
}

/* How many parts there are. */
static int64_t check(const char *equation, const char *shapes) {
    static double want[MOST];
    plan p;
    bench_begin();
    made_count = 0;
    node *n = einsum(equation, shapes, &p);
    tensor *const result = n->out[0], *in[TERMS];
    memcpy(in, n->in, (size_t)p.count * sizeof *in);
    for (int t = 0; t < p.count; t++) {
        array *x = array_of(in[t]);
        for (int64_t k = 0; k < count_of(x->rank, x->dims); k++) x->at[k] = (double)((k * 7 + t) % 11 - 5);
    }
    expand();
    const int64_t parts = b.model.node_count;
    bool good = UNIT_CHECK(!n->unresolved && n->out[0] == result && b.model.nodes[parts - 1] == n);
    if (!graph_is(n, "Einsum")) {
        for (int64_t k = 0; k < parts; k++) compute(b.model.nodes[k]);
        const array *y = array_of(result);
        memset(want, 0, sizeof want);
        sum_all(&p, in, y, want);
        for (int64_t k = 0; k < count_of(y->rank, y->dims); k++) good = good && y->at[k] == want[k];
        UNIT_CHECK(good);
    } else {
        good = good && parts == 1;
    }
    if (!good) printf("  %s of %s\n", equation, shapes);
    const bool whole = graph_is(n, "Einsum");
    bench_end();
    return whole ? 0 : parts;
}

static void parts_make_what_the_equation_says(void) {
    static const struct {
        const char *equation, *shapes;
        int parts; /* 0: it stays a plain product */
    } rows[] = {
        {"ij->ji", "3x4", 1},
        {"ij->i", "3x4", 1},
        {"ij->j", "3x4", 1},
        {"ij->", "3x4", 1},
        {"ij->ij", "3x4", 1},
        {"abc->ca", "2x3x4", 2},
        {"...ij->...ji", "2x3x4x5", 1},
        {"...i->i...", "2x3x4", 1},
        {"ij->ji", "1x4", 1},
        {"i,i->", "5,5", 0},
        {"i,i->i", "5,5", 1},
        {"i,j->ij", "3,4", 3},
        {"i,j->ji", "3,4", 3},
        {"ij,j->i", "3x4,4", 0},
        {"j,ij->i", "4,3x4", 0},
        {"iaj,bj->bia", "4x2x8,6x8", 3},
        {"bqhd,bkhd->bhqk", "2x3x4x5,2x6x4x5", 6},
        {"bhqk,bkhd->bqhd", "2x4x3x6,2x6x4x5", 6},
        {"bhwc,hkc->bhwk", "2x3x4x5,3x6x5", 5},
        {"ab,bc->ca", "3x4,4x5", 1},
        {"ab,cb->ca", "3x4,5x4", 1},
        {"abc,cd->adb", "2x3x4,4x5", 4},
        {"abc,bcd->d", "2x3x4,3x4x5", 5},
        {"abc,abc->", "2x3x4,2x3x4", 0},
        {"abc,abc->b", "2x3x4,2x3x4", 6},
        {"ab,cd->", "2x3,4x5", 3},
        {"ab,cd->bd", "2x3,4x5", 5},
        {"ab,ab->ba", "2x3,2x3", 3},
        {"abcd,ace->abde", "2x3x4x5,2x4x6", 4},
        {"nctv,vw->nctw", "2x3x4x5,5x6", 0},
        {"nctv,kvw->nkctw", "2x3x4x5,3x5x6", 6},
        {"nkctv,kvw->nctw", "2x3x4x5x6,3x6x2", 5},
        {"...ij,...jk->...ki", "2x3x4x5,2x3x5x6", 4},
        {"...ij,jk->ik...", "2x3x4,4x5", 5},
        {"...ij,...jk->...ik", "2x1x4x5,3x5x6", 6},
        {"...a,...a->...", "2x3x4,3x4", 5},
        {"ij,jk->ik", "1x4,4x5", 0},
        {"ij,jk->ki", "3x1,4x5", 4},
        {"ij,jk->ik", "3x1,4x5", 3},
        {"abc,c->abc", "2x3x4,4", 2},
        {"abc,b->cab", "2x3x4,3", 3},
        {"Ab,bA->A", "3x4,4x3", 5},
        {" a b , b c -> c a ", "2x3,3x4", 1},
        {"ij,jk,kl->il", "2x3,3x4,4x5", 2},
        {"ij,jk,kl->li", "2x3,3x4,4x5", 2},
        {"ij,ik,il->jkl", "2x3,2x4,2x5", 8},
        {"a,b,c->cba", "2,3,4", 6},
        {"abc,abd,ae->cde", "2x3x4,2x3x5,2x6", 4},
        {"i,i,i->", "5,5,5", 5},
        {"ii->i", "3x3", 2},
        {"ii->", "3x3", 3},
        {"iji->ji", "3x4x3", 3},
        {"iij,jk->ik", "3x3x4,4x5", 4},
        {"ij,kjkk->ik", "3x4,5x4x5x5", 6},
        {"...ii->...", "2x3x3", 3},
        {"ab,bc,cd,de->ae", "2x3,3x4,4x5,5x6", 3},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const int64_t parts = check(rows[k].equation, rows[k].shapes);
        if (!UNIT_INT(parts, rows[k].parts)) printf("  %s: %d parts\n", rows[k].equation, (int)parts);
    }
}

static void others_stay(void) {
    static const char *const rows[][2] = {
        {"ij,jk->ik", "3x4,4x5"},
        {"bij,bkj->bik", "2x3x4,2x5x4"}, /* plain products */

        {"bthd,hde->bte", "2x3x4x5,4x5x6"},
        {"...ij,...jk->...ik", "2x4x5,2x5x6"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!UNIT_INT(check(rows[k][0], rows[k][1]), 0)) printf("  %s\n", rows[k][0]);
}

static void a_softmax_beside_it_keeps_it(void) {
    plan p;
    bench_begin();
    node *first = einsum("bqhd,bkhd->bhqk", "2x3x4x5,2x6x4x5", &p);
    node *soft = NODE("", "Softmax", bench_tensor(DTYPE_FP32, DIMS(2, 4, 3, 6)), first->out[0]);
    node *second = einsum("bhqk,bkhd->bqhd", "2x4x3x6,2x6x4x5", &p);
    second->in[0] = soft->out[0];
    expand();
    UNIT_INT(b.model.node_count, 3);
    UNIT_CHECK(graph_is(first, "Einsum") && graph_is(second, "Einsum"));
    bench_end();
}

/* Behind a sum, whichever of its sides the scores are; but only where rows of the one meet rows of the other. */
static void a_softmax_is_found_behind_a_sum(void) {
    static const struct {
        const char *equation, *shapes;
        bool stays;
    } rows[] = {{"bqhd,bkhd->bhqk", "2x3x4x5,2x6x4x5", true}, {"bhqk,bhqk->bhqk", "2x4x3x6,2x4x3x6", false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        plan p;
        bench_begin();
        node *first = einsum(rows[k].equation, rows[k].shapes, &p);
        tensor *mask = bench_tensor(DTYPE_FP32, DIMS(2, 4, 3, 6));
        node *sum = NODE("", "Add", bench_tensor(DTYPE_FP32, DIMS(2, 4, 3, 6)), mask, first->out[0]);
        NODE("", "Softmax", bench_tensor(DTYPE_FP32, DIMS(2, 4, 3, 6)), sum->out[0]);
        expand();
        UNIT_CHECK(graph_is(first, "Einsum") == rows[k].stays);
        bench_end();
    }
}

int main(void) {
    UNIT_RUN(parts_make_what_the_equation_says);
    UNIT_RUN(others_stay);
    UNIT_RUN(a_softmax_beside_it_keeps_it);
    UNIT_RUN(a_softmax_is_found_behind_a_sum);
    return unit_end();
}
