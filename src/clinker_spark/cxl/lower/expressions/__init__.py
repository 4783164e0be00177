"""Lowering expressions: every kind of typed expression becomes SQL with its error channel."""
