"""From checked configuration to plan nodes: schemas along the graph, programs compiled against them."""
