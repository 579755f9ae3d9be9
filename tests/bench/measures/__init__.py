# SPDX-License-Identifier: MIT
"""What is measured: a module each, with a function measures(quick) that returns rounds.Measure objects."""
