/* Random numbers, which elementwise operations may be (scout/op/random.h). */
#pragma once

#include "common/arena.h"
#include "common/oprec.h"
#include "scout/op/op.h"

#include <stdbool.h>

bool kind_random_is(const scout_op *op);
bool kind_random_build(const oprec *rec, arena *a, scout_op *out, scout_why *why);
double kind_random_tolerance(const scout_op *op);
double kind_random_specials(const scout_op *op);
