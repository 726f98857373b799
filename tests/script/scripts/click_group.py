"""Several commands: which one runs is said on the command line."""

import click


@click.group()
def cli():
    pass


@cli.command()
@click.option("--batch-size", default=8)
def train(batch_size):
    print(batch_size)


@cli.command()
@click.option("--batch-size", default=1)
def evaluate(batch_size):
    print(batch_size)


cli()
