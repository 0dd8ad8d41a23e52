/* Shapes to try. What a device does best are products whose tiles fill its units a whole number of times, so most of
 * them are made like that; the others make sure that nothing is missed for a wrong idea of tiles. */
#include "scout/ceilings/ceilings_points.h"

#include <math.h>
#include <stddef.h>

/* Tiles that libraries cut an output into. */
static const struct {
    int64_t m, n;
} tiles[] = {{128, 256}, {256, 128}, {128, 128}, {256, 256}, {64, 256}, {256, 192}, {192, 128}};
enum { TILES = sizeof tiles / sizeof tiles[0], MOST_WAVES = 24, DEPTHS = 6, ATTEMPTS = 60 };

/* What earlier searches ended with, by the units of their devices: where to begin, and nothing more than that. */
static const struct {
    int32_t units;
    int64_t m, n, k;
} known[] = {
    {132, 13824, 2816, 16384}, {132, 7168, 8448, 16384},  {132, 9472, 8192, 16000},
    {132, 14848, 9984, 7296},  {132, 15360, 12288, 7808}, {132, 14080, 1536, 11776},
};
enum { KNOWN = sizeof known / sizeof known[0] };

uint64_t ceilings_points_next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t below(uint64_t *state, int64_t n) { return (int64_t)(ceilings_points_next(state) % (uint64_t)n); }

bool ceilings_points_fit(const ceilings_search_space *space, const ceilings_search_point *p) {
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    if (p->m < space->least || p->n < space->least || p->k < space->least) return false;
    if (p->m > space->most || p->n > space->most) return false;
    if (p->k > space->most && p->k > space->deepest) return false;
    return m * k <= space->input_elements && n * k <= space->input_elements && m * n <= space->output_elements;
}

/* Sizes come in multiples of this: 128 where the space is wide enough. */
static int64_t grain_of(const ceilings_search_space *space) { return space->most >= 4096 ? 128 : 32; }

static int64_t on_grain(const ceilings_search_space *space, double size) {
    int64_t grain = grain_of(space), x = (int64_t)(size / (double)grain + 0.5) * grain;
    if (x < space->least) x = (space->least + grain - 1) / grain * grain;
    return x > space->most ? space->most / grain * grain : x;
}

static int64_t log_uniform(const ceilings_search_space *space, uint64_t *state) {
    double u = (double)(ceilings_points_next(state) >> 11) / 9007199254740992.0; /* 2^53 */
    return on_grain(space, (double)space->least * pow((double)space->most / (double)space->least, u));
}

/* in the middle of the space */
static ceilings_search_point ceilings_points_cube(const ceilings_search_space *space) {
    ceilings_search_point p = {0};
    double side = (double)space->most / 2;
    do {
        p.m = p.n = p.k = on_grain(space, side);
        side *= 0.8;
    } while (!ceilings_points_fit(space, &p) && side > (double)space->least);
    return p;
}

ceilings_search_point ceilings_points_random(const ceilings_search_space *space, uint64_t *state) {
    ceilings_search_point p = ceilings_points_cube(space);
    for (int k = 0; k < ATTEMPTS; k++) {
        ceilings_search_point q = {.m = log_uniform(space, state), .n = log_uniform(space, state)};
        q.k = log_uniform(space, state);
        if (ceilings_points_fit(space, &q)) return q;
    }
    return p;
}

/* Rows times columns of tiles that fill all units a whole number of times, or very nearly; one in four deep, since
 * long sums move least of the output, and power goes into what is moved. */
static bool whole_waves(const ceilings_search_space *space, uint64_t *state, bool deep, ceilings_search_point *p) {
    int64_t tile = below(state, TILES), total = space->units * (1 + below(state, MOST_WAVES));
    int64_t tm = tiles[tile].m, tn = tiles[tile].n, most_rows = space->most / tm;
    if (most_rows < 1) return false;
    int64_t rows = 1 + below(state, most_rows), columns = total / rows;
    if (columns < 1 || (double)(rows * columns) < 0.97 * (double)total) return false;
    const double less = (double)below(state, DEPTHS) / 16;
    *p = (ceilings_search_point){.m = rows * tm, .n = columns * tn};
    p->k = deep ? on_grain(space, (double)space->most * (1 - less)) : log_uniform(space, state);
    return ceilings_points_fit(space, p);
}

/* Powers of two and what lies between, as models have them. */
static ceilings_search_point customary(const ceilings_search_space *space, uint64_t *state) {
    int64_t sizes[32];
    int count = 0;
    for (int64_t x = 64; x <= space->most && count < 30; x *= 2) {
        if (x >= space->least) sizes[count++] = x;
        if (x + x / 2 >= space->least && x + x / 2 <= space->most) sizes[count++] = x + x / 2;
    }
    if (count == 0) return ceilings_points_cube(space);
    ceilings_search_point p = {.m = sizes[below(state, count)], .n = sizes[below(state, count)]};
    p.k = sizes[below(state, count)];
    return ceilings_points_fit(space, &p) ? p : ceilings_points_random(space, state);
}

int ceilings_points_known(const ceilings_search_space *space, ceilings_search_point *out, int room) {
    int count = 0;
    for (int k = 0; k < KNOWN && count < room; k++) {
        const ceilings_search_point p = {.m = known[k].m, .n = known[k].n, .k = known[k].k};
        if (known[k].units == space->units && ceilings_points_fit(space, &p)) out[count++] = p;
    }
    return count;
}

ceilings_search_point ceilings_points_try(const ceilings_search_space *space, int index, uint64_t *state) {
    ceilings_search_point p = ceilings_points_cube(space);
    if (index == 0) return p;
    if (index <= 2 && space->deepest > 0) { /* long sums spend least on what surrounds them */
        p.k = space->deepest / index;
        if (ceilings_points_fit(space, &p)) return p;
    }
    int kind = index % 8;
    for (int k = 0; kind < 4 && k < ATTEMPTS; k++)
        if (whole_waves(space, state, kind == 3, &p)) return p;
    return kind == 4 ? customary(space, state) : ceilings_points_random(space, state);
}

int ceilings_points_near(const ceilings_search_space *space, const ceilings_search_point *p, ceilings_search_point *out,
                         int room) {
    int64_t g = grain_of(space);
    const struct {
        double m, n, k; /* factors */
        int64_t dm, dn, dk;
    } steps[] = {
        {1, 1, 1.5, 0, 0, 0},   {1, 1, 0.75, 0, 0, 0},  {1, 1, 2, 0, 0, 0},     {1, 1, 0.5, 0, 0, 0},
        {2, 0.5, 1, 0, 0, 0},   {0.5, 2, 1, 0, 0, 0},   {2, 1, 1, 0, 0, 0},     {1, 2, 1, 0, 0, 0},
        {1, 1, 1, g, 0, 0},     {1, 1, 1, -g, 0, 0},    {1, 1, 1, 0, g, 0},     {1, 1, 1, 0, -g, 0},
        {1, 1, 1, 2 * g, 0, 0}, {1, 1, 1, 0, 2 * g, 0}, {1, 1, 1, 0, 0, 4 * g}, {1, 1, 1, 0, 0, -4 * g},
        {1.5, 1, 1, 0, 0, 0},   {1, 1.5, 1, 0, 0, 0},   {1, 1, 1.25, 0, 0, 0},
    };
    int count = 0;
    for (size_t s = 0; s < sizeof steps / sizeof steps[0] && count < room; s++) {
        ceilings_search_point q = *p;
        q.m = on_grain(space, (double)p->m * steps[s].m) + steps[s].dm;
        q.n = on_grain(space, (double)p->n * steps[s].n) + steps[s].dn;
        if (steps[s].k != 1 || steps[s].dk != 0) q.k = on_grain(space, (double)p->k * steps[s].k) + steps[s].dk;
        bool same = q.m == p->m && q.n == p->n && q.k == p->k;
        if (!same && ceilings_points_fit(space, &q)) out[count++] = q;
    }
    return count;
}
