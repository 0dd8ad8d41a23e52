/* Variants of the own norms and softmax, which differ in what they compute and not in how rows are shared out. */
#include "scout/cuda/own_rows.h"

#include "scout/cuda/own.h"

#include <stdio.h>

enum { THREADS, DEPTH, CACHE, PARAMETERS };

void own_rows_domain(int type, int64_t cols, int rings, int exhaustive, scout_domain *out) {
    static const char *const caches[] = {"normal", "streaming"};
    const uint32_t most = exhaustive ? 16 : 3;
    out->count = PARAMETERS;
    out->parameters[THREADS] = (scout_parameter){.name = "threads"};
    out->parameters[DEPTH] = (scout_parameter){.name = "depth", .count = 1, .values = {0, 3, 4, 2, 6, 8}};
    out->parameters[CACHE] = (scout_parameter){.name = "cache", .count = 2, .values = {0, 1}, .labels = caches};
    if (rings) out->parameters[DEPTH].count = exhaustive ? 6 : 4;
    scout_parameter *threads = &out->parameters[THREADS];
    for (int choice = row_threads(type, cols, 0); choice > 0 && threads->count < most;
         choice = row_threads(type, cols, (int)threads->count))
        threads->values[threads->count++] = choice;
}

row_config own_rows_config(int type, int64_t cols, const int64_t *values) {
    if (!values) return (row_config){.threads = row_threads(type, cols, 0), .depth = 0, .streaming = 0};
    return (row_config){.threads = (int)values[THREADS], .depth = (int)values[DEPTH], .streaming = (int)values[CACHE]};
}

scout_answer own_rows_hold(int type, int64_t cols, scout_why *why) {
    if (row_threads(type, cols, 0) > 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "rows of %lld are too long for the registers of one block",
                     (long long)cols);
}

int own_rows_describe(const char *kernel, const row_config *config, const row_launch *launch, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\":\"%s\",\"threads\":%d,\"depth\":%d,\"streaming\":%s,\"blocks\":%u,"
                    "\"block_rows\":%u,\"shared_bytes\":%u}",
                    kernel, config->threads, config->depth, config->streaming ? "true" : "false", launch->blocks,
                    launch->rows, launch->shared_bytes);
}

static void *tensor(const scout_args *args, int which) { return which < 0 ? NULL : args->tensors[which]; }

norm_tensors own_rows_norm_tensors(const norm_problem *p, const scout_args *args) {
    return (norm_tensors){.x = args->tensors[NORM_X],
                          .residual = tensor(args, p->residual),
                          .scale = tensor(args, p->scale),
                          .bias = tensor(args, p->bias),
                          .input_bias = tensor(args, p->input_bias),
                          .mean = tensor(args, p->mean),
                          .variance = tensor(args, p->variance),
                          .y = args->tensors[NORM_Y],
                          .sum = tensor(args, p->sum)};
}

void own_rows_any_domain(int few, scout_domain *out) {
    out->count = 1;
    out->parameters[0] = few ? (scout_parameter){.name = "threads", .count = 3, .values = {1024, 512, 256}}
                             : (scout_parameter){.name = "threads", .count = 3, .values = {256, 128, 512}};
}

int own_rows_any_threads(int few, const int64_t *values) { return values ? (int)values[0] : few ? 1024 : 256; }

int own_rows_few(const scout_device *device, int64_t rows, int64_t side) {
    const int64_t wide = side < 32 ? side : 32;
    return rows / wide < (int64_t)8 * own_units(device);
}
