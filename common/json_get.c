/* Members of JSON objects that may be missing. */
#include "common/json_get.h"

#include <math.h>

const char *json_get_text_or_null(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

const char *json_get_text(const json_t *object, const char *key) {
    const char *text = json_get_text_or_null(object, key);
    return text ? text : "";
}

double json_get_number(const json_t *object, const char *key) {
    const json_t *x = json_object_get(object, key);
    const double value = json_is_number(x) ? json_number_value(x) : NAN;
    return isfinite(value) ? value : NAN;
}

double json_get_positive(const json_t *object, const char *key) {
    const double value = json_get_number(object, key);
    return value > 0 ? value : NAN;
}

int64_t json_get_int(const json_t *object, const char *key, int64_t missing) {
    const json_t *x = json_object_get(object, key);
    return json_is_integer(x) ? json_integer_value(x) : missing;
}
