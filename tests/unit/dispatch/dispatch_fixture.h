/* Tables for the tests of libscout_dispatch, made of entries in one line each. */
#ifndef TESTS_DISPATCH_FIXTURE_H
#define TESTS_DISPATCH_FIXTURE_H

#include "dispatch/scout_dispatch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LAB_DEVICE                                                                                                     \
    "\"device\": {\"class\": \"name=GPU A;capability=9.0;driver=580;cublaslt=13.1.0\", \"name\": \"GPU A\", "          \
    "\"capability\": \"9.0\", \"driver\": \"580.159.04\", \"units\": 132, \"memory_mib\": 1000, \"libraries\": "       \
    "[{\"name\": \"cublaslt\", \"version\": \"13.1.0\"}, {\"name\": \"cudnn\", \"version\": \"9.19.0\"}]}"
#define LAB_HEAD                                                                                                       \
    "{\"schema\": \"ceiling-scout/dispatch/1\", " LAB_DEVICE ", \"regime\": \"r\", \"method\": 5, \"entries\": ["
#define LAB_TAIL "]}"
#define LAB_PROOF                                                                                                      \
    "\"proof\": {\"ratio\": 0.9, \"ratio_ci\": 0.01, \"expected_ci\": 0.002, \"default_ci\": 0.003, \"batches\": 40, " \
    "\"launches\": 4000}"
#define LAB_GEMM "gemm;shape=%d,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b"
/* A product of M rows that algorithm 0x42 does; %s: more members, beginning with a comma. */
#define LAB_TUNED                                                                                                      \
    "{\"key\": \"" LAB_GEMM "\", \"operation\": \"g\", \"choice\": \"tuned\", \"implementation\": \"cublaslt\", "      \
    "\"variant\": \"algo=1\", \"library\": {\"name\": \"cublaslt\", \"version\": \"13.1.0\"}, \"algo\": \"42ff00\", "  \
    "\"config\": {\"a\": [1, \"x y\"]}, \"expected_us\": 9, \"default_us\": 1e1, " LAB_PROOF "%s}"
#define LAB_RANGE                                                                                                      \
    ", \"ranges\": [{\"places\": [0], \"from\": %d, \"to\": %d, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]"

typedef struct lab_text {
    char text[16384];
    size_t used;
} lab_text;

__attribute__((format(printf, 2, 3))) static inline void lab_add(lab_text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->text + t->used, sizeof t->text - t->used, format, args);
    va_end(args);
    if (n > 0) t->used += (size_t)n;
    if (t->used >= sizeof t->text) t->used = sizeof t->text - 1;
}

static const scout_dispatch_library lab_libraries[] = {{"cudnn", "9.19.0"}, {"cublaslt", "13.1.0"}};

static inline scout_dispatch_device lab_device(void) {
    scout_dispatch_device d;
    memset(&d, 0, sizeof d);
    d.name = "GPU A", d.capability = "9.0", d.driver = "580.159.04";
    d.libraries = lab_libraries, d.library_count = 2;
    return d;
}

#endif
