/* Attention on the CPU device: the reference against a plain formula, every candidate with every mask, layout, type and
 * awkward shape against the reference, and what is refused. */
#include "scout/op/attention.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <math.h>

static void check(const char *shape, const char *rest, int least) {
    char text[512];
    snprintf(text, sizeof text, "{\"op\": \"attention\", \"shape\": [%s]%s%s}", shape, rest[0] ? ", " : "", rest);
    const int before = cpu_built_failures;
    cpu_built_check(text, least);
    UNIT_INT(cpu_built_failures, before);
}

static const char *const shapes[] = {"1,1,1,1",   "1,2,1,64",    "2,3,7,17", "1,2,17,63",
                                     "1,2,65,64", "1,1,127,129", "2,2,129,8"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void every_type(void) {
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    for (int t = 0; t < 3; t++)
        for (size_t s = 0; s < SHAPES; s++) {
            char rest[128];
            snprintf(rest, sizeof rest, "\"dtype\": \"%s\"", types[t]);
            check(shapes[s], rest, 2);
            snprintf(rest, sizeof rest, "\"dtype\": \"%s\", \"layout\": \"bshd\", \"causal\": true", types[t]);
            check(shapes[s], rest, 2);
        }
}

static void every_mask(void) {
    for (size_t s = 0; s < SHAPES; s++) {
        check(shapes[s], "\"mask\": \"causal\"", 2);
        check(shapes[s], "\"mask\": \"causal+padding\"", 2);
        check(shapes[s], "\"mask\": \"lengths\"", 2);
        check(shapes[s], "\"mask\": \"additive\", \"mask_shape\": [1, 1, 1, 1]", 2);
        check(shapes[s], "\"causal\": true, \"window\": 5", 2);
        check(shapes[s], "\"softcap\": 1.5, \"scale\": 0.75", 2);
    }
}

static void additive_masks_of_every_shape(void) {
    static const char *const masks[] = {"2,3,7,7", "1,1,7,7", "2,1,1,7", "7,7", "3,1,7", "2,3,7,1", "1,1,2,1,1,7", "7"};
    static const char *const types[] = {"fp32", "fp16"};
    for (size_t k = 0; k < sizeof masks / sizeof *masks; k++)
        for (int t = 0; t < 2; t++) {
            char rest[256];
            snprintf(rest, sizeof rest, "\"dtype\": \"%s\", \"mask\": \"additive\", \"mask_shape\": [%s]", types[t],
                     masks[k]);
            check("2,3,7,17", rest, 2);
        }
    check("1,2,130,32", "\"mask\": \"additive\", \"mask_shape\": [1, 1, 130, 130]", 2);
    check("6,4,9,16", "\"mask\": \"additive\", \"mask_shape\": [3, 2, 9, 9]", 2); /* repeats over windows and heads */
    check("1,2,5,32", "\"kv_len\": 1500, \"mask\": \"additive\", \"mask_shape\": [1, 1, 5, 1500], \"dtype\": \"bf16\"",
          2);
}

/* Ragged blocks, groups of heads whose queries share a task, blocks beside causal masks, windows and caches. */
static void block_masks_of_every_sort(void) {
    static const char *const masks[] = {"local,0.3",       "local,0.01,128",   "strided,0.25",
                                        "strided,0.5,128", "global,0.3",       "global,0.5,128",
                                        "random,0.3",      "random,0.6,128,9", "random,1,128"};
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        char rest[256];
        const char *type = types[m % 3];
        snprintf(rest, sizeof rest, "\"block_mask\": \"%s\", \"dtype\": \"%s\"", masks[m], type);
        check("1,2,1,16", rest, 2);
        check("2,2,65,64", rest, 2);
        check("1,3,300,17", rest, 2);
        snprintf(rest, sizeof rest, "\"block_mask\": \"%s\", \"causal\": true, \"dtype\": \"%s\"", masks[m], type);
        check("1,2,129,8", rest, 2);
        check("1,2,400,24", rest, 2);
        snprintf(rest, sizeof rest,
                 "\"block_mask\": \"%s\", \"causal\": true, \"kv_heads\": 2, \"kv_len\": 500, \"v_head\": 40, "
                 "\"dtype\": \"%s\", \"layout\": \"bshd\"",
                 masks[m], type);
        check("2,6,70,24", rest, 2);
        check("1,8,3,32", rest, 2);
        snprintf(rest, sizeof rest,
                 "\"block_mask\": \"%s\", \"mask\": \"causal\", \"window\": 77, \"softcap\": 2, \"kv_len\": 450, "
                 "\"past\": 210",
                 masks[m]);
        check("1,2,200,16", rest, 2);
        snprintf(rest, sizeof rest, "\"block_mask\": \"%s\", \"kv_len\": 100, \"kv_heads\": 1", masks[m]);
        check("1,4,333,16", rest, 2);
    }
}

static void shared_keys_and_caches(void) {
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    for (int t = 0; t < 3; t++) {
        char rest[256];
        for (int inside = 0; inside < 2; inside++) {
            const char *layout = inside ? ", \"layout\": \"bshd\"" : "";
            snprintf(rest, sizeof rest, "\"kv_heads\": 2, \"kv_len\": 65, \"dtype\": \"%s\"%s", types[t], layout);
            check("2,8,1,64", rest, 2);
            check("2,6,3,17", rest, 2);
            snprintf(rest, sizeof rest, "\"kv_heads\": 2, \"kv_len\": 200, \"causal\": true, \"dtype\": \"%s\"%s",
                     types[t], layout);
            check("1,4,70,16", rest, 2);
            snprintf(rest, sizeof rest, "\"kv_heads\": 3, \"v_head\": 40, \"dtype\": \"%s\"%s", types[t], layout);
            check("1,6,33,24", rest, 2);
        }
    }
    check("1,2,3,16", "\"kv_len\": 100, \"past\": 40, \"causal\": true", 2);
    check("1,2,70,16", "\"kv_len\": 150, \"mask\": \"causal+padding\", \"window\": 33", 2);
    check("3,2,2,16", "\"kv_len\": 1000, \"mask\": \"lengths\", \"kv_heads\": 1", 2);
}

/* Slices of one packed tensor, of one whose heads are packed, and sequences inside of rows; each by itself and with the
 * others as usual. */
static void strides_of_every_sort(void) {
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    static const char *const lies[] = {
        "\"q_layout\": [4050, 18, 162], \"k_layout\": [4050, 18, 162], \"v_layout\": [4050, 18, 162]",
        "\"layout\": \"bshd\", \"q_layout\": [4050, 54, 162], \"k_layout\": [4050, 54, 162], \"v_layout\": \"bhsd\"",
        "\"q_layout\": [54, 18, 108], \"k_layout\": [162, 18, 324], \"out_layout\": [54, 18, 108]",
        "\"k_layout\": \"bshd\", \"out_layout\": \"bshd\", \"causal\": true",
        "\"v_layout\": [1500, 500, 20], \"mask\": \"lengths\"",
        "\"layout\": \"bshd\", \"kv_len\": 70, \"kv_heads\": 1, \"k_layout\": [5000, 1, 36], \"v_layout\": \"bshd\"",
    };
    for (int t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
            char rest[256];
            snprintf(rest, sizeof rest, "\"dtype\": \"%s\", %s", types[t], lies[k]);
            check("2,3,25,18", rest, 2);
        }
}

/* Scores that do not fit at once: heads one by one, then queries in parts. */
static void chunks(void) {
    static const uint64_t limits[] = {1 << 20, 160 << 10};
    static const char *const texts[] = {
        "{\"op\": \"attention\", \"shape\": [2, 6, 150, 16], \"causal\": true}",
        "{\"op\": \"attention\", \"shape\": [1, 4, 150, 16], \"kv_heads\": 2, \"dtype\": \"fp16\", \"layout\": "
        "\"bshd\"}",
        "{\"op\": \"attention\", \"shape\": [1, 2, 90, 16], \"kv_len\": 210, \"dtype\": \"bf16\", \"mask\": "
        "\"lengths\"}",
    };
    for (int t = 0; t < 3; t++)
        for (int l = 0; l < 2; l++) {
            cpu_built b;
            const int before = cpu_built_failures;
            cpu_built_make(&b, texts[t], limits[l]);
            UNIT_CHECK(b.built);
            cpu_built_fill(&b, 77);
            UNIT_CHECK(cpu_built_run(&b, texts[t]) >= 1);
            UNIT_INT(cpu_built_failures, before);
            cpu_built_end(&b);
        }
}

/* By hand: two queries, three keys, and the formula of the textbook for a few larger ones. */
static void the_reference_is_the_formula(void) {
    cpu_built b;
    cpu_built_make(&b, "{\"op\": \"attention\", \"shape\": [1, 1, 2, 1], \"kv_len\": 3, \"causal\": true}", 1 << 20);
    UNIT_CHECK(b.built);
    cpu_built_fill(&b, 1);
    const double q[] = {1, 2}, k[] = {0, 1, -1}, v[] = {10, 20, 60};
    for (int i = 0; i < 3; i++) cpu_built_put(&b, "k", i, k[i]), cpu_built_put(&b, "v", i, v[i]);
    for (int i = 0; i < 2; i++) cpu_built_put(&b, "q", i, q[i]);
    const double e = exp(1), first = (10 + 20 * e) / (1 + e); /* the first query sees two keys */
    const double second = (10 + 20 * e * e + 60 / (e * e)) / (1 + e * e + 1 / (e * e));
    cpu_built_put(&b, "out", 0, first);
    cpu_built_put(&b, "out", 1, second);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "out", 0, first * (1 + 1e-4));
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static double formula(const cpu_built *b, const attention_problem *p, int64_t head, int64_t query, int64_t d) {
    double sum = 0, all = 0;
    for (int64_t key = 0; key <= p->past + query; key++) {
        double score = 0;
        for (int64_t i = 0; i < p->dim; i++)
            score += cpu_built_at(b, "q", (query * p->heads + head) * p->dim + i) *
                     cpu_built_at(b, "k", (key * p->kv_heads + head / p->group) * p->dim + i);
        score = 3 * tanh(score * p->scale / 3) + cpu_built_at(b, "mask", key);
        sum += exp(score) * cpu_built_at(b, "v", (key * p->kv_heads + head / p->group) * p->v_dim + d);
        all += exp(score);
    }
    return sum / all;
}

static void the_reference_is_the_formula_in_general(void) {
    cpu_built b;
    cpu_built_make(&b,
                   "{\"op\": \"attention\", \"shape\": [1, 4, 6, 5], \"kv_heads\": 2, \"v_head\": 3, \"softcap\": 3, "
                   "\"mask\": \"causal+padding\", \"layout\": \"bshd\"}",
                   1 << 20);
    UNIT_CHECK(b.built);
    cpu_built_fill(&b, 5);
    const attention_problem p = attention_problem_of(&b.op);
    for (int64_t query = 0; query < 6; query++)
        for (int64_t head = 0; head < 4; head++)
            for (int64_t d = 0; d < 3; d++)
                cpu_built_put(&b, "out", (query * 4 + head) * 3 + d, formula(&b, &p, head, query, d));
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "mask", 5, 9); /* another mask is another result */
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

/* Of a head: the sum over the keys that it sees, all of them where `blocks` is NULL. */
static double masked_formula(const cpu_built *b, const attention_problem *p, const block_mask *blocks, int64_t query,
                             int64_t d) {
    double sum = 0, all = 0;
    for (int64_t key = 0; key < p->keys; key++) {
        double score = 0;
        if (blocks && blocks->block > 0 && !block_mask_sees(blocks, query / blocks->block, key / blocks->block))
            continue;
        for (int64_t i = 0; i < p->dim; i++)
            score += cpu_built_at(b, "q", query * p->dim + i) * cpu_built_at(b, "k", key * p->dim + i);
        score = exp(score * p->scale);
        sum += score * cpu_built_at(b, "v", key * p->v_dim + d);
        all += score;
    }
    return sum / all;
}

static void put_formula(cpu_built *b, const attention_problem *p, const block_mask *blocks) {
    for (int64_t query = 0; query < p->queries; query++)
        for (int64_t d = 0; d < p->v_dim; d++)
            cpu_built_put(b, "out", query * p->v_dim + d, masked_formula(b, p, blocks, query, d));
}

/* What a candidate that ignores the mask, or takes another one, computes is found. */
/* What lies in keys and values of a block reaches the queries that see it, and no others: it is not computed with. */
static void blocks_that_are_not_seen_are_not_read(void) {
    enum { KEYS = 300, SIZE = 16, BLOCK = 64 };
    cpu_built b;
    cpu_built_make(&b, "{\"op\": \"attention\", \"shape\": [1, 1, 300, 16], \"block_mask\": \"local,0.01\"}", 1 << 20);
    UNIT_CHECK(b.built);
    cpu_built_fill(&b, 7);
    for (int64_t key = 2 * BLOCK; key < 3 * BLOCK; key++)
        for (int64_t d = 0; d < SIZE; d++)
            cpu_built_put(&b, "k", key * SIZE + d, NAN), cpu_built_put(&b, "v", key * SIZE + d, NAN);
    UNIT_CHECK(cpu_built_launch(&b, "attention_tiled"));
    int lost = 0, kept = 0;
    for (int64_t query = 0; query < KEYS; query++)
        for (int64_t d = 0; d < SIZE; d++) {
            const bool sees = query / BLOCK == 2, nan = isnan(cpu_built_at(&b, "out", query * SIZE + d));
            lost += sees && nan, kept += !sees && !nan;
        }
    UNIT_INT(lost, BLOCK * SIZE);
    UNIT_INT(kept, (KEYS - BLOCK) * SIZE);
    cpu_built_end(&b);
}

static void another_block_mask_is_wrong(void) {
    static const char *const others[] = {"local,0.3,64", "strided,0.25,64", "random,0.4,64,2", "random,0.4,128,1"};
    cpu_built b;
    cpu_built_make(&b, "{\"op\": \"attention\", \"shape\": [1, 1, 300, 5], \"block_mask\": \"random,0.4,64,1\"}",
                   1 << 20);
    UNIT_CHECK(b.built);
    cpu_built_fill(&b, 5);
    const attention_problem p = attention_problem_of(&b.op);
    UNIT_TEXT(p.block_mask, "random,0.4,64,1");
    UNIT_TEXT(b.op.mask, "blocks");
    UNIT_INT(b.op.tensor_count, 4);
    const block_mask right = block_mask_over(p.block_mask, 300, 300, 0, 0, false);
    put_formula(&b, &p, &right);
    UNIT_CHECK(cpu_built_accepts(&b));
    put_formula(&b, &p, NULL);
    UNIT_CHECK(!cpu_built_accepts(&b));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const block_mask other = block_mask_over(others[k], 300, 300, 0, 0, false);
        put_formula(&b, &p, &other);
        UNIT_CHECK(!cpu_built_accepts(&b));
    }
    cpu_built_end(&b);
}

static void refused(const char *shape, const char *rest, const char *code) {
    char text[512];
    snprintf(text, sizeof text, "{\"op\": \"attention\", \"shape\": [%s], %s}", shape, rest);
    const int before = cpu_built_failures;
    cpu_built_refused(text, code);
    UNIT_INT(cpu_built_failures, before);
}

static void what_cannot_be_told_is_refused(void) {
    static const char *const rows[][2] = {
        {"\"qk_norm\": 1", "feature"},
        {"\"what\": \"linear\"", "feature"},
        {"\"packed_tokens\": 1", "feature"},
        {"\"scores_out\": 1", "feature"},
        {"\"sink\": 1", "feature"},
        {"\"window\": 3", "feature"},
        {"\"mask\": \"additive\"", "feature"},
        {"\"mask\": \"strange\"", "feature"},
        {"\"mask\": \"additive\", \"mask_shape\": [2, 1, 4, 4]", "shape"},
        {"\"dtype\": \"int8\"", "type"},
        {"\"dtype\": \"fp64\"", "type"},
        {"\"out_dtype\": \"fp16\"", "type"},
        {"\"softmax_dtype\": \"fp16\"", "type"},
        {"\"layout\": \"sbhd\"", "layout"},
        {"\"q_layout\": \"sbhd\"", "layout"},
        {"\"q_layout\": 32", "layout"},
        {"\"q_layout\": [64, 8]", "layout"},
        {"\"q_layout\": [64, 8, 4]", "layout"},   /* rows of 8 */
        {"\"q_layout\": [64, 16, 8]", "layout"},  /* heads of 4 rows */
        {"\"k_layout\": [64, -8, 16]", "layout"}, /* backward */
        {"\"v_layout\": [64, 0, 8]", "layout"},
        {"\"out_layout\": [64, 8, 24]", "layout"}, /* which leaves 8 of 24 as they were */
        {"\"k_layout\": [64, 8, 9223372036854775807]", "shape"},
        {"\"k_layout\": [64, 1000000000000000, 8]", "shape"},
        {"\"causal\": true, \"kv_len\": 3", "shape"},
        {"\"causal\": true, \"past\": 9223372036854775807", "shape"},
        {"\"causal\": true, \"past\": 100, \"window\": 2", "shape"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) refused("1,2,4,8", rows[k][0], rows[k][1]);
    refused("1000000,1000000,1000000,8", "\"mask\": \"none\"", "shape");
}

static void tensors_are_told(void) {
    cpu_built b;
    cpu_built_make(&b,
                   "{\"op\": \"attention\", \"shape\": [2, 8, 5, 16], \"kv_heads\": 2, \"layout\": \"bshd\", \"mask\": "
                   "\"additive\", \"mask_shape\": [2, 1, 1, 5]}",
                   1 << 20);
    UNIT_CHECK(b.built);
    UNIT_INT(b.op.tensor_count, 5);
    const scout_tensor *q = &b.op.tensors[ATTENTION_Q], *m = &b.op.tensors[op_tensor(&b.op, "mask")];
    UNIT_INT(q->strides[0], 8 * 5 * 16);
    UNIT_INT(q->strides[1], 16);
    UNIT_INT(q->strides[2], 8 * 16);
    UNIT_INT(q->bytes, 2 * 8 * 5 * 16 * 4);
    UNIT_INT(m->strides[0], 5);
    UNIT_CHECK(m->strides[1] == 0 && m->strides[2] == 0 && m->strides[3] == 1);
    UNIT_INT(m->bytes, 2 * 5 * 4);
    UNIT_INT(b.op.tensors[ATTENTION_K].bytes, 2 * 2 * 5 * 16 * 4);
    UNIT_CHECK(kind_attention.specials(&b.op) == 2 * 8 * 5 * 5);
    cpu_built_end(&b);
    cpu_built_make(&b,
                   "{\"op\": \"attention\", \"shape\": [1, 8, 5, 16], \"layout\": \"bshd\", \"kv_len\": 9, "
                   "\"q_layout\": [7, 16, 384], \"v_layout\": \"bshd\"}",
                   1 << 20);
    UNIT_CHECK(b.built);
    const scout_tensor *k = &b.op.tensors[ATTENTION_K], *v = &b.op.tensors[ATTENTION_V];
    q = &b.op.tensors[ATTENTION_Q];
    UNIT_INT(q->strides[0], 5 * 384); /* of one sequence: as is usual */
    UNIT_INT(q->strides[1], 16);
    UNIT_INT(q->strides[2], 384);
    UNIT_INT(q->bytes, (4 * 384 + 8 * 16) * 4); /* to its last element */
    UNIT_INT(k->strides[1], 9 * 16);            /* a cache */
    UNIT_INT(v->strides[1], 16);
    UNIT_INT(v->bytes, 9 * 8 * 16 * 4);
    UNIT_INT(b.op.tensors[ATTENTION_OUT].strides[1], 16);
    cpu_built_end(&b);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(the_reference_is_the_formula);
    UNIT_RUN(the_reference_is_the_formula_in_general);
    UNIT_RUN(tensors_are_told);
    UNIT_RUN(every_type);
    UNIT_RUN(every_mask);
    UNIT_RUN(additive_masks_of_every_shape);
    UNIT_RUN(block_masks_of_every_sort);
    UNIT_RUN(blocks_that_are_not_seen_are_not_read);
    UNIT_RUN(another_block_mask_is_wrong);
    UNIT_RUN(shared_keys_and_caches);
    UNIT_RUN(strides_of_every_sort);
    UNIT_RUN(chunks);
    UNIT_RUN(what_cannot_be_told_is_refused);
    cpu_built_close();
    return unit_end();
}
