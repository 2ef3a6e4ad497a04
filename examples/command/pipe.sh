#!/bin/sh
# Copies 64 MiB through a pipe and prints the speed in MB/s as Nocturne reads it:
# a JSON object on the last line. The writer's block size comes from the
# environment (WRITE_BYTES), the reader's from a flag (--read-bytes N).
set -eu

total=67108864
write=${WRITE_BYTES:-512}
read=512
[ "${1-}" != --read-bytes ] || read=$2

start=$(date +%s%N)
dd if=/dev/zero bs="$write" count=$((total / write)) status=none |
	dd of=/dev/null bs="$read" status=none
end=$(date +%s%N)

echo "{\"throughput\": $((total * 1000 / (end - start)))}"
