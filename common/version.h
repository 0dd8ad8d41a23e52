/* The version of all programs, as --version and run.json say it: made from the file VERSION by the build. */
#ifndef COMMON_VERSION_H
#define COMMON_VERSION_H

extern const char version_text[];

#endif
