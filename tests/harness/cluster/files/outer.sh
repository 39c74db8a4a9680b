#!/bin/bash
# Runs on the host, in the node's network: starts the node and sees to it that it does not outlive its cluster.
# The keeper holds LIFELINE open; when it is gone, however it went, reading ends and so does everything in the node.
unshare --mount --pid --fork --uts --kill-child /bin/bash "$FILES/node.sh" &
node=$!
cat "$LIFELINE" >/dev/null &
lifeline=$!
wait -n
kill -9 "$node" "$lifeline" 2>/dev/null
wait
