/* How an algorithm of cuBLASLt is told: a table of functions stands for the library. Needs the toolkit's headers. */
#include "scout/cuda/lt/lt.h"
#include "tests/unit/unit.h"

#include <jansson.h>
#include <string.h>

enum { NONE = 100 };
static int unknown; /* the attribute that the library does not tell */

/* Each attribute has its own number as value, in as many bytes as the library's header says. */
static cublasStatus_t get_config(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute,
                                 void *value, size_t size, size_t *written) {
    const bool narrow =
        attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID || attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    const uint32_t is = 40 + (uint32_t)attribute;
    (void)algo;
    if ((int)attribute == unknown || size != (narrow ? 2 : 4)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &is, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

static json_t *described(int left_out) {
    static const lt_table table = {.cublasLtMatmulAlgoConfigGetAttribute = get_config};
    cublasLtMatmulAlgo_t algo;
    char text[900] = "{", *end;
    memset(&algo, 0x5a, sizeof algo);
    unknown = left_out;
    end = text + 1 + lt_describe_algo(&table, &algo, text + 1, sizeof text - 2);
    memcpy(end, "}", 2);
    return json_loads(text, 0, NULL);
}

static void attributes_are_numbers_by_place(void) {
    json_t *is = described(NONE);
    const json_t *all = json_object_get(is, "attributes");
    if (UNIT_INT(json_array_size(all), 9))
        for (int k = 0; k < 9; k++) UNIT_INT(json_integer_value(json_array_get(all, (size_t)k)), 40 + k);
    UNIT_INT(json_string_length(json_object_get(is, "algo")), 2 * sizeof(cublasLtMatmulAlgo_t));
    UNIT_INT(json_integer_value(json_object_get(is, "split_k")), 42);
    json_decref(is);
}

static void all_of_them_or_none(void) {
    json_t *is = described(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
    UNIT_CHECK(json_is_object(is) && !json_object_get(is, "attributes") && !json_object_get(is, "cluster"));
    UNIT_INT(json_integer_value(json_object_get(is, "id")), 40);
    json_decref(is);
}

int main(void) {
    UNIT_RUN(attributes_are_numbers_by_place);
    UNIT_RUN(all_of_them_or_none);
    return unit_end();
}
