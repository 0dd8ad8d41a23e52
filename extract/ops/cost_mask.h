/* What a mask costs an attention whose record tells its kind; cost.c's own. */
#ifndef EXTRACT_OPS_COST_MASK_H
#define EXTRACT_OPS_COST_MASK_H

#include "extract/ops/work.h"

/* Of a joined attention whose inputs (sorted, some perhaps twice) cost what bytes_of says: what it need not read. */
int64_t cost_mask_bytes(const work *w, int count, tensor *const *inputs, int64_t (*bytes_of)(const work *, tensor *));
/* Of an attention written as one node: takes from bytes_read what of the mask's bytes need not be read. */
void cost_mask_told(work *w, tensor *mask, int64_t bytes);

#endif
