#!/usr/bin/env bash
# Runs the command line's tests. Usage: tests/cli/run.sh EXTRACT_OPS [NAME | -NAME]…
# NAME: only tests/cli/test_NAME.sh; -NAME: all but it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
EXTRACT_OPS=$(realpath "${1:?usage: tests/cli/run.sh EXTRACT_OPS [NAME]...}")
shift
ROOT=$(cd "$here/../.." && pwd)
export EXTRACT_OPS ROOT
exec "$ROOT/tests/scripts.sh" "$here" "$@"
