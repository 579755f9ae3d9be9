# SPDX-License-Identifier: MIT
"""Medians over rounds, and ratios between two that took turns."""
import statistics


def add(point, turn):
    """Adds a turn's metrics to {"samples": {metric: [...]}, "histogram": [...]}."""
    samples = point.setdefault("samples", {})
    for metric, value in turn.items():
        if metric.endswith("histogram"):
            bounds = {bound: count for bound, count in point.get(metric, [])}
            for bound, count in value:
                bounds[bound] = bounds.get(bound, 0) + count
            point[metric] = [[bound, bounds[bound]] for bound in sorted(bounds)]
        else:
            samples.setdefault(metric, []).append(value)


def of(samples):
    return {metric: statistics.median(values) for metric, values in samples.items() if values}


def ratio(above, below):
    """The median of the ratios round by round: a slow minute of the machine is in both sides of each."""
    pairs = [(a, b) for a, b in zip(above, below) if b]
    if not pairs:
        return None
    if len(above) != len(below):
        return statistics.median(above) / statistics.median(below)
    return statistics.median(a / b for a, b in pairs)


def spread(values):
    """(smallest, largest)."""
    return min(values), max(values)
