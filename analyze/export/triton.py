"""Which products are worth tuning in Triton, by measurements. Made by `analyze export triton`: not to be edited.

    import scout_triton as scout                # this file

    @scout.autotune(key=["M", "N", "K"])        # in the place of triton.autotune
    @triton.jit
    def product(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr): ...

A product whose library is at its ceiling is not tuned: it runs with the first configuration, and nothing is timed. One
with room above the library is tuned over the blocks that are worth trying first. Any other, and every one on another
device, is tuned over all configurations.
"""
import triton

# (M, N, K, type): blocks of the output and of K to try first; none where the library is at its ceiling.
DEVICE, PRODUCTS = "", {}


def configs(warps=(4, 8), stages=(3, 4), blocks=("BLOCK_M", "BLOCK_N", "BLOCK_K")):
    """Every block of the table with each number of warps and stages; 128 x 128 x 64 comes first."""
    tiles = {(128, 128, 64): None, **{tile: None for tiles in PRODUCTS.values() for tile in tiles}}
    return [triton.Config(dict(zip(blocks, tile)), num_warps=w, num_stages=s) for tile in tiles for w in warps for s in stages]


def worth_trying(m, n, k, dtype):
    """Blocks to try first, an empty list where there is nothing to gain, None where nothing is known."""
    return PRODUCTS.get((m, n, k, str(dtype)))


def _is_here(tensor):
    import torch

    return torch.cuda.is_available() and torch.cuda.get_device_name(tensor.device) == DEVICE


def prune_configs_by(sizes=("M", "N", "K"), blocks=("BLOCK_M", "BLOCK_N", "BLOCK_K")):
    """For triton.autotune. `sizes` and `blocks` are what the kernel calls them."""

    def early_config_prune(configs, named_args, **kwargs):
        given = {**named_args, **kwargs}
        tensor = next((x for x in given.values() if hasattr(x, "dtype") and hasattr(x, "device")), None)
        if tensor is None or not all(name in given for name in sizes) or not _is_here(tensor):
            return configs
        tiles = worth_trying(*(given[name] for name in sizes), tensor.dtype)
        if tiles is None:
            return configs
        if not tiles:
            return configs[:1]
        return [c for c in configs if tuple(c.kwargs.get(name) for name in blocks) in tiles] or configs

    return {"early_config_prune": early_config_prune}


def autotune(key, configs=None, sizes=("M", "N", "K"), blocks=("BLOCK_M", "BLOCK_N", "BLOCK_K"), **more):
    """triton.autotune with these configurations (default: configs()) and this pruning."""
    return triton.autotune(globals()["configs"](blocks=blocks) if configs is None else configs, key,
                           prune_configs_by=prune_configs_by(sizes, blocks), **more)
