"""`pq connection-string`: what an SDK of Azure Service Bus is told, as one line."""

import argparse

from partitionedqueue_cli import access_key, namespace
from partitionedqueue_cli.failures import CommandFailed


def connection_string(arguments: argparse.Namespace) -> int:
    """Print it, alone on a line, so that `$(pq connection-string)` is one."""
    record = namespace.load_running(arguments.data_dir)
    if not record.gateway.port:
        raise CommandFailed("the gateway does not run here: install partitionedqueue with its extra [gateway]")
    parts = [
        f"Endpoint=sb://{namespace.LOOPBACK}:{record.gateway.port}",
        f"SharedAccessKeyName={access_key.ROOT_POLICY}",
        f"SharedAccessKey={access_key.read(record.policies_folder)}",
        "UseDevelopmentEmulator=true",  # to an SDK: without TLS, and on the port that stands there
    ]
    if arguments.queue is not None:
        record.queue_up(arguments.queue)
        parts.append(f"EntityPath={arguments.queue}")
    print(";".join(parts))
    return 0
