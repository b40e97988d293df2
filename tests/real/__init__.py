"""The proxy before real brokers, used by real clients."""
