/* The version of all programs, as --version and run.json say it: made from the file VERSION by the build. */
#pragma once

extern const char version_text[];
