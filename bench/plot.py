"""The plots: what leader moves cost at most, by share of the moves; and CPU seconds by work."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl

from bench.stall import Sample
from bench.statistics import interval

mpl.use("svg")
from matplotlib import pyplot
from matplotlib.figure import Figure

#: Distinguished by the dashes too, for people who do not see colours.
_STYLES = (("#b2182b", "--"), ("#2166ac", "-"), ("#555555", ":"))


def plot_stalls(samples: Mapping[str, Sample], file: Path) -> None:
    """Draw the distributions of produce and consume stalls side by side, as SVG."""
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
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    # The same figures give the same file, byte for byte.
    mpl.rcParams["svg.hashsalt"] = "leader-hints"
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)


def plot_cost(
    cpu: Mapping[str, Mapping[str, Sequence[float]]], most: Mapping[str, float], file: Path
) -> None:
    """Draw the CPU seconds of each work over the first arm's median, with their intervals, as SVG.

    ``cpu``: the rounds' seconds by arm and work. ``most``: the target of each work, for the last
    arm.
    """
    works = list(most)
    figure, axis = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    base = {work: median(next(iter(cpu.values()))[work]) for work in works}
    for row, ((label, seconds), (colour, _)) in enumerate(
        zip(cpu.items(), (_STYLES[2], *_STYLES[:2]), strict=True)
    ):
        offset = 0.22 * (row - 1)
        over = {work: [second / base[work] for second in seconds[work]] for work in works}
        middles = [median(over[work]) for work in works]
        around = [
            [
                abs(interval(over[work])[end] - middle)
                for work, middle in zip(works, middles, strict=True)
            ]
            for end in (0, 1)
        ]
        places = [number + offset for number in range(len(works))]
        axis.barh(places, middles, 0.2, xerr=around, label=label, color=colour, ecolor="black")
    for number, work in enumerate(works):
        axis.plot([most[work]] * 2, [number - 0.36, number + 0.36], color="black", linestyle=":")
    axis.set_yticks(range(len(works)), works)
    axis.invert_yaxis()
    axis.set_xlabel("CPU seconds over HAProxy's; dotted: the target with hints on")
    axis.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    _save(figure, file)
