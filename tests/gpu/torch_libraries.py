"""Prints the folders of the cuBLASLt, the cuDNN, the cuSPARSELt and the CUPTI that PyTorch loads, separated by colons."""
import torch

NAMES = ("libcublasLt.so", "libcudnn.so", "libcusparseLt.so", "libcupti.so")

torch.zeros(8, 8, device="cuda", dtype=torch.half) @ torch.zeros(8, 8, device="cuda", dtype=torch.half)
torch.backends.cudnn.version()
with open("/proc/self/maps", encoding="utf-8") as file:
    maps = [line.split()[-1] for line in file if any(name in line for name in NAMES)]
print(":".join(sorted({path.rsplit("/", 1)[0] for path in maps})))
