/* Tails of Student's t distribution. Pure. Degrees that are infinite stand for the normal distribution. */
#ifndef ANALYZE_STUDENT_H
#define ANALYZE_STUDENT_H

double student_tail(double t, double degrees); /* the part of the distribution above t */
/* What the part `tail` (above 0, at most a half) of the distribution lies above. */
double student_quantile(double tail, double degrees);
double student_log_density(double t, double degrees);

#endif
