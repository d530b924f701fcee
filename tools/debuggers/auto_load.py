"""gdb loads this file, installed as share/gdb/auto-load/coil_gdb.py, with every program that uses coil."""

import os
import sys

sys.path.insert(0, os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..', 'coil')))

import coil_gdb  # noqa: E402, F401
