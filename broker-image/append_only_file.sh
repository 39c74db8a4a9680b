#!/bin/sh
# What may be wrong with a broker's folder, found and said in words: which file, at which byte, what it means, what to do.
#
#   append_only_file.sh look DIR     before a start: what a server would not notice or would not say; takes no time
#   append_only_file.sh examine DIR  after a server has refused its files; reads them to the damage
#   append_only_file.sh cut DIR      cuts a torn end off, keeping a copy of it; refuses whatever is more than that
#
# Only `cut` changes anything. Ends with 0, or with 78 when somebody must decide, the words on stderr.
# PQ_SERVER (redis-server), PQ_DURABILITY (Always, EverySecond, None) and PQ_DISK_FREE_MB_MIN (16) as for start.sh.
# shellcheck shell=dash # sh of Debian and of busybox: POSIX and `local`
set -u
LC_ALL=C
export LC_ALL

must_decide=78 # EX_CONFIG
folder=${2:?append_only_file.sh look, examine or cut, then a folder}
files=$folder/appendonlydir
manifest=$files/appendonly.aof.manifest
durability=${PQ_DURABILITY:-Always}
server=${PQ_SERVER:-redis-server}
cr=$(printf '\r')

# Says the headline $1 and what stands on stdin, and ends.
refuse() {
    printf 'NOT STARTED: %s\n' "$1" >&2
    sed 's/^/    /' >&2
    printf '    Nothing was changed. More: docs/operating/damaged-append-only-file.md\n' >&2
    exit "$must_decide"
}

give_up="give this partition's messages up:  mv '$files' '$files.given-up'"

bytes_of() { wc -c <"$1" | tr -d ' '; }

# The names of the manifest's files of type $1: b the base, i what came since, in order.
listed() { sed -n "s/^file \([^ ]*\) seq [0-9]* type $1\( .*\)\{0,1\}\$/\1/p" "$manifest"; }

there() { # the append-only files in the folder, whatever the manifest says
    find "$files" -type f -name 'appendonly.aof.[0-9]*' ! -name '*.manifest' 2>/dev/null | sed 's|.*/||' | sort -t . -k 3n
}

# -------------------------------------------------------------- before a start

look_at_access() {
    local each
    [ -d "$folder" ] || refuse "$folder is no folder." <<-END
	It is where the partition's messages are kept: mount its volume there, or make it:  mkdir -p '$folder'
	END
    find "$folder" -maxdepth 2 \( -path "$folder" -o -path "$files" -o -path "$files/appendonly.aof.*" \) 2>/dev/null |
        while read -r each; do
            if [ ! -r "$each" ] || [ ! -w "$each" ] || { [ -d "$each" ] && [ ! -x "$each" ]; }; then
                refuse "$each may not be read and written by this broker (user $(id -u), group $(id -g))." <<-END
	It is: $(ls -ldn "$each")
	Somebody else has written there, or the volume is mounted read-only. What to do, one of:
	  1. run the broker as that user (in a pod: securityContext.runAsUser, fsGroup)
	  2. give the folder to this one:  chown -R $(id -u):$(id -g) '$folder'
	END
            fi
        done || exit "$must_decide"
}

look_at_space() {
    local free_kb least_kb=$((${PQ_DISK_FREE_MB_MIN:-16} * 1024))
    free_kb=$(df -Pk "$folder" | awk 'END { print $4 }')
    [ "$free_kb" -ge "$least_kb" ] || refuse "the disk under $folder is full: $free_kb KB are free." <<-END
	Every command is written down before it is answered, so a broker with less than $least_kb KB would only end again.
	What is stored is whole. What to do, one of:
	  1. enlarge the volume, or free space on it: the broker then goes on where it was
	  2. let it start with less, to receive what is there:  PQ_DISK_FREE_MB_MIN=1
	END
}

look_at_durability() {
    [ "$durability" = None ] && [ -n "$(there)" ] || return 0
    refuse "durability is None, but $files holds messages." <<-END
	Without durability a broker reads nothing, and later, with durability again, old messages would come back from there.
	What to do, one of:
	  1. set durability back to Always or EverySecond
	  2. $give_up
	END
}

refuse_without_manifest() { # what is the matter with it
    local anew='by hand; which of these files belong together cannot be told from their names'
    if [ "$(there | grep -c '\.base\.')" = 1 ]; then
        anew="if these are all of its files, the base and what came since:
       printf '%s\\n'$(there | sort -t . -k 4,4 -k 3n |
            awk -F . '{ printf " '\''file %s seq %s type %s'\''", $0, $3, substr($4, 1, 1) }') > '$manifest'"
    fi
    refuse "$manifest $1." <<-END
	It says which files hold the messages; a server that does not find it starts empty, beside these:
	$(there | sed 's/^/  /')
	What to do, one of:
	  1. restore it from a copy of the volume
	  2. write it anew, $anew
	  3. $give_up
	END
}

refuse_missing() { # name, what stands in it
    refuse "$files/$1 is missing, though the manifest names it." <<-END
	In it stands $2.
	What to do, one of:
	  1. put it back from a copy of the volume; look also in lost+found
	  2. $give_up
	END
}

look_at_files() {
    local each
    if [ ! -e "$manifest" ]; then
        # A first start that ended before its manifest was written leaves a base without a message in it.
        [ -z "$(there)" ] || { [ "$(there)" = appendonly.aof.1.base.rdb ] && [ "$(bytes_of "$files/$(there)")" -lt 200 ]; } ||
            refuse_without_manifest 'is missing'
        return 0
    fi
    if [ -z "$(listed b)$(listed i)" ] || grep -qv '^file [^ ]* seq [0-9]* type [bih]' "$manifest"; then
        refuse_without_manifest 'is damaged'
    fi
    for each in $(listed b); do
        [ -e "$files/$each" ] || refuse_missing "$each" 'everything up to the last rewrite; the files that came since stand on it'
        [ "$(head -c 5 "$files/$each")" = REDIS ] || refuse "$files/$each is damaged at byte 0." <<-END
	It has $(bytes_of "$files/$each") bytes and does not begin as a base file does; a server may take an empty one for "no messages".
	In it stands everything up to the last rewrite. What to do, one of:
	  1. restore it from a copy of the volume
	  2. $give_up
	END
    done
    for each in $(listed i); do
        [ -e "$files/$each" ] || refuse_missing "$each" 'what was acknowledged since the last rewrite'
    done
}

# -------------------------------------------------------------- after a server has refused its files

# Sets damaged, size, from: the first file that cannot be read to its end, and up to where it can; fails if there is none.
find_damage() {
    local analysed
    said=$("${server%-server}-check-aof" "$manifest" 2>&1 </dev/null)
    analysed=$(printf '%s\n' "$said" |
        sed -n 's/^AOF analyzed: filename=\([^,]*\), size=\([0-9]*\), ok_up_to=\([0-9]*\),.*/\1 \2 \3/p' |
        awk '$2 > $3' | tail -n 1)
    damaged=$files/$(printf '%s' "$analysed" | cut -d' ' -f1)
    size=$(printf '%s' "$analysed" | cut -d' ' -f2)
    from=$(printf '%s' "$analysed" | cut -d' ' -f3)
    [ -n "$analysed" ]
}

rest() { tail -c "+$((from + 1))" "$damaged"; }

# How many of the rest's lines, whole ones, are like $1. The x lengthens a last line that has no end.
lines_like() { { rest; printf x; } | grep -ac "^$1$cr\$"; }

# Whether the damage is a single write that stopped short. A server takes any damaged length for that, and would drop all
# that follows; so what follows is looked at: one transaction without its end, one command, or a file system's zeros.
is_torn() {
    [ "${damaged##*/}" = "$(listed i | tail -n 1)" ] || return 1
    [ "$(rest | tr -d '\000' | wc -c)" -gt 0 ] || return 0
    [ "$(rest | head -c 1)" = '*' ] || return 1
    # shellcheck disable=SC2016 # it is no expansion
    if [ "$(rest | head -c 15)" = "$(printf '*1\r\n$5\r\nMULTI\r\n')" ]; then
        [ "$(lines_like EXEC)" = 0 ]
    else
        [ "$(lines_like '\*[0-9][0-9]*')" -le 1 ]
    fi
}

what_a_torn_end_means() {
    case $durability in
        Always) echo 'With durability Always its sender had no reply yet: nothing that was acknowledged is in it.' ;;
        *) echo "With durability $durability it, and up to a second before it, may have been acknowledged." ;;
    esac
}

refuse_torn() {
    local what='the beginning of one write, which was'
    [ "$(rest | tr -d '\000' | wc -c)" -gt 0 ] || what='zeros, as a file system may leave them for what was'
    refuse "$damaged ends within a write." <<-END
	It can be read up to byte $from of $size. The $((size - from)) bytes from there are $what under way
	when the broker or its machine ended. $(what_a_torn_end_means)
	What to do, one of:
	  1. start with PQ_TORN_END=cut: they are kept beside, in $folder/torn-end-*, cut off, and the broker starts
	  2. restore the folder from a copy of the volume, if it was shortened by something else than a crash
	END
}

refuse_broken() {
    local later keep
    later=$(listed i | sed "1,/^${damaged##*/}\$/d")
    keep="truncate -s $from '$damaged'"
    for each in $later; do keep="$keep && sed -i '/^file $each /d' '$manifest'"; done
    refuse "$damaged is damaged in the middle." <<-END
	It can be read up to byte $from of $size. $((size - from)) bytes follow${later:+, and then $later}: at least $(lines_like EXEC) whole commands,
	all of them acknowledged. No crash does that: look at the disk, and at whoever else has written there.
	What to do, one of:
	  1. restore the folder from a copy of the volume
	  2. keep what stands before the damage and lose what follows; first keep a copy:
	       cp -a '$files' '$files.damaged' && $keep
	  3. $give_up
	END
}

examine() {
    local version
    if find_damage; then
        is_torn && refuse_torn
        refuse_broken
    fi
    version=$(printf '%s\n' "$said" | sed -n "s/.*RDB format version \([0-9]*\).*/\1/p" | head -n 1)
    [ -z "$version" ] || refuse "$files was written by a newer server." <<-END
	Its base file has format $version, which this server cannot read: $("$server" --version | cut -d' ' -f1-3)
	What is stored is whole. What to do: run the server that wrote it, or a newer one; there is no way back.
	END
    if printf '%s\n' "$said" | grep -q 'RDB'; then
        printf '%s\n' "$said" | grep -q 'RDB preamble is OK\|RDB looks OK' || refuse "$files/$(listed b) is damaged." <<-END
	It cannot be read; where, as far as can be told: $(printf '%s\n' "$said" | sed -n 's/^\(\[offset [0-9]*\] .*\)/\1/p' | tail -n 1)
	In it stands everything up to the last rewrite, and what came since stands on it. What to do, one of:
	  1. restore the folder from a copy of the volume
	  2. $give_up
	END
    fi
    printf 'The files in %s are whole as far as can be told; why the server ended, it says itself above.\n' "$files" >&2
}

# -------------------------------------------------------------- on request

cut_torn_end() {
    local copy
    find_damage || { printf 'There is nothing to cut in %s.\n' "$files" >&2; return 0; }
    is_torn || refuse_broken
    copy=$folder/torn-end-$(date -u +%Y%m%dT%H%M%SZ)-at-$from-of-${damaged##*/}
    # On the disk first: what is cut must not be lost as well.
    if ! { rest >"$copy" && sync "$copy" && [ "$(bytes_of "$copy")" = $((size - from)) ]; }; then
        rm -f "$copy"
        refuse "$copy cannot be written, so nothing was cut." </dev/null
    fi
    truncate -s "$from" "$damaged" && sync "$damaged" || exit 1
    printf 'Cut the torn end of %s: it had %s bytes and has %s; the %s bytes that were cut are in %s. %s\n' \
        "$damaged" "$size" "$from" "$((size - from))" "$copy" "$(what_a_torn_end_means)" >&2
}

case $1 in
    look) look_at_access && look_at_durability && look_at_files && look_at_space ;;
    examine) examine ;;
    cut) cut_torn_end ;;
    *) echo "append_only_file.sh: $1 is none of look, examine, cut" >&2; exit 64 ;;
esac
