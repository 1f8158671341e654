"""Which elementwise ops, reductions and picks become one loop nest."""
