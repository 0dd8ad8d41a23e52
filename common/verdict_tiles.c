/* Owns the list of blocks that products are swept by, and which of them fit one product best. */
#include "common/verdict.h"

#include <math.h>
#include <stddef.h>

/* How well a block of C fits: what of it is inside of C, how full the last wave is, how much is computed per byte. */
static double tile_worth(const verdict_facts *f, const verdict_tile *t) {
    const double rows = ceil((double)f->shape[0] / t->m), columns = ceil((double)f->shape[1] / t->n);
    const double inside = (double)f->shape[0] * (double)f->shape[1] / (rows * t->m * columns * t->n);
    const double blocks = rows * columns * (double)(f->batch > 1 ? f->batch : 1);
    const double waves = f->units > 0 ? blocks / (ceil(blocks / f->units) * f->units) : 1;
    const double per_byte = 1 / (1 + 32.0 * (t->m + t->n) / ((double)t->m * t->n));
    return inside * waves * per_byte;
}

int verdict_tiles(const verdict_facts *facts, verdict_tile tiles[VERDICT_TILES]) {
    static const verdict_tile known[] = {{256, 128, 64}, {128, 256, 64}, {128, 128, 64}, {256, 64, 64}, {64, 256, 64},
                                         {128, 64, 64},  {64, 128, 64},  {64, 64, 64},   {64, 32, 128}, {32, 64, 128},
                                         {64, 16, 128},  {16, 64, 128},  {16, 128, 128}, {128, 16, 128}};
    double worth[VERDICT_TILES] = {0};
    int count = 0;
    if (facts->shape[0] <= 0 || facts->shape[1] <= 0) return 0;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        const double w = tile_worth(facts, &known[k]);
        int at = count < VERDICT_TILES ? count++ : VERDICT_TILES;
        for (; at > 0 && w > worth[at - 1]; at--) {
            if (at == VERDICT_TILES) continue;
            worth[at] = worth[at - 1];
            tiles[at] = tiles[at - 1];
        }
        if (at == VERDICT_TILES) continue;
        worth[at] = w;
        tiles[at] = known[k];
    }
    return count;
}
