"""Import networks of ONNX: float graphs of opset 13 and later, as Keras, PyTorch, and others write them."""
