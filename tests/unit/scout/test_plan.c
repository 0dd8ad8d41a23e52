/* Where activations lie, and which tensor is which: on random graphs nothing that is needed at the same time overlaps,
 * and no placement is smaller than the least. */
#include "common/liveness.h"
#include "scout/plan/binding.h"
#include "scout/plan/place.h"
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

/* ---- binding ---- */

enum { X, W, BIAS, Y, VIEW, STRIDED, OTHER, TENSORS };
static operation_tensor tensors[TENSORS];
static int edges[8];
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

static int bind(int read, int made, int *to) {
    const operation_occurrence at = {.read = 0, .made = read, .after = read + made};
    return binding_tensors(&flow, &at, &op, to);
}

static void by_order_type_and_size(void) {
    int to[SCOUT_MAX_TENSORS];
    dataflow(4, 1);
    const int order[] = {OTHER, W, X, BIAS, Y};
    memcpy(edges, order, sizeof order);
    want(SCOUT_INPUT, 256);
    want(SCOUT_WEIGHT, 256);
    want(SCOUT_OUTPUT, 256);
    want(SCOUT_SIDE, 32);
    UNIT_INT(bind(4, 1, to), 4);
    UNIT_INT(to[0], X);
    UNIT_INT(to[1], W);
    UNIT_INT(to[2], Y);
    UNIT_INT(to[3], BIAS);
}

static void once_for_both(void) { /* a square: the list names it once */
    int to[SCOUT_MAX_TENSORS];
    dataflow(1, 1);
    edges[0] = X, edges[1] = Y;
    want(SCOUT_INPUT, 256);
    want(SCOUT_INPUT, 256);
    want(SCOUT_OUTPUT, 256);
    UNIT_INT(bind(1, 1, to), 3);
    UNIT_INT(to[0], X);
    UNIT_INT(to[1], X);
}

static void what_fits_nothing_is_not_found(void) {
    int to[SCOUT_MAX_TENSORS];
    dataflow(3, 1);
    edges[0] = STRIDED, edges[1] = VIEW, edges[2] = OTHER, edges[3] = Y;
    want(SCOUT_INPUT, 256);  /* the view by strides is no dense block, and the other one of another type */
    want(SCOUT_INPUT, 128);  /* begins in the middle of a line */
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
    UNIT_CHECK(to[0] == TURNED && to[1] == Q);
    memcpy(own[0].strides, inside, sizeof inside);
    own[0].bytes = 4 * (3 * 24 + 8);
    edges[0] = edges[1] = K;
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
    UNIT_RUN(by_order_type_and_size);
    UNIT_RUN(once_for_both);
    UNIT_RUN(what_fits_nothing_is_not_found);
    UNIT_RUN(slices_of_a_packed_tensor);
    return unit_end();
}
