import pytest

from partitionedqueue.broker import calls
from partitionedqueue.broker.blocking import BlockingBroker
from partitionedqueue.broker.keys import QueueKeys
from partitionedqueue.model.errors import BrokerFault, Misplaced


def test_a_broker_knows_which_partition_it_holds_and_refuses_to_be_another(
    broker: BlockingBroker, keys: QueueKeys
) -> None:
    assert broker.call(calls.totals(keys)).partitions == 0
    broker.call(calls.configure(keys, partition=3, partitions=16))
    broker.call(calls.configure(keys, partition=3, partitions=16))
    totals = broker.call(calls.totals(keys))
    assert (totals.partition, totals.partitions) == (3, 16)
    for partition, partitions in ((2, 16), (3, 32)):
        with pytest.raises(Misplaced, match="holds partition 3 of 16"):
            broker.call(calls.configure(keys, partition=partition, partitions=partitions))
    with pytest.raises(BrokerFault):
        broker.call(calls.configure(keys, partition=16, partitions=16))
