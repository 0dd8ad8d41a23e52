/* Block masks: what their text says, and every promise of a pattern by brute force: each query has a key, counts are
 * those of single pairs, and a denser mask sees all that a sparser one sees. */
#include "common/opcost.h"
#include "scout/input/operation_internal.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

/* ---- text ---- */

static void texts_have_one_form(void) {
    static const char *const rows[][2] = {
        {"local,0.25", "local,0.25,64"},
        {"local,0.250", "local,0.25,64"},
        {"global,1", "global,1,64"},
        {"strided,2.5e-1,128", "strided,0.25,128"},
        {"random,0.1", "random,0.1,64,0"},
        {"random,0.1,128,4294967295", "random,0.1,128,4294967295"},
        {"local,0.123456789,0128", "local,0.123457,128"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        block_mask m;
        char why[128], text[BLOCK_MASK_TEXT], again[BLOCK_MASK_TEXT];
        UNIT_CHECK(block_mask_read(rows[k][0], &m, why, sizeof why));
        block_mask_write(&m, text);
        UNIT_TEXT(text, rows[k][1]);
        UNIT_CHECK(block_mask_read(text, &m, why, sizeof why));
        block_mask_write(&m, again);
        UNIT_TEXT(again, text);
    }
}

static void other_texts_are_refused(void) {
    static const char *const rows[][2] = {
        {"", "pattern"},
        {",", "pattern"},
        {"loca,0.5", "pattern"},
        {"locals,0.5", "pattern"},
        {"LOCAL,0.5", "pattern"},
        {" local,0.5", "pattern"},
        {"0.25", "pattern"},
        {"local", "density"},
        {"local,", "density"},
        {"local,x", "density"},
        {"local,0", "density"},
        {"local,-0.5", "density"},
        {"local,1.0001", "density"},
        {"local,nan", "density"},
        {"local,inf", "density"},
        {"local,1e999", "density"},
        {"local,0.5x", "density"},
        {"local,0.5,", "block"},
        {"local,0.5,0", "block"},
        {"local,0.5,-64", "block"},
        {"local,0.5,65", "block"},
        {"local,0.5,64.0", "block"},
        {"local,0.5,18446744073709551680", "block"},
        {"local,0.5,64,", "seed"},
        {"local,0.5,64,1", "seed"},
        {"random,0.5,64,", "seed"},
        {"random,0.5,64,-1", "seed"},
        {"random,0.5,64,4294967296", "seed"},
        {"random,0.5,64,1,1", "after"},
        {"random,0.5,64,1,", "after"},
        {"local,0.5000000000000000000000000000000000000000000000000000000000000", "long"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        block_mask m;
        char why[128] = "";
        UNIT_CHECK(!block_mask_read(rows[k][0], &m, why, sizeof why));
        UNIT_CHECK(strstr(why, rows[k][1]) != NULL);
        UNIT_INT(m.block, 0);
        UNIT_INT(block_mask_over(rows[k][0], 100, 100, 0, 0, false).block, 0);
    }
    UNIT_INT(block_mask_over(NULL, 100, 100, 0, 0, false).block, 0);
    UNIT_INT(block_mask_over("local,0.5", 0, 100, 0, 0, false).block, 0);
    UNIT_INT(block_mask_over("local,0.5", BLOCK_MASK_SIDE * 64 + 1, 100, 0, 0, false).block, 0);
    UNIT_INT(block_mask_over("local,0.5", 100, INT64_MAX, 0, 0, false).block, 0);
}

/* ---- over scores ---- */

typedef struct scores {
    int64_t queries, keys, past, window;
    bool causal;
} scores;

static const scores shapes[] = {{1, 1, 0, 0, false},       {1, 1000, 999, 0, true},    {200, 200, 0, 0, false},
                                {200, 200, 0, 0, true},    {640, 640, 0, 0, true},     {513, 1000, 487, 0, true},
                                {513, 1000, 100, 0, true}, {513, 1000, 487, 70, true}, {300, 257, 500, 0, true},
                                {300, 257, 0, 300, true},  {100, 700, 600, 0, false},  {700, 100, -600, 0, false},
                                {129, 65, -64, 0, false},  {300, 257, 200, 250, true}};
static const char *const asked[] = {"local,0.25",       "local,0.0001",      "local,1,128",  "strided,0.25",
                                    "strided,0.9",      "global,0.3",        "global,1e-6",  "global,0.6,128",
                                    "random,0.25,64,1", "random,0.01,128,7", "strided,0.03", "random,1"};

static bool visible(const scores *s, int64_t query, int64_t key) {
    const int64_t behind = s->past + query + 1;
    return !s->causal || (key < behind && (s->window == 0 || key >= behind - s->window));
}

static void promises_of(const scores *s, const char *text) {
    const block_mask m = block_mask_over(text, s->queries, s->keys, s->past, s->window, s->causal);
    static bool any[2048];
    int64_t pairs = 0, keys = 0, seen = 0, possible = 0;
    memset(any, 0, sizeof any);
    if (!UNIT_CHECK(m.block == 64 || m.block == 128)) return;
    UNIT_INT(m.rows, (s->queries + m.block - 1) / m.block);
    for (int64_t query = 0; query < s->queries; query++) {
        int64_t mine = 0;
        for (int64_t key = 0; key < s->keys; key++)
            if (block_mask_sees(&m, query / m.block, key / m.block)) any[key] = true, mine += visible(s, query, key);
        UNIT_CHECK(mine > 0);
        pairs += mine;
    }
    for (int64_t row = 0; row < m.rows; row++)
        for (int64_t col = 0; col < m.cols; col++) {
            bool left = false;
            for (int64_t query = row * m.block; query < s->queries && query < (row + 1) * m.block; query++)
                for (int64_t key = col * m.block; key < s->keys && key < (col + 1) * m.block; key++)
                    left = left || visible(s, query, key);
            UNIT_CHECK(left || !block_mask_sees(&m, row, col));
            possible += left, seen += block_mask_sees(&m, row, col);
        }
    for (int64_t key = 0; key < s->keys; key++) keys += any[key];
    UNIT_INT(block_mask_pairs(&m), pairs);
    UNIT_INT(block_mask_keys(&m), keys);
    UNIT_INT(m.seen, seen);
    UNIT_INT(m.possible, possible);
    UNIT_CHECK(block_mask_density(&m) > 0 && block_mask_density(&m) <= 1);
}

static void every_query_has_a_key_and_counts_are_right(void) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) promises_of(&shapes[s], asked[k]);
}

static void denser_masks_see_more(void) {
    static const char *const names[] = {"local", "strided", "global", "random"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int causal = 0; causal < 2; causal++) {
            block_mask before = {.block = 0};
            for (int step = 1; step <= 20; step++) {
                char text[BLOCK_MASK_TEXT];
                snprintf(text, sizeof text, "%s,%g", names[n], step / 20.0);
                const block_mask m = block_mask_over(text, 1500, 1500, 0, 0, causal);
                for (int64_t row = 0; row < m.rows && step > 1; row++)
                    for (int64_t col = 0; col < m.cols; col++)
                        UNIT_CHECK(!block_mask_sees(&before, row, col) || block_mask_sees(&m, row, col));
                if (step == 20) UNIT_INT(m.seen, m.possible);
                before = m;
            }
        }
}

/* Of a long sequence a density is met closely, but for the powers of two that strides are. */
static void densities_are_met(void) {
    static const struct {
        const char *text;
        double off;
    } rows[] = {{"local,0.1", 0.01},   {"local,0.25", 0.01},  {"global,0.1", 0.01},       {"random,0.1", 0.001},
                {"random,0.5", 0.001}, {"strided,0.5", 0.01}, {"strided,0.25,128", 0.02}, {"strided,0.125", 0.02}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int causal = 0; causal < 2; causal++) {
            const block_mask m = block_mask_over(rows[k].text, 16384, 16384, 0, 0, causal);
            UNIT_CHECK(fabs(block_mask_density(&m) - m.density) < rows[k].off);
        }
}

static void patterns_are_what_they_are_called(void) {
    const block_mask local = block_mask_over("local,0.2", 6400, 6400, 0, 0, false);
    const block_mask global = block_mask_over("global,0.2", 6400, 6400, 0, 0, false);
    const block_mask strided = block_mask_over("strided,0.25", 6400, 6400, 0, 0, false);
    const block_mask one = block_mask_over("random,0.2,64,1", 6400, 6400, 0, 0, false);
    const block_mask two = block_mask_over("random,0.2,64,2", 6400, 6400, 0, 0, false);
    int differ = 0;
    for (int64_t row = 0; row < 100; row++)
        for (int64_t col = 0; col < 100; col++) {
            const int64_t far = row > col ? row - col : col - row;
            UNIT_CHECK(block_mask_sees(&local, row, col) == (far <= local.steps));
            UNIT_CHECK(block_mask_sees(&global, row, col) == (far <= global.steps || row == 0 || col == 0));
            UNIT_CHECK(block_mask_sees(&strided, row, col) == (far % 4 == 0));
            differ += block_mask_sees(&one, row, col) != block_mask_sees(&two, row, col);
        }
    UNIT_CHECK(differ > 1000); /* of 10000, a fifth seen each */
    UNIT_TEXT(block_mask_pattern(one.pattern)->name, "random");
    UNIT_CHECK(block_mask_pattern(-1) == NULL && block_mask_pattern(4) == NULL);
}

/* ---- costs ---- */

static oprec attention(arena *a, const char *mask, const char *blocks) {
    oprec r = {.kind = OP_ATTENTION, .mask = mask, .type = DTYPE_FP16};
    oprec_set_shape(&r, a, 4, (int64_t[]){2, 8, 1000, 64});
    oprec_set_int(&r, "kv_heads", 4);
    oprec_set_int(&r, "kv_len", 1300);
    oprec_set_int(&r, "v_head", 32);
    if (blocks) oprec_set_text(&r, "block_mask", blocks);
    operation_cost_attention(&r);
    return r;
}

static void costs_count_what_is_seen(void) {
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, (size_t)1 << 20);
    const oprec dense = attention(&a, "none", NULL), causal = attention(&a, "causal", NULL);
    const oprec all = attention(&a, "blocks", "random,1"), under = attention(&a, "causal+blocks", "random,1");
    const oprec few = attention(&a, "blocks", "local,0.25"), fewer = attention(&a, "causal+blocks", "local,0.25");
    UNIT_INT(all.flops, dense.flops);
    UNIT_INT(under.flops, causal.flops);
    UNIT_INT(few.macs, dense.macs);
    const block_mask m = block_mask_over("local,0.25", 1000, 1300, 300, 0, 1);
    UNIT_INT(fewer.flops, 2 * 2 * 8 * (64 + 32) * block_mask_pairs(&m));
    UNIT_CHECK(few.flops < dense.flops / 3 && fewer.flops < causal.flops / 2);
    const operation two[] = {{.rec = few}, {.rec = dense}};
    operation_block_mask told;
    UNIT_CHECK(operation_blocks(&two[0], &told) && !operation_blocks(&two[1], &told));
    UNIT_TEXT(told.pattern, "local");
    UNIT_CHECK(told.block == 64 && told.density > 0.2 && told.density < 0.3);
    UNIT_CHECK(strcmp(oprec_key(&dense, &a), oprec_key(&few, &a)) != 0);
    UNIT_CHECK(strcmp(oprec_id(&dense, &a), oprec_id(&few, &a)) != 0);
    arena_free(&a);
}

int main(void) {
    UNIT_RUN(texts_have_one_form);
    UNIT_RUN(other_texts_are_refused);
    UNIT_RUN(every_query_has_a_key_and_counts_are_right);
    UNIT_RUN(denser_masks_see_more);
    UNIT_RUN(densities_are_met);
    UNIT_RUN(patterns_are_what_they_are_called);
    UNIT_RUN(costs_count_what_is_seen);
    return unit_end();
}
