"""Results of functions that the gradient of a scan reads: computed once, in the memory of their operands."""

from __future__ import annotations

import re
from typing import Any

import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program


class Recurrent(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.out = nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(x)[0][:, -1])


def compiled(layer: Any, batch: int) -> Program:
    net = Recurrent(layer(3, 12, batch_first=True))
    model = ag.Model.supervised(
        net, input=(batch, 6, 3), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )
    return compile_model(model, "model")


def calls(text: str, function: str) -> int:
    """In train_step, which the file has first."""
    return len(re.findall(rf"ag_{function}f\w*\(", text.split("int model_predict(")[0]))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(("layer", "sigmoids", "tanhs"), [(nn.RNN, 0, 1), (nn.GRU, 2, 1), (nn.LSTM, 3, 2)])
def test_a_function_of_a_gate_is_called_once(layer: Any, sigmoids: int, tanhs: int, batch: int) -> None:
    text = emit(compiled(layer, batch))["model.c"]
    assert (calls(text, "sigmoid"), calls(text, "tanh")) == (sigmoids, tanhs), text


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM])
def test_gates_and_their_gradients_replace_the_product_of_the_input(layer: Any, batch: int) -> None:
    text = emit(compiled(layer, batch))["model.c"].split("int model_predict(")[0]
    assert re.search(r"layer_(r_z_n|i_f_g_o) = .* in place of layer_x_gates \*/", text), text
    assert re.search(r"d_layer_x_gates = .* in place of layer_(r_z_n|i_f_g_o|h_gates) \*/", text), text
