"""What files hold: their format, the types of their values, and how that differs from what a pipeline declares."""
