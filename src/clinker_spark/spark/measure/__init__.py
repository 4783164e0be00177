"""What Spark counted while it ran a plan: rows, time, memory and spill of its operators."""
