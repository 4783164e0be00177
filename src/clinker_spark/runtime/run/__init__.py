"""The stages of a run one after another: outputs, failures, accounting, publication, report."""
