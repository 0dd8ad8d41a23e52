/* From a configuration to nodes. A layer is told once, with all that families have; what a family is made of says its
 * row (config_family.c). Operators are those of opset 23 where one does the work of many. */
#include "extract/config/config_build.h"

#include "common/checked.h"

#include <stdarg.h>
#include <string.h>

typedef struct builder {
    onnx_writer *onnx;
    const config_read *read;
    const config_family *family;
    const config_values *v;
    const char *prefix;
    int64_t batch, tokens, past;
} builder;

/* Names and shapes on the way; all in the arena. */
__attribute__((format(printf, 2, 3))) static const char *text(const builder *b, const char *format, ...) {
    char made[512];
    va_list args;
    va_start(args, format);
    vsnprintf(made, sizeof made, format, args);
    va_end(args);
    return arena_strndup(b->onnx->arena, made, strlen(made));
}

#define DIMS(...)   ((const int64_t[]){__VA_ARGS__}), (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A node that is left open for attributes. Its output has its name, which is `path` in this run. */
static const char *open_node(builder *b, const char *op_type, const char *path, const char *const *inputs) {
    const char *name = text(b, "%s%s", b->prefix, path);
    onnx_node(b->onnx, "", op_type, name);
    for (; *inputs; inputs++) onnx_in(b->onnx, *inputs);
    onnx_out(b->onnx, name);
    return name;
}

static const char *node(builder *b, const char *op_type, const char *path, const char *const *inputs) {
    const char *name = open_node(b, op_type, path, inputs);
    onnx_close(b->onnx);
    return name;
}

static const char *weight(builder *b, const char *module, const char *part, const int64_t *dims, int rank) {
    const char *name = text(b, "%s%s", module, part);
    onnx_weight(b->onnx, name, b->read->type, dims, rank);
    return name;
}

/* A vector of numbers, named by them. */
static const char *numbers(builder *b, const int64_t *x, int n) {
    const char *name = "numbers";
    for (int k = 0; k < n; k++) name = text(b, "%s_%lld", name, (long long)x[k]);
    onnx_vector(b->onnx, name, x, n);
    return name;
}

static const char *reshape(builder *b, const char *x, const char *path, const int64_t *dims, int rank) {
    return node(b, "Reshape", path, INPUTS(x, numbers(b, dims, rank)));
}

static const char *transpose(builder *b, const char *x, const char *path, const int64_t *perm, int rank) {
    const char *name = open_node(b, "Transpose", path, INPUTS(x));
    onnx_ints(b->onnx, "perm", perm, rank);
    onnx_close(b->onnx);
    return name;
}

static const char *split(builder *b, const char *x, const char *path, const int64_t *sizes, int n) {
    const char *name = text(b, "%s%s", b->prefix, path);
    onnx_node(b->onnx, "", "Split", name);
    onnx_in(b->onnx, x);
    onnx_in(b->onnx, numbers(b, sizes, n));
    for (int k = 0; k < n; k++) onnx_out(b->onnx, text(b, "%s.%d", name, k));
    onnx_int(b->onnx, "axis", -1);
    onnx_close(b->onnx);
    return name;
}

/* ---- parts of a layer ---- */

/* x times a matrix [in, out], and a bias. */
static const char *product(builder *b, const char *x, const char *module, const char *w, int64_t out, bool bias) {
    x = node(b, "MatMul", module, INPUTS(x, w));
    return bias ? node(b, "Add", text(b, "%s.add", module), INPUTS(x, weight(b, module, ".bias", DIMS(out)))) : x;
}

/* All tokens through one matrix. */
static const char *linear(builder *b, const char *x, const char *module, int64_t in, int64_t out, bool bias) {
    const char *w = weight(b, module, ".weight", DIMS(in, out));
    if (b->family->linear == CONFIG_MATMUL) return product(b, x, module, w, out, bias);
    x = reshape(b, x, text(b, "%s.rows", module), DIMS(checked_mul(b->batch, b->tokens), in));
    x = node(b, "Gemm", module, INPUTS(x, w, weight(b, module, ".bias", DIMS(out))));
    return reshape(b, x, text(b, "%s.view", module), DIMS(b->batch, b->tokens, out));
}

/* A matrix that is kept as [out, in]. */
static const char *turned(builder *b, const char *module, const char *path, int64_t out, int64_t in) {
    const char *w = weight(b, module, ".weight", DIMS(out, in));
    return transpose(b, w, text(b, "%s.transpose", path), DIMS(1, 0));
}

/* What follows the layers: of the vocabulary it may be the embedding's table. */
static const char *last_linear(builder *b, const char *x, const char *module, int64_t out, bool bias, bool tied) {
    const int64_t in = b->v->hidden;
    const char *w =
        tied ? turned(b, b->family->names->tokens, module, out, in) : weight(b, module, ".weight", DIMS(in, out));
    return product(b, x, module, w, out, bias);
}

static const char *norm(builder *b, const char *x, const char *module) {
    const char *scale = weight(b, module, ".weight", DIMS(b->v->hidden));
    if (strcmp(b->family->norm, "LayerNormalization") != 0) return node(b, b->family->norm, module, INPUTS(x, scale));
    return node(b, b->family->norm, module, INPUTS(x, scale, weight(b, module, ".bias", DIMS(b->v->hidden))));
}

static const char *activate(builder *b, const char *x, const char *path) {
    const config_activation *a = b->read->activation;
    const char *y = open_node(b, a->op_type, path, INPUTS(x));
    if (a->approximate) onnx_text(b->onnx, "approximate", a->approximate);
    onnx_close(b->onnx);
    return a->gates ? node(b, "Mul", text(b, "%s.mul", path), INPUTS(x, y)) : y;
}

/* [B, S, H * D] to [B, H, S, D]. */
static const char *heads(builder *b, const char *x, const char *path, int64_t count) {
    x = reshape(b, x, text(b, "%s.heads", path), DIMS(b->batch, b->tokens, count, b->v->head));
    return transpose(b, x, text(b, "%s.transpose", path), DIMS(0, 2, 1, 3));
}

static int64_t rotated_width(const builder *b) { return (int64_t)((double)b->v->head * b->v->rotated) / 2 * 2; }

/* Part of the last dimension. */
static const char *slice(builder *b, const char *x, const char *path, int rank, int64_t from, int64_t to) {
    return node(b, "Slice", path, INPUTS(x, numbers(b, DIMS(from)), numbers(b, DIMS(to)), numbers(b, DIMS(rank - 1))));
}

static const char *behind(builder *b, const char *x, const char *y, const char *path) {
    const char *name = open_node(b, "Concat", path, INPUTS(x, y));
    onnx_int(b->onnx, "axis", -1);
    onnx_close(b->onnx);
    return name;
}

/* As transformers spells it: each number has its own angle, and its partner is half of them away. */
static const char *turn(builder *b, const char *x, const char *path, int64_t rotated) {
    const char *first = slice(b, x, text(b, "%s.first", path), 4, 0, rotated / 2);
    const char *second = slice(b, x, text(b, "%s.second", path), 4, rotated / 2, rotated);
    const char *partners =
        behind(b, node(b, "Neg", text(b, "%s.neg", path), INPUTS(second)), first, text(b, "%s.partners", path));
    const char *straight = node(b, "Mul", text(b, "%s.cos", path), INPUTS(x, text(b, "%scos", b->prefix)));
    const char *across = node(b, "Mul", text(b, "%s.sin", path), INPUTS(partners, text(b, "%ssin", b->prefix)));
    return node(b, "Add", path, INPUTS(straight, across));
}

/* Angles come from outside, as where a model is served. What is not rotated is put behind again. */
static const char *rotate(builder *b, const char *x, const char *path) {
    const int64_t rotated = rotated_width(b);
    const bool all = rotated == b->v->head;
    const char *moved = all ? x : slice(b, x, text(b, "%s.rotated", path), 4, 0, rotated);
    const char *rest = all ? NULL : slice(b, x, text(b, "%s.passed", path), 4, rotated, b->v->head);
    moved = turn(b, moved, text(b, "%s.rotary", path), rotated);
    return all ? moved : behind(b, moved, rest, text(b, "%s.concat", path));
}

/* A cache of earlier keys and values is an input, and what it is with the fresh ones an output. */
static const char *attend(builder *b, const char *const qkv[3], const char *path, int layer) {
    static const char *const kinds[2] = {"key", "value"};
    const char *name = open_node(b, "Attention", path, INPUTS(qkv[0], qkv[1], qkv[2]));
    const char *present[2];
    const bool sees_past =
        b->v->window > 0 && layer >= b->v->window_from && checked_add(b->past, b->tokens) > b->v->window;
    if (b->past > 0) onnx_in(b->onnx, "");
    for (int k = 0; k < 2 && b->past > 0; k++) {
        present[k] = text(b, "%spresent.%d.%s", b->prefix, layer, kinds[k]);
        onnx_in(b->onnx, text(b, "%spast_key_values.%d.%s", b->prefix, layer, kinds[k]));
        onnx_out(b->onnx, present[k]);
    }
    if (b->family->causal && (b->tokens > 1 || sees_past)) onnx_int(b->onnx, "is_causal", 1);
    if (sees_past) onnx_int(b->onnx, "left_window_size", b->v->window - 1);
    onnx_close(b->onnx);
    for (int k = 0; k < 2 && b->past > 0; k++) {
        onnx_input(b->onnx, text(b, "%spast_key_values.%d.%s", b->prefix, layer, kinds[k]), b->read->type,
                   DIMS(b->batch, b->v->kv_heads, b->past, b->v->head));
        onnx_output(b->onnx, present[k]);
    }
    return name;
}

/* What one product makes for queries, keys and values, taken apart as the family's code does it. */
static void take_apart(builder *b, const char *x, const char *module, const int64_t widths[3], const char *qkv[3]) {
    int64_t from = 0;
    const char *parts = b->family->qkv == CONFIG_SPLIT ? split(b, x, text(b, "%s.split", module), widths, 3) : NULL;
    for (int k = 0; k < 3; from += widths[k++])
        qkv[k] = parts ? text(b, "%s.%d", parts, k)
                       : slice(b, x, text(b, "%s.slice_%d", module, k), 3, from, from + widths[k]);
}

static const char *attention(builder *b, const char *x, const char *layer, int number) {
    const config_names *n = b->family->names;
    const int64_t wide = b->v->heads * b->v->head, narrow = b->v->kv_heads * b->v->head;
    const int64_t widths[3] = {wide, narrow, narrow}, counts[3] = {b->v->heads, b->v->kv_heads, b->v->kv_heads};
    const char *const modules[3] = {n->query, n->key, n->value};
    const bool bias = b->read->bias & CONFIG_BIAS_QKV, apart = b->family->qkv == CONFIG_APART;
    const char *qkv[3], *paths[3];
    for (int k = 0; k < 3; k++)
        paths[k] = apart ? text(b, "%s.%s", layer, modules[k]) : text(b, "%s.%s.%d", layer, n->fused, k);
    if (!apart) {
        const char *module = text(b, "%s.%s", layer, n->fused);
        take_apart(b, linear(b, x, module, b->v->hidden, wide + 2 * narrow, bias), module, widths, qkv);
    }
    for (int k = 0; k < 3; k++) {
        if (apart) qkv[k] = linear(b, x, paths[k], b->v->hidden, widths[k], bias);
        qkv[k] = heads(b, qkv[k], paths[k], counts[k]);
        if (k < 2 && rotated_width(b) > 0) qkv[k] = rotate(b, qkv[k], paths[k]);
    }
    x = attend(b, qkv, text(b, "%s.attention", layer), number);
    x = transpose(b, x, text(b, "%s.attention.transpose", layer), DIMS(0, 2, 1, 3));
    x = reshape(b, x, text(b, "%s.attention.view", layer), DIMS(b->batch, b->tokens, wide));
    return linear(b, x, text(b, "%s.%s", layer, n->out), wide, b->v->hidden, b->read->bias & CONFIG_BIAS_OUT);
}

/* The router's choice is data: expand/ takes it to be even. */
static const char *experts(builder *b, const char *x, const char *layer) {
    const config_names *n = b->family->names;
    const config_values *v = b->v;
    const char *router = text(b, "%s.%s", layer, n->router), *path = text(b, "%s.experts", layer);
    x = reshape(b, x, text(b, "%s.rows", path), DIMS(checked_mul(b->batch, b->tokens), v->hidden));
    const char *chosen = product(b, x, router, turned(b, router, router, v->experts, v->hidden), v->experts, false);
    const char *name = text(b, "%s%s", b->prefix, path);
    const char *const gate =
                          weight(b, text(b, "%s.%s", layer, n->gate), ".weight", DIMS(v->experts, v->inner, v->hidden)),
                      *const down =
                          weight(b, text(b, "%s.%s", layer, n->down), ".weight", DIMS(v->experts, v->hidden, v->inner)),
                      *const up =
                          weight(b, text(b, "%s.%s", layer, n->up), ".weight", DIMS(v->experts, v->inner, v->hidden));
    onnx_node(b->onnx, "com.microsoft", "MoE", name);
    for (const char *const *in = INPUTS(x, chosen, gate, "", down, "", up); *in; in++) onnx_in(b->onnx, *in);
    onnx_out(b->onnx, name);
    onnx_int(b->onnx, "k", v->top_k);
    onnx_int(b->onnx, "normalize_routing_weights", 1);
    onnx_text(b->onnx, "activation_type", b->read->activation->name);
    onnx_close(b->onnx);
    return reshape(b, name, text(b, "%s.view", path), DIMS(b->batch, b->tokens, v->hidden));
}

static const char *mlp(builder *b, const char *x, const char *layer) {
    const config_names *n = b->family->names;
    const config_values *v = b->v;
    const bool bias = b->read->bias & CONFIG_BIAS_MLP;
    const char *up = text(b, "%s.%s", layer, n->up), *act = text(b, "%s.mlp.act", layer);
    const char *gate = n->gate ? text(b, "%s.%s", layer, n->gate) : up;
    switch (b->family->mlp) {
    case CONFIG_PLAIN: x = activate(b, linear(b, x, up, v->hidden, v->inner, bias), act); break;
    case CONFIG_GATED:
        gate = activate(b, linear(b, x, gate, v->hidden, v->inner, bias), act);
        x = node(b, "Mul", text(b, "%s.mlp.mul", layer), INPUTS(gate, linear(b, x, up, v->hidden, v->inner, bias)));
        break;
    case CONFIG_GATED_FUSED:
        x = split(b, linear(b, x, up, v->hidden, 2 * v->inner, bias), text(b, "%s.split", up),
                  DIMS(v->inner, v->inner));
        gate = activate(b, text(b, "%s.0", x), act);
        x = node(b, "Mul", text(b, "%s.mlp.mul", layer), INPUTS(text(b, "%s.1", x), gate));
        break;
    case CONFIG_EXPERTS: return experts(b, x, layer);
    }
    return linear(b, x, text(b, "%s.%s", layer, n->down), v->inner, v->hidden, bias);
}

/* x and what a part makes of it, with the norm before the part or behind the sum. */
static const char *layer(builder *b, const char *x, int number) {
    const config_names *n = b->family->names;
    const bool behind = b->family->norm_behind;
    const char *path = text(b, "%s.%d", n->layer, number);
    const char *const norms[2] = {text(b, "%s.%s", path, n->norm_1), text(b, "%s.%s", path, n->norm_2)};
    for (int k = 0; k < 2; k++) {
        const char *in = behind ? x : norm(b, x, norms[k]);
        const char *made = k == 0 ? attention(b, in, path, number) : mlp(b, in, path);
        x = node(b, "Add", text(b, "%s.add_%d", path, k + 1), INPUTS(x, made));
        if (behind) x = norm(b, x, norms[k]);
    }
    return x;
}

/* ---- before and behind the layers ---- */

static const char *lookup(builder *b, const char *module, int64_t rows, const char *indices) {
    return node(b, "Gather", module, INPUTS(weight(b, module, ".weight", DIMS(rows, b->v->hidden)), indices));
}

/* The rows of the positions of this run: known, so no work. */
static const char *positions(builder *b, const char *module, int64_t rows) {
    const char *table = weight(b, module, ".weight", DIMS(rows, b->v->hidden));
    table = node(b, "Slice", module,
                 INPUTS(table, numbers(b, DIMS(b->past)), numbers(b, DIMS(b->past + b->tokens)), numbers(b, DIMS(0))));
    return reshape(b, table, text(b, "%s.view", module), DIMS(1, b->tokens, b->v->hidden));
}

static const char *embed_tokens(builder *b) {
    const config_names *n = b->family->names;
    const char *ids = text(b, "%sinput_ids", b->prefix);
    onnx_input(b->onnx, ids, DTYPE_INT64, DIMS(b->batch, b->tokens));
    for (int k = 0; k < 2 && rotated_width(b) > 0; k++)
        onnx_input(b->onnx, text(b, "%s%s", b->prefix, k ? "sin" : "cos"), b->read->type,
                   DIMS(1, 1, b->tokens, rotated_width(b)));
    const char *x = lookup(b, n->tokens, b->v->vocab, ids);
    if (b->family->embedding == CONFIG_SEGMENTS) {
        const char *rows = weight(b, n->segments, ".weight", DIMS(b->v->types, b->v->hidden));
        rows =
            node(b, "Slice", n->segments, INPUTS(rows, numbers(b, DIMS(0)), numbers(b, DIMS(1)), numbers(b, DIMS(0))));
        rows = node(b, "Expand", text(b, "%s.expand", n->segments),
                    INPUTS(rows, numbers(b, DIMS(b->batch, b->tokens, b->v->hidden))));
        x = node(b, "Add", text(b, "%s.add", n->segments), INPUTS(x, rows));
    }
    if (b->family->embedding != CONFIG_TOKENS)
        x = node(b, "Add", text(b, "%s.add", n->positions), INPUTS(x, positions(b, n->positions, b->v->positions)));
    if (b->family->scaled)
        x = node(b, "Mul", text(b, "%s.mul", n->tokens), INPUTS(x, weight(b, n->tokens, ".normalizer", NULL, 0)));
    return n->embedding_norm ? norm(b, x, n->embedding_norm) : x;
}

static const char *embed_patches(builder *b) {
    const config_names *n = b->family->names;
    const config_values *v = b->v;
    const char *pixels = text(b, "%spixel_values", b->prefix);
    const int64_t patches = b->tokens - 1;
    onnx_input(b->onnx, pixels, b->read->type, DIMS(b->batch, v->channels, v->image, v->image));
    const char *w = weight(b, n->tokens, ".weight", DIMS(v->hidden, v->channels, v->patch, v->patch));
    const char *x = open_node(b, "Conv", n->tokens, INPUTS(pixels, w, weight(b, n->tokens, ".bias", DIMS(v->hidden))));
    onnx_ints(b->onnx, "strides", DIMS(v->patch, v->patch));
    onnx_close(b->onnx);
    x = reshape(b, x, text(b, "%s.view", n->tokens), DIMS(b->batch, v->hidden, patches));
    x = transpose(b, x, text(b, "%s.transpose", n->tokens), DIMS(0, 2, 1));
    const char *first =
        node(b, "Expand", text(b, "%s.expand", n->first),
             INPUTS(weight(b, n->first, "", DIMS(1, 1, v->hidden)), numbers(b, DIMS(b->batch, 1, v->hidden))));
    x = open_node(b, "Concat", text(b, "%s.concat", n->first), INPUTS(first, x));
    onnx_int(b->onnx, "axis", 1);
    onnx_close(b->onnx);
    return node(b, "Add", text(b, "%s.add", n->positions),
                INPUTS(x, weight(b, n->positions, "", DIMS(1, b->tokens, v->hidden))));
}

/* A matrix as torch keeps it, [out, in]. */
static const char *dense(builder *b, const char *x, const char *module, int64_t out) {
    const char *w = weight(b, module, ".weight", DIMS(out, b->v->hidden));
    const char *name = open_node(b, "Gemm", module, INPUTS(x, w, weight(b, module, ".bias", DIMS(out))));
    onnx_int(b->onnx, "transB", 1);
    onnx_close(b->onnx);
    return name;
}

static const char *first_token(builder *b, const char *x) {
    static const char place[] = "first_token";
    onnx_scalar(b->onnx, place, 0); /* no vector: the dimension goes */
    const char *name = open_node(b, "Gather", "first", INPUTS(x, place));
    onnx_int(b->onnx, "axis", 1);
    onnx_close(b->onnx);
    return name;
}

static const char *finish(builder *b, const char *x) {
    const config_head *h = b->read->head;
    for (int k = 0; k < CONFIG_MAX_STEPS && h->steps[k].kind != CONFIG_END; k++) {
        const int64_t widths[] = {b->v->hidden, b->v->vocab, b->v->labels}, out = widths[h->steps[k].to];
        const bool tied = b->v->tied && h->steps[k].to == CONFIG_TO_VOCAB;
        const char *name = h->steps[k].name;
        switch (h->steps[k].kind) {
        case CONFIG_FIRST: x = first_token(b, x); break;
        case CONFIG_DENSE: x = dense(b, x, name, out); break;
        case CONFIG_LINEAR: x = last_linear(b, x, name, out, true, tied); break;
        case CONFIG_BIASLESS: x = last_linear(b, x, name, out, false, tied); break;
        case CONFIG_ACTIVATE: x = activate(b, x, name); break;
        case CONFIG_TANH: x = node(b, "Tanh", "pooler.tanh", INPUTS(x)); break;
        case CONFIG_NORM: x = norm(b, x, name); break;
        case CONFIG_END: break;
        }
    }
    return x;
}

void config_build(onnx_writer *o, const config_read *c, const char *prefix, int64_t batch, int64_t tokens,
                  int64_t past) {
    builder b = {.onnx = o,
                 .read = c,
                 .family = c->family,
                 .v = &c->values,
                 .prefix = prefix,
                 .batch = batch,
                 .tokens = tokens,
                 .past = past};
    const char *x = c->family->embedding == CONFIG_PATCHES ? embed_patches(&b) : embed_tokens(&b);
    for (int k = 0; k < (int)c->values.layers; k++) x = layer(&b, x, k);
    if (c->family->names->last_norm) x = norm(&b, x, c->family->names->last_norm);
    onnx_output(o, finish(&b, x));
}
