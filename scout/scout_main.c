/* scout_batch: from options to a run to an exit code, and nothing else. */
#include "common/files.h"
#include "scout/run/options.h"
#include "scout/run/run.h"
#include "scout/worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* Set by the first signal that asks for an end; a second one ends the program as it would have without a handler.
 * A handler has nothing but globals to tell by. */
static volatile int stop;

/* What ends a whole group (timeout, batch systems) signals each process twice at once: that is one request. */
static bool is_echo(void) {
    static struct timespec first;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!stop) first = now;
    return (double)(now.tv_sec - first.tv_sec) + 1e-9 * (double)(now.tv_nsec - first.tv_nsec) < 0.2;
}

static void on_signal(int number) {
    const int kept = errno;
    if (!is_echo()) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop = 1;
    errno = kept;
}

static void watch_signals(void) {
    files_on_signals(on_signal);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe of the table does not end the measuring */
}

static status_code run_worker(const options *o, status *st) {
    const worker_options with = {.in = o->worker_in,
                                 .out = o->worker_out,
                                 .library_path = o->library_path,
                                 .plugins = o->plugins,
                                 .plugin_count = o->plugin_count};
    return worker_run(&with, st);
}

static status_code run_mode(const options *o, status *st) {
    if (o->run_once || o->counters_count > 0) return run_profile(o, &stop, st);
    switch (o->mode) {
    case OPTIONS_BATCH:
    case OPTIONS_SINGLE: return run_operations(o, &stop, st);
    case OPTIONS_CEILINGS: return run_ceilings(o, &stop, st);
    case OPTIONS_DEVICES: return run_list_devices(o, st);
    case OPTIONS_CANDIDATES: return run_list_candidates(o, st);
    case OPTIONS_CACHE: return run_cache_info(o, st);
    case OPTIONS_REPLAY: return run_replay_folder(o, &stop, st);
    case OPTIONS_DOCTOR: return run_doctor(o, st);
    case OPTIONS_WORKER: return run_worker(o, st);
    }
    return STATUS_USAGE;
}

int main(int argc, char **argv) {
    status st = {0};
    options o;
    files_hold_standard();
    if (options_parse(argc, argv, &o, &st) == CLI_RUN) {
        if (o.mode != OPTIONS_WORKER) watch_signals();
        st.code = run_mode(&o, &st);
        if (o.mode != OPTIONS_WORKER) files_finish_output(&st, "completely; make room for it, or give --quiet");
    }
    if (st.code > STATUS_INCOMPLETE || (st.code != STATUS_OK && st.text[0]))
        status_print(stderr, "scout_batch", NULL, st.text);
    options_free(&o);
    return (int)st.code;
}
