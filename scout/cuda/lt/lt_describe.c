/* An algorithm of cuBLASLt as text: its bytes, which run it again on the same version, and its fields by name. The
 * names of tiles, stages and clusters are taken from the library's header when this is built (mk/cuda.mk). */
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
    size_t size;
    describe_names names; /* of its values; none: the number */
} fields[] = {
    {"id", CUBLASLT_ALGO_CONFIG_ID, 4, {NULL, 0}},
    {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, 4, {tiles, sizeof tiles / sizeof tiles[0]}},
    {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4, {stages, sizeof stages / sizeof stages[0]}},
    {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2, {clusters, sizeof clusters / sizeof clusters[0]}},
    {"split_k", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4, {NULL, 0}},
    {"reduction", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4, {NULL, 0}},
    {"swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4, {NULL, 0}},
    {"custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4, {NULL, 0}},
    {"inner_shape", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2, {NULL, 0}},
};

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

int lt_describe_algo(const lt_table *lt, const cublasLtMatmulAlgo_t *algo, char *text, size_t room) {
    unsigned char bytes[sizeof *algo];
    size_t used = 0;
    if (!room) return 0;
    text[0] = '\0';
    memcpy(bytes, algo, sizeof bytes);
    describe_add(text, room, &used, "\"algo\":\"");
    for (size_t k = 0; k < sizeof bytes; k++) describe_add(text, room, &used, "%02x", bytes[k]);
    describe_add(text, room, &used, "\"");
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
        uint32_t value = 0; /* the shorter ones fill its lower half: little-endian, as every host of a GPU is */
        size_t written = 0;
        if (lt->cublasLtMatmulAlgoConfigGetAttribute(algo, fields[k].attribute, &value, fields[k].size, &written) !=
            CUBLAS_STATUS_SUCCESS)
            continue;
        const char *const name = value < fields[k].names.count ? fields[k].names.names[value] : NULL;
        if (name)
            describe_add(text, room, &used, ",\"%s\":\"%s\"", fields[k].name, name);
        else
            describe_add(text, room, &used, ",\"%s\":%u", fields[k].name, value);
    }
    return (int)used;
}
