# SPDX-License-Identifier: MIT
"""Contents of jobs, states and messages."""
from __future__ import annotations

import json

Buffer = bytes | bytearray | memoryview


def encode(value: object) -> Buffer:
    """Bytes as they are, text as UTF-8, None as nothing, all else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value
    if isinstance(value, str):
        return value.encode()
    return b"" if value is None else json.dumps(value).encode()
