/* The catalog as a person reads it on a terminal. */
#ifndef EXTRACT_WRITE_TABLE_H
#define EXTRACT_WRITE_TABLE_H

#include "extract/ops/collect.h"

#include <stdio.h>

/* Coloured and fitted to the width where `out` is a terminal, plain and wide otherwise. */
void table_print(FILE *out, const catalog *c);

#endif
