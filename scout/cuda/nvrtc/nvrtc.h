/* NVRTC, the compiler of CUDA source at run time, opened then like every other library (scout/device/libraries.h), and
 * kernels made by it. It compiles without any header or toolkit where it runs. */
#pragma once

#include "scout/plugin.h"

#include <cuda_runtime_api.h>
#include <nvrtc.h>

#define NVRTC_FUNCTIONS(F)                                                                                             \
    F(nvrtcVersion)                                                                                                    \
    F(nvrtcGetErrorString)                                                                                             \
    F(nvrtcCreateProgram)                                                                                              \
    F(nvrtcDestroyProgram)                                                                                             \
    F(nvrtcCompileProgram)                                                                                             \
    F(nvrtcGetCUBINSize)                                                                                               \
    F(nvrtcGetCUBIN)                                                                                                   \
    F(nvrtcGetProgramLogSize)                                                                                          \
    F(nvrtcGetProgramLog)

typedef struct nvrtc_table {
#define NVRTC_MEMBER(name) __typeof__(&(name)) name;
    NVRTC_FUNCTIONS(NVRTC_MEMBER)
#undef NVRTC_MEMBER
    char path[256], version[48];
} nvrtc_table;

/* All of these may be called by any thread. The library, opened at the first call; NULL: why says where it was looked
 * for. No context is made. */
const nvrtc_table *nvrtc_open(scout_why *why);

/* Code for one GPU. */
typedef struct nvrtc_code {
    char *cubin;
    size_t bytes;
} nvrtc_code;

typedef struct nvrtc_source {
    const char *text;
    int include_count; /* texts that it may #include, by their names */
    const char *const *includes, *const *include_names;
} nvrtc_source;

/* Code for a GPU of that compute capability. It is compiled at the first call for this text, and kept: the same kernel
 * in another operation costs nothing. A second request for a text that is being compiled waits for it; no other request
 * waits. Borrowed, until nvrtc_return; NULL where it fails. SCOUT_NO (library): NVRTC does not support this GPU, or
 * refuses the source. */
scout_answer nvrtc_borrow(const nvrtc_source *source, int major, int minor, const nvrtc_code **out, scout_why *why);
void nvrtc_return(const nvrtc_code *code);
