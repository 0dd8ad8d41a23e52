/* How works are joined and merged into a catalog: counts, parts, regions, totals, parameters, coverage. */
#include "tests/unit/extract/lowering_fixture.h"

static void packed_weights_count_their_bits(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP16, DIMS(2, 64)), *packed = bench_weight(DTYPE_UINT8, DIMS(8, 2, 16)),
           *scales = bench_weight(DTYPE_FP16, DIMS(16));
    node *n = NODE("com.microsoft", "MatMulNBits", bench_tensor(DTYPE_FP16, DIMS(2, 8)), x, packed, scales);
    bench_int(n, "K", 64);
    bench_int(n, "N", 8);
    bench_int(n, "bits", 4);
    bench_int(n, "block_size", 32);
    const work *k = bench_lower(n, DTYPE_NONE);
    bench_shape(k, DIMS(2, 8, 64));
    bench_costs(k, 1024, 2048, 256 + 256 + 32, 32);
    UNIT_CHECK(k->rec.weight_type == DTYPE_INT4 && k->weight == packed);
    const catalog *c = collect(&b.list);
    UNIT_INT(c->parameters, 512 + 16);
    bench_end();
}

/* Two to the byte, all three matrices; scales are parameters of their own, zero points none. */
static void packed_experts_count_unpacked(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(4, 8)), *router = bench_tensor(DTYPE_FP32, DIMS(4, 2)),
           *first = bench_weight(DTYPE_UINT8, DIMS(2, 16, 4)), *scales = bench_weight(DTYPE_FP32, DIMS(2, 16)),
           *second = bench_weight(DTYPE_UINT8, DIMS(2, 8, 8)), *more = bench_weight(DTYPE_FP32, DIMS(2, 8));
    node *n = NODE("com.microsoft", "QMoE", bench_tensor(DTYPE_FP32, DIMS(4, 8)), x, router, first, scales, NULL,
                   second, more);
    const work *w = bench_lower(n, DTYPE_NONE);
    UNIT_CHECK(w->weight == first && w->more_count == 3 && w->more[1].t == second);
    UNIT_TEXT(w->more[1].role, "fc2");
    UNIT_INT(collect(&b.list)->parameters, 2 * 16 * 8 + 2 * 8 * 16 + 32 + 16);
    bench_end();
}

/* A joined work shows what its part has beside the weight that both share. */
static void further_weights_are_those_of_the_part(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(2, 8)), *weight = bench_weight(DTYPE_FP32, DIMS(8, 4)),
           *bias = bench_weight(DTYPE_FP32, DIMS(4)), *y = bench_tensor(DTYPE_FP32, DIMS(2, 4));
    node *gemm = NODE("", "Gemm", y, x, weight, bias),
         *relu = NODE("", "Relu", bench_tensor(DTYPE_FP32, DIMS(2, 4)), y);
    const work *plain = bench_lower(gemm, DTYPE_NONE);
    work *joined = work_join(&b.list, relu, (node *[]){gemm, relu}, 2);
    joined->weight = plain->weight;
    UNIT_CHECK(work_weights(joined) == plain && plain->more_count == 1 && plain->more[0].t == bias);
    joined->weight = NULL;
    UNIT_CHECK(work_weights(joined) == joined);
    bench_end();
}

static void an_unknown_operator_is_listed(void) {
    bench_begin();
    node *n = NODE("my.domain", "Strange", bench_tensor(DTYPE_FP32, DIMS(2)), bench_tensor(DTYPE_FP32, DIMS(2)));
    n->unknown = true;
    const work *w = bench_lower(n, DTYPE_NONE);
    UNIT_CHECK(w->rec.kind == OP_UNKNOWN);
    UNIT_TEXT(w->rec.what, "my.domain.Strange");
    const catalog *c = collect(&b.list);
    UNIT_CHECK(!collect_is_complete(c) && c->unknown_count == 1);
    UNIT_TEXT(c->unknown[0].op_type, "my.domain.Strange");
    bench_end();
}

static void joined_works_count_once(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(8)), *y = bench_tensor(DTYPE_FP32, DIMS(8)),
           *z = bench_tensor(DTYPE_FP32, DIMS(8));
    tensor *u = bench_tensor(DTYPE_FP32, DIMS(8));
    node *pair[2] = {NODE("", "Sigmoid", y, x), NODE("", "Mul", z, x, y)}, *last = NODE("", "Sigmoid", u, z);
    work_list(&b.list, &b.model, DTYPE_NONE);
    work *joined = work_join(&b.list, pair[1], pair, 2);
    joined->rec.kind = OP_ELEMENTWISE;
    joined->rec.what = "silu";
    cost_boundary(joined);
    bench_costs(joined, 0, 0, 32, 32); /* y stays inside */
    UNIT_CHECK(work_top(work_of(&b.list, pair[0])) == joined && work_top(work_of(&b.list, last)) != joined);
    const catalog *c = collect(&b.list);
    UNIT_INT(c->entry_count, 4); /* silu, its two parts, and the sigmoid that counts */
    UNIT_INT(c->entries[0]->part_count, 2);
    UNIT_INT(c->entries[0]->parts[0]->count, 0);
    UNIT_INT(c->entries[3]->count, 1);
    UNIT_INT(c->totals.bytes_read, 64);
    last->home = &b.body;
    work_list(&b.list, &b.model, DTYPE_NONE);
    UNIT_CHECK(!work_join(&b.list, last, (node *[]){pair[1], last}, 2));
    UNIT_CHECK(!work_of(&b.list, last)->owner);
    bench_end();
}

static void bodies_count_their_trips(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(8)), *y = bench_tensor(DTYPE_FP32, DIMS(8)),
           *z = bench_tensor(DTYPE_FP32, DIMS(8));
    node *outside = NODE("", "Relu", y, x), *inside = NODE("", "Relu", z, x);
    inside->home = &b.body;
    b.body.owner = outside;
    b.model.graph_count = 2;
    work_list(&b.list, &b.model, DTYPE_NONE);
    const catalog *c = collect(&b.list);
    UNIT_INT(c->entry_count, 2);
    UNIT_INT(c->entries[1]->count, 3);
    UNIT_INT(c->totals.flops, 8 + 3 * 8);
    UNIT_CHECK(strcmp(c->entries[0]->id, c->entries[1]->id) != 0);
    bench_end();
}

/* Of two branches the costlier one runs. */
static void branches_do_not_add_up(void) {
    bench_begin();
    static graph other;
    tensor *x = bench_tensor(DTYPE_FP32, DIMS(8)), *small = bench_tensor(DTYPE_FP32, DIMS(8)),
           *big = bench_tensor(DTYPE_FP32, DIMS(8)), *out = bench_tensor(DTYPE_FP32, DIMS(8));
    node *owner = NODE("", "If", out, x), *cheap = NODE("", "Relu", small, x), *dear = NODE("", "Exp", big, x);
    other = (graph){.place = 2, .region = "if/else_branch", .parent = &b.graph, .owner = owner, .times = 1};
    b.body = (graph){.place = 1, .region = "if/then_branch", .parent = &b.graph, .owner = owner, .times = 1};
    cheap->home = &b.body;
    dear->home = &other;
    graph *all[3] = {&b.graph, &b.body, &other};
    b.model.graphs = all;
    b.model.graph_count = 3;
    work_list(&b.list, &b.model, DTYPE_NONE);
    collect_branches(&b.list);
    const catalog *c = collect(&b.list);
    UNIT_INT(c->entry_count, 3);
    UNIT_INT(c->totals.flops, 8 * 8);
    for (int k = 0; k < 3; k++)
        if (c->entries[k]->rec->kind == OP_ELEMENTWISE)
            UNIT_INT(c->entries[k]->count, strcmp(c->entries[k]->rec->what, "exp") == 0);
    UNIT_CHECK(b.body.times == 0 && other.times == 1 && b.model.warning_count == 1);
    bench_end();
}

int main(void) {
    UNIT_RUN(packed_weights_count_their_bits);
    UNIT_RUN(packed_experts_count_unpacked);
    UNIT_RUN(further_weights_are_those_of_the_part);
    UNIT_RUN(an_unknown_operator_is_listed);
    UNIT_RUN(joined_works_count_once);
    UNIT_RUN(bodies_count_their_trips);
    UNIT_RUN(branches_do_not_add_up);
    return unit_end();
}
