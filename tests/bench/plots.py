# SPDX-License-Identifier: MIT
"""Plots, written as SVG: a line per subject where the cost grows with something, else a bar per subject."""
import html
import math
import os

import figures

WIDTH, HEIGHT = 900, 520
LEFT, TOP, BOTTOM = 90, 56, 56
LETTER = 7.2  # how wide one is, on an average
INK, GRID = "#333", "#ddd"
TROUPE = ["#c1121f", "#f4845f", "#7f0d15"]
FLOOR = ["#555", "#999", "#bbb"]
PEERS = ["#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#0b5394", "#6aa84f", "#b45f06",
         "#674ea7", "#45818e"]


class Drawing:
    def __init__(self, width, height, title, subtitle):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="{INK}">',
                      f'<rect width="{width}" height="{height}" fill="white"/>']
        self.text(16, 24, title, size=17)
        self.text(16, 42, subtitle, fill="#777")

    def text(self, x, y, text, anchor="start", size=None, fill=INK):
        extra = f' font-size="{size}"' if size else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{extra}>'
                          f'{html.escape(text)}</text>')

    def line(self, x1, y1, x2, y2, color=GRID, width=1):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" '
                          f'stroke-width="{width}"/>')

    def bar(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')

    def curve(self, points, color, dashed, width):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dash}/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]

    def svg(self):
        return "\n".join([*self.parts, "</svg>\n"])


class Scale:
    """Logarithmic, from values to a range of the drawing."""

    def __init__(self, values, begin, end):
        self.low, self.high = math.log10(min(values)), math.log10(max(values))
        if self.high - self.low < 0.5:
            self.low, self.high = self.low - 0.25, self.high + 0.25
        self.begin, self.end = begin, end

    def at(self, value):
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        exponents = range(math.floor(self.low), math.ceil(self.high) + 1)
        decades = self.high - self.low
        steps = (1, 2, 3, 4, 5, 7) if decades < 1 else (1, 2, 5) if decades < 3 else (1,)
        for value in (step * 10.0 ** exponent for exponent in exponents for step in steps):
            if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9:
                yield value


class Places:
    """One beside the other, in their order: what no scale holds, as "idle" and 0 beside 16 and 256."""

    def __init__(self, points, begin, end):
        self.points, self.begin, self.end = points, begin, end

    def at(self, point):
        return self.begin + self.points.index(point) / max(len(self.points) - 1, 1) * (self.end - self.begin)


def colors(subjects):
    """{subject: color}: Troupe red, floors grey."""
    palettes = {"troupe": iter(TROUPE * 9), "floor": iter(FLOOR * 9), "peer": iter(PEERS * 9)}
    return {name: next(palettes[role]) for name, role in subjects.items()}


def curves(measure, metric):
    """{subject: {point: y}}, points in their order."""
    found = {}
    for name, kept in measure["subjects"].items():
        line = {point: kept["points"][point]["median"].get(metric) for point in sorted(kept["points"], key=in_order)}
        line = {point: y for point, y in line.items() if y and y > 0}
        if line:
            found[name] = line
    return found


def in_order(point):
    """Words before numbers."""
    return (1, int(point)) if point.isdigit() else (0, 0)


def explanation(measure, metric, by, scales):
    title = measure["shown"].get(metric) or ""
    unit = "" if "," in title else f"{', ' if title else ''}{measure['unit']}"
    return f"{title}{unit}{by}; medians, {scales} logarithmic; " \
           f"{'less' if measure['less_is_better'] or metric != measure['headline'] else 'more'} is better"


def draw_curves(measure, metric, lines):
    points = sorted({point for line in lines.values() for point in line}, key=in_order)
    by_number = all(point.isdigit() and int(point) > 0 for point in points)
    drawing = Drawing(WIDTH, HEIGHT, measure["title"], explanation(
        measure, metric, f", by {measure['axis']}", "both scales" if by_number else "vertical scale"))
    end = WIDTH - 30 - LETTER * max(map(len, lines))
    if by_number:
        scale = Scale(list(map(int, points)), LEFT, end)
        places = {point: scale.at(int(point)) for point in points}
    else:
        scale = Places(points, LEFT, end)
        places = {point: scale.at(point) for point in points}
    y_scale = Scale([y for line in lines.values() for y in line.values()], HEIGHT - BOTTOM, TOP)
    for value in y_scale.ticks():
        drawing.line(LEFT, y_scale.at(value), end, y_scale.at(value))
        drawing.text(LEFT - 8, y_scale.at(value) + 4, figures.tick(value), "end")
    for point, x in places.items():
        drawing.line(x, TOP, x, HEIGHT - BOTTOM)
        drawing.text(x, HEIGHT - BOTTOM + 20, binary(int(point)) if measure["axis"] == "bytes" else point, "middle")
    drawing.text((LEFT + end) / 2, HEIGHT - 12, measure["axis"], "middle")
    roles = {name: measure["subjects"][name]["role"] for name in lines}
    chosen = colors(roles)
    labels = spread_out([(y_scale.at(list(line.values())[-1]), name) for name, line in lines.items()])
    for name, line in lines.items():
        drawing.curve([(places[point], y_scale.at(y)) for point, y in line.items()], chosen[name],
                      roles[name] == "floor", 3 if roles[name] == "troupe" else 1.5)
        drawing.text(end + 12, labels[name] + 4, name, fill=chosen[name])
    return drawing.svg()


def spread_out(wanted, step=17):
    """{name: y}: as near as possible to where the lines end, and none over another."""
    placed, last = {}, -math.inf
    for y, name in sorted(wanted):
        last = max(y, last + step)
        placed[name] = last
    overflow = last - (HEIGHT - 20)
    return {name: y - overflow if overflow > 0 else y for name, y in placed.items()}


def binary(x):
    for suffix, bits in ((" Mi", 20), (" Ki", 10)):
        if x >= 1 << bits and x % (1 << bits) == 0:
            return f"{x >> bits}{suffix}"
    return str(x)


def draw_bars(measure, metric, values):
    height = TOP + 30 + 30 * len(values)
    left, right = 260, WIDTH - 90
    drawing = Drawing(WIDTH, height, measure["title"], explanation(measure, metric, "", "scale"))
    scale = Scale([*values.values(), min(values.values()) / 2], left, right)
    chosen = colors({name: measure["subjects"][name]["role"] for name in values})
    for value in scale.ticks():
        drawing.line(scale.at(value), TOP, scale.at(value), height - 26)
        drawing.text(scale.at(value), height - 10, figures.tick(value), "middle")
    for i, (name, value) in enumerate(values.items()):
        y = TOP + 6 + 30 * i
        drawing.text(left - 10, y + 15, name, "end")
        drawing.bar(left, y, scale.at(value) - left, 20, chosen[name])
        drawing.text(scale.at(value) + 6, y + 15, figures.short(value))
    return drawing.svg()


def drawn(measure, metric):
    """The drawing of a metric, or None if there is nothing to draw."""
    lines = curves(measure, metric)
    if any(len(line) > 1 for line in lines.values()):
        return draw_curves(measure, metric, lines)
    values = {subject: line[""] for subject, line in lines.items() if "" in line}
    return draw_bars(measure, metric, values) if values else None


def draw(directory, name, measure):
    """NAME.svg for what it is about, NAME-METRIC.svg for whatever else its tables show."""
    for metric in dict.fromkeys([measure["headline"], *measure["shown"]]):
        svg = drawn(measure, metric)
        if svg:
            more = "" if metric == measure["headline"] else "-" + metric.replace("_", "-")
            with open(os.path.join(directory, name + more + ".svg"), "w", encoding="utf-8") as file:
                file.write(svg)
