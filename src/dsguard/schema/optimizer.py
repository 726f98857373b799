"""optimizer: the optimizer that DeepSpeed builds itself."""

from typing import Annotated, Any, ClassVar

from dsguard.model.finding import Consequence
from dsguard.schema.block import Takes, UncheckedBlock, UnknownKeys, key


def _is_text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


class OptimizerParams(UncheckedBlock):
    """Arguments of the optimizer's constructor: the common ones, and one DeepSpeed looks at.

    Which ones a constructor has depends on the optimizer; nothing is unknown here.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE
    passes_on: ClassVar[bool] = True

    lr: float = key(None, "Learning rate.")
    betas: list[Any] = key(None, "Decay rates of the running averages (Adam, Lamb, Lion).")
    eps: float | list[Any] = key(None, "Added to the denominator so that it is never zero.")
    weight_decay: float = key(None, "Factor of weight decay.")
    momentum: float = key(None, "Momentum (SGD, Muon).")
    bias_correction: bool = key(True, "Correct the running averages in the first steps (Adam).")
    adam_w_mode: bool = key(True, "Decoupled weight decay: Adam becomes AdamW unless false.")
    torch_adam: bool = key(False, "Use PyTorch's class instead of DeepSpeed's fused one (Adam).")
    amsgrad: bool = key(False, "AMSGrad variant; DeepSpeed's own optimizers refuse it.")
    max_coeff: float = key(None, "Largest trust ratio (Lamb).")
    min_coeff: float = key(None, "Smallest trust ratio (Lamb).")
    muon_lr: float = key(None, "Learning rate of the matrices (Muon).", since="0.19.6")
    adam_lr: float = key(None, "Learning rate of everything else (Muon).", since="0.19.6")
    max_grad_norm: Annotated[float, Takes(_is_number, "a number")] = key(
        None,
        "No argument of any optimizer: DeepSpeed warns when it reads it and fails when it builds "
        "the optimizer.",
        deprecated="0.9.0",
        replaced_by="gradient_clipping",
        outdated=Consequence.LATE,
    )


class Optimizer(UncheckedBlock):
    """The optimizer to build.

    Source: get_optimizer_* in deepspeed/runtime/config.py.
    """

    type: Annotated[str | None, Takes(_is_text_or_null, "a string")] = key(
        None,
        "A DeepSpeed optimizer in any case (adam, adamw, adagrad, lamb, lion, muadam, muadamw, "
        "musgd, muon) or the exact name of a class of torch.optim.",
        wrong=Consequence.LATE,
    )
    params: OptimizerParams | None = key(None, "Arguments of the optimizer's constructor.")
    legacy_fusion: bool = key(False, "Use the old fused step of FP16_Optimizer.")

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Without a type the parameters are not looked at."""
        return frozenset({"params"}) if given.get("type") is None else frozenset()
