"""Where buffers and states are stored, and what steps move of them."""
