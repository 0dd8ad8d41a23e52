/* What the table says is what runs; else the default, counted and said once. Packed weights belong to one operation. */
#include "scout/input/sparsity.h"
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#define TILED "gemm;shape=8,16,32;layout=nn;type=fp32;weight=fp32;weight_side=b"
#define GONE  "gemm;shape=4,16,32;layout=nn;type=fp32;weight=fp32;weight_side=b"
#define PACKS "gemm;shape=64,256,512;layout=nt;type=fp32;weight=fp32;weight_side=b"

static scout_run_error error;

typedef struct product {
    scout_run_tensor a, b, c;
    scout_run_gemm_more more;
} product;

static product make(int64_t m, int64_t n, int64_t k) {
    const int64_t a[2] = {m, k}, b[2] = {k, n}, c[2] = {m, n};
    return (product){run_tensor(SCOUT_RUN_FP32, 2, a, 1),
                     run_tensor(SCOUT_RUN_FP32, 2, b, 2),
                     run_tensor(SCOUT_RUN_FP32, 2, c, 3),
                     {.size = sizeof(scout_run_gemm_more), .weight = 'b'}};
}

/* The weight lies with its columns in rows: what every processor packs. oneDNN with AVX2 alone takes others as they
 * are. */
static void turn(product *p) {
    const int64_t k = p->b.dims[0];
    p->b.strides[0] = 1, p->b.strides[1] = k;
}

static void drop(product *p) { run_free(&p->a), run_free(&p->b), run_free(&p->c); }

static int32_t launch(scout_run *run, const product *p) {
    return scout_run_gemm(run, &p->a, &p->b, &p->c, &p->more, NULL, &error);
}

/* The last row and column, from the tensors as they were filled. */
static bool right(const product *p, const scout_run_tensor *b) {
    const int64_t at[2] = {p->c.dims[0] - 1, p->c.dims[1] - 1};
    double sum = 0;
    for (int64_t k = 0; k < p->a.dims[1]; k++) {
        const int64_t from[2] = {at[0], k}, to[2] = {k, at[1]};
        sum += run_of(&p->a, from) * run_of(b, to);
    }
    return fabs(run_of(&p->c, at) - sum) < 1e-3;
}

static void counts_are(const scout_run *run, uint64_t listed, uint64_t unlisted, uint64_t refused, uint64_t unpacked) {
    scout_run_counts counts;
    scout_run_count(run, &counts);
    UNIT_INT(counts.listed, listed);
    UNIT_INT(counts.unlisted, unlisted);
    UNIT_INT(counts.refused, refused);
    UNIT_INT(counts.unpacked, unpacked);
}

static const char *three_entries(void) {
    static char text[4096];
    snprintf(text, sizeof text, "%s,%s,%s", run_entry(TILED, "custom", "cpu_tiled", "", NULL),
             run_entry(GONE, "custom", "cpu_gone", "tile=7", NULL),
             run_entry(PACKS, "tuned", "onednn", "weight=packed", "onednn"));
    return text;
}

static void the_choice_runs(void) {
    run_said said = {0};
    scout_run *run = run_open(run_table(three_entries(), NULL), &said);
    const scout_run_op *op, *again;
    scout_run_op_info info = {.size = sizeof info};
    product p = make(8, 16, 32);
    UNIT_INT(scout_run_has_table(run), 1);
    UNIT_TEXT(scout_run_table_note(run), "");
    for (int k = 0; k < 3; k++) UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    UNIT_CHECK(right(&p, &p.b));
    counts_are(run, 3, 0, 0, 0);
    UNIT_INT(said.lines, 0);
    UNIT_INT(scout_run_find(run, TILED, &op, &error), SCOUT_RUN_OK);
    UNIT_INT(scout_run_find(run, TILED, &again, &error), SCOUT_RUN_OK);
    UNIT_CHECK(op == again);
    scout_run_op_describe(op, &info);
    UNIT_TEXT(info.implementation, "cpu_tiled");
    UNIT_TEXT(info.key, TILED);
    UNIT_INT(info.listed, 1);
    UNIT_CHECK(info.expected_us == 9 && info.default_us == 10);
    /* members behind a smaller size are not touched */
    scout_run_op_info small = {.size = offsetof(scout_run_op_info, implementation), .variant = "mine"};
    scout_run_op_describe(op, &small);
    UNIT_TEXT(small.key, TILED);
    UNIT_TEXT(small.variant, "mine");
    drop(&p);
    scout_run_close(run);
}

static void a_choice_that_is_gone_is_said_once(void) {
    run_said said = {0};
    scout_run *run = run_open(run_table(three_entries(), NULL), &said);
    product p = make(4, 16, 32);
    for (int k = 0; k < 3; k++) UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    UNIT_CHECK(right(&p, &p.b));
    counts_are(run, 0, 0, 3, 0);
    UNIT_INT(said.lines, 1);
    UNIT_CHECK(strstr(said.last, GONE) && strstr(said.last, "cpu_gone tile=7 cannot run here"));
    drop(&p);
    scout_run_close(run);
}

static void what_is_not_listed_is_said_once(void) {
    run_said said = {0};
    scout_run *run = run_open(run_table(three_entries(), NULL), &said);
    product p = make(5, 16, 32);
    for (int k = 0; k < 3; k++) UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    counts_are(run, 0, 3, 0, 0);
    UNIT_INT(said.lines, 1);
    UNIT_CHECK(strstr(said.last, "the table does not have it: the default runs") != NULL);
    drop(&p);
    scout_run_close(run);
}

/* A call has no block mask, so what was proven under one is not taken for it. */
static void a_block_mask_is_another_operation(void) {
    static const char masked[] = "attention;shape=1,1,128,8;mask=blocks;type=fp32;block_mask=local,0.5,64;kv_heads=1;"
                                 "kv_len=128";
    const int64_t dims[4] = {1, 1, 128, 8};
    run_said said = {0};
    scout_run *run = run_open(run_table(run_entry(masked, "custom", "attention_tiled", "", NULL), NULL), &said);
    scout_run_tensor q = run_tensor(SCOUT_RUN_FP32, 4, dims, 1), k = run_tensor(SCOUT_RUN_FP32, 4, dims, 2),
                     v = run_tensor(SCOUT_RUN_FP32, 4, dims, 3), out = run_tensor(SCOUT_RUN_FP32, 4, dims, 4);
    scout_run_op_info info = {.size = sizeof info};
    const scout_run_op *op;
    UNIT_INT(scout_run_has_table(run), 1);
    UNIT_INT(scout_run_attention(run, &q, &k, &v, &out, NULL, NULL, &error), SCOUT_RUN_OK);
    counts_are(run, 0, 1, 0, 0);
    if (UNIT_CHECK(scout_run_find(run, masked, &op, &error) == SCOUT_RUN_OK)) {
        scout_run_op_describe(op, &info);
        UNIT_TEXT(info.implementation, "attention_tiled");
        UNIT_INT(info.listed, 1);
    }
    run_free(&q), run_free(&k), run_free(&v), run_free(&out);
    scout_run_close(run);
}

static void a_table_of_another_device_is_refused(void) {
    run_said said = {0};
    scout_run *run = run_open(run_table(three_entries(), "another"), &said);
    product p = make(8, 16, 32);
    UNIT_INT(scout_run_has_table(run), 0);
    UNIT_INT(said.lines, 1);
    UNIT_TEXT(said.last, scout_run_table_note(run));
    UNIT_CHECK(strstr(said.last, "the table was measured with device another") != NULL);
    UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    UNIT_CHECK(right(&p, &p.b));
    counts_are(run, 0, 1, 0, 0);
    UNIT_INT(said.lines, 1);
    drop(&p);
    scout_run_close(run);
    said.lines = 0;
    run = run_open("/nowhere/table.json", &said);
    UNIT_INT(scout_run_has_table(run), 0);
    UNIT_INT(said.lines, 1);
    scout_run_close(run);
}

/* tests/python has one that is. */
static void a_table_that_none_has_signed_is_refused(void) {
    run_said said = {0};
    scout_run_error none;
    scout_run *run;
    const scout_run_options options = {.size = sizeof options,
                                       .table = run_table(three_entries(), NULL),
                                       .say = run_say,
                                       .context = &said,
                                       .signers =
                                           "ssh-ed25519 "
                                           "AAAAC3NzaC1lZDI1NTE5AAAAIMWy61DuDWAn+DV0sSqgbX9qRCsM6vEWwqoNur7jYz7h"};
    UNIT_INT(scout_run_open(&run, &options, &none), SCOUT_RUN_OK);
    product p = make(8, 16, 32);
    UNIT_INT(scout_run_has_table(run), 0);
    UNIT_CHECK(strstr(scout_run_table_note(run), "a signed table is demanded") != NULL);
    UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    UNIT_CHECK(right(&p, &p.b));
    counts_are(run, 0, 1, 0, 0);
    drop(&p);
    scout_run_close(run);
}

static void a_shape_between_two_is_found_where_that_is_asked(void) {
    static char text[4096];
    snprintf(text, sizeof text, "%s",
             run_entry("gemm;shape=32,64,64;layout=nn;type=fp32;weight=fp32;weight_side=b", "custom", "cpu_tiled", "",
                       NULL));
    text[strlen(text) - 1] = 0;
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used,
             ", \"ranges\": [{\"places\": [0], \"from\": 32, \"to\": 64, \"step\": 16, \"upper\": "
             "\"gemm;shape=64,64,64;layout=nn;type=fp32;weight=fp32;weight_side=b\"}]}, %s",
             run_entry("gemm;shape=64,64,64;layout=nn;type=fp32;weight=fp32;weight_side=b", "custom", "cpu_tiled", "",
                       NULL));
    scout_run_options options = {.size = sizeof options, .table = run_table(text, NULL)};
    product p = make(48, 64, 64);
    for (uint32_t near = 0; near < 2; near++) {
        scout_run *run = NULL;
        options.near_shapes = near;
        UNIT_INT(scout_run_open(&run, &options, &error), SCOUT_RUN_OK);
        UNIT_TEXT(scout_run_table_note(run), "");
        UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
        counts_are(run, near, 1 - near, 0, 0);
        scout_run_close(run);
    }
    drop(&p);
}

/* ---- packed weights ---- */

static void a_packed_weight_is_of_one_operation(void) {
    run_said said = {0};
    scout_run *run = run_open(run_table(three_entries(), NULL), &said);
    product p = make(64, 256, 512), other = make(32, 256, 512), small = make(8, 16, 32);
    product copy = make(64, 256, 512); /* the same numbers */
    turn(&p), turn(&other), turn(&copy);
    scout_run_weight *weight = NULL, *none = NULL;
    UNIT_INT(launch(run, &p), SCOUT_RUN_OK); /* plain: the choice wants it packed */
    UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    UNIT_CHECK(right(&p, &copy.b));
    counts_are(run, 0, 0, 0, 2);
    UNIT_INT(said.lines, 1);
    UNIT_CHECK(strstr(said.last, "wants its weight packed") != NULL);
    if (!UNIT_CHECK(scout_pack_weight_gemm(run, &p.a, &p.b, &p.c, &p.more, &weight, &error) == SCOUT_RUN_OK)) return;
    UNIT_CHECK(scout_run_weight_bytes(weight) >= 256 * 512 * 4);
    memset(p.b.data, 0, 256 * 512 * 4); /* it is not looked at any more */
    memset(p.c.data, 0, 64 * 256 * 4);
    p.more.packed = other.more.packed = weight;
    UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
    UNIT_CHECK(right(&p, &copy.b));
    counts_are(run, 1, 0, 0, 2);
    UNIT_INT(launch(run, &other), SCOUT_RUN_INVALID);
    UNIT_CHECK(strstr(error.text, "packed for this very operation") != NULL);
    UNIT_INT(scout_pack_weight_gemm(run, &small.a, &small.b, &small.c, &small.more, &none, &error),
             SCOUT_RUN_UNSUPPORTED);
    UNIT_CHECK(none == NULL && strstr(error.text, "takes the weight as it is") != NULL);
    scout_run_weight_free(weight);
    drop(&p), drop(&copy), drop(&other), drop(&small);
    scout_run_close(run);
}

/* A table knows a weight by its zeros; with others it is another operation. */
static void a_sparse_weight_runs_what_its_zeros_are_listed_with(void) {
    enum { M = 8, N = 256, K = 512, SIDE = 64 };
    char key[512];
    run_said said = {0};
    sparsity_facts facts;
    product p = make(M, N, K), dense = make(M, N, K);
    for (int64_t k = 0; k < K; k++)
        for (int64_t n = 0; n < N; n++)
            if ((k / SIDE + n / SIDE) % 8 != 0) run_put(SCOUT_RUN_FP32, p.b.data, k * N + n, 0);
    if (!UNIT_CHECK(sparsity_analyse(p.b.data, DTYPE_FP32, K, N, &facts))) return;
    snprintf(key, sizeof key,
             "gemm;shape=8,256,512;layout=nn;type=fp32;weight=fp32;weight_side=b;sparsity=%.9g;sparse_pattern="
             "BLOCK_SPARSE;zeros=%016llx",
             facts.zeros, (unsigned long long)facts.hash);
    scout_run *run = run_open(run_table(run_entry(key, "custom", "cpu_bsr", "block=64", NULL), NULL), &said);
    scout_run_weight *weight = NULL, *none = NULL;
    const scout_run_op *op;
    if (UNIT_CHECK(scout_pack_weight_gemm(run, &p.a, &p.b, &p.c, &p.more, &weight, &error) == SCOUT_RUN_OK)) {
        p.more.packed = weight;
        UNIT_INT(launch(run, &p), SCOUT_RUN_OK);
        UNIT_CHECK(right(&p, &p.b));
        counts_are(run, 1, 0, 0, 0);
        /* an eighth of the dense one, and where that stands */
        UNIT_CHECK(scout_run_weight_bytes(weight) < (uint64_t)K * N * 4 / 6);
    }
    UNIT_INT(scout_pack_weight_gemm(run, &dense.a, &dense.b, &dense.c, &dense.more, &none, &error),
             SCOUT_RUN_UNSUPPORTED);
    if (UNIT_CHECK(scout_run_find(run, key, &op, &error) == SCOUT_RUN_OK)) {
        void *const tensors[3] = {p.a.data, dense.b.data, p.c.data}, *const its[3] = {p.a.data, p.b.data, p.c.data};
        UNIT_INT(scout_pack_weight(op, tensors, 3, &none, &error), SCOUT_RUN_INVALID);
        UNIT_CHECK(strstr(error.text, "expected the weight with the zeros of the key") != NULL);
        if (UNIT_CHECK(scout_pack_weight(op, its, 3, &none, &error) == SCOUT_RUN_OK)) {
            memset(p.c.data, 0, M * N * 4);
            UNIT_INT(scout_run_launch(op, its, 3, none, NULL, &error), SCOUT_RUN_OK);
            UNIT_CHECK(right(&p, &p.b));
        }
    }
    scout_run_weight_free(weight), scout_run_weight_free(none);
    drop(&p), drop(&dense);
    scout_run_close(run);
}

/* Rows of a weight of few bits: a scale, and a zero point, for each block along K, or for each of them. */
static void few_bits(int32_t type, int64_t blocks, bool zeroed, int64_t batch) {
    enum { M = 3, N = 8, K = 64 };
    scout_run *run = run_open(NULL, NULL);
    const int lead = batch == 1; /* which of these begins the dimensions */
    const int64_t a_dims[3] = {batch, M, K}, c_dims[3] = {batch, M, N}, b_dims[3] = {batch, N, K},
                  s_dims[3] = {batch, N, blocks};
    const int rank = 3 - lead;
    scout_run_tensor a = run_tensor(SCOUT_RUN_FP32, rank, a_dims + lead, 1),
                     c = run_tensor(SCOUT_RUN_FP32, rank, c_dims + lead, 2),
                     stored = run_tensor(type, rank, b_dims + lead, 3), b = stored,
                     scales = run_tensor(SCOUT_RUN_FP32, rank, s_dims + lead, 4),
                     zeros = run_tensor(type, rank, s_dims + lead, 5);
    b.dims[rank - 2] = K, b.dims[rank - 1] = N, b.strides[rank - 2] = 1, b.strides[rank - 1] = K;
    scout_run_gemm_more more = {.size = sizeof more, .weight = 'b', .scales = &scales};
    if (zeroed) more.zeros = &zeros;
    scout_run_weight *weight = NULL;
    const int32_t packed = scout_pack_weight_gemm(run, &a, &b, &c, &more, &weight, &error);
    UNIT_CHECK(packed == SCOUT_RUN_OK || packed == SCOUT_RUN_UNSUPPORTED);
    more.packed = weight;
    if (UNIT_CHECK(scout_run_gemm(run, &a, &b, &c, &more, NULL, &error) == SCOUT_RUN_OK))
        for (int64_t i = 0; i < batch * M; i++)
            for (int64_t j = 0; j < N; j++) {
                const int64_t column = i / M * N + j;
                double want = 0, size = 10;
                for (int64_t k = 0; k < K; k++) {
                    const int64_t block = column * blocks + k * blocks / K;
                    const double zero = zeroed ? run_at(type, zeros.data, block) : 0;
                    const double term = run_at(a.type, a.data, i * K + k) *
                                        (run_at(type, stored.data, column * K + k) - zero) *
                                        run_at(scales.type, scales.data, block);
                    want += term, size += fabs(term);
                }
                UNIT_CHECK(fabs(run_at(c.type, c.data, i * N + j) - want) < 1e-5 * size);
            }
    else
        printf("  %s\n", error.text);
    zeros.type = SCOUT_RUN_INT32;
    more.zeros = &zeros;
    UNIT_CHECK(scout_run_gemm(run, &a, &b, &c, &more, NULL, &error) == SCOUT_RUN_INVALID);
    UNIT_CHECK(strncmp(error.text, "zeros: expected", 15) == 0);
    scales.dims[0] = 1;
    UNIT_CHECK(scout_run_gemm(run, &a, &b, &c, &more, NULL, &error) == SCOUT_RUN_INVALID);
    UNIT_CHECK(strncmp(error.text, "scales: expected", 16) == 0);
    scout_run_weight_free(weight);
    run_free(&a), run_free(&c), run_free(&stored), run_free(&scales), run_free(&zeros);
    scout_run_close(run);
}

static void weights_of_few_bits(void) {
    for (int64_t batch = 1; batch < 6; batch += 4) {
        few_bits(SCOUT_RUN_INT4, 2, false, batch);
        few_bits(SCOUT_RUN_UINT4, 4, true, batch);
        few_bits(SCOUT_RUN_INT8, 1, false, batch);
        few_bits(SCOUT_RUN_UINT8, 1, true, batch);
        few_bits(SCOUT_RUN_UINT8, 2, true, batch);
    }
}

int main(void) {
    UNIT_RUN(the_choice_runs);
    UNIT_RUN(a_choice_that_is_gone_is_said_once);
    UNIT_RUN(what_is_not_listed_is_said_once);
    UNIT_RUN(a_block_mask_is_another_operation);
    UNIT_RUN(a_table_of_another_device_is_refused);
    UNIT_RUN(a_table_that_none_has_signed_is_refused);
    UNIT_RUN(a_shape_between_two_is_found_where_that_is_asked);
    UNIT_RUN(a_packed_weight_is_of_one_operation);
    UNIT_RUN(a_sparse_weight_runs_what_its_zeros_are_listed_with);
    UNIT_RUN(weights_of_few_bits);
    return unit_end();
}
