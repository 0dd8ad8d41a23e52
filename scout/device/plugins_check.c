/* What is looked at before anything of a plugin is used. Sizes first: a member is read only where the struct has it. */
#include "scout/device/plugins.h"

#include <math.h>
#include <string.h>

/* Larger than anything this ABI will be: a size beyond it was never filled in. */
enum { MAX_STRUCT = 1 << 16, MAX_LIST = 4096, MAX_NAME = 48 };

static bool refuse(scout_why *why, const char *whose, const char *what) {
    scout_say(why, SCOUT_NO, "library", "%.60s: %.150s", whose, what);
    return false;
}

static bool sane_size(uint32_t size, size_t least) { return size >= least && size <= MAX_STRUCT; }

/* Names become parts of keys, of file names and of command lines. */
static bool good_name(const char *name, size_t longest) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (!name) return false;
    const size_t n = strnlen(name, longest + 1);
    return n > 0 && n <= longest && strspn(name, allowed) == n && name[0] != '.' && name[0] != '-';
}

/* It goes into JSON and onto terminals. */
static bool good_text(const char *text, bool needed) {
    if (!text) return !needed;
    while (*text >= 0x20 && *text <= 0x7e) text++;
    return *text == 0;
}

static bool known_approach(const char *approach) {
    static const char *const known[] = {"LIBRARY_TUNE", "CUTLASS_SWEEP", "SPARSE_24",        "SPARSE_BLOCK",
                                        "SPARSE_CSR",   "CUSTOM_KERNEL", "CUSTOM_ATTENTION", "FUSION"};
    for (size_t k = 0; approach && k < sizeof known / sizeof known[0]; k++)
        if (strcmp(known[k], approach) == 0) return true;
    return false;
}

bool plugins_check_candidate(const scout_candidate *c, scout_why *why) {
    if (!c) return refuse(why, "a candidate", "is missing");
    if (!sane_size(c->size, offsetof(scout_candidate, destroy) + sizeof c->destroy))
        return refuse(why, "a candidate", "its size differs from this interface's");
    if (!good_name(c->name, MAX_NAME)) return refuse(why, "a candidate", "its name is not letters, digits, _ - or .");
    if (c->kind == 0 || c->kind >= 64) return refuse(why, c->name, "its kind of operation is not known");
    if (!c->about || !c->precisions) return refuse(why, c->name, "about or precisions is missing");
    bool plain = good_text(c->about, true) && good_text(c->library, false);
    for (int k = 0; plain && k < 64 && c->precisions[k]; k++) plain = good_text(c->precisions[k], true);
    if (!plain) return refuse(why, c->name, "about, library or precisions is not plain ASCII");
    if (!known_approach(c->approach)) return refuse(why, c->name, "its approach is not one of a verdict");
    if (!c->supports || !c->prepare || !c->launch || (!c->destroy && !scout_allocates(c)))
        return refuse(why, c->name, "supports, prepare, launch or destroy is missing");
    return true;
}

static bool check_candidates(const scout_candidate *const *list, uint32_t count, const char *whose, scout_why *why) {
    if (count > MAX_LIST || (count > 0 && !list)) return refuse(why, whose, "its list of candidates is invalid");
    for (uint32_t k = 0; k < count; k++)
        if (!plugins_check_candidate(list[k], why)) return false;
    return true;
}

bool plugins_check_plugin(const scout_plugin *p, scout_why *why) {
    if (!sane_size(p->size, offsetof(scout_plugin, candidates) + sizeof p->candidates))
        return refuse(why, "its description", "its size differs from this interface's");
    if (p->abi != SCOUT_ABI) return refuse(why, "its description", "it was built for another version of the interface");
    if (!good_name(p->name, MAX_NAME)) return refuse(why, "its description", "it has no valid name");
    if (!p->version) return refuse(why, p->name, "it has no version");
    if (!p->device && p->candidate_count == 0) return refuse(why, p->name, "it has neither a device nor candidates");
    if (p->candidate_count > 0 && !good_name(p->for_device, MAX_NAME))
        return refuse(why, p->name, "it does not name the device of its candidates");
    if (!check_candidates(p->candidates, p->candidate_count, p->name, why)) return false;
    const bool own = p->device && SCOUT_HAS(p->device, name) && p->device->name && p->candidate_count > 0 &&
                     strcmp(p->device->name, p->for_device) == 0;
    for (uint32_t k = 0; k < p->candidate_count && !own; k++)
        if (p->candidates[k]->flags & SCOUT_BASELINE)
            return refuse(why, p->candidates[k]->name, "only the device's own candidates can be its baseline");
    return true;
}

static bool check_references(const scout_device_api *api, scout_why *why) {
    if (api->reference_count > MAX_LIST || (api->reference_count > 0 && !api->references))
        return refuse(why, api->name, "its list of references is invalid");
    for (uint32_t k = 0; k < api->reference_count; k++) {
        const scout_reference *r = api->references[k];
        if (!r || !sane_size(r->size, offsetof(scout_reference, end) + sizeof r->end))
            return refuse(why, api->name, "a reference's size differs from this interface's");
        if (!r->begin || !r->compare || !r->end) return refuse(why, api->name, "a reference lacks a function");
    }
    return true;
}

bool plugins_check_device(const scout_device_api *api, scout_why *why) {
    if (!sane_size(api->size, offsetof(scout_device_api, candidates) + sizeof api->candidates))
        return refuse(why, "the device", "its size differs from this interface's");
    if (!good_name(api->name, 23)) return refuse(why, "the device", "it has no valid name");
    if (strcmp(api->name, "auto") == 0 || strcmp(api->name, "all") == 0)
        return refuse(why, api->name, "this word is reserved for --device");
    const bool lives = api->count && api->identify && api->open && api->close;
    const bool holds =
        api->memory && api->alloc && api->release && api->upload && api->download && api->fill && api->checksum;
    const bool runs = api->record && api->run && api->drop && api->now && api->pause && api->telemetry;
    const bool probes = api->stream && api->empty && api->special && api->arithmetic && api->datasheet;
    if (!lives || !holds || !runs || !probes) return refuse(why, api->name, "the device lacks a function");
    if (!(api->resolution_s > 0) || !isfinite(api->resolution_s))
        return refuse(why, api->name, "its timer's resolution is invalid");
    return check_references(api, why) && check_candidates(api->candidates, api->candidate_count, api->name, why);
}
