/* Which fields of an operation its candidates are told about: any other one would change the result unseen. */
#ifndef SCOUT_KINDS_KIND_FIELDS_H
#define SCOUT_KINDS_KIND_FIELDS_H

#include "scout/op/op.h"

#include <stdbool.h>

/* `known` ends with NULL. false, with "feature": the operation has a field that is not among them, and is not 0. */
bool kind_fields_only(const scout_op *op, const char *const *known, scout_why *why);

#endif
