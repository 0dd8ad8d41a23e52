/* From measured times to what should be done: the rules, as one table, with thresholds that are options. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct verdict_thresholds {
    double ceiling;                         /* efficiency from which nothing is to be gained: 0.90 */
    double ceiling_ci;                      /* a ceiling that is known no better decides nothing: 0.05 */
    double high_proven, high_potential;     /* of the model's time: 0.05, 0.10 */
    double medium_proven, medium_potential; /* 0.01, 0.03 */
    double margin;                          /* a winner wins by more than this: 0.02 */
} verdict_thresholds;
extern const verdict_thresholds verdict_defaults;

/* A relative half width (rel_ci95, ratio_ci, …) is known from 0 to below 1. One that is not (not-a-number, 1 and more)
 * stands for any interval: it proves nothing, and in a sum it counts as 1. */
bool verdict_known(double rel_ci);
double verdict_width(double rel_ci);
bool verdict_has_interval(double rel_ci); /* however wide; one pass has none (of older reports 1) */

/* The one rule of a gain, for the winner, the totals and the verdict: proven is where all of the ratio's interval is
 * below 1 - margin, none where all of it is above; what lies between is open. No ratio is none. */
typedef enum verdict_gain { VERDICT_NO_GAIN, VERDICT_OPEN_GAIN, VERDICT_PROVEN_GAIN } verdict_gain;
verdict_gain verdict_gain_of(double ratio, double ratio_ci, double margin);

/* A sum of times and how surely it is known. What was measured by itself adds up as the root of squares; what is common
 * to all, or not known at all, adds up as it is. Begin with zeros. */
typedef struct verdict_sum {
    double us, squares, common_us;
} verdict_sum;
void verdict_sum_add(verdict_sum *s, double us, double rel_ci);
void verdict_sum_allow(verdict_sum *s, double us); /* at least: as much again is allowed for */
double verdict_sum_ci(const verdict_sum *s);       /* relative half width */
double verdict_sum_unknown(const verdict_sum *s);  /* the share of it that has no interval */

/* What was measured of one operation. Times are per occurrence; 0 or not-a-number: not known. */
typedef struct verdict_facts {
    const char *op;          /* "gemm", "attention", … */
    const char *pattern;     /* DENSE, … */
    const char *device;      /* "cuda:0": decides what can be tried on it; NULL: not known */
    const char *bound;       /* "launch": it has no potential of its own; "data": none that is known */
    const char *best_family; /* approach that the winner stands for: LIBRARY_TUNE, SPARSE_24, CUSTOM_KERNEL, …; NULL */
    const char *reason;      /* code of the reason why there is no baseline; NULL: there is one */
    bool no_work;            /* it computes and moves nothing */
    bool measured;           /* the baseline is OK */
    bool fusion;             /* the baseline is what could run as one, run apart */
    double ceiling_us, baseline_us, best_us;
    double ceiling_ci, baseline_ci, best_ci; /* relative half widths */
    bool ceiling_beside; /* it is a ratio to the baseline, from neighbouring blocks: its interval is the efficiency's */
    double launch_us;    /* the launch floor within ceiling_us */
    double ratio,
        ratio_ci; /* best over baseline from neighbouring blocks, and its relative half width; 0: no better one */
    /* Of the others that were confirmed beside the baseline, the one that came nearest to winning; 0: there is none. */
    double rival_ratio, rival_ratio_ci;
    const char *rival_family;  /* as best_family */
    const char *rival_name;    /* as best_name; NULL: it is not spoken of */
    double count;              /* per run of the model */
    double model_us, model_ci; /* of the whole model by its baselines, this one included; its relative half width */
    int64_t shape[3];          /* gemm: for the tiles to try first */
    int64_t batch;             /* gemm: products at once; 0: one */
    int units;                 /* multiprocessors, cores; 0: not known */
    const char *baseline_name; /* for the sentence; NULL: "the library" */
    bool baseline_own;         /* it is no library's: what beats it proves less */
    const char *best_name;     /* "cublaslt algo=6"; NULL: "the alternative" */
    /* Ratios at the best and the worst addresses, where they differ by over 2 %: of the one that won to the baseline,
     * else of the baseline to its own middle. */
    double address_best, address_worst;
} verdict_facts;

/* How scout_batch and analyze come to them, each from what it read. */
bool verdict_is_excused(const char *reason); /* it needs no measuring: no failure, and it takes no time */
bool verdict_has_approach(const char *approach, bool of_candidate); /* whether there is such a one; of a candidate */
bool verdict_is_sparse(const char *family);                         /* it leaves zeros out, which the ceiling counts */
enum { VERDICT_NAME = 160 };
const char *verdict_name(const char *name, const char *variant, char text[VERDICT_NAME]); /* NULL for NULL */

/* A fusion: its parts are the baseline. Their times may be added up, and were not measured beside the fused one then.
 */
typedef struct verdict_fused {
    bool sum;
    double parts_us, ratio, ratio_ci, sum_ci; /* ratio: fused over parts; sum_ci: of a sum's parts_us */
} verdict_fused;
void verdict_fuse(verdict_facts *facts, const verdict_fused *x); /* the other facts are there */
/* "yes", "borderline" or "no", and what is saved in so many runs of it where that is proven. */
const char *verdict_worth(const verdict_fused *x, double count, double margin, double *saved_us);

/* What the rules looked at, and half the width of its interval. */
typedef struct verdict_figure {
    double x, half;
} verdict_figure;

typedef enum verdict_figures {
    VERDICT_EFFICIENCY, /* not-a-number where no ceiling is known */
    VERDICT_SAVING,     /* part of the baseline's time that the best one saves */
    VERDICT_RIVAL,      /* the same of its nearest rival */
    VERDICT_FLOOR,      /* part of the ceiling that is launching */
    VERDICT_PROVEN,     /* parts of the model's time */
    VERDICT_POTENTIAL,
    VERDICT_FIGURES
} verdict_figures;

typedef struct verdict {
    double efficiency;                        /* ceiling over baseline */
    double proven_gain_us, potential_gain_us; /* per run of the model */
    const char *priority;                     /* HIGH, MEDIUM, LOW, NONE */
    const char *approach;                     /* NONE, LIBRARY_TUNE, … */
    bool borderline;          /* a threshold is within two intervals: the next run may decide otherwise */
    char recommendation[320]; /* a sentence that a person can act on, and what is open about it */
    int rule;                 /* which one decided: verdict_rule */
    verdict_figure figures[VERDICT_FIGURES];
} verdict;

verdict verdict_of(const verdict_facts *facts, const verdict_thresholds *thresholds);

/* The rules in the order in which they are asked; the first that applies decides. NULL behind the last one. */
const char *verdict_rule(int rule);
#define VERDICT_OPEN                                                                                                   \
    "at the ceiling or not: open" /* the one that decides where an efficiency's interval is on both sides */

/* What a verdict depends on: each threshold and the figure that is compared with it. */
typedef struct verdict_check {
    const char *what;   /* "efficiency" */
    const char *effect; /* what is so from the threshold on */
    verdict_figures figure;
    double threshold;
    bool touches; /* its interval does: the cheaper action was taken */
    bool near;    /* it is within two intervals: the next run may say otherwise */
} verdict_check;
enum { VERDICT_CHECKS = 8 };
void verdict_checks(const verdict *v, const verdict_thresholds *thresholds, verdict_check checks[VERDICT_CHECKS]);

/* Shapes of blocks of C (M x N x K) worth trying first for a product, best first: "128x256x64". How many were found. */
enum { VERDICT_TILES = 3 };
typedef struct verdict_tile {
    int m, n, k;
} verdict_tile;
int verdict_tiles(const verdict_facts *facts, verdict_tile tiles[VERDICT_TILES]);
