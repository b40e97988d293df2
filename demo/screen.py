"""Screen: what the demo shows. Colours are few and plain, to be read on dark and light alike."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.table import Table

from demo.move import Move

WIDTH = 80

_INTRODUCTION = """\
A mock cluster of three brokers that offer what Kafka 3.6 does (Produce 9, \
Fetch 15), a proxy before each, a producer and a consumer that know only the \
proxies. Leaders move while records flow. After a move, Metadata gives the \
former leader for another {lag_ms:.0f} ms, as ZooKeeper clusters do.
Recovery runs from the move to the first record produced after it: to its \
acknowledgement (Produce), to its arrival at the consumer (Fetch)."""


class Screen:
    """Lines on a console; on a terminal also a changing status line below them."""

    def __init__(self, plain: bool) -> None:
        """plain: no colours, no changing line, also on a terminal."""
        self._console = Console(force_terminal=False if plain else None, highlight=False)
        if not self._console.is_terminal:
            self._console.width = WIDTH

    def introduce(self, lag_ms: float) -> None:
        """Say what will be shown."""
        self._console.print("[bold]Leader moves, with and without leader hints[/]\n")
        self._console.print(_INTRODUCTION.format(lag_ms=lag_ms), width=WIDTH)

    @contextmanager
    def round(self, number: int, rounds: int, hints_on: bool) -> Iterator[None]:
        """Head the lines of a round; the status line stays until the block ends."""
        title = f"Round {number} of {rounds}, hints {'on' if hints_on else 'off'}"
        self._console.print(f"\n[bold]{title}[/]")
        with self._console.status(title, spinner_style="default"):
            yield

    def move(self, move: Move) -> None:
        """Show one move."""
        hold = f"held {move.hold_ms:.0f} ms"
        hints = f"[bold green]hint[/] x{len(move.hints)}, {hold}" if move.hints else "no hint"
        self._console.print(
            f"  partition {move.partition}: {move.leader_before} -> {move.leader}"
            f"   Fetch {_ms(move.fetch_ms)}   Produce {_ms(move.produce_ms)}   {hints}"
        )

    def summarize(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Show the closing table."""
        table = Table(box=box.SIMPLE_HEAD if self._console.is_terminal else box.ASCII2)
        table.add_column("")
        table.add_column("hints off", justify="right")
        table.add_column("hints on", justify="right", style="bold")
        for row in rows:
            table.add_row(*row)
        self._console.print()
        self._console.print(table)

    def passed(self) -> None:
        """Say that the demo passed."""
        self._console.print(
            "[bold green]PASSED[/]: all traffic went through the proxy, every hint came from it "
            "and was right, nothing was lost or doubled."
        )

    def failed(self, faults: Sequence[str]) -> None:
        """Say why the demo failed."""
        self._console.print("[bold red]FAILED[/]:")
        for fault in faults:
            self._console.print(f"  - {fault}", markup=False)


def _ms(value: float | None) -> str:
    return "   none" if value is None else f"{value:4.0f} ms"
