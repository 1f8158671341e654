"""Ops over windows of images [n, h, w, c]: convolution and pooling, and their adjoints."""
