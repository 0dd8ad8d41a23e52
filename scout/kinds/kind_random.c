/* Random numbers: an output, and of a Bernoulli the probabilities. The harness fills these with normal numbers, about
 * half of which are below 0 and say no, as few above 1 say yes: that is as much work. */
#include "scout/kinds/kind_random.h"

#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/random.h"

#include <float.h>
#include <math.h>

static const char *const known_fields[] = {"alpha", "beta", "inputs", NULL};

static bool is_float(uint32_t type) {
    return type == SCOUT_FP32 || type == SCOUT_FP64 || type == SCOUT_FP16 || type == SCOUT_BF16;
}

/* A Bernoulli has ones and zeros of these, too. */
static bool is_whole(uint32_t type) {
    static const uint32_t types[] = {SCOUT_BOOL,  SCOUT_INT8,   SCOUT_UINT8, SCOUT_INT16, SCOUT_UINT16,
                                     SCOUT_INT32, SCOUT_UINT32, SCOUT_INT64, SCOUT_UINT64};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (types[k] == type) return true;
    return false;
}

/* Mean and scale, or the least, the greatest and what lies between them. */
static bool is_finite(const scout_op *op) {
    const random_problem p = random_problem_of(op);
    const double most = p.to == SCOUT_FP64 ? DBL_MAX : FLT_MAX;
    return fabs(p.alpha) <= most && fabs(p.beta) <= most && fabs(p.beta - p.alpha) <= most;
}

bool kind_random_is(const scout_op *op) { return random_how_of(op) != RANDOM_HOWS; }

bool kind_random_build(const oprec *rec, arena *a, scout_op *out, scout_why *why) {
    const bool flips = random_how_of(out) == RANDOM_BERNOULLI;
    out->input = (uint32_t)rec->type;
    out->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : out->input;
    out->weight = SCOUT_NONE;
    out->accumulate = out->output == SCOUT_FP64 ? SCOUT_FP64 : SCOUT_FP32;
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (flips && !is_float(out->input)) return kind_tensors_refuse(why, "type", "probabilities are floats");
    if (!is_float(out->output) && !(flips && is_whole(out->output)))
        return kind_tensors_refuse(why, "type", "a %.30s of %s is not covered", out->what,
                                   dtype_get((dtype)out->output)->name);
    kind_tensors to = kind_tensors_of(out, a, why);
    if (flips && !kind_tensors_add(&to, "p", SCOUT_INPUT, out->input, (int)out->rank, out->shape)) return false;
    if (!kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape)) return false;
    if (!is_finite(out)) return kind_tensors_refuse(why, "feature", "its random numbers have no finite range");
    out->bytes_read = flips ? (double)out->tensors[0].bytes : 0;
    out->bytes_written = (double)out->tensors[out->tensor_count - 1].bytes;
    return true;
}

/* The bits are the same everywhere. What is made of them is rounded to the type, and inside as often as logarithms and
 * sines are; the spread is about the largest number there may be. */
double kind_random_tolerance(const scout_op *op) {
    const random_how how = random_how_of(op);
    const double inside = op->output == SCOUT_FP64 ? 0x1p-53 : 0x1p-24;
    return how == RANDOM_BERNOULLI ? 0 : kind_rounding(op->output) + inside * (how == RANDOM_NORMAL ? 32 : 4);
}

/* A logarithm and a sine; the words take more of integer arithmetic than that. */
double kind_random_specials(const scout_op *op) {
    return random_how_of(op) == RANDOM_NORMAL ? 2.0 * (double)op_elements(&op->tensors[0]) : 0;
}
