/* A worker for the tests of the supervisor: a job's "do" names what happens, unless the candidate at fault is excluded
 * already. */
#ifndef TESTS_FAKES_ODD_WORKER_H
#define TESTS_FAKES_ODD_WORKER_H

int odd_worker_run(const char *connection); /* the exit status */

#endif
