/* A plugin's file before it is loaded: which users may have written it, and whether its headers promise more than is
 * there. */
#include "scout/device/plugins.h"
#include "tests/unit/unit.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/plugins_file_XXXXXX";
static char path[64];
static plugins_file looked;
static status st;

typedef struct object { /* as little as a loader could want */
    Elf64_Ehdr head;
    Elf64_Phdr parts[2];
    char rest[64];
} object;

static object made(void) {
    object o;
    memset(&o, 0, sizeof o);
    memcpy(o.head.e_ident, ELFMAG, SELFMAG);
    o.head.e_ident[EI_CLASS] = ELFCLASS64;
    o.head.e_phoff = offsetof(object, parts);
    o.head.e_phentsize = sizeof(Elf64_Phdr);
    o.head.e_phnum = 2;
    o.parts[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = 0, .p_filesz = sizeof o};
    o.parts[1] = (Elf64_Phdr){.p_type = PT_NULL, .p_offset = UINT64_MAX, .p_filesz = UINT64_MAX};
    return o;
}

static bool look(const void *bytes, size_t size, mode_t mode) {
    FILE *f = fopen(path, "we");
    if (!UNIT_CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0)) exit(1);
    chmod(path, mode);
    st = (status){.code = STATUS_OK};
    return plugins_file_look(path, &looked, &st);
}

static void whose(void) {
    const object o = made();
    UNIT_CHECK(look(&o, sizeof o, 0755));
    UNIT_CHECK(looked.content != 0 && looked.content == plugins_file_content(path));
    const uint64_t before = looked.content;
    UNIT_CHECK(look(&o, sizeof o, 0400) && looked.content == before);
    static const mode_t open_modes[] = {0775, 0757, 0777, 0620, 0602};
    for (size_t k = 0; k < sizeof open_modes / sizeof open_modes[0]; k++) {
        UNIT_CHECK(!look(&o, sizeof o, open_modes[k]));
        UNIT_CHECK(st.code == STATUS_INPUT && strstr(st.text, "chmod go-w"));
    }
    UNIT_CHECK(look(&o, sizeof o, 0755));
    if (geteuid() == 0) {
        UNIT_CHECK(chown(path, 4711, (gid_t)-1) == 0);
        UNIT_CHECK(!plugins_file_look(path, &looked, &st) && strstr(st.text, "another user (uid 4711)"));
        UNIT_CHECK(chown(path, 0, (gid_t)-1) == 0);
    }
}

static void which(void) {
    UNIT_CHECK(!plugins_file_is_path("mine.so") && !plugins_file_is_path(""));
    UNIT_CHECK(plugins_file_is_path("./mine.so") && plugins_file_is_path("/mine.so") && plugins_file_is_path("a/b.so"));
    UNIT_CHECK(!plugins_file_look("mine.so", &looked, &st) && st.code == STATUS_USAGE);
    UNIT_CHECK(!plugins_file_look("/nowhere/mine.so", &looked, &st) && st.code == STATUS_INPUT);
    UNIT_CHECK(!plugins_file_look(folder, &looked, &st) && strstr(st.text, "is not a file"));
    UNIT_CHECK(!plugins_file_look("/dev/null", &looked, &st) && strstr(st.text, "is not a file"));
}

static bool cut(const object *o, size_t size) { return !look(o, size, 0644) && strstr(st.text, "is cut short"); }

static void whole(void) {
    object o = made();
    UNIT_CHECK(!look("\x7f"
                     "EL",
                     3, 0644) &&
               strstr(st.text, "not a shared object"));
    UNIT_CHECK(!look("", 0, 0644) && strstr(st.text, "not a shared object"));
    UNIT_CHECK(look(&o, sizeof o, 0644));
    for (size_t size = SELFMAG; size < sizeof o; size++)
        if (!UNIT_CHECK(cut(&o, size))) return;
#define WITH(change) (o = made(), change, UNIT_CHECK(cut(&o, sizeof o)))
    WITH(o.head.e_phoff = UINT64_MAX);
    WITH(o.head.e_phoff = sizeof o - 8);
    WITH(o.head.e_phnum = UINT16_MAX);
    WITH(o.head.e_phentsize = 1);
    WITH(o.parts[0].p_filesz = UINT64_MAX);
    WITH(o.parts[0].p_offset = UINT64_MAX);
    WITH(o.parts[0].p_offset = 1);
    WITH((o.head.e_shoff = sizeof o, o.head.e_shnum = 1, o.head.e_shentsize = 64));
    WITH((o.head.e_shoff = 8, o.head.e_shnum = UINT16_MAX, o.head.e_shentsize = UINT16_MAX));
#undef WITH
    o = made();
    o.head.e_ident[EI_CLASS] = ELFCLASS32; /* the loader says that it is for another machine */
    o.head.e_phoff = UINT64_MAX;
    UNIT_CHECK(look(&o, sizeof o, 0644));
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/a.so", folder);
    UNIT_RUN(whose);
    UNIT_RUN(which);
    UNIT_RUN(whole);
    unlink(path);
    rmdir(folder);
    return unit_end();
}
