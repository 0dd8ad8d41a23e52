/* A local function of the model, as the file states it. */
#ifndef EXTRACT_READ_BUILD_FUNCTION_H
#define EXTRACT_READ_BUILD_FUNCTION_H

#include "extract/read/build.h"

typedef enum build_visit { BUILD_NEW, BUILD_OPEN, BUILD_DONE } build_visit;

struct build_function {
    wire_span span;
    const char *name;
    build_visit visit; /* of the check for cycles */
    int64_t expanded;  /* nodes it stands for when everything it calls is inlined */
    /* set by build_function_open */
    const char **in, **out;
    size_t in_count, out_count;
    model_list nodes;
    model_list defaults; /* attributes with a default value */
    map default_spans;   /* name -> wire_span *, in defaults */
    map opsets;          /* domain -> int64_t * */
};

/* Decodes a function; before its first call is inlined. */
void build_function_open(build *b, build_function *fn);

#endif
