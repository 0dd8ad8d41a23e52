/* From reports to figures of a night, and from repetitions to what they say. */
#pragma once

#include "analyze/history/history.h"
#include "analyze/study/summary.h"

/* All operations of a summary whose folders are models of their own (study_options.each). */
void history_add(history *h, const summary *m);

/* Repetitions lie in DIR/<model>/<operation>/<number>[-before]/reports/<operation>.json; context: DIR. */
history_repeat history_repeat_from;
typedef struct history_again {
    history *h;
    const char *folder;
} history_again;
