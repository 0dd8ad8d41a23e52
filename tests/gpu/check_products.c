/* Matrix products on the CUDA device: the reference against a triple loop on the host (and that it finds one wrong
 * element), then cuBLASLt against the reference over types, layouts, batches, biases and packed weights. */
#include "tests/gpu/gpu_check.h"
#include "tests/gpu/gpu_values.h"

static double tolerance_of(const gpu_product *p) {
    static const struct {
        uint32_t a, c;
        int tf32;
        double tolerance;
    } rows[] = {{SCOUT_FP32, SCOUT_FP32, 0, 2e-5},    {SCOUT_FP32, SCOUT_FP32, 1, 4e-3},
                {SCOUT_FP64, SCOUT_FP64, 0, 1e-13},   {SCOUT_FP16, SCOUT_FP16, 0, 2e-3},
                {SCOUT_FP16, SCOUT_FP32, 0, 1e-4},    {SCOUT_BF16, SCOUT_BF16, 0, 6e-3},
                {SCOUT_FP8E4M3, SCOUT_BF16, 0, 9e-3}, {SCOUT_INT8, SCOUT_INT32, 0, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].a == p->a && rows[k].c == p->c && rows[k].tf32 == p->tf32) return rows[k].tolerance;
    return 0;
}

/* --- the reference --- */

typedef struct host_side {
    unsigned char *data[6];
} host_side;

static double host_activation(const char *name, double x) {
    if (!name) return x;
    if (strcmp(name, "relu") == 0) return x > 0 ? x : 0;
    if (strcmp(name, "gelu") == 0) return x * 0.5 * (1 + erf(x / sqrt(2)));
    if (strcmp(name, "gelu_tanh") == 0)
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    if (strcmp(name, "silu") == 0) return x / (1 + exp(-x));
    return strcmp(name, "tanh") == 0 ? tanh(x) : 1 / (1 + exp(-x));
}

static double host_product(const gpu_product *p, const gpu_operation *o, const host_side *h, int64_t b, int64_t i,
                           int64_t j) {
    const gemm_problem g = gemm_problem_of(&o->op);
    const int scales = op_tensor(&o->op, "scales"), bias = op_tensor(&o->op, "bias");
    double sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        const double x = value_at(h->data[0], p->a, b * g.stride_a + (g.trans_a ? k * g.lda + i : i * g.lda + k));
        double y = value_at(h->data[1], p->b, b * g.stride_b + (g.trans_b ? j * g.ldb + k : k * g.ldb + j));
        if (scales >= 0) y *= value_at(h->data[scales], p->a, j * (p->k / g.block_size) + k / g.block_size);
        sum += x * y;
    }
    const int residual = op_tensor(&o->op, "residual");
    if (residual >= 0) sum += value_at(h->data[residual], p->c, (b * p->m + i) * p->n + j);
    if (bias < 0) return host_activation(p->activation, sum);
    const int64_t at = strcmp(p->bias, "each") == 0   ? b * p->n + j
                       : strcmp(p->bias, "n") == 0    ? j
                       : strcmp(p->bias, "m") == 0    ? i
                       : strcmp(p->bias, "full") == 0 ? i * p->n + j
                                                      : 0;
    return host_activation(p->activation, sum + value_at(h->data[bias], p->c, at));
}

/* One wrong element, off by what an output usually is (integers: by one), must show in the projections, which alone see
 * every place. */
static void check_one_wrong(const gpu_product *p, scout_check *check, unsigned char *output, void *memory,
                            uint64_t bytes, uint64_t seed, const char *text) {
    scout_verdict v = {.size = sizeof v};
    const gpu_product q = *p;
    const int64_t total = p->m * p->n * p->batch, at = (int64_t)(seed * 2654435761u % (uint64_t)total);
    const double was = value_at(output, p->c, at);
    const double scale = p->a == SCOUT_INT8 ? 1 : sqrt((double)p->k) * (p->b == SCOUT_INT4 ? 0.13 : 1);
    put_value(output, p->c, at, was + (p->a == SCOUT_INT8 ? 1 : scale));
    GPU_OK(gpu_api->upload(gpu, memory, output, bytes, &gpu_why));
    GPU_OK(gpu_api->references[0]->compare(check, memory, tolerance_of(&q), &v, &gpu_why));
    gpu_expect(v.wrong >= 1 && v.worst_projected > tolerance_of(&q),
               "%s: a wrong element at %lld went unseen (projected %.3g)", text, (long long)at, v.worst_projected);
    put_value(output, p->c, at, NAN);
    if (p->a != SCOUT_INT8) {
        GPU_OK(gpu_api->upload(gpu, memory, output, bytes, &gpu_why));
        memset(output + (uint64_t)at * (bytes / (uint64_t)total), 0xff, bytes / (uint64_t)total);
        GPU_OK(gpu_api->upload(gpu, memory, output, bytes, &gpu_why));
        GPU_OK(gpu_api->references[0]->compare(check, memory, tolerance_of(&q), &v, &gpu_why));
        gpu_expect(isinf(v.worst_projected) && v.wrong >= 1, "%s: poison at %lld went unseen", text, (long long)at);
    }
    put_value(output, p->c, at, was);
}

static void check_reference(const gpu_product *p, uint64_t seed) {
    gpu_operation o;
    host_side h = {{NULL}};
    void *tensors[6] = {NULL};
    char text[160];
    scout_check *check = NULL;
    scout_verdict v = {.size = sizeof v};
    gpu_operation_of(p, &o);
    gpu_product_text(p, text, sizeof text);
    if (!gpu_tensors(&o, tensors, seed)) return;
    for (uint32_t k = 0; k < o.op.tensor_count; k++) {
        h.data[k] = malloc(o.tensors[k].bytes);
        GPU_OK(gpu_api->download(gpu, h.data[k], tensors[k], o.tensors[k].bytes, &gpu_why));
    }
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++)
                put_value(h.data[2], p->c, (b * p->m + i) * p->n + j, host_product(p, &o, &h, b, i, j));
    GPU_OK(gpu_api->references[0]->begin(gpu, &o.op, tensors, seed, &check, &gpu_why));
    if (check) {
        GPU_OK(gpu_api->upload(gpu, tensors[2], h.data[2], o.tensors[2].bytes, &gpu_why));
        GPU_OK(gpu_api->references[0]->compare(check, tensors[2], tolerance_of(p), &v, &gpu_why));
        gpu_expect(v.wrong == 0, "%s: the host's result is called wrong: %.3g, projected %.3g, at %llu got %g want %g",
                   text, v.worst, v.worst_projected, (unsigned long long)v.at, v.got, v.want);
        gpu_expect(v.compared == (uint64_t)(p->m * p->n * p->batch < 4096 ? p->m * p->n * p->batch : 4096), "samples");
        for (uint64_t k = 0; k < 6; k++)
            check_one_wrong(p, check, h.data[2], tensors[2], o.tensors[2].bytes, seed * 100 + k * 77 + 1, text);
        gpu_api->references[0]->end(check);
    }
    gpu_release(tensors, o.op.tensor_count);
    for (uint32_t k = 0; k < o.op.tensor_count; k++) free(h.data[k]);
}

static void check_references(void) {
    static const struct {
        uint32_t a, b, c;
    } types[] = {{SCOUT_FP32, SCOUT_FP32, SCOUT_FP32},  {SCOUT_FP64, SCOUT_FP64, SCOUT_FP64},
                 {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16},  {SCOUT_FP16, SCOUT_FP16, SCOUT_FP32},
                 {SCOUT_BF16, SCOUT_BF16, SCOUT_BF16},  {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16},
                 {SCOUT_INT8, SCOUT_INT8, SCOUT_INT32}, {SCOUT_FP16, SCOUT_INT4, SCOUT_FP16}};
    static const char *const layouts[] = {"nn", "nt", "tn", "tt"};
    static const char *const biases[] = {NULL, "n", "m", "scalar", "full"};
    static const int64_t shapes[][4] = {{97, 150, 70, 1}, {1, 257, 512, 1}, {33, 40, 256, 3}, {3, 90, 4096, 1}};
    uint64_t seed = 1;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t l = 0; l < 4; l++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                const bool int4 = types[t].b == SCOUT_INT4;
                gpu_product p = {shapes[s][0], shapes[s][1], shapes[s][2],
                                 shapes[s][3], layouts[l],   types[t].a,
                                 types[t].b,   types[t].c,   0,
                                 NULL,         int4,         false,
                                 NULL,         false};
                if (int4 && (l != 1 || p.batch > 1)) continue;
                p.bias = types[t].a == SCOUT_INT8 ? NULL
                         : p.batch == 1           ? biases[(t + l + s) % 5]
                         : t % 2                  ? "each"
                                                  : NULL;
                p.shared = p.batch > 1 && (t + l) % 2;
                check_reference(&p, seed++);
            }
    /* more products than one dimension of a grid holds */
    const gpu_product many = {4,          8, 16,   70000, "nn",  SCOUT_FP16, SCOUT_FP16,
                              SCOUT_FP32, 0, NULL, false, false, NULL,       false};
    check_reference(&many, seed);
}

/* Behind an activation, on the host and by the library where it has it. */
static void check_activations(void) {
    static const char *const names[] = {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};
    for (uint64_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const gpu_product p = {
            70 + (int64_t)k,    130,   64,    k % 2 ? 1 : 2, k % 3 ? "nt" : "tn", SCOUT_FP16, SCOUT_FP16, SCOUT_FP32, 0,
            k % 2 ? "n" : NULL, false, false, names[k],      k % 3 != 1};
        check_reference(&p, 500 + k);
    }
}

/* --- cuBLASLt --- */

typedef struct tried {
    int variants, right, wrong, refused;
    double best_s, first_s;
    char best[64], refusal[160];
} tried;

typedef struct packing {
    const scout_candidate *candidate;
    scout_plan *plan;
    void *const *tensors;
    void *packed;
} packing;

static scout_answer enqueue_packing(void *context, uint32_t number, void *stream, scout_why *why) {
    const packing *const p = context;
    (void)number;
    return p->candidate->pack_tensors(p->plan, p->tensors, p->packed, stream, why);
}

/* Prepares, packs, runs once and compares one variant; then times it where asked. */
static void try_variant(const gpu_operation *o, void *const *tensors, scout_check *check, double tolerance,
                        const scout_candidate *c, const int64_t *values, bool timed, tried *t, const char *text) {
    gpu_launch l = {.candidate = c};
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why = {"", ""};
    scout_verdict v = {.size = sizeof v};
    void *workspace = NULL, *packed = NULL, *mine[6];
    scout_answer answer = scout_prepare(c, &o->op, gpu, values, &l.plan, &needs, &why);
    memcpy(mine, tensors, sizeof mine);
    if (answer == SCOUT_OK && needs.workspace_bytes)
        answer = gpu_api->alloc(gpu, needs.workspace_bytes, &workspace, &why);
    if (answer == SCOUT_OK && needs.packs) {
        answer = gpu_api->alloc(gpu, needs.pack_bytes, &packed, &why);
        packing work = {c, l.plan, tensors, packed};
        if (answer == SCOUT_OK) gpu_time(enqueue_packing, &work, 0, 1, 1, &why, &answer);
        mine[needs.packs - 1] = packed;
    }
    l.args = (scout_args){sizeof l.args, mine, workspace, NULL};
    if (answer == SCOUT_OK)
        answer = gpu_api->fill(gpu, tensors[2], o->tensors[2].bytes, SCOUT_NONE, SCOUT_FILL_BYTE, 0xff, &why);
    double seconds = -1;
    if (answer == SCOUT_OK) seconds = gpu_time(gpu_enqueue, &l, 1, timed ? 20 : 1, timed ? 5 : 1, &why, &answer);
    if (answer == SCOUT_OK) answer = gpu_api->references[0]->compare(check, tensors[2], tolerance, &v, &why);
    t->variants++;
    if (answer != SCOUT_OK) {
        t->refused++;
        snprintf(t->refusal, sizeof t->refusal, "%s", why.text);
    } else if (v.wrong) {
        if (t->wrong++ == 0)
            printf("WRONG %s variant %lld,%lld,%lld: %.3g projected %.3g of %.3g\n", text, (long long)values[0],
                   (long long)values[1], (long long)values[2], v.worst, v.worst_projected, tolerance);
    } else {
        t->right++;
        if (timed && (t->best_s == 0 || seconds < t->best_s)) {
            t->best_s = seconds;
            snprintf(t->best, sizeof t->best, "%lld,%lld,%lld", (long long)values[0], (long long)values[1],
                     (long long)values[2]);
        }
        if (timed && t->first_s == 0) t->first_s = seconds;
        char json[1200];
        if (timed && (t->right == 1 || t->right % 50 == 0) &&
            scout_describe(c, l.plan, json, sizeof json) < (int)sizeof json)
            printf("  %s\n", json);
    }
    if (l.plan) scout_destroy(c, l.plan);
    gpu_api->release(gpu, workspace);
    gpu_api->release(gpu, packed);
}

static void try_all(const gpu_operation *o, void *const *tensors, scout_check *check, const gpu_product *p, int most,
                    bool timed, tried *t, const char *text) {
    const scout_candidate *const c = gpu_candidate("cublaslt");
    scout_domain *const domain = calloc(1, sizeof *domain);
    scout_why why = {"", ""};
    const double tolerance = tolerance_of(p) * (p->k > 8192 && p->a != SCOUT_INT8 ? 4 : 1);
    scout_answer answer = c->supports(&o->op, gpu, &why);
    const double start = gpu_api->now(gpu);
    if (answer == SCOUT_OK) answer = c->domain(&o->op, gpu, 0, domain, &why);
    if (timed) printf("  heuristic of %s: %.2f ms\n", text, (gpu_api->now(gpu) - start) * 1e3);
    if (answer != SCOUT_OK) {
        t->refused = -1;
        snprintf(t->refusal, sizeof t->refusal, "%s: %s", why.code, why.text);
    } else {
        uint32_t counts[3] = {1, 1, 1};
        for (uint32_t k = 0; k < domain->count && k < 3; k++) counts[k] = domain->parameters[k].count;
        for (uint32_t x = 0; x < counts[1]; x++)
            for (uint32_t y = 0; y < counts[2]; y++)
                for (uint32_t a = 0; a < counts[0] && (int)a < most; a++) {
                    const int64_t values[3] = {domain->parameters[0].values[a], domain->parameters[1].values[x],
                                               domain->parameters[2].values[y]};
                    if (c->allows(&o->op, gpu, values))
                        try_variant(o, tensors, check, tolerance, c, values, timed, t, text);
                }
    }
    free(domain);
}

static tried check_library(const gpu_product *p, uint64_t seed, int most, bool timed) {
    gpu_operation o;
    void *tensors[6] = {NULL};
    char text[160];
    tried t = {0};
    scout_check *check = NULL;
    gpu_operation_of(p, &o);
    gpu_product_text(p, text, sizeof text);
    if (!gpu_tensors(&o, tensors, seed)) return t;
    double start = gpu_api->now(gpu);
    GPU_OK(gpu_api->references[0]->begin(gpu, &o.op, tensors, seed, &check, &gpu_why));
    if (timed) printf("%s\n  reference: begin %.1f ms", text, (gpu_api->now(gpu) - start) * 1e3);
    if (check) {
        scout_verdict v = {.size = sizeof v};
        start = gpu_api->now(gpu);
        GPU_OK(gpu_api->references[0]->compare(check, tensors[2], 0.01, &v, &gpu_why));
        if (timed) printf(", compare %.2f ms\n", (gpu_api->now(gpu) - start) * 1e3);
        gpu_expect(v.wrong > 0 && (isinf(v.worst) || p->c == SCOUT_INT32), "%s: poison passes", text);
        try_all(&o, tensors, check, p, most, timed, &t, text);
        gpu_api->references[0]->end(check);
    }
    gpu_release(tensors, o.op.tensor_count);
    gpu_expect(t.wrong == 0, "%s: %d of %d variants wrong", text, t.wrong, t.variants);
    if (timed)
        printf("  %d variants, %d right, %d refused (%s): first %.2f us %.1f TFLOP/s, best (%s) %.2f us %.1f TFLOP/s\n",
               t.variants, t.right, t.refused, t.refusal, t.first_s * 1e6, o.op.flops / t.first_s * 1e-12, t.best,
               t.best_s * 1e6, o.op.flops / t.best_s * 1e-12);
    fflush(stdout);
    return t;
}

/* Every type and layout that cuBLASLt has; `needed`: it must have at least one algorithm for it. */
static void check_libraries(void) {
    static const struct {
        uint32_t a, b, c;
        int tf32, narrow;
    } types[] = {{SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 0, 0},       {SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 1, 0},
                 {SCOUT_FP64, SCOUT_FP64, SCOUT_FP64, 0, 0},       {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, 0},
                 {SCOUT_FP16, SCOUT_FP16, SCOUT_FP32, 0, 0},       {SCOUT_BF16, SCOUT_BF16, SCOUT_BF16, 0, 0},
                 {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16, 0, 1}, {SCOUT_INT8, SCOUT_INT8, SCOUT_INT32, 0, 1},
                 {SCOUT_FP16, SCOUT_INT4, SCOUT_FP16, 0, 2}};
    static const char *const layouts[] = {"nn", "nt", "tn", "tt"};
    static const char *const biases[] = {NULL, "n", "full"};
    static const int64_t shapes[][4] = {{512, 768, 1024, 1}, {1, 4096, 2048, 1}, {200, 336, 272, 4}};
    uint64_t seed = 1000;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t l = 0; l < 4; l++)
            for (size_t s = 0; s < 3; s++)
                for (int weight = 0; weight < 2; weight++) {
                    gpu_product p = {shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3],  layouts[l],
                                     types[t].a,   types[t].b,   types[t].c,   types[t].tf32, NULL,
                                     weight,       false,        NULL,         false};
                    char text[160];
                    if (types[t].narrow == 2 && (l != 1 || s == 2 || !weight)) continue;
                    if (types[t].narrow == 2) p.k = 1024;
                    p.bias = types[t].narrow ? NULL : p.batch == 1 ? biases[(t + l + s) % 3] : l % 2 ? "each" : NULL;
                    p.shared = p.batch > 1 && weight;
                    const tried r = check_library(&p, seed++, 6, false);
                    const bool expected = !types[t].narrow || l == 1 || (l == 0 && weight);
                    gpu_product_text(&p, text, sizeof text);
                    gpu_expect(!expected || r.right > 0, "%s: nothing runs (%s)", text, r.refusal);
                    if (r.refused) printf("  %s: %d of %d refused: %s\n", text, r.refused, r.variants, r.refusal);
                }
}

/* An exhaustive search finds at least what the heuristic offers, in the same order, and all of it is right. */
static void check_exhaustive(const gpu_product *p) {
    const scout_candidate *const c = gpu_candidate("cublaslt");
    scout_domain *const few = calloc(1, sizeof *few), *const all = calloc(1, sizeof *all);
    gpu_operation o;
    void *tensors[6] = {NULL};
    char text[160];
    scout_check *check = NULL;
    tried t = {0};
    gpu_operation_of(p, &o);
    gpu_product_text(p, text, sizeof text);
    if (!few || !all || !gpu_tensors(&o, tensors, 77)) goto end;
    GPU_OK(gpu_api->references[0]->begin(gpu, &o.op, tensors, 77, &check, &gpu_why));
    GPU_OK(c->domain(&o.op, gpu, 0, few, &gpu_why));
    double start = gpu_api->now(gpu);
    GPU_OK(c->domain(&o.op, gpu, 1, all, &gpu_why));
    printf("%s: %u algorithms, exhaustively %u (%.0f ms)\n", text, few->parameters[0].count, all->parameters[0].count,
           (gpu_api->now(gpu) - start) * 1e3);
    fflush(stdout);
    gpu_expect(all->parameters[0].count >= few->parameters[0].count, "%s: an exhaustive search finds less", text);
    start = gpu_api->now(gpu);
    for (int64_t a = 0; check && a < all->parameters[0].count; a++) {
        const int64_t values[3] = {a, 0, 0};
        if (c->allows(&o.op, gpu, values)) try_variant(&o, tensors, check, tolerance_of(p), c, values, true, &t, text);
    }
    printf("  %d variants, %d right, %d refused (%s), first %.2f us, best (%s) %.2f us; %.1f s\n", t.variants, t.right,
           t.refused, t.refusal, t.first_s * 1e6, t.best, t.best_s * 1e6, gpu_api->now(gpu) - start);
    gpu_expect(t.wrong == 0 && t.right > 0, "%s: %d of %d wrong", text, t.wrong, t.variants);
    gpu_api->references[0]->end(check);
    gpu_release(tensors, o.op.tensor_count);
end:
    free(few);
    free(all);
}

int main(int argc, char **argv) {
    static const gpu_product timed[] = {
        {8192, 8192, 8192, 1, "nt", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, NULL, true, false, NULL, false},
        {8192, 8192, 8192, 1, "nt", SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16, 0, NULL, true, false, NULL, false},
        {8192, 8192, 8192, 1, "nt", SCOUT_INT8, SCOUT_INT8, SCOUT_INT32, 0, NULL, false, false, NULL, false},
        {1, 4096, 4096, 1, "nn", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, NULL, true, false, NULL, false},
        {2048, 4096, 4096, 1, "nn", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, "n", true, false, NULL, false},
        {2048, 128, 2048, 64, "nn", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, NULL, false, false, NULL, false},
    };
    gpu_begin(argc, argv, true);
    check_references();
    check_activations();
    printf("references: %d passed, %d failed\n", gpu_passed, gpu_failed);
    check_libraries();
    printf("with libraries: %d passed, %d failed\n", gpu_passed, gpu_failed);
    for (size_t k = 0; k < sizeof timed / sizeof timed[0]; k++) {
        const tried r = check_library(&timed[k], 5000 + k, k < 2 ? 10 : 64, true);
        gpu_expect(r.right > 0, "nothing runs: %s", r.refusal);
    }
    check_exhaustive(&timed[3]);
    const gpu_product relu = {512,        768, 1024, 1,    "nt",  SCOUT_FP16, SCOUT_FP16,
                              SCOUT_FP16, 0,   "n",  true, false, "relu",     true};
    const gpu_product gelu = {2048,       11008, 4096, 1,    "nt",  SCOUT_FP16,  SCOUT_FP16,
                              SCOUT_FP16, 0,     "n",  true, false, "gelu_tanh", false};
    gpu_expect(check_library(&relu, 8000, 8, true).right > 0, "no relu");
    gpu_expect(check_library(&gelu, 8001, 8, true).right > 0, "no gelu");
    const gpu_product deep = {8192,       8192, 147456, 1,     "nt",  SCOUT_FP16, SCOUT_FP16,
                              SCOUT_FP16, 0,    NULL,   false, false, NULL,       false};
    check_library(&deep, 9000, 1, true);
    gpu_api->close(gpu);
    return gpu_end();
}
