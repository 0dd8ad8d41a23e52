/* What the candidates of the project's own kernels share: shapes, common refusals, the device's limits. */
#include "scout/cuda/own/own.h"

#include "scout/op/op.h"

gemm_shape own_gemm_shape(const scout_op *op) {
    const gemm_problem p = gemm_problem_of(op);
    gemm_shape s = {0};
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = p.batch;
    s.lda = p.lda, s.ldb = p.ldb, s.ldc = p.ldc;
    s.stride_a = p.stride_a, s.stride_b = p.stride_b, s.stride_c = p.stride_c;
    s.trans_a = p.trans_a, s.trans_b = p.trans_b;
    s.type_a = (int)p.type_a, s.type_b = (int)p.type_b, s.type_c = (int)p.type_c;
    s.block_size = gemm_widens(p.type_a, p.type_b) ? p.block_size : 0;
    return s;
}

scout_answer own_gemm_plain(const scout_op *op, scout_why *why) {
    if (op->kind != SCOUT_GEMM || op->rank != 3 || op->tensor_count < 3)
        return scout_say(why, SCOUT_NO, "feature", "this kernel computes matrix products alone");
    const gemm_problem p = gemm_problem_of(op);
    if (p.bias) return scout_say(why, SCOUT_NO, "epilogue", "this kernel adds no bias");
    if (p.alpha != 1) return scout_say(why, SCOUT_NO, "feature", "this kernel has no factor of the product");
    if (p.residual >= 0) return scout_say(why, SCOUT_NO, "epilogue", "this kernel adds no residual");
    if (p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "this kernel applies no activation");
    if (gemm_has_zeros(&p) && !gemm_widens(p.type_a, p.type_b))
        return scout_say(why, SCOUT_NO, "feature", "this kernel has no zero points");
    if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1)
        return scout_say(why, SCOUT_NO, "shape", "a dimension of the product is 0");
    return SCOUT_OK;
}

size_t own_shared_limit(const scout_device *device) {
    int limit = 0;
    if (device && cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->ordinal) == 0)
        return (size_t)limit;
    return (size_t)227 * 1024;
}

int own_units(const scout_device *device) { return device ? device->multiprocessors : 132; }

int own_has_clusters(const scout_device *device) { return !device || device->capability_major >= 9; }

enum { THREADS, RESIDENT, PARAMETERS };

scout_answer own_pass_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                             scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[THREADS] = (scout_parameter){.name = "threads", .count = 3, .values = {256, 512, 128}};
    out->parameters[RESIDENT] = (scout_parameter){.name = "resident", .count = 2, .values = {0, 4}};
    return SCOUT_OK;
}

pass_config own_pass_config(const int64_t *values) {
    pass_config c = {.threads = 256, .resident = 0};
    if (values) c.threads = (int)values[THREADS], c.resident = (int)values[RESIDENT];
    return c;
}

int own_pass_size(const scout_tensor *t) { return (int)(t->bytes / (uint64_t)op_elements(t)); }
