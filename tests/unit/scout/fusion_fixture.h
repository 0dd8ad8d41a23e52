/* What the tests of fusions share: an ops.json with operations that follow one another, and the fusions that a test
 * asks for. A header because each program has its own state (operation_fixture.h). */
#ifndef TESTS_FUSION_FIXTURE_H
#define TESTS_FUSION_FIXTURE_H

#include "scout/fusion/fusion.h"
#include "tests/unit/scout/operation_fixture.h"

static fusion_list fusions;

/* Of the type TYPE, whose elements are of SIZE bytes: a product of 12 x 40 by 24 and what may follow it, norms and
 * softmax of the same rows, convolutions, passes. Bytes are as extract_ops counts them. */
static const char *const fusion_ops[] = {
    "{\"id\":\"g\",\"op\":\"gemm\",\"shape\":[12,40,24],\"layout\":\"nn\",T,W,\"weight_side\":\"b\",\"macs\":11520,"
    "\"flops\":23040,\"bytes_read\":S1248,\"bytes_written\":S480},"
    "{\"id\":\"gq\",\"op\":\"gemm\",\"shape\":[12,128,24],\"layout\":\"nn\",T,W,\"weight_side\":\"b\",\"macs\":36864,"
    "\"flops\":73728,\"bytes_read\":S3360,\"bytes_written\":S1536},"
    "{\"id\":\"gv\",\"op\":\"gemm\",\"shape\":[12,64,24],\"layout\":\"nn\",T,W,\"weight_side\":\"b\",\"macs\":18432,"
    "\"flops\":36864,\"bytes_read\":S1824,\"bytes_written\":S768},"
    "{\"id\":\"gi\",\"op\":\"gemm\",\"shape\":[12,128,24],\"layout\":\"nn\",T,W,\"weight_side\":\"b\",\"batch_inside\":"
    "\"b\","
    "\"macs\":36864,\"flops\":73728,\"bytes_read\":S3360,\"bytes_written\":S1536},"
    "{\"id\":\"addq\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[12,128],\"inputs\":\"tensor,vector\",T,"
    "\"flops\":1536,\"bytes_read\":S1664,\"bytes_written\":S1536},"
    "{\"id\":\"addv\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[12,64],\"inputs\":\"tensor,vector\",T,"
    "\"flops\":768,\"bytes_read\":S832,\"bytes_written\":S768},"
    "{\"id\":\"gt\",\"op\":\"gemm\",\"shape\":[12,128,24],\"layout\":\"nt\",T,W,\"weight_side\":\"b\",\"macs\":36864,"
    "\"flops\":73728,\"bytes_read\":S3360,\"bytes_written\":S1536},"
    "{\"id\":\"gu\",\"op\":\"gemm\",\"shape\":[12,16,24],\"layout\":\"nt\",T,W,\"weight_side\":\"b\",\"macs\":4608,"
    "\"flops\":9216,\"bytes_read\":S672,\"bytes_written\":S192},"
    "{\"id\":\"z4\",\"op\":\"gemm\",\"shape\":[12,128,64],\"layout\":\"nt\",T,\"weight_dtype\":\"int4\","
    "\"weight_side\":\"b\",\"block_size\":16,\"zero_points\":1,\"macs\":98304,\"flops\":196608,\"bytes_read\":S768,"
    "\"bytes_written\":S1536},"
    "{\"id\":\"y4\",\"op\":\"gemm\",\"shape\":[12,16,64],\"layout\":\"nt\",T,\"weight_dtype\":\"int4\","
    "\"weight_side\":\"b\",\"block_size\":16,\"zero_points\":1,\"macs\":12288,\"flops\":24576,\"bytes_read\":S768,"
    "\"bytes_written\":S192},"
    "{\"id\":\"z8\",\"op\":\"gemm\",\"shape\":[12,128,64],\"layout\":\"nt\",T,\"weight_dtype\":\"uint8\","
    "\"weight_side\":\"b\",\"block_size\":16,\"zero_points\":1,\"macs\":98304,\"flops\":196608,\"bytes_read\":S768,"
    "\"bytes_written\":S1536},"
    "{\"id\":\"y8\",\"op\":\"gemm\",\"shape\":[12,16,64],\"layout\":\"nt\",T,\"weight_dtype\":\"uint8\","
    "\"weight_side\":\"b\",\"block_size\":16,\"zero_points\":1,\"macs\":12288,\"flops\":24576,\"bytes_read\":S768,"
    "\"bytes_written\":S192},"
    "{\"id\":\"g1\",\"op\":\"gemm\",\"shape\":[1,128,24],\"layout\":\"nn\",T,W,\"weight_side\":\"b\",\"macs\":3072,"
    "\"flops\":6144,\"bytes_read\":S3096,\"bytes_written\":S128},"
    "{\"id\":\"add1\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[1,128],\"inputs\":\"tensor,vector\",T,"
    "\"flops\":128,\"bytes_read\":S256,\"bytes_written\":S128},"
    "{\"id\":\"bias\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[12,40],\"inputs\":\"tensor,vector\",T,"
    "\"flops\":480,\"bytes_read\":S520,\"bytes_written\":S480},"
    "{\"id\":\"res\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[12,40],\"inputs\":\"tensor,tensor\",T,"
    "\"flops\":480,\"bytes_read\":S960,\"bytes_written\":S480},"
    "{\"id\":\"scalar\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[12,40],\"inputs\":\"tensor,scalar\",T,"
    "\"flops\":480,\"bytes_read\":S481,\"bytes_written\":S480},",
    "{\"id\":\"relu\",\"op\":\"elementwise\",\"what\":\"relu\",\"shape\":[12,40],T,\"flops\":480,\"bytes_read\":S480,"
    "\"bytes_written\":S480},"
    "{\"id\":\"gelu\",\"op\":\"elementwise\",\"what\":\"gelu\",\"shape\":[12,40],T,\"flops\":5760,\"bytes_read\":S480,"
    "\"bytes_written\":S480},"
    "{\"id\":\"biasgelu\",\"op\":\"elementwise\",\"what\":\"biasgelu\",\"shape\":[12,40],\"inputs\":\"tensor,vector\","
    "T,"
    "\"flops\":6240,\"bytes_read\":S520,\"bytes_written\":S480},"
    "{\"id\":\"silu\",\"op\":\"elementwise\",\"what\":\"silu\",\"shape\":[12,40],T,\"flops\":5760,\"bytes_read\":S480,"
    "\"bytes_written\":S480},"
    "{\"id\":\"clip\",\"op\":\"elementwise\",\"what\":\"clip\",\"shape\":[12,40],\"min\":-0.5,\"max\":2,T,\"flops\":"
    "480,"
    "\"bytes_read\":S480,\"bytes_written\":S480},"
    "{\"id\":\"mul\",\"op\":\"elementwise\",\"what\":\"mul\",\"shape\":[12,40],\"inputs\":\"tensor,tensor\",T,"
    "\"flops\":480,\"bytes_read\":S960,\"bytes_written\":S480},"
    "{\"id\":\"ln\",\"op\":\"norm\",\"what\":\"layer\",\"shape\":[12,40],\"bias\":1,T,W,\"flops\":3840,"
    "\"bytes_read\":S560,\"bytes_written\":S480},"
    "{\"id\":\"mask\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[2,3,5,16],\"inputs\":\"tensor,1x1x5x16\",T,"
    "\"flops\":480,\"bytes_read\":S560,\"bytes_written\":S480},"
    "{\"id\":\"pad\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[2,3,5,16],\"inputs\":\"tensor,2x1x1x16\",T,"
    "\"flops\":480,\"bytes_read\":S512,\"bytes_written\":S480},"
    "{\"id\":\"inside\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[2,3,5,16],\"inputs\":\"tensor,2x1x5x16\",T,"
    "\"flops\":480,\"bytes_read\":S640,\"bytes_written\":S480},"
    "{\"id\":\"odd\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[2,3,5,16],\"inputs\":\"tensor,1x3x1x16\",T,"
    "\"flops\":480,\"bytes_read\":S528,\"bytes_written\":S480},"
    "{\"id\":\"rowwise\",\"op\":\"elementwise\",\"what\":\"mul\",\"shape\":[2,3,5,16],\"inputs\":\"tensor,2x3x5x1\",T,"
    "\"flops\":480,\"bytes_read\":S510,\"bytes_written\":S480},"
    "{\"id\":\"scale\",\"op\":\"elementwise\",\"what\":\"mul\",\"shape\":[2,3,5,16],\"inputs\":\"tensor,scalar\",T,"
    "\"flops\":480,\"bytes_read\":S481,\"bytes_written\":S480},"
    "{\"id\":\"sm\",\"op\":\"softmax\",\"shape\":[30,16],T,\"flops\":5760,\"bytes_read\":S480,\"bytes_written\":S480},"
    "{\"id\":\"c\",\"op\":\"conv\",\"shape\":[2,8,6,6],\"input\":[2,4,6,6],\"kernel\":[3,3],\"pads\":[1,1,1,1],"
    "\"layout\":\"nchw\",T,W,\"macs\":20736,\"flops\":41472,\"bytes_read\":S576,\"bytes_written\":S576},"
    "{\"id\":\"cb\",\"op\":\"conv\",\"shape\":[2,8,6,6],\"input\":[2,4,6,6],\"kernel\":[3,3],\"pads\":[1,1,1,1],"
    "\"bias\":\"channel\",\"layout\":\"nchw\",T,W,\"macs\":20736,\"flops\":41472,\"bytes_read\":S584,"
    "\"bytes_written\":S576},"
    "{\"id\":\"bn\",\"op\":\"norm\",\"what\":\"batch\",\"shape\":[16,36],\"channels\":8,\"bias\":1,T,W,\"flops\":1152,"
    "\"bytes_read\":S608,\"bytes_written\":S576},"
    "{\"id\":\"cadd\",\"op\":\"elementwise\",\"what\":\"add\",\"shape\":[2,8,6,6],\"inputs\":\"tensor,tensor\",T,"
    "\"flops\":576,\"bytes_read\":S1152,\"bytes_written\":S576},"
    "{\"id\":\"crelu\",\"op\":\"elementwise\",\"what\":\"relu\",\"shape\":[2,8,6,6],T,\"flops\":576,\"bytes_read\":"
    "S576,"
    "\"bytes_written\":S576},"
    "{\"id\":\"hard\",\"op\":\"elementwise\",\"what\":\"hardsigmoid\",\"shape\":[2,8,6,6],\"alpha\":0.25,T,"
    "\"flops\":576,\"bytes_read\":S576,\"bytes_written\":S576},"
    "{\"id\":\"whole\",\"op\":\"elementwise\",\"what\":\"swiglu\",\"shape\":[12,40],\"inputs\":\"tensor,tensor\",T,"
    "\"flops\":6720,\"bytes_read\":S960,\"bytes_written\":S480,\"parts\":[\"silu\",\"mul\"]}"};

/* T and W become the types, S and a number so many elements in bytes. */
static inline size_t fusion_expand(char *to, size_t room, const char *type, int size, const char *from) {
    size_t n = 0;
    for (const char *at = from; *at && n < room; at++) {
        const bool value = at > from && (at[-1] == ':' || at[-1] == ',');
        if (value && (*at == 'T' || *at == 'W')) {
            n += (size_t)snprintf(to + n, room - n, "\"%s\":\"%s\"", *at == 'T' ? "dtype" : "weight_dtype", type);
        } else if (value && *at == 'S') {
            char *end;
            n += (size_t)snprintf(to + n, room - n, "%ld", size * strtol(at + 1, &end, 10));
            at = end - 1;
        } else {
            to[n++] = *at;
        }
    }
    return n;
}

static inline void fusion_write(char *to, size_t room, const char *type, int size, const char *asked) {
    size_t n = (size_t)snprintf(to, room, "{\"schema\":\"ceiling-scout/ops/1\",\"model\":{\"name\":\"m\"},\"ops\":[");
    for (size_t k = 0; k < sizeof fusion_ops / sizeof fusion_ops[0] && n < room; k++)
        n += fusion_expand(to + n, room - n, type, size, fusion_ops[k]);
    if (n < room) snprintf(to + n, room - n, "],\"fusions\":[%s]}", asked);
}

static inline bool fusion_read_guarded(void) {
    if (!guard_enter(&g)) return false;
    fusion_read(&list, path, &a, &fusions);
    return true;
}

/* One fusion, or several with commas between: {"pattern": …, "ops": […], "count": …, …}. What went wrong is in g.st. */
static inline bool fusion_make_of(const char *type, int size, const char *asked) {
    static char text[1 << 16];
    fusions.count = 0;
    fusion_write(text, sizeof text, type, size, asked);
    return read_text(text, NULL) && fusion_read_guarded();
}

#endif
