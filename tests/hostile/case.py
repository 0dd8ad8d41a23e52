"""What a hostile case is: a model (or a whole folder) and what extract_ops has to say about it."""
from dataclasses import dataclass
from typing import Callable, Union

BAD = (3,)          # refused
FINE = (0,)         # odd, but a model
OPEN = (1,)         # a model with something that cannot be known
ODD = (0, 3)        # may be read or refused; both are right
LOOSE = (0, 1, 3)   # any verdict, as long as it is one


@dataclass
class Case:
    name: str
    exits: tuple
    content: Union[bytes, Callable, None]  # the model's bytes, or a function that makes them, or None: layout makes it
    pattern: str = "."                     # the one line on stderr must match it when the exit is 3
    args: tuple = ()
    layout: Callable = None                # makes what lies beside the model; called with the model's folder
    path: str = "model.onnx"               # what is given to the program; relative to the folder
    seconds: float = 1.0
