"""SHA256SUMS, as `sha256sum --check` reads it."""

from hashlib import sha256
from pathlib import Path

CHECKSUMS = "SHA256SUMS"


def write_checksums(folder: Path) -> None:
    """Write the sums of all files in the folder into it."""
    files = sorted(file for file in folder.iterdir() if file.name != CHECKSUMS)
    lines = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
