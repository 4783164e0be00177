"""Whole files and what holds for all of their nodes: pipelines, compositions, workspaces, variables."""
