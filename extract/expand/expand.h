/* Operators that are several operations in one, taken apart: no library does them in one. */
#pragma once

#include "extract/graph/graph.h"

/* Behind inference: how wide the parts are follows from shapes. The node keeps its name and its outputs and becomes the
 * last of its parts; the others stand before it and have its name and their operator's. A node of which something is
 * not known, or does not fit, keeps its inputs and is marked as whole. */
void expand_model(model *m);
/* Of products whose batches broadcast in part, those that no attention was made of (`attends`). Whether there were any:
 * then the nodes are others. */
bool expand_products(model *m);
bool expand_takes(const char *domain, const char *op_type); /* where its shapes are known */
