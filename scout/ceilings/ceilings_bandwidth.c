/* The bandwidth table: sizes by thirds of a decade, four mixes of reading and writing, from memory and from the cache.
 * Cold launches walk through a pool so large that nothing of it is left when its turn comes again; how large that is,
 * is found first: the smallest set that, read again and again in pieces of one size, is read no faster than any larger
 * one. (Whole sets will not do: a short launch is slow for a reason of its own, and hides what the cache gives.) */
#include "scout/ceilings/ceilings_lab.h"

#include <math.h>
#include <stdlib.h>

#define BETWEEN 0.67 /* told well enough by its neighbours where the time is short */
static const double fractions[] = {1, BETWEEN, 0.5, 0};
enum { FRACTIONS = sizeof fractions / sizeof fractions[0], MAX_SIZES = 24, FIRST_STEP = 8 };
enum { MAX_NODES = 4096, MAX_CALLS = 1 << 20 };
#define LEAST_BYTES      (64.0 * 1024)
#define MOST_BYTES       4e9
#define STEP             2.1544346900318838 /* three sizes a decade */
#define WORK_S           0.018              /* timed for one row */
#define BLOCK_S          3e-3
#define FLAT             1.01 /* on the plateau: no more than so much above the slowest */
#define POOL_S           60.0 /* to have it and to fill it, at most */
#define PIECE            4e6  /* of the walks that look for the plateau, at least */
#define CACHES           3.0  /* the plateau is no smaller than so many caches */
#define HOST_CACHES      4.5
#define HOST_BYTES_PER_S 1.5e8 /* of a pool, that are filled and walked through often enough */
#define NET_LEAST        0.02  /* what is left of a time without the launch floor is at least this part of it */
#define T95              3.18  /* Student's t of the four blocks that a row has */

typedef struct pool {
    ceilings_lab *lab;
    char *read, *written; /* each of `bytes` */
    uint64_t bytes;
    uint64_t at; /* where walks go on that are called anew at each run: what was touched last stays behind them */
} pool;

/* One row's launches: launch k reads and writes the k-th piece of the pool. */
typedef struct walk {
    pool *pool;
    uint64_t read_bytes, written_bytes; /* of one launch */
    uint64_t step;                      /* between two launches' pieces; 0: the same again */
    uint64_t turns;                     /* pieces before the walk begins anew */
    bool recorded;                      /* a graph: one interval is the whole walk */
} walk;

static uint64_t lines(double bytes) { return (uint64_t)(bytes / 512) * 512; }

static scout_answer enqueue_stream(void *context, uint32_t launch, void *stream, scout_why *why) {
    const walk *w = context;
    const ceilings_lab *lab = w->pool->lab;
    uint64_t at = w->step * (launch % w->turns);
    if (!w->recorded && w->step > 0) { /* on from where the last launch of any row ended */
        at = w->pool->at + w->step <= w->pool->bytes ? w->pool->at : 0;
        w->pool->at = at + w->step;
    }
    return lab->api->stream(lab->device, w->read_bytes ? w->pool->read + at : NULL, w->read_bytes,
                            w->written_bytes ? w->pool->written + at : NULL, w->written_bytes, stream, why);
}

static void pool_free(pool *p) {
    if (p->read) p->lab->api->release(p->lab->device, p->read);
    if (p->written) p->lab->api->release(p->lab->device, p->written);
    p->read = p->written = NULL;
}

static scout_answer pool_new(pool *p, double bytes, scout_why *why) {
    const scout_device_api *api = p->lab->api;
    void *read = NULL, *written = NULL;
    p->bytes = lines(bytes);
    if (p->lab->clock->beat) p->lab->clock->beat(p->lab->clock->context, POOL_S);
    scout_answer answer = api->alloc(p->lab->device, p->bytes, &read, why);
    p->read = read;
    if (answer == SCOUT_OK) answer = api->alloc(p->lab->device, p->bytes, &written, why);
    p->written = written;
    /* A device's power depends on what it moves. A host's hardly does, and random numbers would take it long. */
    uint32_t how = p->lab->host ? SCOUT_FILL_BYTE : SCOUT_FILL_NORMAL;
    if (answer == SCOUT_OK) answer = api->fill(p->lab->device, p->read, p->bytes, SCOUT_FP16, how, 0x35, why);
    if (answer == SCOUT_OK)
        answer = api->fill(p->lab->device, p->written, p->bytes, SCOUT_FP32, SCOUT_FILL_BYTE, 0, why);
    if (answer != SCOUT_OK) pool_free(p);
    return answer;
}

/* How a row walks: over at least `spread` bytes, in pieces that do not overlap and lie side by side; where that would
 * be too many launches for one graph, fewer of them over the whole pool. */
static walk walk_over(pool *p, double bytes, double fraction, double spread) {
    const ceilings_lab *lab = p->lab;
    walk w = {.pool = p, .read_bytes = lines(bytes * fraction), .turns = 1};
    w.written_bytes = lines(bytes) - w.read_bytes;
    w.recorded = lab->regime.launch == REGIME_GRAPH && lab->api->has_graphs;
    uint64_t larger = w.read_bytes > w.written_bytes ? w.read_bytes : w.written_bytes;
    uint64_t total = w.read_bytes + w.written_bytes, most = w.recorded ? MAX_NODES : MAX_CALLS;
    if (!(spread > (double)total) || larger * 2 > p->bytes) return w;
    uint64_t pieces = p->bytes / larger;
    w.turns = (uint64_t)fmin(ceil(spread / (double)total), (double)pieces);
    w.step = larger;
    if (w.turns > most) {
        w.turns = most;
        w.step = lines((double)(p->bytes - larger) / (double)(most - 1));
    }
    return w;
}

/* Times one row. spread 0: the same bytes again; else cold, walking over at least so many bytes. A graph holds whole
 * walks: what surrounds a graph is no part of the figure. */
static scout_answer row_measure(pool *p, double bytes, double fraction, double spread, ceilings_bandwidth *row,
                                scout_why *why) {
    walk w = walk_over(p, bytes, fraction, spread);
    ceilings_work work = {.lab = p->lab, .enqueue = enqueue_stream, .context = &w};
    if (w.recorded) work.whole = (uint32_t)w.turns;
    lanes_lane lane = {.subject = ceilings_work_subject(&work)};
    scout_answer answer = ceilings_lab_pass(p->lab, WORK_S, BLOCK_S, &lane, 1, why);
    ceilings_work_drop(&work);
    if (answer == SCOUT_OK && lane.answer != SCOUT_OK) *why = lane.why;
    if (answer != SCOUT_OK || lane.answer != SCOUT_OK) return answer != SCOUT_OK ? answer : lane.answer;
    const double total = (double)(w.read_bytes + w.written_bytes);
    const double launch_s = ceilings_lab_launch_s(p->lab, &lane);
    const double net = fmax(launch_s - p->lab->launch_s, NET_LEAST * launch_s);
    *row = (ceilings_bandwidth){.bytes = w.read_bytes + w.written_bytes, .read_fraction = fraction};
    row->resident = !(spread > 0);
    row->tbps = total / net / 1e12;
    row->rel_ci95 = lane.blocks > 1 ? fmin(T95 * lane.error, 1) : 1;
    return row->tbps > 0 ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "the device's timer does not advance");
}

/* What disturbs only takes away: of a row that was known the faster figure stays. */
static void keep(ceilings *c, const ceilings_bandwidth *row) {
    for (int k = 0; k < c->bandwidth_count; k++) {
        ceilings_bandwidth *known = &c->bandwidths[k];
        if (known->bytes != row->bytes || known->read_fraction != row->read_fraction ||
            known->resident != row->resident)
            continue;
        if (row->tbps > known->tbps) *known = *row;
        return;
    }
    if (c->bandwidth_count < CEILINGS_MAX_BANDWIDTHS) c->bandwidths[c->bandwidth_count++] = *row;
}

/* plateau_bytes: where reading a set again and again stops to gain from the cache. No smaller than the caches are said
 * to be, several times: one that keeps a part of what it saw falls slowly at the end. */
static scout_answer find_plateau(pool *p, const double *sizes, int count, ceilings *c, scout_why *why) {
    double tbps[MAX_SIZES] = {0}, slowest = INFINITY;
    double cache = p->lab->identity ? (double)p->lab->identity->cache_bytes : 0;
    int first = 0, at = count - 1;
    while (first < count - 1 && sizes[first] < PIECE) first++;
    for (int k = first; k < count; k++) {
        ceilings_bandwidth row;
        if (ceilings_lab_late(p->lab)) { /* the largest is cold, whatever the others are */
            c->plateau_bytes = sizes[count - 1];
            return SCOUT_OK;
        }
        scout_answer answer = row_measure(p, sizes[first], 1, sizes[k], &row, why);
        if (answer != SCOUT_OK) return answer;
        tbps[k] = row.tbps;
    }
    for (int k = count - 1; k >= first; k--) {
        slowest = fmin(slowest, tbps[k]);
        if (tbps[k] > slowest * FLAT) break;
        at = k;
    }
    const double flat = sizes[at];
    while (at < count - 1 && sizes[at] < CACHES * cache) at++;
    c->plateau_bytes = sizes[at];
    if (p->lab->host) /* a host fills and packs all of it for every operation: no more than is needed */
        c->plateau_bytes = fmin(sizes[at], fmax(flat, CACHES * cache));
    return SCOUT_OK;
}

/* All rows of one size, from memory and from the cache. */
static scout_answer size_measure(pool *p, double size, ceilings *c, scout_why *why) {
    for (int f = 0; f < FRACTIONS; f++) {
        ceilings_bandwidth row;
        if (fractions[f] == BETWEEN && ceilings_lab_late(p->lab)) continue;
        bool beyond = size >= c->plateau_bytes;
        scout_answer answer = row_measure(p, size, fractions[f], c->plateau_bytes, &row, why);
        if (answer != SCOUT_OK) return answer;
        row.resident = false; /* a set beyond the plateau throws itself out: one figure says both */
        keep(c, &row);
        if (!beyond) answer = row_measure(p, size, fractions[f], 0, &row, why);
        if (answer != SCOUT_OK) return answer;
        row.resident = true;
        keep(c, &row);
    }
    return SCOUT_OK;
}

static int by_row(const void *a, const void *b) {
    const ceilings_bandwidth *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? 1 : -1;
    if (x->read_fraction != y->read_fraction) return x->read_fraction < y->read_fraction ? 1 : -1;
    return (x->resident > y->resident) - (x->resident < y->resident);
}

/* The ends first and the largest that a cache holds, whatever the time is, then what lies between in ever finer steps:
 * whenever the time is up the table covers all of its range. */
static scout_answer all_sizes(pool *p, const double *sizes, int count, ceilings *c, scout_why *why) {
    const double cache = p->lab->identity ? (double)p->lab->identity->cache_bytes : 0;
    scout_answer answer = SCOUT_OK;
    bool known[MAX_SIZES] = {false};
    int warm = 0, done = 0;
    while (warm < count - 1 && sizes[warm + 1] <= 0.5 * cache) warm++;
    const int first[] = {count - 1, 0, warm};
    for (int step = FIRST_STEP, n = 0; step > 0 && answer == SCOUT_OK; n++) {
        const int k = n < 3 ? first[n] : (n - 2) * step;
        if (n >= 3 && (k >= count - 1 || ceilings_lab_late(p->lab))) {
            step = ceilings_lab_late(p->lab) ? 0 : step / 2;
            n = 2;
        } else if (!known[k]) {
            known[k] = true;
            ceilings_lab_say(p->lab, "bandwidth: %.3g MB, size %d of %d", sizes[k] / 1e6, ++done, count);
            answer = size_measure(p, sizes[k], c, why);
        }
    }
    qsort(c->bandwidths, (size_t)c->bandwidth_count, sizeof c->bandwidths[0], by_row);
    if (answer == SCOUT_OK && done < count)
        ceilings_lab_say(p->lab, "bandwidth: the time is up after %d of %d sizes", done, count);
    return answer;
}

scout_answer ceilings_bandwidth_measure(ceilings_lab *lab, ceilings *c, scout_why *why) {
    pool p = {.lab = lab};
    double sizes[MAX_SIZES] = {0}, start = ceilings_lab_now(lab);
    int count = 0;
    uint64_t free_bytes = ceilings_lab_free_bytes(lab);
    double most = free_bytes ? fmin(MOST_BYTES, 0.2 * (double)free_bytes) : 64e6;
    scout_answer answer = SCOUT_NO_MEMORY;
    if (lab->host) { /* a host is slow: several times its cache, and no more than the budget has time for */
        double cache = lab->identity ? (double)lab->identity->cache_bytes : 0;
        most = fmin(most, fmin(fmax(HOST_CACHES * cache, 256e6), ceilings_lab_left(lab) * HOST_BYTES_PER_S));
    }
    if (!lab->api->stream) return scout_say(why, SCOUT_NO, "feature", "the device has no bandwidth probe");
    for (; answer == SCOUT_NO_MEMORY && most >= LEAST_BYTES; most /= 2) {
        answer = pool_new(&p, most, why);
        if (answer == SCOUT_OK) break;
    }
    if (answer != SCOUT_OK) return answer;
    for (double size = LEAST_BYTES; size <= (double)p.bytes * 1.001 && count < MAX_SIZES; size *= STEP)
        sizes[count++] = size;
    const double before = c->plateau_bytes;
    answer = find_plateau(&p, sizes, count, c, why);
    if (c->plateau_bytes > before) c->bandwidth_count = 0; /* what was cold was too warm */
    if (answer == SCOUT_OK) answer = all_sizes(&p, sizes, count, c, why);
    pool_free(&p);
    if (answer != SCOUT_OK) return answer;
    ceilings_close(c);
    c->read_tbps = ceilings_plateau(c, 1, false);
    c->copy_tbps = ceilings_plateau(c, 0.5, false);
    c->write_tbps = ceilings_plateau(c, 0, false);
    if (lab->api->datasheet && lab->identity) c->datasheet_tbps = lab->api->datasheet(lab->identity, SCOUT_NONE, 0);
    ceilings_lab_say(lab, "bandwidth: read %.4g, copy %.4g, write %.4g TB/s, cold from %.4g MB, in %.1f s",
                     c->read_tbps, c->copy_tbps, c->write_tbps, c->plateau_bytes / 1e6, ceilings_lab_now(lab) - start);
    return SCOUT_OK;
}
