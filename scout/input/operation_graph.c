/* Owns the reading of `graph` (docs/formats.md): its tensors, the occurrences in order, and whether they can be what
 * the operations say. It is scanned and not made into a tree, because it is as large as the model's graph. A plan that
 * relied on dataflow that contradicts itself would overwrite what is still needed, so nothing is believed that can be
 * checked. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"
#include "common/json_scan.h"
#include "common/liveness.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_TENSORS = 1000000, MOST_OCCURRENCES = 1000000, MOST_EDGES = 4000000, DEPTH = 8 };

static const char *const kind_names[] = {"input", "weight", "constant", "state", "activation", "output", "assumed"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

typedef struct graph_tensor {
    int64_t elements; /* -1: its dims are not known */
    int64_t offset;   /* of a view, in elements */
    int producer, from, to, readers, source;
    int last, reads; /* found: its last reader, views of it included, and how many read it itself */
    uint8_t kind, type;
    bool made, kept; /* found: by its producer; a view of it is an output */
    int64_t lie;     /* found: how its strides lie; 0: side by side */
} graph_tensor;

typedef struct graph_reader {
    operation_reader *r;
    operation_list *list;
    json_scan scan;
    const char *part; /* "tensor", "occurrence" */
    int row;          /* that is being read */
    graph_tensor *tensors;
    size_t tensor_count, tensor_cap, edge_count, edge_cap, occurrence_cap, operand_count, operand_cap;
    int occurrence_count, cuts;
    operation_told *told; /* by tensor */
    operation_number_told *numbers;
    operation_formed *formed;
    const char *unmade;
    size_t told_cap, number_count, number_cap, formed_count, formed_cap;
    int *edges, *operands;
    operation_occurrence *occurrences;
    int64_t *begins;    /* by operation: where its places begin among all places; one more at the end */
    uint8_t *taken;     /* by place: an occurrence stands for it */
    int64_t memory[4];  /* as stated: weights, activations, at, unsized */
    int at_op, at_node; /* of the occurrence that `at` names; -1: none does */
    bool has_tensors, has_occurrences, has_memory;
} graph_reader;

#define REFUSE(g, ...)                                                                                                 \
    operation_fail((g)->r, "graph: %s %d: %s", (g)->part, (g)->row, arena_printf((g)->r->arena, __VA_ARGS__))

/* ---- tokens ---- */

static json_scan_token next(graph_reader *g) {
    const json_scan_token token = json_scan_next(&g->scan);
    if (token == JSON_SCAN_WRONG) operation_fail(g->r, "graph: %s %d: %s", g->part, g->row, g->scan.why);
    if (token == JSON_SCAN_END) operation_fail(g->r, "graph: it ends too early");
    return token;
}

static void want(graph_reader *g, json_scan_token wanted, const char *what) {
    if (next(g) != wanted) REFUSE(g, "%s", what);
}

/* A whole number within bounds. */
static int64_t number(graph_reader *g, json_scan_token token, int64_t least, int64_t most, const char *what) {
    const int64_t x = token == JSON_SCAN_INT ? json_scan_int(&g->scan) : -1;
    if (token != JSON_SCAN_INT) REFUSE(g, "its %s is not a whole number", what);
    if (x < least || x > most)
        REFUSE(g, "its %s is %" PRId64 ", but must be %" PRId64 " to %" PRId64, what, x, least, most);
    return x;
}

static int next_number(graph_reader *g, int least, int most, const char *what) {
    return (int)number(g, next(g), least, most, what);
}

static bool is_text(const graph_reader *g, const char *text) {
    return g->scan.length == strlen(text) && memcmp(g->scan.text, text, g->scan.length) == 0;
}

/* ---- tensors ---- */

static uint8_t read_tensor_kind(graph_reader *g) {
    want(g, JSON_SCAN_TEXT, "its kind is not a text");
    for (int k = 0; k < KINDS; k++)
        if (is_text(g, kind_names[k])) return (uint8_t)k;
    REFUSE(g, "its kind is not input, weight, constant, state, activation, output or assumed");
}

static uint8_t read_tensor_type(graph_reader *g) {
    char name[32];
    const json_scan_token token = next(g);
    if (token == JSON_SCAN_NULL) return DTYPE_NONE;
    if (token != JSON_SCAN_TEXT || g->scan.length >= sizeof name) REFUSE(g, "its dtype is not the name of one");
    memcpy(name, g->scan.text, g->scan.length);
    name[g->scan.length] = '\0';
    const dtype type = dtype_from_name(name);
    if (type == DTYPE_NONE) REFUSE(g, "its dtype %s is not known", name);
    return (uint8_t)type;
}

/* How many there are; -1: they are not known. */
static int read_dims(graph_reader *g, int64_t *dims) {
    json_scan_token token = next(g);
    int rank = 0;
    if (token == JSON_SCAN_NULL) return -1;
    if (token != JSON_SCAN_ARRAY) REFUSE(g, "its dims are not a list");
    while ((token = next(g)) != JSON_SCAN_ARRAY_END) {
        if (rank == OPERATION_MAX_RANK) REFUSE(g, "it has more than %d dimensions", (int)OPERATION_MAX_RANK);
        dims[rank++] = number(g, token, 0, INT64_MAX, "dimension");
    }
    return rank;
}

static int64_t count_elements(int rank, const int64_t *dims) {
    int64_t n = rank < 0 ? -1 : 1;
    for (int k = 0; k < rank; k++) {
        if (dims[k] == 0) return 0;
        n = checked_mul(n, dims[k]);
    }
    return n;
}

/* Offset and strides: the first and the last element that they reach lie in the source. */
static void read_strides(graph_reader *g, const graph_tensor *source, graph_tensor *t, int rank, const int64_t *dims) {
    int64_t strides[OPERATION_MAX_RANK], first = t->offset, last = first;
    bool repeats = false;
    want(g, JSON_SCAN_ARRAY, "its strides are not a list");
    if (rank < 0 || source->elements < 0)
        REFUSE(g, "it is a view by strides, but its dims or its source's are not known");
    for (int k = 0; k < rank; k++) {
        const int64_t stride = strides[k] = number(g, next(g), -INT64_MAX, INT64_MAX, "stride");
        const int64_t reach = dims[k] > 0 ? checked_mul(dims[k] - 1, stride) : 0;
        first = checked_add(first, reach < 0 ? reach : 0);
        last = checked_add(last, reach > 0 ? reach : 0);
        repeats = repeats || (stride == 0 && dims[k] > 1);
    }
    want(g, JSON_SCAN_ARRAY_END, "it has more strides than dimensions");
    if (first < 0 || last >= source->elements)
        REFUSE(g, "as a view it reaches from element %" PRId64 " to %" PRId64 ", outside of its source's %" PRId64,
               first, last, source->elements);
    t->lie = operation_lie(rank, dims, strides);
    if (t->lie == 0 && repeats) t->lie = OPERATION_LIE_REPEATED;
}

static bool is_alias(const graph_tensor *t) { return t->source >= 0 && t->producer < 0; }

/* Its source stands before it, and has memory of its own: so there is no circle. */
static void read_view(graph_reader *g, json_scan_token token, graph_tensor *t, int rank, const int64_t *dims) {
    t->source = (int)number(g, token, 0, (int64_t)g->tensor_count - 1, "source");
    const graph_tensor *source = &g->tensors[t->source];
    if (is_alias(source)) REFUSE(g, "its source %d is a view itself", t->source);
    if (source->type != t->type) REFUSE(g, "its dtype is not that of its source %d", t->source);
    token = next(g);
    if (token != JSON_SCAN_ARRAY_END) {
        t->offset = number(g, token, 0, INT64_MAX, "offset");
        read_strides(g, source, t, rank, dims);
        token = next(g);
    } else if (t->producer >= 0) {
        REFUSE(g, "it is made by occurrence %d, and is a view without strides", t->producer);
    } else if (t->elements != source->elements) {
        REFUSE(g, "it has %" PRId64 " elements, and its source %d has %" PRId64, t->elements, t->source,
               source->elements);
    }
    if (token != JSON_SCAN_ARRAY_END) REFUSE(g, "there is more behind it than a view has");
}

/* Of what a caller gives and gets; nothing else has a name outside. */
static void tell(graph_reader *g, const graph_tensor *t, const char *name, int rank, const int64_t *dims) {
    operation_told told = {
        .use = (operation_use)t->kind, .name = name, .rank = rank, .source = t->source, .offset = t->offset};
    int64_t *kept = arena_array(g->r->arena, int64_t, rank > 0 ? rank : 0);
    for (int d = 0; d < rank; d++) kept[d] = dims[d];
    told.dims = kept;
    arena_grow(g->r->arena, (void **)&g->told, &g->told_cap, g->tensor_count, sizeof *g->told);
    g->told[g->tensor_count] = told;
}

static void read_tensor(graph_reader *g) {
    int64_t dims[OPERATION_MAX_RANK];
    graph_tensor t = {.source = -1, .last = -1};
    want(g, JSON_SCAN_TEXT, "its name is not a text");
    const char *name = g->r->whole ? arena_strndup(g->r->arena, g->scan.text, g->scan.length) : "";
    t.kind = read_tensor_kind(g);
    t.type = read_tensor_type(g);
    const int rank = read_dims(g, dims);
    t.elements = count_elements(rank, dims);
    t.producer = next_number(g, -1, MOST_OCCURRENCES, "producer");
    t.from = next_number(g, 0, MOST_OCCURRENCES, "first occurrence");
    t.to = next_number(g, -1, MOST_OCCURRENCES, "last occurrence");
    t.readers = next_number(g, 0, MOST_OCCURRENCES, "number of readers");
    const json_scan_token token = next(g);
    if (token != JSON_SCAN_ARRAY_END) read_view(g, token, &t, rank, dims);
    const bool needs = t.kind == OPERATION_OUTPUT || t.kind == OPERATION_ACTIVATION;
    if (!needs && t.producer >= 0) REFUSE(g, "no occurrence can make what is %s", kind_names[t.kind]);
    if (needs && t.producer < 0 && t.source < 0) REFUSE(g, "no occurrence makes it");
    if (t.kind == OPERATION_OUTPUT && is_alias(&t)) g->tensors[t.source].kept = true;
    if (g->r->whole) tell(g, &t, name, rank, dims);
    arena_grow(g->r->arena, (void **)&g->tensors, &g->tensor_cap, g->tensor_count, sizeof *g->tensors);
    g->tensors[g->tensor_count++] = t;
}

/* ---- occurrences ---- */

/* Where the places of each operation begin among all places. */
static void count_places(graph_reader *g) {
    const operation_list *list = g->list;
    g->begins = arena_array(g->r->arena, int64_t, list->count + 1);
    for (int k = 0; k < list->count; k++) {
        const operation *o = &list->items[k];
        const int64_t places = operation_number(g->r, o->source, "occurrences", 1, INT64_MAX, 1);
        g->begins[k + 1] = checked_add(g->begins[k], o->count > 0 ? places : 0);
    }
    if (g->begins[list->count] > MOST_OCCURRENCES)
        operation_fail(g->r, "graph: the operations have more than %d occurrences", MOST_OCCURRENCES);
    g->taken = arena_array(g->r->arena, uint8_t, g->begins[list->count]);
}

static void take_place(graph_reader *g, int op, int place) {
    uint8_t *taken = &g->taken[g->begins[op] + place];
    if (*taken) REFUSE(g, "place %d of %s stands there before", place, g->list->items[op].id);
    *taken = 1;
}

static void read_edge(graph_reader *g, int index) {
    graph_tensor *t = &g->tensors[index], *under = is_alias(t) ? &g->tensors[t->source] : t;
    if (under->producer >= g->row)
        REFUSE(g, "it reads tensor %d, which occurrence %d makes: one later than itself, or itself", index,
               under->producer);
    t->reads++;
    t->last = under->last = g->row;
}

/* What a loop or a branch makes is there from the beginning of its body. */
static void make_edge(graph_reader *g, int index, const operation *o) {
    graph_tensor *t = &g->tensors[index];
    const bool control = o->rec.kind == OP_MOVE && o->rec.what && strcmp(o->rec.what, "control") == 0;
    if (t->producer != g->row) REFUSE(g, "it makes tensor %d, whose producer is %d", index, t->producer);
    if (t->made) REFUSE(g, "it makes tensor %d twice", index);
    if (t->from > g->row || (t->from < g->row && !control))
        REFUSE(g, "it makes tensor %d, which is said to be needed from %d", index, t->from);
    t->made = true;
    if (t->last < g->row) t->last = g->row;
}

/* How many elements one of its outputs must have; less than 1: its shape does not say it. */
static int64_t shape_elements(const oprec *rec) {
    static const op_kind outputs[] = {OP_CONV, OP_ELEMENTWISE, OP_NORM, OP_POOL, OP_SOFTMAX};
    if (!rec->shape) return -1;
    if (rec->kind == OP_GEMM && !rec->what && rec->rank == 3)
        return checked_mul(oprec_int(rec, "batch", 1), checked_mul(rec->shape[0], rec->shape[1]));
    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++)
        if (outputs[k] == rec->kind) return count_elements(rec->rank, rec->shape);
    return -1;
}

static void read_edges(graph_reader *g, const operation *o, bool made) {
    const int64_t wanted = made ? shape_elements(&o->rec) : -1;
    bool fits = wanted < 1;
    json_scan_token token;
    want(g, JSON_SCAN_ARRAY, made ? "what it makes is not a list" : "what it reads is not a list");
    while ((token = next(g)) != JSON_SCAN_ARRAY_END) {
        const int index = (int)number(g, token, 0, (int64_t)g->tensor_count - 1, "tensor");
        if (g->edge_count == MOST_EDGES)
            operation_fail(g->r, "graph: it has more than %d reads and writes", MOST_EDGES);
        arena_grow(g->r->arena, (void **)&g->edges, &g->edge_cap, g->edge_count, sizeof *g->edges);
        g->edges[g->edge_count++] = index;
        if (made)
            make_edge(g, index, o);
        else
            read_edge(g, index);
        fits = fits || g->tensors[index].elements < 0 || g->tensors[index].elements == wanted;
    }
    if (!fits) REFUSE(g, "none of the tensors that it makes is as large as the shape of %s", o->id);
}

static bool is_edge(const graph_reader *g, const operation_occurrence *at, int tensor) {
    for (int e = at->read; e < at->after; e++)
        if (g->edges[e] == tensor) return true;
    return false;
}

/* Which of these its operation's own tensors are; a file that is older has no such list. */
static json_scan_token read_operands(graph_reader *g, operation_occurrence *at) {
    json_scan_token token = next(g);
    at->operands = (int)g->operand_count;
    if (token != JSON_SCAN_ARRAY) return token;
    while ((token = next(g)) != JSON_SCAN_ARRAY_END) {
        const int index = (int)number(g, token, -1, (int64_t)g->tensor_count - 1, "operand");
        if (index >= 0 && !is_edge(g, at, index))
            REFUSE(g, "its operand %d is no tensor that it reads or makes", index);
        if (at->operand_count++ == OPREC_MOST_OPERANDS) REFUSE(g, "it has more than %d operands", OPREC_MOST_OPERANDS);
        arena_grow(g->r->arena, (void **)&g->operands, &g->operand_cap, g->operand_count, sizeof *g->operands);
        g->operands[g->operand_count++] = index;
    }
    return next(g);
}

static void read_occurrence(graph_reader *g) {
    const int op = next_number(g, 0, g->list->count - 1, "operation");
    const operation *o = &g->list->items[op];
    const int64_t places = g->begins[op + 1] - g->begins[op];
    if (places == 0) REFUSE(g, "%s never runs: its count is 0", o->id);
    const int place = next_number(g, 0, (int)places - 1, "place");
    take_place(g, op, place);
    const int nodes = (int)json_array_size(json_object_get(o->source, "nodes"));
    const int first = next_number(g, 0, nodes - 1, "first node");
    (void)next_number(g, 1, nodes - first, "number of nodes");
    operation_occurrence at = {
        .operation = op, .place = place, .node = first, .times = o->count / places, .read = (int)g->edge_count};
    read_edges(g, o, false);
    at.made = (int)g->edge_count;
    read_edges(g, o, true);
    at.after = (int)g->edge_count;
    if (read_operands(g, &at) != JSON_SCAN_ARRAY_END) REFUSE(g, "there is more behind it than an occurrence has");
    if (g->memory[2] == g->row) {
        g->at_op = op;
        g->at_node = first;
    }
    arena_grow(g->r->arena, (void **)&g->occurrences, &g->occurrence_cap, (size_t)g->occurrence_count, sizeof at);
    g->occurrences[g->occurrence_count++] = at;
}

/* ---- all of it ---- */

static void read_rows(graph_reader *g, const char *part, int most, void (*read)(graph_reader *g)) {
    json_scan_token token;
    g->part = part;
    g->row = 0;
    want(g, JSON_SCAN_ARRAY, "it is not in a list");
    for (; (token = next(g)) != JSON_SCAN_ARRAY_END; g->row++) {
        if (g->row == most) operation_fail(g->r, "graph: it has more than %d %ss", most, part);
        if (token != JSON_SCAN_ARRAY) REFUSE(g, "it is not a list");
        read(g);
    }
}

/* How many there are is all that is needed of them. */
static void read_cuts(graph_reader *g) {
    json_scan_token token;
    g->part = "cut";
    g->row = 0;
    want(g, JSON_SCAN_ARRAY, "it is not in a list");
    for (; (token = next(g)) != JSON_SCAN_ARRAY_END; g->row++)
        (void)number(g, token, 0, MOST_OCCURRENCES, "occurrence");
    g->cuts = g->row;
}

static void read_memory(graph_reader *g) {
    static const char *const names[] = {"weights", "activations", "at", "unsized"};
    g->part = "memory";
    want(g, JSON_SCAN_OBJECT, "it is not an object");
    while (next(g) == JSON_SCAN_KEY) {
        int at = 0;
        while (at < 4 && !is_text(g, names[at])) at++;
        const json_scan_token token = next(g);
        if (at < 4)
            g->memory[at] = number(g, token, 0, INT64_MAX, names[at]);
        else if (!json_scan_skip(&g->scan, token))
            REFUSE(g, "%s", g->scan.why);
    }
}

/* ---- what runs the model is told ---- */

enum { MOST_NUMBERS = 1000000 };

static void read_number(graph_reader *g) {
    operation_number_told n = {.occurrence = next_number(g, 0, g->occurrence_count - 1, "occurrence"), .known = true};
    want(g, JSON_SCAN_TEXT, "its name is not a text");
    n.name = arena_strndup(g->r->arena, g->scan.text, g->scan.length);
    const json_scan_token token = next(g);
    n.known = token != JSON_SCAN_NULL;
    if (n.known && token != JSON_SCAN_INT && token != JSON_SCAN_REAL) REFUSE(g, "it is neither a number nor null");
    if (n.known) n.x = json_scan_real(&g->scan);
    want(g, JSON_SCAN_ARRAY_END, "there is more behind it than a number has");
    arena_grow(g->r->arena, (void **)&g->numbers, &g->number_cap, g->number_count, sizeof *g->numbers);
    g->numbers[g->number_count++] = n;
}

/* To the end of the list. Returns how many. */
static int read_sizes(graph_reader *g, int64_t *dims) {
    int rank = 0;
    for (json_scan_token token; (token = next(g)) != JSON_SCAN_ARRAY_END; rank++) {
        if (rank == OPERATION_TERM_RANK) REFUSE(g, "it has more than %d dimensions", OPERATION_TERM_RANK);
        dims[rank] = number(g, token, 1, operation_max_dim, "dimension");
    }
    return rank;
}

/* Operators, and how many terms they have. */
static const struct {
    const char *what;
    int terms;
} formers[] = {{"add", 2}, {"where", 3}};

static void read_formed(graph_reader *g) {
    operation_formed f = {.occurrence = next_number(g, 0, g->occurrence_count - 1, "occurrence")};
    f.place = next_number(g, 0, OPREC_MOST_OPERANDS - 1, "place");
    want(g, JSON_SCAN_TEXT, "its operator is not a text");
    size_t by = 0;
    while (by < sizeof formers / sizeof *formers && !is_text(g, formers[by].what)) by++;
    if (by == sizeof formers / sizeof *formers) REFUSE(g, "its operator is none that is known");
    f.what = formers[by].what;
    want(g, JSON_SCAN_ARRAY, "its dimensions are not in a list");
    f.rank = read_sizes(g, f.dims);
    for (; f.count < formers[by].terms; f.count++) {
        want(g, JSON_SCAN_ARRAY, "one of its tensors is not in a list");
        f.terms[f.count].tensor = next_number(g, 0, (int)g->tensor_count - 1, "tensor");
        f.terms[f.count].rank = read_sizes(g, f.terms[f.count].dims);
    }
    want(g, JSON_SCAN_ARRAY_END, "there is more behind it than its operator has");
    if (g->formed_count > 0 && g->formed[g->formed_count - 1].occurrence > f.occurrence)
        REFUSE(g, "it stands behind one of a later occurrence");
    arena_grow(g->r->arena, (void **)&g->formed, &g->formed_cap, g->formed_count, sizeof *g->formed);
    g->formed[g->formed_count++] = f;
}

static void read_unmade(graph_reader *g) {
    json_scan_token token;
    want(g, JSON_SCAN_ARRAY, "it is not an array");
    while ((token = next(g)) != JSON_SCAN_ARRAY_END) {
        if (token != JSON_SCAN_TEXT) REFUSE(g, "an output is not a name");
        if (!g->unmade) g->unmade = arena_strndup(g->r->arena, g->scan.text, g->scan.length);
    }
}

static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* Two digits a byte, of a constant as large. */
static void read_value(graph_reader *g) {
    const int at = next_number(g, 0, (int)g->tensor_count - 1, "tensor");
    const graph_tensor *t = &g->tensors[at];
    want(g, JSON_SCAN_TEXT, "its value is not a text");
    const bool sized = t->elements >= 0 && dtype_get((dtype)t->type)->bits > 0;
    const size_t bytes = g->scan.length / 2;
    if (t->kind != OPERATION_CONSTANT && t->kind != OPERATION_WEIGHT) REFUSE(g, "tensor %d is no constant", at);
    if (!sized || g->scan.length % 2 != 0 || (int64_t)bytes != dtype_bytes((dtype)t->type, t->elements))
        REFUSE(g, "its value is not as long as tensor %d", at);
    unsigned char *value = arena_array(g->r->arena, unsigned char, (int64_t)bytes);
    for (size_t k = 0; k < bytes; k++) {
        const int high = digit(g->scan.text[2 * k]), low = digit(g->scan.text[2 * k + 1]);
        if (high < 0 || low < 0) REFUSE(g, "its value is not of the digits 0 to 9 and a to f");
        value[k] = (unsigned char)(high << 4 | low);
    }
    g->told[at].value = value;
    want(g, JSON_SCAN_ARRAY_END, "there is more behind it than a value has");
}

static void read_members(graph_reader *g) {
    g->part = "member";
    want(g, JSON_SCAN_OBJECT, "it is not an object");
    while (next(g) == JSON_SCAN_KEY) {
        const bool tensors = is_text(g, "tensors"), occurrences = is_text(g, "occurrences");
        if ((tensors && g->has_tensors) || (occurrences && (g->has_occurrences || !g->has_tensors || !g->has_memory)))
            operation_fail(g->r, "graph: memory and tensors must stand before occurrences, and each once");
        if (tensors) {
            read_rows(g, "tensor", MOST_TENSORS, read_tensor);
            g->has_tensors = true;
        } else if (occurrences) {
            read_rows(g, "occurrence", MOST_OCCURRENCES, read_occurrence);
            g->has_occurrences = true;
        } else if (is_text(g, "memory") && !g->has_memory) {
            read_memory(g);
            g->has_memory = true;
        } else if (g->r->whole && is_text(g, "unmade")) {
            read_unmade(g);
        } else if (g->r->whole && g->has_occurrences && is_text(g, "numbers")) {
            read_rows(g, "number", MOST_NUMBERS, read_number);
        } else if (g->r->whole && g->has_occurrences && is_text(g, "formed")) {
            read_rows(g, "formed operand", MOST_NUMBERS, read_formed);
        } else if (g->r->whole && g->has_tensors && is_text(g, "values")) {
            read_rows(g, "value", MOST_TENSORS, read_value);
        } else if (is_text(g, "cuts")) {
            read_cuts(g);
        } else if (!json_scan_skip(&g->scan, next(g))) {
            operation_fail(g->r, "graph: %s", g->scan.why);
        }
        g->part = "member";
    }
    if (!g->has_tensors || !g->has_occurrences || !g->has_memory)
        operation_fail(g->r, "graph: it lacks tensors, occurrences or memory; extract the operations again");
}

/* Views may stand for all occurrences of what is free. */
static void check_places(graph_reader *g) {
    for (int k = 0; k < g->list->count; k++) {
        const operation *o = &g->list->items[k];
        int64_t found = 0;
        const int64_t places = g->begins[k + 1] - g->begins[k];
        for (int64_t at = g->begins[k]; at < g->begins[k + 1]; at++) found += g->taken[at];
        if (found != places && !operation_is_free(&o->rec))
            operation_fail(g->r, "graph: %s has %" PRId64 " occurrences, %" PRId64 " of them stand there", o->id,
                           places, found);
    }
}

/* What is needed until the end may be an output, whatever else it is. */
static void check_tensor(graph_reader *g, const graph_tensor *t) {
    const int end = g->occurrence_count - 1;
    const bool kept = t->kept || t->kind == OPERATION_OUTPUT, early = t->kind != OPERATION_STATE && t->producer < 0;
    if (t->producer >= 0 && !t->made) REFUSE(g, "occurrence %d, its producer, does not make it", t->producer);
    if (t->reads != t->readers) REFUSE(g, "it has %d readers, not %d", t->reads, t->readers);
    if (kept ? t->to != end : t->to != t->last && (t->producer >= 0 || t->to != end))
        REFUSE(g, "it is needed until occurrence %d, not %d", kept ? end : t->last, t->to);
    if (early && t->from != 0) REFUSE(g, "it is there from the beginning, not from occurrence %d", t->from);
    if (t->to >= 0 && t->from > t->to) REFUSE(g, "it is needed from occurrence %d to %d", t->from, t->to);
}

static void check_memory(graph_reader *g) {
    static const char *const names[] = {"the weights take", "the activations take at most", "that is at occurrence",
                                        "of unknown size are"};
    liveness l;
    int64_t found[4] = {0};
    int at;
    liveness_begin(&l, g->r->arena, g->occurrence_count);
    for (size_t k = 0; k < g->tensor_count; k++) {
        const graph_tensor *t = &g->tensors[k];
        const bool sized = t->elements >= 0 && dtype_get((dtype)t->type)->bits > 0;
        if (is_alias(t)) continue;
        if (!sized)
            found[3]++;
        else if (t->kind == OPERATION_WEIGHT || t->kind == OPERATION_CONSTANT)
            found[0] = checked_add(found[0], dtype_bytes((dtype)t->type, t->elements));
        else
            liveness_add(&l, dtype_bytes((dtype)t->type, t->elements), t->from, t->to);
    }
    found[1] = liveness_peak(&l, &at);
    found[2] = at;
    for (int k = 0; k < 4; k++)
        if (found[k] != g->memory[k])
            operation_fail(g->r, "graph: memory: %s %" PRId64 ", not %" PRId64, names[k], found[k], g->memory[k]);
}

/* For planning and replaying a run. */
static operation_flow *make_flow(const graph_reader *g) {
    operation_flow *f = arena_array(g->r->arena, operation_flow, 1);
    f->tensors = arena_array(g->r->arena, operation_tensor, (int64_t)g->tensor_count);
    for (size_t k = 0; k < g->tensor_count; k++) {
        const graph_tensor *t = &g->tensors[k];
        const bool sized = t->elements >= 0 && dtype_get((dtype)t->type)->bits > 0;
        f->tensors[k] = (operation_tensor){.bytes = sized ? dtype_bytes((dtype)t->type, t->elements) : -1,
                                           .source = is_alias(t) ? t->source : -1,
                                           .offset = is_alias(t) ? dtype_bytes((dtype)t->type, t->offset) : 0,
                                           .lie = is_alias(t) ? t->lie : 0,
                                           .producer = t->producer,
                                           .from = t->from,
                                           .to = t->to,
                                           .constant = t->kind == OPERATION_WEIGHT || t->kind == OPERATION_CONSTANT,
                                           .kept = t->kept || t->kind == OPERATION_OUTPUT,
                                           .type = (dtype)t->type};
    }
    f->occurrences = g->occurrences;
    f->edges = g->edges;
    f->operands = g->operands;
    f->operand_count = (int)g->operand_count;
    f->tensor_count = (int)g->tensor_count;
    f->occurrence_count = g->occurrence_count;
    f->edge_count = (int)g->edge_count;
    f->cuts = g->cuts;
    f->told = g->told;
    f->numbers = g->numbers;
    f->unmade = g->unmade;
    f->number_count = (int)g->number_count;
    f->formed = g->formed;
    f->formed_count = (int)g->formed_count;
    return f;
}

void operation_read_graph(operation_reader *r, char *text, size_t n, operation_list *list) {
    graph_reader g = {.r = r, .list = list, .part = "member", .at_op = -1};
    json_scan_begin(&g.scan, text, n, DEPTH);
    count_places(&g);
    read_members(&g);
    if (json_scan_next(&g.scan) != JSON_SCAN_END) operation_fail(r, "graph: there is more behind it");
    check_places(&g);
    g.part = "tensor";
    for (size_t k = 0; k < g.tensor_count; k++) {
        g.row = (int)k;
        check_tensor(&g, &g.tensors[k]);
    }
    check_memory(&g);
    if (g.at_op < 0) return; /* it runs nothing */
    list->flow = make_flow(&g);
    const json_t *nodes = json_object_get(list->items[g.at_op].source, "nodes");
    const char *at = json_string_value(json_array_get(nodes, (size_t)g.at_node));
    if (!at) operation_fail(r, "graph: a node of %s is not a text", list->items[g.at_op].id);
    list->memory = (operation_memory){.known = true,
                                      .weight_bytes = g.memory[0],
                                      .activation_bytes = g.memory[1],
                                      .at = arena_strndup(r->arena, at, strlen(at)),
                                      .least = g.memory[3] > 0};
}
