"""How the inputs of a combine meet: its condition taken apart, and the bins of ranges."""
