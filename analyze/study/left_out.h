/* How the commands tell which files were left out: the first few by name, one line each on stderr, then how many more.
 */
#ifndef ANALYZE_STUDY_LEFT_OUT_H
#define ANALYZE_STUDY_LEFT_OUT_H

#include "analyze/study/study.h"

enum { LEFT_OUT_NAMED = 10 };

study_told left_out_tell;
void left_out_more(size_t more, const char *what); /* "analyze: left out: 12 more files"; nothing for 0 */

#endif
