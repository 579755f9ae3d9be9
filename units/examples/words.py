#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A job of words.group: text on standard input, its ten most frequent words as JSON on standard output.

Whatever it writes to standard error is in `troupectl logs words`, and the last of it in the reason if the job fails.
"""
import collections
import json
import re
import sys

try:
    text = sys.stdin.buffer.read().decode("utf-8")
except UnicodeDecodeError as error:
    print(f"not a text in UTF-8: {error}", file=sys.stderr)
    sys.exit(3)
words = collections.Counter(re.findall(r"\w+", text.lower()))
json.dump(dict(words.most_common(10)), sys.stdout, ensure_ascii=False)
