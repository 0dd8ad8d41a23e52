"""Makes a model of one product of two inputs, in fp32: the least that a device needs to have. Usage: product_model.py
MODEL.onnx"""
import sys

from external_model import float_tensor, node, number, part

graph = part(7, node("MatMul", "x", "w", "y"), part(2, "product"), float_tensor(11, "x", 64, 64), float_tensor(11, "w", 64, 64),
             float_tensor(12, "y", 64, 64))
with open(sys.argv[1], "wb") as file:
    file.write(number(1, 8) + graph + part(8, number(2, 17)))
