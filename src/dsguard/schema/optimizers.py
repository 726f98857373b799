"""The optimizers that a config can name, and what their constructors take.

Sources: ``DEEPSPEED_OPTIMIZERS`` in deepspeed/runtime/config.py, ``_configure_basic_optimizer``
in deepspeed/runtime/engine.py, the classes in deepspeed/ops, and torch.optim.
"""

from __future__ import annotations

from msgspec import Struct
from packaging.version import Version

from dsguard.schema.history import OLDEST_KNOWN


class DeepSpeedOptimizer(Struct, frozen=True):
    """A name that DeepSpeed itself knows, in any case.

    ``title`` is the usual spelling. ``since`` is the first release with it; ``removed_in`` the
    first one without it, None while it exists. ``on_device`` is the class that it becomes, and
    ``on_cpu`` the one with optimizer offload, None where that is the same; both are names of
    :data:`CONSTRUCTORS` where dsguard knows their arguments.
    """

    title: str
    on_device: str
    on_cpu: str | None = None
    since: Version = OLDEST_KNOWN
    removed_in: Version | None = None

    def exists(self, target: Version) -> bool:
        """Whether a release has it."""
        return self.since <= target and (self.removed_in is None or target < self.removed_in)


_REMOVED = Version("0.19.7")
_MUP = Version("0.10.2")

DEEPSPEED_OPTIMIZERS = {
    optimizer.title.lower(): optimizer
    for optimizer in (
        DeepSpeedOptimizer("Adam", "FusedAdam", "DeepSpeedCPUAdam"),
        DeepSpeedOptimizer("AdamW", "FusedAdam", "DeepSpeedCPUAdam"),
        DeepSpeedOptimizer("Adagrad", "torch.optim.Adagrad", "DeepSpeedCPUAdagrad"),
        DeepSpeedOptimizer("Lamb", "FusedLamb"),
        DeepSpeedOptimizer("Lion", "FusedLion", "DeepSpeedCPULion", since=Version("0.11.0")),
        DeepSpeedOptimizer("MuAdam", "mup.MuAdam", since=_MUP),
        DeepSpeedOptimizer("MuAdamW", "mup.MuAdamW", since=_MUP),
        DeepSpeedOptimizer("MuSGD", "mup.MuSGD", since=_MUP),
        DeepSpeedOptimizer("Muon", "MuonWithAuxAdam", since=Version("0.17.6")),
        DeepSpeedOptimizer("OneBitAdam", "OnebitAdam", removed_in=_REMOVED),
        DeepSpeedOptimizer("OneBitLamb", "OnebitLamb", removed_in=_REMOVED),
        DeepSpeedOptimizer("ZeroOneAdam", "ZeroOneAdam", removed_in=_REMOVED),
    )
}

_ADAM = frozenset({"lr", "betas", "eps", "weight_decay", "bias_correction", "amsgrad"})
_ONE_BIT = _ADAM | {"eps_inside_sqrt", "cuda_aware", "comm_backend_name"}
_TORCH_LOOP = frozenset({"foreach", "maximize", "capturable", "differentiable"})
_TORCH_ADAM = frozenset({"lr", "betas", "eps", "weight_decay"}) | _TORCH_LOOP

CONSTRUCTORS: dict[str, frozenset[str]] = {
    "FusedAdam": _ADAM | {"adam_w_mode", "set_grad_none"},
    "DeepSpeedCPUAdam": _ADAM | {"adamw_mode", "fp32_optimizer_states"},
    "DeepSpeedCPUAdagrad": frozenset(
        {"lr", "eps", "weight_decay", "amsgrad", "fp32_optimizer_states"}
    ),
    "FusedLamb": _ADAM | {"eps_inside_sqrt", "max_grad_norm", "max_coeff", "min_coeff"},
    "FusedLion": frozenset({"lr", "betas", "weight_decay", "set_grad_none"}),
    "DeepSpeedCPULion": frozenset({"lr", "betas", "weight_decay", "fp32_optimizer_states"}),
    "OnebitAdam": _ONE_BIT | {"freeze_step", "max_grad_norm"},
    "OnebitLamb": _ONE_BIT
    | {"freeze_step", "max_grad_norm", "max_coeff", "min_coeff", "coeff_beta"}
    | {"factor_max", "factor_min", "factor_threshold"},
    "ZeroOneAdam": _ONE_BIT
    | {"max_grad_norm", "var_freeze_step", "var_update_scaler"}
    | {"local_step_scaler", "local_step_clipper"},
    "torch.optim.ASGD": frozenset({"lr", "lambd", "alpha", "t0", "weight_decay"}) | _TORCH_LOOP,
    "torch.optim.Adadelta": frozenset({"lr", "rho", "eps", "weight_decay"}) | _TORCH_LOOP,
    "torch.optim.Adafactor": frozenset(
        {"lr", "beta2_decay", "eps", "d", "weight_decay", "foreach", "maximize"}
    ),
    "torch.optim.Adagrad": frozenset({"lr", "lr_decay", "weight_decay", "eps", "fused"})
    | {"initial_accumulator_value", "foreach", "maximize", "differentiable"},
    "torch.optim.Adam": _TORCH_ADAM | {"amsgrad", "fused", "decoupled_weight_decay"},
    "torch.optim.AdamW": _TORCH_ADAM | {"amsgrad", "fused"},
    "torch.optim.Adamax": _TORCH_ADAM,
    "torch.optim.LBFGS": frozenset({"lr", "max_iter", "max_eval", "history_size"})
    | {"tolerance_grad", "tolerance_change", "line_search_fn"},
    "torch.optim.Muon": frozenset({"lr", "weight_decay", "momentum", "nesterov"})
    | {"ns_coefficients", "eps", "ns_steps", "adjust_lr_fn"},
    "torch.optim.NAdam": _TORCH_ADAM | {"momentum_decay", "decoupled_weight_decay"},
    "torch.optim.RAdam": _TORCH_ADAM | {"decoupled_weight_decay"},
    "torch.optim.RMSprop": frozenset({"lr", "alpha", "eps", "weight_decay", "momentum"})
    | {"centered", *_TORCH_LOOP},
    "torch.optim.Rprop": frozenset({"lr", "etas", "step_sizes"}) | _TORCH_LOOP,
    "torch.optim.SGD": frozenset({"lr", "momentum", "dampening", "weight_decay", "nesterov"})
    | {"maximize", "foreach", "differentiable", "fused"},
    "torch.optim.SparseAdam": frozenset({"lr", "betas", "eps", "maximize"}),
}
"""The arguments that the constructor of a class has besides the parameters to train.

Those of DeepSpeed's classes did not change from 0.9.0 to the newest known release; those of
torch's are what any release of PyTorch has.
"""

_ADAM_READS = frozenset({"adam_w_mode", "torch_adam", "fp32_optimizer_states"})
_PASSED_BY_DEEPSPEED = {
    "FusedAdam": frozenset({"adam_w_mode"}),
    "DeepSpeedCPUAdam": frozenset({"adamw_mode", "fp32_optimizer_states"}),
}
"""What DeepSpeed passes to the constructor itself, so that the config cannot."""

MUON_DROPS_SINCE = Version("0.19.6")
"""From this release Muon's groups are built from the keys it knows; others are dropped."""

MUON_READS = _ADAM_READS | {
    "lr",
    "momentum",
    "weight_decay",
    "ns_method",
    "betas",
    "eps",
    "muon_lr",
    "adam_lr",
    "foreach",
    "per_head_muon",
}
"""Every key of the block that something reads when the type is Muon."""


def torch_optimizers() -> tuple[str, ...]:
    """The names of the classes of torch.optim; their case matters."""
    prefix = "torch.optim."
    return tuple(name.removeprefix(prefix) for name in CONSTRUCTORS if name.startswith(prefix))


def accepted(name: str, built: str) -> frozenset[str] | None:
    """What the block of a named optimizer may hold when it becomes the class ``built``.

    None where dsguard does not know the class.
    """
    constructor = CONSTRUCTORS.get(built)
    if constructor is None:
        return None
    taken = _ADAM_READS if name.lower() in ("adam", "adamw") else frozenset()
    return (constructor - _PASSED_BY_DEEPSPEED.get(built, frozenset())) | taken
