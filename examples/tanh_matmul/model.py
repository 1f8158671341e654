"""loss = sum(tanh(A . B)) of A[5, 4] and B[4, 8], and its gradients, as one C function."""

import autodiff_gen as ag
from autodiff_gen import functional as F

a, b = ag.Input("a", (5, 4)), ag.Input("b", (4, 8))
loss = F.sum(F.tanh(a @ b))
da, db = ag.grad(loss, [a, b])

functions = [ag.function([a, b], {"loss": loss, "da": da, "db": db}, "step")]
