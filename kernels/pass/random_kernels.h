/* Random numbers by counting (Philox4x32-10) as plain C functions; what kernels/pass/pass_kernels.h says of passes
 * holds here, too. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RANDOM_PASS_NORMAL, RANDOM_PASS_UNIFORM, RANDOM_PASS_BERNOULLI };

/* Which words a number is made of is what scout/op/random.h says. */
typedef struct random_pass {
    int how;
    int from, to;       /* from: of probabilities, which a Bernoulli alone has: fp32, fp16, bf16, fp64 */
    int64_t count;      /* to: these; of a Bernoulli also bool and integers */
    double alpha, beta; /* mean and scale, or least and greatest */
    unsigned long long key;
    pass_config config;
} random_pass;

int random_pass_fits(const random_pass *pass);
/* p: probabilities, NULL where there are none */
int random_pass_launch(const random_pass *pass, const void *p, void *y, void *stream);

#ifdef __cplusplus
}
#endif
