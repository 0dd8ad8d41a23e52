/* Dataflow as it is read: what contradicts the operations is refused, and by hand names make it. */
#include "tests/unit/scout/operation_fixture.h"

/* x [2,3] -> relu -> t [3,2] as a transpose of it, and r [6] as a free view; s = r + w. */
static const char ops[] =
    "{\"id\": \"relu\", \"op\": \"elementwise\", \"what\": \"relu\", \"shape\": [2, 3], \"dtype\": \"fp32\", "
    "\"nodes\": [\"n0\"]},"
    "{\"id\": \"turn\", \"op\": \"move\", \"what\": \"transpose\", \"shape\": [3, 2], \"dtype\": \"fp32\", "
    "\"nodes\": [\"n1\"]},"
    "{\"id\": \"view\", \"op\": \"move\", \"what\": \"view\", \"occurrences\": 2, \"nodes\": [\"n2\", \"n3\"]},"
    "{\"id\": \"add\", \"op\": \"elementwise\", \"what\": \"add\", \"shape\": [6], \"dtype\": \"fp32\", "
    "\"nodes\": [\"n4\"]},"
    "{\"id\": \"part\", \"op\": \"softmax\", \"shape\": [2, 3], \"count\": 0, \"nodes\": [\"n5\"]}";
static const char memory[] = "{\"weights\": 24, \"activations\": 72, \"at\": 2, \"unsized\": 0}";
static const char *const tensors[] = {
    "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 0, 1]",
    "[\"y\", \"activation\", \"fp32\", [2, 3], 0, 0, 2, 1]",
    "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1, 0, [1, 3]]",
    "[\"r\", \"activation\", \"fp32\", [6], -1, 0, 2, 1, 1]",
    "[\"w\", \"weight\", \"fp32\", [6], -1, 0, 2, 1]",
    "[\"s\", \"output\", \"fp32\", [6], 2, 2, 2, 0]",
};
static const char *const occurrences[] = {"[0, 0, 0, 1, [0], [1], [0, 1]]", "[1, 0, 0, 1, [1], [2]]",
                                          "[3, 0, 0, 1, [3, 4], [5], [-1, 4, 5]]"};
enum { TENSORS = sizeof tensors / sizeof *tensors, OCCURRENCES = sizeof occurrences / sizeof *occurrences };

static size_t put(char *to, size_t room, size_t at, const char *text) {
    return at + (size_t)snprintf(to + at, room - at, "%s", text);
}

static size_t put_rows(char *to, size_t room, size_t at, const char *const *rows, int count, int which,
                       const char *row) {
    for (int k = 0; k < count; k++) {
        at = put(to, room, at, k ? ", " : "");
        at = put(to, room, at, k == which ? row : rows[k]);
    }
    return at;
}

/* The list above, in which one tensor or occurrence is another one. */
static bool read_graph(const char *mem, int tensor, const char *tensor_row, int occurrence,
                       const char *occurrence_row) {
    char text[4096];
    const size_t room = sizeof text;
    size_t at = put(text, room, 0, "{\"schema\": \"ceiling-scout/ops/1\", \"model\": {\"name\": \"m\"}, \"ops\": [");
    at = put(text, room, at, ops);
    at = put(text, room, at, "], \"graph\": {\"memory\": ");
    at = put(text, room, at, mem);
    at = put(text, room, at, ", \"later\": [1, {\"a\": 2}], \"tensors\": [");
    at = put_rows(text, room, at, tensors, TENSORS, tensor, tensor_row);
    at = put(text, room, at, "], \"occurrences\": [");
    at = put_rows(text, room, at, occurrences, OCCURRENCES, occurrence, occurrence_row);
    put(text, room, at, "], \"cuts\": []}}");
    return read_text(text, NULL);
}

/* At occurrence 1: y is 24 bytes and is read through r later, t is 24, and at 0 x and y; at 2 y, t and s. */
static void memory_is_that_of_the_busiest_occurrence(void) {
    UNIT_CHECK(read_graph(memory, -1, NULL, -1, NULL));
    UNIT_CHECK(list.memory.known && !list.memory.least);
    UNIT_INT(list.memory.weight_bytes, 24);
    UNIT_INT(list.memory.activation_bytes, 72);
    UNIT_TEXT(list.memory.at, "n4");
    end();
}

static void same_flow(const operation_flow *f) {
    UNIT_INT(f->tensor_count, TENSORS);
    UNIT_INT(f->occurrence_count, OCCURRENCES);
    UNIT_INT(f->edge_count, 7);
    UNIT_INT(f->tensors[3].source, 1);
    UNIT_INT(f->tensors[2].source, -1); /* a copy has memory of its own */
    UNIT_CHECK(f->tensors[4].constant && !f->tensors[1].constant && f->tensors[3].lie == 0);
    UNIT_INT(f->tensors[1].bytes, 24);
    UNIT_INT(f->tensors[1].to, 2);
    UNIT_INT(f->occurrences[2].operation, 3);
    UNIT_INT(f->occurrences[2].times, 1);
    UNIT_INT(f->occurrences[2].made - f->occurrences[2].read, 2);
    UNIT_INT(f->edges[f->occurrences[2].read + 1], 4);
    UNIT_INT(f->edges[f->occurrences[2].made], 5);
    UNIT_INT(f->occurrences[1].operand_count, 0); /* an older file tells none */
    UNIT_INT(f->occurrences[2].operand_count, 3);
    UNIT_INT(f->operands[f->occurrences[2].operands], -1);
    UNIT_INT(f->operands[f->occurrences[2].operands + 2], 5);
}

static operation_flow *flow_from(const json_t *o) {
    if (!guard_enter(&g)) return NULL;
    return operation_flow_from_json(o, list.count, &a);
}

static void the_flow_goes_to_a_worker(void) {
    json_builder b = {NULL};
    status st;
    UNIT_CHECK(read_graph(memory, -1, NULL, -1, NULL));
    UNIT_INT(list.flow->cuts, 0);
    same_flow(list.flow);
    json_t *wire = json_finish(&b, operation_flow_to_json(list.flow, &b), &st);
    const operation_flow *back = flow_from(wire);
    if (UNIT_CHECK(back != NULL)) same_flow(back);
    json_t *row = json_array_get(json_object_get(wire, "occurrences"), 2);
    json_array_set_new(row, 0, json_integer(list.count)); /* no such operation */
    UNIT_CHECK(flow_from(wire) == NULL);
    json_array_set_new(row, 0, json_integer(0));
    json_array_set_new(row, 5, json_integer(8)); /* beyond all edges */
    UNIT_CHECK(flow_from(wire) == NULL);
    json_decref(wire);
    end();
}

static void a_view_that_repeats_is_no_block(void) {
    static const struct {
        const char *row;
        int64_t lie;
    } views[] = {{"[\"r\", \"activation\", \"fp32\", [2, 3], -1, 0, 2, 1, 1, 0, [3, 1]]", 0},
                 {"[\"r\", \"activation\", \"fp32\", [1, 6], -1, 0, 2, 1, 1, 0, [0, 1]]", 0},
                 {"[\"r\", \"activation\", \"fp32\", [2, 3], -1, 0, 2, 1, 1, 0, [0, 1]]", OPERATION_LIE_REPEATED},
                 {"[\"r\", \"activation\", \"fp32\", [6], -1, 0, 2, 1, 1, 0, [0]]", OPERATION_LIE_REPEATED}};
    for (size_t k = 0; k < sizeof views / sizeof *views; k++) {
        if (UNIT_CHECK(read_graph(memory, 3, views[k].row, -1, NULL)))
            UNIT_INT(list.flow->tensors[3].lie, views[k].lie);
        end();
    }
}

static void refuse_graph(const char *mem, int tensor, const char *tensor_row, int occurrence,
                         const char *occurrence_row, const char *says) {
    UNIT_CHECK(!read_graph(mem, tensor, tensor_row, occurrence, occurrence_row));
    UNIT_INT(g.st.code, STATUS_INPUT);
    if (!strstr(g.st.text, says)) unit_same_text(g.st.text, says, __FILE__, __LINE__);
    end();
}

static void tensors_that_contradict_are_refused(void) {
    static const struct {
        int which;
        const char *row, *says;
    } rows[] = {
        {0, "5", "tensor 0: it is not a list"},
        {0, "[\"x\", \"guest\", \"fp32\", [2, 3], -1, 0, 0, 1]", "tensor 0: its kind is not input, weight"},
        {0, "[\"x\", \"input\", \"fp33\", [2, 3], -1, 0, 0, 1]", "dtype fp33"},
        {0, "[\"x\", \"input\", \"fp32\", [2, -3], -1, 0, 0, 1]", "dimension is -3"},
        {0, "[\"x\", \"input\", \"fp32\", [2, 3], 0, 0, 0, 1]", "no occurrence can make what is input"},
        {0, "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 1, 1]", "tensor 0: it is needed until occurrence 0, not 1"},
        {0, "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 0, 2]", "tensor 0: it has 1 readers, not 2"},
        {0, "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 0, 1, 0]", "its source is 0, but must be 0 to -1"},
        {1, "[\"y\", \"activation\", \"fp32\", [2, 3], 1, 0, 2, 1]",
         "occurrence 0: it makes tensor 1, whose producer is 1"},
        {1, "[\"y\", \"activation\", \"fp32\", [2, 3], 0, 0, 1, 1]",
         "tensor 1: it is needed until occurrence 2, not 1"},
        {1, "[\"y\", \"activation\", \"fp32\", [2, 4], 0, 0, 2, 1]",
         "tensor 3: it has 6 elements, and its source 1 has 8"},
        {1, "[\"y\", \"activation\", \"fp32\", [2, 3], -1, 0, 2, 1]", "tensor 1: no occurrence makes it"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 1, 0, 1, 0, [1, 3]]",
         "tensor 2: it is needed until occurrence 2"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1, 0, [1, 4]]",
         "from element 0 to 6, outside of its source's 6"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1, 1, [1, 3]]", "from element 1 to 6"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1, 1, [-1, 3]]", "from element -1 to 4"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1, 0, [1]]", "its stride is not a whole number"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1, 0, [1, 3, 1]]", "more strides than dimensions"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 1, 2, 0, 1]", "is a view without strides"},
        {2, "[\"t\", \"output\", \"fp32\", [3, 2], 1, 0, 2, 0, 1, 0, [1, 3]]", "said to be needed from 0"},
        {3, "[\"r\", \"activation\", \"fp16\", [6], -1, 0, 2, 1, 1]",
         "tensor 3: its dtype is not that of its source 1"},
        {3, "[\"r\", \"activation\", \"fp32\", [6], -1, 0, 2, 1, 1, 0, [1], 7]", "more behind it than a view has"},
        {4, "[\"w\", \"weight\", \"fp32\", [6], -1, 0, 2, 1, 3]", "tensor 4: its source 3 is a view itself"},
        {4, "[\"w\", \"weight\", \"fp32\", [6], -1, 1, 2, 1]", "tensor 4: it is there from the beginning"},
        {5, "[\"s\", \"output\", \"fp32\", [5], 2, 2, 2, 0]",
         "none of the tensors that it makes is as large as the shape of add"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        refuse_graph(memory, rows[k].which, rows[k].row, -1, NULL, rows[k].says);
}

static void occurrences_that_contradict_are_refused(void) {
    static const struct {
        int which;
        const char *row, *says;
    } rows[] = {
        {0, "[9, 0, 0, 1, [0], [1]]", "its operation is 9, but must be 0 to 4"},
        {0, "[0, 1, 0, 1, [0], [1]]", "its place is 1, but must be 0 to 0"},
        {0, "[0, 0, 1, 1, [0], [1]]", "its first node is 1"},
        {0, "[0, 0, 0, 2, [0], [1]]", "its number of nodes is 2"},
        {0, "[0, 0, 0, 1, [6], [1]]", "its tensor is 6, but must be 0 to 5"},
        {0, "[0, 0, 0, 1, [5], [1]]", "it reads tensor 5, which occurrence 2 makes: one later"},
        {0, "[0, 0, 0, 1, [1], [1]]", "or itself"},
        {0, "[0, 0, 0, 1, [0], [1, 1]]", "it makes tensor 1 twice"},
        {0, "[4, 0, 0, 1, [0], [1]]", "part never runs: its count is 0"},
        {1, "[0, 0, 0, 1, [1], [2]]", "place 0 of relu stands there before"},
        {1, "[2, 0, 0, 1, [1], [2]]", "turn has 1 occurrences, 0 of them stand there"},
        {1, "[1, 0, 0, 1, [1], []]", "tensor 2: occurrence 1, its producer, does not make it"},
        {0, "[0, 0, 0, 1, [0], [1], [2, 1]]", "its operand 2 is no tensor that it reads or makes"},
        {0, "[0, 0, 0, 1, [0], [1], [-2]]", "its operand is -2, but must be -1 to 5"},
        {0, "[0, 0, 0, 1, [0], [1], [0, 1], 3]", "more behind it than an occurrence has"},
        {1, "[1, 0, 0, 1, [1], [2], 3]", "more behind it than an occurrence has"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        refuse_graph(memory, -1, NULL, rows[k].which, rows[k].row, rows[k].says);
}

static void stated_memory_must_be_right(void) {
    refuse_graph("{\"weights\": 20, \"activations\": 72, \"at\": 2, \"unsized\": 0}", -1, NULL, -1, NULL,
                 "memory: the weights take 24, not 20");
    refuse_graph("{\"weights\": 24, \"activations\": 48, \"at\": 2, \"unsized\": 0}", -1, NULL, -1, NULL,
                 "memory: the activations take at most 72, not 48");
    refuse_graph("{\"weights\": 24, \"activations\": 72, \"at\": 1, \"unsized\": 0}", -1, NULL, -1, NULL,
                 "memory: that is at occurrence 2, not 1");
}

static void a_graph_is_whole(void) {
    static const struct {
        const char *graph, *says;
    } rows[] = {
        {"5", "graph is not an object"},
        {"{}", "graph is not an object"},
        {"{\"cuts\": []}", "it lacks tensors, occurrences or memory"},
        {"{\"occurrences\": []}", "memory and tensors must stand before occurrences"},
        {"{\"tensors\": [], \"tensors\": []}", "each once"},
        {"{\"tensors\": [01]}", "graph: tensor 0"},
        {"{\"later\": [[[[[[[[[1]]]]]]]]]}", "nested"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[512];
        snprintf(text, sizeof text, "{\"schema\": \"ceiling-scout/ops/1\", \"ops\": [], \"graph\": %s}", rows[k].graph);
        refused(text, NULL, STATUS_INPUT, rows[k].says);
    }
}

static void a_file_without_a_graph_is_read(void) {
    UNIT_CHECK(read_entries(ops, NULL) && !list.memory.known);
    end();
}

/* ---- by hand ---- */

#define GEMM(name, m, n, k, inputs)                                                                                    \
    "\"" name "\": {\"op\": \"gemm\", \"shape\": [" #m ", " #n ", " #k "], \"inputs\": [" inputs "]}"

/* In the order in which they can run, whatever that of the file; x is 16 x 32, h is needed until the sum. */
static void names_make_dataflow(void) {
    UNIT_CHECK(read_text(
        "{\"sum\": {\"op\": \"elementwise\", \"what\": \"add\", \"shape\": [16, 32], "
        "\"inputs\": [\"x\", \"down\"]}, " GEMM("down", 16, 32, 64, "\"up\"") ", " GEMM("up", 16, 64, 32, "\"x\"") "}",
        "fp32"));
    UNIT_CHECK(list.memory.known && !list.memory.least);
    UNIT_INT(list.memory.weight_bytes, 2 * 64 * 32 * 4);
    UNIT_INT(list.memory.activation_bytes, 4 * (16 * 32 + 16 * 64 + 16 * 32));
    UNIT_TEXT(list.memory.at, "down");
    const opfield *f = oprec_field(&named("sum")->rec, "inputs");
    UNIT_CHECK(f && f->kind == OPFIELD_TEXT);
    if (f) UNIT_TEXT(f->text, "tensor,tensor");
    UNIT_INT(named("sum")->rec.bytes_read, 2 * 16 * 32 * 4);
    UNIT_CHECK(!oprec_field(&named("up")->rec, "inputs"));
    end();
}

static void a_size_that_nothing_tells_is_said(void) {
    UNIT_CHECK(read_text("{" GEMM("up", 16, 64, 32, "\"x\", \"y\"") "}", "fp32"));
    UNIT_CHECK(list.memory.known && list.memory.least);
    end();
}

static void names_that_make_none_are_refused(void) {
    refused("{" GEMM("a", 16, 64, 32, "\"b\"") ", " GEMM("b", 16, 32, 64, "\"a\"") "}", "fp32", STATUS_INPUT,
            "its inputs lead back to itself");
    refused("{" GEMM("a", 16, 64, 32, "\"a\"") "}", "fp32", STATUS_INPUT, "a: its inputs lead back to itself");
    refused("{" GEMM("a", 16, 64, 32, "\"x\"") ", " GEMM("b", 16, 32, 128, "\"a\"") "}", "fp32", STATUS_INPUT,
            "b: it reads 2048 elements of its inputs, which have 1024");
    refused("{" GEMM("a", 16, 64, 32, "\"x\"") ", \"b\": {\"op\": \"gemm\", \"shape\": [16, 32, 64]}}", "fp32",
            STATUS_INPUT, "b: its inputs have no names");
    refused("{" GEMM("a", 16, 64, 32, "\"x\", 3") "}", "fp32", STATUS_INPUT, "a: inputs must be the names");
    refused(
        "{" GEMM("a", 16, 64, 32, "\"x\"") ", \"b\": {\"op\": \"elementwise\", \"what\": \"add\", \"shape\": [16, 32], "
                                           "\"inputs\": [\"x\", \"a\"]}}",
        "fp32", STATUS_INPUT, "b: its input a has 1024 elements: neither 512");
}

int main(void) {
    UNIT_RUN(memory_is_that_of_the_busiest_occurrence);
    UNIT_RUN(the_flow_goes_to_a_worker);
    UNIT_RUN(a_view_that_repeats_is_no_block);
    UNIT_RUN(tensors_that_contradict_are_refused);
    UNIT_RUN(occurrences_that_contradict_are_refused);
    UNIT_RUN(stated_memory_must_be_right);
    UNIT_RUN(a_graph_is_whole);
    UNIT_RUN(a_file_without_a_graph_is_read);
    UNIT_RUN(names_make_dataflow);
    UNIT_RUN(a_size_that_nothing_tells_is_said);
    UNIT_RUN(names_that_make_none_are_refused);
    return unit_end();
}
