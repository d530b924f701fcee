"""Checks that each header begins with what users read: the documentation of its main type begins before line 40.

The main type is the type, concept, function or variable that has the name of the file. If there is none, it is the first
documented declaration. Declarations in namespaces called detail do not count. Usage: manuals.py HEADER...; exits with 1 if a
header does not follow the rule.
"""

import re
import sys
from pathlib import Path

LIMIT = 40
NOT_A_NAME = re.compile(r'\[\[.*?(?:\]\]|$)|\b(?:COIL_[A-Z_]+|alignas)(?:\([^()]*\))?|\boperator\b.*')
NAMES = (
    r'\b(?:class|struct|union|enum(?: class)?|concept|using)\s+([A-Za-z_]\w*)',
    r'([A-Za-z_]\w*)\s*\(',
    r'([A-Za-z_]\w*)\s*[={;]',
)


def declared_name(code):
    """The name that the beginning of a declaration introduces, or '' if more of it is needed."""
    code = NOT_A_NAME.sub(' ', code)
    without_arguments = re.sub(r'<[^<>()]*>', ' ', code)
    while without_arguments != code:  # from the inside to the outside
        code, without_arguments = without_arguments, re.sub(r'<[^<>()]*>', ' ', without_arguments)
    return next((found[1] for pattern in NAMES if (found := re.search(pattern, code))), '')


def documented_declarations(text):
    """Yields (line of the documentation, name) for each documented declaration at namespace scope; of a namespace: no name.

    clang-format indents members, requires-clauses and continued lines, and nothing else."""
    depth = 0
    detail_depth = None  # the depth of braces outside the namespace detail, inside of it
    begins, head, template_depth = None, '', 0
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r'//.*', '', re.sub(r'"(?:[^"\\]|\\.)*"', '""', line))
        before, depth = depth, depth + code.count('{') - code.count('}')
        if detail_depth is not None:
            if depth <= detail_depth:
                detail_depth = None
        elif code.startswith('namespace'):
            if begins is not None:
                yield begins, ''
            begins = None
            if re.search(r'\bdetail\b', code) and depth > before:
                detail_depth = before
        elif line.startswith('///'):
            if begins is None or head:
                begins, head, template_depth = number, '', 0
        elif not line:
            begins, head = None, ''
        elif begins is not None and not line.startswith('#'):
            if not head and code.startswith('template') or template_depth > 0:
                parameters = re.sub(r'<<|<=|->|>=', '', code)
                template_depth += parameters.count('<') - parameters.count('>')
            elif head or re.match(r'[A-Za-z_\[]', code):
                head += ' ' + code
                if name := declared_name(head):
                    yield begins, name
                    begins = None


def main(files):
    bad = False
    for file in files:
        declarations = list(documented_declarations(Path(file).read_text()))
        named = [d for d in declarations if d[1] == Path(file).stem]
        begins, name = (named or declarations or [(0, '')])[0]
        if begins >= LIMIT:
            print(f'{file}:{begins}: the documentation of {name or "a namespace"} begins after line {LIMIT - 1}; '
                  'move what is above it to detail/ or to another header')
            bad = True
    return bad


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
