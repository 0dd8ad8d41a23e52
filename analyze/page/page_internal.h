/* What the files of the page share: where it goes, and how figures and foreign text are put into it. A file writes one
 * section; page.c has their order. What is kept in memory does not grow with what reports hold: a report is read, its
 * section written, and it is let go. */
#pragma once

#include "analyze/study/summary.h"
#include "common/amount.h"

#include <jansson.h>
#include <stdio.h>

enum { PAGE_MEMORY = 256 << 20 }; /* of names and spots; everything else is written as it comes */

/* Limits, so that a page of thousands of operations still opens at once; what they leave out is said where it is. */
enum {
    PAGE_FULL = 300,     /* operations, the first of the ranking, whose reports are read again and told in full */
    PAGE_DOTS = 200,     /* dots that can be reached and asked one by one */
    PAGE_ROWS = 2000,    /* candidates of an operation that are looked at */
    PAGE_TIMED = 100,    /* of those with a time that are listed, the fastest */
    PAGE_DRAWN = 8,      /* and of these, those whose interval is drawn */
    PAGE_POINTS = 400,   /* of a curve */
    PAGE_LAYERS = 2000,  /* layers of an operation that are named */
    PAGE_NAME = 80,      /* characters of a name where it is not told in full */
    PAGE_SENTENCE = 300, /* of a sentence */
    PAGE_WHOLE = 20000   /* and where it is */
};

/* What was measured when, for the clock over the run. */
typedef struct page_moment {
    double at_s; /* since 1970 */
    double clock_mhz, power_w;
    size_t rank;
} page_moment;

typedef struct page {
    FILE *out;
    const summary *m;
    const summary_group *g;
    size_t number;  /* of the group: in all its ids */
    json_t *run;    /* run.json, or NULL */
    json_t *device; /* of it, the one that the group was measured on, or NULL; borrowed from run */
    json_t *trace;  /* trace.json, while it is drawn */
    page_moment *moments;
    size_t moment_count;
    arena arena; /* names made fit, rewound after each section */
    guard guard;
} page;

/* ---- the page as a whole: page.c. All before its header, and all behind its main part. */
void page_begin(page *p, const char *name, const char *what); /* its title: "NAME: what" */
void page_end(page *p, const char *says);
void page_regime(page *p, const char *text); /* "sustained load, model cache, graph launch" */

/* ---- figures and text: page_text.c */
typedef struct page_word {
    char s[40];
} page_word; /* a figure as text, "–" where it is not known; lives to the end of the expression: page_time(x).s */

page_word page_time(double us);                      /* "305.2 µs" */
page_word page_time_in(amount_unit unit, double us); /* in the unit of its column */
page_word page_percent(double share);                /* "3.4 %" */
page_word page_figure(double x);                     /* four digits: "605.1", "12,680", "0.05" */
page_word page_whole(double x);                      /* "12,680" */
page_word page_bytes(double bytes);                  /* "90.2 MB" */
page_word page_place(double percent);                /* "37.25%": a coordinate */

void page_say(page *p, const char *text);                   /* foreign text, as text */
void page_say_cut(page *p, const char *text, int most);     /* its middle left out beyond so many characters */
void page_say_wrapped(page *p, const char *text, int most); /* that, with places for a line to break behind commas */
/* A variant's parameters in words, and the text itself on demand: unfolded, or (of less room) under the mouse. */
void page_variant(page *p, const char *variant, int most, bool on_demand); /* page_variant.c */
void page_advice(page *p, const study_report *r);                          /* the verdict's, with the variant so */
const char *page_title(page *p, const study_report *r); /* what a person calls it; until the arena is rewound */
void page_shape(page *p, const study_report *r);        /* "2048 × 4096 × 4096"; "… by 3 × 3 from 64" */
const char *page_kind(const char *op);                  /* "gemm", …, "other": of a class, also for unknown ones */
void page_key(page *p, const char *kind);               /* the kind's little coloured square */
void page_legend(page *p, const char *const *kinds, size_t count); /* each of these once; as page_kind gives them */

/* The begin of a section. Its name is its heading, where there are several groups also that of its group. */
void page_section(page *p, const char *id, const char *title);
/* A table in a box that scrolls: its name, what is said above it (NULL: nothing to see), and its heads; those of
 * figures begin with '#'. */
void page_table_open(page *p, const char *class, const char *name, const char *says, const char *const *heads,
                     size_t count);
void page_table_close(page *p);

double page_real(const json_t *object, const char *key);        /* not-a-number: not there */
const char *page_string(const json_t *object, const char *key); /* "": not there */

/* ---- charts: page_chart.c. Coordinates are percents, so that text keeps its size whatever the width. */
typedef struct page_axis {
    double low, high;
    bool log;
} page_axis;
typedef struct page_chart {
    page_axis x, y;
    const char *x_unit, *y_unit; /* of x NULL: bytes */
} page_chart;

page_axis page_axis_of(double low, double high, bool log); /* with room to round figures */
double page_chart_x(const page_chart *c, double value);    /* percent */
double page_chart_y(const page_chart *c, double value);
void page_chart_grid(page *p, const page_chart *c);
void page_chart_line(page *p, const page_chart *c, const char *class, double x1, double y1, double x2, double y2);
typedef struct page_point {
    double x, y, ci;
} page_point;
void page_chart_curve(page *p, const page_chart *c, const char *class, const page_point *points, size_t count);
/* A whisker at a percent of a picture's width: where this lies, known to within a part of it. Nothing where
 * that is 0 or not known. */
void page_spread(page *p, double percent, double ci, double middle, double half_height); /* these down from its top */
/* One line of bars, painted up to `us` of `longest`. */
void page_bar(page *p, const char *name, const char *class, double us, double ci, double longest, const char *note);
/* All of one curve: axes that fit it, the points, their intervals. */
void page_chart_alone(page *p, const char *says, const page_point *points, size_t count, bool log_x, const char *x_unit,
                      const char *y_unit);

/* ---- sections */
void page_models(page *p); /* page_models.c: the head of a page of several groups, and these beside each other */
void page_first(page *p);  /* page_first.c: what to do first, totals, categories */
void page_categories(page *p);
void page_tracks(page *p);                                            /* page_tracks.c: kernel after kernel */
void page_roofline(page *p);                                          /* page_roofline.c */
void page_table(page *p);                                             /* page_table.c */
void page_operations(page *p);                                        /* page_operation.c */
void page_rows(page *p, const study_report *r, const json_t *detail); /* page_rows.c: candidates */
void page_weight(page *p, const json_t *detail);                      /* page_weight.c */
void page_over_time(page *p);                                         /* page_run.c */
void page_fusions(page *p);                                           /* page_fusions.c */
void page_crossover(page *p);                                         /* page_crossover.c: a sparsity sweep */
void page_along(page *p);                                             /* page_along.c: --axis, and ranges in --shape */
void page_device(page *p);                                            /* page_device.c */
void page_missing(page *p);                                           /* page_missing.c */

typedef struct page_peak {
    const char *precision, *how;
    double tflops, ci, datasheet, clock_mhz;
    const json_t *shape; /* or NULL */
} page_peak;
size_t page_peaks(const page *p, page_peak *peaks, size_t room); /* page_device.c: measured, from run.json or reports */
