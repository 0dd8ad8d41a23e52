/* A local function of the model, as the file states it. */
#ifndef EXTRACT_READ_BUILD_FUNCTION_H
#define EXTRACT_READ_BUILD_FUNCTION_H

#include "extract/read/build.h"

typedef enum build_visit { BUILD_NEW, BUILD_OPEN, BUILD_DONE } build_visit;

struct build_function {
    const char *domain, *name, *overload;
    const char **in, **out, **attrs;
    size_t in_count, out_count, attr_count;
    model_list nodes;
    model_list defaults; /* attributes with a default value */
    const char **default_names;
    map opsets;       /* domain -> int64_t * */
    build_visit visit; /* of the check for cycles */
    int64_t expanded;  /* nodes it stands for when everything it calls is inlined */
};

#endif
