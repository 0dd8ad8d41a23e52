/* An algorithm of cuBLASLt as text: its bytes, which run it again on the same version, its attributes as numbers, by
 * which other programs name it, and its fields by name. The names of tiles, stages and clusters are taken from the
 * library's header when this is built (mk/cuda.mk). */
#include "scout/cuda/lt/lt.h"

#include <string.h>

static const char *const tiles[] = {
#include "lt_tiles.inc"
};
static const char *const stages[] = {
#include "lt_stages.inc"
};
static const char *const clusters[] = {
#include "lt_clusters.inc"
};

typedef struct describe_names {
    const char *const *names;
    size_t count;
} describe_names;

static const struct {
    const char *name;
    cublasLtMatmulAlgoConfigAttributes_t attribute;
    describe_names names; /* of its values; none: the number */
} fields[] = {
    {"id", CUBLASLT_ALGO_CONFIG_ID, {NULL, 0}},
    {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, {tiles, sizeof tiles / sizeof tiles[0]}},
    {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, {stages, sizeof stages / sizeof stages[0]}},
    {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, {clusters, sizeof clusters / sizeof clusters[0]}},
    {"split_k", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, {NULL, 0}},
    {"reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, {NULL, 0}},
    {"swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, {NULL, 0}},
    {"custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, {NULL, 0}},
    {"inner_shape", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, {NULL, 0}},
};

/* In the order of cublasLtMatmulAlgoConfigAttributes_t, so that a place says which one it is. */
static const size_t attribute_sizes[] = {4, 4, 4, 4, 4, 4, 4, 2, 2};
enum { ATTRIBUTES = sizeof attribute_sizes / sizeof attribute_sizes[0] };
_Static_assert(CUBLASLT_ALGO_CONFIG_ID == 0 && CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID == ATTRIBUTES - 1,
               "the attributes are numbered from 0 on");

/* The shorter ones fill the lower half of the value: little-endian, as every host of a GPU is. */
static bool describe_read(const lt_table *lt, const cublasLtMatmulAlgo_t *algo,
                          cublasLtMatmulAlgoConfigAttributes_t attribute, uint32_t *value) {
    size_t written = 0;
    *value = 0;
    return lt->cublasLtMatmulAlgoConfigGetAttribute(algo, attribute, value, attribute_sizes[attribute], &written) ==
           CUBLAS_STATUS_SUCCESS;
}

/* Appends; nothing where it does not fit, so that the result stays valid. */
__attribute__((format(printf, 4, 5))) static void describe_add(char *text, size_t room, size_t *used,
                                                               const char *format, ...) {
    va_list args;
    if (*used >= room) return;
    va_start(args, format);
    const int n = vsnprintf(text + *used, room - *used, format, args);
    va_end(args);
    if (n < 0 || *used + (size_t)n >= room)
        text[*used] = '\0';
    else
        *used += (size_t)n;
}

/* All of them, or nothing. */
static void describe_attributes(const lt_table *lt, const cublasLtMatmulAlgo_t *algo, char *text, size_t room,
                                size_t *used) {
    uint32_t values[ATTRIBUTES];
    for (int k = 0; k < ATTRIBUTES; k++)
        if (!describe_read(lt, algo, (cublasLtMatmulAlgoConfigAttributes_t)k, &values[k])) return;
    describe_add(text, room, used, ",\"attributes\":");
    for (int k = 0; k < ATTRIBUTES; k++) describe_add(text, room, used, "%c%u", k == 0 ? '[' : ',', values[k]);
    describe_add(text, room, used, "]");
}

int lt_describe_algo(const lt_table *lt, const cublasLtMatmulAlgo_t *algo, char *text, size_t room) {
    unsigned char bytes[sizeof *algo];
    size_t used = 0;
    if (!room) return 0;
    text[0] = '\0';
    memcpy(bytes, algo, sizeof bytes);
    describe_add(text, room, &used, "\"algo\":\"");
    for (size_t k = 0; k < sizeof bytes; k++) describe_add(text, room, &used, "%02x", bytes[k]);
    describe_add(text, room, &used, "\"");
    describe_attributes(lt, algo, text, room, &used);
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
        uint32_t value;
        if (!describe_read(lt, algo, fields[k].attribute, &value)) continue;
        const char *const name = value < fields[k].names.count ? fields[k].names.names[value] : NULL;
        if (name)
            describe_add(text, room, &used, ",\"%s\":\"%s\"", fields[k].name, name);
        else
            describe_add(text, room, &used, ",\"%s\":%u", fields[k].name, value);
    }
    return (int)used;
}
