#!lua name=partitionedqueue
-- What must hold atomically inside one partition, one file a command. This file is the table of contents.

local LIBRARY_VERSION = '0.1.0'
local LAYOUT_VERSION = 1

--@include includes/base.lua
--@include includes/state.lua
--@include includes/segments.lua
--@include includes/runs.lua
--@include includes/locks.lua
--@include includes/senders.lua
--@include includes/claims.lua

--@include commands/configure.lua
--@include commands/send.lua
--@include commands/receive.lua
--@include commands/complete.lua
--@include commands/abandon.lua
--@include commands/renew_lock.lua
--@include commands/peek.lua
--@include commands/totals.lua
--@include commands/about.lua
--@include commands/claim_open.lua
--@include commands/claim.lua
--@include commands/claim_renew.lua
--@include commands/claim_acknowledge.lua
--@include commands/claimed.lua
