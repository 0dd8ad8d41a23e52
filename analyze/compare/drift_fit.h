/* Robust location and spread of the changes of many operations, each with a noise of its own. Pure; used by drift.c. */
#pragma once

#include "analyze/compare/drift.h"

typedef struct drift_fit_data {
    drift_row *rows; /* the finite ones, by change; owned */
    size_t n;
    double middle_noise; /* median */
    double ordinary;     /* one and a half of it */
    double least_spread; /* 0.1 %; a caller that knows more may raise it */
} drift_fit_data;

bool drift_fit_open(drift_fit_data *data, const drift_row *rows, size_t n); /* false: no memory */
void drift_fit_close(drift_fit_data *data);

typedef struct drift_fit {
    double center, center_sd;
    double spread, trust; /* see drift.h */
    size_t members;       /* within reach of the center */
    bool fixed;           /* the center was given */
} drift_fit;

drift_fit drift_fit_densest(const drift_fit_data *data);                                 /* where half of all are */
drift_fit drift_fit_from(const drift_fit_data *data, double start, const drift_fit *as); /* the cluster around start */
drift_fit drift_fit_fixed(const drift_fit_data *data, double center, double spread);
size_t drift_fit_near(const drift_fit_data *data, const drift_fit *fit,
                      double place); /* as members, but around place */

/* How the members are spread beyond their deviation decides what chance may do at one in a million: a mixture of the
 * normal distribution and heavier and heavier tails, each as likely as the members make it. false: no memory. */
bool drift_fit_tails(const drift_fit_data *data, const drift_fit *fit, double weights[DRIFT_SHAPES]);
/* What the part of such a mixture lies above, in deviations; degrees: of the first one. */
double drift_fit_limit(const double weights[DRIFT_SHAPES], double degrees, double part);

double student_tail(double t, double degrees); /* the part of the distribution above t */
/* What the part `tail` (above 0, at most a half) of the distribution lies above. */
double student_quantile(double tail, double degrees);
double student_log_density(double t, double degrees);
