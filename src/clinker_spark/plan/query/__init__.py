"""Query nodes in the plan."""
