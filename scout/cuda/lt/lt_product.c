/* Builds operations for lt_candidate. */
#include "scout/cuda/lt/lt_product.h"

#include "scout/cuda/lt/lt.h"

void lt_product_begin(lt_product *p, const scout_op *from, const char *layout, const int64_t shape[3], int64_t batch,
                      uint64_t workspace) {
    memset(p, 0, sizeof *p);
    p->op = (scout_op){.size = sizeof p->op, .kind = SCOUT_GEMM, .key = "", .layout = layout, .rank = 3};
    memcpy(p->op.shape, shape, 3 * sizeof *shape);
    p->op.input = p->op.weight = from->input;
    p->op.accumulate = from->accumulate, p->op.output = from->output, p->op.tf32 = from->tf32;
    p->op.workspace_limit = workspace;
    p->op.flops = 2.0 * (double)shape[0] * (double)shape[1] * (double)shape[2] * (double)batch;
    p->op.fields = p->fields, p->op.tensors = p->tensors;
    p->fields[p->op.field_count++] = (scout_field){.name = "batch", .number = batch};
}

void lt_product_add(lt_product *p, const char *name, const lt_product_matrix *m) {
    const int64_t batch = m->stride ? op_number(&p->op, "batch", 1) : 1;
    const bool output = p->op.tensor_count == GEMM_C;
    scout_tensor *const t = &p->tensors[p->op.tensor_count++];
    *t = (scout_tensor){
        .size = sizeof *t, .role = output ? SCOUT_OUTPUT : SCOUT_INPUT, .type = m->type, .rank = 3, .dims = {batch}};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->dims[1] = m->rows, t->dims[2] = m->cols;
    t->strides[0] = m->stride, t->strides[1] = m->ld, t->strides[2] = 1;
}

void lt_product_behind(lt_product *p, const scout_op *from, const char *along, int64_t count) {
    for (uint32_t k = 0; k < from->field_count; k++)
        if (strncmp(from->fields[k].name, "activation", strlen("activation")) == 0 &&
            p->op.field_count < LT_PRODUCT_FIELDS - 1)
            p->fields[p->op.field_count++] = from->fields[k];
    if (!along) return;
    p->fields[p->op.field_count++] = (scout_field){.name = "bias", .text = along};
    lt_product_add(p, "bias", &(lt_product_matrix){from->output, 1, count, count, 0});
}

void lt_product_algos(scout_parameter *p, uint32_t most, int exhaustive) {
    *p = (scout_parameter){.name = "algo"};
    p->count = !exhaustive && most > LT_PRODUCT_ALGOS ? LT_PRODUCT_ALGOS : most;
    for (uint32_t k = 0; k < p->count; k++) p->values[k] = k;
}

void lt_product_choices(scout_parameter *p, const char *name, const char *const *labels, uint32_t found) {
    int first = 0;
    *p = (scout_parameter){.count = 0};
    while (!(found >> first & 1)) first++;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->labels = labels + first;
    for (int k = first; found >> k; k++) p->values[p->count++] = k;
}

int lt_product_describe(const scout_plan *multiply, const char *members, char *json, size_t room) {
    char by[2048];
    const int n = scout_describe(&lt_candidate, multiply, by, sizeof by);
    const bool whole = n > 1 && (size_t)n < sizeof by && by[0] == '{';
    return snprintf(json, room, "{%s%s%s", members, whole ? "," : "}", whole ? by + 1 : "");
}
