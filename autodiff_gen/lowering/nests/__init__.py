"""From a loop nest to its C: the statements, their order, and what they read and write."""
