/* Names of regimes. */
#include "scout/terms/regime.h"

#include <stdio.h>
#include <string.h>

const char *const regime_load_names[] = {"sustained", "burst", NULL};
const char *const regime_cache_names[] = {"model", "cold", "hot", NULL};
const char *const regime_launch_names[] = {"graph", "direct", NULL};

void regime_say(const regime *r, char *text, size_t room) {
    snprintf(text, room, "%s, %s cache, %s", regime_load_names[r->load], regime_cache_names[r->cache],
             regime_launch_names[r->launch]);
}

void regime_key(const regime *r, char *text, size_t room) {
    snprintf(text, room, "%s-%s-%s", regime_load_names[r->load], regime_cache_names[r->cache],
             regime_launch_names[r->launch]);
}

bool regime_from_key(const char *key, regime *r) {
    char text[64];
    for (int load = 0; regime_load_names[load]; load++)
        for (int cache = 0; regime_cache_names[cache]; cache++)
            for (int launch = 0; regime_launch_names[launch]; launch++) {
                const regime one = {(regime_load)load, (regime_cache)cache, (regime_launch)launch};
                regime_key(&one, text, sizeof text);
                if (strcmp(text, key) != 0) continue;
                *r = one;
                return true;
            }
    return false;
}
