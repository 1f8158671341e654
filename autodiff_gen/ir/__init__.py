"""The intermediate representation: types, values, nodes, graphs, and what they tell without an op or a pass."""
