"""Service Bus' administration API: ATOM over HTTP, as the SDKs' administration clients speak it.

What is asked is read here and answered here; queues are read in the catalog, and changed where they are written down.
"""
