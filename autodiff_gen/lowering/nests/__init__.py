"""From a fused node to the C of its loop nest: which loops there are, what each computes, and in which order."""
