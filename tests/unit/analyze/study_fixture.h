/* What the tests of analyze share: a folder of reports that are made up from a few figures, and a study of it. */
#ifndef TESTS_STUDY_FIXTURE_H
#define TESTS_STUDY_FIXTURE_H

#include "analyze/study/study.h"
#include "common/files.h"
#include "tests/unit/unit.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char lab_folder[64];

static inline const char *lab_path(const char *name) {
    static char paths[4][256];
    static int next;
    char *path = paths[next++ & 3];
    snprintf(path, sizeof paths[0], "%s/%s", lab_folder, name);
    return path;
}

static inline int lab_remove(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static inline void lab_begin(void) {
    snprintf(lab_folder, sizeof lab_folder, "/tmp/study-XXXXXX");
    if (!mkdtemp(lab_folder)) abort();
    status st = {0};
    if (!files_make_folders(lab_path("reports"), &st) || !files_make_folders(lab_path("fusions"), &st)) abort();
}

static inline void lab_end(void) {
    nftw(lab_folder, lab_remove, 16, FTW_DEPTH | FTW_PHYS); /* links are taken away, not followed */
}

/* Single quotes become double ones; no string is longer than the room. */
static inline void lab_write(const char *name, const char *text) {
    char *copy = strdup(text);
    status st = {0};
    for (char *c = copy; c && *c; c++)
        if (*c == '\'') *c = '"';
    if (!copy || !files_write(lab_path(name), copy, strlen(copy), &st)) abort();
    free(copy);
}

#define LAB_DEVICE                                                                                                     \
    "'device':{'name':'cuda:0','model':'GPU A','class':'class A','instance':'A;1','units':100,'driver':'1.2'}"
#define LAB_WHERE LAB_DEVICE ",'regime':'sustained-model-graph','method':5"
#define LAB_HEAD(id, count)                                                                                            \
    "'schema':'ceiling-scout/report/1','operation':'" id "','name':'" id                                               \
    "','op':'gemm','shape':[64,64,64],'key':'k " id                                                                    \
    "','precision':'fp16','pattern':'DENSE','sparsity':0.0,'count':" count ",'batch':1," LAB_WHERE
#define LAB_ROW(name, us)                                                                                              \
    "{'name':'" name "','variant':'','status':'OK','reason':null,'time_us':{'median':" us                              \
    ",'mean':1.0,'min':1.0,'p05':1.0,'p95':1.0,'rel_ci95':0.002,'batches':20,'launches':200},'clock_mhz':1500.0}"
#define LAB_CEILING(us) "'ceiling_time_us':" us ",'ceiling_ci':0.01,'launch_us':1.0,'bound':'compute'"
/* The library's default alone. */
#define LAB_PLAIN(id, count, us, ceiling)                                                                              \
    "{" LAB_HEAD(id, count) ",'status':'OK','reason':null,'baseline':'lib','best':'lib','flops':1e9,'bytes_read':1e6," \
                            "'bytes_written':1e6,'baseline_time_us':" us ",'best_time_us':" us                         \
                            "," LAB_CEILING(ceiling) ",'baseline_variant':'','best_variant':'','best_approach':'NONE'" \
                                                     ",'candidates':[" LAB_ROW("lib", us) "]}"
/* And one that beats it. */
#define LAB_BEATEN(id, count, us, best, ratio, ceiling)                                                                \
    "{" LAB_HEAD(                                                                                                      \
        id,                                                                                                            \
        count) ",'status':'OK','reason':null,'baseline':'lib','best':'own','flops':1e9,'bytes_read':1e6,"              \
               "'bytes_written':1e6,'baseline_time_us':" us ",'best_time_us':" best "," LAB_CEILING(                   \
                   ceiling) ",'baseline_variant':'','best_variant':'','best_approach':'CUSTOM_KERNEL','ratio':" ratio  \
                            ",'ratio_ci':0.003,'candidates':[" LAB_ROW("lib", us) "," LAB_ROW("own", best) "]}"
#define LAB_MISSING(id, count, status, code, least)                                                                    \
    "{" LAB_HEAD(id, count) ",'status':'" status "','reason':{'code':'" code "','text':'why'},'baseline':null,"        \
                            "'best':null,'flops':1e9,'bytes_read':1e6,'bytes_written':1e6,'least_time_us':" least      \
                            ",'candidates':[]}"

static inline bool lab_open(study *s, status *st) {
    static const char *folder;
    folder = lab_folder;
    const study_options with = {.folders = &folder, .folder_count = 1, .thresholds = verdict_defaults, .layers = true};
    return study_open(s, &with, st);
}

#endif
