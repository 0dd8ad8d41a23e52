/* The GPUs and their identities, without a context. Most is from the driver; the power limit and the full version are
 * from its management library. Ordinals are the driver's own, so CUDA_VISIBLE_DEVICES applies. */
#include "scout/cuda/device/cuda_driver.h"
#include "scout/cuda/device/nvml.h"
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/nvrtc/nvrtc.h"
#include "scout/cuda/sparse/sparse.h"
#include "scout/cuda/sparse/sparse_lt.h"

#include <string.h>

int32_t cuda_device_count(scout_why *why) {
    int count = 0;
    const cuda_driver *const driver = cuda_driver_open(why);
    if (!driver) return 0;
    if (driver->count(&count) != CUDA_SUCCESS || count < 1) {
        scout_say(why, SCOUT_NO, "hardware", "the NVIDIA driver shows no GPU (is CUDA_VISIBLE_DEVICES set?)");
        return 0;
    }
    return count;
}

/* "GPU-8-4-4-4-12", as the driver's tools write it. */
static void identity_uuid(const CUuuid *uuid, char *text, size_t room) {
    size_t used = (size_t)snprintf(text, room, "GPU-");
    for (int k = 0; k < 16 && used + 4 < room; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "",
                                 (unsigned char)uuid->bytes[k]);
}

static int32_t identity_attribute(const cuda_driver *driver, CUdevice device, CUdevice_attribute attribute) {
    int value = 0;
    return driver->attribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

static void identity_library(scout_identity *out, const char *name, const char *version, const char *path) {
    if (out->library_count >= sizeof out->libraries / sizeof out->libraries[0]) return;
    scout_library *const l = &out->libraries[out->library_count++];
    snprintf(l->name, sizeof l->name, "%s", name);
    snprintf(l->version, sizeof l->version, "%s", version);
    snprintf(l->path, sizeof l->path, "%s", path);
}

/* Without the management library the driver's version is in /proc: the word with two dots. */
static void identity_driver_version(char *text, size_t room) {
    char line[256], *rest = NULL;
    if (nvml_driver_version(text, room)) return;
    snprintf(text, room, "unknown");
    FILE *const f = fopen("/proc/driver/nvidia/version", "re");
    if (!f) return;
    if (fgets(line, sizeof line, f))
        for (char *word = strtok_r(line, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
            if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
                snprintf(text, room, "%s", word);
                break;
            }
    fclose(f);
}

void *cuda_device_nvml(int32_t ordinal) {
    CUdevice device = 0;
    CUuuid uuid;
    char text[64] = "", bus_id[32] = "";
    const cuda_driver *const driver = cuda_driver_open(NULL);
    if (!driver || driver->get(&device, ordinal) != CUDA_SUCCESS) return NULL;
    if (driver->uuid(&uuid, device) == CUDA_SUCCESS) identity_uuid(&uuid, text, sizeof text);
    if (driver->pci(bus_id, sizeof bus_id, device) != CUDA_SUCCESS) bus_id[0] = '\0';
    return nvml_device(text, bus_id);
}

static void identity_libraries(scout_identity *out) {
    char version[48];
    const lt_table *const lt = lt_open(NULL);
    if (lt) identity_library(out, "cublaslt", lt->version, lt->path);
    const dnn_table *const dnn = dnn_open(NULL);
    if (dnn) identity_library(out, "cudnn", dnn->version, dnn->path);
    const sparse_table *const sparse = sparse_open(NULL);
    if (sparse) identity_library(out, "cusparse", sparse->version, sparse->path);
    const sparse_lt_table *const sparse_lt = sparse_lt_open(NULL);
    if (sparse_lt) identity_library(out, "cusparselt", sparse_lt->version, sparse_lt->path);
    const nvrtc_table *const nvrtc = nvrtc_open(NULL);
    if (nvrtc) identity_library(out, "nvrtc", nvrtc->version, nvrtc->path);
    snprintf(version, sizeof version, "%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    identity_library(out, "cudart", version, "linked in");
}

scout_answer cuda_device_identify(int32_t ordinal, scout_identity *out, scout_why *why) {
    CUdevice device = 0;
    CUuuid uuid;
    size_t memory = 0;
    const uint32_t size = out->size;
    const cuda_driver *const driver = cuda_driver_open(why);
    if (!driver) return SCOUT_NO;
    if (driver->get(&device, ordinal) != CUDA_SUCCESS)
        return scout_say(why, SCOUT_NO, "hardware", "there is no device cuda:%d", ordinal);
    memset(out, 0, sizeof *out);
    out->size = size;
    out->ordinal = ordinal;
    if (driver->name(out->name, sizeof out->name, device) != CUDA_SUCCESS ||
        driver->uuid(&uuid, device) != CUDA_SUCCESS || driver->memory(&memory, device) != CUDA_SUCCESS)
        return scout_say(why, SCOUT_LOST, "device_lost", "the driver does not respond for cuda:%d", ordinal);
    identity_uuid(&uuid, out->uuid, sizeof out->uuid);
    snprintf(out->capability, sizeof out->capability, "%d.%d",
             identity_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
             identity_attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    out->units = identity_attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    out->memory_bytes = memory;
    out->cache_bytes = (uint64_t)identity_attribute(driver, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    out->power_limit_w = nvml_power_limit_w(cuda_device_nvml(ordinal));
    identity_driver_version(out->driver, sizeof out->driver);
    identity_libraries(out);
    return SCOUT_OK;
}
