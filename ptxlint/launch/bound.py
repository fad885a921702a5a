"""The launches of a kernel, bound to its parameters. Without a launch nothing else is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ptxlint.facts import Analysis, Facts

if TYPE_CHECKING:
    from ptxlint.launch.binding import Bound


class BoundLaunches(Analysis["tuple[Bound, ...]"]):
    """The launches of a kernel, each bound to its parameters; none without launches.

    Raises `BindingError`; the engine asks first, and leaves out what does not fit.
    """

    name: ClassVar[str] = "launches"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = ()

    def run(self, facts: Facts) -> tuple[Bound, ...]:
        """Bind each."""
        if not facts.launches:
            return ()
        from ptxlint.launch.binding import bind

        names = facts.words.parameters(facts.function)
        return tuple(
            bind(facts.function, launch, names, facts.metadata) for launch in facts.launches
        )
