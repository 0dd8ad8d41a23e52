/* What scout_cuda.so exports: the device "cuda" with its candidates and references. A new candidate is one line here
 * and one file of its own. */
#include "scout/cuda/cuda_device.h"
#include "scout/cuda/cuda_whole.h"
#include "scout/cuda/cuda_whole_places.h"
#include "scout/cuda/dnn.h"
#include "scout/cuda/dnn_conv.h"
#include "scout/cuda/dnn_gemm.h"
#include "scout/cuda/dnn_pool.h"
#include "scout/cuda/dnn_reduce.h"
#include "scout/cuda/lt.h"
#include "scout/cuda/own.h"
#include "scout/cuda/own_attention.h"
#include "scout/cuda/own_conv_product.h"
#include "scout/cuda/own_gemm_padded.h"
#include "scout/cuda/own_gemm_quantised.h"
#include "scout/cuda/own_gemm_tail.h"
#include "scout/cuda/own_pass.h"
#include "scout/cuda/own_pool_direct.h"
#include "scout/cuda/own_recurrent.h"
#include "scout/cuda/own_rows.h"
#include "scout/cuda/sparse.h"
#include "scout/cuda/sparse_lt.h"
#include "scout/libraries.h"

static const scout_candidate *const candidates[] = {
    &lt_candidate,
    &own_gemm_tail,
    &own_gemm_quantised,
    &own_gemm_padded,
    &own_gemm_bytes,
    &dnn_gemm,
    &own_gemm_stream,
    &own_gemm_int4,
    &own_gemm_stream_tail,
    &own_gemm_int4_tail,
    &own_gemm_tiled,
    &own_gemm_naive,
    &dnn_attention,
    &dnn_norm,
    &dnn_batch_norm,
    &dnn_softmax,
    &dnn_conv,
    &own_conv_product,
    &own_conv_bytes,
    &dnn_pool,
    &own_pool_direct,
    &own_norm_long,
    &own_norm_rows,
    &own_norm_any,
    &own_softmax_long,
    &own_softmax_rows,
    &own_softmax_any,
    &own_attention_decode,
    &own_attention_tiled,
    &own_attention_naive,
    &own_elementwise,
    &own_chain,
    &own_generated,
    &own_rotary,
    &own_embedding,
    &own_move,
    &dnn_reduce_tensor,
    &own_reduce,
    &own_quantize,
    &dnn_recurrent,
    &own_recurrent,
    &own_gemm_block_sparse,
    &sparse_lt_gemm,
    &sparse_gemm_ell,
    &sparse_gemm_bsr,
    &sparse_csr,
};

static const scout_reference *const references[] = {
    &cuda_device_gemm_reference, &cuda_whole_norm,   &cuda_whole_softmax,
    &cuda_whole_elementwise,     &cuda_whole_reduce, &cuda_whole_rotary,
    &cuda_whole_attention,       &cuda_whole_conv,   &cuda_whole_pool,
    &cuda_whole_embedding,       &cuda_whole_move,   &cuda_whole_quantize,
    &cuda_whole_recurrent,
};

static const scout_device_api api = {
    .size = sizeof(scout_device_api),
    .name = "cuda",
    .count = cuda_device_count,
    .identify = cuda_device_identify,
    .open = cuda_device_open,
    .close = cuda_device_close,
    .memory = cuda_device_memory,
    .alloc = cuda_device_alloc,
    .release = cuda_device_release,
    .upload = cuda_device_upload,
    .download = cuda_device_download,
    .fill = cuda_device_fill,
    .checksum = cuda_device_checksum,
    .record = cuda_device_record,
    .run = cuda_device_run,
    .play = cuda_device_play,
    .clocks = cuda_device_clocks,
    .drop = cuda_device_drop,
    .made_of = cuda_device_made_of,
    .has_graphs = 1,
    .resolution_s = 0.5e-6, /* of events, as CUDA documents them */
    .now = cuda_device_now,
    .pause = cuda_device_pause,
    .telemetry = cuda_device_telemetry,
    .stream = cuda_device_stream,
    .empty = cuda_device_empty,
    .special = cuda_device_special,
    .arithmetic = cuda_device_arithmetic,
    .datasheet = cuda_device_datasheet,
    .reference_count = sizeof references / sizeof references[0],
    .candidate_count = sizeof candidates / sizeof candidates[0],
    .references = references,
    .candidates = candidates,
    .profile = cuda_device_profile,
    .zeros = cuda_device_zeros,
    .note = libraries_note,
    .beside = cuda_device_beside,
};

static const scout_plugin plugin = {
    .size = sizeof(scout_plugin),
    .abi = SCOUT_ABI,
    .name = "scout_cuda",
    .version = "1",
    .device = &api,
};

__attribute__((visibility("default"))) const scout_plugin *scout_plugin_entry(uint32_t abi);

const scout_plugin *scout_plugin_entry(uint32_t abi) { return abi == SCOUT_ABI ? &plugin : NULL; }
