"""Import networks of PyTorch: a module (export.py), or a file that torch.export.save wrote (load.py)."""
