/* Opening a GPU, its memory, and the meaning of its errors. All work goes to one stream of its own. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/sparse/sparse.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Errors after which the context or the device is lost to this process. */
static const cudaError_t sticky[] = {
    cudaErrorIllegalAddress,
    cudaErrorLaunchFailure,
    cudaErrorMisalignedAddress,
    cudaErrorAssert,
    cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorLaunchTimeout,
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorContextIsDestroyed,
    cudaErrorDeviceUninitialized,
    cudaErrorDevicesUnavailable,
    cudaErrorNoDevice,
    cudaErrorMpsClientTerminated,
    cudaErrorExternalDevice,
    cudaErrorContained,
    cudaErrorTensorMemoryLeak,
    cudaErrorCudartUnloading,
    cudaErrorUnknown,
    cudaErrorSystemNotReady,
    cudaErrorInitializationError,
    cudaErrorInsufficientDriver,
};

static bool device_lost(cudaError_t error) {
    for (size_t k = 0; k < sizeof sticky / sizeof sticky[0]; k++)
        if (sticky[k] == error) return true;
    /* an error that comes again on a call that cannot fail by itself is one of the device */
    size_t free_bytes = 0, total_bytes = 0;
    const cudaError_t again = cudaMemGetInfo(&free_bytes, &total_bytes);
    cudaGetLastError();
    return again == error;
}

scout_answer cuda_device_answer(cudaError_t error, const char *doing, scout_why *why) {
    if (error == cudaSuccess) return SCOUT_OK;
    cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "not enough GPU memory for %s", doing);
    if (device_lost(error))
        return scout_say(why, SCOUT_LOST, "poisoned", "%s: %s; the GPU cannot be used any more from this process",
                         doing, cudaGetErrorString(error));
    return scout_say(why, SCOUT_FAILED, "error", "%s: %s (%s)", doing, cudaGetErrorString(error),
                     cudaGetErrorName(error));
}

scout_answer cuda_device_wait(scout_device *device, const char *doing, scout_why *why) {
    const struct timespec nap = {0, 20000};
    const double start = cuda_device_now(device);
    cudaError_t state = cudaStreamQuery(device->stream);
    while (state == cudaErrorNotReady) {
        /* short work is polled; a processor that spins through long work could run another worker */
        if (cuda_device_now(device) - start > 0.002) nanosleep(&nap, NULL);
        state = cudaStreamQuery(device->stream);
    }
    return cuda_device_answer(state, doing, why);
}

static scout_answer device_set_up(scout_device *d, scout_why *why) {
    const struct {
        int *to;
        enum cudaDeviceAttr attribute;
    } attributes[] = {{&d->multiprocessors, cudaDevAttrMultiProcessorCount},
                      {&d->capability_major, cudaDevAttrComputeCapabilityMajor},
                      {&d->capability_minor, cudaDevAttrComputeCapabilityMinor}};
    int cache = 0;
    scout_answer answer = cuda_device_answer(cudaSetDevice(d->ordinal), "opening the GPU", why);
    for (size_t k = 0; k < sizeof attributes / sizeof attributes[0] && answer == SCOUT_OK; k++)
        answer = cuda_device_answer(cudaDeviceGetAttribute(attributes[k].to, attributes[k].attribute, d->ordinal),
                                    "asking the GPU what it is", why);
    if (answer == SCOUT_OK)
        answer = cuda_device_answer(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, d->ordinal),
                                    "asking the GPU what it is", why);
    d->cache_bytes = (uint64_t)cache;
    if (answer == SCOUT_OK)
        answer =
            cuda_device_answer(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), "opening the GPU", why);
    if (answer == SCOUT_OK) answer = cuda_device_answer(cudaMalloc(&d->scratch, SCRATCH_BYTES), "opening the GPU", why);
    if (answer != SCOUT_OK) return answer;
    /* the first launch of all loads the program onto the GPU: better now than in a measurement */
    answer = cuda_device_answer(kernels_empty(d->stream), "starting a first kernel", why);
    if (answer == SCOUT_FAILED)
        return scout_say(
            why, SCOUT_NO, "hardware",
            "this build has no code for a GPU of compute capability %d.%d; build it with CUDA_ARCHS for it",
            d->capability_major, d->capability_minor);
    return answer == SCOUT_OK ? cuda_device_wait(d, "starting a first kernel", why) : answer;
}

scout_answer cuda_device_open(int32_t ordinal, scout_device **out, scout_why *why) {
    scout_device *const d = calloc(1, sizeof *d);
    *out = NULL;
    if (!d) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    d->ordinal = ordinal;
    const scout_answer answer = device_set_up(d, why);
    if (answer != SCOUT_OK) {
        cuda_device_close(d);
        return answer;
    }
    d->nvml = cuda_device_nvml(ordinal);
    *out = d;
    return SCOUT_OK;
}

/* The context itself stays until the process ends: giving it back would take handles of libraries with it. */
void cuda_device_close(scout_device *device) {
    if (!device) return;
    cuda_channels_free(device->channels);
    lt_lists_free(device->lists);
    dnn_offers_free(device->offers);
    for (uint32_t k = 0; k < device->event_count; k++) cudaEventDestroy(device->events[k]);
    free(device->events);
    free(device->clocks);
    cudaFree(device->stamps);
    cudaFree(device->scratch);
    cudaFree(device->crowd);
    if (device->stream) cudaStreamDestroy(device->stream);
    cudaGetLastError();
    free(device);
}

/* A handle cannot be made while a launch is captured: this thread's are made before. What a library lacks, its
 * candidates say. */
scout_answer cuda_device_beside(scout_device *device, scout_why *why) {
    cudnnHandle_t dnn = NULL;
    cublasLtHandle_t lt = NULL;
    (void)device;
    (void)dnn_ready(&dnn, why);
    (void)lt_ready(&lt, why);
    sparse_beside();
    return SCOUT_OK;
}

scout_answer cuda_device_memory(scout_device *device, uint64_t *free_bytes, uint64_t *total_bytes, scout_why *why) {
    size_t free_now = 0, total = 0;
    (void)device;
    const scout_answer answer = cuda_device_answer(cudaMemGetInfo(&free_now, &total), "asking for free memory", why);
    *free_bytes = free_now;
    *total_bytes = total;
    return answer;
}

/* Also while a stream is being captured, by this thread or another one: what is asked for is no part of that graph. */
scout_answer cuda_device_alloc(scout_device *device, uint64_t bytes, void **out, scout_why *why) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; /* then the one that was before */
    char doing[64];
    (void)device;
    *out = NULL;
    snprintf(doing, sizeof doing, "a buffer of %llu bytes", (unsigned long long)bytes);
    const bool relaxed = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    const scout_answer answer = cuda_device_answer(cudaMalloc(out, bytes ? bytes : 512), doing, why);
    if (relaxed) (void)cudaThreadExchangeStreamCaptureMode(&mode);
    if (answer != SCOUT_OK || ((uintptr_t)*out & 511) == 0) return answer;
    cudaFree(*out);
    *out = NULL;
    return scout_say(why, SCOUT_FAILED, "alignment", "the driver's memory is not aligned to 512 bytes");
}

void cuda_device_release(scout_device *device, void *memory) {
    (void)device;
    if (memory && cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

static scout_answer device_copy(scout_device *device, void *to, const void *from, uint64_t bytes, const char *doing,
                                scout_why *why) {
    const scout_answer answer =
        cuda_device_answer(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device->stream), doing, why);
    return answer == SCOUT_OK ? cuda_device_wait(device, doing, why) : answer;
}

scout_answer cuda_device_upload(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why) {
    return device_copy(device, to, from, bytes, "copying to the GPU", why);
}

scout_answer cuda_device_download(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why) {
    return device_copy(device, to, from, bytes, "copying from the GPU", why);
}

/* As on the CPU: lengths are from the last 64th below the bound, at least two values. */
static cudaError_t fill_places(scout_device *device, void *to, uint64_t bytes, uint32_t type, uint32_t how,
                               uint64_t seed) {
    const uint32_t bound = (uint32_t)(seed >> 32), last = bound / 64 < 2 ? 2 : bound / 64;
    const uint32_t range = how == SCOUT_FILL_NEAR && last < bound ? last : bound;
    if (bound == 0 || bound > (uint32_t)1 << 31) return cudaErrorInvalidValue;
    if (how == SCOUT_FILL_BELOW && type != SCOUT_INT32 && type != SCOUT_INT64)
        return kernels_fill_boxes(to, bytes, type, (float)bound, seed, device->stream);
    if (type != SCOUT_INT32 && type != SCOUT_INT64) return cudaErrorInvalidValue;
    return kernels_fill_places(to, bytes, type == SCOUT_INT64 ? 8 : 4, bound - range, range, seed, device->stream);
}

scout_answer cuda_device_fill(scout_device *device, void *to, uint64_t bytes, uint32_t type, uint32_t how,
                              uint64_t seed, scout_why *why) {
    const bool places = how == SCOUT_FILL_BELOW || how == SCOUT_FILL_NEAR;
    const float factor = how == SCOUT_FILL_SMALL ? ldexpf(1, -(int)(seed >> 32 & 127)) : 1;
    const cudaError_t error =
        places                   ? fill_places(device, to, bytes, type, how, seed)
        : how == SCOUT_FILL_BYTE ? cudaMemsetAsync(to, (int)(seed & 0xff), bytes, device->stream)
                                 : kernels_fill(to, bytes, type, how == SCOUT_FILL_SCALE, factor, seed, device->stream);
    if (error == cudaErrorInvalidValue && how != SCOUT_FILL_BYTE)
        return scout_say(why, SCOUT_NO, "type", "the GPU makes no random numbers of type %u", type);
    const scout_answer answer = cuda_device_answer(error, "filling a buffer", why);
    return answer == SCOUT_OK ? cuda_device_wait(device, "filling a buffer", why) : answer;
}

scout_answer cuda_device_checksum(scout_device *device, const void *data, uint64_t bytes, uint64_t *sum,
                                  scout_why *why) {
    const scout_answer answer =
        cuda_device_answer(kernels_checksum(data, bytes, device->scratch, device->multiprocessors, device->stream),
                           "adding up a buffer", why);
    return answer == SCOUT_OK ? cuda_device_download(device, sum, device->scratch, sizeof *sum, why) : answer;
}

/* The blocks' sums are added up here, in their order: the same numbers give the same distance. */
scout_answer cuda_device_distance(scout_device *device, uint32_t want_type, const void *want, uint32_t got_type,
                                  const void *got, uint64_t count, scout_distance *out, scout_why *why) {
    enum { MOST = SCRATCH_BYTES / sizeof(kernels_distance_sums) };
    kernels_distance_sums parts[MOST];
    int blocks = MOST;
    scout_answer answer = cuda_device_answer(
        kernels_distance(want, want_type, got, got_type, count, device->scratch, &blocks, device->stream),
        "comparing on the GPU", why);
    if (answer == SCOUT_OK)
        answer = cuda_device_download(device, parts, device->scratch, sizeof *parts * (size_t)blocks, why);
    for (int k = 0; k < blocks && answer == SCOUT_OK; k++) {
        out->off += parts[k].off;
        out->all += parts[k].all;
        out->apart += parts[k].apart;
        out->infinite += parts[k].infinite;
    }
    return answer;
}
