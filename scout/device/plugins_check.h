/* Whether what a shared object brings can be used at all: sizes, versions, names, functions that must be there. */
#ifndef SCOUT_DEVICE_PLUGINS_CHECK_H
#define SCOUT_DEVICE_PLUGINS_CHECK_H

#include "scout/plugin.h"

#include <stdbool.h>

/* false: why says what is amiss. */
bool plugins_check_plugin(const scout_plugin *p, scout_why *why);       /* with its candidates, not its device */
bool plugins_check_device(const scout_device_api *api, scout_why *why); /* with its references and candidates */
bool plugins_check_candidate(const scout_candidate *c, scout_why *why);

#endif
