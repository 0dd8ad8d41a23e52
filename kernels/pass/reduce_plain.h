/* Reductions that models seldom have, and types: a part of reduce_pass, which asks it first. */
#pragma once

#include "kernels/pass/pass_kernels.h"

int reduce_plain_takes(const reduce_pass *pass);
int reduce_plain_launch(const reduce_pass *pass, const void *x, void *y, void *stream);
