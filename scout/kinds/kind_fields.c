/* Looking at an operation's fields. */
#include "scout/kinds/kind_fields.h"

#include "scout/kinds/kind_tensors.h"

bool kind_fields_only(const scout_op *op, const char *const *known, scout_why *why) {
    for (uint32_t k = 0; k < op->field_count; k++) {
        const scout_field *f = &op->fields[k];
        const char *const *name = known;
        while (*name && strcmp(*name, f->name) != 0) name++;
        if (*name || (!f->text && f->number == 0)) continue;
        return kind_tensors_refuse(why, "feature", "\"%.40s\" of this operation is not covered", f->name);
    }
    return true;
}
