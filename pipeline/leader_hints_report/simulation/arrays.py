"""Types of arrays.

Tested in ``tests/pipeline/simulation/test_layout.py``.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Random = np.random.Generator
