"""The registry: the service with one method for each verb, over any store.

Commands and doors parse and print, acts decide, and the store writes. Three classes in a straight line:
`ReadingRegistry` reads jobs, `ChangingRegistry` changes one job, `Registry` makes jobs, hands them out and waits.
"""

from mam.registry.reading import CANDIDATES_SHOWN, only_match
from mam.registry.service import LONGEST_SLEEP_SECONDS, Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.registry.changing import AuditSink

__all__ = ["CANDIDATES_SHOWN", "LONGEST_SLEEP_SECONDS", "AuditSink", "Registry", "only_match"]
