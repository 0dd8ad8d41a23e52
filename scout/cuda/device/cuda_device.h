/* An NVIDIA GPU behind the device interface of scout/plugin.h: what its parts (identity, memory, sequences, probes,
 * reference, libraries' candidates) share. Own kernels' candidates (own_*.c) need only cuda_device_answer and
 * cuda_device_of. Everything runs on the one stream of the device; functions wait only where their comment says so. */
#pragma once

#include "scout/plugin.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>

typedef struct lt_lists lt_lists;     /* what cuBLASLt offered for the last operations; lt.h */
typedef struct dnn_offers dnn_offers; /* and cuDNN; dnn.h */

enum { SCRATCH_BYTES = 4096 };

struct scout_device {
    int32_t ordinal;
    cudaStream_t stream; /* where everything runs */
    cudaEvent_t *events; /* grown on demand, before anything is enqueued */
    uint32_t event_count;
    struct kernels_stamps *stamps; /* on the device, for as many intervals as there are pairs of events */
    double *clocks;                /* of the last intervals, in Hz; 0: not known */
    uint32_t stamp_count, clock_count;
    void *scratch; /* SCRATCH_BYTES on the device: results of checksums, the sink of probes */
    void *crowd;   /* likewise, from the first graph on: as much as the cache holds, to drive all else out of it */
    int multiprocessors;
    int capability_major, capability_minor;
    uint64_t cache_bytes;           /* L2 */
    void *nvml;                     /* its NVML handle, NULL: none */
    struct cuda_channels *channels; /* owned, NULL: nothing has run yet */
    lt_lists *lists;                /* owned, NULL: none yet */
    dnn_offers *offers;             /* owned, NULL: none yet */
};

/* The meaning of an error of the CUDA runtime: out of memory, a poisoned context (SCOUT_LOST), or a failure of this
 * call alone. Clears the runtime's last error. `doing` completes "… failed while ": "copying to the device". */
scout_answer cuda_device_answer(cudaError_t error, const char *doing, scout_why *why);

/* Waits until the stream is empty, by polling, so that a device that died is noticed. */
scout_answer cuda_device_wait(scout_device *device, const char *doing, scout_why *why);

/* --- the parts of the api, one file each --- */

int32_t cuda_device_count(scout_why *why); /* cuda_device_identity.c */
scout_answer cuda_device_identify(int32_t ordinal, scout_identity *out, scout_why *why);
/* The device's handle of the driver's management library; NULL: none. Borrowed. */
void *cuda_device_nvml(int32_t ordinal);

scout_answer cuda_device_open(int32_t ordinal, scout_device **out, scout_why *why); /* cuda_device.c */
void cuda_device_close(scout_device *device);
scout_answer cuda_device_beside(scout_device *device, scout_why *why);
scout_answer cuda_device_memory(scout_device *device, uint64_t *free_bytes, uint64_t *total_bytes, scout_why *why);
scout_answer cuda_device_alloc(scout_device *device, uint64_t bytes, void **out, scout_why *why);
void cuda_device_release(scout_device *device, void *memory);
scout_answer cuda_device_upload(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why);
scout_answer cuda_device_download(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why);
scout_answer cuda_device_fill(scout_device *device, void *to, uint64_t bytes, uint32_t type, uint32_t how,
                              uint64_t seed, scout_why *why);
scout_answer cuda_device_checksum(scout_device *device, const void *data, uint64_t bytes, uint64_t *sum,
                                  scout_why *why);
scout_answer cuda_device_distance(scout_device *device, uint32_t want_type, const void *want, uint32_t got_type,
                                  const void *got, uint64_t count, scout_distance *out, scout_why *why);

scout_answer cuda_device_zeros(scout_device *device, const void *matrix, uint32_t type, int64_t rows, int64_t cols,
                               scout_zeros *out, scout_why *why); /* cuda_device_zeros.c */

/* The time of empty launches at their cheapest, and whether they cost more now. */
double cuda_channels_settle(scout_device *device); /* cuda_device_channels.c */
bool cuda_channels_dear(const scout_device *device, double settled_s);
double cuda_channels_beside(const scout_device *device); /* what a graph's interval takes beside its launches */
void cuda_channels_free(struct cuda_channels *channels);

scout_answer cuda_device_record(scout_device *device, int graph, uint32_t launches, scout_enqueue enqueue,
                                void *context, scout_sequence **out, scout_why *why); /* cuda_device_sequence.c */
void cuda_device_load(scout_device *device, scout_enqueue enqueue, void *context);
scout_answer cuda_device_run(scout_device *device, scout_sequence *sequence, uint32_t repeats, double *seconds,
                             scout_why *why);
scout_answer cuda_device_play(scout_device *device, scout_sequence *const *sequences, uint32_t count, double *seconds,
                              scout_why *why);
uint32_t cuda_device_clocks(scout_device *device, double *hz, uint32_t most);
void cuda_device_drop(scout_device *device, scout_sequence *sequence);
scout_answer cuda_device_made_of(scout_device *device, scout_sequence *sequence, scout_composition *out,
                                 scout_why *why);
scout_answer cuda_device_trace(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context,
                               uint32_t most, scout_trace_event *events, uint32_t *count,
                               scout_why *why); /* cuda_device_trace.c */
double cuda_device_now(scout_device *device);
void cuda_device_pause(scout_device *device, double seconds);

scout_answer cuda_device_stream(scout_device *device, const void *read, uint64_t read_bytes, void *written,
                                uint64_t written_bytes, void *stream, scout_why *why); /* cuda_device_probe.c */
scout_answer cuda_device_empty(scout_device *device, void *stream, scout_why *why);
scout_answer cuda_device_forget(scout_device *device, scout_forget what, const scout_op *op, void *const *tensors,
                                void *stream, scout_why *why);
scout_answer cuda_device_special(scout_device *device, uint64_t operations, uint64_t *done, void *stream,
                                 scout_why *why);
scout_answer cuda_device_arithmetic(scout_device *device, uint32_t type, uint64_t flops, uint64_t *done, void *stream,
                                    scout_why *why);
double cuda_device_datasheet(const scout_identity *identity, uint32_t type, int tf32);
void cuda_device_profile(scout_device *device, int on);
void cuda_device_telemetry(scout_device *device, scout_telemetry *out);
