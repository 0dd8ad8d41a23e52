/* Memory by liveness against counting at every occurrence, on random spans; and where numbers end. */
#include "common/liveness.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static guard g;
static arena a;

static void as_counted_one_by_one(void) {
    enum { ROUNDS = 300, MOST = 12 };
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t sums[MOST] = {0}, most = 0;
        const int count = 1 + rand() % MOST, spans = rand() % 9;
        int first = 0, at;
        liveness l;
        liveness_begin(&l, &a, count);
        for (int k = 0; k < spans; k++) {
            const int from = rand() % count, to = rand() % (count + 1) - 1; /* some end before they begin */
            const int64_t bytes = rand() % 100;
            liveness_add(&l, bytes, from, to);
            for (int at_k = from; at_k <= to; at_k++) sums[at_k] += bytes;
        }
        for (int k = count - 1; k >= 0; k--) {
            if (sums[k] >= most) first = sums[k] > 0 ? k : 0;
            if (sums[k] >= most) most = sums[k];
        }
        UNIT_INT(liveness_peak(&l, &at), most);
        UNIT_INT(at, first);
    }
}

static void what_no_number_holds_saturates(void) {
    liveness l;
    int at;
    liveness_begin(&l, &a, 2);
    liveness_add(&l, INT64_MAX / 2, 0, 1);
    liveness_add(&l, INT64_MAX / 2, 0, 1);
    UNIT_INT(liveness_peak(&l, &at), INT64_MAX - 1);
    liveness_add(&l, 100, 1, 1);
    UNIT_INT(liveness_peak(&l, &at), INT64_MAX);
    liveness_begin(&l, &a, 0);
    liveness_add(&l, 5, 0, 0);
    UNIT_INT(liveness_peak(&l, &at), 0);
}

int main(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    UNIT_RUN(as_counted_one_by_one);
    UNIT_RUN(what_no_number_holds_saturates);
    arena_free(&a);
    return unit_end();
}
