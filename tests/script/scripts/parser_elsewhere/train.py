# Written as such scripts are.
# ruff: noqa: I001
"""The parser is made by a module beside the script, which takes defaults from another."""

from settings.options import get_parser

import utils


def main():
    parser = get_parser()
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    utils.report(args)


if __name__ == "__main__":
    main()
