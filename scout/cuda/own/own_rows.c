/* Variants of the own norms and softmax, which differ in what they compute and not in how rows are shared out. */
#include "scout/cuda/own/own_rows.h"

#include "scout/cuda/own/own.h"

#include <stdio.h>

enum { THREADS, CACHE, PARAMETERS };
typedef int choices(int type, int64_t cols, int choice); /* of threads, the likely best first; 0: there is none */

static void fill_domain(choices *of, int type, int64_t cols, uint32_t most, scout_domain *out) {
    static const char *const caches[] = {"normal", "streaming"};
    out->count = PARAMETERS;
    out->parameters[THREADS] = (scout_parameter){.name = "threads"};
    out->parameters[CACHE] = (scout_parameter){.name = "cache", .count = 2, .values = {0, 1}, .labels = caches};
    scout_parameter *threads = &out->parameters[THREADS];
    for (int choice = of(type, cols, 0); choice > 0 && threads->count < most;
         choice = of(type, cols, (int)threads->count))
        threads->values[threads->count++] = choice;
}

static row_config config_of(choices *of, int type, int64_t cols, const int64_t *values) {
    if (!values) return (row_config){.threads = of(type, cols, 0), .streaming = 0};
    return (row_config){.threads = (int)values[THREADS], .streaming = (int)values[CACHE]};
}

void own_rows_domain(int type, int64_t cols, int exhaustive, scout_domain *out) {
    fill_domain(row_threads, type, cols, exhaustive ? 16 : 3, out);
}

row_config own_rows_config(int type, int64_t cols, const int64_t *values) {
    return config_of(row_threads, type, cols, values);
}

scout_answer own_rows_hold(int type, int64_t cols, scout_why *why) {
    if (row_threads(type, cols, 0) > 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "rows of %lld are too long for the registers of one block",
                     (long long)cols);
}

int own_rows_describe(const char *kernel, const row_config *config, const row_launch *launch, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"%s\",\"threads\":%d,\"streaming\":%s,\"blocks\":%u,\"block_rows\":%u}",
                    kernel, config->threads, config->streaming ? "true" : "false", launch->blocks, launch->rows);
}

norm_rows_shape own_rows_norm_shape(const scout_op *op, const norm_problem *p) {
    norm_rows_shape s = {.rows = p->rows, .cols = p->cols};
    s.form = p->form == NORM_CENTRED ? NORM_FORM_CENTRED
             : p->form == NORM_RMS   ? NORM_FORM_RMS
             : p->power == 1         ? NORM_FORM_MAGNITUDE
                                     : NORM_FORM_LENGTH;
    s.activation = (int)p->activation;
    s.type = (int)op->input;
    s.type_side = (int)(op->weight != SCOUT_NONE ? op->weight : op->input);
    s.has_residual = p->residual >= 0;
    s.sides = (p->scale >= 0) + (p->bias >= 0) + (p->input_bias >= 0);
    s.epsilon = (float)p->epsilon;
    return s;
}

int own_rows_sides_by_column(const norm_problem *p) {
    if (p->scale < 0 && p->bias < 0 && p->input_bias < 0) return 1;
    return p->r0 == 1 && p->step_j == 1 && (p->repeat == 1 || p->step_a == 0);
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

void own_rows_long_domain(int type, int64_t cols, scout_domain *out) {
    fill_domain(row_threads_long, type, cols, 16, out);
}

row_config own_rows_long_config(int type, int64_t cols, const int64_t *values) {
    return config_of(row_threads_long, type, cols, values);
}

scout_answer own_rows_long(const scout_op *op, int64_t cols, const char *name, scout_why *why) {
    if (op->input != op->output) return scout_say(why, SCOUT_NO, "type", "%s writes the type that it reads", name);
    if (row_threads_long((int)op->input, cols, 0) > 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "%s is for rows of 65 to 2048 pieces of 16 bytes, not of %lld elements",
                     name, (long long)cols);
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
