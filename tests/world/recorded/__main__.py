"""Record real brokers again; needs Java and Maven as the tests on real brokers do."""

import argparse

from tests.world.recorded.real import CLUSTERS, record
from tests.world.recorded.recording import save


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.world.recorded", description=__doc__)
    parser.add_argument("clusters", nargs="*", help=f"some of {', '.join(CLUSTERS)}; all")
    for name in parser.parse_args().clusters or CLUSTERS:
        recording = record(name)
        file = save(recording)
        print(f"{name}: {len(recording.runs)} runs, {file.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
