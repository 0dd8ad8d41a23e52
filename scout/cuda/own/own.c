/* What the candidates of the project's own kernels share: shapes, common refusals, the device's limits. */
#include "scout/cuda/own/own.h"

gemm_shape own_gemm_shape(const scout_op *op) {
    const gemm_problem p = gemm_problem_of(op);
    gemm_shape s = {0};
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = p.batch;
    s.lda = p.lda, s.ldb = p.ldb, s.ldc = p.ldc;
    s.stride_a = p.stride_a, s.stride_b = p.stride_b, s.stride_c = p.stride_c;
    s.trans_a = p.trans_a, s.trans_b = p.trans_b;
    s.type_a = (int)p.type_a, s.type_b = (int)p.type_b, s.type_c = (int)p.type_c;
    s.block_size = p.type_b == SCOUT_INT4 ? p.block_size : 0;
    return s;
}

scout_answer own_gemm_plain(const scout_op *op, scout_why *why) {
    if (op->kind != SCOUT_GEMM || op->rank != 3 || op->tensor_count < 3)
        return scout_say(why, SCOUT_NO, "feature", "this kernel computes matrix products alone");
    const gemm_problem p = gemm_problem_of(op);
    if (p.bias) return scout_say(why, SCOUT_NO, "epilogue", "this kernel adds no bias");
    if (p.residual >= 0) return scout_say(why, SCOUT_NO, "epilogue", "this kernel adds no residual");
    if (p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "this kernel applies no activation");
    if (gemm_has_zeros(&p)) return scout_say(why, SCOUT_NO, "feature", "this kernel has no zero points");
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
