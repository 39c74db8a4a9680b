"""Queues are listed page by page, each of them once; there are no topics."""

from sdk.python.place import Place


def run(place: Place) -> None:
    with place.administration_client() as client:
        names = [queue.name for queue in client.list_queues()]
        assert place.administered in names
        assert place.missing not in names
        paged = [[queue.name for queue in page] for page in client.list_queues(max_page_size=2).by_page()]
        assert max(len(page) for page in paged) == 2
        # Other queues may come and go meanwhile.
        flat = [name for page in paged for name in page]
        assert len(flat) == len(set(flat))
        assert {"list-a", "list-b", "list-c"} <= set(flat)
        assert {"list-a", "list-b", "list-c"} <= {queue.name for queue in client.list_queues_runtime_properties()}
        assert not list(client.list_topics())
        assert client.get_namespace_properties().name
