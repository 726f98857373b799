"""``dsguard server``: the checks in an editor, over the Language Server Protocol.

Needs the extra ``lsp`` (pygls); nothing else of dsguard imports this package.
"""
