/* The steps of a chain as a function of CUDA C++. */
#include "scout/cuda/nvrtc/chain_source.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void chain_steps_put(chain_writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(w->text + w->used, CHAIN_STEPS_ROOM - w->used, format, args);
    va_end(args);
    if (n > 0) w->used += (size_t)n < CHAIN_STEPS_ROOM - w->used ? (size_t)n : CHAIN_STEPS_ROOM - w->used - 1;
}

const chain_type *chain_steps_type(uint32_t type) {
    static const chain_type rows[] = {
        {SCOUT_FP32, "fp32", "float", 4}, {SCOUT_FP16, "fp16", "float", 2}, {SCOUT_BF16, "bf16", "float", 2},
        {SCOUT_INT64, "int64", "i64", 8}, {SCOUT_INT32, "int32", "int", 4}, {SCOUT_INT8, "int8", "i8", 1},
        {SCOUT_UINT8, "uint8", "u8", 1},  {SCOUT_BOOL, "truth", "bool", 1},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type) return &rows[k];
    return NULL;
}

static void put_numbers(chain_writer *w, const elementwise_step *s) {
    const double numbers[2] = {s->numbers.alpha, s->numbers.beta};
    for (int k = 0; k < 2; k++) {
        const float value = (float)numbers[k];
        const double x = numbers[k];
        const int64_t whole = x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (elementwise_class_of(s->type) == ELEMENTWISE_FLOAT)
            chain_steps_put(w, ", __int_as_float(0x%08" PRIx32 ")", bits);
        else
            chain_steps_put(w, ", (i64)0x%016" PRIx64 "ull", (uint64_t)whole);
    }
}

/* Operand i of a step by name: one of the function's parameters, or the step before. */
static void put_operand(chain_writer *w, int step, int i) {
    const int from = w->s->chain.steps[step].from[i];
    chain_steps_put(w, from < 0 ? "v%d" : "a%d", from < 0 ? step - 1 : from);
}

static void put_cast(chain_writer *w, int step) {
    const elementwise_step *s = &w->s->chain.steps[step];
    const int from_truth = s->type == SCOUT_BOOL, to_truth = s->result == SCOUT_BOOL;
    chain_steps_put(w, "(%s)(", chain_steps_type(s->result)->value);
    put_operand(w, step, 0);
    chain_steps_put(w, "%s)", to_truth && !from_truth ? " != 0" : from_truth && !to_truth ? " ? 1 : 0" : "");
}

/* "f_max(f_max(a0, a1), a2)" for what takes any number; of one it is itself. */
static void put_call(chain_writer *w, int step, const char *name, const char *prefix, int nested) {
    const elementwise_step *s = &w->s->chain.steps[step];
    const int groups = nested ? s->inputs - 1 : 1;
    for (int g = 0; g < groups; g++) chain_steps_put(w, "%s%s(", prefix, name);
    for (int i = 0; i < s->inputs; i++) {
        chain_steps_put(w, "%s", i ? ", " : "");
        put_operand(w, step, i);
        if (nested ? i > 0 : i + 1 == s->inputs) {
            put_numbers(w, s);
            chain_steps_put(w, ")");
        }
    }
}

static void put_expression(chain_writer *w, int step) {
    const elementwise_step *s = &w->s->chain.steps[step];
    const elementwise_operator *is = elementwise_operator_at(s->id);
    const int class = elementwise_class_of(s->type);
    if (!is) {
        put_cast(w, step);
    } else if (s->id == ELEMENTWISE_where) {
        put_operand(w, step, 0);
        chain_steps_put(w, " ? ");
        put_operand(w, step, 1);
        chain_steps_put(w, " : ");
        put_operand(w, step, 2);
    } else if (s->id == ELEMENTWISE_mean) {
        put_call(w, step, "sum", "f_", 1);
        chain_steps_put(w, " * (1.0f / %d)", s->inputs);
    } else if (class == ELEMENTWISE_WHOLE) {
        char name[48];
        snprintf(name, sizeof name, "%s<%s>", is->what, s->type == SCOUT_INT64 ? "i64" : "int");
        chain_steps_put(w, "(%s)", chain_steps_type(s->result)->value);
        put_call(w, step, name, "i_", is->most > 2);
    } else {
        put_call(w, step, is->what, class == ELEMENTWISE_FLOAT ? "f_" : "b_",
                 is->most > 2 && s->id != ELEMENTWISE_biasadd);
    }
}

void chain_steps_function(chain_writer *w) {
    const elementwise_chain *c = &w->s->chain;
    chain_steps_put(w, "__device__ __forceinline__ %s compute(", chain_steps_type(w->s->output)->value);
    for (int k = 0; k < c->operands; k++)
        chain_steps_put(w, "%s%s a%d", k ? ", " : "", chain_steps_type(c->operand[k].type)->value, k);
    chain_steps_put(w, ") {\n");
    for (int k = 0; k < c->count; k++) {
        chain_steps_put(w, "    const %s v%d = ", chain_steps_type(c->steps[k].result)->value, k);
        put_expression(w, k);
        chain_steps_put(w, ";\n");
    }
    chain_steps_put(w, "    return v%d;\n}\n\n", c->count - 1);
}
