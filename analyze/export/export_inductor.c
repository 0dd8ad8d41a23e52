/* inductor: the lookup table of torch.compile (torch._inductor.config.lookup_table.table), as JSON. A product whose
 * library is at its ceiling has one entry, the library's: so nothing is compiled and timed for it. Nothing else can be
 * told, for no kernel of Inductor's was measured. */
#include "analyze/export/export.h"

#include "common/checked.h"
#include "common/json.h"
#include "common/plain.h"

#include <inttypes.h>
#include <string.h>

/* "(torch.float16, [1024, 768], [768, 1])"; stored with rows and columns exchanged where it is transposed. */
static const char *tensor(arena *a, const export_product *p, int64_t rows, int64_t cols, bool transposed) {
    const char *const type = export_torch_type(p->type);
    const int64_t down = transposed ? 1 : cols, along = transposed ? rows : 1;
    if (p->batch == 1)
        return arena_printf(a, "(%s, [%" PRId64 ", %" PRId64 "], [%" PRId64 ", %" PRId64 "])", type, rows, cols, down,
                            along);
    return arena_printf(a, "(%s, [%" PRId64 ", %" PRId64 ", %" PRId64 "], [%" PRId64 ", %" PRId64 ", %" PRId64 "])",
                        type, p->batch, rows, cols, checked_mul(rows, cols), down, along);
}

const char *inductor_row(const export_all *x, const export_entry *e, export_row *row) {
    const export_product *const p = &e->product;
    if (!export_torch_type(p->type)) return "a type that Inductor does not tune";
    if (p->bias) return "a bias, with which Inductor tunes whatever its table says";
    row->key = arena_printf(x->a, "%s+(%s, %s)+%s", x->device, tensor(x->a, p, p->m, p->k, p->trans_a),
                            tensor(x->a, p, p->k, p->n, p->trans_b), p->batch > 1 ? "bmm" : "mm");
    if (e->report->baseline_own) return "a default that is no library's";
    if (!e->by_default) return "something faster than the library's default";
    if (!plain_same(e->report->verdict.approach, "NONE")) return "below the ceiling, so that tuning may gain something";
    row->value = p->batch > 1 ? "aten::bmm" : "aten::mm";
    return NULL;
}

bool inductor_write(const export_all *x, FILE *out, status *st) {
    json_builder b = {NULL};
    json_t *root = json_new_object(&b);
    for (size_t k = 0; k < x->count; k++) {
        json_t *const list = json_new_array(&b), *const entry = json_new_object(&b);
        json_put_text(&b, entry, "template_id", x->rows[k].value);
        json_push(&b, list, entry);
        json_put(&b, root, x->rows[k].key, list);
    }
    root = json_finish(&b, root, st);
    if (!root) return false;
    const bool good = json_dumpf(root, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(root);
    return good || ferror(out) || status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
}
