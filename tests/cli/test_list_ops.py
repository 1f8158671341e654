"""docs/operations.md agrees with the registry and the modules."""

from __future__ import annotations

from checkout import ROOT

from autodiff_gen import functional, nn, optim
from autodiff_gen.cli.list_ops import markdown
from autodiff_gen.cli.main import main
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.op_kinds import Fused, Leaf

PAGE = ROOT / "docs" / "operations.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), (
        "run python -m autodiff_gen ops --markdown > docs/operations.md"
    )


def test_the_command_prints_the_page(capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["ops", "--markdown"]) == 0
    assert capsys.readouterr().out == markdown()


def test_it_names_everything() -> None:
    page = markdown()
    for name, op in OPS.items():
        assert (f"| `{name}` |" in page) == (not isinstance(op.lower, Leaf | Fused))
    layers = [k for k in nn.__all__ if k not in ("Buffer", "Module", "Parameter", "QuantizedParameter")]
    for name in (*functional.__all__, *layers, "SGD", "AdamW", "CosineAnnealingLR", "xavier_uniform"):
        assert f"| `{name}(" in page or name == "torch_lacks", name
    assert {k for k in optim.__all__ if k[0].isupper()} - {"Gradients", "Optimizer", "State", "Step"} <= {
        line.split("(")[0].removeprefix("| `") for line in page.splitlines()
    }


def test_what_a_row_tells() -> None:
    page = markdown()
    for row in (
        "| `tanh` | `ag_tanhf(a)` | yes | yes | `torch.tanh(a)` |",
        "| `add` | `a + b` | yes | linear | `a + b` |",
        "| `lt` | `a < b` | no | - | `a < b` |",
        "| `matmul` | kernel `gemm`, `gemv` or `ger` | yes | yes | `torch.matmul(a, b)` |",
        "| `softmax(input, dim)` | exp(input) / sum(exp(input)) along `dim`, without overflow. | `dtype` |",
        "| `Linear(in_features, out_features, bias=True)` | input . weight' + bias: [..., in_features] -> "
        "[..., out_features], with weight [out_features, in_features] and bias [out_features]. | `device`, `dtype` |",
    ):
        assert f"\n{row}\n" in page, row
