/* page.css and page.js as the program carries them, and the SHA-256 of each, in base64, as a Content-Security-Policy
 * names them. Made by page_assets.sh when the program is built. */
#pragma once

extern const char page_css[], page_css_hash[];
extern const char page_js[], page_js_hash[];
