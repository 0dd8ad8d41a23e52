/* Two ways to compare texts that may be NULL, which are not to be mixed up. */
#include "common/plain.h"
#include "tests/unit/unit.h"

static void texts_that_may_be_missing(void) {
    UNIT_CHECK(plain_same("OK", "OK") && !plain_same("OK", "ok"));
    UNIT_CHECK(!plain_same(NULL, "") && !plain_same("", NULL) && !plain_same(NULL, NULL));
    UNIT_CHECK(plain_alike("v=1", "v=1") && !plain_alike("v=1", NULL) && !plain_alike(NULL, "v=1"));
    UNIT_CHECK(plain_alike(NULL, "") && plain_alike("", NULL) && plain_alike(NULL, NULL));
}

int main(void) {
    UNIT_RUN(texts_that_may_be_missing);
    return unit_end();
}
