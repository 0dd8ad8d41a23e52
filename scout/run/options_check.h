/* Which of the options go together: what is asked for, what means nothing with it, and what is missing. */
#ifndef SCOUT_RUN_OPTIONS_CHECK_H
#define SCOUT_RUN_OPTIONS_CHECK_H

#include "scout/run/options.h"

/* Finds o->mode. False: nothing is asked for, several things are, or an option that means nothing with it. */
bool options_check_mode(options *o, status *st);
/* What options need beside themselves; after options_check_mode. */
status_code options_check_needs(const options *o, status *st);

#endif
