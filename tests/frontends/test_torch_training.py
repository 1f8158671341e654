"""Losses, optimizers and schedules of PyTorch: the C trains as the module does, or one line says why not."""

import functools

import numpy as np
import pytest
import torch
from torch.optim import lr_scheduler as scheduler
from torch_optimizers import SCHEDULES

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.frontends.pytorch.schedules import schedule
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import topological
from autodiff_gen.model.loss_function import layer_of

pytestmark = pytest.mark.torch


def net_of_two(**options):
    """A torch module and its import."""
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    for name, parameter in module.named_parameters():
        parameter.requires_grad = name not in options.get("frozen", ())
    return module, ag.from_torch(module, (1, 4))


def trained_alike(module, model, loss, optimizer, schedule, steps=3):
    """Both train on the same data; returns both state_dicts."""
    generator = np.random.default_rng(5)
    n, width = 4, 4
    trainer = model.on_host(kernels="ref")
    for _ in range(steps):
        x = generator.normal(size=(n, width)).astype(np.float32)
        label = generator.integers(0, 2, n).astype(np.uint8)
        optimizer.zero_grad()
        theirs = loss(module(torch.from_numpy(x)), torch.from_numpy(label).long())
        theirs.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        assert trainer.train_step(x, label) == pytest.approx(theirs.item(), rel=1e-4)
    return trainer.state_dict(), {n: t.detach().numpy() for n, t in module.state_dict().items()}


@pytest.mark.cc
@pytest.mark.parametrize("groups", (False, True))
def test_loss_and_optimizer_of_torch_train_the_c_as_the_module(groups):
    module, net = net_of_two(frozen=("0.bias",))
    loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([0.5, 2.0]), label_smoothing=0.1)
    params = [{"params": module[0].parameters()}, {"params": module[2].parameters(), "lr": 0.01}]
    optimizer = torch.optim.Adam(params if groups else module.parameters(), lr=0.1, weight_decay=0.01)
    # a warm-up changes the rate of the optimizer when it is created
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, total_iters=4) if groups else None
    model = ag.Model.supervised(net, (4, 4), loss, optimizer, schedule=schedule)
    ours, theirs = trained_alike(module, model, loss, optimizer, schedule)
    assert model.frozen.keys() == {"0.bias"}
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
    module.load_state_dict({name: torch.from_numpy(ours[name]) for name in theirs})


OPTIMIZERS = sorted(
    name
    for name, made in vars(torch.optim).items()
    if isinstance(made, type)
    and issubclass(vars(optim).get(name, int), optim.Optimizer)
    and name != "Optimizer"
)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_of_torch_with_a_counterpart_keeps_its_settings(name):
    module, net = net_of_two()
    theirs = getattr(torch.optim, name)(module.parameters(), lr=0.125, weight_decay=0.25)
    model = ag.Model.supervised(net, (4, 4), torch.nn.CrossEntropyLoss(), theirs)
    [group] = model.optimizer.groups([state for state in model.states if state.role == "parameter"])
    assert type(model.optimizer) is getattr(optim, name) and len(group.states) == 4
    assert group.options == {key: theirs.param_groups[0][key] for key in group.options}


def test_an_optimizer_of_torch_trains_what_modules_share():
    """A module that the network has under two names, and calls twice."""

    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.by = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.by

    shared = Scale()
    module = torch.nn.Sequential(shared, torch.nn.Tanh(), shared, torch.nn.Linear(4, 2))
    net = ag.from_torch(module, (1, 4))
    theirs = torch.optim.SGD(module.parameters(), lr=0.125)
    model = ag.Model.supervised(net, (4, 4), torch.nn.CrossEntropyLoss(), theirs)
    assert not model.frozen and {s.name for s in model.states} == {n for n, _ in module.named_parameters()}


def hooked(optimizer):
    def clip(optimizer, args, kwargs):
        torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)

    optimizer.register_step_pre_hook(clip)
    return optimizer


class Own(torch.nn.MSELoss):
    pass


class MSELoss(torch.nn.Module):
    """Not PyTorch's."""


def test_optimizers_and_losses_that_cannot_be_taken_over():
    module, net = net_of_two()
    other = torch.nn.Linear(2, 2)
    mse = torch.nn.MSELoss()
    decoupled = torch.optim.Adam(module.parameters())
    decoupled.param_groups[0]["decoupled_weight_decay"] = True  # an argument since PyTorch 2.7
    cases = [
        (
            mse,
            decoupled,
            "'decoupled_weight_decay' is not supported",
        ),
        (
            mse,
            torch.optim.SGD(other.parameters()),
            r"a parameter \[2, 2\] of torch.optim.SGD belongs to no module",
        ),
        (
            mse,
            hooked(torch.optim.SGD(module.parameters())),
            r"hook clip \(test_torch_training.py:\d+\) of its steps",
        ),
        (
            mse,
            torch.optim.LBFGS(module.parameters()),
            r"torch.optim.LBFGS has no counterpart in ag.optim; use one of .* Adam,",
        ),
        (Own(), optim.SGD(), "loss: Own has no counterpart in ag.nn; write it as a function"),
        (MSELoss(), optim.SGD(), "loss: MSELoss has no counterpart in ag.nn; write it as a function"),
    ]
    for loss, optimizer, message in cases:
        with pytest.raises(ag.AutodiffError, match=message):
            ag.Model.supervised(net, (4, 4), loss, optimizer)
    message = r"the network is Sequential of PyTorch; import it: ag.from_torch\(net, input=\(4, 4\)\)"
    with pytest.raises(ag.AutodiffError, match=message):
        ag.Model.supervised(module, (4, 4), mse, optim.SGD())


def sgd_of_two():
    """An optimizer with two groups of parameters; one group has another rate."""
    first, second = (torch.zeros(1, requires_grad=True) for _ in range(2))
    return torch.optim.SGD([{"params": [first]}, {"params": [second], "lr": 0.02}], lr=0.1, momentum=0.5)


def warm_up_then_cosine(optimizer):
    parts = [scheduler.LinearLR(optimizer, 0.1, total_iters=3), scheduler.CosineAnnealingLR(optimizer, 8)]
    return scheduler.SequentialLR(optimizer, parts, [3])


MADE = {
    f"{name} {k}": lambda o, name=name, options=options: getattr(scheduler, name)(o, **options)
    for k, (name, options) in enumerate(SCHEDULES)
} | {
    "warm-up, then cosine": warm_up_then_cosine,
    "LambdaLR": lambda o: scheduler.LambdaLR(o, lambda t: 0.9**t / (1 + 0.1 * t)),
}


@pytest.mark.parametrize("name", MADE)
def test_schedules_of_torch_have_its_rates_and_momenta(name):
    optimizer = sgd_of_two()
    theirs = MADE[name](optimizer)
    ours = schedule(theirs, optimizer)
    t = ag.Input("t", ())
    bases = [group["initial_lr"] for group in optimizer.param_groups]
    momentum = ours.momentum(t)
    values = [*(ours.rate(base, t) for base in bases), *([] if momentum is None else [momentum])]
    for step in range(9):
        groups = optimizer.param_groups
        want = [*(g["lr"] for g in groups), *([] if momentum is None else [groups[0]["momentum"]])]
        assert evaluate(values, {t: step}, float_dtype="float64") == pytest.approx(want, rel=1e-6, abs=1e-9)
        optimizer.step()
        theirs.step()


class OwnLR(scheduler.StepLR):
    pass


def stepped(optimizer):
    made = scheduler.StepLR(optimizer, 3)
    optimizer.step()
    made.step()
    return made


WRONG_SCHEDULES = {
    "stepped": (stepped, r"torch.optim.lr_scheduler.StepLR has been stepped to 1; give a new one$"),
    "other": (lambda _: scheduler.StepLR(sgd_of_two(), 3), "is of another optimizer than the model's; .*StepLR$"),
    "lambda": (
        lambda o: scheduler.LambdaLR(o, lambda t: min(1.0, t / 5)),
        r"LambdaLR cannot be converted; its function takes no graph values; make a table: rates = .* and schedule=",
    ),
    "lambdas": (lambda o: scheduler.LambdaLR(o, [float, int]), "LambdaLR has a function for each group; give one for"),
    "plateau": (scheduler.ReduceLROnPlateau, "Plateau cannot be converted; give the learning rate to each training"),
    "own": (lambda o: OwnLR(o, 3), "torch.optim.lr_scheduler.OwnLR has no counterpart in ag.optim.lr_scheduler$"),
    "scale_fn": (lambda o: scheduler.CyclicLR(o, 0.1, 1, scale_fn=float), "CyclicLR has a scale_fn; use a mode"),
    "groups": (lambda o: scheduler.OneCycleLR(o, [0.1, 0.2], 9), "OneCycleLR has max_lr for each group; give one for"),
    "replaced": (
        lambda o: scheduler.SequentialLR(
            o, [scheduler.ConstantLR(o), scheduler.OneCycleLR(o, 1, 9, cycle_momentum=False)], [2]
        ),
        "a part of .*SequentialLR starts from a rate that another part has replaced$",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_SCHEDULES)
def test_schedules_that_cannot_be_taken_over(name):
    make, message = WRONG_SCHEDULES[name]
    optimizer = sgd_of_two()
    with pytest.raises(ag.AutodiffError, match=f"^schedule: .*{message}"):
        schedule(make(optimizer), optimizer)


def test_the_table_that_the_message_proposes_has_the_rates():
    rates = np.array([min(1.0, t / 5) for t in range(8)], np.float32)
    G = ag.functional
    ours = optim.lr_scheduler.LambdaLR(lambda t: G.index_select(rates, 0, G.to(G.clamp(t, max=7), "s32"))[0])
    t = ag.Input("t", ())
    rate = ours.rate(1.0, t)
    assert [float(evaluate([rate], {t: k})[0]) for k in (0, 3, 7, 50)] == pytest.approx([0.0, 0.6, 1.0, 1.0])


LOSSES = {
    "cross_entropy": (torch.nn.functional.cross_entropy, "label"),
    "partial": (
        functools.partial(torch.nn.functional.cross_entropy, weight=torch.ones(2), label_smoothing=0.1),
        "label",
    ),
    "nll_loss": (torch.nn.functional.nll_loss, "label"),
    "ours": (ag.functional.cross_entropy, "label"),
    "mse_loss": (torch.nn.functional.mse_loss, "target"),
    "logits": (torch.nn.functional.binary_cross_entropy_with_logits, "target"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_function_as_loss_is_the_layer(name):
    loss, target = LOSSES[name]
    model = ag.Model.supervised(net_of_two()[1], (4, 4), loss, optim.SGD(lr=0.1))
    function, options = getattr(loss, "func", loss), getattr(loss, "keywords", {})
    scores = torch.randn(4, 2, generator=torch.Generator().manual_seed(1))
    wanted = torch.tensor([0, 1, 1, 0]) if target == "label" else torch.rand(4, 2)
    theirs = getattr(torch.nn.functional, function.__name__)(scores, wanted, **options)
    made = layer_of(loss)(
        ag.Input("z", (4, 2)), ag.Input("y", wanted.shape, "s32" if target == "label" else "f32")
    )
    inputs = {
        n.name: n for n in (v for node in topological([made]) for v in node.results) if n.name in ("z", "y")
    }
    found = evaluate([made], {inputs["z"]: scores.numpy(), inputs["y"]: wanted.numpy()})[0]
    assert model.targets[0].name == target and float(found) == pytest.approx(theirs.item(), rel=1e-5)


def test_a_function_that_is_no_loss_of_ours():
    _, net = net_of_two()
    message = "loss: .*cosine_similarity has no counterpart in ag.nn; write it as"
    with pytest.raises(ag.AutodiffError, match=message):
        ag.Model.supervised(net, (4, 4), torch.nn.functional.cosine_similarity, optim.SGD(lr=0.1))


class Tagged(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = torch.nn.Embedding(5, 3), torch.nn.Linear(3 * 2 + 4, 2)

    def forward(self, words, x):
        return self.out(torch.cat([self.words(words).flatten(1), x], 1))


def test_supervised_takes_inputs_in_place_of_a_shape():
    module = Tagged()
    net = ag.from_torch(module, (torch.zeros(2, 2, dtype=torch.long), torch.zeros(2, 4)))
    words = ag.Input("words", (4, 2), "s32", batch_axis=0)
    x = ag.Input("x", (4, 4), batch_axis=0)
    model = ag.Model.supervised(
        net, [words, x], torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters())
    )
    assert [v.name for v in (*model.inputs, *model.targets)] == ["words", "x", "label"]
    single = ag.Model.supervised(
        lambda v: net_of_two()[1](ag.functional.to(v, "f32")), x, nn.MSELoss(), optim.SGD()
    )
    assert single.inputs == (x,)


class Neighbours(torch.nn.Module):
    """A batch that is a number: its samples are compared with others."""

    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x - x.flip(0))


@pytest.mark.cc
def test_a_network_with_its_batch_as_a_number_is_supervised_with_that_batch():
    torch.manual_seed(2)
    module = Neighbours()
    net = ag.from_torch(module, (4, 4))
    loss, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(
        ag.AutodiffError, match=r"a batch of 4, which it has as a number; give input=\(4, 3\), or"
    ):
        ag.Model.supervised(net, (2, 3), loss, optimizer)
    model = ag.Model.supervised(net, (4, 4), loss, optimizer)
    ours, theirs = trained_alike(module, model, loss, optimizer, None)
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-4, atol=1e-6, err_msg=name)
