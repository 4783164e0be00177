"""What only sources say: their files, formats and columns, and how texts become values and records."""
