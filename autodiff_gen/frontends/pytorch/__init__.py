"""Import networks of PyTorch: a module by export.from_torch, a file that torch.export.save wrote by load.from_pt2."""
