"""The intermediate representation: types, values, nodes, graphs, and their properties that need neither ops nor
passes."""
