"""Print the C of a 784-32-10 classifier and its training step: python main.py > model.c"""

from autodiff_gen.frontends.graph import (
    Interpreter,
    Param,
    backward,
    grads,
    log_softmax,
    matmul,
    nll_loss,
    sigmoid,
)

image = Param(None, shape=(1, 784), var_name="input")
label = Param(None, shape=(1, 10), var_name="output")
w1 = Param(None, shape=(32, 784), var_name="w1")
w2 = Param(None, shape=(10, 32), var_name="w2")

loss = nll_loss(log_softmax(matmul(sigmoid(matmul(image, w1.t())), w2.t())), label)
ops = backward(loss, [w1.id, w2.id]).build()
c = Interpreter(ops, [w1, w2, image, label])
print(c.gen_code())
print(c.gen_sgd(grads, [w1.id, w2.id]))
