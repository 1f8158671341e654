"""From a group of nodes to the loops that compute it, and the values that the loops store for each other."""
