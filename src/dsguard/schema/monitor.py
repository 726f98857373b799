"""tensorboard, wandb, csv_monitor and comet: where metrics are written."""

from dsguard.schema.block import CheckedBlock, key


class TensorBoard(CheckedBlock):
    """Metrics to TensorBoard.

    Source: deepspeed/monitor/config.py.
    """

    enabled: bool = key(False, "Log to TensorBoard.")
    job_name: str = key("DeepSpeedJobName", "Name of the folder inside output_path.")
    output_path: str = key(
        "",
        "Folder the logs go to; empty is a folder under the working directory.",
    )


class WandB(CheckedBlock):
    """Metrics to Weights & Biases.

    Source: deepspeed/monitor/config.py.
    """

    enabled: bool = key(False, "Log to Weights & Biases.")
    group: str | None = key(None, "Group the run belongs to.")
    project: str = key("deepspeed", "Project the run belongs to.")
    team: str | None = key(None, "Team (entity) the run belongs to.")


class CsvMonitor(CheckedBlock):
    """Metrics to CSV files.

    Source: deepspeed/monitor/config.py.
    """

    enabled: bool = key(False, "Write CSV files.")
    job_name: str = key("DeepSpeedJobName", "Name of the folder inside output_path.")
    output_path: str = key(
        "",
        "Folder the files go to; empty is a folder under the working directory.",
    )


class Comet(CheckedBlock):
    """Metrics to Comet.

    Source: deepspeed/monitor/config.py.
    """

    enabled: bool = key(False, "Log to Comet.", since="0.14.3")
    api_key: str | None = key(
        None,
        "Comet API key; else from Comet's own settings or COMET_API_KEY.",
        since="0.14.3",
    )
    experiment_key: str | None = key(None, "Key of an existing or new experiment.", since="0.14.3")
    experiment_name: str | None = key(None, "Name shown for the experiment.", since="0.14.3")
    mode: str | None = key(
        None,
        "Whether an experiment is taken up or made: get, create or get_or_create.",
        since="0.14.3",
    )
    online: bool | None = key(
        None,
        "Send to the server (true) or keep an offline experiment (false).",
        since="0.14.3",
    )
    project: str | None = key(None, "Project that holds the experiment.", since="0.14.3")
    samples_log_interval: int = key(
        100,
        "Samples between two submissions of metrics.",
        since="0.14.3",
    )
    workspace: str | None = key(None, "Workspace that holds the project.", since="0.14.3")
