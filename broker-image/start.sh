#!/bin/sh
# A broker: redis-server over one folder, with the library, and nothing else. The entry point of the pod's container; it runs
# just as well without one.
#
# It starts in an order that leaves no gap: the folder is looked at, the server reads it while it listens on a socket inside
# the folder alone, the library is loaded, and only then does the port open. So whoever reaches the port finds the library,
# and a probe needs to do no more than connect. A damaged folder is refused in words (append_only_file.sh), exit code 78, and is
# left as it is. SIGTERM ends the broker in good order.
#
# From the environment, with what they are otherwise:
#   PQ_DIR=/data  PQ_BIND=127.0.0.1  PQ_PORT=6379
#   PQ_MAXMEMORY=1280mb               the partition's size and 256 MB for buffers
#   PQ_DURABILITY=Always              or EverySecond, None
#   PQ_TORN_END=refuse                cut: a write that the last crash tore is kept beside and cut off
#   PQ_OLDER_LIBRARY=keep             replace: load this library over a newer one of the same layout (to go back)
#   PQ_DISK_FREE_MB_MIN=16  PQ_START_SECONDS_MAX=600  PQ_LOCK_SECONDS_MAX=30
#   PQ_SERVER=redis-server            its -cli and -check-aof stand beside it
#   PQ_CONF, PQ_LIBRARY               redis.conf and library.lua, beside this file
# Arguments go to redis-server after all of these (but maxmemory is what the variable says). With a password, REDISCLI_AUTH too must hold it.
# shellcheck shell=dash # sh of Debian and of busybox: POSIX and `local`
set -uf # PQ_BIND may be *

here=$(cd "$(dirname "$0")" && pwd)
PQ_DURABILITY=${PQ_DURABILITY:-Always}
PQ_SERVER=${PQ_SERVER:-redis-server}
export PQ_DURABILITY PQ_SERVER # for append_only_file.sh
folder=${PQ_DIR:-/data}
port=${PQ_PORT:-6379}
library=${PQ_LIBRARY:-$here/library.lua}
seconds_max=${PQ_START_SECONDS_MAX:-600}
socket=broker.sock # in the folder, which is where both ends work: so its path has no length to speak of
must_decide=78     # EX_CONFIG
server=''
asked_to_end=no

say() { printf 'start.sh: %s\n' "$*" >&2; }

# Ends, and the server with it.
fail() { # exit code, words
    local ending="$1"
    shift
    [ "$asked_to_end" = no ] || ending=0 # then nothing of this is news
    [ "$ending" = 0 ] || say "$*"
    stop
    exit "$ending"
}

stop() { [ -z "$server" ] || { kill -TERM "$server" && wait_for_its_end; } 2>/dev/null; }

# Sets code. A signal to this shell interrupts `wait`; the server's end is what counts.
wait_for_its_end() {
    wait "$server"
    code=$?
    while kill -0 "$server" 2>/dev/null; do
        wait "$server"
        code=$?
    done
}

check_settings() {
    local major
    case $PQ_DURABILITY in
        Always) durable='--appendonly yes --appendfsync always' ;;
        EverySecond) durable='--appendonly yes --appendfsync everysec' ;;
        None) durable='--appendonly no' ;;
        *) fail 64 "PQ_DURABILITY=$PQ_DURABILITY is none of Always, EverySecond, None." ;;
    esac
    case ${PQ_TORN_END:=refuse} in
        refuse | cut) ;;
        *) fail 64 "PQ_TORN_END=$PQ_TORN_END is neither refuse nor cut." ;;
    esac
    case ${PQ_OLDER_LIBRARY:=keep} in
        keep | replace) ;;
        *) fail 64 "PQ_OLDER_LIBRARY=$PQ_OLDER_LIBRARY is neither keep nor replace." ;;
    esac
    ours=$(sed -n "s/^local LIBRARY_VERSION = '\(.*\)'.*/\1/p" "$library" 2>/dev/null)
    [ -n "$ours" ] || fail 66 "$library is not the library."
    our_layout=$(sed -n 's/^local LAYOUT_VERSION = \([0-9]*\).*/\1/p' "$library")
    major=$("$PQ_SERVER" --version 2>/dev/null | sed -n 's/.* v=\([0-9]*\)\..*/\1/p')
    [ "${major:-0}" -ge 7 ] || fail 69 "$PQ_SERVER is no Redis 7.0 or newer, nor Valkey 8: version ${major:-unknown}."
}

# Two servers over one folder would ruin it. The lock is the server's as well, and falls when both have ended.
lock_folder() {
    local waited=0
    cd "$folder" || exit "$must_decide"
    folder=$(pwd)
    exec 9>>lock || exit "$must_decide"
    until flock -n 9; do
        [ "$waited" -lt "${PQ_LOCK_SECONDS_MAX:-30}" ] ||
            fail "$must_decide" "another broker works in $folder, and has not ended while it was waited for."
        sleep 1
        waited=$((waited + 1))
    done
}

answers() { "${PQ_SERVER%-server}-cli" -s "$socket" -e "$@" 2>&1; }

# Starts it and waits until it has read its files; fails if it ends before.
start_server() {
    local waited=0 answer
    rm -f "$socket"
    # shellcheck disable=SC2086 # several words
    "$PQ_SERVER" "${PQ_CONF:-$here/redis.conf}" --dir "$folder" $durable \
        --bind ${PQ_BIND:-127.0.0.1} --port 0 --unixsocket "$socket" --unixsocketperm 700 "$@" &
    server=$!
    until answer=$(answers PING) && [ "$answer" = PONG ]; do
        case $answer in *NOAUTH*) fail 64 "the server asks for another password than REDISCLI_AUTH holds." ;; esac
        kill -0 "$server" 2>/dev/null || break
        [ "$waited" -lt $((seconds_max * 20)) ] ||
            fail 75 "the server has not read its files within $seconds_max s; PQ_START_SECONDS_MAX gives it longer."
        sleep 0.05
        waited=$((waited + 1))
    done
    kill -0 "$server" 2>/dev/null && return
    wait_for_its_end
    server=
    [ "$asked_to_end" = no ] || exit 0
    return 1
}

# The server ended while it read its files: says why, or does what was asked for in that case, once.
start_after_all() {
    if [ "$PQ_TORN_END" = cut ] && [ "$code" -lt 128 ]; then
        "$here/append_only_file.sh" cut "$folder" || exit
        start_server "$@" && return
    fi
    "$here/append_only_file.sh" examine "$folder" || exit
    fail "$code" "the server ended with code $code."
}

newer() { [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]; }

# Never an older library over a newer one: it would not know what the newer has written.
load_library() {
    local about theirs their_layout said
    about=$(answers FCALL_RO pq_about 0)
    theirs=$(printf '%s\n' "$about" | sed -n '/^library$/{n;p;}')
    their_layout=$(printf '%s\n' "$about" | sed -n '/^layout$/{n;p;}')
    if [ "$theirs" = "$ours" ]; then
        return
    elif [ -n "$theirs" ] && newer "$theirs" "$ours"; then
        if [ "$their_layout" != "$our_layout" ] || [ "$PQ_OLDER_LIBRARY" = keep ]; then
            say "the folder has library $theirs, which is newer than this image's $ours; it stays."
            ours=$theirs our_layout=$their_layout
            return
        fi
        say "the folder has library $theirs; as asked, it goes back to $ours."
    fi
    said=$(answers -x FUNCTION LOAD REPLACE <"$library") || fail 70 "the library cannot be loaded: $said"
}

# The bound on memory comes last: a full broker must not refuse the library of an upgrade.
open_port() {
    local said
    said=$(answers CONFIG SET maxmemory "${PQ_MAXMEMORY:-1280mb}") || fail 64 "PQ_MAXMEMORY=$PQ_MAXMEMORY: $said"
    said=$(answers CONFIG SET port "$port") || fail 75 "port $port cannot be opened: $said"
}

main() {
    check_settings
    [ ! -w "$folder" ] || lock_folder # otherwise there are words for it
    "$here/append_only_file.sh" look "$folder" || exit
    trap 'asked_to_end=yes; [ -z "$server" ] || kill -TERM "$server" 2>/dev/null' TERM INT
    start_server "$@" || start_after_all "$@"
    load_library
    open_port
    say "ready on port $port: library $ours, layout $our_layout, durability $PQ_DURABILITY."
    wait_for_its_end
    [ "$code" = 0 ] || say "the server ended with code $code."
    exit "$code"
}

main "$@"
