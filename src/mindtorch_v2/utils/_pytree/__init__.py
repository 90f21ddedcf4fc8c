"""`torch.utils._pytree`: nested containers as flat lists of leaves, and back."""

from __future__ import annotations

from types import FunctionType

from .classes import (
    ConstantNode as ConstantNode,
)
from .classes import (
    is_constant_class as is_constant_class,
)
from .classes import (
    register_constant as register_constant,
)
from .classes import (
    register_dataclass as register_dataclass,
)
from .containers import (
    _defaultdict_deserialize as _defaultdict_deserialize,
)
from .containers import (
    _defaultdict_flatten_with_keys as _defaultdict_flatten_with_keys,
)
from .containers import (
    _defaultdict_serialize as _defaultdict_serialize,
)
from .containers import (
    _dict_flatten as _dict_flatten,
)
from .containers import (
    _dict_flatten_with_keys as _dict_flatten_with_keys,
)
from .containers import (
    _dict_unflatten as _dict_unflatten,
)
from .containers import (
    _get_node_type as _get_node_type,
)
from .containers import (
    _key as _key,
)
from .containers import (
    _list_flatten as _list_flatten,
)
from .containers import (
    _list_flatten_with_keys as _list_flatten_with_keys,
)
from .containers import (
    _list_unflatten as _list_unflatten,
)
from .containers import (
    _namedtuple_deserialize as _namedtuple_deserialize,
)
from .containers import (
    _namedtuple_flatten_with_keys as _namedtuple_flatten_with_keys,
)
from .containers import (
    _namedtuple_serialize as _namedtuple_serialize,
)
from .flattening import (
    _broadcast_to_and_flatten as _broadcast_to_and_flatten,
)
from .flattening import (
    _flatten_into as _flatten_into,
)
from .flattening import (
    _matched as _matched,
)
from .flattening import (
    arg_tree_leaves as arg_tree_leaves,
)
from .flattening import (
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from .keys import (
    Context,
    DumpableContext,
    FlattenFn,
    FromDumpableContextFn,
    PyTree,
    ToDumpableContextFn,
    UnflattenFn,
)
from .keys import (
    FlattenFunc as FlattenFunc,
)
from .keys import (
    FlattenWithKeysFn as FlattenWithKeysFn,
)
from .keys import (
    FlattenWithKeysFunc as FlattenWithKeysFunc,
)
from .keys import (
    GetAttrKey as GetAttrKey,
)
from .keys import (
    KeyEntry as KeyEntry,
)
from .keys import (
    KeyPath as KeyPath,
)
from .keys import (
    MappingKey as MappingKey,
)
from .keys import (
    MaybeFromStrFunc as MaybeFromStrFunc,
)
from .keys import (
    SequenceKey as SequenceKey,
)
from .keys import (
    ToStrFunc as ToStrFunc,
)
from .keys import (
    UnflattenFunc as UnflattenFunc,
)
from .kinds import (
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
)
from .mapping import (
    MapOnlyFn as MapOnlyFn,
)
from .mapping import (
    _matcher as _matcher,
)
from .mapping import (
    map_only as map_only,
)
from .mapping import (
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
)
from .paths import (
    _with_paths as _with_paths,
)
from .paths import (
    key_get,
    keystr,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
)
from .registry import (
    BUILTIN_TYPES as BUILTIN_TYPES,
)
from .registry import (
    CONSTANT_NODES as CONSTANT_NODES,
)
from .registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND as NO_SERIALIZED_TYPE_NAME_FOUND,
)
from .registry import (
    SERIALIZED_TYPE_TO_PYTHON_TYPE as SERIALIZED_TYPE_TO_PYTHON_TYPE,
)
from .registry import (
    STANDARD_DICT_TYPES as STANDARD_DICT_TYPES,
)
from .registry import (
    SUPPORTED_NODES as SUPPORTED_NODES,
)
from .registry import (
    SUPPORTED_SERIALIZED_TYPES as SUPPORTED_SERIALIZED_TYPES,
)
from .registry import (
    NodeDef as NodeDef,
)
from .registry import (
    _deregister_pytree_node as _deregister_pytree_node,
)
from .registry import (
    _put_node as _put_node,
)
from .registry import (
    _register_pytree_node as _register_pytree_node,
)
from .registry import (
    _SerializeNodeDef as _SerializeNodeDef,
)
from .registry import (
    register_pytree_node,
)
from .spec import (
    LEAF as LEAF,
)
from .spec import (
    LeafSpec,
    PyTreeSpec,
    TreeSpec,
)
from .spec import (
    _check_keys as _check_keys,
)
from .spec import (
    _children_like as _children_like,
)
from .spec import (
    _keys_of as _keys_of,
)
from .spec import (
    _up_to as _up_to,
)
from .spec import (
    treespec_dict as treespec_dict,
)
from .spec import (
    treespec_leaf as treespec_leaf,
)
from .spec import (
    treespec_tuple as treespec_tuple,
)
from .texts import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL as DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
)
from .texts import (
    EnumEncoder as EnumEncoder,
)
from .texts import (
    _Asterisk as _Asterisk,
)
from .texts import (
    _plain_context as _plain_context,
)
from .texts import (
    _refuse_protocol as _refuse_protocol,
)
from .texts import (
    _register_namedtuple as _register_namedtuple,
)
from .texts import (
    _spec_as_dict as _spec_as_dict,
)
from .texts import (
    _spec_from_dict as _spec_from_dict,
)
from .texts import (
    enum_object_hook as enum_object_hook,
)
from .texts import (
    treespec_dumps,
    treespec_loads,
    treespec_pprint,
)

__all__ = ["Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec",
           "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple", "is_namedtuple_class",
           "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
           "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
           "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map",
           "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
           "treespec_dumps", "treespec_loads", "treespec_pprint"]

for _one in list(vars().values()):
    if isinstance(_one, (type, FunctionType)) and _one.__module__.startswith(f"{__name__}."):
        _one.__module__ = __name__  # as files and messages name them
