/* What a run says of itself while it goes on: its phases by name, when it will end, and once everything has a first
 * figure, a table of estimates. */
#include "scout/run/run_internal.h"

#include "common/plain.h"
#include "scout/measure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double UNSEEN_S = 0.2;   /* a first pass that was of another run */
static const double LOOK_SECONDS = 1; /* how often it is counted anew what is left, and the table made */

enum { CEILINGS, OPERATIONS, FUSIONS, REFINED, PHASES };
static const char *const names[PHASES] = {"ceilings", "operations", "fusions", "refined"};

typedef struct phase {
    int done, count;
} phase;

/* ---- counting ---- */

/* Seconds that ceilings take still, at most: of the device that needs longest. */
static double count_ceilings(run *r, phase *p) {
    double left_s = 0;
    for (int k = 0; k < r->device_count; k++) {
        const run_device *d = &r->devices[k];
        const double mine_s = run_ceilings_left_s(d);
        p->done += d->parts_done + d->part;
        p->count += d->parts_done + d->parts;
        left_s = fmax(left_s, mine_s); /* which takes no not-a-number */
        if (d->parts > 0) continue;
        const int due = run_ceilings_parts_due(r, d);
        p->count += due;
        left_s = fmax(left_s, due * budget_ceilings_part(&r->budget, d->used_s, due, run_on_host(r)));
    }
    return left_s;
}

static bool is_of_run(const run_item *i) { return i->started || i->source == RUN_PENDING; }

static void count_items(run *r, phase *phases, expect_work *w) {
    const double now = run_now();
    int wanted = 0;
    run_order_look(r);
    w->spare_s = run_order_spare(r, now);
    for (int k = 0; k < r->item_count; k++) {
        const run_item *i = &r->items[k];
        const bool joined = i->stage != RUN_OPERATIONS, done = i->source != RUN_PENDING;
        const int passes = figures_passes(i->measurement);
        const double first_s = i->first_s > 0 ? i->first_s : UNSEEN_S;
        if (passes > 0 && i->source != RUN_LEFT) expect_passes(w, passes, i->wanted, first_s, i->passes, i->passes_s);
        wanted += i->wanted;
        if (!is_of_run(i)) continue;
        phases[joined ? FUSIONS : OPERATIONS].done += done;
        phases[joined ? FUSIONS : OPERATIONS].count++;
        expect_job(w, &r->budget, joined, i->share, done, i->first_s, i->started && !done ? now - i->began_s : 0);
    }
    if (phases[OPERATIONS].done < phases[OPERATIONS].count || phases[FUSIONS].done < phases[FUSIONS].count) return;
    if (wanted > r->most_wanted) r->most_wanted = wanted;
    phases[REFINED] = (phase){r->most_wanted - wanted, r->most_wanted};
}

static void write_phases(run *r, const phase *phases) {
    size_t n = 0;
    bool found = false; /* the first that is not at its end; the last one, where all are */
    r->phases[0] = r->phase[0] = 0;
    for (int k = 0; k < PHASES; k++) {
        char one[48];
        if (phases[k].count == 0) continue;
        snprintf(one, sizeof one, "%s %d/%d", names[k], phases[k].done, phases[k].count);
        n += (size_t)snprintf(r->phases + n, sizeof r->phases - n, "%s%s", n > 0 ? " · " : "", one);
        if (!found) memcpy(r->phase, one, sizeof one);
        found = found || phases[k].done < phases[k].count;
    }
}

/* ---- the table ---- */

static void render(run *r) {
    const arena_mark before = arena_save(&r->arena);
    report_input *inputs = arena_array(&r->arena, report_input, r->list.count + 1);
    char *text = NULL;
    size_t size = 0;
    int count = 0;
    for (int k = 0; k < r->list.count; k++)
        if (r->items[k].measurement && r->items[k].source != RUN_LEFT) inputs[count++] = run_input(r, &r->items[k], -1);
    FILE *out = count > 1 ? open_memstream(&text, &size) : NULL;
    if (out) {
        fprintf(out, "%s\n",
                plain_cell(&r->arena, "estimates after the first pass, refined until the end", show_width(stderr)));
        if (r->axes.count > 0)
            show_axes(out, &r->arena, inputs, count, &r->axes, r->list.items, show_width(stderr));
        else
            show_table(out, &r->arena, inputs, count, show_width(stderr));
        if (fclose(out) == 0) show_progress_table(&r->progress, text);
    }
    free(text);
    arena_rewind(&r->arena, before);
}

void run_progress_show(run *r, const char *what) {
    const double now = run_now();
    if (r->progress.quiet) return;
    const bool told = r->progress.terminal || show_progress_due(&r->progress);
    if (told && (now - r->looked >= LOOK_SECONDS || r->looked == 0)) {
        phase phases[PHASES] = {{0}};
        expect_work w = {.began = r->began, .host = run_on_host(r)};
        w.ceilings_s = count_ceilings(r, &phases[CEILINGS]);
        count_items(r, phases, &w);
        r->left_s = expect_left(&r->expect, &w, &r->budget, now);
        r->looked = now;
        write_phases(r, phases);
        if (phases[REFINED].count > 0 && r->progress.terminal) render(r);
    }
    show_progress_set(&r->progress, &(show_progress_state){.part = r->expect.part,
                                                           .left_s = r->left_s - (now - r->looked),
                                                           .phases = r->phases,
                                                           .phase = r->phase,
                                                           .what = what});
}
