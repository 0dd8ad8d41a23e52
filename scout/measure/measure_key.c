/* Writes the key of a measurement. */
#include "scout/measure/measure_key.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

const double measure_key_early_exit = 0.97;

char *measure_key_text(const measure_key *k, arena *a) {
    char regime_text[64];
    const char *const left = k->left ? arena_printf(a, "|left=%" PRIx64 ",%" PRIx64 ",%.2f,%.1f", k->written,
                                                    k->distant, k->handed, k->crowd_written)
                                     : "";
    regime_key(&k->regime, regime_text, sizeof regime_text);
    return arena_printf(a,
                        "measurement|%s|%s|method=%d|candidates=%016" PRIx64 "|exhaustive=%d|candidate=%s|"
                        "early_exit=%.4f|workspace=%" PRIu64 "|cut=%d%s%s%s|card=%s",
                        k->operation, regime_text, REGIME_METHOD, k->candidates, k->exhaustive,
                        k->candidate ? k->candidate : "", k->early_exit, k->workspace_limit, k->cut, left,
                        k->compare ? "|compare=" : "", k->compare ? k->compare : "", k->card ? k->card : "any");
}

const char *measure_key_card(const char *instance, arena *a) {
    return arena_printf(a, "%016" PRIx64, (uint64_t)XXH3_64bits(instance, strlen(instance)));
}
