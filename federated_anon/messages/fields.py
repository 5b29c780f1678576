"""The kinds of fields that messages are made of; ``codec`` knows how each looks in Arrow."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints: TypeAlias = Annotated[NDArray[np.integer[Any]], "ints"]
Octets: TypeAlias = Annotated[NDArray[np.integer[Any]], "octets"]
Floats: TypeAlias = Annotated[NDArray[np.floating[Any]], "floats"]
Singles: TypeAlias = Annotated[NDArray[np.floating[Any]], "singles"]
Words: TypeAlias = Annotated[NDArray[np.unsignedinteger[Any]], "words"]
Flags: TypeAlias = Annotated[NDArray[np.bool_], "flags"]
IntMatrix: TypeAlias = Annotated[NDArray[np.integer[Any]], "int matrix"]
Matrix: TypeAlias = Annotated[NDArray[np.floating[Any]], "matrix"]
Table: TypeAlias = Annotated[pa.Table, "table"]
