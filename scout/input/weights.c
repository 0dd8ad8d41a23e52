/* Makes what a weight holds: from the model's file or from a pattern, and tells candidates what they need to know. */
#include "scout/input/weights.h"

#include "scout/op/op.h"

#include <stdlib.h>
#include <string.h>

enum { FIELDS = 3 + SPARSITY_SIZES };

/* --- made up --- */

/* The sum of four uniform numbers is as good as normal here: what matters is where the zeros are, and that large
 * weights are there soon. Mixed as SplitMix64 does. */
static float normal(uint64_t seed, uint64_t at) {
    static const float deviation = 1.7320508f / 65536; /* of the sum it is 65536 / sqrt(3) */
    uint64_t bits = seed + (at + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    const int sum = (int)(bits & 0xffff) + (int)(bits >> 16 & 0xffff) + (int)(bits >> 32 & 0xffff) + (int)(bits >> 48);
    return sum == 131070 ? 1.0f : (float)(sum - 131070) * deviation;
}

static uint16_t narrow(dtype type, float x) {
    uint32_t u;
    if (x == 0) return 0;
    memcpy(&u, &x, sizeof u);
    if (type == DTYPE_BF16) return (uint16_t)((u + 0x8000) >> 16);
    const uint32_t sign = u >> 16 & 0x8000, rest = u & 0x7fffffff; /* all are between 2^-14 and 8 in size, or are cut */
    return rest < 0x38800000 ? (uint16_t)(sign | 0x0400) : (uint16_t)(sign | ((rest + 0x1000 - 0x38000000) >> 13));
}

/* Three bits behind the first one; what is below 2^-6 in size becomes that, and not zero. */
static uint8_t narrow_fp8(float x) {
    uint32_t u;
    if (x == 0) return 0;
    memcpy(&u, &x, sizeof u);
    const uint32_t sign = u >> 24 & 0x80, rest = u & 0x7fffffff;
    return (uint8_t)(sign | (rest < 0x3c800000 ? 0x08 : (rest + 0x80000 - 0x3c000000) >> 20));
}

/* Six deviations would fill the range; what is kept is not zero. */
static int8_t whole(float x) {
    const int near = (int)(20 * x + (x < 0 ? -0.5f : 0.5f));
    return (int8_t)(x == 0 || near != 0 ? near : 1);
}

static bool put(void *to, dtype type, int64_t at, float x) {
    if (type == DTYPE_FP32)
        ((float *)to)[at] = x;
    else if (type == DTYPE_FP16 || type == DTYPE_BF16)
        ((uint16_t *)to)[at] = narrow(type, x);
    else if (type == DTYPE_FP8E4M3FN)
        ((uint8_t *)to)[at] = narrow_fp8(x);
    else if (type == DTYPE_INT8)
        ((int8_t *)to)[at] = whole(x);
    else
        return false;
    return true;
}

/* The sparse dimension of 2:4 is K, whichever way the weight is stored: that is what hardware can leave out. */
static bool make_up(const operation *o, const scout_tensor *t, bool k_last, uint64_t seed, void *bytes) {
    const int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
    sparsity_made pattern =
        sparsity_make(o->pattern, o->sparsity, o->sparse_block ? o->sparse_block : sparsity_block, seed);
    const int64_t band = pattern.two_of_four && !k_last ? pattern.wide : 1; /* rows that one cell has */
    for (int64_t first = 0; first < rows; first += band)
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = first; r < rows && r < first + band; r++) {
                if (!sparsity_keeps(&pattern, k_last ? r : c, k_last ? c : r)) continue;
                if (!put(bytes, (dtype)t->type, r * cols + c, normal(seed, (uint64_t)(r * cols + c)))) return false;
            }
    return true;
}

/* --- what candidates are told --- */

static scout_field *field(const char *name, int64_t number, scout_field *at) {
    *at = (scout_field){.name = name, .number = number};
    return at + 1;
}

/* --- the whole --- */

int weights_place_of(const scout_op *op) {
    for (uint32_t k = 0; k < op->tensor_count; k++)
        if (op->tensors[k].role == SCOUT_WEIGHT) return (int)k;
    return -1;
}

/* b as [N,K], a as [M,K]. */
static bool is_k_last(const scout_op *op, const scout_tensor *t) {
    const bool b_side = strcmp(t->name, "b") == 0, stored_t = op->layout && op->layout[b_side ? 1 : 0] == 't';
    return b_side == stored_t;
}

void weights_tell(scout_op *op, const sparsity_facts *f, arena *a) {
    static const char *const names[SPARSITY_SIZES] = {"weight_blocks_16", "weight_blocks_32", "weight_blocks_64",
                                                      "weight_blocks_128"};
    const int weight = weights_place_of(op);
    const bool k_last = weight >= 0 && is_k_last(op, &op->tensors[weight]);
    scout_field *fields = arena_array(a, scout_field, op->field_count + FIELDS), *at = fields + op->field_count;
    if (op->field_count) memcpy(fields, op->fields, op->field_count * sizeof *fields);
    at = field("weight_nonzeros", f->nonzeros, at);
    at = field("weight_block", f->block, at);
    at = field("weight_24", k_last ? f->two_of_four_by_row : f->two_of_four_by_col, at);
    for (int k = 0; k < SPARSITY_SIZES; k++) {
        const int64_t side = sparsity_sizes[k], all = ((f->rows + side - 1) / side) * ((f->cols + side - 1) / side);
        at = field(names[k], (int64_t)(f->blocks[k] * (double)all + 0.5), at);
    }
    op->fields = fields;
    op->field_count += FIELDS;
}

/* The device may have no room for a copy, or no way: then the host looks at it. */
static bool count_on_device(const weights_counter *c, const scout_tensor *t, int64_t rows, int64_t cols,
                            weights_content *out) {
    scout_zeros z = {.size = sizeof z};
    sparsity_counts counts;
    void *copy = NULL;
    scout_why why;
    if (!c || !SCOUT_HAS(c->api, zeros) || !c->api->zeros ||
        c->api->alloc(c->device, t->bytes, &copy, &why) != SCOUT_OK)
        return false;
    out->on_device = c->api->upload(c->device, copy, out->bytes, t->bytes, &why) == SCOUT_OK &&
                     c->api->zeros(c->device, copy, t->type, rows, cols, &z, &why) == SCOUT_OK;
    c->api->release(c->device, copy);
    if (!out->on_device) return false;
    counts = (sparsity_counts){z.nonzeros,
                               z.fewest,
                               z.most,
                               z.same_rows,
                               .two_of_four_by_row = z.two_of_four_by_row != 0,
                               .two_of_four_by_col = z.two_of_four_by_col != 0};
    memcpy(counts.blocks, z.blocks, sizeof counts.blocks);
    memcpy(counts.pieces, z.pieces, sizeof counts.pieces);
    out->facts = sparsity_of_counts(&counts, rows, cols);
    return true;
}

/* The numbers and what they are good for; NULL fields of `out` where it cannot be told. */
static bool fill(const operation *o, scout_op *op, const scout_tensor *t, uint64_t seed, const weights_counter *counter,
                 arena *a, weights_content *out, scout_why *why) {
    const int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
    const bool k_last = is_k_last(op, t);
    out->bytes = calloc(1, t->bytes);
    if (!out->bytes) {
        scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory for a weight of %.3g MB",
                  (double)t->bytes / 1e6);
        return false;
    }
    const bool made =
        o->weight ? weights_file_read(o->weight, out->bytes, t->bytes, why) : make_up(o, t, k_last, seed, out->bytes);
    if (!made && !o->weight)
        scout_say(why, SCOUT_NO, "type", "a pattern can be generated for fp32, fp16, bf16, fp8 (e4m3) and int8");
    if (made &&
        (count_on_device(counter, t, rows, cols, out) ||
         sparsity_analyse(out->bytes, (dtype)t->type, rows, cols, &out->facts)) &&
        sparsity_convert(out->bytes, (dtype)t->type, &out->facts, o->threshold, &out->conversion)) {
        if (o->sparsity > 0) weights_tell(op, &out->facts, a);
        return true;
    }
    if (made) scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory to examine the weight");
    weights_free(out);
    return false;
}

bool weights_matter(const operation *o) { return o->sparsity > 0 || (o->threshold > 0 && o->weight); }

bool weights_make(const operation *o, scout_op *op, uint64_t seed, const weights_counter *counter, arena *a,
                  weights_content *out, scout_why *why) {
    const int at = weights_place_of(op);
    const bool only_asked = !(o->sparsity > 0); /* a dense one: missing facts about it do no harm */
    *out = (weights_content){.tensor = at < 0 ? 0 : (uint32_t)at};
    if (!weights_matter(o)) return true;
    const scout_tensor *t = at < 0 ? NULL : &op->tensors[at];
    int64_t matrices = 1;
    for (uint32_t d = 0; t && d + 2 < t->rank; d++) matrices *= t->dims[d];
    if (op->kind != SCOUT_GEMM || !t || t->rank < 2 || matrices != 1 || !sparsity_knows((dtype)t->type)) {
        scout_say(why, SCOUT_NO, "pattern", "a pattern of zeros is known only for one floating weight of a product");
        return only_asked;
    }
    return fill(o, op, t, seed, counter, a, out, why) || only_asked;
}

void weights_free(weights_content *w) {
    free(w->bytes);
    w->bytes = NULL;
}

static json_t *fractions(const double *values, json_builder *b) {
    json_t *to = json_new_object(b);
    char name[8];
    for (int k = 0; k < SPARSITY_SIZES; k++) {
        snprintf(name, sizeof name, "%d", sparsity_sizes[k]);
        json_put_real(b, to, name, values[k]);
    }
    return to;
}

static json_t *conversion_json(const sparsity_conversion *c, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_real(b, to, "threshold", c->threshold);
    json_put_real(b, to, "below", c->below);
    json_put(b, to, "work", fractions(c->work, b));
    json_put(b, to, "norm_lost", fractions(c->lost, b));
    json_put_int(b, to, "largest", c->largest);
    return to;
}

json_t *weights_json(const weights_content *w, const operation *o, json_builder *b) {
    const sparsity_facts *f = &w->facts;
    json_t *to = json_new_object(b);
    json_put_text(b, to, "source", o->weight ? "file" : "synthetic");
    if (o->weight) json_put_text(b, to, "name", o->weight->name);
    json_put_text(b, to, "counted", w->on_device ? "device" : "host");
    json_put_text(b, to, "pattern", f->pattern);
    json_put_int(b, to, "rows", f->rows);
    json_put_int(b, to, "cols", f->cols);
    json_put_int(b, to, "nonzeros", f->nonzeros);
    json_put_real(b, to, "zeros", f->zeros);
    json_put_bool(b, to, "two_of_four_by_row", f->two_of_four_by_row);
    json_put_bool(b, to, "two_of_four_by_col", f->two_of_four_by_col);
    json_put(b, to, "blocks", fractions(f->blocks, b));
    json_put(b, to, "pieces", fractions(f->pieces, b));
    json_put_int(b, to, "block", f->block);
    json_put_int(b, to, "fewest_in_row", f->fewest);
    json_put_int(b, to, "most_in_row", f->most);
    if (f->nonzeros > 0) json_put_real(b, to, "balance", (double)f->most * (double)f->rows / (double)f->nonzeros);
    json_put_int(b, to, "same_rows", f->same_rows);
    json_put(b, to, "convert_to_bsr", conversion_json(&w->conversion, b));
    return to;
}
