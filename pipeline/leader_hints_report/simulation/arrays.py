"""Types of arrays.

Tested in ``tests/pipeline/simulation/test_layout.py``.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Random = np.random.Generator
_Columns = TypeVar("_Columns", bound=tuple[npt.NDArray[Any], ...])


def joined(one: _Columns, *others: _Columns) -> _Columns:
    """Return the rows of all: named tuples with an array for each column."""
    return type(one)(*(np.concatenate(column) for column in zip(one, *others, strict=True)))
