/* Opening the driver. Kept apart from the CUDA runtime: its first call on a device would make a context. */
#include "scout/cuda/device/cuda_driver.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* A process has one driver, which can be initialised only once: the result is kept. */
static struct {
    bool tried, usable;
    cuda_driver table;
    scout_why why;
} driver;

static const struct {
    const char *name;
    size_t at;
} names[] = {
    {"cuInit", offsetof(cuda_driver, init)},
    {"cuDriverGetVersion", offsetof(cuda_driver, version)},
    {"cuDeviceGetCount", offsetof(cuda_driver, count)},
    {"cuDeviceGet", offsetof(cuda_driver, get)},
    {"cuDeviceGetName", offsetof(cuda_driver, name)},
    {"cuDeviceGetUuid_v2", offsetof(cuda_driver, uuid)},
    {"cuDeviceTotalMem_v2", offsetof(cuda_driver, memory)},
    {"cuDeviceGetPCIBusId", offsetof(cuda_driver, pci)},
    {"cuDeviceGetAttribute", offsetof(cuda_driver, attribute)},
    {"cuGetErrorString", offsetof(cuda_driver, error)},
};

/* A runtime runs on every driver of its own major version and of later ones. */
static bool driver_new_enough(void) {
    int version = 0;
    const int wanted = CUDART_VERSION / 1000;
    if (driver.table.version(&version) == CUDA_SUCCESS && version / 1000 >= wanted) return true;
    scout_say(
        &driver.why, SCOUT_NO, "library",
        "the NVIDIA driver is too old: it serves CUDA %d.%d, and this program needs CUDA %d.0 (driver 580 or newer)",
        version / 1000, version % 1000 / 10, wanted);
    return false;
}

static bool driver_load(void) {
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    const char *text = NULL;
    if (!library) {
        scout_say(&driver.why, SCOUT_NO, "library", "no NVIDIA driver: libcuda.so.1 cannot be opened");
        return false;
    }
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        void *const symbol = dlsym(library, names[k].name);
        if (!symbol) {
            scout_say(&driver.why, SCOUT_NO, "library", "the NVIDIA driver is too old: libcuda.so.1 has no %s",
                      names[k].name);
            return false;
        }
        /* a function's address travels as bytes: C has no cast from an object's pointer to a function's */
        memcpy((char *)&driver.table + names[k].at, &symbol, sizeof symbol);
    }
    if (!driver_new_enough()) return false;
    const CUresult result = driver.table.init(0);
    if (result == CUDA_SUCCESS) return true;
    if (driver.table.error(result, &text) != CUDA_SUCCESS || !text) text = "no explanation";
    scout_say(&driver.why, SCOUT_NO, "hardware",
              result == CUDA_ERROR_NO_DEVICE ? "the NVIDIA driver finds no GPU (cuInit: %s)"
                                             : "the NVIDIA driver does not start (cuInit: %s)",
              text);
    return false;
}

const cuda_driver *cuda_driver_open(scout_why *why) {
    if (!driver.tried) {
        driver.tried = true;
        driver.usable = driver_load();
    }
    if (driver.usable) return &driver.table;
    if (why) *why = driver.why;
    return NULL;
}
