"""The profile of a model of a library on a GPU: BERT-base, its attention taken apart."""

from __future__ import annotations

from tcw.compiler.trace.records import (
    AnyRecord,
    Location,
    Node,
    Settings,
)
from tests.no_torch.profile_building import (
    Call,
    captured,
    ceilings,
    meta,
)

LAYERS = 12
BERT_FILE = "/home/ada/models/bert.py"
BERT_CODE = """\
import torch
from transformers import BertConfig, BertModel

model = BertModel(BertConfig()).eval().cuda().to(torch.bfloat16)
ids = torch.randint(0, 30000, (16, 512), device="cuda")
example_inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
"""
SDPA_FILE = "/usr/lib/python3.12/site-packages/transformers/integrations/sdpa_attention.py"
MASK_FILE = "/usr/lib/python3.12/site-packages/transformers/masking_utils.py"


def bert_on_a_gpu() -> list[AnyRecord]:
    """BERT-base, 16×512, bfloat16: twelve flash attentions become 24 products and a softmax each,
    for a mask that eager drops. Times as on one H200: 434 µs against 2,900 µs."""
    call = Call(
        settings=Settings(file=BERT_FILE, grad="no-grad", profile=True),
        file=BERT_FILE,
        code=BERT_CODE,
        device="NVIDIA H200",
        gpu="NVIDIA H200",
    )
    heads = meta(16, 12, 512, 64, dtype="bfloat16", device="cuda")
    wide = meta(16, 512, 768, dtype="bfloat16", device="cuda")
    scores = meta(16, 12, 512, 512, device="cuda")
    nodes = list(_bert_mask())
    flops = 4 * 16 * 12 * 512 * 512 * 64
    for layer in range(LAYERS):
        module = f"encoder.layer.{layer}.attention.self"
        nodes.append(_bert_attention(layer, module))
        flash = call.operation(
            "aten._scaled_dot_product_flash_attention.default", 96, 36.2,
            "bf16[16, 12, 512, 64], bf16[16, 12, 512, 64], bf16[16, 12, 512, 64], 0.0, False",
            module, kernels=("flash_fwd_kernel",), flops=flops, location_file=SDPA_FILE,
            read_bytes=3 * (heads.bytes or 0), write_bytes=heads.bytes,
        )  # fmt: skip
        steps = [
            call.kernel(
                "extern_kernels.bmm", "bmm", [96], 61.0, (f"bmm_{2 * layer}",), "aten",
                flops=flops // 2, kernels=("sm90_xmma_gemm_f32f32_tf32f32_f32",),
                read_bytes=2 * (heads.bytes or 0), write_bytes=scores.bytes,
                location_file=SDPA_FILE,
            ),
            call.kernel(
                "triton_red_fused__safe_softmax_add_3", "add, _safe_softmax", [96], 118.0,
                ("add_3", "amax", "exp", "sum_1"), "triton", kernels=("triton_red_fused_3",),
                read_bytes=scores.bytes, write_bytes=scores.bytes, location_file=SDPA_FILE,
            ),
            call.kernel(
                "extern_kernels.bmm", "bmm", [96], 62.7, (f"bmm_{2 * layer + 1}",), "aten",
                flops=flops // 2, kernels=("sm90_xmma_gemm_f32f32_tf32f32_f32",),
                read_bytes=scores.bytes, write_bytes=heads.bytes, location_file=SDPA_FILE,
            ),
        ]  # fmt: skip
        call.region("attention", steps, [flash], 2.1, (module,))
        ops = [
            call.operation("aten.add.Tensor", 5, 9.1, "", f"encoder.layer.{layer}.output"),
            call.operation(
                "aten.native_layer_norm.default", 5, 14.8, "", f"encoder.layer.{layer}.output"
            ),
        ]
        step = call.kernel(
            f"triton_per_fused_add_native_layer_norm_{layer}", "add, native_layer_norm", [5], 12.6,
            ("add", "var_mean"), "triton", kernels=("triton_per_fused_5",),
            read_bytes=2 * (wide.bytes or 0), write_bytes=wide.bytes,
        )  # fmt: skip
        call.region("add, layer norm", [step], ops, 0.6, (f"encoder.layer.{layer}.output",))
        one = call.operation(
            "aten.addmm.default", 5, 121.0, "", f"encoder.layer.{layer}.intermediate",
            flops=2 * 8192 * 768 * 3072,
        )  # fmt: skip
        step = call.kernel(
            "extern_kernels.addmm", "addmm", [5], 120.2, (f"addmm_{layer}",), "aten",
            flops=2 * 8192 * 768 * 3072, kernels=("nvjet_tst_128x256",),
        )  # fmt: skip
        call.region("addmm", [step], [one], 1.9, (f"encoder.layer.{layer}.intermediate",))
    mask = call.kernel(
        "triton_poi_fused_bitwise_and_expand_0", "bitwise_and, expand", [318], 6.2,
        ("bitwise_and",), "triton", location_file=MASK_FILE,
    )  # fmt: skip
    call.region("bitwise and, expand", [mask], [], 0.2)
    return call.done(
        before=[captured(*nodes), ceilings("cuda")],
        clock="device",
        host=(("idle", 40.0, "the card waits"),),
        eager_host=610.0,
    )


def _bert_mask() -> tuple[Node, ...]:
    made = Location(file=MASK_FILE, line=318, column=8, function="sdpa_mask")
    return (
        Node(
            name="l_attention_mask_",
            op="placeholder",
            target="L_attention_mask_",
            value=meta(16, 512, dtype="int64", device="cuda"),
        ),
        Node(
            name="attention_mask_1",
            op="call_method",
            target="expand",
            args="l_attention_mask_, 16, 1, 512, 512",
            inputs=("l_attention_mask_",),
            value=meta(16, 1, 512, 512, dtype="bool", device="cuda"),
            location=made,
            stack=(Location(file=BERT_FILE, line=4), made),
        ),
    )


def _bert_attention(layer: int, module: str) -> Node:
    mask = "attention_mask_1"
    return Node(
        name=f"attn_output_{layer}",
        op="call_function",
        target="torch._C._nn.scaled_dot_product_attention",
        args=f"query_{layer}, key_{layer}, value_{layer}, attn_mask={mask}, dropout_p=0.0, "
        "scale=0.125, is_causal=False",
        inputs=(f"query_{layer}", f"key_{layer}", f"value_{layer}", mask),
        value=meta(16, 12, 512, 64, dtype="bfloat16", device="cuda"),
        module=module,
        location=Location(file=SDPA_FILE, line=96, function="sdpa_attention_forward"),
    )
