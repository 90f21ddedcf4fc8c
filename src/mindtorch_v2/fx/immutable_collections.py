"""Lists and dictionaries in a node's arguments: they cannot be changed behind the graph's back."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils._pytree import MappingKey, SequenceKey, register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"{type(self).__name__} cannot be changed: a node's arguments are set as a whole "
                              "(`node.args = …`), so that the graph knows which nodes use which")


class immutable_list(list):
    """A list that refuses to be changed."""

    append = extend = insert = pop = remove = clear = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dictionary that refuses to be changed."""

    pop = popitem = clear = update = setdefault = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


register_pytree_node(immutable_dict, lambda d: (list(d.values()), list(d)),
                     lambda items, keys: immutable_dict(zip(keys, items, strict=True)),
                     serialized_type_name="torch.fx.immutable_collections.immutable_dict",
                     flatten_with_keys_fn=lambda d: ([(MappingKey(key), item) for key, item in d.items()], list(d)))
register_pytree_node(immutable_list, lambda d: (list(d), None), lambda items, _: immutable_list(items),
                     serialized_type_name="torch.fx.immutable_collections.immutable_list",
                     flatten_with_keys_fn=lambda d: ([(SequenceKey(i), item) for i, item in enumerate(d)], None))
