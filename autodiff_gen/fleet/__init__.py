"""A fleet: many boards that train one model, each on its own samples."""
