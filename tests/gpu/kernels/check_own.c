/* The own kernels' candidates, asked without a GPU: the operations that they take, reasons of refusals, and numbers of
 * variants.
 *
 *     check_own scout_cuda.so       ends with "N passed, N failed" */
#include "scout/op/gemm.h"
#include "scout/plugin.h"

#include <dlfcn.h>
#include <stdbool.h>

typedef struct product {
    const char *candidate;
    int64_t m, n, k, batch;
    const char *layout;
    uint32_t a, b, c;
    int64_t block;    /* of a weight of few bits */
    const char *bias; /* its form, or NULL */
    bool activations; /* b is no constant */
    const char *code; /* why it is refused; NULL: it is served */
    int variants;     /* that are allowed */
} product;

enum { H = SCOUT_FP16, B = SCOUT_BF16, F = SCOUT_FP32, Q = SCOUT_INT4, I = SCOUT_INT8 };

static const product products[] = {
    {"gemm_stream", 1, 4096, 4096, 1, "nt", H, H, H, 0, NULL, false, NULL, 7},
    {"gemm_stream", 16, 4096, 11008, 1, "nt", B, B, B, 0, NULL, false, NULL, 7},
    {"gemm_stream", 4, 11008, 4096, 1, "nn", H, H, H, 0, NULL, false, NULL, 14},
    {"gemm_stream", 4, 11008, 4096, 1, "nn", H, H, H, 0, NULL, true, NULL, 7},
    {"gemm_stream", 1, 512, 8192, 1, "nt", H, H, H, 0, NULL, false, NULL, 7},
    {"gemm_stream", 1, 512, 8192, 1, "nn", H, H, H, 0, NULL, false, NULL, 14},
    {"gemm_stream", 1, 4095, 4096, 1, "nn", H, H, H, 0, NULL, false, NULL, 7}, /* packed alone */
    {"gemm_stream", 1, 4095, 4096, 1, "nn", H, H, H, 0, NULL, true, "alignment", 0},
    {"gemm_stream", 17, 4096, 4096, 1, "nt", H, H, H, 0, NULL, false, "shape", 0},
    {"gemm_stream", 1, 4096, 4096, 2, "nt", H, H, H, 0, NULL, false, "shape", 0},
    {"gemm_stream", 4, 4096, 4096, 1, "tt", H, H, H, 0, NULL, false, "layout", 0},
    {"gemm_stream", 1, 4096, 4095, 1, "nt", H, H, H, 0, NULL, false, "alignment", 0},
    {"gemm_stream", 1, 4096, 4096, 1, "nt", F, F, F, 0, NULL, false, "type", 0},
    {"gemm_stream", 1, 4096, 4096, 1, "nt", H, H, F, 0, NULL, false, "type", 0},
    {"gemm_stream", 1, 4096, 4096, 1, "nt", H, H, H, 0, "n", false, "epilogue", 0},
    {"gemm_stream", 1, 4096, 4096, 1, "nt", H, I, H, 4096, NULL, false, NULL, 5},
    {"gemm_stream", 16, 4096, 11008, 1, "nt", B, SCOUT_UINT8, B, 128, NULL, false, NULL, 3},
    {"gemm_stream", 4, 11008, 4096, 1, "nn", B, I, B, 4096, NULL, false, NULL, 5}, /* packed alone */
    {"gemm_stream", 4, 11008, 4096, 1, "nn", B, I, B, 4096, NULL, true, "layout", 0},
    {"gemm_stream", 1, 512, 4112, 1, "nt", H, I, H, 4112, NULL, false, NULL, 6},
    {"gemm_stream", 1, 512, 8200, 1, "nt", H, I, H, 8200, NULL, false, "alignment", 0},
    {"gemm_stream", 1, 4096, 4096, 1, "nt", H, I, H, 16, NULL, false, "alignment", 0},
    {"gemm_stream", 17, 4096, 4096, 1, "nt", H, I, H, 4096, NULL, false, "shape", 0},
    {"gemm_stream", 1, 4096, 4096, 1, "nt", F, I, F, 4096, NULL, false, "type", 0},
    {"gemm_stream_tail", 1, 4096, 4096, 1, "nt", H, H, H, 0, "n", false, NULL, 7},
    {"gemm_stream_tail", 4, 11008, 4096, 1, "nn", H, H, H, 0, "full", false, NULL, 14},
    {"gemm_stream_tail", 1, 4096, 4096, 1, "nt", H, H, H, 0, NULL, false, "epilogue", 0}, /* it is gemm_stream's */
    {"gemm_int4", 1, 4096, 4096, 1, "nt", H, Q, H, 128, NULL, false, NULL, 1},
    {"gemm_int4", 64, 4096, 4096, 1, "nt", H, Q, H, 32, NULL, false, NULL, 2},
    {"gemm_int4", 2048, 4096, 4096, 1, "nt", H, Q, H, 128, NULL, false, NULL, 1},
    {"gemm_int4", 1, 4096, 160, 1, "nt", H, Q, H, 32, NULL, false, NULL, 1},
    {"gemm_int4", 1, 4096, 4096, 1, "nt", B, Q, B, 128, NULL, false, "type", 0},
    {"gemm_int4", 1, 4096, 4096, 1, "nt", H, H, H, 0, NULL, false, "type", 0},
    {"gemm_tiled", 100, 100, 100, 3, "tn", F, F, F, 0, NULL, false, NULL, 1},
    {"gemm_tiled", 100, 100, 100, 1, "tt", H, H, H, 0, NULL, false, NULL, 1},
    {"gemm_tiled", 100, 100, 100, 1, "nt", I, I, SCOUT_INT32, 0, NULL, false, "type", 0},
    {"gemm_tiled", 100, 100, 100, 1, "nt", H, H, H, 0, "m", false, "epilogue", 0},
    {"gemm_naive", 100, 100, 100, 1, "nt", I, I, SCOUT_INT32, 0, NULL, false, NULL, 1},
    {"gemm_naive", 3, 5, 64, 1, "nt", H, Q, H, 32, NULL, false, NULL, 1},
    {"gemm_naive", 100, 100, 100, 1, "nt", SCOUT_FP64, SCOUT_FP64, SCOUT_FP64, 0, NULL, false, "type", 0},
};

static scout_tensor matrix(const char *name, uint32_t role, uint32_t type, int64_t batch, int64_t rows, int64_t cols) {
    scout_tensor t = {.size = sizeof t, .role = role, .type = type, .rank = 3};
    t.dims[0] = batch, t.dims[1] = rows, t.dims[2] = cols;
    t.strides[0] = rows * cols, t.strides[1] = cols, t.strides[2] = 1;
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

/* Variants that exist; -1: a domain that says too much. */
static int count_variants(const scout_candidate *c, const scout_op *op) {
    static scout_domain domain;
    scout_why why;
    memset(&domain, 0, sizeof domain);
    if (!c->domain) return 1;
    if (c->domain(op, NULL, 0, &domain, &why) != SCOUT_OK || domain.count > SCOUT_MAX_PARAMETERS) return -1;
    int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    uint32_t at[SCOUT_MAX_PARAMETERS] = {0};
    int count = 0;
    for (;;) {
        uint32_t k = 0;
        for (uint32_t p = 0; p < domain.count; p++) values[p] = domain.parameters[p].values[at[p]];
        count += !c->allows || c->allows(op, NULL, values);
        while (k < domain.count && ++at[k] == domain.parameters[k].count) at[k++] = 0;
        if (k == domain.count) return count;
    }
}

static bool check(const product *p, const scout_candidate *c) {
    const bool ta = p->layout[0] == 't', tb = p->layout[1] == 't';
    scout_tensor tensors[5] = {
        matrix("a", SCOUT_INPUT, p->a, p->batch, ta ? p->k : p->m, ta ? p->m : p->k),
        matrix("b", p->activations ? SCOUT_INPUT : SCOUT_WEIGHT, p->b, p->batch, tb ? p->n : p->k, tb ? p->k : p->n),
        matrix("c", SCOUT_OUTPUT, p->c, p->batch, p->m, p->n),
        matrix(p->block ? "scales" : "bias", SCOUT_SIDE, p->a, 1, p->n, p->block ? p->k / p->block : 1),
    };
    const scout_field fields[] = {{"batch", p->batch, NULL}, {p->block ? "block_size" : "bias", p->block, p->bias}};
    const scout_op op = {
        .size = sizeof op,
        .kind = SCOUT_GEMM,
        .key = "",
        .layout = p->layout,
        .rank = 3,
        .shape = {p->m, p->n, p->k},
        .input = p->a,
        .weight = p->b,
        .accumulate = SCOUT_FP32,
        .output = p->c,
        .field_count = p->block || p->bias ? 2 : 1,
        .tensor_count = p->block || p->bias ? 4 : 3,
        .fields = fields,
        .tensors = tensors,
    };
    scout_why why = {"", ""};
    const scout_answer answer = c->supports(&op, NULL, &why);
    const int variants = answer == SCOUT_OK ? count_variants(c, &op) : 0;
    const bool good = p->code ? answer == SCOUT_NO && strcmp(why.code, p->code) == 0 && why.text[0]
                              : answer == SCOUT_OK && variants == p->variants;
    if (!good)
        printf("FAILED %s %lldx%lldx%lld %s: answer %d, %s: %s; %d variants, expected %d\n", p->candidate,
               (long long)p->m, (long long)p->n, (long long)p->k, p->layout, (int)answer, why.code, why.text, variants,
               p->variants);
    return good;
}

int main(int argc, char **argv) {
    int passed = 0, failed = 0;
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "usage: check_own scout_cuda.so%s%s\n", argc == 2 ? ": " : "", argc == 2 ? dlerror() : "");
        return 2;
    }
    scout_plugin_entry_fn *entry;
    *(void **)&entry = dlsym(library, SCOUT_PLUGIN_ENTRY);
    const scout_plugin *plugin = entry ? entry(SCOUT_ABI) : NULL;
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        const scout_candidate *found = NULL;
        for (uint32_t i = 0; plugin && plugin->device && i < plugin->device->candidate_count; i++)
            if (strcmp(plugin->device->candidates[i]->name, products[k].candidate) == 0)
                found = plugin->device->candidates[i];
        if (!found) printf("FAILED %s is not among the candidates\n", products[k].candidate);
        if (found && check(&products[k], found))
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    dlclose(library);
    return failed != 0;
}
