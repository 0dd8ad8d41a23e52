/* Products by their tensors: how both sides lie becomes the layout, and a dimension of products in front becomes more
 * rows or the batch, as extract_ops writes them. */
#include "runtime/runtime_front.h"

#include <string.h>

enum { A, B, C, BIAS, RESIDUAL, SCALES, ZEROS };

typedef struct side {
    int64_t batch, rows, cols;
    bool transposed, inside, shared; /* inside: products lie between rows; shared: one matrix for all */
} side;

/* A dimension of 1 has any stride. */
static bool steps(const scout_run_tensor *t, int d, int64_t step) { return t->dims[d] == 1 || t->strides[d] == step; }

static bool read_side(const scout_run_tensor *t, const char *name, side *s, scout_run_error *error) {
    const int r = t->rank - 2, c = t->rank - 1;
    if (t->rank != 2 && t->rank != 3)
        return runtime_refuse(error, "%s: expected 2 or 3 dimensions, got %d", name, (int)t->rank);
    *s = (side){.batch = r > 0 ? t->dims[0] : 1, .rows = t->dims[r], .cols = t->dims[c]};
    s->shared = s->batch == 1;
    const bool plain = steps(t, c, 1) && steps(t, r, s->cols);
    s->transposed = !plain && steps(t, r, 1) && steps(t, c, s->rows);
    s->inside = !plain && !s->transposed && steps(t, c, 1) && steps(t, r, s->cols * s->batch);
    if (!plain && !s->transposed && !s->inside)
        return runtime_refuse(error, "%s: expected rows or columns side by side without gaps", name);
    if (s->shared || steps(t, 0, s->inside ? s->cols : s->rows * s->cols)) return true;
    return runtime_refuse(error, "%s: expected its products side by side", name);
}

typedef struct product {
    side a, b, c;
    int64_t batch;
} product;

static bool read_product(const runtime_call *call, product *p, scout_run_error *error) {
    const scout_run_tensor *const *t = call->tensors;
    if (!read_side(t[A], "a", &p->a, error) || !read_side(t[B], "b", &p->b, error) ||
        !read_side(t[C], "c", &p->c, error))
        return false;
    p->batch = p->a.batch > p->b.batch ? p->a.batch : p->b.batch;
    if (p->a.cols != p->b.rows)
        return runtime_refuse(error, "b: expected %lld rows, as many as a has columns, got %lld", (long long)p->a.cols,
                              (long long)p->b.rows);
    if ((p->a.batch != 1 && p->a.batch != p->batch) || (p->b.batch != 1 && p->b.batch != p->batch))
        return runtime_refuse(error, "b: expected %lld products or one, got %lld", (long long)p->a.batch,
                              (long long)p->b.batch);
    if (p->c.batch == p->batch && p->c.rows == p->a.rows && p->c.cols == p->b.cols && runtime_dense(t[C])) return true;
    return runtime_refuse(error, "c: expected %lld x %lld x %lld without gaps", (long long)p->batch,
                          (long long)p->a.rows, (long long)p->b.cols);
}

/* A matrix on the right that is the same for the whole batch makes the batch more rows. */
static void set_batch(oprec *rec, product *p) {
    if (p->batch == 1) return;
    if (p->b.shared && !p->a.transposed && !p->a.inside) {
        p->a.rows *= p->batch;
        return;
    }
    oprec_set_int(rec, "batch", p->batch);
    if (p->a.shared) oprec_set_int(rec, "batch_stride_a", 0);
    if (p->b.shared) oprec_set_int(rec, "batch_stride_b", 0);
    if (p->a.inside || p->b.inside) oprec_set_text(rec, "batch_inside", !p->a.inside ? "b" : p->b.inside ? "ab" : "a");
}

static const char *bias_form(const scout_run_tensor *bias, int64_t m, int64_t n) {
    const int64_t count = runtime_elements(bias);
    if (!runtime_dense(bias)) return NULL;
    if (count == 1) return "scalar";
    if (count == n && bias->dims[bias->rank - 1] == n) return "n";
    if (count == m && bias->rank == 2 && bias->dims[0] == m) return "m";
    return count == m * n && bias->rank >= 2 && bias->dims[bias->rank - 1] == n ? "full" : NULL;
}

static bool set_epilogue(const runtime_call *call, oprec *rec, scout_run_error *error) {
    const scout_run_tensor *bias = call->tensors[BIAS], *residual = call->tensors[RESIDUAL], *c = call->tensors[C];
    const char *form = bias ? bias_form(bias, rec->shape[0], rec->shape[1]) : NULL;
    if (bias && !form) return runtime_refuse(error, "bias: expected [N], [M,1], [1] or [M,N] without gaps");
    if (bias) oprec_set_text(rec, "bias", form);
    if (!residual) return true;
    oprec_set_int(rec, "residual", 1);
    if (runtime_dense(residual) && residual->rank == c->rank &&
        memcmp(residual->dims, c->dims, (size_t)c->rank * sizeof c->dims[0]) == 0)
        return true;
    return runtime_refuse(error, "residual: expected the sizes of c, without gaps");
}

/* Scales come in rows of blocks along K, for each column of b and product of a batch; zero points likewise. One for a
 * column of bytes is as QDQ has it. */
static bool set_blocks(const runtime_call *call, oprec *rec, scout_run_error *error) {
    const scout_run_tensor *scales = call->tensors[SCALES], *zeros = call->tensors[ZEROS];
    const int64_t n = rec->shape[1], k = rec->shape[2], batch = oprec_int(rec, "batch", 1);
    const int lead = batch > 1;
    if (!scales) return !zeros || runtime_refuse(error, "zeros: expected scales beside them");
    if (scales->rank != 2 + lead || (lead && scales->dims[0] != batch) || scales->dims[lead] != n ||
        k % scales->dims[lead + 1] != 0 || !runtime_dense(scales))
        return runtime_refuse(error, lead ? "scales: expected [batch, N, blocks along K] without gaps"
                                          : "scales: expected [N, blocks along K] without gaps");
    const bool bytes = rec->weight_type == DTYPE_INT8 || rec->weight_type == DTYPE_UINT8;
    if (bytes && scales->dims[lead + 1] == 1)
        oprec_set_text(rec, "weight_scales", "channel");
    else
        oprec_set_int(rec, "block_size", k / scales->dims[lead + 1]);
    if (!zeros) return true;
    oprec_set_int(rec, "zero_points", 1);
    if ((dtype)zeros->type == rec->weight_type && zeros->rank == scales->rank &&
        memcmp(zeros->dims, scales->dims, (size_t)scales->rank * sizeof scales->dims[0]) == 0 && runtime_dense(zeros))
        return true;
    return runtime_refuse(error, "zeros: expected the sizes of scales and the type of b, without gaps");
}

static bool describe(runtime_call *call, arena *a, operation *out, scout_run_error *error) {
    const runtime_setting *weight = runtime_call_setting(call, "weight_side");
    const bool left = weight && strcmp(weight->text, "a") == 0;
    oprec *rec = &out->rec;
    product p = {.batch = 0};
    if (!read_product(call, &p, error)) return false;
    rec->type = (dtype)call->tensors[left ? B : A]->type;
    if (weight) rec->weight_type = (dtype)call->tensors[left ? A : B]->type;
    if (!weight && call->tensors[A]->type != call->tensors[B]->type)
        return runtime_refuse(error, "b: expected the type of a, where neither is a weight");
    runtime_front_types(rec, call->tensors[C]);
    set_batch(rec, &p);
    rec->layout = p.a.transposed ? (p.b.transposed ? "tt" : "tn") : (p.b.transposed ? "nt" : "nn");
    const int64_t shape[3] = {p.a.rows, p.b.cols, p.a.cols};
    oprec_set_shape(rec, a, 3, shape);
    runtime_front_settings(call, a, rec);
    return set_epilogue(call, rec, error) && set_blocks(call, rec, error);
}

static const runtime_front front = {"gemm", 3, {"a", "b", "c", "bias", "residual", "scales", "b_zero"}, describe};

static int32_t begin(runtime_call *call, const scout_run_tensor *a, const scout_run_tensor *b,
                     const scout_run_tensor *c, const scout_run_gemm_more *given, scout_run_error *error) {
    scout_run_gemm_more more;
    if (!RUNTIME_FRONT_MORE(&more, given, error)) return SCOUT_RUN_INVALID;
    if (more.weight != 0 && more.weight != 'a' && more.weight != 'b')
        return runtime_say(error, SCOUT_RUN_INVALID, "weight: expected 'a', 'b' or 0, got %d", (int)more.weight);
    runtime_call_begin(call, &front, NULL, ZEROS + 1, more.packed);
    call->tensors[A] = a, call->tensors[B] = b, call->tensors[C] = c;
    call->tensors[BIAS] = more.bias, call->tensors[RESIDUAL] = more.residual, call->tensors[SCALES] = more.scales;
    call->tensors[ZEROS] = more.zeros;
    if (more.weight) runtime_call_set(call, "weight_side", more.weight == 'a' ? "a" : "b", 0, NULL);
    if (more.activation) runtime_call_set(call, "activation", more.activation, 0, NULL);
    if (more.tf32) runtime_call_set(call, "math", "tf32", 0, NULL);
    return SCOUT_RUN_OK;
}

int32_t scout_run_gemm(scout_run *run, const scout_run_tensor *a, const scout_run_tensor *b, const scout_run_tensor *c,
                       const scout_run_gemm_more *more, void *stream, scout_run_error *error) {
    runtime_call call;
    const int32_t code = begin(&call, a, b, c, more, error);
    return code == SCOUT_RUN_OK ? runtime_call_launch(run, &call, stream, error) : code;
}

int32_t scout_pack_weight_gemm(scout_run *run, const scout_run_tensor *a, const scout_run_tensor *b,
                               const scout_run_tensor *c, const scout_run_gemm_more *more, scout_run_weight **packed,
                               scout_run_error *error) {
    runtime_call call;
    *packed = NULL;
    const int32_t code = begin(&call, a, b, c, more, error);
    return code == SCOUT_RUN_OK ? runtime_call_pack(run, &call, packed, error) : code;
}
