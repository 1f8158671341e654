"""Less to compute on every target: constants, equal values, sums over one-hot vectors, joined values, dead results."""
