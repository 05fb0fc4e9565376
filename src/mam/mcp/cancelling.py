"""Cancels a job for an agent."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.mcp.caller import Service


def cancel(service: Service, name: str, reason: str | None = None) -> Job:
    from mam.mcp.children import check_family

    service.check_may_write()
    registry = service.registry
    job_id = registry.resolve(name)
    check_family(service, job_id)
    return registry.cancel(job_id, reason=reason or f"cancelled over MCP by {service.caller.name}")
