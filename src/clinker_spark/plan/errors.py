"""A pipeline that cannot be planned."""

from clinker_spark.core.errors import ClinkerError


class PlanError(ClinkerError):
    """Everything that is wrong with a pipeline between its nodes."""
