"""Says which environment it runs in."""

import sys

import packaging

print(f"packaging {packaging.__version__} in {sys.prefix}")
