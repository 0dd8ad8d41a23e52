"""PyTorch: operators that torch.compile and CUDA graphs take as they are, and patch(), which puts them into a model where a
dispatch table proves a gain. Import it to have torch.ops.scout.linear, .matmul and .attention."""
from __future__ import annotations

import itertools
import math
import os
import re
import time
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from . import _run as c
from . import arrays, dtypes, runtime
from ._show import Column, Shown, percent, times
from .dtypes import name_of
from .runtime import Packed, runner_of
from .table import Entry, Table

Path = Union[str, "os.PathLike[str]"]

# ---- operators ----

_packed: "weakref.WeakValueDictionary[int, _Kept]" = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


class _Kept:
    """A packed weight under a number, which operators can take, and the state of the weight that it was made of."""

    def __init__(self, packed: Packed, weight: torch.Tensor) -> None:
        self.number, self.packed, self.state = next(_numbers), packed, _state(weight)
        _packed[self.number] = self


def _state(weight: torch.Tensor) -> Tuple[int, int]:
    return weight.data_ptr(), -1 if weight.is_inference() else weight._version


def _device(of: torch.Tensor) -> str:
    return "cpu" if of.device.type == "cpu" else f"{of.device.type}:{of.device.index or 0}"


_NUMBERS = {getattr(torch, name): number for t in dtypes.TYPES for name in (t.name, *t.others)
            for number in [c.TYPES.get(t.name)] if number and isinstance(getattr(torch, name, None), torch.dtype)}
# Not torch.library.custom_op, whose wrapping takes longer than small products.
_library = torch.library.Library("scout", "DEF")


def _operator(schema: str, fake: Callable[..., Any]) -> Callable[[Any], Any]:
    """Defines an operator that the function computes on CPUs and CUDA devices; `fake` makes what is like its result."""
    def define(function: Any) -> Any:
        name = schema.partition("(")[0]
        _library.define(schema)
        for key in ("CPU", "CUDA"):
            _library.impl(name, function, key)
        torch.library.register_fake(f"scout::{name}", fake, lib=_library)
        return getattr(torch.ops.scout, name)
    return define


def _refuse_gradient(*tensors: Optional[torch.Tensor]) -> None:
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        raise TypeError("tensors without a gradient were expected: this operator has none; run it under torch.no_grad()")


def _tensor(t: torch.Tensor) -> Any:
    """As libscout_run takes it: what arrays.view does for any array, in less time."""
    number, rank = _NUMBERS.get(t.dtype), t.dim()
    if number is None or t.layout != torch.strided or t.is_neg():
        raise TypeError(f"a dense tensor of one of {', '.join(c.TYPES)} was expected, not {t.dtype} of {t.layout}")
    made = c.Tensor(t.data_ptr(), number, rank)
    made.dims[:rank], made.strides[:rank] = t.shape, t.stride()
    return made


def _aligned(t: torch.Tensor) -> torch.Tensor:
    """As libscout_run wants it on a GPU, which what is cut out of a larger tensor may not be."""
    return t if t.device.type == "cpu" or t.data_ptr() % _ALIGNMENT == 0 else t.clone()


_ALIGNMENT = 256


def _linear_out(x: torch.Tensor, weight: torch.Tensor, *_: Any) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@_operator("linear(Tensor x, Tensor weight, Tensor? bias=None, int packed=0) -> Tensor", _linear_out)
def linear(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None, packed: int = 0) -> torch.Tensor:
    """x @ weight.T + bias, by the table that scout.use named. `packed`: the number of a packed weight; 0: none."""
    _refuse_gradient(x, weight, bias)
    if (weight.dim() != 2 or not x.dim() or x.shape[-1] != weight.shape[1]
            or (bias is not None and bias.shape != weight.shape[:1])):
        raise ValueError(f"a weight of [N, {x.shape[-1] if x.dim() else 'K'}] and a bias of [N] were expected, not "
                         f"{list(weight.shape)} and {None if bias is None else list(bias.shape)}")
    if any(t.dtype != x.dtype or t.device != x.device for t in (weight, bias) if t is not None):
        raise TypeError(f"tensors of {x.dtype} on {x.device} were expected, not a weight of {weight.dtype} on {weight.device}"
                        + (f" and a bias of {bias.dtype} on {bias.device}" if bias is not None else ""))
    out = _linear_out(x, weight)
    if out.numel() == 0:
        return out
    runner = runner_of(_device(x))
    kept = _packed.get(packed) if packed else None
    if kept is not None and (kept.packed.runner is not runner or weight.is_inference() or kept.state != _state(weight)):
        kept = None  # it was written to since, or that cannot be known
    rows = _aligned(x.reshape(-1, x.shape[-1]).contiguous())
    added, laid = None if bias is None else _aligned(bias.contiguous()), _aligned(weight)
    runner.gemm(_tensor(rows), _tensor(laid.t()), _tensor(out.view(-1, weight.shape[0])),
                None if added is None else _tensor(added), kept.packed.handle if kept else None,
                arrays.stream_on(x.device))
    return out


def _matmul_out(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    batch = max((t.shape[0] for t in (a, b) if t.dim() == 3), default=None)
    return a.new_empty((*([] if batch is None else [batch]), a.shape[-2], b.shape[-1]))


@_operator("matmul(Tensor a, Tensor b) -> Tensor", _matmul_out)
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b of matrices, or of one dimension of matrices, by the table that scout.use named."""
    return runner_of(_device(a)).matmul(a, b)


@_operator("attention(Tensor q, Tensor k, Tensor v, bool causal=False, float scale=0.0, bool turned=False) -> Tensor",
           lambda q, k, v, causal=False, scale=0.0, turned=False: _attention_out(q, v, turned))
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float = 0.0,
              turned: bool = False) -> torch.Tensor:
    """As scout.attention: [sequences, heads, rows, size of a head]. `turned`: the result lies in memory with its rows before
    its heads, as models take it from there."""
    q, k, v = _aligned(q), _aligned(k), _aligned(v)
    return runner_of(_device(q)).attention(q, k, v, causal=causal, scale=scale, out=_attention_out(q, v, turned))


def _attention_out(q: torch.Tensor, v: torch.Tensor, turned: bool) -> torch.Tensor:
    sequences, heads, rows = q.shape[:3]
    if turned:
        return q.new_empty((sequences, rows, heads, v.shape[3])).transpose(1, 2)
    return q.new_empty((sequences, heads, rows, v.shape[3]))


# ---- what a table proves ----

_GEMM = re.compile(r"gemm;shape=(\d+),(\d+),(\d+);layout=(nn|nt);type=(\w+);weight=(\w+)(;bias=n)?;weight_side=b")
_ATTENTION = re.compile(r"attention;shape=([\d,]+);(?:layout=([^;]*);)?mask=(none|causal);type=(\w+);(.*)")
_LAYOUTS = ("q_layout", "k_layout", "v_layout", "out_layout")


class _Proven:
    """Entries with a proven gain, by what modules know of themselves."""

    def __init__(self, table: Table) -> None:
        self.products: Dict[Tuple[int, int, str, str, bool], Dict[int, Entry]] = {}
        self.attentions: Dict[Tuple[Any, ...], Dict[bool, Entry]] = {}  # by whether its result is turned
        for entry in table:
            product, heads = _GEMM.fullmatch(entry.key), _ATTENTION.fullmatch(entry.key)
            if not entry.proven:
                continue
            if product and product[5] == product[6]:
                m, n, k = (int(product[x]) for x in (1, 2, 3))
                self.products.setdefault((n, k, product[4], product[5], bool(product[7])), {})[m] = entry
            elif heads:
                more = dict(part.split("=", 1) for part in heads[5].split(";"))
                *lie, out = (more.pop(name, heads[2] or "bhsd") for name in _LAYOUTS)
                if set(more) == {"kv_heads", "kv_len"}:
                    told = (*map(int, heads[1].split(",")), heads[3], heads[4], int(more["kv_heads"]), int(more["kv_len"]))
                    self.attentions.setdefault((*told, *lie), {})[out == "bshd"] = entry

    def of_linear(self, module: nn.Linear) -> Tuple[str, Dict[int, Entry]]:
        """The layout that more is proven for, and its entries by number of rows."""
        dtype = name_of(module.weight.dtype)
        n, k, bias = module.out_features, module.in_features, module.bias is not None
        found = {layout: self.products.get((n, k, layout, dtype, bias), {})
                 for layout in ("nt", "nn")}  # as PyTorch stores it, and the other way
        layout = max(found, key=lambda name: len(found[name]))
        return layout, found[layout]


# ---- for engines that cannot say their sizes before ----

_of_tables: "weakref.WeakKeyDictionary[Table, _Proven]" = weakref.WeakKeyDictionary()


def _proven_now() -> Optional[_Proven]:
    """Of the table in use; None: there is none."""
    table = runtime.table_of(runtime.table_in_use(), runtime.signers_in_use())
    if table is None:
        return None
    if table not in _of_tables:
        _of_tables[table] = _Proven(table)
    return _of_tables[table]


def _rows_of(weight: torch.Tensor, bias: Optional[torch.Tensor]) -> Mapping[int, Entry]:
    proven = _proven_now()
    if proven is None or weight.dim() != 2 or not weight.is_contiguous():
        return {}
    return proven.products.get((weight.shape[0], weight.shape[1], "nt", name_of(weight.dtype), bias is not None), {})


def proven_products() -> int:
    """How many sizes of weights the table in use proves a gain for, in the order of PyTorch's weights."""
    proven = _proven_now()
    return 0 if proven is None else sum(told[2] == "nt" for told in proven.products)


def knows(weight: torch.Tensor, bias: Optional[torch.Tensor] = None) -> bool:
    """Whether the table in use proves a gain of linear with this weight, for any number of rows."""
    return bool(_rows_of(weight, bias)) and runner_of(_device(weight)).has_table


@_operator("linear_where_proven(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor", _linear_out)
def linear_where_proven(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
    """As linear for the numbers of rows that a gain is proven for; for others PyTorch's own."""
    _refuse_gradient(x, weight, bias)
    if x.shape[-1] and x.numel() // x.shape[-1] in _rows_of(weight, bias):
        return linear(x, weight, bias)
    return functional.linear(x, weight, bias)


# ---- what takes the place of a module ----

class Linear(nn.Module):
    """An nn.Linear that runs what was proven, where it was proven: for these numbers of rows, and where no gradient is
    asked for. Else it is what it was. It has the same parameters under the same names."""

    def __init__(self, of: nn.Linear, layout: str, proven: Mapping[int, Entry]) -> None:
        super().__init__()
        self.in_features, self.out_features = of.in_features, of.out_features
        self.weight, self.bias = of.weight, of.bias
        self.train(of.training)
        self.proven = dict(proven)
        self.on, self._settled = True, False
        self._of = (of.weight.dtype, of.weight.device)
        with torch.no_grad():  # stored as [K, N], where it is proven so; a parameter is not registered twice
            weight = of.weight.detach()
            self._laid = [weight if layout == "nt" else weight.t().contiguous().t()]
        self._kept = {rows: self._pack(rows) for rows in proven}

    def _pack(self, rows: int) -> Optional[_Kept]:
        weight = self._laid[0]
        rows_like = weight.new_zeros((rows, self.in_features))
        bias = None if self.bias is None else self.bias.detach()
        packed = runner_of(_device(weight)).pack(rows_like, weight.t(), bias=bias)
        return None if packed is None else _Kept(packed, weight)

    def settle(self) -> None:
        """Keeps one copy of the weight: the one that runs."""
        self.weight.data = self._laid[0]
        self._settled = True
        self._laid.clear()
        for kept in self._kept.values():
            if kept is not None:
                kept.state = _state(self.weight)

    def unsettle(self) -> None:
        """As PyTorch stores it."""
        if not self.weight.is_contiguous():
            self.weight.data = self.weight.data.contiguous()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight
        rows = x.numel() // self.in_features if self.in_features else 0
        if (self.on and rows in self.proven and not torch.is_grad_enabled() and (x.dtype, x.device) == self._of
                and (weight.dtype, weight.device) == self._of and x.shape[-1] == self.in_features):
            kept = self._kept[rows]
            laid = weight if self._settled else self._laid[0]
            return torch.ops.scout.linear(
                x, laid, self.bias, kept.number if kept else 0)
        return functional.linear(x, weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, rows={sorted(self.proven)}"


class _Attention(TorchFunctionMode):
    """Within it, calls of scaled_dot_product_attention of sizes that were proven run by the table."""

    def __init__(self, proven: Mapping[Tuple[Any, ...], Dict[bool, Entry]], seen: Dict[Tuple[Any, ...], Entry]) -> None:
        super().__init__()
        self.proven, self.seen = proven, seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is functional.scaled_dot_product_attention and not torch.is_grad_enabled():
            found = self._take(*args, **(kwargs or {}))
            if found is not None:
                return found
        return func(*args, **(kwargs or {}))

    def _take(self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
              scale: Optional[float] = None, enable_gqa: bool = False) -> Optional[torch.Tensor]:
        if query.dim() != 4 or attn_mask is not None or dropout_p or (is_causal and query.shape[2] != key.shape[2]):
            return None
        if query.dtype not in _FAR or value.shape[3] != query.shape[3] or query.shape[1] % key.shape[1]:
            return None
        told = (*query.shape, "causal" if is_causal else "none", name_of(query.dtype), key.shape[1], key.shape[2],
                *map(_lies, (query, key, value)))
        entries = self.proven.get(told)
        if not entries:
            return None
        turned = max(entries)  # models turn it next, and find it turned
        self.seen[told] = entries[turned]
        return torch.ops.scout.attention(query, key, value, is_causal, scale or 0.0, turned)


def _lies(t: torch.Tensor) -> str:
    """How heads lie in memory, as keys say it; "" in no way that they know."""
    return "bhsd" if t.is_contiguous() else "bshd" if t.transpose(1, 2).is_contiguous() else ""


# ---- a model ----

@dataclass(frozen=True)
class Replaced:
    """What runs by the table: a module of this name, or all attentions of one size."""

    name: str
    sizes: Tuple[int, ...]  # numbers of rows; of an attention its shape
    entries: Tuple[Entry, ...]


class Patched(Shown):
    """What patch() did with a model."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.replaced: List[Replaced] = []
        self.kept = False
        self.why = ""
        self.before_us: Optional[float] = None
        self.after_us: Optional[float] = None
        self.ratio: Optional[float] = None  # of after over before
        self.ratio_ci: Optional[float] = None  # half width of its interval, relative
        self._linears: List[Tuple[nn.Module, str, nn.Linear, Linear]] = []
        self._forward: Optional[Callable[..., Any]] = None
        self._forward_before: Optional[Callable[..., Any]] = None  # the model's own, where it hid its class's
        self._seen: Dict[Tuple[Any, ...], Entry] = {}
        self._on = True

    def _switch(self, on: bool) -> None:
        self._on = on
        for *_, linear in self._linears:
            linear.on = on

    def unpatch(self) -> None:
        """Puts everything back as it was."""
        for parent, name, module, linear in self._linears:
            linear.unsettle()
            setattr(parent, name, module)
        if self._forward is not None:
            del self.model.forward  # which hid the class's own
            if self._forward_before is not None:
                self.model.forward = self._forward_before  # type: ignore[method-assign,assignment]
            self._forward = None
        self._linears, self.kept = [], False

    def _shown(self) -> Tuple[str, List[Column], List[List[str]]]:
        title = f"{len(self.replaced)} replaced" if self.kept else f"nothing replaced: {self.why}"
        if self.ratio is not None and self.before_us is not None and self.after_us is not None:
            title += (f"; {times(self.before_us)} before, {times(self.after_us)} after: {self.ratio:.3f} ± "
                      f"{percent(self.ratio_ci or 0)}")
        elif self.kept:
            title += "; not measured, as no example was given"
        columns = [Column("module"), Column("rows"), Column("runs"), Column("expected", True)]
        rows = [[r.name, ",".join(map(str, r.sizes)), f"{r.entries[0].implementation} {r.entries[0].variant}".strip(),
                 f"{r.entries[0].ratio:.3f} of the default"] for r in self.replaced]
        return title, columns, rows


def patch(model: nn.Module, example: Any = None, *, table: Optional[Path] = None, seconds: float = 4.0,
          say: Optional[Callable[[str], Any]] = print) -> Patched:
    """Has linear modules and attentions of a model run what the table proves to be faster than the library's default, for
    inference. Says which. With an example (a tensor, a tuple of arguments, or a dictionary of named ones) the model is
    timed before and after, in turns: where its outputs differ, or it is slower by more than the ratio's interval, all is put
    back. `table` takes the place of the one that scout.use named. A weight may be written to, which is seen, but not through
    its .data: a packed copy of it would not follow."""
    if table is not None:
        runtime.use(table, signers=runtime.signers_in_use())
    done = Patched(model)
    proven = _proven_now()
    parameter = next(model.parameters(), None)
    if proven is None:
        raise ValueError("table: a dispatch table was expected, here or with scout.use; analyze dispatch makes one")
    if parameter is None:
        raise TypeError("the model: one with parameters was expected")
    runner = runner_of(_device(parameter))
    if not runner.has_table:
        done.why = runner.note
    else:
        with torch.no_grad():
            _replace(done, proven)
            _judge(done, example, seconds)
    if say is not None:
        say(repr(done))
    return done


def _is_changed(module: nn.Linear) -> bool:
    """Whether it does more than its class: hooks (weight_norm, prune), or a forward of its own."""
    return bool(module._forward_pre_hooks or module._forward_hooks or "forward" in vars(module))


def _replace(done: Patched, proven: _Proven) -> None:
    made: Dict[int, Linear] = {}
    for parent_name, parent in list(done.model.named_modules()):
        for name, module in list(parent.named_children()):
            if type(module) is not nn.Linear or _is_changed(module):
                continue
            layout, entries = proven.of_linear(module)
            if not entries:
                continue
            linear = made.get(id(module))
            if linear is None:
                linear = made[id(module)] = Linear(module, layout, entries)
                full = f"{parent_name}.{name}" if parent_name else name
                done.replaced.append(Replaced(full, tuple(sorted(entries)), tuple(entries[m] for m in sorted(entries))))
            setattr(parent, name, linear)
            done._linears.append((parent, name, module, linear))
    if proven.attentions:
        done._forward = forward = done.model.forward
        done._forward_before = vars(done.model).get("forward")
        seen = done._seen

        def with_table(*args: Any, **kwargs: Any) -> Any:
            if not done._on:
                return forward(*args, **kwargs)
            with _Attention(proven.attentions, seen):
                return forward(*args, **kwargs)

        done.model.forward = with_table  # type: ignore[method-assign,assignment]
    done.kept = bool(done._linears or done._forward)
    if not done.kept:
        done.why = "the table proves a gain for none of its linear modules and attentions"


def _judge(done: Patched, example: Any, seconds: float) -> None:
    if not done.kept:
        return
    if example is not None:
        _hold(done, example)
        if done.kept:
            _time(done, example, seconds)
    if done.kept:
        for *_, linear in done._linears:
            linear.settle()


def _give_up(done: Patched, why: str) -> None:
    done.unpatch()
    done.why = why


def _called(model: nn.Module, example: Any) -> Any:
    if isinstance(example, Mapping):
        return model(**example)
    return model(*example) if isinstance(example, (tuple, list)) else model(example)


def _tensors(found: Any) -> Iterator[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from _tensors(value)
    elif isinstance(found, (tuple, list)):
        for value in found:
            yield from _tensors(value)


_FAR = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def _hold(done: Patched, example: Any) -> None:
    """The outputs by the table against those of before."""
    done._switch(False)
    before = [t.clone() for t in _tensors(_called(done.model, example))]
    done._switch(True)
    after = list(_tensors(_called(done.model, example)))
    for want, got in zip(before, after):
        far = _FAR.get(want.dtype)
        if far is None or want.numel() == 0:
            continue
        wide, here = want.double(), got.double()
        error = float((wide - here).abs().max() / wide.abs().max().clamp(min=1e-30))
        if not error <= far:
            return _give_up(done, f"an output differed by {error:.2g} of its largest number, and {far:g} is allowed")
    for told, entry in done._seen.items():
        done.replaced.append(Replaced("attention", tuple(told[:4]), (entry,)))
    if not done.replaced:
        _give_up(done, "no attention of a proven size was met")


_LEAST = 12  # blocks of each; an interval of fewer is a guess


def _time(done: Patched, example: Any, seconds: float) -> None:
    """In blocks that take turns, so that what slows the machine slows both."""
    def block(on: bool, runs: int) -> float:
        done._switch(on)
        _wait(done.model)
        start = time.perf_counter()
        for _ in range(runs):
            _called(done.model, example)
        _wait(done.model)
        return (time.perf_counter() - start) / runs

    once = max(block(False, 2), block(True, 2))
    runs = max(1, math.ceil(seconds / (4 * _LEAST) / once))
    before: List[float] = []
    after: List[float] = []
    end = time.perf_counter() + seconds
    while len(before) < _LEAST or time.perf_counter() < end:
        first = len(before) % 2 == 0  # either comes first as often
        pair = {first: block(first, runs), not first: block(not first, runs)}
        before.append(pair[False])
        after.append(pair[True])
    done._switch(True)
    logs = [math.log(b / a) for a, b in zip(before, after)]
    n, mean = len(logs), sum(logs) / len(logs)
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1) / n)
    student = 1.96 + 2.37 / (n - 1) + 2.82 / (n - 1) ** 2  # the quantile for 95 %, from 9 degrees of freedom on
    done.before_us, done.after_us = (1e6 * sorted(times_)[n // 2] for times_ in (before, after))
    done.ratio, done.ratio_ci = math.exp(mean), math.expm1(student * spread)
    if mean > student * spread:
        _give_up(done, "with it the model was slower by more than the interval")


def _wait(model: nn.Module) -> None:
    if next(model.parameters()).device.type == "cuda":
        torch.cuda.synchronize()
