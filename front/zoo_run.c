/* Owns a night: one model and size after the other on a device, because that measures one thing at a time; what went
 * wrong with one is told and stops no other. What has not changed since is found by scripts/profile.sh, which does
 * nothing then.
 */
#include "front/zoo.h"

#include "common/clock.h"
#include "common/files.h"
#include "common/json.h"
#include "common/plain.h"
#include "common/terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAMED = 3, LINE = 1024, CODES = 5, MOST_LIST = 4 << 20 };
static const double PATIENCE = 15; /* for what a zoo that was killed left behind */
static const double TELLING_PATIENCE =
    120; /* for parts that are being ended: Slurm gives them 30 s, if not told otherwise */

static volatile int stop; /* how often it was asked to end */
static void on_stop(int number) {
    (void)number;
    stop++;
}

typedef struct night {
    zoo *z;
    const char *folder; /* DIR/zoo */
    terminal to;
    bool drawn; /* on a terminal one line is drawn over and over, elsewhere there is a line for each that ends */
    int wanted, done, measured, same, wrong, incomplete; /* same: nothing was measured */
    int64_t operations, fresh, cached;
    double begun;
    const char *now; /* what runs; NULL: nothing does */
    zoo_kept kept;
} night;

static const char *named_date(zoo *z) {
    char text[32];
    const time_t now = time(NULL);
    struct tm at;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &at));
    return arena_strndup(z->a, text, strlen(text));
}

/* ---- the line ---- */

static const char *duration(double seconds, char room[16]) {
    if (seconds < 99.5)
        snprintf(room, 16, "%.0f s", seconds);
    else if (seconds < 99.5 * 60)
        snprintf(room, 16, "%.0f min", seconds / 60);
    else
        snprintf(room, 16, "%.1f h", seconds / 3600);
    return room;
}

__attribute__((format(printf, 2, 3))) static void add(char *line, const char *format, ...) {
    const size_t n = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, LINE - n, format, args);
    va_end(args);
}

static void add_wrong(const night *n, char *line) {
    int told = 0;
    if (n->wrong == 0) return;
    add(line, ", %d wrong (", n->wrong);
    for (int k = 0; k < n->z->item_count && told <= NAMED; k++) {
        const zoo_item *item = &n->z->items[k];
        if (item->done && item->code > STATUS_INCOMPLETE)
            told++ < NAMED ? add(line, "%s%s", told > 1 ? ", " : "", item->label) : add(line, ", …");
    }
    add(line, ")");
}

static void compose(const night *n, char line[LINE]) {
    char gone[16], left[16];
    const double seconds = clock_seconds() - n->begun;
    line[0] = 0;
    add(line, "zoo: %d of %d done, %" PRId64 " operations, %s", n->done, n->wanted, n->operations,
        duration(seconds, gone));
    if (n->done > 0 && n->done < n->wanted)
        add(line, ", about %s left", duration(seconds / n->done * (n->wanted - n->done), left));
    add_wrong(n, line);
}

static bool line_open; /* on a terminal, and nothing else may stand behind it */

static void clear_line(void) {
    if (line_open) printf("\r\033[K");
    line_open = false;
    fflush(stdout);
}

static void draw(void *context) {
    const night *n = context;
    char line[LINE];
    if (!n->drawn) return;
    line_open = true;
    compose(n, line);
    if (n->now) add(line, ", now %s", n->now);
    const int end = (int)(terminal_break(line, n->to.columns - 1) - line);
    printf("\r\033[K%.*s", end, line);
    fflush(stdout);
}

/* On a terminal above the line, which is drawn anew after it. */
static void tell(night *n, FILE *to, const char *text) {
    clear_line();
    if (to == stdout)
        printf("%s\n", text);
    else
        status_print(to, "ceiling-scout", NULL, text);
    fflush(to);
    if (n->done < n->wanted) draw(n);
}

static void tell_end(night *n, const zoo_item *item) {
    char line[LINE];
    if (item->code > STATUS_INCOMPLETE)
        tell(n, stderr, arena_printf(n->z->a, "%s: ended with %d: %s", item->label, item->code, item->why));
    else if (item->why)
        tell(n, stderr, arena_printf(n->z->a, "%s: %s", item->label, item->why));
    if (n->drawn) return;
    compose(n, line);
    add(line, "; %s: ", item->label);
    if (item->measured) add(line, "%" PRId64 " measured, %" PRId64 " from the cache", item->fresh, item->cached);
    if (item->why && item->code <= STATUS_INCOMPLETE) add(line, "missing");
    if (!item->measured && !item->why) add(line, item->read ? "read again, the same operations" : "up to date");
    if (item->code > STATUS_INCOMPLETE) add(line, item->measured ? ", then it went wrong" : "went wrong");
    if (item->gpu) add(line, " on GPU %s", item->gpu);
    tell(n, stdout, line);
}

/* ---- one model and size ---- */

json_t *zoo_read_quietly(const char *path) {
    status st = {0};
    return access(path, R_OK) == 0 && !files_is_link(path) ? json_read(path, NULL, &st) : NULL;
}

static void fetch(night *n, zoo_model *m) {
    zoo *z = n->z;
    char script[PATH_MAX];
    status st = {0};
    if (m->fetched || !m->sha256) return;
    m->fetched = true;
    if (!start_find_script("zoo_fetch.sh", script, &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
    const char *const log = arena_printf(z->a, "%s/logs/%s.fetch.log", n->folder, m->name);
    const char *const words[] = {script,
                                 m->url ? m->url : "",
                                 m->file,
                                 m->sha256,
                                 arena_printf(z->a, "%s/models/%s.checked", n->folder, m->name),
                                 NULL};
    const zoo_step step = {.words = words, .log = log, .stop = &stop, .tick = draw, .context = n};
    m->fetch_code = zoo_step_run(z, &step);
    if (m->fetch_code == STATUS_INCOMPLETE) m->fetch_code = STATUS_ENVIRONMENT; /* the script itself went wrong */
    if (m->fetch_code != 0) m->fetch_why = zoo_step_why(z, log);
}

static void count(zoo_item *item, const char *path) {
    json_t *story = zoo_read_quietly(path);
    const json_t *sources = json_object_get(story, "sources");
    static const char *const done[] = {"measured", "cached", "kept"};
    for (int k = 0; k < 3; k++) item->operations += json_get_int(sources, done[k], 0);
    item->fresh = item->measured ? json_get_int(sources, "measured", 0) : 0;
    item->cached = item->measured ? json_get_int(sources, "cached", 0) : 0;
    json_decref(story);
}

/* A file that is replaced has another number, or at least another time. */
typedef struct file_state {
    ino_t number;
    struct timespec at;
} file_state;

static file_state state_of_file(const char *path) {
    struct stat is = {0};
    return stat(path, &is) == 0 ? (file_state){is.st_ino, is.st_mtim} : (file_state){0};
}

static bool is_new(file_state before, const char *path) {
    const file_state now = state_of_file(path);
    return now.number != 0 &&
           (now.number != before.number || now.at.tv_sec != before.at.tv_sec || now.at.tv_nsec != before.at.tv_nsec);
}

static void add_up(night *n, zoo_item *item) {
    n->done++;
    n->measured += item->measured;
    n->same += !item->measured && !item->why;
    n->wrong += item->code > STATUS_INCOMPLETE;
    n->incomplete += item->code == STATUS_INCOMPLETE;
    n->operations += item->operations;
    n->fresh += item->fresh;
    n->cached += item->cached;
    tell_end(n, item);
}

static void measure(night *n, zoo_item *item) {
    zoo *z = n->z;
    const char *const story = arena_printf(z->a, "%s/run.json", item->folder);
    const char *const operations = arena_printf(z->a, "%s/ops.json", item->folder);
    const char *const log = arena_printf(z->a, "%s/logs/%s.log", n->folder, files_base(item->folder));
    n->now = item->label;
    draw(n);
    fetch(n, item->model);
    item->code = item->model->fetch_code;
    item->why = item->model->fetch_why;
    if (item->code == 0 && !stop) {
        const zoo_step step = {.profile = &item->with, .log = log, .stop = &stop, .tick = draw, .context = n};
        const file_state measured = state_of_file(story), read = state_of_file(operations);
        item->code = zoo_step_run(z, &step);
        item->measured = is_new(measured, story);
        item->read = is_new(read, operations);
        if (item->code > STATUS_INCOMPLETE) item->why = zoo_step_why(z, log);
    }
    n->now = NULL;
    if (stop) return;
    if (item->code > CODES) item->code = STATUS_ENVIRONMENT; /* ended by a signal */
    if (item->measured || item->code <= STATUS_INCOMPLETE) count(item, story);
    item->done = true;
}

static void run_item(night *n, zoo_item *item) {
    measure(n, item);
    if (item->done) add_up(n, item);
}

/* ---- several GPUs ---- */

static void work_beside(void *context, zoo_item *item) {
    night quiet = *(const night *)context; /* the line is the zoo's */
    quiet.drawn = false;
    measure(&quiet, item);
}

static void work_alone(void *context, zoo_item *item) { measure(context, item); }
static void end_beside(void *context, zoo_item *item) { add_up(context, item); }
static void tell_beside(void *context, const char *text) { tell(context, stderr, text); }

static void run_on_gpus(night *n) {
    const zoo_gpus with = {.work = work_beside,
                           .work_alone = work_alone,
                           .done = end_beside,
                           .tick = draw,
                           .tell = tell_beside,
                           .context = n,
                           .now = &n->now,
                           .stop = &stop};
    zoo_gpus_run(n->z, &with);
}

/* ---- what parts leave for the end of their night ---- */

static const char *record_of(const night *n, const zoo_item *item) {
    return arena_printf(n->z->a, "%s/nights/%s/%s.json", n->folder, n->z->named, files_base(item->folder));
}

static void write_record(const night *n, const zoo_item *item) {
    status st = {0};
    json_t *record = json_pack("{s:i, s:s, s:b, s:b}", "code", item->code, "why", item->why ? item->why : "", "read",
                               (int)item->read, "measured", (int)item->measured);
    const bool good = record && json_save(record_of(n, item), record, &st);
    json_decref(record);
    if (!good) guard_fail(n->z->a->guard, STATUS_ENVIRONMENT, "%s", record ? st.text : "out of memory");
}

/* What another process did with it, perhaps on another machine. */
static void read_record(night *n, zoo_item *item) {
    json_t *record = zoo_read_quietly(record_of(n, item));
    const int64_t code = json_get_int(record, "code", -1);
    const bool known = code >= 0 && code <= CODES;
    item->done = true;
    item->code = known ? (int)code : STATUS_INCOMPLETE;
    item->read = json_is_true(json_object_get(record, "read"));
    item->measured = json_is_true(json_object_get(record, "measured"));
    if (known && code > STATUS_INCOMPLETE)
        item->why = zoo_digest_plain(n->z, json_get_text(record, "why"));
    else if (!known)
        item->why = "its part did not end in this night; what started that part has a log of it";
    json_decref(record);
    if (item->measured || (known && code <= STATUS_INCOMPLETE))
        count(item, arena_printf(n->z->a, "%s/run.json", item->folder));
    add_up(n, item);
}

/* ---- the folder ---- */

static bool is_gone(const char *text) {
    int pid = 0;
    return sscanf(text, "process %d", &pid) == 1 && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

/* While `*fd` is open no other zoo gets the folder, and where `how` is LOCK_SH none but parts do. A file system without
 * locks gives it to all, and *fd is -1. The file is written to by nothing: over a network only what could be is locked.
 */
static bool lock_folder(zoo *z, const char *folder, int *fd, int how) {
    const char *const path = arena_printf(z->a, "%s/.lock", folder);
    *fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (*fd < 0) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "%s: cannot be opened: %s", path, strerror(errno));
    if (flock(*fd, how | LOCK_NB) == 0) return true;
    const bool taken = errno == EWOULDBLOCK;
    close(*fd);
    *fd = -1;
    return !taken;
}

static int lock = -1;       /* of the folder */
static char mark[PATH_MAX]; /* that a zoo runs: its number and when it began; "": this one has none */

/* Why the folder is not to be had; `path`: the mark of the zoo that runs there. */
static _Noreturn void refuse(const night *n, const char *path) {
    zoo *z = n->z;
    status none = {0};
    size_t size;
    char *const running = files_read(path, 200, &size, &none);
    const char *const text = running && !is_gone(running) ? zoo_digest_plain(z, running) : "or parts of one are";
    free(running);
    guard_fail(z->a->guard, STATUS_ENVIRONMENT,
               "%s: a zoo is running there, %s; wait until it ends, or name another folder (-o)", n->folder, text);
}

/* What a killed zoo or part was measuring ends by itself, soon; until then the lock is held. */
static void take_folder(const night *n, const char *path) {
    const zoo *z = n->z;
    status none = {0};
    size_t size;
    const double until = clock_seconds() + (z->tell ? TELLING_PATIENCE : PATIENCE);
    while (!lock_folder(n->z, n->folder, &lock, z->part ? LOCK_SH : LOCK_EX) && !stop) {
        char *const running = files_read(path, 200, &size, &none);
        const bool gone = z->tell || (running && is_gone(running));
        free(running);
        if (!gone || clock_seconds() > until) refuse(n, path);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
}

/* What is written here stays here: a folder that came from elsewhere may hold links to anything. */
static void refuse_links(const night *n, const char *folder) {
    char path[PATH_MAX];
    bool found = false;
    DIR *const entries = opendir(folder);
    if (!entries) guard_fail(n->z->a->guard, STATUS_ENVIRONMENT, "%s: cannot be opened: %s", folder, strerror(errno));
    for (const struct dirent *entry; !found && (entry = readdir(entries));)
        found = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < PATH_MAX && files_is_link(path);
    closedir(entries);
    if (found)
        guard_fail(n->z->a->guard, STATUS_ENVIRONMENT,
                   "%s: is a link, and nothing is written through links; move it away", path);
}

/* All parts are of one list: a line more or less, or another order, and the Nth of M would be another model. */
static void hold_list(const night *n, const char *folder) {
    zoo *z = n->z;
    const char *const path = arena_printf(z->a, "%s/list", folder);
    status st = {0};
    char *lines = NULL, *first = NULL;
    size_t size = 0, read = 0;
    FILE *const out = open_memstream(&lines, &size);
    for (int k = 0; out && k < z->item_count; k++) fprintf(out, "%s\n", files_base(z->items[k].folder));
    if (!out || fclose(out) != 0) status_set(&st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    if (st.code == STATUS_OK && (access(path, F_OK) == 0 || files_write(path, lines, size, &st)))
        first = files_read(path, MOST_LIST, &read, &st);
    const bool same = first && read == size && memcmp(first, lines, size) == 0;
    free(first);
    free(lines);
    if (st.code != STATUS_OK) guard_fail(z->a->guard, st.code, "%s", st.text);
    if (!same)
        guard_fail(z->a->guard, STATUS_INPUT,
                   "%s: has other models and sizes than when night %s began; submit the night again", z->path,
                   z->named);
}

static void prepare(const night *n) {
    zoo *z = n->z;
    char path[PATH_MAX];
    status st = {0};
    const char *const folders[] = {"logs", "models"};
    for (int k = 0; k < 2; k++)
        if (!files_make_folders(arena_printf(z->a, "%s/%s", n->folder, folders[k]), &st))
            guard_fail(z->a->guard, st.code, "%s", st.text);
    if (snprintf(path, sizeof path, "%s/running", n->folder) >= PATH_MAX)
        guard_fail(z->a->guard, STATUS_USAGE, "--out %s: is too long", z->output);
    take_folder(n, path);
    if (stop) return; /* perhaps without the lock, and then the mark is another's */
    refuse_links(n, n->folder);
    for (int k = 0; k < 2; k++) refuse_links(n, arena_printf(z->a, "%s/%s", n->folder, folders[k]));
    const char *const nights = arena_printf(z->a, "%s/nights", n->folder);
    const char *const of_parts[] = {nights, z->named ? arena_printf(z->a, "%s/%s", nights, z->named) : NULL};
    for (int k = 0; z->named && k < 2; k++) { /* each is looked at before anything is made in it */
        if (!files_make_folders(of_parts[k], &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
        refuse_links(n, of_parts[k]);
    }
    if (z->part) hold_list(n, of_parts[1]);
    if (z->part) return;
    const char *const text = arena_printf(z->a, "process %d since %s", (int)getpid(), named_date(z));
    if (!files_write(path, text, strlen(text), &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
    snprintf(mark, sizeof mark, "%s", path);
}

void zoo_run_end(void) {
    clear_line();
    if (mark[0]) files_remove(mark);
    if (lock >= 0) close(lock); /* after that, for the mark may be another's from then on */
}

/* ---- what all of it comes to ---- */

/* false: nothing has a result yet */
static bool write_page(night *n) {
    zoo *z = n->z;
    char program[PATH_MAX];
    status st = {0};
    int count_of = 0;
    const char **words = arena_array(z->a, const char *, z->item_count + 8);
    const char *const page = arena_printf(z->a, "%s/all.html", n->folder);
    const char *const log = arena_printf(z->a, "%s/logs/all.log", n->folder);
    if (!start_find_program("analyze", program, &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
    const char *const first[] = {program, "--each", "--format", "html", "-o", page};
    for (int k = 0; k < 6; k++) words[count_of++] = first[k];
    for (int k = 0; k < z->item_count; k++)
        if (access(arena_printf(z->a, "%s/summary.json", z->items[k].folder), F_OK) == 0)
            words[count_of++] = z->items[k].folder;
    if (count_of == 6) return false;
    const zoo_step step = {.words = words, .log = log, .stop = &stop, .tick = draw, .context = n};
    const int code = zoo_step_run(z, &step);
    if (code > STATUS_INCOMPLETE && !stop)
        guard_fail(z->a->guard, STATUS_ENVIRONMENT, "%s: was not written: %s", page, zoo_step_why(z, log));
    return true;
}

static const char *sum_up(const night *n, bool named) {
    char line[LINE], gone[16];
    line[0] = 0;
    add(line, "%d of %d done, %d measured, %d up to date; %" PRId64 " operations", n->done, n->wanted, n->measured,
        n->same, n->operations);
    if (n->measured > 0) add(line, ", %" PRId64 " measured, %" PRId64 " from the cache", n->fresh, n->cached);
    add(line, "; %s", duration(clock_seconds() - n->begun, gone));
    if (named) add_wrong(n, line);
    if (!named && n->wrong > 0) add(line, ", %d wrong", n->wrong);
    if (n->incomplete > 0) add(line, ", %d not complete", n->incomplete);
    return arena_strndup(n->z->a, line, strlen(line));
}

/* A line of its own in a log, and part of the line on a terminal. */
static void tell_now(void *context, const char *text) {
    night *n = context;
    n->now = text;
    if (text && !n->drawn) tell(n, stdout, arena_printf(n->z->a, "zoo: %s", text));
}

static status_code end(night *n, status *st) {
    zoo *z = n->z;
    const char *const digest = arena_printf(z->a, "%s/digest.md", n->folder), *const sum = sum_up(n, true);
    const zoo_step step = {.stop = &stop, .tick = draw, .context = n};
    int worst = 0;
    if (!stop) zoo_cards_compare(z);
    for (int k = 0; k < z->unlike_count; k++) tell(n, stderr, z->unlike[k]);
    if (!stop) n->kept = zoo_history_end(z, n->folder, &step, tell_now, n->measured > 0);
    if (!stop) zoo_digest_write(z, n->folder, arena_printf(z->a, "%s: %s", named_date(z), sum_up(n, false)));
    const bool page = !stop && write_page(n);
    if (stop) return status_set(st, STATUS_INCOMPLETE, "interrupted: %s; the same command goes on where it was", sum);
    tell(n, stdout, arena_printf(z->a, "zoo: %s; see %s%s", sum, digest, page ? " and index.html" : ""));
    if (n->kept.slower) tell(n, stdout, arena_printf(z->a, "zoo: %s", n->kept.text));
    for (int k = 0; k < z->item_count; k++)
        if (z->items[k].done && z->items[k].code > worst) worst = z->items[k].code;
    const char *const unheard = zoo_notify(z, n->folder, &step,
                                           worst > STATUS_INCOMPLETE || n->kept.why ? "wrong"
                                           : n->kept.slower                         ? "slower"
                                           : worst == STATUS_INCOMPLETE             ? "incomplete"
                                                                                    : "quiet");
    if (unheard) tell(n, stderr, unheard);
    if (n->kept.why && worst <= STATUS_INCOMPLETE)
        return status_set(st, STATUS_ENVIRONMENT, "the history was not kept: %s", n->kept.why);
    if (worst > STATUS_INCOMPLETE)
        return status_set(st, (status_code)worst, "%d of %d went wrong; %s and the logs beside it tell which, and why",
                          n->wrong, n->wanted, digest);
    if (worst == STATUS_INCOMPLETE)
        return status_set(st, STATUS_INCOMPLETE, "%d of %d are not complete; %s tells what is missing", n->incomplete,
                          n->wanted, digest);
    if (n->kept.slower) return status_set(st, STATUS_INCOMPLETE, "%s; %s tells which", n->kept.text, digest);
    return STATUS_OK;
}

static status_code end_part(night *n, status *st) {
    const zoo_item *item = n->z->items;
    while (!item->wanted) item++; /* there is one */
    if (stop) return status_set(st, STATUS_INCOMPLETE, "interrupted; the same command goes on where it was");
    write_record(n, item);
    if (item->code == STATUS_INCOMPLETE)
        return status_set(st, STATUS_INCOMPLETE, "%s is not complete; %s/summary.txt tells what is missing",
                          item->label, item->folder);
    return item->code > STATUS_INCOMPLETE ? status_set(st, (status_code)item->code, "%s went wrong", item->label)
                                          : STATUS_OK;
}

static void print_digest(zoo *z, const char *folder) {
    status st = {0};
    size_t size;
    char *const text = files_read(arena_printf(z->a, "%s/digest.md", folder), 16 << 20, &size, &st);
    if (!text) guard_fail(z->a->guard, st.code, "%s", st.text);
    printf("\n%s", text);
    free(text);
}

/* ---- which ---- */

/* Which of the list a part is, from 0 on; -1: it is none. */
static int part_of(zoo *z) {
    int at = 0, of = 0;
    char rest;
    if (!z->part) return -1;
    if (sscanf(z->part, "%9d/%9d%c", &at, &of, &rest) != 2 || at < 1 || at > of)
        guard_fail(z->a->guard, STATUS_USAGE, "--part %s: is no part; say 3/13, the third of 13", z->part);
    if (of != z->item_count)
        guard_fail(z->a->guard, STATUS_INPUT, "--part %s: %s has %d models and sizes now; submit the night again",
                   z->part, z->path, z->item_count);
    return at - 1;
}

/* Folders by their names, and which of them are wanted. */
static int choose(zoo *z) {
    const int part = part_of(z);
    int wanted = 0;
    for (int k = 0; k < z->item_count; k++) {
        zoo_item *item = &z->items[k];
        item->folder = zoo_step_folder(z, &item->with);
        item->label = zoo_digest_plain(z, files_base(item->folder));
        for (int before = 0; before < k; before++)
            if (strcmp(z->items[before].folder, item->folder) == 0)
                guard_fail(z->a->guard, STATUS_INPUT,
                           "%s: models[%d]: %s is there twice; take one away, or change its size", z->path, item->at,
                           item->label);
        item->wanted = part >= 0
                           ? k == part
                           : !z->only || strcmp(z->only, item->model->name) == 0 || strcmp(z->only, item->label) == 0;
        wanted += item->wanted;
    }
    if (wanted == 0)
        guard_fail(z->a->guard, STATUS_USAGE, "--only %s: %s has no such model; ceiling-scout zoo --list names them",
                   z->only, z->path);
    return wanted;
}

static const char *state_of(zoo *z, const zoo_item *item) {
    json_t *story = zoo_read_quietly(arena_printf(z->a, "%s/run.json", item->folder));
    const char *const state = zoo_digest_plain(z, json_get_text(story, "state"));
    const char *const started = zoo_digest_plain(z, json_get_text(story, "started"));
    const bool there = story != NULL;
    json_decref(story);
    if (!there && access(item->model->file, R_OK) != 0)
        return item->model->url ? "not loaded yet" : "its file is not there";
    if (!there) return "not measured yet";
    return strcmp(state, "complete") == 0 ? arena_printf(z->a, "measured %s", started)
                                          : arena_printf(z->a, "begun %s (%s)", started, state);
}

static void print_list(zoo *z) {
    int widest = 0, files = 0;
    for (int k = 0; k < z->item_count; k++) {
        const zoo_item *item = &z->items[k];
        const int columns = plain_columns(item->label), file = plain_columns(item->model->file);
        if (columns > widest) widest = columns;
        if (file > files) files = file < 48 ? file : 48;
    }
    for (int k = 0; k < z->item_count; k++) {
        const zoo_item *item = &z->items[k];
        if (item->wanted)
            printf("%s  %s  %s\n", plain_padded(z->a, item->label, widest),
                   plain_padded(z->a, item->model->url ? item->model->url : item->model->file, files),
                   state_of(z, item));
    }
}

/* All that a night starts, before it begins. */
static void find_all(zoo *z) {
    static const char *const scripts[] = {"profile.sh", "zoo_fetch.sh"};
    static const char *const programs[] = {"extract_ops", "scout_batch", "analyze"};
    char path[PATH_MAX];
    status st = {0};
    for (int k = 0; k < 2; k++)
        if (!start_find_script(scripts[k], path, &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
    for (int k = 0; k < 3; k++)
        if (!start_find_program(programs[k], path, &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
}

static const char *usual_list(zoo *z) {
    const char *const path = "models/zoo.json";
    if (access(path, F_OK) == 0) return path;
    guard_fail(z->a->guard, STATUS_USAGE, "which models? there is no %s here; say ceiling-scout zoo ZOO.json", path);
}

status_code zoo_run(zoo *z, status *st) {
    night n = {
        .z = z, .to = terminal_of(stdout, TERMINAL_MOST), .drawn = isatty(STDOUT_FILENO), .begun = clock_seconds()};
    find_all(z);
    if (!z->path) z->path = usual_list(z);
    zoo_read(z);
    n.wanted = choose(z);
    if (z->gpus) zoo_gpus_name(z);
    if (z->list) {
        print_list(z);
        return STATUS_OK;
    }
    n.folder = arena_printf(z->a, "%s/zoo", z->output);
    files_on_signals(on_stop);
    prepare(&n);
    if (z->gpus && !stop) zoo_gpus_find(z, n.folder, &(zoo_step){.stop = &stop, .tick = draw, .context = &n});
    if (!stop) zoo_history_begin(z, n.folder);
    if (z->resumed)
        tell(&n, stdout,
             arena_printf(z->a, "zoo: goes on with the night of %.*s", (int)strcspn(z->night, " "),
                          zoo_digest_plain(z, z->night)));
    if (z->gpus && !stop) run_on_gpus(&n);
    for (int k = 0; k < z->item_count && !stop && !z->gpus; k++)
        if (z->items[k].wanted) (z->tell ? read_record : run_item)(&n, &z->items[k]);
    const status_code code = z->part ? end_part(&n, st) : end(&n, st);
    if (z->digest && !stop) print_digest(z, n.folder);
    return code;
}
