/* The lists that are run on GPUs (tests/gpu/): each operation of theirs can be read, has tensors, and a weight where it
 * asks for one. A GPU's time is too short to find that out there. Runs in the root of the tree. */
#include "scout/input/weights.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

#include <glob.h>
#include <string.h>

static int operations;

static void check_operation(const char *path, const operation *o, arena *a) {
    scout_op op;
    scout_why why = {"", ""};
    weights_content weights = {.tensor = 0};
    const double small = 1e10; /* flops: making up the zeros of larger weights takes seconds */
    bool good = !o->skip_code && kinds_build(o, 32u << 20, a, &op, &why);
    if (good && op.flops < small) good = weights_make(o, &op, 1, NULL, a, &weights, &why);
    if (!UNIT_CHECK(good)) printf("%s: %s: %s %s\n", path, o->name, why.text, o->skip_text ? o->skip_text : "");
    weights_free(&weights);
    operations++;
}

static void check_list(const char *path) {
    operation_list list = {.count = 0};
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, (size_t)256 << 20);
    if (guard_enter(&g)) {
        operation_read(path, "fp16", &a, &list);
        UNIT_CHECK(list.count > 0);
        for (int k = 0; k < list.count; k++) check_operation(path, &list.items[k], &a);
    } else {
        UNIT_TEXT(g.st.text, "");
    }
    operation_list_free(&list);
    arena_free(&a);
}

static void lists_are_measurable(void) {
    glob_t found = {.gl_pathc = 0};
    UNIT_INT(glob("tests/gpu/*.json", 0, NULL, &found), 0);
    UNIT_INT(glob("tests/gpu/kinds/*.json", GLOB_APPEND, NULL, &found), 0);
    UNIT_INT(glob("tests/gpu/claims/*.json", GLOB_APPEND, NULL, &found), 0);
    for (size_t k = 0; k < found.gl_pathc; k++) /* the claims themselves are no list */
        if (strcmp(found.gl_pathv[k], "tests/gpu/claims.json") != 0) check_list(found.gl_pathv[k]);
    globfree(&found);
    UNIT_CHECK(operations > 200);
}

int main(void) {
    UNIT_RUN(lists_are_measurable);
    return unit_end();
}
