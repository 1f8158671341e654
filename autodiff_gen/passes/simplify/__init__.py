"""Less to compute on every target: constants, equal values, joined values, dead results."""
