"""How the values of an entry share the arena: an order of its steps with a low peak of live bytes, and offsets."""
