/* triton: a Python module that tells Triton's autotuner what is worth trying. Its code is triton.py, which the build
 * puts into the program; the table of products goes where that file says so. */
#include "analyze/export/export.h"

#include "common/plain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const lines[] = {
#include "export_triton_lines.inc"
};

const char *triton_row(const export_all *x, const export_entry *e, export_row *row) {
    const export_product *const p = &e->product;
    const char *const type = export_torch_type(p->type), *const approach = e->report->verdict.approach;
    const verdict_facts facts = {.shape = {p->m, p->n, p->k}, .batch = p->batch, .units = (int)e->units};
    verdict_tile tiles[VERDICT_TILES];
    const char *list = "";
    if (!type) return "a type that is not PyTorch's";
    if (p->batch > 1) return "a batch of products";
    row->key = arena_printf(x->a, "(%" PRId64 ", %" PRId64 ", %" PRId64 ", \"%s\")", p->m, p->n, p->k, type);
    if (!e->by_default) return "something faster than the library's default";
    if (plain_same(approach, "CUTLASS_SWEEP")) {
        const int count = verdict_tiles(&facts, tiles);
        for (int k = 0; k < count; k++)
            list = arena_printf(x->a, "%s%s(%d, %d, %d)", list, k > 0 ? ", " : "", tiles[k].m, tiles[k].n, tiles[k].k);
    } else if (!plain_same(approach, "NONE")) {
        return "no word on which blocks to try";
    }
    row->value = arena_printf(x->a, "[%s]", list);
    return NULL;
}

bool triton_write(const export_all *x, FILE *out, status *st) {
    json_t *const device = json_string(x->device);
    char *const name = device ? json_dumps(device, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL; /* a text of Python's */
    json_decref(device);
    if (!name) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        if (strncmp(lines[k], "DEVICE, PRODUCTS = ", 19) != 0) {
            fputs(lines[k], out);
            continue;
        }
        fprintf(out, "DEVICE = %s\nPRODUCTS = {\n", name);
        for (size_t r = 0; r < x->count; r++) fprintf(out, "    %s: %s,\n", x->rows[r].key, x->rows[r].value);
        fputs("}\n", out);
    }
    free(name);
    return true;
}
