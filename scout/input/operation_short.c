/* The hand-written form: {"ffn_up": {"op": "gemm", "shape": [4096, 11008, 4096], "sparsity": 0.875}, …}. Fills in what
 * ops.json would have said: types, the weight, layouts, masks, costs. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "scout/op/gemm.h"

#include <string.h>

/* Kinds by another name say which of their kind they are. */
static const struct {
    const char *alias, *what;
} whats[] = {
    {"layernorm", "layer"},
    {"rmsnorm", "rms"},
    {"groupnorm", "group"},
    {"batchnorm", "batch"},
    {"instancenorm", "instance"},
    {"norm", "layer"},
    {"lstm", "lstm"},
    {"gru", "gru"},
    {"rnn", "rnn"},
    {"maxpool", "max"},
    {"avgpool", "average"},
    {"transpose", "transpose"},
};

static int64_t product(int n, const int64_t *x) {
    int64_t p = 1;
    for (int k = 0; k < n; k++) p = checked_mul(p, x[k]);
    return p;
}

static const char *what_of_alias(const char *op) {
    for (size_t k = 0; op && k < sizeof whats / sizeof *whats; k++)
        if (strcmp(whats[k].alias, op) == 0) return whats[k].what;
    return NULL;
}

static void drop_field(oprec *rec, const char *name) {
    const opfield *f = oprec_field(rec, name);
    if (!f) return;
    const ptrdiff_t at = f - rec->fields;
    rec->field_count--;
    memmove(&rec->fields[at], &rec->fields[at + 1], (size_t)(rec->field_count - at) * sizeof rec->fields[0]);
}

/* ---- types ---- */

/* What "dtype" (or "precision") says, else --precision, else fp32: one of the precisions, or a plain data type. */
static const operation_precision_row *set_types(const operation_reader *r, const json_t *entry, oprec *rec) {
    static const char *const members[] = {"dtype", "precision"};
    const char *name = NULL;
    for (size_t k = 0; k < 2 && !name; k++) name = operation_text(r, entry, members[k]);
    if (!name) name = r->precision ? r->precision : "fp32";
    const operation_precision_row *row = operation_find_precision(name);
    const dtype plain = dtype_from_name(name);
    if (!row && plain == DTYPE_NONE)
        operation_fail(r,
                       "dtype %.60s is not known; known are fp32, tf32, fp16, bf16, fp8, int8, int4 and the data "
                       "types of docs/formats.md",
                       name);
    rec->type = row ? row->type : plain;
    if (rec->kind != OP_GEMM && rec->kind != OP_CONV) {
        if (row && strcmp(row->name, "int4") == 0) rec->type = DTYPE_INT4;
        if (rec->kind == OP_EMBEDDING && rec->weight_type == DTYPE_NONE) rec->weight_type = rec->type; /* its table */
        return row;
    }
    const bool same = rec->weight_type == DTYPE_NONE;
    if (same) rec->weight_type = row ? row->weight : plain;
    if (rec->out_type == DTYPE_NONE && row) rec->out_type = row->out;
    if (rec->out_type == rec->type) rec->out_type = DTYPE_NONE;
    if (row && row->math && !oprec_field(rec, "math")) oprec_set_text(rec, "math", row->math);
    return row;
}

/* ---- kinds ---- */

/* How many numbers it has. */
static int64_t gemm_bias(const oprec *rec, int64_t m, int64_t n, int64_t batch) {
    const opfield *bias = oprec_field(rec, "bias");
    if (!bias || bias->kind != OPFIELD_TEXT) return 0;
    if (strcmp(bias->text, "n") == 0) return n;
    if (strcmp(bias->text, "m") == 0) return m;
    if (strcmp(bias->text, "each") == 0) return checked_mul(batch, n);
    return strcmp(bias->text, "full") == 0 ? checked_mul(m, n) : 1;
}

static void finish_gemm(const operation_reader *r, const operation_precision_row *row, oprec *rec) {
    if (!rec->layout) rec->layout = row ? row->layout : "nn";
    if (row && row->block_size && rec->weight_type == row->weight && !oprec_field(rec, "block_size"))
        oprec_set_int(rec, "block_size", row->block_size);
    if (!oprec_field(rec, "weight_side")) oprec_set_text(rec, "weight_side", "b");
    const opfield *side = oprec_field(rec, "weight_side");
    if (side->kind == OPFIELD_TEXT && strcmp(side->text, "none") == 0) {
        drop_field(rec, "weight_side");
        rec->weight_type = DTYPE_NONE;
    }
    const opfield *bias = oprec_field(rec, "bias");
    if (bias && bias->kind == OPFIELD_INT) oprec_set_text(rec, "bias", "n"); /* "bias": true */
    if (oprec_int(rec, "batch", 0) == 1) drop_field(rec, "batch");           /* what is customary is not written */
    const int64_t m = rec->shape[0], n = rec->shape[1], k = rec->shape[2], batch = oprec_int(rec, "batch", 1);
    const dtype b = rec->weight_type != DTYPE_NONE ? rec->weight_type : rec->type;
    const dtype out = rec->out_type != DTYPE_NONE ? rec->out_type : rec->type;
    const int64_t batch_a = oprec_int(rec, "batch_stride_a", 1) ? batch : 1,
                  batch_b = oprec_int(rec, "batch_stride_b", 1) ? batch : 1, block = oprec_int(rec, "block_size", 0);
    opcost_gemm(rec);
    rec->bytes_read = checked_add(dtype_bytes(rec->type, checked_mul(batch_a, checked_mul(m, k))),
                                  dtype_bytes(b, checked_mul(batch_b, checked_mul(n, k))));
    const bool few = gemm_widens((uint32_t)rec->type, (uint32_t)rec->weight_type);
    if (few || block > 0) {
        const int64_t blocks = checked_mul(checked_mul(batch_b, n), block > 0 ? checked_ceil_div(k, block) : 1);
        rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(rec->type, blocks));
        if (few && oprec_int(rec, "zero_points", 0))
            rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(b, blocks));
    }
    rec->bytes_written = dtype_bytes(out, checked_mul(batch, checked_mul(m, n)));
    rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(out, gemm_bias(rec, m, n, batch)));
    if (oprec_int(rec, "residual", 0)) rec->bytes_read = checked_add(rec->bytes_read, rec->bytes_written);
    if (rec->flops == INT64_MAX || rec->bytes_read >= INT64_MAX / 2 || rec->bytes_written >= INT64_MAX / 2)
        operation_fail(r, "a product of this size is impossible");
}

static void settle_mask(const operation_reader *r, const json_t *entry, oprec *rec) {
    const json_t *causal = json_object_get(entry, "causal");
    if (causal && !json_is_boolean(causal)) operation_fail(r, "causal must be true or false");
    if (json_is_true(causal)) rec->mask = "causal";
    if (!rec->mask) rec->mask = "none";
    operation_settle_block_mask(r, rec);
}

static void finish_attention(const operation_reader *r, oprec *rec) {
    const int64_t heads = rec->shape[1], queries = rec->shape[2], d = rec->shape[3];
    if (!oprec_field(rec, "kv_heads")) oprec_set_int(rec, "kv_heads", heads);
    if (!oprec_field(rec, "kv_len")) oprec_set_int(rec, "kv_len", queries);
    const int64_t kv_heads = oprec_int(rec, "kv_heads", 0), kv_len = oprec_int(rec, "kv_len", 0),
                  v_head = oprec_int(rec, "v_head", d);
    if (kv_heads < 1 || heads % kv_heads != 0)
        operation_fail(r, "kv_heads is %lld, which does not divide the %lld heads", (long long)kv_heads,
                       (long long)heads);
    if (kv_len < 1 || kv_len > operation_max_dim) operation_fail(r, "kv_len must be at least 1");
    if (v_head < 1 || v_head > operation_max_dim) operation_fail(r, "v_head must be at least 1");
    operation_cost_attention(rec);
}

static void check_sizes(const operation_reader *r, const opfield *f) {
    for (int k = 0; k < f->n; k++)
        if (f->ints[k] < 1 || f->ints[k] > operation_max_dim)
            operation_fail(r, "the values of %s must be at least 1", f->name);
}

static void finish_conv(const operation_reader *r, oprec *rec) {
    const opfield *input = oprec_field(rec, "input"), *kernel = oprec_field(rec, "kernel");
    const int64_t out = product(rec->rank, rec->shape), group = oprec_int(rec, "group", 1);
    if (!rec->layout) rec->layout = "nchw";
    const bool last = strcmp(rec->layout, "nhwc") == 0;
    rec->bytes_written = dtype_bytes(rec->out_type != DTYPE_NONE ? rec->out_type : rec->type, out);
    if (group < 1) operation_fail(r, "group must be at least 1");
    if (!input || input->kind != OPFIELD_INTS || input->n < 2 || !kernel || kernel->kind != OPFIELD_INTS) return;
    check_sizes(r, input);
    check_sizes(r, kernel);
    const int64_t cin = input->ints[last ? input->n - 1 : 1], places = product(input->n, input->ints);
    const int64_t cout = rec->rank > 1 ? rec->shape[last ? rec->rank - 1 : 1] : 1;
    const int64_t taps = product(kernel->n, kernel->ints);
    /* every weight is used once for each output position (each input position, where transposed) */
    opcost_macs(rec, oprec_int(rec, "transposed", 0) ? checked_mul(places, checked_mul(cout / group, taps))
                                                     : checked_mul(out, checked_mul(cin / group, taps)));
    rec->bytes_read = checked_add(dtype_bytes(rec->type, places),
                                  dtype_bytes(rec->weight_type, checked_mul(checked_mul(cout, cin) / group, taps)));
    if (gemm_widens((uint32_t)rec->type, (uint32_t)rec->weight_type)) /* a scale for each channel */
        rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(rec->type, cout));
}

/* Norms of a learned scale have one, also where nothing is said of it; what else they read is told by their fields. */
static void finish_norm(oprec *rec, int64_t elements) {
    static const char *const scaled[] = {"layer", "rms", "group", "batch", "instance"};
    static const char *const sides[] = {"bias", "input_bias"};
    for (size_t k = 0; k < sizeof scaled / sizeof *scaled && rec->weight_type == DTYPE_NONE; k++)
        if (rec->what && strcmp(scaled[k], rec->what) == 0) rec->weight_type = rec->type;
    const dtype type = rec->weight_type != DTYPE_NONE ? rec->weight_type : rec->type;
    const int64_t each = oprec_int(rec, "channels", rec->shape[1]);
    int64_t vectors = (rec->weight_type != DTYPE_NONE) + 2 * (rec->what && strcmp(rec->what, "batch") == 0);
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) vectors += oprec_int(rec, sides[k], 0) != 0;
    rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(type, checked_mul(vectors, each > 0 ? each : 0)));
    if (oprec_int(rec, "residual", 0)) rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(rec->type, elements));
    if (oprec_int(rec, "residual_out", 0)) rec->bytes_written = checked_mul(2, rec->bytes_written);
}

/* Everything else: each element read and written once. */
static void finish_plain(oprec *rec) {
    const int64_t n = product(rec->rank, rec->shape);
    const int64_t each = opcost_per_element(rec->kind, rec->what);
    rec->flops = rec->kind == OP_MOVE || rec->kind == OP_EMBEDDING ? 0 : checked_mul(each, n);
    rec->bytes_read = dtype_bytes(rec->type, n);
    rec->bytes_written = dtype_bytes(rec->out_type != DTYPE_NONE ? rec->out_type : rec->type, n);
    if (rec->kind == OP_NORM && rec->rank == 2) finish_norm(rec, n);
}

/* As much of the table as is looked up, with its scales and zero points where it is quantised. */
static void finish_embedding(oprec *rec) {
    const int64_t n = product(rec->rank, rec->shape), block = oprec_int(rec, "block_size", 0);
    finish_plain(rec);
    if (block < 1) return;
    const int64_t blocks = checked_mul(rec->shape[0], checked_ceil_div(rec->shape[rec->rank - 1], block));
    rec->bytes_read = checked_add(dtype_bytes(rec->weight_type, n), dtype_bytes(rec->type, blocks));
    if (oprec_int(rec, "zero_points", 0))
        rec->bytes_read = checked_add(rec->bytes_read, dtype_bytes(rec->weight_type, blocks));
}

/* A number for each row: of a place it is an int64. */
static void finish_reduce(oprec *rec) {
    finish_plain(rec);
    if (rec->rank != 2) return;
    const bool place = rec->what && strncmp(rec->what, "arg", 3) == 0;
    const dtype out = rec->out_type != DTYPE_NONE ? rec->out_type : place ? DTYPE_INT64 : rec->type;
    rec->bytes_written = dtype_bytes(out, rec->shape[0]);
}

/* How large its bias is, is told by the bytes that are read alone. */
static void finish_softmax(const operation_reader *r, const json_t *entry, oprec *rec) {
    finish_plain(rec);
    if (oprec_int(rec, "bias", 0))
        rec->bytes_read = operation_number(r, entry, "bytes_read", rec->bytes_read, INT64_MAX / 2, rec->bytes_read);
}

/* The input is another size than the output, and every output looks at a window of it. */
static void finish_pool(const operation_reader *r, oprec *rec) {
    const opfield *input = oprec_field(rec, "input"), *kernel = oprec_field(rec, "kernel");
    if (!rec->layout) rec->layout = "nchw";
    finish_plain(rec);
    if (!input || input->kind != OPFIELD_INTS) return;
    check_sizes(r, input);
    rec->bytes_read = dtype_bytes(rec->type, product(input->n, input->ints));
    if (!kernel || kernel->kind != OPFIELD_INTS) return;
    check_sizes(r, kernel);
    rec->flops = checked_mul(product(rec->rank, rec->shape), product(kernel->n, kernel->ints));
}

/* [cols] is one row, and leading dimensions are rows. */
static void finish_rows(const operation_reader *r, oprec *rec) {
    if (rec->rank == 2 || rec->rank == 0) return;
    const int64_t shape[2] = {product(rec->rank - 1, rec->shape), rec->shape[rec->rank - 1]};
    if (shape[0] > operation_max_dim) operation_fail(r, "shape has too many rows");
    oprec_set_shape(rec, r->arena, 2, shape);
}

void operation_read_short(operation_reader *r, const char *name, json_t *entry, operation *out) {
    oprec *rec = &out->rec;
    r->entry = name;
    *out = (operation){.name = name, .source = entry};
    if (!json_is_object(entry)) operation_fail(r, "it must be an object like {\"op\": \"gemm\", \"shape\": [M, N, K]}");
    if (json_is_array(json_object_get(entry, "op"))) operation_read_sequence(r, entry);
    operation_check_names(r, entry);
    operation_read_record(r, entry, 1, rec);
    if (rec->rank == 0) operation_fail(r, "\"shape\" is missing: a list of dimensions");
    if (!rec->what) rec->what = what_of_alias(operation_text(r, entry, "op"));
    operation_read_fields(r, entry, rec);
    operation_check_needs(r, entry, rec);
    drop_field(rec, "precision"); /* here both are about the whole entry */
    drop_field(rec, "pattern");
    const operation_precision_row *row = set_types(r, entry, rec);
    if (rec->kind == OP_NORM || rec->kind == OP_SOFTMAX) finish_rows(r, rec);
    if (rec->kind == OP_ATTENTION) settle_mask(r, entry, rec);
    operation_check_record(r, rec);
    out->count = operation_number(r, entry, "count", 0, operation_max_dim, 1);
    operation_read_sparsity(r, entry, operation_text(r, entry, "pattern"), out);
    switch (rec->kind) {
    case OP_GEMM: finish_gemm(r, row, rec); break;
    case OP_ATTENTION: finish_attention(r, rec); break;
    case OP_RECURRENT: operation_finish_recurrent(r, rec); break;
    case OP_CONV: finish_conv(r, rec); break;
    case OP_POOL: finish_pool(r, rec); break;
    case OP_REDUCE: finish_reduce(rec); break;
    case OP_EMBEDDING: finish_embedding(rec); break;
    case OP_SOFTMAX: finish_softmax(r, entry, rec); break;
    default: finish_plain(rec); break;
    }
    operation_check_sparsity(r, out);
}
