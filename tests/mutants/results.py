"""What has found each mutant so far, kept in build/mutants.json; the table of it."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

from tests.mutants.judging import Verdict
from tests.mutants.table import ROOT, Mutant

_FILE: Final = ROOT / "build" / "mutants.json"

#: By mutant, and by what it changes.
_Kept = dict[str, dict[str, dict[str, str | int]]]


class Results:
    """Verdicts by mutant. One of a mutant whose change is another by now does not count."""

    def __init__(self) -> None:
        self._kept = _read()

    def get(self, mutant: Mutant) -> Verdict | None:
        """Return the verdict on a mutant, ``None`` where there is none."""
        kept = self._kept.get(mutant.name, {}).get(_digest(mutant))
        return None if kept is None else Verdict(str(kept["by"]), int(kept["worlds"]))

    def put(self, mutant: Mutant, verdict: Verdict) -> None:
        """Keep a verdict, and what other runs of the command have found meanwhile."""
        self._kept = _read()
        self._kept[mutant.name] = {_digest(mutant): asdict(verdict)}
        _FILE.parent.mkdir(exist_ok=True)
        _FILE.write_text(json.dumps(self._kept, indent=1))

    def table(self, mutants: Iterable[Mutant]) -> Iterator[str]:
        """Yield a row for each mutant that has a verdict, and the score."""
        judged = [(mutant, verdict) for mutant in mutants if (verdict := self.get(mutant))]
        yield "| mutant | file | what it does | found by | worlds |"
        yield "|---|---|---|---|---:|"
        for mutant, verdict in judged:
            by = verdict.by or mutant.equivalent or "**nothing**"
            row = mutant.name, mutant.file, mutant.does, by, str(verdict.worlds or "")
            yield f"| {' | '.join(row)} |"
        counted = [verdict for mutant, verdict in judged if verdict.by or not mutant.equivalent]
        found = sum(bool(verdict.by) for verdict in counted)
        # Worlds that broke no rule are counted too, where a test found the mutant after them.
        worlds = sum(bool(v.by and v.worlds) and not v.by.startswith("tests/") for v in counted)
        share = found / max(len(counted), 1)
        yield ""
        yield (
            f"{found} of {len(counted)} mutants were found ({share:.1%}), {worlds} of them by "
            f"worlds; {len(judged) - len(counted)} more change nothing that matters"
        )

    def fixes(self, mutants: Iterable[Mutant]) -> Iterator[str]:
        """Yield the table of docs/reliability.md: each defect that is back, and what broke."""
        yield "| defect that is back | planted as | rule that broke | seed that finds it |"
        yield "|---|---|---|---:|"
        for mutant in mutants:
            verdict = self.get(mutant) or Verdict("")
            rule = f"`{verdict.by}`" if verdict.by else "**none**"
            seed = str(mutant.first + verdict.worlds - 1) if verdict.by else ""
            row = mutant.fix, f"`{mutant.name}`: {mutant.does}", rule, seed
            yield f"| {' | '.join(row)} |"


def _read() -> _Kept:
    kept: _Kept = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    return kept


def _digest(mutant: Mutant) -> str:
    text = "\0".join((mutant.file, mutant.old, mutant.new))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
