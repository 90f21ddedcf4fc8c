"""Print completion for a shell.

Commands, options and files are completed."""

from __future__ import annotations

import argparse

from .commands import COMMANDS
from .output import SETTINGS, print_json

EXAMPLES = """
eval "$(mtprof completion bash)"                      in ~/.bashrc
eval "$(mtprof completion zsh)"                       in ~/.zshrc
mtprof completion fish > ~/.config/fish/completions/mtprof.fish
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(options: argparse.Namespace) -> int:
    words = {name: options_of(name) for name in COMMANDS}
    if SETTINGS.json:
        print_json(words)
        return 0
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](words))
    return 0


def options_of(name: str) -> list[str]:
    """The long options of a command."""
    from .main import command_parser

    return sorted(option for option in command_parser(name)._option_string_actions if option.startswith("--"))


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f"    {name}) options='{' '.join(options)}';;" for name, options in words.items())
    return f"""_mtprof() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{' '.join([*words, '--help', '--version'])}' -- "$word")); return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _mtprof mtprof"""


def _zsh(words: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(words)


def _fish(words: dict[str, list[str]]) -> str:
    lines = ["complete -c mtprof -n __fish_use_subcommand -f -l version -d 'print the version'"]
    for name, (_, summary) in COMMANDS.items():
        said = summary.replace("'", "")
        lines.append(f"complete -c mtprof -n __fish_use_subcommand -f -a {name} -d '{said}'")
        lines += [f"complete -c mtprof -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
                  for option in words[name]]
    return "\n".join(lines)
