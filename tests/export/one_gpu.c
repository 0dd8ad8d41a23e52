/* A machine with one GPU, as far as PyTorch's readers of tuning files ask for it: what the driver and the runtime say
 * of the device, and nothing that computes. Preloaded, with the soname of the driver, which is then not looked for.
 * GPU_NAME and GPU_CAPABILITY say which GPU. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    const char *name = getenv("GPU_NAME"), *capability = getenv("GPU_CAPABILITY");
    if (device != 0 || !name || !capability) return cudaErrorInvalidDevice;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    if (sscanf(capability, "%d.%d", &p->major, &p->minor) != 2) return cudaErrorInvalidDevice;
    p->multiProcessorCount = 132;
    p->totalGlobalMem = (size_t)140 << 30;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 64 << 10;
    p->maxThreadsPerMultiProcessor = 2048;
    p->warpSize = 32;
    return cudaSuccess;
}

int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (int)flags; }

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0;
    *active = 0;
    return device;
}
