"""Draws `plot.svg` from the table: the angle as it was sampled, its origin times, and the task of the arm."""

from __future__ import annotations

import csv
import datetime as dt
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 300, 56, 46, 250
TASKS = {"reach": "#dbeafe", "grip": "#fde9c8", "lift": "#d9f2dd"}


def plot(table: Path) -> str:
    """The picture of a table."""
    with open(table, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    start = seconds(rows[0]["log_time"])
    times = [seconds(row["log_time"]) - start for row in rows]

    def x(time: float) -> float:
        return LEFT + time / 4 * (WIDTH - LEFT - 20)

    def y(angle: float) -> float:
        return (TOP + BOTTOM) / 2 - angle / 30 * (BOTTOM - TOP) / 2

    lines = [text(LEFT, 24, "The joint at 10 Hz, and what the arm was doing", 15)]
    for i, row in enumerate(rows):
        end = times[i + 1] if i + 1 < len(rows) else times[i] + 0.1
        if row["/arm:task"] in TASKS:
            width, colour = x(end) - x(times[i]) + 0.3, TASKS[row["/arm:task"]]
            box = f'x="{x(times[i]):.1f}" y="{TOP}" width="{width:.1f}" height="{BOTTOM - TOP}"'
            lines.append(f'<rect {box} fill="{colour}"/>')
            if i == 0 or rows[i - 1]["/arm:task"] != row["/arm:task"]:
                lines.append(text(x(times[i]) + 4, TOP + 14, row["/arm:task"], 12))
    for angle in (-30, 0, 30):
        lines.append(f'<path d="M{LEFT} {y(angle):.1f}H{WIDTH - 20}" stroke="#9aa4b2" stroke-width="0.6"/>')
        lines.append(text(14, y(angle) + 4, f"{angle}°", 12))
    for second in range(5):
        lines.append(text(x(second) - 6, BOTTOM + 20, f"{second} s", 12))
    points = [(x(t), y(float(r["/arm/joint:angle"]))) for t, r in zip(times, rows, strict=True)]
    steps = [f"H{px:.1f}V{py:.1f}" for px, py in points[1:]]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}{''.join(steps)}"
    lines.append(f'<path d="{path}" fill="none" stroke="#1d4ed8" stroke-width="1.6"/>')
    for row, (_, py) in zip(rows, points, strict=True):
        origin = x(seconds(row["/arm/joint:angle@origin_time"]) - start)
        lines.append(f'<circle cx="{origin:.1f}" cy="{py:.1f}" r="2.2" fill="#b91c1c"/>')
    lines.append(text(LEFT, HEIGHT - 8, "blue: the value of each row; red: when that value was logged", 12))
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def text(x: float, y: float, words: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="#1f2937">{words}</text>'


def seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(plot(Path(sys.argv[1])), encoding="utf-8")
