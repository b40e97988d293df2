"""The pure tier: bytes and values. kio's readers and writers are the oracle."""
