/* What a replay of a model knows while it runs, and what is told of it. Only for run_replay.c and run_model.c. */
#pragma once

#include "scout/run/run_internal.h"

typedef struct share { /* of an operation or a fusion, by its report */
    bool takes_part;
    const char *code, *text; /* why it does not; NULL: it needs none */
    double default_us;       /* of all its launches in a run */
    double fetch_us;         /* of that, what fetching its program takes; 0: nothing, or it is not known */
    double least_us;         /* of one without a figure; 0: not known */
    double in_place[2];      /* sums over passes */
    int in_place_passes[2];
    double traced[2]; /* launches whose kernels alone that is */
} share;

typedef struct replay_run {
    run *r;
    share *shares; /* by item */
    run_plan plan;
    json_t *measurement, *facts; /* owned */
    double end_s;                /* no pass begins later, but for the least of them; infinite: none is too late */
    double least_end_s;          /* nor one of these, unless `least` wants them all the same */
    bool least;                  /* the least is made whatever it takes */
    bool alone;                  /* --replay: outputs are held against fp32, too */
    double begun_s, took_s;      /* of the last job, and of the last pass */
    int pass, device;            /* device: the one that does all; -1: not known */
    bool over, again;            /* again: it was begun again */
    int look;                    /* behind the passes: the job under way, of run_replay.c's table */
    json_t *trace;               /* owned */
    const char *untraced;        /* why the tracer told nothing; NULL: it did, or was not asked */
    const char *lost;            /* what a look's worker was lost by; NULL: it was not */
    status failure;
} replay_run;

/* run_replay.c */
json_t *run_replay_operations(const replay_run *w, json_builder *b); /* what runs as what, as a request has it */
json_t *run_replay_fusions(const replay_run *w, json_builder *b);

/* run_model.c */
int run_item_of(const run *r, const char *id);                   /* -1: there is none */
bool run_is_among(const json_t *list, const char *id);           /* of objects that name an operation */
const json_t *run_replay_row(const json_t *m, const char *name); /* of a lane; NULL: there is none */
/* What the plan ends in is not what the defaults end in, by more than rounding makes of it. */
bool run_model_ends_elsewhere(const replay_run *w);
bool run_model_is_there(const replay_run *w);          /* nothing was measured since, and it is there; shown */
bool run_model_refuse_links(const run *r, status *st); /* as run_files_refuse_link, for all of its files */
bool run_model_save(replay_run *w, status *st);        /* written, shown and judged */
