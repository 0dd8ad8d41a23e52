/* tunableop: the results file of PyTorch's TunableOp, from 2.14 on. It has a line for each of three versions, which
 * must all be those of the process, then a line an operation: which one, its sizes as cuBLAS is called, and the
 * solution.
 *
 * cuBLAS stores by columns, so a row-major C = A B is its C' = B' A': its first matrix is our B, and its m is our N. */
#include "analyze/export/export.h"

#include "common/json.h"
#include "common/plain.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { ATTRIBUTES = 9, WORKSPACE = 1 << 20 }; /* what PyTorch gives cuBLASLt unless CUBLASLT_WORKSPACE_SIZE is set */

/* An algorithm by its attributes, in the order of the file; a report has them in the library's order. */
static const struct {
    const char *name;
    int place;
} attributes[ATTRIBUTES] = {{"id", 0},      {"tile", 1},   {"stages", 6}, {"splitk", 2}, {"red", 3},
                            {"swizzle", 4}, {"custom", 5}, {"inner", 7},  {"cluster", 8}};

static const char *solution(arena *a, const json_t *config, const char **text) {
    const json_t *const numbers = json_object_get(config, "attributes");
    const char *made = "Gemm_Cublaslt";
    if (json_array_size(numbers) != ATTRIBUTES) return "an older program's report, which names no attributes";
    for (int k = 0; k < ATTRIBUTES; k++) {
        const json_t *const x = json_array_get(numbers, (size_t)attributes[k].place);
        if (!json_is_integer(x) || json_integer_value(x) < 0 || json_integer_value(x) > UINT32_MAX)
            return "attributes of an algorithm that are no numbers";
        made = arena_printf(a, "%s_%s_%" JSON_INTEGER_FORMAT, made, attributes[k].name, json_integer_value(x));
    }
    *text = made;
    return NULL;
}

/* As the weight lies when the product runs. */
static const char *stored(const export_entry *e, bool *trans_a, bool *trans_b) {
    const json_t *const packing = json_object_get(e->entry, "packing");
    *trans_a = e->product.trans_a, *trans_b = e->product.trans_b;
    if (!packing) return NULL;
    if (!plain_same(json_get_text(packing, "how"), "transposed") || !e->product.weight)
        return "a weight that is rearranged as PyTorch does not";
    if (e->product.weight == 'a')
        *trans_a = !*trans_a;
    else
        *trans_b = !*trans_b;
    return NULL;
}

static const char *decided(const export_all *x, const export_entry *e, const char **text) {
    *text = "Default";
    if (!plain_same(json_get_text(e->entry, "implementation"), "cublaslt"))
        return "fastest by another implementation than cuBLASLt";
    if (e->by_default) return NULL;
    if (json_get_int(e->entry, "workspace_bytes", 0) > WORKSPACE)
        return "more workspace than the 1 MiB that PyTorch gives cuBLASLt";
    return solution(x->a, json_object_get(e->entry, "config"), text);
}

const char *tunableop_row(const export_all *x, const export_entry *e, export_row *row) {
    const export_product *const p = &e->product;
    const char *const type = p->tf32 ? "tf32" : export_aten_type(p->type);
    const char *op = "Gemm", *batch = "", *why;
    bool ta, tb;
    if (!type) return "a type that PyTorch does not tune";
    if (p->bias && p->batch > 1) return "a batch with a bias, which PyTorch adds apart";
    if ((why = stored(e, &ta, &tb))) return why;
    if (p->bias) op = "GemmAndBias";
    if (p->batch > 1) op = "GemmStridedBatched", batch = arena_printf(x->a, "B_%" PRId64 "_", p->batch);
    const char first = tb ? 't' : 'n', second = ta ? 't' : 'n';
    row->key = arena_printf(
        x->a, "%sTunableOp_%s_%c%c,%c%c_%" PRId64 "_%" PRId64 "_%" PRId64 "_%sld_%" PRId64 "_%" PRId64 "_%" PRId64, op,
        type, toupper(first), toupper(second), first, second, p->n, p->m, p->k, batch, tb ? p->k : p->n,
        ta ? p->m : p->k, p->n);
    if ((why = decided(x, e, &row->value))) return why;
    row->note = arena_printf(x->a, "%.6f", json_get_number(e->entry, "expected_us") / 1000);
    return NULL;
}

/* A line ends what stands in it, and a comma its field: neither can be told. */
static bool is_field(const char *text) {
    for (const char *s = text; *s; s++)
        if (*s == ',' || (unsigned char)*s < ' ' || *s == 0x7f) return false;
    return *text != 0;
}

/* As cublasLtGetVersion tells it: "13.1.0" is 130100. */
static bool version_number(const char *text, unsigned *number) {
    unsigned major, minor, patch;
    int end = 0;
    if (!text || sscanf(text, "%3u.%2u.%2u%n", &major, &minor, &patch, &end) != 3 || text[end]) return false;
    *number = major * 10000 + minor * 100 + patch;
    return true;
}

bool tunableop_write(const export_all *x, FILE *out, status *st) {
    unsigned cublaslt;
    if (!version_number(x->cublaslt, &cublaslt))
        return status_fail(st, STATUS_INPUT,
                           "the reports tell no version of cuBLASLt, which TunableOp asks for: measure on an NVIDIA "
                           "GPU");
    if (!is_field(x->device) || !is_field(x->capability) || !is_field(x->consumer))
        return status_fail(st, STATUS_INPUT, "the device's name or a version holds what TunableOp's files cannot");
    fprintf(out, "Validator,PT_VERSION,%s\nValidator,CUBLASLT_VERSION,%u\nValidator,CUDA_DEVICE,%s:%s\n", x->consumer,
            cublaslt, x->capability, x->device);
    for (size_t k = 0; k < x->count; k++) fprintf(out, "%s,%s,%s\n", x->rows[k].key, x->rows[k].value, x->rows[k].note);
    return true;
}
