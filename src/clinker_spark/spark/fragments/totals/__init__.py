"""Totals in workers: what each split has of a group, put together group by group."""
