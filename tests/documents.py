"""Markdown as the tests read it: fenced blocks with where they stand, and what a comment before one says about it.

Rules kept here:
- ```python blocks are executed, in order, in one namespace per file; ```console blocks are executed through the shell;
- `<!-- not executed: reason -->` before a block leaves it out;
- `<!-- executed as evidence: reason -->` before a block leaves it to tests/evidence, where what it needs is there;
- `<!-- executed before: reason`, lines of Python, `-->` before a block gives it what the reader need not see;
- `<!-- written to: NAME -->` before a block of another language writes it to that file;
- blocks of any other language are only read.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)?[^\n`]*\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"<!--(?P<text>.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    line: int  # of the document, where the text begins
    text: str
    before: str = ""  # Python that is executed first, unseen
    excused: str = ""  # why the block is not executed
    evidence: str = ""  # why it is executed by tests/evidence alone
    file: str = ""  # where the block is written to


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    expected: str | None  # None: nothing follows, the command has to succeed


def parse_blocks(document: str) -> list[Block]:
    fences = list(FENCE.finditer(document))
    ends = [0, *(fence.end() for fence in fences)]
    return [parse_block(fence, document[end : fence.start()]) for fence, end in zip(fences, ends, strict=False)]


def parse_block(fence: re.Match[str], text_before: str) -> Block:
    indent = fence["indent"]
    body = "".join(line.removeprefix(indent) for line in fence["body"].splitlines(keepends=True))
    line = fence.string.count("\n", 0, fence.start("body")) + 1
    said = [comment["text"].strip() for comment in COMMENT.finditer(text_before)]
    before = [text.split("\n", 1)[1] for text in said if text.startswith("executed before:") and "\n" in text]
    excuses = [text.removeprefix("not executed:").strip() for text in said if text.startswith("not executed:")]
    evidence = [
        text.removeprefix("executed as evidence:").strip() for text in said if text.startswith("executed as evidence:")
    ]
    files = [text.removeprefix("written to:").strip() for text in said if text.startswith("written to:")]
    return Block(
        fence["language"] or "", line, body, "\n".join(before), "".join(excuses), "".join(evidence), "".join(files)
    )


def parse_commands(block: Block) -> list[Command]:
    """The `$` lines of a console block, each with the output that is shown under it."""
    lines = block.text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise ValueError(f"line {block.line}: a console block begins with a `$ command` line")
    return [parse_command(lines[start:end], block.line + start) for start, end in pairwise([*starts, len(lines)])]


def parse_command(lines: list[str], line: int) -> Command:
    words = [lines[0].removeprefix("$ ")]
    rest = lines[1:]
    while words[-1].endswith("\\"):
        words.append(rest.pop(0).removeprefix("> "))
    return Command(line, "\n".join(words), "\n".join(rest).strip("\n") or None)


def agrees(output: str, expected: str) -> bool:
    """Whether the output is as shown: a line `...` stands for any lines, `...` within a line for any text in it."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.rstrip().split("..."))) + r"\n"
        for line in expected.strip("\n").splitlines()
    )
    printed = "".join(f"{line.rstrip()}\n" for line in output.strip("\n").splitlines())
    return re.fullmatch(pattern, printed) is not None
