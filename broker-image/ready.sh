#!/bin/sh
# Whether this broker may be sent to: its port is open, the library answers, and what it acknowledges reaches the disk.
# Ends with 0, or with 1 and one line that says why not. Environment as for start.sh.
set -u

unready() { printf 'not ready: %s\n' "$1"; exit 1; }

cd "${PQ_DIR:-/data}" || unready "${PQ_DIR:-/data} cannot be entered"
server=${PQ_SERVER:-redis-server}
# One process for all three: a probe is paid for every few seconds, in every pod.
said=$(printf 'FCALL_RO pq_about 0\nINFO persistence\nINFO server\n' | "${server%-server}-cli" -s broker.sock 2>&1 | tr -d '\r') ||
    unready 'it does not answer'

has() { printf '%s\n' "$said" | grep -q "^$1\$"; }

has loading:0 || unready "it reads its files, or does not answer: $(printf '%s\n' "$said" | head -n 1)"
has layout || unready "the library is not loaded: $(printf '%s\n' "$said" | head -n 1)"
has "tcp_port:${PQ_PORT:-6379}" || unready 'its port is not open yet'
[ "${PQ_DURABILITY:-Always}" = None ] || { has aof_enabled:1 && has aof_last_write_status:ok; } ||
    unready 'the append-only file cannot be written, so nothing is taken in; its log says why'
