# SPDX-License-Identifier: MIT
"""Numbers as people read them."""


def short(value):
    """Three significant digits: 1.23 M, 45.6 k, 789, 1.20."""
    if value is None:
        return "-"
    for limit, divisor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return digits(value / divisor) + suffix
    return digits(value)


def tick(value):
    """Of a scale: 1 M, 50 k, 0.2."""
    return short(value).replace(".00", "").replace(".0 ", " ").removesuffix(".0").replace("0.50", "0.5").replace(
        "0.20", "0.2").replace("0.10", "0.1")


def digits(value):
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.01 or \
        size == 0 else f"{value:.1g}"


def table(rows, right=()):
    """Lines of columns; `right`: the columns that hold numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip()


def in_ms(metrics):
    """p50_us becomes p50_ms, and so on; histograms too."""
    found = {}
    for name, value in metrics.items():
        if name.endswith("histogram"):
            found[name] = [[bound / 1e3, count] for bound, count in value]
        else:
            found[name.replace("_us", "_ms")] = value / 1e3 if "_us" in name else value
    return found
