/* Variants of the own norms and softmax: how rows are shared among threads. */
#include "scout/cuda/own/own_rows.h"

#include "scout/cuda/own/own.h"

#include <stdio.h>

enum { THREADS, CACHE, PARAMETERS };

static scout_answer fill_domain(int (*of)(int, int64_t, int), uint32_t most, const scout_op *op, scout_domain *out) {
    static const char *const caches[] = {"normal", "streaming"};
    out->count = PARAMETERS;
    out->parameters[THREADS] = (scout_parameter){.name = "threads"};
    out->parameters[CACHE] = (scout_parameter){.name = "cache", .count = 2, .values = {0, 1}, .labels = caches};
    scout_parameter *threads = &out->parameters[THREADS];
    for (int choice; threads->count < most; threads->values[threads->count++] = choice)
        if ((choice = of((int)op->input, op->shape[1], (int)threads->count)) <= 0) break;
    return SCOUT_OK;
}

scout_answer own_rows_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                             scout_why *why) {
    (void)device, (void)why;
    return fill_domain(row_threads, exhaustive ? 16 : 3, op, out);
}

scout_answer own_rows_long_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                                  scout_why *why) {
    (void)device, (void)exhaustive, (void)why;
    return fill_domain(row_threads_long, 16, op, out);
}

row_config own_rows_config(const own_rows *kernel, int type, int64_t cols, const int64_t *values) {
    if (!values) return (row_config){.threads = kernel->threads(type, cols, 0), .streaming = 0};
    return (row_config){.threads = (int)values[THREADS], .streaming = (int)values[CACHE]};
}

scout_answer own_rows_hold(const own_rows *kernel, const scout_op *op, int64_t cols, int contiguous, scout_why *why) {
    if (!contiguous) return scout_say(why, SCOUT_NO, "layout", "%s needs contiguous rows", kernel->name);
    if (op->input != op->output)
        return scout_say(why, SCOUT_NO, "type", "%s needs input and output of one type", kernel->name);
    if (kernel->threads((int)op->input, cols, 0) > 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "%s is for rows of %s, not of %lld elements", kernel->name, kernel->limits,
                     (long long)cols);
}

scout_answer own_rows_answer(const own_rows *kernel, int error, scout_why *why) {
    char doing[48];
    snprintf(doing, sizeof doing, "preparing %s", kernel->name);
    return error ? cuda_device_answer((cudaError_t)error, doing, why) : SCOUT_OK;
}

int own_rows_describe(const own_rows *kernel, const row_config *config, const row_launch *launch, char *json,
                      size_t room) {
    return snprintf(json, room, "{\"kernel\":\"%s\",\"threads\":%d,\"streaming\":%s,\"blocks\":%u,\"block_rows\":%u}",
                    kernel->name, config->threads, config->streaming ? "true" : "false", launch->blocks, launch->rows);
}

scout_answer own_rows_any_domain(int few, scout_domain *out) {
    out->count = 1;
    out->parameters[0] = few ? (scout_parameter){.name = "threads", .count = 3, .values = {1024, 512, 256}}
                             : (scout_parameter){.name = "threads", .count = 3, .values = {256, 128, 512}};
    return SCOUT_OK;
}

int own_rows_any_threads(int few, const int64_t *values) { return values ? (int)values[0] : few ? 1024 : 256; }

int own_rows_few(const scout_device *device, int64_t rows, int64_t side) {
    const int64_t wide = side < 32 ? side : 32;
    return rows / wide < (int64_t)8 * own_units(device);
}
