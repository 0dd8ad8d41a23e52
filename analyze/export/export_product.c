/* Owns which operations are plain products. A field of a key that is not in the table below changes what is computed or
 * how, so its operation is left out: a new field never slips through. */
#include "analyze/export/export.h"

#include "common/plain.h"

#include <stdlib.h>
#include <string.h>

static const char other[] = "more than a product and a bias";
static const char mixed[] = "mixed types";
static const char sparse[] = "a weight whose zeros decide, which no shape tells";
static const char unread[] = "a key that cannot be read";

typedef const char *read_field(export_product *p, const char *value, arena *a);

static const char *read_whole(const char **text, int64_t *x) {
    char *end;
    *x = strtoll(*text, &end, 10);
    if (end == *text || *x < 1 || *x > INT32_MAX) return unread; /* no consumer has larger ones */
    *text = end;
    return NULL;
}

static const char *read_shape(export_product *p, const char *value, arena *a) {
    int64_t *const to[] = {&p->m, &p->n, &p->k};
    (void)a;
    for (int d = 0; d < 3; d++)
        if (read_whole(&value, to[d]) || *value++ != (d < 2 ? ',' : 0)) return unread;
    return NULL;
}

static const char *read_batch(export_product *p, const char *value, arena *a) {
    (void)a;
    return read_whole(&value, &p->batch) || *value ? unread : NULL;
}

static const char *read_layout(export_product *p, const char *value, arena *a) {
    (void)a;
    if (strlen(value) != 2 || strspn(value, "nt") != 2) return unread;
    p->trans_a = value[0] == 't', p->trans_b = value[1] == 't';
    return NULL;
}

static const char *read_type(export_product *p, const char *value, arena *a) {
    if (p->type && !plain_same(p->type, value)) return mixed;
    p->type = arena_strndup(a, value, strlen(value));
    return NULL;
}

static const char *read_side(export_product *p, const char *value, arena *a) {
    (void)a;
    p->weight = value[0];
    return plain_same(value, "a") || plain_same(value, "b") ? NULL : unread;
}

static const char *read_bias(export_product *p, const char *value, arena *a) {
    (void)a;
    p->bias = true;
    return plain_same(value, "n") ? NULL : other;
}

static const char *read_math(export_product *p, const char *value, arena *a) {
    (void)a;
    p->tf32 = true;
    return plain_same(value, "tf32") ? NULL : other;
}

/* Which numbers of a weight count as zeros, and which are: a dense product computes them all. */
static const char *read_zeros(export_product *p, const char *value, arena *a) {
    (void)p, (void)value, (void)a;
    return NULL;
}

static const char *read_sparsity(export_product *p, const char *value, arena *a) {
    (void)p, (void)value, (void)a;
    return sparse;
}

static const struct {
    const char *name;
    read_field *read;
} fields[] = {
    {"shape", read_shape},
    {"layout", read_layout},
    {"type", read_type},
    {"weight", read_type},
    {"out", read_type},
    {"weight_side", read_side},
    {"batch", read_batch},
    {"bias", read_bias},
    {"math", read_math},
    {"zeros", read_zeros},
    {"weight_threshold", read_zeros},
    {"sparsity", read_sparsity},
    {"sparse_pattern", read_sparsity},
};

static const char *read_one(export_product *p, char *field, arena *a) {
    char *const value = strchr(field, '=');
    if (!value) return unread;
    *value = 0;
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++)
        if (strcmp(fields[k].name, field) == 0) return fields[k].read(p, value + 1, a);
    return other;
}

bool export_product_read(const char *key, export_product *p, arena *a, const char **why) {
    char *text = arena_strndup(a, key, strlen(key)), *next;
    *p = (export_product){.batch = 1};
    *why = NULL;
    next = strchr(text, ';');
    if (!next || (size_t)(next - text) != 4 || strncmp(text, "gemm", 4) != 0) *why = "no product of two matrices";
    while (!*why && next) {
        char *const field = next + 1;
        next = strchr(field, ';');
        if (next) *next = 0;
        *why = read_one(p, field, a);
    }
    if (!*why && (p->m < 1 || !p->type)) *why = unread;
    return !*why;
}

/* ---- types ---- */

static const struct {
    const char *here, *torch, *aten;
} types[] = {
    {"fp16", "torch.float16", "Half"},
    {"bf16", "torch.bfloat16", "BFloat16"},
    {"fp32", "torch.float32", "float"},
    {"fp64", "torch.float64", "double"},
};

const char *export_torch_type(const char *type) {
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (strcmp(types[k].here, type) == 0) return types[k].torch;
    return NULL;
}

const char *export_aten_type(const char *type) {
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (strcmp(types[k].here, type) == 0) return types[k].aten;
    return NULL;
}
