# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of a Markdown page, with what the line above each says is to be done with it.

    <!-- file: NAME -->       the block is a file: it is written before what follows is run
    <!-- same as: PATH -->    the same, and it must be what the tree has at PATH
    <!-- run -->              commands (lines that begin with "$ "), each with the output it must have
    <!-- not run: WHY -->     none of these

A block of ```text needs no marker. In an output, "…" stands for anything within a line.
"""

import dataclasses
import re


@dataclasses.dataclass
class Block:
    line: int       # of its fence, from 1
    language: str
    action: str     # file, same as, run, not run; or "" where nothing is said
    argument: str
    text: str


@dataclasses.dataclass
class Command:
    text: str
    output: str     # what it must print


MARKER = re.compile(r"<!-- (file|same as|run|not run)(?:: (.+))? -->")
FENCE = re.compile(r"```(\w*)")


def blocks_of(page):
    """The blocks of a page's text, in order."""
    blocks, lines, at, marker = [], page.split("\n"), 0, None
    while at < len(lines):
        fence = FENCE.fullmatch(lines[at])
        if fence:
            end = lines.index("```", at + 1)
            action, argument = marker.groups() if marker else ("", None)
            text = "".join(line + "\n" for line in lines[at + 1:end])
            blocks.append(Block(at + 1, fence[1], action, argument or "", text))
            at = end
        marker = MARKER.fullmatch(lines[at])
        at += 1
    return blocks


def commands_of(block):
    """The commands of a block that is to be run."""
    commands = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], ""))
        elif commands:
            commands[-1].output += line + "\n"
        else:
            raise ValueError(f"line {block.line}: output before the first command")
    return commands


def matches(expected, output):
    """Whether an output is what a page shows."""
    pattern = "[^\n]*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, output) is not None
