/* The cheapest cover of a run by groups: on random graphs it is what trying everything finds, and its order can run.
 * `test_choose N` (make bench-plan) takes the time and the memory for N occurrences. */
#include "scout/plan/choose.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 12, NEEDS = 3, GROUPS = 14 };

static guard g;
static arena a;
static choose_problem problem;

static void begin(size_t bytes) {
    guard_init(&g);
    arena_init(&a, &g, bytes);
}

static uint32_t state;
static int below(int most) {
    state = state * 1664525u + 1013904223u;
    return (int)(state >> 8) % most;
}

/* Occurrences that need up to three of those before them, groups of up to four members near each other. */
static void make(int count, int group_count) {
    double *costs = arena_array(&a, double, count);
    int *segments = arena_array(&a, int, count), *needs = arena_array(&a, int, (int64_t)count *NEEDS),
        *begins = arena_array(&a, int, count + 1);
    choose_group *groups = arena_array(&a, choose_group, group_count);
    const int loop = below(4) == 0 ? 1 + below(count) : count;
    for (int k = 0; k < count; k++) {
        costs[k] = 1 + below(100);
        segments[k] = k >= loop;
        begins[k + 1] = begins[k];
        for (int n = 0; k > 0 && n < NEEDS; n++)
            if (below(2)) needs[begins[k + 1]++] = k - 1 - below(k < 5 ? k : 5);
    }
    for (int n = 0; n < group_count; n++) {
        int *to = arena_array(&a, int, 4), size = 0;
        double sum = 0;
        for (int at = below(count), tries = 0; tries < 8 && size < 2 + below(3); tries++, at += 1 + below(3)) {
            if (at >= count) break;
            to[size++] = at;
            sum += costs[at];
        }
        if (size < 2) {
            n--;
            continue;
        }
        if (below(2)) to[0] ^= to[1], to[1] ^= to[0], to[0] ^= to[1]; /* in no order */
        groups[n] = (choose_group){to, size, sum * (0.4 + 0.01 * below(70))};
    }
    problem = (choose_problem){count, costs, segments, needs, begins, groups, group_count};
}

/* Whether a run with these groups contracted has no circle: what waits for nothing is taken away until none is left. */
static bool can_run(unsigned set) {
    int node[MOST], left = problem.count;
    bool gone[MOST] = {false};
    for (int k = 0; k < problem.count; k++) node[k] = k;
    for (int n = 0; n < problem.group_count; n++)
        for (int m = 0; (set >> n & 1) && m < problem.groups[n].count; m++)
            node[problem.groups[n].members[m]] = problem.groups[n].members[0];
    for (bool again = true; again && left > 0;) {
        again = false;
        for (int k = 0; k < problem.count; k++) {
            bool waits = gone[k] || node[k] != k;
            for (int m = 0; m < problem.count && !waits; m++)
                for (int at = problem.begins[m]; node[m] == k && at < problem.begins[m + 1]; at++)
                    waits = waits || (node[problem.needs[at]] != k && !gone[node[problem.needs[at]]]);
            if (waits) continue;
            gone[k] = again = true;
            for (int m = 0; m < problem.count; m++) left -= node[m] == k;
        }
    }
    return left == 0;
}

/* Overlap and segments; gains by group. */
static bool fits(unsigned set) {
    bool taken[MOST] = {false};
    for (int n = 0; n < problem.group_count; n++)
        for (int m = 0; (set >> n & 1) && m < problem.groups[n].count; m++) {
            const int at = problem.groups[n].members[m];
            if (taken[at] || problem.segments[at] != problem.segments[problem.groups[n].members[0]]) return false;
            taken[at] = true;
        }
    return true;
}

static double cost_of(unsigned set) {
    double cost = 0;
    for (int k = 0; k < problem.count; k++) cost += problem.costs[k];
    for (int n = 0; n < problem.group_count; n++)
        if (set >> n & 1) {
            cost += problem.groups[n].cost;
            for (int m = 0; m < problem.groups[n].count; m++) cost -= problem.costs[problem.groups[n].members[m]];
        }
    return cost;
}

static double by_force(void) {
    double best = cost_of(0);
    for (unsigned set = 1; set < 1u << problem.group_count; set++)
        if (cost_of(set) < best - 1e-9 && fits(set) && can_run(set)) best = cost_of(set);
    return best;
}

static unsigned set_of(const choose_choice *c) {
    unsigned set = 0;
    for (int n = 0; n < problem.group_count; n++)
        if (c->fates[n] == CHOOSE_TAKEN) set |= 1u << n;
    return set;
}

/* Each once, behind what it needs, a group's members side by side, segments behind one another. */
static bool can_be_run_so(const choose_choice *c) {
    int place[MOST];
    for (int k = 0; k < problem.count; k++) place[k] = -1;
    for (int k = 0; k < problem.count; k++) {
        if (place[c->order[k]] >= 0) return false;
        place[c->order[k]] = k;
        if (k > 0 && problem.segments[c->order[k]] < problem.segments[c->order[k - 1]]) return false;
    }
    for (int k = 0; k < problem.count; k++)
        for (int n = problem.begins[k]; n < problem.begins[k + 1]; n++)
            if (place[problem.needs[n]] >= place[k]) return false;
    for (int n = 0; n < problem.group_count; n++) {
        int first = problem.count, last = 0;
        for (int m = 0; c->fates[n] == CHOOSE_TAKEN && m < problem.groups[n].count; m++) {
            const int at = place[problem.groups[n].members[m]];
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
        if (c->fates[n] == CHOOSE_TAKEN && last - first != problem.groups[n].count - 1) return false;
    }
    return true;
}

static void as_trying_everything(void) {
    int taken = 0, circles = 0;
    for (int n = 0; n < 2000; n++) {
        begin((size_t)1 << 20);
        state = (uint32_t)n * 2654435761u + 1;
        make(2 + below(MOST - 1), 1 + below(n % 20 == 0 ? GROUPS : 9));
        const choose_choice *c = choose_groups(&problem, &a);
        const unsigned set = set_of(c);
        const double best = by_force();
        UNIT_CHECK(fits(set) && can_run(set) && can_be_run_so(c));
        UNIT_CHECK(fabs(c->cost - cost_of(set)) < 1e-6);
        UNIT_CHECK(c->cost <= c->alone && fabs(c->alone - cost_of(0)) < 1e-6);
        if (!UNIT_CHECK(fabs(c->cost - best) < 1e-6 && fabs(c->bound - c->cost) < 1e-6))
            printf("graph %d: %g, by force %g, bound %g\n", n, c->cost, best, c->bound);
        taken += set != 0;
        for (int k = 0; k < problem.group_count; k++) circles += c->fates[k] == CHOOSE_CIRCLE;
        arena_free(&a);
    }
    UNIT_CHECK(taken > 1000 && circles > 1000);
}

/* 0 -> 2, 1 -> 3: {0, 3} and {1, 2} can each run, but wait for each other together. */
static void two_that_wait_for_each_other(void) {
    static const double costs[] = {10, 10, 10, 10};
    static const int segments[4] = {0}, needs[] = {0, 1}, begins[] = {0, 0, 0, 1, 2};
    static const int across[] = {0, 3}, inside[] = {1, 2};
    static const choose_group groups[] = {{across, 2, 15}, {inside, 2, 14}};
    begin((size_t)1 << 20);
    problem = (choose_problem){4, costs, segments, needs, begins, groups, 2};
    const choose_choice *c = choose_groups(&problem, &a);
    UNIT_INT(c->fates[0], CHOOSE_BEATEN);
    UNIT_INT(c->fates[1], CHOOSE_TAKEN);
    UNIT_CHECK(c->cost == 34 && c->bound == 34 && can_be_run_so(c));
    arena_free(&a);
}

/* A chain of 1,000 pairs that overlap: too many to be searched, so the gap is told and is true. */
static void a_gap_is_stated(void) {
    enum { LONG = 1000 };
    static double costs[LONG + 1];
    static int segments[LONG + 1], begins[LONG + 2], pairs[LONG][2];
    static choose_group groups[LONG];
    begin((size_t)16 << 20);
    state = 5;
    for (int k = 0; k <= LONG; k++) costs[k] = 100;
    double best[LONG + 2] = {0}; /* gained by pairs that begin at k or later */
    for (int k = 0; k < LONG; k++) {
        pairs[k][0] = k, pairs[k][1] = k + 1;
        groups[k] = (choose_group){pairs[k], 2, 100 + below(90)};
    }
    for (int k = LONG - 1; k >= 0; k--) best[k] = fmax(best[k + 1], 200 - groups[k].cost + best[k + 2]);
    problem = (choose_problem){LONG + 1, costs, segments, pairs[0], begins, groups, LONG};
    const choose_choice *c = choose_groups(&problem, &a);
    const double least = c->alone - best[0];
    UNIT_CHECK(c->bound < c->cost && c->bound <= least && least <= c->cost && c->cost < c->alone);
    UNIT_CHECK(c->cost < 1.005 * least && c->bound > 0.95 * least);
    arena_free(&a);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(int count) {
    begin((size_t)4 << 30);
    state = 7;
    make(count, count);
    const size_t before = a.used;
    const double begun_s = now_s();
    const choose_choice *c = choose_groups(&problem, &a);
    const double took_s = now_s() - begun_s;
    printf("%d occurrences and %d groups: %.0f ms, %.1f MB; %.1f %% of the cost one by one, at most %.2f %% above the "
           "best\n",
           count, count, 1e3 * took_s, (double)(a.used - before) / 1e6, 100 * c->cost / c->alone,
           100 * (c->cost / c->bound - 1));
    arena_free(&a);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        measure(atoi(argv[1]) > 1 ? atoi(argv[1]) : 2);
        return 0;
    }
    UNIT_RUN(as_trying_everything);
    UNIT_RUN(two_that_wait_for_each_other);
    UNIT_RUN(a_gap_is_stated);
    return unit_end();
}
