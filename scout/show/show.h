/* What a person sees: one operation in full, a table of many, lists, and what goes on meanwhile. Texts from files are
 * cleaned before they reach a terminal. */
#pragma once

#include "common/arena.h"
#include "scout/cache/cache.h"
#include "scout/report/counters.h"
#include "scout/report/crossover.h"
#include "scout/report/report.h"

#include <stdio.h>

/* Standard error while something is measured: on a terminal a bar, and above it a table of estimates; else plain lines,
 * one after each moment in which nothing else was said. */
typedef struct show_progress {
    bool terminal, quiet, drawn;
    double last;              /* when something was drawn or printed: seconds of a steady clock */
    char what[320];           /* that goes on */
    double since;             /* when it began */
    char *table;              /* owned; NULL: none */
    int table_lines, columns; /* that stand above the bar; of the terminal */
} show_progress;

typedef struct show_progress_state {
    double part, left_s; /* of the run, 0 to 1, and until its end; not-a-number: not known */
    const char *phases;  /* all of them: "ceilings 1/2 · operations 3/16" */
    const char *phase;   /* the one that is under way, where there is no room for all */
    const char *what;    /* goes on; NULL: the same as before */
} show_progress_state;

void show_progress_init(show_progress *p, bool quiet);
bool show_progress_due(const show_progress *p); /* it is time to say how things are */
void show_progress_set(show_progress *p, const show_progress_state *s);
/* From now on this (a copy is made) stands above the bar: lines that are no wider than show_width. NULL: nothing. */
void show_progress_table(show_progress *p, const char *text);
/* "1:05 left"; empty where that is not known, or nearly over. */
const char *show_left(double left_s, char *text, size_t room);
void show_progress_line(show_progress *p, const char *text); /* a line of its own, unless on a terminal or quiet */
void show_progress_end(show_progress *p); /* the terminal is as before; what is set later is drawn below */
void show_progress_free(show_progress *p);

/* "gemm_…  412.1 us  93.2 %": one finished operation. */
void show_result_line(const report_input *in, const report_figures *f, char *text, size_t room);

/* Three figures or more and a unit: "18.92 us", "30.20 ms"; "± 0.2 %", "± ?" where the interval is not known. */
const char *show_within(arena *a, double rel_ci95);
void show_time(double us, char *text, size_t room);

/* Memory for texts comes from the arena, whose guard takes what fails. */
void show_operation(FILE *out, arena *a, const report_input *in);
/* All variants beside each other (--table), below the operation's name where that was not told before. */
void show_variants(FILE *out, arena *a, const report_input *in, bool named);
/* Largest time first; those without a time are counted below. width: in columns. */
void show_table(FILE *out, arena *a, const report_input *inputs, int count, int width);
/* Those along axes, in their order; `first`: of the list that has all of them. */
void show_axes(FILE *out, arena *a, const report_input *inputs, int count, const operation_axes *axes,
               const operation *first, int width);
void show_weight(FILE *out, arena *a,
                 const report_input *in); /* of one that is sparse, or whose zeros were asked for */
void show_counters(FILE *out, arena *a, const json_t *row, const counters *c); /* what a profiler says of a row */
/* Before, after and the decision: of one operation in full, of many a line each. */
void show_comparison(FILE *out, arena *a, const report_input *in, const report_figures *f);
void show_comparisons(FILE *out, arena *a, const report_input *inputs, int count);
/* What could run as one: the parts against it, the largest saving first. */
void show_fusions(FILE *out, arena *a, const report_input *inputs, int count);
void show_weight_of(FILE *out, arena *a, const report_input *in); /* the same below the operation's name */
/* From how many zeros on leaving them out is faster than the dense product. */
void show_crossovers(FILE *out, arena *a, const crossover *found, int count);
/* The model as a whole, and where it differs from the sum of its parts; `root`: model.json. */
void show_whole(FILE *out, arena *a, const json_t *root);
void show_plan(FILE *out, arena *a, const json_t *root); /* plan.json: which fusions are worth it and stay out */
void show_sweep(FILE *out, const ceilings *c);
void show_ceilings(FILE *out, arena *a, const supervisor_device *device, const regime *r, const ceilings *c,
                   const json_t *audit);
void show_devices(FILE *out, arena *a, const json_t *devices);
void show_candidates(FILE *out, arena *a, const json_t *candidates);
void show_cache(FILE *out, arena *a, const char *folder, const cache_info *rows, int count);

/* ---- shared by the files of show ---- */

void show_head(FILE *out, arena *a, const report_input *in, int width); /* the device and the regime */
/* Those without a figure, and candidates that failed; `figures` of the inputs. */
void show_failures(FILE *out, arena *a, const report_input *inputs, const report_figures *figures, int count,
                   int width);

/* With a unit that keeps it readable: "655.3 TFLOP/s", "48.10 GFLOP/s", "4.302 TB/s". */
const char *show_row_name(arena *a, const json_t *row); /* with its variant, cleaned */
const char *show_rate(arena *a, double per_s, const char *unit);
/* That of the operation in so many microseconds: flops, or bytes where memory bounds it. */
const char *show_rate_of(arena *a, const report_figures *f, double us);
const char *show_bytes(arena *a, double bytes);
const char *show_cell(arena *a, const char *text, int columns, bool right); /* cleaned, cut and padded */
int show_width(FILE *out);                                                  /* of the terminal; 4096 where it is none */
const char *show_shape(arena *a, const operation *o, const char *between);
