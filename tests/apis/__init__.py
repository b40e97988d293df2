"""The pure tier: every API that is understood, against kio's generated schemas as the oracle."""
