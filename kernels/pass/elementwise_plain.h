/* Elementwise operators that models seldom have, and types: a part of elementwise_pass, which asks it first. */
#pragma once

#include "kernels/pass/pass_kernels.h"

int elementwise_plain_takes(const elementwise_pass *pass);
int elementwise_plain_alone(const elementwise_pass *pass); /* nothing else takes this, whether it does or not */
int elementwise_plain_launch(const elementwise_pass *pass, const void *const *in, void *out, void *stream);
