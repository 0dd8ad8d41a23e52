/* The bounds of a reference's samples and projections, and why they find wrong outputs and nothing else:
 *
 * An element may be off by tolerance * (|want| + spread), which is a bound. A projection may be off by
 *
 *     3 * tolerance * root(spread^2 + sum of (c[i][j] * x[j])^2)
 *
 * - Independent roundings add up by the root of their number, which is in these squares already; only how far into the
 *   tail of their sum one has to go is left to choose. Rounding to the nearest is evenly distributed over the half step
 *   2^-p * 2^floor(log2 |c|) either way: for the c at hand, Hoeffding's lemma gives a sum beyond t a probability of at
 *   most 2 exp(-t^2 / 2V), V a third of the half steps' squares, on average 0.17 of those of 2^-p * c * x. With 3, and
 *   squares of c that are up to twice their spread's (normal numbers, 64 together), that is below 1e-16: less than one
 *   false alarm in 1e9 runs of 1e7 projections. Fewer than 10 roundings cannot exceed it at all (Cauchy and Schwarz).
 * - What is cut off instead of rounded moves all elements by the same part, less than half of the tolerance, and so the
 *   projection by that part of itself: 8 deviations of it stay within.
 *
 * An element that is off by its own spread moves its projection by 48/65 of that, and the projection's squares are
 * `width` times the element's, twice: it shows in any place where tolerance < 0.74 / (4.3 * root(width)), which is
 * 0.043 for segments of 16 and 0.011 for 256. cpu_cover_segments holds that against the types.
 * kernels/harness/check_gemm.cu has the same rule and the same weights. An activation may double an error and its
 * spread: that leaves 0.029 for segments of 16. */
#include "scout/cpu/device/cpu_cover.h"

#include "common/mix.h"
#include "scout/cpu/device/cpu_fill.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SEGMENT = 256, FINE_SEGMENT = 16, WIDEST_SEGMENT = 2048, PROJECTED_DEVIATIONS = 3 };

/* How many columns may be projected together so that one wrong element still shows: by the tolerances of
 * scout/kinds/kind_gemm.c for K up to 262,144 (fp8 0.037, bf16 with int4 0.020; bf16, tf32, int4 0.006; else 0.003). */
static int64_t widest_segment(const gemm_problem *p) {
    if (p->activation.function != ACTIVATION_PLAIN || p->quant.is) return FINE_SEGMENT; /* errors may be larger */
    if (p->type_a == SCOUT_FP8E4M3 || p->type_a == SCOUT_FP8E5M2) return FINE_SEGMENT;
    const bool widens = gemm_widens(p->type_a, p->type_b);
    if (widens && p->type_a == SCOUT_BF16) return FINE_SEGMENT;
    const bool integer = p->type_c == SCOUT_INT32, fine = p->type_c == SCOUT_FP16 || p->type_a == SCOUT_FP64;
    return (integer || fine) && !widens ? WIDEST_SEGMENT : SEGMENT;
}

void cpu_cover_segments(const gemm_problem *p, int64_t *width, int64_t *segments) {
    const double rows = (double)p->m * (double)p->batch;
    const int64_t widest = widest_segment(p);
    /* wider where the work or the memory of so many projections would be too much, and nothing is missed */
    for (*width = widest < SEGMENT ? widest : SEGMENT;; *width *= 2) {
        *segments = (p->n + *width - 1) / *width;
        const double count = rows * (double)*segments;
        if (*segments == 1 || *width >= widest || (count * (double)p->k <= 2e9 && count <= 1 << 24)) return;
    }
}

/* Neighbours never have the same weight. */
double cpu_cover_weight(uint64_t seed, int64_t column) {
    const uint64_t random = mix_bits(seed ^ mix_bits((uint64_t)column));
    const int size = (column % 2 ? 68 : 48) + (int)((random >> 8) % 13);
    return random & 1 ? -size : size;
}

static double error_of(double got, double want, double measure) {
    const double difference = got == want ? 0 : fabs(got - want); /* both may be infinite */
    if (difference == 0) return 0;
    if (!isfinite(got) || !isfinite(measure) || measure == 0) return INFINITY;
    return difference / measure;
}

double cpu_cover_sample_error(double got, double want, double spread) {
    return error_of(got, want, fabs(want) + spread);
}

double cpu_cover_projection_error(double got, double squares, double want, double spread) {
    return error_of(got, want, PROJECTED_DEVIATIONS * sqrt(spread * spread + squares));
}

void cpu_cover_sum(const scout_verdict *parts, int count, scout_verdict *verdict) {
    const uint32_t size = verdict->size;
    scout_verdict all = {.size = size};
    for (int k = 0; k < count; k++) {
        const scout_verdict *part = &parts[k];
        if (part->compared > 0 && (all.compared == 0 || part->worst > all.worst))
            all.worst = part->worst, all.at = part->at, all.got = part->got, all.want = part->want;
        if (part->worst_projected > all.worst_projected) all.worst_projected = part->worst_projected;
        all.compared += part->compared, all.wrong += part->wrong;
    }
    memcpy(verdict, &all, size < sizeof all ? size : sizeof all);
}
