/* What the tests of reading operations share: begin, read, look at `list` or at what went wrong in `g.st`, end. */
#ifndef TESTS_OPERATION_FIXTURE_H
#define TESTS_OPERATION_FIXTURE_H

#include "scout/input/operation_internal.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

static guard g;
static arena a;
static operation_list list;
static char path[64];

static inline void begin(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    list = (operation_list){.items = NULL};
}

static inline void end(void) {
    operation_list_free(&list);
    arena_free(&a);
    if (*path) unlink(path);
    *path = 0;
}

static inline void write_text(const char *text) {
    snprintf(path, sizeof path, "/tmp/test_operation.%d.json", (int)getpid());
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) abort();
}

static inline bool read_file(const char *file, const char *precision) {
    if (!guard_enter(&g)) return false;
    operation_read(file, precision, &a, &list);
    return true;
}

/* The list as read; what went wrong otherwise is in g.st. */
static inline bool read_text(const char *text, const char *precision) {
    begin();
    write_text(text);
    return read_file(path, precision);
}

static inline bool read_words(const char *of, const char *shape, const char *precision, double sparsity,
                              const char *pattern) {
    begin();
    if (!guard_enter(&g)) return false;
    operation_from_words(of, shape, precision, sparsity, pattern, &a, &list);
    return true;
}

static inline const operation *named(const char *name) {
    for (int k = 0; k < list.count; k++)
        if (strcmp(list.items[k].name, name) == 0) return &list.items[k];
    return NULL;
}

/* The operands of an occurrence that reads its inputs in their order and whose constants are not in the dataflow. */
static inline void set_operands(operation_flow *f, operation_occurrence *at) {
    scout_op op;
    scout_why why;
    if (!kinds_build(&list.items[at->operation], 1 << 20, &a, &op, &why)) return;
    int read = at->read, made = at->made;
    f->operands = f->operands ? f->operands : arena_array(&a, int, f->occurrence_count *SCOUT_MAX_TENSORS);
    at->operands = f->operand_count;
    at->operand_count = (int)op.tensor_count;
    for (uint32_t t = 0; t < op.tensor_count; t++) {
        const bool output = op.tensors[t].role == SCOUT_OUTPUT, input = op.tensors[t].role == SCOUT_INPUT;
        f->operands[f->operand_count++] = output && made < at->after ? f->edges[made++]
                                          : input && read < at->made ? f->edges[read++]
                                                                     : -1;
    }
}

static const char long_form[] = "{\"schema\": \"ceiling-scout/ops/1\", \"model\": {\"name\": \"m\"}, \"ops\": [%s]}";

static inline bool read_entries(const char *entries, const char *precision) {
    char text[2048];
    snprintf(text, sizeof text, long_form, entries);
    return read_text(text, precision);
}

static inline void refused(const char *text, const char *precision, status_code code, const char *says) {
    UNIT_CHECK(!read_text(text, precision));
    UNIT_INT(g.st.code, code);
    if (!strstr(g.st.text, says)) unit_same_text(g.st.text, says, __FILE__, __LINE__);
    end();
}

#endif
