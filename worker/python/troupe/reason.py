# SPDX-License-Identifier: MIT
"""The reason of a failure that the sender gets for an exception in a handler."""
from __future__ import annotations

import os
import traceback

REASON_SIZE = 1023  # the maximum of the supervisor
SUMMARY_SIZE = 150
HERE = os.path.dirname(__file__)


def fit(text: str, size: int, keep_end: bool = False) -> str:
    """The text within so many bytes of UTF-8, with NUL characters escaped."""
    data = text.replace("\0", "\\0").encode(errors="backslashreplace")
    if len(data) > size:
        data = b"..." + data[3 - size:] if keep_end else data[:size - 3] + b"..."
    return data.decode(errors="ignore")


def reason_of(error: Exception) -> str:
    """The exception in one line, for lists, and the traceback below this package."""
    head = fit(" ".join(traceback.format_exception_only(type(error), error)).strip(), SUMMARY_SIZE)
    frames = error.__traceback__
    while frames and os.path.dirname(frames.tb_frame.f_code.co_filename) == HERE:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
    return head + "\n" + fit(text, REASON_SIZE - SUMMARY_SIZE - 1, keep_end=True)


def code_of(error: Exception) -> int:
    """An errno, or 1."""
    return error.errno or 1 if isinstance(error, OSError) else 1
