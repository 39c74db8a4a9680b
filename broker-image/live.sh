#!/bin/sh
# Whether this broker's server still answers, whatever it says: one that reads its files, is full or is busy is alive.
# One that says nothing is ended by the probe's time limit, and after several of those the container is.
set -u
cd "${PQ_DIR:-/data}" || exit 1
server=${PQ_SERVER:-redis-server}
exec "${server%-server}-cli" -s broker.sock PING >/dev/null
