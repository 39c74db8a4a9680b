"""A job of the tests: the numbers that messages are, from a queue to Parquet. Until SIGTERM, or the end of the driver.

python spark_ledger.py QUEUE NAMESPACE FOLDER MESSAGES_A_BATCH
"""

import signal
import sys
import threading
from typing import Final

from pyspark.sql import SparkSession

from partitionedqueue_spark import register

CLAIM_TIMEOUT: Final = "5m"  # the next driver comes within it, on however slow a machine
POLL_S: Final = 0.2


def main(queue: str, namespace: str, folder: str, most: str) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    options = {
        "queue": queue,
        "namespace": namespace,
        "maxMessagesPerTrigger": most,
        "claimTimeout": CLAIM_TIMEOUT,
        "brokerTimeout": "3m",
    }
    stream = spark.readStream.format("partitionedqueue").options(**options).load()
    query = (
        stream.selectExpr("cast(cast(body as string) as long) as number", "partition")
        .writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    while query.isActive and not stopping.wait(POLL_S):
        pass
    if stopping.is_set():
        query.stop()
    else:
        query.awaitTermination()  # raises what ended it
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
