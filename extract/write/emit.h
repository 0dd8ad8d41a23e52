/* Writers of what extract_ops found: ops.json and tensors.json. Files appear whole or not at all. */
#pragma once

#include "common/json_stream.h"
#include "common/status.h"
#include "extract/ops/collect.h"

#include <stdio.h>

status_code emit_ops(const catalog *c, const char *path, status *st);
void emit_graph(json_stream *s, const catalog *c); /* a member of ops.json */
status_code emit_tensors(const model *m, const char *path, status *st);

/* Coloured and fitted to the width where `out` is a terminal, plain and wide otherwise. */
void table_print(FILE *out, const catalog *c);
