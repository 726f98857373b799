"""Records for the experiment tracker that is in use already."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dsguard.runtime.sink import Sink

if TYPE_CHECKING:
    from dsguard.model.record import HeaderLine, StepLine, SummaryLine
    from dsguard.runtime.gauges import Gauges


class WriterSink(Sink):
    """TensorBoard's ``SummaryWriter``, or what has its ``add_scalar``. Rank 0 only."""

    def __init__(self, writer: Any) -> None:
        self.name = type(writer).__name__
        self._writer = writer
        self._speaks = False
        self._values = Values()

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Find out who speaks."""
        self._speaks = header.rank == 0

    def take(self, line: StepLine) -> None:
        """Add one scalar a value, over optimizer steps."""
        if self._speaks:
            for name, value in self._values.of(line).items():
                self._writer.add_scalar(name, value, line.step)


class TrackerSink(Sink):
    """DeepSpeed's monitor where it is enabled, else the active wandb and MLflow run. Rank 0 only.

    Nothing is imported: what the script has not loaded is not in use.
    """

    name = "the experiment tracker in use"

    def __init__(self) -> None:
        self._gauges: Gauges | None = None
        self._speaks = False
        self._values = Values()
        self._axis_for: Any = None
        self._used = False

    def open(self, header: HeaderLine, gauges: Gauges) -> None:
        """Find out who speaks."""
        self._speaks, self._gauges = header.rank == 0, gauges

    def take(self, line: StepLine) -> None:
        """Send the values of one step to what is in use now."""
        if not self._speaks:
            return
        values = self._values.of(line)
        monitor = self._gauges.monitor() if self._gauges is not None else None
        if monitor is not None:
            self._used = True
            # DeepSpeed's own events stand over samples, and wandb takes no step backwards.
            writer, samples = monitor
            writer.write_events([(name, value, samples) for name, value in values.items()])
            return
        self._to_wandb(values, line.step)
        self._to_mlflow(values, line.step)

    def close(self, summary: SummaryLine) -> None:
        """Say that nothing was in use.

        Raises:
            LookupError: the records went nowhere.
        """
        if self._speaks and not self._used and summary.optimizer_steps:
            raise LookupError(
                "neither DeepSpeed's monitor nor a run of wandb or MLflow was ever active"
            )

    def _to_wandb(self, values: dict[str, float], step: int) -> None:
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is None:
            return
        self._used = True
        if self._axis_for is not run:
            self._axis_for = run
            run.define_metric("dsguard/step")
            run.define_metric("dsguard/*", step_metric="dsguard/step")
        # Without a commit the values join what the script logs next: its own steps are not moved.
        run.log({**values, "dsguard/step": step}, commit=False)

    def _to_mlflow(self, values: dict[str, float], step: int) -> None:
        mlflow = sys.modules.get("mlflow")
        if mlflow is None or mlflow.active_run() is None:
            return
        self._used = True
        # Not synchronous: a server that answers slowly would hold the training up.
        mlflow.log_metrics(values, step=step, synchronous=False)


class Values:
    """What a tracker is told about a step: numbers by name, without those that are unknown."""

    def __init__(self) -> None:
        self._found = 0

    def of(self, line: StepLine) -> dict[str, float]:
        """The numbers of one line; ``dsguard/findings`` counts kinds of findings so far."""
        self._found += len(line.findings)
        values = {
            "micro_batches": line.micro_batches,
            "expected_micro_batches": line.expected,
            "samples": line.samples,
            "tokens": line.tokens,
            "tokens_unpadded": line.tokens_unpadded,
            "skipped": 0 if line.applied else 1,
            "grad_norm": line.grad_norm,
            "learning_rate": line.learning_rate,
            "loss_scale": line.loss_scale,
            "findings": self._found,
        }
        return {f"dsguard/{name}": float(v) for name, v in values.items() if v is not None}
