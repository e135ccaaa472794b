"""The private names of torch without which our engine cannot be imported or called.

Looked up only after its import has failed, so that the error says what this torch lacks.
"""

from __future__ import annotations

from tcw.compiler.control.hooks import Hook

HOOK = Hook(
    name="compiler",
    offers='backend="tcw"',
    needs=(
        "torch._C:DispatchKey.Autograd",
        "torch._C:DispatchKey.CompositeImplicitAutograd",
        "torch._decomp:_core_aten_decompositions_post_autograd",
        "torch._decomp:get_decompositions",
        "torch._dispatch.python:enable_python_dispatcher",
        "torch._dynamo.backends.common:aot_autograd",
        "torch._dynamo.utils:dynamo_timed",
        "torch._functorch.partitioners:min_cut_rematerialization_partition(joint_module)",
        "torch._guards:TracingContext.try_get",
        "torch._guards:detect_fake_mode",
        "torch._higher_order_ops.auto_functionalize:AliasViewInfo",
        "torch._higher_order_ops.auto_functionalize:AsStridedViewInfo",
        "torch._higher_order_ops.auto_functionalize:NotView",
        "torch._higher_order_ops.auto_functionalize:SliceViewInfo",
        "torch._higher_order_ops.auto_functionalize:get_mutable_args_from_schema",
        "torch._higher_order_ops.auto_functionalize:read_view_information_from_args",
        "torch._ops:HigherOrderOperator",
        "torch._ops:OpOverload",
        "torch._prims_common:get_computation_dtype",
        "torch._subclasses.fake_tensor:FakeTensor",
        "torch._subclasses.fake_tensor:FakeTensorMode",
        "torch._subclasses.fake_tensor:unset_fake_temporarily",
        "torch.utils._pytree:TreeSpec",
        "torch.utils._pytree:tree_flatten",
        "torch.utils._pytree:tree_map",
        "torch.utils._pytree:tree_unflatten",
        "torch.utils._sympy.printers:PythonPrinter",
    ),
    test="engine/test_backend.py",
)
