/* Opening libraries: the order of folders, one handle per name, the path that was really opened, and why nothing was
 * found. The libraries are made here, by the compiler that made this. */
#include "common/files.h"
#include "scout/device/libraries.h"
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static char top[PATH_MAX - 200];
static status st;
static scout_why why;

/* A library that says a number, in a folder of its own. */
static bool make(const char *folder, const char *name, int number, const char *more) {
    char command[3 * PATH_MAX], source[PATH_MAX], text[256];
    snprintf(source, sizeof source, "%s/%s/source.c", top, folder);
    snprintf(command, sizeof command, "%s/%s", top, folder);
    if (!files_make_folders(command, &st)) return false;
    snprintf(text, sizeof text, "int number(void);\nint number(void) { return %d; }\n", number);
    if (!files_write(source, text, strlen(text), &st)) return false;
    snprintf(command, sizeof command, "cd '%s/%s' && ${CC:-cc} -shared -fPIC -o '%s' source.c %s", top, folder, name,
             more);
    return system(command) == 0;
}

static int number_of(void *handle) {
    int (*number)(void);
    void *symbol = handle ? libraries_symbol(handle, "number", &why) : NULL;
    if (!symbol) return -1;
    memcpy(&number, &symbol, sizeof number);
    return number();
}

static void *open_one(const char *name, bool global, char *path) {
    const char *const names[] = {name, NULL};
    why = (scout_why){.code = ""};
    return libraries_open(names, global, path, PATH_MAX, &why);
}

static bool is_at(const char *path, const char *folder, const char *name) {
    char want[PATH_MAX];
    snprintf(want, sizeof want, "%s/%s/%s", top, folder, name);
    return UNIT_TEXT(path, want);
}

static void order(void) {
    char path[PATH_MAX], folders[2 * PATH_MAX];
    UNIT_CHECK(make("one", "libunit_a.so", 1, "") && make("two", "libunit_a.so", 2, ""));
    UNIT_CHECK(make("two", "libunit_b.so", 22, "") && make("env", "libunit_b.so", 3, ""));
    UNIT_CHECK(make("env", "libunit_c.so", 33, ""));
    snprintf(folders, sizeof folders, "/nonexistent::%s/one:%s/two", top, top);
    libraries_set_path(folders);
    snprintf(folders, sizeof folders, "%s/env", top);
    setenv("CEILING_SCOUT_LIBRARY_PATH", folders, 1);
    UNIT_INT(number_of(open_one("libunit_a.so", false, path)), 1); /* the first folder */
    is_at(path, "one", "libunit_a.so");
    UNIT_INT(number_of(open_one("libunit_b.so", false, path)), 22); /* the path before the environment */
    is_at(path, "two", "libunit_b.so");
    UNIT_INT(number_of(open_one("libunit_c.so", false, path)), 33);
    is_at(path, "env", "libunit_c.so");
}

static void same_name_same_handle(void) {
    char path[PATH_MAX], folders[PATH_MAX];
    void *before = open_one("libunit_a.so", false, path);
    snprintf(folders, sizeof folders, "%s/two", top);
    libraries_set_path(folders); /* where another one of that name lies */
    UNIT_CHECK(open_one("libunit_a.so", false, path) == before);
    is_at(path, "one", "libunit_a.so");
    /* of several names the first that is there, and none is looked for again where one is open */
    const char *const names[] = {"libunit_none.so", "libunit_a.so", "libunit_b.so", NULL};
    UNIT_CHECK(libraries_open(names, false, path, sizeof path, &why) == before);
}

/* Symbols of a library that was opened for itself alone serve others once it is asked for globally. */
static void made_global(void) {
    char path[PATH_MAX];
    UNIT_CHECK(open_one("libunit_c.so", false, path) != NULL);
    UNIT_CHECK(dlsym(RTLD_DEFAULT, "number") == NULL);
    UNIT_CHECK(open_one("libunit_c.so", true, path) != NULL);
    UNIT_CHECK(dlsym(RTLD_DEFAULT, "number") != NULL);
}

static void links_are_resolved(void) {
    char from[PATH_MAX], path[PATH_MAX];
    snprintf(from, sizeof from, "%s/two/libunit_link.so.1", top);
    UNIT_CHECK(make("two", "libunit_link.so.1.2.3", 4, "") && symlink("libunit_link.so.1.2.3", from) == 0);
    UNIT_INT(number_of(open_one("libunit_link.so.1", false, path)), 4);
    is_at(path, "two", "libunit_link.so.1.2.3");
}

static void not_found(void) {
    char path[PATH_MAX] = "x";
    UNIT_CHECK(open_one("libunit_none.so", false, path) == NULL);
    UNIT_TEXT(why.code, "library");
    UNIT_TEXT(path, "");
    UNIT_CHECK(strstr(why.text, "libunit_none.so was not found in ") && strstr(why.text, top));
    void *handle = open_one("libunit_b.so", false, path);
    UNIT_CHECK(libraries_symbol(handle, "no_such_function", &why) == NULL);
    UNIT_CHECK(strstr(why.text, "no_such_function") != NULL);
}

/* One that is there and cannot be loaded is told as that, not as missing; a good one behind it is still found. */
static int notes_with(const char *text) {
    int count = 0;
    const char *note;
    for (uint32_t k = 0; (note = libraries_note(k)); k++) count += strstr(note, text) != NULL;
    return count;
}

static void broken(void) {
    char path[PATH_MAX], file[PATH_MAX], folders[2 * PATH_MAX];
    snprintf(file, sizeof file, "%s/two/libunit_text.so", top);
    UNIT_CHECK(files_write(file, "no library", 10, &st));
    UNIT_CHECK(open_one("libunit_text.so", false, path) == NULL);
    UNIT_CHECK(strstr(why.text, "cannot be loaded: ") != NULL);
    snprintf(file, sizeof file, "%s/one/libunit_d.so", top);
    UNIT_CHECK(files_write(file, "no library", 10, &st) && make("env", "libunit_d.so", 5, ""));
    snprintf(folders, sizeof folders, "%s/one", top);
    libraries_set_path(folders);
    UNIT_INT(notes_with("libunit_d.so"), 0);
    UNIT_INT(number_of(open_one("libunit_d.so", false, path)), 5);
    UNIT_INT(notes_with(file), 1); /* it is told that another one than this was taken, once */
    UNIT_CHECK(libraries_note(0) && strstr(libraries_note(0), "; it was skipped"));
    UNIT_INT(notes_with("libunit_text.so"), 1);
    UNIT_CHECK(open_one("libunit_text.so", false, path) == NULL);
    UNIT_INT(notes_with("libunit_text.so"), 1);
    /* a library that needs another one, which is not there */
    UNIT_CHECK(make("gone", "libunit_needed.so", 6, "") &&
               make("env", "libunit_needs.so", 7, "-Wl,--no-as-needed ../gone/libunit_needed.so"));
    snprintf(file, sizeof file, "%s/gone/libunit_needed.so", top);
    UNIT_INT(unlink(file), 0);
    UNIT_CHECK(open_one("libunit_needs.so", false, path) == NULL);
    if (!UNIT_CHECK(notes_with("/env/libunit_needs.so: ") == 1))
        for (uint32_t k = 0; libraries_note(k); k++) printf("    %s\n", libraries_note(k));
    UNIT_INT(notes_with("libunit_a.so"), 0); /* what opened */
    UNIT_CHECK(libraries_note(1000) == NULL);
    UNIT_CHECK(strstr(why.text, "libunit_needed.so") != NULL);
    snprintf(folders, sizeof folders, "%s/misspelt:%s/one", top, top);
    libraries_set_path(folders);
    UNIT_CHECK(open_one("libunit_none.so", false, path) == NULL);
    UNIT_INT(notes_with("/misspelt: No such file or directory; it was skipped"), 1);
    UNIT_INT(notes_with("/one: "), 0);
}

static void by_path_and_by_loader(void) {
    char path[PATH_MAX], file[PATH_MAX];
    snprintf(file, sizeof file, "%s/two/libunit_path.so", top);
    UNIT_CHECK(make("two", "libunit_path.so", 8, ""));
    UNIT_INT(number_of(open_one(file, false, path)), 8);
    UNIT_TEXT(path, file);
    UNIT_CHECK(open_one("libm.so.6", false, path) != NULL);
    UNIT_CHECK(path[0] == '/' && strstr(path, "libm.so.6") != NULL);
}

/* A table is whole, or the first function that is missing has a name. */
static void a_table_is_whole(void) {
    struct {
        double (*cosine)(double), (*root)(double);
    } table = {NULL, NULL};
    const libraries_place all[] = {{"cos", 0}, {"sqrt", sizeof table.cosine}};
    const libraries_place one_more[] = {{"cos", 0}, {"no_such_function", sizeof table.cosine}};
    char path[PATH_MAX];
    void *const handle = open_one("libm.so.6", false, path);
    UNIT_CHECK(handle && libraries_bind(handle, all, 2, &table, &why));
    UNIT_CHECK(table.cosine && table.root && table.cosine(0) == 1 && table.root(9) == 3);
    UNIT_CHECK(!libraries_bind(handle, one_more, 2, &table, &why));
    UNIT_CHECK(strstr(why.text, "no_such_function") != NULL && strcmp(why.code, "library") == 0);
}

int main(void) {
    char made[] = "/tmp/unit_libraries_XXXXXX", command[PATH_MAX];
    if (!mkdtemp(made) || !realpath(made, top)) return 1;
    UNIT_RUN(order);
    UNIT_RUN(same_name_same_handle);
    UNIT_RUN(made_global);
    UNIT_RUN(links_are_resolved);
    UNIT_RUN(not_found);
    UNIT_RUN(broken);
    UNIT_RUN(by_path_and_by_loader);
    UNIT_RUN(a_table_is_whole);
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    if (system(command) != 0) return 1;
    return unit_end();
}
