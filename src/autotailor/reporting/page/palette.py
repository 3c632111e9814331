"""The colours of pages and charts, for light and for dark.

Charts name colours as variables of CSS, such as ``var(--blue)``: a page that turns dark, or is printed, takes its
charts along without drawing them again. The colours of series are those of Okabe and Ito (2008), which people with any
colour vision tell apart; the dark ones are lighter by as much as contrast needs. Charts tell series apart by shape as
well.
"""

import re
from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "paper": "#f4f6f8",
    "card": "#ffffff",
    "ink": "#1b2430",
    "soft": "#526070",
    "line": "#dce2e9",
    "faint": "#eef2f6",
    "accent": "#00619c",
    "chosen": "#e3f0fa",
    "warn": "#fdf3e3",
    "good": "#006b4c",
    "bad": "#a84300",
    "blue": "#0072b2",
    "orange": "#d55e00",
    "green": "#00805c",
    "amber": "#e69f00",
    "purple": "#b0558f",
    "sky": "#56b4e9",
    "grey": "#8794a3",
}
"""Name of each colour to its value on white."""
DARK: Mapping[str, str] = {
    "paper": "#10151b",
    "card": "#19212a",
    "ink": "#e7ecf2",
    "soft": "#a9b5c2",
    "line": "#313d4a",
    "faint": "#222c37",
    "accent": "#7cc0f2",
    "chosen": "#1d3a52",
    "warn": "#3a2c12",
    "good": "#3fc196",
    "bad": "#f2894a",
    "blue": "#4fa8e0",
    "orange": "#f2894a",
    "green": "#3fc196",
    "amber": "#f0b73f",
    "purple": "#d893bf",
    "sky": "#9ad6f7",
    "grey": "#8694a4",
}
"""The same colours in the dark."""
SERIES = ("blue", "amber", "green", "purple", "orange", "sky", "grey")
"""Names of the colours of series, in the order in which they are given out."""


def color(name: str) -> str:
    """A colour as charts and style sheets name it; ``KeyError`` where there is no such colour."""
    return f"var(--{name})" if name in LIGHT else LIGHT[name]


def style_variables() -> str:
    """The variables of CSS: light ones, dark ones where the reader's system is dark, and light ones on paper."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in each.items()) for each in (LIGHT, DARK))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        "@media print { :root { color-scheme: light; } }\n"
    )


def resolved(text: str) -> str:
    """A chart with the light colours in the place of their names, for a file of its own."""
    return re.sub(r"var\(--(\w+)\)", lambda match: LIGHT[match[1]], text)
