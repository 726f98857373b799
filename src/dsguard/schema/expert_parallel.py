"""expert_parallel: AutoEP, expert parallelism for Hugging Face MoE models."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from dsguard.schema import wording
from dsguard.schema.block import Takes, UncheckedBlock, key
from dsguard.schema.history import Was
from dsguard.schema.problem import Place, Problem
from dsguard.schema.shape import fields_of

_READ_WHEN_OFF = ("enabled", "load_balance_coeff", "validate_folding_routing", "async_split_plan")
_INITIALIZE = "deepspeed.initialize"


class ExpertParallel(UncheckedBlock):
    """Expert parallelism for Hugging Face MoE models; strings are checked when the engine is built.

    Source: parse_autoep_config in deepspeed/module_inject/auto_ep_config.py.
    """

    enabled: bool = key(
        False,
        "Turn AutoEP on; nothing else is checked when false (except load_balance_coeff and two "
        "booleans).",
        since="0.19.2",
    )
    async_split_plan: bool = key(
        False,
        "Plan token splits asynchronously; not with AutoTP.",
        since="0.19.8",
    )
    autoep_size: int = key(
        1,
        "Expert-parallel degree; must divide the stage's ranks and every layer's experts.",
        since="0.19.2",
    )
    combine_impl: Literal["auto", "weighted_sum", "fused_weighted_sum", "legacy_bmm"] = key(
        "auto",
        "auto, weighted_sum, fused_weighted_sum or legacy_bmm.",
        since="0.19.2",
    )
    comm_backend: Literal["comm", "deepep"] = key("comm", "comm or deepep.", since="0.19.7")
    comm_max_tokens_per_rank: int = key(
        0,
        "Token buffer of DeepEP; must be positive with deepep.",
        since="0.19.7",
        ge=0,
    )
    comm_num_sm: int = key(
        12, "Streaming multiprocessors that DeepEP may use.", since="0.19.7", ge=1
    )
    comm_qp_margin: int = key(4, "Queue pairs DeepEP opens beyond the need.", since="0.19.7", ge=0)
    disable_triton_grouped_mm: bool = key(
        False,
        "Do not use the Triton grouped GEMM.",
        since="0.19.4",
    )
    expert_activation: str | None = key(
        None,
        "Name of the experts' activation function, where the preset has another.",
        since="0.19.8",
    )
    expert_pattern: str | None = key(None, "Attribute of the experts module.", since="0.19.2")
    expert_tensor_parallel_size: Literal[1] = key(1, "Only 1 is accepted.", since="0.19.3")
    expert_w1: str | None = key(None, "Name of the gate (or fused) weight.", since="0.19.2")
    expert_w2: str | None = key(None, "Name of the down weight.", since="0.19.2")
    expert_w3: str | None = key(None, "Name of the up weight; null means fused.", since="0.19.2")
    gate_up_impl: Literal["separate", "fused"] = key(
        "separate",
        "separate or fused (fused needs use_grouped_mm).",
        since="0.19.8",
    )
    has_shared_experts: bool | None = key(
        None,
        "Whether layers have shared experts.",
        since="0.19.2",
    )
    load_balance_coeff: Annotated[None, Takes(lambda value: value is None, "null or absent")] = key(
        None,
        "Must be null or absent.",
        since="0.19.2",
    )
    moe_layer_pattern: str | None = key(None, "Regex of MoE module names.", since="0.19.2")
    num_expert_groups: int | None = key(
        None, "Groups for group-limited routing.", since="0.19.2", ge=1
    )
    num_experts_attr: str | None = key(
        None,
        "Model config attribute of the expert count.",
        since="0.19.2",
    )
    num_limited_groups: int | None = key(
        None,
        "Groups chosen; not above num_expert_groups.",
        since="0.19.2",
        ge=1,
    )
    preset_model: (
        Literal["mixtral", "qwen3_moe", "qwen3_5_moe", "deepseek_v2", "deepseek_v3", "minimax_m3"]
        | None
    ) = key(
        None,
        "Family of models whose MoE layers are known.",
        since="0.19.2",
        was=(
            Was(
                "0.19.8",
                type=Literal["mixtral", "qwen3_moe", "qwen3_5_moe", "deepseek_v2", "deepseek_v3"]
                | None,
            ),
        ),
    )
    route_norm: bool | None = key(None, "Renormalize top-k scores.", since="0.19.2")
    route_scale: float = key(1.0, "Factor on router scores.", since="0.19.2")
    routed_scaling_factor: float | Literal["auto"] = key(
        "auto",
        "Factor on the routed experts' output, or auto to read it from the model.",
        since="0.19.2",
    )
    router_pattern: str | None = key(None, "Attribute of the router.", since="0.19.2")
    row_weighting_impl: Literal["auto", "eager", "fused"] = key(
        "auto",
        "auto, eager or fused (fused needs deepep).",
        since="0.19.8",
    )
    score_apply: Literal["auto", "pre", "post"] = key("auto", "auto, pre or post.", since="0.19.2")
    score_func: Literal["auto", "softmax", "sigmoid"] = key(
        "auto",
        "auto, softmax or sigmoid.",
        since="0.19.2",
    )
    shared_experts_gate_pattern: str | None = key(
        None,
        "Attribute of the shared experts' gate.",
        since="0.19.2",
    )
    shared_experts_pattern: str | None = key(
        None,
        "Attribute of the shared experts.",
        since="0.19.2",
    )
    top_k: int | Literal["auto"] = key(
        "auto",
        "Experts a token is sent to, or auto to read it from the model.",
        since="0.19.2",
    )
    top_k_attr: str | None = key(None, "Model config attribute of top-k.", since="0.19.2")
    use_grouped_mm: bool = key(True, "Grouped GEMM for experts.", since="0.19.2")
    validate_folding_routing: bool = key(
        False,
        "Check routing agreement in AutoEP+AutoTP.",
        since="0.19.3",
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Switched off, hardly anything else is looked at."""
        return frozenset() if given.get("enabled") else frozenset(given) - set(_READ_WHEN_OFF)

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Ways to compute and to communicate that need each other."""
        if given.get("enabled") is not True:
            return
        fields = fields_of(cls)
        read = {name: value for name, value in given.items() if name in fields}
        groups, limited = read.get("num_expert_groups"), read.get("num_limited_groups")
        if isinstance(groups, int) and isinstance(limited, int) and limited > groups >= 1:
            yield wording.failing(
                at.child("num_limited_groups"),
                limited,
                at.child("num_expert_groups"),
                f"{at.dotted}.num_limited_groups is {limited}, more than num_expert_groups "
                f"{groups}",
                _INITIALIZE,
            )
        if read.get("gate_up_impl") == "fused" and read.get("use_grouped_mm") is False:
            yield wording.failing(
                at.child("gate_up_impl"),
                "fused",
                at.child("use_grouped_mm"),
                f'{at.dotted}.gate_up_impl is "fused", which needs use_grouped_mm',
                _INITIALIZE,
            )
        yield from _by_deepep(read, at)


def _by_deepep(read: dict[str, Any], at: Place) -> Iterator[Problem]:
    deepep = read.get("comm_backend") == "deepep"
    size, size_at = read.get("autoep_size", 1), at.child("autoep_size")
    if deepep and read.get("comm_max_tokens_per_rank", 0) == 0:
        yield wording.failing(
            at.child("comm_backend"),
            "deepep",
            at.child("comm_max_tokens_per_rank") if "comm_max_tokens_per_rank" in read else None,
            f'{at.dotted}.comm_backend is "deepep", which needs comm_max_tokens_per_rank above 0',
            _INITIALIZE,
        )
    if read.get("row_weighting_impl") == "fused":
        row = at.child("row_weighting_impl")
        if not deepep:
            yield wording.failing(
                row,
                "fused",
                at.child("comm_backend") if "comm_backend" in read else None,
                f'{row.dotted} is "fused", which needs comm_backend "deepep"',
                _INITIALIZE,
            )
        elif size == 1:
            yield wording.failing(
                row,
                "fused",
                size_at if "autoep_size" in read else None,
                f'{row.dotted} is "fused", which needs autoep_size above 1',
                _INITIALIZE,
            )
    fused = read.get("combine_impl") == "fused_weighted_sum"
    if deepep and fused and isinstance(size, int) and size > 1:
        yield wording.failing(
            at.child("combine_impl"),
            "fused_weighted_sum",
            at.child("comm_backend"),
            f'{at.dotted}.combine_impl is "fused_weighted_sum", which does not work with '
            'comm_backend "deepep"',
            _INITIALIZE,
        )
