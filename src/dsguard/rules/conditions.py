"""When a rule can find something: what ``when=`` of a rule is made of.

A check imports the module of a rule only where all conditions of the rule are met. So a condition
has to be cheap and exact: where it is not met, the rule finds nothing. It asks a case in the same
way as the rule would, so that what the case could not answer is noted all the same (see
:class:`~dsguard.facts.watch.WatchedCase`); the conditions of a rule stand in the order in which
the rule asks.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from dsguard.facts.values import has
from dsguard.model.fact import Conflict, Known
from dsguard.model.tree import Object

if TYPE_CHECKING:
    from dsguard.facts.case import Case


class Condition:
    """A question about a case; ``names`` are what it is about."""

    __slots__ = ("names",)

    def __init__(self, *names: Any) -> None:
        self.names = names

    def met(self, case: Case) -> bool:
        """Whether a rule with this condition may find something in the case."""
        raise NotImplementedError


class Never(Condition):
    """Not met: what goes by the rule's name is reported elsewhere."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return False


class Either(Condition):
    """One of some conditions is met."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return any(condition.met(case) for condition in self.names)


class Given(Condition):
    """The case, or one of its parts, has these attributes: a document, a launch, a script."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return all(attrgetter(name)(case) is not None for name in self.names)


class Without(Condition):
    """This attribute of the case, or of one of its parts, is absent or false."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return not any(attrgetter(name)(case) for name in self.names)


class Reads(Condition):
    """Always met: the rule looks at these attributes of any case."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        for name in self.names:
            getattr(case, name)
        return True


class Weighs(Condition):
    """Always met: the rule looks at these facts of any case."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        for name in self.names:
            case.facts[name]
        return True


class Is(Condition):
    """A fact is known and has one of these values; the case of letters does not matter."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        name, *values = self.names
        fact = case.facts[name]
        if not isinstance(fact, Known):
            return False
        value = fact.value
        return (value.lower() if isinstance(value, str) else value) in values


class Unsettled(Condition):
    """A fact is not known."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return any(not isinstance(case.facts[name], Known) for name in self.names)


class Disputed(Condition):
    """Sources of a fact disagree."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return any(isinstance(case.facts[name], Conflict) for name in self.names)


class Written(Condition):
    """The config has one of these dotted keys."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        document = case.document
        return any(has(document, name) for name in self.names)


class Listed(Condition):
    """The root of the config is a list or a single value."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        document = case.document
        return document is not None and not isinstance(document.root, Object)


class Repeats(Condition):
    """A key is written twice in one object of the config."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        document = case.document
        return document is not None and any(
            True for _, node in document.objects() for _ in node.duplicates()
        )


class Deviates(Condition):
    """The config is not strict JSON."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        document = case.document
        return document is not None and bool(document.deviations)


class Problems(Condition):
    """The schema has a problem of one of these kinds."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return any(problem.kind in self.names for problem in case.problems)


class Fails(Condition):
    """DeepSpeed stops over the batch sizes for one of these reasons."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        return case.batch.failure in self.names


class Asked(Condition):
    """A number is asked for outside the config, under one of these dotted keys."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        requests = case.requests
        return any(requests.get(name) is not None for name in self.names)


class ReadBy(Condition):
    """The config is an object, and one of these front ends reads it."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        document = case.document
        if document is None or not isinstance(document.root, Object):
            return False
        front_end = case.front_end
        return front_end is not None and front_end.name in self.names


class Launched(Condition):
    """The command is one of these launchers'."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        launch = case.launch
        return launch is not None and launch.launcher in self.names


class Exported(Condition):
    """The command sets one of these variables."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        launch = case.launch
        return launch is not None and any(launch.variable(name) for name in self.names)


class Passed(Condition):
    """The script is given one of these arguments."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        launch = case.launch
        return launch is not None and launch.arguments.get(*self.names) is not None


class Troubles(Condition):
    """The launch has a trouble of one of these kinds."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        launch = case.launch
        return launch is not None and any(one.kind in self.names for one in launch.troubles)


class Acts(Condition):
    """The script does one of these things in its training loop."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        script = case.script
        return script is not None and any(one.does in self.names for one in script.loop.actions)


class Pipelined(Condition):
    """The script makes a pipeline."""

    __slots__ = ()

    def met(self, case: Case) -> bool:
        script = case.script
        return script is not None and any(engine.is_pipeline for engine in script.loop.engines)
