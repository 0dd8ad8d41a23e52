/* What scout_cuda.so exports: the device "cuda" with its candidates and references. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/device/libraries.h"

#define ADDRESS(name) &(name),
static const scout_candidate *const candidates[] = {CUDA_CANDIDATES(ADDRESS)};

static const scout_reference *const references[] = {CUDA_REFERENCES(ADDRESS)};

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
    .load = cuda_device_load,
    .trace = cuda_device_trace,
    .forget = cuda_device_forget,
    .distance = cuda_device_distance,
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
