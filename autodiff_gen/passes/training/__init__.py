"""From a model to its entries: the mode, gradients, updates, constants, and the guard before the updates."""
