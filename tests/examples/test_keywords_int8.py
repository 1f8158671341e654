"""The quantised keyword spotter beside the float network, adapted in PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT

from autodiff_gen import nn
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, topological
from autodiff_gen.model.loader import load_model

FOLDER = ROOT / "examples" / "keywords_int8"
EPOCHS, TRAIN, LR = 4, 100, 0.05


def words() -> dict[str, Any]:
    with np.load(FOLDER / "words.npz") as file:
        return {k: file[k] for k in file.files}


def network_input(records: Any) -> Any:
    return ((records.astype(np.float32) - 128) / 64).reshape(-1, 1, 49, 10)


def float_features(x: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The float backbone's result for x."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "net", raising=False)
    import net  # type: ignore[import-not-found]

    from autodiff_gen.ir.build import make_input
    from autodiff_gen.ir.types import Type, f32

    backbone: nn.Module = net.Backbone()
    with np.load(FOLDER / "weights.npz") as weights:
        backbone.load_state_dict({k[2:]: weights[k] for k in weights.files if k.startswith("0.")})
    given = make_input("x", Type(f32, x.shape))
    y = backbone.eval()(given)
    states = {n.results[0]: n.attrs["state"].init.array() for n in topological([y]) if n.op is STATE}
    monkeypatch.delitem(sys.modules, "net", raising=False)
    return evaluate([y], {given: x, **states})[0]


@pytest.mark.slow
@pytest.mark.cc
@pytest.mark.torch
def test_it_learns_as_the_float_network_in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The accuracy on 100 words of the new voice within one point, and above that before training."""
    import torch

    data = words()
    x, label = network_input(data["new"]), data["new_label"]
    trainer = load_model("keywords_int8")[0].on_host()

    def accuracy() -> float:
        scores = [trainer.predict(x[i : i + 1]) for i in range(TRAIN, len(x))]
        return 100 * float(np.mean(np.concatenate(scores).argmax(1) == label[TRAIN:]))

    before = accuracy()
    state = trainer.state_dict()
    assert {name: a.shape for name, a in state.items()} == {"1.weight": (10, 32), "1.bias": (10,)}
    features = torch.tensor(float_features(x, monkeypatch))
    twin = torch.nn.Linear(32, 10)
    twin.load_state_dict({name[2:]: torch.tensor(a) for name, a in state.items()})
    update = torch.optim.SGD(twin.parameters(), lr=LR)
    steps = EPOCHS * TRAIN
    for k in range(steps):
        i, lr = k % TRAIN, LR * (1 - k / steps)
        trainer.train_step(x[i : i + 1], label[i : i + 1], lr=lr)
        update.param_groups[0]["lr"] = lr
        loss = torch.nn.functional.cross_entropy(
            twin(features[i : i + 1]), torch.tensor(label[i : i + 1]).long()
        )
        update.zero_grad()
        loss.backward()
        update.step()
    theirs = twin(features[TRAIN:]).argmax(1).numpy()
    by_torch = 100 * float(np.mean(theirs == label[TRAIN:]))
    assert before < 90 and abs(accuracy() - by_torch) <= 1.0 and by_torch >= 95


def test_the_backbone_costs_no_ram_but_its_activations() -> None:
    """Weights are constants; the arena holds two images of 32 channels, and a little."""
    from autodiff_gen.codegen.compiler import compile_model
    from autodiff_gen.codegen.files import emit

    program = compile_model(load_model(str(Path(FOLDER, "model.py")))[0], "keywords_int8", ("ref",))
    source = emit(program)["keywords_int8.c"]
    assert program.state_bytes < 1400
    assert 4 * program.arena_words <= 2 * 25 * 5 * 32 + 512
    assert "static const int8_t" in source and "conv2d_s8" in source
