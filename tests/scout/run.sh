#!/usr/bin/env bash
# Runs the tests of whole runs of scout_batch on the scripted device.
# Usage: tests/scout/run.sh SCOUT_BATCH SCRIPTED_FOLDER [NAME | -NAME]…   NAME: only tests/scout/test_NAME.sh; -NAME: all but it
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SCOUT=$(realpath "${1:?usage: tests/scout/run.sh SCOUT_BATCH SCRIPTED_FOLDER [NAME]...}")
SCRIPTED=$(realpath "${2:?usage: tests/scout/run.sh SCOUT_BATCH SCRIPTED_FOLDER [NAME]...}")
shift 2
ROOT=$(cd "$here/../.." && pwd)
export SCOUT SCRIPTED ROOT LONG="resume replay"
exec "$ROOT/tests/scripts.sh" "$here" "$@"
