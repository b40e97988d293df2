"""What the benchmarks work out, without a broker and without Spark."""
