/* Owns what is said on stderr of files that no figure comes from: enough to find them, and no flood where a whole
 * folder is broken. */
#include "analyze/study/left_out.h"

void left_out_more(size_t more, const char *what) {
    char text[64];
    if (more == 0) return;
    snprintf(text, sizeof text, "%zu more %s%s", more, what, more == 1 ? "" : "s");
    status_print(stderr, "analyze", "left out: ", text);
}

void left_out_tell(const study_skipped *files, size_t count) {
    char text[1024];
    for (size_t k = 0; k < count && k < LEFT_OUT_NAMED; k++) {
        snprintf(text, sizeof text, "%s: %s", files[k].path, files[k].why);
        status_print(stderr, "analyze", "left out: ", text);
    }
    left_out_more(count > LEFT_OUT_NAMED ? count - LEFT_OUT_NAMED : 0, "file");
}
