/* Where activations lie, in which order a run can be done, and which tensor is which: on random graphs nothing that is
 * needed at the same time overlaps, in any order, and no placement is smaller than the least. */
#include "common/liveness.h"
#include "scout/plan/binding.h"
#include "scout/plan/choose.h"
#include "scout/plan/plan.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static guard g;
static arena a;

static void begin(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
}

static uint32_t state;
static int below(int most) {
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)most);
}

static bool together(const place_item *x, const place_item *y) { return x->from <= y->to && y->from <= x->to; }

static bool overlap(const place_item *x, const place_item *y) {
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static uint64_t least_of(const place_item *items, int count, int occurrences) {
    liveness l;
    int at;
    liveness_begin(&l, &a, occurrences);
    for (int k = 0; k < count; k++) liveness_add(&l, (int64_t)items[k].bytes, items[k].from, items[k].to);
    return (uint64_t)liveness_peak(&l, &at);
}

static void random_graphs(void) {
    enum { GRAPHS = 300, MOST = 60 };
    int clashes = 0, beyond = 0, small = 0, ragged = 0;
    double waste = 0;
    begin();
    for (int n = 0; n < GRAPHS; n++) {
        place_item items[MOST];
        state = (uint32_t)n;
        const int count = 1 + below(MOST), occurrences = 1 + below(40);
        for (int k = 0; k < count; k++) {
            const int from = below(occurrences);
            items[k] = (place_item){.bytes = (uint64_t)below(5) * 512 * (uint64_t)(1 + below(30)),
                                    .from = from,
                                    .to = from + below(occurrences - from)};
        }
        const uint64_t all = place_items(items, count, &a), least = least_of(items, count, occurrences);
        for (int x = 0; x < count; x++) {
            ragged += items[x].offset % PLACE_ALIGNMENT != 0;
            beyond += items[x].offset + items[x].bytes > all;
            for (int y = 0; y < x; y++) clashes += together(&items[x], &items[y]) && overlap(&items[x], &items[y]);
        }
        small += all < least;
        waste += least > 0 ? (double)all / (double)least : 1;
    }
    UNIT_INT(clashes, 0);
    UNIT_INT(beyond, 0);
    UNIT_INT(small, 0);
    UNIT_INT(ragged, 0);
    UNIT_CHECK(waste / GRAPHS < 1.1);
    arena_free(&a);
}

static void a_chain_needs_two(void) {
    place_item chain[20];
    begin();
    for (int k = 0; k < 20; k++) chain[k] = (place_item){.bytes = 1000, .from = k, .to = k + 1};
    UNIT_INT(place_items(chain, 20, &a), 2048);
    chain[7].bytes = UINT64_MAX / 2;
    UNIT_CHECK(place_items(chain, 20, &a) == UINT64_MAX);
    UNIT_INT(place_items(NULL, 0, &a), 0);
    arena_free(&a);
}

/* ---- another order ---- */

enum { MADE = 24, READS = 3 };

/* Each occurrence makes a tensor and reads up to three of those before it; some are kept. */
static operation_flow *random_flow(int count) {
    operation_flow *f = arena_array(&a, operation_flow, 1);
    f->occurrences = arena_array(&a, operation_occurrence, count);
    f->tensors = arena_array(&a, operation_tensor, count);
    f->edges = arena_array(&a, int, count *(READS + 1));
    for (int k = 0; k < count; k++) {
        operation_occurrence *at = &f->occurrences[k];
        *at = (operation_occurrence){.times = 1, .read = f->edge_count};
        for (int n = 0; k > 0 && n < READS; n++)
            if (below(2)) f->edges[f->edge_count++] = k - 1 - below(k < 6 ? k : 6);
        at->made = f->edge_count;
        f->edges[f->edge_count++] = k;
        at->after = f->edge_count;
        f->tensors[k] = (operation_tensor){
            .bytes = 512 * (1 + below(6)), .source = -1, .producer = k, .kept = below(6) == 0, .type = DTYPE_FP32};
    }
    f->tensor_count = f->occurrence_count = count;
    return f;
}

/* What runs at its turn writes its tensor: nothing may lie there that is still to be read or kept. */
static int overwritten(const operation_flow *f, const int *order, const place_item *items) {
    int found = 0;
    for (int at = 0; at < f->occurrence_count; at++)
        for (int before = 0; before < at; before++) {
            const int writes = order[at], other = order[before];
            bool needed = f->tensors[other].kept;
            for (int later = at; later < f->occurrence_count && !needed; later++) {
                const operation_occurrence *reader = &f->occurrences[order[later]];
                for (int e = reader->read; e < reader->made; e++) needed = needed || f->edges[e] == other;
            }
            found += needed && overlap(&items[writes], &items[other]);
        }
    return found;
}

static void what_is_needed_later_is_not_overwritten(void) {
    int moved = 0, wrong = 0, refused = 0;
    for (int n = 0; n < 500; n++) {
        begin();
        state = (uint32_t)n * 2654435761u + 9;
        const int count = 2 + below(MADE - 1);
        const operation_flow *f = random_flow(count);
        const plan_needs needs = plan_needs_of(f, &a);
        int members[MADE / 2][2], turns[MADE];
        double costs[MADE];
        choose_group groups[MADE / 2];
        place_item lives[MADE];
        for (int k = 0; k < count; k++) costs[k] = 10;
        for (int k = 0; k < count / 2; k++) {
            members[k][0] = below(count - 1);
            members[k][1] = members[k][0] + 1 + below(count - 1 - members[k][0]);
            groups[k] = (choose_group){members[k], 2, 12 + below(5)};
        }
        const choose_problem problem = {count, costs, needs.segments, needs.needs, needs.begins, groups, count / 2};
        const choose_choice *c = choose_groups(&problem, &a);
        plan_group *alone = arena_array(&a, plan_group, count);
        for (int k = 0; k < count; k++) {
            alone[k] = (plan_group){-1, k, 1};
            turns[c->order[k]] = k;
            moved += c->order[k] != k;
        }
        status st = {0};
        plan_run p = {c->order, alone, count, count};
        refused += !plan_runs(f, &p, &a, &st);
        plan_lives(f, turns, lives);
        for (int k = 0; k < count; k++) lives[k].bytes = (uint64_t)f->tensors[k].bytes;
        (void)place_items(lives, count, &a);
        wrong += overwritten(f, c->order, lives);
        arena_free(&a);
    }
    UNIT_CHECK(moved > 500);
    UNIT_INT(wrong, 0);
    UNIT_INT(refused, 0);
}

static void orders_that_cannot_run(void) {
    static const struct {
        int order[4], fusion, first, count;
        const char *says;
    } cases[] = {{{0, 1, 2, 3}, -1, 1, 1, NULL},
                 {{0, 2, 1, 3}, -1, 1, 1, NULL},
                 {{1, 0, 2, 3}, -1, 1, 1, "needs what occurrence 0 makes"},
                 {{0, 1, 1, 3}, -1, 1, 1, "stands in group"},
                 {{0, 1, 2, 3}, -1, 1, 2, "what is none has one"},
                 {{0, 1, 2, 3}, 5, 1, 1, "a fusion has several"},
                 {{0, 1, 2, 3}, 5, 1, 2, NULL},
                 {{0, 1, 3, 2}, -1, 2, 1, "left its place"}};
    begin();
    operation_flow *f = random_flow(4); /* 1 and 2 read what 0 makes; 3 runs in a loop */
    const int edges_of[][3] = {{0, 0, 1}, {1, 2, 3}, {3, 4, 5}, {5, 5, 6}};
    static const int all[] = {0, 0, 1, 0, 2, 3};
    memcpy(f->edges, all, sizeof all);
    for (int k = 0; k < 4; k++) {
        operation_occurrence *at = &f->occurrences[k];
        at->read = edges_of[k][0], at->made = edges_of[k][1], at->after = edges_of[k][2];
    }
    f->occurrences[3].times = 7;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        plan_group groups[4];
        int order[4], count = 0;
        status st = {0};
        memcpy(order, cases[n].order, sizeof order);
        for (int k = 0; k < 4; k += groups[count++].count)
            groups[count] =
                k == cases[n].first ? (plan_group){cases[n].fusion, k, cases[n].count} : (plan_group){-1, k, 1};
        const plan_run p = {order, groups, 4, count};
        const bool good = plan_runs(f, &p, &a, &st);
        UNIT_CHECK(cases[n].says ? !good && strstr(st.text, cases[n].says) : good);
    }
    arena_free(&a);
}

/* ---- binding ---- */

enum { X, W, BIAS, Y, VIEW, STRIDED, OTHER, TENSORS };
static operation_tensor tensors[TENSORS];
static int edges[8], operands[8];
static operation_flow flow;
static scout_tensor own[4];
static scout_op op;

static void dataflow(int read, int made) {
    tensors[X] = (operation_tensor){.bytes = 256, .source = -1, .producer = 0, .type = DTYPE_FP32};
    tensors[W] = (operation_tensor){.bytes = 256, .source = -1, .producer = -1, .constant = true, .type = DTYPE_FP32};
    tensors[BIAS] = (operation_tensor){.bytes = 32, .source = -1, .producer = -1, .constant = true, .type = DTYPE_FP32};
    tensors[Y] = (operation_tensor){.bytes = 256, .source = -1, .producer = 1, .type = DTYPE_FP32};
    tensors[VIEW] = (operation_tensor){.bytes = 128, .source = X, .offset = 128, .producer = -1, .type = DTYPE_FP32};
    tensors[STRIDED] = (operation_tensor){.bytes = 256, .source = X, .lie = 7, .producer = -1, .type = DTYPE_FP32};
    tensors[OTHER] = (operation_tensor){.bytes = 256, .source = -1, .producer = 0, .type = DTYPE_INT32};
    flow = (operation_flow){.tensors = tensors, .edges = edges, .tensor_count = TENSORS, .edge_count = read + made};
    op = (scout_op){.size = sizeof op, .tensors = own, .tensor_count = 0};
}

static void want(scout_role role, uint64_t bytes) {
    own[op.tensor_count++] =
        (scout_tensor){.size = sizeof *own, .role = (uint32_t)role, .type = SCOUT_FP32, .bytes = bytes};
}

/* The operands are the edges in another order. */
static int bind(int read, int made, int *to) {
    const operation_occurrence at = {
        .read = 0, .made = read, .after = read + made, .operand_count = (int)op.tensor_count};
    flow.operands = operands;
    binding_begin(to);
    return binding_tensors(&flow, &at, &op, to);
}

static void what_the_file_says(void) {
    int to[SCOUT_MAX_TENSORS];
    dataflow(4, 1);
    const int order[] = {OTHER, W, X, BIAS, Y}, said[] = {X, W, Y, BIAS};
    memcpy(edges, order, sizeof order);
    memcpy(operands, said, sizeof said);
    want(SCOUT_INPUT, 256);
    want(SCOUT_WEIGHT, 256);
    want(SCOUT_OUTPUT, 256);
    want(SCOUT_SIDE, 32);
    UNIT_INT(bind(4, 1, to), 4);
    UNIT_CHECK(to[0] == X && to[1] == W && to[2] == Y && to[3] == BIAS);
    operands[0] = operands[1] = W; /* both sides are the weight: of equal size, so the file alone knows */
    UNIT_CHECK(bind(4, 1, to) == 4 && to[0] == W);
    operands[0] = W, operands[1] = X; /* an activation is no weight, as that is packed once */
    UNIT_CHECK(bind(4, 1, to) == 3 && to[0] == W && to[1] == -1);
}

static void what_is_not_said_or_not_read_is_not_found(void) {
    int to[SCOUT_MAX_TENSORS];
    dataflow(1, 1);
    edges[0] = X, edges[1] = Y;
    want(SCOUT_INPUT, 256);
    want(SCOUT_INPUT, 256);
    want(SCOUT_OUTPUT, 256);
    operands[0] = operands[1] = X, operands[2] = Y; /* a square */
    UNIT_CHECK(bind(1, 1, to) == 3 && to[0] == X && to[1] == X && to[2] == Y);
    operands[1] = -1;
    UNIT_CHECK(bind(1, 1, to) == 2 && to[1] == -1);
    operands[1] = Y; /* it makes it */
    UNIT_CHECK(bind(1, 1, to) == 2 && to[1] == -1);
    operands[1] = W; /* of something else */
    UNIT_CHECK(bind(1, 1, to) == 2 && to[1] == -1);
    operands[2] = X; /* it reads it */
    UNIT_CHECK(bind(1, 1, to) == 1 && to[2] == -1);
    const operation_occurrence fewer = {.read = 0, .made = 1, .after = 2, .operand_count = 2};
    binding_begin(to);
    UNIT_CHECK(binding_tensors(&flow, &fewer, &op, to) == 0 && to[0] == -1);
}

static void what_does_not_fit_is_not_found(void) {
    int to[SCOUT_MAX_TENSORS];
    dataflow(3, 1);
    const int order[] = {STRIDED, VIEW, OTHER, Y}, said[] = {STRIDED, VIEW, OTHER, Y};
    memcpy(edges, order, sizeof order);
    memcpy(operands, said, sizeof said);
    want(SCOUT_INPUT, 256);  /* it is no dense block */
    want(SCOUT_INPUT, 128);  /* begins in the middle of a line */
    want(SCOUT_INPUT, 256);  /* of another type */
    want(SCOUT_OUTPUT, 512); /* larger than what is made */
    UNIT_INT(bind(3, 1, to), 0);
    tensors[VIEW].offset = 0;
    UNIT_INT(bind(3, 1, to), 1);
    UNIT_INT(to[1], VIEW);
    UNIT_INT(binding_owner(&flow, VIEW), X);
    tensors[VIEW].offset = 256;
    UNIT_INT(bind(3, 1, to), 0); /* it would reach beyond its source */
}

/* Queries, keys and values out of one tensor of four rows: two heads of four numbers, three times in a row. */
static void slices_of_a_packed_tensor(void) {
    enum { PACKED, Q, K, TURNED, OUT };
    const int64_t dims[4] = {1, 2, 4, 4}, inside[4] = {96, 4, 24, 1}, turned[4] = {32, 4, 8, 1},
                  usual[4] = {32, 16, 4, 1};
    int to[SCOUT_MAX_TENSORS];
    dataflow(3, 1);
    tensors[PACKED] = (operation_tensor){.bytes = 4 * 96, .source = -1, .producer = 0, .type = DTYPE_FP32};
    tensors[Q] = (operation_tensor){.bytes = 4 * 32, .source = PACKED, .producer = -1, .type = DTYPE_FP32};
    tensors[Q].lie = operation_lie(4, dims, inside);
    tensors[K] = tensors[Q], tensors[K].offset = 4 * 8;
    tensors[TURNED] = (operation_tensor){.bytes = 4 * 32, .source = -1, .producer = 0, .type = DTYPE_FP32};
    tensors[OUT] = (operation_tensor){.bytes = 4 * 32, .source = -1, .producer = 1, .type = DTYPE_FP32};
    const int order[] = {Q, K, TURNED, OUT};
    memcpy(edges, order, sizeof order);
    memcpy(operands, order, sizeof order);
    for (int k = 0; k < 4; k++) {
        want(k == 3 ? SCOUT_OUTPUT : SCOUT_INPUT, 4 * 32);
        own[k].rank = 4;
        memcpy(own[k].dims, dims, sizeof dims);
        memcpy(own[k].strides, k < 2 ? inside : turned, sizeof turned);
        if (k < 2) own[k].bytes = 4 * (3 * 24 + 8);
    }
    UNIT_CHECK(operation_lie(4, dims, inside) > 0);
    UNIT_INT(operation_lie(4, dims, turned), 0);
    UNIT_INT(bind(3, 1, to), 4);
    UNIT_CHECK(to[0] == Q && to[1] == K && to[2] == TURNED && to[3] == OUT);
    memcpy(own[0].strides, usual, sizeof usual); /* what it expects is not what is there */
    own[0].bytes = 4 * 32;
    (void)bind(3, 1, to);
    UNIT_CHECK(to[0] == -1 && to[1] == K);
    memcpy(own[0].strides, inside, sizeof inside);
    own[0].bytes = 4 * (3 * 24 + 8);
    operands[0] = operands[1] = K;
    UNIT_CHECK(bind(3, 1, to) == 4 && to[0] == K);
    tensors[K].offset = 4 * 8 + 4; /* no 16 bytes begin there */
    UNIT_CHECK(bind(3, 1, to) == 2 && to[0] < 0 && to[1] < 0);
    tensors[K].offset = 4 * 20; /* it would reach beyond its source */
    UNIT_CHECK(bind(3, 1, to) == 2 && to[0] < 0 && to[1] < 0);
    const int64_t backward[4] = {96, 4, -24, 1}, apart[2] = {3, 5}, step[2] = {5, 2};
    UNIT_CHECK(operation_lie(4, dims, backward) != operation_lie(4, dims, inside));
    UNIT_CHECK(operation_lie(2, apart, step) > 0);
}

int main(void) {
    UNIT_RUN(random_graphs);
    UNIT_RUN(a_chain_needs_two);
    UNIT_RUN(what_is_needed_later_is_not_overwritten);
    UNIT_RUN(orders_that_cannot_run);
    UNIT_RUN(what_the_file_says);
    UNIT_RUN(what_is_not_said_or_not_read_is_not_found);
    UNIT_RUN(what_does_not_fit_is_not_found);
    UNIT_RUN(slices_of_a_packed_tensor);
    return unit_end();
}
