"""Drawing: a figure as SVG that takes its colours and letters from the page around it.

Colours are drawn as placeholders, which are replaced by the page's CSS variables: so one SVG is
legible on light and on dark. Text stays text. Each figure is drawn twice, since letters that are
scaled down with a wide figure cannot be read on a phone; the page shows the one that fits.

Tested in ``tests/pipeline/report/test_figures.py``.
"""

import io
import re
import warnings
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Widths in pixels of the page: of a screen, and of what is left of a phone's.
WIDE: Final = 860
NARROW: Final = 340


class Ink(StrEnum):
    """What is drawn with; the value is the placeholder of the page's ``--name``."""

    TEXT = "#fe0001"
    FAINT = "#fe0002"
    #: For people who do not see colours they differ in dashes, hatches or marks, too.
    WITH = "#fe0003"
    WITHOUT = "#fe0004"
    OTHER = "#fe0005"
    #: Nearly the page.
    NOTHING = "#fe0006"
    #: From little to much.
    HEAT_1 = "#fe0011"
    HEAT_2 = "#fe0012"
    HEAT_3 = "#fe0013"
    HEAT_4 = "#fe0014"
    HEAT_5 = "#fe0015"

    @property
    def variable(self) -> str:
        """The name of the CSS variable."""
        return f"--{self.name.lower().replace('_', '-')}"


HEAT: Final = (Ink.HEAT_1, Ink.HEAT_2, Ink.HEAT_3, Ink.HEAT_4, Ink.HEAT_5)

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    # A name from the network is no formula.
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "axes.edgecolor": Ink.FAINT,
    "axes.labelcolor": Ink.TEXT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": Ink.FAINT,
    "grid.linewidth": 0.6,
    "hatch.color": Ink.TEXT,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "text.color": Ink.TEXT,
    "xtick.color": Ink.FAINT,
    "xtick.labelcolor": Ink.TEXT,
    "ytick.color": Ink.FAINT,
    "ytick.labelcolor": Ink.TEXT,
}

#: The page has fonts of its own; and names of groups are the same in all figures, so no names.
_NEEDLESS: Final = re.compile(
    r"<metadata>.*?</metadata>|<style .*?</style>| font-family: [^;]*;|(?<=<g) id=\"[^\"]*\"",
    re.DOTALL,
)

#: Draws into a figure whose width is set; it may set the height.
Draw = Callable[[Figure, int], None]


class Drawing(NamedTuple):
    """One figure in both forms."""

    wide: Markup
    narrow: Markup


def draw(alt: str, into: Draw) -> Drawing:
    """Draw a figure wide and narrow. ``alt``: what it shows, as text."""
    return Drawing(_svg(alt, into, WIDE), _svg(alt, into, NARROW))


def set_height(figure: Figure, pixels: float) -> None:
    """Give a figure its height."""
    figure.set_figheight(pixels / 72)


def put_legend(axes: Axes, columns: int) -> None:
    """Put the legend above the axes, where it hides nothing."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.6,
        columnspacing=1.0,
    )


def _svg(alt: str, into: Draw, width: int) -> Markup:
    # Ids follow from what is drawn: the same input gives the same page. Two figures share none, for
    # what stands in a hidden one cannot be referred to.
    style = {**_STYLE, "svg.hashsalt": f"{alt} {width}"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(width / 72, 4), dpi=72, layout="constrained")
        into(figure, width)
        out = io.StringIO()
        with warnings.catch_warnings():
            # Letters are drawn by the browser, with its fonts.
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = _NEEDLESS.sub("", text[text.index("<svg ") :])
    for ink in Ink:
        text = text.replace(ink.value, f"var({ink.variable})")
    opening, rest = text.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', opening)
    assert box is not None
    label = Markup.escape(alt)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} role="img" '
        f'aria-label="{label}" style="max-width: {width}px">{rest}'
    )
