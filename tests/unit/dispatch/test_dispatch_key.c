/* Keys of operations: from text, from parts, by place; one text for one key. */
#include "dispatch/scout_dispatch_key.h"

#include "common/oprec.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static bool parse(scout_dispatch_key *key, const char *text) {
    return scout_dispatch_key_parse(key, text, strlen(text)) == 1;
}

static void text_is_taken_apart(void) {
    scout_dispatch_key key;
    UNIT_CHECK(parse(&key, "gemm;shape=16,4096,11008;layout=nn;type=fp16;batch=3;bias=n"));
    UNIT_TEXT(key.form, "gemm;shape= , , ;layout=nn;type=fp16;batch= ;bias=n");
    UNIT_INT(key.count, 4);
    UNIT_INT(key.numbers[2], 11008);
    UNIT_INT(key.numbers[3], 3);
    UNIT_INT(key.form_length, strlen(key.form));
    UNIT_INT(scout_dispatch_key_place(&key, "shape", 0), 0);
    UNIT_INT(scout_dispatch_key_place(&key, "shape", 2), 2);
    UNIT_INT(scout_dispatch_key_place(&key, "shape", 3), -1);
    UNIT_INT(scout_dispatch_key_place(&key, "batch", 0), 3);
    UNIT_INT(scout_dispatch_key_place(&key, "bias", 0), -1);
    UNIT_INT(scout_dispatch_key_place(&key, "atch", 0), -1);
    UNIT_INT(scout_dispatch_key_place(&key, "", 0), -1);
}

/* What two texts have in common may be their form; never form and numbers. */
static void different_texts_are_different_keys(void) {
    static const char *const texts[] = {
        "a=1",
        "a=01",
        "a=-1",
        "a=--1",
        "a=1.0",
        "a=+1",
        "a=1e0",
        "a=",
        "a=0",
        "a=-0",
        "a=1,2",
        "a=12",
        "a=1;2",
        "a=1,",
        "a=,1",
        "a=1x",
        "a=x1",
        "a1",
        "a=1;b=2",
        "b=2;a=1",
        "a=10",
        "a=1,02",
        "a=-1,-2",
        "a=-",
        "a=1,,",
        "a=;1",
        "a=9223372036854775807",
        "a=9223372036854775808",
        "a=-9223372036854775808",
        "a=-9223372036854775809",
        "a=18446744073709551617",
        "a=99999999999999999999999",
    };
    enum { COUNT = sizeof texts / sizeof *texts };
    for (int a = 0; a < COUNT; a++) {
        scout_dispatch_key x, y;
        UNIT_CHECK(parse(&x, texts[a]));
        for (int b = 0; b < COUNT; b++) {
            UNIT_CHECK(parse(&y, texts[b]));
            const bool same = strcmp(x.form, y.form) == 0 && x.count == y.count &&
                              memcmp(x.numbers, y.numbers, x.count * sizeof x.numbers[0]) == 0;
            if (!UNIT_CHECK(same == (a == b))) printf("    %s and %s\n", texts[a], texts[b]);
        }
    }
}

static void no_canonical_text_is_refused(void) {
    scout_dispatch_key key;
    char longest[SCOUT_DISPATCH_KEY_ROOM + 1];
    UNIT_CHECK(!parse(&key, ""));
    UNIT_CHECK(!parse(&key, "a b"));
    UNIT_CHECK(!parse(&key, "a=\n"));
    UNIT_CHECK(!parse(&key, "a\x7f"));
    memset(longest, 'x', sizeof longest);
    longest[SCOUT_DISPATCH_KEY_ROOM - 1] = 0;
    UNIT_CHECK(parse(&key, longest));
    longest[SCOUT_DISPATCH_KEY_ROOM - 1] = 'x', longest[SCOUT_DISPATCH_KEY_ROOM] = 0;
    UNIT_CHECK(!parse(&key, longest));
}

static void further_numbers_stay_text(void) {
    char text[256] = "move;perm=1";
    scout_dispatch_key key, other;
    for (int k = 0; k < 40; k++) strcat(text, ",1");
    UNIT_CHECK(parse(&key, text));
    UNIT_INT(key.count, SCOUT_DISPATCH_NUMBERS);
    text[strlen(text) - 1] = '2';
    UNIT_CHECK(parse(&other, text));
    UNIT_CHECK(key.form_hash != other.form_hash);
}

/* The builder writes what oprec_key does, whatever the order of the fields. */
static void parts_make_the_reports_key(void) {
    static const int64_t shape[] = {1, 32, 2048, 128}, mask[] = {1, 1, 2048, 2048};
    const scout_dispatch_field fields[] = {{.name = "mask_shape", .numbers = mask, .count = 4},
                                           {.name = "kv_len", .number = 4096},
                                           {.name = "scale", .text = "0.125"},
                                           {.name = "chain", .text = "add(v);gelu 50%=\t"},
                                           {.name = "kv_heads", .number = 8}};
    scout_dispatch_op op = {.kind = "attention",
                            .shape = shape,
                            .rank = 4,
                            .mask = "additive",
                            .type = "bf16",
                            .out_type = "bf16",
                            .layout = "bshd",
                            .what = "flex",
                            .fields = fields,
                            .field_count = 5};
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, 1 << 20);
    if (!guard_enter(&g)) {
        UNIT_CHECK(false);
        return;
    }
    oprec r = {.kind = OP_ATTENTION, .what = "flex", .layout = "bshd", .mask = "additive", .type = DTYPE_BF16};
    oprec_set_shape(&r, &a, 4, shape);
    oprec_set_int(&r, "kv_heads", 8);
    oprec_set_int(&r, "kv_len", 4096);
    oprec_set_real(&r, "scale", 0.125);
    oprec_set_text(&r, "chain", "add(v);gelu 50%=\t");
    oprec_set_ints(&r, &a, "mask_shape", 4, mask);
    char text[SCOUT_DISPATCH_KEY_ROOM];
    UNIT_INT(scout_dispatch_key_write(&op, text, sizeof text), strlen(oprec_key(&r, &a)));
    UNIT_TEXT(text, oprec_key(&r, &a));
    arena_free(&a);
}

static void customary_numbers_are_left_out(void) {
    static const int64_t shape[] = {INT64_MIN, 0, INT64_MAX};
    scout_dispatch_field batch = {.name = "batch", .number = 1};
    const scout_dispatch_op op = {.kind = "gemm",
                                  .shape = shape,
                                  .rank = 3,
                                  .layout = "nt",
                                  .type = "fp16",
                                  .weight_type = "int4",
                                  .weight_side = "b",
                                  .out_type = "fp32",
                                  .fields = &batch,
                                  .field_count = 1};
    char text[SCOUT_DISPATCH_KEY_ROOM];
    scout_dispatch_key key;
    scout_dispatch_key_write(&op, text, sizeof text);
    UNIT_TEXT(text, "gemm;shape=-9223372036854775808,0,9223372036854775807;layout=nt;type=fp16;weight=int4;out=fp32;"
                    "weight_side=b");
    static const int64_t ones[] = {1, 1, 1}, other[] = {1, 2, 1};
    const scout_dispatch_field lists[] = {{.name = "stride", .numbers = ones, .count = 3},
                                          {.name = "dilation", .numbers = other, .count = 3},
                                          {.name = "pads", .number = 0},
                                          {.name = "batch_stride_a", .number = 0}};
    const scout_dispatch_op conv = {.kind = "conv", .fields = lists, .field_count = 4};
    scout_dispatch_key_write(&conv, text, sizeof text);
    UNIT_TEXT(text, "conv;shape=;batch_stride_a=0;dilation=1,2,1");
    batch.number = 96;
    UNIT_CHECK(scout_dispatch_key_make(&key, &op));
    UNIT_INT(key.numbers[scout_dispatch_key_place(&key, "batch", 0)], 96);
    UNIT_INT(key.numbers[0], INT64_MIN);
}

static void what_does_not_fit_is_refused(void) {
    char name[SCOUT_DISPATCH_KEY_ROOM + 8], small[16];
    scout_dispatch_key key;
    memset(name, ';', sizeof name); /* each takes three bytes */
    name[400] = 0;
    const scout_dispatch_op op = {.kind = "gemm", .what = name};
    UNIT_CHECK(!scout_dispatch_key_make(&key, &op));
    name[300] = 0;
    UNIT_CHECK(scout_dispatch_key_make(&key, &op));
    UNIT_INT(scout_dispatch_key_write(&op, small, sizeof small), 0);
    UNIT_INT(scout_dispatch_key_write(&op, small, 0), 0);
}

/* One number more or less shows in the hash, and so does its place. */
static void hashes_spread(void) {
    enum { COUNT = 4096 };
    static uint64_t hashes[COUNT];
    scout_dispatch_key key;
    int collisions = 0;
    UNIT_CHECK(parse(&key, "gemm;shape=1,1,1"));
    for (int k = 0; k < COUNT; k++) {
        key.numbers[0] = 1 + k % 16, key.numbers[1] = 64 * (1 + k / 16 % 16), key.numbers[2] = 4096 * (1 + k / 256);
        hashes[k] = scout_dispatch_key_hash(&key);
        for (int n = 0; n < k; n++) collisions += (uint32_t)hashes[n] == (uint32_t)hashes[k];
    }
    UNIT_CHECK(collisions < 8);
}

int main(void) {
    UNIT_RUN(text_is_taken_apart);
    UNIT_RUN(different_texts_are_different_keys);
    UNIT_RUN(no_canonical_text_is_refused);
    UNIT_RUN(further_numbers_stay_text);
    UNIT_RUN(parts_make_the_reports_key);
    UNIT_RUN(customary_numbers_are_left_out);
    UNIT_RUN(what_does_not_fit_is_refused);
    UNIT_RUN(hashes_spread);
    return unit_end();
}
