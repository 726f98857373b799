"""One click command."""

import click

WORKERS = 4


@click.command(context_settings={"show_default": True})
@click.option("--batch-size", "-b", default=8, help="per GPU")
@click.option("--lr", "learning_rate", default=1e-4, type=float)
@click.option("--bf16/--no-bf16", default=True)
@click.option("--debug", is_flag=True)
@click.option("--model", required=True, type=str)
@click.option("--optimizer", type=click.Choice(["adam", "lion"]), default="adam")
@click.option("-s", "--step-count", default="3", type=int)
@click.option("--workers", default=WORKERS, show_default=True)
@click.option("--upper", "case", flag_value="upper")
@click.option("-v", "--verbose", count=True)
@click.option("--seed", type=click.INT)
@click.option("--use-ema", default=False)
@click.argument("path", default="data")
@click.argument("rest", nargs=-1)
def main(**kwargs):
    print(kwargs)


if __name__ == "__main__":
    main()
