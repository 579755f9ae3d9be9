# SPDX-License-Identifier: MIT
"""Workers for Troupe, and clients that give it work. See troupe-python(7)."""
from troupe._troupe import version

__all__ = ["version"]
__version__ = version()
