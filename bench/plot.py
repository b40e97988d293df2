"""The plot of the stalls: for each arm, which share of the moves cost at most so much."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl

from bench.stall import Sample

mpl.use("svg")
from matplotlib import pyplot

#: Told apart by people who do not see colours: by the dashes too.
_STYLES = (("#b2182b", "--"), ("#2166ac", "-"), ("#555555", ":"))


def plot_stalls(samples: Mapping[str, Sample], file: Path) -> None:
    """Draw the distributions of produce and consume stalls side by side, as SVG."""
    # The same samples give the same file, byte for byte.
    mpl.rcParams["svg.hashsalt"] = "stalls"
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, kind in zip(axes, ("produce", "consume"), strict=True):
        for (label, sample), (colour, dashes) in zip(samples.items(), _STYLES, strict=False):
            values = sorted(getattr(sample, kind))
            shares = [100 * (i + 1) / len(values) for i in range(len(values))]
            axis.step(values, shares, where="post", label=label, color=colour, linestyle=dashes)
        axis.set_xscale("log")
        axis.set_xticks([10, 20, 50, 100, 200, 500, 1000])
        axis.xaxis.set_major_formatter(mpl.ticker.ScalarFormatter())
        axis.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        axis.set_xlabel(f"stall at a leader move, {kind} (ms)")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of moves (%)")
    axes[0].legend(loc="lower right", frameon=False)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
