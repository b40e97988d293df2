"""Values as people read them."""

from typing import Final

from leader_hints_report.report.listings import Kind, Value
from leader_hints_report.text import escape

_UNITS: Final = ((86_400_000.0, "d"), (3_600_000.0, "h"), (60_000.0, "min"), (1000.0, "s"))


def milliseconds(value: float) -> str:
    """A time in the largest unit of which it is at least one, to three digits."""
    for size, unit in _UNITS:
        if abs(value) >= size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value)} ms"


def size(value: float) -> str:
    """Bytes in the largest unit of which there is at least one, by thousands, to three digits."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if abs(value) >= 10.0**power:
            return f"{_three(value / 10.0**power)} {unit}"
    return f"{value:.0f} B"


def price(value: float) -> str:
    """An amount of money, to the hundredth."""
    return f"{value:,.2f}".replace(",", "\u202f")


def count(value: float) -> str:
    """A number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")


def rate(value: float) -> str:
    """A number a day: with three digits where it is small."""
    return count(value) if abs(value) >= 100 else _three(value)


def show(kind: Kind, value: Value) -> str:
    """A value of a listing; nothing for one that is absent."""
    if value is None:
        return ""
    match kind:
        case Kind.MS:
            return milliseconds(float(value))
        case Kind.SECONDS:
            return milliseconds(float(value) * 1000)
        case Kind.COUNT:
            return count(float(value))
        case Kind.RATE:
            return rate(float(value))
        case Kind.BYTES:
            return size(float(value))
        case Kind.PRICE:
            return price(float(value))
        case Kind.SHARE:
            return f"{float(value):.1%}".replace("%", " %")
        case Kind.YES:
            return "yes" if value else "no"
        case Kind.TIME:
            return str(value).replace("T", " ")[:19]
        case Kind.TEXT | Kind.DAY:
            return escape(str(value))


def _three(value: float) -> str:
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text
