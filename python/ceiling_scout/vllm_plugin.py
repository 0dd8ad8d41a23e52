"""A plugin of vLLM (entry point vllm.general_plugins): its unquantized linear layers run by the dispatch table that
$CEILING_SCOUT_TABLE names, for the sizes where that proves a gain, and as vLLM runs them for all others. Without the
variable it does nothing. A table that cannot be used is logged, and changes nothing."""
from __future__ import annotations

from typing import Any

from . import runtime
from .errors import ScoutError
from .runtime import log


def register() -> None:
    """vLLM calls it in each of its processes, and may do so more than once."""
    path = runtime.table_in_use()
    if path is None:
        return
    try:
        from vllm.model_executor.layers.linear import UnquantizedLinearMethod

        from . import pytorch

        entries = pytorch.proven_products()
    except (ScoutError, ImportError, AttributeError) as why:
        log.warning("%s is not used: %s", path, why)
        return
    own = UnquantizedLinearMethod.apply
    if getattr(own, "of_ceiling_scout", False):
        return

    def apply(self: Any, layer: Any, x: Any, bias: Any = None) -> Any:
        weight = getattr(layer, "weight", None)
        if weight is not None and pytorch.knows(weight, bias):
            return pytorch.linear_where_proven(x, weight, bias)
        return own(self, layer, x, bias)

    apply.of_ceiling_scout = True  # type: ignore[attr-defined]
    UnquantizedLinearMethod.apply = apply
    log.info("%s: a gain is proven for %d sizes of weights", path, entries)
