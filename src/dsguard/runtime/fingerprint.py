"""Whether parameters move: a few of their elements, compared with an earlier copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dsguard.runtime.later import Later

_PARAMETERS = 6
_ELEMENTS = 64
_LOW_PRECISION_BYTES = 2
_MOVED_OFTEN_ENOUGH = 3


class Fingerprint:
    """Samples of up to six parameters, spread over the model.

    ``read`` gives the tensor that holds a parameter's values on this rank now, or None: under
    ZeRO-3 a parameter's own tensor is empty between two uses.
    """

    def __init__(self, parameters: Iterable[Any], read: Callable[[Any], Any], later: Later) -> None:
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        apart = max(1, len(trainable) // _PARAMETERS)
        self._parameters: Sequence[Any] = trainable[::apart][:_PARAMETERS]
        self._read = read
        self._later = later
        self._before: list[Any] | None = None
        self._moves = 0
        self.unmoved_steps = 0
        """Applied steps since any sampled element changed; 0 until the first comparison."""
        self.low_precision = any(
            parameter.element_size() <= _LOW_PRECISION_BYTES for parameter in self._parameters
        )

    @property
    def settled(self) -> bool:
        """Whether the parameters have moved at each of three looks, so that a few more will do."""
        return self._moves >= _MOVED_OFTEN_ENOUGH

    def look(self) -> bool:
        """Compare the parameters with those of the last look; whether there was one."""
        now = self._samples()
        before, self._before = self._before, now
        if before is None or not now or len(before) != len(now):
            return False
        import torch

        with torch.no_grad():
            changed = torch.stack([(a != b).any() for a, b in zip(before, now, strict=True)]).any()
        self._later.read(changed, lambda moved: self._compared(bool(moved)))
        return True

    def forget(self) -> None:
        """Compare with nothing earlier, as after a checkpoint was loaded."""
        self._before = None

    def _compared(self, moved: bool) -> None:
        if moved:
            self._moves += 1
            self.unmoved_steps = 0
        else:
            self._moves = 0
            # The others since the last look may have had a learning rate of 0.
            self.unmoved_steps += 1

    def _samples(self) -> list[Any]:
        samples: list[Any] = []
        for parameter in self._parameters:
            values = self._read(parameter)
            if values is None or values.numel() == 0 or values.device.type == "meta":
                continue
            flat = values.detach().reshape(-1)
            apart = max(1, flat.numel() // _ELEMENTS)
            samples.append(flat[::apart][:_ELEMENTS].clone())
        return samples
