/* Elementwise operations of what `chain` (scout/op/elementwise_chain.h) to kind_elementwise.c: as the functions of a
 * kind.
 */
#ifndef SCOUT_KINDS_KIND_CHAIN_H
#define SCOUT_KINDS_KIND_CHAIN_H

#include "common/arena.h"
#include "common/oprec.h"
#include "scout/plugin.h"

bool kind_chain_build(const oprec *rec, arena *a, scout_op *out, scout_why *why);
double kind_chain_tolerance(const scout_op *op);
double kind_chain_specials(const scout_op *op);

#endif
