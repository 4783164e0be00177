"""Message brokers and databases: what sources and outputs of streams say about them."""
