# SPDX-License-Identifier: MIT
"""The worker echo.c in Python."""
from troupe._troupe import Worker

Worker().run(lambda job: job.succeed(job.payload))
