"""(being written)"""

from clinker_spark.cxl.builtins.table import Builtin

BUILTINS: tuple[Builtin, ...] = ()
