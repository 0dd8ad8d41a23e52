/* The numbers that the scripted device fills memory with: the same for the same seed, on every machine. */
#include "tests/fakes/scripted/device.h"

#include <math.h>
#include <string.h>

uint64_t scripted_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const float *normals(void) { /* a table of them: filling shall not be what the tests wait for */
    static float table[1 << 14];
    uint64_t state = 1;
    if (table[0] != 0) return table;
    for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
        const double u = ((double)(scripted_random(&state) >> 11) + 1) * 0x1p-53;
        const double v = (double)(scripted_random(&state) >> 11) * 0x1p-53;
        table[k] = (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    return table;
}

void scripted_fill(void *to, uint64_t bytes, uint32_t how, uint64_t seed) {
    if (how == SCOUT_FILL_BYTE) {
        memset(to, (int)(seed & 0xff), bytes);
        return;
    }
    const float *table = normals();
    float *out = to;
    const int power = (int)(seed >> 32 & 127);
    for (uint64_t k = 0; k < bytes / sizeof *out; k += 4) {
        const uint64_t r = scripted_random(&seed);
        for (uint64_t i = 0; i < 4 && k + i < bytes / sizeof *out; i++) {
            const float x = table[r >> (14 * i) & 0x3fff];
            if (how == SCOUT_FILL_SMALL)
                out[k + i] = ldexpf(x, -power);
            else
                out[k + i] = how == SCOUT_FILL_SCALE ? fabsf(x) / 64 + 1.0F / 64 : x;
        }
    }
}
