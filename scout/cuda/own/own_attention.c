/* What the candidates of the project's own attention kernels share: shapes, pointers, common refusals. */
#include "scout/cuda/own/own.h"

#include "scout/op/attention.h"

static void copy_strides(int64_t *to, const scout_tensor *t, int count) {
    for (int d = 0; d < count; d++) to[d] = t->strides[d];
}

static int words_of(int64_t cols) { return (int)((cols + 31) / 32); }

static void take_blocks(const attention_problem *p, attention_shape *s) {
    block_mask m;
    char why[128];
    if (!p->block_mask || !block_mask_read(p->block_mask, &m, why, sizeof why)) return;
    s->block = (int)m.block, s->block_words = words_of((p->keys + m.block - 1) / m.block);
}

attention_shape own_attention_shape(const scout_op *op) {
    const attention_problem p = attention_problem_of(op);
    attention_shape s = {0};
    s.batch = p.batch, s.heads = p.heads, s.kv_heads = p.kv_heads, s.queries = p.queries, s.keys = p.keys;
    s.dim = p.dim, s.v_dim = p.v_dim;
    copy_strides(s.q, &p.tensors[ATTENTION_Q], 3);
    copy_strides(s.k, &p.tensors[ATTENTION_K], 3);
    copy_strides(s.v, &p.tensors[ATTENTION_V], 3);
    copy_strides(s.out, &p.tensors[ATTENTION_OUT], 3);
    s.masked = p.mask >= 0;
    if (s.masked) copy_strides(s.mask, &p.tensors[p.mask], 4);
    take_blocks(&p, &s);
    s.ragged = p.lengths >= 0;
    s.causal = p.causal, s.past = p.past, s.window = p.window;
    s.scale = (float)p.scale, s.softcap = (float)p.softcap;
    s.type = (int)p.type;
    return s;
}

attention_tensors own_attention_tensors(const scout_op *op, void *const *tensors, const uint32_t *blocks) {
    const int mask = op_tensor(op, "mask"), lengths = op_tensor(op, "lengths");
    attention_tensors t = {0};
    t.q = tensors[ATTENTION_Q], t.k = tensors[ATTENTION_K], t.v = tensors[ATTENTION_V];
    t.out = tensors[ATTENTION_OUT];
    if (mask >= 0) t.mask = tensors[mask];
    if (lengths >= 0) t.lengths = tensors[lengths];
    t.blocks = blocks;
    return t;
}

scout_answer own_attention_blocks(const scout_op *op, scout_device *device, uint32_t **out, scout_why *why) {
    const attention_problem p = attention_problem_of(op);
    *out = NULL;
    if (!p.block_mask) return SCOUT_OK;
    const block_mask m = attention_blocks(&p);
    if (m.block == 0) return scout_say(why, SCOUT_NO, "feature", "its block mask cannot be read");
    const int words = words_of(m.cols);
    const uint64_t bytes = (uint64_t)m.rows * (uint64_t)words * sizeof(uint32_t);
    uint32_t *const bits = calloc(1, bytes);
    if (!bits) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    for (int64_t row = 0; row < m.rows; row++)
        for (int64_t col = 0; col < m.cols; col++)
            if (block_mask_sees(&m, row, col)) bits[row * words + col / 32] |= UINT32_C(1) << (col % 32);
    scout_answer answer = cuda_device_alloc(device, bytes, (void **)out, why);
    if (answer == SCOUT_OK) answer = cuda_device_upload(device, *out, bits, bytes, why);
    free(bits);
    if (answer == SCOUT_OK) return SCOUT_OK;
    cuda_device_release(device, *out);
    *out = NULL;
    return answer;
}

scout_answer own_attention_plain(const scout_op *op, scout_why *why) {
    if (op->kind != SCOUT_ATTENTION || op->tensor_count < 4)
        return scout_say(why, SCOUT_NO, "feature", "this kernel computes attention alone");
    const attention_problem p = attention_problem_of(op);
    for (int k = ATTENTION_Q; k <= ATTENTION_OUT; k++) {
        const scout_tensor *t = &op->tensors[k];
        if (t->rank != 4 || t->type != p.type)
            return scout_say(why, SCOUT_NO, "type", "this kernel needs queries, keys, values and output of one type");
        if (t->strides[3] != 1) return scout_say(why, SCOUT_NO, "layout", "this kernel needs contiguous rows");
    }
    if (p.mask >= 0 && p.mask_type != p.type)
        return scout_say(why, SCOUT_NO, "type", "this kernel needs a mask of its input's type");
    if (p.dim < 1 || p.v_dim < 1 || p.batch < 1 || p.queries < 1 || p.keys < 1)
        return scout_say(why, SCOUT_NO, "shape", "a dimension of the attention is 0");
    return SCOUT_OK;
}

scout_answer own_attention_copies(const scout_op *op, const scout_device *device, const char *name, scout_why *why) {
    const scout_answer plain = own_attention_plain(op, why);
    if (plain != SCOUT_OK) return plain;
    const attention_problem p = attention_problem_of(op);
    if (p.type != SCOUT_FP16 && p.type != SCOUT_BF16)
        return scout_say(why, SCOUT_NO, "type", "%s is for fp16 and bf16", name);
    int64_t all = p.dim | p.v_dim;
    for (int k = ATTENTION_Q; k <= ATTENTION_OUT; k++)
        for (int d = 0; d < 3; d++) all |= op->tensors[k].strides[d];
    if (all % 8 != 0)
        return scout_say(why, SCOUT_NO, "alignment", "%s needs heads and rows in multiples of 16 bytes", name);
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "%s needs compute capability 8.0", name);
    return SCOUT_OK;
}
