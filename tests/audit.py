"""Holds constraints.txt against the advisories that are known, with pip-audit.

With ``--where-reachable`` a machine that cannot ask for them says so, and does not fail. What was
asked and answered is never passed over: a package with a known vulnerability fails it either way.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SECONDS = 300


def main(arguments: list[str]) -> int:
    """Return the exit code."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"),
            *("--disable-pip", "--no-deps", "--requirement", str(ROOT / "constraints.txt")),
        ],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        packages = []
    asked = [package for package in packages if "skip_reason" not in package]
    known = [
        f"{package['name']} {package['version']}: {', '.join(one['id'] for one in known)}"
        for package in asked
        if (known := package["vulns"])
    ]
    for one in known:
        print(one)
    print(f"{len(asked)} of {len(packages)} packages were held against advisories")
    if known:
        return 1
    if packages and len(asked) == len(packages):
        return 0
    skipped = [package["skip_reason"] for package in packages if "skip_reason" in package]
    reasons = [*skipped, *done.stderr.strip().splitlines()[-1:], "no answer"]
    print(f"NOT AUDITED: {reasons[0][:300]}")
    return 0 if "--where-reachable" in arguments else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
