/* Owns a zoo on several GPUs of a host: which item runs where. An item runs whole on one GPU, in a process that sees no
 * other, so that what is compared is of one GPU. It stays with the GPU that measured it before, because a history is of
 * one GPU; of the others those begin that are expected to take longest. An item that failed for a reason of its machine
 * is tried on another GPU. Where two of them succeed there, the first GPU is the fault and gets no more; the last never
 * goes. */
#include "front/zoo.h"

#include "common/files.h"
#include "common/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_GPUS = 64, NAME = 80, WHY = 600, NONE = -1, MOST_LISTED = 1 << 20 };

/* What a process of one item leaves for the zoo, in memory that both have. */
typedef struct left {
    bool there, measured, read;
    bool fetched; /* its model was there: what went wrong then may be the GPU's fault */
    int code;
    int64_t operations, fresh, cached;
    char why[WHY]; /* "": nothing is wrong */
} left;

typedef struct turn { /* of an item */
    zoo_item *item;
    double seconds; /* that it is expected to take: as before, else more than any other */
    off_t bytes;    /* of its model */
    int before;     /* the GPU that it ran on; NONE: not known */
    int failed_on;  /* NONE: nowhere */
    const char *failed_why;
    bool alone, begun;
    left *result;
} turn;

typedef struct lane { /* a GPU */
    pid_t pid;        /* 0: it is free */
    turn *has;
    int strikes; /* items that failed here, and not elsewhere */
    bool lost;
} lane;
enum { STRIKES = 2 };

typedef struct gpus {
    zoo *z;
    const zoo_gpus *with;
    lane *lanes;
    turn *turns;
    int count;
    char running[1024];
} gpus;

/* ---- which there are ---- */

static void add_gpu(zoo *z, const char *from, const char *name, size_t n) {
    static const char others[] = "-_/:.";
    bool good = n > 0 && n < NAME &&
                (strspn(name, "0123456789") >= n || strncmp(name, "GPU-", 4) == 0 || strncmp(name, "MIG-", 4) == 0);
    for (size_t k = 0; k < n; k++) good = good && (isalnum((unsigned char)name[k]) || strchr(others, name[k]));
    if (!good)
        guard_fail(z->a->guard, STATUS_USAGE,
                   "%s: GPUs are named as 0,1 or GPU-… or MIG-…, with commas between; --gpus all takes all", from);
    if (z->gpu_count == MOST_GPUS) guard_fail(z->a->guard, STATUS_USAGE, "%s: %d GPUs at most", from, MOST_GPUS);
    const char *const own = arena_strndup(z->a, name, n);
    for (int k = 0; k < z->gpu_count; k++)
        if (strcmp(z->gpu_names[k], own) == 0)
            guard_fail(z->a->guard, STATUS_USAGE, "%s: %s is there twice", from, own);
    z->gpu_names[z->gpu_count++] = own;
}

static void add_gpus(zoo *z, const char *from, const char *list) {
    for (const char *at = list;; at++) {
        const size_t n = strcspn(at, ",");
        add_gpu(z, from, at, n);
        at += n;
        if (!*at) return;
    }
}

static bool is_among(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0) return true;
    return false;
}

static void refuse_numbers(zoo *z) {
    for (int k = 0; k < z->item_count; k++) {
        const char *const device = z->items[k].with.device;
        const char *const number = device ? strchr(device, ':') : NULL;
        if (z->items[k].wanted && number && strcmp(number, ":0") != 0)
            guard_fail(z->a->guard, STATUS_INPUT,
                       "%s: models[%d]: device \"%s\": with --gpus a model sees one GPU; leave the number out", z->path,
                       z->items[k].at, zoo_digest_plain(z, device));
    }
}

/* What an allocation shows is all that there is. */
void zoo_gpus_name(zoo *z) {
    static const char variable[] = "CUDA_VISIBLE_DEVICES";
    const char *const shown = getenv(variable), *const all = shown && *shown ? shown : NULL;
    refuse_numbers(z);
    z->gpu_names = arena_array(z->a, const char *, MOST_GPUS);
    if (strcmp(z->gpus, "all") == 0) {
        if (all) add_gpus(z, variable, all);
        return;
    }
    add_gpus(z, "--gpus", z->gpus);
    for (int k = 0; all && k < z->gpu_count; k++)
        if (!is_among(all, z->gpu_names[k]))
            guard_fail(z->a->guard, STATUS_USAGE, "--gpus: %s is not among %s, which is %s", z->gpu_names[k], variable,
                       zoo_digest_plain(z, all));
}

/* As many as the driver shows. */
void zoo_gpus_find(zoo *z, const char *folder, const zoo_step *like) {
    const char *const log = arena_printf(z->a, "%s/logs/gpus.log", folder);
    char program[PATH_MAX], *rest = NULL;
    status st = {0};
    size_t size = 0;
    if (z->gpu_count > 0) return;
    if (!start_find_program("scout_batch", program, &st)) guard_fail(z->a->guard, st.code, "%s", st.text);
    const char *const words[] = {program, "--list-devices", NULL};
    zoo_step asking = *like;
    asking.words = words;
    asking.log = log;
    (void)zoo_step_run(z, &asking);
    char *const text = files_read(log, MOST_LISTED, &size, &st);
    if (!text) guard_fail(z->a->guard, st.code, "%s", st.text);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "cuda:", 5) == 0) add_gpu(z, log, line + 5, strspn(line + 5, "0123456789"));
    free(text);
    if (z->gpu_count == 0 && *like->stop == 0)
        guard_fail(z->a->guard, STATUS_ENVIRONMENT, "--gpus all: no GPU is there; ceiling-scout doctor says why");
}

/* ---- what is due ---- */

/* What is measured on the CPU has nothing beside it, for the CPU is used by whatever runs. */
static bool is_alone(const zoo_item *item) {
    const char *const device = item->with.device;
    return device && (strncmp(device, "cpu", 3) == 0 || strcmp(device, "all") == 0);
}

static const char *mark_of(zoo *z, const zoo_item *item) { return arena_printf(z->a, "%s/.gpu", item->folder); }

static int gpu_before(zoo *z, const zoo_item *item) {
    const char *const path = mark_of(z, item);
    status none = {0};
    size_t n;
    char *const text = files_is_link(path) ? NULL : files_read(path, NAME, &n, &none);
    int found = NONE;
    for (int k = 0; text && k < z->gpu_count; k++)
        if (strcspn(text, "\n") == strlen(z->gpu_names[k]) && strncmp(text, z->gpu_names[k], strcspn(text, "\n")) == 0)
            found = k;
    free(text);
    return found;
}

static double seconds_before(zoo *z, const zoo_item *item) {
    const char *const path = arena_printf(z->a, "%s/run.json", item->folder);
    json_t *story = zoo_read_quietly(path);
    const double seconds = json_get_number(story, "seconds");
    json_decref(story);
    return seconds > 0 ? seconds : INFINITY;
}

static int longest_first(const void *a, const void *b) {
    const turn *const one = a, *const other = b;
    if (one->seconds != other->seconds) return one->seconds > other->seconds ? -1 : 1;
    if (one->bytes != other->bytes) return one->bytes > other->bytes ? -1 : 1;
    return one->item < other->item ? -1 : one->item > other->item;
}

static void plan(gpus *g) {
    zoo *z = g->z;
    g->turns = arena_array(z->a, turn, z->item_count);
    g->lanes = arena_array(z->a, lane, z->gpu_count);
    left *const results =
        mmap(NULL, sizeof(left) * (size_t)z->item_count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    for (int k = 0; k < z->item_count; k++) {
        zoo_item *const item = &z->items[k];
        struct stat is = {0};
        if (!item->wanted) continue;
        (void)stat(item->model->file, &is);
        g->turns[g->count++] = (turn){.item = item,
                                      .seconds = seconds_before(z, item),
                                      .bytes = is.st_size,
                                      .before = gpu_before(z, item),
                                      .failed_on = NONE,
                                      .alone = is_alone(item),
                                      .result = &results[k]};
    }
    qsort(g->turns, (size_t)g->count, sizeof *g->turns, longest_first);
}

/* ---- one item in a process of its own ---- */

typedef struct single {
    const gpus *g;
    turn *t;
} single;

static void leave(left *r, int code, const char *why) {
    r->code = code;
    snprintf(r->why, sizeof r->why, "%.*s", WHY - 1, why ? why : "");
    r->there = true;
}

static void work_on(void *context) {
    const single *const one = context;
    const zoo_item *const item = one->t->item;
    left *const r = one->t->result;
    one->t->item->with.on = zoo_gpus_device(item);
    one->g->with->work(one->g->with->context, one->t->item);
    if (!item->done) return; /* it was stopped */
    r->fetched = item->model->fetch_code == 0;
    r->read = item->read;
    r->measured = item->measured;
    r->operations = item->operations;
    r->fresh = item->fresh;
    r->cached = item->cached;
    leave(r, item->code, item->why);
}

static _Noreturn void be_lane(const gpus *g, turn *t, const char *gpu, pid_t zoo_pid, const sigset_t *mask) {
    single one = {g, t};
    arena own;
    status st = {0};
    setpgid(0, 0); /* Ctrl-C reaches the zoo, which tells this one */
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != zoo_pid || setenv("CUDA_VISIBLE_DEVICES", gpu, 1) != 0) _exit(STATUS_ENVIRONMENT);
    sigprocmask(SIG_SETMASK, mask, NULL);
    g->z->a = &own;
    if (!arena_within(&own, work_on, &one, &st)) leave(t->result, (int)st.code, st.text);
    _exit(0);
}

/* ---- all of them ---- */

static void show_running(gpus *g) {
    size_t n = 0;
    g->running[0] = 0;
    for (int k = 0; k < g->z->gpu_count && n < sizeof g->running; k++)
        if (g->lanes[k].pid > 0)
            n += (size_t)snprintf(g->running + n, sizeof g->running - n, "%s%s on GPU %s", n > 0 ? ", " : "",
                                  g->lanes[k].has->item->label, g->z->gpu_names[k]);
    *g->with->now = n > 0 ? g->running : NULL;
    g->with->tick(g->with->context);
}

static bool has_another(const gpus *g, int lane_at) {
    for (int k = 0; k < g->z->gpu_count; k++)
        if (k != lane_at && !g->lanes[k].lost) return true;
    return false;
}

static bool fits(const gpus *g, const turn *t, int lane_at) {
    if (t->begun || t->alone) return false;
    if (t->failed_on != NONE) return t->failed_on != lane_at || !has_another(g, lane_at);
    return t->before == NONE || t->before == lane_at || g->lanes[t->before].lost;
}

static void start_one(gpus *g, int lane_at, const sigset_t *mask) {
    lane *const l = &g->lanes[lane_at];
    turn *t = NULL;
    for (int k = 0; k < g->count && !t; k++)
        if (fits(g, &g->turns[k], lane_at)) t = &g->turns[k];
    if (!t) return;
    memset(t->result, 0, sizeof *t->result);
    t->begun = true;
    l->has = t;
    fflush(NULL);
    const pid_t self = getpid();
    l->pid = fork();
    if (l->pid == 0) be_lane(g, t, g->z->gpu_names[lane_at], self, mask);
    if (l->pid < 0)
        guard_fail(g->z->a->guard, STATUS_ENVIRONMENT, "no process can be started: %s; end some and run again",
                   strerror(errno));
}

static void take(gpus *g, turn *t, int lane_at) {
    zoo *z = g->z;
    const left *const r = t->result;
    zoo_item *const item = t->item;
    item->done = true;
    item->code = r->there ? r->code : STATUS_ENVIRONMENT;
    item->read = r->read;
    item->measured = r->measured;
    item->operations = r->operations;
    item->fresh = r->fresh;
    item->cached = r->cached;
    item->why = !r->there ? "its process was ended from outside, perhaps for its memory; the same command tries again"
                : *r->why ? arena_strndup(z->a, r->why, strlen(r->why))
                          : NULL;
    item->gpu = r->measured || item->code > STATUS_INCOMPLETE ? z->gpu_names[lane_at] : NULL;
    g->with->done(g->with->context, item);
}

/* Where it cannot be kept, the next run takes any. */
static void remember(zoo *z, const turn *t, const char *gpu) {
    const char *const path = mark_of(z, t->item);
    status none = {0};
    if (t->result->measured && !files_is_link(path)) (void)files_write(path, gpu, strlen(gpu), &none);
}

/* It failed on one GPU, and not on this one. */
static void strike(gpus *g, const turn *t, int lane_at) {
    zoo *z = g->z;
    lane *const l = &g->lanes[t->failed_on];
    const bool goes = !l->lost && ++l->strikes >= STRIKES && has_another(g, t->failed_on);
    l->lost = l->lost || goes;
    g->with->tell(g->with->context, arena_printf(z->a, "%s ended on GPU %s with: %s; on GPU %s it did not%s",
                                                 t->item->label, z->gpu_names[t->failed_on], t->failed_why,
                                                 z->gpu_names[lane_at], goes ? "; the former is used no more" : ""));
}

/* An item has ended, or its process has. What ended a process from outside is not the GPU's fault. */
static void end_one(gpus *g, int lane_at) {
    zoo *z = g->z;
    lane *const l = &g->lanes[lane_at];
    turn *const t = l->has;
    const left *const r = t->result;
    const bool failed = !r->there || r->code >= STATUS_ENVIRONMENT;
    l->pid = 0;
    l->has = NULL;
    if (*g->with->stop) return;
    if (failed && t->failed_on == NONE && z->gpu_count > 1) {
        t->failed_on = lane_at;
        t->failed_why = r->there && r->fetched ? arena_strndup(z->a, r->why, strlen(r->why)) : NULL;
        t->begun = false;
        return;
    }
    if (!failed && t->failed_why && t->failed_on != lane_at) strike(g, t, lane_at);
    if (!failed) remember(z, t, z->gpu_names[lane_at]);
    take(g, t, lane_at);
}

static void reap(gpus *g) {
    int ended;
    for (int k = 0; k < g->z->gpu_count; k++)
        if (g->lanes[k].pid > 0 && waitpid(g->lanes[k].pid, &ended, WNOHANG) == g->lanes[k].pid) end_one(g, k);
}

static void pass_on(const gpus *g) {
    for (int k = 0; k < g->z->gpu_count; k++)
        if (g->lanes[k].pid > 0) kill(g->lanes[k].pid, SIGTERM);
}

void zoo_gpus_run(zoo *z, const zoo_gpus *with) {
    gpus g = {.z = z, .with = with};
    sigset_t child, before;
    int told = 0;
    plan(&g);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    for (;;) {
        int running = 0;
        for (int k = 0; k < z->gpu_count; k++) {
            lane *const l = &g.lanes[k];
            if (l->pid == 0 && !l->lost && !*with->stop) start_one(&g, k, &before);
            running += l->pid > 0;
        }
        show_running(&g);
        if (running == 0) break;
        for (; told < *with->stop; told++) pass_on(&g);
        if (sigtimedwait(&child, NULL, &(struct timespec){.tv_sec = 1}) < 0 && errno == EAGAIN)
            with->tick(with->context);
        reap(&g);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (int k = 0; k < g.count && !*with->stop; k++) {
        zoo_item *const item = g.turns[k].item;
        if (!g.turns[k].alone) continue;
        with->work_alone(with->context, item);
        if (item->done) with->done(with->context, item);
    }
}

const char *zoo_gpus_of(zoo *z, const zoo_item *item) {
    const int before = item->gpu || !z->gpus ? NONE : gpu_before(z, item);
    return before != NONE ? z->gpu_names[before] : item->gpu;
}

/* "auto" is the CPU where the GPU is gone, and its figures would be told as the GPU's. */
const char *zoo_gpus_device(const zoo_item *item) {
    const char *const device = item->with.device;
    return !device || !*device || strcmp(device, "auto") == 0 ? "cuda:0" : device;
}
