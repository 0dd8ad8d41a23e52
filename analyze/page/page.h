/* report.html, comparison.html and index.html: all that a summary, a comparison or a history says, and what the reports
 * hold beside it, as one page that needs nothing else: no network, no JavaScript. page.css and page.js lie beside this
 * file and are put into the program when it is built. */
#pragma once

#include "analyze/compare/comparison_formats.h"
#include "analyze/history/index.h"
#include "analyze/write/formats.h"

formats_write page_write;
comparison_write page_comparison;
history_writer page_index;
