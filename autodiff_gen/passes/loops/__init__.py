"""From a group of nodes to the loops that compute it: which loops there are, and what is in memory between them."""
