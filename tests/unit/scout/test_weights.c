/* Weights as they are: reading them from a model's folder and nothing beside it, entries split by what their zeros are
 * good for, and what a made-up weight holds. */
#include "scout/input/weights.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE = 256, BYTES = SIDE * SIDE * 2 };

static char folder[64], model[96], outside[96];
static guard g;
static arena a;
static scout_why why;

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    UNIT_CHECK(f && fwrite(data, 1, n, f) == n);
    if (f) fclose(f);
}

/* Four weights, one behind another after a byte of something else, and zeros behind them. */
static void make_model(void) {
    static const struct {
        const char *pattern;
        double zeros;
    } rows[] = {{NULL, 0}, {"UNSTRUCTURED", 0.9}, {"STRUCTURED_24", 0.5}, {"BLOCK_SPARSE", 0.8}};
    static uint16_t all[5 * SIDE * SIDE];
    static unsigned char file[1 + sizeof all];
    for (int64_t k = 0; k < 4; k++) {
        sparsity_made made = sparsity_make(rows[k].pattern ? rows[k].pattern : "UNSTRUCTURED", rows[k].zeros, 64, 3);
        for (int64_t at = 0; at < SIDE * SIDE; at++)
            all[k * SIDE * SIDE + at] = sparsity_keeps(&made, at / SIDE, at % SIDE) ? 0x3c00 : 0;
    }
    memcpy(file + 1, all, sizeof all);
    write_file(model, file, sizeof file);
    write_file(outside, file, sizeof file);
}

static bool reads(const char *file, int64_t offset, int64_t length, uint64_t bytes) {
    static char to[BYTES];
    const weights_place at = {model, file, "w", offset, length};
    why = (scout_why){.code = ""};
    return weights_file_read(&at, to, bytes, &why);
}

static void only_the_models_folder(void) {
    char path[128];
    UNIT_CHECK(reads("m.onnx", 1, BYTES, BYTES));
    UNIT_CHECK(!reads("m.onnx", 1, BYTES, BYTES - 2) && strstr(why.text, "does not fit"));
    UNIT_CHECK(!reads("m.onnx", 5 * BYTES, BYTES, BYTES) && strstr(why.text, "size"));
    UNIT_CHECK(!reads("m.onnx", INT64_MAX - 4, BYTES, BYTES) && !reads("m.onnx", -1, BYTES, BYTES));
    UNIT_CHECK(!reads("../outside.bin", 1, BYTES, BYTES) && strstr(why.text, "outside"));
    UNIT_CHECK(!reads("x/../../outside.bin", 1, BYTES, BYTES) && !reads("", 1, BYTES, BYTES));
    UNIT_CHECK(!reads(outside, 1, BYTES, BYTES) && strstr(why.text, "outside"));
    UNIT_CHECK(!reads("nobody.bin", 1, BYTES, BYTES));
    snprintf(path, sizeof path, "%s/link.bin", folder);
    UNIT_CHECK(symlink(outside, path) == 0 && !reads("link.bin", 1, BYTES, BYTES));
    unlink(path);
    snprintf(path, sizeof path, "%s/pipe", folder);
    UNIT_CHECK(mkfifo(path, 0600) == 0 && !reads("pipe", 0, BYTES, BYTES) && strcmp(why.code, "weight") == 0);
    unlink(path);
    snprintf(path, sizeof path, "%s/sub", folder);
    UNIT_CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/sub/w.bin", folder);
    static const char zeros[BYTES];
    write_file(path, zeros, sizeof zeros);
    UNIT_CHECK(reads("sub/w.bin", 0, BYTES, BYTES));
    unlink(path);
    path[strlen(path) - 6] = 0;
    rmdir(path);
}

static json_t *entry(int count, int offset_by) {
    json_t *weights = json_array();
    for (int k = 0; k < 4; k++)
        json_array_append_new(weights, json_pack("{ss, ss, sI, si, s[ii], ss}", "name", "w", "file", "m.onnx", "offset",
                                                 (json_int_t)(1 + k * BYTES + offset_by), "length", BYTES, "dims", SIDE,
                                                 SIDE, "dtype", "fp16"));
    json_t *one =
        json_pack("{ss, ss, s[iii], ss, ss, ss, ss, si}", "id", "g", "op", "gemm", "shape", 1, SIDE, SIDE, "layout",
                  "nt", "dtype", "fp16", "weight_dtype", "fp16", "weight_side", "b", "count", count);
    json_object_set_new(one, "weights", weights);
    return json_pack("{ss, s{ss}, s[o]}", "schema", "ceiling-scout/ops/1", "model", "name", "m", "ops", one);
}

static int split(json_t *ops, double threshold, operation_list *list) {
    char path[128];
    snprintf(path, sizeof path, "%s/ops.json", folder);
    UNIT_CHECK(json_dump_file(ops, path, 0) == 0);
    json_decref(ops);
    operation_read(path, NULL, &a, list);
    weights_split(list, model, threshold, &a);
    unlink(path);
    return list->count;
}

/* Whose weights are of several kinds: each runs as the entry that its own became. */
static void occurrences_follow_their_weights(void) {
    operation_occurrence at[4];
    operation_flow flow = {.occurrences = at, .occurrence_count = 4};
    operation_list list;
    char path[128];
    json_t *ops = entry(4, 0);
    snprintf(path, sizeof path, "%s/ops.json", folder);
    UNIT_CHECK(json_dump_file(ops, path, 0) == 0);
    json_decref(ops);
    operation_read(path, NULL, &a, &list);
    unlink(path);
    for (int k = 0; k < 4; k++) at[k] = (operation_occurrence){.operation = 0, .place = 3 - k, .times = 1};
    list.flow = &flow;
    weights_split(&list, model, 0, &a);
    static const char *const patterns[] = {"BLOCK_SPARSE", "STRUCTURED_24", "UNSTRUCTURED", "DENSE"};
    for (int k = 0; k < 4; k++) UNIT_TEXT(list.items[at[k].operation].pattern, patterns[k]);
    operation_list_free(&list);
}

static void entries_are_split(void) {
    operation_list list;
    UNIT_INT(split(entry(8, 0), 0, &list), 4);
    static const char *const patterns[] = {"DENSE", "UNSTRUCTURED", "STRUCTURED_24", "BLOCK_SPARSE"};
    for (int k = 0; k < list.count && k < 4; k++) {
        const operation *o = &list.items[k];
        operation back;
        json_builder b = {NULL};
        status st;
        UNIT_TEXT(o->pattern, patterns[k]);
        UNIT_CHECK(o->count == 2 && (k > 0) == (o->weight != NULL) && (k > 0) == (o->sparsity > 0));
        for (int j = 0; j < k; j++) UNIT_CHECK(strcmp(o->id, list.items[j].id) != 0);
        json_t *wire = json_finish(&b, operation_to_json(o, &b), &st);
        operation_from_json(wire, &a, &back);
        UNIT_TEXT(operation_key(&back, &a), operation_key(o, &a));
        UNIT_CHECK((back.weight != NULL) == (k > 0) && back.sparsity == o->sparsity);
        json_decref(wire);
    }
    UNIT_CHECK(strstr(operation_key(&list.items[1], &a), ";zeros=") != NULL);
    operation_list_free(&list);
    UNIT_INT(split(entry(6, 0), 0, &list), 1); /* how often each of them runs is unknown */
    operation_list_free(&list);
    UNIT_INT(split(entry(4, 5 * BYTES), 0, &list), 1); /* unreachable */
    UNIT_CHECK(list.items[0].count == 4 && list.items[0].sparsity == 0);
    operation_list_free(&list);
    for (int k = 0; k < 2; k++) { /* the last one is all zeros, or below the threshold */
        UNIT_INT(split(entry(4, BYTES), k * 1e-3, &list), 4);
        UNIT_CHECK(list.items[0].count == 1 && list.items[0].sparsity == 0 && !list.items[0].weight);
        UNIT_TEXT(list.items[0].pattern, "DENSE");
        operation_list_free(&list);
    }
}

/* What would be below a threshold is asked of the dense one as well, which is measured as what it is. */
static void a_threshold_is_asked_of_all(void) {
    operation_list list;
    UNIT_INT(split(entry(8, 0), 2, &list), 4);
    const operation *dense = &list.items[0];
    scout_op op;
    weights_content w;
    UNIT_CHECK(dense->weight && dense->sparsity == 0 && dense->zeros_hash != 0);
    list.items[0].threshold = 2;
    UNIT_CHECK(strstr(operation_key(dense, &a), ";weight_threshold=2;zeros=") != NULL);
    UNIT_CHECK(kinds_build(dense, 1 << 20, &a, &op, &why));
    const uint32_t before = op.field_count;
    UNIT_CHECK(weights_make(dense, &op, 5, NULL, &a, &w, &why) && w.bytes && op.field_count == before);
    UNIT_CHECK(w.facts.zeros == 0 && w.conversion.below == 1 && w.conversion.work[0] == 0);
    weights_free(&w);
    list.items[0].threshold = 0.5;
    UNIT_CHECK(weights_make(dense, &op, 5, NULL, &a, &w, &why) && w.conversion.below == 0 && w.conversion.work[0] == 1);
    weights_free(&w);
    const weights_place nowhere = {model, "nobody.bin", "w", 0, BYTES};
    list.items[0].weight = &nowhere; /* it hinders no measurement */
    UNIT_CHECK(weights_make(dense, &op, 5, NULL, &a, &w, &why) && !w.bytes);
    operation_list_free(&list);
}

/* Eight bits hold what is made up for them as well: no number that is kept becomes a zero. */
static void eight_bits(void) {
    static const char *const precisions[] = {"fp8", "int8"};
    for (int k = 0; k < 2; k++) {
        operation_list list;
        scout_op op;
        weights_content w;
        operation_from_words("gemm", "16,256,512", precisions[k], 0.5, "STRUCTURED_24", &a, &list);
        UNIT_CHECK(kinds_build(&list.items[0], 1 << 20, &a, &op, &why));
        UNIT_CHECK(weights_make(&list.items[0], &op, 5, NULL, &a, &w, &why) && w.facts.two_of_four_by_row);
        UNIT_CHECK(w.facts.nonzeros == 256 * 512 / 2);
        weights_free(&w);
        operation_list_free(&list);
    }
}

/* A device that counts: 100 numbers, whatever there is. */
static int in_use;
static scout_answer lend(scout_device *d, uint64_t bytes, void **out, scout_why *w) {
    (void)d, (void)w;
    in_use += (*out = malloc(bytes)) != NULL;
    return SCOUT_OK;
}
static void take_back(scout_device *d, void *memory) {
    (void)d;
    in_use -= memory != NULL;
    free(memory);
}
static scout_answer copy(scout_device *d, void *to, const void *from, uint64_t bytes, scout_why *w) {
    (void)d, (void)w;
    memcpy(to, from, bytes);
    return SCOUT_OK;
}
static scout_answer zeros(scout_device *d, const void *matrix, uint32_t type, int64_t rows, int64_t cols,
                          scout_zeros *out, scout_why *w) {
    (void)d;
    if (!matrix || type != SCOUT_FP16) return scout_say(w, SCOUT_NO, "type", "fp16 alone");
    *out = (scout_zeros){.size = sizeof *out, .nonzeros = 100, .most = cols, .blocks = {rows, 2, 3, 1}};
    return SCOUT_OK;
}

static void the_device_counts_where_it_can(void) {
    const scout_device_api api = {
        .size = sizeof api, .alloc = lend, .release = take_back, .upload = copy, .zeros = zeros};
    scout_device_api old = api;
    old.size = offsetof(scout_device_api, zeros); /* of a time that knew no such member */
    const struct {
        const char *precision;
        const scout_device_api *api;
        bool on_device;
    } rows[] = {{"fp16", &api, true}, {"fp32", &api, false}, {"fp16", &old, false}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const weights_counter counter = {rows[k].api, NULL};
        operation_list list;
        scout_op op;
        weights_content w;
        operation_from_words("gemm", "8,256,512", rows[k].precision, 0.9, "UNSTRUCTURED", &a, &list);
        UNIT_CHECK(kinds_build(&list.items[0], 1 << 20, &a, &op, &why));
        UNIT_CHECK(weights_make(&list.items[0], &op, 5, &counter, &a, &w, &why) && in_use == 0);
        UNIT_CHECK(w.on_device == rows[k].on_device && (w.facts.nonzeros == 100) == rows[k].on_device);
        if (w.on_device) UNIT_CHECK(w.facts.blocks[3] == 1.0 / 8 && w.facts.rows == 512 && w.facts.fewest == 0);
        if (w.on_device) UNIT_CHECK(w.conversion.largest == 128);
        weights_free(&w);
        operation_list_free(&list);
    }
}

static void content_is_what_was_asked_for(void) {
    static const struct {
        const char *pattern, *layout;
        double zeros;
    } rows[] = {{"BLOCK_SPARSE", "nn", 0.75},
                {"UNSTRUCTURED", "nt", 0.9},
                {"STRUCTURED_24", "nn", 0.5},
                {"STRUCTURED_24", "nt", 0.5}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        operation_list list;
        scout_op op;
        weights_content w;
        operation_from_words("gemm", "8,256,512", "fp16", rows[k].zeros, rows[k].pattern, &a, &list);
        list.items[0].rec.layout = rows[k].layout;
        UNIT_CHECK(kinds_build(&list.items[0], 1 << 20, &a, &op, &why));
        const uint32_t before = op.field_count;
        UNIT_CHECK(weights_make(&list.items[0], &op, 5, NULL, &a, &w, &why) && w.bytes && w.tensor == 1);
        UNIT_TEXT(w.facts.pattern, rows[k].pattern);
        UNIT_CHECK(w.facts.zeros > rows[k].zeros - 0.15 && w.facts.zeros < rows[k].zeros + 0.15);
        UNIT_CHECK(op.field_count > before);
        const bool by_row = w.facts.two_of_four_by_row, k_last = rows[k].layout[1] == 't';
        if (rows[k].zeros == 0.5) UNIT_CHECK(by_row == k_last); /* along K, however it is stored */
        weights_free(&w);
        operation_list_free(&list);
    }
}

int main(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    snprintf(folder, sizeof folder, "/tmp/test_weights_XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(model, sizeof model, "%s/m.onnx", folder);
    snprintf(outside, sizeof outside, "%s.outside", folder);
    if (guard_enter(&g)) {
        make_model();
        UNIT_RUN(only_the_models_folder);
        UNIT_RUN(entries_are_split);
        UNIT_RUN(occurrences_follow_their_weights);
        UNIT_RUN(a_threshold_is_asked_of_all);
        UNIT_RUN(eight_bits);
        UNIT_RUN(the_device_counts_where_it_can);
        UNIT_RUN(content_is_what_was_asked_for);
    } else {
        printf("    %s\n", g.st.text);
        UNIT_CHECK(false);
    }
    arena_free(&a);
    unlink(model);
    unlink(outside);
    rmdir(folder);
    return unit_end();
}
