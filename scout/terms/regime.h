/* Under which conditions a figure was taken. Figures are compared only within one regime. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum regime_load { REGIME_SUSTAINED, REGIME_BURST } regime_load;
typedef enum regime_cache { REGIME_MODEL, REGIME_COLD, REGIME_HOT } regime_cache;
typedef enum regime_launch { REGIME_GRAPH, REGIME_DIRECT } regime_launch;

typedef struct regime {
    regime_load load;
    regime_cache cache;
    regime_launch launch;
} regime;

extern const char *const regime_load_names[];   /* "sustained", "burst", NULL */
extern const char *const regime_cache_names[];  /* "model", "cold", "hot", NULL */
extern const char *const regime_launch_names[]; /* "graph", "direct", NULL */

/* "sustained, cold cache, graph" for people; "sustained-cold-graph" for keys and file names. */
void regime_say(const regime *r, char *text, size_t room);
void regime_key(const regime *r, char *text, size_t room);
bool regime_from_key(const char *key, regime *r);

/* Raised when the method of measuring changes: results taken by another one are not served from the cache. */
enum { REGIME_METHOD = 18 };

/* What a plan may ask for beside its tensors, wherever it is launched. */
enum { REGIME_WORKSPACE_BYTES = 32 << 20 };
