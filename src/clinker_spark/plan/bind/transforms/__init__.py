"""What transforms have besides their program: logs, checks, windows, variables."""
