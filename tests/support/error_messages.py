"""The messages that a user can see, as templates: `{}` is a part that varies. Messages of Python are read from the
syntax trees of all places that make an exception of ours, messages of C and of the shell from their text."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

from checkout import ROOT
from other_messages import other_templates

SOURCES = (
    *sorted((ROOT / "autodiff_gen").rglob("*.py")),
    *sorted((ROOT / "site_scons").rglob("*.py")),
    ROOT / "SConstruct",
    *sorted((ROOT / "platformio").glob("**/*.py")),
)
# Exceptions that become a message: those below AutodiffError, and what argparse, SCons and importers make of theirs.
# Others are ours, and are shown with a traceback: AssertionError, TypeError, ValueError, NotImplementedError.
BASES = {
    "AutodiffError",
    "ArgumentTypeError",
    "_UsageError",
    "UserError",
    "Unsupported",
    "Mistake",
    "UnitTestSuiteError",
}
FUNCTIONS = {"fail": 0}  # print a message: which argument it is
METHODS = {
    ("problems", "add"): 1,
    ("self", "problem"): 1,
    ("stderr", "write"): 0,
    ("warnings", "warn"): 0,
}  # collect one, by the name of the object
ANYTHING = frozenset(("{}",))
Templates = frozenset[str]
Function = ast.FunctionDef | ast.Lambda


@dataclass
class Index:
    """Functions and classes of all sources by name, and where a function is written."""

    functions: dict[str, list[ast.FunctionDef]] = field(default_factory=lambda: defaultdict(list))
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    file: dict[ast.AST, Path] = field(default_factory=dict)
    calls: list[ast.Call] = field(default_factory=list)
    errors: set[str] = field(default_factory=set)


@cache
def index() -> Index:
    made = Index()
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        made.file[tree] = path
        open_nodes: list[ast.AST] = [tree]
        for node in open_nodes:  # grows
            inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
            made.parents |= dict.fromkeys(inner, node)
            open_nodes += inner
            if isinstance(node, ast.Call):
                made.calls.append(node)
            elif isinstance(node, ast.FunctionDef):
                made.functions[node.name].append(node)
            elif isinstance(node, ast.ClassDef):
                made.classes[node.name] = node
    made.errors = set(BASES)
    while True:
        more = {
            name
            for name, node in made.classes.items()
            if any(_name(base) in made.errors for base in node.bases)
        }
        if more <= made.errors:
            return made
        made.errors |= more


def _name(node: ast.AST | None) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _around(node: ast.AST, kind: type) -> ast.AST | None:
    found = index().parents.get(node)
    while found is not None and not isinstance(found, kind):
        found = index().parents.get(found)
    return found


def _path(node: ast.AST) -> Path:
    while node in index().parents:
        node = index().parents[node]
    return index().file[node]


def _called(call: ast.Call) -> list[ast.FunctionDef]:
    """The functions that a call may mean: of the same file, otherwise of any; a method if it is an attribute."""
    name = _name(call.func)
    found = index().functions.get(name, index().functions.get(name.removeprefix("_"), []))
    if isinstance(call.func, ast.Name):
        found = [f for f in found if not isinstance(index().parents[f], ast.ClassDef)]
    near = [f for f in found if _path(f) == _path(call)]
    return near or found


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    names = [a.arg for a in function.args.args]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    given = dict(zip(names, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    defaults = function.args.defaults
    for a, default in zip(
        function.args.args[len(function.args.args) - len(defaults) :], defaults, strict=True
    ):
        given.setdefault(a.arg, default)
    return given


def _joined(values: list[ast.expr], known: Mapping[str, Templates], depth: int, part: bool) -> Templates:
    inner = [v.value if isinstance(v, ast.FormattedValue) else v for v in values]
    texts = [templates_of(v, known, depth, part and not isinstance(v, ast.Constant)) for v in inner]
    return frozenset(map("".join, product(*texts)))


def templates_of(
    expression: ast.expr, known: Mapping[str, Templates], depth: int = 0, part: bool = False
) -> Templates:
    """The texts that an expression may have. known: the texts of parameters of the function around it; part: it is
    inserted into another text, where only parameters are followed."""
    match expression:
        case ast.Constant(value=str(text)):
            return frozenset((text,))
        case ast.JoinedStr(values=values):
            texts = _joined(values, known, depth, True)
            passed_on = depth < 3 and all(words(text) < 2 for text in texts)
            return _joined(values, known, depth + 1, False) if passed_on else texts
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Name(id=name) if name.isupper() and (text := _constant(name, expression)):
            return frozenset((text,))
        case _ if part or depth > 3:
            return ANYTHING
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = templates_of(left, known, depth), templates_of(right, known, depth)
            return frozenset(map("".join, product(*ends)))
        case ast.IfExp(body=one, orelse=other):
            return templates_of(one, known, depth) | templates_of(other, known, depth)
        case ast.BoolOp(values=values):
            return frozenset().union(*(templates_of(value, known, depth) for value in values))
        case ast.Name(id=name):
            return _assigned(name, expression, known, depth)
        case ast.Call():
            found = [f for f in _called(expression) if _texts(f)]
            return frozenset(t for f in found for t in _returned(f, expression, known, depth)) or ANYTHING
    return ANYTHING


def _constant(name: str, use: ast.expr) -> str | None:
    """A text that the file assigns to a name outside of functions."""
    tree = next(tree for tree, path in index().file.items() if path == _path(use))
    assert isinstance(tree, ast.Module)
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and _name(node.targets[0]) == name
            and isinstance(node.value, ast.Constant)
        ):
            return node.value.value if isinstance(node.value.value, str) else None
    return None


def _assigned(name: str, use: ast.expr, known: Mapping[str, Templates], depth: int) -> Templates:
    """The values that the function around the use assigns to a variable."""
    function = _around(use, ast.FunctionDef)
    found: set[str] = set()
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign) and any(_name(t) == name for t in node.targets):
            found |= templates_of(node.value, known, depth + 1)
    return frozenset(found) or ANYTHING


def _texts(function: ast.FunctionDef) -> list[ast.expr]:
    """The results of the function: texts, or exceptions of ours."""
    kind = ast.unparse(function.returns).removesuffix(" | None") if function.returns is not None else ""
    if kind not in {"str", "Exception", *index().errors}:
        return []
    own = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
    return [n.value for n in own if n.value is not None]


def _returned(
    function: ast.FunctionDef, call: ast.Call, known: Mapping[str, Templates], depth: int
) -> Iterator[str]:
    given = {
        name: templates_of(value, known, depth + 1) for name, value in _arguments(function, call).items()
    }
    for value in _texts(function):
        if isinstance(value, ast.Call) and _raised(value, function) is not None:
            yield from _constructed(value, given, depth + 1)
        else:
            yield from templates_of(value, given, depth + 1)


def _raised(call: ast.Call, function: ast.FunctionDef | None) -> str | None:
    """The class of an exception that a call makes: by its name, or by a parameter `type[...]` of the function."""
    name = _name(call.func)
    if name in index().errors:
        return name
    for a in function.args.args if function is not None else ():
        if a.arg == name and isinstance(a.annotation, ast.Subscript) and _name(a.annotation.value) == "type":
            return "AutodiffError"
    return None


def _constructed(call: ast.Call, known: Mapping[str, Templates], depth: int = 0) -> Templates:
    """The message of an exception: the first argument, or the message that the class makes."""
    made = index().classes.get(_name(call.func))
    for function in made.body if made is not None else ():
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            given = {k: templates_of(v, known, depth + 1) for k, v in _arguments(function, call).items()}
            for inner in ast.walk(function):
                if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "super().__init__":
                    parents = [b for b in made.bases if _name(b) in index().classes]
                    above = ast.Call(func=parents[0], args=inner.args, keywords=inner.keywords)
                    return _constructed(above, given, depth + 1)
    return templates_of(call.args[0], known, depth) if call.args else ANYTHING


def _sites() -> Iterator[tuple[ast.Call, Templates]]:
    """Every call that makes a message, with its texts. Calls of a function give the texts of its arguments."""
    passed = {id(f): text for f, text in _passing_on()}
    for node in index().calls:
        function = _enclosing(node)
        name = _name(node.func)
        returned = function is not None and _around(node, ast.Return) is not None and _texts(function)
        if returned or ast.unparse(node.func).startswith("super()"):
            continue
        if _raised(node, function) is not None:
            yield node, _constructed(node, {})
        elif isinstance(node.func, ast.Attribute) and (_name(node.func.value), name) in METHODS:
            yield node, templates_of(node.args[METHODS[_name(node.func.value), name]], {})
        elif name in FUNCTIONS and isinstance(node.func, ast.Name):
            if function is None or id(function) not in passed:
                yield node, templates_of(node.args[FUNCTIONS[name]], {})
        else:
            for f in _called(node):
                if id(f) in passed and isinstance(node.func, ast.Name):
                    given = {k: templates_of(v, {}) for k, v in _arguments(f, node).items()}
                    yield node, templates_of(passed[id(f)], given)
                elif _name(f.returns) in index().errors | {"Exception"}:
                    yield node, frozenset(_returned(f, node, {}, 0))


def _enclosing(node: ast.AST) -> ast.FunctionDef | None:
    found = _around(node, ast.FunctionDef)
    return found if isinstance(found, ast.FunctionDef) else None


def _passing_on() -> Iterator[tuple[ast.FunctionDef, ast.expr]]:
    """Functions that print a message with their arguments in it, and are called by name."""
    called = {_name(node.func) for node in index().calls if isinstance(node.func, ast.Name)}
    for node in index().calls:
        function = _enclosing(node)
        if function is None or function.name not in called or ast.unparse(node.func) not in FUNCTIONS:
            continue
        text = node.args[FUNCTIONS[node.func.id]]
        names = {a.arg for a in function.args.args} - {"self"}
        if isinstance(text, ast.JoinedStr) and any(_name(n) in names for n in ast.walk(text)):
            yield function, text


def _normalised(text: str) -> str:
    return re.sub(r"(\{\})+", "{}", " ".join(text.removeprefix("Error: ").split()))


def words(template: str) -> int:
    """How many words a template has by which it can be recognised."""
    return len(re.findall(r"[A-Za-z]{2,}", template))


def python_templates() -> dict[str, str]:
    """Each template with a place where it is made."""
    found: dict[str, str] = {}
    for node, templates in _sites():
        where = f"{_path(node).relative_to(ROOT)}:{node.lineno}"
        for text in map(_normalised, templates):
            found.setdefault(text, where)
    return found


@cache
def templates() -> dict[str, str]:
    """All, with a place of each; without those that have less than two words: they pass on another's message."""
    found = other_templates() | python_templates()
    return {text: where for text, where in found.items() if words(text) > 1}
