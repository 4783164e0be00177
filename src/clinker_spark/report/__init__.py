"""What people see of a plan and of a run."""
