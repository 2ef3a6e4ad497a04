#!/usr/bin/env bash
# The tests start a PostgreSQL cluster of their own. This brings the programs
# for it where they are missing: Debian's package, which starts no service of ours.
set -euo pipefail
found() { command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }
if found; then exit 0; fi
if ! command -v apt-get >/dev/null; then
	echo "PostgreSQL's initdb was not found; install PostgreSQL 13 or later" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends postgresql
found
