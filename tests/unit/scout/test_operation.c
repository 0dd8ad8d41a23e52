/* Operations: ops.json, the short form, the command line, and their way between processes. */
#include "tests/unit/scout/operation_fixture.h"

/* ---- the short form ---- */

static const char block[] = "{\"qkv\": {\"op\": \"gemm\", \"shape\": [4096, 12288, 4096]},"
                            " \"attn\": {\"op\": \"attention\", \"shape\": [1, 32, 2048, 128], \"causal\": true},"
                            " \"proj\": {\"op\": \"gemm\", \"shape\": [4096, 4096, 4096], \"dtype\": \"fp16\"},"
                            " \"up\": {\"op\": \"gemm\", \"shape\": [4096, 11008, 4096], \"sparsity\": 0.875},"
                            " \"down\": {\"op\": \"gemm\", \"shape\": [4096, 4096, 11008], \"batch\": 2},"
                            " \"norm\": {\"op\": \"layernorm\", \"shape\": [4096]}}";

static void a_mask_is_as_large_as_is_read(void) {
    static const char text[] = "{\"turns\": {\"op\": \"softmax\", \"shape\": [6, 5], \"bias\": 1, \"bytes_read\": 180},"
                               " \"all\": {\"op\": \"softmax\", \"shape\": [6, 5], \"bytes_read\": 180}}";
    if (!UNIT_CHECK(read_text(text, "fp32"))) return;
    UNIT_INT(named("turns")->rec.bytes_read, 180);
    UNIT_INT(named("all")->rec.bytes_read, 120);
    end();
}

static void what_stands_behind_a_product_is_read(void) {
    static const char text[] = "{\"up\": {\"op\": \"gemm\", \"shape\": [16, 24, 8], \"bias\": true, \"residual\": "
                               "true, \"activation\": \"gelu\"},"
                               " \"all\": {\"op\": \"gemm\", \"shape\": [16, 24, 8], \"bias\": \"full\"}}";
    if (!UNIT_CHECK(read_text(text, "fp16"))) return;
    const oprec *up = &named("up")->rec;
    UNIT_TEXT(oprec_field(up, "bias")->text, "n");
    UNIT_INT(oprec_int(up, "residual", 0), 1);
    UNIT_TEXT(oprec_field(up, "activation")->text, "gelu");
    UNIT_INT(up->bytes_read, 2 * (16 * 8 + 24 * 8 + 24 + 16 * 24)); /* both sides, bias and residual */
    UNIT_INT(up->bytes_written, 2 * 16 * 24);
    UNIT_INT(named("all")->rec.bytes_read, 2 * (16 * 8 + 24 * 8 + 16 * 24));
    end();
}

/* And not made by another operation, as in a model it may be. */
static void a_table_is_stored(void) {
    if (!UNIT_CHECK(read_text("{\"rows\": {\"op\": \"embedding\", \"shape\": [16, 64], \"table\": 100}}", "bf16")))
        return;
    UNIT_INT(named("rows")->rec.weight_type, DTYPE_BF16);
    end();
}

static void a_transformer_block(void) {
    if (!UNIT_CHECK(read_text(block, "bf16"))) return;
    UNIT_INT(list.count, 6);
    const operation *qkv = named("qkv"), *attn = named("attn"), *up = named("up"), *norm = named("norm"),
                    *down = named("down");
    UNIT_TEXT(qkv->id, "qkv");
    UNIT_INT(qkv->rec.kind, OP_GEMM);
    UNIT_INT(qkv->rec.type, DTYPE_BF16);
    UNIT_INT(qkv->rec.weight_type, DTYPE_BF16);
    UNIT_TEXT(qkv->rec.layout, "nn");
    UNIT_INT(qkv->rec.flops, 2LL * 4096 * 12288 * 4096);
    UNIT_INT(qkv->rec.bytes_read, 2LL * (4096LL * 4096 + 12288LL * 4096));
    UNIT_INT(qkv->rec.bytes_written, 2LL * 4096 * 12288);
    UNIT_TEXT(qkv->pattern, "DENSE");
    UNIT_INT(qkv->count, 1);
    UNIT_CHECK(qkv->skip_code == NULL);
    UNIT_INT(named("proj")->rec.type, DTYPE_FP16); /* its own word goes before --precision */
    UNIT_TEXT(up->pattern, "BLOCK_SPARSE");
    UNIT_CHECK(up->sparsity == 0.875);
    UNIT_INT(down->rec.macs, 2LL * 4096 * 4096 * 11008);
    UNIT_TEXT(attn->rec.mask, "causal");
    UNIT_INT(oprec_int(&attn->rec, "kv_heads", 0), 32);
    UNIT_INT(oprec_int(&attn->rec, "kv_len", 0), 2048);
    UNIT_INT(attn->rec.flops, 2LL * 32 * (2048LL * 2049 / 2) * 256);
    UNIT_INT(norm->rec.rank, 2);
    UNIT_INT(norm->rec.shape[0], 1);
    UNIT_INT(norm->rec.shape[1], 4096);
    UNIT_TEXT(norm->rec.what, "layer");
    UNIT_INT(norm->rec.flops, 8 * 4096);
    end();
}

/* A weight of few bits beside floats comes with a scale for each channel. */
static void what_a_convolution_reads(void) {
    const char text[] =
        "{\"floats\": {\"op\": \"conv\", \"shape\": [1, 16, 8, 8], \"input\": [1, 4, 8, 8], \"kernel\": [1, 1]},"
        " \"bytes\": {\"op\": \"conv\", \"shape\": [1, 16, 8, 8], \"input\": [1, 4, 8, 8], \"kernel\": [1, 1],"
        "  \"weight_dtype\": \"int8\"}}";
    if (!UNIT_CHECK(read_text(text, "fp16"))) return;
    UNIT_INT(named("floats")->rec.bytes_read, 2 * 256 + 2 * 64);
    UNIT_INT(named("bytes")->rec.bytes_read, 2 * 256 + 64 + 2 * 16);
    end();
}

/* A reduction writes a number for each row, a place is eight bytes, a cast writes its own type. */
static void what_is_written(void) {
    const char text[] =
        "{\"sum\": {\"op\": \"reduce\", \"what\": \"sum\", \"shape\": [100, 64]},"
        " \"place\": {\"op\": \"reduce\", \"what\": \"argmax\", \"shape\": [100, 64]},"
        " \"cast\": {\"op\": \"move\", \"what\": \"cast\", \"shape\": [100, 64], \"out_dtype\": \"fp16\"}}";
    if (!UNIT_CHECK(read_text(text, "fp32"))) return;
    UNIT_INT(named("sum")->rec.bytes_read, 4 * 6400);
    UNIT_INT(named("sum")->rec.bytes_written, 4 * 100);
    UNIT_INT(named("place")->rec.bytes_written, 8 * 100);
    UNIT_INT(named("cast")->rec.bytes_written, 2 * 6400);
    end();
}

static void fp32_unless_said(void) {
    if (!UNIT_CHECK(read_text("{\"x\": {\"op\": \"linear\", \"shape\": [8, 8, 8]}}", NULL))) return;
    UNIT_INT(list.items[0].rec.type, DTYPE_FP32);
    UNIT_TEXT(operation_precision(&list.items[0]), "fp32");
    end();
}

static void names_that_are_no_file_names(void) {
    const char text[] =
        "{\"a b\": {\"op\": \"gemm\", \"shape\": [8, 8, 8]}, \"a/b\": {\"op\": \"gemm\", \"shape\": [8, 8, 8]},"
        " \"..\": {\"op\": \"gemm\", \"shape\": [8, 8, 9]}}";
    if (!UNIT_CHECK(read_text(text, NULL))) return;
    for (int k = 0; k < 3; k++) UNIT_CHECK(strncmp(list.items[k].id, "gemm_8x8x", 9) == 0);
    UNIT_CHECK(strcmp(list.items[0].id, list.items[1].id) != 0);
    UNIT_TEXT(list.items[1].name, "a/b");
    end();
}

static void sparsity_and_patterns(void) {
    const char text[] =
        "{\"h\": {\"op\": \"gemm\", \"shape\": [8, 8, 8], \"pattern\": \"structured_24\"},"
        " \"u\": {\"op\": \"gemm\", \"shape\": [8, 8, 8], \"pattern\": \"UNSTRUCTURED\", \"sparsity\": 0.9},"
        " \"s\": {\"op\": \"gemm\", \"shape\": [8, 8, 8], \"sparsity\": 0.9, \"sparse_block\": 32},"
        " \"d\": {\"op\": \"gemm\", \"shape\": [8, 8, 8], \"sparsity\": 0.9, \"sparse_block\": 64}}";
    if (!UNIT_CHECK(read_text(text, NULL))) return;
    UNIT_TEXT(list.items[0].pattern, "STRUCTURED_24");
    UNIT_CHECK(list.items[0].sparsity == 0.5);
    UNIT_TEXT(list.items[1].pattern, "UNSTRUCTURED");
    UNIT_CHECK(list.items[2].sparse_block == 32 && list.items[3].sparse_block == 0); /* 64 is customary */
    UNIT_CHECK(strstr(operation_key(&list.items[2], &a), ";sparse_block=32") != NULL);
    UNIT_CHECK(strstr(operation_key(&list.items[3], &a), "sparse_block") == NULL);
    const char *dense = operation_key(&(operation){.rec = list.items[1].rec, .pattern = "DENSE"}, &a);
    UNIT_CHECK(strcmp(dense, operation_key(&list.items[1], &a)) != 0);
    end();
}

static void precisions_of_words(void) {
    static const struct {
        const char *name;
        dtype type, weight, out;
        const char *layout;
    } rows[] = {
        {"fp32", DTYPE_FP32, DTYPE_FP32, DTYPE_NONE, "nn"},
        {"tf32", DTYPE_FP32, DTYPE_FP32, DTYPE_NONE, "nn"},
        {"fp16", DTYPE_FP16, DTYPE_FP16, DTYPE_NONE, "nn"},
        {"bf16", DTYPE_BF16, DTYPE_BF16, DTYPE_NONE, "nn"},
        {"fp8", DTYPE_FP8E4M3FN, DTYPE_FP8E4M3FN, DTYPE_BF16, "nt"},
        {"int8", DTYPE_INT8, DTYPE_INT8, DTYPE_INT32, "nt"},
        {"int4", DTYPE_FP16, DTYPE_INT4, DTYPE_NONE, "nt"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!UNIT_CHECK(read_words("gemm", "256,512,1024", rows[k].name, 0, NULL))) return;
        const operation *o = &list.items[0];
        UNIT_TEXT(operation_precision(o), rows[k].name);
        UNIT_INT(o->rec.type, rows[k].type);
        UNIT_INT(o->rec.weight_type, rows[k].weight);
        UNIT_INT(o->rec.out_type, rows[k].out);
        UNIT_TEXT(o->rec.layout, rows[k].layout);
        UNIT_INT(oprec_int(&o->rec, "block_size", 0), strcmp(rows[k].name, "int4") == 0 ? 128 : 0);
        UNIT_CHECK(strncmp(o->id, "gemm_256x512x1024_", 18) == 0);
        UNIT_TEXT(o->name, "gemm");
        end();
    }
    if (!UNIT_CHECK(read_words("gemm", "256x512x1024", "int4", 0, NULL))) return;
    UNIT_INT(list.items[0].rec.bytes_read, 256 * 1024 * 2 + 512 * 1024 / 2 + 512 * 8 * 2);
    end();
}

/* tf32 and fp32 are measured apart. */
static void tf32_has_a_key_of_its_own(void) {
    char key[512];
    if (!UNIT_CHECK(read_words("gemm", "8,8,8", "fp32", 0, NULL))) return;
    snprintf(key, sizeof key, "%s", operation_key(&list.items[0], &a));
    end();
    if (!UNIT_CHECK(read_words("gemm", "8,8,8", "tf32", 0, NULL))) return;
    UNIT_CHECK(strcmp(key, operation_key(&list.items[0], &a)) != 0);
    UNIT_CHECK(strstr(operation_key(&list.items[0], &a), "math=tf32") != NULL);
    end();
}

/* ---- ops.json ---- */

/* Types, fields and costs survive: the record has the id that extraction gave it. */
static void check_golden(const char *file, int least) {
    begin();
    if (!UNIT_CHECK(read_file(file, NULL))) return;
    UNIT_CHECK(list.count > 3 && *list.model);
    int compared = 0;
    for (int k = 0; k < list.count; k++) {
        const operation *o = &list.items[k];
        UNIT_CHECK(o->source != NULL);
        if (!o->rec.shape || strstr(o->id, "_r") || strstr(o->id, "_part")) continue;
        UNIT_TEXT(oprec_id(&o->rec, &a), o->id);
        compared++;
    }
    UNIT_CHECK(compared >= least);
    end();
}

static void stored_operations_keep_their_ids(void) {
    check_golden("tests/golden/transformer_block.ops.json", 10);
    check_golden("tests/golden/quantised_mlp.ops.json", 4);
    check_golden("tests/golden/small_conv.ops.json", 4);
    check_golden("tests/golden/control_flow.ops.json", 1);
}

static void what_cannot_be_measured_says_why(void) {
    begin();
    if (!UNIT_CHECK(read_file("tests/golden/quantised_mlp.ops.json", NULL))) return;
    int parts = 0, folded = 0, open = 0;
    for (int k = 0; k < list.count; k++) {
        const operation *o = &list.items[k];
        parts += o->count == 0 && o->skip_code == NULL; /* which --exhaustive measures */
        if (o->rec.what && strcmp(o->rec.what, "folded") == 0)
            folded += UNIT_CHECK(o->skip_code && strcmp(o->skip_code, "no_work") == 0);
        open += o->skip_code == NULL;
    }
    UNIT_CHECK(parts > 0 && folded > 0 && open > 0);
    end();
}

static void precision_fills_in_only(void) {
    const char entries[] =
        "{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [2, 3, 4], \"count\": 3},"
        "{\"id\": \"b\", \"op\": \"gemm\", \"shape\": [2, 3, 4], \"dtype\": \"fp16\", \"later\": [1]}";
    if (!UNIT_CHECK(read_entries(entries, "bf16"))) return;
    UNIT_INT(list.items[0].rec.type, DTYPE_BF16);
    UNIT_INT(list.items[1].rec.type, DTYPE_FP16);
    UNIT_INT(list.items[0].count, 3);
    UNIT_CHECK(strstr(operation_key(&list.items[1], &a), "later") == NULL);
    end();
}

/* What ops.json says of a node is said again, with the reason of the one that it follows from. */
static void an_unknown_shape_has_its_reason(void) {
    begin();
    UNIT_CHECK(
        read_text("{\"schema\": \"ceiling-scout/ops/1\", \"model\": {\"name\": \"m\"}, \"coverage\": {\"unresolved\": ["
                  "{\"node\": \"nz\", \"op_type\": \"NonZero\", \"why\": \"it depends on data\"},"
                  "{\"node\": \"mm\", \"op_type\": \"MatMul\", \"why\": \"follows from node 'tr'\"},"
                  "{\"node\": \"tr\", \"op_type\": \"Transpose\", \"why\": \"follows from node 'nz'\"},"
                  "{\"node\": \"me\", \"op_type\": \"Add\", \"why\": \"follows from node 'me'\"},"
                  "{\"node\": \"in\", \"op_type\": \"Add\", \"why\": \"follows from node 'lost'\"}, 7, {}]},"
                  "\"ops\": ["
                  "{\"id\": \"a\", \"op\": \"move\", \"what\": \"nonzero\", \"nodes\": [\"nz\"]},"
                  "{\"id\": \"b\", \"op\": \"gemm\", \"nodes\": [\"other\", \"mm\"]},"
                  "{\"id\": \"c\", \"op\": \"elementwise\", \"what\": \"add\", \"nodes\": [\"in\"]},"
                  "{\"id\": \"d\", \"op\": \"elementwise\", \"what\": \"add\"},"
                  "{\"id\": \"e\", \"op\": \"elementwise\", \"what\": \"add\", \"nodes\": [\"me\"]}]}",
                  NULL));
    static const char *const texts[] = {
        "its shape is not known: it depends on data",
        "its shape is not known: it follows from node 'nz': it depends on data",
        "its shape is not known: it follows from node 'lost'",
        "its shape is not known: where no data decide it, bind the model's dimensions and extract again",
        "its shape is not known: it follows from node 'me': follows from node 'me'", /* no file of ours; it ends */
    };
    UNIT_INT(list.count, 5);
    for (int k = 0; k < list.count && k < 5; k++) {
        UNIT_TEXT(list.items[k].skip_code, "unresolved");
        UNIT_TEXT(list.items[k].skip_text, texts[k]);
    }
    end();
}

static void empty_and_unresolved_are_skipped(void) {
    const char entries[] =
        "{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [0, 3, 4], \"dtype\": \"fp16\"},"
        "{\"id\": \"b\", \"op\": \"gemm\"}, {\"id\": \"c\", \"op\": \"unknown\", \"what\": \"Foo\", \"shape\": [1]},"
        "{\"id\": \"d\", \"op\": \"move\", \"what\": \"view\"},"
        "{\"id\": \"e\", \"op\": \"gemm\", \"shape\": [1, 2, 3]},"
        "{\"id\": \"f\", \"op\": \"softmax\", \"shape\": [35184372088832, 4], \"dtype\": \"fp16\"}";
    if (!UNIT_CHECK(read_entries(entries, NULL))) return;
    UNIT_TEXT(list.items[4].skip_code, "unresolved");
    UNIT_TEXT(list.items[5].skip_code, "no_candidate");
    UNIT_TEXT(list.items[0].skip_code, "no_work");
    UNIT_TEXT(list.items[1].skip_code, "unresolved");
    UNIT_TEXT(list.items[2].skip_code, "no_candidate");
    UNIT_TEXT(list.items[3].skip_code, "no_work");
    end();
}

/* The table of named dimensions holds all that the format has. */
static void every_named_dimension_is_read(void) {
    static const char *const members[] = {
        "id",           "op",         "what",          "shape", "layout", "mask",        "dtype",
        "weight_dtype", "out_dtype",  "region",        "times", "count",  "occurrences", "macs",
        "flops",        "bytes_read", "bytes_written", "parts", "nodes",  "weights"};
    status st;
    const char *name;
    json_t *schema = json_read("docs/schema/ops.schema.json", NULL, &st), *one;
    json_t *entry = json_object_get(json_object_get(schema, "$defs"), "entry");
    UNIT_CHECK(json_object_size(json_object_get(entry, "properties")) > 100);
    json_object_foreach(json_object_get(entry, "properties"), name, one) {
        bool member = false;
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) member = member || strcmp(members[k], name) == 0;
        if (!member && !operation_is_field(name)) unit_check(false, name, __FILE__, __LINE__);
    }
    json_decref(schema);
}

/* ---- block masks ---- */

static const char masked[] =
    "{\"dense\": {\"op\": \"attention\", \"shape\": [1, 8, 1024, 64]},"
    " \"local\": {\"op\": \"attention\", \"shape\": [1, 8, 1024, 64], \"block_mask\": \"local,0.250\"},"
    " \"under\": {\"op\": \"sdpa\", \"shape\": [1, 8, 1024, 64], \"causal\": true, \"block_mask\": \"random,0.1,128\"},"
    " \"again\": {\"op\": \"attention\", \"shape\": [1, 8, 1024, 64], \"mask\": \"causal+blocks\","
    " \"block_mask\": \"random,0.1,128,0\"},"
    " \"cross\": {\"op\": \"attention\", \"shape\": [1, 8, 64, 64], \"kv_len\": 6400, \"block_mask\": \"local,0.1\"}}";

static void block_masks_are_another_operation(void) {
    if (!UNIT_CHECK(read_text(masked, "fp16"))) return;
    const operation *dense = named("dense"), *local = named("local"), *under = named("under"), *cross = named("cross");
    UNIT_TEXT(dense->rec.mask, "none");
    UNIT_TEXT(local->rec.mask, "blocks");
    UNIT_TEXT(under->rec.mask, "causal+blocks");
    UNIT_TEXT(operation_key(local, &a), "attention;shape=1,8,1024,64;mask=blocks;type=fp16;block_mask=local,0.25,64;"
                                        "kv_heads=8;kv_len=1024");
    UNIT_TEXT(operation_key(under, &a), operation_key(named("again"), &a));
    UNIT_CHECK(local->rec.flops < dense->rec.flops / 3 && local->rec.macs == dense->rec.macs);
    UNIT_INT(local->rec.bytes_read, dense->rec.bytes_read); /* each key is near some query */
    UNIT_CHECK(cross->rec.bytes_read < 2 * 8 * (64 + 2 * 700) * 64);
    for (int k = 0; k < list.count; k++) {
        operation back;
        operation_from_key(operation_key(&list.items[k], &a), &a, &back);
        UNIT_TEXT(operation_key(&back, &a), operation_key(&list.items[k], &a));
    }
    end();
}

/* An entry of ops.json that got its block mask later still tells the work of a dense one. */
static void block_masks_in_ops_json(void) {
    const char entries[] = "{\"id\": \"a\", \"op\": \"attention\", \"shape\": [1, 8, 1024, 64], \"mask\": \"none\","
                           " \"dtype\": \"fp16\", \"kv_heads\": 8, \"kv_len\": 1024, \"macs\": 1073741824,"
                           " \"flops\": 2147483648, \"bytes_read\": 3145728, \"block_mask\": \"local,0.25\"}";
    if (!UNIT_CHECK(read_entries(entries, NULL))) return;
    UNIT_TEXT(list.items[0].rec.mask, "blocks");
    UNIT_INT(list.items[0].rec.macs, 1073741824);
    UNIT_CHECK(list.items[0].rec.flops < 2147483648 / 3);
    UNIT_INT(list.items[0].rec.bytes_read, 3145728 / 3 * 3);
    end();
    /* few queries: most keys are not read, and bytes are those of the short form */
    const char few[] = "{\"id\": \"a\", \"op\": \"attention\", \"shape\": [1, 8, 1, 64], \"mask\": \"none\","
                       " \"dtype\": \"fp32\", \"kv_heads\": 8, \"kv_len\": 100000, \"macs\": 1, \"flops\": 2,"
                       " \"bytes_read\": 409602048, \"block_mask\": \"random,0.02\"}";
    if (!UNIT_CHECK(read_entries(few, NULL))) return;
    const int64_t read = list.items[0].rec.bytes_read;
    UNIT_CHECK(read > 2048 && read < 409602048 / 40);
    end();
    if (!UNIT_CHECK(read_text("{\"a\": {\"op\": \"attention\", \"shape\": [1, 8, 1, 64], \"dtype\": \"fp32\","
                              " \"kv_len\": 100000, \"block_mask\": \"random,0.02\"}}",
                              NULL)))
        return;
    UNIT_INT(list.items[0].rec.bytes_read, read);
    end();
}

/* ---- between processes ---- */

static void round_trip(const operation *o) {
    json_builder b = {NULL};
    operation back;
    json_t *json = operation_to_json(o, &b);
    UNIT_CHECK(json != NULL && b.why == NULL);
    char *text = json_dumps(json, JSON_COMPACT); /* as it goes over the wire */
    json_decref(json);
    json = json_loads(text ? text : "", 0, NULL);
    free(text);
    operation_from_json(json, &a, &back);
    json_decref(json);
    UNIT_TEXT(operation_key(&back, &a), operation_key(o, &a));
    UNIT_TEXT(back.id, o->id);
    UNIT_TEXT(back.name, o->name);
    UNIT_INT(back.count, o->count);
    UNIT_INT(back.rec.flops, o->rec.flops);
    UNIT_INT(back.rec.bytes_read, o->rec.bytes_read);
    UNIT_TEXT(back.pattern, o->pattern);
    UNIT_CHECK((back.skip_code == NULL) == (o->skip_code == NULL));
}

static void operations_travel_whole(void) {
    static const char *const files[] = {"tests/golden/transformer_block.ops.json",
                                        "tests/golden/quantised_mlp.ops.json", "tests/golden/small_conv.ops.json"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        begin();
        if (!UNIT_CHECK(read_file(files[f], NULL))) return;
        for (int k = 0; k < list.count; k++) round_trip(&list.items[k]);
        end();
    }
    static const char *const texts[] = {block, masked};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        if (!UNIT_CHECK(read_text(texts[t], "int4"))) return;
        for (int k = 0; k < list.count; k++) round_trip(&list.items[k]);
        end();
    }
}

static bool parse_job(const char *text) {
    operation back;
    json_t *json = json_loads(text, 0, NULL);
    begin();
    const bool good = guard_enter(&g);
    if (good) operation_from_json(json, &a, &back);
    json_decref(json);
    return good;
}

static void damaged_jobs_are_refused(void) {
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"id\": \"x\"}",
        "{\"id\": \"x\", \"op\": \"gemm\", \"shape\": [1, 2]}",
        "{\"id\": \"x\", \"op\": \"gemm\", \"shape\": [1, 2, -3]}",
        "{\"id\": 5, \"op\": \"gemm\"}",
        "{\"id\": \"x\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"layout\": \"n\"}",
        "{\"id\": \"x\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"fields\": {\"batch\": \"many\"}}",
        "{\"id\": \"x\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"fields\": {\"block_mask\": \"local,0.5,64\"}}"};
    static const char *const masks[][2] = {
        {"blocks", "{}"},
        {"causal+blocks", "{\"kv_len\": 7}"},
        {"none", "{\"block_mask\": \"local,0.5,64\"}"},
        {"blocks", "{\"block_mask\": \"local,0.5\"}"}, /* not as it is written */
        {"blocks", "{\"block_mask\": 7}"},
        {"blocks", "{\"block_mask\": \"local,0.5,64\", \"kv_len\": 1000000}"},
    };
    for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"id\": \"x\", \"op\": \"attention\", \"shape\": [1, 2, 3, 4], \"mask\": \"%s\", \"fields\": %s}",
                 masks[k][0], masks[k][1]);
        if (!UNIT_CHECK(!parse_job(text))) printf("  %s\n", text);
        end();
    }
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        if (!UNIT_CHECK(!parse_job(texts[k]))) printf("  %s\n", texts[k]);
        end();
    }
}

int main(void) {
    UNIT_RUN(a_table_is_stored);
    UNIT_RUN(a_transformer_block);
    UNIT_RUN(what_stands_behind_a_product_is_read);
    UNIT_RUN(a_mask_is_as_large_as_is_read);
    UNIT_RUN(what_a_convolution_reads);
    UNIT_RUN(what_is_written);
    UNIT_RUN(fp32_unless_said);
    UNIT_RUN(names_that_are_no_file_names);
    UNIT_RUN(sparsity_and_patterns);
    UNIT_RUN(precisions_of_words);
    UNIT_RUN(tf32_has_a_key_of_its_own);
    UNIT_RUN(stored_operations_keep_their_ids);
    UNIT_RUN(what_cannot_be_measured_says_why);
    UNIT_RUN(precision_fills_in_only);
    UNIT_RUN(an_unknown_shape_has_its_reason);
    UNIT_RUN(empty_and_unresolved_are_skipped);
    UNIT_RUN(every_named_dimension_is_read);
    UNIT_RUN(block_masks_are_another_operation);
    UNIT_RUN(block_masks_in_ops_json);
    UNIT_RUN(operations_travel_whole);
    UNIT_RUN(damaged_jobs_are_refused);
    return unit_end();
}
