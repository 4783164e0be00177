"""PostgreSQL: tables that streams write to."""
