/* Probes for ceilings, figures of datasheets beside them, and telemetry. */
#include "scout/cuda/device/cuda_device.h"

#include "kernels/harness/kernels.h"
#include "scout/cuda/device/nvml.h"

#include <math.h>
#include <string.h>

scout_answer cuda_device_stream(scout_device *device, const void *read, uint64_t read_bytes, void *written,
                                uint64_t written_bytes, void *stream, scout_why *why) {
    return cuda_device_answer(
        kernels_stream(read, read_bytes, written, written_bytes, device->scratch, device->multiprocessors, 0, stream),
        "streaming", why);
}

scout_answer cuda_device_empty(scout_device *device, void *stream, scout_why *why) {
    (void)device;
    return cuda_device_answer(kernels_empty(stream), "launching nothing", why);
}

/* Distant tensors first: what fills the cache in their place drives all else out, too. A share of it is written, so
 * that what the operation brings into the cache takes the place of lines that are still to be stored, as in the model.
 */
static cudaError_t hand_over(scout_device *device, const scout_op *op, void *const *tensors, void *stream) {
    const int multiprocessors = device->multiprocessors;
    const double share = op->crowd_written > 0 ? fmin(op->crowd_written, 1) : 0;
    const uint64_t written = (uint64_t)(share * (double)device->cache_bytes) & ~UINT64_C(511);
    bool distant = false;
    cudaError_t error = cudaSuccess;
    for (uint32_t t = 0; t < op->tensor_count; t++) distant = distant || op->tensors[t].left == SCOUT_LEFT_DISTANT;
    if (distant && !device->crowd) return cudaErrorMemoryAllocation;
    if (distant)
        error = kernels_stream((char *)device->crowd + written, device->cache_bytes - written, device->crowd, written,
                               device->scratch, multiprocessors, 0, stream);
    for (uint32_t t = 0; t < op->tensor_count && error == cudaSuccess; t++) {
        const scout_tensor *of = &op->tensors[t];
        const bool activation = of->role == SCOUT_INPUT || of->role == SCOUT_OUTPUT, lost = distant && activation;
        if (!tensors[t] || of->left == SCOUT_LEFT_DISTANT) continue;
        if (of->left == SCOUT_LEFT_WRITTEN || (lost && of->role == SCOUT_OUTPUT))
            error = kernels_rewrite(tensors[t], of->bytes, multiprocessors, stream);
        else if (lost && (uintptr_t)tensors[t] % 16 == 0)
            error = kernels_stream(tensors[t], of->bytes, NULL, 0, device->scratch, multiprocessors, 0, stream);
    }
    return error;
}

scout_answer cuda_device_forget(scout_device *device, scout_forget what, const scout_op *op, void *const *tensors,
                                void *stream, scout_why *why) {
    const int multiprocessors = device->multiprocessors;
    const cudaError_t error = what == SCOUT_FORGET_PROGRAM ? kernels_forget(device->scratch, multiprocessors, stream)
                              : what == SCOUT_FORGET_TENSORS
                                  ? hand_over(device, op, tensors, stream)
                                  : kernels_rewrite(device->scratch, SCRATCH_BYTES, multiprocessors, stream);
    return cuda_device_answer(error, "emptying caches", why);
}

scout_answer cuda_device_special(scout_device *device, uint64_t operations, uint64_t *done, void *stream,
                                 scout_why *why) {
    return cuda_device_answer(kernels_special(operations, done, device->scratch, device->multiprocessors, stream),
                              "computing exponentials", why);
}

scout_answer cuda_device_arithmetic(scout_device *device, uint32_t type, uint64_t flops, uint64_t *done, void *stream,
                                    scout_why *why) {
    (void)device, (void)type, (void)flops, (void)stream;
    *done = 0;
    return scout_say(why, SCOUT_NO, "feature", "a GPU's peaks come from the search over products");
}

/* Vendor's datasheets, dense, at boost clock: a check on measurements, never a replacement. First match of the name
 * counts, so the longer names come first. TFLOP/s: fp32, tf32, fp16 and bf16, fp8, int8; TB/s. */
static const struct {
    const char *name;
    double fp32, tf32, half, fp8, int8, tbps;
} datasheets[] = {
    {"GH200 144G", 67, 494.7, 989.4, 1978.9, 1978.9, 4.9},
    {"GH200", 67, 494.7, 989.4, 1978.9, 1978.9, 4.0},
    {"H200 NVL", 60, 417.5, 835.5, 1670.5, 1670.5, 4.8},
    {"H200", 67, 494.7, 989.4, 1978.9, 1978.9, 4.8},
    {"H100 NVL", 60, 417.5, 835.5, 1670.5, 1670.5, 3.9},
    {"H100 PCIe", 51.2, 378, 756, 1513, 1513, 2.0},
    {"H100", 66.9, 494.7, 989.4, 1978.9, 1978.9, 3.35},
    {"A100-SXM4-80GB", 19.5, 156, 312, 0, 624, 2.039},
    {"A100-SXM4-40GB", 19.5, 156, 312, 0, 624, 1.555},
    {"A100 80GB PCIe", 19.5, 156, 312, 0, 624, 1.935},
    {"A100", 19.5, 156, 312, 0, 624, 1.555},
    {"L40S", 91.6, 183, 362, 733, 733, 0.864},
    {"L40", 90.5, 90.5, 181, 362, 362, 0.864},
    {"L4", 30.3, 60, 121, 242.5, 242.5, 0.3},
    {"RTX 4090", 82.6, 82.6, 165.2, 330.3, 660.6, 1.008},
};

double cuda_device_datasheet(const scout_identity *identity, uint32_t type, int tf32) {
    for (size_t k = 0; k < sizeof datasheets / sizeof datasheets[0]; k++) {
        if (!strstr(identity->name, datasheets[k].name)) continue;
        const struct {
            uint32_t type;
            double value;
        } values[] = {{SCOUT_NONE, datasheets[k].tbps},   {SCOUT_FP32, tf32 ? datasheets[k].tf32 : datasheets[k].fp32},
                      {SCOUT_FP16, datasheets[k].half},   {SCOUT_BF16, datasheets[k].half},
                      {SCOUT_FP8E4M3, datasheets[k].fp8}, {SCOUT_FP8E5M2, datasheets[k].fp8},
                      {SCOUT_INT8, datasheets[k].int8}};
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
            if (values[v].type == type) return values[v].value;
        return 0;
    }
    return 0;
}

void cuda_device_telemetry(scout_device *device, scout_telemetry *out) { nvml_telemetry(device->nvml, out); }
