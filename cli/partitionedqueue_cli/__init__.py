"""The `pq` command and the embedded namespace: a person's way in, on one machine.

It speaks to brokers through the core alone, and only `supervisor` starts or ends a process. Whatever goes wrong is one
clear sentence on stderr and a non-zero exit code, and nothing half-made is left.
"""
