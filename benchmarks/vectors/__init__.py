"""How long embedding and the search of vectors take, and what they hold in memory."""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read when numpy is loaded
    os.environ.setdefault(_name, "1")
