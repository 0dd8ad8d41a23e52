#!/usr/bin/env bash
# Prints page_assets.c: the sheet and the script of report.html as C texts, with the hashes that let them through the
# page's Content-Security-Policy. Usage: analyze/page/page_assets.sh PAGE.CSS PAGE.JS
set -euo pipefail

hash_of() { # FILE   SHA-256 in base64
    local hex
    hex=$(sha256sum <"$1")
    # shellcheck disable=SC2001 # a byte at a time
    printf '%b' "$(sed 's/../\\x&/g' <<<"${hex%% *}")" | base64
}

text_of() { # NAME FILE   one C string a line, so that no compiler's limit on the length of one is met
    printf 'const char %s[] = {\n' "$1"
    od -An -v -tu1 "$2" | sed 's/  */,/g; s/^,/    /; s/$/,/'
    printf '    0};\nconst char %s_hash[] = "%s";\n' "$1" "$(hash_of "$2")"
}

echo '/* Made by analyze/page/page_assets.sh from page.css and page.js. */'
echo '#include "analyze/page/page_assets.h"'
text_of page_css "$1"
text_of page_js "$2"
