"""The published figures, and what their own data give."""

from decimal import Decimal

from leader_hints_report.kip951.published import Verdict, checks, published


def test_the_arithmetic_is_right_but_for_the_fall_and_one_average() -> None:
    found = {check.what: check for check in checks(published())}
    assert len(found) == 1 + 3 + 9 + 8 * 3
    odd = {what: check for what, check in found.items() if check.verdict != Verdict.AGREES}

    fall = odd.pop("p99.9, fall from baseline to KIP-951")
    assert (fall.stated, round(fall.computed, 1)) == (Decimal(88), Decimal("87.2"))
    assert fall.verdict == Verdict.DIFFERS
    baseline = odd.pop("p99.9, average of the runs, baseline")
    assert (baseline.stated, round(baseline.computed, 2)) == (Decimal(1675), Decimal("1675.67"))
    assert baseline.verdict == Verdict.CUT
    assert odd == {}


def test_a_figure_is_held_to_the_digits_it_was_published_with() -> None:
    found = {check.what: check for check in checks(published())}
    gain = found["roll, acks=1, low partitions, p99 produce, gain"]
    # (3.25 - 2.95) / 3.25 is 9.23 %: the same at one digit, another one at two.
    assert gain.verdict == Verdict.AGREES
    assert gain.computed.quantize(Decimal("0.01")) == Decimal("9.23")


def test_a_wrong_average_differs() -> None:
    data = published()
    row = data.roll.rows[0].model_copy(update={"kip_ms": Decimal(185)})
    roll = data.roll.model_copy(update={"rows": (row,)})
    changed = data.model_copy(update={"roll": roll})
    found = {check.what: check for check in checks(changed)}
    average = found["roll, acks=all, high partitions, p99 E2E, average of the runs, KIP-951"]
    assert (average.computed, average.verdict) == (Decimal(184), Verdict.DIFFERS)
