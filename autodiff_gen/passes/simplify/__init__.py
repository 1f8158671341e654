"""Less to compute on every target: constants, equal values, smaller operands, dead results."""
