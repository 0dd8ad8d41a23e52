/* The order of works, what flows between them, and how long it is needed: on graphs made by hand, because no model
 * makes works that need each other. */
#include "extract/ops/dataflow.h"
#include "tests/unit/extract/lowering_fixture.h"

static tensor *made(void) { return bench_tensor(DTYPE_FP32, DIMS(2, 3)); }

static const dataflow *build(void) {
    b.graph.nodes = b.nodes;
    b.graph.node_count = (int)b.model.node_count;
    return dataflow_build(collect(&b.list));
}

static const dataflow_tensor *row_of(const dataflow *d, const tensor *t) {
    for (int k = 0; k < d->tensor_count; k++)
        if (d->tensors[k].t == t) return &d->tensors[k];
    return NULL;
}

static int at_of(const dataflow *d, const node *n) {
    for (int k = 0; k < d->occurrence_count; k++)
        if (d->occurrences[k].w->node == n) return k;
    return -1;
}

/* The first and the third node as one work, which needs the second: that one comes first. */
static void a_joined_work_waits_for_what_its_nodes_need(void) {
    bench_begin();
    tensor *x = made(), *p = made(), *q = made(), *r = made();
    node *first = NODE("", "Relu", p, x), *other = NODE("", "Sin", q, x), *last = NODE("", "Add", r, p, q);
    r->is_graph_output = true;
    bench_lower(first, DTYPE_NONE);
    work_join(&b.list, first, (node *[]){first, last}, 2);
    const dataflow *d = build();
    UNIT_INT(d->occurrence_count, 2);
    UNIT_CHECK(at_of(d, other) == 0 && at_of(d, first) == 1);
    UNIT_CHECK(!row_of(d, p) && row_of(d, q)->producer == 0 && row_of(d, q)->to == 1 && row_of(d, r)->producer == 1);
    UNIT_CHECK(!d->occurrences[0].cut && !d->occurrences[1].cut);
    UNIT_INT(d->activation_bytes, 3 * 24);
    UNIT_INT(d->peak, 1);
    bench_end();
}

/* The one in the middle needs what the joined one makes first, and makes what that needs last. */
static void works_that_need_each_other_are_cut(void) {
    bench_begin();
    tensor *x = made(), *p = made(), *q = made(), *r = made();
    node *first = NODE("", "Relu", p, x), *middle = NODE("", "Sin", q, p), *last = NODE("", "Add", r, p, q);
    r->is_graph_output = true;
    bench_lower(first, DTYPE_NONE);
    work_join(&b.list, first, (node *[]){first, last}, 2);
    const dataflow *d = build();
    UNIT_INT(d->occurrence_count, 2);
    UNIT_CHECK(at_of(d, middle) == 0 && d->occurrences[0].cut && d->occurrences[0].reads == 0);
    UNIT_CHECK(at_of(d, first) == 1 && !d->occurrences[1].cut);
    bench_end();
}

/* Two that take numbers as they are stored; the dequantisation is among the nodes of one. */
static void what_takes_stored_numbers_reads_past_a_dequantisation(void) {
    bench_begin();
    tensor *x = bench_tensor(DTYPE_INT8, DIMS(2, 3)), *scale = bench_tensor(DTYPE_FP32, DIMS(1));
    tensor *wide = made(), *p = made(), *q = made(), *r;
    node *first = NODE("", "DequantizeLinear", wide, x, scale), *relu = NODE("", "Relu", p, wide);
    node *sine = NODE("", "Sin", q, wide);
    bench_lower(first, DTYPE_NONE);
    oprec_set_text(&work_join(&b.list, relu, (node *[]){first, relu}, 2)->rec, "quant", "qdq");
    oprec_set_text(&work_of(&b.list, sine)->rec, "quant", "qdq");
    const dataflow *d = build();
    UNIT_INT(d->occurrence_count, 2);
    for (int k = 0; k < 2; k++) UNIT_INT(d->occurrences[k].reads, 2);
    UNIT_CHECK(!row_of(d, wide) && row_of(d, x)->readers == 2 && row_of(d, scale)->readers == 2);
    bench_end();

    bench_begin(); /* one that computes on dequantised numbers takes them from there */
    x = bench_tensor(DTYPE_INT8, DIMS(2, 3)), wide = made(), p = made(), q = made();
    first = NODE("", "DequantizeLinear", wide, x), relu = NODE("", "Relu", p, wide);
    NODE("", "Sin", q, wide);
    NODE("", "Add", r = made(), p, q);
    bench_lower(first, DTYPE_NONE);
    oprec_set_text(&work_join(&b.list, relu, (node *[]){first, relu}, 2)->rec, "quant", "qdq");
    d = build();
    UNIT_CHECK(row_of(d, wide) && row_of(d, wide)->readers == 1 && row_of(d, wide)->producer == at_of(d, relu));
    bench_end();
}

/* However many there are, a free view lies in what has memory of its own, and that lives as long as its last reader. */
static void free_views_lie_in_one_tensor(void) {
    bench_begin();
    tensor *x = made(), *p = made(), *q = made(), *r = made(), *turned = bench_tensor(DTYPE_FP32, DIMS(3, 2));
    node *relu = NODE("", "Relu", p, x);
    NODE("", "Identity", q, p);
    NODE("", "Identity", r, q);
    node *turn = NODE("", "Transpose", turned, r);
    bench_lower(relu, DTYPE_NONE);
    const dataflow *d = build();
    UNIT_INT(d->occurrence_count, 2);
    UNIT_CHECK(!row_of(d, q) && dataflow_is_alias(row_of(d, r)));
    UNIT_CHECK(&d->tensors[row_of(d, r)->source] == row_of(d, p) && row_of(d, p)->to == 1 &&
               row_of(d, p)->readers == 0);
    const dataflow_tensor *t = row_of(d, turned);
    UNIT_CHECK(t->producer == at_of(d, turn) && !dataflow_is_alias(t) && t->view);
    UNIT_CHECK(&d->tensors[t->source] == row_of(d, p));
    if (t->view) UNIT_CHECK(t->view->offset == 0 && t->view->strides[0] == 1 && t->view->strides[1] == 3);
    bench_end();
}

static void operands_are(const dataflow *d, const node *n, int count, tensor *const *want) {
    const dataflow_occurrence *o = &d->occurrences[at_of(d, n)];
    UNIT_INT(o->operand_count, count);
    for (int k = 0; k < count && k < o->operand_count; k++) {
        const int row = d->operands[o->operands + k];
        UNIT_CHECK(want[k] ? row >= 0 && d->tensors[row].t == want[k] : row == -1);
    }
}

/* Of a difference the places count; of a sum the larger one stands first, and one that is there twice stands once. */
static void operands_stand_in_the_operations_order(void) {
    bench_begin();
    tensor *x = made(), *y = made(), *v = bench_tensor(DTYPE_FP32, DIMS(3)), *p = made(), *q = made(), *r = made();
    node *difference = NODE("", "Sub", p, y, x), *sum = NODE("", "Add", q, v, p), *square = NODE("", "Mul", r, q, q);
    r->is_graph_output = true;
    bench_lower(square, DTYPE_NONE);
    const dataflow *d = build();
    operands_are(d, difference, 3, (tensor *[]){y, x, p});
    operands_are(d, sum, 3, (tensor *[]){p, v, q});
    operands_are(d, square, 2, (tensor *[]){q, r});
    bench_end();
}

int main(void) {
    UNIT_RUN(operands_stand_in_the_operations_order);
    UNIT_RUN(a_joined_work_waits_for_what_its_nodes_need);
    UNIT_RUN(works_that_need_each_other_are_cut);
    UNIT_RUN(what_takes_stored_numbers_reads_past_a_dequantisation);
    UNIT_RUN(free_views_lie_in_one_tensor);
    return unit_end();
}
