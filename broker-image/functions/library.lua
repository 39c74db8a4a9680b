#!lua name=partitionedqueue
-- What must hold atomically inside one partition, one file a command. This file is the table of contents.

local LIBRARY_VERSION = '0.2.0'
local LAYOUT_VERSION = 2

--@include includes/base.lua
--@include includes/config.lua
--@include includes/counters.lua
--@include includes/state.lua
--@include includes/messages.lua
--@include includes/segments.lua
--@include includes/gone.lua
--@include includes/runs.lua
--@include includes/parked.lua
--@include includes/sessions.lua
--@include includes/leaving.lua
--@include includes/taking.lua
--@include includes/locks.lua
--@include includes/senders.lua
--@include includes/duplicates.lua
--@include includes/storing.lua
--@include includes/settling.lua
--@include includes/due.lua
--@include includes/claims.lua
--@include includes/migrations.lua

--@include commands/configure.lua
--@include commands/send.lua
--@include commands/send_pushed.lua
--@include commands/receive.lua
--@include commands/complete.lua
--@include commands/abandon.lua
--@include commands/defer.lua
--@include commands/dead_letter.lua
--@include commands/renew_lock.lua
--@include commands/receive_deferred.lua
--@include commands/cancel_scheduled.lua
--@include commands/peek.lua
--@include commands/states.lua
--@include commands/accept_session.lua
--@include commands/renew_session.lua
--@include commands/release_session.lua
--@include commands/session_state.lua
--@include commands/list_sessions.lua
--@include commands/purge.lua
--@include commands/resubmit.lua
--@include commands/apply.lua
--@include commands/totals.lua
--@include commands/next_due.lua
--@include commands/sweep.lua
--@include commands/about.lua
--@include commands/claim_open.lua
--@include commands/claim.lua
--@include commands/claim_renew.lua
--@include commands/claim_acknowledge.lua
--@include commands/claimed.lua
