"""The operator: a PartitionedQueue becomes its broker pods. Pure code decides, one thin place acts on the cluster."""
