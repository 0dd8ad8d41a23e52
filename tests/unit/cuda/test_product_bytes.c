/* Quantised products on the GPU without one: what is done to a sum against scout/op/requantize.h, and how products are
 * divided. */
#include "scout/cuda/own/own_gemm_quantised.h"
#include "tests/unit/unit.h"

static const char *const activations[][2] = {{NULL, NULL},         {"relu", NULL},          {"relu6", NULL},
                                             {"leakyrelu", "0.1"}, {"clip", "-20.5,33.25"}, {"clip", "-1000,-999"},
                                             {"clip", "200,300"}};

static gemm_problem problem_of(uint32_t out, int64_t depth, const char *activation, const char *parameters) {
    const scout_field fields[] = {
        {"quant", 0, "qdq"}, {"activation", 0, activation}, {"activation_params", 0, parameters}};
    const scout_op op = {.size = sizeof op,
                         .input = SCOUT_UINT8,
                         .output = out,
                         .fields = fields,
                         .field_count = !activation   ? 1
                                        : !parameters ? 2
                                                      : 3};
    gemm_problem p;
    memset(&p, 0, sizeof p);
    p.k = depth, p.type_c = out;
    p.activation = activation_of(&op);
    p.quant = requantize_of(&op, depth);
    return p;
}

static double kept(const product_bytes_finish *f, float y) {
    if (f->type == PRODUCT_BYTES_FP32) return (double)y;
    const uint8_t byte = product_bytes_rounded(f, y);
    return f->type == PRODUCT_BYTES_INT8 ? (double)(int8_t)byte : (double)byte;
}

static bool is_right(const gemm_problem *p, const product_bytes_finish *f, int32_t sum, int32_t bias) {
    const double want = requantize_apply(&p->quant, &p->activation, (double)sum + (double)bias);
    const double got = kept(f, product_bytes_value(f, sum, bias));
    const double off = fabs(got - want), room = fabs(want) + requantize_spread(&p->quant, want);
    if (off <= requantize_tolerance(&p->quant) * room) return true;
    printf("type %d, depth %lld: %d and %d become %g instead of %g\n", f->type, (long long)p->k, (int)sum, (int)bias,
           got, want);
    return false;
}

/* From single steps up to sums that no byte holds. */
static void check_sums(const gemm_problem *p) {
    const product_bytes_finish f = own_gemm_quantised_finish(p);
    uint32_t state = 1;
    bool good = true;
    for (int k = 0; k < 4000 && good; k++) {
        state = state * 1664525u + 1013904223u;
        const int32_t sum = (int32_t)(state >> k % 30) * (k % 2 ? 1 : -1) / 2;
        state = state * 1664525u + 1013904223u;
        const int32_t bias = k % 3 ? (int32_t)(state >> 16) : 0;
        good = is_right(p, &f, sum, bias) && is_right(p, &f, k - 2000, 0);
    }
    UNIT_CHECK(good);
}

static void sums_become_what_they_should(void) {
    static const uint32_t types[] = {SCOUT_INT8, SCOUT_UINT8, SCOUT_FP32};
    static const int64_t depths[] = {1, 129, 4096, 65536};
    for (size_t t = 0; t < 3; t++)
        for (size_t d = 0; d < 4; d++)
            for (size_t a = 0; a < sizeof activations / sizeof activations[0]; a++) {
                const gemm_problem p = problem_of(types[t], depths[d], activations[a][0], activations[a][1]);
                check_sums(&p);
            }
}

static void what_is_in_the_middle_becomes_even(void) {
    const gemm_problem p = problem_of(SCOUT_UINT8, 1, NULL, NULL);
    const product_bytes_finish f = own_gemm_quantised_finish(&p);
    static const int wanted[] = {128, 130, 130, 132}; /* 0.5, 1.5, 2.5 and 3.5, behind 128 */
    for (int k = 0; k < 4; k++) UNIT_INT(product_bytes_rounded(&f, product_bytes_value(&f, 16 + 32 * k, 0)), wanted[k]);
    UNIT_INT(product_bytes_rounded(&f, product_bytes_value(&f, INT32_MAX, 0)), 255);
    UNIT_INT(product_bytes_rounded(&f, product_bytes_value(&f, INT32_MIN, 0)), 0);
}

static void bytes_without_sign_are_shifted(void) {
    for (int x = 0; x < 256; x++) {
        UNIT_INT((int8_t)product_bytes_shifted((uint8_t)x, 1), x - 128);
        UNIT_INT(product_bytes_shifted((uint8_t)x, 0), x);
    }
}

static bool covers(int64_t all, int64_t most) {
    const own_gemm_pieces p = own_gemm_pieces_of(all, most);
    int64_t end = 0;
    if (p.count < 1 || p.size > most || p.size > all) return false;
    for (int64_t k = 0; k < p.count; k++) {
        const int64_t begin = own_gemm_pieces_begin(&p, k);
        if (begin % 16 != 0 || begin < 0 || begin > end || begin + p.size <= end) return false;
        end = begin + p.size;
    }
    return end == all;
}

static void pieces_cover_everything(void) {
    static const int64_t room[] = {64, 65, 79, 80, 100, 127, 1000, 2048};
    for (size_t r = 0; r < sizeof room / sizeof room[0]; r++)
        for (int64_t all = 1; all < 5000; all += all < 300 ? 1 : 7)
            if (!UNIT_CHECK(covers(all, room[r]))) {
                printf("%lld in pieces of at most %lld\n", (long long)all, (long long)room[r]);
                return;
            }
    UNIT_INT(own_gemm_pieces_of(64, 63).count, 0);
    UNIT_INT(own_gemm_pieces_of(63, 63).count, 1);
}

int main(void) {
    UNIT_RUN(sums_become_what_they_should);
    UNIT_RUN(what_is_in_the_middle_becomes_even);
    UNIT_RUN(bytes_without_sign_are_shifted);
    UNIT_RUN(pieces_cover_everything);
    return unit_end();
}
