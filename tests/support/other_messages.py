"""Messages that no exception has: texts of statuses and of the preprocessor in C, of scripts in Python and shell."""

from __future__ import annotations

import re

from checkout import ROOT

from autodiff_gen.device.errors import STATUS

TEXTS = (
    ("runtime", "*.[ch]", r'(?:case AG_\w*(?<!_OK)(?<!_MORE)|default):\s*return "([^"]+)";'),
    ("runtime", "*.h", r"^ *(AG_\w+_ERR_\w+) ="),
    ("autodiff_gen", "codegen/templates/header.h.j2", r"^ *(\{\{ P \}\}_ERR_\w+) ="),
    ("runtime", "*.[ch]", r'#error "?([^"\n]+)"?'),
    ("kernels", "**/*.[ch]", r'#error "?([^"\n]+)"?'),
    ("boards", "**/*.[ch]", r'fputs\("error: (.*?)\\n"'),
    ("examples", "**/*.[ch]", r'#error "?([^"\n]+)"?'),
    ("examples", "**/*.py", r'print\(\s*f?"error: ([^"]+)"'),
    ("", "scons", r'\bdie "([^"]+)"'),
)
INSERTED = re.compile(r'" \w+\s*"|\$\([^)]*\)|\$\w+|\$\*|\{[^}]*\}+')


def other_templates() -> dict[str, str]:
    found = {text: "autodiff_gen/device/errors.py" for number, text in STATUS.items() if number != 0}
    for folder, pattern, expression in TEXTS:
        for path in sorted((ROOT / folder).glob(pattern)):
            for text in re.findall(expression, path.read_text(), re.DOTALL | re.MULTILINE):
                found.setdefault(" ".join(INSERTED.sub("{}", text).split()), str(path.relative_to(ROOT)))
    return found
